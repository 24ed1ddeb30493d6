"""Paths of C: ten C on CoNLL-2000 beside the hardest alone; OCR letters, all lambda of a range."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from maxmargin.core.formulation import C_from_paper
from maxmargin.core.problem import Problem
from maxmargin.core.result import Result
from maxmargin.solvers import make_solver
from maxmargin.solvers.base import Solver
from maxmargin.solvers.path import PathPoint, solve_path

from ..case import FORMULATION, Case, Contestant, Options, Outcome, ProblemMaker, Target
from . import conll2000, ocr_letters

CS = np.logspace(-2, 1, 10)
MOST_TIMES = 3.0  # the time of the hardest
LAMBDAS = 2.0 ** np.array([15, -15])  # Osokin et al. (2016), covered at 0.1
TOL = 0.1


def cases(options: Options) -> Iterator[Case]:
    """A grid, and a cover."""
    if not options.of_ours(["auto"]):
        return
    chunking = conll2000.Chunking(options.quick).problem
    yield Case(
        "CoNLL-2000, C from 0.01 to 10",
        [
            Contestant("ten", lambda: _grid(chunking, CS.tolist())),
            Contestant("hardest", lambda: _grid(chunking, [float(CS[-1])])),
        ],
        [
            Target(
                "ten C, beside the hardest alone",
                "ten",
                "cpu",
                at_most=MOST_TIMES,
                relative_to=("hardest", "cpu"),
            ),
            Target("passes of ten", "ten", "passes"),
            Target("passes of the hardest", "hardest", "passes"),
        ],
    )
    words = ocr_letters.problem_of_paper(options)
    yield Case(
        "OCR letters, lambda from 2^15 to 2^-15",
        [Contestant("cover", lambda: _cover(words))],
        [
            Target("share of the range that is covered", "cover", "covered", at_least=1.0),
            Target("time", "cover", "cpu", unit="s"),
            Target("models", "cover", "points"),
            Target("passes", "cover", "passes"),
            Target("largest gap", "cover", "gap", at_most=TOL),
        ],
    )


def _points(problem: Problem, solver: Solver, Cs: list[float], cover: bool) -> list[PathPoint]:
    """The path of a solver."""

    def solve(solver: Solver, C: float, earlier: Result | None) -> Result:
        return solver.solve(problem, FORMULATION, C, warm_start=earlier)

    return solve_path(solve, solver, Cs, float(problem.n_examples), cover=cover)


def _grid(make: ProblemMaker, Cs: list[float]) -> Outcome:
    """Solutions for some C."""
    solver = make_solver("auto", tol=1e-2, random_state=0)
    points = _points(make(None), solver, Cs, cover=False)
    return Outcome({"passes": sum(point.result.n_passes for point in points)})


def _cover(make: ProblemMaker) -> Outcome:
    """Solutions such that every lambda is within the gap for one of them."""
    problem = make(None)
    least, largest = (C_from_paper(x, problem.n_examples, "franc") for x in LAMBDAS)
    solver = make_solver("auto", tol=TOL, random_state=0)
    points = _points(problem, solver, [least, largest], cover=True)
    asked = np.geomspace(least, largest, 1001)
    met = [any(point.covers(C) for point in points) for C in asked]
    return Outcome(
        {
            "covered": float(np.mean(met)),
            "points": float(len(points)),
            "passes": sum(point.result.n_passes for point in points),
            "gap": max(point.result.relative_gap or 0.0 for point in points),
        }
    )
