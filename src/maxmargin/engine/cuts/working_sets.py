"""The n-slack working sets: every example's own constraints, with Gram matrices and multipliers.

All three kinds of slack are one dual,

    max  sum alpha b - 1/2 |w|^2 - 1/2 sum_i ridge_i A_i^2,   w = sum alpha a,   0 <= alpha,
    A_i = sum of the multipliers of example i <= cap_i,

with cap ``C s_i`` and no ridge (l1), ridge ``1 / (2 C s_i)`` and no cap (l2), or neither (hard
margin).
"""

from __future__ import annotations

import logging
from typing import NamedTuple

import numpy as np

from ...core.cutting_planes import longest_row
from ...core.objective import dual_value, ridges, scale_to_fit
from ...utils.schema import checked_arrays, numbers, whole
from ...utils.types import Floats, Ints, Ints32
from ..cost_model import BLOCK, BLOCK_ENTRY
from ..oracle import Oracle
from ..steps.joint_qp import JointPlanes, JointSolution, solve_jointly
from ..store.arena import MORE_THAN_SAID, grown
from ..store.compaction import keep_rows
from ..store.joint_planes import PlaneRows, row_values
from ..training.state import (
    FULL,
    Arrays,
    StoredPlanes,
    add_prefix,
    check_budget,
    check_close,
    named_arrays,
    strip_prefix,
)
from .joint_sets import solve_sets_jointly
from .set_kernels import (
    ENTRIES,
    GRAM,
    SLOTS,
    UNLIMITED,
    add_weighted,
    count_idle,
    drop_idle,
    examine_rows,
    improve_sets,
    keep_squares,
    relocate,
)

__all__ = ["Found", "WorkingSets"]

logger = logging.getLogger("maxmargin")

CAPACITY = 4  # slots of a block in the beginning
PER_SLOT = ("first", "last", "offset", "alpha", "idle")
SLOT, ENTRY = 40, 12  # bytes, beside 8 of a product
SPARE = 1.5  # room for planes that cannot be dropped, as a multiple of what they take


class Sets(NamedTuple):
    """Per block: where its slots and Gram entries are, cap, ridge. Per slot: its plane."""

    start: Ints
    capacity: Ints
    count: Ints  # type: ignore[assignment]
    gram_start: Ints
    upper_bound: Floats
    ridge: Floats
    first: Ints
    last: Ints
    offset: Floats
    alpha: Floats
    idle: Ints
    gram: Floats
    ids: Ints32
    values: Floats


class Scratch(NamedTuple):
    """Work arrays of the kernels; ``expanded`` is zero between calls."""

    products: Floats
    expanded: Floats
    scores: Floats
    alpha: Floats
    gram: Floats


class Found(NamedTuple):
    """What was seen of some examples: the oracle's values, the sets' slacks, planes added."""

    values: Floats
    slacks: Floats
    offsets: Floats
    added: int


class WorkingSets:
    """Constraints found so far, with their multipliers and ``w``.

    Parameters
    ----------
    oracle : Oracle
        Where constraints come from.
    caps : array of shape (n_examples,)
        ``C * sample_weight``.
    cache_bytes : int
        Budget for constraints and their products, copies while they are rewritten included. Where
        it is short those go that had no weight in the last solution of their working set; what is
        left is needed, and kept, whatever it takes.
    """

    visits_in_order = False  # see `BlockStore`

    def __init__(self, oracle: Oracle, upper_bounds: Floats, cache_bytes: int = 2**62) -> None:
        n, n_features = len(upper_bounds), oracle.n_features
        self.cache_bytes = cache_bytes
        self._warned_of = 0  # bytes
        self.oracle = oracle
        self.formulation = formulation = oracle.formulation
        self.feature_blocks = oracle.feature_blocks
        self.w: Floats = np.zeros(n_features)
        self.upper_bounds = upper_bounds
        self.work = 0.0  # done on blocks, see `work`
        capacity = CAPACITY if SPARE * n * _block_bytes(CAPACITY) <= self._room else 1
        slots, squares = capacity * n, capacity * capacity * n
        space = max(self._room - n * _block_bytes(capacity), 0) // (2 * ENTRY)
        entries = min(64 * n, space) + 1024
        self.used = np.array([slots, squares, 0])
        self.sets = Sets(
            capacity * np.arange(n),
            np.full(n, capacity),
            np.zeros(n, np.int64),
            capacity * capacity * np.arange(n),
            self._bounds(upper_bounds),
            ridges(formulation, upper_bounds),
            np.zeros(slots, np.int64),
            np.zeros(slots, np.int64),
            np.zeros(slots),
            np.zeros(slots),
            np.zeros(slots, np.int64),
            np.zeros(squares),
            np.zeros(entries, np.int32),
            np.zeros(entries),
        )
        self.scratch = Scratch(
            np.empty(256), np.zeros(n_features), np.empty(9), np.empty(9), np.empty((9, 9))
        )

    def _bounds(self, upper_bounds: Floats) -> Floats:
        """Caps as the kernels want them: beyond any limit for hard margins."""
        return (
            np.where(upper_bounds > 0, UNLIMITED, 0.0)
            if self.formulation.slack == "none"
            else upper_bounds
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the constraints and their products."""
        sets = self.sets
        return SLOT * len(sets.first) + 8 * len(sets.gram) + ENTRY * len(sets.ids)

    @property
    def _room(self) -> int:
        """Bytes for them. They are rewritten from time to time: for a while there are two."""
        return self.cache_bytes // 2

    @property
    def n_planes(self) -> int:
        """Constraints in all working sets."""
        return int(self.sets.count.sum())

    @property
    def n_support_vectors(self) -> int:
        """Those of them whose multiplier is positive."""
        return int(np.count_nonzero(self.sets.alpha[self.owners()[0]] > 0.0))

    def examine(self, examples: Ints, epsilon: float) -> Found:
        """Ask the oracle at ``w`` and add constraints violated by more than epsilon."""
        planes, offsets, scales = self.oracle.call(examples, self.w)
        values, slacks = np.empty(len(examples)), np.empty(len(examples))
        done = added = 0
        while True:
            self._reserve_scratch(longest_row(planes))
            done, more = examine_rows(
                self.sets,
                self.feature_blocks,
                self.used,
                self.scratch,
                self.w,
                examples,
                planes,
                offsets,
                scales,
                epsilon,
                done,
                values,
                slacks,
            )
            added += more
            if done == len(examples):
                self.oracle.compare(examples, values)
                return Found(values, slacks, offsets, added)
            self._reserve(int(examples[done]), int(planes.indptr[done + 1] - planes.indptr[done]))

    def improve(self, examples: Ints, kind: int, effort: int, threshold: float = 0.0) -> Floats:
        """Improve the blocks of these examples; returns their gaps before.

        With a ``threshold`` it returns how much scores are off, or 0 where that is no more.
        """
        gaps = np.empty(len(examples))
        entries = float(self.used[ENTRIES]) / max(len(self.upper_bounds), 1)
        self.work += len(examples) * (BLOCK + BLOCK_ENTRY * entries)
        improve_sets(
            self.sets,
            self.feature_blocks,
            self.scratch,
            self.w,
            examples,
            kind,
            effort,
            threshold,
            gaps,
        )
        return gaps

    def solve_jointly(
        self, stop_gap: float, most_work: float, recombine: bool = False
    ) -> float | None:
        """Solve for the multipliers of all constraints together; returns the gap left there.

        None, and nothing is changed, where that would take more work than it may. Constraints are
        the oracle's alone, so that there is nothing to ``recombine``.
        """
        return solve_sets_jointly(self, stop_gap, most_work)

    def solve_joint(
        self, planes: JointPlanes, rows: PlaneRows, stop_gap: float, most_work: float
    ) -> JointSolution:
        """Solve for the multipliers of constraints, which are these rows."""
        return solve_jointly(planes, stop_gap, most_work)

    def sums(self, per_slot: Floats) -> Floats:
        """Each block's sum of what is given per slot."""
        slots, owners = self.owners()
        return np.bincount(owners, per_slot[slots], len(self.upper_bounds)).astype(
            np.float64, copy=False
        )

    def owners(self) -> tuple[Ints, Ints]:
        """The slots in use, and the example of each."""
        return _owners(self.sets)

    def squares(self) -> Floats:
        """Squared lengths of the planes in use, in the order of `owners`."""
        sets = self.sets
        slots, owners = self.owners()
        positions = slots - sets.start[owners]
        return sets.gram[sets.gram_start[owners] + positions * (sets.capacity[owners] + 1)]

    def plane(self, slot: int) -> Floats:
        """The plane in a slot, as a vector of all weights."""
        chosen = np.zeros(len(self.sets.alpha))
        chosen[slot] = 1.0
        return self.combine(chosen)

    def combine(self, per_slot: Floats) -> Floats:
        """The sum of all planes, weighted by slot."""
        total = np.zeros(len(self.w))
        add_weighted(self.sets, self.feature_blocks, per_slot, self.scratch.products, total)
        return total

    def dual_sums(self) -> tuple[float, Floats]:
        """Sum of the multipliers times their planes' offsets, and their sum in each set."""
        slots, _ = self.owners()
        linear = float(self.sets.alpha[slots] @ self.sets.offset[slots])
        return linear, self.sums(self.sets.alpha)

    def renew(self) -> None:
        """Compute ``w`` afresh from the multipliers."""
        self.w = self.combine(self.sets.alpha)

    def dual(self) -> float:
        """The dual value; ``w`` is computed afresh before."""
        self.renew()
        linear, sums = self.dual_sums()
        return dual_value(self.w, linear, self.formulation, 1.0, sums, self.upper_bounds)

    def rescale(self, upper_bounds: Floats) -> None:
        """Change ``C * sample_weight``, scaling all multipliers by one factor that fits."""
        slots, _ = self.owners()
        linear, sums = self.dual_sums()
        if self.formulation.slack == "none":
            factor = float(not np.any((sums > 0) & (upper_bounds <= 0)))
        else:
            factor = scale_to_fit(
                self.w, linear, self.formulation, sums, self.upper_bounds, upper_bounds
            )
        self.sets.alpha[slots] *= factor
        self.w *= factor
        self.upper_bounds = upper_bounds
        ridge = ridges(self.formulation, upper_bounds)
        self.sets = self.sets._replace(upper_bound=self._bounds(upper_bounds), ridge=ridge)

    def count_solution(self, examples: Ints) -> None:
        """Take note of a solution over the working sets of these examples, for `drop`."""
        count_idle(self.sets, examples)

    def drop(self, limit: int) -> None:
        """Drop constraints without weight in the last ``limit`` solutions."""
        sets, largest = self.sets, int(self.sets.capacity.max(initial=0))
        drop_idle(sets, limit, np.empty(largest, np.int64), np.empty(largest, np.int64))
        slots, _ = self.owners()
        live = int((sets.last[slots] - sets.first[slots]).sum())
        if live < 0.5 * self.used[ENTRIES]:
            self._rewrite_entries(slots, int(1.5 * live) + 1024)

    def _rewrite_entries(self, slots: Ints, size: int) -> None:
        """Rewrite the entries of the slots in use, in arrays of a size."""
        sets = self.sets
        ids, values = np.zeros(size, np.int32), np.zeros(size)
        starts = np.empty(len(slots) + 1, np.int64)
        keep_rows(sets.first, sets.last, slots, sets.ids, sets.values, ids, values, starts)
        sets.first[slots], sets.last[slots] = starts[:-1], starts[1:]
        self.sets, self.used[ENTRIES] = sets._replace(ids=ids, values=values), starts[-1]

    def _rewrite(self) -> None:
        """Rewrite all arrays without gaps, as long as they have to be."""
        sets, (slots, _) = self.sets, self.owners()
        self._rewrite_entries(slots, int((sets.last[slots] - sets.first[slots]).sum()))
        sets, capacity = self.sets, np.maximum(self.sets.count, 1)
        ends, square_ends = np.cumsum(capacity), np.cumsum(capacity * capacity)
        start, gram_start = ends - capacity, square_ends - capacity * capacity
        gram = np.zeros(int(square_ends[-1]))
        keep_squares(sets, capacity, gram_start, gram)
        shorter: Arrays = {}
        self.sets = sets._replace(start=start, capacity=capacity, gram_start=gram_start, gram=gram)
        to, _ = self.owners()
        for name in PER_SLOT:
            old = getattr(sets, name)
            shorter[name] = np.zeros(int(ends[-1]), old.dtype)
            shorter[name][to] = old[slots]
        self.sets = self.sets._replace(**shorter)
        self.used[:2] = ends[-1], square_ends[-1]

    # ----- state ---------------------------------------------------------------------------------

    def arrays(self) -> Arrays:
        """The sets and their multipliers, as arrays by name."""
        own = {name: getattr(self, name) for name in ("used", "upper_bounds", "w")}
        numbers = {"work": np.array(self.work), "cache_bytes": np.array(self.cache_bytes)}
        return {**add_prefix("sets", named_arrays(self.sets)), **own, **numbers}

    def restore(self, arrays: Arrays) -> None:
        """Take over what `arrays` of sets of equal data and formulation has given."""
        n, d = len(self.upper_bounds), len(self.w)
        own = checked_arrays(
            arrays,
            {
                "used": whole(3),
                "upper_bounds": numbers(n, low=0.0),
                "w": numbers(d),
                "work": numbers(low=0.0),
                "cache_bytes": whole(),
            },
        )
        found = strip_prefix("sets", arrays)
        n_slots, n_gram, n_entries = (len(found[name]) for name in ("alpha", "gram", "ids"))
        declared = {
            **{name: whole(n, below=n_slots + 1) for name in ("start", "capacity", "count")},
            "gram_start": whole(n, below=n_gram + 1),
            **{name: whole(n_slots, below=2**62) for name in ("first", "last", "idle")},
            "offset": numbers(n_slots),
            "alpha": numbers(n_slots, low=0.0),
            "gram": numbers(n_gram),
            "ids": whole(n_entries, below=self.feature_blocks.n_feature_blocks, types=(np.int32,)),
            "values": numbers(n_entries),
        }
        bounds: Arrays = {"upper_bound": self.sets.upper_bound, "ridge": self.sets.ridge}
        sets = Sets(**checked_arrays(found, declared), **bounds)
        self._check_sets(sets, own["used"])
        if not np.array_equal(own["upper_bounds"], self.upper_bounds):
            raise ValueError("upper_bounds: expected C times the weights of the examples")
        self.cache_bytes = check_budget(
            int(own["cache_bytes"]), self.cache_bytes, sum(array.nbytes for array in sets)
        )
        self.sets, self.used, self.w, self.work = sets, own["used"], own["w"], float(own["work"])
        slots, _ = self.owners()
        self._reserve_scratch(int((sets.last[slots] - sets.first[slots]).max(initial=0)))
        if self.formulation.slack == "none":  # wrong products look like a margin that cannot be met
            self._check_gram()

    def _check_gram(self) -> None:
        """Raise ValueError where products out of a file are not those of the planes."""
        sets = self.sets
        for i in np.flatnonzero(sets.count):
            count, capacity, at = sets.count[i], sets.capacity[i], sets.gram_start[i]
            square = sets.gram[at : at + capacity * capacity].reshape(capacity, capacity)
            planes = np.array([self.plane(sets.start[i] + k) for k in range(count)])
            check_close(square[:count, :count], planes @ planes.T, 0.0, "sets.gram")

    def _check_sets(self, sets: Sets, used: Ints) -> None:
        """Raise ValueError where working sets of a file overlap, or do not fit their arrays."""
        for places, sizes, end, what in (
            (sets.start, sets.capacity, used[SLOTS], "start"),
            (sets.gram_start, sets.capacity * sets.capacity, used[GRAM], "gram_start"),
        ):
            order = np.argsort(places, kind="stable")
            behind = np.append(places[order][1:], end)
            if not (places[order] + sizes[order] <= behind).all():
                raise ValueError(f"sets.{what}: working sets overlap")
        room = (len(sets.alpha), len(sets.gram), len(sets.ids))
        if (used > room).any() or not ((sets.count <= sets.capacity) & (sets.capacity > 0)).all():
            raise ValueError("sets.count: more than there is room for")
        slots, owners = _owners(sets)
        first, last = sets.first[slots], sets.last[slots]
        if not ((first <= last) & (last <= used[ENTRIES])).all():
            raise ValueError("sets.first: planes lie behind the entries in use")
        sums = np.bincount(owners, sets.alpha[slots], len(self.upper_bounds))
        limited = (self.upper_bounds == 0.0) | (self.formulation.slack == "l1")
        if not (sums <= self.upper_bounds * (1.0 + FULL))[limited].all():
            raise ValueError("sets.alpha: the sum of a set's multipliers is more than its bound")

    def sum_of_multipliers(self) -> Floats:
        """The sum that ``w`` is."""
        return self.combine(self.sets.alpha)

    def proven_dual(self) -> float:
        """See `SolverState`."""
        total, (slots, _) = self.sum_of_multipliers(), self.owners()
        largest = np.abs(self.sets.values[: self.used[ENTRIES]]).max(initial=0.0)
        scale = float(largest * self.sets.alpha[slots].max(initial=0.0))
        check_close(self.w, total, scale, "w")
        linear, sums = self.dual_sums()
        return dual_value(total, linear, self.formulation, 1.0, sums, self.upper_bounds)

    def planes_at(self, w: Floats) -> list[StoredPlanes]:
        """See `SolverState`."""
        sets, (slots, owners) = self.sets, self.owners()
        rows = PlaneRows(sets.first[slots], sets.last[slots], sets.ids, sets.values)
        offsets = sets.offset[slots]
        values = offsets - row_values(rows, self.feature_blocks, w)
        return [StoredPlanes(owners, values, offsets, lambda k: self.plane(int(slots[k])))]

    # ----- memory --------------------------------------------------------------------------------

    def _reserve_scratch(self, longest: int) -> None:
        """Make the work arrays fit rows of so many entries and the largest block."""
        if longest > len(self.scratch.products):
            self.scratch = self.scratch._replace(products=np.empty(2 * longest))
        largest = int(self.sets.capacity.max()) + 1
        if largest > len(self.scratch.scores):
            self.scratch = self.scratch._replace(
                scores=np.empty(largest), alpha=np.empty(largest), gram=np.empty((largest, largest))
            )

    def _reserve(self, i: int, length: int) -> None:
        """Reserve space for one more plane of example i, of so many entries."""
        if self._grow(i, length, 1.5) or self._grow(i, length, 1.1):
            return
        sets, largest = self.sets, int(self.sets.capacity.max(initial=0))
        logger.debug("dropping constraints without weight to keep within cache_mb")
        sets.idle[sets.alpha > 0.0] = 0
        drop_idle(sets, 1, np.empty(largest, np.int64), np.empty(largest, np.int64))
        del sets  # or what is rewritten would stay
        self._rewrite()
        needed = int(2 * SPARE * self.nbytes)
        if needed > self.cache_bytes:
            self.cache_bytes = needed
            if needed > MORE_THAN_SAID * self._warned_of:
                self._warned_of = needed
                logger.warning(
                    "cache_mb is too small for the constraints that have weight; using %.3g MB",
                    needed / 2**20,
                )
        if not self._grow(i, length, 1.3):
            self._grow(i, length, 1.1, anyway=True)

    def _grow(self, i: int, length: int, factor: float, anyway: bool = False) -> bool:
        """Reserve space for such a plane and some more, unless the budget forbids it."""
        held, capacity = int(self.sets.count[i]), int(self.sets.capacity[i])
        capacity = 2 * capacity if held == capacity else 0
        extra = np.array([capacity, capacity * capacity, length])
        slots, squares, entries = (self.used + extra).tolist()
        sizes = {**dict.fromkeys(PER_SLOT, slots), "gram": squares, "ids": entries}
        sizes["values"] = entries

        def grown_to(name: str) -> int:
            size, wanted = len(getattr(self.sets, name)), sizes[name]
            return size if wanted <= size else int(factor * wanted) + 64

        taken = SLOT * grown_to("first") + 8 * grown_to("gram") + ENTRY * grown_to("ids")
        if taken > self._room and not anyway:
            return False
        for name, wanted in sizes.items():  # one after the other: only one is there twice
            array = getattr(self.sets, name)
            larger = grown(array, len(array), wanted, factor=factor)
            del array
            self.sets = self.sets._replace(**{name: larger})
            del larger
        if capacity:
            relocate(self.sets, self.used, i, capacity)
        return True


def _block_bytes(capacity: int) -> int:
    """Bytes of so many slots of a block and their products."""
    return SLOT * capacity + 8 * capacity * capacity


def _owners(sets: Sets) -> tuple[Ints, Ints]:
    """See `WorkingSets.owners`."""
    owners = np.repeat(np.arange(len(sets.start)), sets.count)
    firsts = np.cumsum(sets.count) - sets.count
    return sets.start[owners] + np.arange(len(owners)) - firsts[owners], owners
