"""The engine of sequential dual ascent (Franc 2014, Alg. 1), and its plain instances.

Problem solved: the dual of the structural SVM, here for l1 slack (`objective` has both),

    max  sum alpha b - 1/2 |sum alpha a|^2   s.t.  alpha >= 0,  sum_y alpha_i(y) <= C s_i,

one block (example) at a time. A visit asks the oracle for the block's most violated plane at the
current w, and moves weight to it by the solver's rule; the dual rises with every step. The sum of
the blocks' gaps at a fixed w is the duality gap, so a pass without steps certifies.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..engine.block_steps import FRANK_WOLFE, WSS2
from ..engine.planes import BlockStore, StepRule, make_store
from ..formulation import Formulation
from ..objective import Certificate, Stopping, primal_value
from ..problem import Problem
from ..result import Callback, Result
from ..types import Bools, Floats, Ints
from .base import Run, Solver, checked_weights

__all__ = ["BCFW", "SDA", "Ascent", "DualAscent"]


NO_STEPS = StepRule(WSS2, 0)
SETTLE = StepRule(WSS2, 50, precision=0.1)
RUN_LENGTH = 16  # blocks that are always visited one after the other
CERTIFY_BATCH = 256  # examples per oracle call where w stands still
ORDERED_BATCH = 512  # where the store steps between the examples of a batch
CHEAP_BATCH = 8192  # where the store steps between the examples of a batch; bounds a Ctrl-C's wait


class Ascent:
    """A run of dual ascent: the blocks, the order of visits and the certificate."""

    def __init__(
        self,
        run: Run,
        store: BlockStore,
        formulation: Formulation,
        stopping: Stopping,
        weights: Floats,
        C: float,
        batch_size: int,
        rng: np.random.Generator,
    ) -> None:
        self.run = run
        self.store = store
        self.formulation = formulation
        self.stopping = stopping
        self.weights = weights
        self.C = C
        self.batch_size = batch_size
        self.rng = rng
        self.n = len(weights)
        self.gaps: Floats = np.full(self.n, np.inf)  # of each block, as last met by the oracle
        # Data may come sorted; a store that reads it in place is faster in its own order, though.
        self._base_order: Ints = np.arange(self.n)
        if not store.oracle_is_cheap:
            rng.shuffle(self._base_order)
        self.certified = False  # whether the last certificate is of the current w
        self.certificate: Certificate | None = None
        self.quiet_rule = NO_STEPS  # which planes are stored by passes that only certify

    @property
    def target(self) -> float:
        """Gap to reach."""
        return self.stopping.target(float(self.store.dual_now[0]))

    @property
    def block_epsilon(self) -> float:
        """The papers' epsilon: the target in units of mean loss, ``target / (C sum_i s_i)``."""
        return self.target / max(self.stopping.total_C, 1e-300)

    def order(self, chosen: Bools | None = None) -> Ints:
        """A random order of the chosen blocks (all by default).

        Short runs of it stay the same from pass to pass: what is next to each other in memory is
        visited together, and a fully random order would take twice the time.
        """
        starts = np.arange(0, self.n, RUN_LENGTH)
        self.rng.shuffle(starts)
        order = (starts[:, None] + np.arange(RUN_LENGTH)).ravel()
        order = self._base_order[order[order < self.n]]
        return order if chosen is None else order[chosen[order]]

    def visit(self, examples: Ints, rule: StepRule) -> None:
        """True oracle calls and steps on the blocks of ``examples``."""
        self.certified = False
        size = self.batch_size
        if self.store.visits_in_order:
            size = CHEAP_BATCH if self.store.oracle_is_cheap else ORDERED_BATCH
        for batch in _batches(examples, size):
            self.gaps[batch] = self.store.visit(batch, rule).gaps
            self.run.count(oracle_calls=len(batch))

    def revisit(self, examples: Ints, rule: StepRule) -> Floats:
        """Steps from stored planes; returns the blocks' gaps before."""
        self.certified = False
        gaps = [self.store.revisit(batch, rule) for batch in _batches(examples, CHEAP_BATCH)]
        self.run.count(cache_hits=len(examples))
        return np.concatenate(gaps) if gaps else np.empty(0)

    def certify(
        self,
        rule: StepRule | None = None,
        *,
        order: Ints | None = None,
        give_up_at: float = np.inf,
    ) -> int:
        """One full pass of true oracle calls at a fixed w: primal value, gap, and new planes.

        Gives up as soon as the gaps found exceed ``give_up_at``, since the rest can only add to
        them; with blocks of large gaps first in ``order``, a vain try is short. Returns how many
        blocks of ``order`` were visited.
        """
        order = self._base_order if order is None else order
        rule = (self.quiet_rule if rule is None else rule)._replace(max_steps=0)
        hinges = np.empty(self.n)
        found, done = 0.0, 0
        for batch in _batches(order, CERTIFY_BATCH):
            report = self.store.visit(batch, rule)
            self.gaps[batch], hinges[batch] = report.gaps, report.hinges
            self.run.oracle_calls += len(batch)
            done += len(batch)
            found += float(report.gaps.sum())
            if found > give_up_at:
                return done
        slacks = np.maximum(hinges, 0.0)
        w = self.store.w
        primal = primal_value(w, slacks, self.formulation, self.C, self.weights)
        self.run.offer(primal, w)
        assert self.run.best is not None
        self.store.rebuild()  # rounding that piled up in w must not enter the certificate
        self.certificate = Certificate(self.run.best[0], self.store.dual())
        self.certified = True
        return done

    def converged(self) -> bool:
        """Whether the last certificate meets the stopping criterion."""
        return self.certificate is not None and self.stopping.met(self.certificate)

    def record(self, gap_estimate: float | None = None) -> None:
        """End an outer iteration: history, callbacks, limits."""
        dual = float(self.store.dual_now[0])
        stuck = gap_estimate is not None and self.run.stalling.seen(gap_estimate, dual, self.settle)
        self.run.record(
            dual=float(self.store.dual_now[0]),
            planes=self.store.n_planes,
            certificate=self.certificate if self.certified else None,
            gap_estimate=gap_estimate,
            target=self.target,
        )
        self.run.check_passes(stuck)

    def settle(self) -> Certificate:
        """Certify weights that stored planes have mended: an extrapolation leaves poor ones."""
        self.store.revisit(self.order(), SETTLE)
        self.certify()
        assert self.certificate is not None
        return self.certificate


def _batches(examples: Ints, size: int) -> Iterator[Ints]:
    """Consecutive pieces of ``examples``."""
    for start in range(0, len(examples), size):
        yield examples[start : start + size]


@dataclass(frozen=True)
class DualAscent(Solver):
    """Parameters of the sequential dual ascent family.

    Parameters
    ----------
    cache_mb : float
        Budget for stored planes; multiclass problems store none. Planes without weight are dropped
        first, then each example's planes are merged into one.
    batch_size : int, optional
        Examples per oracle call in a pass with steps. Their planes are found at the same w and
        absorbed one after the other. By default one example in a thousand, at most 16: calls get
        cheaper, and the number of passes hardly changes.
    """

    cache_mb: float = 1024.0
    batch_size: int | None = None

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
        """Train; see `Solver.solve`."""
        self.check(problem, formulation, C)
        weights = checked_weights(sample_weight, problem.n_examples)
        store = self._store(problem, formulation, C * weights, warm_start)
        run = Run(self, problem.n_examples, callbacks)
        ascent = Ascent(
            run,
            store,
            formulation,
            Stopping(self.tol, self.epsilon, C * float(weights.sum())),
            weights,
            C,
            self.batch_size or min(16, max(1, problem.n_examples // 1000)),
            np.random.default_rng(self.random_state),
        )
        with run:
            return self._finish(ascent, run.train(lambda: self.iterate(ascent)))

    @abstractmethod
    def iterate(self, ascent: Ascent) -> None:
        """Improve the dual until the certificate meets the stopping criterion."""

    def _store(
        self, problem: Problem, formulation: Formulation, caps: Floats, warm: Result | None
    ) -> BlockStore:
        """A fresh store, or that of an earlier result of the same problem and formulation."""
        # Solvers of other families leave states of another kind, which say nothing of a problem.
        if warm is not None and getattr(warm.state, "problem", None) is problem:
            store: BlockStore = warm.state
            if store.formulation == formulation:
                store.rescale(caps)
                return store
        return make_store(problem, formulation, caps, int(self.cache_mb * 2**20))

    def _finish(self, ascent: Ascent, status: str) -> Result:
        """Certify the last weights if need be, and gather the result."""
        run = ascent.run

        def certify() -> None:
            if status == "interrupted":  # maybe between a change of multipliers and of w
                ascent.store.rebuild()
            ascent.settle()

        if not ascent.certified:
            status = run.certify_at_the_end(ascent, certify, status)
        assert run.best is not None and ascent.certificate is not None
        return run.result(
            run.best[1],
            ascent.certificate,
            converged=ascent.converged(),
            status=status,
            planes=ascent.store.n_planes,
            state=ascent.store,
        )


@dataclass(frozen=True)
class _PlainAscent(DualAscent):
    """Passes of single steps over all blocks, certified when the gaps met suggest it."""

    def iterate(self, ascent: Ascent) -> None:
        """Visit all blocks in random order until certified."""
        while True:
            ascent.visit(ascent.order(), self._rule(ascent))
            estimate = float(ascent.gaps.sum())
            ascent.record(estimate)
            if self._is_enough(ascent, estimate):
                ascent.certify()
                ascent.record()
                if ascent.converged():
                    return

    @abstractmethod
    def _rule(self, ascent: Ascent) -> StepRule:
        """What is done with a block in the next pass."""

    def _is_enough(self, ascent: Ascent, estimate: float) -> bool:
        """Whether the gaps met are such that a certificate is tried."""
        return estimate <= ascent.target


@dataclass(frozen=True)
class BCFW(_PlainAscent):
    """Block-coordinate Frank-Wolfe with exact line search (Franc 2014, Alg. 1 with eq. 13).

    Each visit moves the block's multipliers towards all weight on its most violated plane. It is
    the method of Lacoste-Julien et al. (2013) that Franc compares with.

    Notes
    -----
    **Deviations**

    * The point moved to is the best among the oracle's plane and the stored ones. The paper has
      the oracle's alone; it is the best of all where the oracle is exact, so both are the same.
    * Multipliers and planes are kept one by one. The paper notes that the sum for each block would
      do; the weights are the same, and an interrupted or warm start can go on from them.
    * Examples are visited in passes of random order, in batches of ``batch_size``; with 1, one by
      one as in the paper.
    * A pass of true oracle calls at a fixed w ends the training. The paper measures the gap at
      every pass, and does not count that.
    """

    name: ClassVar[str] = "bcfw"

    def _rule(self, ascent: Ascent) -> StepRule:
        """One step on every block."""
        return StepRule(FRANK_WOLFE, 1)


@dataclass(frozen=True)
class SDA(_PlainAscent):
    """Sequential dual ascent with second-order pairs, SDA-WSS2 (Franc 2014, Alg. 2).

    A visit asks the oracle and, where the block's gap G_i exceeds epsilon, moves weight from one
    plane of the block to its most violated one; all other blocks are left alone. Epsilon is the
    target gap divided by ``C sum_i s_i``: as long as the mean gap is above it, so is some G_i.

    Parameters
    ----------
    every_block : bool
        Go on until a pass finds no block with a gap above epsilon, as the paper does. By default
        training ends when their mean is at most epsilon, which is what is asked for: the paper
        itself calls its rule overly stringent (Section 3.3).

    Notes
    -----
    **Deviations**

    * The stopping rule; ``every_block=True`` gives the paper's. In either case a further pass of
      true oracle calls at a fixed w certifies the result, which the paper does without.
    * With ``tol``, epsilon follows the dual value, and so grows a little from pass to pass. With
      ``tol=None, epsilon=...`` it is fixed, as in the paper.
    * Passes visit the examples in random order, in batches of ``batch_size``; with 1, one by one
      as in the paper.
    * A plane that is no better than the best stored one, but for rounding, is not stored again.
      Planes are dropped, or merged, only where ``cache_mb`` is too small for them.
    * Squared slacks are not in the paper: the dual has a ridge in place of the bound on the
      block's multipliers, and the truth's multiplier is unlimited.
    """

    every_block: bool = False

    name: ClassVar[str] = "sda"
    slacks: ClassVar[tuple[str, ...]] = ("l1", "l2")

    def _rule(self, ascent: Ascent) -> StepRule:
        """One step on blocks whose gap exceeds epsilon."""
        return StepRule(WSS2, 1, threshold=ascent.block_epsilon)

    def _is_enough(self, ascent: Ascent, estimate: float) -> bool:
        """See `_PlainAscent`."""
        if self.every_block:
            return bool(np.all(ascent.gaps <= ascent.block_epsilon * ascent.store.caps))
        return estimate <= ascent.target
