"""Grades of the lines of svmlight files."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np

from ...estimators.ordinal import OrdinalSVM
from ...formats.opening import Source
from ...formats.svmlight import labels_as_array
from ...metrics import grade_scores, label_scores
from ...metrics.tallies import tally_of_grades
from ...registry import ORDINAL
from ..console import UsageError
from ..evaluation import Evaluation, as_json, confusions, error_lines, written_score
from ..files import Model
from ..rows import line_of, read_classes, read_labelled_rows, read_rows, read_training_rows
from ..training import Examples, Plan, Training, say, shared_parameters

__all__ = ["evaluate", "examples", "load_schema", "plan", "predict"]


def plan(arguments: argparse.Namespace) -> Plan:
    """How to train; see `maxmargin.cli.tasks`."""
    names = arguments.grades.split(",") if arguments.grades is not None else []
    if arguments.grades is not None and (len(set(names)) < max(len(names), 2) or "" in names):
        raise UsageError(
            "--grades must be 2 different ones or more between commas, from the lowest to the "
            f"highest, got {arguments.grades!r:.60}"
        )
    return Plan([], partial(_make, arguments, names))


def _make(arguments: argparse.Namespace, names: list[str]) -> Training:
    """A model of grades, to be trained on an svmlight file."""
    if names:
        source, data = read_training_rows(arguments, ORDINAL)
        grades = labels_as_array(names)
        _check_known(source, arguments, data.y, grades.tolist(), "--grades")
    else:
        source, data = read_classes(arguments, ORDINAL, "grades")
        if data.y.dtype.kind not in "iu":
            raise ValueError(
                f"{source}: the grades are words such as {data.y[0]!r:.40}; say their order, as in "
                "--grades low,medium,high"
            )
        grades = np.unique(data.y)
    say(
        arguments,
        f"{data.X.shape[0]} examples, {data.X.shape[1]} features, {len(grades)} grades",
    )
    estimator = OrdinalSVM(
        grades=grades.tolist() if names else None, **shared_parameters(arguments, ORDINAL)
    )
    examples = Examples(data.X, data.y)
    extra = {"task": ORDINAL.name}
    return Training(lambda: estimator.fit(data.X, data.y), estimator, extra, examples)


def load_schema(path: str, estimator: Any, extra: dict[str, Any]) -> None:
    """Nothing more need be known of svmlight files."""


def predict(model: Model, source: Source, arguments: argparse.Namespace) -> str:
    """One grade on each line; with --scores, the score that the thresholds cut into grades."""
    X = read_rows(model, source, arguments).X
    lines = [str(grade) for grade in model.estimator.predict(X).tolist()]
    if arguments.scores:
        scores = model.estimator.linear_score(X).tolist()
        lines = [f"{line} {written_score(s)}" for line, s in zip(lines, scores, strict=True)]
    return "".join(f"{line}\n" for line in lines)


def evaluate(model: Model, arguments: argparse.Namespace) -> Evaluation:
    """Scores of grades, and tables of them."""
    source, data = read_labelled_rows(model, arguments)
    grades = model.estimator.classes_.tolist()
    _check_known(source, arguments, data.y, grades, "the model")
    gold, predicted = data.y.tolist(), model.estimator.predict(data.X).tolist()
    scores = grade_scores(gold, predicted, grades)
    each = label_scores([gold], [predicted])
    report = {
        "task": model.task.name,
        "examples": len(gold),
        "mean_absolute_error": scores.mean_absolute_error,
        "accuracy": scores.accuracy,
        "within_one": scores.within_one,
        "kappa": None if np.isnan(scores.kappa) else scores.kappa,
        "unknown_labels": {},
        "confusions": confusions(gold, predicted),
        "labels": as_json(each.per_label),
    }
    text = f"{len(gold)} examples\n\n{scores}\n\n{each}"
    text = "\n".join([text, *error_lines(report)])
    return Evaluation(report, text, tally_of_grades(gold, predicted, grades))


def examples(model: Model, arguments: argparse.Namespace) -> Examples:
    """A labelled file for a model; see `maxmargin.cli.tasks`."""
    source, data = read_labelled_rows(model, arguments)
    _check_known(source, arguments, data.y, model.estimator.classes_.tolist(), "the model")
    return Examples(data.X, data.y)


def _check_known(
    source: Source, arguments: argparse.Namespace, y: Any, grades: list[Any], who: str
) -> None:
    """Raise ValueError that names the line of the first grade that is not known."""
    known = set(grades)
    for i, grade in enumerate(y.tolist()):
        if grade not in known:
            listed = ", ".join(map(str, grades[:10])) + (", ..." if len(grades) > 10 else "")
            where = line_of(source, arguments, i)
            raise ValueError(f"{where}: the grade {grade!r:.40} is none of {who}: {listed}")
