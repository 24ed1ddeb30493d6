"""Dual ascent by parts: local passes on every worker, combined by an exact QP over what they found.

A round sends weights q to all parts. Each measures its slacks there by true oracle calls, makes a
cutting plane of them, takes passes of steps over its own blocks, and returns plane and point (see
`shard`). The best mean of all points so far is found by a QP (`points`): the dual never falls. The
slacks make the primal value at q, so that every round ends with a certificate.

Where parts would all take the same step, their sum is much too long: the QP then gives each of them
a share of it, and the cutting planes what single points cannot tell. Between the best weights known
and the QP's own, q is half-way: the QP's jump about, as cutting planes do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..engine.certified_run import CertifiedRun
from ..engine.oracle import Oracle
from ..engine.state import (
    OWN,
    Arrays,
    Checkpointable,
    SolverState,
    add_prefix,
    declare_state,
    from_file,
    strip_prefix,
)
from ..engine.verifying import check_dual, check_primal
from ..formulation import Formulation
from ..objective import Certificate
from ..problem import Problem
from ..result import Callback, Result
from ..schema import Count, Number, numbers
from ..solvers.base import Solver
from ..types import Floats
from .executor import Reply
from .points import Point, Points
from .problem import ShardedProblem
from .shard import ShardRound, ShardSums, Unknown

__all__ = ["ShardedAscent"]

PRECISION = 1e-3  # of the QP, as a share of the gap
PASSES = 2  # oracle calls of each example in a round


class PointsState(SolverState):
    """The points of all parts."""

    kind = "cluster"

    def __init__(self, oracle: Oracle, points: Points) -> None:
        self.oracle, self.points = oracle, points

    def arrays(self) -> Arrays:
        """See `SolverState`."""
        return add_prefix("points", self.points.arrays())

    def restore(self, arrays: Arrays) -> None:
        """See `SolverState`."""
        self.points.restore(strip_prefix("points", arrays))

    def proven_dual(self) -> float:
        """See `SolverState`."""
        return self.points.dual(self.points.weights())


class AscentLoop(Checkpointable):
    """What `ShardedAscent` keeps from one round to the next."""

    state_fields = declare_state(
        number=Count, query=lambda own: numbers(len(own.query)), gap=Number
    )

    def __init__(self, n_features: int) -> None:
        self.number = 0  # of the next point
        self.query: Floats = np.zeros(n_features)
        self.gap = np.inf


class ShardedRun(CertifiedRun):
    """A run over the parts: their points, the best weights known, the certificate."""

    state_fields = declare_state(
        CertifiedRun.state_fields,
        state=OWN,
        current=lambda own: numbers(len(own.current)),
    )
    state: PointsState

    def __init__(
        self,
        solver: ShardedAscent,
        problem: ShardedProblem,
        C: float,
        weights: Floats,
        callbacks: Iterable[Callback],
    ) -> None:
        oracle = Oracle(problem, problem.formulation)
        super().__init__(solver, oracle, C, weights, callbacks)
        self.shards, self.executor = problem, problem.executor
        self.points = Points(self.n, problem.n_features)
        self.state = PointsState(oracle, self.points)
        self.current: Floats = np.zeros(problem.n_features)
        self.proven_dual = 0.0

    @property
    def current_weights(self) -> Floats:
        """See `Run`."""
        return self.current

    @property
    def n_planes(self) -> int:
        """Points kept."""
        return len(self.points)

    def final_state(self, interrupted: bool) -> None:
        """None: the multipliers stay with the workers."""

    def take(self, w: Floats, sums: dict[int, ShardSums]) -> bool:
        """Certify ``w`` by what all parts have measured there; False where some are missing."""
        if len(sums) < self.n:
            return False
        regular = 0.5 * float(w @ w)
        self.found_primal = regular + self.C * sum(sums[k].slacks for k in sorted(sums))
        primal = self.found_primal
        if any(of.bound is not None for of in sums.values()):
            bounds = [s.slacks if s.bound is None else s.bound for _, s in sorted(sums.items())]
            # What `Oracle` would have noted, had it seen the answers.
            self.oracle.bounds = np.array(bounds)
            primal = regular + self.C * sum(bounds)
        self.offer(primal, w)
        return True

    def verify(self) -> None:
        """See `CertifiedRun`; the workers know the examples."""
        assert self._saver is not None
        with from_file(self._saver.path):
            check_dual(self.proven_dual, self.state.proven_dual())
        if self.best is None:
            return
        primal, w = self.best
        before = self.best, self.certified, self.found_primal, self.oracle.bounds
        self.best = None
        answers = self.executor.call("measure", w, dict.fromkeys(range(self.n), ()))
        if self.take(w, {k: found.answer for k, found in answers.items()}):
            assert self.best is not None
            with from_file(self._saver.path):
                check_primal(primal, self.best[0])
        self.best, self.certified, self.found_primal, self.oracle.bounds = before

    def settle(self) -> Certificate:
        """Certify the current weights by true oracle calls on all workers."""
        answers = self.executor.call("measure", self.current, dict.fromkeys(range(self.n), ()))
        self.oracle.count(self.n)
        self.take(self.current, {k: found.answer for k, found in answers.items()})
        assert self.certificate is not None
        return self.certificate


@dataclass(frozen=True)
class ShardedAscent(Solver):
    """Dual ascent on the parts of a `ShardedProblem`, which is all that it can solve.

    Parameters
    ----------
    reach : float
        Where the parts are asked, as a share of the way from the best weights known to those of the
        best mean of points.
    """

    reach: float = 0.5

    name: ClassVar[str] = "cluster"

    def start(
        self,
        problem: Problem,
        formulation: Formulation,
        C: float,
        weights: Floats,
        warm_start: Result | None,
        callbacks: Iterable[Callback],
    ) -> ShardedRun:
        """See `Solver.start`."""
        assert isinstance(problem, ShardedProblem)
        return ShardedRun(self, problem, C, weights, callbacks)

    def iterate(self, run: ShardedRun) -> None:
        """Rounds until the certificate meets the stopping criterion."""
        points, executor = run.points, run.executor
        loop = run.looping(AscentLoop(run.shards.n_features))
        new: dict[int, dict[int, Any]] = {}
        while True:
            run.save_point()
            messages = {
                k: (loop.number + 2 * k, points.factors(k), new.get(k, {})) for k in range(run.n)
            }
            loop.number += 2 * run.n
            run.certified = False
            asked = executor.asked + 1
            answers = executor.call("ascend", loop.query, messages, may_be_late=True)
            answers |= self._reminded(run, loop.query, messages, answers)
            run.oracle.count(PASSES * len(answers))
            run.check()
            run.current = loop.query
            now = {k: a.answer.plane.sums for k, a in answers.items() if a.asked == asked}
            if run.take(loop.query, now):
                assert run.certificate is not None
                loop.gap = run.certificate.gap
            if run.converged():
                run.record()
                return
            points.add_all(
                [p for k in sorted(answers) for p in self._two(run, k, answers[k].answer)]
            )
            points.solve(PRECISION * loop.gap if np.isfinite(loop.gap) else 0.0)
            new = points.merge_crowded(loop.number)
            loop.number += len(new)
            w = points.weights()
            run.proven_dual = max(run.proven_dual, points.dual(w))
            if run.converged():
                run.certified = True  # earlier weights are good enough
                run.record()
                return
            run.record(loop.gap if np.isfinite(loop.gap) else None)
            center = run.best[1] if run.best is not None else w
            loop.query = center + self.reach * (w - center)

    @staticmethod
    def _reminded(
        run: ShardedRun, w: Floats, messages: dict[int, Any], answers: dict[int, Reply]
    ) -> dict[int, Reply]:
        """Answers of parts that have lost their memory, with their worker say, told all again."""
        lost = [k for k, found in answers.items() if isinstance(found.answer, Unknown)]
        if not lost:
            return {}
        asked = run.executor.asked
        again = {k: (*messages[k][:2], run.points.of_part(k)) for k in lost}
        return {
            k: found._replace(asked=asked)
            for k, found in run.executor.call("ascend", w, again).items()
        }

    @staticmethod
    def _two(run: ShardedRun, k: int, found: ShardRound) -> tuple[Point, Point]:
        """The two points of a part's answer; a plane is one, with all multipliers."""
        plane, C = found.plane, run.C
        vector = plane.vector._replace(values=C * plane.vector.values)
        return (
            Point(k, found.number, vector, C * plane.offset),
            Point(k, found.number + 1, found.vector, found.value),
        )
