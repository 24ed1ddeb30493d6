"""Small problems of every structure, stiff ones among them: is `auto` near the best of all solvers?

Random problems of 1 to 200 examples, C from 0.01 to 100, linear and squared slacks, all rescalings,
losses and their square roots, to a relative gap of 1e-4. Every certified solver runs on each of
them, until it takes longer than `auto` did. Reported are the shares of problems on which `auto`
took at most 2 and 5 times the CPU time of the fastest, and at most 50 passes; the worst problems
are logged by structure and number.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from maxmargin.core.formulation import Formulation
from maxmargin.core.problem import Problem
from maxmargin.core.result import Result
from maxmargin.jit.compiling import compile_seconds
from maxmargin.solvers import SOLVERS, make_solver
from maxmargin.solvers.base import Solver

from .case import Case, Contestant, Options, Outcome, Target
from .random_problems import STRUCTURES, Drawn

logger = logging.getLogger(__name__)

TOL = 1e-4
LARGEST = 200  # examples
MANY_PASSES = 50
MOST_SECONDS = 20.0
LEAST_SECONDS = 0.1  # that others may take, by a clock that also counts what runs beside them
REPEATS = 2  # of fits, the quickest counts
PROBLEMS = 14  # of each structure
WORST = 5  # problems that are logged


class Taken(NamedTuple):
    """What a fit took; seconds are infinite where it did not converge."""

    seconds: float
    passes: float


class Comparison(NamedTuple):
    """What every solver took on one problem, and which one that is."""

    problem: str
    taken: dict[str, Taken]

    @property
    def best(self) -> str:
        """The quickest solver."""
        return min(self.taken, key=lambda name: self.taken[name].seconds)

    @property
    def ratio(self) -> float:
        """Time of `auto` beside that of the quickest; infinite where none converged."""
        ratio = self.taken["auto"].seconds / self.taken[self.best].seconds
        return ratio if np.isfinite(ratio) else np.inf

    def __str__(self) -> str:
        fits = [f"{name} {self.taken[name].seconds:.4f} s" for name in ("auto", self.best)]
        passes = self.taken["auto"].passes
        return f"{self.problem}: {', '.join(fits)}; ratio {self.ratio:.2f}, {passes:.1f} passes"


@dataclass(frozen=True)
class Clock(Solver):
    """Another solver, and the CPU time of its runs: without what estimators do around them."""

    inner: Solver | None = None
    seconds: list[float] = field(default_factory=list)

    name: ClassVar[str] = "clock"
    slacks: ClassVar[tuple[str, ...]] = ("l1", "l2")

    def solve(self, problem: Problem, formulation: Formulation, C: float, **rest: Any) -> Result:
        """Train; runs in which kernels were compiled or loaded do not count."""
        assert self.inner is not None
        compiled, started = compile_seconds(), time.process_time()
        result = self.inner.solve(problem, formulation, C, **rest)
        if compile_seconds() == compiled:
            self.seconds.append(time.process_time() - started)
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
    found: dict[int, list[Comparison]] = {}  # by structure
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
    ] + [
        Target(prefix + "worst ratio of times", "auto", prefix + "worst"),
        Target(prefix + "most passes", "auto", prefix + "passes"),
    ]


def _contestant(
    place: int, number: int, solvers: list[str], found: dict[int, list[Comparison]]
) -> Contestant:
    """All solvers on problems of one structure; ``found`` is what there is of all."""

    def run() -> Outcome:
        found[place] = [compare(place, k, solvers) for k in range(number)]
        everything = [comparison for some in found.values() for comparison in some]
        _log_worst(everything if place == len(STRUCTURES) - 1 else found[place])
        return Outcome(_shares(found[place], "") | _shares(everything, "all: "))

    return Contestant("auto", run, once=True)


def draw(place: int, number: int) -> tuple[Drawn, dict[str, Any], str]:
    """A problem of a structure by its number: data, parameters of the estimator, a description."""
    rng = np.random.default_rng([place, number])
    n = round(LARGEST ** rng.random())
    drawn = STRUCTURES[place](rng, n)
    parameters = {
        "C": float(10.0 ** rng.uniform(-2, 2)),
        "slack": str(rng.choice(["l1", "l2"])),
        "rescaling": str(rng.choice(["margin", "slack", "none"])),
        "sqrt_loss": bool(rng.random() < 0.5) and drawn.has_sqrt_loss,
    }
    told = ", ".join(
        f"{value:.3g}" if name == "C" else str(value) for name, value in parameters.items()
    )
    name = STRUCTURES[place].__name__.replace("_", " ")
    return drawn, parameters, f"{name} {number} (n {len(drawn.y)}, {told})"


def compare(place: int, number: int, solvers: list[str]) -> Comparison:
    """Times and passes of all solvers on one problem."""
    drawn, parameters, told = draw(place, number)
    taken = {"auto": fit(drawn, "auto", parameters, MOST_SECONDS)}
    limit = min(2.0 * max(taken["auto"].seconds, LEAST_SECONDS), MOST_SECONDS)
    for name in solvers:
        if name != "auto" and parameters["slack"] in SOLVERS[name].slacks:
            taken[name] = fit(drawn, name, parameters, limit)
    return Comparison(told, taken)


def fit(drawn: Drawn, solver: str | Solver, parameters: dict[str, Any], limit: float) -> Taken:
    """The quickest of a few fits, each no longer than the limit."""
    clock = Clock(inner=make_solver(solver, tol=TOL, max_time=limit, random_state=0))
    estimator = drawn.make(solver=clock, **parameters)
    passes = np.inf
    while len(clock.seconds) < REPEATS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = estimator.fit(drawn.X, drawn.y).result_
        if not result.converged:
            return Taken(np.inf, np.inf)
        passes = result.n_passes
    return Taken(min(clock.seconds), passes)


def _log_worst(found: list[Comparison]) -> None:
    """The problems on which `auto` does worst."""
    for comparison in sorted(found, key=lambda one: -one.ratio)[:WORST]:
        logger.info("%s", comparison)


def _shares(found: list[Comparison], prefix: str) -> dict[str, float]:
    """What is reported, in percent."""
    ratios = np.array([comparison.ratio for comparison in found])
    passes = np.array([comparison.taken["auto"].passes for comparison in found])
    return {
        f"{prefix}within_2": 100.0 * float(np.mean(ratios <= 2.0)),
        f"{prefix}within_5": 100.0 * float(np.mean(ratios <= 5.0)),
        f"{prefix}few_passes": 100.0 * float(np.mean(passes <= MANY_PASSES)),
        f"{prefix}worst": float(ratios.max()),
        f"{prefix}passes": float(passes.max()),
    }
