"""Penn Treebank sample: parsing tags of sentences of at most 15 words, five folds; speed at 40."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import maxmargin as mm
from maxmargin.formats import Tree, clean_tree, read_trees
from maxmargin.tree_metrics import bracket_scores

from ..case import Case, Contestant, Options, Outcome, Target
from ..data import data_path

N_FOLDS = 5
LONGEST = 15
PAPER = {  # Tsochantaridis 2005, Table 5: 4,098 sentences of at most 10 words; SVM2, C = 1
    "PCFG": {"f1": 86.0, "exact": 55.2},
    "zero-one": {"f1": 86.2, "exact": 58.9},
    "f1, slack": {"f1": 88.5, "exact": 58.9},
    "f1, margin": {"f1": 88.4, "exact": 58.3},
}
METHODS = {
    "zero-one": {"loss": "zero-one"},
    "f1, margin": {"loss": "f1", "rescaling": "margin"},
    "f1, slack": {"loss": "f1", "rescaling": "slack"},
}
GRAMMAR: dict[str, Any] = {"horizontal": 1}
MOST_SECONDS = 300.0  # of training, all folds


class Fold(NamedTuple):
    """Trees to learn from and trees to be found."""

    train: list[Tree]
    test: list[Tree]


def load(longest: int | None) -> list[Tree]:
    """Trees of at most so many words, without null elements and function tags."""
    treebank = read_trees(data_path("ptb_sample/wsj_0001-0199.mrg.xz"))
    trees = [clean_tree(tree) for tree in treebank.trees]
    return [tree for tree in trees if longest is None or len(tree.words()) <= longest]


def folds(trees: list[Tree], n_folds: int = N_FOLDS) -> list[Fold]:
    """A random partition, always the same."""
    fold = np.empty(len(trees), int)
    fold[np.random.default_rng(0).permutation(len(trees))] = np.arange(len(trees)) % n_folds
    return [
        Fold(
            [tree for tree, f in zip(trees, fold, strict=True) if f != k],
            [tree for tree, f in zip(trees, fold, strict=True) if f == k],
        )
        for k in range(n_folds)
    ]


def cases(options: Options) -> Iterator[Case]:
    """Accuracy in five folds for rules alone and with span features, then speed."""
    trees = load(LONGEST)[: options.size(60)]
    yield _accuracy("rules", trees, {"C": 1.0})
    yield _accuracy("rules and span features", trees, {"C": 0.3, "span_features": True})
    yield _speed(options)


def _accuracy(name: str, trees: list[Tree], model: dict[str, Any]) -> Case:
    """Every method next to the baseline."""
    parts = folds(trees)
    contestants = [_cross_validated("PCFG", lambda: mm.PCFGParser(**GRAMMAR), parts)]
    for method, parameters in METHODS.items():
        settings = {"tol": 0.01, "random_state": 0, **GRAMMAR, **model, **parameters}
        make = _maker(settings)
        contestants.append(_cross_validated(method, make, parts))
    targets = []
    for method, figures in PAPER.items():
        for measure, figure in figures.items():
            judged = "exact" if method == "zero-one" else "f1"
            key = "bracket_f1" if measure == "f1" else measure
            reference = f"paper, another set: {figure}"
            targets.append(Target(f"{method}: {measure}", method, key, reference, "%"))
            if measure == judged and method != "PCFG":
                targets.append(
                    Target(
                        f"{method}: {measure} / that of the PCFG",
                        method,
                        key,
                        "PCFG, same folds",
                        at_least=1.0,
                        relative_to=("PCFG", key),
                    )
                )
        if method != "PCFG":
            reference = "2009 paper: 2.9 h for 9,780 sentences"
            what = f"{method}: training, {N_FOLDS} folds"
            targets.append(Target(what, method, "training", reference, "s", at_most=MOST_SECONDS))
    return Case(f"Penn sample, at most {LONGEST} words, {name}", contestants, targets)


def _maker(settings: dict[str, Any]) -> Callable[[], Any]:
    """Makes parsers of these settings."""
    return lambda: mm.GrammarParser(**settings)


def _cross_validated(label: str, make: Callable[[], Any], parts: list[Fold]) -> Contestant:
    """Train and test on every fold; scores are over the predictions of all."""

    def run() -> Outcome:
        true: list[Tree] = []
        found: list[Tree] = []
        seconds = 0.0
        for part in parts:
            started = time.process_time()
            parser = make().fit(part.train)
            seconds += time.process_time() - started
            true += part.test
            found += parser.predict(part.test)
        scores = bracket_scores(true, found)
        measures = {
            "bracket_f1": 100 * scores.f1,
            "exact": 100 * scores.exact_match,
            "fallbacks": float(scores.n_fallbacks),
            "training": seconds,
        }
        return Outcome(measures)

    def warm_up() -> None:
        make().fit(parts[0].train[:30]).predict(parts[0].test[:2])

    return Contestant(label, run, warm_up, once=True)


def _speed(options: Options) -> Case:
    """Time per sentence of about 40 words, with the grammar of all sentences up to that length."""
    trees = load(40)
    train = trees[: options.size(60)]
    long = [tree for tree in trees if len(tree.words()) >= 38][:50]

    def run() -> Outcome:
        parser = mm.PCFGParser(**GRAMMAR).fit(train)
        started = time.process_time()
        parser.predict(long)
        seconds = (time.process_time() - started) / len(long)
        return Outcome({"each": seconds, "rules": float(parser.grammar_.n_rules)})

    return Case(
        "Penn sample, sentences of 38 to 40 words",
        [Contestant("parsing", run, lambda: None)],
        [
            Target("one sentence", "parsing", "each", "", "s", at_most=0.1),
            Target("rules of the grammar", "parsing", "rules"),
        ],
    )
