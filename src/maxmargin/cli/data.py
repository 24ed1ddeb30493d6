"""The files of the two tasks, read as a model needs them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..formats import TokenColumns, read_columns, read_svmlight
from ..persistence import load_model

__all__ = ["Model", "read_examples", "read_model", "read_tokens"]


class Model(NamedTuple):
    """A loaded model and what is known of the files it was trained on."""

    estimator: Any
    task: str
    path: str
    n_columns: int = 0
    label_column: int = -1


def read_model(path: str) -> Model:
    """Load a model file; the task follows from the estimator."""
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
    n_columns = int(extra.get("n_columns", len(columns) + 1))
    return Model(estimator, "tag", path, n_columns, int(extra.get("label_column", n_columns - 1)))


class Tokens(NamedTuple):
    """A column file: all of it, the columns features are made of, and the labels, if present."""

    columns: TokenColumns
    inputs: TokenColumns
    labels: list[list[str]] | None


def read_tokens(model: Model, path: str, encoding: str = "utf-8") -> Tokens:
    """Read a column file for a trained tagger, with or without the column of labels."""
    data = read_columns(path, encoding=encoding)
    found, expected = len(data.columns), model.n_columns
    if found == expected:
        inputs = data.select(j for j in range(found) if j != model.label_column)
        return Tokens(data, inputs, data.split(model.label_column))
    if found == expected - 1:
        return Tokens(data, data, None)
    raise ValueError(
        f"{path}: {found} columns, but the model was trained on {expected}, the labels in "
        f"column {model.label_column}: expected {expected}, or {expected - 1} without labels"
    )


def read_examples(model: Model, path: str) -> tuple[Any, Any, int]:
    """Read an svmlight file for a trained classifier: inputs, labels, features left out."""
    data = read_svmlight(path)
    X, width = data.X, model.estimator.n_features_in_
    if X.shape[1] < width:
        X.resize(X.shape[0], width)
    unknown = int(np.count_nonzero(X.getnnz(axis=0)[width:]))
    return X[:, :width], data.y, unknown


def warn_of_unknown_features(path: str, unknown: int) -> None:
    """Say that features were left out, for the model does not know them."""
    if unknown:
        warnings.warn(f"{path}: {unknown} features unknown to the model are left out", stacklevel=2)


def label_index(column: int, n_columns: int, path: str) -> int:
    """A column number, which may count from the end, as one that counts from 0."""
    if not -n_columns <= column < n_columns:
        raise ValueError(
            f"{path}: no label column {column}, the file has {n_columns} columns (0 to "
            f"{n_columns - 1}, or -1 for the last)"
        )
    if n_columns < 2:
        raise ValueError(f"{path}: one column only, expected words and labels")
    return column % n_columns


def are_chunk_tags(labels: Sequence[str]) -> bool:
    """Whether labels look like those of chunks: O, and B-, I- (E-, S-, ...) with a type."""
    kinds = ("B-", "I-", "E-", "S-", "L-", "U-")
    return any(label.startswith("B-") or label.startswith("I-") for label in labels) and all(
        label == "O" or label.startswith(kinds) for label in labels
    )
