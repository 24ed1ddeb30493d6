"""Inputs as they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...features.packing import PackedSequences
from ...features.tokens import tokens_of, word_of
from ...formats import ConlluTreebank, TokenColumns

__all__ = ["row_in_words", "sequence_at", "words_of"]

MOST_VALUES = 12


def sequence_at(X: Any, i: int) -> Any:
    """The i-th sequence of whatever taggers take."""
    if isinstance(X, TokenColumns):
        start, stop = X.offsets[i], X.offsets[i + 1]
        return list(zip(*(column[start:stop] for column in X.columns), strict=True))
    if isinstance(X, PackedSequences):
        return X.tokens[X.offsets[i] : X.offsets[i + 1]]
    if isinstance(X, ConlluTreebank):
        return X.select([i])
    return X[i]


def words_of(sequence: Any) -> list[str]:
    """What stands for each token of a sequence: its word, if it can be told."""
    if isinstance(sequence, (np.ndarray, sp.sparray, sp.spmatrix)):
        return [str(t + 1) for t in range(sequence.shape[0])]
    words = [word_of(token) for token in tokens_of(sequence) or sequence]
    return [str(t + 1) if word is None else word for t, word in enumerate(words)]


def row_in_words(row: Any, names: Sequence[str] | None) -> str:
    """The largest values of a row of features, by name."""
    values = np.asarray(row.todense() if sp.issparse(row) else row, np.float64).ravel()
    order = np.argsort(-np.abs(values), kind="stable")[:MOST_VALUES]
    shown = [
        f"{names[f] if names is not None else f'x{f}'} = {values[f]:.4g}"
        for f in order.tolist()
        if values[f]
    ]
    return ", ".join(shown) or "all features are 0"
