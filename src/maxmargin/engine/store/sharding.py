"""Blocks in shards: a plane store whose passes with steps run in several threads.

Passes and synchronisations are those of `sharded_passes`; the rest of a store is here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.objective import dual_value, line_step, scale_to_fit
from ...utils.schema import Count, Number, checked_arrays, from_values, numbers, whole
from ...utils.types import Floats, Ints
from ..cost_model import ADDED_ENTRY, CALL, WEIGHT
from ..oracle import Oracle
from ..parallel.threads import count_threads
from ..training.state import (
    Arrays,
    StoredPlanes,
    add_prefix,
    check_close,
    from_text,
    strip_prefix,
    to_text,
)
from .block_store import BlockStore
from .planes import CARRY_LIMIT, PlaneStore
from .sharded_passes import ShardedPasses, deal
from .sharding_kernels import add_pushes

__all__ = ["ShardedStore", "count_shards", "shards_in"]

LEAST_SEARCH = 5e4  # work of an oracle call
FEWEST = 126  # examples of a shard: for few, all planes are solved for together


class ShardedStore(ShardedPasses):
    """The blocks of a `PlaneStore` in shards; see `BlockStore` for the methods."""

    oracle_is_cheap = False
    least_batch = 0

    def __init__(self, store: PlaneStore, n_shards: int) -> None:
        super().__init__(store, n_shards)
        self._w_before: Floats | None = None
        self._remembered = 0
        self._rewritten = 0

    @property
    def w(self) -> Floats:
        """See `BlockStore`."""
        return self._base

    @property
    def problem_weights(self) -> Floats:
        """See `BlockStore`."""
        return self.w

    @property
    def n_planes(self) -> int:
        """See `BlockStore`."""
        return sum(store.n_planes for store in self.stores)

    @property
    def n_support_vectors(self) -> int:
        """See `BlockStore`."""
        return sum(store.n_support_vectors for store in self.stores)

    @property
    def cache_bytes(self) -> int:
        """Budget for all planes."""
        return sum(store.cache_bytes for store in self.stores)

    @property
    def work(self) -> float:
        """See `BlockStore`: as if there were a thread for each shard."""
        return self._other_work + sum(store.work for store in self.stores)

    # ----- extrapolation ------------------------------------------------------------------------

    def prepare_cached_passes(self) -> None:
        """See `BlockStore`."""

    def extrapolate(self, factor: float) -> float:
        """See `PlaneStore`."""
        self._unite()
        directions, base = self._own, self._base
        w_before = self._known_before()
        carried = w_before is not None
        work = ADDED_ENTRY * self._n_entries
        found = self._each(
            ("add planes", factor != 0.0),
            lambda k: self.shards[k].store.push(factor, carried, directions[k]),
            work,
        )
        pushes = [push for push in found if push is not None]
        if not pushes:
            self._remember_w()
            return 0.0
        self._other_work += CALL + WEIGHT * len(base) + work

        def add_up(first: int, last: int) -> Floats:
            sums, before = np.zeros(2), base[:0] if w_before is None else w_before
            add_pushes(directions, base, before, factor, first, last, sums)
            return sums

        product, square = np.sum(self._parallel_chunks("add up", add_up), axis=0)
        self._remember_w()
        slope = sum(push.linear - push.held for push in pushes) - product
        curvature = square + sum(push.ridge for push in pushes)
        step, gain = line_step(float(slope), float(curvature), float(self.dual_now[0]))
        if gain == 0.0:
            return 0.0

        def go(first: int, last: int) -> None:
            direction = directions[0, first:last]
            direction *= step
            base[first:last] += direction

        for store, push in zip(self.stores, pushes, strict=True):
            store.arena.alpha[: store.used[0]] += step * push.change
        self._parallel_chunks("go", go)
        self.dual_now[0] += gain
        return gain

    def _known_before(self) -> Floats | None:
        """See `PlaneStore._remember_w`; it is also forgotten where planes were dropped."""
        known = self._n_rewritten == self._rewritten
        last = self._w_before if known and self._remembered < CARRY_LIMIT else None
        self._remembered = 0 if last is None else self._remembered + 1
        return last

    def _remember_w(self) -> None:
        """Keep w for the next extrapolation."""
        self._rewritten = self._n_rewritten
        if len(self._base) >= self._n_entries:
            self._w_before = None
            return
        kept = np.empty(len(self._base)) if self._w_before is None else self._w_before

        def keep(first: int, last: int) -> None:
            kept[first:last] = self._base[first:last]

        self._parallel_chunks("keep", keep)
        self._w_before = kept

    @property
    def _n_rewritten(self) -> int:
        """Times that planes of some shard were dropped or moved."""
        return sum(store.n_rewritten for store in self.stores)

    @property
    def _n_entries(self) -> float:
        """Entries of all stored planes."""
        return sum(store.n_entries for store in self.stores)

    # ----- the dual -----------------------------------------------------------------------------

    def solve_jointly(
        self, stop_gap: float, most_work: float, recombine: bool = False
    ) -> float | None:
        """See `BlockStore`; problems with so few planes are not cut into shards."""
        return None

    def evict(self, idle_limit: int) -> None:
        """See `BlockStore`."""
        self._each(("evict",), lambda k: self.shards[k].store.evict(idle_limit), self._n_entries)

    def empty(self, examples: Ints) -> None:
        """See `PlaneStore`."""
        for store in self.stores:
            store.empty(examples)
        self.rebuild()
        self.dual()

    def move_to(self, w: Floats) -> None:
        """See `BlockStore`."""
        self._base = w.copy()
        self._unite()
        self._w_before = None

    def rebuild(self) -> None:
        """See `BlockStore`."""
        for store in self.stores:
            store.stays = False  # where an interrupt came in between
        base = np.empty(len(self._base))

        def add_own(k: int) -> None:
            store, own = self.stores[k], self._own[k]
            own[:] = 0.0
            store.add_planes(store.arena.alpha, own)

        def add_up(first: int, last: int) -> None:
            np.sum(self._own[:, first:last], axis=0, out=base[first:last])

        self._each(("add planes", True), add_own)
        self._parallel_chunks("add up own", add_up)
        self._base, self._w_before = base, None
        self._unite()

    def dual_sums(self) -> tuple[float, Floats]:
        """See `BlockStore`."""
        linear, sums = zip(*(store.dual_sums() for store in self.stores), strict=True)
        return float(sum(linear)), np.sum(sums, axis=0)

    def dual(self) -> float:
        """See `BlockStore`."""
        linear, sums = self.dual_sums()
        self.dual_now[0] = dual_value(
            self._base, linear, self.formulation, 1.0, sums, self.upper_bounds
        )
        return float(self.dual_now[0])

    def rescale(self, upper_bounds: Floats) -> None:
        """See `BlockStore`."""
        linear, sums = self.dual_sums()
        factor = scale_to_fit(
            self._base, linear, self.formulation, sums, self.upper_bounds, upper_bounds
        )
        self._base *= factor
        self._unite()
        for store in self.stores:
            store.scale(factor, upper_bounds)
        self.upper_bounds = upper_bounds
        self.dual()

    # ----- state --------------------------------------------------------------------------------

    def take_over(self, earlier: BlockStore) -> None:
        """See `BlockStore`; the earlier one has as many shards, or is a single store."""
        if isinstance(earlier, ShardedStore):  # whose examples stay where their planes are
            n = len(earlier._owner)
            self._owner = np.concatenate([earlier._owner, deal(self._sizes[n:], len(self.shards))])
        for k, shard in enumerate(self.shards):
            if isinstance(earlier, ShardedStore):
                shard.store.take_over(earlier.shards[k].store)
            else:
                shard.store.take_over(earlier)
                shard.store.empty(np.flatnonzero(self._owner != k))
        self.upper_bounds = self.shards[0].store.upper_bounds
        self.rebuild()

    def arrays(self) -> Arrays:
        """See `BlockStore`."""
        shards: Arrays = {}
        for k, store in enumerate(self.stores):
            own = store.arrays()
            del own["w"]
            shards |= add_prefix(f"share{k}", own)
        known = self._w_before is not None and self._n_rewritten == self._rewritten
        return {
            **shards,
            **({"w_before": self._w_before} if known and self._w_before is not None else {}),
            "w": self._base,
            "dual_now": self.dual_now,
            "owner": self._owner,
            "shards": to_text(
                _KeptNumbers(
                    len(self.shards), self._other_work, self._remembered, self._n_improved
                )._asdict()
            ),
        }

    def restore(self, arrays: Arrays) -> None:
        """See `BlockStore`."""
        n, n_shards = len(self.upper_bounds), len(self.shards)
        of_weights = {
            name: numbers(len(self._base)) for name in ("w", "w_before") if name in arrays
        }
        declared = of_weights | {"owner": whole(n, below=n_shards), "dual_now": numbers(1)}
        own = checked_arrays(arrays, declared)
        counted = from_values(_KeptNumbers, from_text(arrays["shards"]), "shards")
        for k, store in enumerate(self.stores):
            store.restore({**strip_prefix(f"share{k}", arrays), "w": own["w"]})
            if store.blocks.count[own["owner"] != k].any():
                raise ValueError(f"share{k}: has planes of examples that belong to other shards")
        self._base, self._owner, self.dual_now = own["w"], own["owner"], own["dual_now"]
        self._unite()
        _, self._other_work, self._remembered, self._n_improved = counted
        self._w_before = own.get("w_before")
        self._rewritten = self._n_rewritten

    def proven_dual(self) -> float:
        """See `SolverState`."""
        for kept, before in ((self._w_before, True), (self._base, False)):
            if kept is not None:
                sums = [store.sum_of_multipliers(before) for store in self.stores]
                total = np.sum([own for own, _ in sums], axis=0)
                check_close(kept, total, max(scale for _, scale in sums), "w")
        linear, of_blocks = self.dual_sums()
        return dual_value(total, linear, self.formulation, 1.0, of_blocks, self.upper_bounds)

    def planes_at(self, w: Floats) -> list[StoredPlanes]:
        """See `SolverState`."""
        return [planes for store in self.stores for planes in store.planes_at(w)]


class _KeptNumbers(NamedTuple):
    """Counters that later decisions depend on."""

    count: Count  # type: ignore[assignment]
    work: Number
    remembered: Count
    improved: Count


def count_shards(oracle: Oracle, n_jobs: int | None) -> int:
    """How many shards the blocks of a problem are best cut into, for so many threads.

    With shards more passes are needed: that pays where most of a pass is the search.
    """
    problem = oracle.problem
    work = getattr(problem, "search_work", oracle.work)
    if work < LEAST_SEARCH or not getattr(problem, "in_threads", False):
        return 1
    return max(1, min(count_threads(n_jobs), oracle.n_examples // FEWEST))


def shards_in(arrays: Arrays) -> int:
    """How many shards the store has that these arrays are of."""
    if "shards" not in arrays:
        return 1
    return from_values(_KeptNumbers, from_text(arrays["shards"]), "shards").count
