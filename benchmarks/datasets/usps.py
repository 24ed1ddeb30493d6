"""USPS digits: 7,291 images of 16 x 16 pixels, 10 classes, a constant feature, zero-one loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from maxmargin.core.formulation import C_from_paper
from maxmargin.problems.classes.multiclass import MulticlassProblem

from ..case import Case, Floats, Options, Target
from ..data import data_path
from ..peers.linear_svc import DEFAULT_LABEL, LABEL, default_linear_svc, linear_svc
from ..solvers import ours

WHITE = -1.0  # the value of a pixel without ink
FASOLE_PASSES = {1.0: 5, 0.1: 5, 0.01: 5, 0.001: 7}  # Franc 2014, Table 2
SDM_PASSES = {1.0: 5, 0.1: 6, 0.01: 13, 0.001: 24}
LIBLINEAR_SECONDS = {0.01: 1.8, 0.1: 7.2}
LINEAR_SVC_SECONDS = {0.01: 2.4, 0.1: 13.0}
SVM_MULTICLASS_SECONDS = {0.01: 5.0, 0.1: 8.3}
OPTIMUM = {0.01: 9.7635, 0.1: 44.365}


def load(limit: int | None, part: str = "train") -> tuple[Floats, NDArray[np.int64]]:
    """Images and digits of "train" or "test"."""
    arrays = np.load(data_path("usps/usps.npz"))
    return arrays[f"X_{part}"][:limit] / 1000.0, arrays[f"y_{part}"][:limit].astype(np.int64)


def make_problem(X: Floats, y: NDArray[np.int64]) -> Callable[[int | None], MulticlassProblem]:
    """Makes the problem of the first so many images, or of all."""

    def problem(limit: int | None = None) -> MulticlassProblem:
        return MulticlassProblem(X[:limit], y[:limit], 10, fit_intercept=True)

    return problem


def cases(options: Options) -> Iterator[Case]:
    """The paper's grid of lambda, then Crammer-Singer next to LinearSVC."""
    X, y = load(options.size(quick=300))
    problem = make_problem(X, y)
    for penalty, paper in FASOLE_PASSES.items():
        C = C_from_paper(penalty, len(y), "franc")
        names = options.of_ours(["auto", "fasole", "sdm"])
        targets = [
            Target("passes of fasole", "fasole", "passes", f"paper: {paper}", at_most=1.5 * paper),
            Target("passes of sdm", "sdm", "passes", f"paper: {SDM_PASSES[penalty]}"),
            Target("passes of auto", "auto", "passes", f"paper's fasole: {paper}"),
        ]
        yield Case(
            f"USPS lambda = {penalty:g}, epsilon = 0.001",
            [ours(name, problem, C, epsilon=0.001) for name in names],
            targets,
            problem,
            C,
        )
    for C in (0.01, 0.1):
        contestants = [ours(name, problem, C, tol=1e-3) for name in options.of_ours(["auto"])]
        if options.peers:
            with_constant = np.hstack([X, np.ones((len(X), 1))])
            contestants.append(linear_svc(with_constant, y, problem, C))
            contestants.append(default_linear_svc(with_constant, y, C))
        yield Case(
            f"USPS Crammer-Singer C = {C:g}, 0.1 % gap",
            contestants,
            [
                Target("time", "auto", "cpu", _references(C), "s"),
                Target(
                    "time / LinearSVC's to the same objective",
                    "auto",
                    "cpu",
                    "LinearSVC, same run",
                    at_most=1 / 3,
                    relative_to=(LABEL, "cpu"),
                ),
                Target("primal value", "auto", "primal", f"optimum {OPTIMUM[C]}"),
                Target("primal value of LinearSVC", LABEL, "primal", f"optimum {OPTIMUM[C]}"),
                Target("time of LinearSVC to it", LABEL, "cpu", "", "s"),
                Target(
                    "time of LinearSVC, default tolerance",
                    DEFAULT_LABEL,
                    "cpu",
                    f"{LINEAR_SVC_SECONDS[C]} s",
                    "s",
                ),
                Target("its primal value", DEFAULT_LABEL, "primal", f"optimum {OPTIMUM[C]}"),
            ],
            problem,
            C,
        )


def _references(C: float) -> str:
    """Times of two programs in C, measured on the same kind of machine."""
    return (
        f"LIBLINEAR -s 4: {LIBLINEAR_SECONDS[C]} s; SVM-multiclass: {SVM_MULTICLASS_SECONDS[C]} s"
    )
