"""Bounds on single weights, by multipliers of their own, of which the best are known at any time.

Problem solved. With bounds ``l <= w <= h`` on some weights, ``w = v + beta`` where
``v = sum alpha a`` is what planes give, and the dual

    D(alpha, beta) = sum alpha b - 1/2 |w|^2 + sum_j (l_j max(beta_j, 0) + h_j min(beta_j, 0))

is largest, for given alpha, at the w that is v moved into the bounds. With beta as it is, the dual
is that of a problem without bounds whose weights begin at beta in place of zero. So every step that
raises that one raises D too, and after some steps the multipliers of the bounds are set to their
best (`BoundMultipliers.project`). Such steps are short where most of a plane is at bounds: they
reckon with a curvature of features that will not move. Where planes are few, Newton steps with the
products of the other features, cut by a line search in which the weights at bounds follow, are not
(`solve_within_bounds`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.objective import NEGLIGIBLE
from ...core.weight_constraints import FeasibleSet
from ...utils.schema import checked_arrays, numbers
from ...utils.types import Bools, Floats, Ints
from ..feature_blocks import FeatureBlocks
from ..store.joint_planes import PlaneRows, add_rows
from ..training.state import Arrays
from .joint_qp import JointPlanes, JointSolution, solve_jointly

__all__ = ["BoundMultipliers", "columns_of", "joint_gap", "solve_within_bounds"]

HALVINGS = 60  # of the interval in which a line search has its end
MOST_ROUNDS = 50  # of Newton steps, each with other weights at their bounds


class BoundMultipliers:
    """The multipliers beta of the bounds.

    Parameters
    ----------
    region : FeasibleSet
        Has the bounds.

    Attributes
    ----------
    which : array of int
        The weights that have bounds.
    beta : array of shape (n_bounded,)
        Their multipliers: positive at a lower bound, negative at an upper one, or 0.
    """

    def __init__(self, feasible_set: FeasibleSet) -> None:
        self.which: Ints = feasible_set.bounded
        self.low, self.high = feasible_set.low, feasible_set.high
        self.beta: Floats = np.zeros(len(self.which))

    def __len__(self) -> int:
        return len(self.which)

    @property
    def value(self) -> float:
        """What the multipliers add to the linear part of the dual."""
        return self._value(self.beta)

    def _value(self, beta: Floats) -> float:
        """The same for any multipliers."""
        at_low, at_high = beta > 0.0, beta < 0.0
        return float(beta[at_low] @ self.low[at_low] + beta[at_high] @ self.high[at_high])

    @property
    def held(self) -> Bools:
        """Which of the weights are held at a bound."""
        return self.beta != 0.0

    def moved(self, free: Floats) -> Floats:
        """What planes give these weights, moved into the bounds."""
        return np.minimum(np.maximum(free, self.low), self.high)

    def project(self, w: Floats) -> float:
        """Set the multipliers to their best, and w with them; returns the dual's increase."""
        before = w[self.which]
        free = before - self.beta
        now = self.moved(free)
        beta = now - free
        if np.array_equal(beta, self.beta):
            w[self.which] = now  # where rounding has moved it
            return 0.0
        gain = self._value(beta) - self.value + 0.5 * float((before - now) @ (before + now))
        self.beta = beta
        w[self.which] = now
        return max(gain, 0.0)

    def renew(self, w: Floats) -> None:
        """Settle afresh, where w is no more than what planes give."""
        self.beta = np.zeros(len(self.which))
        self.project(w)

    def step(self, w: Floats, direction: Floats, slope: float, curvature: float) -> float:
        """Best step in [0, 1] along a direction of v, where the bounds' multipliers follow.

        ``slope`` and ``curvature`` are those of the dual as long as they do not.
        """
        here, along = w[self.which], direction[self.which]
        return self._step(here - self.beta, here, along, slope, curvature)

    def _step(
        self, free: Floats, here: Floats, along: Floats, slope: float, curvature: float
    ) -> float:
        """The same, of the weights with bounds alone."""
        others = max(curvature - float(along @ along), 0.0)

        def rises(t: float) -> bool:
            change = self.moved(free + t * along) - here
            return slope - float(change @ along) - t * others >= 0.0

        if slope <= 0.0:
            return 0.0
        if rises(1.0):
            return 1.0
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if rises(middle) else (low, middle)
        return low

    def arrays(self) -> Arrays:
        """The multipliers, as arrays by name."""
        return {"beta": self.beta}

    def restore(self, arrays: Arrays) -> None:
        """Take over what `arrays` has given."""
        beta = checked_arrays(arrays, {"beta": numbers(len(self.which))})["beta"]
        if not np.isfinite(self._value(beta)):
            raise ValueError("beta: a weight without this bound has a multiplier of it")
        self.beta = beta


def columns_of(
    rows: PlaneRows, feature_blocks: FeatureBlocks, which: Ints, n_weights: int
) -> Floats:
    """The features that rows have of some weights, as a dense matrix."""
    columns, row = np.empty((len(rows.first), len(which))), np.zeros(n_weights)
    one = np.ones(1)
    for k in range(len(columns)):
        alone = rows._replace(first=rows.first[k : k + 1], last=rows.last[k : k + 1])
        add_rows(alone, feature_blocks, one, row)
        columns[k] = row[which]
        row[:] = 0.0
    return columns


class _Point(NamedTuple):
    """Multipliers of planes; what they give the weights with bounds, and these; slopes."""

    alpha: Floats
    free: Floats
    here: Floats
    slopes: Floats  # of the dual in alpha, without the ridges


def solve_within_bounds(
    planes: JointPlanes,
    columns: Floats,
    multipliers: BoundMultipliers,
    stop_gap: float,
    most_work: float,
) -> JointSolution:
    """Solve for the multipliers of all planes and of the bounds, to a gap among these planes.

    ``columns`` are the planes' features of the weights with bounds, which planes alone give their
    values. The gain is that of multipliers of the planes with the best ones of the bounds, over the
    multipliers as they are, with theirs.
    """

    def point(alpha: Floats) -> _Point:
        free = alpha @ columns
        here = multipliers.moved(free)
        return _Point(
            alpha, free, here, planes.offset - planes.gram @ alpha - columns @ (here - free)
        )

    now = point(planes.alpha)
    work, gap = 0.0, joint_gap(planes, now.alpha, now.slopes)
    gained, value = 0.0, abs(_dual(planes, multipliers, now))
    for _ in range(MOST_ROUNDS):
        if gap <= stop_gap or work > most_work:
            break
        best, rise = now, 0.0
        held = now.here != now.free
        # A model with the weights that are held now held for good, or else with none of them held.
        for fixed in [held, np.zeros_like(held)] if held.any() else [held]:
            model = planes.gram - columns[:, fixed] @ columns[:, fixed].T
            offset = now.slopes + model @ now.alpha
            found = solve_jointly(
                planes._replace(gram=model, offset=offset, alpha=now.alpha), 0.1 * gap, most_work
            )
            work += found.work + planes.gram.size
            goal = _along(planes, multipliers, columns, now, found.alpha)
            if goal is None:
                continue
            reached = point(goal)
            rise = _dual(planes, multipliers, reached) - _dual(planes, multipliers, now)
            if rise > NEGLIGIBLE * value:
                best = reached
                break
        if best is now:
            break
        now, gained = best, gained + rise
        gap = joint_gap(planes, now.alpha, now.slopes)
    return JointSolution(now.alpha, gained, gap, work)


def _along(
    planes: JointPlanes, multipliers: BoundMultipliers, columns: Floats, now: _Point, goal: Floats
) -> Floats | None:
    """The best multipliers on the way to a goal; None where there is no way up."""
    change = goal - now.alpha
    sums = np.bincount(planes.block, change, len(planes.upper_bound))
    held = np.bincount(planes.block, now.alpha, len(planes.upper_bound))
    slope = float(change @ now.slopes) - float(sums * planes.ridge @ held)
    curvature = float(change @ planes.gram @ change) + float(sums * planes.ridge @ sums)
    t = multipliers._step(now.free, now.here, change @ columns, slope, curvature)
    return now.alpha + t * change if t > 0.0 else None


def _dual(planes: JointPlanes, multipliers: BoundMultipliers, at: _Point) -> float:
    """The dual value, with the best multipliers of the bounds."""
    sums = np.bincount(planes.block, at.alpha, len(planes.upper_bound))
    beta = at.here - at.free
    square = (
        float(at.alpha @ planes.gram @ at.alpha)
        + float((at.here - at.free) @ (at.here + at.free))
        + float(sums * planes.ridge @ sums)
    )
    return float(at.alpha @ planes.offset) + multipliers._value(beta) - 0.5 * square


def joint_gap(planes: JointPlanes, alpha: Floats, slopes: Floats) -> float:
    """Duality gap among the planes, where ``slopes`` are without the ridges."""
    sums = np.bincount(planes.block, alpha, len(planes.upper_bound))
    tops = np.zeros(len(planes.upper_bound))
    np.maximum.at(tops, planes.block, slopes)  # the slacks
    ridged = planes.ridge > 0.0
    gap = -float(alpha @ slopes) + 0.5 * float(planes.ridge @ (sums * sums))
    gap += 0.5 * float(tops[ridged] @ (tops[ridged] / planes.ridge[ridged]))
    return gap + float(planes.upper_bound[~ridged] @ tops[~ridged])
