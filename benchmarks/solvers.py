"""Our own solvers as contestants."""

from __future__ import annotations

import time
from functools import cache
from itertools import pairwise
from statistics import median

from maxmargin.core.formulation import Formulation
from maxmargin.core.objective import Certificate
from maxmargin.core.result import Progress, Result
from maxmargin.solvers import make_solver

from .case import FORMULATION, Contestant, Outcome, Point, ProblemMaker
from .objective import relative_gap

WARM_UP_EXAMPLES = 200


def ours(
    name: str,
    make_problem: ProblemMaker,
    C: float,
    *,
    tol: float | None = None,
    epsilon: float | None = None,
    max_passes: float | None = None,
    once: bool = False,
    formulation: Formulation = FORMULATION,
    label: str | None = None,
) -> Contestant:
    """One of our solvers, by name. What is timed includes packing the arrays into a problem."""

    def warm_up() -> None:
        # A small problem that takes several passes, so that every kernel is compiled or loaded.
        solver = make_solver(name, tol=1e-6, max_passes=8)
        solver.solve(make_problem(WARM_UP_EXAMPLES), formulation, 30 * C)

    def run() -> Outcome:
        clock = CpuClock()
        problem = make_problem(None)
        solver = make_solver(name, tol=tol, epsilon=epsilon, max_passes=max_passes)
        result = solver.solve(problem, formulation, C, callbacks=[clock])
        measures = {
            "passes": result.n_passes,
            "cached_passes": result.n_cache_hits / problem.n_examples,
            "planes": float(result.n_planes),
        }
        if solver.certified:
            measures["converged"] = float(result.converged)
        else:
            measures["per_round"] = clock.per_record()
        if result.primal is not None and result.dual is not None:
            measures |= {"claimed_primal": result.primal, "dual": result.dual}
        return Outcome(measures, w=result.w, curve=clock.curve(result, problem.n_examples))

    return Contestant(label or name, run, warm_up, once)


class CpuClock:
    """A callback that notes the CPU time of every record of the history."""

    def __init__(self) -> None:
        self.started = time.process_time()
        self.seconds: list[float] = []

    def __call__(self, progress: Progress) -> None:
        """Note the time."""
        self.seconds.append(time.process_time() - self.started)

    def per_record(self) -> float:
        """Median time between records; that of the first is not known."""
        return median(b - a for a, b in pairwise(self.seconds))

    def curve(self, result: Result, n_examples: int) -> list[Point]:
        """Relative gaps over time: certified ones, or the estimates met on the way."""
        points = []
        for cpu, record in zip(self.seconds, result.history, strict=False):
            gap = record.gap if record.gap is not None else record.gap_estimate
            if gap is None or record.dual is None or record.dual + gap <= 0:
                continue
            relative = relative_gap(record.dual + gap, record.dual)
            passes = record.oracle_calls / n_examples
            points.append(Point(cpu, passes, relative, record.gap is not None))
        return points


@cache
def optimum(make_problem: ProblemMaker, C: float, tol: float = 1e-4) -> Certificate:
    """Bounds on the optimal value, a relative ``tol`` apart."""
    result = make_solver("auto", tol=tol).solve(make_problem(None), FORMULATION, C)
    if result.primal is None or result.dual is None:
        raise RuntimeError("the solver gave no certificate")
    return Certificate(result.primal, result.dual)
