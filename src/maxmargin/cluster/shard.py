"""What a worker has of the training: one part of the examples, with its planes and multipliers.

With the examples of part k, their multipliers alpha and ``v = sum alpha a``, the dual is

    D = sum_k d_k - 1/2 |sum_k v_k|^2,   d_k = sum alpha b, less the ridges of squared slacks.

At weights w that it is given, a part says

* what its slacks sum to (`measure`): all that a certificate needs;
* the sum of its most violated planes (`plane`): a cutting plane of that sum;
* besides, a better *point* ``(v, d)`` of its own (`ascend`). It takes steps on its blocks as if all
  other parts stood still, ``w - u + v`` being the weights with u its part of w.

A cutting plane times C is a point, too: the most violated planes with all of their multipliers. Any
mean of points is a feasible choice of the part's multipliers, whatever the weights were when they
were found, and whoever remembers those multipliers: so whoever combines the points needs no more
than these, and with a worker that is lost nothing is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..core.formulation import Formulation
from ..core.objective import ridges
from ..core.problem import Problem
from ..engine.oracle import Oracle
from ..engine.parallel.blas_threads import single_blas_thread
from ..engine.parallel.threads import count_threads
from ..engine.steps.block_steps import ALL_PLANES
from ..engine.store.block_store import StepRule, make_store
from ..engine.violations import batches, violations
from ..solvers.ascent.passes import Momentum, Schedule
from ..utils.types import Floats, Ints, Ints32

__all__ = [
    "Packed",
    "Shard",
    "ShardOptions",
    "ShardPlane",
    "ShardRound",
    "ShardSums",
    "Unknown",
    "pack",
    "products",
]

BLOCK = 2**15  # entries of vectors that are written out side by side
# What decides how products are made: nanoseconds of an entry that is gathered, of one that is
# written out, and of a multiplication of matrices.
GATHERED, WRITTEN, MULTIPLIED = 2.0, 2.0, 0.05


class Packed(NamedTuple):
    """A vector, or its entries other than 0; ``ids`` is None where all are there."""

    size: int
    ids: Ints32 | None
    values: Floats

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers."""
        return self.values.nbytes + (0 if self.ids is None else self.ids.nbytes)

    def add_to(self, total: Floats, factor: float = 1.0) -> None:
        """Add the vector times a factor to a dense one."""
        if self.ids is None:
            total += factor * self.values
        else:
            total[self.ids] += factor * self.values

    def dense(self) -> Floats:
        """All entries."""
        if self.ids is None:
            return self.values
        total = np.zeros(self.size)
        self.add_to(total)
        return total

    def write(self, start: int, row: Floats) -> None:
        """Write the entries from ``start`` on into a row, which is zero."""
        end = min(start + len(row), self.size)
        if self.ids is None:
            row[: end - start] = self.values[start:end]
        else:
            own = slice(*np.searchsorted(self.ids, (start, end)))
            row[self.ids[own] - start] = self.values[own]

    def product(self, dense: Floats) -> float:
        """Inner product with a dense vector."""
        return float(self.values @ (dense if self.ids is None else dense[self.ids]))


def pack(vector: Floats) -> Packed:
    """The shorter form of a vector; an entry of the sparse one takes 12 bytes in place of 8."""
    ids = np.flatnonzero(vector)
    if 3 * len(ids) >= 2 * len(vector):
        return Packed(len(vector), None, vector)
    return Packed(len(vector), ids.astype(np.int32), vector[ids])


def products(some: Sequence[Packed], others: Sequence[Packed], size: int) -> Floats:
    """Inner products of vectors with others: one by one, or of matrices, block by block.

    The latter where vectors are long, and have entries in most places.
    """
    entries = sum(len(vector.values) for vector in others)
    by_one = GATHERED * len(some) * entries
    written = WRITTEN * (entries + sum(len(vector.values) for vector in some))
    by_blocks = written + MULTIPLIED * size * len(some) * len(others)
    if by_one <= by_blocks:
        found = np.empty((len(some), len(others)))
        for r, vector in enumerate(some):
            dense = vector.dense()
            found[r] = [other.product(dense) for other in others]
        return found
    total = np.zeros((len(some), len(others)))
    for start in range(0, size, BLOCK):
        left, right = _written(some, start), _written(others, start)
        total += left @ right.T
    return total


def _written(vectors: Sequence[Packed], start: int) -> Floats:
    """A block of entries of all vectors, as a matrix."""
    rows = np.zeros((len(vectors), BLOCK))
    for vector, row in zip(vectors, rows, strict=True):
        vector.write(start, row)
    return rows


RULE = StepRule(ALL_PLANES, 50, precision=0.2, recombine=True)
BATCH, ORDERED_BATCH = 16, 512  # examples of a visit; more where the store steps in between
DUE, PATIENCE = 0.5, 3  # blocks that cached passes skip, see `Schedule`
ENOUGH = 0.1  # share of the gap that cached passes have found, at which they end
RECOMBINE_EVERY = 4
IDLE_LIMIT = 4  # visits in a row without weight after which a plane is dropped


@dataclass(frozen=True)
class ShardOptions:
    """How a part is trained: passes over stored planes in a round, bytes for them, threads."""

    passes: int = 5
    cache_mb: float = 1024.0
    n_jobs: int | None = None
    seed: int = 0

    def of(self, shard: int) -> ShardOptions:
        """Those of a part, which has random orders of its own."""
        return replace(self, seed=self.seed + shard)


class ShardSums(NamedTuple):
    """Of a pass of true oracle calls: the weighted sum of slacks, as the objective has them.

    ``bound`` is the same by the oracle's bounds, if it gives any.
    """

    slacks: float
    bound: float | None


class ShardPlane(NamedTuple):
    """The weighted sum of the most violated planes, and the sums of the same pass."""

    vector: Packed
    offset: float
    sums: ShardSums


class ShardRound(NamedTuple):
    """A cutting plane at the weights that were sent, and the point that was reached from there.

    As points they have the numbers ``number`` and ``number + 1``.
    """

    number: int
    plane: ShardPlane
    vector: Packed
    value: float


class Unknown(NamedTuple):
    """The answer of a part that has lost its memory: points that it does not know."""

    numbers: tuple[int, ...]


class Shard:
    """One part of the examples, where it is trained.

    Parameters
    ----------
    problem : Problem
        The examples.
    formulation : Formulation
        The kind of structural SVM; without constraints on weights, which are the driver's.
    C : float
        Multiplies the slacks.
    weights : array of shape (n_examples,)
        Multiplies each example's slack.
    options : ShardOptions
        How to train.
    """

    def __init__(
        self,
        problem: Problem,
        formulation: Formulation,
        C: float,
        weights: Floats,
        options: ShardOptions,
    ) -> None:
        self.oracle = Oracle(problem, formulation)
        self.formulation, self.C, self.weights = formulation, C, weights
        self.options = options
        self.squared = formulation.slack == "l2"
        self.store = make_store(self.oracle, C * weights, int(options.cache_mb * 2**20))
        self.rng = np.random.default_rng(options.seed)
        self.points: dict[int, Packed] = {}

    # ----- true oracle calls at fixed weights -----------------------------------------------------

    def measure(self, w: Floats) -> ShardSums:
        """Slacks at ``w``, summed."""
        with single_blas_thread(), self.oracle.in_threads(count_threads(self.options.n_jobs)):
            return self._sums(self.oracle.violations(w).hinges)

    def plane(self, w: Floats) -> ShardPlane:
        """The cutting plane at ``w`` of the weighted sum of slacks, or of their squares."""
        n = self.oracle.n_examples
        total, offset, hinges = np.zeros(self.oracle.n_features), 0.0, np.empty(n)
        with single_blas_thread(), self.oracle.in_threads(count_threads(self.options.n_jobs)):
            for examples, answer in self.oracle.call_all(np.arange(n), w):
                planes, offsets, scales = answer
                values = violations(answer, w)
                self.oracle.compare(examples, values)
                hinges[examples] = xi = np.maximum(values, 0.0)
                alpha = np.where(xi > 0.0, self.weights[examples], 0.0)
                if self.squared:  # a square lies above its tangents
                    offset -= float(alpha @ (xi * xi))
                    alpha = 2.0 * xi * alpha
                offset += float(alpha @ offsets)
                factors = np.repeat(alpha * scales, np.diff(planes.indptr))
                np.add.at(total, planes.indices, factors * planes.values)
        return ShardPlane(pack(total), offset, self._sums(hinges))

    def _sums(self, hinges: Floats) -> ShardSums:
        """What the slacks of the pass that has just been made sum to."""
        power = 2 if self.squared else 1
        bound = None
        if self.oracle.bounds is not None:
            bound = float(self.oracle.bounded(hinges) ** power @ self.weights)
        return ShardSums(float(hinges**power @ self.weights), bound)

    # ----- ascent -------------------------------------------------------------------------------

    def ascend(
        self,
        w: Floats,
        number: int,
        factors: Mapping[int, float],
        points: Mapping[int, Packed],
    ) -> ShardRound | Unknown:
        """A cutting plane at ``w``, and a better point of the part.

        They are remembered here by their numbers. ``factors`` are those that earlier points have in
        ``w``; all others are forgotten. ``points`` are some that are not known here yet.
        """
        self.points |= points
        unknown = factors.keys() - self.points.keys()
        if unknown:
            return Unknown(tuple(sorted(unknown)))
        self.points = {known: self.points[known] for known in factors}
        plane = self.plane(w)
        with single_blas_thread():
            self.store.rebuild()
            start = w + self.store.w
            for known, factor in factors.items():
                self.points[known].add_to(start, -factor)
            self.store.move_to(start)
            self._improve()
            self.store.evict(IDLE_LIMIT)
            self.store.rebuild()
        found = ShardRound(number, plane, pack(self.store.w.copy()), self._value())
        self.points[number] = self.as_point(plane)
        self.points[number + 1] = found.vector
        return found

    def as_point(self, plane: ShardPlane) -> Packed:
        """The vector of a cutting plane as that of a point: times C."""
        return plane.vector._replace(values=self.C * plane.vector.values)

    def _value(self) -> float:
        """D of the multipliers as they are."""
        linear, sums = self.store.dual_sums()
        ridge = float(ridges(self.formulation, self.C * self.weights) @ (sums * sums))
        return linear - 0.5 * ridge

    def _improve(self) -> None:
        """A pass of oracle calls with steps; then cached ones, extrapolated, while they pay."""
        store, n = self.store, self.oracle.n_examples
        if n == 0:  # an empty file, say
            return
        size = ORDERED_BATCH if store.visits_in_order else BATCH
        for batch in batches(self.rng.permutation(n), size):
            store.oracle_pass(batch, RULE)
        schedule, goal = Schedule(n, PATIENCE), np.inf
        momentum, stored_only = Momentum(store, 1.0), RULE._replace(recombine=False)
        store.prepare_cached_passes()
        for k in range(self.options.passes):
            began, before = store.work, float(store.dual_now[0])
            blocks = np.flatnonzero(schedule.due(DUE))
            self.rng.shuffle(blocks)
            rule = stored_only if k % RECOMBINE_EVERY else RULE
            schedule.record_gaps(blocks, self._pass(blocks, rule))
            left = float(schedule.gaps.sum())
            goal = min(goal, ENOUGH * left)
            if left <= goal:
                return
            momentum.push((float(store.dual_now[0]) - before) / (store.work - began))

    def _pass(self, blocks: Ints, rule: StepRule) -> Floats:
        """One pass: by the oracle where that costs no more than what is stored."""
        if self.store.oracle_is_cheap:
            return self.store.oracle_pass(blocks, rule).gaps
        return self.store.cached_pass(blocks, rule)
