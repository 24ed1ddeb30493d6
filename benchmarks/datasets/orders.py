"""Chains of higher orders: CoNLL-2000 chunks and Spanish entities beside first-order chains.

All train on the same features of tokens, with the same C and to the same precision. F1 is that of
the test part, as conlleval counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import maxmargin as mm
from maxmargin.features import WindowFeatures, chunking_templates, ner_templates
from maxmargin.formats import TokenColumns

from .. import tagging
from ..case import Case, Contestant, Options, Outcome, Target

FIRST, SECOND, THIRD = "order 1", "order 2", "order 3"
TRANSITION_FEATURES = ["p[0]", "shape(w[0])"]
#: What is trained on each data set.
TAGGERS: dict[str, dict[str, dict[str, Any]]] = {
    "CoNLL-2000 chunks": {
        FIRST: {},
        SECOND: {"order": 2},
        "order 2, all triples": {"order": {"transitions": 2, "label_tuples": "allowed"}},
        THIRD: {"order": 3},
    },
    "Spanish entities": {
        FIRST: {},
        SECOND: {"order": 2},
        THIRD: {"order": 3},
        "transition features": {"transition_features": TRANSITION_FEATURES},
        "order 2, transition features": {"order": 2, "transition_features": TRANSITION_FEATURES},
        "emission order 1": {"order": {"emissions": 1}},
    },
}
FILES = {
    "CoNLL-2000 chunks": ("conll2000/train.txt.xz", "conll2000/test.txt.xz", chunking_templates),
    "Spanish entities": ("conll2002/esp.train.xz", "conll2002/esp.testb.xz", ner_templates),
}
MOST_SECONDS = 60.0  # of order 2
C, TOLERANCE = 0.1, 0.01


def cases(options: Options) -> Iterator[Case]:
    """One table for each data set."""
    for name, taggers in TAGGERS.items():
        train, test, templates = FILES[name]
        data, unseen = (tagging.read(path, options.size(100)) for path in (train, test))
        yield Case(
            f"{name}, C = {C:g}, relative gap {TOLERANCE:g}",
            [_tagger(label, p, templates(), data, unseen) for label, p in taggers.items()],
            list(_targets(taggers)),
            truth=unseen.split(2),
        )


def _targets(taggers: dict[str, dict[str, Any]]) -> Iterator[Target]:
    """Order 2 within a minute, and no worse than order 1."""
    for label in taggers:
        yield Target(f"{label}: F1", label, "f1", unit="%")
        limit = MOST_SECONDS if label == SECOND else None
        yield Target(f"{label}: time", label, "cpu", unit="s", at_most=limit)
    yield Target(
        f"{SECOND}: F1 / that of order 1",
        SECOND,
        "f1",
        "order 1, same run",
        at_least=1.0,
        relative_to=(FIRST, "f1"),
    )


def _tagger(
    label: str,
    parameters: dict[str, Any],
    templates: list[str],
    train: TokenColumns,
    test: TokenColumns,
) -> Contestant:
    """A tagger; its time is that of a fit with the building of features."""

    def fitted(data: TokenColumns) -> mm.SequenceTagger:
        features = WindowFeatures(list(templates))
        model = mm.SequenceTagger(C=C, tol=TOLERANCE, features=features, random_state=0)
        return model.set_params(**parameters).fit(data.select([0, 1]), data.split(2))

    def run() -> Outcome:
        model = fitted(train)
        measures = {"passes": model.result_.n_passes}
        return Outcome(measures, tag=lambda: model.predict(test.select([0, 1])))

    return Contestant(label, run, lambda: _compile(fitted, train))


def _compile(fitted: Any, train: TokenColumns) -> None:
    """Train on a few sentences, so that kernels are compiled."""
    fitted(tagging.first(train, 50))
