"""One training run of an exhibit: what papers count, and curves over time and passes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from statistics import median
from typing import Any

import numpy as np

from maxmargin.core.formulation import Formulation
from maxmargin.core.result import Progress, Result, WeightsCallback
from maxmargin.solvers import Solver

from ..case import FORMULATION, Floats, ProblemMaker

WARM_UP_EXAMPLES = 100


class Moment:
    """CPU seconds, passes, and what `score` says of the weights, after an outer iteration."""

    def __init__(self, cpu: float, progress: Progress, n_examples: int, score: float | None):
        self.cpu = cpu
        self.passes = progress.oracle_calls / n_examples
        self.primal, self.dual = progress.primal, progress.dual
        self.score = score


class _Clock(WeightsCallback):
    """Notes every outer iteration; scoring takes no time of the run."""

    def __init__(
        self, n_examples: int, score: Callable[[Floats], float] | None, most: float
    ) -> None:
        self.n_examples, self.score, self.most = n_examples, score, most
        self.moments: list[Moment] = []
        self.aside = 0.0
        self.started = time.process_time()

    def __call__(
        self, progress: Progress, weights: Callable[[], Floats] | None = None
    ) -> bool | None:
        now = time.process_time()
        found = None
        if self.score is not None and weights is not None:
            found = self.score(np.array(weights()))
        self.moments.append(
            Moment(now - self.started - self.aside, progress, self.n_examples, found)
        )
        self.aside += time.process_time() - now
        return now - self.started - self.aside > self.most


@dataclass
class Run:
    """What came of it."""

    label: str
    result: Result
    cpu: float  # the median, where it was repeated
    moments: list[Moment] = field(default_factory=list)

    @property
    def iterations(self) -> int:
        """Outer iterations."""
        return len(self.result.history)

    @property
    def stopped(self) -> str:
        """A mark for runs that a limit ended."""
        return "" if self.result.converged else " (stopped)"

    def curve(self, x: str, y: str) -> list[tuple[float, float]]:
        """Two attributes of the moments, where both are known."""
        points = [(getattr(moment, x), getattr(moment, y)) for moment in self.moments]
        return [(a, b) for a, b in points if a is not None and b is not None]


def train(
    label: str,
    solver: Solver,
    problem: ProblemMaker,
    C: float,
    formulation: Formulation = FORMULATION,
    *,
    score: Callable[[Floats], float] | None = None,
    repeat: int = 1,
    most: float = inf,
) -> Run:
    """Train for ``most`` CPU seconds at most; ``problem(n)`` has the first n examples.

    Kernels are compiled by a tiny problem before.
    """
    tiny: dict[str, Any] = {"max_passes": 6.0}
    replace(solver, **tiny).solve(problem(WARM_UP_EXAMPLES), formulation, C)
    seconds = []
    for _ in range(repeat):
        whole = problem(None)
        clock = _Clock(whole.n_examples, score, most)
        result = solver.solve(whole, formulation, C, callbacks=[clock])
        seconds.append(time.process_time() - clock.started - clock.aside)
    return Run(label, result, median(seconds), clock.moments)


def suboptimality(runs: list[Run], x: str = "passes") -> dict[str, list[tuple[float, float]]]:
    """(P - P*)/P* over passes or seconds, where the best dual value of all runs stands for P*."""
    best = max(run.result.dual for run in runs if run.result.dual is not None)
    return {
        run.label: [
            (a, (primal - best) / best) for a, primal in run.curve(x, "primal") if primal > best
        ]
        for run in runs
    }
