"""svmlight files of models whose inputs are rows of numbers."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from ..formats import SvmlightData, read_svmlight
from ..formats.opening import Source
from ..formats.recognising import Kind
from ..formats.svmlight import line_of_example
from ..utils.warn import warn_user
from .files import Chunk, Model, check_kind, check_several_labels, open_input
from .tasks import Task

__all__ = [
    "line_of",
    "read_classes",
    "read_labelled_rows",
    "read_rows",
    "read_training_rows",
]


def read_training_rows(
    arguments: argparse.Namespace, task: Task, *, multilabel: bool = False, queries: bool = False
) -> tuple[Source, SvmlightData]:
    """Read a labelled svmlight file, and say what file it is."""
    source = open_input(arguments.data)
    # Comments of one word on each line make rankings look like the sequences of svm_hmm.
    check_kind(source, task, arguments.encoding, (Kind.SVM_HMM,) if queries else ())
    data = read_svmlight(source, encoding=arguments.encoding, multilabel=multilabel)
    _check_queries(source, data, queries)
    if data.X.shape[1] == 0:
        raise ValueError(f"{source}: no features found, only labels")
    return source, data


def read_classes(
    arguments: argparse.Namespace, task: Task, noun: str = "classes"
) -> tuple[Source, SvmlightData]:
    """Read a training file of two classes or more, which are whole numbers or words."""
    source, data = read_training_rows(arguments, task)
    if data.y.dtype.kind == "f":
        odd = data.y[(data.y != np.rint(data.y)) | (np.abs(data.y) >= 2.0**53)][0]
        raise ValueError(
            f"{source}: found the label {odd:g}, expected {noun}: whole numbers of at most 18 "
            "digits, or words"
        )
    check_several_labels(source, set(data.y.tolist()))
    return source, data


def read_rows(
    model: Model,
    source: Source,
    arguments: argparse.Namespace,
    *,
    labelled: bool = False,
    multilabel: bool = False,
    queries: bool = False,
) -> SvmlightData:
    """Read an svmlight file for a trained model; it may lack labels unless ``labelled``."""
    encoding = arguments.encoding
    allowed = (Kind.SVM_HMM,) if queries else ()
    kind = check_kind(source, model.task, encoding, allowed, needs_labels=labelled)
    has_labels = labelled or kind is not Kind.UNLABELLED_SVMLIGHT
    options = {"has_labels": has_labels, "multilabel": multilabel and has_labels}
    data = read_svmlight(source, encoding=encoding, **options)
    if labelled or data.qid is not None:
        _check_queries(source, data, queries)
    X, width = data.X, model.estimator.n_features_in_
    unknown = len(np.unique(X.indices[X.indices >= width]))
    if unknown:
        warn_user(f"{source}: features unknown to the model are left out ({unknown} of them)")
    if X.shape[1] == width - 1 and not isinstance(source, Chunk):
        warn_user(
            f"{source}: the largest index is {width - 1}, and the model has {width} features. If "
            "indices count from 0, which scikit-learn's dump_svmlight_file does by default, write "
            "the file with zero_based=False: all features are shifted here"
        )
    if X.shape[1] < width:
        X.resize(X.shape[0], width)
    return data._replace(X=X[:, :width])


def read_labelled_rows(
    model: Model, arguments: argparse.Namespace, **options: bool
) -> tuple[Source, SvmlightData]:
    """Read a labelled svmlight file for a trained model, and say what file it is."""
    source = open_input(arguments.data)
    data = read_rows(model, source, arguments, labelled=True, **options)
    if options.get("multilabel"):
        known, given = model.files, [label for own in data.y for label in own]
    else:
        known, given = (
            np.asarray(getattr(model.estimator, "classes_", ())).tolist(),
            data.y.tolist(),
        )
    # Labels of a file are all numbers or all words.
    if known and given and isinstance(known[0], str) != isinstance(given[0], str):
        raise ValueError(
            f"{source}: the labels are {_kind(given[0])}, such as {given[0]!r:.40}; the "
            f"model was trained on {_kind(known[0])}, such as {known[0]!r:.40}, so no "
            "prediction could be right"
        )
    return source, data


def _kind(label: Any) -> str:
    """What labels of a file are."""
    return "words" if isinstance(label, str) else "numbers"


def line_of(source: Source, arguments: argparse.Namespace, example: Any) -> str:
    """File and line of an example, for messages."""
    return f"{source}:{line_of_example(source, int(example), encoding=arguments.encoding)}"


def _check_queries(source: Source, data: SvmlightData, expected: bool) -> None:
    """Raise ValueError for a file with queries, or without, which its first lines need not show."""
    if expected and data.qid is None:
        raise ValueError(f"{source}: no qid: fields found, expected one on each line")
    if not expected and data.qid is not None:
        raise ValueError(f"{source}: found qid: fields, which this task does not use; remove them")
