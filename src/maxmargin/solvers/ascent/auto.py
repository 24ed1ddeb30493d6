"""Our own best: exact block solves, cached and extrapolated passes, oracle calls where they pay."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from itertools import count
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ...core.formulation import Formulation
from ...core.problem import Problem
from ...core.result import Callback, Result
from ...engine.steps.block_steps import ALL_PLANES
from ...engine.store.block_store import StepRule
from ...engine.training.convergence import Plateau
from ...engine.training.state import OWN, Checkpointable, declare_state
from ...utils.schema import Count, Number
from ..base import Solver
from ..cutting_plane.one_slack import OneSlack
from .dual_ascent import DualAscent, DualAscentRun
from .passes import JointQPPolicy, Momentum, Schedule

__all__ = ["Auto"]

# The gap falls by more than the dual rises: where its rise should bring the gap below this share of
# the target, a certificate is tried instead of more cached passes.
AIM = 0.8
# Cached passes from one search for recombinations to the next, from the first after an oracle pass
# on: such a search costs about as much as the scores of a block.
RECOMBINE_EVERY = 4
# Of a joint solution, the gap that is left among the stored planes: of the target, or of the whole.
SOLVED, SETTLED = 0.1, 0.005
# Joint solutions are for few examples. They begin at once, or where visits are cheap after so many
# iterations, if the target is at most this share of the dual, and in any case after many passes:
# their kernels compile for seconds, which a quick fit to the default precision is to be spared.
FEW, FINE, SOON_CHEAP, MANY_PASSES = 250, 2e-3, 4, 30
# Batches in a pass over few examples, and the least size of one, where precision is high: a call of
# the oracle costs more than its search there.
BATCHES, LEAST_BATCH = 8, 32
NEAR = 3.0  # estimate of the gap, as a multiple of the target, where cheap passes do
JOINT_SHARE = 1.0  # of their work, as a multiple of all other work
# Optimism after a failed attempt to certify, where visits are cheap, as a share of that before.
MORE_CAREFUL, LEAST_OPTIMISM = 0.7, 0.05
# Visits per block between extrapolations, where there are no cached passes. More extrapolations
# make up for the shorter steps of threads.
PUSH_AFTER, PUSH_AFTER_SHORT = 0.3, 0.1


class AutoLoop(Checkpointable):
    """What `Auto` keeps from one iteration to the next."""

    state_fields = declare_state(
        estimate=Number,
        since_push=Count,
        trying=bool,
        optimism=Number,
        iterations=Count,
        jointly=bool,
        fine=bool,
        schedule=OWN,
        cached=OWN,
        momentum=OWN,
        together=OWN,
    )

    def __init__(self, solver: Auto, ascent: DualAscentRun) -> None:
        n, patience, store = ascent.n, solver.patience, ascent.store
        # Where visits are cheap a block that needs one is found soon enough: skip it for longer.
        cheap = store.oracle_is_cheap
        self.schedule = Schedule(n, patience, 16 * patience if cheap else patience)
        self.cached = Schedule(n, patience)
        self.momentum = Momentum(store, solver.extrapolation)
        self.estimate = np.inf  # of the gap, from the blocks' gaps as last seen
        self.since_push = 0  # visits since the last extrapolation
        # Estimate at which a certificate is tried, as a multiple of the target. Where visits are
        # cheap a failed attempt gains nothing, but shows how far off estimates are.
        self.optimism = min(solver.optimism, 1.0) if cheap else solver.optimism
        self.trying = False  # whether the last pass was an attempt to certify
        self.iterations = 0
        self.jointly = False  # whether joint solutions have begun
        self.together = JointQPPolicy(store, solver.joint and n <= FEW, JOINT_SHARE)
        self.batch_sizes = (ascent.batch_size, ascent.batch_size)  # usual, and for high precision
        if self.together.allowed and solver.batch_size is None:
            self.batch_sizes = (ascent.batch_size, max(-(-n // BATCHES), LEAST_BATCH))
        self.fine = True  # whether a high precision is asked for, as far as known

    @staticmethod
    def _is_fine(ascent: DualAscentRun) -> bool:
        """Whether a high precision is asked for."""
        return bool(ascent.target <= FINE * ascent.dual)

    def begins_jointly(self, ascent: DualAscentRun) -> bool:
        """Whether this is the first pass, and its planes will be solved for together.

        It leaves w alone, which is 0 as a rule: zero weights are the best where C is small.
        """
        if self.iterations or not self.together.allowed or ascent.store.oracle_is_cheap:
            return False
        stopping = ascent.stopping
        return stopping.tol is not None and stopping.tol <= FINE and stopping.epsilon is None

    def solve_jointly(self, ascent: DualAscentRun, rule: StepRule) -> bool:
        """Solve for the stored planes together, where that pays; returns whether it was done."""
        self.iterations += 1
        self.fine = self._is_fine(ascent)
        cheap = ascent.store.oracle_is_cheap
        soon = SOON_CHEAP if cheap else 0
        self.jointly |= ascent.oracle_calls > MANY_PASSES * ascent.n or (
            self.iterations > soon and self.fine
        )
        # Passes that are cheap and have brought the target near will also reach it.
        near = cheap and self.estimate <= NEAR * ascent.target
        if near or not self.jointly:
            self.together.solved = False
            return False
        precision = max(SOLVED * ascent.target, SETTLED * self.estimate)
        return self.together.solve(ascent, precision, rule.recombine)


@dataclass(frozen=True)
class Auto(DualAscent):
    """Dual ascent that decides by measured gain and counted work.

    * A visit solves its whole block: the block's planes are scored once, many pair steps are
      taken in Gram space, and w is written once.
    * Passes skip blocks whose last gap was small, but not for ever.
    * Between oracle passes the stored planes are revisited as long as that gains more for its
      work than the iteration as a whole, or until little is left to gain.
    * Passes are extrapolated: after a pass the multipliers move on in the direction of the change
      since the pass before, clipped to the feasible set and cut by exact line search.
    * The planes of few examples are solved for together, and the next ones found by a full pass at
      that w.
    * When the gaps seen suggest that the target is reached, a full pass at fixed w certifies it.

    A single example, such as a whole sample of which a measure is trained, has nothing to ascend
    block by block: with linear slacks it is left to `OneSlack`, whose defaults then hold.

    Parameters
    ----------
    share : float
        Oracle passes skip blocks whose last gap was below this share of the mean.
    cached_fraction : float
        The same for cached passes.
    patience : int
        Passes that may skip a block in a row. Where visits are cheap it is up to sixteen times as
        many if the block was nearly optimal again and again.
    floor : float
        Blocks whose last gap was below this share of the target gap per block are skipped too.
    optimism : float
        A certificate is tried when the gaps last seen sum to at most this multiple of the target.
    reduced_precision : float
        Revisits stop when the stored planes' gap is below this share of the whole.
    cache_patience : float
        Revisits go on while their gain, by the work done, is at least this share of the
        iteration's.
    extrapolation : float
        How far to go on, as a multiple of the last pass's change; 0 turns it off.
    idle_limit : int
        Visits in a row without weight after which a plane is dropped.
    joint : bool
        Solve for all stored planes together where there are at most 250 examples, and the precision
        asked for is high (a relative gap of 0.2 % or less) or passes are many: small problems with
        a large C then take a fraction of them. The kernels compile for some seconds at the first
        use.

    Notes
    -----
    **Deviations**

    No paper has this algorithm. It is built of the parts of Franc's (2014): the blocks' gaps, steps
    with second-order pairs (Alg. 2), a reduced problem between oracle passes, blocks that are left
    out for a while (Alg. 3). What is ours:

    * whole blocks are solved per visit; those of classes in closed form over all classes, also such
      that no oracle call has returned;
    * the labels that the stored planes of a chain use are searched in all combinations: planes
      that no oracle call has returned;
    * blocks are left out by the size of their gap beside the mean, not by a fixed epsilon;
    * revisits end when they gain too little for their work, not when a reduced problem is solved;
    * passes are extrapolated;
    * the multipliers of all stored planes are solved for together, where they are few;
    * certificates begin with the blocks of the largest gaps, and are given up early.

    For the papers' own choose `FASOLE` or `SDA`.
    """

    share: float = 0.7
    cached_fraction: float = 0.5
    patience: int = 2
    floor: float = 0.25
    optimism: float = 3.0
    reduced_precision: float = 0.15
    cache_patience: float = 0.4
    extrapolation: float = 1.0
    idle_limit: int = 4
    joint: bool = True

    name: ClassVar[str] = "auto"
    slacks: ClassVar[tuple[str, ...]] = ("l1", "l2")
    rule: ClassVar[StepRule] = StepRule(ALL_PLANES, 50, precision=0.2, recombine=True)

    def solve(
        self,
        problem: Problem,
        formulation: Formulation,
        C: float,
        *,
        sample_weight: ArrayLike | None = None,
        warm_start: Result | None = None,
        callbacks: Iterable[Callback] = (),
    ) -> Result:
        """See `Solver.solve`."""
        solve = super().solve
        if problem.n_examples == 1 and formulation.slack in OneSlack.slacks:
            solve = OneSlack(
                **{field.name: getattr(self, field.name) for field in fields(Solver)}
            ).solve
        return solve(
            problem,
            formulation,
            C,
            sample_weight=sample_weight,
            warm_start=warm_start,
            callbacks=callbacks,
        )

    def iterate(self, ascent: DualAscentRun) -> None:
        """Alternate oracle passes and cached passes until certified."""
        store, loop = ascent.store, ascent.looping(AutoLoop(self, ascent))
        while True:
            ascent.save_point()
            ascent.batch_size = loop.batch_sizes[loop.fine]
            started, dual = store.work, ascent.dual
            # After a failed attempt a cheap pass over all blocks does more than another one.
            again = not (loop.trying and store.oracle_is_cheap)
            loop.trying = again and loop.estimate <= loop.optimism * ascent.target
            # Weights that are the best for all stored planes are left alone, to find more planes.
            settled = loop.together.solved or loop.begins_jointly(ascent)
            if settled or loop.trying:
                order = ascent.largest_first()
                enough = np.inf if settled else ascent.target
                done = ascent.certify(self.rule, order=order, give_up_at=enough, limited=settled)
                chosen = order[:done]
                if ascent.certified and ascent.converged():
                    ascent.record()
                    return
                if loop.trying and store.oracle_is_cheap:
                    loop.optimism = max(MORE_CAREFUL * loop.optimism, LEAST_OPTIMISM)
            else:
                floor = self.floor * ascent.target / ascent.n
                chosen = ascent.order(loop.schedule.due(self.share, floor))
                ascent.oracle_pass(chosen, self.rule)
            loop.schedule.record_gaps(chosen, ascent.gaps[chosen])
            loop.estimate = float(ascent.gaps.sum())
            if not store.oracle_is_cheap:
                store.evict(self.idle_limit)
            ascent.certified = False  # before new weights: they may be interrupted
            if loop.solve_jointly(ascent, self.rule):
                if ascent.dual_suffices():
                    ascent.record()
                    return
            elif not store.oracle_is_cheap:
                self._cached_pass(ascent, loop, started, dual)
            elif loop.trying:
                ascent.cached_pass(chosen, self.rule)
            else:
                loop.since_push += len(chosen)
                # An extrapolation leads where no certificate is; one thread tries all the same.
                near = loop.estimate <= loop.optimism * ascent.target
                waits = near and ascent.oracle.threads is not None
                short = store.shortens_steps(len(chosen))
                push_after = PUSH_AFTER_SHORT if short else PUSH_AFTER
                if loop.since_push >= push_after * ascent.n and not waits:
                    with ascent.stepping():
                        loop.momentum.push()
                    loop.since_push = 0
            ascent.end_iteration(loop.estimate)

    def _cached_pass(
        self, ascent: DualAscentRun, loop: AutoLoop, started: float, dual: float
    ) -> None:
        """Cached passes, extrapolated, as long as they pay for work since ``started``."""
        store, cached, momentum, estimate = ascent.store, loop.cached, loop.momentum, loop.estimate
        trying_pays = estimate <= self.optimism * ascent.target
        stored_only = self.rule._replace(recombine=False)
        store.prepare_cached_passes()
        extrapolated = loop.iterations > 1  # the first steps lead too far
        if extrapolated:
            with ascent.stepping():
                momentum.push()
        plateau = Plateau()
        for k in count():
            began, before = store.work, ascent.dual
            chosen = ascent.order(cached.due(self.cached_fraction))
            rule = stored_only if k % RECOMBINE_EVERY else self.rule
            cached.record_gaps(chosen, ascent.cached_pass(chosen, rule))
            left = float(cached.gaps.sum())
            if left <= self.reduced_precision * estimate or plateau.seen(left):
                return
            now, reached = store.work, ascent.dual
            if trying_pays and reached - dual >= estimate - AIM * ascent.target:
                return
            rate = (reached - before) / (now - began)
            overall = (reached - dual) / (now - started)
            if rate <= max(0.0, self.cache_patience * overall):
                return
            if extrapolated:
                with ascent.stepping():
                    momentum.push(rate)
