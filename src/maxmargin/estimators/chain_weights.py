"""What a model of chains has learned, for people to look at."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..problems.chain.decoder import ChainDecoder
from ..problems.chain.higher_order.decoder import HigherOrderDecoder
from ..problems.chain.higher_order.layout import HigherOrderLayout
from ..types import Floats
from .base import Savable
from .explanation import strongest
from .higher_order import HigherOrder

__all__ = ["ChainWeights"]


class ChainWeights(HigherOrder, Savable):
    """For estimators of chains: their weights, by name."""

    classes_: NDArray[Any]
    _decoder: ChainDecoder | HigherOrderDecoder

    @property
    def transition_weights_(self) -> Floats:
        """Weights of the transitions, from-label in rows."""
        weights = self._weights
        return self._decoder.layout.transitions(weights).copy()

    @property
    def longer_transition_weights_(self) -> dict[tuple[Any, ...], float]:
        """Weights of triples and quadruples of labels; none with ``order`` 1."""
        weights, layout, labels = self._weights, self._decoder.layout, self.classes_.tolist()
        if not isinstance(layout, HigherOrderLayout):
            return {}
        return {
            tuple(labels[k] for k in codes): weight
            for table, values in layout.longer_transitions(weights)
            for codes, weight in zip(table.tolist(), values.tolist(), strict=True)
        }

    @property
    def start_weights_(self) -> Floats:
        """Weights of the first label; zeros without ``boundary_weights``."""
        weights = self._weights
        return self._decoder.layout.boundaries(weights)[0]

    @property
    def stop_weights_(self) -> Floats:
        """Weights of the last label; zeros without ``boundary_weights``."""
        weights = self._weights
        return self._decoder.layout.boundaries(weights)[1]

    def top_transitions(
        self, n: int = 10, *, against: bool = False
    ) -> list[tuple[Any, Any, float]]:
        """Pairs of labels that the model likes most to see one after the other, or least.

        Parameters
        ----------
        n : int, default=10
            How many to list, at most.
        against : bool, default=False
            List transitions of negative weights, not of positive ones.

        Returns
        -------
        list of (label, next label, weight)
            Strongest first, without forbidden transitions. With ``boundary_weights`` there are also
            the first and the last labels of sequences: None stands for what is before and after.
        """
        weights = self._weights
        potentials = self._decoder.potentials(weights)
        K = len(self.classes_)
        # Row K is for what comes before a sequence, column K for what comes after.
        weights = np.zeros((K + 1, K + 1))
        weights[:K, :K], weights[K, :K], weights[:K, K] = potentials
        weights[np.isinf(weights)] = 0.0  # forbidden
        labels = [*self.classes_.tolist(), None]
        places = (divmod(place, K + 1) for place in strongest(weights.ravel(), n, against))
        return [(labels[i], labels[j], float(weights[i, j])) for i, j in places]

    def top_transition_features(
        self, n: int = 10, *, against: bool = False
    ) -> list[tuple[str, Any, Any, float]]:
        """Transition features that speak most for a pair of labels, or against it.

        Parameters
        ----------
        n : int, default=10
            How many to list, at most.
        against : bool, default=False
            List features of negative weights, not of positive ones.

        Returns
        -------
        list of (name, label, next label, weight)
            Strongest first; empty without ``transition_features``.
        """
        weights, layout = self._weights, self._decoder.layout
        if not isinstance(layout, HigherOrderLayout) or layout.n_pair_inputs == 0:
            return []
        own, pairs = layout.pair_features(weights), layout.tuples.pairs
        places = [divmod(place, len(pairs)) for place in strongest(own.ravel(), n, against)]
        names = self._transition_feature_names([f for f, _ in places])
        labels = self.classes_.tolist()
        return [
            (name, labels[pairs[p][0]], labels[pairs[p][1]], float(own[f, p]))
            for name, (f, p) in zip(names, places, strict=True)
        ]
