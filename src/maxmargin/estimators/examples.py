"""Some of the examples of whatever users keep them in."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..features import StoredLabels
from ..features.packing import PackedSequences, offsets_of
from ..formats import ConlluTreebank, TokenColumns, Treebank
from ..sparse_format import check_sparse
from ..types import Ints

__all__ = ["examples_at", "lasting", "n_examples_of"]


def lasting(X: Any) -> Any:
    """Examples that can be gone through more than once, unlike those of a generator."""
    is_generator = hasattr(X, "__iter__") and not hasattr(X, "__len__") and not sp.issparse(X)
    return list(X) if is_generator else X


def n_examples_of(X: Any) -> int:
    """How many examples there are."""
    if isinstance(X, (PackedSequences, StoredLabels, TokenColumns)):
        return len(X.offsets) - 1
    if isinstance(X, (ConlluTreebank, Treebank)):
        return len(X[0])
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def examples_at(X: Any, indices: Ints) -> Any:
    """The examples with these numbers, in the same kind of container; None of None."""
    if X is None:
        return None
    if isinstance(X, TokenColumns):
        return X.take(indices)
    if isinstance(X, StoredLabels):
        return X.of(indices.tolist())
    if isinstance(X, PackedSequences):
        lengths = np.diff(X.offsets)[indices]
        tokens = np.concatenate([np.arange(X.offsets[i], X.offsets[i + 1]) for i in indices])
        return PackedSequences(X.tokens[tokens], offsets_of(lengths.tolist()))
    if isinstance(X, ConlluTreebank):
        return X.select(indices.tolist())
    if isinstance(X, Treebank):
        fields: list[Any] = [[field[i] for i in indices] for field in X]
        return Treebank(*fields)
    if hasattr(X, "iloc"):
        return X.iloc[indices]
    if sp.issparse(X) or isinstance(X, np.ndarray):
        check_sparse(X, "X")
        return X[indices]
    return [X[i] for i in indices]
