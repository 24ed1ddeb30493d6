"""The plane store of chains whose loss adds up over tokens: visits without detours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...engine.arena import Places, new_places, new_scratch
from ...engine.local_weights import LocalWeights
from ...engine.oracle import Oracle
from ...engine.pairs import in_pair, may_pair
from ...engine.parts import Parts, mean_part_size
from ...engine.plane_kernels import FEATURES, LARGEST_SMALL
from ...engine.planes import BlockReport, PlaneStore, StepRule, visits
from ...engine.state import Arrays
from ...engine.work import RECOMBINATION
from ...plane_rows import empty_planes
from ...types import Floats, Ints, Ints32
from .layout import WeightOffsets
from .pair_kernels import Changes, Role, fits_group, visit_groups
from .store_kernels import number_features, visit_chains

if TYPE_CHECKING:
    from .problem import ChainData, ChainProblem

__all__ = ["ChainStore"]

MANY_WEIGHTS = 2**16  # of which revisits take those that planes touch: more than near caches hold
# Two threads visit examples of about the same length, out of so many neighbours, at a time.
WINDOW = 64
# Blocks of each that they visit at the same weights; where these stand still they meet less often.
STEPPED, SURVEYED = 4, 32
FEW_WEIGHTS = 2**16  # of which both have copies
# Examples that they visit in a call, those of a certificate, and the fewest that are worth it.
PAIRED_BATCH, CERTIFIED_BATCH, FEWEST_PAIRED = 4096, 1024, 256
PAIRED_WORK = 1e8  # of a call, where examples are long: it bounds a Ctrl-C's wait
MORE_THAN_A_PAIR = 4  # threads that certify in less time than two inside a kernel
NEAR_SHARE = 0.125  # of the budget, at most, for features that are numbered within each example
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
    parts: Ints32
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


class AllWeights(NamedTuple):
    """What a store has in terms of all weights, put aside while it works on those in use."""

    w: Floats
    parts: Parts
    places: Places
    expanded: Floats


def parts_by_example(parts: Parts, offsets: Ints) -> Parts:
    """The same parts with features numbered within each example: few weights instead of all."""
    indices = np.empty_like(parts.indices)
    n = parts.bias_column
    last_seen, number = np.full(n, -1, np.int32), np.empty(n, np.int32)
    most = int(number_features(parts.indptr, parts.indices, offsets, last_seen, number, indices))
    n_columns = most + (parts.bias != 0.0)
    return parts._replace(
        indices=indices, bias_column=most, first_single=n_columns * parts.n_labels
    )


class ChainStore(PlaneStore):
    """Planes of chains, with the oracle inside the pass over the blocks.

    A visit finds each example's plane at the weights its predecessors left, with no array handed
    around in between. A revisit also looks for the best recombination of the block's planes, if the
    rule says so.

    Between `prepare_revisits` and the next visit, ``w``, ``parts`` and the dictionaries of the
    blocks are in terms of the weights that some plane touches, numbered in the order of the blocks:
    a twentieth of all for words under labels. Recombinations touch no others but those of
    transitions, which are all there.
    """

    visits_in_order = True
    divides = False

    def __init__(
        self, oracle: Oracle, problem: ChainProblem, caps: Floats, cache_bytes: int
    ) -> None:
        self.problem = problem
        super().__init__(oracle, caps, cache_bytes)
        self._work = new_search_work(problem)
        self._longest_row = 4 * problem.longest + 4
        self._row = empty_planes(1, self._longest_row)
        many, near = len(self.w) >= MANY_WEIGHTS, self.parts
        self._in_use = LocalWeights(self.parts, len(self.w) if many else 0)
        if many and near.indices.nbytes <= NEAR_SHARE * cache_bytes:
            near = parts_by_example(near, problem.data.offsets)
            self.beside += near.indices.nbytes
        self._near = near
        self._originals = np.empty(0, np.int32)  # of the local parts
        self._all: AllWeights | None = None
        self._may_pair = may_pair()

    def arranged(self, order: Ints) -> Ints:
        """See `BlockStore`: two threads take two of about the same length at a time."""
        if len(order) < FEWEST_PAIRED:
            return order
        offsets = self.problem.data.offsets
        lengths = offsets[order + 1] - offsets[order]
        return order[np.lexsort((lengths, np.arange(len(order)) // WINDOW))]

    @property
    def counts_parts(self) -> bool:
        """See `PlaneStore`; each token brings a part, a move and their counterparts."""
        return 4 * self.problem.longest + 4 <= LARGEST_SMALL

    def _new_places(self) -> Places:
        """See `PlaneStore`; an example's tokens are next to each other."""
        parts = self.parts
        return new_places(parts.n_parts, parts.n_row_parts, self.problem.longest * parts.n_labels)

    def visit(self, examples: Ints, rule: StepRule) -> BlockReport:
        """True oracle calls, new planes and steps, one example after the other."""
        self._return_to_all_weights()
        report = self._pass(examples, rule, cached=False)
        self.oracle.count(len(examples))
        return report

    def survey(
        self, examples: Ints, size: int, rule: StepRule
    ) -> Iterator[tuple[Ints, BlockReport]]:
        """See `BlockStore`."""
        self._return_to_all_weights()
        threads = self.oracle.threads
        if self._in_pairs and threads is not None and threads.count < MORE_THAN_A_PAIR:
            return visits(self, examples, max(size, self._paired_batch(CERTIFIED_BATCH)), rule)
        return super().survey(examples, size, rule)

    def revisit(self, examples: Ints, rule: StepRule) -> Floats:
        """Steps from stored planes and maybe recombinations; returns the blocks' gaps before."""
        if not rule.recombine:
            return super().revisit(examples, rule)
        return self._pass(examples, rule, cached=True).gaps

    def _pass(self, examples: Ints, rule: StepRule, cached: bool) -> BlockReport:
        """Run the kernel until all examples are done, with more space where it asks for it."""
        report = BlockReport(np.empty(len(examples)), np.empty(len(examples)))
        work = self.work_on(examples)
        work += RECOMBINATION * work if cached else len(examples) * self.oracle.work
        in_pairs = not cached and self._in_pairs and len(examples) >= FEWEST_PAIRED
        self.work += work
        data = self.problem.data._replace(at=self._offsets())
        done = 0
        while done < len(examples):
            self.reserve_scratch(examples, self._longest_row)
            if in_pairs:
                done = self._visit_in_pairs(examples, rule, done, report, data)
            else:
                done = visit_chains(
                    self._arrays,
                    self._near if self._all is None else self.parts,
                    examples,
                    rule,
                    done,
                    report,
                    data,
                    self._originals,
                    self._work,
                    self._row,
                    cached,
                )
            in_pairs &= self._may_pair  # no more where no other thread could begin
            if done < len(examples):
                most = int(self.blocks.n_features[examples[done:]].max())
                planes = 2 * (STEPPED if rule.max_steps else SURVEYED) if in_pairs else 1
                self._reserve(self._longest_row + most, planes)
        return report

    # ----- two threads --------------------------------------------------------------------------

    @property
    def least_batch(self) -> int:
        """See `BlockStore`."""
        return self._paired_batch(PAIRED_BATCH) if self._in_pairs else 0

    def _paired_batch(self, most: int) -> int:
        """Examples that two threads visit in a call, at most so many."""
        return int(np.clip(PAIRED_WORK / max(self.oracle.work, 1.0), FEWEST_PAIRED, most))

    @property
    def _in_pairs(self) -> bool:
        """Whether two threads visit blocks."""
        return self._may_pair and self.oracle.threads is not None

    def _visit_in_pairs(
        self, examples: Ints, rule: StepRule, done: int, report: BlockReport, data: ChainData
    ) -> int:
        """Let two threads visit examples[done:], until the arrays are too small."""
        size = STEPPED if rule.max_steps else SURVEYED
        arrays = self._arrays
        if not fits_group(arrays, self.scratch, examples, done, 2 * size, data):
            return done
        roles, changes = self._roles(), (self._changes(), self._changes())

        def visit(me: int, events: Ints, examples: Ints = examples) -> int:
            return int(
                visit_groups(
                    me,
                    events,
                    arrays,
                    self._near,
                    roles[me],
                    changes[me],
                    changes[1 - me],
                    size,
                    examples,
                    rule,
                    done,
                    report,
                    data,
                )
            )

        visit(0, examples, examples[:0])  # compiled before another thread waits for it
        reached = in_pair(visit)
        if reached is None:
            self._may_pair = False
            return done
        self.dual_now[0] += roles[0].dual[0] + roles[1].dual[0]
        return reached

    def _changes(self) -> Changes:
        """What a thread keeps of a group of blocks."""
        n_features, n_planes = len(self.scratch.features), len(self.scratch.scores)
        return Changes(
            np.empty((STEPPED, n_features), np.int32),
            np.empty((STEPPED, n_features)),
            np.zeros((STEPPED, n_features)),
            np.empty((STEPPED, n_planes), np.int64),
            np.empty((STEPPED, n_planes)),
            np.empty((STEPPED, n_planes)),
            np.empty((STEPPED, n_planes)),
            np.zeros((STEPPED, 3), np.int64),
            np.empty((STEPPED, 2)),
        )

    def _roles(self) -> tuple[Role, Role]:
        """What each thread has for itself, of the sizes that are needed now."""
        first, near = self.scratch, self._near
        sizes = len(first.features), len(first.scores)
        n_near = near.first_single + len(self.w) - self.parts.first_single
        places = first.places._replace(table=np.zeros_like(first.places.table))
        second = new_scratch(places, np.zeros(n_near), *sizes)
        work, row = new_search_work(self.problem), empty_planes(1, self._longest_row)
        copies = len(self.w) <= FEW_WEIGHTS
        w = self.w.copy() if copies else self.w
        return (
            Role(self.w, copies, first, self._work, self._row, np.zeros(1)),
            Role(w, copies, second, work, row, np.zeros(1)),
        )

    # ----- the weights in use -------------------------------------------------------------------

    def prepare_revisits(self) -> None:
        """Gather the weights that some plane touches, and work on those until the next visit.

        Unless that would take more memory than there is.
        """
        if self._all is not None or len(self.w) < MANY_WEIGHTS:
            return
        in_use, parts, used = self._in_use, self.parts, self.used[FEATURES]
        needed = int(used) * (PART_IN_USE + 4 * mean_part_size(parts))
        if 2 * self.nbytes + self.beside + needed > self.cache_bytes:
            in_use.release()
            return
        listed = self.arena.new_features[:used]
        is_row = listed < parts.n_row_parts
        originals = listed[is_row]
        in_use.clear()  # whatever was numbered before: the same planes give the same bits
        in_use.extend(originals, len(originals))
        n_rows, n_single = len(originals), len(self.w) - parts.first_single
        local = in_use.layout()._replace(first_single=in_use.size, n_parts=n_rows + n_single)
        renumbered = self.arena.new_features.copy()
        renumbered[:used] = np.where(
            is_row, np.cumsum(is_row) - 1, listed - (parts.n_row_parts - n_rows)
        )
        w = np.concatenate([self.w[in_use.columns[: in_use.size]], self.w[parts.first_single :]])
        aside = AllWeights(self.w, parts, self.scratch.places, self.scratch.expanded)
        scratch = self.scratch._replace(places=new_places(local.n_parts), expanded=np.zeros(len(w)))
        arena = self.arena._replace(new_features=renumbered)
        self._w_before = None
        # All at once: an interrupt must not find arrays that do not fit each other.
        self._all, self._originals, self.arena, self.parts, self.scratch, self.w = (
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
        w, size = self._all.w.copy(), self.parts.first_single
        w[self._in_use.columns[:size]] = self.w[:size]
        w[self._all.parts.first_single :] = self.w[size:]
        return w

    def _return_to_all_weights(self) -> None:
        """Undo `prepare_revisits`, with the weights and planes as they are now."""
        if self._all is None:
            return
        aside, size, n_rows, used = (
            self._all,
            self.parts.first_single,
            len(self._originals),
            self.used[FEATURES],
        )
        aside.w[self._in_use.columns[:size]] = self.w[:size]
        aside.w[aside.parts.first_single :] = self.w[size:]
        renumbered = self.arena.new_features.copy()
        listed = renumbered[:used]
        is_row = listed < n_rows
        behind = listed + (aside.parts.n_row_parts - n_rows)
        behind[is_row] = self._originals[listed[is_row]]
        renumbered[:used] = behind
        arena = self.arena._replace(new_features=renumbered)
        scratch = self.scratch._replace(places=aside.places, expanded=aside.expanded)
        self._w_before = None
        self._all, self._originals, self.arena, self.parts, self.scratch, self.w = (
            None,
            self._originals[:0],
            arena,
            aside.parts,
            scratch,
            aside.w,
        )

    def _offsets(self) -> WeightOffsets:
        """Where transitions, first and last labels begin in ``w`` as it is now."""
        at = self.problem.data.at
        moved = self.parts.first_single - at.transitions
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

    def rescale(self, caps: Floats) -> None:
        """See `PlaneStore`."""
        self._return_to_all_weights()
        super().rescale(caps)

    def arrays(self) -> Arrays:
        """See `PlaneStore`."""
        self._return_to_all_weights()
        return super().arrays()

    def restore(self, arrays: Arrays) -> None:
        """See `PlaneStore`."""
        self._return_to_all_weights()
        super().restore(arrays)
