"""svmlight / libsvm files: a label, then ``index:value`` pairs, indices from 1."""

from __future__ import annotations

import math
from array import array
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin.formats.opening import PathLike, open_binary, open_text

__all__ = ["SvmlightData", "read_svmlight"]


class SvmlightData(NamedTuple):
    """Content of an svmlight file.

    Attributes
    ----------
    X : csr_matrix of float64, shape (n_examples, n_features)
    y : ndarray
        int64 where all labels are whole numbers, float64 where all are numbers, else strings.
    qid : ndarray of int64 or None
        Query of each example, if the file gives it for every line.
    """

    X: Any
    y: NDArray[Any]
    qid: NDArray[np.int64] | None


def read_svmlight(path: PathLike, n_features: int | None = None) -> SvmlightData:
    """Read an svmlight file, plain or compressed (``.gz``, ``.xz``, ``.bz2``).

    Indices count from 1, always: guessing from the smallest index found would shift the features
    of a file that happens not to use the first one.

    Parameters
    ----------
    path : str or path-like
        File to read.
    n_features : int, optional
        Number of features; by default the largest index. Give the training set's number when
        reading a test set, which need not use the last features.

    Returns
    -------
    SvmlightData
        ``X``, ``y`` and ``qid`` (None if the file has none).

    Raises
    ------
    ValueError
        Bad label, bad pair, index below 1 or above ``n_features``, indices that do not increase,
        NaN or infinite value, no examples; the message names file and line.
    """
    data = _read_fast(path, n_features)
    # The fast reader cannot say where an error is, nor read labels that are words.
    return data if data is not None else _read_carefully(path, n_features)


def _read_fast(path: PathLike, n_features: int | None) -> SvmlightData | None:
    """Read with scikit-learn's compiled parser; None where it fails or something looks wrong."""
    from sklearn.datasets import load_svmlight_file

    with open_binary(path) as stream:
        try:
            X, y, qid = load_svmlight_file(
                stream, n_features=n_features, zero_based=False, query_id=True
            )
        except (ValueError, IndexError, OverflowError):
            return None
    if X.shape[0] == 0 or not np.isfinite(X.data).all() or not np.isfinite(y).all():
        return None
    if len(qid) not in (0, X.shape[0]):
        return None
    return SvmlightData(
        sparse.csr_matrix(X), _whole_if_possible(y), qid.astype(np.int64) if len(qid) else None
    )


def _whole_if_possible(labels: NDArray[np.float64]) -> NDArray[Any]:
    """Turn labels that are all whole numbers into int64."""
    whole = np.all(labels == np.rint(labels)) and np.all(np.abs(labels) < 2**53)
    return labels.astype(np.int64) if whole else labels


class _BadLine(Exception):
    """What is wrong with a line; the caller knows which line it is."""


def _read_carefully(path: PathLike, n_features: int | None) -> SvmlightData:
    """Read line by line, so that an error can name its line."""
    labels: list[str] = []
    queries: list[int | None] = []
    indptr, indices, values = array("q", [0]), array("q"), array("d")
    with open_text(path) as stream:
        for number, line in enumerate(stream, 1):
            fields = line.partition("#")[0].split()
            if not fields:
                continue
            try:
                _check_label(fields[0], labels)
                query, pairs = _split_query(fields[1:])
                if queries and (query is None) != (queries[0] is None):
                    raise _BadLine("expected qid: on every line or on none")
                _append_pairs(pairs, n_features, indices, values)
            except _BadLine as error:
                raise ValueError(f"{path}:{number}: {error}") from None
            labels.append(fields[0])
            queries.append(query)
            indptr.append(len(indices))
    if not labels:
        raise ValueError(f"{path}: no examples found, expected a label and index:value pairs")
    columns = np.array(indices, dtype=np.int64) - 1
    width = n_features if n_features is not None else int(columns.max(initial=-1)) + 1
    X = sparse.csr_matrix((np.array(values), columns, np.array(indptr)), shape=(len(labels), width))
    numeric = _number(labels[0]) is not None
    y = _whole_if_possible(np.array(labels, dtype=np.float64)) if numeric else np.array(labels)
    has_queries = queries[0] is not None
    return SvmlightData(X, y, np.array(queries, dtype=np.int64) if has_queries else None)


def _number(text: str) -> float | None:
    """Read a number; None if the text is not one."""
    try:
        return float(text)
    except ValueError:
        return None


def _check_label(label: str, labels: list[str]) -> None:
    """Check a label against the kind (number or word) of the first one."""
    if ":" in label:
        raise _BadLine(f"expected a label first, found {label!r}")
    if "," in label:
        raise _BadLine(f"expected one label, found the list {label!r}")
    value = _number(label)
    if value is not None and not math.isfinite(value):
        raise _BadLine(f"expected a finite label, found {label!r}")
    if labels and (value is None) != (_number(labels[0]) is None):
        kind = "word" if value is not None else "number"
        raise _BadLine(f"expected a label that is a {kind} like the first one, found {label!r}")


def _split_query(fields: list[str]) -> tuple[int | None, list[str]]:
    """Take a leading ``qid:`` field off."""
    if not fields or not fields[0].startswith("qid:"):
        return None, fields
    try:
        return int(fields[0][4:]), fields[1:]
    except ValueError:
        raise _BadLine(f"expected a whole number after qid:, found {fields[0]!r}") from None


def _append_pairs(
    pairs: list[str], n_features: int | None, indices: array[int], values: array[float]
) -> None:
    """Check the ``index:value`` pairs of a line and append them."""
    previous = 0
    for pair in pairs:
        left, colon, right = pair.partition(":")
        try:
            index = int(left)
        except ValueError:
            index = None
        value = _number(right)
        if not colon or index is None or value is None:
            raise _BadLine(f"expected index:value, found {pair!r}")
        if index < 1:
            raise _BadLine(f"expected indices from 1, found {pair!r}")
        if n_features is not None and index > n_features:
            raise _BadLine(f"expected at most {n_features} features, found {pair!r}")
        if index <= previous:
            raise _BadLine(f"expected increasing indices, found {pair!r} after {previous}")
        if not math.isfinite(value):
            raise _BadLine(f"expected a finite value, found {pair!r}")
        indices.append(index)
        values.append(value)
        previous = index
