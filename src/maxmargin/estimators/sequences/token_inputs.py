"""Sequences of tokens of any kind, as the rows of a matrix, and features of their transitions."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import chain
from numbers import Integral
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...engine.packed_problem import rows_between
from ...engine.parallel.threads import parallel_chunks
from ...engine.rows import Rows
from ...features import (
    FeatureDictionary,
    PackedSequences,
    WindowFeatures,
    holds_named_features,
    pack_sequences,
)
from ...features.containers import as_list, frame_columns
from ...features.tokens import TokenChunks
from ...formats import TokenColumns
from ...utils.schema import Count
from ...utils.sklearn_bases import clone
from ...utils.sparse_format import check_sparse
from ...utils.types import Ints

__all__ = [
    "VECTORS_WORTH_CUTTING",
    "TokenInputs",
    "TransitionInputs",
    "fit_transition_inputs",
    "from_vectors",
]

Value = TypeVar("Value")

WORD_WORK = 1e3  # counted work of a token, from its word to its label
# Counted work: each range brings weights, or all tables and strings, into the cache again.
VECTORS_WORTH_CUTTING, WORDS_WORTH_CUTTING = 5e6, 2e7


class TokenInputs(NamedTuple):
    """What turns the tokens of sequences into feature vectors: an extractor, or nothing.

    ``names`` are those of the columns of DataFrames, if the training sequences were such.
    """

    extractor: Any
    n_features: int
    names: NDArray[Any] | None = None

    @classmethod
    def fit(cls, features: Any, X: Any) -> tuple[TokenInputs, PackedSequences]:
        """Choose and fit what turns tokens into vectors, and pack the training data."""
        X, extractor, names = as_list(X), None, None
        if features is not None:
            if isinstance(features, type) or not hasattr(features, "fit_transform"):
                raise ValueError(
                    "features must be an extractor such as WindowFeatures(), or None; got "
                    f"{features!r:.60}"
                )
            if isinstance(X, PackedSequences):
                return _packed_by(features, X)
            extractor = clone(features)
        elif isinstance(X, TokenColumns):
            raise ValueError(
                "X holds columns of strings: set features, for example to WindowFeatures()"
            )
        elif not isinstance(X, PackedSequences) and _is_iterable(X) and holds_named_features(X):
            extractor = FeatureDictionary()
        if extractor is None:
            columns = frame_columns(X)
            names = None if columns is None else np.array(columns, dtype=object)
        # Packing again checks what an extractor of the user's gave.
        packed = pack_sequences(X if extractor is None else extractor.fit_transform(X))
        return cls(extractor, int(packed.tokens.shape[1]), names), packed

    @classmethod
    def of(cls, estimator: Any) -> TokenInputs:
        """Those of a fitted estimator, by its public attributes."""
        names = getattr(estimator, "feature_names_in_", None)
        return cls(estimator.features_, estimator.n_features_in_, names)

    def set_attributes(self, estimator: Any) -> None:
        """Let an estimator show them."""
        estimator.features_, estimator.n_features_in_ = self.extractor, self.n_features
        estimator.__dict__.pop("feature_names_in_", None)
        if self.names is not None:
            estimator.feature_names_in_ = self.names

    def packed(self, X: Any, *, check_values: bool = True) -> PackedSequences:
        """Sequences by the features of the training data."""
        X = as_list(X)
        names = frame_columns(X) if self.names is not None else None
        if names is not None and names != list(self.names):  # type: ignore[arg-type]
            raise ValueError(
                f"the sequences have the columns {names!r:.80}, but those of the training data "
                f"have {list(self.names)!r:.80}"  # type: ignore[arg-type]
            )
        extractor = None if isinstance(X, PackedSequences) else self.extractor
        return pack_sequences(X, extractor, n_features=self.n_features, check_values=check_values)

    def takes_words(self, X: Any) -> bool:
        """Whether features are found in columns of strings, as `from_words` does it."""
        return isinstance(self.extractor, WindowFeatures) and not isinstance(X, PackedSequences)

    def from_words(
        self,
        pieces: TokenChunks,
        work: Callable[[PackedSequences, int], Value],
        kind: Hashable,
        n_jobs: int | None,
    ) -> Iterator[Value]:
        """What work on words gives, some sequences at a time, in their order; threads share it.

        It takes the features of some sequences, and the number of the first; ``kind`` tells it
        from other work. Only to bring words into columns takes the GIL.
        """
        transform = self.extractor.transform

        def find(first: int, end: int) -> Value:
            return work(transform(pieces.columns(first, end)), first)

        kind = "words", kind
        return parallel_chunks(n_jobs, pieces.offsets, WORD_WORK, find, WORDS_WORTH_CUTTING, kind)

    def feature_names(self, numbers: Any) -> dict[int, str]:
        """Names of the features with these numbers; behind the last one is the constant."""
        listed: list[int] = np.asarray(numbers).tolist()
        own = [f for f in listed if f < self.n_features]
        if hasattr(self.extractor, "names_of"):  # of few features in less time than of all
            names = dict(zip(own, self.extractor.names_of(own), strict=True))
        else:
            made = None if self.extractor is None else self.extractor.get_feature_names_out()
            known = self.names if made is None else made
            names = {f: f"x{f}" if known is None else str(known[f]) for f in own}
        return {**names, self.n_features: "intercept"}


def from_vectors(
    rows: Rows,
    offsets: Ints,
    decode: Callable[[Rows, Ints, slice], Iterable[Value]],
    token_work: float,
    n_jobs: int | None,
) -> list[Value]:
    """What decoding gives, some sequences at a time, in their order; threads share it.

    It takes the rows and offsets of some sequences, and the places of their tokens among all.
    """

    def find(first: int, end: int) -> Iterable[Value]:
        own = offsets[first : end + 1]
        places = slice(int(own[0]), int(own[-1]))
        return decode(rows_between(rows, places.start, places.stop), own - own[0], places)

    parts = parallel_chunks(n_jobs, offsets, token_work, find, VECTORS_WORTH_CUTTING)
    return list(chain.from_iterable(parts))


def _packed_by(features: Any, X: PackedSequences) -> tuple[TokenInputs, PackedSequences]:
    """Sequences that a fitted extractor has packed already."""
    width = getattr(features, "n_features_out_", None)
    if width != X.tokens.shape[1]:
        is_fitted = "not fitted" if width is None else f"of {width} features"
        raise ValueError(
            f"the sequences are packed, with {X.tokens.shape[1]} features: expected the fitted "
            f"extractor that has made them in features, found one that is {is_fitted}"
        )
    return TokenInputs(copy.deepcopy(features), int(width)), pack_sequences(X)


def _is_iterable(X: Any) -> bool:
    """Whether X can be looped over."""
    return hasattr(X, "__iter__")


# ----- transition features ------------------------------------------------------------------------


class TransitionInputs(NamedTuple):
    """Where transition features come from: columns of the token features, or an extractor."""

    columns: NDArray[np.integer] | None
    extractor: WindowFeatures | FeatureDictionary | None
    n_features: Count

    def of(self, X: Any, tokens: Any) -> Any:
        """The transition features of sequences, whose token features are known."""
        if self.columns is not None:
            check_sparse(tokens, "X.tokens")
            return tokens[:, self.columns]
        return pack_sequences(as_list(X), self.extractor, n_features=self.n_features).tokens

    def feature_names(self, inputs: TokenInputs, numbers: Any) -> dict[int, str]:
        """Names of the transition features with these numbers."""
        listed: list[int] = np.asarray(numbers).tolist()
        if self.columns is not None:
            columns = self.columns[listed].astype(np.int64).tolist()
            names = inputs.feature_names(columns)
            return {f: names[column] for f, column in zip(listed, columns, strict=True)}
        assert self.extractor is not None
        names_out = self.extractor.get_feature_names_out()
        return {f: str(names_out[f]) for f in listed}


def fit_transition_inputs(
    chosen: Any, inputs: TokenInputs, X: Any, tokens: Any
) -> tuple[TransitionInputs | None, Any]:
    """Where a parameter says they come from, and those of the training data; or None."""
    if chosen is None:
        return None, None
    if hasattr(chosen, "fit_transform"):
        extractor = clone(chosen)
        try:
            found = pack_sequences(extractor.fit_transform(as_list(X))).tokens
        except ValueError as error:  # other features are made of the same sequences
            raise ValueError(f"transition_features: {error}") from error
        return TransitionInputs(None, extractor, int(found.shape[1])), found
    one = isinstance(chosen, (str, bytes, re.Pattern)) or not isinstance(chosen, Iterable)
    entries = [chosen] if one else list(chosen)
    if not entries:
        raise ValueError("transition_features is empty; None means that there are none")
    names = inputs.feature_names(np.arange(inputs.n_features))
    found = np.concatenate([_columns_of(entry, inputs, names) for entry in entries])
    columns = np.unique(found).astype(np.int64)
    own = TransitionInputs(columns, None, len(columns))
    return own, own.of(X, tokens)


def _columns_of(entry: Any, inputs: TokenInputs, names: dict[int, str]) -> Ints:
    """Columns that one entry of ``transition_features`` stands for; ValueError for none.

    Entries are numbers, names, keys of names, templates or patterns.
    """
    n, extractor = inputs.n_features, inputs.extractor
    if isinstance(entry, Integral) and not isinstance(entry, bool):
        if int(entry) not in range(n):
            raise ValueError(f"transition_features: no column {entry}, tokens have {n} features")
        return np.array([entry], np.int64)
    if isinstance(entry, str):
        if isinstance(extractor, WindowFeatures) and entry in extractor.templates_:
            return extractor.columns_of(entry)
        key = f"{entry}="
        found = [f for f in range(n) if names[f] == entry or names[f].startswith(key)]
    elif isinstance(entry, re.Pattern):
        found = [f for f in range(n) if entry.search(names[f])]
    else:
        raise ValueError(
            "transition_features must be an extractor, or names, templates, patterns or "
            f"numbers of token features, got {entry!r:.60}"
        )
    if not found:
        known = ", ".join(repr(names[f])[:40] for f in range(min(n, 4)))
        raise ValueError(
            f"transition_features: no token feature matches {entry!r:.60}; there are {n}, "
            f"such as {known}"
        )
    return np.array(found, np.int64)
