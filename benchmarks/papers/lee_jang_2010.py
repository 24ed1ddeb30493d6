"""Lee & Jang 2010: fixed-threshold SMO for one slack, beside n slacks, SVM-struct's QP and Pegasos."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from maxmargin.core.formulation import C_from_paper
from maxmargin.problems.classes.multiclass import MulticlassProblem
from maxmargin.solvers import Auto, NSlack, OneSlack, Pegasos, Solver

from ..case import Floats, ProblemMaker
from ..datasets import classes, conll2000, mnist
from ..objective import chunk_f1
from ..objective import primal as primal_of
from .exhibit import Claim, Exhibit, Exhibits, Options, Panel, Table
from .running import Run, train

TITLE = "Lee & Jang 2010: fixed-threshold SMO"
REFERENCE = (
    "C. Lee, M.-G. Jang. *A Modified Fixed-Threshold SMO for 1-Slack Structural SVMs.* ETRI Journal 32 (1), 2010. SVM-struct stands for "
    'its algorithm with a generic QP (`qp="smo"`: maximal violating pairs and a KKT threshold, as in SVM-light) in this package, so '
    "that the QP is all that differs."
)
DIFFERS = (
    "MNIST and CoNLL-2000 are the paper's data, with the chunking templates of this package. 20 newsgroups by date (tf-idf of logarithms, unit "
    "length) stands for NEWS20, and the Korean spacing data cannot be had. Losses of classes are 0 or 1, and epsilon is in these units. A run "
    "stops after the seconds given below, which is marked. Times are CPU seconds of one core, without compilation."
)
MOST_SECONDS = 40.0
#: Training seconds and accuracy or F1 of Table 2.
PRINTED = {
    "MNIST": {
        "1-slack FSMO": (152, 92.47),
        "n-slack FSMO": (286, 92.50),
        "Pegasos-struct": (34, 91.88),
        "1-slack SVM-struct": (321, 92.39),
        "n-slack SVM-struct": (5797, 92.37),
    },
    "NEWS20": {
        "1-slack FSMO": (41, 84.62),
        "n-slack FSMO": (81, 84.52),
        "Pegasos-struct": (11, 84.40),
        "1-slack SVM-struct": (69, 84.55),
        "n-slack SVM-struct": (3084, 84.57),
    },
    "CoNLL-2000": {
        "1-slack FSMO": (679, 93.75),
        "n-slack FSMO": (1449, 93.80),
        "Pegasos-struct": (67, 93.69),
        "1-slack SVM-struct": (1189, 93.77),
        "n-slack SVM-struct": (30184, 93.77),
    },
}
CERTIFIED = ("1-slack FSMO", "n-slack FSMO", "1-slack SVM-struct", "n-slack SVM-struct")
PAPER_C = {"MNIST": 1000.0, "NEWS20": 100.0, "CoNLL-2000": 1000.0}
EPSILON = {"MNIST": 0.01, "NEWS20": 0.01, "CoNLL-2000": 0.1}
SIZES = {
    "MNIST": [1000, 4000, 16_000, 60_000],
    "NEWS20": [700, 2800, 11_314],
    "CoNLL-2000": [560, 2240, 8936],
}
FIGURES = {"MNIST": (2, 6), "NEWS20": (3, 7), "CoNLL-2000": (4, 8)}  # of times, of objectives


class Data(NamedTuple):
    """A benchmark: ``score`` is accuracy or F1 on the test part, in percent."""

    problem: ProblemMaker
    sizes: list[int]
    C: Callable[[int], float]  # of so many examples
    score: Callable[[Floats], float]


@cache
def data(name: str, quick: bool) -> Data:
    """By the paper's name of it."""
    if name == "CoNLL-2000":
        chunks = conll2000.Chunking(quick)
        problem: ProblemMaker = chunks.problem
        score = lambda w: chunk_f1(chunks.truth, chunks.decode(w))  # noqa: E731
    else:
        X, y, X_test, y_test = _images() if name == "MNIST" else classes.newsgroups_parts()
        n_classes = int(y.max()) + 1
        problem = lambda n: MulticlassProblem(X[:n], y[:n], n_classes)  # noqa: E731

        def score(w: Floats) -> float:
            found = np.argmax(X_test @ w.reshape(-1, n_classes), axis=1)
            return 100.0 * float(np.mean(found == y_test))

    sizes = [40, 80] if quick else SIZES[name]
    return Data(problem, sizes, lambda n: C_from_paper(PAPER_C[name], n, "joachims"), score)


def _images() -> tuple[Floats, np.ndarray, Floats, np.ndarray]:
    return (*mnist.load(None), *mnist.load(None, "test"))


def solvers(epsilon: float) -> dict[str, Solver]:
    """The rows of Table 2, and ours."""
    limits = {"violation": epsilon}
    return {
        "1-slack FSMO": OneSlack.published(qp="fsmo_paper", inactive_limit=50, **limits),
        "n-slack FSMO": NSlack.published(qp="fsmo", batch=100, inactive_limit=50, **limits),
        "Pegasos-struct": Pegasos.published(),
        "1-slack SVM-struct": OneSlack.published(inactive_limit=50, **limits),
        "n-slack SVM-struct": NSlack.published(batch=100, inactive_limit=50, **limits),
        "auto": Auto(tol=None, epsilon=epsilon),
    }


@cache
def _runs(name: str, n: int | None, options: Options) -> dict[str, Run]:
    """All solvers on the first n examples."""
    benchmark = data(name, options.quick)
    n = n or benchmark.sizes[-1]
    most = 2.0 if options.quick else MOST_SECONDS

    def problem(limit: int | None) -> object:
        return benchmark.problem(min(limit or n, n))

    return {
        label: train(label, solver, problem, benchmark.C(n), repeat=options.repeat, most=most)  # type: ignore[arg-type]
        for label, solver in solvers(EPSILON[name]).items()
    }


def table_2(options: Options) -> Exhibit:
    """Training time and test score of all algorithms."""
    tables, claims = [], []
    for name, printed in PRINTED.items():
        benchmark = data(name, options.quick)
        runs = _runs(name, None, options)
        rows: list[list[str | float | None]] = []
        problem = benchmark.problem(benchmark.sizes[-1])
        C = benchmark.C(benchmark.sizes[-1])
        for label, run in runs.items():
            seconds, score = printed.get(label, (None, None))
            objective = primal_of(problem, run.result.w, C)
            rows.append(
                [
                    label + run.stopped,
                    run.cpu,
                    run.result.step_seconds,
                    seconds,
                    f"{benchmark.score(run.result.w):.2f}",
                    score,
                    f"{objective:.6g}",
                    run.iterations,
                ]
            )
        headers = [
            "algorithm",
            "s, here",
            "QP or steps, wall-clock s",
            "s, paper",
            "score, here",
            "score, paper",
            "objective",
            "iterations",
        ]
        tables.append(Table(headers, rows, name))
        fsmo, smo = runs["1-slack FSMO"], runs["1-slack SVM-struct"]
        claims += [
            Claim(
                f"{name}: 1-slack FSMO is 1.7 to 2.6 times as fast as the generic QP",
                None if fsmo.stopped or smo.stopped else bool(smo.cpu >= 1.7 * fsmo.cpu),
                f"{smo.cpu / fsmo.cpu:.2f} times ({fsmo.cpu:.3g} s for {smo.cpu:.3g} s); the QP alone "
                f"{smo.result.step_seconds / max(fsmo.result.step_seconds, 1e-9):.2f} times",
            ),
            Claim(
                f"{name}: 1-slack FSMO is faster than n-slack FSMO",
                bool(fsmo.cpu < runs["n-slack FSMO"].cpu),
                f"{fsmo.cpu:.3g} s for {runs['n-slack FSMO'].cpu:.3g} s",
            ),
            Claim(
                f"{name}: (ours) `auto` is first by time, or within 10 % of first",
                bool(runs["auto"].cpu <= 1.1 * min(runs[label].cpu for label in CERTIFIED)),
                f"{runs['auto'].cpu:.3g} s; the best other "
                f"{min(runs[label].cpu for label in CERTIFIED):.3g} s (Pegasos-struct has no certificate)",
            ),
        ]
    return Exhibit(
        "training time and performance",
        f"Runs stop after {MOST_SECONDS:.0f} s.",
        tables,
        claims=claims,
    )


def table_1(options: Options) -> Exhibit:
    """Sizes of the data."""
    printed = {
        "MNIST": (60_000, 10, 780),
        "NEWS20": (15_935, 20, 62_061),
        "CoNLL-2000": (8936, 22, 387_875),
    }
    rows = []
    for name, paper in printed.items():
        benchmark = data(name, options.quick)
        problem = benchmark.problem(benchmark.sizes[-1])
        rows.append(
            [name, problem.n_examples, problem.n_features, *paper, PAPER_C[name], EPSILON[name]]
        )
    headers = [
        "data",
        "examples, here",
        "weights, here",
        "examples, paper",
        "classes, paper",
        "features, paper",
        "C",
        "epsilon",
    ]
    return Exhibit(
        "data sets",
        tables=[Table(headers, rows)],
        notes=["The paper counts the tokens of CoNLL-2000, 211,727."],
    )


def figures_of_times(options: Options) -> Exhibit:
    """Training time over the number of examples."""
    panels = []
    for name in PRINTED:
        curves: dict[str, list[tuple[float, float]]] = {}
        for n in data(name, options.quick).sizes:
            for label, run in _runs(name, n, options).items():
                if not run.stopped:
                    curves.setdefault(label, []).append((n, max(run.cpu, 1e-3)))
        panels.append(
            Panel(f"Figure {FIGURES[name][0]}: {name}", "examples", "CPU seconds", curves, "xy")
        )
    return Exhibit(
        "training times",
        f"Runs that {MOST_SECONDS:.0f} s did not suffice for are left out.",
        panels=panels,
    )


def figures_of_objectives(options: Options) -> Exhibit:
    """Primal and dual value over time."""
    panels = []
    for name in PRINTED:
        curves = {}
        for label, run in _runs(name, None, options).items():
            curves[label] = run.curve("cpu", "primal")
            curves[f"{label}, dual"] = run.curve("cpu", "dual")
        curves = {
            label: [(x, y) for x, y in points if x > 0 and y > 0]
            for label, points in curves.items()
        }
        panels.append(
            Panel(f"Figure {FIGURES[name][1]}: {name}", "CPU seconds", "objective", curves, "xy")
        )
    return Exhibit(
        "objective values",
        "Pegasos-struct has no dual value, and its primal value is not computed on the way.",
        panels=panels,
    )


EXHIBITS: Exhibits = {
    "table-1": table_1,
    "table-2": table_2,
    "figures-2-to-4": figures_of_times,
    "figures-6-to-8": figures_of_objectives,
}
