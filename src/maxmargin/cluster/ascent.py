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
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..core.objective import Certificate
from ..core.result import Callback
from ..engine.oracle import Oracle
from ..engine.steps.joint_qp import JointPlanes, solve_jointly
from ..engine.training.certified_run import CertifiedRun
from ..engine.training.state import (
    FULL,
    OWN,
    Arrays,
    Checkpointable,
    SolverState,
    add_prefix,
    declare_state,
    from_file,
    from_text,
    strip_prefix,
    to_text,
)
from ..engine.training.verifying import check_dual, check_primal
from ..solvers.base import Solver, TrainingRequest
from ..utils.schema import Count, Number, checked_arrays, from_values, numbers, whole
from ..utils.types import Floats, Ints
from .executor import Reply, ShardedProblem
from .shard import Packed, ShardRound, ShardSums, Unknown, pack, products

__all__ = ["Point", "Points", "ShardedAscent"]

IDLE_LIMIT = 5  # solutions in a row without weight after which a point is dropped
MOST, MOST_OF_ALL = 60, 400  # points of a part, and of all, beyond which a part keeps their mean
PER_POINT = ("shard", "number", "value", "theta", "idle")


class Point(NamedTuple):
    """A point of a part."""

    shard: int
    number: int
    vector: Packed
    value: float


class _KeptNumbers(NamedTuple):
    """How many points there are."""

    size: Count


class Points:
    """Points of all parts and their factors theta.

    Parameters
    ----------
    n_shards : int
        How many parts there are.
    n_features : int
        Length of the vectors.
    """

    def __init__(self, n_shards: int, n_features: int) -> None:
        self.n_shards, self.n_features = n_shards, n_features
        self.most = max(2, min(MOST, MOST_OF_ALL // n_shards))
        self.vectors: list[Packed] = []
        self.shard: Ints = np.empty(0, np.int64)
        self.number: Ints = np.empty(0, np.int64)
        self.value: Floats = np.empty(0)
        self.theta: Floats = np.empty(0)
        self.idle: Ints = np.empty(0, np.int64)
        self.gram: Floats = np.empty((0, 0))

    def __len__(self) -> int:
        return len(self.vectors)

    def add_all(self, new: list[Point]) -> None:
        """Add points, as yet without weight."""
        m, n_new = len(self), len(new)
        self.vectors += [point.vector for point in new]
        gram = np.empty((m + n_new, m + n_new))
        gram[:m, :m] = self.gram
        gram[m:] = products(self.vectors[m:], self.vectors, self.n_features)
        gram[:m, m:] = gram[m:, :m].T
        self.gram = gram
        for name in ("shard", "number", "value"):
            values = [getattr(point, name) for point in new]
            setattr(self, name, np.append(getattr(self, name), values))
        self.theta = np.append(self.theta, np.zeros(n_new))
        self.idle = np.append(self.idle, np.zeros(n_new, np.int64))

    def add(self, shard: int, number: int, vector: Packed, value: float, theta: float) -> None:
        """Add a point of this weight."""
        self.add_all([Point(shard, number, vector, value)])
        self.theta[-1] = theta

    def solve(self, stop_gap: float) -> None:
        """Find the best factors, up to this gap, and drop points that have long had none."""
        if not len(self):
            return
        cap, ridge = np.ones(self.n_shards), np.zeros(self.n_shards)
        planes = JointPlanes(self.gram, self.value, self.theta, self.shard, cap, ridge)
        self.theta = solve_jointly(planes, stop_gap).alpha
        self.idle = np.where(self.theta > 0.0, 0, self.idle + 1)
        self._keep(np.flatnonzero(self.idle < IDLE_LIMIT))

    def weights(self) -> Floats:
        """``sum theta v``."""
        return self._sum(np.arange(len(self)))

    def dual(self, w: Floats) -> float:
        """The value reached, at the weights."""
        return float(self.theta @ self.value) - 0.5 * float(w @ w)

    def factors(self, shard: int) -> dict[int, float]:
        """Factors of a part's points by number."""
        own = self._own(shard)
        return dict(zip(self.number[own].tolist(), self.theta[own].tolist(), strict=True))

    def of_part(self, shard: int) -> dict[int, Packed]:
        """A part's points by number."""
        own = self._own(shard)
        return {int(self.number[p]): self.vectors[p] for p in own}

    def merge_crowded(self, number: int) -> dict[int, dict[int, Packed]]:
        """Make one point of all those of a part, their mean, where there are too many.

        Returns the new points by part and number, which counts on from ``number``.
        """
        merged: dict[int, dict[int, Packed]] = {}
        counts = np.bincount(self.shard, minlength=self.n_shards)
        for shard in np.flatnonzero(counts > self.most).tolist():
            own = self._own(shard)
            total = float(self.theta[own].sum())
            vector = pack(self._sum(own) / total) if total else None
            value = float(self.theta[own] @ self.value[own]) / total if total else 0.0
            self._keep(np.flatnonzero(self.shard != shard))
            if vector is not None:
                self.add(shard, number, vector, value, total)
                merged[shard] = {number: vector}
                number += 1
        return merged

    def _own(self, shard: int) -> Ints:
        """Places of a part's points."""
        return np.flatnonzero(self.shard == shard)

    def _sum(self, places: Ints) -> Floats:
        """Sum of points times their factors."""
        total = np.zeros(self.n_features)
        for p in places.tolist():
            if self.theta[p]:
                self.vectors[p].add_to(total, float(self.theta[p]))
        return total

    def _keep(self, kept: Ints) -> None:
        """Keep these points alone."""
        if len(kept) == len(self):
            return
        self.vectors = [self.vectors[p] for p in kept.tolist()]
        for name in PER_POINT:
            setattr(self, name, getattr(self, name)[kept])
        self.gram = self.gram[np.ix_(kept, kept)]

    # ----- state --------------------------------------------------------------------------------

    def arrays(self) -> Arrays:
        """All points, as arrays by name."""
        found: Arrays = {name: getattr(self, name) for name in PER_POINT}
        for p, vector in enumerate(self.vectors):
            found[f"values.{p}"] = vector.values
            if vector.ids is not None:
                found[f"ids.{p}"] = vector.ids
        return {**found, "gram": self.gram, "numbers": to_text({"size": len(self)})}

    def restore(self, arrays: Arrays) -> None:
        """Take over what `arrays` of points of as many parts has given."""
        m = len(arrays["theta"])
        size = from_values(_KeptNumbers, from_text(arrays["numbers"]), "numbers").size
        declared = {
            "shard": whole(m, below=self.n_shards),
            **{name: whole(m, below=2**62) for name in ("number", "idle")},
            "value": numbers(m),
            "theta": numbers(m, low=0.0),
            "gram": numbers(m, m),
        }
        own = checked_arrays(arrays, declared)
        sums = np.bincount(own["shard"], own["theta"], self.n_shards)
        if size != m or not (sums <= 1.0 + FULL).all():
            raise ValueError("theta: the sum of a part's factors is more than 1")
        vectors = []
        for p in range(m):
            length, ids = self.n_features, None
            if f"ids.{p}" in arrays:
                length = len(arrays[f"ids.{p}"])
                rises = whole(length, below=self.n_features, types=(np.int32, np.int64))
                ids = checked_arrays(arrays, {f"ids.{p}": rises})[f"ids.{p}"]
                if (np.diff(ids) <= 0).any():
                    raise ValueError(f"ids.{p}: expected features in rising order")
            values = checked_arrays(arrays, {f"values.{p}": numbers(length)})[f"values.{p}"]
            vectors.append(Packed(self.n_features, ids, values))
        for name, array in own.items():
            setattr(self, name, array)
        self.vectors = vectors


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

    @property
    def n_support_vectors(self) -> int:
        """See `CertifiedRun`."""
        return int(np.count_nonzero(self.points.theta > 0.0))

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

    def start(self, request: TrainingRequest) -> ShardedRun:
        """See `Solver.start`."""
        assert isinstance(request.problem, ShardedProblem)
        return ShardedRun(self, request.problem, request.C, request.weights, request.callbacks)

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
