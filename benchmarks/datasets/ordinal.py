"""Grades: relevances of MQ2008 and MSLR, and numbers cut into grades, beside other linear models.

Diabetes progression and the elevation of Covertype are cut into five or ten grades of the same
size, as Chu & Keerthi (2007) do with data for regression. Each contestant chooses C on a third of
the training examples, by the mean absolute error, and is then trained on all of them; its time is
that of both. Features are standardised. All figures are means over several splits.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import maxmargin as mm
from maxmargin.estimators.tabular.ordinal import OrdinalLoss
from maxmargin.formats import read_svmlight

from ..case import Case, Contestant, Floats, Options, Outcome, Target
from ..data import data_path

Grades = NDArray[np.int64]
CS: dict[str, tuple[float, ...]] = {  # of all examples together: for one, over their number
    "absolute": (1e1, 1e2, 1e3, 1e4, 1e5),
    "pairs": (1.0, 1e1, 1e2, 1e3, 1e4),
    "peers": (1e1, 1e2, 1e3, 1e4, 1e5),
}
MEASURES = {"error": "mean absolute error", "right": "right grades"}


class Part(NamedTuple):
    """Inputs and grades from 0."""

    X: Floats
    y: Grades

    def rows(self, chosen: NDArray[Any]) -> Part:
        """Some of the examples."""
        return Part(self.X[chosen], self.y[chosen])


def cut(values: Floats, n_grades: int) -> Grades:
    """Grades of about the same number of examples each."""
    inner = np.linspace(0.0, 1.0, n_grades + 1)[1:-1]
    return np.searchsorted(np.quantile(values, inner), values)


@cache
def load(name: str) -> Part:
    """All examples of a data set."""
    if name.startswith("diabetes"):
        X, values = load_diabetes(return_X_y=True)
        return Part(X, cut(values, int(name.split()[-2])))
    if name.startswith("Covertype"):
        arrays = np.load(data_path("covtype/covtype.npz"))
        numeric = arrays["numeric"].astype(np.float64)
        kinds = [
            arrays[kind][:, None] == np.unique(arrays[kind]) for kind in ("wilderness", "soil")
        ]
        return Part(np.hstack([numeric[:, 1:], *kinds]), cut(numeric[:, 0], 10))
    files = [f"mq2008_S{k}" for k in range(1, 6)]
    files = files if name.startswith("MQ2008") else ["mslr_sample_train"]
    n_features = 46 if name.startswith("MQ2008") else 136
    parts = [read_svmlight(data_path(f"ranking/{file}.svm.gz"), n_features) for file in files]
    X = np.concatenate([part.X.toarray() for part in parts])
    return Part(X, np.concatenate([np.asarray(part.y, np.int64) for part in parts]))


#: Examples for training, and splits.
SETS = {
    "diabetes, 5 grades": (300, 10),
    "diabetes, 10 grades": (300, 10),
    "MQ2008, 3 grades": (5000, 3),
    "MSLR, 5 grades": (3000, 2),
    "Covertype elevation, 10 grades": (20_000, 1),
}

Trainer = Callable[[float, Part], Callable[[Floats], Any]]  # C, training part -> prediction


def ordinal(loss: OrdinalLoss, C: float, train: Part) -> Callable[[Floats], Any]:
    """Ours."""
    share = C / len(train.y) if loss == "absolute" else C
    return mm.OrdinalSVM(loss=loss, C=share, random_state=0).fit(train.X, train.y).predict


def classes(C: float, train: Part) -> Callable[[Floats], Any]:
    """LinearSVC, one grade against the others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LinearSVC(C=C / len(train.y), random_state=0).fit(train.X, train.y).predict


def rounded(C: float, train: Part) -> Callable[[Floats], Any]:
    """Least squares with the numbers of the grades, rounded."""
    model = Ridge(alpha=len(train.y) / C).fit(train.X, train.y)
    return lambda X: np.clip(np.rint(model.predict(X)), 0, train.y.max())


def logistic(C: float, train: Part) -> Callable[[Floats], Any]:
    """The all-threshold loss with logistic losses, of the package mord."""
    from mord import LogisticAT

    return LogisticAT(alpha=len(train.y) / C).fit(train.X, train.y).predict


TRAINERS: dict[str, tuple[Trainer, str]] = {
    "OrdinalSVM, absolute": (partial(ordinal, "absolute"), "absolute"),
    "OrdinalSVM, pairs": (partial(ordinal, "pairs"), "pairs"),
}
PEERS: dict[str, tuple[Trainer, str]] = {
    "LinearSVC": (classes, "peers"),
    "Ridge, rounded": (rounded, "peers"),
    "mord LogisticAT": (logistic, "peers"),
}


def tested(label: str, trainer: Trainer, Cs: tuple[float, ...], data: str, n: int) -> Contestant:
    """Test scores with the C that is best on a third of the training examples."""
    n_train, n_splits = SETS[data]
    every = load(data)

    def split(seed: int) -> dict[str, float]:
        order = np.random.default_rng(seed).permutation(len(every.y))
        scaler = StandardScaler().fit(every.X[order[:n_train]])
        train, test = every.rows(order[:n_train]), every.rows(order[n_train:])
        train, test = (part._replace(X=scaler.transform(part.X)) for part in (train, test))
        third = n_train // 3
        held, kept = train.rows(np.arange(third)), train.rows(np.arange(third, n_train))
        errors = [np.abs(trainer(C, kept)(held.X) - held.y).mean() for C in Cs]
        found = trainer(Cs[int(np.argmin(errors))], train)(test.X)
        right = 100.0 * float(np.mean(found == test.y))
        return {"error": float(np.abs(found - test.y).mean()), "right": right}

    def run() -> Outcome:
        splits = [split(seed) for seed in range(min(n, n_splits))]
        means = {key: float(np.mean([one[key] for one in splits])) for key in MEASURES}
        return Outcome({**means, "spread": float(np.std([one["error"] for one in splits]))})

    return Contestant(label, run, once=True)


def cases(options: Options) -> Iterator[Case]:
    """Each data set, ours and peers."""
    trainers = TRAINERS | (PEERS if options.peers else {})
    for data in list(SETS)[:1] if options.quick else SETS:
        contestants = [
            tested(label, trainer, CS[kind], data, 2 if options.quick else 10)
            for label, (trainer, kind) in trainers.items()
        ]
        yield Case(
            f"{data}, {SETS[data][0]} examples for training",
            contestants,
            [
                Target(f"{what}: {one.label}", one.label, measure, unit=unit)
                for measure, what, unit in (
                    ("error", MEASURES["error"], ""),
                    ("spread", "its standard deviation over splits", ""),
                    ("right", MEASURES["right"], "%"),
                    ("cpu", "time", "s"),
                )
                for one in contestants
            ],
        )
