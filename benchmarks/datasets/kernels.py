"""Kernels: USPS and MNIST digits and OCR letters with radial basis functions, beside linear models.

Errors are those of the test parts, of one pass the means of some orders of the examples. gamma and
C are the same for all contestants of a case; those of smoothed and of upright USPS digits by
`benchmarks.kernel_choice` or of LaRank's paper (Bordes et al. 2007), of MNIST as it is by its last
10,000 training digits, others with a look at the test part.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

import maxmargin as mm
from maxmargin.solvers.ascent.fasole import FASOLE

from ..case import Case, Contestant, Options, Outcome, Target
from . import kernel_entities, mnist, ocr_letters, usps
from .digit_images import smoothed, upright

EXACT, ONE_PASS, PEER, LINEAR, CHAIN = "exact", "one pass", "SVC", "linear", "RBF"
TO_OPTIMUM: dict[str, Any] = {"tol": 1e-3}
ORDERS = 5  # of one pass
SLACKS = {"l1": (EXACT, ONE_PASS), "l2": (f"{EXACT}, l2", f"{ONE_PASS}, l2")}
LIKE_LARANK: dict[str, Any] = {"fit_intercept": False}  # a sum over support vectors, no more
MNIST: dict[str, Any] = {"C": 10.0, "gamma": 0.02, "basis": "random"}
OCR_C = 3.0
LINEAR_C = 0.1  # of letters
RANKS = (1000, 4000)
MOST_ERRORS = {
    "USPS, smoothed": 4.4,
    "USPS, upright": 4.4,
    "MNIST, basis of supports": 1.5,
    "MNIST, upright": 1.5,
}
WORSE_BY = 0.3  # points, of one pass
MANY = 9_000


class Data(NamedTuple):
    """A training part and a test part."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any


LazyData = Callable[[], Data]


def cases(options: Options) -> Iterator[Case]:
    """One case for each data set and form of it."""
    yield from _usps(options)
    yield from _mnist(options)
    yield _ocr(options)
    yield kernel_entities.case(options)


def _usps(options: Options) -> Iterator[Case]:
    """Exact, to be compared with the peer, and by one pass over the examples."""
    limit = options.size(quick=300)
    for name, change, settings, more in (
        ("USPS", None, {"C": 10.0, "gamma": 0.01}, {}),
        ("USPS, smoothed", smoothed, {"C": 3.0, "gamma": 0.01635}, LIKE_LARANK),
        ("USPS, smoothed, LaRank's", smoothed, {"C": 10.0, "gamma": 0.025}, LIKE_LARANK),
        ("USPS, upright", upright, {"C": 3.0, "gamma": 0.01196}, LIKE_LARANK),
    ):
        data = _digits(usps.load, limit, change, usps.WHITE)
        contestants = []
        for slack, (exact, one_pass) in SLACKS.items():
            make = partial(_on_usps, **settings, **more, slack=slack)
            contestants += [
                _contestant(exact, [partial(make, **TO_OPTIMUM)], data),
                _contestant(one_pass, [partial(make, solver=s) for s in _one_pass(options)], data),
            ]
        if options.peers:
            contestants.append(_contestant(PEER, [partial(SVC, **settings)], data))
        numbers = f"C = {settings['C']:g}, gamma = {settings['gamma']:g}"
        yield Case(f"{name}, RBF, {numbers}", contestants, list(_usps_targets(name)))


def _usps_targets(name: str) -> Iterator[Target]:
    """Errors and times; limits are for smoothed images, of which there are several versions."""
    most = MOST_ERRORS.get(name)
    for labels in SLACKS.values():
        for label, more in zip(labels, (0.0, WORSE_BY), strict=True):
            limit = None if most is None else most + more
            reference = "LaRank's paper: 4.25-4.4"
            yield Target(f"error, {label}", label, "error", reference, "%", at_most=limit)
    yield Target("error of SVC (one against one)", PEER, "error", "", "%")
    yield Target("time, exact", EXACT, "fit", "", "s")
    yield Target("of it the solver", EXACT, "solver", "", "s")
    yield Target("time, one pass", ONE_PASS, "fit", "", "s")
    yield Target("time of SVC", PEER, "fit", "", "s")
    yield Target("passes", EXACT, "passes")
    yield Target("support vectors", EXACT, "support")
    yield Target("support vectors of SVC", PEER, "support")


def _on_usps(**parameters: Any) -> Any:
    """A classifier."""
    return mm.MulticlassSVM(kernel="rbf", random_state=0, **parameters)


def _one_pass(options: Options) -> list[FASOLE]:
    """Solvers that take one pass, and use well what it has seen; each in an order of its own."""
    return [
        FASOLE(max_passes=1, reduced_precision=0.01, random_state=k)
        for k in range(2 if options.quick else ORDERS)
    ]


def _mnist(options: Options) -> Iterator[Case]:
    """Low ranks, of pixels as they are and of upright digits."""
    limit = options.size(quick=300)
    ranks = [50] if options.quick else RANKS
    for name, change, settings in (
        ("MNIST", None, MNIST),
        ("MNIST, basis of supports", None, MNIST | {"C": 3.0, "basis": "supports"}),
        ("MNIST, upright", upright, MNIST),
    ):
        data = _digits(mnist.load, limit, change, mnist.WHITE)
        targets = []
        for rank in ranks:
            label = f"rank {rank}"
            most = MOST_ERRORS.get(name) if rank == ranks[-1] else None
            targets += [
                Target(f"error, {label}", label, "error", "", "%", at_most=most),
                Target(f"time, {label}", label, "fit", "", "s"),
                Target(f"of it the solver, {label}", label, "solver", "", "s"),
                Target(f"missing share of the trace, {label}", label, "missing"),
                Target(f"memory in training, {label}", label, "megabytes", "", "MB"),
            ]
        contestants = [
            _contestant(f"rank {rank}", [_of_rank(rank, settings)], data) for rank in ranks
        ]
        numbers = f"C = {settings['C']:g}, gamma = {settings['gamma']:g}"
        yield Case(f"{name}, RBF, {numbers}", contestants, targets)


def _digits(load: Any, limit: int | None, change: Any, white: float) -> LazyData:
    """Images and digits, once they are asked for; in single precision where there are many."""

    @cache
    def data() -> Data:
        found: list[Any] = []
        for X, y in (load(limit, "train"), load(limit, "test")):
            X = X.astype(np.float32) if len(X) > MANY else X
            found += [X if change is None else change(X, white), y]
        return Data(*found)

    return data


def _of_rank(rank: int, settings: dict[str, Any]) -> Callable[[], Any]:
    """Makes a classifier with so many basis vectors."""
    return lambda: mm.MulticlassSVM(
        kernel="rbf", n_components=rank, tol=0.05, random_state=0, **settings
    )


def _ocr(options: Options) -> Case:
    """Chains, trained on the first fold."""
    words = ocr_letters.load()
    tokens = [slice(*ends) for ends in zip(words.offsets[:-1], words.offsets[1:], strict=True)]
    parts: list[Any] = []
    for chosen in (words.folds == 0, words.folds != 0):
        kept = np.flatnonzero(chosen)[: options.size(quick=30)].tolist()
        parts += [[array[tokens[i]] for i in kept] for array in (words.pixels, words.letters)]

    def data() -> Data:
        return Data(*parts)

    contestants = [
        _contestant(LINEAR, [lambda: mm.SequenceTagger(LINEAR_C, random_state=0)], data),
        _contestant(CHAIN, [lambda: mm.SequenceTagger(OCR_C, kernel="rbf", random_state=0)], data),
    ]
    targets = [
        Target(f"{what}, {label}", label, measure, "", unit)
        for label in (LINEAR, CHAIN)
        for what, measure, unit in (("error", "error", "%"), ("time", "fit", "s"))
    ]
    return Case("OCR letters, chains, trained on fold 0", contestants, targets)


def _contestant(label: str, makers: list[Callable[[], Any]], load: LazyData) -> Contestant:
    """An estimator, or some: the mean CPU time of a fit, and the mean error on the test part."""

    def run() -> Outcome:
        measured = [_measures(make(), load()) for make in makers]
        return Outcome({name: float(np.mean([m[name] for m in measured])) for name in measured[0]})

    return Contestant(label, run, lambda: _compile(makers[0], load()), once=True)


def _measures(model: Any, data: Data) -> dict[str, float]:
    """Train and judge a model."""
    started = time.process_time()
    _fitted(model, data.X, data.y)
    measures = {"fit": time.process_time() - started}
    measures |= {"error": 100.0 * (1.0 - model.score(data.X_test, data.y_test))}
    if hasattr(model, "support_"):
        measures["support"] = float(len(model.support_))
    if hasattr(model, "result_"):
        measures |= {"passes": model.result_.n_passes, "solver": model.result_.seconds}
    if hasattr(model, "kernel_report_"):
        report = model.kernel_report_
        measures["missing"] = report.trace_residual_share
        measures["megabytes"] = report.n_bytes_training / 1e6
    return measures


def _compile(make: Callable[[], Any], data: Data) -> None:
    """Train on a few examples, so that kernels are compiled."""
    _fitted(make(), data.X[:200], data.y[:200])


def _fitted(model: Any, X: Any, y: Any) -> Any:
    """One pass is meant to end before the optimum."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)
