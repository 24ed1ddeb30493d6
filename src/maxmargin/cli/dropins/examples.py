"""Files of SVM-light, with or without ``qid:``, for the tools that read them."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from ...formats import SvmlightData, open_text, read_svmlight
from ...formats.opening import Source
from ...formats.recognising import Kind, recognise
from ...types import Ints
from ..data import open_input

__all__ = ["Examples", "raise_at", "read_examples", "with_width"]

_KINDS = (Kind.SVMLIGHT, Kind.LETOR, Kind.SVM_HMM, Kind.QUERIES)


class Examples(NamedTuple):
    """Rows of a file: features, labels, queries if it has them, and where each query begins."""

    source: Source
    X: Any
    y: Any
    qid: Any

    @property
    def offsets(self) -> Ints:
        """Where the rows of each query begin, and their number last."""
        starts = np.flatnonzero(np.diff(self.qid)) + 1
        return np.concatenate([[0], starts, [len(self.qid)]]).astype(np.int64)


def read_examples(path: str, needs_queries: bool) -> Examples:
    """Read a file; ValueError says which line is wrong."""
    source = open_input(path)
    kind = recognise(source)
    if kind is not None and kind not in _KINDS:
        form = "LABEL qid:N INDEX:VALUE" if needs_queries else "LABEL INDEX:VALUE"
        raise ValueError(f"{source}: this is {kind.value}, expected lines {form} ... # comment")
    data: SvmlightData = read_svmlight(source)
    if data.y.dtype.kind not in "if":
        _check_numeric(source, data.y)
    examples = Examples(source, data.X, data.y, data.qid)
    if needs_queries and data.qid is None:
        raise_at(examples, 0, "expected qid: behind the label, found none")
    return examples


def _check_numeric(source: Source, labels: Any) -> None:
    """Labels of SVM-light are numbers."""
    bad = Examples(source, None, labels, None)
    raise_at(bad, 0, f"expected a number as label, found {str(labels[0])!r:.40}")


def raise_at(examples: Examples, row: int, what: str) -> None:
    """Raise ValueError that names the line of a row."""
    with open_text(examples.source) as stream:
        rows = (n for n, line in enumerate(stream, 1) if line.partition("#")[0].strip())
        number = next(itertools.islice(rows, row, None))
    raise ValueError(f"{examples.source}:{number}: {what}")


def with_width(X: Any, width: int) -> Any:
    """X with so many features; others are unknown to a model, and left out."""
    if X.shape[1] < width:
        X = X.copy()
        X.resize(X.shape[0], width)
    return X[:, :width]
