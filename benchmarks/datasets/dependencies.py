"""Dependency trees: UD English EWT, also with labels, and the Penn Treebank sample; gold tags."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.formats import open_text, read_conllu
from maxmargin.metrics import attachment_scores
from maxmargin.problems.dependency.features import TokenFields
from maxmargin.problems.dependency.problem import DependencyProblem
from maxmargin.solvers import SOLVERS
from maxmargin.utils.types import Floats

from ..case import Case, Contestant, Options, Outcome, Target
from ..data import data_path

LEAST_UAS = 87.7
MOST_TRAINING = 60.0  # seconds, for ten passes over EWT without labels
MOST_OUTSIDE = 0.5  # of the time of training, by what the passes of oracle calls take alone
MOST_SECONDS = 5.0  # for one pass of oracle calls over the training sentences of EWT
PASSES = 10
PASSES_LABELED = 5  # each takes several times as long
BATCH = 16
C_DUAL = 0.01
#: Formulation and solver of each contestant. The squared slacks are those of Chang & Yih (2013).
METHODS: dict[str, dict[str, Any]] = {
    "dcd": {"solver": "dcd", "slack": "l2", "sqrt_loss": False, "C": C_DUAL},
    "auto": {"solver": "auto", "C": C_DUAL},
    "perceptron": {"solver": "perceptron"},
    "mira": {"solver": "mira", "C": C_DUAL},
    "sgd": {"solver": "sgd", "C": C_DUAL},
}

Sentence = list[tuple[str, ...]]


class Treebank(NamedTuple):
    """Sentences and heads, or pairs (head, label), to learn from, and to be found."""

    X: Sequence[Sentence]
    Y: Sequence[list[Any]]
    X_test: Sequence[Sentence]
    Y_test: Sequence[list[Any]]

    def first(self, limit: int | None) -> Treebank:
        """The first so many sentences of both parts."""
        X, Y, X_test, Y_test = self
        return Treebank(X[:limit], Y[:limit], X_test[:limit], Y_test[:limit])


def read_ewt(labeled: bool = False) -> Treebank:
    """The official parts, with coarse and fine tags."""
    parts: list[Any] = []
    for name in ("train", "test"):
        bank = read_conllu(data_path(f"ud_english_ewt/en_ewt-ud-{name}.conllu.xz"))
        parts += [bank.tokens(), bank.labeled_heads() if labeled else bank.heads()]
    return Treebank(*parts)


def read_penn() -> Treebank:
    """Every fifth file is for testing."""
    X: dict[str, list[Sentence]] = {}
    Y: dict[str, list[list[int]]] = {}
    with open_text(data_path("ptb_sample/wsj_0001-0199.dep.xz")) as stream:
        for block in stream.read().strip().split("\n\n"):
            title, *lines = block.split("\n")
            fields = [line.split("\t") for line in lines]
            X.setdefault(title, []).append([(word, tag) for _, word, tag, _ in fields])
            Y.setdefault(title, []).append([int(head) for *_, head in fields])
    test = sorted(X)[::5]
    train = [title for title in X if title not in test]
    return Treebank(
        [tokens for title in train for tokens in X[title]],
        [heads for title in train for heads in Y[title]],
        [tokens for title in test for tokens in X[title]],
        [heads for title in test for heads in Y[title]],
    )


def cases(options: Options) -> Iterator[Case]:
    """One pass of oracle calls; what solvers reach in ten, on both treebanks; labels."""
    limit = options.size(60)
    ewt = read_ewt().first(limit)
    yield Case(
        "EWT, one pass of oracle calls",
        [_one_pass("oracle", ewt)],
        [Target("time of a pass", "oracle", "pass", "", "s", at_most=MOST_SECONDS)],
    )
    for name, bank, evaluated in (
        ("EWT", ewt, True),
        ("Penn sample", read_penn().first(limit), False),
    ):
        chosen = [method for method in options.of_ours(list(METHODS)) if method in SOLVERS]
        yield Case(
            f"{name}, {PASSES} passes",
            [_training(method, bank) for method in chosen],
            [target for method in chosen for target in _targets(method, evaluated)],
        )

    if "dcd" in options.of_ours(list(METHODS)):
        yield Case(
            f"EWT with labels, {PASSES_LABELED} passes",
            [_training("dcd", read_ewt(labeled=True).first(limit), labeled=True)],
            [Target("dcd: LAS", "dcd", "las", "", "%"), *_targets("dcd", False)],
        )


def _targets(method: str, evaluated: bool) -> list[Target]:
    """Accuracy, time and passes of a solver; and the share of time that it takes for itself."""
    evaluated = evaluated and method in ("dcd", "auto")
    least, most = (LEAST_UAS, MOST_TRAINING) if evaluated else (None, None)
    return [
        Target(f"{method}: UAS", method, "uas", "", "%", at_least=least),
        Target(f"{method}: training", method, "training", "", "s", at_most=most),
        Target(f"{method}: passes", method, "passes"),
        Target(
            f"{method}: share of time outside the oracle",
            method,
            "outside",
            at_most=MOST_OUTSIDE if evaluated else None,
        ),
    ]


def _training(method: str, bank: Treebank, labeled: bool = False) -> Contestant:
    """A parser trained for some passes at most; with a certificate's pass, if it needs one."""
    settings = METHODS.get(method, {"solver": method, "C": C_DUAL})

    def fit(part: Treebank, passes: int) -> mm.DependencyParser:
        parser = mm.DependencyParser(
            labeled=labeled, tol=1e-3, max_passes=passes, random_state=0, **settings
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return parser.fit(part.X, part.Y)

    def run() -> Outcome:
        started = time.process_time()
        passes = PASSES_LABELED if labeled else PASSES
        parser = fit(bank, passes - 1)  # the last pass is that of the certificate
        seconds = time.process_time() - started
        found = attachment_scores(bank.Y_test, parser.predict(bank.X_test))
        oracle = parser.result_.n_passes * _seconds_of_a_pass(parser.result_.w, bank, labeled)
        measures = {
            "training": seconds,
            "passes": parser.result_.n_passes,
            "uas": 100.0 * found.uas,
            "outside": 1.0 - oracle / seconds,
        }
        if found.las is not None:
            measures["las"] = 100.0 * found.las
        return Outcome(measures)

    def warm_up() -> None:
        fit(bank.first(40), 5).predict(bank.X_test[:2])

    return Contestant(method, run, warm_up, once=labeled)


def _one_pass(label: str, bank: Treebank) -> Contestant:
    """All oracle calls at some weights."""
    return Contestant(
        label, lambda: Outcome({"pass": _seconds_of_a_pass(None, bank, False)}), lambda: None
    )


def _seconds_of_a_pass(w: Floats | None, bank: Treebank, labeled: bool) -> float:
    """CPU time of all oracle calls at these weights, or at random ones, in small batches."""
    arcs = [arc for tree in bank.Y for arc in tree]
    heads, labels = arcs, None
    if labeled:
        heads = [head for head, _ in arcs]
        labels = np.unique([label for _, label in arcs], return_inverse=True)[1]
    problem = DependencyProblem(TokenFields.of(bank.X), heads, labels)
    if w is None:
        w = np.random.default_rng(0).normal(0.0, 0.01, problem.n_features)
    started = time.process_time()
    for first in range(0, problem.n_examples, BATCH):
        problem.oracle(np.arange(first, min(first + BATCH, problem.n_examples)), w)
    return time.process_time() - started
