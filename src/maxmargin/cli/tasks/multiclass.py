"""Classes of the lines of svmlight files."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from ...estimators.multiclass import MulticlassSVM
from ...formats.opening import Source
from ...metrics import label_scores
from ...metrics.tallies import tally_of_labels
from ...registry import MULTICLASS
from ...tables import percent
from ..evaluation import (
    Evaluation,
    as_json,
    confidence_of,
    confusions,
    count_unknown,
    error_lines,
    pairs_of_scores,
)
from ..files import Model
from ..rows import read_classes, read_labelled_rows, read_rows
from ..training import Examples, Plan, Training, say, shared_parameters

__all__ = ["evaluate", "examples", "load_schema", "plan", "predict"]


def plan(arguments: argparse.Namespace) -> Plan:
    """How to train; see `maxmargin.cli.tasks`."""
    return Plan([], partial(_make, arguments))


def _make(arguments: argparse.Namespace) -> Training:
    """A classifier, to be trained on an svmlight file."""
    _, data = read_classes(arguments, MULTICLASS)
    say(arguments, f"{data.X.shape[0]} examples, {data.X.shape[1]} features")
    estimator = MulticlassSVM(
        fit_intercept=True if arguments.intercept is None else arguments.intercept,
        probability=arguments.calibrate,
        **shared_parameters(arguments, MULTICLASS),
    )
    extra = {"task": MULTICLASS.name}
    examples = Examples(data.X, data.y)
    return Training(lambda: estimator.fit(data.X, data.y), estimator, extra, examples)


def load_schema(path: str, estimator: Any, extra: dict[str, Any]) -> None:
    """Nothing more need be known of svmlight files."""


def predict(model: Model, source: Source, arguments: argparse.Namespace) -> str:
    """One label on each line; with --k or --scores, labels with their scores, the best first."""
    X = read_rows(model, source, arguments).X
    if arguments.k or arguments.scores:
        k = arguments.k or len(model.estimator.classes_)
        ranked = model.estimator.predict_k(X, k)
        return "".join(f"{pairs_of_scores(classes)}\n" for classes in ranked)
    labels = model.estimator.predict(X).tolist()
    if not arguments.confidence:
        return "".join(f"{label}\n" for label in labels)
    sure = confidence_of(model.estimator, X, labels)
    return "".join(f"{label} {value}\n" for label, value in zip(labels, sure, strict=True))


def evaluate(model: Model, arguments: argparse.Namespace) -> Evaluation:
    """Scores of a classifier, and a table of them."""
    _, data = read_labelled_rows(model, arguments)
    gold, predicted = data.y.tolist(), model.estimator.predict(data.X).tolist()
    errors = sum(a != b for a, b in zip(gold, predicted, strict=True))
    scores = label_scores([gold], [predicted])
    report = {
        "task": model.task.name,
        "examples": len(gold),
        "errors": errors,
        "accuracy": scores.accuracy,
        "unknown_labels": count_unknown(gold, set(model.estimator.classes_.tolist())),
        "confusions": confusions(gold, predicted),
        "labels": as_json(scores.per_label),
    }
    head = f"{len(gold)} examples, {errors} errors\naccuracy  {percent(scores.accuracy)} %"
    text = "\n".join([f"{head}\n\n{scores}", *error_lines(report)])
    return Evaluation(report, text, tally_of_labels(gold, predicted))


def examples(model: Model, arguments: argparse.Namespace) -> Examples:
    """A labelled file for a model; see `maxmargin.cli.tasks`."""
    _, data = read_labelled_rows(model, arguments)
    return Examples(data.X, data.y)
