"""Working sets and bundle of the cutting-plane solvers where single weights have bounds.

The arithmetic is in `engine.bounds`.
"""

from __future__ import annotations

import numpy as np

from ...types import Floats, Ints
from ..bounds import BoundPrices, columns_of, solve_within_bounds
from ..joint_planes import PlaneRows
from ..joint_qp import JointPlanes, JointSolution
from ..oracle import Oracle, batches
from ..state import Arrays, inside, under
from ..threads import Threads
from .bundle import Bundle
from .master import line_searches, master_gap
from .working_sets import WorkingSets

__all__ = ["BoundedBundle", "BoundedSets"]

SETTLE_AFTER = 8  # working sets that are improved before the bounds' multipliers are
LARGEST_ROWS = 20_000_000  # numbers in planes that are written out for a joint solution
ROUNDS = 20  # of the master's own method, each with the bounds' multipliers settled after it


class BoundedSets(WorkingSets):
    """Constraints of examples, and the multipliers of bounds on single weights."""

    def __init__(self, oracle: Oracle, caps: Floats, cache_bytes: int = 2**62) -> None:
        super().__init__(oracle, caps, cache_bytes)
        assert oracle.region is not None
        self.prices = BoundPrices(oracle.region)
        self.prices.renew(self.w)

    def improve(self, examples: Ints, kind: int, effort: int) -> Floats:
        """See `WorkingSets`."""
        gaps = [np.empty(0)]
        for few in batches(examples, SETTLE_AFTER):
            gaps.append(super().improve(few, kind, effort))
            self.prices.settle(self.w)
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
        columns = columns_of(rows, self.parts, self.prices.which, len(self.w))
        return solve_within_bounds(planes, columns, self.prices, stop_gap, most_work)

    def dual_sums(self) -> tuple[float, Floats]:
        """See `WorkingSets`; what bounds add is in the first."""
        linear, sums = super().dual_sums()
        return linear + self.prices.value, sums

    def renew(self) -> None:
        """See `WorkingSets`."""
        super().renew()
        self.prices.renew(self.w)

    def rescale(self, caps: Floats) -> None:
        """See `WorkingSets`; the bounds' multipliers are scaled like the others, then settled."""
        super().rescale(caps)
        self.renew()

    def arrays(self) -> Arrays:
        """See `WorkingSets`."""
        return {**super().arrays(), **under("prices", self.prices.arrays())}

    def restore(self, arrays: Arrays) -> None:
        """See `WorkingSets`."""
        super().restore(arrays)
        self.prices.restore(inside("prices", arrays))

    def sum_of_multipliers(self) -> Floats:
        """See `WorkingSets`."""
        total = super().sum_of_multipliers()
        total[self.prices.which] += self.prices.beta
        return total


class BoundedBundle(Bundle):
    """Aggregated planes, and the multipliers of bounds on single weights.

    Scores are the planes' values at the weights with the bounds' multipliers as they are.
    """

    def __init__(self, n_features: int, cap: float, prices: BoundPrices, room: int = 2**62) -> None:
        super().__init__(n_features, cap, room=room)
        self.prices = prices
        self.renew()

    @property
    def _columns(self) -> Floats:
        """The planes' features of the weights with bounds."""
        which, m = self.prices.which, self.size
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
        self.prices.renew(super().weights())
        self.refresh()

    def weights(self, threads: Threads | int = 1) -> Floats:
        """See `Bundle`."""
        w = super().weights(threads)
        self.prices.renew(w)
        return w

    def linear(self) -> float:
        """See `Bundle`; what bounds add is in it."""
        return super().linear() + self.prices.value

    def refresh(self) -> None:
        """See `Bundle`."""
        super().refresh()
        m = self.size
        self.scores[:m] -= self._columns @ self.prices.beta

    def add(self, plane: Floats, offset: float, threads: Threads | int = 1) -> None:
        """See `Bundle`."""
        super().add(plane, offset, threads)
        self.refresh()

    def solve(self, stop_gap: float, threshold: float = 0.0, max_rounds: int = 2000) -> float:
        """See `Bundle`; with a threshold, the paper's method and the bounds take turns."""
        if threshold > 0.0:
            for _ in range(ROUNDS):
                before = self.alpha[: self.size].copy()
                gap = super().solve(stop_gap, threshold, max_rounds)
                self.renew()
                if np.array_equal(before, self.alpha[: self.size]):
                    break
            return gap
        m = self.size
        if self.cap > 0.0 and m > 0:
            one_block = np.zeros(m, np.int64), np.array([self.cap]), np.zeros(1)
            planes = JointPlanes(self.gram[:m, :m], self.offset[:m], self.alpha[:m], *one_block)
            found = solve_within_bounds(planes, self._columns, self.prices, stop_gap, np.inf)
            self.alpha[:m] = found.alpha
        self._count_idle()
        self.renew()
        return self._gap

    def search_lines(self, stop_gap: float) -> float:
        """See `Bundle`."""
        m = self.size
        self.refresh()
        shifted = self.offset[:m] - self._columns @ self.prices.beta
        line_searches(self.gram, shifted, self.scores, self.alpha, m, self.cap, stop_gap)
        self._count_idle()
        self.renew()
        return self._gap

    @property
    def _gap(self) -> float:
        """Duality gap of the master, with the bounds' multipliers settled."""
        return float(master_gap(self.scores, self.alpha, self.size, self.cap))

    def dual(self, w: Floats | None = None) -> float:
        """See `Bundle`."""
        return super().dual(self.weights() if w is None else w)

    def rescale(self, cap: float) -> None:
        """See `Bundle`."""
        super().rescale(cap)
        self.renew()

    def restore(self, arrays: Arrays) -> None:
        """See `Bundle`; the bounds' multipliers follow from those of the planes."""
        super().restore(arrays)
        self.prices.renew(super().weights())
