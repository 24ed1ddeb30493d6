"""The engine of sequential dual ascent (Franc 2014, Alg. 1), and its plain instances.

Problem solved: the dual of the structural SVM, here for l1 slack (`objective` has both),

    max  sum alpha b - 1/2 |sum alpha a|^2   s.t.  alpha >= 0,  sum_y alpha_i(y) <= C s_i,

one block (example) at a time. A visit asks the oracle for the block's most violated plane at the
current w, and moves weight to it by the solver's rule; the dual rises with every step. The sum of
the blocks' gaps at a fixed w is the duality gap, so a pass without steps certifies.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np

from ...core.formulation import Formulation
from ...core.objective import Certificate, DualTerms
from ...core.problem import Problem
from ...core.result import Callback
from ...engine.oracle import Oracle
from ...engine.steps.block_steps import FRANK_WOLFE, WSS2
from ...engine.store.block_store import BlockStore, StepRule, make_store
from ...engine.store.planes import PlaneStore
from ...engine.store.sharding import ShardedStore, count_shards, shards_in
from ...engine.training.certified_run import CertifiedRun
from ...engine.training.convergence import ROUNDING
from ...engine.training.state import (
    OWN,
    Arrays,
    SolverState,
    StoredPlanes,
    add_prefix,
    check_close,
    declare_state,
    extends,
    from_text,
    of_kind,
    strip_prefix,
    to_text,
)
from ...engine.violations import batches
from ...utils.schema import checked_arrays, numbers, whole
from ...utils.types import Bools, Floats, Ints
from ...utils.validation import check_choice
from ..base import Solver, TrainingRequest
from .passes import largest_first, runs_in_order

__all__ = ["BCFW", "SDA", "DualAscent", "DualAscentRun", "DualAscentState"]

logger = logging.getLogger("maxmargin")

#: Franc's passes (2014), and the precision of his experiments.
AS_PRINTED = MappingProxyType(
    {"order": "given", "batch_size": 1, "settle": False, "tol": None, "epsilon": 0.001}
)
NO_STEPS = StepRule(WSS2, 0)
SETTLE = StepRule(WSS2, 50, precision=0.1)
RUN_LENGTH = 16  # blocks that are always visited one after the other
CERTIFY_BATCH = 256  # examples per oracle call where w stands still
CHEAP_CERTIFY_BATCH = 2048
LIMITED_BATCH = 64  # the same, where the time limit is looked at in between
ORDERED_BATCH = 512  # where the store steps between the examples of a batch
# Passes over blocks, from zero weights on, after which w has no more rounding in it than a sum over
# all blocks made afresh, or hardly more: the two add about as many terms.
FRESH_PASSES = 8
CHEAP_BATCH = 8192  # where the store steps between the examples of a batch; bounds a Ctrl-C's wait


class DualAscentState(SolverState):
    """The blocks, and where a run stands: the gaps it has seen and its orders."""

    kind = "dual_ascent"

    def __init__(self, store: BlockStore) -> None:
        self.store = store
        self.oracle = store.oracle
        self.begin(np.random.default_rng(0))

    def begin(self, rng: np.random.Generator) -> None:
        """Start a run over the blocks, as they are."""
        n = len(self.store.upper_bounds)
        self.rng = rng
        self.gaps: Floats = np.full(n, np.inf)  # of each block, as the oracle last found it
        # Data may come sorted, or with neighbours alike; but files are read as they lie.
        together = int(getattr(self.oracle.problem, "read_together", 0))
        self.order: Ints = np.arange(n) if together else self.store.visit_order(rng.permutation(n))
        self.run_length = together or RUN_LENGTH

    def is_of_less_than(self, other: DualAscentState) -> bool:
        """Whether the other state has these examples, and more behind them."""
        own, its = self.oracle, other.oracle
        return own.formulation == its.formulation and extends(its.problem, own.problem)

    def proven_dual(self) -> float:
        """See `SolverState`."""
        dual = self.store.proven_dual()
        check_close(self.store.dual_now, np.array([dual]), 1.0, "dual_now")
        return dual

    def planes_at(self, w: Floats) -> list[StoredPlanes]:
        """See `SolverState`."""
        return self.store.planes_at(w)

    def dual_terms(self) -> DualTerms:
        """See `SolverState`."""
        store = self.store
        linear, sums = store.dual_sums()
        return DualTerms.of(store.w, linear, store.formulation, sums, store.upper_bounds)

    def moved_to(self, problem: Problem, changed: Ints) -> DualAscentState | None:
        """The blocks of a problem that differs in these examples only, theirs emptied.

        The blocks here are as they were. None where the store cannot do so.
        """
        store = self.store
        if not isinstance(store, PlaneStore | ShardedStore):
            return None

        def restored(problem: Problem, arrays: Arrays) -> PlaneStore | ShardedStore:
            oracle = Oracle(problem, store.formulation)
            made = make_store(oracle, store.upper_bounds, store.cache_bytes, store.n_shards)
            assert isinstance(made, PlaneStore | ShardedStore)
            made.restore(arrays)
            return made

        # Emptied first: the planes of these blocks are none of the other problem.
        emptied = restored(store.oracle.problem, store.arrays())
        emptied.empty(changed)
        return DualAscentState(restored(problem, emptied.arrays()))

    def arrays(self) -> Arrays:
        """See `SolverState`."""
        return {
            **add_prefix("store", self.store.arrays()),
            "gaps": self.gaps,
            "order": self.order,
            "rng": to_text(self.rng.bit_generator.state),
        }

    def restore(self, arrays: Arrays) -> None:
        """See `SolverState`."""
        own = strip_prefix("store", arrays)
        n, n_shards = len(self.store.upper_bounds), shards_in(own)
        if n_shards != self.store.n_shards:  # that of another number of threads
            old = self.store
            if not isinstance(old, PlaneStore | ShardedStore) or not 1 <= n_shards <= n:
                raise ValueError(
                    f"shares: expected blocks of {n} examples in one, found {n_shards}"
                )
            self.store = make_store(self.oracle, old.upper_bounds, old.cache_bytes, n_shards)
        self.store.restore(own)
        visits = checked_arrays(
            arrays, {"gaps": numbers(n, high=np.inf), "order": whole(n, below=n)}
        )
        if (np.bincount(visits["order"], minlength=n) != 1).any():
            raise ValueError("order: expected every example once")
        self.gaps, self.order = visits["gaps"], visits["order"]
        self.rng = np.random.default_rng(0)
        self.rng.bit_generator.state = from_text(arrays["rng"])


class DualAscentRun(CertifiedRun):
    """A run of dual ascent: the blocks, the order of visits and the certificate."""

    state_fields = declare_state(CertifiedRun.state_fields, state=OWN, from_zero=bool)
    state: DualAscentState

    def __init__(
        self,
        solver: DualAscent,
        state: DualAscentState,
        C: float,
        weights: Floats,
        callbacks: Iterable[Callback],
    ) -> None:
        super().__init__(solver, state.oracle, C, weights, callbacks)
        self.solver = solver
        self.state = state
        self.batch_size = solver.batch_size or min(16, max(1, self.n // 1000))
        if isinstance(self.store, ShardedStore):
            self.store.batch_size = self.batch_size
        self._work_before = self.store.work
        self.proven_dual = self.store.dual()
        self.from_zero = self.store.n_planes == 0
        self.quiet_rule = NO_STEPS  # which planes are stored by passes that only certify

    @property
    def store(self) -> BlockStore:
        """The blocks."""
        return self.state.store

    @property
    def gaps(self) -> Floats:
        """Gap of each block, as the oracle last found it."""
        return self.state.gaps

    @property
    def rng(self) -> np.random.Generator:
        """Source of random orders."""
        return self.state.rng

    @property
    def dual(self) -> float:
        """The dual value as it is now, up to rounding."""
        return float(self.store.dual_now[0])

    @property
    def current_weights(self) -> Floats:
        """See `Run`."""
        return self.store.problem_weights

    @property
    def n_planes(self) -> int:
        """Planes stored."""
        return self.store.n_planes

    @property
    def n_support_vectors(self) -> int:
        """See `CertifiedRun`."""
        return self.store.n_support_vectors

    @property
    def counted_work(self) -> float:
        """See `Run`."""
        return self.store.work - self._work_before

    def final_state(self, interrupted: bool) -> DualAscentState:
        """The blocks: they are good at any time."""
        return self.state

    @property
    def block_epsilon(self) -> float:
        """The papers' epsilon: the target in units of mean loss, ``target / (C sum_i s_i)``."""
        return self.target / max(self.stopping.total_C, 1e-300)

    def order(self, chosen: Bools | None = None) -> Ints:
        """An order of the chosen blocks (all by default), random unless the solver keeps theirs.

        Short runs of it stay the same from pass to pass: what is next to each other in memory is
        visited together, and a fully random order would take twice the time.
        """
        state = self.state
        if self.solver.order != "runs":
            blocks = np.arange(self.n) if chosen is None else np.flatnonzero(chosen)
            return self.rng.permutation(blocks) if self.solver.order == "shuffled" else blocks
        starts = np.arange(0, self.n, state.run_length)
        self.rng.shuffle(starts)
        found = np.empty(self.n + 1, np.int64)
        chosen = np.ones(self.n, np.bool_) if chosen is None else chosen
        return found[: runs_in_order(state.order, starts, state.run_length, chosen, found)]

    def largest_first(self) -> Ints:
        """Blocks of the largest gaps first, those of about equal ones in the order of visits."""
        return largest_first(self.gaps, self.state.order)

    def oracle_pass(self, examples: Ints, rule: StepRule) -> None:
        """True oracle calls and steps on the blocks of ``examples``."""
        self.certified = False
        size = self.batch_size
        if self.store.visits_in_order:
            size = CHEAP_BATCH if self.store.oracle_is_cheap else ORDERED_BATCH
            size *= self.store.n_shards
        with self.stepping():
            for batch in batches(examples, max(size, self.store.least_batch)):
                self.gaps[batch] = self.store.oracle_pass(batch, rule).gaps
                self.check()

    def cached_pass(self, examples: Ints, rule: StepRule) -> Floats:
        """Steps from stored planes; returns the blocks' gaps before."""
        self.certified = False
        size = max(CHEAP_BATCH, self.store.least_batch)
        with self.stepping():
            gaps = [self.store.cached_pass(batch, rule) for batch in batches(examples, size)]
        self.count_hits(len(examples))
        return np.concatenate(gaps) if gaps else np.empty(0)

    def certify(
        self,
        rule: StepRule | None = None,
        *,
        order: Ints | None = None,
        give_up_at: float = np.inf,
        limited: bool = False,
    ) -> int:
        """One full pass of true oracle calls at a fixed w: primal value, gap, and new planes.

        Gives up as soon as the gaps found exceed ``give_up_at``, since the rest can only add to
        them; with blocks of large gaps first in ``order``, a failed attempt is short. Where it is
        ``limited``, the time limit may end it. Returns how many blocks of ``order`` were visited.
        """
        order = self.state.order if order is None else order
        rule = (self.quiet_rule if rule is None else rule)._replace(max_steps=0)
        hinges = np.empty(self.n)
        found, done = 0.0, 0
        size = CHEAP_CERTIFY_BATCH if self.store.oracle_is_cheap else CERTIFY_BATCH
        size = LIMITED_BATCH if limited else size
        with self.stepping():
            for batch, report in self.store.certify_pass(order, size, rule):
                self.gaps[batch], hinges[batch] = report.gaps, report.hinges
                done += len(batch)
                found += float(report.gaps.sum())
                if found > give_up_at:
                    return done
                if limited:
                    self.check()
        w = self.store.w
        primal = self.primal(w, np.maximum(hinges, 0.0))
        visits = self.oracle_calls + self.cache_hits
        rebuilt = not (self.from_zero and visits <= FRESH_PASSES * self.n)
        if rebuilt:  # rounding that piled up in w must not enter the certificate
            self.store.rebuild()
        self.proven_dual = max(self.proven_dual, self.store.dual())
        # To rebuild makes another array of the weights: this one is nobody else's, and may be long.
        self.offer(primal, w, copy=not rebuilt)
        return done

    def dual_suffices(self) -> bool:
        """Whether the dual has come near enough to the best primal value of the passes so far."""
        if self.best is None or not self.stopping.is_satisfied(
            Certificate(self.best[0], self.dual)
        ):
            return False
        self.renew_dual()
        self.certified = self.converged()
        return self.certified

    def renew_dual(self) -> None:
        """Compute w and the dual value afresh."""
        self.store.rebuild()
        self.proven_dual = max(self.proven_dual, self.store.dual())

    def record(self, gap_estimate: float | None = None) -> None:
        """See `CertifiedRun`; a dual value that was carried along above the optimum is renewed."""
        if self.best is not None and self.dual > self.best[0] * (1.0 + ROUNDING):
            self.renew_dual()
        super().record(gap_estimate)

    def settle(self) -> Certificate:
        """Certify weights that stored planes have mended: an extrapolation leaves poor ones."""
        if self.solver.settle:
            self.store.cached_pass(self.order(), SETTLE)
        self.certify()
        assert self.certificate is not None
        return self.certificate

    def settle_at_the_end(self, interrupted: bool) -> None:
        """See `CertifiedRun`."""
        if interrupted:  # maybe between a change of multipliers and of w
            self.store.rebuild()
        self.settle()


@dataclass(frozen=True)
class DualAscent(Solver):
    """Parameters of the sequential dual ascent family.

    Parameters
    ----------
    cache_mb : float
        Budget, in units of 2^20 bytes, for stored planes and what is kept to find them fast, copies
        while they are rewritten included; multiclass problems store none. Planes without weight are
        dropped first, then each example's planes are merged into one. Less than a few planes for
        each example is not possible: a warning says what is used instead. Not in it are up to eight
        vectors of all weights and some 400 bytes for each example.
    batch_size : int, optional
        Examples per oracle call in a pass with steps. Their planes are found at the same w and
        absorbed one after the other. By default one example in a thousand, at most 16: calls get
        cheaper, and the number of passes hardly changes.
    order : {"runs", "shuffled", "given"}
        Order of the examples in a pass: runs of 16 examples that stay together, in random order
        (twice as fast where memory is the limit), all examples shuffled, or as they are given.
    settle : bool
        Whether a training that a limit ends takes steps on the stored planes before it certifies
        the weights. False leaves the weights as the last pass left them.
    """

    batch_size: int | None = None
    order: Literal["runs", "shuffled", "given"] = "runs"
    settle: bool = True

    def check(self, problem: Problem, formulation: Formulation, C: float) -> None:
        """See `Solver.check`."""
        super().check(problem, formulation, C)
        check_choice(self.order, ("runs", "shuffled", "given"), "order")

    def start(self, request: TrainingRequest) -> DualAscentRun:
        """See `Solver.start`."""
        problem, formulation, C, weights, warm_start, callbacks = request
        upper_bounds = C * weights
        state = of_kind(warm_start, DualAscentState, problem, formulation)
        if state is not None:
            state.store.rescale(upper_bounds)
        else:
            oracle = Oracle(problem, formulation)
            earlier = warm_start.state if warm_start is not None else None
            n_shards = count_shards(oracle, self.n_jobs)
            if isinstance(earlier, DualAscentState) and earlier.store.n_shards > 1:
                n_shards = earlier.store.n_shards
            store = make_store(oracle, upper_bounds, self.cache_bytes, n_shards)
            state = DualAscentState(store)
            if isinstance(earlier, DualAscentState) and earlier.is_of_less_than(state):
                state.store.take_over(earlier.store)
                state.store.rescale(upper_bounds)
            elif warm_start is not None:
                logger.debug("the data is not that of the fit before: training starts afresh")
        state.begin(np.random.default_rng(self.random_state))
        return DualAscentRun(self, state, C, weights, callbacks)

    @abstractmethod
    def iterate(self, ascent: DualAscentRun) -> None:
        """Improve the dual until the certificate meets the stopping criterion."""


@dataclass(frozen=True)
class _PlainAscent(DualAscent):
    """Passes of single steps over all blocks, certified when the gaps seen suggest it."""

    def iterate(self, ascent: DualAscentRun) -> None:
        """Visit all blocks in random order until certified."""
        while True:
            ascent.save_point()
            ascent.oracle_pass(ascent.order(), self._rule(ascent))
            estimate = float(ascent.gaps.sum())
            ascent.record(estimate)
            if self._is_enough(ascent, estimate):
                ascent.certify()
                ascent.record()
                if ascent.converged():
                    return

    @abstractmethod
    def _rule(self, ascent: DualAscentRun) -> StepRule:
        """What is done with a block in the next pass."""

    def _is_enough(self, ascent: DualAscentRun, estimate: float) -> bool:
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
    * Examples are visited in passes of random order, in batches of ``batch_size``;
      ``order="given", batch_size=1`` gives the paper's passes.
    * A pass of true oracle calls at a fixed w ends the training. The paper measures the gap at
      every pass, and does not count that.
    """

    name: ClassVar[str] = "bcfw"
    as_published: ClassVar[Mapping[str, Any]] = AS_PRINTED

    def _rule(self, ascent: DualAscentRun) -> StepRule:
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
    * Passes visit the examples in random order, in batches of ``batch_size``;
      ``order="given", batch_size=1`` gives the paper's.
    * A plane that is no better than the best stored one, but for rounding, is not stored again.
      Planes are dropped, or merged, only where ``cache_mb`` is too small for them.
    * Squared slacks are not in the paper: the dual has a ridge in place of the bound on the
      block's multipliers, and the truth's multiplier is unlimited.
    """

    every_block: bool = False

    name: ClassVar[str] = "sda"
    as_published: ClassVar[Mapping[str, Any]] = {"every_block": True, **AS_PRINTED}
    slacks: ClassVar[tuple[str, ...]] = ("l1", "l2")

    def _rule(self, ascent: DualAscentRun) -> StepRule:
        """One step on blocks whose gap exceeds epsilon."""
        return StepRule(WSS2, 1, threshold=ascent.block_epsilon)

    def _is_enough(self, ascent: DualAscentRun, estimate: float) -> bool:
        """See `_PlainAscent`."""
        if self.every_block:
            return bool(np.all(ascent.gaps <= ascent.block_epsilon * ascent.store.upper_bounds))
        return estimate <= ascent.target
