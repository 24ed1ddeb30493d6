"""Inputs as they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...features.packing import PackedSequences
from ...formats import ConlluTreebank, TokenColumns

__all__ = ["row_in_words", "sequence_at", "words_of"]

MOST_VALUES = 12
WORD_KEYS = ("word", "form", "token", "text", "w")


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
    if isinstance(sequence, (np.ndarray, sp.sparray, sp.spmatrix)) or hasattr(sequence, "iloc"):
        return [str(t + 1) for t in range(sequence.shape[0])]
    return [_word(token, t) for t, token in enumerate(sequence)]


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


def _word(token: Any, place: int) -> str:
    """The word of a token."""
    if isinstance(token, str):
        return token
    if isinstance(token, dict):
        for key in WORD_KEYS:
            if isinstance(token.get(key), str):
                return str(token[key])
        named = next((str(value) for value in token.values() if isinstance(value, str)), None)
        return named if named is not None else str(place + 1)
    if isinstance(token, (tuple, list)) and token and isinstance(token[0], str):
        return token[0]
    return str(place + 1)
