"""The n-slack cutting-plane method (Tsochantaridis 2005, Alg. 1; Joachims 2009, Alg. 1 and 2).

Problem solved: any formulation, with a slack for each example or none at all,

    min  1/2 |w|^2 + C sum_i s_i xi_i (or xi_i^2)   s.t.  <a, w> >= b - xi_i   for all planes (b, a)

of every example i. Each example has its own working set of constraints. The oracle's constraint is
added where it is violated by more than epsilon beyond the slack that the working set implies; after
every ``batch`` additions the dual over all working sets is solved again. A pass that adds nothing
leaves w where it is, so its oracle calls certify the result.

Hard margins. The weights of a pass that adds nothing violate no constraint by more than epsilon;
scaled up a little they violate none, and a further pass certifies that. Where no weights satisfy
all constraints the dual is unbounded: the multipliers grow for ever along a direction that adds up
to no weights at all. Such a direction proves infeasibility (Farkas) and names the examples. Where
the margin is thin both take long; a dual that is small enough is then solved by least squares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NoReturn

import numpy as np

from ...core.formulation import Formulation
from ...core.objective import Certificate, DualTerms, Stopping
from ...core.problem import Problem
from ...core.result import Callback
from ...engine.cuts.bounded_cuts import BoundedSets
from ...engine.cuts.set_kernels import BLOCK, FSMO, SMO
from ...engine.cuts.working_sets import WorkingSets
from ...engine.oracle import Oracle
from ...engine.training.certified_run import CertifiedRun
from ...engine.training.convergence import Plateau
from ...engine.training.state import (
    OWN,
    Arrays,
    Checkpointable,
    SolverState,
    StoredPlanes,
    declare_state,
    of_kind,
)
from ...engine.violations import Violations
from ...utils.schema import Number, numbers
from ...utils.types import Floats, Ints
from ...utils.validation import check_choice
from ..ascent.passes import JointQPPolicy, Schedule
from ..base import Solver, TrainingRequest

__all__ = ["NSlack"]

# Rounds, or steps, in a block before the next one's turn.
EFFORT = {"fsmo": 10, "block": 50, "smo": 50}
KINDS = {"fsmo": FSMO, "block": BLOCK, "smo": SMO}
MOST_PASSES = 1000  # over the working sets in one solution of the dual
GROWTH_CHECK = 20  # such passes between tests for an unbounded dual
INACTIVE_LIMIT = 50  # solutions without weight after which constraints go
KEPT_PASSES = 5  # whose solutions these are at least, where a pass has several
JOINT = 5  # such passes between tries to solve for all multipliers together
OUTRIGHT = 100  # such passes after which a hard margin's dual is solved by another method
LARGEST_SYSTEM = 2_000_000  # numbers in a system for that
CANCELLED = 1e-8  # share that is left of a sum of planes that cancel each other


class NSlackState(SolverState):
    """The working sets, with their multipliers."""

    kind = "n_slack"

    def __init__(self, sets: WorkingSets) -> None:
        self.sets = sets
        self.oracle = sets.oracle

    def dual_terms(self) -> DualTerms:
        """See `SolverState`."""
        linear, sums = self.sets.dual_sums()
        return DualTerms.of(
            self.sets.w, linear, self.oracle.formulation, sums, self.sets.upper_bounds
        )

    def arrays(self) -> Arrays:
        """See `SolverState`."""
        return self.sets.arrays()

    def restore(self, arrays: Arrays) -> None:
        """See `SolverState`."""
        self.sets.restore(arrays)

    def proven_dual(self) -> float:
        """See `SolverState`."""
        return self.sets.proven_dual()

    def planes_at(self, w: Floats) -> list[StoredPlanes]:
        """See `SolverState`."""
        return self.sets.planes_at(w)


class NSlackRun(CertifiedRun):
    """A run of the method: working sets, bounds, and what the current pass has seen."""

    state_fields = declare_state(
        CertifiedRun.state_fields,
        state=OWN,
        within_violation=bool,
        together=OWN,
        sharpness=Number,
    )
    state: NSlackState

    def __init__(
        self,
        solver: NSlack,
        state: NSlackState,
        C: float,
        weights: Floats,
        callbacks: Iterable[Callback],
    ) -> None:
        super().__init__(solver, state.oracle, C, weights, callbacks)
        self.state = state
        self.sets = state.sets
        self.violation = solver.violation
        self.within_violation = False  # whether the last pass met the papers' own stopping rule
        self._work_before = self.sets.work
        self.proven_dual = self.sets.dual()
        self.together = JointQPPolicy(self.sets, solver.joint)
        self.sharpness = 1.0  # shrinks where the precision asked of the dual was not enough

    @property
    def current_weights(self) -> Floats:
        """See `Run`."""
        return self.sets.w

    @property
    def n_planes(self) -> int:
        """Constraints in all working sets."""
        return self.sets.n_planes

    @property
    def n_support_vectors(self) -> int:
        """See `CertifiedRun`."""
        return self.sets.n_support_vectors

    @property
    def counted_work(self) -> float:
        """See `Run`; working sets do not count oracle calls."""
        return self.sets.work - self._work_before + self.oracle_calls * self.oracle.work

    def converged(self) -> bool:
        """Whether the certificate, or the last pass, meets the stopping criterion."""
        return self.within_violation or super().converged()

    @property
    def criterion(self) -> Stopping | None:
        """See `CertifiedRun`."""
        return None if self.within_violation else self.stopping

    def objective(self, w: Floats, slacks: Floats) -> float:
        """See `CertifiedRun`; examples without weight do not count."""
        return super().objective(w, np.where(self.weights > 0, np.maximum(slacks, 0.0), 0.0))

    @property
    def has_slacks(self) -> bool:
        """Whether constraints may be violated, at a price."""
        return self.formulation.slack != "none"

    def restore(self, arrays: Arrays) -> None:
        """See `Checkpointable`."""
        super().restore(arrays)
        if self.within_violation and self.violation is None:
            raise ValueError("within_violation: this stopping rule does not exist")

    def gap_estimate(self, hinges: Floats) -> float:
        """The gap, were the hinge values of the last pass those of the current weights."""
        return max(self.objective(self.sets.w, hinges) - self.dual, 0.0)

    def certify(self, w: Floats) -> Violations:
        """A pass of true oracle calls at w, without limits."""
        found = self.oracle.violations(w)
        self.offer(self.primal(w, found.values), w)
        return found

    def epsilon(self, slacks: Floats) -> float:
        """Violation up to which constraints are left alone: half the target gap would be lost."""
        if self.violation is not None:
            return self.violation
        half = 0.5 * self.sharpness * self.target
        if self.formulation.slack == "l1":
            return half / max(self.stopping.total_C, 1e-300)
        if self.formulation.slack == "l2":  # C sum s ((xi + e)^2 - xi^2) = half
            total, linear = float(self.weights.sum()), float(self.weights @ slacks)
            root = np.sqrt(linear * linear + total * half / self.C)
            return float((root - linear) / max(total, 1e-300))
        if self.dual <= 0.0:
            return 0.1 * self.sharpness
        return float(min(0.1, half / (8.0 * self.dual)))  # |w|^2 grows by 1 + 2 e

    def raise_dual(self) -> None:
        """Compute w and the dual value afresh."""
        self.proven_dual = max(self.proven_dual, self.sets.dual())

    def settle(self) -> Certificate:
        """A certificate of the current w."""
        self.raise_dual()
        self.certify(self.sets.w)
        assert self.certificate is not None
        return self.certificate

    def settle_at_the_end(self, interrupted: bool) -> None:
        """See `CertifiedRun`; an interrupt may have come between multipliers and w."""
        if not interrupted:
            self.raise_dual()
        self.certify(self.sets.w)

    def final_state(self, interrupted: bool) -> NSlackState | None:
        """The working sets, unless they may be half-changed."""
        return None if interrupted else self.state


class NSlackLoop(Checkpointable):
    """What `NSlack` keeps from one pass to the next."""

    state_fields = declare_state(
        slacks=lambda own: numbers(len(own.slacks), low=0.0), missing=Number
    )

    def __init__(self, n_examples: int) -> None:
        self.slacks: Floats = np.zeros(n_examples)
        self.missing = np.inf  # what the violated constraints of the last pass might be worth


@dataclass(frozen=True)
class NSlack(Solver):
    """Cutting planes with a working set for each example; every formulation, hard margins included.

    Algorithm 1 of Tsochantaridis et al. (2005), of which Algorithms 1 and 2 of Joachims et al.
    (2009) are the cases of linear slacks, with the latter's Section 4 on how it is made fast:
    warm starts, batches, precision that follows the progress, inactive constraints removed.

    Parameters
    ----------
    qp : {"fsmo", "block", "smo"}
        How the dual over the working sets is solved, one example's block after the other: by
        fixed-threshold SMO, which changes one multiplier at a time unless the example's bound is
        reached (Lee & Jang 2009), by pairs of multipliers that gain most (WSS2), or by maximal
        violating pairs, as SVM-light does.
    kkt : float, optional
        Solve the dual, each time, until no two scores of an example's constraints are off by more
        than this: the rule of SVM-light and of Lee & Jang. No working set is left out then.
    variant : {"full", "subspace"}
        After a batch of new constraints optimise over all working sets, Algorithm 1's variant (a),
        or over those that have changed, (b); the latter optimises over all once a pass.
    batch : int
        Constraints to add before the dual is solved again.
    inactive_limit : int, optional
        Constraints without weight in so many solutions of the dual in a row (in variant (b), of
        their own working set) are dropped, at the end of a pass. By default 50, or as many as five
        passes may have: constraints that go sooner are found again in the next pass, many times.
    violation : float, optional
        The papers' own stopping rule: end after a pass in which no constraint is violated by more
        than this beyond its example's slack, whatever the gap. ``tol`` and ``epsilon`` then say
        how well the dual over the working sets is solved, no more. Not for hard margins.
    joint : bool
        Solve for the multipliers of all working sets together where they are few, whatever ``qp``.
        Not for hard margins.
    cache_mb : float
        Budget, in units of 2^20 bytes, for the constraints and their products, copies while they
        are rewritten included. Where it is short, constraints without weight in the last solution
        are dropped at once; if those with weight do not fit, a warning says what is used instead.

    Notes
    -----
    **Deviations**

    * Training ends by the duality gap. ``violation=...`` gives the papers' rule.
    * The dual is solved again after ``batch`` constraints (Joachims et al.: 100), which are found
      with w as it was; ``batch=1`` gives Algorithm 1.
    * It is solved up to a fifth of the target gap, or while much is missing to a tenth of that; not
      exactly. In variant (b) a changed working set gets ten rounds of fixed-threshold SMO or fifty
      steps of pairs, at most; all sets are optimised at the end of each pass ("much less
      frequently", the paper says).
    * Where the constraints are few, Newton steps in all multipliers together solve it;
      ``joint=False`` leaves it to ``qp`` alone.
    * Working sets whose gaps are small are left out of up to three passes of such a solution in a
      row. The papers use SVM-light, until no score is off by more than a threshold:
      ``qp="smo", kkt=0.001``.
    * A constraint without features and without offset, the truth's own, is not added.
    * ``inactive_limit`` counts as Joachims et al. do; ``inactive_limit=50`` gives their limit.
      Tsochantaridis et al. keep all constraints: ``inactive_limit=10**9``.
    * Hard margins: the weights are scaled up until no constraint is violated at all; the paper
      leaves violations of up to epsilon. Margins that cannot be met are refused.
    """

    qp: Literal["fsmo", "block", "smo"] = "fsmo"
    kkt: float | None = None
    variant: Literal["full", "subspace"] = "full"
    batch: int = 100
    inactive_limit: int | None = None
    violation: float | None = None
    joint: bool = True

    name: ClassVar[str] = "n_slack"
    as_published: ClassVar[Mapping[str, Any]] = {
        "qp": "smo",
        "kkt": 0.001,
        "batch": 1,
        "inactive_limit": 10**9,
        "violation": 0.1,
        "joint": False,
        "tol": None,
    }
    slacks: ClassVar[tuple[str, ...]] = ("l1", "l2", "none")

    def check(self, problem: Problem, formulation: Formulation, C: float) -> None:
        """Raise ValueError if this solver cannot do what is asked."""
        super().check(problem, formulation, C)
        check_choice(self.qp, tuple(KINDS), "qp")
        if self.kkt is not None and (formulation.slack == "none" or not self.kkt > 0.0):
            raise ValueError(
                f"kkt must be positive and there must be slacks, got {self.kkt!r} with "
                f"slack={formulation.slack!r}"
            )
        check_choice(self.variant, ("full", "subspace"), "variant")
        if self.batch < 1:
            raise ValueError(f"batch must be >= 1, got {self.batch}")
        if self.violation is not None and (formulation.slack == "none" or not self.violation > 0.0):
            raise ValueError(
                f"violation must be positive and there must be slacks, got {self.violation!r} with "
                f"slack={formulation.slack!r}"
            )

    def start(self, request: TrainingRequest) -> NSlackRun:
        """See `Solver.start`."""
        problem, formulation, C, weights, warm_start, callbacks = request
        state = of_kind(warm_start, NSlackState, problem, formulation)
        if state is not None:
            state.sets.rescale(C * weights)
        else:
            oracle = Oracle(problem, formulation)
            kind = BoundedSets if oracle.has_bounds else WorkingSets
            state = NSlackState(kind(oracle, C * weights, self.cache_bytes))
        return NSlackRun(self, state, C, weights, callbacks)

    # ----- the outer loop ------------------------------------------------------------------------

    def iterate(self, cutting: NSlackRun) -> None:
        """Pass after pass over the examples until one certifies the result."""
        sets, n = cutting.sets, cutting.n
        limit = self.inactive_limit
        if limit is None:
            limit = max(INACTIVE_LIMIT, KEPT_PASSES * ((n - 1) // self.batch))
        loop = cutting.looping(NSlackLoop(n))
        while True:
            cutting.save_point()
            epsilon = cutting.epsilon(loop.slacks)
            hinges, offsets = np.empty(n), np.empty(n)
            added, pending, changed = 0, 0, []
            estimate = 0.0
            for start in range(0, n, self.batch):
                examples = np.arange(start, min(start + self.batch, n))
                found = sets.examine(examples, epsilon)
                cutting.check()
                cutting.certified = False
                hinges[examples], loop.slacks[examples] = found.values, found.slacks
                offsets[examples] = found.offsets
                beyond = np.maximum(found.values - found.slacks, 0.0)
                estimate += cutting.C * float(cutting.weights[examples] @ beyond)
                self._check_contradictions(cutting, examples, found.values, found.offsets)
                added, pending = added + found.added, pending + found.added
                changed.append(examples[beyond > epsilon])
                if pending >= self.batch:
                    self._optimise(cutting, np.concatenate(changed), min(loop.missing, estimate))
                    pending, changed = 0, []
            if added == 0:
                self._certify_pass(cutting, hinges, offsets)
                cutting.within_violation = self.violation is not None
                if cutting.converged():
                    cutting.record()
                    return
                cutting.sharpness *= 0.3  # the dual is not solved well enough
                pending = 1
            loop.missing = estimate
            if pending or self.variant == "subspace":
                everything = np.flatnonzero(sets.sets.count)
                self._optimise(cutting, everything, estimate, everything=True)
            sets.drop(limit)
            cutting.raise_dual()
            seen = cutting.gap_estimate(hinges) if cutting.has_slacks else estimate
            cutting.end_iteration(seen)

    def _optimise(
        self, cutting: NSlackRun, changed: Ints, missing: float, everything: bool = False
    ) -> None:
        """Solve the dual over all working sets, or over the changed ones in variant (b)."""
        with cutting.stepping():
            self._solve(cutting, changed, missing, everything)

    def _solve(self, cutting: NSlackRun, changed: Ints, missing: float, everything: bool) -> None:
        """See `_optimise`."""
        sets = cutting.sets
        kind, effort = KINDS[self.qp], EFFORT[self.qp]
        if self.variant == "subspace" and not everything:
            changed = np.unique(changed)
            if self.kkt is None:
                sets.improve(changed, kind, effort)
            else:
                self._solve_to_kkt(cutting, changed)
            sets.count_solution(changed)
            cutting.count_hits(len(changed))
            return
        if self.kkt is not None:
            self._solve_to_kkt(cutting, np.flatnonzero(sets.sets.count))
            sets.count_solution(np.arange(cutting.n))
            return
        hard = cutting.formulation.slack == "none"
        stop = 0.2 * cutting.sharpness * cutting.target
        if hard:
            stop = 0.3 * cutting.epsilon(np.empty(0))
        elif np.isfinite(missing):
            stop = max(stop, 0.1 * missing)
        schedule = Schedule(cutting.n, patience=3)
        schedule.gaps[sets.sets.count == 0] = 0.0
        plateau = Plateau()
        before = sets.sets.alpha.copy()
        for k in range(1, MOST_PASSES + 1):
            if not hard and k % JOINT == 1 and cutting.together.solve(cutting, stop):
                break
            due = schedule.due(0.3)
            chosen = np.flatnonzero(due & (sets.sets.count > 0))
            schedule.record_gaps(chosen, sets.improve(chosen, kind, effort))
            cutting.count_hits(len(chosen))
            left = float(schedule.gaps.max() if hard else schedule.gaps.sum())
            if left <= stop or (plateau.seen(left) and not hard):
                break
            if hard and k % GROWTH_CHECK == 0:
                self._check_growth(cutting, before)
                before = sets.sets.alpha.copy()
            if hard and k % OUTRIGHT == 0:
                self._solve_outright(cutting)
        sets.count_solution(np.arange(cutting.n))

    def _solve_to_kkt(self, cutting: NSlackRun, examples: Ints) -> None:
        """Solve the dual over these working sets until no score is off by more than ``kkt``."""
        kind, effort = KINDS[self.qp], EFFORT[self.qp]
        for _ in range(MOST_PASSES):
            off = cutting.sets.improve(examples, kind, effort, self.kkt or 0.0)
            cutting.count_hits(len(examples))
            if not off.any():
                return

    def _certify_pass(self, cutting: NSlackRun, hinges: Floats, offsets: Floats) -> None:
        """The bounds after a pass that left w where it was."""
        sets = cutting.sets
        w = sets.w.copy()
        cutting.raise_dual()
        if cutting.formulation.slack != "none":
            cutting.offer(cutting.primal(w, hinges), w)
            return
        self._scale_up(cutting, w, hinges, offsets)

    def _scale_up(self, cutting: NSlackRun, w: Floats, values: Floats, offsets: Floats) -> None:
        """Hard margins: scale nearly feasible weights until no constraint is violated at all."""
        for _ in range(5):
            # Scaling does not help constraints without a margin, <a, w> >= 0.
            short = (values > 0.0) & (offsets > 0.0) & (cutting.weights > 0)
            products = offsets[short] - values[short]
            if np.any(products <= 0.0):
                return  # far from feasible
            factor = float((offsets[short] / products).max(initial=1.0))
            w = w * (factor * (1.0 + 1e-12))
            values, offsets = cutting.certify(w)
            if cutting.best is not None and np.isfinite(cutting.best[0]):
                return

    # ----- hard margins that cannot be met -------------------------------------------------------

    def _check_contradictions(
        self, cutting: NSlackRun, examples: Ints, values: Floats, offsets: Floats
    ) -> None:
        """Raise where a wrong output has the very features of the given one."""
        if cutting.formulation.slack != "none":
            return
        sets = cutting.sets.sets
        for i in examples[(values > 0.0) & (cutting.weights[examples] > 0)]:
            squares = np.arange(sets.count[i]) * (sets.capacity[i] + 1) + sets.gram_start[i]
            slots = sets.start[i] + np.arange(sets.count[i])
            if np.any((sets.gram[squares] <= 0.0) & (sets.offset[slots] > 0.0)):
                raise ValueError(
                    f"the hard margin cannot be met: example {i} has a wrong output with the same "
                    "features as the true one; use slack='l1' or 'l2'"
                )

    def _check_growth(self, cutting: NSlackRun, before: Floats) -> None:
        """Raise if multipliers grow along a direction whose planes cancel each other."""
        sets = cutting.sets
        slots, owners = sets.owners()
        growth = np.zeros(len(sets.sets.alpha))
        growth[slots] = np.maximum(sets.sets.alpha[slots] - before[slots], 0.0)
        if not growth[slots].any():
            return
        sizes = growth[slots] * np.sqrt(sets.squares())
        left = float(np.linalg.norm(sets.combine(growth)))
        if left < CANCELLED * float(sizes.sum()):
            _raise_inseparable(owners, sizes, cutting.n)

    def _solve_outright(self, cutting: NSlackRun) -> None:
        """Hard margins: solve a small dual that passes solve slowly, or raise if it is unbounded.

        The least squares of ``|sum z a|^2 + (1 - sum z b)^2`` over ``z >= 0`` are
        ``1 / (1 + |w|^2)`` at the least weights that satisfy all constraints, whose multipliers are
        z divided by them; and 0 where there are no such weights.
        """
        from scipy.optimize import nnls  # importing it takes a second

        sets = cutting.sets
        slots, owners = sets.owners()
        used = sets.upper_bounds[owners] > 0
        if len(slots) * len(sets.w) > LARGEST_SYSTEM or not used.any():
            return
        slots, owners, lengths = slots[used], owners[used], np.sqrt(sets.squares()[used])
        planes = np.array([sets.plane(slot) for slot in slots]) / lengths[:, None]
        goal = np.zeros(len(sets.w) + 1)
        goal[-1] = 1.0
        try:
            z, left = nnls(np.vstack([planes.T, sets.sets.offset[slots] / lengths]), goal)
        except RuntimeError:  # too many iterations
            return
        if left < CANCELLED:
            _raise_inseparable(owners, z, cutting.n)
        before, dual = sets.sets.alpha[slots], sets.dual()
        sets.sets.alpha[slots] = z / (left * left * lengths)
        if sets.dual() < dual:
            sets.sets.alpha[slots] = before
            sets.dual()


def _raise_inseparable(owners: Ints, shares: Floats, n: int) -> NoReturn:
    """Name the examples whose planes, in these shares, contradict each other."""
    of_examples = np.bincount(owners, shares, n)
    worst = np.argsort(-of_examples, kind="stable")[: int(np.count_nonzero(of_examples))]
    others = ", ".join(str(i) for i in worst[1:6])
    raise ValueError(
        f"the hard margin cannot be met: no weights satisfy the constraints of example {worst[0]}"
        + (f" together with those of {others}" if others else "")
        + (" and others" if len(worst) > 6 else "")
        + "; use slack='l1' or 'l2'"
    )
