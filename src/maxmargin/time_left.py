"""How much longer training will take: by the fall of the gap, and by the limits that were set.

Gaps fall about exponentially, faster at first, with much noise where passes and attempts to certify
take turns. The last half of the time so far is cut into equal spans; the median of log gap in each,
and the median slope between them, are what is extrapolated, so that neither the first passes nor
single records nor many quick ones decide. Gaps seen on the way are estimates: when they reach the
target training goes on for a while, until a certificate reaches it too.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import combinations
from statistics import fmean, median
from typing import NamedTuple

from .core.result import Progress

__all__ = ["Limits", "known_gap", "seconds_left", "seconds_to_limit"]

WINDOW = 0.5  # share of the time so far that the fall of the gap is judged by
SPANS = 12  # that the window is cut into
FEWEST = 4  # records to judge by, and one span less
MOST = 256  # records looked at
MARGIN = 0.5  # how far below the target, in log, estimates are when a certificate meets it
CAUTION = 1.2  # the fall slows down: rather too long than too short
FAR_BELOW = 1.0  # the target, in log: gaps are not what training waits for
TOO_LONG = 20.0  # times the time so far: the gap hardly falls


class Limits(NamedTuple):
    """When training ends whatever the gap; None where there is no limit.

    Attributes
    ----------
    oracle_calls : float or None
        Number of oracle calls.
    records : float or None
        Number of records, of solvers that make as many passes as they are told.
    seconds : float or None
        Time.
    """

    oracle_calls: float | None = None
    records: float | None = None
    seconds: float | None = None


def known_gap(progress: Progress) -> float | None:
    """The certified gap, or else the estimate."""
    return progress.gap if progress.gap is not None else progress.gap_estimate


def seconds_left(history: Sequence[Progress]) -> float | None:
    """Time until the gap reaches the target; None where nothing can be said of it."""
    target = history[-1].target if history else None
    if not target or not math.isfinite(target):
        return None
    medians = _medians(_log_gaps(_recent(history)))
    if len(medians) < FEWEST - 1:
        return None
    fall = -median((b - a) / (t - s) for (s, a), (t, b) in combinations(medians, 2))
    above = medians[-1][1] - math.log(target)
    if fall <= 0 or above < -FAR_BELOW:
        return None
    left = CAUTION * (max(above, 0.0) + MARGIN) / fall
    return left if left <= TOO_LONG * history[-1].seconds else None


def seconds_to_limit(history: Sequence[Progress], limits: Limits) -> float | None:
    """Time until the first of the limits is reached; None without any."""
    if not history:
        return None
    now, found = history[-1], []
    if limits.seconds is not None:
        found.append(limits.seconds - now.seconds)
    if limits.records is not None:
        found.append((limits.records - len(history)) * now.seconds / len(history))
    if limits.oracle_calls is not None and now.oracle_calls > 0:
        start = _recent(history)[0]
        calls, seconds = now.oracle_calls - start.oracle_calls, now.seconds - start.seconds
        if calls == 0:
            calls, seconds = now.oracle_calls, now.seconds
        found.append((limits.oracle_calls - now.oracle_calls) * seconds / calls)
    return max(min(found), 0.0) if found else None


def _recent(history: Sequence[Progress]) -> Sequence[Progress]:
    """Records of the last half of the time, or the last few where these are less."""
    start = (1.0 - WINDOW) * history[-1].seconds
    first = bisect_left(history, start, key=lambda record: record.seconds)
    return history[max(min(first, len(history) - FEWEST), 0) :]


def _log_gaps(records: Sequence[Progress]) -> list[tuple[float, float]]:
    """Times and logarithms of gaps: of certified ones if there are enough, or else of estimates."""
    certified = [(record.seconds, record.gap) for record in records]
    estimates = [(record.seconds, record.gap_estimate) for record in records]
    for gaps in (certified, estimates):
        known = [(t, gap) for t, gap in gaps if gap is not None and 0.0 < gap < math.inf]
        if len(known) >= FEWEST:
            return [(t, math.log(gap)) for t, gap in known[:: max(1, len(known) // MOST)]]
    return []


def _medians(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Mean time and median value in each of several equal spans of time, where there is any."""
    if not points or points[-1][0] <= points[0][0]:
        return []
    start, length = points[0][0], (points[-1][0] - points[0][0]) / SPANS
    spans: dict[int, list[tuple[float, float]]] = {}
    for point in points:
        spans.setdefault(min(int((point[0] - start) / length), SPANS - 1), []).append(point)
    return [(fmean(t for t, _ in span), median(g for _, g in span)) for span in spans.values()]
