"""Penn Treebank sample: parsing tags of sentences of at most 15 words, five folds; speed at 40.

Counts of rules are all a PCFG has, and with them alone zero-one loss is on a par with it in exact
matches: over three partitions 30.3 and 30.7 % of 922 sentences, with a standard error of 1.5.
No C from 0.1 to 30, nor squared slacks, changes that. (In the paper it is ahead by 3.7, trained on
4,098 sentences and tested on 163, of at most 10 words.) Span features, which a generative model
cannot have, put zero-one loss ahead; so with those it has to beat the PCFG.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import maxmargin as mm
from maxmargin.formats import Tree, clean_tree, read_trees
from maxmargin.metrics import bracket_scores

from ..case import Case, Contestant, Options, Outcome, Target
from ..data import data_path

N_FOLDS = 5
N_PARTITIONS = 3  # into folds: figures are means, for one partition tells little about 1 %
LONGEST = 15
PAPER = {  # Tsochantaridis 2005, Table 5: 4,098 sentences of at most 10 words; SVM2, C = 1
    "PCFG": {"f1": 86.0, "exact": 55.2},
    "zero_one": {"f1": 86.2, "exact": 58.9},
    "f1, slack": {"f1": 88.5, "exact": 58.9},
    "f1, margin": {"f1": 88.4, "exact": 58.3},
}
METHODS = {
    "zero_one": {"loss": "zero_one"},
    "f1, margin": {"loss": "f1", "rescaling": "margin"},
    "f1, slack": {"loss": "f1", "rescaling": "slack"},
}
C_GRID = (0.1, 1.0, 10.0)
GRAMMAR: dict[str, Any] = {"horizontal": 1}
MOST_SECONDS = 300.0  # of training, all folds of a partition, with the choice of C


class Fold(NamedTuple):
    """Trees to learn from and trees to be found."""

    train: list[Tree]
    test: list[Tree]


def load(longest: int | None) -> list[Tree]:
    """Trees of at most so many words, without null elements and function tags."""
    treebank = read_trees(data_path("ptb_sample/wsj_0001-0199.mrg.xz"))
    trees = [clean_tree(tree) for tree in treebank.trees]
    return [tree for tree in trees if longest is None or len(tree.words()) <= longest]


def folds(trees: list[Tree], seed: int = 0, n_folds: int = N_FOLDS) -> list[Fold]:
    """A random partition, always the same."""
    fold = np.empty(len(trees), int)
    fold[np.random.default_rng(seed).permutation(len(trees))] = np.arange(len(trees)) % n_folds
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
    partitions = [folds(trees, seed) for seed in range(1 if options.quick else N_PARTITIONS)]
    yield _accuracy("rules", partitions, {}, evaluated={"f1, margin": "f1", "f1, slack": "f1"})
    yield _accuracy(
        "rules and span features",
        partitions,
        {"span_features": True},
        evaluated={"zero_one": "exact", "f1, margin": "f1", "f1, slack": "f1"},
    )
    yield _speed(options)


def _accuracy(
    name: str, partitions: list[list[Fold]], model: dict[str, Any], evaluated: dict[str, str]
) -> Case:
    """Every method next to the baseline; those that are judged have to beat it in that measure."""
    contestants = [_cross_validated("PCFG", _fit_pcfg, partitions)]
    for method, parameters in METHODS.items():
        fit = _svm_fitter({**GRAMMAR, **model, **parameters})
        contestants.append(_cross_validated(method, fit, partitions))
    targets = []
    for method, figures in PAPER.items():
        for measure, figure in figures.items():
            reference = f"paper, another set: {figure}"
            targets.append(Target(f"{method}: {measure}", method, measure, reference, "%"))
        if method == "PCFG":
            continue
        measure = "exact" if method == "zero_one" else "f1"
        targets.append(
            Target(
                f"{method}: {measure} / that of the PCFG",
                method,
                measure,
                "PCFG, same folds",
                at_least=1.0 if evaluated.get(method) == measure else None,
                relative_to=("PCFG", measure),
            )
        )
        reference = "2009 paper: 2.9 h for 9,780 sentences"
        what = f"{method}: training, {N_FOLDS} folds"
        targets.append(Target(what, method, "training", reference, "s", at_most=MOST_SECONDS))
    return Case(f"Penn sample, at most {LONGEST} words, {name}", contestants, targets)


def _fit_pcfg(train: list[Tree]) -> Any:
    """The baseline."""
    return mm.PCFGParser(**GRAMMAR).fit(train)


def _svm_fitter(settings: dict[str, Any]) -> Callable[[list[Tree]], Any]:
    """Trains with the C that is best on a quarter of the training data, held out for that.

    F1 decides for every loss: exact matches of so few sentences depend on chance too much.
    """

    def fit(train: list[Tree]) -> Any:
        held_out = train[::4]
        rest = [tree for t, tree in enumerate(train) if t % 4]
        parser = mm.GrammarParser(warm_start=True, tol=0.02, random_state=0, **settings)
        scores = {C: parser.set_params(C=C).fit(rest).score(held_out) for C in C_GRID}
        best = max(scores, key=lambda C: scores[C])
        return mm.GrammarParser(best, tol=0.01, random_state=0, **settings).fit(train)

    return fit


def _cross_validated(
    label: str, fit: Callable[[list[Tree]], Any], partitions: list[list[Fold]]
) -> Contestant:
    """Train and test on every fold; scores are over all predictions of a partition."""

    def run() -> Outcome:
        all_measures = []
        for partition in partitions:
            true: list[Tree] = []
            found: list[Tree] = []
            seconds = 0.0
            for part in partition:
                started = time.process_time()
                parser = fit(part.train)
                seconds += time.process_time() - started
                true += part.test
                found += parser.predict(part.test)
            scores = bracket_scores(true, found)
            all_measures.append(
                {
                    "f1": 100 * scores.f1,
                    "exact": 100 * scores.exact_match,
                    "fallbacks": float(scores.n_fallbacks),
                    "training": seconds,
                }
            )
        names = all_measures[0]
        return Outcome({n: float(np.mean([m[n] for m in all_measures])) for n in names})

    def warm_up() -> None:
        first = partitions[0][0]
        fit(first.train[:60]).predict(first.test[:2])

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
