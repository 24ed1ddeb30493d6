"""Dual coordinate descent (Chang & Yih 2013), for squared slacks and for linear ones.

Problem solved: the dual of the structural SVM with squared slacks,

    max  sum alpha b - 1/2 |sum alpha a|^2 - sum_i (sum_y alpha_i(y))^2 / (4 C s_i),   alpha >= 0.

No constraint ties one multiplier to another, so each is set to its best value alone, by a division
(Alg. 1, `block_steps.sweep_block`). The three algorithms differ in when they ask the oracle, and
how often they go over the planes it has found. The paper stops after a number of passes; here a
pass of true oracle calls at a fixed w measures the gap.

Linear slacks are an extension that is not in the paper. Their dual has no last term, but a cap on
each example's multipliers, ``sum_y alpha_i(y) <= C s_i``. Where it is reached, no multiplier can
grow alone: steps move weight between two of them (`block_steps`, WSS2), until a tenth of the
block's gap is left. All else is the same; no solver here makes planes of its own out of those that
the oracle has found.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from ...core.formulation import Formulation
from ...core.problem import Problem
from ...engine.steps.block_steps import COORDINATES, WSS2
from ...engine.store.block_store import StepRule
from ...engine.training.state import OWN, Checkpointable, declare_state
from ...utils.schema import Number
from .dual_ascent import NO_STEPS, DualAscent, DualAscentRun
from .passes import Momentum

__all__ = ["CPD", "DCD", "DCDLight"]

#: Chang & Yih's passes (2013). They do not say which delta and how many passes they used.
AS_PRINTED = MappingProxyType(
    {
        "delta": 0.01,
        "idle_limit": 10**9,
        "order": "shuffled",
        "batch_size": 1,
        "settle": False,
        "tol": None,
        "max_passes": 25,
    }
)
PAIRS = StepRule(WSS2, 50, precision=0.1)  # of a visit, where multipliers have a common cap


@dataclass(frozen=True)
class _CoordinateDescent(DualAscent):
    """What the three share: the rule, the threshold for new planes, no planes without weight.

    Parameters
    ----------
    delta : float, optional
        The paper's delta: an oracle's plane joins the working set if the dual's slope in its
        multiplier is at least this. It says how precisely the problem is solved: one that is too
        large for the gap asked for ends as "stalled", with the gap that it allows. By default so
        much as leaves about a quarter of the target gap to planes not stored.
    idle_limit : int
        Visits in a row without weight after which a plane is dropped, at the end of a pass.
    """

    delta: float | None = None
    idle_limit: int = 1

    slacks: ClassVar[tuple[str, ...]] = ("l2", "l1")

    def check(self, problem: Problem, formulation: Formulation, C: float) -> None:
        """See `Solver.check`."""
        super().check(problem, formulation, C)
        if self.delta is not None and not self.delta >= 0.0:
            raise ValueError(f"delta must be >= 0, got {self.delta}")

    def iterate(self, ascent: DualAscentRun) -> None:
        """See `DualAscent`."""
        if self.delta is not None:
            ascent.quiet_rule = NO_STEPS._replace(delta=self.delta)
        self._descend(ascent)

    @abstractmethod
    def _descend(self, ascent: DualAscentRun) -> None:
        """Alternate oracle calls and sweeps until certified."""

    def _rule(self, ascent: DualAscentRun) -> StepRule:
        """One sweep over a block, in an order of its own for every pass; or steps of pairs."""
        delta = self._smallest_slope(ascent) if self.delta is None else self.delta
        if ascent.formulation.slack == "l1":
            return PAIRS._replace(delta=delta)
        seed = int(ascent.rng.integers(2**31 - 1))
        return StepRule(COORDINATES, 1, delta=delta, seed=seed)

    @staticmethod
    def _smallest_slope(ascent: DualAscentRun) -> float:
        """The delta that leaves about a quarter of the target gap to planes not stored."""
        # With slopes of at most delta the gap is at most delta S (+ delta^2 C if there is no cap),
        # where S is the sum of the multipliers: at most C for linear slacks; for squared ones
        # 2 sum C s xi at the optimum, and so at most 2 sqrt(C P).
        total_C, capped = ascent.stopping.total_C, ascent.formulation.slack == "l1"
        best = ascent.best[0] if ascent.best else ascent.dual
        scale = 4.0 * total_C if capped else 8.0 * np.sqrt(total_C * max(best, 0.0))
        return ascent.target / scale if scale > 0.0 else 0.0


class Refinement(Checkpointable):
    """What rounds over stored planes keep from one pass to the next."""

    state_fields = declare_state(momentum=OWN, rate=Number)

    def __init__(self, ascent: DualAscentRun, extrapolation: float) -> None:
        self.momentum = Momentum(ascent.store, extrapolation)
        self.rate = 0.0  # the dual's rise for the work of the last round


@dataclass(frozen=True)
class DCDLight(_CoordinateDescent):
    """One sweep over an example's planes after every oracle call (Chang & Yih 2013, Alg. 2).

    Parameters
    ----------
    optimism : float
        A certificate is tried when the gaps last met sum to at most this multiple of the target:
        they were met before the steps of the pass.

    Notes
    -----
    **Deviations**

    * The paper stops after T passes; here training ends when a pass of true oracle calls at a
      fixed w certifies the gap. ``tol=None, max_passes=T`` gives the paper's. The planes that such
      a pass finds are stored like others, without steps.
    * The paper leaves delta to the user; by default it follows the target gap. ``delta=...`` is the
      paper's.
    * The paper defines working sets as the structures with weight, but its algorithms never drop
      one: ``idle_limit=10**9``. Here those without weight go at the end of a pass.
    * The paper shuffles the examples; here runs of 16 are shuffled, drawn at random once. Examples
      are asked for in batches of ``batch_size``. ``order="shuffled", batch_size=1`` gives the
      paper's passes.
    * After ``max_passes`` a last pass over stored planes improves the weights before they are
      certified; ``settle=False`` leaves it out.
    * Where no structure was added, all of a working set are swept in random order; the paper may
      mean that the last one to be added still comes first.
    * A plane that is no better than the best stored one, but for rounding, is not stored. A block
      without a gap is not swept.
    * Linear slacks, where steps are of pairs, are not in the paper.
    """

    optimism: float = 1.2

    name: ClassVar[str] = "dcd_light"
    as_published: ClassVar[Mapping[str, Any]] = AS_PRINTED

    def _descend(self, ascent: DualAscentRun) -> None:
        """Passes of oracle calls and sweeps, until certified."""
        refinement = ascent.looping(self._refinement(ascent))
        while True:
            ascent.save_point()
            self._refine(ascent, refinement)
            ascent.oracle_pass(ascent.order(), self._rule(ascent))
            ascent.store.evict(self.idle_limit)
            estimate = float(ascent.gaps.sum())
            ascent.record(estimate)
            if estimate <= self.optimism * ascent.target:
                order = ascent.largest_first()
                ascent.certify(self._rule(ascent), order=order, give_up_at=ascent.target)
                ascent.record(float(ascent.gaps.sum()))
                if ascent.certified and ascent.converged():
                    return

    def _refinement(self, ascent: DualAscentRun) -> Refinement:
        """What `_refine` keeps from one call to the next."""
        return Refinement(ascent, 0.0)

    def _refine(self, ascent: DualAscentRun, refinement: Refinement) -> None:
        """What is done without oracle calls before every pass: nothing."""


@dataclass(frozen=True)
class DCD(DCDLight):
    """DCD-SSVM: rounds over stored planes between the oracle's passes (Chang & Yih 2013, Alg. 3).

    Parameters
    ----------
    r : int
        Rounds over all blocks, without oracle calls, before every pass: the paper's 5.
    max_rounds : int
        More than ``r`` rounds, up to this many, are taken while the stored planes still have
        more than ``reduced_precision`` of the gap that the last pass met: they are not yet worth
        another pass. The paper always takes ``r``; so do we with ``max_rounds=r``.
    reduced_precision : float
        The share meant there.
    extrapolation : float
        Before a round the multipliers go on by this multiple of their last change, as far as the
        dual rises. The paper has no such thing; 0 turns it off.

    Notes
    -----
    **Deviations**

    * Those of `DCDLight`.
    * More rounds than r, where they pay, and extrapolation between them. ``max_rounds=r,
      extrapolation=0`` gives the paper's.
    """

    r: int = 5
    max_rounds: int = 15
    reduced_precision: float = 0.5
    extrapolation: float = 3.0

    name: ClassVar[str] = "dcd"
    as_published: ClassVar[Mapping[str, Any]] = {
        "max_rounds": 5,
        "extrapolation": 0.0,
        **AS_PRINTED,
    }

    def _refinement(self, ascent: DualAscentRun) -> Refinement:
        """See `DCDLight`."""
        return Refinement(ascent, self.extrapolation)

    def _refine(self, ascent: DualAscentRun, refinement: Refinement) -> None:
        """Lines 3 to 8 of the algorithm."""
        store = ascent.store
        goal = self.reduced_precision * float(ascent.gaps.sum())
        for done in range(1, max(self.r, self.max_rounds) + 1):
            # Before a round, so that the oracle never meets weights that were only guessed.
            with ascent.stepping():
                refinement.momentum.push(refinement.rate)
            began, before = store.work, float(store.dual_now[0])
            left = ascent.cached_pass(ascent.order(), self._rule(ascent)).sum()
            store.evict(self.idle_limit)
            refinement.rate = (float(store.dual_now[0]) - before) / (store.work - began)
            if done >= self.r and left <= goal:
                return


@dataclass(frozen=True)
class CPD(_CoordinateDescent):
    """Cutting planes: the oracle for all examples at one w, then sweeps to solve what is known.

    This is the method of Chang et al. (2010) that Chang & Yih (2013, Section 4.4.1) compare with:
    batches of cutting planes, whose sub-problems are solved by Algorithm 1.

    Parameters
    ----------
    reduced_precision : float
        Sweeps over the stored planes go on until their gap is below this share of the whole.
    max_rounds : int
        Limit on these sweeps.

    Notes
    -----
    **Deviations**

    * Chang & Yih give no pseudo-code, and do not say how precisely sub-problems are solved; with
      ``reduced_precision=0`` as precisely as ``max_rounds`` sweeps can.
    * Every pass at a fixed w is a certificate, by which training ends. ``tol=None, max_passes=T``
      gives T passes.
    * The default of ``delta``, the order of examples, when planes are dropped and linear slacks: as
      in `DCDLight`.
    """

    reduced_precision: float = 0.1
    max_rounds: int = 100

    name: ClassVar[str] = "cpd"
    as_published: ClassVar[Mapping[str, Any]] = AS_PRINTED

    def _descend(self, ascent: DualAscentRun) -> None:
        """Each pass at a fixed w is a certificate, too."""
        while True:
            ascent.save_point()
            ascent.certify(self._rule(ascent))
            ascent.record(float(ascent.gaps.sum()))
            if ascent.converged():
                return
            goal = self.reduced_precision * float(ascent.gaps.sum())
            for _ in range(self.max_rounds):
                left = ascent.cached_pass(ascent.order(), self._rule(ascent)).sum()
                ascent.store.evict(self.idle_limit)
                if left <= goal:
                    break
