"""Our own best: exact block solves, cached and extrapolated passes, oracle calls where they pay."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..block_steps import ALL_PLANES
from ..planes import StepRule
from .dual_ascent import Ascent, DualAscent

__all__ = ["Auto"]

Floats = NDArray[np.float64]


class _Schedule:
    """Which blocks are worth a visit: those with a large gap, and those not seen for a while."""

    def __init__(self, n: int, patience: int) -> None:
        self.gaps: Floats = np.full(n, np.inf)
        self.age = np.zeros(n, dtype=np.int64)
        self.patience = patience

    def due(self, share: float, floor: float = 0.0) -> NDArray[np.bool_]:
        """Blocks whose gap is at least ``share`` of the mean, or that waited long enough."""
        self.age += 1
        mean = self.gaps.mean()
        if not np.isfinite(mean):
            return np.ones(len(self.gaps), dtype=bool)
        return (self.gaps >= max(share * mean, floor)) | (self.age > self.patience)

    def met(self, blocks: NDArray[np.int64], gaps: Floats) -> None:
        """Note the gaps of visited blocks."""
        self.gaps[blocks] = gaps
        self.age[blocks] = 0


@dataclass(frozen=True)
class Auto(DualAscent):
    """Dual ascent that decides by measured gain and time.

    * A visit solves its whole block: the block's planes are scored once, many pair steps are
      taken in Gram space, and w is written once.
    * Oracle passes skip blocks whose last gap was small, for a few passes at most.
    * Between oracle passes the stored planes are revisited as long as that gains more per second
      than the iteration as a whole, or until little is left to gain.
    * Passes are extrapolated: after a pass the multipliers move on in the direction of the change
      since the pass before, clipped to the feasible set and cut by exact line search.
    * When the gaps met suggest that the target is reached, a full pass at fixed w certifies it.

    Parameters
    ----------
    patience : int
        Oracle passes that may skip a block in a row.
    share : float
        Blocks with a gap below this share of the mean are skipped.
    extrapolation : float
        How far to go on, as a multiple of the last pass's change; 0 turns it off.
    reduced_precision : float
        Revisits stop when the stored planes' gap is below this share of the whole.
    patience_with_cache : float
        Revisits go on while their gain per second is at least this share of the iteration's.
    idle_limit : int
        Visits in a row without weight after which a plane is dropped.
    """

    batch_size: int = 16
    patience: int = 2
    share: float = 0.5
    extrapolation: float = 3.0
    reduced_precision: float = 0.15
    patience_with_cache: float = 0.3
    idle_limit: int = 40

    name: ClassVar[str] = "auto"
    rule: ClassVar[StepRule] = StepRule(ALL_PLANES, 50, precision=0.1)

    def iterate(self, ascent: Ascent) -> None:
        """Alternate oracle passes and cached passes until certified."""
        schedule = _Schedule(ascent.n, self.patience)
        cached = _Schedule(ascent.n, self.patience)
        momentum = _Momentum(ascent, self.extrapolation)
        optimism = 2.0  # how far above the target the gaps met may be when certifying
        while True:
            started, dual = time.perf_counter(), float(ascent.store.dual_now[0])
            floor = 0.25 * ascent.target / ascent.n
            chosen = ascent.order(schedule.due(self.share, floor))
            ascent.visit(chosen, self.rule)
            schedule.met(chosen, ascent.gaps[chosen])
            estimate = float(ascent.gaps.sum())
            if ascent.store.oracle_is_cheap:
                certify = estimate <= optimism * ascent.target
                if not certify:
                    momentum.push()
            else:
                ascent.store.evict(self.idle_limit)
                self._revisit(ascent, cached, estimate, started, dual)
                certify = estimate <= optimism * ascent.target
            if certify:
                certificate = ascent.certify(self.rule)
                schedule.met(np.arange(ascent.n), ascent.gaps)
                ascent.record(estimate)
                if ascent.converged():
                    return
                # The ratio that was seen tells when to try again.
                optimism = max(0.25, 0.9 * estimate / max(certificate.gap, 1e-300))
            else:
                ascent.record(estimate)

    def _revisit(
        self, ascent: Ascent, cached: _Schedule, estimate: float, started: float, dual: float
    ) -> None:
        """Cached passes, extrapolated, as long as they pay."""
        store = ascent.store
        cached.gaps[:] = np.inf
        momentum = _Momentum(ascent, self.extrapolation)
        while True:
            began, before = time.perf_counter(), float(store.dual_now[0])
            chosen = ascent.order(cached.due(0.2))
            cached.met(chosen, ascent.revisit(chosen, self.rule))
            left = float(cached.gaps.sum())
            if left <= self.reduced_precision * estimate:
                return
            now, reached = time.perf_counter(), float(store.dual_now[0])
            rate = (reached - before) / (now - began)
            overall = (reached - dual) / (now - started)
            if rate < self.patience_with_cache * overall:
                return
            momentum.push(rate)


class _Momentum:
    """Extrapolates from pass to pass, and pauses while that gains less than passes do."""

    def __init__(self, ascent: Ascent, factor: float) -> None:
        self.ascent = ascent
        self.factor = factor
        self.before: Floats | None = None
        self.pause = 0

    def push(self, rate_of_passes: float = 0.0) -> None:
        """Extrapolate from the last two passes, if it is worth its time."""
        if self.factor == 0.0:
            return
        if self.pause > 0:
            self.pause -= 1
            self.before = None
            return
        now = self.ascent.store.multipliers()
        if self.before is not None:
            began = time.perf_counter()
            gain = self.ascent.store.extrapolate(self.before, self.factor)
            if gain < 0.5 * rate_of_passes * (time.perf_counter() - began):
                self.pause = 3
        self.before = now
