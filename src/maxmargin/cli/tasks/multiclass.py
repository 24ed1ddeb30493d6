"""Classes of the lines of svmlight files."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np

from ..._warn import warn_user
from ...estimators.multiclass import MulticlassSVM
from ...formats import SvmlightData, read_svmlight
from ...formats.opening import Source
from ...formats.recognising import Kind
from ...metrics import label_scores
from ...registry import MULTICLASS
from ..confidences import confidence_of
from ..data import Model, open_input, refuse_single_label
from ..judging import Judgement, as_json, confusions, count_unknown, error_lines
from ..kinds import refuse_other_kinds
from ..training import Plan, Training, say, shared_parameters

__all__ = ["judge", "plan", "predict", "understand"]


def plan(arguments: argparse.Namespace) -> Plan:
    """How to train; see `maxmargin.cli.tasks`."""
    return Plan([], partial(_make, arguments))


def understand(path: str, estimator: Any, extra: dict[str, Any]) -> None:
    """Nothing more need be known of svmlight files."""


def predict(model: Model, arguments: argparse.Namespace) -> str:
    """One label on each line, and behind it with --confidence how sure it is."""
    X, _ = _read(model, arguments, labelled=False)
    labels = model.estimator.predict(X).tolist()
    if not arguments.confidence:
        return "".join(f"{label}\n" for label in labels)
    sure = confidence_of(model.estimator, X, labels)
    return "".join(f"{label} {value}\n" for label, value in zip(labels, sure, strict=True))


def judge(model: Model, arguments: argparse.Namespace) -> Judgement:
    """Scores of a classifier, and a table of them."""
    X, y = _read(model, arguments, labelled=True)
    gold, predicted = y.tolist(), model.estimator.predict(X).tolist()
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
    head = f"{len(gold)} examples, {errors} errors\naccuracy  {100 * scores.accuracy:6.2f} %"
    return Judgement(report, "\n".join([f"{head}\n\n{scores}", *error_lines(report)]))


def _make(arguments: argparse.Namespace) -> Training:
    """A classifier, to be trained on an svmlight file."""
    data = _read_training_file(arguments)
    say(arguments, f"{data.X.shape[0]} examples, {data.X.shape[1]} features")
    estimator = MulticlassSVM(
        fit_intercept=True if arguments.intercept is None else arguments.intercept,
        probability=arguments.calibrate,
        **shared_parameters(arguments, MULTICLASS),
    )
    extra = {"task": MULTICLASS.name}
    return Training(lambda: estimator.fit(data.X, data.y), estimator, extra)


def _read_training_file(arguments: argparse.Namespace) -> SvmlightData:
    """Read a labelled svmlight file."""
    source = open_input(arguments.data)
    refuse_other_kinds(source, MULTICLASS, arguments.encoding)
    data = _without_queries(source, read_svmlight(source, encoding=arguments.encoding))
    if data.X.shape[1] == 0:
        raise ValueError(f"{source}: no features found, only labels")
    if data.y.dtype.kind == "f":
        odd = data.y[(data.y != np.rint(data.y)) | (np.abs(data.y) >= 2.0**53)][0]
        raise ValueError(
            f"{source}: found the label {odd:g}, expected classes: whole numbers of at most 18 "
            "digits, or words"
        )
    refuse_single_label(source, set(data.y.tolist()))
    return data


def _read(model: Model, arguments: argparse.Namespace, labelled: bool) -> tuple[Any, Any]:
    """Read an svmlight file for a trained classifier; it may lack labels unless ``labelled``."""
    source, encoding = open_input(arguments.data), arguments.encoding
    kind = refuse_other_kinds(source, MULTICLASS, encoding, needs_labels=labelled)
    has_labels = kind is not Kind.UNLABELLED_SVMLIGHT
    data = read_svmlight(source, has_labels=has_labels, encoding=encoding)
    X, width = _without_queries(source, data).X, model.estimator.n_features_in_
    unknown = len(np.unique(X.indices[X.indices >= width]))
    if unknown:
        warn_user(f"{source}: {unknown} features unknown to the model are left out")
    if X.shape[1] < width:
        X.resize(X.shape[0], width)
    return X[:, :width], data.y


def _without_queries(source: Source, data: SvmlightData) -> SvmlightData:
    """Refuse a file with queries further down than its kind is judged by."""
    if data.qid is not None:
        raise ValueError(f"{source}: found qid: fields, which classes have no use for; remove them")
    return data
