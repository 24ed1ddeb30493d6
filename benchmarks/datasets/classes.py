"""Plain classes of every kind beside LinearSVC: sparse and dense, two and many, C from .01 to 10.

Without an intercept, zero-one loss, to a certified 0.1 %. LinearSVC (LIBLINEAR's Crammer-Singer
solver) gets the loosest of its tolerances that brings its primal value within 0.1 % of the optimum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import minmax_scale

from maxmargin.formats import read_svmlight
from maxmargin.problems.classes.multiclass import MulticlassProblem

from ..case import Case, Options, Target
from ..data import data_path
from ..peers.linear_svc import LABEL, linear_svc
from ..solvers import ours

CS = (0.01, 0.1, 1.0, 10.0)
COVERTYPE_ROWS = 100_000

Data = tuple[Any, NDArray[np.int64]]


def _svmlight(name: str, n_features: int) -> Data:
    """A file of svmlight's form, with classes from 0 on."""
    data = read_svmlight(data_path(name), n_features)
    return data.X, np.unique(data.y, return_inverse=True)[1].astype(np.int64)


def newsgroups() -> Data:
    """20 newsgroups: logarithms of counts, weighted by idf, of unit length."""
    X, y = _svmlight("newsgroups20/train.svm.gz", 44884)
    return sp.csr_matrix(TfidfTransformer(sublinear_tf=True).fit_transform(X)), y


def newsgroups_parts() -> tuple[Any, NDArray[np.int64], Any, NDArray[np.int64]]:
    """The same in random order, with the test part."""
    X, y = _svmlight("newsgroups20/train.svm.gz", 44884)
    X_test, y_test = _svmlight("newsgroups20/test.svm.gz", 44884)
    weighting = TfidfTransformer(sublinear_tf=True).fit(X)
    order = np.random.default_rng(0).permutation(len(y))
    return (
        sp.csr_matrix(weighting.transform(X))[order],
        y[order],
        sp.csr_matrix(weighting.transform(X_test)),
        y_test,
    )


def reuters() -> Data:
    """Reuters acquisitions, two classes."""
    return _svmlight("binary/reuters_acq_train.svm.gz", 9947)


def adult() -> Data:
    """Adult in binary features, two classes."""
    return _svmlight("binary/a9a_train.svm.gz", 123)


def images() -> Data:
    """ImCLEF07A: 80 edge histograms between 0 and 1, dense, 63 classes."""
    X, y = _svmlight("taxonomy/imclef07a_train.svm.gz", 80)
    return minmax_scale(X.toarray()), y


def covertype() -> Data:
    """The first rows of Covertype, numeric columns between 0 and 1, as CSR, 7 classes."""
    arrays = np.load(data_path("covtype/covtype.npz"))
    numeric = minmax_scale(arrays["numeric"].astype(np.float64))[:COVERTYPE_ROWS]
    kinds = [
        np.eye(m)[arrays[name][:COVERTYPE_ROWS] - 1]
        for name, m in (("wilderness", 4), ("soil", 40))
    ]
    y = np.unique(arrays["label"][:COVERTYPE_ROWS], return_inverse=True)[1]
    return sp.csr_matrix(np.hstack([numeric, *kinds])), y.astype(np.int64)


DATA_SETS: dict[str, Callable[[], Data]] = {
    "20 newsgroups": newsgroups,
    "Reuters acquisitions": reuters,
    "a9a": adult,
    "ImCLEF07A": images,
    "Covertype, 100,000 rows": covertype,
}


def cases(options: Options) -> Iterator[Case]:
    """Each data set at each C."""
    for name, load in DATA_SETS.items():
        names = {f"{name} C = {C:g}, 0.1 % gap": C for C in CS}
        wanted = {title: C for title, C in names.items() if options.only in title}
        if wanted:
            X, y = load()
            if options.quick:  # rows may be sorted by class
                rows = np.linspace(0, X.shape[0] - 1, 300).astype(np.int64)
                X, y = X[rows], np.unique(y[rows], return_inverse=True)[1].astype(np.int64)
            yield from (_case(title, X, y, C, options) for title, C in wanted.items())


def _case(title: str, X: Any, y: NDArray[np.int64], C: float, options: Options) -> Case:
    """One data set and C."""
    n_classes = int(y.max()) + 1

    def problem(limit: int | None = None) -> MulticlassProblem:
        return MulticlassProblem(X[:limit], y[:limit], n_classes)

    contestants = [ours(solver, problem, C, tol=1e-3) for solver in options.of_ours(["auto"])]
    targets = [Target("time", "auto", "cpu", "", "s"), Target("passes", "auto", "passes")]
    if options.peers:
        contestants.append(linear_svc(X, y, problem, C))
        targets += [
            Target(
                "time / LinearSVC's to the same objective",
                "auto",
                "cpu",
                "LinearSVC, same run",
                at_most=1.0,
                relative_to=(LABEL, "cpu"),
            ),
            Target("time of LinearSVC", LABEL, "cpu", "", "s"),
            Target("its passes", LABEL, "iterations"),
        ]
    return Case(title, contestants, targets, problem, C)
