"""Numbers for named features: tokens given as dicts or as lists of feature strings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from ..declared import from_values
from ..types import Floats, Ints
from .packing import (
    PackedSequences,
    named_tokens,
    offsets_of,
    tidy_csr,
)

__all__ = ["FeatureDictionary"]


class _State(NamedTuple):
    """What a file keeps of a dictionary."""

    min_count: int
    feature_names: list[str]


class FeatureDictionary(BaseEstimator):
    """Number the features of tokens given as dicts or as lists of strings.

    In a dict, a number is the value of the feature named by its key, a boolean is 0 or 1, and a
    string makes the feature "key=string" of value 1. In a list, each string is a feature of value
    1; repeated strings add up. Features not seen by ``fit`` are dropped by ``transform``.

    Parameters
    ----------
    min_count : int, default=1
        Features found in fewer tokens are left out.

    Attributes
    ----------
    feature_names_ : list of str
        Names in the order of their numbers: the most frequent first, so that the weights most
        often used lie together in memory; ties in alphabetical order.

    Examples
    --------
    >>> words = [[{"word": "the"}, {"word": "cat", "length": 3}]]
    >>> dictionary = FeatureDictionary().fit(words)
    >>> dictionary.feature_names_
    ['length', 'word=cat', 'word=the']
    >>> dictionary.transform(words).tokens.toarray().tolist()
    [[0.0, 0.0, 1.0], [3.0, 1.0, 0.0]]
    """

    def __init__(self, min_count: int = 1) -> None:
        self.min_count = min_count

    def fit(self, X: Sequence[Any], y: Any = None) -> FeatureDictionary:
        """Collect the feature names of X.

        Parameters
        ----------
        X : list of sequences
            Each a list of dicts, or of lists of feature strings.
        y : ignored

        Returns
        -------
        self
        """
        self._fit(_flatten(X))
        return self

    def transform(self, X: Sequence[Any]) -> PackedSequences:
        """Turn sequences into one CSR matrix.

        Parameters
        ----------
        X : list of sequences
            Each a list of dicts, or of lists of feature strings.

        Returns
        -------
        PackedSequences
        """
        if not hasattr(self, "feature_names_"):
            raise NotFittedError("this FeatureDictionary is not fitted yet: call fit first")
        return self._transform(_flatten(X))

    def fit_transform(self, X: Sequence[Any], y: Any = None) -> PackedSequences:
        """Fit, and transform the same sequences.

        Parameters
        ----------
        X : list of sequences
            Each a list of dicts, or of lists of feature strings.
        y : ignored

        Returns
        -------
        PackedSequences
        """
        flat = _flatten(X)
        self._fit(flat)
        return self._transform(flat)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the features, in the order of the columns.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of str objects
        """
        return np.array(self.feature_names_, dtype=object)

    def to_state(self) -> dict[str, Any]:
        """Give what was learned as JSON-able values.

        Returns
        -------
        dict
        """
        return {"min_count": self.min_count, "feature_names": list(self.feature_names_)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> FeatureDictionary:
        """Rebuild a fitted dictionary from `to_state`.

        Parameters
        ----------
        state : dict

        Returns
        -------
        FeatureDictionary
        """
        known = from_values(_State, dict(state), "features")
        dictionary = cls(min_count=known.min_count)
        dictionary._set_names(known.feature_names)
        return dictionary

    def _fit(self, flat: _Flat) -> None:
        """Choose and order the names."""
        counts = Counter(flat.names)
        kept = [name for name, count in counts.items() if count >= self.min_count]
        if not kept:
            raise ValueError("no features found: all tokens are empty, or min_count is too high")
        kept.sort()
        kept.sort(key=counts.__getitem__, reverse=True)  # stable: ties stay in alphabetical order
        self._set_names(kept)

    def _set_names(self, names: list[str]) -> None:
        """Set the learned attributes."""
        self.feature_names_ = names
        self.n_features_out_ = len(names)
        self._numbers = {name: number for number, name in enumerate(names)}

    def _transform(self, flat: _Flat) -> PackedSequences:
        """Look the names up and build the matrix."""
        columns = np.fromiter(
            map(self._numbers.get, flat.names, repeat(-1)), np.int32, len(flat.names)
        )
        rows = np.repeat(np.arange(len(flat.counts)), flat.counts)
        known = columns >= 0
        indptr = offsets_of(np.bincount(rows[known], minlength=len(flat.counts)).tolist())
        matrix = sparse.csr_array(
            (flat.values[known], columns[known], indptr),
            shape=(len(flat.counts), self.n_features_out_),
        )
        return PackedSequences(tidy_csr(matrix), flat.offsets)


class _Flat:
    """Names and values of all features of all tokens, zeros left out."""

    def __init__(
        self,
        names: list[str],
        values: Floats,
        counts: Ints,
        offsets: Ints,
    ) -> None:
        keep = values != 0.0
        if not keep.all():
            rows = np.repeat(np.arange(len(counts)), counts)
            counts = np.bincount(rows[keep], minlength=len(counts))
            names = [names[k] for k in np.flatnonzero(keep).tolist()]
            values = values[keep]
        self.names, self.values, self.counts, self.offsets = names, values, counts, offsets


def _flatten(X: Sequence[Any]) -> _Flat:
    """Check X and put the features of all tokens into flat lists."""
    X = named_tokens(X)
    tokens = list(chain.from_iterable(X))
    offsets = offsets_of([len(sequence) for sequence in X])
    dicts = [isinstance(token, Mapping) for token in tokens]
    if not (all(dicts) or not any(dicts)):
        bad = dicts.index(not dicts[0])
        raise ValueError(f"{_place(bad, offsets)} mixes dicts and lists with the tokens before it")
    if not dicts[0]:
        _check_string_lists(tokens, offsets)
    counts = np.fromiter(map(len, tokens), np.int64, len(tokens))
    if not dicts[0]:
        names = list(chain.from_iterable(tokens))
        return _Flat(names, np.ones(len(names)), counts, offsets)
    keys = list(chain.from_iterable(tokens))
    raw = list(chain.from_iterable(token.values() for token in tokens))
    _check_dict_items(keys, raw, counts, offsets)
    named = zip(keys, raw, strict=True)
    names = [f"{key}={value}" if isinstance(value, str) else key for key, value in named]
    values = np.array([1.0 if isinstance(v, str) else float(v) for v in raw], dtype=np.float64)
    if not np.isfinite(values).all():
        bad = int(np.argmax(~np.isfinite(values)))
        where = _place(_row_of(bad, counts), offsets)
        raise ValueError(f"{where}, feature {keys[bad]!r}: NaN or infinite value")
    return _Flat(names, values, counts, offsets)


def _check_string_lists(tokens: list[Any], offsets: Ints) -> None:
    """Check that every token is a list (tuple, set) of strings."""
    plain = {list, tuple, set, frozenset}
    if set(map(type, tokens)) <= plain and set(map(type, chain.from_iterable(tokens))) <= {str}:
        return
    for row, token in enumerate(tokens):
        if isinstance(token, (str, bytes)) or not hasattr(token, "__iter__"):
            raise ValueError(
                f"{_place(row, offsets)} is {type(token).__name__} {token!r:.40}, expected a "
                "dict or a list of feature strings (for words, see WindowFeatures)"
            )
        for feature in token:
            if not isinstance(feature, str):
                raise ValueError(
                    f"{_place(row, offsets)} holds {type(feature).__name__} {feature!r:.40}, "
                    "expected feature strings"
                )


def _check_dict_items(keys: list[Any], raw: list[Any], counts: Ints, offsets: Ints) -> None:
    """Check that keys are strings and values strings or real numbers."""
    allowed = (str, Real, np.bool_)
    if all(issubclass(kind, str) for kind in set(map(type, keys))) and all(
        issubclass(kind, allowed) for kind in set(map(type, raw))
    ):
        return
    for k, (key, value) in enumerate(zip(keys, raw, strict=True)):
        if isinstance(key, str) and isinstance(value, allowed):
            continue
        where = _place(_row_of(k, counts), offsets)
        if not isinstance(key, str):
            raise ValueError(f"{where}: feature name {key!r:.40} is not a string")
        raise ValueError(
            f"{where}, feature {key!r}: value {value!r:.40} is of type "
            f"{type(value).__name__}, expected a number, a boolean or a string"
        )


def _row_of(item: int, counts: Ints) -> int:
    """Token that flat item belongs to."""
    return int(np.searchsorted(np.cumsum(counts), item, side="right"))


def _place(row: int, offsets: Ints) -> str:
    """Name sequence and token of a flat token number."""
    sequence = int(np.searchsorted(offsets, row, side="right")) - 1
    return f"sequence {sequence}, token {row - int(offsets[sequence])}"
