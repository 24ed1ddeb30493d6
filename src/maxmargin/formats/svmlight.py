"""svmlight / libsvm files: a label, then ``index:value`` pairs, indices from 1."""

from __future__ import annotations

import itertools
import math
import re
from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ..utils.sparse_format import check_sparse
from ..utils.types import Floats, Ints
from .opening import (
    BadLine,
    PathLike,
    Source,
    line_of_item,
    open_binary,
    read_lines,
    read_once,
)
from .writing import write_text_atomically

__all__ = [
    "SvmlightData",
    "append_pairs",
    "labels_as_array",
    "line_of_example",
    "read_svmlight",
    "write_svmlight",
]

LARGEST_INDEX = 2**31 - 1
_LARGEST_INT = 2**63 - 1
_LARGEST_EXACT = 2**53  # whole numbers up to here are all floating-point numbers too
# Stricter than Python, which reads 1_0 and digits of other scripts too.
_WHOLE = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER = re.compile(r"[+-]?(?:[0-9.]+(?:[eE][+-]?[0-9]+)?|nan|inf(?:inity)?)", re.IGNORECASE)

# Lines that are likely to be fine: all numbers are looked at later.
_LINE = re.compile(rb"[0-9.eE+-]+(?:[ \t]+qid:[0-9]+)?(?:[ \t]+[0-9]+:[0-9.eE+-]+)*")
_AT_A_TIME = 2**24  # bytes of lines

# What can be read back as a label: not the numbers that are none.
_LABEL = re.compile(r"(?!(?:nan|[+-]?inf(?:inity)?)\Z)[^\s:,#]+", re.IGNORECASE)


class SvmlightData(NamedTuple):
    """Content of an svmlight file.

    Attributes
    ----------
    X : csr_matrix of float64, shape (n_examples, n_features)
    y : ndarray
        int64 where all labels are whole numbers (up to 9223372036854775807), float64 where all are
        numbers, else strings. None if the file was read without labels. With ``multilabel`` a
        list with a tuple of labels, of these types, for each example.
    qid : ndarray of int64 or None
        Query of each example, if the file gives it for every line.
    """

    X: Any
    y: Any
    qid: Ints | None


def read_svmlight(
    path: Source,
    n_features: int | None = None,
    *,
    has_labels: bool = True,
    multilabel: bool = False,
    encoding: str = "utf-8",
) -> SvmlightData:
    """Read an svmlight file, plain or compressed (``.gz``, ``.xz``, ``.bz2``).

    Indices count from 1, always: guessing from the smallest index found would shift the features
    of a file that happens not to use the first one. scikit-learn's ``dump_svmlight_file`` writes
    such files with ``zero_based=False``.

    Parameters
    ----------
    path : str or path-like
        File to read.
    n_features : int, optional
        Number of features; by default the largest index. Give the training set's number when
        reading a test set, which need not use the last features.
    has_labels : bool, default=True
        Whether lines begin with a label.
    multilabel : bool, default=False
        Whether lines begin with any number of labels, none at all included, between commas.
        ``sklearn.preprocessing.MultiLabelBinarizer`` makes an indicator matrix from them.
    encoding : str, default="utf-8"
        Text encoding, for labels that are words.

    Returns
    -------
    SvmlightData
        ``X``, ``y`` and ``qid`` (None if the file has none).

    Raises
    ------
    ValueError
        Bad label, a label twice on a line, bad pair, index below 1, above ``n_features`` or above
        2147483647, indices that do not increase, NaN or infinite value, no examples; the message
        names file and line.
    """
    path = read_once(path)
    if multilabel and not has_labels:
        raise ValueError("a file cannot have several labels on a line and none: multilabel=True")
    data = _read_fast(path, n_features) if has_labels and not multilabel else None
    if data is not None:
        return data
    # The fast way cannot say where an error is, nor read labels that are words.
    return _read_carefully(path, n_features, has_labels, multilabel, encoding)


def write_svmlight(
    path: PathLike,
    X: Any,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    comments: Sequence[str] | None = None,
) -> None:
    """Write an svmlight file; with ``qid`` one of rankings, as SVM-rank and LETOR have them.

    Parameters
    ----------
    path : str or path-like
        File to write; ``.gz``, ``.xz`` and ``.bz2`` are compressed. It appears complete or not at
        all.
    X : array or sparse matrix of shape (n_examples, n_features)
        Features; zeros are left out, other values keep all their digits.
    y : array of shape (n_examples,)
        Labels: numbers, or words without blanks, colons, commas and ``#``.
    qid : array of int, shape (n_examples,), optional
        Query of each example. SVM-rank expects those of a query one after the other.
    comments : sequence of str, optional
        What follows ``#`` on each line, such as LETOR's ``docid = ...``.

    Raises
    ------
    ValueError
        Arrays that do not fit each other, values that are not finite, labels that cannot be read
        back.
    """
    check_sparse(X, "X")
    rows = sparse.csr_matrix(X, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    labels = np.asarray(y)
    queries = None if qid is None else np.asarray(qid)
    for name, values in (("y", labels), ("qid", queries), ("comments", comments)):
        if values is not None and len(values) != rows.shape[0]:
            raise ValueError(f"X has {rows.shape[0]} examples, but {name} has {len(values)}")
    if not np.isfinite(rows.data).all():
        raise ValueError("X has a NaN or an infinite value; features must be finite")
    if queries is not None and queries.dtype.kind not in "iu":
        raise ValueError(f"qid must be whole numbers, got {queries.dtype}")
    names = [str(label) for label in labels.tolist()]
    for i, name in enumerate(names):
        if not _LABEL.fullmatch(name):
            raise ValueError(f"y[{i}] is {name!r:.60}; expected a finite number or one word")
    with write_text_atomically(path) as stream:
        for i, name in enumerate(names):
            own = slice(rows.indptr[i], rows.indptr[i + 1])
            entries = zip(rows.indices[own].tolist(), rows.data[own].tolist(), strict=True)
            fields = [name] if queries is None else [name, f"qid:{queries[i]}"]
            fields += [f"{f + 1}:{value:.17g}" for f, value in entries]
            if comments is not None:
                fields.append(f"# {comments[i]}".replace("\n", " "))
            stream.write(" ".join(fields) + "\n")


def _read_fast(path: Source, n_features: int | None) -> SvmlightData | None:
    """Read many lines at a time; None where something looks wrong."""
    parts = []
    with open_binary(path) as stream:
        while lines := stream.readlines(_AT_A_TIME):
            part = _read_lines([own for line in lines if (own := line.partition(b"#")[0].strip())])
            if part is None:
                return None
            parts.append(part)
    if not parts:
        return None
    y, qid, sizes, indices, values = map(np.concatenate, zip(*parts, strict=True))
    if not len(values) or len(qid) not in (0, len(y)):
        return None
    indptr = np.append(0, np.cumsum(sizes, dtype=np.int64))
    rises = np.diff(indices, prepend=0.0) > 0
    rises[indptr[:-1][sizes > 0]] = True
    if not rises.all() or not 1 <= indices.min() <= indices.max() <= LARGEST_INDEX:
        return None
    width = int(indices.max()) if n_features is None else n_features
    if indices.max() > width or not np.isfinite(values).all():
        return None
    if not max(np.abs(y).max(), np.abs(qid).max(initial=0)) < _LARGEST_EXACT:  # NaN, or digits lost
        return None
    X = sparse.csr_matrix((values, indices.astype(np.int64) - 1, indptr), shape=(len(y), width))
    return SvmlightData(X, _whole_if_possible(y), qid.astype(np.int64) if len(qid) else None)


def _read_lines(lines: list[bytes]) -> tuple[Floats, Floats, Ints, Floats, Floats] | None:
    """Labels, queries, numbers of pairs, indices and values; None where something looks wrong."""
    if not all(map(_LINE.fullmatch, lines)):
        return None
    n_queries = sum(b"qid:" in line for line in lines)
    if n_queries not in (0, len(lines)):
        return None
    ahead = 2 if n_queries else 1  # numbers before the pairs
    sizes = np.array([line.count(b":") for line in lines], dtype=np.int64) - (ahead - 1)
    text = b" ".join(lines).replace(b"qid:", b"").replace(b":", b" ")
    try:
        # Of what is no number NumPy warns, and reads no further: there are fewer then.
        numbers = np.fromstring(text, sep=" ")
    except (ValueError, DeprecationWarning):
        return None
    ends = np.cumsum(ahead + 2 * sizes)
    if len(numbers) != ends[-1:].sum():
        return None
    starts = ends - ahead - 2 * sizes
    in_pairs = np.ones(len(numbers), dtype=bool)
    in_pairs[starts] = False
    in_pairs[starts + ahead - 1] = False
    pairs = numbers[in_pairs]
    queries = numbers[starts + 1] if n_queries else np.empty(0)
    return numbers[starts], queries, sizes, pairs[::2], pairs[1::2]


def _whole_if_possible(labels: Floats) -> NDArray[Any]:
    """Turn labels that are all whole numbers into int64."""
    whole = np.all(labels == np.rint(labels)) and np.all(np.abs(labels) < _LARGEST_EXACT)
    return labels.astype(np.int64) if whole else labels


def line_of_example(path: Source, example: int, *, encoding: str = "utf-8") -> int:
    """The line of an example, for messages about what is wrong with it."""
    return line_of_item(path, example, _fields_of, encoding=encoding)


def _fields_of(line: str) -> list[str]:
    """What a line holds before its comment."""
    return line.partition("#")[0].split()


def _read_carefully(
    path: Source,
    n_features: int | None,
    has_labels: bool = True,
    multilabel: bool = False,
    encoding: str = "utf-8",
) -> SvmlightData:
    """Read line by line, so that an error can name its line."""
    labels: list[str] = []
    n_labels: list[int] = []
    queries: list[int | None] = []
    indptr, indices, values = array("q", [0]), array("q"), array("d")

    def add(_: int, line: str) -> None:
        fields = _fields_of(line)
        if not fields:
            return
        if has_labels:
            own = _split_labels(fields) if multilabel else [fields.pop(0)]
            for label in own:
                _check_label(label, labels)
                labels.append(label)
            n_labels.append(len(own))
        query, pairs = _split_query(fields)
        if queries and (query is None) != (queries[0] is None):
            raise BadLine("expected qid: on every line or on none")
        append_pairs(pairs, n_features, indices, values)
        queries.append(query)
        indptr.append(len(indices))

    for _ in read_lines(path, add, encoding=encoding):
        pass
    if not queries:
        what = "a label and index:value pairs" if has_labels else "index:value pairs"
        raise ValueError(f"{path}: no examples found, expected {what} on each line")
    columns = np.array(indices, dtype=np.int64) - 1
    width = n_features if n_features is not None else int(columns.max(initial=-1)) + 1
    shape = (len(queries), width)
    X = sparse.csr_matrix((np.array(values), columns, np.array(indptr)), shape=shape)
    has_queries = queries[0] is not None
    qid = np.array(queries, dtype=np.int64) if has_queries else None
    if not has_labels:
        return SvmlightData(X, None, qid)
    y = labels_as_array(labels)
    return SvmlightData(X, _as_tuples(y, n_labels) if multilabel else y, qid)


def _split_labels(fields: list[str]) -> list[str]:
    """Take the labels off, which are none where a pair or a query comes first."""
    if ":" in fields[0]:
        return []
    listed = fields.pop(0)
    own = listed.split(",")
    if "" in own:
        raise BadLine(f"expected labels between commas, found {listed!r:.60}")
    if len(set(own)) < len(own):
        raise BadLine(f"expected different labels, found {listed!r:.60}")
    return own


def _as_tuples(labels: NDArray[Any], n_labels: list[int]) -> list[tuple[Any, ...]]:
    """So many labels for each example, of Python's own types."""
    left = iter(labels.tolist())
    return [tuple(itertools.islice(left, n)) for n in n_labels]


def labels_as_array(labels: list[str]) -> NDArray[Any]:
    """Labels as numbers, if that is what they are."""
    if not labels:
        return np.empty(0, np.int64)
    if _number(labels[0]) is None:
        return np.array(labels)
    whole = [_whole_number(label, _LARGEST_INT) for label in labels]
    if None not in whole:
        return np.array(whole, dtype=np.int64)
    return _whole_if_possible(np.array(labels, dtype=np.float64))


def _number(text: str) -> float | None:
    """Read a number; None if the text is not one."""
    try:
        return float(text) if _NUMBER.fullmatch(text) else None
    except ValueError:
        return None


def _whole_number(text: str, largest: int) -> int | None:
    """Read a whole number up to a limit; None if the text is not one."""
    value = int(text) if _WHOLE.fullmatch(text) else None
    return value if value is not None and abs(value) <= largest else None


def _check_label(label: str, labels: list[str]) -> None:
    """Check a label against the kind (number or word) of the first one."""
    if ":" in label:
        raise BadLine(f"expected a label first, found {label!r:.60}")
    if "," in label:
        raise BadLine(f"expected one label, found the list {label!r:.60}")
    value = _number(label)
    if value is not None and not math.isfinite(value):
        raise BadLine(f"expected a finite label, found {label!r:.60}")
    if labels and (value is None) != (_number(labels[0]) is None):
        kind = "word" if value is not None else "number"
        raise BadLine(f"expected a label that is a {kind} like the first one, found {label!r:.60}")


def _split_query(fields: list[str]) -> tuple[int | None, list[str]]:
    """Take a leading ``qid:`` field off."""
    if not fields or not fields[0].startswith("qid:"):
        return None, fields
    query = _whole_number(fields[0][4:], _LARGEST_INT)
    if query is None:
        raise BadLine(f"expected a whole number after qid:, found {fields[0]!r:.60}")
    return query, fields[1:]


def append_pairs(
    pairs: list[str], n_features: int | None, indices: array[int], values: array[float]
) -> None:
    """Check the ``index:value`` pairs of a line and append them."""
    previous = 0
    for pair in pairs:
        left, colon, right = pair.partition(":")
        value = _number(right)
        if not colon or not left.lstrip("+-").isdecimal() or value is None:
            raise BadLine(f"expected index:value, found {pair!r:.60}")
        index = _whole_number(left, LARGEST_INDEX)
        if index is None:
            raise BadLine(f"expected indices from 1 to {LARGEST_INDEX}, found {pair!r:.60}")
        if index < 1:
            raise BadLine(
                f"expected indices from 1, found {pair!r:.60} (scikit-learn's dump_svmlight_file "
                "needs zero_based=False)"
            )
        if n_features is not None and index > n_features:
            raise BadLine(f"expected at most {n_features} features, found {pair!r:.60}")
        if index <= previous:
            raise BadLine(f"expected increasing indices, found {pair!r:.60} after {previous}")
        if not math.isfinite(value):
            raise BadLine(f"expected a finite value, found {pair!r:.60}")
        indices.append(index)
        values.append(value)
        previous = index
