"""The engine of the online solvers: one example, one candidate, one small change of the weights.

They have no certificate of their own: what they return has ``primal`` and ``dual`` None unless a
certificate is asked for, with ``certificate=True`` or afterwards with `certify`.
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ...core.formulation import Formulation
from ...core.objective import Certificate, Stopping
from ...core.problem import Problem
from ...core.result import Callback, Progress, Result
from ...core.weight_constraints import WeightConstraints
from ...engine.oracle import BATCH, Oracle, OracleResult
from ...engine.steps.online_steps import (
    CHANGES,
    LOSS,
    SCALE,
    SQUARE,
    OnlineRule,
    OnlineState,
    keep_within,
    mira_steps,
    online_steps,
)
from ...engine.training.run import Run
from ...engine.training.state import DRIFT, OWN, Arrays, Checkpointable, declare_state, from_file
from ...engine.violations import batches, violations
from ...time_left import Limits
from ...utils.schema import Count, Number, checked_arrays, flags, numbers, whole
from ...utils.types import Floats, Ints
from ...utils.validation import check_choice
from ..base import Solver, TrainingRequest
from ..certify import certificate_of
from .learner import Learner, Seen

__all__ = ["OnlineRun", "OnlineSolver"]


CHUNK = 1024  # examples between looks at the clock, where a problem steps through them by itself
DEFAULT_PASSES = 10


@dataclass(frozen=True)
class OnlineSolver(Solver):
    """Parameters of the online solvers.

    Parameters
    ----------
    tol, epsilon : float, optional
        Only judge the certificate, if one is asked for; they never end the training.
    max_passes : float, optional
        Number of passes over the examples; 10 by default.
    average : bool
        Return the average of the weights after every step, not the last ones.
    order : {"shuffled", "given"}
        Order of the examples in a pass.
    batch_size : int
        Examples per oracle call: their candidates are found at the same weights. Problems that can
        step through examples in compiled code do so, one at a time, if it is 1.
    held_out : float
        Share of the examples to leave out of the training. After each pass their mean loss is
        measured; training ends when it has not become smaller for ``patience`` passes, and the
        weights of the smallest are returned.
    patience : int
        See ``held_out``.
    certificate : bool
        Measure the primal value of the result, by one pass of true oracle calls, and a dual bound.
    """

    tol: float | None = None
    average: bool = True
    order: Literal["shuffled", "given"] = "shuffled"
    batch_size: int = 1
    held_out: float = 0.0
    patience: int = 3
    certificate: bool = False

    certified: ClassVar[bool] = False
    #: Whether steps need products of planes.
    products: ClassVar[bool] = False
    #: Candidates of an example per step.
    k: ClassVar[int] = 1
    #: Relative change of the objective in a pass up to which training ends; see `Pegasos`.
    ratio: ClassVar[float | None] = None

    @abstractmethod
    def rule(self, training: OnlineRun) -> OnlineRule:
        """What is done with a candidate; called once, before the first pass."""

    @property
    def n_passes(self) -> float:
        """Number of passes over the examples."""
        return DEFAULT_PASSES if self.max_passes is None else self.max_passes

    def limits(self, n_examples: int) -> Limits:
        """See `Solver.limits`."""
        return Limits(records=math.ceil(self.n_passes), seconds=self.max_time)

    def check(self, problem: Problem, formulation: Formulation, C: float) -> None:
        """See `Solver.check`."""
        super().check(problem, formulation, C)
        check_choice(self.order, ("shuffled", "given"), "order")
        if self.batch_size < 1:
            raise ValueError(f"batch_size must be >= 1, got {self.batch_size}")
        if not 0.0 <= self.held_out < 1.0:
            raise ValueError(f"held_out must be in [0, 1), got {self.held_out}")
        if self.patience < 1:
            raise ValueError(f"patience must be >= 1, got {self.patience}")

    def start(self, request: TrainingRequest) -> OnlineRun:
        """See `Solver.start`.

        A warm start may be of another problem with these features. If it has a learner's state, the
        examples of both problems make up the objective that `sgd` and `pegasos` minimise from then
        on; without, the examples behind its weights are not known and do not count.
        """
        oracle = Oracle(request.problem, request.formulation)
        learner = self._learner(oracle, request.warm_start)
        return OnlineRun(self, oracle, request.C, request.weights, learner, request.callbacks)

    def iterate(self, training: OnlineRun) -> str:
        """Visit the examples in random order, again and again; returns why that ended."""
        return training.passes()

    def learner_of(
        self, arrays: Arrays, n_features: int, constraints: WeightConstraints | None
    ) -> Learner:
        """The learner that has given these arrays, once it had forgotten its examples."""
        rng = np.random.default_rng(self.random_state)
        learner = Learner(n_features, 0, self.average, self.products, rng)
        learner.constraints = constraints
        learner.restore(arrays)
        return learner

    def _learner(self, oracle: Oracle, warm: Result | None) -> Learner:
        """A new learner, or that of an earlier result, which goes on changing."""
        problem, constraints = oracle.problem, oracle.formulation.constraints
        d, n = int(problem.n_features or 0), problem.n_examples
        if warm is not None and len(warm.w) != d:
            raise ValueError(f"the warm start has {len(warm.w)} weights, the problem has {d}")
        earlier = warm.state if warm is not None else None
        if (
            isinstance(earlier, Learner)
            and earlier.average == self.average
            and earlier.constraints == constraints
        ):
            if len(earlier.state.scratch) == 0 and self.products:
                earlier.state = earlier.state._replace(scratch=np.zeros(d))
            earlier.turn_to(problem)
            return earlier
        rng = np.random.default_rng(self.random_state)
        learner = Learner(d, n, self.average, self.products, rng)
        learner.constraints = constraints
        if isinstance(earlier, Learner):
            learner.seen, learner.counted = copy.deepcopy(earlier.seen), earlier.counted
        elif isinstance(earlier, Seen):
            learner.seen = earlier
        if warm is not None:
            learner.begin_at(oracle.change(warm.w), learner.seen.count or float(n))
        else:
            learner.trained_on = problem
        return learner


def _rows_of(oracle_result: OracleResult, start: int, end: int) -> OracleResult:
    """Some rows of an answer."""
    planes, offsets, scales = oracle_result
    rows = planes._replace(indptr=planes.indptr[start : end + 1], losses=planes.losses[start:end])
    return OracleResult(rows, offsets[start:end], scales[start:end])


class OnlineLoop(Checkpointable):
    """What passes keep from one to the next."""

    state_fields = declare_state(visited=Count, since_best=Count)

    def __init__(self) -> None:
        self.visited = 0  # examples
        self.since_best = 0  # passes since the smallest loss of the examples held out


class OnlineRun(Run):
    """One call of `solve`: who is visited, with which candidates, and how good the weights are."""

    state_fields = declare_state(
        Run.state_fields,
        learner=OWN,
        held_out=lambda own: whole(len(own.held_out), below=own.n),
        examples=lambda own: whole(len(own.examples), below=own.n),
        _objective=Number,
        best_loss=Number,
        best_w=lambda own: numbers(len(own.learner.state.v)),
    )

    def __init__(
        self,
        solver: OnlineSolver,
        oracle: Oracle,
        C: float,
        weights: Floats,
        learner: Learner,
        callbacks: Iterable[Callback],
    ) -> None:
        super().__init__(solver, oracle, callbacks)
        self.solver = solver
        self.C = C
        self.weights = weights
        self.learner = learner
        problem = oracle.problem
        used = np.flatnonzero(weights > 0)
        n_held_out = round(solver.held_out * len(used))
        if n_held_out:
            used = learner.rng.permutation(used)
        self.held_out: Ints = np.sort(used[:n_held_out])
        self.examples: Ints = np.sort(used[n_held_out:])
        if len(self.examples) == 0:
            raise ValueError("no examples are left to train on")
        self.has_new_examples = learner.counted is not problem
        if self.has_new_examples:
            learner.counted = problem
            learner.seen.count += len(self.examples)
            learner.seen.weight += float(weights[self.examples].sum())
        self._objective = np.inf  # when last measured, see `ratio`
        self.best_loss = np.inf
        self.best_w: Floats | None = None

    def arrays(self) -> Arrays:
        """See `Checkpointable`; one number says whether the multipliers are of this problem."""
        known = np.array(self.learner.trained_on is self.oracle.problem)
        return {**super().arrays(), "multipliers_known": known}

    def restore(self, arrays: Arrays) -> None:
        """See `Checkpointable`."""
        super().restore(arrays)
        problem = self.oracle.problem
        known = checked_arrays(arrays, {"multipliers_known": flags()})["multipliers_known"]
        both = np.sort(np.concatenate((self.held_out, self.examples)))
        if not np.array_equal(both, np.flatnonzero(self.weights > 0)):
            raise ValueError("examples: expected every example with weight once")
        self.learner.trained_on = problem if known else None
        self.learner.counted, self.has_new_examples = problem, False

    @property
    def current_weights(self) -> Floats:
        """See `Run`."""
        return self.learner.w

    @property
    def decay(self) -> float:
        """The lambda = 1 / (C sum_i s_i), the strength of the regulariser beside the mean hinge.

        The sum is over all examples seen so far, those of earlier problems included.
        """
        return 1.0 / (self.C * self.learner.seen.weight)

    def passes(self) -> str:
        """Visit the examples in random order, again and again; returns why that ended."""
        n = len(self.examples)
        total = round(self.solver.n_passes * n)
        rule = self.solver.rule(self)
        loop = self.looping(OnlineLoop())
        while loop.visited < total:
            self.save_point()
            numbers = self.learner.state.numbers
            numbers[LOSS], numbers[CHANGES] = 0.0, 0.0
            order = self.examples
            if self.solver.order == "shuffled":
                order = self.learner.rng.permutation(order)
            order = order[: total - loop.visited]
            self.oracle_pass(order, rule, self.learner.state)
            loop.visited += len(order)
            numbers[SQUARE] = float(self.learner.state.v @ self.learner.state.v)
            held_out_loss = self._measure()
            self.note(
                Progress(
                    seconds=self.seconds,
                    oracle_calls=self.oracle_calls,
                    primal=None,
                    dual=None,
                    gap=None,
                    planes=0,
                    loss=float(numbers[LOSS]) / len(order),
                    held_out_loss=held_out_loss,
                )
            )
            loop.since_best = 0 if self.best_loss == held_out_loss else loop.since_best + 1
            if held_out_loss is not None and loop.since_best >= self.solver.patience:
                return "early_stopping"
            if rule.plain and numbers[CHANGES] == 0.0 and len(order) == n:
                return "converged"  # a pass without a mistake: nothing would ever change again
            if self._has_settled():
                return "converged"
        self.save_point(at_once=True)  # with more passes allowed, training can go on from here
        return "max_passes"

    def _has_settled(self) -> bool:
        """Whether the objective has changed by no more than the solver's ratio since last asked."""
        if self.solver.ratio is None:
            return False
        before, self._objective = self._objective, self.objective(self.examples, self.learner.w)
        return before < np.inf and abs(before - self._objective) <= self.solver.ratio * before

    def oracle_pass(self, order: Ints, rule: OnlineRule, state: OnlineState) -> None:
        """Steps for all examples of ``order``, one after the other."""
        with self.stepping():
            self._pass(order, rule, state)

    def _pass(self, order: Ints, rule: OnlineRule, state: OnlineState) -> None:
        """See `oracle_pass`."""
        weights = self._step_weights(rule)
        if self.oracle.feasible_set is not None:
            keep_within(self.oracle.feasible_set, state)
        fused = self.oracle.accelerators.online_pass
        if self.solver.batch_size == self.solver.k == 1:
            for chunk in batches(order, CHUNK):
                if not fused(chunk, weights, rule, state):
                    break
                self.oracle.count(len(chunk))
                self.check()
            else:
                return
        for batch in batches(order, self.solver.batch_size):
            self._step(batch, weights, rule, state)
            self.check()

    def _step_weights(self, rule: OnlineRule) -> Floats:
        """Weights of the examples: relative to their mean where steps are of the mean hinge."""
        if rule.decay == 0.0:
            return self.weights
        return self.weights * (self.learner.seen.count / self.learner.seen.weight)

    def _step(self, batch: Ints, weights: Floats, rule: OnlineRule, state: OnlineState) -> None:
        """Ask for candidates and make steps from them."""
        k, scale = self.solver.k, float(state.numbers[SCALE])
        if k > 1:
            w = state.v if scale == 1.0 else scale * state.v
            oracle_result = self.oracle.call_k_best(batch, w, k, by_score=rule.plain)
        elif rule.plain:
            oracle_result = self.oracle.predictions(batch, state.v)  # those at scale * v
        else:
            oracle_result = self.oracle.call_features(batch, state.v, scale)
        group = len(batch) if rule.decay > 0.0 and rule.eta0 == 0.0 else 1
        feasible_set = self.oracle.feasible_set if self.oracle.has_bounds else None
        if feasible_set is None:
            self._steps(oracle_result, batch, weights, group, rule, state)
            return
        for at in range(0, len(batch), group):  # bounds are kept after each single step
            few = _rows_of(oracle_result, k * at, k * (at + group))
            self._steps(few, batch[at : at + group], weights, group, rule, state)
            keep_within(feasible_set, state)

    def _steps(
        self,
        oracle_result: OracleResult,
        batch: Ints,
        weights: Floats,
        group: int,
        rule: OnlineRule,
        state: OnlineState,
    ) -> None:
        """Make steps from candidates of these examples."""
        planes, b, c = oracle_result
        if self.solver.k > 1:
            mira_steps(planes, batch, b, c, weights, self.solver.k, rule, state)
        else:
            online_steps(planes, batch, b, c, weights, group, rule, state)

    def objective(self, examples: Ints, w: Floats) -> float:
        """``lambda/2 |w|^2`` plus the mean hinge of the examples, by true oracle calls."""
        hinges = np.empty(len(examples))
        place = 0
        for batch, oracle_result in self.oracle.call_all(examples, w):
            hinges[place : place + len(batch)] = violations(oracle_result, w)
            place += len(batch)
            self.check()
        mean = np.average(np.maximum(hinges, 0.0), weights=self.weights[examples])
        return 0.5 * self.decay * float(w @ w) + float(mean)

    def _measure(self) -> float | None:
        """Mean loss of the predictions for the examples held out; the best weights are kept."""
        if len(self.held_out) == 0:
            return None
        w = self.learner.w
        total = 0.0
        for batch in batches(self.held_out, BATCH):
            oracle_result = self.oracle.predictions(batch, w, count=False)
            total += float(self.weights[batch] @ oracle_result.planes.losses)
        loss = total / float(self.weights[self.held_out].sum())
        if loss < self.best_loss:
            self.best_loss, self.best_w = loss, w
        return loss

    def finish(self, status: str) -> Result:
        """Gather the result, with a certificate if one is asked for."""
        solver = self.solver
        w = self.best_w if self.best_w is not None else self.learner.w
        certificate = None
        if solver.certificate:
            try:
                certificate = self._certificate(w)
            except KeyboardInterrupt:  # the weights are there, and not to be lost
                status = "interrupted"
        stopping = None
        if solver.tol is not None or solver.epsilon is not None:
            stopping = Stopping(solver.tol, solver.epsilon, self.C * float(self.weights.sum()))
        return self.result(
            w, certificate, stopping=stopping, status=status, planes=0, state=self.learner
        )

    def _certificate(self, w: Floats) -> Certificate:
        """One pass of true oracle calls, and the dual value of what the steps have left."""
        learner = self.learner
        known = learner.trained_on is self.oracle.problem
        start = learner.dual_point(self.C * self.weights) if known else None
        found = certificate_of(self.oracle, self.C, w, self.weights, start)
        if self._n_saved > 0 and self._saver is not None and start is not None:
            slacks = found.primal - 0.5 * float(w @ w)
            with from_file(self._saver.path):
                if not start.linear - float(start.w @ w) <= slacks + DRIFT * (
                    1.0 + abs(start.linear)
                ):
                    raise ValueError("state.numbers: its multipliers are of no planes")
        return found
