"""Shards of the blocks: passes with steps by several threads, bit-identical for any number of them.

A pass goes from one synchronisation to the next: every shard improves some of its blocks, as if the
others stood still, and then the changes of all are added up,

    w <- w + step * sum_k d_k,     alpha likewise, for the blocks that were visited.

The dual is a quadratic of the step, whose slope and curvature follow from the gains of the shards
and from |d_k|^2 and |sum d_k|^2. A step in [0, 1] is feasible, for the blocks' multipliers are
convex combinations of what they were and are. Where changes have little in common the step is 1;
where that would be much too far, it is the best one, so that the dual never falls (block-diagonal
bounds with adding up, as in CoCoA+; Ma et al. 2015).

Where synchronising would take longer than threads gain, the shards take turns at the same w. What
is added up, and when, depends on the shards and not on threads, nor on a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from ...utils.types import Floats, Ints
from ..oracle import Oracle
from ..parallel.threads import note_done
from ..violations import batches
from .arena import grown
from .block_store import BlockReport, StepRule
from .planes import PlaneStore
from .sharding_kernels import (
    STRETCH,
    add_changes,
    add_shard,
    move_back,
    note_multipliers,
    ridge_of_change,
)

__all__ = ["Shard", "ShardedPasses", "deal"]

Value = TypeVar("Value")

# Work of each shard between synchronisations, and what is added for each weight; that of
# handing over a weight.
VISITS, ADDING, HANDED_OVER = 4e6, 30.0, 2.0
# Work that is too little for threads: handing it over takes as long.
LEAST_WORK = 1e6
# A full step is taken where the best one is at least this: it gains 94 % as much, or more.
NEARLY_FULL = 0.8
BEGINNING = 4  # so many times the blocks of a piece were improved before
# Work of the searches that a shard asks its oracle for at a time, at the same weights. Between two
# calls it needs the GIL, for long against a short search; but old weights cost passes.
ASKED = 8e5
MANY = 2**17  # weights from which on threads divide the work of adding up


class Shard:
    """Some of the blocks: a store of its own, and what it notes for the next synchronisation."""

    def __init__(self, store: PlaneStore) -> None:
        self.store = store
        self.examples: Ints = np.empty(0, np.int64)  # visited since the last synchronisation
        self._before: Floats = np.empty(
            0
        )  # multipliers of their planes at the last synchronisation

    @property
    def gain(self) -> float:
        """What its steps have added to the dual, since the last synchronisation or in its turn."""
        return float(self.store.dual_now[0])

    def look(self, do: Callable[[Shard], BlockReport]) -> BlockReport:
        """Visit the examples."""
        self.store.dual_now[0] = 0.0
        if len(self.examples) == 0:
            return BlockReport(np.empty(0), np.empty(0))
        return do(self)

    def improve(self, do: Callable[[Shard], BlockReport]) -> BlockReport:
        """Visit the examples with steps, and note what `end` and a synchronisation need."""
        store = self.store
        n_planes = int(store.used[0])
        self._before = grown(self._before, 0, n_planes)
        note_multipliers(store.arena, store.blocks, self.examples, self._before)
        store.stays = True
        report = self.look(do)
        self._before = grown(self._before, n_planes, int(store.used[0]))
        self._before[n_planes : store.used[0]] = 0.0  # new planes
        return report

    def oracle_pass(self, rule: StepRule, batch_size: int) -> BlockReport:
        """True oracle calls and steps."""
        if self.store.visits_in_order or rule.max_steps == 0:
            return self.store.oracle_pass(self.examples, rule)
        reports = [
            self.store.oracle_pass(batch, rule) for batch in batches(self.examples, batch_size)
        ]
        return BlockReport(*(np.concatenate(values) for values in zip(*reports, strict=True)))

    def ridge(self) -> float:
        """What squared slacks add to the curvature of the change."""
        store = self.store
        if store.formulation.slack != "l2":
            return 0.0
        return float(ridge_of_change(store.arena, store.blocks, self.examples, self._before))

    def end(self, step: float) -> None:
        """Keep so much of the change; planes may move again."""
        store = self.store
        if step < 1.0:
            move_back(store.arena, store.blocks, self.examples, self._before, step)
        store.keep_budget()


def deal(sizes: Floats, n_shards: int) -> Ints:
    """A shard for each example, so that all have about as many, and as much work.

    The largest are dealt out first, and every round begins where the last one has ended.
    """
    rounds, places = np.divmod(np.arange(len(sizes)), n_shards)
    owner = np.empty(len(sizes), np.int64)
    turned = np.where(rounds % 2, n_shards - 1 - places, places)
    owner[np.argsort(-sizes, kind="stable")] = turned
    return owner


def split(own: Ints, sizes: Floats, n_chunks: int) -> list[Ints]:
    """Pieces in a row of about the same size."""
    aims = sizes.sum() * np.arange(1, n_chunks) / n_chunks
    return np.split(own, np.searchsorted(np.cumsum(sizes), aims))


class ShardedPasses:
    """Shards, each with planes, multipliers and weights of its own, and passes over their blocks.

    Parameters
    ----------
    store : PlaneStore
        Empty; what the shards are made like.
    n_shards : int
        How many. Examples are dealt out by the work of their searches, if the problem tells it.
    """

    visits_in_order = True

    def __init__(self, store: PlaneStore, n_shards: int) -> None:
        self.oracle: Oracle = store.oracle
        self.formulation = store.formulation
        self.upper_bounds = store.upper_bounds
        self.dual_now = np.zeros(1)
        self.batch_size = 1
        self._search_work = store.search_work
        self.shards = [Shard(store.twin(n_shards)) for _ in range(n_shards)]
        sizes = getattr(store.oracle.problem, "search_sizes", None)
        self._sizes: Floats = np.ones(len(store.upper_bounds)) if sizes is None else sizes
        self._owner: Ints = deal(self._sizes, n_shards)
        self._base: Floats = np.zeros(len(store.w))
        self._own: Floats = np.zeros((n_shards, len(store.w)))  # weights of the shards, or space
        self._unite()
        self._total: Floats = np.empty(0)  # of the changes of all shards
        self._changed = np.zeros(0, np.bool_)  # stretches that have some
        # Stores with the same kernels.
        self._family = (type(store), type(store.oracle.problem), store.formulation)
        self._other_work = 0.0
        self._n_improved = 0  # blocks of a shard that steps were taken on, from the start

    def _unite(self) -> None:
        """Let the shards have the same weights, so that they have to take turns."""
        self._is_united = True
        for shard in self.shards:
            shard.store.w = self._base

    def _part(self) -> None:
        """Let every shard have weights of its own."""
        if not self._is_united:
            return

        def copy(first: int, last: int) -> None:
            self._own[:, first:last] = self._base[first:last]

        self._parallel_chunks("copy", copy)
        self._is_united = False
        for shard, own in zip(self.shards, self._own, strict=True):
            shard.store.w = own

    @property
    def n_shards(self) -> int:
        """See `BlockStore`."""
        return len(self.shards)

    @property
    def stores(self) -> list[PlaneStore]:
        """Those of the shards."""
        return [shard.store for shard in self.shards]

    # ----- threads ------------------------------------------------------------------------------

    def _each(
        self, kind: tuple[object, ...] | None, do: Callable[[int], Value], work: float = np.inf
    ) -> list[Value]:
        """Do something for each shard, in threads if there are some, and it is so much work.

        Without a kind, it is done for one after the other.
        """
        numbers, threads = range(len(self.shards)), self.oracle.threads
        if kind is not None and threads is not None and work > LEAST_WORK:
            return threads.each(do, numbers, (self._family, kind))
        return [do(k) for k in numbers]

    def _parallel_chunks(self, kind: str, do: Callable[[int, int], Value]) -> list[Value]:
        """Do something for ranges of weights, one for each shard, if there are many."""
        n, count = len(self._base), len(self.shards)
        if n < MANY:
            return [do(0, n)]
        size = -(-n // (count * STRETCH)) * STRETCH
        return self._each((kind,), lambda k: do(min(k * size, n), min((k + 1) * size, n)))

    # ----- passes -------------------------------------------------------------------------------

    def visit_order(self, order: Ints) -> Ints:
        """See `BlockStore`."""
        return order

    def oracle_pass(self, examples: Ints, rule: StepRule) -> BlockReport:
        """See `BlockStore`."""
        batch_size = max(self.batch_size, round(ASKED / self._search_work))

        def oracle_pass(shard: Shard) -> BlockReport:
            return shard.oracle_pass(rule, batch_size)

        work = len(examples) * self._search_work
        return self._pass(examples, rule, oracle_pass, work)

    def cached_pass(self, examples: Ints, rule: StepRule) -> Floats:
        """See `BlockStore`."""

        def cached_pass(shard: Shard) -> BlockReport:
            gaps = shard.store.cached_pass(shard.examples, rule)
            return BlockReport(gaps, gaps)

        return self._pass(examples, rule, cached_pass, 0.0).gaps

    def shortens_steps(self, n_visits: int) -> bool:
        """See `BlockStore`."""
        return False  # changes that lead too far together are cut when they are added up

    def certify_pass(
        self, examples: Ints, size: int, rule: StepRule
    ) -> Iterator[tuple[Ints, BlockReport]]:
        """See `BlockStore`."""
        for batch in batches(examples, size):
            yield batch, self.oracle_pass(batch, rule)

    def _pass(
        self,
        examples: Ints,
        rule: StepRule,
        do: Callable[[Shard], BlockReport],
        work: float,
    ) -> BlockReport:
        """Visit blocks; with steps in turns, or from one synchronisation to the next.

        These come after so much work of each shard, and more of it where they take long. Where
        there is too little to do for threads, the shards take turns: so do revisits, for they would
        lose more by interference than threads can gain.
        """
        report = BlockReport(np.empty(len(examples)), np.empty(len(examples)))
        owner = self._owner[examples]
        places = [np.flatnonzero(owner == k) for k in range(len(self.shards))]
        kind = (do.__name__, rule.max_steps > 0, rule.recombine)
        if rule.max_steps == 0:
            self._unite()
            self._improve(examples, places, lambda k: self.shards[k].look(do), report, kind)
        elif work <= LEAST_WORK:
            self._take_turns(examples, places, do, report, kind)
        else:
            each = work / len(examples)  # of an example
            few = self._n_turns(HANDED_OVER * len(self._base) / each)
            self._take_turns(examples, [own[:few] for own in places], do, report, kind)
            size = max(1.0, (VISITS + ADDING * len(self._base)) / each)
            sizes = self._sizes[examples]
            for chunk in self._cut([own[few:] for own in places], size, sizes):
                self._part()
                self._improve(examples, chunk, lambda k: self.shards[k].improve(do), report, kind)
                self._n_improved += max(map(len, chunk))
                self._synchronize()
        return report

    def _n_turns(self, size: float) -> int:
        """Examples of each shard for which pieces would be shorter than this."""
        return max(0, int(BEGINNING * (size - 1.0)) - self._n_improved)

    def _cut(self, places: Sequence[Ints], size: float, sizes: Floats) -> Iterator[Sequence[Ints]]:
        """Pieces of about so many examples of each shard, and shorter ones in the beginning.

        All pieces of a shard are about the same work, so that the shards end together.

        The first blocks of all make w what it is: to visit many of them at the same weights, and
        to add up what they ask for, would take a long time to mend.
        """
        rest = list(places)
        while self._n_improved < BEGINNING * size and max(map(len, rest)) > size:
            few = 1 + self._n_improved // BEGINNING
            yield [own[:few] for own in rest]
            rest = [own[few:] for own in rest]
        if max(map(len, rest)) == 0:
            return
        n_chunks = max(1, round(max(map(len, rest)) / size))
        yield from zip(*(split(own, sizes[own], n_chunks) for own in rest), strict=True)

    def _take_turns(
        self,
        examples: Ints,
        places: Sequence[Ints],
        do: Callable[[Shard], BlockReport],
        report: BlockReport,
        kind: tuple[object, ...],
    ) -> None:
        """Let one shard after the other improve its blocks."""
        if max(map(len, places)) == 0:
            return
        self._unite()

        def take_turn(k: int) -> BlockReport:
            shard = self.shards[k]
            found = shard.improve(do)
            shard.end(1.0)
            self.dual_now[0] += shard.gain
            return found

        self._improve(examples, places, take_turn, report)
        note_done((self._family, kind))
        self._n_improved += max(map(len, places))

    def _improve(
        self,
        examples: Ints,
        places: Sequence[Ints],
        do: Callable[[int], BlockReport],
        report: BlockReport,
        kind: tuple[object, ...] | None = None,
    ) -> None:
        """Let every shard visit its examples; in threads where a kind of work is given."""
        for shard, place in zip(self.shards, places, strict=True):
            shard.examples = examples[place]
        before = [store.work for store in self.stores]
        found = self._each(kind, do)
        if kind is not None:  # what is done at the same time counts once
            done = [store.work - was for store, was in zip(self.stores, before, strict=True)]
            self._other_work -= sum(done) - max(done)
        for place, (gaps, hinges) in zip(places, found, strict=True):
            report.gaps[place], report.hinges[place] = gaps, hinges
        self._note_results()

    def _note_results(self) -> None:
        """Count the calls of the shards' oracles, and keep the bounds that came with answers."""
        for shard in self.shards:
            oracle = shard.store.oracle
            self.oracle.count(oracle.calls)
            oracle.calls = 0
            if oracle.bounds is not None:
                if self.oracle.bounds is None:
                    self.oracle.bounds = oracle.bounds.copy()
                self.oracle.bounds[shard.examples] = oracle.bounds[shard.examples]

    # ----- synchronisation ----------------------------------------------------------------------

    def _synchronize(self) -> None:
        """Add up the changes of all shards, as far as that is best for the dual."""
        ridge = sum(shard.ridge() for shard in self.shards)
        gains = sum(shard.gain for shard in self.shards)
        by_shard, curvature = self._add_all()
        slope, curvature = gains + 0.5 * (by_shard + ridge), curvature + ridge
        step = 1.0
        if slope < NEARLY_FULL * curvature:
            step = max(slope / curvature, 0.0)
            self._move_back(1.0 - step)
        for shard in self.shards:
            shard.end(step)
        self.dual_now[0] += step * (slope - 0.5 * step * curvature)

    def _add_all(self) -> tuple[float, float]:
        """Add up all weights; returns the squares of the shards' changes, and that of their sum."""
        n, base, own = len(self._base), self._base, self._own
        if len(self._total) != n:
            self._total, self._changed = np.empty(n), np.zeros(-(-n // STRETCH), np.bool_)
        total, changed = self._total, self._changed

        def add(first: int, last: int) -> Floats:
            squares = np.zeros(len(own) + 1)
            add_changes(base, own, first, last, np.empty(STRETCH), squares, total, changed)
            return squares

        squares = np.sum(self._parallel_chunks("add", add), axis=0)
        return float(squares[:-1].sum()), float(squares[-1])

    def _move_back(self, feature_block: float) -> None:
        """Take back so much of the changes that were added to the weights."""
        total, changed, base, own = self._total, self._changed, self._base, self._own

        def take(first: int, last: int) -> None:
            add_shard(base, own, first, last, -feature_block, total, changed)

        self._parallel_chunks("move back", take)
