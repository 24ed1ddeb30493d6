"""What the commands of svm-rank do."""

from __future__ import annotations

import argparse
from itertools import pairwise

import numpy as np

from ...utils.types import Floats
from ..console import DONE, Signals, echo_result
from ..training import Examples as TrainingExamples
from ..training import Training
from .learning import (
    Examples,
    check_model,
    convention_of,
    echo_errors,
    read_examples,
    read_tool_model,
    shared_parameters,
    train_and_save,
    with_width,
    write_predictions,
)

__all__ = ["classify", "learn"]

LOSSES = {1: "swaps", 2: "normalized_swaps"}


def learn(arguments: argparse.Namespace, signals: Signals) -> int:
    """Train a ranker."""
    check_model(arguments)
    data = read_examples(arguments.data, needs_queries=True)
    n_pairs = _pairs(data)
    n_queries = len(n_pairs)
    if not n_pairs.any():
        raise ValueError(f"{data.source}: no query has lines of different relevance")
    if arguments.v > 0:
        echo_result(
            f"Training set properties: {data.X.shape[1]} features, {n_queries} rankings, "
            f"{len(data.y)} examples"
        )
    if arguments.l == 1:  # relative to the largest loss there is
        arguments.e *= float(n_pairs.sum()) / n_queries
    convention = convention_of(arguments, n_queries)
    from ...estimators.tabular.ranking import RankSVM

    estimator = RankSVM(
        loss=LOSSES[arguments.l],  # type: ignore[arg-type]
        **shared_parameters(arguments, convention),
    )
    examples = TrainingExamples(data.X, data.y, {"qid": data.qid})
    training = Training(estimator, examples, {"tool": "svm-rank"})
    return train_and_save(arguments, signals, training, convention)


def classify(arguments: argparse.Namespace, signals: Signals) -> int:
    """Score a file."""
    from ...metrics.rankings import mean_swapped_pairs

    estimator, _ = read_tool_model(arguments, "svm-rank")
    data = read_examples(arguments.data, needs_queries=True)
    scores = estimator.predict(with_width(data.X, estimator.n_features_in_))
    signals.check()
    write_predictions(arguments, (f"{score:.8f}" for score in scores.tolist()))
    n_pairs = _pairs(data)
    losses = np.zeros(len(n_pairs))
    for query, (a, b) in enumerate(pairwise(data.offsets.tolist())):
        if n_pairs[query]:
            losses[query] = mean_swapped_pairs(data.y[a:b], scores[a:b], ties="wrong")
    swapped = float(losses @ n_pairs)
    echo_errors(
        arguments,
        losses,
        [
            f"Total Num Swappedpairs  : {swapped:6.0f}",
            f"Avg Swappedpairs Percent: {100.0 * float(losses.mean()):6.2f}",
        ],
    )
    return DONE


def _pairs(data: Examples) -> Floats:
    """Number of pairs of different relevance of each query."""
    from ...problems.ranking.queries import grades_of, pairs_of

    relevance, offsets = data.y.astype(np.float64), data.offsets
    grades, _ = grades_of(relevance, offsets)
    return pairs_of(grades, offsets)
