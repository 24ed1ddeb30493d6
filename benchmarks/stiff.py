"""Small problems of every structure, stiff ones among them: is `auto` near the best of all solvers?

Random problems of 1 to 200 examples, C from 0.01 to 100, linear and squared slacks, all rescalings,
to a relative gap of 1e-4. Every certified solver runs on each of them, no longer than ten times as
long as `auto` did. Reported are the shares of problems on which `auto` took at most 2 and 5 times
the CPU time of the fastest, and at most 50 passes.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from maxmargin._compiling import compile_seconds
from maxmargin.formulation import Formulation
from maxmargin.problem import Problem
from maxmargin.result import Result
from maxmargin.solvers import SOLVERS, make_solver
from maxmargin.solvers.base import Solver

from .case import Case, Contestant, Options, Outcome, Target
from .random_problems import STRUCTURES, Drawn

TOL = 1e-4
LARGEST = 200  # examples
MANY_PASSES = 50
MOST_SECONDS = 20.0
LEAST_SECONDS = 0.05  # that others may take: below, the clock is not to be trusted
REPEATS = 4  # of shorter fits; the first may load kernels
PROBLEMS = 40  # of each structure


class Taken(NamedTuple):
    """What a fit took; seconds are infinite where it did not converge."""

    seconds: float
    passes: float


@dataclass(frozen=True)
class Clock(Solver):
    """Another solver, and the CPU time of its runs: without what estimators do around them."""

    inner: Solver | None = None
    seconds: list[float] = field(default_factory=list)

    name: ClassVar[str] = "clock"
    slacks: ClassVar[tuple[str, ...]] = ("l1", "l2")

    def solve(self, problem: Problem, formulation: Formulation, C: float, **rest: Any) -> Result:
        """Train; the time of compiling kernels does not count."""
        assert self.inner is not None
        compiled, started = compile_seconds(), time.process_time()
        result = self.inner.solve(problem, formulation, C, **rest)
        self.seconds.append(time.process_time() - started - (compile_seconds() - compiled))
        return result

    def start(self, *arguments: Any) -> Any:
        """See `Solver.start`."""
        assert self.inner is not None
        return self.inner.start(*arguments)

    def iterate(self, run: Any) -> str | None:
        """See `Solver.iterate`."""
        assert self.inner is not None
        return self.inner.iterate(run)


def cases(options: Options) -> Iterator[Case]:
    """A case for each structure; the last one also has the figures of all of them."""
    solvers = [name for name in options.of_ours(tuple(SOLVERS)) if SOLVERS[name].certified]
    found: dict[int, list[dict[str, Taken]]] = {}  # by structure
    number = 2 if options.quick else PROBLEMS
    for place, structure in enumerate(STRUCTURES):
        name = f"stiff: {structure.__name__.replace('_', ' ')}"
        targets = _targets("", limits=False)
        if place == len(STRUCTURES) - 1:
            name += ", and all structures"
            targets += _targets("all: ", limits=True)
        yield Case(name, [_contestant(place, number, solvers, found)], targets)


def _targets(prefix: str, limits: bool) -> list[Target]:
    """The shares, with their limits where they are of all structures."""
    what = (
        ("within twice the best time", "within_2", 90.0),
        ("within five times", "within_5", 100.0),
        (f"at most {MANY_PASSES} passes", "few_passes", 90.0),
    )
    return [
        Target(prefix + text, "auto", prefix + name, unit="%", at_least=least if limits else None)
        for text, name, least in what
    ] + [Target(prefix + "worst ratio of times", "auto", prefix + "worst")]


def _contestant(
    place: int, number: int, solvers: list[str], found: dict[int, list[dict[str, Taken]]]
) -> Contestant:
    """All solvers on problems of one structure; ``found`` is what there is of all."""

    def run() -> Outcome:
        found[place] = [_compare(place, k, solvers) for k in range(number)]
        everything = [taken for some in found.values() for taken in some]
        return Outcome(_shares(found[place], "") | _shares(everything, "all: "))

    return Contestant("auto", run, once=True)


def _compare(place: int, number: int, solvers: list[str]) -> dict[str, Taken]:
    """Times and passes of all solvers on one problem."""
    rng = np.random.default_rng([place, number])
    n = round(LARGEST ** rng.random())
    drawn = STRUCTURES[place](rng, n)
    parameters = {
        "C": float(10.0 ** rng.uniform(-2, 2)),
        "slack": str(rng.choice(["l1", "l2"])),
        "rescaling": str(rng.choice(["margin", "slack", "none"])),
        "sqrt_loss": None if drawn.has_sqrt_loss else False,
    }
    taken = {"auto": _fit(drawn, "auto", parameters, MOST_SECONDS)}
    limit = min(10.0 * max(taken["auto"].seconds, LEAST_SECONDS), MOST_SECONDS)
    for name in solvers:
        if name != "auto" and parameters["slack"] in SOLVERS[name].slacks:
            taken[name] = _fit(drawn, name, parameters, limit)
    return taken


def _fit(drawn: Drawn, solver: str, parameters: dict[str, Any], limit: float) -> Taken:
    """The quickest of a few fits."""
    clock = Clock(inner=make_solver(solver, tol=TOL, max_time=limit, random_state=0))
    estimator = drawn.make(solver=clock, **parameters)
    passes = np.inf
    for _ in range(REPEATS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = estimator.fit(drawn.X, drawn.y).result_
        if not result.converged:
            return Taken(np.inf, np.inf)
        passes = result.n_passes
        if clock.seconds[-1] > LEAST_SECONDS:
            break
    return Taken(min(clock.seconds), passes)


def _shares(found: list[dict[str, Taken]], prefix: str) -> dict[str, float]:
    """What is reported, in percent."""
    ratios = np.array([one["auto"].seconds / min(t.seconds for t in one.values()) for one in found])
    ratios = np.where(np.isnan(ratios), np.inf, ratios)  # none converged
    passes = np.array([one["auto"].passes for one in found])
    return {
        f"{prefix}within_2": 100.0 * float(np.mean(ratios <= 2.0)),
        f"{prefix}within_5": 100.0 * float(np.mean(ratios <= 5.0)),
        f"{prefix}few_passes": 100.0 * float(np.mean(passes <= MANY_PASSES)),
        f"{prefix}worst": float(ratios.max()),
    }
