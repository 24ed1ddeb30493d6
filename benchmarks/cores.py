"""Two cores against one, by the wall: certificates, one-slack passes, predictions, training.

The figures need a machine with nothing else to do. On a busy one the CPU seconds still tell what
threads cost beyond the work itself.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import maxmargin as mm
from maxmargin.core.problem import Problem
from maxmargin.engine.cuts.pool import make_pool
from maxmargin.engine.oracle import Oracle
from maxmargin.engine.parallel.blas_threads import single_blas_thread
from maxmargin.problems.classes.multiclass import MulticlassProblem
from maxmargin.solvers import make_solver

from .case import FORMULATION, Case, Contestant, Options, Outcome, Target
from .data import chain_problem
from .datasets import conll2000, dependencies, mnist, ocr_letters, ptb
from .predicting import EPSILON, of_vectors
from .structures import STRUCTURES

PASSES = 10  # in one timed run: single ones are over too soon
CACHE = 2**30
MUST, MUST_TRAIN = 1.8, 1.5
SLOWEST = 0.95  # where two threads are of little use they must not do harm, either


def cases(options: Options) -> Iterator[Case]:
    """Letters and chunks, with features built; then trees, and every other structure."""
    words = ocr_letters.load()
    letters = chain_problem(words.pixels, words.offsets, words.letters, 26, options.size(60))
    chunks = conll2000.Chunking(options.quick).problem(None)
    for name, problem in (("OCR letters", letters), ("CoNLL-2000", chunks)):
        yield _compared(f"{name}, certificates", _certificates(problem), MUST)
        yield _compared(f"{name}, one-slack passes", _one_slack(problem), MUST)
        for solver in ("one_slack", "auto"):
            must = MUST_TRAIN if solver == "auto" else None
            yield _compared(f"{name}, training by {solver}", _training(problem, solver), must)
    X, y = mnist.load(options.size(300))
    digits = MulticlassProblem(X, y, 10, fit_intercept=True)
    for C in (0.01, 0.1, 1.0):
        run = _training(digits, "auto", C, 0.01)
        yield _compared(f"MNIST C = {C:g}, training by auto", run, MUST_TRAIN)
    limit = conll2000.limit_of(options.quick)
    tagger = conll2000.fit_tagger(limit, EPSILON)
    packed = tagger.features_.transform(conll2000.read("test", limit).select([0, 1]))
    vectors = of_vectors(tagger)
    yield _compared("CoNLL-2000, prediction", _prediction(vectors, packed), MUST)
    columns = conll2000.read("test", limit).select([0, 1])
    yield _compared("CoNLL-2000, prediction from words", _prediction(tagger, columns))
    yield _compared("CoNLL-2000, margins", _prediction(vectors, packed, 1, "predict_margins"))
    yield _compared("CoNLL-2000, five best", _prediction(vectors, packed, 1, "predict_k", k=5))
    yield _compared("matchings in Python, one-slack", _own_problem(20 if options.quick else 400))
    trees = ptb.load(25)[: options.size(60)]
    parser = mm.GrammarParser(max_passes=1, tol=None, random_state=0, **ptb.GRAMMAR).fit(trees)
    sentences = [tree.words() if parser.terminals == "words" else tree for tree in trees]
    yield _compared("Penn sample, prediction", _prediction(parser, sentences, 1), MUST)
    yield _compared("Penn sample, training by auto", _fitting(*_grammar(options)), MUST_TRAIN)
    yield _compared("EWT, training by auto", _fitting(*_dependencies(options)), MUST_TRAIN)
    for labeled in (False, True):
        bank = dependencies.read_ewt(labeled).first(options.size(60, 3000))
        tree_parser = mm.DependencyParser(
            solver="perceptron", max_passes=1, tol=None, labeled=labeled, random_state=0
        ).fit(bank.X, bank.Y)
        name = "EWT with labels, prediction" if labeled else "EWT, prediction"
        yield _compared(name, _prediction(tree_parser, bank.X_test, 1), MUST)
    for name, make in STRUCTURES.items():
        structure = make().first(options.size(60))
        model = structure.estimator.set_params(tol=0.05, random_state=0)
        train = structure.train
        yield _compared(f"{name}, training by auto", _fitting(model, train), SLOWEST)
        model.fit(*train)
        yield _compared(f"{name}, prediction", _prediction(model, structure.X, 1), SLOWEST)


def _compared(name: str, run: Callable[[int], Any], must: float | None = None) -> Case:
    """The same work by one thread and by two."""

    def contestant(n_jobs: int) -> Contestant:
        def timed_run() -> Outcome:
            run(n_jobs)
            return Outcome()

        def prepare() -> None:
            run(n_jobs)
            gc.collect()
            gc.freeze()  # what is there already is not looked through again, now and then

        return Contestant(f"n_jobs={n_jobs}", timed_run, prepare)

    one, two = "n_jobs=1", "n_jobs=2"
    return Case(
        name,
        [contestant(1), contestant(2)],
        [
            Target("one core", one, "wall", unit="s"),
            Target("two cores", two, "wall", unit="s"),
            Target("times as fast", one, "wall", at_least=must, relative_to=(two, "wall")),
            Target("CPU time of two, of that of one", two, "cpu", relative_to=(one, "cpu")),
        ],
    )


def _certificates(problem: Problem) -> Callable[[int], Any]:
    """Passes of true oracle calls that measure all slacks."""
    w = 0.01 * np.random.default_rng(0).normal(size=problem.n_features)

    def run(n_jobs: int) -> None:
        oracle = Oracle(problem, FORMULATION)
        with single_blas_thread(), oracle.in_threads(n_jobs):
            for _ in range(PASSES):
                oracle.violations(w)

    return run


def _one_slack(problem: Problem) -> Callable[[int], Any]:
    """Passes whose candidates are compared with those that are kept, and known already."""
    pools = {n_jobs: make_pool(Oracle(problem, FORMULATION), 10, CACHE) for n_jobs in (1, 2)}

    def run(n_jobs: int) -> None:
        pool = pools[n_jobs]
        with single_blas_thread(), pool.oracle.in_threads(n_jobs):
            for _ in range(PASSES):
                pool.call(np.zeros(pool.n_weights), lambda: None)

    return run


def _training(
    problem: Problem, name: str, C: float = 0.1, tol: float = 0.05
) -> Callable[[int], Any]:
    """To a certified gap."""

    def run(n_jobs: int) -> None:
        solver = make_solver(name, tol=tol, random_state=0, n_jobs=n_jobs)
        solver.solve(problem, FORMULATION, C)

    return run


def _grammar(options: Options) -> tuple[Any, list[Any]]:
    """Parse trees of at most 15 words."""
    trees = ptb.load(15)[: options.size(60)]
    return mm.GrammarParser(C=1.0, tol=0.02, random_state=0, **ptb.GRAMMAR), [trees]


def _dependencies(options: Options) -> tuple[Any, list[Any]]:
    """Dependency trees."""
    bank = dependencies.read_ewt().first(options.size(60))
    parser = mm.DependencyParser(solver="auto", C=0.01, tol=0.05, random_state=0)
    return parser, [bank.X, bank.Y]


def _fitting(estimator: Any, data: Sequence[Any]) -> Callable[[int], Any]:
    """A fit, with the features."""

    def run(n_jobs: int) -> None:
        estimator.set_params(n_jobs=n_jobs).fit(*data)

    return run


def _prediction(
    model: Any, X: Any, passes: int = PASSES, method: str = "predict", **options: Any
) -> Callable[[int], Any]:
    """Predictions, some times over."""

    def run(n_jobs: int) -> None:
        model.set_params(n_jobs=n_jobs)
        for _ in range(passes):
            getattr(model, method)(X, **options)

    return run


class Matchings(Problem):
    """Rows matched with columns, searched in plain Python, which holds the GIL."""

    rescalings = ("margin",)
    loss_unit = 1.0

    def joint_feature(self, x: Any, y: Any) -> Any:
        """Features of the pairs, added up."""
        return x[np.arange(len(y)), y].sum(axis=0)

    def loss(self, y: Any, y_hat: Any) -> float:
        """Rows with the wrong column."""
        return float(np.count_nonzero(y != y_hat))

    def most_violated(self, x: Any, y: Any, w: Any, rescaling: Any) -> Any:
        """By the best value of every set of columns for as many rows."""
        n = len(y)
        scores = (x @ w + (np.arange(n) != y[:, None])).tolist()
        best: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
        for taken in range(1, 1 << n):
            columns = [column for column in range(n) if taken >> column & 1]
            row = scores[len(columns) - 1]
            best[taken] = max(
                (value + row[column], (*others, column))
                for column in columns
                for value, others in [best[taken ^ 1 << column]]
            )
        return np.array(best[(1 << n) - 1][1])


def _own_problem(n: int, size: int = 9) -> Callable[[int], Any]:
    """One-slack training with an oracle in Python; processes are there after the first time."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(n, size, size, 4)), [rng.permutation(size) for _ in range(n)]
    for x, y in zip(X, Y, strict=True):
        x[np.arange(size), y] += 0.7
    problem = Matchings().bind(list(X), Y)

    def run(n_jobs: int) -> None:
        solver = make_solver("one_slack", tol=0.02, random_state=0, n_jobs=n_jobs)
        solver.solve(problem, FORMULATION, 0.05)

    return run
