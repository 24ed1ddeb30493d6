"""Working sets and bundle of the cutting-plane solvers where single weights have bounds.

The arithmetic is in `engine.steps.bound_multipliers`.
"""

from __future__ import annotations

import numpy as np

from ...utils.types import Floats, Ints
from ..oracle import Oracle
from ..parallel.threads import Threads
from ..steps.bound_multipliers import BoundMultipliers, columns_of, solve_within_bounds
from ..steps.joint_qp import JointPlanes, JointSolution
from ..store.joint_planes import PlaneRows
from ..training.state import Arrays, add_prefix, strip_prefix
from ..violations import batches
from .bundle import Bundle
from .master import line_searches, master_gap
from .working_sets import WorkingSets

__all__ = ["BoundedBundle", "BoundedSets"]

SETTLE_AFTER = 8  # working sets that are improved before the bounds' multipliers are
LARGEST_ROWS = 20_000_000  # numbers in planes that are written out for a joint solution
ROUNDS = 20  # of the master's own method, each with the bounds' multipliers settled after it


class BoundedSets(WorkingSets):
    """Constraints of examples, and the multipliers of bounds on single weights."""

    def __init__(self, oracle: Oracle, upper_bounds: Floats, cache_bytes: int = 2**62) -> None:
        super().__init__(oracle, upper_bounds, cache_bytes)
        assert oracle.feasible_set is not None
        self.multipliers = BoundMultipliers(oracle.feasible_set)
        self.multipliers.renew(self.w)

    def improve(self, examples: Ints, kind: int, effort: int, threshold: float = 0.0) -> Floats:
        """See `WorkingSets`."""
        gaps = [np.empty(0)]
        for few in batches(examples, SETTLE_AFTER):
            gaps.append(super().improve(few, kind, effort, threshold))
            self.multipliers.project(self.w)
        return np.concatenate(gaps)

    def solve_jointly(
        self, stop_gap: float, most_work: float, recombine: bool = False
    ) -> float | None:
        """See `WorkingSets`."""
        if self.n_planes * len(self.w) > LARGEST_ROWS:
            return None
        return super().solve_jointly(stop_gap, most_work, recombine)

    def solve_joint(
        self, planes: JointPlanes, rows: PlaneRows, stop_gap: float, most_work: float
    ) -> JointSolution:
        """See `WorkingSets`."""
        columns = columns_of(rows, self.feature_blocks, self.multipliers.which, len(self.w))
        return solve_within_bounds(planes, columns, self.multipliers, stop_gap, most_work)

    def dual_sums(self) -> tuple[float, Floats]:
        """See `WorkingSets`; what bounds add is in the first."""
        linear, sums = super().dual_sums()
        return linear + self.multipliers.value, sums

    def renew(self) -> None:
        """See `WorkingSets`."""
        super().renew()
        self.multipliers.renew(self.w)

    def rescale(self, upper_bounds: Floats) -> None:
        """See `WorkingSets`; the bounds' multipliers are scaled like the others, then settled."""
        super().rescale(upper_bounds)
        self.renew()

    def arrays(self) -> Arrays:
        """See `WorkingSets`."""
        return {**super().arrays(), **add_prefix("bound_multipliers", self.multipliers.arrays())}

    def restore(self, arrays: Arrays) -> None:
        """See `WorkingSets`."""
        super().restore(arrays)
        self.multipliers.restore(strip_prefix("bound_multipliers", arrays))

    def sum_of_multipliers(self) -> Floats:
        """See `WorkingSets`."""
        total = super().sum_of_multipliers()
        total[self.multipliers.which] += self.multipliers.beta
        return total


class BoundedBundle(Bundle):
    """Aggregated planes, and the multipliers of bounds on single weights.

    Scores are the planes' values at the weights with the bounds' multipliers as they are.
    """

    def __init__(
        self, n_features: int, upper_bound: float, multipliers: BoundMultipliers, room: int = 2**62
    ) -> None:
        super().__init__(n_features, upper_bound, room=room)
        self.multipliers = multipliers
        self.renew()

    @property
    def _columns(self) -> Floats:
        """The planes' features of the weights with bounds."""
        which, m = self.multipliers.which, self.size
        if self.dense:
            return self.matrix[:m][:, which]
        columns = np.zeros((m, len(which)))
        for k in range(m):
            entries = slice(self.starts[k], self.starts[k + 1])
            row = np.zeros(self.n_features)
            row[self.ids[entries]] = self.values[entries]
            columns[k] = row[which]
        return columns

    def renew(self) -> None:
        """Settle the bounds' multipliers, and refresh the scores."""
        self.multipliers.renew(super().weights())
        self.refresh()

    def weights(self, threads: Threads | int = 1) -> Floats:
        """See `Bundle`."""
        w = super().weights(threads)
        self.multipliers.renew(w)
        return w

    def linear(self) -> float:
        """See `Bundle`; what bounds add is in it."""
        return super().linear() + self.multipliers.value

    def refresh(self) -> None:
        """See `Bundle`."""
        super().refresh()
        m = self.size
        self.scores[:m] -= self._columns @ self.multipliers.beta

    def add(self, plane: Floats, offset: float, threads: Threads | int = 1) -> None:
        """See `Bundle`."""
        super().add(plane, offset, threads)
        self.refresh()

    def solve(
        self, stop_gap: float, threshold: float = 0.0, max_rounds: int = 2000, qp: str = "fsmo"
    ) -> float:
        """See `Bundle`; with a threshold, the paper's method and the bounds take turns."""
        if threshold > 0.0:
            for _ in range(ROUNDS):
                before = self.alpha[: self.size].copy()
                gap = super().solve(stop_gap, threshold, max_rounds, qp)
                self.renew()
                if np.array_equal(before, self.alpha[: self.size]):
                    break
            return gap
        m = self.size
        if self.upper_bound > 0.0 and m > 0:
            one_block = np.zeros(m, np.int64), np.array([self.upper_bound]), np.zeros(1)
            planes = JointPlanes(self.gram[:m, :m], self.offset[:m], self.alpha[:m], *one_block)
            found = solve_within_bounds(planes, self._columns, self.multipliers, stop_gap, np.inf)
            self.alpha[:m] = found.alpha
        self._count_idle()
        self.renew()
        return self._gap

    def search_lines(self, stop_gap: float) -> float:
        """See `Bundle`."""
        m = self.size
        self.refresh()
        shifted = self.offset[:m] - self._columns @ self.multipliers.beta
        line_searches(self.gram, shifted, self.scores, self.alpha, m, self.upper_bound, stop_gap)
        self._count_idle()
        self.renew()
        return self._gap

    def search_line(self) -> float:
        """See `Bundle`."""
        super().search_line()
        self.renew()
        return self._gap

    @property
    def _gap(self) -> float:
        """Duality gap of the master, with the bounds' multipliers settled."""
        return float(master_gap(self.scores, self.alpha, self.size, self.upper_bound))

    def dual(self, w: Floats | None = None) -> float:
        """See `Bundle`."""
        return super().dual(self.weights() if w is None else w)

    def rescale(self, upper_bound: float) -> None:
        """See `Bundle`."""
        super().rescale(upper_bound)
        self.renew()

    def restore(self, arrays: Arrays) -> None:
        """See `Bundle`; the bounds' multipliers follow from those of the planes."""
        super().restore(arrays)
        self.multipliers.renew(super().weights())
