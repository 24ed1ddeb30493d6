"""Bring sequences of words, or of tuples of strings, into columns."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

from ..formats.columns import TokenColumns
from ..utils.types import Ints
from .containers import as_list, as_tuples, is_frame
from .packing import check_list_of_sequences, offsets_of

__all__ = ["TokenChunks", "as_token_columns", "tokens_of", "word_of"]

#: Names of features that are the word of a token, the plain ones first.
WORD_NAMES = (
    *("word", "form", "token", "text", "w", "word[0]", "w[0]", "0:word", "+0:word"),
    *("word.lower()", "word.lower", "word_lower", "lower(w[0])", "lower", "lemma"),
)
SHOWN = 2  # features that stand for a token without any of them


class TokenChunks:
    """Sequences that are brought into columns some at a time, to be checked on the way.

    Parameters
    ----------
    X : TokenColumns, or list of sequences
        As for `as_token_columns`.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n_sequences + 1,)
        Where the tokens of each sequence begin.
    """

    def __init__(self, X: Any) -> None:
        if isinstance(X, TokenColumns):
            self._X: Any = as_token_columns(X)
            self.offsets = X.offsets
            return
        self._X = as_list(X)
        check_list_of_sequences(self._X)
        self.offsets = offsets_of(list(map(len, self._X)))

    def columns(self, first: int, end: int) -> TokenColumns:
        """Sequences ``first`` to ``end - 1``; errors are those of `as_token_columns` for all.

        Parameters
        ----------
        first, end : int
            Numbers of sequences.

        Returns
        -------
        TokenColumns
        """
        if isinstance(self._X, TokenColumns):
            offsets = self.offsets[first : end + 1]
            own = slice(int(offsets[0]), int(offsets[-1]))
            return TokenColumns([column[own] for column in self._X.columns], offsets - own.start)
        if first == 0 and end == len(self._X):
            return as_token_columns(self._X)
        try:
            some = as_token_columns(self._X[first:end])
        except ValueError:
            as_token_columns(self._X)  # names the place among all
            raise
        if _kind_of_tokens(self._X[first]) != _kind_of_tokens(self._X[0]):
            as_token_columns(self._X)  # refuses both kinds of tokens beside each other
        return some


def word_of(token: Any) -> str | None:
    """What stands for a token: its word, or else its first features that have a name and a value.

    Parameters
    ----------
    token : object
        A string; a tuple of strings, the word first; a list of feature strings
        (``"word.lower=the"``); or a dict (``{"word.lower()": "the"}``, ``{"w[0]=the": 1.0}``).

    Returns
    -------
    str or None
        None where nothing is named.
    """
    if isinstance(token, str):
        return token
    if isinstance(token, tuple):
        return token[0] if token and isinstance(token[0], str) else None
    if isinstance(token, dict):
        texts = [f"{k}={v}" if isinstance(v, str) else str(k) for k, v in token.items()]
    elif isinstance(token, list) and token and all(isinstance(text, str) for text in token):
        texts = token
    else:
        return None
    named = [text for text in texts if "=" in text]
    values = {name.lower(): value for name, _, value in (t.partition("=") for t in named)}
    known = next((values[name] for name in WORD_NAMES if values.get(name)), None)
    if known is not None:
        return known
    if isinstance(token, list) and not named:  # columns
        return texts[0]
    return " ".join(named[:SHOWN]) or None


def tokens_of(sequence: Any) -> list[Any]:
    """The tokens of a sequence, as `word_of` takes them; those of a DataFrame as dicts."""
    if is_frame(sequence):
        names = [str(name) for name in sequence.columns]
        return [dict(zip(names, row, strict=True)) for row in as_tuples(sequence)]
    return sequence if isinstance(sequence, list) else []


def _kind_of_tokens(sequence: Any) -> int:
    """How many strings tokens have; 0 where they are strings themselves."""
    if is_frame(sequence):
        return int(sequence.shape[1])
    token = next(iter(sequence))
    return 0 if isinstance(token, str) else len(token)


def as_token_columns(X: Any) -> TokenColumns:
    """Turn a list of sequences of tokens into columns, checking it on the way.

    Parameters
    ----------
    X : TokenColumns, or list of sequences
        A sequence is a list of tokens, a token a string or a list or tuple of strings; or a
        DataFrame of strings, tokens in rows.

    Returns
    -------
    TokenColumns

    Raises
    ------
    ValueError
        Empty sequence, tokens with differing numbers of columns, or something that is not a
        string; the message names sequence and token.
    """
    if isinstance(X, TokenColumns):
        if any(len(column) != X.n_tokens for column in X.columns) or not X.columns:
            raise ValueError(f"expected columns of {X.n_tokens} tokens, as the offsets say")
        if (np.diff(X.offsets) <= 0).any():
            bad = int(np.argmax(np.diff(X.offsets) <= 0))
            raise ValueError(f"sequence {bad} is empty, expected at least one token")
        return X
    X = as_list(X)
    check_list_of_sequences(X)
    X = [as_tuples(sequence) if is_frame(sequence) else sequence for sequence in X]
    tokens = list(chain.from_iterable(X))
    offsets = offsets_of(list(map(len, X)))
    columns = _columns_of(tokens)
    if columns is None:
        raise ValueError(_complaint(tokens, offsets))
    return TokenColumns(columns, offsets)


def _columns_of(tokens: list[Any]) -> list[list[str]] | None:
    """Transpose the tokens; None if they are not all strings or tuples of strings of one size."""
    kinds = set(map(type, tokens))
    if _all_are(str, kinds):
        return [_plain_strings(tokens, kinds)]
    if not _all_are((list, tuple), kinds) or len(set(map(len, tokens))) != 1:
        return None
    width = len(tokens[0])
    fields = list(chain.from_iterable(tokens))
    kinds = set(map(type, fields))
    if width == 0 or not _all_are(str, kinds):
        return None
    return [_plain_strings(fields[j::width], kinds) for j in range(width)]


def _all_are(kind: type | tuple[type, ...], found: set[type]) -> bool:
    """Tell whether all types found are of a kind."""
    return all(issubclass(own, kind) for own in found)


def _plain_strings(values: list[str], kinds: set[type]) -> list[str]:
    """Turn strings of subclasses, such as numpy's, into Python's own."""
    return values if kinds <= {str} else [str(value) for value in values]


def _complaint(tokens: list[Any], offsets: Ints) -> str:
    """Name the first token that is not like the first one, or not like any token."""
    width = len(tokens[0]) if isinstance(tokens[0], (list, tuple)) else 0

    def is_good(token: Any) -> bool:
        if width == 0:
            return isinstance(token, str)
        is_tuple = isinstance(token, (list, tuple)) and len(token) == width
        return is_tuple and all(isinstance(field, str) for field in token)

    row, token = next(item for item in enumerate(tokens) if not is_good(item[1]))
    sequence = int(np.searchsorted(offsets, row, side="right")) - 1
    wanted = f"a tuple of {width} strings" if width else "a string"
    return (
        f"sequence {sequence}, token {row - int(offsets[sequence])} is {token!r:.60}, "
        f"expected {wanted}"
    )
