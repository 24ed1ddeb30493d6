"""The pool of a sample: of its one example it can find the best candidate anywhere on a line.

A sample is a problem of one example that has rows, whose scores are linear in w, and all that a
search needs. So between two points whose scores are known the true objective is known too, at the
price of a search and without a pass over the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from ...core.formulation import Formulation
from ...utils.schema import checked_arrays, numbers
from ...utils.types import Floats, Ints
from ..oracle import Oracle
from ..training.state import Arrays, StoredPlanes

__all__ = ["Candidate", "Sample", "SamplePool", "minimum_on_line"]


class Candidate(NamedTuple):
    """An output: its loss, and what rows count in the difference of its features to the truth's."""

    loss: float
    coefficients: Floats


class Sample(Protocol):
    """What the pool asks of a problem."""

    n_features: int

    def scores(self, w: Floats) -> Floats:
        """Scores of all rows."""

    def best(self, scores: Floats, formulation: Formulation) -> Candidate:
        """The most violated output where the rows have these scores; the truth if none is."""

    def add_difference(self, candidate: Candidate, factor: float, total: Floats) -> None:
        """Add ``factor * dpsi`` of a candidate to ``total``."""


class Chosen(NamedTuple):
    """A candidate, with the terms of its plane."""

    candidate: Candidate
    offset: float
    scale: float

    def value(self, scores: Floats) -> float:
        """Its hinge value where the rows have these scores."""
        return self.offset - self.scale * float(self.candidate.coefficients @ scores)


class SamplePool:
    """All outputs of a sample; see `engine.cuts.pool.Pool` for the methods.

    The table of values is the vector of the rows' scores. Slot 0 is the candidate found last.
    """

    complete = True
    grows = False

    def __init__(self, oracle: Oracle, problem: Sample) -> None:
        self.oracle = oracle
        self.problem = problem
        self._chosen: Chosen | None = None
        self._last_step = 1.0  # how far the last line search went
        # Where it ended, and the candidate there: the next one starts from it.
        self._end: tuple[Floats, Chosen | None] | None = None

    @property
    def n_weights(self) -> int:
        """Length of the weights."""
        return self.problem.n_features

    def expand(self, w: Floats) -> Floats:
        """The problem's weights: the pool has no others."""
        return w

    def values(self, w: Floats) -> Floats:
        """Scores of the rows at ``w``."""
        return self.problem.scores(w)

    def call(self, w: Floats, check: Callable[[], None]) -> tuple[Floats, Ints]:
        """The hinge value at ``w``, by a pass over the rows."""
        scores = self.values(w)
        self.oracle.count(1)
        check()
        chosen = self.choose(scores, scores, 0.0)
        return np.array([self._value(scores)]), chosen

    def choose(self, start: Floats, end: Floats, t: float) -> Ints:
        """The best candidate at t of the way between two points."""
        self._chosen = self._best(start + t * (end - start) if t else start)
        return np.array([-1 if self._chosen is None else 0])

    def chosen_total(self, table: Floats, chosen: Ints, weights: Floats) -> float:
        """Weighted value of the chosen candidate."""
        return float(weights[0]) * self._value(table)

    def best_total(self, table: Floats, weights: Floats) -> float:
        """See `Pool`."""
        found = self._best(table)
        return 0.0 if found is None else float(weights[0]) * found.value(table)

    def descend(
        self, start: Floats, end: Floats, weights: Floats, slope: float, curvature: float
    ) -> tuple[float, float]:
        """See `Pool`."""
        change = end - start
        known = {0.0: self._end[1]} if self._end is not None and self._end[0] is start else {}

        def hinge(t: float) -> tuple[float, float]:
            if t not in known:
                known[t] = self._best(start + t * change)
            found = known[t]
            if found is None:
                return 0.0, 0.0
            steepness = -found.scale * float(found.candidate.coefficients @ change)
            return found.value(start) + t * steepness, steepness

        weight = float(weights[0])
        t, value = minimum_on_line(hinge, weight, slope, curvature, self._last_step)
        if t > 0.0:
            start += t * change
            self._last_step = t
        self._end = start, known[t]
        return t, weight * value

    def add_up(self, chosen: Ints, weights: Floats, plane: Floats) -> float:
        """Add the chosen candidate, weighted, to ``plane``; returns its weighted offset."""
        found, weight = self._chosen, float(weights[0])
        if found is None:
            return 0.0
        self.problem.add_difference(found.candidate, weight * found.scale, plane)
        return weight * found.offset

    def arrays(self) -> Arrays:
        """How far to look; candidates can be found at any time."""
        return {"last_step": np.array(self._last_step)}

    def restore(self, arrays: Arrays) -> None:
        """See `Pool`."""
        own = checked_arrays(arrays, {"last_step": numbers(low=0.0)})
        self._last_step, self._end = float(own["last_step"]), None

    def planes_at(self, w: Floats) -> list[StoredPlanes]:
        """See `Pool`."""
        return []

    def _best(self, scores: Floats) -> Chosen | None:
        """The most violated candidate, None if that is the truth."""
        formulation = self.oracle.formulation
        candidate = self.problem.best(scores, formulation)
        offsets, scales = formulation.plane_terms(np.array([candidate.loss]))
        found = Chosen(candidate, float(offsets[0]), float(scales[0]))
        return found if found.value(scores) > 0.0 else None

    def _value(self, scores: Floats) -> float:
        """Hinge value of the candidate found last."""
        return 0.0 if self._chosen is None else self._chosen.value(scores)


PRECISION = 0.2  # of the decrease that there is at most, what may be missed
MOST_POINTS = 20
FURTHER = 4.0  # how much further to go while all is downhill


def minimum_on_line(
    hinge: Callable[[float], tuple[float, float]],
    weight: float,
    slope: float,
    curvature: float,
    guess: float = 1.0,
) -> tuple[float, float]:
    """Minimise ``slope t + 1/2 curvature t^2 + weight h(t)`` for t in [0, 1], h convex.

    ``hinge(t)`` gives h and its slope. Two tangents, one on each side of the minimum, bound h from
    below: the next point is where the objective with these in its place is the smallest, and this
    ends where there is little to gain beyond the best point seen. The first point is ``guess``.
    Returns the best point, and h there.
    """

    def smooth(t: float) -> float:
        return t * (slope + 0.5 * curvature * t)

    value, rise = hinge(0.0)
    best, lowest, at_best = 0.0, weight * value, value
    if slope + weight * rise >= 0.0:
        return best, at_best
    start = lowest
    left = (value, rise)  # tangents as (h at t = 0, slope)
    right: tuple[float, float] | None = None
    t = min(guess, _lowest_of_bound(left, right, weight, slope, curvature))
    for _ in range(MOST_POINTS):
        value, rise = hinge(t)
        here = smooth(t) + weight * value
        if here < lowest:
            best, lowest, at_best = t, here, value
        steepness = slope + curvature * t + weight * rise
        tangent = (value - t * rise, rise)
        if steepness < 0.0:
            left = tangent
        else:
            right = tangent
        if steepness == 0.0 or (steepness < 0.0 and t == 1.0):
            break
        before, t = t, _lowest_of_bound(left, right, weight, slope, curvature)
        bound = smooth(t) + weight * max(line[0] + t * line[1] for line in (left, right or left))
        if lowest - bound <= PRECISION * (start - bound):
            break
        if right is None:
            t = min(t, FURTHER * before)
    return best, at_best


def _lowest_of_bound(
    left: tuple[float, float],
    right: tuple[float, float] | None,
    weight: float,
    slope: float,
    curvature: float,
) -> float:
    """Where the objective with the larger of two tangents in place of h is the smallest."""

    def lowest(rise: float) -> float:
        steepness = slope + weight * rise
        if curvature > 0.0:
            return min(1.0, max(0.0, -steepness / curvature))
        return 1.0 if steepness < 0.0 else 0.0

    if right is None or right[1] <= left[1]:
        return lowest(left[1])
    crossing = (left[0] - right[0]) / (right[1] - left[1])
    return min(max(crossing, lowest(right[1])), lowest(left[1]))
