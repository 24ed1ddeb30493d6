"""What users keep examples in: lists, generators, arrays of objects, pandas and polars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

__all__ = [
    "as_list",
    "as_tuples",
    "frame_columns",
    "frame_matrix",
    "frame_rows",
    "is_frame",
    "is_item_sequence",
    "is_numeric_frame",
]


def is_frame(value: Any) -> bool:
    """Whether a value is a DataFrame of pandas or polars; neither is needed to tell."""
    return hasattr(value, "columns") and (hasattr(value, "iloc") or _is_polars(value))


def _is_polars(value: Any) -> bool:
    """Whether a value is of polars."""
    return type(value).__module__.partition(".")[0] == "polars"


def is_item_sequence(value: Any) -> bool:
    """Whether a value is an ItemSequence of python-crfsuite, which gives its tokens as dicts."""
    return hasattr(value, "items") and not hasattr(value, "__iter__")


def as_list(values: Any, name: str = "X") -> Any:
    """Examples as something with a length: a list where they are a generator or a CheckpointGroup.

    All else is left to those who know what is expected, but for one DataFrame or sparse matrix,
    which cannot be examples that differ in length.
    """
    if issparse(values):
        raise ValueError(
            f"{name} is one sparse matrix of shape {values.shape}; expected a list with one for "
            "each example"
        )
    if is_frame(values):
        raise ValueError(
            f"{name} is one DataFrame; expected a list with one for each example, such as "
            f"[part for _, part in {name}.groupby('sentence')]"
        )
    if _is_polars(values):
        return values.to_list()
    if hasattr(values, "iloc") or (hasattr(values, "__iter__") and not hasattr(values, "__len__")):
        return list(values)
    return values


def as_tuples(sequence: Any) -> Any:
    """A sequence of tokens as a list: rows of a DataFrame as tuples, what a generator gives."""
    if is_frame(sequence):
        if _is_polars(sequence):
            return sequence.rows()
        return list(sequence.itertuples(index=False, name=None))
    return as_list(sequence)


def is_numeric_frame(frame: Any) -> bool:
    """Whether all columns of a DataFrame hold numbers or truth values."""
    if _is_polars(frame):
        return all(dtype.is_numeric() or str(dtype) == "Boolean" for dtype in frame.dtypes)
    return all(dtype.kind in "biuf" for dtype in frame.dtypes)


def frame_matrix(frame: Any) -> NDArray[Any]:
    """The numbers of a DataFrame; missing ones are NaN."""
    if _is_polars(frame):
        matrix = frame.fill_null(np.nan).to_numpy()
        return matrix if matrix.dtype == np.float32 else matrix.astype(np.float64)
    single = all(dtype == np.float32 for dtype in frame.dtypes)
    return frame.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)


def frame_rows(frame: Any) -> list[dict[str, Any]]:
    """Rows of a DataFrame as named features."""
    names = [str(column) for column in frame.columns]
    return [dict(zip(names, row, strict=True)) for row in as_tuples(frame)]


def frame_columns(X: Any) -> list[str] | None:
    """Names of the columns of sequences that are DataFrames of numbers; ValueError if they differ.

    None where there are no such names.
    """
    if isinstance(X, (np.ndarray, Mapping)) or not hasattr(X, "__iter__"):
        return None
    names: list[Any] | None = None
    for i, sequence in enumerate(X):
        if not is_frame(sequence) or not is_numeric_frame(sequence):
            return None
        columns = list(sequence.columns)
        if names is not None and columns != names:
            raise ValueError(
                f"sequence {i} has the columns {columns!r:.80}, but sequence 0 has {names!r:.80}"
            )
        names = columns
    return names if names and all(isinstance(name, str) for name in names) else None
