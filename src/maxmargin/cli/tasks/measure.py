"""Two classes of the lines of svmlight files, for a measure of the whole file."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np

from ...estimators.measure_scores import measure_of_scores
from ...estimators.performance import PerformanceSVM
from ...formats.opening import Source
from ...metrics.scoring import scores_of
from ...metrics.tallies import Tally, mean_of
from ...problems.measures.measure import Measure
from ...registry import MEASURE
from ...tables import named_values, percent
from ..console import UsageError
from ..evaluation import Evaluation, written_score
from ..files import Model
from ..rows import line_of, read_classes, read_labelled_rows, read_rows
from ..training import Examples, Plan, Training, say, shared_parameters

__all__ = ["count", "evaluate", "examples", "load_schema", "plan", "predict"]

#: What is told whatever a model was trained for.
TOLD = {
    "accuracy": Measure("error"),
    "f1": Measure("f1"),
    "prbep": Measure("prbep"),
    "rocarea": Measure("rocarea"),
    "average_precision": Measure("average_precision"),
}


def plan(arguments: argparse.Namespace) -> Plan:
    """How to train; see `maxmargin.cli.tasks`."""
    beta = 1.0 if arguments.beta is None else arguments.beta
    try:
        measure = Measure(arguments.measure or "error", beta, arguments.k, arguments.floor)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return Plan([], partial(_make, arguments, measure))


def _make(arguments: argparse.Namespace, measure: Measure) -> Training:
    """A classifier, to be trained on an svmlight file."""
    source, data = read_classes(arguments, MEASURE)
    classes = np.unique(data.y).tolist()
    if len(classes) != 2:
        third = line_of(source, arguments, np.argmax(data.y == classes[2]))
        raise ValueError(
            f"{third}: the class {classes[2]!r:.40} is one of {len(classes)}, expected 2; "
            "'maxmargin train multiclass' learns more"
        )
    n_positive = int(np.sum(data.y == classes[1]))
    shape = f"{data.X.shape[0]} rows, {data.X.shape[1]} features"
    say(arguments, f"{shape}, {n_positive} rows of the positive class {classes[1]}")
    estimator = PerformanceSVM(
        measure=measure.name,
        beta=measure.beta,
        k=measure.k,
        floor=measure.floor,
        fit_intercept=True if arguments.intercept is None else arguments.intercept,
        **shared_parameters(arguments, MEASURE),
    )
    examples = Examples(data.X, data.y)
    extra = {"task": MEASURE.name}
    return Training(lambda: estimator.fit(data.X, data.y), estimator, extra, examples)


def load_schema(path: str, estimator: Any, extra: dict[str, Any]) -> Measure:
    """What the model was trained for."""
    return Measure(estimator.measure, estimator.beta, estimator.k, estimator.floor)


def predict(model: Model, source: Source, arguments: argparse.Namespace) -> str:
    """One class on each line; a score for measures of rankings, whose sign says nothing."""
    scores = model.estimator.decision_function(read_rows(model, source, arguments).X).tolist()
    if not model.files.has_threshold:
        return "".join(f"{written_score(score)}\n" for score in scores)
    labels = [str(label) for label in model.estimator.classes_.tolist()]
    lines = [labels[score > 0.0] for score in scores]
    if arguments.scores:
        lines = [f"{line} {written_score(s)}" for line, s in zip(lines, scores, strict=True)]
    return "".join(f"{line}\n" for line in lines)


def evaluate(model: Model, arguments: argparse.Namespace) -> Evaluation:
    """Many measures, that which training was for first."""
    source, data = read_labelled_rows(model, arguments)
    classes = model.estimator.classes_.tolist()
    for i, label in enumerate(data.y.tolist()):
        if label not in classes:
            where = line_of(source, arguments, i)
            raise ValueError(f"{where}: the class {label!r:.40} is none of {classes}")
    positive = data.y == classes[1]
    if positive.all() or not positive.any():
        raise ValueError(f"{source}: all rows are of one class, so that measures are not defined")
    scores = model.estimator.decision_function(data.X)
    counts = scores_of(
        int(positive.sum()), int((scores > 0.0).sum()), int((positive & (scores > 0.0)).sum())
    )
    trained_for = measure_of_scores(model.files, positive, scores)
    measures = {name: measure_of_scores(one, positive, scores) for name, one in TOLD.items()}
    measures |= {"precision": counts.precision, "recall": counts.recall}
    report = {
        "task": model.task.name,
        "examples": len(positive),
        "positive": counts.n_true,
        "measure": model.files.name,
        "value": trained_for,
        "measures": measures,
        "unknown_labels": {},
    }
    rows = [
        ("rows", f"{len(positive)}, of them {counts.n_true} of the positive class {classes[1]}"),
        ("trained for", f"{_described(model.files)}: {percent(trained_for)} %"),
    ]
    rows += [(name.replace("_", " "), f"{percent(value)} %") for name, value in measures.items()]
    if not model.files.has_threshold:
        rows.append(("note", "accuracy, f1, precision and recall are of scores above 0"))
    # A measure of the whole sample is no sum over rows: models are chosen by it, without intervals.
    tally = Tally("files", {model.files.name: mean_of([trained_for])})
    return Evaluation(report, named_values(rows), tally)


def count(estimator: Any, examples: Examples) -> Tally:
    """What training was for; see `maxmargin.cli.tasks`."""
    score = estimator.score(examples.X, examples.y)
    return Tally("files", {estimator.measure: mean_of([score])})


def examples(model: Model, arguments: argparse.Namespace) -> Examples:
    """A labelled file for a model; see `maxmargin.cli.tasks`."""
    _, data = read_labelled_rows(model, arguments)
    return Examples(data.X, data.y)


def _described(measure: Measure) -> str:
    """A measure with what belongs to it."""
    if measure.needs_k:
        return f"{measure.name} with k = {measure.k}"
    if measure.needs_floor:
        return f"{measure.name} with at least {measure.floor}"
    return f"fbeta with beta = {measure.beta:g}" if measure.name == "fbeta" else measure.name
