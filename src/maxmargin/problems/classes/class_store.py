"""The blocks of a multiclass dual, in their compact form: multipliers by class, no copies of x."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...engine.oracle import Oracle
from ...engine.planes import BlockReport, StepRule
from ...engine.rows import row_square_norms
from ...engine.state import Arrays
from ...engine.work import BLOCK, scoring_work
from ...objective import dual_value, line_step, ridges, scale_to_fit
from ...types import Floats, Ints
from .class_joint import solve_classes_jointly
from .multiclass_kernels import (
    ClassBlocks,
    add_weighted_classes,
    extrapolated_change,
    visit_classes,
)

if TYPE_CHECKING:
    from .multiclass import MulticlassProblem

__all__ = ["ClassStore"]

LINE = 8  # numbers in a cache line
KEPT = ("caps", "alpha", "before", "seen", "dual_now")  # arrays that make up the state


class ClassStore:
    """The blocks of a multiclass dual as one multiplier per class; see `planes.BlockStore`."""

    oracle_is_cheap = True
    visits_in_order = True

    def __init__(self, oracle: Oracle, problem: MulticlassProblem, caps: Floats) -> None:
        self.oracle = oracle
        self.problem = problem
        self.formulation = formulation = oracle.formulation
        self.caps = caps
        self.ridges = ridges(formulation, caps)
        self.terms = problem.terms(formulation)
        self.squares = row_square_norms(problem.rows)
        self.alpha = np.zeros((problem.n_examples, problem.n_classes))
        self.before = np.zeros(self.alpha.shape)
        self.seen = np.zeros(self.alpha.shape, np.bool_)
        self.weights: Floats = self._no_weights()
        self.dual_now = np.zeros(1)
        self.products: Floats | None = None  # of all pairs of inputs, once they are needed
        self.work = 0.0
        inputs = self.problem.rows
        size = inputs.dense.size if inputs.dense.shape[0] else len(inputs.values)
        mean_size = size / max(problem.n_examples, 1)
        self.visit_work = BLOCK + scoring_work(mean_size, problem.n_classes)

    @property
    def w(self) -> Floats:
        """The weights, feature-major; inside, dense inputs have them by class."""
        rows = self.problem.rows
        if rows.dense.shape[0] == 0:
            return self.weights
        return self.weights.reshape(self.problem.n_classes, -1)[:, : rows.n_inputs].T.ravel()

    def _no_weights(self) -> Floats:
        """Zeros in the store's layout. By class they are padded, for loads within cache lines."""
        rows, K = self.problem.rows, self.problem.n_classes
        if rows.dense.shape[0] == 0:
            return np.zeros(rows.n_inputs * K)
        stride = rows.n_inputs + -rows.n_inputs % LINE
        if stride % (8 * LINE) == 0:  # classes a power of two apart would share cache sets
            stride += LINE
        buffer = np.zeros(stride * K + LINE)
        start = -(buffer.ctypes.data // buffer.itemsize) % LINE
        return buffer[start : start + stride * K]

    @property
    def n_planes(self) -> int:
        """Pairs of an example and a class that have been met."""
        return int(np.count_nonzero(self.seen))

    def visit(self, examples: Ints, rule: StepRule) -> BlockReport:
        """Find each example's most violated class and improve its block."""
        report = BlockReport(np.empty(len(examples)), np.empty(len(examples)))
        self._pass(examples, rule, False, report)
        self.oracle.count(len(examples))
        return report

    def revisit(self, examples: Ints, rule: StepRule) -> Floats:
        """Improve blocks over the classes already met."""
        report = BlockReport(np.empty(len(examples)), np.empty(0))
        self._pass(examples, rule, True, report)
        return report.gaps

    def _pass(self, examples: Ints, rule: StepRule, cached: bool, report: BlockReport) -> None:
        """One kernel call over the blocks of ``examples``."""
        self.work += self.visit_work * (len(examples) + 1)
        blocks = ClassBlocks(
            self.problem.rows,
            self.problem.labels,
            self.squares,
            self.weights,
            self.dual_now,
            self.terms,
            self.alpha,
            self.seen,
            self.caps,
            self.ridges,
        )
        examples = np.ascontiguousarray(examples, dtype=np.int64)
        visit_classes(blocks, examples, rule, cached, report)

    def extrapolate(self, factor: float) -> float:
        """See `planes.PlaneStore.extrapolate`."""
        gain = 0.0
        if factor:
            self.work += 0.25 * self.visit_work * len(self.caps)  # few multipliers change
            change = np.empty(self.alpha.shape)
            squared = self.formulation.slack == "l2"
            limits = np.full(len(self.caps), np.inf) if squared else self.caps
            extrapolated_change(self.alpha, self.before, limits, factor, change)
            direction = self._no_weights()
            slope = self._add_weighted(change, direction) - float(direction @ self.weights)
            curvature = float(direction @ direction)
            if squared:
                rises = change.sum(axis=1)
                slope -= float(self.alpha.sum(axis=1) * self.ridges @ rises)
                curvature += float(rises * self.ridges @ rises)
            step, gain = line_step(slope, curvature, float(self.dual_now[0]))
        self.before[:] = self.alpha
        if gain > 0.0:
            self.alpha += step * change
            self.weights += step * direction
            self.dual_now[0] += gain
        return gain

    def solve_jointly(
        self, stop_gap: float, most_work: float, recombine: bool = False
    ) -> float | None:
        """See `planes.BlockStore.solve_jointly`."""
        return solve_classes_jointly(self, stop_gap, most_work, recombine)

    def move(self, change: Floats, gain: float) -> None:
        """Change the multipliers, by which the dual gains so much."""
        self.alpha += change
        self._add_weighted(change, self.weights)
        self.dual_now[0] += gain

    def rebuild(self) -> None:
        """Compute ``w`` afresh from the multipliers."""
        weights = self._no_weights()
        self._add_weighted(self.alpha, weights)
        self.weights = weights

    def _add_weighted(self, weights: Floats, direction: Floats) -> float:
        """Add the sum of weights times planes to ``direction``; returns the sum times offsets."""
        rows, labels = self.problem.rows, self.problem.labels
        return float(add_weighted_classes(rows, labels, self.terms, weights, direction))

    def evict(self, idle_limit: int) -> None:
        """Forget classes without weight, if that is to be at once; the store has a fixed size."""
        if idle_limit <= 1:
            np.greater(self.alpha, 0.0, out=self.seen)

    def dual(self) -> float:
        """The dual value, from the multipliers and ``w``."""
        sums = self.alpha.sum(axis=1)
        self.dual_now[0] = dual_value(
            self.weights, self._linear(), self.formulation, 1.0, sums, self.caps
        )
        return float(self.dual_now[0])

    def _linear(self) -> float:
        """Sum of multipliers times offsets."""
        return float(np.vdot(self.alpha, self.terms.offsets[self.problem.labels]))

    def rescale(self, caps: Floats) -> None:
        """Change the bounds of the blocks, scaling all multipliers by one factor that fits."""
        sums = self.alpha.sum(axis=1)
        factor = scale_to_fit(self.weights, self._linear(), self.formulation, sums, self.caps, caps)
        self.alpha *= factor
        self.weights *= factor
        self.caps = caps
        self.ridges = ridges(self.formulation, caps)
        self.products = None  # their work is counted anew in every run, from arrays or not
        self.dual()

    def arrays(self) -> Arrays:
        """See `BlockStore`."""
        return {
            **{name: getattr(self, name) for name in KEPT},
            "weights": np.ascontiguousarray(self.weights),
            "work": np.array(self.work),
        }

    def restore(self, arrays: Arrays) -> None:
        """See `BlockStore`."""
        for name in KEPT:
            setattr(self, name, arrays[name].copy())
        self.weights = self._no_weights()  # at a cache line
        self.weights[:] = arrays["weights"]
        self.ridges = ridges(self.formulation, self.caps)
        self.work = float(arrays["work"])
