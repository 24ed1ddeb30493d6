"""The plane store of chains whose loss adds up over tokens: visits without detours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...core.cutting_planes import Planes, empty_planes
from ...engine.cost_model import RECOMBINATION
from ...engine.feature_blocks import FeatureBlocks, mean_block_size
from ...engine.oracle import Oracle
from ...engine.parallel.threads import each_range
from ...engine.steps.active_weights import LocalWeights
from ...engine.store.arena import Arena, Places, Scratch, new_places, new_scratch
from ...engine.store.block_store import BlockReport, StepRule, visits
from ...engine.store.plane_kernels import FEATURES, LARGEST_SMALL
from ...engine.store.planes import PlaneStore
from ...engine.training.state import Arrays
from ...engine.violations import batches
from ...utils.types import Floats, Ints, Ints32
from .layout import WeightOffsets
from .store_kernels import number_features, oracle_pass_chains, store_found

if TYPE_CHECKING:
    from .problem import ChainProblem

__all__ = ["ChainStore"]

MANY_WEIGHTS = 2**16  # of which revisits take those that planes touch: more than near caches hold
# Examples of about the same length are visited one after the other, out of so many neighbours.
WINDOW, FEWEST_ORDERED = 64, 256
CERTIFIED = 1024  # examples that threads search before one of them stores what they found
NEAR_FRACTION = 0.125  # of the budget, at most, for features that are numbered within each example
# Bytes of a part in terms of the weights in use, beside 4 for each of its weights: where its row
# begins, its number in two arrays, in the problem and in the dictionary, and its place.
PART_IN_USE = 36


class SearchWork(NamedTuple):
    """Work arrays of the two searches, for the longest sequence.

    ``forbidden`` is 0 or -inf for transitions (rows 0..K-1), starts (row K) and stops (row K + 1).
    """

    forbidden: Floats
    transition: Floats
    start: Floats
    stop: Floats
    unary: Floats
    forward: Floats
    path: Ints32
    labels: Ints32
    n_labels: Ints32
    back: Ints32
    feature_blocks: Ints32
    columns: Ints32


def new_search_work(problem: ChainProblem) -> SearchWork:
    """Arrays for one thread."""
    K, longest = problem.layout.n_labels, problem.longest
    return SearchWork(
        problem.decoder.forbidden,
        np.empty((K, K)),
        np.empty(K),
        np.empty(K),
        np.empty((longest, K)),
        np.empty((longest, K)),
        np.empty(longest, np.int32),
        np.empty((longest, K), np.int32),
        np.empty(longest, np.int32),
        np.empty((longest, K), np.int32),
        np.empty((longest, K), np.int32),
        np.empty(longest, np.int32),
    )


class FoundLabels(NamedTuple):
    """Labellings of some examples, one behind the other."""

    starts: Ints
    labels: Ints32


NOTHING_FOUND = FoundLabels(np.empty(0, np.int64), np.empty(0, np.int32))


class AllWeights(NamedTuple):
    """What a store has in terms of all weights, put aside while it works on those in use."""

    w: Floats
    feature_blocks: FeatureBlocks
    places: Places
    expanded: Floats


def blocks_by_example(feature_blocks: FeatureBlocks, offsets: Ints) -> FeatureBlocks:
    """The same parts with features numbered within each example: few weights instead of all."""
    indices = np.empty_like(feature_blocks.indices)
    n = feature_blocks.bias_column
    last_seen, number = np.full(n, -1, np.int32), np.empty(n, np.int32)
    most = int(
        number_features(
            feature_blocks.indptr, feature_blocks.indices, offsets, last_seen, number, indices
        )
    )
    n_columns = most + (feature_blocks.bias != 0.0)
    return feature_blocks._replace(
        indices=indices, bias_column=most, first_single=n_columns * feature_blocks.n_labels
    )


class ChainStore(PlaneStore):
    """Planes of chains, with the oracle inside the pass over the blocks.

    A visit finds each example's plane at the weights its predecessors left, with no array handed
    around in between. A revisit also looks for the best recombination of the block's planes, if the
    rule says so.

    Between `prepare_cached_passes` and the next visit, ``w``, ``parts`` and the dictionaries of the
    blocks are in terms of the weights that some plane touches, numbered in the order of the blocks:
    a twentieth of all for words under labels. Recombinations touch no others but those of
    transitions, which are all there.
    """

    visits_in_order = True
    divides = False

    def __init__(
        self, oracle: Oracle, problem: ChainProblem, upper_bounds: Floats, cache_bytes: int
    ) -> None:
        self.problem = problem
        super().__init__(oracle, upper_bounds, cache_bytes)
        self._work = new_search_work(problem)
        self._longest_row = 4 * problem.longest + 4
        self._row = empty_planes(1, self._longest_row)
        many, near = len(self.w) >= MANY_WEIGHTS, self.feature_blocks
        self._in_use = LocalWeights(self.feature_blocks, len(self.w) if many else 0)
        if many and near.indices.nbytes <= NEAR_FRACTION * cache_bytes:
            near = blocks_by_example(near, problem.data.offsets)
            self.beside += near.indices.nbytes
        self._near = near
        self._originals = np.empty(0, np.int32)  # of the local parts
        self._all: AllWeights | None = None

    def visit_order(self, order: Ints) -> Ints:
        """See `BlockStore`: work arrays stay in the cache, and so do the examples' neighbours."""
        if len(order) < FEWEST_ORDERED:
            return order
        offsets = self.problem.data.offsets
        lengths = offsets[order + 1] - offsets[order]
        return order[np.lexsort((lengths, np.arange(len(order)) // WINDOW))]

    @property
    def counts_blocks(self) -> bool:
        """See `PlaneStore`; each token brings a part, a move and their counterparts."""
        return 4 * self.problem.longest + 4 <= LARGEST_SMALL

    def _new_places(self) -> Places:
        """See `PlaneStore`; an example's tokens are next to each other."""
        feature_blocks = self.feature_blocks
        return new_places(
            feature_blocks.n_feature_blocks,
            feature_blocks.n_row_blocks,
            self.problem.longest * feature_blocks.n_labels,
        )

    def oracle_pass(self, examples: Ints, rule: StepRule) -> BlockReport:
        """True oracle calls, new planes and steps, one example after the other."""
        self._return_to_all_weights()
        self._count_visits(examples)
        return self._run(examples, rule, cached=False)

    def certify_pass(
        self, examples: Ints, size: int, rule: StepRule
    ) -> Iterator[tuple[Ints, BlockReport]]:
        """See `BlockStore`; threads search, and one stores what they have found."""
        self._return_to_all_weights()
        if self.oracle.threads is None:
            yield from visits(self, examples, size, rule)
            return
        for group in batches(examples, size * max(1, CERTIFIED // size)):
            (gaps, hinges), found = self._searched(group, rule)
            for first in range(0, len(group), size):
                own = slice(first, first + size)
                self._count_visits(group[own])
                self._store(group[own], found._replace(starts=found.starts[own]))
                yield group[own], BlockReport(gaps[own], hinges[own])

    def _searched(self, examples: Ints, rule: StepRule) -> tuple[BlockReport, FoundLabels]:
        """What visits without steps would report and store, found in threads."""
        gaps, hinges = np.empty(len(examples)), np.empty(len(examples))
        self.reserve_scratch(examples, self._longest_row)
        data = self.problem.data._replace(at=self._offsets())
        lengths = data.offsets[examples + 1] - data.offsets[examples]
        ends = np.cumsum(lengths)
        found = FoundLabels(ends - lengths, np.empty(ends[-1], np.int32))

        def search(first: int, end: int) -> None:
            scratch, work, row = self._thread_arrays()
            oracle_pass_chains(
                self._arrays._replace(scratch=scratch),
                self._near,
                examples[first:end],
                rule._replace(max_steps=-1),
                0,
                BlockReport(gaps[first:end], hinges[first:end]),
                data,
                self._originals,
                work,
                row,
                False,
                found._replace(starts=found.starts[first:end]),
            )

        each_range(self.oracle.threads, len(examples), self.oracle.work, search)
        return BlockReport(gaps, hinges), found

    def _store(self, examples: Ints, found: FoundLabels) -> None:
        """Store the planes that threads have found to be new."""
        data = self.problem.data._replace(at=self._offsets())

        def store(done: int) -> int:
            return store_found(
                self._arrays, self._near, examples, done, found, data, self._work, self._row
            )

        self._until_done(examples, self._longest_row, store)

    def _thread_arrays(self) -> tuple[Scratch, SearchWork, Planes]:
        """What a thread needs for itself to search, of the sizes that are needed now."""
        own, near = self.scratch, self._near
        n_near = near.first_single + len(self.w) - self.feature_blocks.first_single
        places = own.places._replace(table=np.zeros_like(own.places.table))
        scratch = new_scratch(places, np.zeros(n_near), len(own.features), len(own.scores))
        return scratch, new_search_work(self.problem), empty_planes(1, self._longest_row)

    def cached_pass(self, examples: Ints, rule: StepRule) -> Floats:
        """Steps from stored planes and maybe recombinations; returns the blocks' gaps before."""
        if not rule.recombine:
            return super().cached_pass(examples, rule)
        self.work += (1.0 + RECOMBINATION) * self.work_on(examples)
        return self._run(examples, rule, cached=True).gaps

    def _count_visits(self, examples: Ints) -> None:
        """True oracle calls, and steps on their blocks."""
        self.oracle.count(len(examples))
        self.work += self.work_on(examples) + len(examples) * self.oracle.work

    def _run(self, examples: Ints, rule: StepRule, cached: bool) -> BlockReport:
        """Run the kernel on all examples."""
        report = BlockReport(np.empty(len(examples)), np.empty(len(examples)))
        data = self.problem.data._replace(at=self._offsets())

        def oracle_pass(done: int) -> int:
            return oracle_pass_chains(
                self._arrays,
                self._near if self._all is None else self.feature_blocks,
                examples,
                rule,
                done,
                report,
                data,
                self._originals,
                self._work,
                self._row,
                cached,
                NOTHING_FOUND,
            )

        self._until_done(examples, self._longest_row, oracle_pass)
        return report

    # ----- the weights in use -------------------------------------------------------------------

    def prepare_cached_passes(self) -> None:
        """Gather the weights that some plane touches, and work on those until the next visit.

        Unless that would take more memory than there is.
        """
        if self._all is not None or len(self.w) < MANY_WEIGHTS:
            return
        in_use, feature_blocks, used = self._in_use, self.feature_blocks, self.used[FEATURES]
        needed = int(used) * (PART_IN_USE + 4 * mean_block_size(feature_blocks))
        if 2 * self.nbytes + self.beside + needed > self.cache_bytes:
            in_use.release()
            return
        listed = self.arena.new_features[:used]
        is_row = listed < feature_blocks.n_row_blocks
        originals = listed[is_row]
        in_use.clear()  # whatever was numbered before: the same planes give the same bits
        in_use.extend(originals, len(originals))
        n_rows, n_single = len(originals), len(self.w) - feature_blocks.first_single
        local = in_use.layout()._replace(
            first_single=in_use.size, n_feature_blocks=n_rows + n_single
        )
        renumbered = self.arena.new_features.copy()
        renumbered[:used] = np.where(
            is_row, np.cumsum(is_row) - 1, listed - (feature_blocks.n_row_blocks - n_rows)
        )
        w = np.concatenate(
            [self.w[in_use.columns[: in_use.size]], self.w[feature_blocks.first_single :]]
        )
        aside = AllWeights(self.w, feature_blocks, self.scratch.places, self.scratch.expanded)
        scratch = self.scratch._replace(
            places=new_places(local.n_feature_blocks), expanded=np.zeros(len(w))
        )
        arena = self.arena._replace(new_features=renumbered)
        self._w_before = None
        # All at once: an interrupt must not find arrays that do not fit each other.
        self._all, self._originals, self.arena, self.feature_blocks, self.scratch, self.w = (
            aside,
            originals,
            arena,
            local,
            scratch,
            w,
        )

    @property
    def problem_weights(self) -> Floats:
        """See `BlockStore`."""
        if self._all is None:
            return self.w
        w, size = self._all.w.copy(), self.feature_blocks.first_single
        w[self._in_use.columns[:size]] = self.w[:size]
        w[self._all.feature_blocks.first_single :] = self.w[size:]
        return w

    def _return_to_all_weights(self) -> None:
        """Undo `prepare_cached_passes`, with the weights and planes as they are now."""
        if self._all is None:
            return
        aside, size, n_rows, used = (
            self._all,
            self.feature_blocks.first_single,
            len(self._originals),
            self.used[FEATURES],
        )
        aside.w[self._in_use.columns[:size]] = self.w[:size]
        aside.w[aside.feature_blocks.first_single :] = self.w[size:]
        renumbered = self.arena.new_features.copy()
        listed = renumbered[:used]
        is_row = listed < n_rows
        behind = listed + (aside.feature_blocks.n_row_blocks - n_rows)
        behind[is_row] = self._originals[listed[is_row]]
        renumbered[:used] = behind
        arena = self.arena._replace(new_features=renumbered)
        scratch = self.scratch._replace(places=aside.places, expanded=aside.expanded)
        self._w_before = None
        self._all, self._originals, self.arena, self.feature_blocks, self.scratch, self.w = (
            None,
            self._originals[:0],
            arena,
            aside.feature_blocks,
            scratch,
            aside.w,
        )

    def _offsets(self) -> WeightOffsets:
        """Where transitions, first and last labels begin in ``w`` as it is now."""
        at = self.problem.data.at
        moved = self.feature_blocks.first_single - at.transitions
        return WeightOffsets(*(place + moved for place in at))

    def evict(self, idle_limit: int) -> None:
        """See `PlaneStore`."""
        self._return_to_all_weights()
        super().evict(idle_limit)

    def rebuild(self) -> None:
        """See `PlaneStore`."""
        self._return_to_all_weights()
        super().rebuild()

    def move_to(self, w: Floats) -> None:
        """See `PlaneStore`."""
        self._return_to_all_weights()
        super().move_to(w)

    def solve_jointly(
        self, stop_gap: float, most_work: float, recombine: bool = False
    ) -> float | None:
        """See `PlaneStore`."""
        self._return_to_all_weights()
        return super().solve_jointly(stop_gap, most_work, recombine)

    def rescale(self, upper_bounds: Floats) -> None:
        """See `PlaneStore`."""
        self._return_to_all_weights()
        super().rescale(upper_bounds)

    def arrays(self) -> Arrays:
        """See `PlaneStore`."""
        self._return_to_all_weights()
        return super().arrays()

    def restore(self, arrays: Arrays) -> None:
        """See `PlaneStore`."""
        self._return_to_all_weights()
        super().restore(arrays)

    def _check_parts(self, arena: Arena) -> None:
        """See `PlaneStore`: rows are the example's tokens, with their own labels."""
        offsets, K = self.problem.data.offsets, self.feature_blocks.n_labels
        block = np.repeat(arena.block, np.diff(arena.new_start))
        is_row = arena.new_features < self.feature_blocks.n_row_blocks
        tokens, labels = np.divmod(arena.new_features[is_row].astype(np.int64), K)
        block = block[is_row]
        is_gold = labels == self.problem.data.labels[tokens]
        own = (tokens >= offsets[block]) & (tokens < offsets[block + 1])
        has_gold = np.zeros(offsets[-1], np.bool_)
        has_gold[tokens[is_gold]] = True
        if not (own & has_gold[tokens]).all():
            raise ValueError("arena.new_features: a sequence has parts of other tokens")
