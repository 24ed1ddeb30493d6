"""Blocks in shares: passes with steps by several threads, the same bits for any number of them.

The examples are cut into shares, each with planes, multipliers and weights w of its own. A pass
goes from one synchronisation to the next: every shard improves some of its blocks, as if the others
stood still, and then the changes of all are added up,

    w <- w + step * sum_k d_k,     alpha likewise, for the blocks that were visited.

The dual is a quadratic of the step, whose slope and curvature follow from the gains of the shares
and from |d_k|^2 and |sum d_k|^2. A step in [0, 1] is feasible, for the blocks' multipliers are
convex combinations of what they were and are. Where changes have little in common the step is 1;
where that would be much too far, it is the best one, so that the dual never falls (block-diagonal
bounds with adding up, as in CoCoA+; Ma et al. 2015).

Where synchronising would take longer than threads gain, the shares take turns at the same w.

What is handed over, and when, depends on the shares and not on threads: with one thread, or two,
the result is the same. Nothing here depends on a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from ...core.objective import dual_value, line_step, scale_to_fit
from ...utils.schema import Count, Number, checked_arrays, from_values, numbers, whole
from ...utils.types import Floats, Ints
from ..cost_model import ADDED_ENTRY, CALL, WEIGHT
from ..oracle import Oracle
from ..parallel.threads import count_threads, note_done
from ..training.state import (
    Arrays,
    StoredPlanes,
    add_prefix,
    check_close,
    from_text,
    strip_prefix,
    to_text,
)
from ..violations import batches
from .block_store import BlockReport, BlockStore, StepRule
from .planes import CARRY_LIMIT, PlaneStore
from .shard import Shard, deal, split
from .sharding_kernels import STRETCH, add_changes, add_pushes, add_shard

__all__ = ["ShardedStore", "count_shards", "shards_in"]

Value = TypeVar("Value")

# Work of each shard between synchronisations, and what is added for each weight; that of
# handing over a weight.
VISITS, ADDING, HANDED_OVER = 4e6, 30.0, 2.0
# Work that is too little for threads: handing it over takes as long.
LEAST_WORK = 1e6
# A full step is taken where the best one is at least this: it gains 94 % as much, or more.
NEARLY_FULL = 0.8
BEGINNING = 4  # so many times the blocks of a piece were improved before
# Work of the searches that a share asks its oracle for at a time, at the same weights. Between two
# calls it needs the GIL, for long against a short search; but old weights cost passes.
ASKED = 8e5
MANY = 2**17  # weights from which on threads share the work of adding up
LEAST_SEARCH = 5e4  # work of an oracle call
FEWEST = 126  # examples of a share: for few, all planes are solved for together


class ShardedStore:
    """The blocks of a `PlaneStore` in shares; see `BlockStore` for the methods.

    Parameters
    ----------
    store : PlaneStore
        Empty; what the shares are made like.
    n_shards : int
        How many. Examples are dealt out by the work of their searches, if the problem tells it.
    """

    oracle_is_cheap = False
    visits_in_order = True
    least_batch = 0

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
        self._own: Floats = np.zeros((n_shards, len(store.w)))  # weights of the shares, or space
        self._unite()
        self._total: Floats = np.empty(0)  # of the changes of all shares
        self._changed = np.zeros(0, np.bool_)  # stretches that have some
        # Stores with the same kernels.
        self._family = (type(store), type(store.oracle.problem), store.formulation)
        self._other_work = 0.0
        self._n_improved = 0  # blocks of a share that steps were taken on, from the start
        self._w_before: Floats | None = None
        self._remembered = 0
        self._rewritten = 0

    def _unite(self) -> None:
        """Let the shares have the same weights, so that they have to take turns."""
        self._is_united = True
        for shard in self.shards:
            shard.store.w = self._base

    def _part(self) -> None:
        """Let every share have weights of its own."""
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
        """Those of the shares."""
        return [shard.store for shard in self.shards]

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
        """See `BlockStore`: as if there were a thread for each share."""
        return self._other_work + sum(store.work for store in self.stores)

    # ----- threads ------------------------------------------------------------------------------

    def _each(
        self, kind: tuple[object, ...] | None, do: Callable[[int], Value], work: float = np.inf
    ) -> list[Value]:
        """Do something for each share, in threads if there are some, and it is so much work.

        Without a kind, it is done for one after the other.
        """
        numbers, threads = range(len(self.shards)), self.oracle.threads
        if kind is not None and threads is not None and work > LEAST_WORK:
            return threads.each(do, numbers, (self._family, kind))
        return [do(k) for k in numbers]

    def _parallel_chunks(self, kind: str, do: Callable[[int, int], Value]) -> list[Value]:
        """Do something for ranges of weights, one for each share, if there are many."""
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

        These come after so much work of each share, and more of it where they take long. Where
        there is too little to do for threads, the shares take turns: so do revisits, for they would
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
        """Examples of each share for which pieces would be shorter than this."""
        return max(0, int(BEGINNING * (size - 1.0)) - self._n_improved)

    def _cut(self, places: Sequence[Ints], size: float, sizes: Floats) -> Iterator[Sequence[Ints]]:
        """Pieces of about so many examples of each share, and shorter ones in the beginning.

        All pieces of a share are about the same work, so that the shares end together.

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
        """Let one share after the other improve its blocks."""
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
        """Let every share visit its examples; in threads where a kind of work is given."""
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
        """Count the calls of the shares' oracles, and keep the bounds that came with answers."""
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
        """Add up the changes of all shares, as far as that is best for the dual."""
        ridge = sum(shard.ridge() for shard in self.shards)
        gains = sum(shard.gain for shard in self.shards)
        by_share, curvature = self._add_all()
        slope, curvature = gains + 0.5 * (by_share + ridge), curvature + ridge
        step = 1.0
        if slope < NEARLY_FULL * curvature:
            step = max(slope / curvature, 0.0)
            self._move_back(1.0 - step)
        for shard in self.shards:
            shard.end(step)
        self.dual_now[0] += step * (slope - 0.5 * step * curvature)

    def _add_all(self) -> tuple[float, float]:
        """Add up all weights; returns the squares of the shares' changes, and that of their sum."""
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
        """Times that planes of some share were dropped or moved."""
        return sum(store.n_rewritten for store in self.stores)

    @property
    def _n_entries(self) -> float:
        """Entries of all stored planes."""
        return sum(store.n_entries for store in self.stores)

    # ----- the dual -----------------------------------------------------------------------------

    def solve_jointly(
        self, stop_gap: float, most_work: float, recombine: bool = False
    ) -> float | None:
        """See `BlockStore`; problems with so few planes are not cut into shares."""
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
        """See `BlockStore`; the earlier one has as many shares, or is a single store."""
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
    """How many shares the blocks of a problem are best cut into, for so many threads.

    With shares more passes are needed: that pays where most of a pass is the search.
    """
    problem = oracle.problem
    work = getattr(problem, "search_work", oracle.work)
    if work < LEAST_SEARCH or not getattr(problem, "in_threads", False):
        return 1
    return max(1, min(count_threads(n_jobs), oracle.n_examples // FEWEST))


def shards_in(arrays: Arrays) -> int:
    """How many shares the store has that these arrays are of."""
    if "shards" not in arrays:
        return 1
    return from_values(_KeptNumbers, from_text(arrays["shards"]), "shards").count
