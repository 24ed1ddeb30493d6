"""FASOLE and SDM (Franc 2014, Alg. 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ...core.formulation import Formulation
from ...core.problem import Problem
from ...engine.steps.block_steps import MVP, WSS2
from ...engine.store.block_store import StepRule
from ...engine.training.convergence import Plateau
from ...engine.training.state import OWN, Checkpointable, declare_state
from ...utils.schema import flags
from ...utils.validation import check_choice
from .dual_ascent import AS_PRINTED, DualAscent, DualAscentRun
from .passes import JointQPPolicy, Momentum, Schedule

__all__ = ["FASOLE", "SDM"]

EARLY = 0.05  # share of the gap last seen that is aimed at first: the next planes change it anyway
# Share of that precision to which a joint solution goes on: it stops where it meets it, while the
# last of many passes leaves far less than it found.
JOINT = 0.1


class FASOLELoop(Checkpointable):
    """What `FASOLE` keeps from one iteration to the next."""

    state_fields = declare_state(
        unsatisfied=lambda own: flags(len(own.unsatisfied)),
        online=bool,
        together=OWN,
    )

    def __init__(self, ascent: DualAscentRun, joint: bool) -> None:
        self.unsatisfied = np.ones(ascent.n, dtype=bool)
        self.online = True
        self.together = JointQPPolicy(ascent.store, joint)


@dataclass(frozen=True)
class FASOLE(DualAscent):
    """FASOLE (Franc 2014, Alg. 3): a reduced problem, shrinking, an online and a batch regime.

    After every pass over the examples the *reduced problem*, over the planes found so far, is
    solved to the target precision without oracle calls. Examples whose gap was at most epsilon are
    *satisfied* and left out of later passes until all are. The first, *online*, passes also step
    on every block they visit; once a share K of the blocks is satisfied, *batch* passes only find
    planes, at a fixed w, so that a full one measures the true gap, which is the stopping rule.

    Parameters
    ----------
    K : float
        Share of satisfied blocks at which the regime becomes batch.
    reduced : {"fast", "paper"}
        How the reduced problem is solved. "paper": by Algorithm 2 over the stored planes, single
        steps on all blocks whose gap exceeds epsilon, until there is none. "fast": up to 20 steps
        for a block, which is skipped for up to three passes where there is little to gain, and
        passes are extrapolated, until the gap of the reduced problem is small enough.
    reduced_precision : float
        "fast" solves the reduced problem to this share of the target gap (while the whole gap is
        more than twenty times the target, of a twentieth of that). The paper goes on until no
        single block has a gap above epsilon, which leaves far less than epsilon in all; with the
        target itself twice the oracle calls are needed at small lambda.
    max_reduced_passes : int
        Limit on the passes over stored planes for one solution of the reduced problem.
    idle_limit : int
        Visits in a row without weight after which a plane is dropped; the paper keeps all.
    joint : bool
        Whether "fast" solves for all stored planes together where they are few; see `Auto`.

    Notes
    -----
    The part with the oracle is Algorithm 3: which blocks are visited, which planes are stored,
    where a step is taken, when the regime changes.

    **Deviations**

    * The reduced problem has one solution, however it is found, but the precision differs:
      ``reduced="paper", max_reduced_passes=10**9`` gives the paper's. With ``joint=True``, and
      few planes, Newton steps in the multipliers of all examples together find it.
    * Planes are dropped after ``idle_limit`` visits without weight; ``idle_limit=10**9`` keeps all,
      as far as ``cache_mb`` has room.
    * The pass that ends the training compares the best primal value of all such passes with the
      dual value; the paper takes that of the last pass. (The paper's G is a sum that it compares
      with epsilon; that it is to be a mean follows from its Section 3.2.)
    * With ``tol``, epsilon follows the dual value. With ``tol=None, epsilon=...`` it is fixed, as
      in the paper.
    * Online passes visit the examples in random order, in batches of ``batch_size``;
      ``order="given", batch_size=1`` gives the paper's.
    * Squared slacks are not in the paper, see `SDA`.
    """

    K: float = 0.9
    reduced: Literal["fast", "paper"] = "fast"
    reduced_precision: float = 0.3
    max_reduced_passes: int = 1000
    idle_limit: int = 20
    joint: bool = False

    name: ClassVar[str] = "fasole"
    as_published: ClassVar[Mapping[str, Any]] = {
        "reduced": "paper",
        "max_reduced_passes": 10**9,
        "idle_limit": 10**9,
        **AS_PRINTED,
    }
    slacks: ClassVar[tuple[str, ...]] = ("l1", "l2")
    kind: ClassVar[int] = WSS2

    def check(self, problem: Problem, formulation: Formulation, C: float) -> None:
        """See `Solver.check`."""
        super().check(problem, formulation, C)
        check_choice(self.reduced, ("fast", "paper"), "reduced")

    def iterate(self, ascent: DualAscentRun) -> None:
        """Algorithm 3, with epsilon the target gap divided by ``C sum_i s_i``."""
        loop = ascent.looping(FASOLELoop(ascent, self.joint))
        while True:
            ascent.save_point()
            epsilon = ascent.block_epsilon
            checked = loop.unsatisfied
            if loop.online:
                ascent.oracle_pass(ascent.order(checked), self._rule(epsilon))
            elif checked.all():
                ascent.certify(self._rule(epsilon))
                if ascent.converged():
                    ascent.record()
                    return
            else:
                ascent.oracle_pass(ascent.order(checked), self._rule(epsilon)._replace(max_steps=0))
            satisfied = ascent.gaps <= epsilon * ascent.store.upper_bounds
            if checked.all() and (satisfied & checked).sum() >= self.K * ascent.n:
                loop.online = False
            loop.unsatisfied = checked & ~satisfied
            if not loop.unsatisfied.any():
                loop.unsatisfied[:] = True
            estimate = float(ascent.gaps.sum())
            goal = max(ascent.target, EARLY * estimate)
            if self.reduced == "paper":
                self._solve_as_printed(ascent, self._rule(epsilon))
            else:
                self._solve_reduced(ascent, loop.together, self.reduced_precision * goal)
            ascent.store.evict(self.idle_limit)
            ascent.end_iteration(estimate)

    def _rule(self, epsilon: float) -> StepRule:
        """One step on blocks whose gap exceeds epsilon."""
        return StepRule(self.kind, 1, threshold=epsilon)

    def _solve_as_printed(self, ascent: DualAscentRun, rule: StepRule) -> None:
        """Solve problem (12) by Algorithm 2, until no block's gap exceeds the rule's threshold."""
        allowed = rule.threshold * ascent.store.upper_bounds
        for _ in range(self.max_reduced_passes):
            order = ascent.order()
            if np.all(ascent.cached_pass(order, rule) <= allowed[order]):
                return

    def _solve_reduced(self, ascent: DualAscentRun, together: JointQPPolicy, gap: float) -> None:
        """Solve problem (12), over the stored planes, to this gap.

        All planes together where they are few. Else several steps per visit, blocks with little to
        gain skipped, passes extrapolated.
        """
        ascent.certified = False  # before new weights: they may be interrupted
        if together.solve(ascent, JOINT * gap):
            return
        schedule = Schedule(ascent.n, patience=3)
        momentum, plateau = Momentum(ascent.store, 3.0), Plateau()
        for _ in range(self.max_reduced_passes):
            began, before = ascent.store.work, float(ascent.store.dual_now[0])
            chosen = ascent.order(schedule.due(0.5))
            schedule.record_gaps(
                chosen, ascent.cached_pass(chosen, StepRule(self.kind, 20, precision=0.1))
            )
            left = float(schedule.gaps.sum())
            if left <= gap or plateau.seen(left):
                return
            gain = float(ascent.store.dual_now[0]) - before
            with ascent.stepping():
                momentum.push(gain / (ascent.store.work - began))


@dataclass(frozen=True)
class SDM(FASOLE):
    """The sequential dual method (Balamurugan et al. 2011), as Franc (2014) compares with it.

    It is Algorithm 3 of Franc with another pair in every step: weight moves to the most violated
    plane from the stored plane that has weight and the smallest score (the maximal violating pair).

    Notes
    -----
    **Deviations**

    * Those of `FASOLE`.
    * Like Franc's experiments, this leaves out the heuristics of Balamurugan et al. by which oracle
      calls and steps on stored planes take turns.
    """

    name: ClassVar[str] = "sdm"
    kind: ClassVar[int] = MVP
