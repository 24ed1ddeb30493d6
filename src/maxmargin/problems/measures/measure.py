"""What is measured of a whole sample, and what its parameters may be."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal, get_args

from ...utils.validation import ParameterError, spelling_hint

__all__ = ["Measure", "MeasureName"]

MeasureName = Literal[
    "error",
    "f1",
    "fbeta",
    "prbep",
    "precision_at_k",
    "recall_at_k",
    "recall_at_precision",
    "precision_at_recall",
    "roc_auc",
    "average_precision",
]


@dataclass(frozen=True)
class Measure:
    """A measure of labels or rankings of all rows, in [0, 1].

    Its loss is what it lacks of the best that there is: 1 or, with k, what k rows reach at best.

    With P positive rows, of which ``a`` are labelled positive, and ``b`` negative ones that are:

    * "error": the loss is the share of wrong labels;
    * "f1", "fbeta": ``(1 + beta^2) a / (a + b + beta^2 P)``;
    * "prbep": the precision ``a / P`` of labellings with P positive labels, where precision and
      recall are the same;
    * "precision_at_k", "recall_at_k": with ``k <= P`` the precision ``a / (a + b)`` of labellings
      with at least k positive labels, with ``k > P`` the recall ``a / P`` of those with at most k;
      times what the k best rows reach at best, ``min(k, P) / k`` or ``min(k, P) / P``;
    * "recall_at_precision": the recall ``a / P`` of labellings whose precision is at least
      ``floor``;
    * "roc_auc": the share of pairs, of a positive and a negative row, that are ranked right;
    * "precision_at_recall": the precision down to the positive row of a ranking that makes the
      recall at least ``floor``;
    * "average_precision": the mean over the positive rows of the precision down to each.
    """

    name: MeasureName = "error"
    beta: float = 1.0
    k: int | None = None
    floor: float | None = None

    def __post_init__(self) -> None:
        names = get_args(MeasureName)
        if self.name not in names:
            hint = spelling_hint(self.name, names)
            raise ParameterError(
                "measure", f"must be one of {', '.join(names)}; got {self.name!r}{hint}"
            )
        if not isinstance(self.beta, Real) or not 1e-100 <= self.beta <= 1e100:
            raise ParameterError(
                "beta", f"must be a positive number from 1e-100 to 1e100, got {self.beta!r}"
            )
        if self.needs_k and (not isinstance(self.k, Integral) or self.k < 1):
            raise ParameterError(
                "k",
                "must be a whole number >= 1, the number of rows to label positive, for "
                f"measure={self.name!r}; got {self.k!r}",
            )
        if self.needs_floor and (not isinstance(self.floor, Real) or not 0.0 < self.floor <= 1.0):
            raise ParameterError(
                "floor",
                f"must be the smallest {self.name.split('_at_')[1]} allowed, above 0 and at most "
                f"1, for measure={self.name!r}; got {self.floor!r}",
            )

    @property
    def needs_k(self) -> bool:
        """Whether ``k`` says something."""
        return self.name in ("precision_at_k", "recall_at_k")

    @property
    def needs_floor(self) -> bool:
        """Whether ``floor`` says something."""
        return self.name in ("recall_at_precision", "precision_at_recall")

    @property
    def ranks(self) -> bool:
        """Whether outputs are rankings of the rows, not labels."""
        return self.name in ("roc_auc", "average_precision", "precision_at_recall")

    @property
    def has_threshold(self) -> bool:
        """Whether the sign of scores is what is measured."""
        return self.name in ("error", "f1", "fbeta")

    @property
    def has_intercept(self) -> bool:
        """Whether a constant added to all scores is worth learning.

        It makes no difference to rankings, nor to the break-even point. With a floor of the
        precision it would make up for any ranking: negative rows above 0 are mostly forbidden.
        """
        return self.has_threshold or self.needs_k

    @property
    def takes_row_weights(self) -> bool:
        """Whether rows may count more or less than others."""
        return self.name in ("error", "roc_auc")
