"""How good a result is, whoever found it: the same primal value, gap and F1 for us and for peers.

The definitions are those of `maxmargin.core.objective` and `maxmargin.metrics`; nothing that a
solver says of itself enters, except a dual value, the lower bound that every gap is taken against.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.core.formulation import Formulation
from maxmargin.core.objective import Certificate, primal_value
from maxmargin.core.problem import Problem
from maxmargin.engine.training.verifying import hinge_values
from maxmargin.metrics import chunk_scores

from .case import FORMULATION, Case, Floats, Outcome, Tags
from .timing import Measures


def primal(problem: Problem, w: Floats, C: float, formulation: Formulation = FORMULATION) -> float:
    """Primal value of any weights in our layout, by a full pass of true oracle calls."""
    return primal_value(w, hinge_values(problem, formulation, w), formulation, C)


def relative_gap(primal: float, lower_bound: float) -> float:
    """Distance of a primal value from a lower bound, as a share of the primal value."""
    return Certificate(primal, lower_bound).relative_gap


def class_weights(coef: ArrayLike) -> Floats:
    """Bring a classifier's (classes, features) weights into our feature-major layout.

    Of two classes scikit-learn gives the difference, which is halved: no weights are shorter.
    """
    rows = np.asarray(coef, dtype=np.float64)
    if len(rows) == 1:
        rows = np.concatenate([-0.5 * rows, 0.5 * rows])
    return np.ascontiguousarray(rows.T).ravel()


def chunk_f1(truth: Tags, predicted: Tags) -> float:
    """F1 of chunks in percent, as conlleval counts."""
    return 100.0 * chunk_scores(truth, predicted).f1


def assess(case: Case, problem: Problem | None, outcome: Outcome) -> Measures:
    """Primal value and F1 of an outcome, where the case has what it takes to judge them."""
    found: Measures = {}
    if outcome.w is not None and problem is not None and case.C is not None:
        found["primal"] = primal(problem, outcome.w, case.C, case.formulation)
        claimed = outcome.measures.get("claimed_primal", found["primal"])
        if not np.isclose(claimed, found["primal"], rtol=1e-6):
            raise RuntimeError(f"{case.name}: P is {found['primal']}, the solver says {claimed}")
    tag = outcome.tag
    if tag is None and case.decode is not None and outcome.w is not None:
        decode, w = case.decode, outcome.w
        tag = lambda: decode(w)  # noqa: E731
    if tag is not None and case.truth is not None:
        found["f1"] = chunk_f1(case.truth, tag())
    return found


def add_gaps(runs: Iterable[Measures]) -> None:
    """Add to every run that has a primal value its gap to the best lower bound of all."""
    runs = list(runs)
    bounds = [run["dual"] for run in runs if "dual" in run]
    for run in runs:
        if bounds and "primal" in run:
            run["relative_gap"] = relative_gap(run["primal"], max(bounds))
