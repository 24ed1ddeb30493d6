"""What the commands of svm-perf do."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from scipy import sparse

from ...utils.types import Bools, Floats
from ..console import DONE, Signals, UsageError, echo, echo_result
from ..training import Examples as TrainingExamples
from ..training import Training
from .learning import (
    check_model,
    convention_of,
    echo_errors,
    raise_at,
    read_examples,
    read_tool_model,
    shared_parameters,
    train_and_save,
    with_width,
    write_predictions,
)

__all__ = ["classify", "learn"]

MEASURES = {1: "f1", 2: "error", 3: "prbep", 4: "precision_at_k", 5: "recall_at_k", 10: "roc_auc"}
PER_CENT = 100.0  # losses, and joint features, are that many times ours


def learn(arguments: argparse.Namespace, signals: Signals) -> int:
    """Train a classifier."""
    if arguments.l == 0:
        raise UsageError("-l 0, a loss of 1 for any error in the whole file, is not offered")
    fraction = _fraction(arguments)
    check_model(arguments)
    data = read_examples(arguments.data, needs_queries=False)
    unlabelled = np.flatnonzero(data.y == 0)
    if len(unlabelled):
        raise_at(data, int(unlabelled[0]), "expected a label above or below 0, found 0")
    positive = data.y > 0
    n_positive = int(positive.sum())
    if n_positive in (0, len(positive)):
        raise ValueError(
            f"{data.source}: expected labels above 0 and labels below 0, found only one of both"
        )
    if arguments.v > 0:
        echo_result(
            f"Training set properties: {data.X.shape[1]} features, {len(positive)} examples "
            f"({n_positive} pos / {len(positive) - n_positive} neg)"
        )
    # One example, whose slack counts as many times as it has rows: their C/1 is our C times these.
    n = len(positive)
    convention = convention_of(arguments, n, loss_scale=PER_CENT, feature_scale=PER_CENT)
    from ...estimators.tabular.performance import PerformanceSVM

    estimator = PerformanceSVM(
        measure=MEASURES[arguments.l],  # type: ignore[arg-type]
        k=max(int(fraction * n_positive), 1) if fraction else None,
        fit_intercept=False,
        **shared_parameters(arguments, convention),
    )
    extra = {
        "tool": "svm-perf",
        "bias": arguments.bias,
        "weights": convention.weights,
        "n_features": int(data.X.shape[1]),
    }
    X, y = _with_constant(data.X, arguments.bias), np.where(positive, 1, -1)
    training = Training(estimator, TrainingExamples(X, y), extra)
    return train_and_save(arguments, signals, training, convention)


def classify(arguments: argparse.Namespace, signals: Signals) -> int:
    """Score a file."""
    estimator, extra = read_tool_model(arguments, "svm-perf")
    data = read_examples(arguments.data, needs_queries=False)
    X = _with_constant(with_width(data.X, extra["n_features"]), extra["bias"])
    scores = extra["weights"] * estimator.decision_function(X)
    signals.check()
    write_predictions(arguments, (f"{score:.8f}" for score in scores.tolist()))
    unlabelled = int(np.count_nonzero(data.y == 0))
    if unlabelled:
        echo(f"maxmargin: note: {unlabelled} lines without a label (0): nothing to compare with")
        return DONE
    positive = data.y > 0
    error = PER_CENT * float(np.mean((scores > 0) != positive))
    echo_errors(arguments, np.array([error]), _measures(positive, scores))
    return DONE


def _fraction(arguments: argparse.Namespace) -> float:
    """What k is as a fraction of the positive rows; 0 for measures without k."""
    if arguments.l not in (4, 5):
        return 0.0
    fraction = float(arguments.fraction) or {4: 0.5, 5: 2.0}[arguments.l]
    if arguments.l == 4 and fraction > 1.0:
        raise UsageError(f"--p of -l 4 must be at most 1, got {fraction:g}")
    if arguments.l == 5 and fraction < 1.0:
        raise UsageError(f"--p of -l 5 must be at least 1, got {fraction:g}")
    return fraction


def _with_constant(X: Any, bias: float) -> Any:
    """X with a feature of this value in all rows; without it if it is 0."""
    if bias == 0.0:
        return X
    constant = np.full((X.shape[0], 1), bias)
    return sparse.csr_matrix(sparse.hstack([X, constant], format="csr"))


def _measures(positive: Bools, scores: Floats) -> list[str]:
    """The measures that svm_perf_classify lists, in per cent."""
    from ...estimators.tabular.performance import measure_of_scores
    from ...problems.measures.measure import Measure

    chosen = scores > 0
    values = {
        "Accuracy": np.mean(chosen == positive),
        "Precision": positive[chosen].mean() if chosen.any() else 0.0,
        "Recall": chosen[positive].mean() if positive.any() else 0.0,
        "F1": measure_of_scores(Measure("f1"), positive, scores),
    }
    if positive.any() and not positive.all():
        values["PRBEP"] = measure_of_scores(Measure("prbep"), positive, scores)
        values["ROCArea"] = measure_of_scores(Measure("roc_auc"), positive, scores)
        values["AvgPrec"] = measure_of_scores(Measure("average_precision"), positive, scores)
    return [f"{name:<9}: {PER_CENT * float(value):5.2f}" for name, value in values.items()]
