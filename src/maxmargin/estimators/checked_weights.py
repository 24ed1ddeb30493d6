"""Weights are looked through once, not at every prediction."""

from __future__ import annotations

import weakref

import numpy as np

from ..types import Floats

__all__ = ["CheckedWeights"]


class CheckedWeights:
    """Remembers which weights of an estimator were found to be finite.

    Anybody may put other weights into a fitted estimator, so they are looked at when they are used;
    millions of them take longer than a prediction. An estimator gets this object together with its
    weights, for a prediction must not set attributes.
    """

    def __init__(self) -> None:
        self._finite: weakref.ref[Floats] | None = None

    def check_finite(self, weights: Floats) -> None:
        """Raise ValueError for weights among which no search finds a best output."""
        if self._finite is not None and self._finite() is weights:
            return
        bad = np.flatnonzero(~np.isfinite(weights))
        if len(bad):
            raise ValueError(f"weight {bad[0]} is {weights[bad[0]]}; weights must be finite")
        self._finite = weakref.ref(weights)

    def __reduce__(self) -> tuple[type[CheckedWeights], tuple[()]]:
        """Copies, pickled ones too, have weights of their own to look at."""
        return CheckedWeights, ()
