"""How an iteration with a kernel of low rank grows with examples and with basis vectors.

``python -m benchmarks.kernel_scaling [--quick] [--output FOLDER]`` trains on MNIST digits with
radial basis functions: the first columns of a pivoted factor are the factor of a lower rank, so
that one factor serves all ranks. Measured are the CPU seconds of an iteration of `one_slack`, those
of the search for the most violated classes apart: what is left should grow in proportion to the
number of examples n and to the rank k (Joachims et al. 2009, Section 3.3). Set
``OMP_NUM_THREADS=1`` for times of one core. Written are ``kernel_scaling.json`` and
``kernel_scaling.png``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from maxmargin.features import KernelMap
from maxmargin.problems.classes import multiclass
from maxmargin.problems.classes.class_pool import ClassPool
from maxmargin.problems.classes.multiclass import MulticlassProblem
from maxmargin.solvers import make_solver

from .case import FORMULATION, Floats
from .cli import RESULTS
from .datasets import mnist
from .plot import COLOURS

GAMMA, C = 0.02, 0.1
ITERATIONS, REPEATS = 12, 3


class TimedPool(ClassPool):
    """Notes how long all searches took together, and how many there were."""

    seconds, searches = 0.0, 0

    def values(self, w: Floats) -> Floats:
        """Values of all classes of all examples, of which the oracle takes the largest."""
        started = time.process_time()
        answers = super().values(w)
        TimedPool.seconds += time.process_time() - started
        TimedPool.searches += 1
        return answers


def measure(Z: Any, y: Any, n: int, k: int) -> dict[str, float]:
    """Seconds of one iteration and of the oracle in it; the least of some repeats."""
    problem = MulticlassProblem(np.ascontiguousarray(Z[:n, :k]), y[:n], 10)
    found = []
    for _ in range(REPEATS):
        TimedPool.seconds, TimedPool.searches = 0.0, 0
        solver = make_solver("one_slack", tol=1e-9, max_passes=ITERATIONS)
        started = time.process_time()
        with patch.object(multiclass, "ClassPool", TimedPool):
            solver.solve(problem, FORMULATION, C)
        whole = time.process_time() - started
        found.append((whole / TimedPool.searches, TimedPool.seconds / TimedPool.searches))
    iteration, oracle = (min(times) for times in zip(*found, strict=True))
    return {"n": n, "k": k, "iteration": iteration, "oracle": oracle}


def slope(x: Sequence[float], seconds: Sequence[float]) -> float:
    """Of the line through the logarithms: 1 where one is in proportion to the other."""
    return float(np.polyfit(np.log(x), np.log(seconds), 1)[0])


def draw(found: dict[str, list[dict[str, float]]], path: Path) -> None:
    """Time of an iteration by examples, and by rank."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), dpi=80, layout="constrained")
    for axes, (x, runs) in zip(figure.subplots(1, 2), found.items(), strict=True):
        values = [run[x] for run in runs]
        rest = [outside(run) for run in runs]
        label = f"outside the oracle, slope {slope(values, rest):.2f}"
        axes.plot(values, rest, "o-", color=COLOURS[0], label=label)
        axes.plot(values, [run["oracle"] for run in runs], "o-", color=COLOURS[1], label="oracle")
        line = [rest[-1] * value / values[-1] for value in values]
        axes.plot(values, line, ":", color=COLOURS[-1], label="proportional")
        axes.set(xscale="log", yscale="log", xlabel=x, ylabel="CPU seconds of an iteration")
        axes.grid(True, color="#e6e8eb")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
        other = "k" if x == "n" else "n"
        axes.set_title(f"{other} = {runs[0][other]:g}", fontsize=10, loc="left")
    figure.savefig(path)


def outside(run: dict[str, float]) -> float:
    """Seconds of an iteration outside the oracle."""
    return run["iteration"] - run["oracle"]


def main() -> None:
    """Measure, print the slopes, draw."""
    parser = argparse.ArgumentParser("python -m benchmarks.kernel_scaling")
    parser.add_argument("--quick", action="store_true", help="tiny slices: does everything work?")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for JSON and picture")
    chosen = parser.parse_args()
    sizes = [100, 200, 400] if chosen.quick else [1000, 2000, 4000, 8000, 16_000]
    ranks = [10, 20, 40] if chosen.quick else [64, 128, 256, 512, 1024]
    X, y = mnist.load(sizes[-1])
    Z = KernelMap(gamma=GAMMA, n_components=ranks[-1]).fit_transform(X)
    measure(Z, y, sizes[0], ranks[0])  # compiles or loads the kernels
    found = {
        "n": [measure(Z, y, n, ranks[-2]) for n in sizes],
        "k": [measure(Z, y, sizes[-2], k) for k in ranks],
    }
    for x, runs in found.items():
        times = ", ".join(f"{run[x]:g}: {outside(run):.3g} + {run['oracle']:.3g}" for run in runs)
        print(f"by {x} (outside + oracle, s): {times}")
        print(f"  slope {slope([run[x] for run in runs], [outside(run) for run in runs]):.2f}")
    chosen.output.mkdir(parents=True, exist_ok=True)
    (chosen.output / "kernel_scaling.json").write_text(json.dumps(found, indent=1), "utf-8")
    draw(found, chosen.output / "kernel_scaling.png")


if __name__ == "__main__":
    main()
