"""The most violated output of a whole sample, from the scores of its rows alone.

All outputs differ from the truth by a sum of rows, ``dpsi = sum_i c_i x_i``: a search returns these
coefficients. What rows count is their *share*: positive for positive rows, negative for others.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from ...core.formulation import Formulation
from ...engine.cuts.sample_pool import Candidate
from ...search.average_precision import harmonic_numbers, place_negatives, write_swaps
from ...search.modes import ADDITIVE, BEST_NON_GOLD, search_mode
from ...utils.types import Bools, Floats, Ints
from .measure import Measure
from .ranking_kernels import place_negatives_at, precision_loss, swap_pairs
from .table_kernels import (
    AT_LEAST,
    AT_MOST,
    BREAK_EVEN,
    ERROR,
    F_BETA,
    RECALL_AT_PRECISION,
    best_table,
    flip_lowest_and_highest,
    flip_violated,
    loss_of_table,
)

__all__ = ["LabelSearch", "RankingSearch", "Search", "TableTerms"]

KINDS = {
    "error": ERROR,
    "f1": F_BETA,
    "fbeta": F_BETA,
    "prbep": BREAK_EVEN,
    "recall_at_precision": RECALL_AT_PRECISION,
}


class Search(Protocol):
    """Finds the most violated output of a sample."""

    def best(self, scores: Floats, formulation: Formulation) -> Candidate:
        """The most violated output where the rows have these scores; the truth if none is."""


class TableTerms(NamedTuple):
    """A measure of contingency tables, for kernels.

    ``count`` is the number of positive labels, or the least or largest one, and ``highest`` what k
    rows reach at best.
    """

    kind: int
    n_pos: int
    n_neg: int
    beta2: float
    count: int  # type: ignore[assignment]
    floor: float
    highest: float


def _asked(formulation: Formulation) -> str:
    """What a search depends on, which slacks are not."""
    root = " (as slack='l2' has it unless told otherwise)" if formulation.uses_sqrt_loss else ""
    return f"rescaling={formulation.rescaling!r}, sqrt_loss={formulation.uses_sqrt_loss}{root}"


class LabelSearch:
    """Labels of all rows, by their contingency table.

    Parameters
    ----------
    measure : Measure
        A measure of labels.
    positive : array of bool
        The given labels.
    row_weights : array, optional
        What rows count in the error rate.
    """

    def __init__(
        self, measure: Measure, positive: Bools, row_weights: Floats | None = None
    ) -> None:
        n = len(positive)
        self.positive_rows, self.negative_rows = np.flatnonzero(positive), np.flatnonzero(~positive)
        self.weighted = row_weights is not None
        weights = np.ones(n) if row_weights is None else row_weights
        self.shares: Floats = np.where(positive, weights, -weights) / weights.sum()
        P, N = len(self.positive_rows), len(self.negative_rows)
        kind, count, highest = KINDS.get(measure.name, AT_MOST), P, 1.0
        if measure.needs_k:
            count = int(measure.k or 0)
            if count > n:
                raise ValueError(f"k must be at most the number of rows, {n}; got k={count}")
            kind = AT_LEAST if count <= P else AT_MOST
            highest = min(count, P) / (P if measure.name == "recall_at_k" else count)
        beta = 1.0 if measure.name == "f1" else float(measure.beta)
        floor = float(measure.floor) if measure.needs_floor and measure.floor else 1.0
        self.terms = TableTerms(kind, P, N, beta * beta, count, floor, highest)

    def loss(self, predicted: Bools) -> float:
        """The loss of labels of all rows."""
        if self.weighted:
            wrong = predicted != (self.shares > 0.0)
            return float(np.abs(self.shares[wrong]).sum())
        a, b = (int(predicted[rows].sum()) for rows in (self.positive_rows, self.negative_rows))
        return float(loss_of_table(self.terms, a, b))

    def best(self, scores: Floats, formulation: Formulation) -> Candidate:
        """See `Search`."""
        coefficients = np.empty(len(scores))
        mode = search_mode(formulation.rescaling, formulation.uses_sqrt_loss)
        if self.terms.kind == ERROR and mode.kind == ADDITIVE:
            return Candidate(flip_violated(scores, self.shares, coefficients), coefficients)
        if self.weighted:
            raise ValueError(
                "sample_weight needs rescaling='margin' and the plain loss (sqrt_loss=False); got "
                f"{_asked(formulation)}"
            )
        n, terms = len(scores), self.terms
        positive, negative = np.sort(scores[self.positive_rows]), scores[self.negative_rows]
        negative.sort()
        kept, taken = np.zeros(terms.n_pos + 1), np.zeros(terms.n_neg + 1)
        np.cumsum(positive / n, out=kept[1:])
        np.cumsum(negative[::-1] / n, out=taken[1:])
        kept = kept[::-1].copy()
        table = np.zeros(2, np.int64)
        value, loss = best_table(terms, mode, kept, taken, table)
        if not value > 0.0:
            return Candidate(0.0, np.zeros(n))
        a, b = (int(number) for number in table)
        # Scores of the last rows that change their label, and how many of those that equal it do.
        limits, ties = np.array([-np.inf, np.inf]), np.zeros(2, np.int64)
        if a < terms.n_pos:
            limits[0] = positive[terms.n_pos - a - 1]
            ties[0] = terms.n_pos - a - np.searchsorted(positive, limits[0], "left")
        if b > 0:
            limits[1] = negative[terms.n_neg - b]
            ties[1] = b - (terms.n_neg - np.searchsorted(negative, limits[1], "right"))
        flip_lowest_and_highest(scores, self.shares, limits, ties, coefficients)
        return Candidate(loss, coefficients)


class RankingSearch:
    """Rankings of all rows, by swapped pairs.

    Parameters
    ----------
    measure : Measure
        A measure of rankings.
    positive : array of bool
        Which rows should be above the others.
    row_weights : array, optional
        A pair counts the product of what its rows do, in the ROC area.
    """

    def __init__(
        self, measure: Measure, positive: Bools, row_weights: Floats | None = None
    ) -> None:
        self.name = measure.name
        self.positive_rows, self.negative_rows = np.flatnonzero(positive), np.flatnonzero(~positive)
        self.weighted = row_weights is not None
        weights = np.ones(len(positive)) if row_weights is None else row_weights
        totals = weights[self.positive_rows].sum(), weights[self.negative_rows].sum()
        self.shares: Floats = np.where(positive, weights / totals[0], -weights / totals[1])
        # The positive row, from the best on, down to which "precision_at_recall" is measured.
        floor = measure.floor if measure.needs_floor and measure.floor is not None else 1.0
        self.row = int(np.ceil(float(floor) * len(self.positive_rows) - 1e-9))
        self.harmonic = harmonic_numbers(len(positive))

    def swapped(self, scores: Floats, margin: float) -> Candidate:
        """The ranking in which all pairs are swapped whose scores differ by less than a margin."""
        above, below = self._sorted(scores)
        coefficients = np.empty(len(scores))
        loss = swap_pairs(margin, scores, self.shares, above, below, coefficients)
        if self.name == "average_precision" and loss > 0.0:
            loss = precision_loss(self.shares, above, coefficients)
        elif self.name == "precision_at_recall":
            wrong = round(len(below) * coefficients[above[self.row - 1]] * len(above))
            loss = wrong / (self.row + wrong)
        return Candidate(float(loss), coefficients)

    def best(self, scores: Floats, formulation: Formulation) -> Candidate:
        """See `Search`."""
        mode = search_mode(formulation.rescaling, formulation.uses_sqrt_loss)
        if self.name == "precision_at_recall":
            above, below = self._sorted(scores)
            coefficients, sums, places = self._scratch(scores, above)
            loss = place_negatives_at(
                self.row, mode, scores, above, below, sums, places, coefficients
            )
            return Candidate(float(loss), coefficients)
        if mode.kind == BEST_NON_GOLD and not self.weighted:
            return self._best_wrong(scores)
        if mode.kind != ADDITIVE:
            raise ValueError(
                f"measure={self.name!r} has an exact search for rescaling='margin' with the plain "
                "loss (sqrt_loss=False) and, without sample_weight, for rescaling='none'; got "
                f"{_asked(formulation)}; measures of labels, such as 'f1', can do all without "
                "sample_weight"
            )
        if self.name == "roc_auc":
            return self.swapped(scores, 1.0)
        above, below = self._sorted(scores)
        coefficients, sums, places = self._scratch(scores, above)
        loss = place_negatives(scores, above, below, self.harmonic, sums, places)
        write_swaps(above, below, places, float(len(above)) * len(below), coefficients)
        return Candidate(float(loss), coefficients)

    def _best_wrong(self, scores: Floats) -> Candidate:
        """The best ranking but the right ones: that by scores, or a single pair is swapped."""
        found = self.swapped(scores, 0.0)
        if found.loss > 0.0:
            return found
        low = self.positive_rows[np.argmin(scores[self.positive_rows])]
        high = self.negative_rows[np.argmax(scores[self.negative_rows])]
        pairs = len(self.positive_rows) * len(self.negative_rows)
        if scores[low] - scores[high] >= pairs:
            return found
        found.coefficients[[low, high]] = 1.0 / pairs, -1.0 / pairs
        loss = 1.0 / pairs
        if self.name == "average_precision":
            P = len(self.positive_rows)
            loss = 1.0 / (P * (P + 1.0))  # the last of P positive rows is at place P + 1
        return Candidate(loss, found.coefficients)

    def _scratch(self, scores: Floats, above: Ints) -> tuple[Floats, Floats, Ints]:
        """Coefficients, all 0; sums of the scores of the best positive rows; room for places."""
        sums = np.concatenate([[0.0], np.cumsum(scores[above])])
        return np.zeros(len(scores)), sums, np.empty(len(self.negative_rows) + 2, np.int64)

    def _sorted(self, scores: Floats) -> tuple[Ints, Ints]:
        """Positive and negative rows from the highest score to the lowest."""
        orders = (
            rows[np.argsort(-scores[rows])] for rows in (self.positive_rows, self.negative_rows)
        )
        above, below = orders
        return above, below
