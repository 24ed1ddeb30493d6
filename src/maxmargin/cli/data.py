"""The files of the two tasks, read for training and as a model needs them."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from .._warn import warn_user
from ..formats import TokenColumns, read_columns, read_svmlight
from ..formats.opening import Source, read_once, standard_input
from ..formats.recognising import Kind
from ..persistence import load_model
from .kinds import refuse_other_kinds
from .options import SEPARATORS
from .outputs import is_standard

__all__ = [
    "Model",
    "read_examples",
    "read_model",
    "read_tokens",
    "read_training_examples",
    "read_training_tokens",
]

_HEADERS = {"label", "labels", "tag", "tags", "ner", "ner_tag", "ner_tags", "pos", "chunk", "class"}


class Model(NamedTuple):
    """A loaded model and what is known of the files it was trained on."""

    estimator: Any
    task: str
    path: str
    n_columns: int = 0
    label_column: int = -1
    separator: str = "auto"


class Tokens(NamedTuple):
    """A column file: all of it, the columns features are made of, and the labels, if present."""

    columns: TokenColumns
    inputs: TokenColumns
    labels: list[list[str]] | None


def open_input(path: str) -> Source:
    """A file that can be read more than once; ``-`` is the standard input."""
    return standard_input() if is_standard(path) else read_once(path)


# ----- training ---------------------------------------------------------------------------------


def read_training_tokens(arguments: argparse.Namespace) -> tuple[Tokens, int]:
    """Read a labelled column file; the number of the column of labels comes with it."""
    source = open_input(arguments.data)
    # CoNLL-X files look like CoNLL-U; who names a column of one knows what is in it.
    allowed = () if arguments.label_column is None else (Kind.CONLLU,)
    refuse_other_kinds(source, "tag", arguments.encoding, allowed)
    data = read_columns(
        source, encoding=arguments.encoding, separator=SEPARATORS[arguments.separator or "auto"]
    )
    n_columns = len(data.columns)
    chosen = -1 if arguments.label_column is None else arguments.label_column
    label_column = label_index(chosen, n_columns, source)
    labels = data.columns[label_column]
    _refuse_single_label(source, set(labels))
    if labels[0].lower() in _HEADERS and Counter(labels)[labels[0]] == 1:
        warn_user(
            f"{source}:{_line(data, 0)}: the only token with the label {labels[0]!r}; is this line "
            "a header? It is trained on like the others"
        )
    inputs = data.select(j for j in range(n_columns) if j != label_column)
    return Tokens(data, inputs, data.split(label_column)), label_column


def read_training_examples(arguments: argparse.Namespace) -> Any:
    """Read a labelled svmlight file."""
    source = open_input(arguments.data)
    refuse_other_kinds(source, "multiclass", arguments.encoding)
    data = _without_queries(source, read_svmlight(source, encoding=arguments.encoding))
    if data.X.shape[1] == 0:
        raise ValueError(f"{source}: no features found, only labels")
    if data.y.dtype.kind == "f":
        odd = data.y[(data.y != np.rint(data.y)) | (np.abs(data.y) >= 2.0**53)][0]
        raise ValueError(
            f"{source}: found the label {odd:g}, expected classes: whole numbers of at most 18 "
            "digits, or words"
        )
    _refuse_single_label(source, set(data.y.tolist()))
    return data


def _refuse_single_label(source: Source, labels: set[Any]) -> None:
    """Raise ValueError if there is nothing to tell apart."""
    if len(labels) < 2:
        raise ValueError(f"{source}: all labels are {labels.pop()!r:.40}, expected at least 2")


def label_index(column: int, n_columns: int, source: Source) -> int:
    """A column number, which may count from the end, as one that counts from 0."""
    if not -n_columns <= column < n_columns:
        raise ValueError(
            f"{source}: no label column {column}, the file has {n_columns} columns (0 to "
            f"{n_columns - 1}, or -1 for the last)"
        )
    if n_columns < 2:
        raise ValueError(
            f"{source}: one column only, expected words and labels (--separator says what stands "
            "between them)"
        )
    return column % n_columns


def _line(data: TokenColumns, token: int) -> int:
    """The line of a token."""
    return int(data.lines[token]) if data.lines is not None else token + 1


def _without_queries(source: Source, data: Any) -> Any:
    """Refuse a file with queries further down than its kind is judged by."""
    if data.qid is not None:
        raise ValueError(f"{source}: found qid: fields, which classes have no use for; remove them")
    return data


# ----- with a model -----------------------------------------------------------------------------


def read_model(path: str) -> Model:
    """Load a model file; the task follows from the estimator."""
    if is_standard(path):
        raise ValueError("a model is not read from the standard input: name its file")
    estimator, extra = load_model(path)
    if type(estimator).__name__ == "MulticlassSVM":
        return Model(estimator, "multiclass", path)
    if type(estimator).__name__ != "SequenceTagger":
        raise ValueError(f"{path}: a {type(estimator).__name__} is used from Python: mm.load(path)")
    columns = getattr(estimator.features_, "columns_", None)
    if columns is None:
        raise ValueError(
            f"{path}: the tagger was trained on feature vectors, which column files do not hold; "
            "use it from Python, or train with features=WindowFeatures()"
        )
    n_columns = extra.get("n_columns", len(columns) + 1)
    label_column = extra.get("label_column", len(columns))
    separator = extra.get("separator", "auto")
    if n_columns != len(columns) + 1 or label_column not in range(n_columns):
        raise ValueError(
            f"{path}: the model has features of {len(columns)} columns, but is said to be of files "
            f"with {n_columns!r:.40}, the labels in column {label_column!r:.40} (from 0)"
        )
    if separator not in list(SEPARATORS):
        raise ValueError(f"{path}: unknown separator {separator!r:.40}; upgrade maxmargin")
    return Model(estimator, "tag", path, n_columns, label_column, separator)


def read_tokens(model: Model, arguments: argparse.Namespace) -> Tokens:
    """Read a column file for a trained tagger, with or without the column of labels."""
    source = open_input(arguments.data)
    allowed = (Kind.CONLLU,) if model.n_columns in (10, 11) else ()
    refuse_other_kinds(source, "tag", arguments.encoding, allowed)
    separator = SEPARATORS[arguments.separator or model.separator]
    data = read_columns(source, encoding=arguments.encoding, separator=separator)
    found, expected = len(data.columns), model.n_columns
    if found == expected:
        inputs = data.select(j for j in range(found) if j != model.label_column)
        return Tokens(data, inputs, data.split(model.label_column))
    if found == expected - 1:
        return Tokens(data, data, None)
    raise ValueError(
        f"{source}: {found} columns, but the model was trained on {expected}, the labels in "
        f"column {model.label_column} (from 0): expected {expected}, or {expected - 1} without "
        "labels"
    )


def read_examples(model: Model, arguments: argparse.Namespace, labelled: bool) -> tuple[Any, Any]:
    """Read an svmlight file for a trained classifier; it may lack labels unless ``labelled``."""
    source, encoding = open_input(arguments.data), arguments.encoding
    allowed = () if labelled else (Kind.UNLABELLED_SVMLIGHT,)
    kind = refuse_other_kinds(source, "multiclass", encoding, allowed)
    has_labels = kind is not Kind.UNLABELLED_SVMLIGHT
    data = read_svmlight(source, has_labels=has_labels, encoding=encoding)
    X, width = _without_queries(source, data).X, model.estimator.n_features_in_
    unknown = len(np.unique(X.indices[X.indices >= width]))
    if unknown:
        warn_user(f"{source}: {unknown} features unknown to the model are left out")
    if X.shape[1] < width:
        X.resize(X.shape[0], width)
    return X[:, :width], data.y
