"""A certificate for weights that come without one.

The primal value is that of one full pass of true oracle calls at the weights. The dual value is
that of two feasible points and the segment between them:

* multipliers that the training has left, scaled to where every example keeps its cap and the dual
  is largest;
* the most violated planes at the weights, each with all of its cap - at an optimum without ties
  these are the multipliers of the optimum.

Any feasible point gives a true bound, so the gap is a certificate, if not always a tight one.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ..core.formulation import Formulation
from ..core.objective import Certificate, line_step, primal_value
from ..core.problem import Problem
from ..core.result import Result
from ..engine.oracle import Oracle
from ..engine.parallel.threads import count_threads
from ..engine.steps.bound_multipliers import BoundMultipliers
from ..engine.violations import violations
from ..utils.types import Floats
from .base import checked_weights

__all__ = ["DualPoint", "certificate_of", "certify"]


class DualPoint(NamedTuple):
    """Feasible multipliers, by what the dual needs of them: ``sum alpha a`` and ``sum alpha b``."""

    w: Floats
    linear: float

    @property
    def value(self) -> float:
        """The dual value (of l1 slack)."""
        return self.linear - 0.5 * float(self.w @ self.w)

    @classmethod
    def strip_prefix(
        cls, w: Floats, linear: float, sums: Floats, upper_bounds: Floats
    ) -> DualPoint:
        """Scale multipliers, whose sums for each example are given, to the best feasible ones."""
        held = sums > 0
        if not held.any() or (upper_bounds[held] <= 0).any():
            return cls(np.zeros(len(w)), 0.0)
        most = float(np.min(upper_bounds[held] / sums[held]))
        square = float(w @ w)
        factor = min(most, linear / square) if square > 0 else most
        return cls(factor * w, factor * linear)


@runtime_checkable
class HasDualPoint(Protocol):
    """A state that knows the multipliers behind its weights."""

    @property
    def trained_on(self) -> Problem | None:
        """The problem that the multipliers belong to."""

    def dual_point(self, upper_bounds: Floats) -> DualPoint:
        """Feasible multipliers, by what the dual needs of them."""


def certificate_of(
    oracle: Oracle, C: float, w: Floats, weights: Floats, start: DualPoint | None = None
) -> Certificate:
    """Primal value at ``w`` and the best dual value that can be told."""
    formulation = oracle.formulation
    if formulation.slack != "l1":
        raise ValueError(f"certificates are made for slack='l1', got {formulation}")
    slacks = np.empty(oracle.n_examples)
    total, linear = np.zeros(len(w)), 0.0
    for indices, oracle_result in oracle.call_all(np.arange(oracle.n_examples), w):
        planes, offsets, scales = oracle_result
        values = violations(oracle_result, w)
        oracle.compare(indices, values)
        slacks[indices] = np.maximum(values, 0.0)
        alpha = np.where(values > 0, C * weights[indices], 0.0)
        linear += float(alpha @ offsets)
        factors = np.repeat(alpha * scales, np.diff(planes.indptr))
        np.add.at(total, planes.indices, factors * planes.values)
    primal = primal_value(w, oracle.bounded(slacks), formulation, C, weights)
    if oracle.feasible_set is not None:
        multipliers = BoundMultipliers(oracle.feasible_set)
        multipliers.project(total)
        linear += multipliers.value
    point = start if start is not None else DualPoint(np.zeros(len(w)), 0.0)
    change = total - point.w
    slope = linear - point.linear - float(change @ point.w)
    _, gain = line_step(slope, float(change @ change))
    return Certificate(primal, point.value + gain)


def certify(
    problem: Problem,
    formulation: Formulation,
    C: float,
    result: Result,
    *,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Result:
    """Return the result of an online solver with its primal value and a dual bound.

    Parameters
    ----------
    problem : Problem
        What the result was trained on; it costs one oracle call for each example.
    formulation : Formulation
        The kind of structural SVM.
    C : float
        Multiplies the sum of the slacks.
    result : Result
        Weights, with or without the state of their training, which makes the bound tighter.
    sample_weight : array of shape (n_examples,), optional
        Multiplies each example's slack.
    n_jobs : int, optional
        Threads for the oracle calls, as solvers have it; the bits do not depend on it.

    Returns
    -------
    Result
        The same with ``primal`` and ``dual`` set; ``gap`` follows from them, where the problem's
        search is exact or gives bounds.
    """
    weights = checked_weights(sample_weight, problem.n_examples)
    start = None
    if isinstance(result.state, HasDualPoint) and result.state.trained_on is problem:
        start = result.state.dual_point(C * weights)
    oracle = Oracle(problem, formulation)
    with oracle.in_threads(count_threads(n_jobs)):
        certificate = certificate_of(oracle, C, oracle.change(result.w), weights, start)
    return dataclasses.replace(
        result,
        primal=certificate.primal,
        dual=certificate.dual,
        relative_to_oracle=not oracle.certifies or oracle.missed,
        bound_gap=None,
    )
