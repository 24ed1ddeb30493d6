"""Sets of labels (yeast, scene, emotions, enron), beside LinearSVC one by one and in a chain.

Each contestant chooses C on a third of the training examples, by the loss it is trained for or by
the measure that its name tells, and is then trained on all of them; its time is that of both.
Features are standardised, but for enron's, which are words.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import f1_score, hamming_loss
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.preprocessing import MultiLabelBinarizer, StandardScaler
from sklearn.svm import LinearSVC

import maxmargin as mm
from maxmargin.formats import read_svmlight
from maxmargin.problems.multilabel.graph import MOST_LISTED
from maxmargin.problems.multilabel.inference import LabelLoss

from ..case import Case, Contestant, Floats, Options, Outcome, Target
from ..data import data_path

N_FEATURES = {"yeast": 103, "scene": 294, "emotions": 72, "enron": 1001}
CS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
EDGES: dict[str, Literal["tree", "pairs"] | None] = {
    "no edges": None,
    "tree": "tree",
    "all pairs": "pairs",
}
#: What is to be large, in per cent.
MEASURES: dict[str, Callable[[Any, Any], float]] = {
    "right": lambda y, found: 100.0 * (1.0 - hamming_loss(y, found)),
    "f1": lambda y, found: 100.0 * f1_score(y, found, average="samples", zero_division=1.0),
    "exact": lambda y, found: 100.0 * float(np.mean((y == found).all(axis=1))),
}
PEERS: dict[str, Callable[[LinearSVC], Any]] = {
    "LinearSVC one-vs-rest": OneVsRestClassifier,
    "LinearSVC in a chain": partial(ClassifierChain, random_state=0),
}
CHOSEN_BY: dict[LabelLoss, str] = {"hamming": "right", "f1": "f1", "zero_one": "exact"}
COLUMNS = {"hamming": "Hamming loss", "f1": "F1 of examples", "exact": "all labels right"}


class Part(NamedTuple):
    """Inputs, and which labels are on."""

    X: Any
    Y: Floats


@cache
def load(name: str) -> tuple[Part, Part]:
    """Training and test part."""
    labels = data_path(f"multilabel/{name}_labels.txt").read_text(encoding="utf-8").splitlines()
    as_matrix = MultiLabelBinarizer(classes=np.arange(len(labels)))
    parts = []
    for which in ("train", "test"):
        path = data_path(f"multilabel/{name}_{which}.svm.gz")
        data = read_svmlight(path, N_FEATURES[name], multilabel=True)
        X = data.X
        parts.append(Part(X if name == "enron" else X.toarray(), as_matrix.fit_transform(data.y)))
    train, test = parts
    if name != "enron":
        scaler = StandardScaler().fit(train.X)
        train, test = (part._replace(X=scaler.transform(part.X)) for part in (train, test))
    return train, test


Trainer = Callable[[float, Part], Callable[[Any], Any]]  # C, training part -> prediction


def sets_of_labels(
    loss: LabelLoss, edges: Literal["tree", "pairs"] | None, C: float, train: Part
) -> Callable[[Any], Any]:
    """Ours."""
    model = mm.MultilabelSVM(loss=loss, edges=edges, C=C, random_state=0)
    return model.fit(train.X, train.Y).predict


def linear_svcs(combine: Callable[[LinearSVC], Any], C: float, train: Part) -> Callable[[Any], Any]:
    """LinearSVC for each label that is on in some examples and off in others; chains need both."""
    varies = np.ptp(train.Y, axis=0) > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = combine(LinearSVC(C=C, random_state=0)).fit(train.X, train.Y[:, varies])

    def predict(X: Any) -> Any:
        found = np.repeat(train.Y[:1], X.shape[0], axis=0)
        found[:, varies] = model.predict(X)
        return found

    return predict


def tested(label: str, trainer: Trainer, chosen_by: str, name: str) -> Contestant:
    """Test scores with the C that is best on a third of the training examples."""
    train, test = load(name)
    order = np.random.default_rng(0).permutation(len(train.Y))
    held, kept = (Part(train.X[rows], train.Y[rows]) for rows in np.split(order, [len(order) // 3]))

    def run() -> Outcome:
        measure = MEASURES[chosen_by]
        reached = [measure(held.Y, trainer(C, kept)(held.X)) for C in CS]
        C = CS[int(np.argmax(reached))]
        found = trainer(C, train)(test.X)
        measures = {key: function(test.Y, found) for key, function in MEASURES.items()}
        return Outcome({**measures, "hamming": 100.0 - measures["right"], "C": C})

    return Contestant(label, run, once=True)


def cases(options: Options) -> Iterator[Case]:
    """Each data set with all losses and edges, and peers."""
    for name in ("emotions",) if options.quick else N_FEATURES:
        contestants = [
            tested(f"{loss}, {words}", partial(sets_of_labels, loss, edges), chosen_by, name)
            for loss, chosen_by in CHOSEN_BY.items()
            for words, edges in EDGES.items()
            if edges != "pairs" or load(name)[0].Y.shape[1] <= MOST_LISTED
        ]
        if options.peers:
            contestants += [
                tested(f"{words}, C by {told}", partial(linear_svcs, combine), measure, name)
                for words, combine in PEERS.items()
                for told, measure in (("Hamming loss", "right"), ("F1", "f1"))
            ]
        yield Case(
            f"{name}, test part",
            contestants,
            [
                Target(f"{what}: {one.label}", one.label, measure, unit="%")
                for measure, what in COLUMNS.items()
                for one in contestants
            ]
            + [Target(f"time: {one.label}", one.label, "cpu", unit="s") for one in contestants],
        )
