"""The plane store: each example's working set of planes and multipliers, within a byte budget.

Planes ``(b, a)`` of example i and their multipliers alpha form block i of the dual

    D(alpha) = sum alpha b - 1/2 |w|^2,   w = sum alpha a,   alpha >= 0,   sum_block alpha <= cap_i

or, for squared slacks, without the bound but with ``- 1/2 sum_i ridge_i (sum_block alpha)^2`` and
``ridge_i = 1 / (2 cap_i)``. ``cap_i`` is ``C`` times the example's weight.

A store answers for the solver what needs planes: absorb the oracle's new planes and improve their
blocks (`oracle_pass`), improve blocks from what is stored (`cached_pass`), and account for the
dual. The arithmetic is in `plane_kernels`; this file owns the arrays, their growth and the budget.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from copy import copy
from typing import NamedTuple, Protocol

import numpy as np

from ..cutting_planes import longest_row
from ..formulation import Formulation
from ..objective import dual_value, line_step, ridges, scale_to_fit
from ..schema import Count, Number, checked_arrays, from_values, numbers, whole
from ..types import Floats, Ints
from .arena import (
    LARGE,
    MORE_THAN_SAID,
    MOST_PLANES,
    MOST_SMALL_IDS,
    SMALL,
    Arena,
    Blocks,
    Places,
    StoreArrays,
    arena_bytes,
    arena_of,
    arena_sizes,
    block_lists,
    entry_types,
    new_arena,
    new_places,
    new_scratch,
    resized_arena,
    resizing,
    restored_arena,
    with_large_entries,
)
from .compaction import keep_rows
from .cost_model import (
    ADDED_ENTRY,
    BLOCK,
    BLOCK_ENTRY,
    CALL,
    PLANE_ENTRY,
    REWRITTEN_ENTRY,
    WEIGHT,
)
from .feature_blocks import FeatureBlocks, mean_block_size
from .joint_planes import (
    NO_PRODUCTS,
    KnownProducts,
    PlaneRows,
    add_rows,
    copied_planes,
    row_values,
    solve_planes_jointly,
)
from .joint_qp import JointPlanes, JointSolution, solve_jointly
from .oracle import Oracle, OracleResult, batches
from .plane_kernels import (
    ENTRIES,
    absorb_planes,
    add_weighted_planes,
    block_sizes,
    cached_pass_blocks,
    compact_blocks,
    fits_small,
    mark_dead_planes,
    merge_planes,
)
from .state import (
    FULL,
    Arrays,
    StoredPlanes,
    add_prefix,
    check_budget,
    check_close,
    from_text,
    named_arrays,
    strip_prefix,
    to_text,
)

__all__ = ["BlockReport", "BlockStore", "PlaneStore", "StepRule", "make_store", "visits"]

logger = logging.getLogger(__name__)

# Fraction of live planes below which rewriting them pays, if so many are dead: they cost time too.
CROWDED, MANY_DEAD = 0.95, 32
LEAST_SPACE = 4  # times the space of one plane per example: with fewer, ascent is very slow
ONE = np.ones(1)
CARRY_LIMIT = 16  # extrapolations in a row that take the change of w for that of the planes


class StepRule(NamedTuple):
    """How a block is improved once its planes are scored.

    Parameters
    ----------
    kind : int
        Direction of a step, one of the constants of `block_steps`.
    max_steps : int
        Steps per visit; 0 only scores the block and stores a new plane.
    precision : float
        Stop stepping when the block's gap is at most this share of what it was.
    threshold : float
        Leave blocks alone whose gap is at most ``threshold * cap``.
    delta : float
        Store a new plane only if its score, the dual's slope in its multiplier, is at least this.
    seed : int
        Of the random order of coordinate steps.
    recombine : bool
        Whether a revisit may also look for a better recombination of the stored planes, where the
        store knows how.
    """

    kind: int
    max_steps: int
    precision: float = 0.0
    threshold: float = 0.0
    delta: float = 0.0
    seed: int = 0
    recombine: bool = False


class KeptNumbers(NamedTuple):
    """Counters that later decisions, and thereby results, depend on."""

    cache_bytes: Count
    work: Number
    n_evicted: Count
    remembered: Count
    warned_of_budget: Count


class BlockReport(NamedTuple):
    """What a pass over blocks saw: their gaps before any step, and their hinge values."""

    gaps: Floats
    hinges: Floats


class Push(NamedTuple):
    """A change of all multipliers, that of w, and of the dual what does not depend on w.

    ``linear`` and ``-held`` add to its slope, and ``ridge`` to its curvature.
    """

    change: Floats
    direction: Floats
    linear: float
    held: float
    ridge: float


class BlockStore(Protocol):
    """The blocks of one dual problem, as solvers use them.

    ``w`` is ``sum alpha a`` at all times, and ``dual_now[0]`` the dual value up to rounding.
    """

    oracle: Oracle
    formulation: Formulation
    upper_bounds: Floats
    dual_now: Floats
    #: Whether a visit costs no more than a revisit, so that stored planes save nothing.
    oracle_is_cheap: bool
    #: Whether a visit steps between the examples of a batch, so that batches may be long.
    visits_in_order: bool

    @property
    def least_batch(self) -> int:
        """Examples that a visit should have at least, for threads to pay; 0 without any."""

    def shortens_steps(self, n_visits: int) -> bool:
        """Whether so many visits are made in threads whose steps are shorter for that reason."""

    @property
    def work(self) -> float:
        """Work done so far, see `work`; what pays is judged by it."""

    @property
    def n_shards(self) -> int:
        """Pieces that the blocks are in, which threads can improve at the same time."""

    @property
    def w(self) -> Floats:
        """The weights."""

    @property
    def problem_weights(self) -> Floats:
        """The weights as the problem has them, also where ``w`` has only some for a while."""

    @property
    def n_planes(self) -> int:
        """Planes stored."""

    def visit_order(self, order: Ints) -> Ints:
        """The examples in an order that is as good as this one, and may be faster."""

    def oracle_pass(self, examples: Ints, rule: StepRule) -> BlockReport:
        """Ask the oracle at the current ``w`` for each example, and improve its block."""

    def certify_pass(
        self, examples: Ints, size: int, rule: StepRule
    ) -> Iterator[tuple[Ints, BlockReport]]:
        """Visit batches of so many examples by a rule without steps, so that ``w`` stays."""

    def cached_pass(self, examples: Ints, rule: StepRule) -> Floats:
        """Improve blocks from their stored planes alone; returns their gaps before."""

    def prepare_cached_passes(self) -> None:
        """Get ready for many revisits: until the next visit ``w`` may be any short form of it."""

    def extrapolate(self, factor: float) -> float:
        """Go on in the direction of the change since the last call; returns the dual's gain."""

    def solve_jointly(
        self, stop_gap: float, most_work: float, recombine: bool = False
    ) -> float | None:
        """Solve for the multipliers of all stored planes together; returns the gap left there.

        None, and nothing is changed, where that would take more work than it may. Where it may
        ``recombine``, planes that no oracle call has returned take part, if the store knows them.
        """

    def evict(self, idle_limit: int) -> None:
        """Drop planes without weight that ``idle_limit`` visits in a row left unused."""

    def rebuild(self) -> None:
        """Compute ``w`` afresh from the multipliers."""

    def move_to(self, w: Floats) -> None:
        """Go on from other weights, in which blocks that lie elsewhere have their part.

        Steps then improve these blocks while those stay; `rebuild` returns to the own sum.
        """

    def dual_sums(self) -> tuple[float, Floats]:
        """Sum of the multipliers times their planes' offsets, and their sum in each block."""

    def dual(self) -> float:
        """The dual value, computed afresh."""

    def rescale(self, upper_bounds: Floats) -> None:
        """Change the bounds of the blocks, scaling multipliers and ``w`` to fit."""

    def take_over(self, earlier: BlockStore) -> None:
        """Begin with the planes and multipliers of a store of the first of these examples.

        Their bounds may be others; `rescale` is still to be called.
        """

    def arrays(self) -> Arrays:
        """All that `restore` needs besides the problem, as arrays by name."""

    def restore(self, arrays: Arrays) -> None:
        """Take over what `arrays` of a store of equal data, formulation and bounds has given."""

    def proven_dual(self) -> float:
        """See `SolverState`."""

    def planes_at(self, w: Floats) -> list[StoredPlanes]:
        """See `SolverState`."""


def make_store(
    oracle: Oracle, upper_bounds: Floats, cache_bytes: int, n_shards: int = 1
) -> BlockStore:
    """Return the problem's own compact store, or the general one; in shares where it can be."""
    store = _whole_store(oracle, upper_bounds, cache_bytes)
    if (
        n_shards > 1
        and isinstance(store, PlaneStore)
        and store.divides
        and oracle.feasible_set is None
    ):
        from .sharding import ShardedStore

        return ShardedStore(store, n_shards)
    return store


def _whole_store(oracle: Oracle, upper_bounds: Floats, cache_bytes: int) -> BlockStore:
    """The blocks in one piece."""
    if oracle.feasible_set is not None:
        from .constrained_store import BoundedStore, ConstrainedStore

        kind = BoundedStore if oracle.has_bounds else ConstrainedStore
        return kind(oracle, upper_bounds, cache_bytes)
    store = oracle.accelerators.store(oracle, upper_bounds, cache_bytes)
    return store or PlaneStore(oracle, upper_bounds, cache_bytes)


def visits(
    store: BlockStore, examples: Ints, size: int, rule: StepRule
) -> Iterator[tuple[Ints, BlockReport]]:
    """Visit batches of so many examples, one after the other."""
    return ((batch, store.oracle_pass(batch, rule)) for batch in batches(examples, size))


class PlaneStore:
    """Working sets of sparse planes for any problem; see `BlockStore` for the methods.

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

    oracle_is_cheap = False
    visits_in_order = False
    least_batch = 0
    n_shards = 1
    #: Whether the blocks can be cut into shares, by `twin`.
    divides = True
    #: Entries that `plane_rows` makes of an entry of a stored plane.
    entry_size = 1.0

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

    def shortens_steps(self, n_visits: int) -> bool:
        """See `BlockStore`."""
        return False

    @property
    def search_work(self) -> float:
        """Work of an oracle call, on average, by which hand-overs of shares are timed."""
        return float(getattr(self.oracle.problem, "search_work", self.oracle.work))

    def twin(self, count: int) -> PlaneStore:
        """An empty store of the same problem, one of ``count`` that have the blocks together."""
        twin = copy(self)
        twin.oracle = copy(self.oracle)
        twin.cache_bytes = self.cache_bytes // count
        twin._make_arrays(len(self.upper_bounds) // count)
        return twin

    @property
    def counts_blocks(self) -> bool:
        """Whether values of planes are small whole numbers, as far as one can tell before."""
        return self.oracle.in_blocks and self.formulation.rescaling == "margin"

    def _new_places(self) -> Places:
        """A table of the parts of a block, whichever they are."""
        return new_places(self.feature_blocks.n_feature_blocks)

    @property
    def problem_weights(self) -> Floats:
        """See `BlockStore`."""
        return self.w

    @property
    def n_planes(self) -> int:
        """Planes that are stored and alive."""
        return int(self.arena.alive[: self.used[0]].sum())

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that the budget counts."""
        return sum(array.nbytes for array in self.arena)

    def rebuild(self) -> None:
        """Compute ``w`` afresh from the multipliers."""
        self.w = self._sum_of_planes(self.arena.alpha)
        self._w_before = None

    def move_to(self, w: Floats) -> None:
        """See `BlockStore`."""
        self.w = w.copy()
        self._w_before = None

    def dual_sums(self) -> tuple[float, Floats]:
        """See `BlockStore`."""
        p = self.used[0]
        linear = float(self.arena.alpha[:p] @ self.arena.offset[:p])
        return linear, self._block_sums(self.arena.alpha[:p])

    def dual(self) -> float:
        """The dual value, from the multipliers and ``w``."""
        linear, sums = self.dual_sums()
        value = dual_value(self.w, linear, self.formulation, 1.0, sums, self.upper_bounds)
        self.dual_now[0] = value
        return value

    @property
    def _arrays(self) -> StoreArrays:
        """What kernels work on; growing replaces some of it."""
        return StoreArrays(
            self.arena,
            self.feature_blocks,
            self.blocks,
            self.used,
            self.scratch,
            self.w,
            self.dual_now,
        )

    def _block_sums(self, per_plane: Floats) -> Floats:
        """Each block's sum of what is given per plane."""
        block = self.arena.block[: len(per_plane)]
        return np.bincount(block, per_plane, len(self.upper_bounds)).astype(np.float64, copy=False)

    # ----- passes -------------------------------------------------------------------------------

    def visit_order(self, order: Ints) -> Ints:
        """See `BlockStore`."""
        return order

    def oracle_pass(self, examples: Ints, rule: StepRule) -> BlockReport:
        """Ask the oracle for each example's plane at the current ``w``, and absorb them."""
        oracle_result = self._call_oracle(examples)
        self.work += len(examples) * self.oracle.work
        report = self.absorb(examples, oracle_result, rule)
        # In a batch the weights move on between the oracle and the check, unless no step is taken.
        if len(examples) == 1 or rule.max_steps == 0:
            self.oracle.compare(examples, report.hinges)
        return report

    def certify_pass(
        self, examples: Ints, size: int, rule: StepRule
    ) -> Iterator[tuple[Ints, BlockReport]]:
        """See `BlockStore`."""
        if self.oracle.threads is None:
            yield from visits(self, examples, size, rule)
            return
        for batch, oracle_result in self.oracle.call_all(examples, self.w, size, in_blocks=True):
            self.work += len(batch) * self.oracle.work
            report = self.absorb(batch, oracle_result, rule)
            self.oracle.compare(batch, report.hinges)
            yield batch, report

    def _call_oracle(self, examples: Ints) -> OracleResult:
        """The oracle's answers at the current ``w``."""
        return self.oracle.call(examples, self.w)

    def absorb(self, examples: Ints, oracle_result: OracleResult, rule: StepRule) -> BlockReport:
        """Store each example's new plane if it is the block's most violated; improve the block."""
        report = BlockReport(np.empty(len(examples)), np.empty(len(examples)))
        longest = longest_row(oracle_result.planes)
        self.work += self.work_on(examples)
        done = 0
        while True:
            self.reserve_scratch(examples, longest)
            done = absorb_planes(self._arrays, examples, oracle_result, rule, done, report)
            if done == len(examples):
                return report
            planes, scale = oracle_result.planes, oracle_result.scales[done]
            if entry_types(self.arena) is SMALL and not fits_small(planes, done, scale):
                self.arena = with_large_entries(self.arena)
            self._reserve(longest + int(self.blocks.n_features[examples[done:]].max()))

    def cached_pass(self, examples: Ints, rule: StepRule) -> Floats:
        """Improve blocks from their stored planes alone; returns their gaps before."""
        gaps = np.empty(len(examples))
        self.reserve_scratch(examples, 0)
        self.work += self.work_on(examples)
        cached_pass_blocks(self._arrays, examples, rule, gaps)
        return gaps

    def prepare_cached_passes(self) -> None:
        """See `BlockStore`."""

    def work_on(self, examples: Ints) -> float:
        """Work of scoring the planes of these blocks, and of steps on them."""
        n_planes, n_entries = self.used[0], self.used[ENTRIES]
        per_plane = PLANE_ENTRY * float(n_entries) / max(float(n_planes), 1.0)
        _, features, _, planes = block_sizes(self.blocks.n_features, self.blocks.count, examples)
        blocks = BLOCK * len(examples) + self._block_work * features + per_plane * planes
        return CALL + blocks

    def extrapolate(self, factor: float) -> float:
        """Go on by ``factor`` times the change of the multipliers since the last call.

        The goal is clipped to the feasible set, and the step to it is cut where the dual is
        largest, so the dual never falls. Returns its increase. With a factor of 0 the current
        multipliers are only remembered.
        """
        w_before = self._remember_w()
        push = self.push(factor, carried=w_before is not None)
        if push is None:
            return 0.0
        self.work += CALL + WEIGHT * len(self.w) + ADDED_ENTRY * self.n_entries
        direction = push.direction
        if w_before is not None:
            direction += factor * (self.w - w_before)
        slope = push.linear - float(direction @ self.w) - push.held
        curvature = float(direction @ direction) + push.ridge
        step, gain = self._line_step(direction, slope, curvature)
        if gain == 0.0:
            return 0.0
        self.arena.alpha[: self.used[0]] += step * push.change
        direction *= step
        self.w += direction
        self.dual_now[0] += gain
        return gain

    def push(self, factor: float, carried: bool, space: Floats | None = None) -> Push | None:
        """Where `extrapolate` goes, and what its planes say of the dual there.

        If it is ``carried``, ``direction`` lacks ``factor`` times the change of w since the last
        call; it is made in the ``space``, if there is one. None if the factor is 0.
        """
        p = self.used[0]
        now, before, block = self.arena.alpha[:p], self.arena.before[:p], self.arena.block[:p]
        free = factor * (now - before)
        goal = np.maximum(now + free, 0.0)
        before[:] = now
        if factor == 0.0:
            return None
        if self.formulation.slack == "l1":
            sums = self._block_sums(goal)
            # A full block stays full but for rounding, and that is no reason to change its planes.
            over = sums > self.upper_bounds * (1.0 + 1e-14)
            goal *= np.where(over, self.upper_bounds / np.where(over, sums, 1.0), 1.0)[block]
        change = goal - now
        clipped = np.where(goal == now + free, 0.0, change - free) if carried else change
        linear, held, ridge = float(change @ self.arena.offset[:p]), 0.0, 0.0
        if self.formulation.slack == "l2":
            sums, ridges = self._block_sums(change), self.blocks.ridge
            held = float(self._block_sums(now) * ridges @ sums)
            ridge = float(sums * ridges @ sums)
        return Push(change, self._sum_of_planes(clipped, space), linear, held, ridge)

    def _line_step(self, direction: Floats, slope: float, curvature: float) -> tuple[float, float]:
        """Best step in [0, 1] along a direction of w, and the dual's increase."""
        return line_step(slope, curvature, float(self.dual_now[0]))

    def solve_jointly(
        self, stop_gap: float, most_work: float, recombine: bool = False
    ) -> float | None:
        """See `BlockStore.solve_jointly`."""
        return solve_planes_jointly(self, stop_gap, most_work)

    def solve_joint(
        self,
        planes: JointPlanes,
        rows: PlaneRows,
        feature_blocks: FeatureBlocks,
        stop_gap: float,
        most_work: float,
    ) -> JointSolution:
        """Solve for the multipliers of planes, which are these rows of parts."""
        return solve_jointly(planes, stop_gap, most_work)

    def plane_rows(self, planes: Ints) -> tuple[PlaneRows, FeatureBlocks]:
        """Stored planes as rows, and the parts that these are counted in."""
        return copied_planes(self, planes), self.feature_blocks

    def _remember_w(self) -> Floats | None:
        """Keep the current ``w`` for the next extrapolation; returns what the last one kept.

        The change of ``w`` spares adding up all planes, where ``w`` is shorter than they are. But
        it carries the rounding of ``w`` on and on, so it is not used many times in a row.
        """
        last = self._w_before if self._remembered < CARRY_LIMIT else None
        self._remembered = 0 if last is None else self._remembered + 1
        self._w_before = self.w.copy() if len(self.w) < self.n_entries else None
        return last

    @property
    def n_entries(self) -> float:
        """Entries of all stored planes, those of parts one by one."""
        return self.entry_size * float(self.used[ENTRIES])

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

    def rescale(self, upper_bounds: Floats) -> None:
        """Change the bounds of the blocks, scaling all multipliers by one factor that fits."""
        linear, sums = self.dual_sums()
        factor = scale_to_fit(
            self.w, linear, self.formulation, sums, self.upper_bounds, upper_bounds
        )
        self.w *= factor
        self.scale(factor, upper_bounds)
        self.dual()

    def scale(self, factor: float, upper_bounds: Floats) -> None:
        """Scale all multipliers, but not ``w``, and change the bounds."""
        self.arena.alpha[: self.used[0]] *= factor
        self.upper_bounds = upper_bounds
        self.blocks = self.blocks._replace(
            upper_bound=upper_bounds, ridge=ridges(self.formulation, upper_bounds)
        )
        self.known_products = NO_PRODUCTS  # a run starts without, from arrays or not

    def evict(self, idle_limit: int) -> None:
        """Drop planes without weight that ``idle_limit`` visits in a row left unused."""
        self._drop_idle(idle_limit)
        live, stored = self.n_planes, int(self.used[0])
        if live < CROWDED * stored and stored - live >= MANY_DEAD:
            self._compact()

    def empty(self, examples: Ints) -> None:
        """Drop all planes of these blocks, whatever their weight."""
        dropped = np.isin(self.arena.block[: self.used[0]], examples)
        for array in (self.arena.alive, self.arena.alpha, self.arena.before):
            array[: self.used[0]][dropped] = 0
        self.known_products = NO_PRODUCTS
        self._compact()
        self.rebuild()
        self.dual()

    def _drop_idle(self, idle_limit: int) -> None:
        """Mark such planes dead; what they were before is forgotten, also in what w was before."""
        self.n_rewritten += 1
        now = self.arena.before[: self.used[0]]
        before = now.copy()
        self.n_evicted += mark_dead_planes(self.arena, self.used[0], idle_limit)
        if self._w_before is not None:
            self.add_planes(now - before, self._w_before)

    # ----- state --------------------------------------------------------------------------------

    def take_over(self, earlier: BlockStore) -> None:
        """See `BlockStore`."""
        assert isinstance(earlier, PlaneStore)
        arrays = earlier.arrays()
        arena = arena_of(strip_prefix("arena", arrays))
        # Single weights are numbered behind the rows, of which there are more now.
        single = arena.new_features >= earlier.feature_blocks.n_row_blocks
        arena.new_features[single] += (
            self.feature_blocks.n_row_blocks - earlier.feature_blocks.n_row_blocks
        )
        self.used = arrays["used"].copy()
        self.arena = resized_arena(arena, self.used, arrays["sizes"].tolist())
        longer = {
            name: np.concatenate([values, getattr(self.blocks, name)[len(values) :]])
            for name, values in strip_prefix("blocks", arrays).items()
        }
        longer["upper_bound"][len(earlier.upper_bounds) :] = 0.0
        self.blocks, self.upper_bounds = Blocks(**longer), longer["upper_bound"]
        self.rebuild()

    def arrays(self) -> Arrays:
        """See `BlockStore`; only what is filled of the arena."""
        planes, entries, features, gram = (int(used) for used in self.used)
        full = resized_arena(self.arena, self.used, [planes, entries, features, gram])
        remembered = {} if self._w_before is None else {"w_before": self._w_before}
        return {
            **add_prefix("arena", named_arrays(full)),
            **add_prefix("blocks", named_arrays(self.blocks)),
            **add_prefix("known", named_arrays(self.known_products)),
            **{name: getattr(self, name) for name in ("used", "upper_bounds", "w", "dual_now")},
            **remembered,
            "sizes": np.array(arena_sizes(self.arena)),
            "numbers": to_text(
                KeptNumbers(
                    self.cache_bytes,
                    self.work,
                    self.n_evicted,
                    self._remembered,
                    self._warned_of_budget,
                )._asdict()
            ),
        }

    def restore(self, arrays: Arrays) -> None:
        """See `BlockStore`."""
        n, d = len(self.upper_bounds), len(self.w)
        sizes = {name: whole(4, below=2**40) for name in ("used", "sizes")}
        of_weights = {name: numbers(d) for name in ("w", "w_before") if name in arrays}
        own = checked_arrays(arrays, sizes | of_weights | {"dual_now": numbers(1)})
        used, capacity = own["used"], own["sizes"]
        filled = restored_arena(strip_prefix("arena", arrays), used, n, self._n_parts)
        lists = block_lists(filled, n)
        self._check_parts(filled)
        sums = np.bincount(filled.block, filled.alpha, n).astype(np.float64, copy=False)
        self._check_multipliers(sums, arrays)
        known, m = strip_prefix("known", arrays), len(arrays["known.ids"])
        known = checked_arrays(known, {"ids": whole(m, below=used[0]), "gram": numbers(m, m)})
        if len(np.unique(known["ids"])) < m:
            raise ValueError("known.ids: expected different planes")
        numbered = from_values(KeptNumbers, from_text(arrays["numbers"]), "numbers")
        of_entries, held = entry_types(filled), sum(array.nbytes for array in filled)
        check_budget(arena_bytes(capacity.tolist(), of_entries), self.cache_bytes, held)
        if (capacity < used).any():
            raise ValueError("sizes: expected no less than what is used")
        self.cache_bytes = check_budget(numbered.cache_bytes, self.cache_bytes, self.beside + held)
        _, self.work, self.n_evicted, self._remembered, self._warned_of_budget = numbered
        self.arena, self.used = resized_arena(filled, used, capacity.tolist()), used
        self.blocks = Blocks(
            **lists,
            upper_bound=self.upper_bounds,
            ridge=ridges(self.formulation, self.upper_bounds),
        )
        self.known_products = KnownProducts(**known)
        self.w, self.dual_now = own["w"], own["dual_now"]
        self._w_before = own.get("w_before")

    @property
    def _n_parts(self) -> int:
        """How many parts dictionaries may name."""
        return self.feature_blocks.n_feature_blocks

    def _check_parts(self, arena: Arena) -> None:
        """Raise ValueError where a block has parts that only others may have."""

    def _check_multipliers(self, sums: Floats, arrays: Arrays) -> None:
        """Raise ValueError where the blocks' sums of multipliers out of a file are too large."""
        n = len(self.upper_bounds)
        of_blocks = checked_arrays(arrays, {"upper_bounds": numbers(n, low=0.0)})
        if not np.array_equal(of_blocks["upper_bounds"], self.upper_bounds):
            raise ValueError("caps: expected C times the weights of the examples")
        limited = (self.upper_bounds == 0.0) | (self.formulation.slack == "l1")
        if not (sums[limited] <= self.upper_bounds[limited] * (1.0 + FULL)).all():
            raise ValueError("arena.alpha: the sum of a block's multipliers is more than its bound")

    def sum_of_multipliers(self, before: bool) -> tuple[Floats, float]:
        """The sum that ``w`` is, of multipliers as they are or were, and the size of its terms."""
        arena, p, entries = self.arena, self.used[0], self.used[ENTRIES]
        alpha = arena.before if before else arena.alpha
        largest = np.abs(arena.values[:entries]).max(initial=0) * alpha[:p].max(initial=0.0)
        return self._sum_of_planes(alpha), float(largest)

    def proven_dual(self) -> float:
        """See `SolverState`."""
        for kept, before in ((self._w_before, True), (self.w, False)):
            if kept is not None:
                total, scale = self.sum_of_multipliers(before)
                check_close(kept, total, scale, "w_before" if before else "w")
        linear, sums = self.dual_sums()
        return dual_value(total, linear, self.formulation, 1.0, sums, self.upper_bounds)

    def planes_at(self, w: Floats) -> list[StoredPlanes]:
        """See `SolverState`."""
        live = np.flatnonzero(self.arena.alive[: self.used[0]])
        rows, feature_blocks = self.plane_rows(live)
        offsets = self.arena.offset[live]
        owners = self.arena.block[live].astype(np.int64)

        def vector(k: int) -> Floats:
            total = np.zeros(len(w))
            add_rows(
                rows._replace(first=rows.first[k:], last=rows.last[k:]), feature_blocks, ONE, total
            )
            return total

        return [
            StoredPlanes(owners, offsets - row_values(rows, feature_blocks, w), offsets, vector)
        ]

    # ----- memory -------------------------------------------------------------------------------

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
