"""How far probabilities can be believed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..utils.tables import columns, percent
from ..utils.types import Floats, Ints
from ..utils.validation import as_floats, is_at_least

__all__ = ["Reliability", "reliability"]


class Reliability(NamedTuple):
    """Predictions in groups of similar probability, and how many of each group are right.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Probabilities between which the groups are.
    counts : ndarray of int, shape (n_bins,)
        How many predictions there are in each.
    confidence : ndarray of shape (n_bins,)
        Their mean probability, NaN where there are none.
    accuracy : ndarray of shape (n_bins,)
        The share that is right.
    """

    edges: Floats
    counts: Ints
    confidence: Floats
    accuracy: Floats

    @property
    def ece(self) -> float:
        """Expected calibration error: mean of ``|confidence - accuracy|`` over all predictions."""
        used = self.counts > 0
        gaps = np.abs(self.confidence - self.accuracy)[used]
        return float(np.average(gaps, weights=self.counts[used]))

    def __str__(self) -> str:
        rows = [("probability", "mean", "right", "number")]
        for k in np.flatnonzero(self.counts).tolist():
            group = f"{self.edges[k]:.2f}-{self.edges[k + 1]:.2f}"
            shares = (percent(self.confidence[k]), percent(self.accuracy[k]))
            rows.append((group, *shares, str(self.counts[k])))
        return f"{columns(rows)}\nexpected calibration error {self.ece:.4f}"


def reliability(probabilities: ArrayLike, right: ArrayLike, n_bins: int = 15) -> Reliability:
    """Group predictions by their probability.

    Parameters
    ----------
    probabilities : array of shape (n,)
        Of what was predicted: of the labels of all tokens, say.
    right : array of bool, shape (n,)
        Whether the predictions are right.
    n_bins : int, default=15
        Number of groups, of the same width.

    Returns
    -------
    Reliability

    Raises
    ------
    ValueError
        No predictions, differing lengths, or numbers that are no probabilities.

    Examples
    --------
    >>> print(reliability([0.9, 0.8, 0.9, 0.6], [True, True, False, True], n_bins=2))
    probability   mean  right  number
    0.50-1.00    80.00  75.00       4
    expected calibration error 0.0500
    """
    given, marks = as_floats(probabilities, "probabilities"), as_floats(right, "right")
    if given.ndim != 1 or len(given) == 0 or given.shape != marks.shape:
        raise ValueError(
            f"expected a probability and whether it is right for at least one prediction, found "
            f"arrays of shapes {given.shape} and {marks.shape}"
        )
    wrong = np.flatnonzero((marks != 0.0) & (marks != 1.0))
    if len(wrong):
        raise ValueError(f"right[{wrong[0]}] is {marks[wrong[0]]:g}, expected True or False")
    is_right = marks == 1.0
    if not is_at_least(n_bins, 1) or n_bins != int(n_bins):
        raise ValueError(f"n_bins must be a whole number of 1 or more, got {n_bins!r}")
    bad = np.flatnonzero(~((given >= 0.0) & (given <= 1.0)))
    if len(bad):
        raise ValueError(
            f"probabilities[{bad[0]}] is {given[bad[0]]}, expected a number from 0 to 1"
        )
    group = np.minimum((given * n_bins).astype(np.int64), n_bins - 1)
    counts = np.bincount(group, minlength=n_bins)
    with np.errstate(invalid="ignore"):
        confidence = np.bincount(group, given, minlength=n_bins) / counts
        accuracy = np.bincount(group, is_right, minlength=n_bins) / counts
    return Reliability(np.linspace(0.0, 1.0, n_bins + 1), counts, confidence, accuracy)
