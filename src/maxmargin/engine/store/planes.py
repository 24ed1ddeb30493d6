"""The plane store: each example's working set of planes and multipliers; see `block_store`.

The arithmetic is in `plane_kernels`, and the arrays with their budget in `plane_memory`.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import NamedTuple

import numpy as np

from ...core.cutting_planes import longest_row
from ...core.objective import dual_value, line_step, ridges, scale_to_fit
from ...utils.schema import Count, Number, checked_arrays, from_values, numbers, whole
from ...utils.types import Floats, Ints
from ..cost_model import ADDED_ENTRY, BLOCK, CALL, PLANE_ENTRY, WEIGHT
from ..feature_blocks import FeatureBlocks
from ..oracle import OracleResult
from ..steps.joint_qp import JointPlanes, JointSolution, solve_jointly
from ..training.state import (
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
from .arena import (
    SMALL,
    Arena,
    Blocks,
    StoreArrays,
    arena_bytes,
    arena_of,
    arena_sizes,
    block_lists,
    entry_types,
    resized_arena,
    restored_arena,
    with_large_entries,
)
from .block_store import BlockReport, BlockStore, StepRule, visits
from .joint_planes import (
    NO_PRODUCTS,
    KnownProducts,
    PlaneRows,
    add_rows,
    copied_planes,
    row_values,
    solve_planes_jointly,
)
from .plane_kernels import ENTRIES, absorb_planes, block_sizes, cached_pass_blocks, fits_small
from .plane_memory import PlaneMemory

__all__ = ["PlaneStore"]

# Fraction of live planes below which rewriting them pays, if so many are dead: they cost time too.
CROWDED, MANY_DEAD = 0.95, 32
ONE = np.ones(1)
CARRY_LIMIT = 16  # extrapolations in a row that take the change of w for that of the planes


class KeptNumbers(NamedTuple):
    """Counters that later decisions, and thereby results, depend on."""

    cache_bytes: Count
    work: Number
    n_evicted: Count
    remembered: Count
    warned_of_budget: Count


class Push(NamedTuple):
    """A change of all multipliers, that of w, and of the dual what does not depend on w.

    ``linear`` and ``-held`` add to its slope, and ``ridge`` to its curvature.
    """

    change: Floats
    direction: Floats
    linear: float
    held: float
    ridge: float


class PlaneStore(PlaneMemory):
    """Working sets of sparse planes for any problem; see `BlockStore` for the methods."""

    oracle_is_cheap = False
    visits_in_order = False
    least_batch = 0
    n_shards = 1
    #: Whether the blocks can be cut into shares, by `twin`.
    divides = True
    #: Entries that `plane_rows` makes of an entry of a stored plane.
    entry_size = 1.0

    def shortens_steps(self, n_visits: int) -> bool:
        """See `BlockStore`."""
        return False

    @property
    def search_work(self) -> float:
        """Work of an oracle call, on average, by which synchronisations of shards are timed."""
        return float(getattr(self.oracle.problem, "search_work", self.oracle.work))

    def twin(self, count: int) -> PlaneStore:
        """An empty store of the same problem, one of ``count`` that have the blocks together."""
        twin = copy(self)
        twin.oracle = copy(self.oracle)
        twin.cache_bytes = self.cache_bytes // count
        twin._make_arrays(len(self.upper_bounds) // count)
        return twin

    @property
    def problem_weights(self) -> Floats:
        """See `BlockStore`."""
        return self.w

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
            raise ValueError("upper_bounds: expected C times the weights of the examples")
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
