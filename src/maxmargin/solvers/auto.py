"""Our own best: exact block solves, cached and extrapolated passes, oracle calls where they pay."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..block_steps import ALL_PLANES
from ..planes import StepRule
from .dual_ascent import Ascent, DualAscent
from .passes import Momentum, Schedule

__all__ = ["Auto"]


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
    cached_share: float = 0.5
    push_after: float = 0.6
    floor: float = 0.25
    optimism: float = 1.5

    name: ClassVar[str] = "auto"
    rule: ClassVar[StepRule] = StepRule(ALL_PLANES, 50, precision=0.1)

    def iterate(self, ascent: Ascent) -> None:
        """Alternate oracle passes and cached passes until certified."""
        store = ascent.store
        schedule = Schedule(ascent.n, self.patience)
        cached = Schedule(ascent.n, self.patience)
        momentum = Momentum(store, self.extrapolation)
        since_push = 0
        optimism = self.optimism  # how far above the target the gaps met may be when certifying
        while True:
            started, dual = time.perf_counter(), float(store.dual_now[0])
            floor = self.floor * ascent.target / ascent.n
            chosen = ascent.order(schedule.due(self.share, floor))
            ascent.visit(chosen, self.rule)
            schedule.met(chosen, ascent.gaps[chosen])
            estimate = float(ascent.gaps.sum())
            certify = estimate <= optimism * ascent.target
            if not store.oracle_is_cheap:
                store.evict(self.idle_limit)
                self._revisit(ascent, cached, momentum, estimate, started, dual)
            elif not certify:
                since_push += len(chosen)
                if since_push >= self.push_after * ascent.n:
                    momentum.push()
                    since_push = 0
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
        self,
        ascent: Ascent,
        cached: Schedule,
        momentum: Momentum,
        estimate: float,
        started: float,
        dual: float,
    ) -> None:
        """Cached passes, extrapolated, as long as they pay."""
        store = ascent.store
        momentum.push()
        while True:
            began, before = time.perf_counter(), float(store.dual_now[0])
            chosen = ascent.order(cached.due(self.cached_share))
            cached.met(chosen, ascent.revisit(chosen, self.rule))
            left = float(cached.gaps.sum())
            if left <= self.reduced_precision * estimate:
                return
            now, reached = time.perf_counter(), float(store.dual_now[0])
            rate = (reached - before) / (now - began)
            overall = (reached - dual) / (now - started)
            if rate <= self.patience_with_cache * overall:
                return
            momentum.push(rate)
