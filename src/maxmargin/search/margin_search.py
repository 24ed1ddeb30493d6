"""Slack rescaling, or the root of the loss, for a problem that searches with margin rescaling only.

With ``gain = -<dpsi, w>`` a margin oracle at the weights ``w / m`` maximises ``Delta + gain / m``,
and so ``gain + m Delta``: it is a decoder for sums, as `bounded_search` wants it, but for outputs
that are held in a region. What is left without regions is the upper hull of all outputs: every
vertex is a candidate, and every sum bounds the violations of all outputs. For slack rescaling

    Delta (1 + gain) <= (1 + gain + m Delta)^2 / (4 m)        for every m > 0.

Where the best of these bounds is reached by a vertex the answer is exact; else it has a bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.cutting_planes import BoundedPlanes, Planes, split_bounds, stack, validate_planes
from ..core.formulation import RESCALINGS, Rescaling
from ..utils.types import Floats, Ints
from ..utils.validation import is_at_least
from .bounded_search import Candidate, Violation, hull_bound

__all__ = ["search_of"]

LEAST = 2.0**-40  # multiplier that stands for 0; a power of two, so that nothing is rounded

Search = Callable[[Ints, Floats], Planes | BoundedPlanes]


def search_of(problem: Any, rescaling: Rescaling, sqrt_loss: bool) -> Search:
    """The problem's oracle for this question, or a search through its margin oracle."""
    known = getattr(problem, "rescalings", RESCALINGS)
    if "margin" not in known:
        raise ValueError(f"rescalings of a problem must contain 'margin', got {known!r}")
    if rescaling == "none" and "none" not in known:
        raise ValueError(
            f"{type(problem).__name__} has no oracle for rescaling='none': its rescalings are "
            f"{known!r} (a search that uses its argument rescaling declares them in the class: "
            "rescalings = ('margin', 'slack', 'none'))"
        )
    margins_only = "slack" not in known
    if margins_only and (rescaling == "slack" or (rescaling == "margin" and sqrt_loss)):
        return MarginSearch(problem, Violation(rescaling == "slack", sqrt_loss))
    return OwnSearch(problem, rescaling, sqrt_loss)


@dataclass(frozen=True)
class OwnSearch:
    """The problem's oracle for one question; states that keep it are pickled, so no closure."""

    problem: Any
    rescaling: Rescaling
    sqrt_loss: bool

    def __call__(self, indices: Ints, w: Floats) -> Planes | BoundedPlanes:
        """The oracle's answer."""
        found: Planes | BoundedPlanes = self.problem.oracle(
            indices, w, self.rescaling, self.sqrt_loss
        )
        return found


def _checked_unit(unit: Any) -> float:
    """The ``loss_unit`` of a problem."""
    if not is_at_least(unit, 0):
        raise ValueError(f"loss_unit must be a finite number >= 0, got {unit!r:.60}")
    return float(unit)


class MarginSearch:
    """A search for rescaled violations by calls of a problem's margin oracle."""

    def __init__(self, problem: Any, violation: Violation) -> None:
        self.problem = problem
        self.violation = violation
        self.exact = bool(getattr(problem, "exact", True))
        self.unit = _checked_unit(getattr(problem, "loss_unit", 0.0))
        self.largest: dict[int, float] = {}  # loss of an example

    def __call__(self, indices: Ints, w: Floats) -> Planes | BoundedPlanes:
        """The best candidates found, and bounds on all others."""
        rows, losses, bounds = [], np.zeros(len(indices)), np.zeros(len(indices))
        nothing = (np.empty(0, np.int32), np.empty(0))
        for row, i in enumerate(indices):
            best, bounds[row] = self._most_violated(int(i), w)
            rows.append(nothing if best is None else best.output)
            losses[row] = 0.0 if best is None else best.loss
        planes = stack(rows, losses)
        return planes.with_bounds(bounds) if np.isfinite(bounds).all() else planes

    def _most_violated(self, i: int, w: Floats) -> tuple[Candidate | None, float]:
        """The best candidate, None if none is violated, and a bound; inf if there is none."""
        bound, exact = math.inf, True

        def decode(lower: Floats, upper: Floats, multiplier: float) -> Candidate:
            nonlocal bound, exact
            multiplier = max(multiplier, LEAST)
            found, its_bound = self._at(i, w / multiplier, w)
            total = found.gain + multiplier * found.loss
            if its_bound is not None:
                exact = False
                total = max(total, multiplier * its_bound)
            bound = min(bound, self.violation.bound(multiplier, total))
            return found

        if i not in self.largest:
            found, its_bound = self._at(i, np.zeros(len(w)), w)
            self.largest[i] = found.loss if its_bound is None else max(found.loss, its_bound)
        if self.largest[i] <= 0.0:
            return self._without_loss(i, w)
        best, hull = hull_bound(decode, self.largest[i], self.violation, self.unit)
        value = 0.0 if best is None else self.violation.value(best.loss, best.gain)
        if not self.exact and exact:  # no bounds came, and the search promises nothing by itself
            return best, math.inf
        return best, max(value, min(bound, hull) if exact else bound)

    def _without_loss(self, i: int, w: Floats) -> tuple[Candidate | None, float]:
        """The same where no output has a loss: what counts is the gain, unless losses scale it."""
        if self.violation.slack:
            return None, 0.0 if self.exact else math.inf
        found, its_bound = self._at(i, w / LEAST, w)
        if its_bound is None and not self.exact:
            bound = math.inf
        else:
            bound = max(found.gain, 0.0 if its_bound is None else LEAST * its_bound)
        return (found if found.gain > 0.0 else None), bound

    def _at(self, i: int, weights: Floats, w: Floats) -> tuple[Candidate, float | None]:
        """The margin oracle's candidate at some weights, with its gain at w, and its bound."""
        answer = self.problem.oracle(np.array([i]), weights, "margin", False)
        planes, bounds = split_bounds(answer)
        validate_planes(planes, np.array([i]), len(w))
        loss = float(planes.losses[0])
        if self.unit > 0.0 and abs(loss - self.unit * round(loss / self.unit)) > 1e-9 * loss:
            raise ValueError(
                f"the margin oracle returned loss {loss:.6g} for example {i}, which is not a "
                f"multiple of the problem's loss_unit {self.unit:g}"
            )
        indices, values = np.asarray(planes.indices), np.asarray(planes.values, np.float64)
        gain = -float(values @ w[indices])
        found = Candidate((indices, values), np.empty(0), loss, gain)
        return found, None if bounds is None else float(bounds[0])
