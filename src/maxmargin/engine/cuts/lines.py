"""The minimum of the objective on a line, where only a search can tell its value at a point."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["minimum_on_line"]

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
