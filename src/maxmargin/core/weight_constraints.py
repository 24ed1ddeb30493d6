"""What is known of weights beforehand: their signs, fixed values, and a mean they are drawn to.

The objective becomes ``1/2 |w - w0|^2 + C sum xi`` over the weights of a box (`objective` has all
of it). Solvers know little of that. They train the change ``u = w - w0``, of which the problem is
asked at ``w0 + u``: a plane (b, a) of w is the plane ``(b - <a, w0>, a)`` of u (`engine.oracle`).
Weights that are fixed have no change, and their features leave the planes. What remains are bounds
on single changes, which have multipliers of their own (`engine.steps.bound_multipliers`).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils.types import Bools, Floats, Ints
from ..utils.validation import is_at_least

__all__ = ["FeasibleSet", "WeightConstraints"]

#: All weights (True), none (False), numbers of weights, or a truth value for each.
Which = bool | Sequence[int] | NDArray[Any]


@dataclass(frozen=True, eq=False)
class WeightConstraints:
    """Signs of weights, fixed weights, and weights to start from.

    The objective becomes ``1/2 |w - mean|^2`` plus the slacks as ever, over the weights that
    satisfy the constraints. Certificates are those of this problem. Fixed weights do not count in
    the first term.

    Parameters
    ----------
    nonnegative, nonpositive : bool, array of int or array of bool
        Weights that may not be negative, or not positive: all of them, a list of their numbers, or
        a truth value for each.
    fixed : dict of int to float, optional
        Weights that are not trained, with their values.
    mean : array of shape (n_features,), optional
        Weights from which those trained are to differ as little as they can, such as those of a
        model for much other data; zeros by default.

    Notes
    -----
    Not with hard margins. Structures with plane stores of their own are trained through the
    general one.
    """

    nonnegative: Which = False
    nonpositive: Which = False
    fixed: Mapping[int, float] | None = None
    mean: ArrayLike | None = None

    def __post_init__(self) -> None:
        # Warm starts compare constraints, which must not change with what they were made of.
        for name in ("nonnegative", "nonpositive", "mean"):
            object.__setattr__(self, name, copy.copy(getattr(self, name)))
        if isinstance(self.fixed, Mapping):
            object.__setattr__(self, "fixed", dict(self.fixed))

    def feasible_set(self, n_features: int) -> FeasibleSet:
        """The constraints on so many weights; ValueError where they contradict each other."""
        low, high = np.full(n_features, -np.inf), np.full(n_features, np.inf)
        below = chosen_weights(self.nonnegative, n_features, "nonnegative")
        above = chosen_weights(self.nonpositive, n_features, "nonpositive")
        both = np.intersect1d(below, above)
        if len(both):
            raise ValueError(
                f"weight {both[0]} is both in nonnegative and in nonpositive; if it is to be 0, "
                "put it in fixed"
            )
        low[below], high[above] = 0.0, 0.0
        mean = self._mean(n_features)
        fixed = np.zeros(n_features, np.bool_)
        for number, value in self._fixed(n_features).items():
            if not low[number] <= value <= high[number]:
                sign = "nonnegative" if value < 0.0 else "nonpositive"
                raise ValueError(f"weight {number} is fixed to {value:g}, but must be {sign}")
            low[number] = high[number] = mean[number] = value
            fixed[number] = True
        return FeasibleSet(mean, low, high, fixed)

    def _mean(self, n_features: int) -> Floats:
        """The weights to start from."""
        if self.mean is None:
            return np.zeros(n_features)
        try:
            mean = np.array(self.mean, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"mean must be real numbers, got {self.mean!r:.60}") from None
        if mean.shape != (n_features,):
            raise ValueError(f"mean must have shape ({n_features},), got shape {mean.shape}")
        bad = np.flatnonzero(~np.isfinite(mean))
        if len(bad):
            raise ValueError(f"mean[{bad[0]}] is {mean[bad[0]]}; all must be finite")
        return mean

    def _fixed(self, n_features: int) -> dict[int, float]:
        """Values of the fixed weights."""
        if self.fixed is not None and not isinstance(self.fixed, Mapping):
            raise ValueError(
                f"fixed must be a dict of weights' numbers to values, got {self.fixed!r:.60}"
            )
        given = dict(self.fixed or {})
        numbers = chosen_weights(list(given), n_features, "fixed")
        for number, value in given.items():
            if not isinstance(value, Real) or not is_at_least(abs(value), 0):
                raise ValueError(f"fixed[{number}] is {value!r:.60}; values must be finite numbers")
        values = [float(value) for value in given.values()]
        return dict(zip(numbers.tolist(), values, strict=True))

    def _key(self) -> tuple[Any, ...]:
        """All of it, such that equal constraints have equal keys."""
        fixed = tuple(sorted((self.fixed or {}).items()))
        return _which_key(self.nonnegative), _which_key(self.nonpositive), fixed, _bytes(self.mean)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WeightConstraints) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def chosen_weights(which: Which, n_features: int, name: str) -> Ints:
    """Numbers of the weights that a parameter of this name chooses, in the order given."""
    if isinstance(which, bool | np.bool_) or which is None:
        return np.arange(n_features if which else 0)
    chosen = np.asarray(which)
    if chosen.ndim != 1:
        raise ValueError(f"{name} must be True, False, or a list of weights, got {which!r:.60}")
    if chosen.dtype == np.bool_:
        if len(chosen) != n_features:
            raise ValueError(
                f"{name} has {len(chosen)} truth values, but there are {n_features} weights"
            )
        return np.flatnonzero(chosen)
    if len(chosen) == 0:
        return np.empty(0, np.int64)
    if not np.issubdtype(chosen.dtype, np.integer):
        raise ValueError(f"{name} must name weights by whole numbers, got {which!r:.60}")
    bad = chosen[(chosen < 0) | (chosen >= n_features)]
    if len(bad):
        raise ValueError(
            f"{name} has weight {bad[0]}, but there are {n_features} weights, counted from 0"
        )
    return chosen.astype(np.int64)


def _which_key(which: Which) -> Any:
    """A choice of weights, as something that compares."""
    return which if isinstance(which, bool | np.bool_) or which is None else _bytes(which)


def _bytes(array: ArrayLike | None) -> tuple[str, bytes] | None:
    """An array as something that compares."""
    if array is None:
        return None
    given = np.asarray(array)
    given = given.astype(np.float64) if given.dtype.kind in "iuf" else given
    return given.dtype.str, given.tobytes()


class FeasibleSet:
    """The weights that satisfy constraints, and their changes from the mean.

    Attributes
    ----------
    mean : array of shape (n_features,)
        Weights that are no change; those that are fixed have their values here.
    fixed : array of bool of shape (n_features,)
        Weights that do not change.
    bounded : array of int
        The other weights that have bounds.
    low, high : array of shape (n_bounded,)
        Bounds of the changes of these.
    """

    def __init__(self, mean: Floats, low: Floats, high: Floats, fixed: Bools) -> None:
        self.mean = mean
        self.fixed = fixed
        self._low, self._high = low, high
        self.bounded: Ints = np.flatnonzero((np.isfinite(low) | np.isfinite(high)) & ~fixed)
        self.low: Floats = (low - mean)[self.bounded]
        self.high: Floats = (high - mean)[self.bounded]

    def weights(self, change: Floats) -> Floats:
        """The weights with this change; rounding takes none of them out of its bounds."""
        return np.clip(self.mean + change, self._low, self._high)

    def bounded_weights(self, change: Floats) -> Floats:
        """The same for the changes of the weights that have bounds, alone."""
        which = self.bounded
        return np.clip(self.mean[which] + change, self._low[which], self._high[which])

    def nearest(self, w: Floats) -> Floats:
        """The weights nearest to w that satisfy the constraints."""
        return np.clip(w, self._low, self._high)

    def change(self, w: Floats) -> Floats:
        """The change that leads to the weights nearest to w."""
        return self.nearest(w) - self.mean
