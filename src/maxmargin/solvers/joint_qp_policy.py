"""When the stored planes of all examples are solved for together."""

from __future__ import annotations

from typing import Protocol

from ..engine.run import Run
from ..engine.state import Checkpointable, declare_state
from ..schema import Number

__all__ = ["JointQPPolicy"]

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
        left = self.store.solve_jointly(stop_gap, most, recombine)
        self.solved = left is not None and left <= stop_gap
        self.work += self.store.work - began
        run.count_hits(0 if left is None else run.n)
        return self.solved
