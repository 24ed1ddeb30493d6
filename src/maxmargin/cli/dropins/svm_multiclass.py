"""What the commands of svm-multiclass do."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from ...utils.types import Floats
from ..console import DONE, Signals, echo, echo_result
from ..files import check_several_labels
from ..training import Examples as TrainingExamples
from ..training import Training
from .learning import (
    Examples,
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

WRONG = 100.0  # what a wrong class costs with -l 0


def learn(arguments: argparse.Namespace, signals: Signals) -> int:
    """Train a classifier."""
    check_model(arguments)
    data = _read(arguments.data, smallest=1)
    classes = np.unique(data.y)
    check_several_labels(data.source, set(classes.tolist()))
    missing = np.setdiff1d(np.arange(1, classes[-1] + 1), classes)
    if len(missing):
        echo(
            f"maxmargin: note: {data.source} has no examples of {len(missing)} classes, such as "
            f"{missing[0]}; they are left out, with scores of 0"
        )
    if arguments.v > 0:
        echo_result(
            f"Training set properties: {data.X.shape[1]} features, {len(data.y)} examples, "
            f"{len(classes)} classes"
        )
    scale = WRONG if arguments.l == 0 else 1.0
    convention = convention_of(arguments, len(data.y), loss_scale=scale)
    from ...estimators.tabular.multiclass import MulticlassSVM

    estimator = MulticlassSVM(
        loss="zero_one" if arguments.l == 0 else _squares(classes, classes),
        fit_intercept=False,
        **shared_parameters(arguments, convention),
    )
    extra = {"tool": "svm-multiclass", "loss": arguments.l, "weights": convention.weights}
    training = Training(estimator, TrainingExamples(data.X, data.y), extra)
    return train_and_save(arguments, signals, training, convention)


def classify(arguments: argparse.Namespace, signals: Signals) -> int:
    """Classify a file."""
    estimator, extra = read_tool_model(arguments, "svm-multiclass")
    data = _read(arguments.data, smallest=0)  # 0 where the class is not known
    X = with_width(data.X, estimator.n_features_in_)
    predicted = estimator.predict(X)
    scores = extra["weights"] * _scores(estimator, X)
    signals.check()
    write_predictions(
        arguments,
        (
            f"{label} " + " ".join(f"{score:.6f}" for score in row)
            for label, row in zip(predicted.tolist(), scores.tolist(), strict=True)
        ),
    )
    if extra.get("loss") == 1:
        losses = (data.y - predicted).astype(np.float64) ** 2
    else:
        losses = WRONG * (data.y != predicted)
    echo_errors(arguments, losses)
    return DONE


def _scores(estimator: Any, X: Any) -> Floats:
    """Scores of the classes 1, 2, ..., up to the largest of the training data."""
    found = estimator.decision_function(X)
    if found.ndim == 1:  # the weights of two classes add up to zero
        found = np.stack([-found / 2.0, found / 2.0], axis=1)
    scores = np.zeros((len(found), int(estimator.classes_[-1])))
    scores[:, estimator.classes_.astype(np.int64) - 1] = found
    return scores


def _squares(right: Any, predicted: Any) -> Floats:
    """Squared differences of classes."""
    differences = np.subtract.outer(right, predicted).astype(np.float64)
    return differences**2


def _read(path: str, smallest: int) -> Examples:
    """Read rows with classes 1, 2, ..."""
    data = read_examples(path, needs_queries=False)
    bad = np.flatnonzero((data.y != np.rint(data.y)) | (data.y < smallest))
    if len(bad):
        row = int(bad[0])
        raise_at(data, row, f"expected a class 1, 2, ..., found {data.y[row]:g}")
    return data
