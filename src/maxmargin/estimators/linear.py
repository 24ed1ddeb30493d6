"""Estimators whose ``coef_`` is a table, as linear models of scikit-learn have it."""

from __future__ import annotations

from ..sklearn_bases import check_fitted
from ..types import Floats
from .base import MaxMarginEstimator
from .checked_weights import CheckedWeights

__all__ = ["LinearEstimator"]


class LinearEstimator(MaxMarginEstimator):
    """The flat weights are those of ``result_``; ``coef_`` shows them by class and feature."""

    def _check_fitted(self) -> None:
        """See `Savable`."""
        check_fitted(self, "result_")

    def _get_weights(self) -> Floats:
        """See `Savable`."""
        return self.result_.w

    def _set_weights(self, w: Floats) -> None:
        """See `Savable`; the weights themselves are taken from ``result_``."""
        self._weights_check = CheckedWeights()
