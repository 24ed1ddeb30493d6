"""Training on a cluster: rounds and bytes by the number of parts, and a model for many workers.

CoNLL-2000 is cut into parts that are trained in this process, one after the other: rounds and bytes
are those of a cluster, and so are the seconds of each part's work. A cluster of two processes tells
what a question costs. From these constants follows what 10^9 tokens would take (`cluster_model`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import maxmargin as mm
from maxmargin.cluster.ascent import Point, Points, ShardedAscent
from maxmargin.cluster.executor import InProcess, Reply, ShardConfig, cut
from maxmargin.cluster.shard import ShardOptions, pack
from maxmargin.cluster.solver import solve_by
from maxmargin.core.problem import Problem
from maxmargin.problems.classes.multiclass import MulticlassProblem

from .case import FORMULATION, Case, Contestant, Options, Outcome, Target
from .cluster_model import Constants, estimate, power_law
from .datasets import conll2000

TOKENS = 1e9
WORKERS = (1, 10, 30, 100, 300, 1000)
C, TOL = 0.1, 0.05


class Timed(InProcess):
    """Shards in this process, with the CPU seconds that they take."""

    seconds = 0.0

    def call(self, *question: Any, **options: Any) -> dict[int, Reply]:
        """See `InProcess`."""
        began = time.process_time()
        answers = super().call(*question, **options)
        self.seconds += time.process_time() - began
        return answers


class Measured:
    """What the first cases find out, for the model."""

    def __init__(self) -> None:
        self.rounds: dict[int, float] = {}
        self.entries: dict[float, float] = {}  # of a point, by the tokens of a part
        self.seconds: dict[float, float] = {}  # of a part's round, likewise
        self.ask_seconds = 0.0
        self.n_weights = 0


def cases(options: Options) -> Iterator[Case]:
    """Rounds, questions, and the model."""
    limit = 100 if options.quick else 500
    problem = conll2000.Chunking(options.quick).problem(limit)
    measured = Measured()
    shards = (1, 2, 4) if options.quick else (1, 2, 4, 8, 16)
    labels = [f"{k} parts" for k in shards]
    yield Case(
        f"CoNLL-2000, {problem.n_examples} sentences in parts, C = {C}, gap {TOL:.0%}",
        [
            Contestant(label, lambda k=k: _rounds(problem, k, measured), once=True)  # type: ignore[misc]
            for label, k in zip(labels, shards, strict=True)
        ],
        [
            *(Target(f"rounds, {label}", label, "rounds") for label in labels),
            *(Target(f"received in a round, {label}", label, "MB", unit="MB") for label in labels),
        ],
    )
    yield Case(
        "two worker processes, nothing to do",
        [Contestant("round", lambda: _questions(measured), once=True)],
        [Target("seconds of a round", "round", "seconds", unit="s")],
    )
    yield Case(
        f"model: {TOKENS:.0e} tokens",
        [
            Contestant(f"{k} workers", lambda k=k: _model(measured, k), once=True)  # type: ignore[misc]
            for k in WORKERS
        ],
        [Target(f"hours, {k} workers", f"{k} workers", "hours", unit="h") for k in WORKERS],
    )


def _team(problem: Problem, n_shards: int) -> Timed:
    loaders, _ = cut(problem, n_shards)
    config = [ShardConfig(FORMULATION, C, None, ShardOptions(seed=k)) for k in range(n_shards)]
    return Timed(loaders, config)


def _rounds(problem: Problem, n_shards: int, measured: Measured) -> Outcome:
    """Train in parts; what came back, and how long parts took."""
    team = _team(problem, n_shards)
    result = solve_by(team, ShardedAscent(tol=TOL, max_passes=400), FORMULATION, C, ())
    rounds = len(team.traffic.received)
    n_tokens = sum(len(y) for y in problem.Y)
    found = [len(v.values) for shard in team.shards for v in shard.points.values()]
    measured.rounds[n_shards] = rounds
    measured.entries[n_tokens / n_shards] = float(np.mean(found))
    measured.seconds[n_tokens / n_shards] = team.seconds / rounds / n_shards
    measured.n_weights = int(problem.n_features or 0)
    assert result.relative_gap is not None
    return Outcome(
        {
            "rounds": rounds,
            "relative_gap": result.relative_gap,
            "MB": max(team.traffic.received) / 1e6,
            "seconds of a part": team.seconds / rounds / n_shards,
        }
    )


def _questions(measured: Measured) -> Outcome:
    """Rounds over a handful of numbers: what is left is the asking."""
    from distributed import Client, LocalCluster

    logging.getLogger("distributed").propagate = False  # into the benchmarks' own lines
    problem = MulticlassProblem(np.eye(8), np.arange(8) % 2, 2)
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    )
    with cluster, Client(cluster) as client:
        solver = mm.ClusterSolver(cluster=client, method="one_slack", tol=None, max_passes=40)
        solver.solve(problem, FORMULATION, 1.0)  # compiles
        times: list[float] = []
        solver.solve(problem, FORMULATION, 1.0, callbacks=[lambda _: times.append(time.time())])
    seconds = float(np.median(np.diff(times)))
    measured.ask_seconds = seconds / 2
    return Outcome({"seconds": seconds})


def _model(measured: Measured, workers: int) -> Outcome:
    """The model's figures for so many workers."""
    constants = constants_of(measured)
    found = estimate(constants, workers, TOKENS, np.random.default_rng(workers))
    measures = {**vars(constants), **vars(found), "efficiency": found.efficiency}
    return Outcome({name: float(value) for name, value in measures.items()})


def constants_of(measured: Measured) -> Constants:
    """The constants of the model, by lines through what was measured."""
    rounds, rounds_power = power_law(list(measured.rounds), list(measured.rounds.values()))
    entries, power = power_law(list(measured.entries), list(measured.entries.values()))
    per_token, fixed = np.polyfit(list(measured.seconds), list(measured.seconds.values()), 1)
    return Constants(
        rounds=rounds,
        rounds_power=rounds_power,
        seconds_per_token=per_token,
        seconds_per_weight=max(fixed, 0.0) / measured.n_weights,
        n_weights=measured.n_weights,
        entries=entries,
        entries_power=power,
        ask_seconds=measured.ask_seconds,
        **_driver(),
    )


def _driver() -> dict[str, float]:
    """Constants of the driver's work: products of vectors, and QPs over points."""
    rng = np.random.default_rng(0)
    size, count = 2**20, 16
    matrix = rng.normal(size=(count, size))
    matrix[rng.random((count, size)) < 0.5] = 0.0
    vectors = [pack(row) for row in matrix]
    n_entries = sum(len(vector.values) for vector in vectors)
    gather = _seconds(lambda: [vector.product(matrix[0]) for vector in vectors]) / n_entries
    row = np.zeros(size)
    write = _seconds(lambda: [vector.write(0, row) for vector in vectors]) / n_entries
    multiply = _seconds(lambda: matrix @ matrix.T) / (count * count * size)
    counts, took = [100.0, 200.0, 400.0], []
    for n_points in counts:
        points = Points(20, 50)
        drawn = [
            Point(number % 20, number, pack(rng.normal(size=50)), rng.uniform(0.0, 3.0))
            for number in range(int(n_points))
        ]
        points.add_all(drawn)
        took.append(_seconds(lambda points=points: points.solve(1e-3)))  # type: ignore[misc]
    qp, qp_power = power_law(counts, took)
    return {
        "gather_seconds": gather,
        "write_seconds": write,
        "multiply_seconds": multiply,
        "qp_seconds": qp,
        "qp_power": qp_power,
    }


def _seconds(work: Callable[[], Any]) -> float:
    """CPU time of one call."""
    began = time.process_time()
    work()
    return max(time.process_time() - began, 1e-6)
