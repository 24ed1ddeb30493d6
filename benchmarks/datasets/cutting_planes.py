"""Cutting planes: `one_slack` next to SVM-HMM and SVM-multiclass at the same C and epsilon."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from maxmargin.core.formulation import C_from_paper
from maxmargin.problems.classes.multiclass import MulticlassProblem

from ..case import Case, Options, ProblemMaker, Target
from ..data import chain_problem
from ..solvers import ours
from . import conll2000, mnist, ocr_letters, usps

NAME = "one_slack"
FIFTH = 0.2  # of the peer's CPU time
MORE = 1.2  # times the peer's oracle calls and planes


def cases(options: Options) -> Iterator[Case]:
    """Times, oracle calls and planes of C programs, measured on one core of the same kind."""
    chunks = conll2000.Chunking(options.quick)
    yield _case(
        "CoNLL-2000 C_paper = 1000, epsilon = 0.1",
        chunks.problem,
        chunks.C,
        0.1,
        options,
        seconds=137,
        passes=250_208 / 8936,
        planes=146,
    )
    words = ocr_letters.without_fold(ocr_letters.load(), 0)
    if options.quick:
        words = ocr_letters.first(words, 60)
    letters = partial(
        chain_problem, words.pixels, words.offsets, words.letters, 26, fit_intercept=True
    )
    peers: dict[int, dict[str, Any]] = {
        1000: {"seconds": 29, "passes": 181_279 / 6251, "planes": 119},
        6251: {"seconds": 50},
    }
    for paper_C, figures in peers.items():
        C = C_from_paper(paper_C, len(words.folds), "joachims")
        name = f"OCR letters, folds 1-9, C_paper = {paper_C}, epsilon = 0.1"
        yield _case(name, letters, C, 0.1, options, **figures)
    X, y = usps.load(options.size(quick=300))
    yield _case(  # the peer's loss is 100 times ours: C is 7291 and epsilon 0.1 there
        "USPS C = 0.01, epsilon = 0.001",
        lambda limit: MulticlassProblem(X[:limit], y[:limit], 10, fit_intercept=True),
        0.01,
        0.001,
        options,
        seconds=5,
        passes=212,
        planes=77,
    )
    images, digits = mnist.load(options.size(quick=300))
    yield _case(  # 600,000 and 1 there
        "MNIST C = 0.1, epsilon = 0.01",
        lambda limit: MulticlassProblem(images[:limit], digits[:limit], 10),
        0.1,
        0.01,
        options,
        seconds=66,
        passes=604,
        planes=145,
    )


def _case(
    name: str,
    problem: ProblemMaker,
    C: float,
    epsilon: float,
    options: Options,
    *,
    seconds: float,
    passes: float | None = None,
    planes: int | None = None,
) -> Case:
    """One setting, with `auto` beside it: both have to reach the same objective."""
    names = options.of_ours([NAME, "auto"])
    targets = [
        Target("time", NAME, "cpu", f"peer: {seconds} s", "s", at_most=FIFTH * seconds),
        Target("cached passes", NAME, "cached_passes"),
        Target("primal value", NAME, "primal"),
        Target("primal value of auto", "auto", "primal"),
    ]
    for what, value in (("passes", passes), ("planes", planes)):
        reference = f"peer: {value:.4g}" if value else ""
        most = MORE * value if value else None
        targets.append(Target(what, NAME, what, reference, at_most=most))
    return Case(
        f"cutting planes: {name}",
        [ours(solver, problem, C, epsilon=epsilon) for solver in names],
        targets,
        problem,
        C,
    )
