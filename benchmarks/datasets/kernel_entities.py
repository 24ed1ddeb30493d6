"""Spanish entities with a polynomial kernel: Tsochantaridis et al. 2005, Tables 2 and 3.

300 sentences (which ones is not said; here the first), five folds, degree 2, C = 1 and
epsilon = 0.01 as in the paper, all methods by the n-slack algorithm. Features are words and
spelling in a window of three, as Altun et al. (2003) describe them, which both papers refer to.
The kernel is exact: features of full rank, made once for each fold.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.core.formulation import C_from_paper
from maxmargin.features import KernelMap, WindowFeatures
from maxmargin.features.window.templates import word_shape

from .. import tagging
from ..case import Case, Contestant, Options, Outcome, Target
from ..hmm import HiddenMarkovModel

FOLDS = 5
TEMPLATES = [
    *(f"w[{k}]" for k in (-1, 0, 1)),
    *(f"shape(w[{k}])" for k in (-1, 0, 1)),
    *(f"{end}{length}(w[0])" for length in (1, 2, 3, 4) for end in ("prefix", "suffix")),
]
N_SLACK: dict[str, Any] = {"solver": "n_slack", "slack": "l2", "tol": None, "epsilon": 0.01}
METHODS: dict[str, dict[str, Any]] = {
    "SVM2": {"rescaling": "none", **N_SLACK},
    "SVM2, slack rescaling": {"rescaling": "slack", **N_SLACK},
    "SVM2, margin rescaling": {"rescaling": "margin", **N_SLACK},
    "perceptron": {"solver": "perceptron", "max_passes": 10},
}
HMMS: dict[str, Callable[[str], str]] = {
    "HMM of words": lambda word: "",  # all rare words are alike
    "HMM, rare words by spelling": word_shape,
}
#: Errors, and constraints of the n-slack algorithm.
PAPER: dict[str, tuple[float, int | None]] = {
    "SVM2": (5.1, 2824),
    "SVM2, slack rescaling": (5.1, 2626),
    "SVM2, margin rescaling": (5.1, 2628),
    "perceptron": (5.94, None),
    "HMM of words": (9.36, None),
}


class Fold(NamedTuple):
    """Sequences of features, and of tags; and those of the part left out."""

    X: list[Any]
    y: list[list[str]]
    X_test: list[Any]
    y_test: list[list[str]]


def case(options: Options) -> Case:
    """All methods on the same folds."""
    sentences = tagging.read("conll2002/esp.train.xz", options.size(quick=50, full=300))
    words, tags = sentences.split(0), sentences.split(2)

    @cache
    def folds() -> list[Fold]:
        tokens = sentences.select([0]).sequences()
        return [_kernel_features(_fold(tokens, tags, k)) for k in range(FOLDS)]

    contestants = [_svm(label, parameters, folds) for label, parameters in METHODS.items()]
    contestants += [_hmm(label, spelling, words, tags) for label, spelling in HMMS.items()]
    targets = []
    for contestant in contestants:
        label = contestant.label
        error, constraints = PAPER.get(label, (None, None))
        reference = f"paper: {error}" if error else ""
        targets.append(Target(f"error, {label}", label, "error", reference, "%"))
        if "SVM" in label:
            targets += [
                Target(f"training error, {label}", label, "training_error", "", "%"),
                Target(f"constraints, {label}", label, "planes", f"paper: {constraints}"),
                Target(f"iterations, {label}", label, "iterations"),
            ]
        targets.append(Target(f"time of all folds, {label}", label, "cpu", "", "s"))
    return Case(f"Spanish entities, {FOLDS} folds, polynomial of degree 2", contestants, targets)


def _fold(X: list[Any], y: list[list[str]], k: int) -> Fold:
    """Every fifth sentence is left out."""
    test = range(k, len(y), FOLDS)
    train = sorted(set(range(len(y))) - set(test))
    return Fold(*([part[i] for i in chosen] for chosen in (train, test) for part in (X, y)))


def _kernel_features(fold: Fold) -> Fold:
    """The kernel's features in place of words."""
    window, kernel = WindowFeatures(TEMPLATES), KernelMap("poly", degree=2, gamma=1.0, coef0=1.0)
    train, test = window.fit_transform(fold.X), window.transform(fold.X_test)
    X = np.split(kernel.fit_transform(train.tokens.astype(float)), train.offsets[1:-1])
    X_test = np.split(kernel.transform(test.tokens.astype(float)), test.offsets[1:-1])
    return fold._replace(X=X, X_test=X_test)


def _svm(label: str, parameters: dict[str, Any], folds: Callable[[], list[Fold]]) -> Contestant:
    """A tagger; all measures are means over the folds."""

    def prepare() -> None:
        folds()

    def run() -> Outcome:
        found = []
        for fold in folds():
            C = C_from_paper(1.0, len(fold.y), "tsochantaridis", "l2")
            model = mm.SequenceTagger(C, random_state=0, **parameters)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # the perceptron's passes
                model.fit(fold.X, fold.y)
            found.append(
                {
                    "error": 100.0 - 100.0 * model.score(fold.X_test, fold.y_test),
                    "training_error": 100.0 - 100.0 * model.score(fold.X, fold.y),
                    "planes": float(model.result_.n_planes),
                    "iterations": float(len(model.result_.history)),
                }
            )
        return Outcome(_means(found))

    return Contestant(label, run, prepare, once=True)


def _hmm(
    label: str, spelling: Callable[[str], str], words: list[list[str]], tags: list[list[str]]
) -> Contestant:
    """The generative model of words and tags."""

    def run() -> Outcome:
        found = []
        for k in range(FOLDS):
            fold = _fold(words, tags, k)
            found_tags = HiddenMarkovModel(spelling).fit(fold.X, fold.y).predict(fold.X_test)
            pairs = zip(found_tags, fold.y_test, strict=True)
            wrong = [a != b for sentence in pairs for a, b in zip(*sentence, strict=True)]
            found.append({"error": 100.0 * float(np.mean(wrong))})
        return Outcome(_means(found))

    return Contestant(label, run, once=True)


def _means(found: list[dict[str, float]]) -> dict[str, float]:
    """Of each measure over the folds."""
    return {name: float(np.mean([one[name] for one in found])) for name in found[0]}
