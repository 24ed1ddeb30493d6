"""Where the weights are.

With K labels and P pairs of labels that features of the input have weights for:

    token features      W weights each, one behind the other: K of the labels and, with
                        ``emission_order`` 1, P of the pairs (label before, label)
    transitions         K x K, from-label first; then the triples; then the quadruples
    transition features P weights each, one behind the other
    boundaries          on request K weights of the first label, and K of the last one

All transitions and transition features count ``eta`` times.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ....types import Floats, Ints32
from .automaton import NONE, Automaton, make_automaton
from .tuples import LabelTuples

__all__ = ["HigherOrderLayout", "HigherOrderModel", "HigherOrderOffsets"]


class HigherOrderOffsets(NamedTuple):
    """Where each kind of weights begins; token features begin at 0."""

    transitions: int
    triples: int
    quadruples: int
    pair_features: int
    starts: int
    stops: int
    end: int


class HigherOrderModel(NamedTuple):
    """What kernels are told of labels, states and weights."""

    n_labels: int
    n_columns: int
    n_pairs: int
    eta: float
    boundary: bool
    has_pairs: bool  # whether any features of the input have weights for pairs
    at: HigherOrderOffsets
    pair_number: Ints32  # (K * K,): of j * K + k, or NONE
    pair_place: Ints32  # (P,): j * K + k
    states: Automaton


class HigherOrderLayout:
    """Where the weights of a chain with tuples of labels are.

    Parameters
    ----------
    n_inputs : int
        Number of features of a token, a constant one included.
    n_labels : int
        Number of labels.
    boundary : bool
        Whether first and last labels have weights.
    tuples : LabelTuples
        Tuples with weights of their own.
    emission_order : {0, 1}
        Whether token features have weights for pairs of labels, too.
    n_pair_inputs : int
        Number of transition features.
    eta : float
        What transitions and transition features are multiplied by.
    """

    def __init__(
        self,
        n_inputs: int,
        n_labels: int,
        boundary: bool,
        tuples: LabelTuples,
        *,
        emission_order: int = 0,
        n_pair_inputs: int = 0,
        eta: float = 1.0,
    ) -> None:
        self.n_inputs, self.n_labels, self.boundary = int(n_inputs), int(n_labels), bool(boundary)
        self.tuples, self.eta = tuples, float(eta)
        self.emission_order, self.n_pair_inputs = int(emission_order), int(n_pair_inputs)
        for table, n in zip(tuples, (2, 3, 4), strict=True):
            strip_prefix = table.size == 0 or (0 <= table.min() and table.max() < n_labels)
            if table.ndim != 2 or table.shape[1] != n or not strip_prefix:
                raise ValueError(f"expected tuples of {n} of {n_labels} labels, got {table!r:.80}")
        K, P = self.n_labels, len(tuples.pairs)
        self.n_columns = K + P if emission_order else K
        sizes = (
            self.n_inputs * self.n_columns,
            K * K,
            len(tuples.triples),
            len(tuples.quadruples),
            self.n_pair_inputs * P,
            K * self.boundary,
            K * self.boundary,
        )
        self.offsets = HigherOrderOffsets(*np.cumsum(sizes).tolist())
        self.size = self.offsets.end

    @cached_property
    def model(self) -> HigherOrderModel:
        """What kernels are told."""
        K, pairs = self.n_labels, self.tuples.pairs.astype(np.int64)
        place = pairs[:, 0] * K + pairs[:, 1]
        number = np.full(K * K, NONE, np.int32)
        number[place] = np.arange(len(place))
        return HigherOrderModel(
            K,
            self.n_columns,
            len(place),
            self.eta,
            self.boundary,
            self.n_columns > K or self.n_pair_inputs > 0,
            self.offsets,
            number,
            place.astype(np.int32),
            make_automaton(self.tuples, K),
        )

    def __getstate__(self) -> dict[str, Any]:
        """What layouts are told apart by: whether one has been used does not count."""
        return {name: value for name, value in vars(self).items() if name != "model"}

    def emissions(self, w: Floats) -> Floats:
        """View of the token weights of single labels, shape (n_inputs, n_labels)."""
        own = w[: self.offsets.transitions].reshape(self.n_inputs, self.n_columns)
        return own[:, : self.n_labels]

    def pair_emissions(self, w: Floats) -> Floats:
        """View of the token weights of pairs of labels, shape (n_inputs, n_pairs or 0)."""
        own = w[: self.offsets.transitions].reshape(self.n_inputs, self.n_columns)
        return own[:, self.n_labels :]

    def transitions(self, w: Floats) -> Floats:
        """View of the weights of pairs of labels, shape (n_labels, n_labels), from-label first."""
        at = self.offsets
        return w[at.transitions : at.triples].reshape(self.n_labels, self.n_labels)

    def longer_transitions(self, w: Floats) -> list[tuple[Ints32, Floats]]:
        """Triples and quadruples of labels with their weights."""
        at = self.offsets
        return [
            (self.tuples.triples.astype(np.int32), w[at.triples : at.quadruples]),
            (self.tuples.quadruples.astype(np.int32), w[at.quadruples : at.pair_features]),
        ]

    def pair_features(self, w: Floats) -> Floats:
        """View of the weights of transition features, shape (n_pair_inputs, n_pairs)."""
        at = self.offsets
        return w[at.pair_features : at.starts].reshape(self.n_pair_inputs, len(self.tuples.pairs))

    def boundaries(self, w: Floats) -> tuple[Floats, Floats]:
        """Start and stop weights; zeros where the model has none."""
        at = self.offsets
        if not self.boundary:
            return np.zeros(self.n_labels), np.zeros(self.n_labels)
        return w[at.starts : at.stops].copy(), w[at.stops : at.end].copy()
