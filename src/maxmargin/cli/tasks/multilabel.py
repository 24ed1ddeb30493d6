"""Sets of labels of the lines of svmlight files."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...estimators.multilabel import MultilabelSVM
from ...formats.opening import Source
from ...metrics import set_scores
from ...metrics.tallies import tally_of_sets
from ...registry import MULTILABEL
from ...types import Ints
from ..evaluation import Evaluation, as_json, count_unknown, error_lines, pairs_of_scores
from ..files import Model
from ..rows import read_labelled_rows, read_rows, read_training_rows
from ..training import Examples, Plan, Training, say, shared_parameters

__all__ = ["evaluate", "examples", "load_schema", "plan", "predict"]


def plan(arguments: argparse.Namespace) -> Plan:
    """How to train; see `maxmargin.cli.tasks`."""
    return Plan([], partial(_make, arguments))


def _make(arguments: argparse.Namespace) -> Training:
    """A classifier, to be trained on an svmlight file with any number of labels on a line."""
    source, data = read_training_rows(arguments, MULTILABEL, multilabel=True)
    labels = sorted({label for own in data.y for label in own})
    if not labels:
        raise ValueError(f"{source}: no labels found, expected some before the index:value pairs")
    indicators = _indicators(data.y, labels)
    shape = f"{data.X.shape[0]} examples, {data.X.shape[1]} features"
    say(arguments, f"{shape}, {len(labels)} labels, {indicators.sum(axis=1).mean():.3g} of each")
    estimator = MultilabelSVM(
        edges=arguments.edges,
        fit_intercept=True if arguments.intercept is None else arguments.intercept,
        **shared_parameters(arguments, MULTILABEL),
    )
    extra = {"task": MULTILABEL.name, "labels": labels}
    examples = Examples(data.X, indicators)
    return Training(lambda: estimator.fit(data.X, indicators), estimator, extra, examples)


def _indicators(sets: Sequence[Collection[Any]], labels: list[Any]) -> Ints:
    """A column of 0 and 1 for each label; labels that are not listed are left out."""
    number = {label: j for j, label in enumerate(labels)}
    indicators = np.zeros((len(sets), len(labels)), dtype=np.int64)
    for row, own in zip(indicators, sets, strict=True):
        row[[number[label] for label in own if label in number]] = 1
    return indicators


def load_schema(path: str, estimator: Any, extra: dict[str, Any]) -> list[Any]:
    """The names of the labels; without any, numbers."""
    labels = extra.get("labels", estimator.classes_.tolist())
    n_labels = len(estimator.classes_)
    if not isinstance(labels, list) or len(set(map(str, labels))) != n_labels:
        raise ValueError(f"{path}: {n_labels} labels, but their names are {labels!r:.60}")
    return labels


def predict(model: Model, source: Source, arguments: argparse.Namespace) -> str:
    """Labels between commas on each line; with --scores, all labels with their scores."""
    X = read_rows(model, source, arguments, multilabel=True).X
    if arguments.scores:
        if not hasattr(model.estimator, "decision_function"):
            raise ValueError(f"{model.path}: labels with edges have no scores of their own")
        rows = model.estimator.decision_function(X).tolist()
        pairs = (pairs_of_scores(zip(model.files, row, strict=True)) for row in rows)
        return "".join(f"{text}\n" for text in pairs)
    return "".join(f"{','.join(map(str, own))}\n" for own in _predicted(model, X))


def evaluate(model: Model, arguments: argparse.Namespace) -> Evaluation:
    """Scores of sets of labels, and a table of them."""
    _, data = read_labelled_rows(model, arguments, multilabel=True)
    predicted = _predicted(model, data.X)
    scores = set_scores(data.y, predicted, labels=model.files)
    given = [label for own in data.y for label in own]
    report = {
        "task": model.task.name,
        "examples": len(data.y),
        "subset_accuracy": scores.subset_accuracy,
        "hamming_loss": scores.hamming_loss,
        "example_f1": scores.example_f1,
        "micro": scores.micro._asdict(),
        "macro": scores.macro._asdict(),
        "unknown_labels": count_unknown(given, set(model.files)),
        "confusions": [],
        "labels": as_json(scores.per_label),
    }
    head = f"{len(data.y)} examples, {len(given)} labels"
    text = "\n".join([f"{head}\n\n{scores}", *error_lines(report)])
    return Evaluation(report, text, tally_of_sets(data.y, predicted, len(model.files)))


def examples(model: Model, arguments: argparse.Namespace) -> Examples:
    """A labelled file for a model; see `maxmargin.cli.tasks`."""
    _, data = read_labelled_rows(model, arguments, multilabel=True)
    return Examples(data.X, _indicators(data.y, model.files))


def _predicted(model: Model, X: Any) -> list[list[Any]]:
    """Labels of each row."""
    found = model.estimator.predict(X)
    dense = found.toarray() if hasattr(found, "toarray") else found
    return [[model.files[j] for j in np.flatnonzero(row).tolist()] for row in dense]
