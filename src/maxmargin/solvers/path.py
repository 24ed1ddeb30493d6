"""One problem for many C, each solved from the last, and what is certified for all C in between.

Weights w with slacks xi, and multipliers alpha, that were found for C say something of every other
C' = r C as well: the primal value is ``1/2 |w|^2 + r C sum_i s_i xi_i``, and the multipliers,
scaled to what C' allows, have a dual value (`objective.DualTerms.at`). Their gap, less what is
allowed, is a convex function of r that is not positive at 1, so that the C' for which w is good
enough are an interval. Steps from one interval to the next cover a whole range of C (the eps-path
of Osokin et al. 2016). To scale the multipliers makes the gap grow with the square of r - 1 only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..core.formulation import Formulation
from ..core.objective import DualTerms
from ..core.result import Result
from ..engine.training.state import SolverState
from .base import Solver

__all__ = ["PathPoint", "Solve", "solve_path", "tolerated"]

#: Of the gap that is allowed, what a solution may have whose interval is to be wide.
SHARE = 0.5
#: How far beyond an interval the next solution is taken, in steps of its upper half.
AHEAD = 0.85
#: Factor of C at which the search for an interval's end gives up: as good as for ever.
FAR = 1e9
#: How solutions end after which there are no others.
ENDED = ("interrupted", "cluster lost")
#: Solves the problem for a C, from an earlier result.
Solve = Callable[[Solver, float, Result | None], Result]


class PathPoint(NamedTuple):
    """A solution, and the C between ``low`` and ``high`` for which it is good enough."""

    C: float
    result: Result
    low: float
    high: float

    def covers(self, C: float) -> bool:
        """Whether the weights are good enough for this C."""
        return self.low <= C <= self.high


def solve_path(
    solve: Solve,
    solver: Solver,
    Cs: Sequence[float],
    total_weight: float,
    *,
    cover: bool,
    formulation: Formulation | None = None,
) -> list[PathPoint]:
    """Solutions for increasing C, each from the one before.

    Parameters
    ----------
    solve : callable
        ``solve(solver, C, earlier)`` trains from an earlier result, or from nothing.
    solver : Solver
        Its precision, ``tol`` and ``epsilon``, is what every solution has.
    Cs : sequence of float
        Values of C.
    total_weight : float
        Sum of the examples' weights.
    cover : bool
        Take solutions wherever they are needed so that every C from the least of ``Cs`` to the
        largest is within the precision for some of them; they are then solved more precisely.
    formulation : Formulation, optional
        Has constraints on weights, if there are any.

    Returns
    -------
    list of PathPoint
        By increasing C. An interrupted solution, or in a cover one that was ended by a limit or
        whose interval is a single C, is the last that was found.
    """
    last: Result | None = None
    points: list[PathPoint] = []

    def point_at(C: float, precision: Solver) -> PathPoint:
        nonlocal last
        last = solve(precision, C, last)
        low, high = tolerated(last, C, solver.tol, solver.epsilon, total_weight, formulation)
        points.append(PathPoint(C, last, low, high))
        return points[-1]

    if cover:
        _cover(point_at, _sharper(solver), min(Cs), max(Cs))
    else:
        for C in sorted(set(Cs)):
            if point_at(C, solver).result.status in ENDED:
                break
    # A state serves the last solution alone: it was changed to find the next.
    kept = [p if p.result is last else p._replace(result=_stateless(p.result)) for p in points]
    return sorted(kept, key=lambda point: point.C)


def _cover(
    point_at: Callable[[float, Solver], PathPoint], solver: Solver, least: float, largest: float
) -> None:
    """Take points until their intervals cover all C from ``least`` to ``largest``."""
    reached = least  # all below is covered
    ahead: list[PathPoint] = []  # points beyond a hole
    C = least
    while True:
        point = point_at(C, solver)
        if point.result.status in ENDED or not point.covers(C):
            return
        ahead.append(point)
        before = reached
        for other in sorted(ahead, key=lambda point: point.low):
            if other.low <= reached:
                reached = max(reached, other.high)
        ahead = [other for other in ahead if other.high > reached]
        if reached >= largest or (reached <= before and not ahead):
            return  # or an interval is no more than its C
        # As far ahead as the interval reaches back, one should think; where that leaves a hole,
        # a point at its lower end covers that end for certain.
        C = reached if ahead else min(largest, reached * (point.high / point.C) ** AHEAD)


def tolerated(
    result: Result,
    C: float,
    tol: float | None,
    epsilon: float | None,
    total_weight: float,
    formulation: Formulation | None = None,
) -> tuple[float, float]:
    """The interval of C for which a result for ``C`` has a gap of at most ``tol`` or ``epsilon``.

    Empty, ``(inf, -inf)``, where the result itself is not within the precision.
    """
    if result.primal is None or result.dual is None or result.gap is None:
        return np.inf, -np.inf
    w = result.w if formulation is None else formulation.change(result.w)
    half = 0.5 * float(w @ w)
    slacks = result.primal - half
    terms = result.state.dual_terms() if isinstance(result.state, SolverState) else None
    dual = result.dual

    def excess(log_ratio: float, share: float, absolute: float) -> float:
        ratio = float(np.exp(log_ratio))
        primal = half + ratio * slacks
        return (1.0 - share) * primal - absolute * ratio - _dual_at(terms, dual, ratio)

    low, high = np.inf, -np.inf
    for arguments in ((tol or 0.0, 0.0), (0.0, (epsilon or 0.0) * C * total_weight)):
        if excess(0.0, *arguments) <= 0.0:
            low = min(low, C * float(np.exp(_end(excess, arguments, -1.0))))
            high = max(high, C * float(np.exp(_end(excess, arguments, 1.0))))
    return low, high


def _dual_at(terms: DualTerms | None, dual: float, ratio: float) -> float:
    """A lower bound on the optimum for ``ratio`` times the C, whose dual value is ``dual``.

    Multipliers that are scaled down keep their share of it at least; and they may stay as they are
    where C grows.
    """
    known = min(ratio, 1.0) * dual
    return known if terms is None else max(known, terms.at(ratio))


def _end(excess: Callable[..., float], arguments: tuple[float, float], sign: float) -> float:
    """Where the excess, which is not positive at 0, becomes positive in one direction."""
    inner, outer = 0.0, 1e-6
    while excess(sign * outer, *arguments) <= 0.0:
        inner, outer = outer, 4.0 * outer
        if outer > np.log(FAR):
            return sign * np.inf
    from scipy.optimize import brentq

    root: float = brentq(lambda x: excess(sign * x, *arguments), inner, outer, xtol=1e-12)
    return sign * max(inner, root - 1e-9)  # on the side that is certified


def _sharper(solver: Solver) -> Solver:
    """The same solver for a part of the gap."""
    changed: dict[str, Any] = {
        name: SHARE * value
        for name in ("tol", "epsilon")
        if (value := getattr(solver, name)) is not None
    }
    return replace(solver, **changed)


def _stateless(result: Result) -> Result:
    """A result that nothing can go on from."""
    return replace(result, state=None)
