"""The blocks of a multiclass dual, in their compact form: multipliers by class, no copies of x."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ...engine.block_steps import ALL_PLANES
from ...engine.oracle import Oracle
from ...engine.planes import BlockReport, BlockStore, StepRule, visits
from ...engine.rows import row_square_norms
from ...engine.state import Arrays, named_arrays
from ...engine.work import BLOCK, WEIGHT, scoring_work
from ...objective import dual_value, line_step, ridges, scale_to_fit
from ...types import Bools, Floats, Ints
from .class_changes import add_listed_classes, extrapolate_lists, extrapolated_change
from .class_joint import input_products, solve_classes_jointly
from .class_rows import by_class_layout, class_stride, feature_major, no_class_weights
from .class_visits import (
    ClassBlocks,
    ClassLists,
    block_scratch,
    forget_idle_classes,
    new_scratch,
    visit_classes,
    visit_two_classes,
)

if TYPE_CHECKING:
    from .multiclass import MulticlassProblem

__all__ = ["ClassStore"]

# Arrays that make up the state, beside the lists and the weights.
KEPT = ("caps", "dual_now")
FEW = 16  # classes


class ClassStore:
    """The blocks of a multiclass dual as lists of classes with multipliers; see `BlockStore`."""

    visits_in_order = True

    def __init__(self, oracle: Oracle, problem: MulticlassProblem, caps: Floats) -> None:
        self.oracle = oracle
        self.problem = problem
        self.formulation = formulation = oracle.formulation
        self.terms = problem.terms(formulation)
        n, K = problem.n_examples, problem.n_classes
        inputs = problem.rows
        size = inputs.dense.size if inputs.dense.shape[0] else len(inputs.values)
        mean_size = size / max(n, 1)
        self.squares = row_square_norms(inputs)
        self.caps = caps
        self.ridges = ridges(formulation, caps)
        most = max(K - 1, 1)
        self.lists = ClassLists(
            np.zeros((n, most), np.int32),
            np.zeros((n, most)),
            np.zeros((n, most)),
            np.zeros(n, np.int64),
            np.zeros(n, np.bool_),
        )
        self.two = K == 2
        self.scratch = new_scratch(K, class_stride(inputs, K) if not inputs.dense.shape[0] else K)
        self.weights: Floats = self._no_weights()
        self.weights_before: Floats = self._no_weights()  # at the last extrapolation
        self.dual_now = np.zeros(1)
        self.products: Floats | None = None  # of all pairs of inputs, once they are needed
        self.work = 0.0
        self.visit_work = BLOCK + scoring_work(mean_size, K)
        self.revisit_work = BLOCK + scoring_work(mean_size, min(K, 3))
        # For few classes the scores of all cost no more than those of the listed ones.
        self.oracle_is_cheap = K <= FEW

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

    @property
    def n_planes(self) -> int:
        """Pairs of an example and a class that are listed."""
        return int(self.lists.counts.sum())

    def visit(self, examples: Ints, rule: StepRule) -> BlockReport:
        """Find each example's most violated class and improve its block."""
        report = BlockReport(np.empty(len(examples)), np.empty(len(examples)))
        self._pass(examples, rule, False, report)
        self.oracle.count(len(examples))
        return report

    def survey(
        self, examples: Ints, size: int, rule: StepRule
    ) -> Iterator[tuple[Ints, BlockReport]]:
        """See `BlockStore`."""
        return visits(self, examples, size, rule)

    def revisit(self, examples: Ints, rule: StepRule) -> Floats:
        """Improve blocks over the classes already met."""
        report = BlockReport(np.empty(len(examples)), np.empty(0))
        self._pass(examples, rule, True, report)
        return report.gaps

    def prepare_revisits(self) -> None:
        """See `BlockStore`."""

    def _pass(self, examples: Ints, rule: StepRule, cached: bool, report: BlockReport) -> None:
        """One kernel call over the blocks of ``examples``."""
        self.work += (self.revisit_work if cached else self.visit_work) * (len(examples) + 1)
        examples = np.ascontiguousarray(examples, dtype=np.int64)
        if self.two:
            visit_two_classes(self._blocks(), examples, rule, cached, report)
            return
        exact = rule.kind == ALL_PLANES and self.terms.unit_scales
        scratch = None if exact else block_scratch(self.problem.n_classes)
        visit_classes(self._blocks(), examples, rule, cached, report, self.scratch, scratch)

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
            self.caps,
            self.ridges,
        )

    def extrapolate(self, factor: float) -> float:
        """See `planes.PlaneStore.extrapolate`."""
        step, gain = 0.0, 0.0
        squared = self.formulation.slack == "l2"
        limits = np.full(len(self.caps), np.inf) if squared else self.caps
        if factor:
            self.work += 0.1 * BLOCK * len(self.caps) + WEIGHT * len(self.weights)
            direction = np.subtract(self.weights, self.weights_before, out=self.weights_before)
            direction *= factor
            linear, slope, curvature = extrapolated_change(
                self._blocks(), limits, factor, direction, self.scratch
            )
            slope += linear - self._product(direction, self.weights)
            curvature += self._product(direction, direction)
            step, gain = line_step(slope, curvature, float(self.dual_now[0]))
            direction *= step
        extrapolate_lists(self.lists, limits, factor, step, self.scratch.new)
        if step:
            # Where the weights were, and where they are now: the vectors change places.
            self.weights_before += self.weights
            self.weights, self.weights_before = self.weights_before, self.weights
            self.dual_now[0] += gain
        else:
            self.weights_before[:] = self.weights
        return gain

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
        places = np.arange(self.lists.classes.shape[1]) < self.lists.counts[:, None]
        return self._by_class(places) > 0.0

    def _by_class(self, of_places: Floats | Bools) -> Floats:
        """Values of the places in lists, which are 0 beyond their ends, by example and class."""
        by_class = np.zeros((len(self.caps), self.problem.n_classes))
        np.add.at(by_class, (np.arange(len(self.caps))[:, None], self.lists.classes), of_places)
        return by_class

    def replace(self, alpha: Floats, gain: float) -> None:
        """Take multipliers by example and class, by which the dual gains so much."""
        before = self._by_class(self.lists.before)
        listed = self.listed | (alpha > 0.0)
        order = np.argsort(~listed, axis=1, kind="stable")[:, : self.lists.classes.shape[1]]
        self.lists.classes[:] = order
        self.lists.counts[:] = listed.sum(axis=1)
        self.lists.alpha[:] = np.take_along_axis(alpha, order, axis=1)
        self.lists.before[:] = np.take_along_axis(before, order, axis=1)
        self.lists.moved[:] = True
        self.rebuild()
        self.dual_now[0] += gain

    def rebuild(self) -> None:
        """Compute ``w`` afresh from the multipliers."""
        weights = self._no_weights()
        add_listed_classes(self._blocks(), weights, self.scratch)
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
        self.dual_now[0] = dual_value(w, linear, self.formulation, 1.0, sums, self.caps)
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

    def rescale(self, caps: Floats) -> None:
        """Change the bounds of the blocks, scaling all multipliers by one factor that fits."""
        linear, sums = self.dual_sums()
        factor = scale_to_fit(self.w, linear, self.formulation, sums, self.caps, caps)
        self.lists.alpha[:] *= factor
        self.lists.moved[:] = True
        self.weights *= factor
        self.caps = caps
        self.ridges = ridges(self.formulation, caps)
        self.products = None  # their work is counted anew in every run, from arrays or not
        self.dual()

    def take_over(self, earlier: BlockStore) -> None:
        """See `BlockStore`."""
        assert isinstance(earlier, ClassStore)
        for name, known in named_arrays(earlier.lists).items():
            getattr(self.lists, name)[: len(known)] = known
        self.caps = np.zeros(len(self.caps))
        self.caps[: len(earlier.caps)] = earlier.caps
        self.rebuild()

    def arrays(self) -> Arrays:
        """See `BlockStore`."""
        return {
            **{name: getattr(self, name) for name in KEPT},
            **self.lists._asdict(),
            "weights": np.ascontiguousarray(self.weights),
            "weights_before": np.ascontiguousarray(self.weights_before),
            "work": np.array(self.work),
            "has_products": np.array(self.products is not None),
        }

    def restore(self, arrays: Arrays) -> None:
        """See `BlockStore`."""
        for name in KEPT:
            setattr(self, name, arrays[name].copy())
        self.lists = ClassLists(*(arrays[name].copy() for name in ClassLists._fields))
        self.weights, self.weights_before = self._no_weights(), self._no_weights()
        self.weights[:] = arrays["weights"]
        self.weights_before[:] = arrays["weights_before"]
        self.ridges = ridges(self.formulation, self.caps)
        self.work = float(arrays["work"])
        self.products = input_products(self.problem.rows) if arrays["has_products"] else None
