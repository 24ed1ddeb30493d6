"""Where the weights of a chain are: token features, transitions, first and last labels.

With K labels and feature-major weights: the token features of each label (``w[f * K + k]``, an
optional constant feature last), then the K x K transitions (from-label first), then, with
``boundary``, K weights of the first label and K of the last one.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from ...types import Floats

__all__ = ["ChainLayout", "WeightOffsets"]


class WeightOffsets(NamedTuple):
    """Where each kind of weights begins, for kernels; token features begin at 0.

    Without weights of first and last labels, ``starts``, ``stops`` and ``end`` are the same.
    """

    transitions: int
    starts: int
    stops: int
    end: int


class ChainLayout(NamedTuple):
    """Where the parts of a chain's weight vector are."""

    n_inputs: int
    n_labels: int
    boundary: bool

    @property
    def offsets(self) -> WeightOffsets:
        """Where each kind of weights begins."""
        return _offsets(self.n_inputs, self.n_labels, self.boundary)

    @property
    def size(self) -> int:
        """Length of the weight vector."""
        return self.offsets.end

    def emissions(self, w: Floats) -> Floats:
        """View of the token weights, shape (n_inputs, n_labels)."""
        return w[: self.offsets.transitions].reshape(self.n_inputs, self.n_labels)

    def transitions(self, w: Floats) -> Floats:
        """View of the transition weights, shape (n_labels, n_labels), from-label first."""
        at = self.offsets
        return w[at.transitions : at.starts].reshape(self.n_labels, self.n_labels)

    def boundaries(self, w: Floats) -> tuple[Floats, Floats]:
        """Start and stop weights; zeros where the model has none."""
        at = self.offsets
        if not self.boundary:
            return np.zeros(self.n_labels), np.zeros(self.n_labels)
        return w[at.starts : at.stops].copy(), w[at.stops : at.end].copy()


@cache  # every oracle call asks for them
def _offsets(n_inputs: int, n_labels: int, boundary: bool) -> WeightOffsets:
    """Emissions first, then transitions, then weights of first and last labels if there are any."""
    transitions = n_inputs * n_labels
    starts = transitions + n_labels * n_labels
    n_boundary = n_labels if boundary else 0
    return WeightOffsets(transitions, starts, starts + n_boundary, starts + 2 * n_boundary)
