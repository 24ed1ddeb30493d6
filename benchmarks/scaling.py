"""How `one_slack` scales with the number of examples and with epsilon, as pictures.

``python -m benchmarks.scaling [--quick] [--output FOLDER] [--only TEXT]`` runs it
on growing parts of CoNLL-2000 and MNIST at a fixed C of the paper's convention, and on one part of
each for falling epsilon (Joachims et al. 2009, Fig. 1, 3, 5 and 8); on chains also without a cache,
where it is the paper's algorithm. Set ``OMP_NUM_THREADS=1`` for times of one core. Written are
``scaling.json`` and ``scaling.png``. Iterations should not grow with the number of examples, time
should grow in proportion to it, and oracle calls with the cache should hardly depend on epsilon.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from maxmargin.core.formulation import C_from_paper
from maxmargin.problems.classes.multiclass import MulticlassProblem
from maxmargin.solvers import make_solver

from .case import FORMULATION, ProblemMaker
from .cli import RESULTS
from .datasets import conll2000, mnist
from .plot import COLOURS

WAYS: dict[str, dict[str, Any]] = {
    "no cache": {"cache_size": 0},
    "cache": {},
}


class Study(NamedTuple):
    """A data set, the sizes and precisions to run, and the ways to run them."""

    name: str
    problem: ProblemMaker
    paper_C: float
    sizes: list[int]
    epsilon: float
    epsilons: list[float]
    part: int  # examples used where epsilon changes
    ways: list[str]


def studies(quick: bool) -> Iterator[Study]:
    """Chains, and classes, for which there is no cache: all candidates are known."""
    chunks = conll2000.Chunking(quick)
    sizes = [25, 50, 100] if quick else [500, 1000, 2000, 4000, 8936]
    epsilons = [1.0, 0.5] if quick else [2.0, 1.0, 0.5, 0.25, 0.1]
    part = 50 if quick else 1000
    yield Study("CoNLL-2000", chunks.problem, 100, sizes, 0.25, epsilons, part, list(WAYS))
    X, y = mnist.load(300 if quick else None)
    yield Study(
        "MNIST",
        lambda limit: MulticlassProblem(X[:limit], y[:limit], 10),
        6000,
        [50, 100, 300] if quick else [2000, 6000, 20_000, 60_000],
        0.01,
        [0.1, 0.03] if quick else [0.1, 0.03, 0.01, 0.003],
        100 if quick else 6000,
        ["cache"],
    )


def measure(study: Study, n: int, epsilon: float, way: str) -> dict[str, Any]:
    """One run."""
    problem = study.problem(n)
    solver = make_solver("one_slack", tol=None, epsilon=epsilon, **WAYS[way])
    started = time.process_time()
    result = solver.solve(problem, FORMULATION, C_from_paper(study.paper_C, n, "joachims"))
    found = {
        "data": study.name,
        "way": way,
        "examples": n,
        "epsilon": epsilon,
        "cpu": time.process_time() - started,
        "iterations": len(result.history),
        "oracle_calls": result.n_oracle_calls,
        "planes": result.n_planes,
        "primal": result.primal,
        "gap": result.gap,
        "converged": result.converged,
    }
    print(json.dumps(found), flush=True)
    return found


def run(study: Study) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """All runs of a study: by the number of examples, and by epsilon."""
    for way in study.ways:  # compiles or loads the kernels
        measure(study, study.sizes[0], study.epsilons[0], way)
    by_size = [measure(study, n, study.epsilon, way) for way in study.ways for n in study.sizes]
    by_epsilon = [
        measure(study, study.part, epsilon, way) for way in study.ways for epsilon in study.epsilons
    ]
    return by_size, by_epsilon


def draw(found: dict[str, Any], path: Path) -> None:
    """A row for each data set: time and iterations by size; iterations and calls by epsilon."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    figure = Figure(figsize=(15, 3.4 * len(found)), dpi=80, layout="constrained")
    grid = figure.subplots(len(found), 4, squeeze=False)
    for row, (name, (by_size, by_epsilon)) in zip(grid, found.items(), strict=True):
        panels = (
            (row[0], by_size, "examples", "cpu", "CPU seconds"),
            (row[1], by_size, "examples", "iterations", "iterations"),
            (row[2], by_epsilon, "epsilon", "iterations", "iterations"),
            (row[3], by_epsilon, "epsilon", "oracle_calls", "oracle calls"),
        )
        for axes, runs, x, y, label in panels:
            for colour, way in zip(COLOURS, dict.fromkeys(r["way"] for r in runs), strict=False):
                points = [(r[x], r[y]) for r in runs if r["way"] == way]
                axes.plot(*zip(*points, strict=True), "o-", color=colour, label=way)
            if y == "cpu":  # slope 1, through the last point
                n, seconds = points[-1]
                axes.plot(
                    [p[0] for p in points],
                    [seconds * p[0] / n for p in points],
                    ":",
                    color="#8a8f98",
                    label="proportional",
                )
                axes.set_yscale("log")
            else:
                axes.set_ylim(bottom=0)
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter(NullFormatter())
            if x == "epsilon":
                axes.invert_xaxis()
            axes.set_xlabel(x)
            axes.set_ylabel(label)
            axes.grid(True, color="#e6e8eb")
            axes.spines[["top", "right"]].set_visible(False)
        row[0].set_title(name, fontsize=10, loc="left")
        row[0].legend(frameon=False, fontsize=8)
    figure.savefig(path)


def main() -> None:
    """Run the studies and write the figures."""
    parser = argparse.ArgumentParser("python -m benchmarks.scaling")
    parser.add_argument("--quick", action="store_true", help="tiny slices: does everything work?")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for JSON and picture")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="data sets with this in the name"
    )
    chosen = parser.parse_args()
    chosen.output.mkdir(parents=True, exist_ok=True)
    found = {}
    for study in studies(chosen.quick):
        if chosen.only not in study.name:
            continue
        found[study.name] = run(study)  # written at once: the next study may take long
        (chosen.output / "scaling.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
        draw(found, chosen.output / "scaling.png")


if __name__ == "__main__":
    main()
