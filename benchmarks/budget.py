"""What training adds to the data, next to ``cache_mb``, for every solver that has it.

Each solver and budget has a process of its own (``python -m benchmarks.budget SOLVER MB N``): the
most anonymous memory while `solve` runs, less that before. Beside the budget, or what warnings say
is used in its place, there are vectors of all weights, and a few numbers for each example.
"""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from maxmargin.datasets import make_sentences
from maxmargin.features import WindowFeatures
from maxmargin.formats import TokenColumns
from maxmargin.problems.chain.problem import ChainProblem
from maxmargin.solvers import make_solver

from .case import FORMULATION, Case, Contestant, Options, Outcome, Target
from .resident import Peak

REPOSITORY = Path(__file__).resolve().parents[1]
SOLVERS = ("auto", "fasole", "sda", "bcfw", "one_slack", "n_slack", "sgd")
BUDGETS = (8.0, 64.0)
N_SENTENCES, FEW = 5_000, 200
TEMPLATES = ["w[0]", "w[-1]", "w[1]", "suffix3(w[0])"]
MOST_PASSES = 8.0
PER_EXAMPLE, PER_CANDIDATE = 400, 64  # bytes


def problem(n: int) -> ChainProblem:
    """Sentences, in memory."""
    parts = list(make_sentences(n))
    words, tags = ([x for part in parts for x in part.columns[j]] for j in (0, 1))
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    packed = WindowFeatures(TEMPLATES, None, 2).fit_transform(TokenColumns([words], offsets))
    _, codes = np.unique(np.array(tags), return_inverse=True)
    return ChainProblem(packed.tokens, packed.offsets, codes.astype(np.int32))


class Warnings(logging.Handler):
    """Within it, warnings that a budget is too small are noted, and what they say is used."""

    def __enter__(self) -> Warnings:
        self._used: dict[str, float] = {}
        logging.getLogger("maxmargin").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("maxmargin").removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Note what is used; of what is warned of twice, the last."""
        said = re.search(r"using (\d+) MB", record.getMessage())
        if said is not None:
            self._used[str(record.msg)] = float(said.group(1))

    @property
    def used_mb(self) -> float:
        """All that is used."""
        return sum(self._used.values())


def measure(name: str, cache_mb: float, n: int) -> dict[str, float]:
    """Train for some passes."""
    data = problem(n)
    few = data.subset(np.arange(100))
    make_solver(name, max_passes=6.0).solve(few, FORMULATION, 1.0)  # compiles
    solver = make_solver(name, tol=1e-3, max_passes=MOST_PASSES, cache_mb=cache_mb)
    with Warnings() as warnings, Peak() as peak:
        result = solver.solve(data, FORMULATION, 1.0)
    per_example = PER_EXAMPLE + PER_CANDIDATE * getattr(solver, "cache_size", 0)
    weights, examples = data.n_features * 8 / 2**20, per_example * n / 2**20
    added, budget = peak.most - peak.before, max(cache_mb, warnings.used_mb)
    return {
        "added_mb": added,
        "budget_mb": budget,
        "weights_mb": weights,
        "vectors": max(added - budget - examples, 0.0) / weights,  # none where it is not filled
        "gap": 100.0 * float(result.relative_gap or 0.0),
    }


def cases(options: Options) -> Iterator[Case]:
    """Every solver with every budget."""
    n = options.size(FEW, N_SENTENCES) or N_SENTENCES
    for name in options.of_ours(SOLVERS):
        for cache_mb in BUDGETS:
            yield _case(name, cache_mb, n)


def _case(name: str, cache_mb: float, n: int) -> Case:
    """One solver with one budget."""

    def run() -> Outcome:
        command = [sys.executable, "-m", f"{__package__}.budget", name, str(cache_mb), str(n)]
        done = subprocess.run(command, cwd=REPOSITORY, check=True, stdout=subprocess.PIPE)
        return Outcome(json.loads(done.stdout))

    targets = [
        Target("memory added", name, "added_mb", unit="MB"),
        Target("budget, or what a warning says", name, "budget_mb", unit="MB"),
        Target("one vector of weights", name, "weights_mb", unit="MB"),
        Target("vectors beyond", name, "vectors", at_most=8.0),
        Target("gap reached", name, "gap", unit="%"),
    ]
    title = f"budget: {name}, cache_mb = {cache_mb:g}"
    return Case(title, [Contestant(name, run, once=True)], targets)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))))
