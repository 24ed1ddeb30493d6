"""The most violated output where only sums can be searched: an exact branch and bound.

For many structures there is a decoder for scores and losses that add up over slots (parts, tokens),
which maximises

    gain(y) + multiplier * Delta(y),    gain(y) = <w, psi(x, y)> - <w, psi(x, y_i)>,

but none for the rescaled violations

    Delta (1 + gain),    sqrt(Delta) (1 + gain),    sqrt(Delta) + gain.

All three grow in both arguments, and where they are positive they are quasi-concave. Outputs are
points (Delta, gain) of the plane, and decoders find the vertices of their upper hull. The largest
violation on the hull bounds that of all outputs; it is on a vertex, and then exact, or between two
vertices. These two differ in the loss of some slot: the outputs are split in those where it is at
most t and those where it is more, such that either set lacks one of the two, and each gets a
smaller hull of its own. The set of the largest bound is split first, until no bound is above the
best output found.

The answer is exact up to rounding (`CLOSE`, relative). The time has no polynomial bound; tens of
calls of the decoder are the rule, for hulls of many outputs have short edges. Where losses are
whole multiples of a unit, only those between the two vertices count, and most hulls need no split.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..utils.types import Floats
from .violation import plane_terms

__all__ = [
    "Candidate",
    "Decoder",
    "Violation",
    "best_with_loss",
    "common_unit",
    "hull_bound",
    "most_violated",
]

CLOSE = 1e-10  # bounds that exceed the best value by less, relatively, are not followed up
NOTHING = 1e-12  # the same for outputs that would hardly be violated at all
ROUNDING = 1e-13  # of the sums that decoders maximise
FASTER = 16.0  # growth of the multiplier while the gold output is all that is found

# Not compiled: calls from Python would cost more than the work.
_plane_terms = getattr(plane_terms, "py_func", plane_terms)


class Candidate(NamedTuple):
    """An output, its loss by slot and in total, and its score less that of the gold output."""

    output: Any
    slot_losses: Floats
    loss: float
    gain: float


#: ``decode(lower, upper, multiplier)``: the candidate that maximises ``gain + multiplier * loss``
#: among those with ``lower < slot_losses <= upper``.
Decoder = Callable[[Floats, Floats, float], Candidate]


@dataclass(frozen=True)
class Violation:
    """What is maximised: ``f(1 + gain)``, or without ``slack`` ``f + gain``.

    Here f is the loss, or its square root.
    """

    slack: bool
    sqrt_loss: bool

    def __post_init__(self) -> None:
        if not (self.slack or self.sqrt_loss):
            raise ValueError("a sum of loss and gain is what decoders maximise by themselves")

    def value(self, loss: float, gain: float) -> float:
        """The violation of an output; see `violation`."""
        offset, scale = _plane_terms(loss, self)
        return float(offset + scale * gain)

    def slope(self, loss: float, gain: float) -> float:
        """The multiplier for which no point of the same sum has a larger value than this one."""
        if loss <= 0.0:
            return math.inf
        if not self.slack:
            return 0.5 / math.sqrt(loss)
        return (0.5 if self.sqrt_loss else 1.0) * max(0.0, 1.0 + gain) / loss

    def bound(self, multiplier: float, total: float) -> float:
        """Largest value of all points with ``gain + multiplier * loss = total``."""
        if not self.slack:
            loss = 0.25 / multiplier / multiplier
        elif total <= -1.0:
            return 0.0
        else:
            loss = (1.0 / 3.0 if self.sqrt_loss else 0.5) * (1.0 + total) / multiplier
        return self.value(loss, total - multiplier * loss)


def most_violated(
    decode: Decoder, largest: Floats, violation: Violation, unit: float = 0.0
) -> Candidate | None:
    """Return the output of the largest violation, or None if no violation is positive.

    Parameters
    ----------
    decode : callable
        The search for sums; see `Decoder`. The gold output has no loss, and its gain is 0.
    largest : array
        The largest loss of each slot.
    violation : Violation
        What is maximised.
    unit : float
        All losses are multiples of it; 0 if they may have any value.
    """
    total = float(largest.sum())
    if total <= 0.0:
        best = None if violation.slack else decode(largest - 1.0, largest, 0.0)
        return best if best is not None and best.gain > 0.0 else None
    search = _Search(decode, violation, unit, NOTHING * violation.value(total, 0.0))
    everything = _Region(np.full(len(largest), -1.0), np.asarray(largest, np.float64))
    search.enclose(everything, 2.0 / total, None, None)
    while search.heap:
        edge = heapq.heappop(search.heap)[-1]
        if edge.bound <= search.enough:
            break
        search.split(edge)
    return search.best


def common_unit(losses: Floats) -> float:
    """A number of which all losses are multiples; 0 where none is known."""
    whole = np.rint(losses) if losses.max(initial=0.0) < 2**31 else losses + np.inf
    if not np.array_equal(whole, losses):
        return 0.0
    return float(np.gcd.reduce(whole.astype(np.int64), axis=None))


def best_with_loss(decode: Decoder, largest: Floats, free_counts: bool) -> Candidate | None:
    """Return the output of the largest violation where any loss counts as 1.

    That is ``1 + gain``, and for outputs without loss ``gain`` if ``free_counts``, and nothing
    otherwise; None if no violation is positive. Only where the best output of all has no loss, the
    loss is looked for in one slot after the other.
    """
    anything = np.full(len(largest), -1.0)
    best = decode(anything, largest, 0.0)
    top = best.gain if free_counts else 0.0
    if best.loss > 0.0:
        top = 1.0 + best.gain
    else:
        for slot in np.flatnonzero(largest > 0.0):
            lower = anything.copy()
            lower[slot] = 0.0
            found = decode(lower, largest, 0.0)
            if 1.0 + found.gain > top:
                best, top = found, 1.0 + found.gain
    return best if top > 0.0 else None


def hull_bound(
    decode: Decoder, largest: float, violation: Violation, unit: float = 0.0
) -> tuple[Candidate | None, float]:
    """The best vertex of the hull of all outputs, and a bound on the violations of all of them.

    As `most_violated` with a decoder for the whole of the outputs alone: nothing is split.
    ``largest`` is the largest loss.
    """
    search = _Search(decode, violation, unit, NOTHING * violation.value(largest, 0.0))
    search.enclose(_Region(np.full(1, -1.0), np.full(1, largest)), 2.0 / largest, None, None)
    return search.best, -search.heap[0][0] if search.heap else search.enough


class _Region(NamedTuple):
    """Outputs whose losses by slot are above ``lower`` and not above ``upper``."""

    lower: Floats
    upper: Floats


class _Edge(NamedTuple):
    """The edge of a region's hull with the largest value, and the bound that follows.

    Both ends maximise ``gain + multiplier * loss``; ``near`` has the smaller loss.
    """

    bound: float
    feasible_set: _Region
    multiplier: float
    near: Candidate
    far: Candidate


class _Search:
    """The best output so far and the edges still to be split."""

    def __init__(self, decode: Decoder, violation: Violation, unit: float, nothing: float) -> None:
        self.decode, self.violation, self.unit = decode, violation, unit
        self.best: Candidate | None = None
        self.enough = nothing  # larger bounds are followed up
        self.heap: list[tuple[float, int, _Edge]] = []
        self.n_edges = 0

    def split(self, edge: _Edge) -> None:
        """Halve a region at the slot in which the ends of its edge differ most."""
        losses = np.stack([edge.near.slot_losses, edge.far.slot_losses])
        slot = int(np.argmax(np.abs(losses[1] - losses[0])))
        low, high = losses[:, slot].min(), losses[:, slot].max()
        middle = 0.5 * (low + high)
        middle = middle if middle < high else low
        lower, upper = edge.feasible_set.lower.copy(), edge.feasible_set.upper.copy()
        lower[slot] = upper[slot] = middle
        below, above = (
            _Region(edge.feasible_set.lower, upper),
            _Region(lower, edge.feasible_set.upper),
        )
        swapped = losses[0, slot] > losses[1, slot]
        # An end of the edge stays on the hull of the region it falls in.
        self.enclose(above if swapped else below, edge.multiplier, edge.near, None)
        self.enclose(below if swapped else above, edge.multiplier, None, edge.far)

    def enclose(
        self,
        feasible_set: _Region,
        multiplier: float,
        near: Candidate | None,
        far: Candidate | None,
    ) -> None:
        """Find the edge of the region's hull with the largest value; queue it if it may matter.

        What is known of the hull is ``near``, on the side of too small losses, or ``far``. Each
        call of the decoder finds a vertex that takes the place of one of them, or none above the
        line through both, which is then the edge.
        """
        violation = self.violation
        if near is not None or far is not None:
            multiplier = self._next_multiplier(multiplier, near, far)
        bound = math.inf
        while True:
            found = self.decode(feasible_set.lower, feasible_set.upper, multiplier)
            total = found.gain + multiplier * found.loss
            if not math.isfinite(total):
                raise ValueError(
                    "the scores of outputs are not finite; the weights may be too large"
                )
            self._note(found)
            if multiplier > 0.0:
                bound = min(bound, violation.bound(multiplier, total))
            elif violation.slack and found.gain <= -1.0:
                return  # the largest gain of all: no violation is positive
            if bound <= self.enough:
                return
            if far is None and near is not None and 0.0 < found.loss <= near.loss:
                return  # nothing is above the line that touches here; the bound is mere rounding
            if near is not None and far is not None:
                line = near.gain + multiplier * near.loss
                above = total - line > ROUNDING * (1.0 + abs(near.gain) + multiplier * far.loss)
                if not (above and near.loss < found.loss < far.loss):
                    break
            if violation.slope(found.loss, found.gain) < multiplier:
                far = found
            else:
                near = found
            if near is not None and far is not None and not near.loss < far.loss:
                return  # the same point, but for rounding
            multiplier = self._next_multiplier(multiplier, near, far)
        if self.unit > 0.0:
            bound = min(bound, self._largest_between(near, far, multiplier, max(line, total)))
        if bound > self.enough:
            edge = _Edge(bound, feasible_set, multiplier, near, far)
            heapq.heappush(self.heap, (-bound, self.n_edges, edge))
            self.n_edges += 1

    def _next_multiplier(
        self, multiplier: float, near: Candidate | None, far: Candidate | None
    ) -> float:
        """The slope of the line through both, or the one at which the only one could be best."""
        if near is not None and far is not None:
            return (near.gain - far.gain) / (far.loss - near.loss)
        if far is not None:
            return self.violation.slope(far.loss, far.gain)
        assert near is not None
        slope = self.violation.slope(near.loss, near.gain)
        return slope if slope < math.inf else FASTER * multiplier

    def _note(self, found: Candidate) -> None:
        """Keep the best output."""
        value = self.violation.value(found.loss, found.gain)
        if value > self.enough:
            self.best, self.enough = found, value * (1.0 + CLOSE)

    def _largest_between(
        self, near: Candidate, far: Candidate, multiplier: float, total: float
    ) -> float:
        """Largest value on an edge at multiples of the unit strictly between its ends."""
        steps = range(round(near.loss / self.unit) + 1, round(far.loss / self.unit))
        losses = (step * self.unit for step in steps)
        return max(
            (self.violation.value(loss, total - multiplier * loss) for loss in losses), default=0.0
        )
