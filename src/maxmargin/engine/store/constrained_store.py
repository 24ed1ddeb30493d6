"""The general plane store where there are constraints on weights.

``w`` is the change from the weights' mean, as for all solvers; the problem is asked at the weights
themselves. Of these there may be millions, and a visit changes few: so both are kept, and those of
the blocks that were visited brought up to date. The arithmetic of bounds is in `bounds`.
"""

from __future__ import annotations

import numpy as np

from ...jit.decorator import kernel
from ...utils.schema import checked_arrays, numbers
from ...utils.types import Floats, Ints
from ..cost_model import CALL, WEIGHT
from ..feature_blocks import FeatureBlocks, add_at_blocks
from ..oracle import Oracle, OracleResult
from ..steps.bound_multipliers import BoundMultipliers, columns_of, solve_within_bounds
from ..steps.joint_qp import JointPlanes, JointSolution
from ..training.state import Arrays, add_prefix, check_close, strip_prefix
from ..violations import batches
from .block_store import BlockReport, StepRule
from .joint_planes import PlaneRows
from .plane_kernels import list_block
from .planes import PlaneStore

__all__ = ["BoundedStore", "ConstrainedStore"]

SETTLE_AFTER = 8  # blocks that are improved before the bounds' multipliers are
LARGEST_ROWS = 20_000_000  # numbers in planes that are written out for a joint solution


class ConstrainedStore(PlaneStore):
    """Planes of the change from the weights' mean; see `BlockStore` for the methods."""

    def __init__(self, oracle: Oracle, upper_bounds: Floats, cache_bytes: int) -> None:
        super().__init__(oracle, upper_bounds, cache_bytes)
        assert oracle.feasible_set is not None
        self.feasible_set = oracle.feasible_set
        self._weights: Floats | None = None  # the problem's; None if w has changed since

    def _call_oracle(self, examples: Ints) -> OracleResult:
        """See `PlaneStore`."""
        if self._weights is None:
            self.work += WEIGHT * len(self.w)
            self._weights = self.feasible_set.weights(self.w)
        return self.oracle.call(examples, self.w, self._weights)

    def absorb(self, examples: Ints, oracle_result: OracleResult, rule: StepRule) -> BlockReport:
        """See `PlaneStore`."""
        arena = self.arena
        report = super().absorb(examples, oracle_result, rule)
        if self.arena is not arena:  # which may have lost planes whose weight has just gone
            self._weights = None
        elif rule.max_steps > 0 and self._weights is not None:
            self.reserve_scratch(examples, 0)
            arrays = (self.arena, self.blocks, self.scratch, self.feature_blocks)
            _follow(*arrays, examples, self.feasible_set.mean, self.w, self._weights)
        return report

    def cached_pass(self, examples: Ints, rule: StepRule) -> Floats:
        """See `BlockStore`."""
        self._weights = None
        return super().cached_pass(examples, rule)

    def extrapolate(self, factor: float) -> float:
        """See `BlockStore`."""
        self._weights = None
        return super().extrapolate(factor)

    def solve_jointly(
        self, stop_gap: float, most_work: float, recombine: bool = False
    ) -> float | None:
        """See `BlockStore`."""
        self._weights = None
        return super().solve_jointly(stop_gap, most_work, recombine)

    def rebuild(self) -> None:
        """See `BlockStore`."""
        self._weights = None
        super().rebuild()

    def move_to(self, w: Floats) -> None:
        """See `BlockStore`."""
        self._weights = None
        super().move_to(w)

    def rescale(self, upper_bounds: Floats) -> None:
        """See `BlockStore`."""
        self._weights = None
        super().rescale(upper_bounds)

    def arrays(self) -> Arrays:
        """See `BlockStore`; to make the weights is work that would count once more."""
        own = {} if self._weights is None else {"problem_weights": self._weights}
        return {**super().arrays(), **own}

    def restore(self, arrays: Arrays) -> None:
        """See `BlockStore`."""
        super().restore(arrays)
        self._weights = None
        if "problem_weights" in arrays:
            of_problem = {"problem_weights": numbers(len(self.w))}
            self._weights = checked_arrays(arrays, of_problem)["problem_weights"]
            check_close(self._weights, self.feasible_set.weights(self.w), 1.0, "problem_weights")


@kernel(allocates=False)
def _follow(arena, blocks, scratch, feature_blocks, examples, mean, w, weights):
    """Bring the problem's weights up to date where blocks have features."""
    for i in examples:
        _, n_local = list_block(arena, blocks, i, scratch)
        add_at_blocks(feature_blocks, scratch.features, n_local, mean, w, weights)


class BoundedStore(ConstrainedStore):
    """Planes, and the multipliers of bounds on single weights; see `BlockStore` for the methods.

    ``w`` is ``sum alpha a + beta``, and within its bounds between any two calls.
    """

    def __init__(self, oracle: Oracle, upper_bounds: Floats, cache_bytes: int) -> None:
        super().__init__(oracle, upper_bounds, cache_bytes)
        self.multipliers = BoundMultipliers(self.feasible_set)
        self.rebuild()
        self.dual()

    def _settle(self) -> float:
        """Set the multipliers of the bounds to their best; returns the dual's increase."""
        self.work += CALL + WEIGHT * len(self.multipliers)
        gain = self.multipliers.project(self.w)
        self.dual_now[0] += gain
        return gain

    def rebuild(self) -> None:
        """See `BlockStore`."""
        super().rebuild()
        self.multipliers.renew(self.w)

    def dual_sums(self) -> tuple[float, Floats]:
        """See `BlockStore`; what bounds add is in the first."""
        linear, sums = super().dual_sums()
        return linear + self.multipliers.value, sums

    def absorb(self, examples: Ints, oracle_result: OracleResult, rule: StepRule) -> BlockReport:
        """See `PlaneStore`."""
        report = super().absorb(examples, oracle_result, rule)
        if rule.max_steps > 0:
            self._settle()
            if self._weights is not None:
                which = self.multipliers.which
                self._weights[which] = self.feasible_set.bounded_weights(self.w[which])
        return report

    def cached_pass(self, examples: Ints, rule: StepRule) -> Floats:
        """See `BlockStore`."""
        gaps = [np.empty(0)]
        for few in batches(examples, SETTLE_AFTER):
            gaps.append(super().cached_pass(few, rule))
            self._settle()
        return np.concatenate(gaps)

    def extrapolate(self, factor: float) -> float:
        """See `BlockStore`."""
        return super().extrapolate(factor) + self._settle()

    def _line_step(self, direction: Floats, slope: float, curvature: float) -> tuple[float, float]:
        """See `PlaneStore`; the gain is that without the change of the bounds' multipliers."""
        step = self.multipliers.step(self.w, direction, slope, curvature)
        return step, step * (slope - 0.5 * step * curvature)

    def _remember_w(self) -> Floats | None:
        """See `PlaneStore`: the change of w is not that of the planes alone."""
        return None

    def solve_jointly(
        self, stop_gap: float, most_work: float, recombine: bool = False
    ) -> float | None:
        """See `BlockStore`."""
        if self.n_planes * len(self.w) > LARGEST_ROWS:
            return None
        return super().solve_jointly(stop_gap, most_work, recombine)

    def solve_joint(
        self,
        planes: JointPlanes,
        rows: PlaneRows,
        feature_blocks: FeatureBlocks,
        stop_gap: float,
        most_work: float,
    ) -> JointSolution:
        """See `PlaneStore`."""
        columns = columns_of(rows, feature_blocks, self.multipliers.which, len(self.w))
        return solve_within_bounds(planes, columns, self.multipliers, stop_gap, most_work)

    def rescale(self, upper_bounds: Floats) -> None:
        """See `BlockStore`; bounds' multipliers are scaled like the others, and then settled."""
        super().rescale(upper_bounds)
        self.rebuild()
        self.dual()

    def arrays(self) -> Arrays:
        """See `BlockStore`."""
        return {**super().arrays(), **add_prefix("bound_multipliers", self.multipliers.arrays())}

    def restore(self, arrays: Arrays) -> None:
        """See `BlockStore`."""
        super().restore(arrays)
        self.multipliers.restore(strip_prefix("bound_multipliers", arrays))

    def sum_of_multipliers(self, before: bool) -> tuple[Floats, float]:
        """See `PlaneStore`."""
        total, scale = super().sum_of_multipliers(before)
        total[self.multipliers.which] += self.multipliers.beta
        return total, scale + float(np.abs(self.multipliers.beta).max(initial=0.0))
