"""The blocks of a multiclass dual, in their compact form: multipliers by class, no copies of x."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...core.objective import dual_value, line_step, ridges, scale_to_fit
from ...engine.cost_model import BLOCK, WEIGHT, scoring_work
from ...engine.oracle import Oracle
from ...engine.rows import row_square_norms
from ...engine.steps.block_steps import ALL_PLANES
from ...engine.store.block_store import BlockReport, BlockStore, StepRule, visits
from ...engine.store.joint_planes import MOST_BLOCKS
from ...engine.training.state import FULL, Arrays, StoredPlanes, check_close, named_arrays
from ...utils.schema import checked_arrays, flags, numbers, whole
from ...utils.types import Bools, Floats, Ints
from .class_joint import input_products, solve_classes_jointly
from .class_passes import (
    ClassBlocks,
    ClassLists,
    Scratch,
    block_scratch,
    forget_idle_classes,
    new_scratch,
    oracle_pass_classes,
    oracle_pass_two_classes,
)
from .class_rows import (
    add_listed_classes,
    by_class_layout,
    class_stride,
    extrapolate_lists,
    extrapolated_change,
    feature_major,
    no_class_weights,
)
from .class_sharding import (
    CERTIFIED,
    Shard,
    average,
    blocks_of,
    in_threads,
    least_shard,
    lists_of,
    rows_of,
    shards_that_pay,
    stepping_shards,
)

if TYPE_CHECKING:
    from .multiclass import MulticlassProblem

__all__ = ["ClassStore"]

FEW = 16  # classes
VISIT_TIME, ENTRY_TIME, DENSE_TIME = 30.0, 0.5, 0.2
# Beside a visit: a list that is looked through, with its planes if they are added, at least; |x|^2.
LISTED_TIME, SQUARE_TIME = 0.1, 0.1


class ClassStore:
    """The blocks of a multiclass dual as lists of classes with multipliers; see `BlockStore`."""

    visits_in_order = True
    n_shards = 1

    def __init__(self, oracle: Oracle, problem: MulticlassProblem, upper_bounds: Floats) -> None:
        self.oracle = oracle
        self.problem = problem
        self.formulation = formulation = oracle.formulation
        self.terms = problem.terms(formulation)
        n, K = problem.n_examples, problem.n_classes
        inputs = problem.rows
        size = inputs.dense.size if inputs.dense.shape[0] else len(inputs.values)
        mean_size = size / max(n, 1)
        self.upper_bounds = upper_bounds
        self.ridges = ridges(formulation, upper_bounds)
        most = max(K - 1, 1)
        self.lists = ClassLists(
            np.zeros((n, most), np.int32),
            np.zeros((n, most)),
            np.zeros((n, most)),
            np.zeros(n, np.int64),
            np.zeros(n, np.bool_),
        )
        self.two = K == 2
        self.scratch = self._new_scratch()
        self._of_threads: list[Shard] = []  # once they are needed
        self.weights: Floats = self._no_weights()
        self.weights_before: Floats = self._no_weights()  # at the last extrapolation
        self.dual_now = np.zeros(1)
        self.products: Floats | None = None  # of all pairs of inputs, once they are needed
        self.work = 0.0
        oracle.work = scoring_work(mean_size, K)
        self.visit_work = BLOCK + oracle.work
        self.cached_pass_work = BLOCK + scoring_work(mean_size, min(K, 3))
        # A visit takes about so many nanoseconds: by that threads are said to pay.
        entry_time = DENSE_TIME if inputs.dense.shape[0] else ENTRY_TIME
        self.visit_time = VISIT_TIME + entry_time * mean_size * (1 if self.two else K)
        # For few classes the scores of all cost no more than those of the listed ones.
        self.oracle_is_cheap = K <= FEW

    @cached_property
    def squares(self) -> Floats:
        """|x|^2 of every example: not before the first pass, which may have threads."""
        rows = self.problem.rows

        def norms(_: int, first: int, end: int) -> Floats:
            return row_square_norms(rows_of(rows, first, end))

        n = len(self.upper_bounds)
        count = shards_that_pay(self.oracle.threads, SQUARE_TIME * self.visit_time * n)
        return np.concatenate(in_threads(self.oracle.threads, n, count, norms))

    @property
    def w(self) -> Floats:
        """The weights, feature-major."""
        return feature_major(self.problem.rows, self.problem.n_classes, self.weights)

    @property
    def problem_weights(self) -> Floats:
        """See `BlockStore`."""
        return self.w

    def _no_weights(self) -> Floats:
        """Zeros in the store's layout."""
        return no_class_weights(self.problem.rows, self.problem.n_classes)

    def _new_scratch(self) -> Scratch:
        """Work arrays of a thread."""
        rows, K = self.problem.rows, self.problem.n_classes
        return new_scratch(K, K if rows.dense.shape[0] else class_stride(rows, K))

    def _shards(self, count: int) -> list[Shard]:
        """What so many threads have for themselves; a single one has what the store has."""
        if count == 1:
            return [Shard(self.weights, self.dual_now, self.scratch)]
        for _ in range(count - len(self._of_threads)):
            self._of_threads.append(Shard(self._no_weights(), np.zeros(1), self._new_scratch()))
        return self._of_threads[:count]

    @property
    def least_batch(self) -> int:
        """See `BlockStore`."""
        threads = self.oracle.threads
        return 0 if threads is None else threads.count * least_shard(self.visit_time)

    def _stepping_shards(self, n_visits: int) -> int:
        """Into how many shares so many visits with steps are cut."""
        threads = self.oracle.threads
        return stepping_shards(threads, n_visits, self.visit_time, len(self.weights))

    def shortens_steps(self, n_visits: int) -> bool:
        """See `BlockStore`."""
        return self._stepping_shards(n_visits) > 1

    @property
    def n_planes(self) -> int:
        """Pairs of an example and a class that are listed."""
        return int(self.lists.counts.sum())

    @property
    def n_support_vectors(self) -> int:
        """See `BlockStore`."""
        listed = np.arange(self.lists.alpha.shape[1]) < self.lists.counts[:, None]
        return int(np.count_nonzero(listed & (self.lists.alpha > 0.0)))

    def visit_order(self, order: Ints) -> Ints:
        """See `BlockStore`."""
        return order

    def oracle_pass(self, examples: Ints, rule: StepRule) -> BlockReport:
        """Find each example's most violated class and improve its block."""
        report = BlockReport(np.empty(len(examples)), np.empty(len(examples)))
        self._pass(examples, rule, False, report)
        self.oracle.count(len(examples))
        return report

    def certify_pass(
        self, examples: Ints, size: int, rule: StepRule
    ) -> Iterator[tuple[Ints, BlockReport]]:
        """See `BlockStore`."""
        threads = self.oracle.threads
        if threads is not None:
            size *= CERTIFIED * threads.count
        return visits(self, examples, size, rule)

    def cached_pass(self, examples: Ints, rule: StepRule) -> Floats:
        """Improve blocks over the classes already met."""
        report = BlockReport(np.empty(len(examples)), np.empty(0))
        self._pass(examples, rule, True, report)
        return report.gaps

    def prepare_cached_passes(self) -> None:
        """See `BlockStore`."""

    def _pass(self, examples: Ints, rule: StepRule, cached: bool, report: BlockReport) -> None:
        """Visit the blocks of ``examples``, in threads where they are many."""
        self.work += (self.cached_pass_work if cached else self.visit_work) * (len(examples) + 1)
        examples = np.ascontiguousarray(examples, dtype=np.int64)
        threads, steps = self.oracle.threads, rule.max_steps > 0
        if steps:
            count = self._stepping_shards(len(examples))
        else:
            count = shards_that_pay(threads, len(examples) * self.visit_time)
        shards, all_blocks = self._shards(count), self._blocks()
        apart = steps and count > 1
        exact = rule.kind == ALL_PLANES and self.terms.unit_scales

        def oracle_pass(k: int, first: int, end: int) -> None:
            own, blocks = shards[k], all_blocks
            if apart:
                own.weights[:] = self.weights
                own.dual[0] = 0.0
                blocks = blocks._replace(weights=own.weights, dual=own.dual, shards=float(count))
            feature_block = BlockReport(report.gaps[first:end], report.hinges[first:end])
            visited = examples[first:end]
            if self.two:
                oracle_pass_two_classes(blocks, visited, rule, cached, feature_block)
                return
            scratch = None if exact else block_scratch(self.problem.n_classes)
            oracle_pass_classes(blocks, visited, rule, cached, feature_block, own.scratch, scratch)

        in_threads(threads, len(examples), count, oracle_pass)
        if apart:
            distance = average(threads, shards, self.weights) * (2.0 if self.two else 1.0)
            gains = sum(float(shard.dual[0]) for shard in shards)
            self.dual_now[0] += gains + 0.5 * distance / count

    def _blocks(self) -> ClassBlocks:
        """What kernels take."""
        rows, K = self.problem.rows, self.problem.n_classes
        return ClassBlocks(
            rows,
            self.problem.labels,
            self.squares,
            self.weights,
            class_stride(rows, K),
            self.dual_now,
            self.terms,
            self.lists,
            self.upper_bounds,
            self.ridges,
            1.0,
        )

    def extrapolate(self, factor: float) -> float:
        """See `planes.PlaneStore.extrapolate`."""
        step, gain = 0.0, 0.0
        squared = self.formulation.slack == "l2"
        limits = np.full(len(self.upper_bounds), np.inf) if squared else self.upper_bounds
        if factor:
            self.work += 0.1 * BLOCK * len(self.upper_bounds) + WEIGHT * len(self.weights)
            direction = np.subtract(self.weights, self.weights_before, out=self.weights_before)
            direction *= factor
            linear, slope, curvature = self._extrapolated_change(limits, factor, direction)
            slope += linear - self._product(direction, self.weights)
            curvature += self._product(direction, direction)
            step, gain = line_step(slope, curvature, float(self.dual_now[0]))
            direction *= step
        shards, n = self._shards(self._count_for_all()), len(self.upper_bounds)

        def go_on(k: int, first: int, end: int) -> None:
            lists = lists_of(self.lists, first, end)
            extrapolate_lists(lists, limits[first:end], factor, step, shards[k].scratch.new)

        in_threads(self.oracle.threads, n, len(shards), go_on)
        if step:
            # Where the weights were, and where they are now: the vectors change places.
            self.weights_before += self.weights
            self.weights, self.weights_before = self.weights_before, self.weights
            self.dual_now[0] += gain
        else:
            self.weights_before[:] = self.weights
        return gain

    def _extrapolated_change(
        self, limits: Floats, factor: float, direction: Floats
    ) -> tuple[float, float, float]:
        """See `class_rows`; each thread adds up the clipped planes of its own examples."""
        shards = self._shards(self._count_for_all())

        def change(k: int, first: int, end: int) -> tuple[float, float, float]:
            own, blocks = shards[k], blocks_of(self._blocks(), first, end)
            if k > 0:
                own.weights[:] = 0.0
            carried = own.weights if k > 0 else direction
            return extrapolated_change(blocks, limits[first:end], factor, carried, own.scratch)

        found = in_threads(self.oracle.threads, len(self.upper_bounds), len(shards), change)
        for shard in shards[1:]:
            direction += shard.weights
        linear, slope, curvature = (sum(values) for values in zip(*found, strict=True))
        return linear, slope, curvature

    def _count_for_all(self) -> int:
        """Into how many shares the lists of all examples are cut, with sums of weights."""
        work = LISTED_TIME * self.visit_time * len(self.upper_bounds)
        return shards_that_pay(self.oracle.threads, work, len(self.weights))

    def _product(self, a: Floats, b: Floats) -> float:
        """Product of two vectors of weights in the store's layout."""
        return float(a @ b) * (2.0 if self.two else 1.0)

    def solve_jointly(
        self, stop_gap: float, most_work: float, recombine: bool = False
    ) -> float | None:
        """See `planes.BlockStore.solve_jointly`."""
        return solve_classes_jointly(self, stop_gap, most_work, recombine)

    @property
    def alpha(self) -> Floats:
        """Multipliers by example and class."""
        return self._by_class(self.lists.alpha)

    @property
    def listed(self) -> Bools:
        """Whether an example may give weight to a class from what is known of it."""
        return self._by_class(self._in_lists) > 0.0

    @property
    def _in_lists(self) -> Bools:
        """Which places are in lists, not beyond their ends."""
        return np.arange(self.lists.classes.shape[1]) < self.lists.counts[:, None]

    def _by_class(self, of_places: Floats | Bools) -> Floats:
        """Values of the places in lists, which are 0 beyond their ends, by example and class."""
        by_class = np.zeros((len(self.upper_bounds), self.problem.n_classes))
        np.add.at(
            by_class, (np.arange(len(self.upper_bounds))[:, None], self.lists.classes), of_places
        )
        return by_class

    def take(self, alpha: Floats) -> float:
        """Take multipliers by example and class; returns the dual value, computed afresh."""
        # Beyond the ends are multipliers of classes that have left the lists.
        before = self._by_class(np.where(self._in_lists, self.lists.before, 0.0))
        listed = self.listed | (alpha > 0.0)
        order = np.argsort(~listed, axis=1, kind="stable")[:, : self.lists.classes.shape[1]]
        self.lists.classes[:] = order
        self.lists.counts[:] = listed.sum(axis=1)
        self.lists.alpha[:] = np.take_along_axis(alpha, order, axis=1)
        self.lists.before[:] = np.take_along_axis(before, order, axis=1)
        self.lists.moved[:] = True
        self.rebuild()
        return self.dual()

    def rebuild(self) -> None:
        """Compute ``w`` afresh from the multipliers."""
        shards = self._shards(self._count_for_all())
        weights = self._no_weights()

        def add(k: int, first: int, end: int) -> None:
            own, blocks = shards[k], blocks_of(self._blocks(), first, end)
            if k > 0:
                own.weights[:] = 0.0
            add_listed_classes(blocks, own.weights if k > 0 else weights, own.scratch)

        in_threads(self.oracle.threads, len(self.upper_bounds), len(shards), add)
        for shard in shards[1:]:
            weights += shard.weights
        self.weights = weights

    def move_to(self, w: Floats) -> None:
        """See `BlockStore`."""
        self.weights = by_class_layout(self.problem.rows, self.problem.n_classes, w)

    def evict(self, idle_limit: int) -> None:
        """Forget classes without weight, if that is to be at once; the store has a fixed size."""
        if idle_limit <= 1:
            forget_idle_classes(self.lists)

    def dual(self) -> float:
        """The dual value, from the multipliers and ``w``."""
        linear, sums = self.dual_sums()
        w = self.w if self.two else self.weights  # padding is zero
        self.dual_now[0] = dual_value(w, linear, self.formulation, 1.0, sums, self.upper_bounds)
        return float(self.dual_now[0])

    def dual_sums(self) -> tuple[float, Floats]:
        """See `BlockStore`."""
        sums: Floats = self.lists.alpha.sum(axis=1)
        offsets = self.terms.offsets
        first = offsets[0, -1]
        if first > 0.0 and np.count_nonzero(offsets == first) == offsets.size - len(offsets):
            return float(first * self.lists.alpha.sum()), sums  # the usual case
        listed = offsets[self.terms.rows[:, None], self.lists.classes]
        return float(np.vdot(self.lists.alpha, listed)), sums

    def rescale(self, upper_bounds: Floats) -> None:
        """Change the bounds of the blocks, scaling all multipliers by one factor that fits."""
        linear, sums = self.dual_sums()
        factor = scale_to_fit(
            self.w, linear, self.formulation, sums, self.upper_bounds, upper_bounds
        )
        self.lists.alpha[:] *= factor
        self.lists.moved[:] = True
        self.weights *= factor
        self.upper_bounds = upper_bounds
        self.ridges = ridges(self.formulation, upper_bounds)
        self.products = None  # their work is counted anew in every run, from arrays or not
        self.dual()

    def take_over(self, earlier: BlockStore) -> None:
        """See `BlockStore`."""
        assert isinstance(earlier, ClassStore)
        for name, known in named_arrays(earlier.lists).items():
            getattr(self.lists, name)[: len(known)] = known
        self.upper_bounds = np.zeros(len(self.upper_bounds))
        self.upper_bounds[: len(earlier.upper_bounds)] = earlier.upper_bounds
        self.rebuild()

    def arrays(self) -> Arrays:
        """See `BlockStore`."""
        return {
            "upper_bounds": self.upper_bounds,
            "dual_now": self.dual_now,
            **self.lists._asdict(),
            "weights": np.ascontiguousarray(self.weights),
            "weights_before": np.ascontiguousarray(self.weights_before),
            "work": np.array(self.work),
            "has_products": np.array(self.products is not None),
        }

    def restore(self, arrays: Arrays) -> None:
        """See `BlockStore`."""
        (n, most), size = self.lists.classes.shape, len(self.weights)
        declared = {
            "upper_bounds": numbers(n, low=0.0),
            "dual_now": numbers(1),
            "classes": whole(n, most, below=self.problem.n_classes, types=(np.int32,)),
            "alpha": numbers(n, most, low=0.0),
            "before": numbers(n, most, low=0.0),
            "counts": whole(n, below=most + 1),
            "moved": flags(n),
            "weights": numbers(size),
            "weights_before": numbers(size),
            "work": numbers(low=0.0),
            "has_products": flags(),
        }
        own = checked_arrays(arrays, declared)
        lists = ClassLists(*(own[name] for name in ClassLists._fields))
        self._check_lists(lists)
        if not np.array_equal(own["upper_bounds"], self.upper_bounds):
            raise ValueError("upper_bounds: expected C times the weights of the examples")
        if own["has_products"] and n > MOST_BLOCKS:
            raise ValueError(f"has_products: expected none of {n} examples")
        self.lists, self.dual_now, self.work = lists, own["dual_now"], float(own["work"])
        self.weights, self.weights_before = self._no_weights(), self._no_weights()
        self.weights[:], self.weights_before[:] = own["weights"], own["weights_before"]
        self.products = input_products(self.problem.rows) if own["has_products"] else None

    def _check_lists(self, lists: ClassLists) -> None:
        """Raise ValueError where the lists of a file are not those of blocks."""
        most = lists.classes.shape[1]
        listed = np.arange(most) < lists.counts[:, None]
        # What is not listed is a class of its own, each time.
        distinct = np.where(listed, lists.classes, self.problem.n_classes + np.arange(most))
        distinct = np.sort(np.column_stack((distinct, self.problem.labels)), axis=1)
        limited = (self.upper_bounds == 0.0) | (self.formulation.slack == "l1")
        sums = lists.alpha.sum(axis=1)
        for fits, what in (
            ((np.diff(distinct, axis=1) > 0).all(), "classes: expected different wrong classes"),
            (not lists.alpha[~listed].any(), "alpha: multipliers of classes that are not listed"),
            (
                (sums <= self.upper_bounds * (1.0 + FULL))[limited].all(),
                "alpha: the sum of a block's multipliers is more than its bound",
            ),
            (
                ((lists.alpha == lists.before) | ~listed)[~lists.moved].all(),
                "moved: multipliers that have changed are not marked",
            ),
        ):
            if not fits:
                raise ValueError(what)

    def proven_dual(self) -> float:
        """See `SolverState`."""
        kept, lists, largest = self.weights, self.lists, np.sqrt(self.squares.max(initial=0.0))
        try:
            for weights, alpha in (
                (self.weights_before, lists.before),
                (kept, lists.alpha),
            ):
                self.lists = lists._replace(alpha=alpha)
                self.rebuild()
                scale = float(largest * alpha.max(initial=0.0) * self.terms.scales.max(initial=0.0))
                check_close(weights, self.weights, scale, "weights")
            linear, sums = self.dual_sums()
            w = self.w if self.two else self.weights
            return dual_value(w, linear, self.formulation, 1.0, sums, self.upper_bounds)
        finally:
            self.weights, self.lists = kept, lists

    def planes_at(self, w: Floats) -> list[StoredPlanes]:
        """See `SolverState`: classes are all that there is of them."""
        return []
