"""What the driver keeps of the parts: points that each has reached, and the best mean of them.

Problem solved, with points ``(v, d)`` of parts k = 1..K (see `shard`):

    max  sum theta d - 1/2 |sum theta v|^2   s.t.  theta >= 0,  sum of part k's theta <= 1.

No multipliers at all are a point of every part, with v and d zero: hence ``<=``. The value is a
lower bound on the dual's optimum, and ``w = sum theta v`` are its weights. With the last mean and
one new point of each part this would be a line search for all parts at once; earlier points make it
better, and are kept as long as they have weight.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..engine.joint_qp import JointPlanes, solve_jointly
from ..engine.state import FULL, Arrays, from_text, to_text
from ..schema import Count, checked_arrays, from_values, numbers, whole
from ..types import Floats, Ints
from .vectors import Packed, pack, products

__all__ = ["Point", "Points"]

IDLE_LIMIT = 5  # solutions in a row without weight after which a point is dropped
MOST, MOST_OF_ALL = 60, 400  # points of a part, and of all, beyond which a part keeps their mean
PER_POINT = ("shard", "number", "value", "theta", "idle")


class Point(NamedTuple):
    """A point of a part."""

    shard: int
    number: int
    vector: Packed
    value: float


class _KeptNumbers(NamedTuple):
    """How many points there are."""

    size: Count


class Points:
    """Points of all parts and their factors theta.

    Parameters
    ----------
    n_shards : int
        How many parts there are.
    n_features : int
        Length of the vectors.
    """

    def __init__(self, n_shards: int, n_features: int) -> None:
        self.n_shards, self.n_features = n_shards, n_features
        self.most = max(2, min(MOST, MOST_OF_ALL // n_shards))
        self.vectors: list[Packed] = []
        self.shard: Ints = np.empty(0, np.int64)
        self.number: Ints = np.empty(0, np.int64)
        self.value: Floats = np.empty(0)
        self.theta: Floats = np.empty(0)
        self.idle: Ints = np.empty(0, np.int64)
        self.gram: Floats = np.empty((0, 0))

    def __len__(self) -> int:
        return len(self.vectors)

    def add_all(self, new: list[Point]) -> None:
        """Add points, as yet without weight."""
        m, n_new = len(self), len(new)
        self.vectors += [point.vector for point in new]
        gram = np.empty((m + n_new, m + n_new))
        gram[:m, :m] = self.gram
        gram[m:] = products(self.vectors[m:], self.vectors, self.n_features)
        gram[:m, m:] = gram[m:, :m].T
        self.gram = gram
        for name in ("shard", "number", "value"):
            values = [getattr(point, name) for point in new]
            setattr(self, name, np.append(getattr(self, name), values))
        self.theta = np.append(self.theta, np.zeros(n_new))
        self.idle = np.append(self.idle, np.zeros(n_new, np.int64))

    def add(self, shard: int, number: int, vector: Packed, value: float, theta: float) -> None:
        """Add a point of this weight."""
        self.add_all([Point(shard, number, vector, value)])
        self.theta[-1] = theta

    def solve(self, stop_gap: float) -> None:
        """Find the best factors, up to this gap, and drop points that have long had none."""
        if not len(self):
            return
        cap, ridge = np.ones(self.n_shards), np.zeros(self.n_shards)
        planes = JointPlanes(self.gram, self.value, self.theta, self.shard, cap, ridge)
        self.theta = solve_jointly(planes, stop_gap).alpha
        self.idle = np.where(self.theta > 0.0, 0, self.idle + 1)
        self._keep(np.flatnonzero(self.idle < IDLE_LIMIT))

    def weights(self) -> Floats:
        """``sum theta v``."""
        return self._sum(np.arange(len(self)))

    def dual(self, w: Floats) -> float:
        """The value reached, at the weights."""
        return float(self.theta @ self.value) - 0.5 * float(w @ w)

    def factors(self, shard: int) -> dict[int, float]:
        """Factors of a part's points by number."""
        own = self._own(shard)
        return dict(zip(self.number[own].tolist(), self.theta[own].tolist(), strict=True))

    def of_part(self, shard: int) -> dict[int, Packed]:
        """A part's points by number."""
        own = self._own(shard)
        return {int(self.number[p]): self.vectors[p] for p in own}

    def merge_crowded(self, number: int) -> dict[int, dict[int, Packed]]:
        """Make one point of all those of a part, their mean, where there are too many.

        Returns the new points by part and number, which counts on from ``number``.
        """
        merged: dict[int, dict[int, Packed]] = {}
        counts = np.bincount(self.shard, minlength=self.n_shards)
        for shard in np.flatnonzero(counts > self.most).tolist():
            own = self._own(shard)
            total = float(self.theta[own].sum())
            vector = pack(self._sum(own) / total) if total else None
            value = float(self.theta[own] @ self.value[own]) / total if total else 0.0
            self._keep(np.flatnonzero(self.shard != shard))
            if vector is not None:
                self.add(shard, number, vector, value, total)
                merged[shard] = {number: vector}
                number += 1
        return merged

    def _own(self, shard: int) -> Ints:
        """Places of a part's points."""
        return np.flatnonzero(self.shard == shard)

    def _sum(self, places: Ints) -> Floats:
        """Sum of points times their factors."""
        total = np.zeros(self.n_features)
        for p in places.tolist():
            if self.theta[p]:
                self.vectors[p].add_to(total, float(self.theta[p]))
        return total

    def _keep(self, kept: Ints) -> None:
        """Keep these points alone."""
        if len(kept) == len(self):
            return
        self.vectors = [self.vectors[p] for p in kept.tolist()]
        for name in PER_POINT:
            setattr(self, name, getattr(self, name)[kept])
        self.gram = self.gram[np.ix_(kept, kept)]

    # ----- state --------------------------------------------------------------------------------

    def arrays(self) -> Arrays:
        """All points, as arrays by name."""
        found: Arrays = {name: getattr(self, name) for name in PER_POINT}
        for p, vector in enumerate(self.vectors):
            found[f"values.{p}"] = vector.values
            if vector.ids is not None:
                found[f"ids.{p}"] = vector.ids
        return {**found, "gram": self.gram, "numbers": to_text({"size": len(self)})}

    def restore(self, arrays: Arrays) -> None:
        """Take over what `arrays` of points of as many parts has given."""
        m = len(arrays["theta"])
        size = from_values(_KeptNumbers, from_text(arrays["numbers"]), "numbers").size
        declared = {
            "shard": whole(m, below=self.n_shards),
            **{name: whole(m, below=2**62) for name in ("number", "idle")},
            "value": numbers(m),
            "theta": numbers(m, low=0.0),
            "gram": numbers(m, m),
        }
        own = checked_arrays(arrays, declared)
        sums = np.bincount(own["shard"], own["theta"], self.n_shards)
        if size != m or not (sums <= 1.0 + FULL).all():
            raise ValueError("theta: the sum of a part's factors is more than 1")
        vectors = []
        for p in range(m):
            length, ids = self.n_features, None
            if f"ids.{p}" in arrays:
                length = len(arrays[f"ids.{p}"])
                rises = whole(length, below=self.n_features, types=(np.int32, np.int64))
                ids = checked_arrays(arrays, {f"ids.{p}": rises})[f"ids.{p}"]
                if (np.diff(ids) <= 0).any():
                    raise ValueError(f"ids.{p}: expected features in rising order")
            values = checked_arrays(arrays, {f"values.{p}": numbers(length)})[f"values.{p}"]
            vectors.append(Packed(self.n_features, ids, values))
        for name, array in own.items():
            setattr(self, name, array)
        self.vectors = vectors
