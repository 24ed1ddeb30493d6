"""What mistakes cost: rare classes of Covertype, and entities that are not to be missed.

Balanced accuracy is the mean recall of the seven classes, on every tenth row of Covertype, with
``class_weight="balanced"`` and without, beside LinearSVC. Of the Spanish sentences all tokens count
that are part of an entity: how many of them are found (recall), and how many of those found are
some (precision), where taking one for O costs more and more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import balanced_accuracy_score
from sklearn.svm import LinearSVC

import maxmargin as mm
from maxmargin.features import WindowFeatures, ner_templates
from maxmargin.formats import TokenColumns

from .. import tagging
from ..case import Case, Contestant, Options, Outcome, Target
from .measures import covertype

CLASSES_C, TAGS_C, TOLERANCE = 1.0, 0.1, 0.01
TRAINING_ROWS = 26_000
COSTS = (1.0, 2.0, 4.0, 8.0)
PLAIN, BALANCED = "MulticlassSVM", "MulticlassSVM, balanced"
PEER, BALANCED_PEER = "LinearSVC", "LinearSVC, balanced"


def cases(options: Options) -> Iterator[Case]:
    """Weights of classes, and a table of costs."""
    yield _rare_classes(options)
    yield _missed_entities(options)


def _rare_classes(options: Options) -> Case:
    """Balanced accuracy on Covertype."""
    X, y = covertype()
    is_test = np.arange(len(y)) % 10 == 9
    kept = np.flatnonzero(~is_test)
    limit = options.size(2000, TRAINING_ROWS)
    assert limit is not None
    kept = kept[:: len(kept) // limit]
    train, test = (X[kept], y[kept]), (X[is_test], y[is_test])
    ours: dict[str, Any] = {"C": CLASSES_C, "tol": TOLERANCE, "random_state": 0}
    peer: dict[str, Any] = {"C": CLASSES_C, "random_state": 0}
    models: dict[str, Any] = {
        PLAIN: mm.MulticlassSVM(**ours),
        BALANCED: mm.MulticlassSVM(class_weight="balanced", **ours),
    }
    if options.peers:
        models[PEER] = LinearSVC(**peer)
        models[BALANCED_PEER] = LinearSVC(class_weight="balanced", **peer)
    targets = [
        *(Target(f"{name}: balanced accuracy", name, "balanced", unit="%") for name in models),
        *(Target(f"{name}: time", name, "cpu", unit="s") for name in models),
        Target(
            "weights of classes / none",
            BALANCED,
            "balanced",
            "without weights, same run",
            at_least=1.0,
            relative_to=(PLAIN, "balanced"),
        ),
    ]
    return Case(
        f"Covertype, {len(kept)} rows, C = {CLASSES_C:g}",
        [_classifier(name, model, train, test) for name, model in models.items()],
        targets,
    )


def _classifier(
    label: str, model: Any, train: tuple[Any, Any], test: tuple[Any, Any]
) -> Contestant:
    """A classifier, and its recall on unseen rows."""

    def run() -> Outcome:
        predicted = model.fit(*train).predict(test[0])
        share = balanced_accuracy_score(test[1], predicted)
        return Outcome(
            {"balanced": 100 * share, "right": 100 * float(np.mean(predicted == test[1]))}
        )

    return Contestant(label, run, lambda: model.fit(train[0][:500], train[1][:500]))


def _missed_entities(options: Options) -> Case:
    """Recall and precision of the tokens of Spanish entities, by what it costs to miss one."""
    train, test = (
        tagging.read(f"conll2002/esp.{part}.xz", options.size(100)) for part in ("train", "testb")
    )
    labels = [_label(cost) for cost in COSTS]
    targets = [
        Target(f"{label}: {what}", label, what, unit=unit)
        for label in labels
        for what, unit in (("recall", "%"), ("precision", "%"), ("f1", "%"), ("cpu", "s"))
    ]
    for dear in labels[1:]:
        targets.append(
            Target(
                f"{dear}: recall / that with equal costs",
                dear,
                "recall",
                "same run",
                at_least=1.0,
                relative_to=(labels[0], "recall"),
            )
        )
    return Case(
        f"Spanish entities, C = {TAGS_C:g}",
        [_tagger(cost, train, test) for cost in COSTS],
        targets,
        truth=test.split(2),
    )


def _label(cost: float) -> str:
    """The name of a contestant."""
    return f"missed tokens cost {cost:g}"


def _tagger(cost: float, train: TokenColumns, test: TokenColumns) -> Contestant:
    """A tagger for which a token of an entity that is taken for O costs so much."""
    tags = np.unique(train.columns[2]).tolist()
    loss = {(tag, "O"): cost for tag in tags if tag != "O"}

    def fitted(data: TokenColumns) -> mm.SequenceTagger:
        features = WindowFeatures(list(ner_templates()))
        model = mm.SequenceTagger(
            C=TAGS_C, tol=TOLERANCE, loss=loss, features=features, random_state=0
        )
        return model.fit(data.select([0, 1]), data.split(2))

    def run() -> Outcome:
        predicted = fitted(train).predict(test.select([0, 1]))
        found = np.array([tag for own in predicted for tag in own])
        return Outcome(_of_tokens(np.asarray(test.columns[2]), found), tag=lambda: predicted)

    return Contestant(_label(cost), run, lambda: _compile(fitted, train))


def _of_tokens(truth: NDArray[Any], found: NDArray[Any]) -> dict[str, float]:
    """Recall and precision of tokens that are part of an entity, of whichever kind."""
    are, seem = truth != "O", found != "O"
    both = float((are & seem).sum())
    return {
        "recall": 100 * both / max(float(are.sum()), 1.0),
        "precision": 100 * both / max(float(seem.sum()), 1.0),
    }


def _compile(fitted: Any, train: TokenColumns) -> None:
    """Train on a few sentences, so that kernels are compiled."""
    fitted(tagging.first(train, 50))
