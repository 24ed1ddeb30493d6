"""Numbers for named features: tokens given as dicts or as lists of feature strings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..utils.schema import from_values
from ..utils.sklearn_bases import Estimator
from ..utils.types import Floats, Ints
from ..utils.validation import first_unusable, unusable
from .packing import (
    PackedSequences,
    named_tokens,
    offsets_of,
    tidy_csr,
)

__all__ = ["FeatureDictionary"]

_LISTS = (list, tuple, set, frozenset)
_NUMBERS = (Real, np.bool_)


class _State(NamedTuple):
    """What a file keeps of a dictionary."""

    min_count: int
    feature_names: list[str]


class FeatureDictionary(Estimator):
    """Number the features of tokens given as dicts or as lists of strings.

    In a dict, a number is the value of the feature named by its key, a boolean is 0 or 1, and a
    string makes the feature "key=string" of value 1. In a list, tuple or set, each string is a
    feature of value 1; repeated strings add up. Dicts and lists may be nested, as in
    python-crfsuite: ``{"prefix": {"two": "th"}}`` makes "prefix:two=th", and
    ``{"near": ["the", "cat"]}`` makes "near:the" and "near:cat". Features not seen by ``fit`` are
    dropped by ``transform``.

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
            from sklearn.exceptions import NotFittedError

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

    def names_of(self, numbers: Ints) -> NDArray[np.object_]:
        """Names of some of the features.

        Parameters
        ----------
        numbers : ndarray of int
            Columns of what `transform` gives.

        Returns
        -------
        ndarray of str objects
        """
        return np.array([self.feature_names_[f] for f in numbers], dtype=object)

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
    if not (tokens and _all_are(Mapping, tokens)):
        if _all_are(_LISTS, tokens) and _all_are(str, chain.from_iterable(tokens)):
            names = list(chain.from_iterable(tokens))
            return _Flat(names, np.ones(len(names)), _lengths(tokens), offsets)
        return _flatten_slowly(tokens, offsets)
    keys = list(chain.from_iterable(tokens))
    raw = list(chain.from_iterable(token.values() for token in tokens))
    if not (_all_are(str, keys) and _all_are((str, *_NUMBERS), raw)):
        return _flatten_slowly(tokens, offsets)
    named = zip(keys, raw, strict=True)
    names = [f"{key}={value}" if isinstance(value, str) else key for key, value in named]
    try:
        values = np.array([1.0 if isinstance(v, str) else float(v) for v in raw], dtype=np.float64)
    except OverflowError:
        return _flatten_slowly(tokens, offsets)  # says where
    return _checked(names, values, _lengths(tokens), offsets)


def _flatten_slowly(tokens: list[Any], offsets: Ints) -> _Flat:
    """Do the same for tokens of several kinds, with what is nested in them."""
    names: list[str] = []
    values: list[float] = []
    counts = []
    for row, token in enumerate(tokens):
        before = len(names)
        try:
            for name, value in _named_values(token):
                names.append(name)
                values.append(value)
        except _BadToken as error:
            raise ValueError(f"{_place(row, offsets)}{error}") from None
        counts.append(len(names) - before)
    return _checked(names, np.array(values, dtype=np.float64), np.array(counts), offsets)


class _BadToken(Exception):
    """What is wrong with a token; the caller knows which one it is."""


def _named_values(token: Any, prefix: str = "") -> Iterator[tuple[str, float]]:
    """Names and values of the features of a token, or of what is nested in it behind a prefix."""
    if isinstance(token, (str, bytes)) or not hasattr(token, "__iter__"):
        raise _BadToken(
            f" is {type(token).__name__} {token!r:.40}, expected a dict or a list of feature "
            "strings (for words, see WindowFeatures)"
        )
    is_dict = isinstance(token, Mapping)
    items: Iterable[Any] = token.items() if is_dict else zip(token, repeat(1.0), strict=False)
    for key, value in items:
        if not isinstance(key, str):
            what = f"feature name {key!r:.40} is not a string"
            if not is_dict:
                what = f"holds {type(key).__name__} {key!r:.40}, expected feature strings"
            raise _BadToken(f": {what}" if is_dict else f" {what}")
        if isinstance(value, str):
            yield f"{prefix}{key}={value}", 1.0
        elif isinstance(value, _NUMBERS):
            try:
                yield f"{prefix}{key}", float(value)
            except OverflowError:
                raise _BadToken(
                    f", feature {prefix + key!r}: the value is a whole number beyond all floats"
                ) from None
        elif isinstance(value, (Mapping, *_LISTS)):
            yield from _named_values(value, f"{prefix}{key}:")
        else:
            raise _BadToken(
                f", feature {prefix + key!r}: value {value!r:.40} is of type "
                f"{type(value).__name__}, expected a number, a boolean, a string, or a dict or "
                "list of those"
            )


def _all_are(kinds: Any, values: Iterable[Any]) -> bool:
    """Tell whether all values are of some types, asking once for each type found."""
    return all(issubclass(found, kinds) for found in set(map(type, values)))


def _lengths(tokens: list[Any]) -> Ints:
    """Number of features of each token."""
    return np.fromiter(map(len, tokens), np.int64, len(tokens))


def _checked(names: list[str], values: Floats, counts: Ints, offsets: Ints) -> _Flat:
    """The features, unless a value is of no use."""
    bad = first_unusable(values)
    if bad is not None:
        where = _place(_row_of(bad, counts), offsets)
        raise ValueError(f"{where}, feature {names[bad]!r}: {unusable(values[bad])}")
    return _Flat(names, values, counts, offsets)


def _row_of(item: int, counts: Ints) -> int:
    """Token that flat item belongs to."""
    return int(np.searchsorted(np.cumsum(counts), item, side="right"))


def _place(row: int, offsets: Ints) -> str:
    """Name sequence and token of a flat token number."""
    sequence = int(np.searchsorted(offsets, row, side="right")) - 1
    return f"sequence {sequence}, token {row - int(offsets[sequence])}"
