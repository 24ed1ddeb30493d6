"""Schedules of passes, their extrapolation, and when the QP over all planes pays."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ...engine.store.block_store import BlockStore
from ...engine.training.run import Run
from ...engine.training.state import Checkpointable, declare_state
from ...jit.decorator import kernel
from ...jit.numba_patches import prefetch
from ...utils.schema import Count, Number, numbers, whole
from ...utils.types import Bools, Floats, Ints

__all__ = ["JointQPPolicy", "Momentum", "Schedule", "largest_first", "runs_in_order"]


RUNS_AHEAD = 8  # from asking for a run's memory to its use: runs lie all over the order
NEARLY_OPTIMAL = 0.1  # share of a large gap below which a block is


class Schedule(Checkpointable):
    """Blocks that are worth a visit: those with a large gap, and those not seen for a while.

    A block may be skipped ``patience`` times in a row, and so many times more after each visit in a
    row that finds it nearly optimal, ``longest`` times at most.
    """

    state_fields = declare_state(
        gaps=lambda own: numbers(len(own.gaps), high=np.inf),
        age=lambda own: whole(len(own.age), below=2**62),
        wait=lambda own: whole(len(own.wait), below=2**62),
        _large=Number,
    )

    def __init__(self, n: int, patience: int, longest: int | None = None) -> None:
        self.gaps: Floats = np.full(n, np.inf)
        self.age = np.zeros(n, dtype=np.int64)
        self.wait = np.full(n, patience)
        self.patience = patience
        self.longest = patience if longest is None else longest
        self._large = 0.0  # gap from which on blocks were due when last asked

    def due(self, share: float, floor: float = 0.0) -> Bools:
        """Blocks whose gap is at least ``share`` of the mean, or that waited long enough."""
        self.age += 1
        mean = float(self.gaps.mean())
        if not np.isfinite(mean):
            return np.ones(len(self.gaps), np.bool_)
        self._large = max(share * mean, floor)
        return (self.gaps >= self._large) | (self.age > self.wait)

    def record_gaps(self, blocks: Ints, gaps: Floats) -> None:
        """Note the gaps of visited blocks."""
        limits = (NEARLY_OPTIMAL * self._large, self.patience, self.longest)
        _record_gaps(blocks, gaps, limits, self.gaps, self.age, self.wait)


@kernel(allocates=False)
def _record_gaps(blocks, gaps, limits, known, age, wait):
    """Note the gaps of blocks; those that are nearly optimal may wait for longer than last time."""
    small, patience, longest = limits
    for r in range(len(blocks)):
        i = blocks[r]
        known[i] = gaps[r]
        age[i] = 0
        wait[i] = min(wait[i] + patience, longest) if gaps[r] < small else patience


@kernel(allocates=False)
def runs_in_order(order, starts, length, chosen, found):
    """List the chosen among the runs of ``order`` that begin at ``starts``; returns their number.

    ``found`` has one place more: without branches, which would be mispredicted.
    """
    n = 0
    for s in range(len(starts)):
        if s + RUNS_AHEAD < len(starts):
            prefetch(order, starts[s + RUNS_AHEAD])
            prefetch(order, starts[s + RUNS_AHEAD] + 8)
        start = starts[s]
        for r in range(start, min(start + length, len(order))):
            i = order[r]
            found[n] = i
            n += chosen[i]
    return n


def largest_first(gaps: Floats, order: Ints) -> Ints:
    """Blocks by the size of their gaps to the power of two, those of equal size in ``order``.

    To sort by the gaps themselves takes longer than a pass over many small blocks.
    """
    gaps = gaps[order]
    size = np.frexp(gaps)[1]
    size[gaps <= 0.0] = -2000
    size[gaps == np.inf] = 2000
    return order[np.argsort(-size.astype(np.int16), kind="stable")]


class Momentum(Checkpointable):
    """Extrapolates from pass to pass, and pauses where that gains far less than passes do.

    After a pass the multipliers go on in the direction of their change since the last
    extrapolation, clipped to the feasible set and cut by exact line search (the dual never falls).
    On problems whose blocks share most features this saves most of the passes; where they share
    few it gains next to nothing.
    """

    state_fields = declare_state(remembers=bool, pause=Count)

    def __init__(self, store: BlockStore, factor: float) -> None:
        self.store = store
        self.factor = factor
        self.remembers = False
        self.pause = 0

    def push(self, rate_of_passes: float = 0.0) -> None:
        """Extrapolate, unless recent tries gained too little for their work."""
        if self.factor == 0.0:
            return
        if self.pause > 0:
            self.pause -= 1
            self.remembers = False
            return
        began = self.store.work
        gain = self.store.extrapolate(self.factor if self.remembers else 0.0)
        if self.remembers and gain < 0.2 * rate_of_passes * (self.store.work - began):
            self.pause = 6
        self.remembers = True


SHARE = 2.0  # work of joint solutions, as a multiple of all other work
LONGEST = 3e8  # work of one solution: limits and interrupts are looked at after it
# Work around an oracle call that stores do not count, and the same where the store has the oracle.
CALL, OWN_CALL = 3e4, 3e3


class JointStore(Protocol):
    """Planes with multipliers, see `planes.BlockStore`."""

    visits_in_order: bool

    @property
    def work(self) -> float:
        """Work done so far."""

    def solve_jointly(
        self, stop_gap: float, most_work: float, recombine: bool = False
    ) -> float | None:
        """Solve for all stored planes; None where that takes too much work."""


class JointQPPolicy(Checkpointable):
    """Solves for all stored planes at once, as long as that takes no more than a share of the work.

    Where there are few planes it is the quickest way, and the only one where blocks hold each other
    up. Large problems have too many planes for it.
    """

    state_fields = declare_state(solved=bool, work=Number)

    def __init__(self, store: JointStore, allowed: bool, share: float = SHARE) -> None:
        self.store = store
        self.allowed = allowed
        self.share = share
        self.solved = False  # whether the last try was successful
        self.work = 0.0  # of all tries

    def solve(self, run: Run, stop_gap: float, recombine: bool = False) -> bool:
        """Solve to this gap, if that is worth its work; returns whether it was done.

        The run is not kept: warm starts keep this object, and a run has the user's callbacks.
        """
        if not self.allowed:
            return False
        began = self.store.work
        call = OWN_CALL if self.store.visits_in_order else CALL
        other = began - self.work + call * run.oracle_calls
        most = min(self.share * other - self.work, LONGEST)
        with run.stepping():
            left = self.store.solve_jointly(stop_gap, most, recombine)
        self.solved = left is not None and left <= stop_gap
        self.work += self.store.work - began
        run.count_hits(0 if left is None else run.n)
        return self.solved
