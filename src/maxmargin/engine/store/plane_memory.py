"""The arrays of a plane store: their growth within a byte budget, and their compaction."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np

from ...core.objective import ridges
from ...utils.types import Floats, Ints
from ..cost_model import BLOCK_ENTRY, REWRITTEN_ENTRY
from ..feature_blocks import mean_block_size
from ..oracle import Oracle
from .arena import (
    LARGE,
    MORE_THAN_SAID,
    MOST_PLANES,
    MOST_SMALL_IDS,
    SMALL,
    Arena,
    Blocks,
    Places,
    arena_bytes,
    arena_sizes,
    entry_types,
    new_arena,
    new_places,
    new_scratch,
    resized_arena,
    resizing,
    with_large_entries,
)
from .compaction import compact_blocks, keep_rows, mark_dead_planes, merge_planes
from .joint_planes import NO_PRODUCTS, KnownProducts
from .plane_kernels import ENTRIES, add_weighted_planes, block_sizes

__all__ = ["PlaneMemory"]

logger = logging.getLogger(__name__)

LEAST_SPACE = 4  # times the space of one plane per example: with fewer, ascent is very slow


class PlaneMemory:
    """The arrays of a plane store, which grow and shrink within a budget of bytes.

    Parameters
    ----------
    oracle : Oracle
        Where planes come from.
    caps : array of shape (n_examples,)
        ``C * sample_weight``: for l1 slack the upper bound on each block's sum of multipliers.
    cache_bytes : int
        Budget for planes, Gram entries and dictionaries, copies while they grow included.

    Attributes
    ----------
    beside : int
        Bytes of other arrays that the budget counts.
    """

    def __init__(self, oracle: Oracle, upper_bounds: Floats, cache_bytes: int) -> None:
        self.oracle = oracle
        self.formulation = oracle.formulation
        self.upper_bounds = upper_bounds
        self.cache_bytes = cache_bytes
        self.w: Floats = np.zeros(oracle.n_features)
        self.work = 0.0
        self.n_evicted = 0
        self.n_rewritten = 0  # times that planes were dropped or moved
        self._w_before: Floats | None = None
        self._remembered = 0
        self.feature_blocks = oracle.feature_blocks
        self._block_work = BLOCK_ENTRY * mean_block_size(self.feature_blocks)
        self._warned_of_budget = 0  # bytes that the last warning named
        self.beside = 0
        # While planes must stay where they are, the budget may be overdrawn.
        self.stays = self.is_overdrawn = False
        self._make_arrays(len(upper_bounds))

    def _make_arrays(self, n_filled: int) -> None:
        """Empty blocks, space for planes of so many of them, and for the work of kernels."""
        n = len(self.upper_bounds)
        self.dual_now = np.zeros(1)
        self.blocks = Blocks(
            np.full(n, -1),
            np.full(n, -1),
            np.zeros(n, np.int64),
            np.zeros(n, np.int64),
            self.upper_bounds,
            ridges(self.formulation, self.upper_bounds),
        )
        self.used = np.zeros(4, np.int64)  # planes, entries, dictionary entries, Gram entries
        self.arena = self._first_arena(n_filled)
        expanded = np.zeros(self.oracle.n_features if self.oracle.in_blocks else 0)
        self.scratch = new_scratch(self._new_places(), expanded, 1024, 32)
        self.known_products: KnownProducts = NO_PRODUCTS

    @property
    def counts_blocks(self) -> bool:
        """Whether values of planes are small whole numbers, as far as one can tell before."""
        return self.oracle.in_blocks and self.formulation.rescaling == "margin"

    def _new_places(self) -> Places:
        """A table of the parts of a block, whichever they are."""
        return new_places(self.feature_blocks.n_feature_blocks)

    @property
    def n_planes(self) -> int:
        """Planes that are stored and alive."""
        return int(self.arena.alive[: self.used[0]].sum())

    @property
    def n_support_vectors(self) -> int:
        """Those of them whose multiplier is positive."""
        used = slice(0, self.used[0])
        return int(np.count_nonzero(self.arena.alive[used] & (self.arena.alpha[used] > 0.0)))

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that the budget counts."""
        return sum(array.nbytes for array in self.arena)

    def _drop_idle(self, idle_limit: int) -> None:
        """Mark such planes dead; what they were before is forgotten, also in what w was before."""
        self.n_rewritten += 1
        now = self.arena.before[: self.used[0]]
        before = now.copy()
        self.n_evicted += mark_dead_planes(self.arena, self.used[0], idle_limit)
        if self._w_before is not None:
            self.add_planes(now - before, self._w_before)

    def _sum_of_planes(self, weights: Floats, space: Floats | None = None) -> Floats:
        """Sum over the planes p of ``weights[p] a_p``."""
        if space is None:
            total = np.zeros(len(self.w))
        else:
            total = space
            total[:] = 0.0
        self.add_planes(weights, total)
        return total

    def add_planes(self, weights: Floats, total: Floats) -> None:
        """Add the sum over the planes p of ``weights[p] a_p`` to ``total``."""
        self.reserve_scratch(np.arange(len(self.upper_bounds)), 0)
        arena, n_planes = self.arena, self.used[0]
        add_weighted_planes(
            arena, self.feature_blocks, self.blocks, n_planes, weights, self.scratch, total
        )

    def reserve_scratch(self, examples: Ints, longest: int) -> None:
        """Make the work arrays fit the largest of these blocks and one more plane."""
        features, _, planes, _ = block_sizes(self.blocks.n_features, self.blocks.count, examples)
        features, planes = features + longest + 1, planes + 2
        if features > len(self.scratch.features) or planes > len(self.scratch.scores):
            self.scratch = new_scratch(
                self.scratch.places,
                self.scratch.expanded,
                max(2 * features, len(self.scratch.features)),
                max(2 * planes, len(self.scratch.scores)),
            )

    def _until_done(self, examples: Ints, longest: int, kernel: Callable[[int], int]) -> None:
        """Call a kernel, which goes on from ``done``, with more space where it asks for it.

        Planes that it stores have so many entries at most.
        """
        done = 0
        while done < len(examples):
            self.reserve_scratch(examples, longest)
            done = kernel(done)
            if done < len(examples):
                self._reserve(longest + int(self.blocks.n_features[examples[done:]].max()))

    def _reserve(self, longest: int) -> None:
        """Grow the arrays or, where the budget forbids it, drop and at last merge planes."""
        if longest > MOST_SMALL_IDS:
            self.arena = with_large_entries(self.arena)
        if self._grow(longest, 2.0) or self._grow(longest, 1.3) or self._grow(longest, 1.05):
            return
        if self.stays:
            self._grow(longest, 1.3, anyway=True)
            self.is_overdrawn = True
            return
        for idle_limit in (10, 1):
            self._drop_idle(idle_limit)
            self._compact()
            if 3 * self.nbytes <= 2 * self._room and self._grow(longest, 1.2):
                return
        logger.debug("merging planes to keep within cache_mb")
        self._compact(merge=True)
        needed = self.beside + LEAST_SPACE * self._bytes_of([int(u) for u in self.used])
        if needed > self.cache_bytes:
            self.cache_bytes = needed
            if needed > MORE_THAN_SAID * self._warned_of_budget:
                self._warned_of_budget = needed
                logger.warning(
                    "cache_mb is too small for a few planes per example; using %.3g MB",
                    needed / 2**20,
                )
        if not self._grow(longest, 1.1):
            self._grow(longest, 1.1, anyway=True)

    def keep_budget(self) -> None:
        """Let planes move again; drop some, where the budget was overdrawn."""
        self.stays = False
        if self.is_overdrawn:
            self.is_overdrawn = False
            self._reserve(0)

    def _grow(self, longest: int, factor: float, anyway: bool = False) -> bool:
        """Reserve space for one more plane and ``factor`` more, unless the budget forbids it."""
        extra = (2, longest, longest, int(self.blocks.count.max()) + 2)
        sizes = []
        for used, more, size in zip(self.used, extra, arena_sizes(self.arena), strict=True):
            enough = int(used) + more
            sizes.append(size if enough <= 0.9 * size else int(factor * enough) + 64)
        if not anyway and (self._bytes_of(sizes) > self._room or sizes[0] > MOST_PLANES):
            return False
        for arena in resizing(self.arena, self.used, sizes):
            self.arena = arena
        return True

    @property
    def _room(self) -> int:
        """Bytes for planes. They are rewritten from time to time: for a while there are two."""
        return (self.cache_bytes - self.beside) // 2

    def _bytes_of(self, sizes: list[int]) -> int:
        """Bytes of an arena of these sizes, with entries as they are now."""
        return arena_bytes(sizes, entry_types(self.arena))

    def _first_arena(self, n: int) -> Arena:
        """Space for a plane of each example, if they are short; less where there is less."""
        sizes = np.array([n + 16, 16 * n + 1024, 16 * n + 1024, 2 * n + 64])
        of_entries = SMALL if self.counts_blocks else LARGE
        shard = min(1.0, self._room / arena_bytes(sizes.tolist(), of_entries))
        return new_arena(np.maximum(shard * sizes, 64).astype(np.int64).tolist(), of_entries)

    def _compact(self, merge: bool = False) -> None:
        """Rewrite the arrays without dead planes; with ``merge`` most of a block become one."""
        self.n_rewritten += 1
        if merge:
            self.known_products = NO_PRODUCTS
            self._w_before = None
            self._rewrite(tried_first=True)
            self._merge()
        self._rewrite()

    def _merge(self) -> None:
        """Merge the first planes of each block; they are next to each other.

        Means are no whole numbers: entries go to new arrays of large ones.
        """
        arena, n_planes = self.arena, int(self.used[0])
        untried = (arena.alpha[:n_planes] <= 0.0) & (arena.idle[:n_planes] == 0)
        others = int(np.diff(arena.entry_start[: n_planes + 1])[untried].sum())
        most = int(self.blocks.n_features.sum()) + others  # a merged plane has a block's parts
        starts = np.zeros_like(arena.entry_start)
        ids, values = np.empty(most, LARGE.ids), np.empty(most, LARGE.values)
        n_entries = merge_planes(arena, self.blocks, n_planes, self.scratch, starts, ids, values)
        self.arena = arena._replace(entry_start=starts, ids=ids, values=values)
        self.used[ENTRIES] = n_entries

    def _rewrite(self, tried_first: bool = False) -> None:
        """Copy live planes to fresh arrays, each block's planes next to each other."""
        self.work += REWRITTEN_ENTRY * float(self.used[ENTRIES])
        self.reserve_scratch(np.arange(len(self.upper_bounds)), 0)
        old, source = self.blocks, self.arena
        live = np.flatnonzero(source.alive[: self.used[0]])
        untried = (source.alpha[live] <= 0.0) & (source.idle[live] == 0) & tried_first
        # Blocks in the order of their first plane: neighbours in passes stay neighbours.
        places = old.first[source.block[live]]
        planes = live[np.lexsort((untried, places))]
        block, n_planes = source.block[planes], len(planes)
        count = np.bincount(block, minlength=len(self.upper_bounds))
        starts, ends = source.entry_start[:-1], source.entry_start[1:]
        n_entries = int((ends[planes] - starts[planes]).sum())
        n_gram = int((count * (count + 1) // 2).sum())
        n_listed = int(old.n_features.sum())
        sizes = [n_planes, n_entries, n_listed, n_gram]
        spare = 1.2 if 1.2 * self._bytes_of(sizes) <= self._room else 1.0
        target = new_arena([int(spare * size) + 64 for size in sizes], entry_types(source))
        for name in ("block", "alive", "offset", "alpha", "before", "idle"):
            getattr(target, name)[:n_planes] = getattr(source, name)[planes]
        opens = np.diff(block, prepend=-1) != 0
        firsts = np.flatnonzero(opens)
        numbers = np.arange(n_planes)
        target.position[:n_planes] = numbers - firsts[np.cumsum(opens) - 1]
        target.next_plane[:n_planes] = np.where(np.roll(opens, -1), -1, numbers + 1)
        blocks = old._replace(
            first=np.full(len(count), -1),
            last=np.full(len(count), -1),
            count=count,
            n_features=np.zeros(len(count), np.int64),
        )
        blocks.first[block[opens]] = firsts
        blocks.last[block[opens]] = firsts + count[block[opens]] - 1
        used = np.array([n_planes, n_entries, 0, 0])
        keep_rows(
            starts,
            ends,
            planes,
            source.ids,
            source.values,
            target.ids,
            target.values,
            target.entry_start,
        )
        compact_blocks(source, old, planes, target, blocks, used, self.scratch)
        arena = resized_arena(target, used, [int(spare * u) + 64 for u in used])
        known = self.known_products.renumbered(live, places)
        # All at once: an interrupt must not find lists and arrays that do not fit each other.
        self.blocks, self.arena, self.used, self.known_products = blocks, arena, used, known
