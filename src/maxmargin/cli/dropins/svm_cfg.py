"""What the commands of svm-cfg do."""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np

from ...formats import Tree
from ...utils.types import Floats
from ...utils.warn import warn_user
from ..console import DONE, Signals, echo_result
from ..files import at_lines, check_kind, open_input
from ..tasks.parse import TASK, read_clean_trees
from ..training import Examples as TrainingExamples
from ..training import Training
from .learning import (
    check_model,
    convention_of,
    echo_errors,
    read_tool_model,
    shared_parameters,
    train_and_save,
    write_predictions,
)

__all__ = ["classify", "learn"]

LOSSES = {0: "zero_one", 1: "f1"}
PER_CENT = 100.0  # losses are that many times ours


def learn(arguments: argparse.Namespace, signals: Signals) -> int:
    """Train a parser with all rules of the training trees."""
    check_model(arguments)
    source = open_input(arguments.data)
    check_kind(source, TASK, "utf-8")
    trees, lines = read_clean_trees(source, "utf-8")
    if arguments.v > 0:
        n_words = sum(len(tree.words()) for tree in trees)
        echo_result(f"Training set properties: {len(trees)} trees, {n_words} words")
    convention = convention_of(arguments, len(trees), loss_scale=PER_CENT)
    from ...estimators.trees.grammar import GrammarParser

    estimator = GrammarParser(
        loss=LOSSES[arguments.l],  # type: ignore[arg-type]
        max_sentence_length=None,  # C is divided by the number of all trees
        **shared_parameters(arguments, convention),
    )
    extra = {"tool": "svm-cfg", "loss": arguments.l, "weights": convention.weights}
    located = partial(at_lines, "tree", source, lines)
    training = Training(estimator, TrainingExamples(trees), extra, located=located)
    return train_and_save(arguments, signals, training, convention)


def classify(arguments: argparse.Namespace, signals: Signals) -> int:
    """Parse the sentences of a file of trees."""
    from ...metrics import bracket_scores

    estimator, extra = read_tool_model(arguments, "svm-cfg")
    source = open_input(arguments.data)
    check_kind(source, TASK, "utf-8")
    gold, _ = read_clean_trees(source, "utf-8", keep_empty=True)
    predicted = estimator.predict(gold)
    signals.check()
    write_predictions(arguments, map(str, predicted))
    scores = bracket_scores(gold, predicted)
    if scores.n_fallbacks:
        warn_user(
            f"{source}: {scores.n_fallbacks} of {len(gold)} sentences have no derivation by the "
            "grammar and get flat trees"
        )
    shares = {
        "Precision": scores.precision,
        "Recall": scores.recall,
        "F1": scores.f1,
        "Exact match": scores.exact_match,
    }
    more = [f"{name:<11}: {PER_CENT * share:5.2f}" for name, share in shares.items()]
    echo_errors(arguments, _losses(gold, predicted, extra.get("loss") == 1), more)
    return DONE


def _losses(gold: list[Tree], predicted: list[Tree], is_f1: bool) -> Floats:
    """100 for a wrong tree, or 100 (1 - F1) of its constituents; punctuation counts, too."""
    from ...metrics.trees import bracket_counts

    counts, exact = bracket_counts(
        gold, predicted, ignored_tags=(), ignored_labels=(), equal_labels={}
    )
    losses: Floats = np.where(exact, 0.0, PER_CENT)
    if is_f1:
        n_true, n_predicted, n_right = counts.T
        losses *= 1.0 - 2.0 * n_right / np.maximum(n_true + n_predicted, 1)
    return losses
