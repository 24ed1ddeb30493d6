"""Taggers whose features see more than one label and the one before it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..features import FeatureDictionary, WindowFeatures, pack_sequences
from ..features.containers import as_list
from ..problems.chain.constraints import ChainConstraints
from ..problems.chain.higher_order.decoder import HigherOrderDecoder
from ..problems.chain.higher_order.layout import HigherOrderLayout
from ..problems.chain.higher_order.tuples import LabelTuples, label_tuples
from ..schema import Count
from ..sklearn_bases import clone
from ..sparse_format import check_sparse
from ..types import Ints, Ints32
from ..validation import is_at_least
from .token_inputs import TokenInputs

__all__ = ["ChainShape", "HigherOrder", "HigherOrderState", "TransitionInputs"]

ORDERS = (1, 2, 3)


class ChainShape(NamedTuple):
    """What features see of the labels."""

    order: int
    emission_order: int
    eta: float

    @property
    def is_plain(self) -> bool:
        """Whether they are those of a first-order chain."""
        return self == (1, 0, 1.0)


class TransitionInputs(NamedTuple):
    """Where transition features come from: columns of the token features, or an extractor."""

    columns: NDArray[np.integer] | None
    extractor: WindowFeatures | FeatureDictionary | None
    n_features: Count


class HigherOrderState(NamedTuple):
    """What a file keeps of them."""

    shape: ChainShape
    tuples: LabelTuples
    inputs: TransitionInputs | None


class HigherOrder(TokenInputs):
    """For taggers: parameters that ask for more than a first-order chain, and what they make."""

    order: int
    emission_order: int
    eta: float
    transition_features: Any
    label_tuples: Any
    _transition_inputs: TransitionInputs | None
    _shape: ChainShape

    def _checked_shape(self) -> ChainShape:
        """The parameters; ValueError for bad ones, before any features are built."""
        for name, known in (("order", ORDERS), ("emission_order", (0, 1))):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value not in known:
                shown = ", ".join(map(str, known[:-1]))
                raise ValueError(f"{name} must be {shown} or {known[-1]}, got {value!r:.40}")
        eta: Any = self.eta
        if isinstance(eta, bool) or not is_at_least(eta, 0) or float(eta) == 0.0:
            raise ValueError(f"eta must be a positive, finite number, got {eta!r:.40}")
        which = self.label_tuples
        if not isinstance(which, str) or which not in ("seen", "allowed"):
            raise ValueError(f"label_tuples must be 'seen' or 'allowed', got {which!r:.40}")
        return ChainShape(int(self.order), int(self.emission_order), float(self.eta))

    def _check_same_shape(self, shape: ChainShape) -> None:
        """Training of a model goes on with the features that it has."""
        has_inputs = self._transition_inputs is not None
        if shape != self._shape or (self.transition_features is not None) != has_inputs:
            made = ", ".join(f"{name}={value!r}" for name, value in self._shape._asdict().items())
            raise ValueError(
                f"the model was made with {made} and {'' if has_inputs else 'no '}"
                "transition features: call fit, or make a new one, to change that"
            )

    # ----- transition features ------------------------------------------------------------------

    def _fit_transition_features(self, X: Any, tokens: Any) -> Any:
        """Choose where they come from; returns those of the training data, or None."""
        chosen, self._transition_inputs = self.transition_features, None
        if chosen is None:
            return None
        if hasattr(chosen, "fit_transform"):
            extractor = clone(chosen)
            try:
                found = pack_sequences(extractor.fit_transform(as_list(X))).tokens
            except ValueError as error:  # other features are made of the same sequences
                raise ValueError(f"transition_features: {error}") from error
            self._transition_inputs = TransitionInputs(None, extractor, int(found.shape[1]))
            return found
        columns = self._chosen_columns(chosen)
        self._transition_inputs = TransitionInputs(columns, None, len(columns))
        check_sparse(tokens, "X.tokens")
        return tokens[:, columns]

    def _transition_features_of(self, X: Any, tokens: Any) -> Any:
        """Those of other data."""
        inputs = self._transition_inputs
        if inputs is None:
            return None
        if inputs.columns is not None:
            check_sparse(tokens, "X.tokens")
            return tokens[:, inputs.columns]
        return pack_sequences(as_list(X), inputs.extractor, n_features=inputs.n_features).tokens

    @property
    def _has_transition_extractor(self) -> bool:
        """Whether they are made of whole sequences, not of the tokens' features."""
        inputs = getattr(self, "_transition_inputs", None)
        return inputs is not None and inputs.columns is None

    def _transition_feature_names(self, numbers: list[int]) -> list[str]:
        """Names of the transition features with these numbers."""
        inputs = self._transition_inputs
        assert inputs is not None
        if inputs.columns is not None:
            columns = inputs.columns[numbers].astype(np.int64)
            names = self._feature_names(columns)
            return [names[f] for f in columns.tolist()]
        assert inputs.extractor is not None
        names_out = inputs.extractor.get_feature_names_out()
        return [str(names_out[f]) for f in numbers]

    def _names_of_transitions(self, numbers: Ints) -> dict[int, str]:
        """The same by their numbers."""
        listed = numbers.tolist()
        return dict(zip(listed, self._transition_feature_names(listed), strict=True))

    def _chosen_columns(self, chosen: Any) -> Ints:
        """Columns of token features by number, name, key of names, template or pattern."""
        one = isinstance(chosen, (str, bytes, re.Pattern)) or not isinstance(chosen, Iterable)
        entries = [chosen] if one else list(chosen)
        names = self._feature_names(np.arange(self.n_features_in_))
        found = [self._columns_of(entry, names) for entry in entries]
        if not entries:
            raise ValueError("transition_features is empty; None means that there are none")
        return np.unique(np.concatenate(found)).astype(np.int64)

    def _columns_of(self, entry: Any, names: dict[int, str]) -> Ints:
        """Columns that one entry of ``transition_features`` stands for; ValueError for none."""
        n = self.n_features_in_
        if isinstance(entry, Integral) and not isinstance(entry, bool):
            if int(entry) not in range(n):
                raise ValueError(
                    f"transition_features: no column {entry}, tokens have {n} features"
                )
            return np.array([entry], np.int64)
        if isinstance(entry, str):
            if isinstance(self.features_, WindowFeatures) and entry in self.features_.templates_:
                return self.features_.columns_of(entry)
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

    # ----- models -------------------------------------------------------------------------------

    def _higher_order_decoder(
        self,
        shape: ChainShape,
        n_inputs: int,
        n_labels: int,
        boundary: bool,
        constraints: ChainConstraints | None,
        codes: Ints32,
        offsets: Ints,
    ) -> HigherOrderDecoder:
        """The model for the tuples of labels of training data."""
        inputs = self._transition_inputs
        tuples = label_tuples(
            codes,
            offsets,
            n_labels,
            order=shape.order,
            pairs=shape.emission_order == 1 or inputs is not None,
            which=self.label_tuples,
            may_follow=None if constraints is None else constraints.transitions,
        )
        state = HigherOrderState(shape, tuples, inputs)
        return decoder_of(state, n_inputs, n_labels, boundary, constraints)


def decoder_of(
    state: HigherOrderState,
    n_inputs: int,
    n_labels: int,
    boundary: bool,
    constraints: ChainConstraints | None,
) -> HigherOrderDecoder:
    """The model with these tuples of labels."""
    layout = HigherOrderLayout(
        n_inputs,
        n_labels,
        boundary,
        state.tuples,
        emission_order=state.shape.emission_order,
        n_pair_inputs=0 if state.inputs is None else state.inputs.n_features,
        eta=state.shape.eta,
    )
    return HigherOrderDecoder(layout, constraints)
