"""Candidate pools: the planes that are known of each example, and their values at any weights.

The one-slack solver builds its aggregated planes from a pool. `CandidatePool` serves any problem:
it keeps the f most recently used candidates of each example (Joachims et al. 2009, sec. 4). A
problem whose outputs can all be listed, or searched without going back to the data, may bring a
pool of its own that knows them all (`Accelerators.pool`); its values are then those of the oracle.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from ...core.cutting_planes import longest_row
from ...utils.schema import checked_arrays, numbers, whole
from ...utils.types import Floats, Ints, Ints32
from ..cost_model import BLOCK_ENTRY, PLANE_ENTRY
from ..feature_blocks import FeatureBlocks, mean_block_size
from ..oracle import Oracle
from ..parallel.threads import each_range
from ..steps.active_weights import LocalWeights
from ..store.arena import LARGE, MORE_THAN_SAID, SMALL, AnyArray
from ..store.compaction import keep_blocks_by_use, keep_rows
from ..store.plane_kernels import LARGEST_SMALL
from ..training.state import Arrays, StoredPlanes, add_prefix, named_arrays, strip_prefix
from .bundle import stored_dense
from .master import best_candidates, best_total, chosen_total, line_minimum
from .pool_kernels import (
    EMPTY,
    add_chosen,
    admit_candidates,
    number_blocks,
    score_candidates,
    score_parts,
)

__all__ = ["CandidatePool", "Pool", "TablePool", "make_pool"]

logger = logging.getLogger("maxmargin")

# Ages, in ticks of the clock, of the candidates that go where the budget is short: the first of
# them that leaves this share of the entries free will do.
AGES, ENOUGH_FREE = (50, 12, 3, 0), 0.3
WORTH_KEEPING = 0.7  # share of entries in use below which they are rewritten


class Pool(Protocol):
    """Candidates of all examples, and a table of values at any weights, which is linear in those.

    Mostly (`TablePool`) the table has a row for each example, with the hinge values ``b - <a, w>``
    of its candidates; a column is a slot for a candidate. Only the pool itself reads it.
    """

    oracle: Oracle
    #: Whether the pool knows every candidate, so that `values` is a pass of true oracle calls.
    complete: bool
    #: Whether the pool has weights of its own, whose number may grow when the oracle is asked.
    grows: bool

    @property
    def n_weights(self) -> int:
        """Length of the weights and planes that the other methods take."""

    def expand(self, w: Floats) -> Floats:
        """The problem's weights for weights of the pool, which may be short of the newest ones."""

    def values(self, w: Floats) -> Floats:
        """Table of the candidates' values at ``w``."""

    def call(self, w: Floats, check: Callable[[], None]) -> tuple[Floats, Ints]:
        """One true oracle call for each example at ``w``: the hinge values, and the slots chosen.

        Slots are -1 where nothing beats the given output. ``check``, called after every batch, may
        end the pass.
        """

    def descend(
        self, start: Floats, end: Floats, weights: Floats, slope: float, curvature: float
    ) -> tuple[float, float]:
        """Move ``start``, in place, to the lowest point on the line to another table.

        At t of the way, that is of ``slope t + 1/2 curvature t^2`` plus the weighted sum of the
        examples' largest values, or of 0 where those are negative. Returns t, and this sum there.
        """

    def choose(self, start: Floats, end: Floats, t: float) -> Ints:
        """Slots of the examples' largest values at t of the way, -1 where none is positive."""

    def chosen_total(self, table: Floats, chosen: Ints, weights: Floats) -> float:
        """Weighted sum of the values of chosen candidates."""

    def best_total(self, table: Floats, weights: Floats) -> float:
        """Weighted sum of the examples' largest values, or 0 where those are negative."""

    def add_up(self, chosen: Ints, weights: Floats, plane: Floats) -> float:
        """Add the chosen candidates, weighted, to ``plane``; returns their weighted offsets."""

    def arrays(self) -> Arrays:
        """The candidates, as arrays by name; none where all are known anyway."""

    def restore(self, arrays: Arrays) -> None:
        """Take over what `arrays` of a pool of equal data and formulation has given."""

    def planes_at(self, w: Floats) -> list[StoredPlanes]:
        """See `SolverState`; none where all are known anyway."""


def make_pool(oracle: Oracle, size: int, cache_bytes: int) -> Pool:
    """Return the problem's own complete pool, or the general one."""
    return oracle.accelerators.pool(oracle) or CandidatePool(oracle, size, cache_bytes)


class TablePool:
    """What pools share whose tables hold the values of candidates; see `Pool` for the methods."""

    def planes_at(self, w: Floats) -> list[StoredPlanes]:
        """See `Pool`."""
        return []

    def descend(
        self, start: Floats, end: Floats, weights: Floats, slope: float, curvature: float
    ) -> tuple[float, float]:
        """See `Pool`."""
        t = float(line_minimum(start, end, weights, slope, curvature))
        if t > 0.0:
            start += t * (end - start)
        return t, self.best_total(start, weights)

    def choose(self, start: Floats, end: Floats, t: float) -> Ints:
        """See `Pool`."""
        chosen = np.empty(len(start), np.int64)
        best_candidates(start, end, t, chosen)
        return chosen

    def chosen_total(self, table: Floats, chosen: Ints, weights: Floats) -> float:
        """See `Pool`."""
        return float(chosen_total(table, chosen, weights))

    def best_total(self, table: Floats, weights: Floats) -> float:
        """See `Pool`."""
        return float(best_total(table, weights))


class Slots(NamedTuple):
    """Candidates by example and slot; their entries name local parts, listed in ``features``.

    Values that count parts are whole numbers of 16 bits, others doubles.
    """

    start: Ints
    length: Ints
    offset: Floats
    last_used: Ints
    ids: Ints32
    values: AnyArray
    features: Ints32


class CandidatePool(TablePool):
    """The most recently used candidates of each example, in parts; see `Pool` for the methods.

    Parameters
    ----------
    oracle : Oracle
        Where candidates come from.
    size : int
        Candidates kept of each example.
    cache_bytes : int
        Budget for the candidates' entries and the parts that they name, copies while they are
        rewritten included. Where it is short, those not used for longest go first.
    """

    complete = False

    def __init__(self, oracle: Oracle, size: int, cache_bytes: int) -> None:
        n = oracle.n_examples
        self.oracle = oracle
        self.cache_bytes = cache_bytes
        self.feature_blocks = oracle.feature_blocks
        self.n_features = oracle.n_features
        self.grows = not stored_dense(self.n_features) and not oracle.has_bounds
        self.local = LocalWeights(self.feature_blocks, self.n_features if self.grows else 0)
        shape = (n, max(1, size))
        space = min(16 * n, cache_bytes // 128) + 1024
        self.slots = Slots(
            np.zeros(shape, np.int64),
            np.zeros(shape, np.int64),
            np.zeros(shape),
            np.full(shape, -1),
            np.zeros(space, np.int32),
            np.zeros(space, SMALL.values if oracle.in_blocks else LARGE.values),
            np.zeros(space, np.int32),
        )
        self.used = np.zeros(2, np.int64)  # entries, local parts
        self.clock = 0
        self._warned_of = 0  # bytes
        self._number_blocks()

    @property
    def nbytes(self) -> int:
        """Bytes of the entries, of the parts that they name, and of the values of those."""
        slots, table = self.slots, self.table
        per_part = 8 * len(slots.features) + self.local.nbytes
        return sum(a.nbytes for a in (slots.ids, slots.values, slots.features, table)) + per_part

    @property
    def n_weights(self) -> int:
        """Length of the weights and planes that the other methods take."""
        return self.local.size if self.grows else self.n_features

    def expand(self, w: Floats) -> Floats:
        """The problem's weights for weights of the pool."""
        return self.local.expand(w, self.oracle.threads or 1) if self.grows else w

    def _listed(self) -> tuple[FeatureBlocks, Ints32]:
        """The parts that candidates are made of, in terms of the pool's weights."""
        if self.grows:
            return self.local.layout(), self.local.numbers
        return self.feature_blocks, self.slots.features

    def values(self, w: Floats) -> Floats:
        """Table of the candidates' values at ``w``."""
        table = np.empty(self.slots.start.shape)
        feature_blocks, listed = self._listed()
        entries, n_listed = self.used.tolist()
        weights = np.empty(n_listed)

        def score_listed(first: int, end: int) -> None:
            score_parts(feature_blocks, listed, first, end, w, weights)

        def score(first: int, end: int) -> None:
            score_candidates(self.slots, first, end, weights, table)

        threads, n = self.oracle.threads or 1, len(table)
        each_range(threads, n_listed, BLOCK_ENTRY * mean_block_size(feature_blocks), score_listed)
        each_range(threads, n, PLANE_ENTRY * entries / max(n, 1), score)
        return table

    def renew(self, table: Floats, hinges: Floats, chosen: Ints) -> None:
        """Bring a table up to date with what was asked at its weights, and with what is gone."""
        new = np.flatnonzero(chosen >= 0)
        table[new, chosen[new]] = hinges[new]
        table[self.slots.last_used < 0] = EMPTY

    def call(self, w: Floats, check: Callable[[], None]) -> tuple[Floats, Ints]:
        """One true oracle call for each example at ``w``; new candidates enter the pool."""
        self.clock += 1
        w = self.expand(w)
        n = len(self.slots.start)
        values, chosen = np.empty(n), np.full(n, -1)
        for examples, oracle_result, products in self.oracle.call_candidates(np.arange(n), w):
            planes, offsets, scales = oracle_result
            check()
            if self.slots.values.dtype != LARGE.values and not _are_small(planes.values, scales):
                self.slots = self.slots._replace(values=self.slots.values.astype(LARGE.values))
            done = 0
            while True:
                done = admit_candidates(
                    self.slots,
                    self.table,
                    self.used,
                    examples,
                    planes,
                    offsets,
                    scales,
                    products,
                    self.clock,
                    done,
                    values,
                    chosen,
                )
                if done == len(examples):
                    break
                self._reserve(longest_row(planes))
            if self.grows:
                self.local.extend(self.slots.features, int(self.used[1]))
            self.oracle.compare(examples, values[examples])
        return np.maximum(values, 0.0), chosen

    def add_up(self, chosen: Ints, weights: Floats, plane: Floats) -> float:
        """Add the chosen candidates, weighted, to ``plane``; returns their weighted offsets."""
        self.clock += 1
        sums = np.empty(self.used[1])
        feature_blocks, listed = self._listed()
        return float(
            add_chosen(
                self.slots,
                self.used,
                feature_blocks,
                listed,
                chosen,
                weights,
                self.clock,
                sums,
                plane,
            )
        )

    def forget(self, age: int) -> None:
        """Drop candidates not used for ``age`` ticks of the clock."""
        last_used, lengths = self.slots.last_used, self.slots.length
        last_used[last_used < self.clock - age] = -1
        if lengths[last_used >= 0].sum() < WORTH_KEEPING * self.used[0]:
            self._compact(0, 1.2)

    def arrays(self) -> Arrays:
        """See `Pool`."""
        # Empty capacity too: when it is used up decides when candidates are rewritten.
        slots = add_prefix("slots", named_arrays(self.slots))
        # Weights keep their numbers, which planes go by, when candidates are dropped.
        columns = self.local.columns[: self.local.size]
        return {**slots, "used": self.used, "clock": np.array(self.clock), "columns": columns}

    def restore(self, arrays: Arrays) -> None:
        """See `Pool`."""
        shape, found = self.slots.start.shape, strip_prefix("slots", arrays)
        n_entries, room = len(found["ids"]), len(found["features"])
        own = checked_arrays(
            arrays,
            {
                "used": whole(2),
                "clock": whole(below=2**62),
                "columns": whole(None, below=len(self.local.place), types=(np.int32,)),
            },
        )
        used, columns = own["used"], own["columns"]
        declared = {
            **{name: whole(*shape, below=2**62) for name in ("start", "length")},
            "offset": numbers(*shape),
            "last_used": whole(*shape, low=-1, below=int(own["clock"]) + 1),
            "ids": whole(n_entries, below=max(int(used[1]), 1), types=(np.int32,)),
            "values": numbers(n_entries)._replace(types=(SMALL.values, LARGE.values)),
            "features": whole(room, below=self.feature_blocks.n_feature_blocks, types=(np.int32,)),
        }
        slots = Slots(**checked_arrays(found, declared))
        stored, listed = slots.last_used >= 0, slots.features[: used[1]]
        for fits, what in (
            ((used <= (n_entries, room)).all(), "used"),
            (((slots.start + slots.length)[stored] <= used[0]).all(), "slots.start"),
            (len(np.unique(listed)) == len(listed), "slots.features"),
            (len(np.unique(columns)) == len(columns), "columns"),
        ):
            if not fits:
                raise ValueError(f"{what}: does not fit the other arrays")
        self.slots = slots
        self.used, self.clock = used, int(own["clock"])
        self.local.renumber(columns)
        self._number_blocks()

    def planes_at(self, w: Floats) -> list[StoredPlanes]:
        """See `Pool`."""
        example, slot = np.nonzero(self.slots.last_used >= 0)
        values, offsets = self.values(w)[example, slot], self.slots.offset[example, slot]

        def vector(k: int) -> Floats:
            slots, clock, (i, s) = self.slots, self.clock, (example[k], slot[k])
            last_used = slots.last_used[i, s]
            chosen, plane = np.full(len(slots.start), -1), np.zeros(len(w))
            chosen[i] = s
            self.add_up(chosen, np.ones(len(chosen)), plane)
            slots.last_used[i, s], self.clock = last_used, clock
            return plane

        return [StoredPlanes(example, values, offsets, vector)]

    def _reserve(self, longest: int) -> None:
        """Grow the arrays or, beyond the budget, drop the candidates not used for longest."""
        for factor in (2.0, 1.3):
            if 2.0 * factor * self.nbytes <= self.cache_bytes:  # to be rewritten in the same space
                self._compact(-1, factor, longest)
                return
        logger.debug("dropping candidates to keep within cache_mb")
        for age in AGES:
            self._compact(self.clock - age, 1.0, longest)
            if self.used[0] <= (1.0 - ENOUGH_FREE) * len(self.slots.ids):
                return
        # Those of this pass are needed, whatever they take.
        self._compact(-1, 1.2, longest)
        if 2 * self.nbytes > self.cache_bytes and self.nbytes > MORE_THAN_SAID * self._warned_of:
            self._warned_of = self.nbytes
            rewritten = (self.slots.ids, self.slots.values, self.slots.features)
            logger.warning(
                "cache_mb is too small for a candidate of each example; using %.3g MB",
                (self.nbytes + sum(array.nbytes for array in rewritten)) / 2**20,
            )

    def _compact(self, oldest: int, factor: float, extra: int = 0) -> None:
        """Rewrite the entries without those of dropped candidates, with space to grow."""
        slots = self.slots
        self.table = np.empty(0, np.int32)  # made anew below
        slots.last_used[slots.last_used < oldest] = -1
        kept = np.flatnonzero(slots.last_used >= 0)
        first, last = slots.start.ravel(), (slots.start + slots.length).ravel()
        n_entries, n_listed = (int(factor * used) + extra + 64 for used in self.used)
        ids, values = np.zeros(n_entries, np.int32), np.zeros(n_entries, slots.values.dtype)
        features = np.zeros(n_listed, np.int32)
        starts = np.empty(len(kept) + 1, np.int64)
        keep_rows(first, last, kept, slots.ids, slots.values, ids, values, starts)
        listed = slots.features[: self.used[1]]
        place = np.zeros(len(listed), np.int32)
        count = keep_blocks_by_use(ids, starts[-1], listed, place, features)
        first[kept] = starts[:-1]
        self.slots = slots._replace(ids=ids, values=values, features=features)
        del slots, listed, place  # what was there before is not needed any more
        self.used[:] = starts[-1], count
        self._number_blocks()

    def _number_blocks(self) -> None:
        """Number the parts that are listed."""
        n_local = int(self.used[1])
        size = 1 << int(2 * len(self.slots.features)).bit_length()
        self.table = np.empty(0, np.int32)  # not two of them
        self.table = np.zeros(size, np.int32)
        number_blocks(self.slots.features, n_local, self.table)
        if self.grows:
            self.local.restart()
            self.local.extend(self.slots.features, n_local)


def _are_small(values: Floats, scales: Floats) -> bool:
    """Whether the values of rows, scaled, are whole numbers of 16 bits."""
    most = np.abs(values).max(initial=0.0) * np.abs(scales).max(initial=0.0)
    return bool(
        most <= LARGEST_SMALL
        and (scales == np.rint(scales)).all()
        and (values == np.rint(values)).all()
    )
