"""scikit-learn's LinearSVC with ``multi_class="crammer_singer"`` (LIBLINEAR's solver 4)."""

from __future__ import annotations

import logging
import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from ..case import Contestant, Floats, Outcome, Point, ProblemMaker
from ..objective import class_weights, primal, relative_gap
from ..solvers import optimum
from ..timing import timed

logger = logging.getLogger("benchmarks")
Labels = NDArray[np.int64]
LABEL, DEFAULT_LABEL = "LinearSVC", "LinearSVC, default tolerance"
DEFAULT_TOLERANCE = 1e-4
TOLERANCES = tuple(10.0 ** (-k / 4) for k in range(-2, 17))


def fit(X: Floats, y: Labels, C: float, tol: float) -> LinearSVC:
    """Train without an intercept of its own: a constant column of X is regularised like ours."""
    model = LinearSVC(
        multi_class="crammer_singer",
        fit_intercept=False,
        C=C,
        tol=tol,
        max_iter=100_000,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


class ToSameObjective:
    """LinearSVC to within a share of the optimum, by the loosest of its tolerances that does it.

    Its own criterion says little of the objective, so tighter and tighter tolerances are tried
    first, which is not counted; then it runs with the one that was found, which is.
    """

    def __init__(
        self, X: Floats, y: Labels, make_problem: ProblemMaker, C: float, within: float
    ) -> None:
        self.X, self.y, self.C, self.within = X, y, C, within
        self.make_problem = make_problem
        self.tol = TOLERANCES[-1]
        self.tried: list[Point] = []

    def search(self) -> None:
        """Find the tolerance; what was tried becomes the curve."""
        problem, best = self.make_problem(None), optimum(self.make_problem, self.C)
        for self.tol in TOLERANCES:
            model, timing = timed(lambda: fit(self.X, self.y, self.C, self.tol))
            reached = primal(problem, class_weights(model.coef_), self.C)
            gap = relative_gap(reached, best.dual)
            self.tried.append(Point(timing.cpu, float("nan"), gap, True))
            if reached <= (1.0 + self.within) * best.primal:
                return
        logger.warning("%s: no tolerance is tight enough for C = %g", LABEL, self.C)

    def run(self) -> Outcome:
        """Train once."""
        model = fit(self.X, self.y, self.C, self.tol)
        measures = {"tol": self.tol, "iterations": float(np.max(model.n_iter_))}
        return Outcome(measures, w=class_weights(model.coef_), curve=self.tried)


def linear_svc(
    X: Floats, y: Labels, make_problem: ProblemMaker, C: float, within: float = 1e-3
) -> Contestant:
    """LinearSVC as a contestant; give X with its constant column."""
    peer = ToSameObjective(X, y, make_problem, C, within)
    return Contestant(LABEL, peer.run, peer.search)


def default_linear_svc(X: Floats, y: Labels, C: float) -> Contestant:
    """LinearSVC as one gets it who knows nothing of the optimum; it goes beyond 0.1 %."""

    def run() -> Outcome:
        model = fit(X, y, C, DEFAULT_TOLERANCE)
        return Outcome({"tol": DEFAULT_TOLERANCE}, w=class_weights(model.coef_))

    return Contestant(DEFAULT_LABEL, run)
