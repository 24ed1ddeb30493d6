"""Sequences of tokens of any kind, as the rows of a matrix."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..engine.threads import parallel_chunks
from ..features import (
    FeatureDictionary,
    PackedSequences,
    WindowFeatures,
    holds_named_features,
    pack_sequences,
)
from ..features.containers import as_list, frame_columns
from ..features.tokens import TokenChunks
from ..formats import TokenColumns
from ..sklearn_bases import clone
from ..types import Ints

__all__ = ["VECTORS_WORTH_CUTTING", "TokenInputs"]

Value = TypeVar("Value")

WORD_WORK = 1e3  # counted work of a token, from its word to its label
# Counted work: each range brings weights, or all tables and strings, into the cache again.
VECTORS_WORTH_CUTTING, WORDS_WORTH_CUTTING = 5e6, 2e7


class TokenInputs:
    """For estimators of sequences: what turns their tokens into feature vectors."""

    n_jobs: int | None
    features: Any
    features_: Any
    feature_names_in_: NDArray[Any]
    n_features_in_: int

    def _fit_features(self, X: Any) -> PackedSequences:
        """Choose and fit what turns tokens into vectors, and pack the training data."""
        X = as_list(X)
        self.features_ = None
        self.__dict__.pop("feature_names_in_", None)
        if self.features is not None:
            if isinstance(self.features, type) or not hasattr(self.features, "fit_transform"):
                raise ValueError(
                    "features must be an extractor such as WindowFeatures(), or None; got "
                    f"{self.features!r:.60}"
                )
            if isinstance(X, PackedSequences):
                return self._packed_by(self.features, X)
            self.features_ = clone(self.features)
        elif isinstance(X, TokenColumns):
            raise ValueError(
                "X holds columns of strings: set features, for example to WindowFeatures()"
            )
        elif not isinstance(X, PackedSequences) and _is_iterable(X) and holds_named_features(X):
            self.features_ = FeatureDictionary()
        if self.features_ is None:
            names = frame_columns(X)
            if names is not None:
                self.feature_names_in_ = np.array(names, dtype=object)
            return pack_sequences(X)
        packed = self.features_.fit_transform(X)
        return pack_sequences(packed)  # checks what an extractor of the user's gave

    def _packed_by(self, features: Any, X: PackedSequences) -> PackedSequences:
        """Sequences that a fitted extractor has packed already."""
        width = getattr(features, "n_features_out_", None)
        if width != X.tokens.shape[1]:
            is_fitted = "not fitted" if width is None else f"of {width} features"
            raise ValueError(
                f"the sequences are packed, with {X.tokens.shape[1]} features: expected the fitted "
                f"extractor that has made them in features, found one that is {is_fitted}"
            )
        self.features_ = copy.deepcopy(features)
        return pack_sequences(X)

    def _packed(self, X: Any, *, check_values: bool = True) -> PackedSequences:
        """Sequences by the features of the training data."""
        X = as_list(X)
        known = list(getattr(self, "feature_names_in_", ()))
        names = frame_columns(X) if known else None
        if names is not None and names != known:
            raise ValueError(
                f"the sequences have the columns {names!r:.80}, but those of the training data "
                f"have {known!r:.80}"
            )
        extractor = None if isinstance(X, PackedSequences) else self.features_
        return pack_sequences(
            X, extractor, n_features=self.n_features_in_, check_values=check_values
        )

    def _takes_words(self, X: Any) -> bool:
        """Whether features are found in columns of strings, as `_from_words` does it."""
        return isinstance(self.features_, WindowFeatures) and not isinstance(X, PackedSequences)

    def _from_words(
        self, pieces: TokenChunks, work: Callable[[PackedSequences, int], Value], kind: Hashable
    ) -> Iterator[Value]:
        """What work on words gives, some sequences at a time, in their order; threads share it.

        It takes the features of some sequences, and the number of the first; ``kind`` tells it
        from other work. Only to bring words into columns takes the GIL.
        """
        transform = self.features_.transform

        def find(first: int, end: int) -> Value:
            return work(transform(pieces.columns(first, end)), first)

        kind = "words", type(self), kind
        return parallel_chunks(
            self.n_jobs, pieces.offsets, WORD_WORK, find, WORDS_WORTH_CUTTING, kind
        )

    def _feature_names(self, numbers: Ints) -> dict[int, str]:
        """Names of the features with these numbers."""
        own: list[int] = [f for f in np.asarray(numbers).tolist() if f < self.n_features_in_]
        if hasattr(self.features_, "names_of"):  # of few features in less time than of all
            names = dict(zip(own, self.features_.names_of(own), strict=True))
        else:
            made = None if self.features_ is None else self.features_.get_feature_names_out()
            known = getattr(self, "feature_names_in_", None) if made is None else made
            names = {f: f"x{f}" if known is None else str(known[f]) for f in own}
        if self._has_intercept:
            names[self.n_features_in_] = "intercept"
        return names

    @property
    def _has_intercept(self) -> bool:
        """Whether the model has a constant feature behind the others."""
        raise NotImplementedError


def _is_iterable(X: Any) -> bool:
    """Whether X can be looped over."""
    return hasattr(X, "__iter__")
