"""A whole sample as one example: labels or a ranking of all its rows are the output.

Joachims' multivariate SVM (2005). With rows x_i and labels y_i of -1 and +1, the joint features of
labels z are the mean of ``z_i x_i / 2``; those of a ranking are the mean over all pairs of a
positive and a negative row of ``(x_i - x_j) / 2``, or minus that where the pair is swapped. So a
wrong label, or a swapped pair, changes the features by its row or by the difference of its rows.

Precision and recall of k rows are those of labels with at least k positive ones where k is at most
P, the number of positive rows, else of labels with at most k, as in SVM-perf: so the gold labels
are always allowed.

All outputs differ from the truth by a sum of rows, ``dpsi = sum_i c_i x_i``: a search returns these
coefficients, from the scores of the rows alone. What rows count is their *share*: positive for
positive rows, negative for others.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ...core.cutting_planes import Planes
from ...core.formulation import Formulation, Rescaling
from ...core.problem import LARGE
from ...engine.accelerators import Accelerators
from ...engine.cuts.sample_pool import Candidate, SamplePool
from ...engine.oracle import Oracle
from ...engine.packed_problem import PackedProblem, entries_of, matrix_of
from ...engine.rows import add_rows, make_rows, score_rows
from ...search.average_precision import harmonic_numbers, place_negatives, write_swaps
from ...search.limits import as_examples, check_number_of_weights
from ...search.modes import ADDITIVE, BEST_NON_GOLD, search_mode
from ...utils.types import Bools, Floats, Ints
from ...utils.validation import ParameterError, as_floats
from .kernels import (
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
    place_negatives_at,
    precision_loss,
    swap_pairs,
)
from .measure import Measure

__all__ = ["LabelSearch", "MeasureProblem", "RankingSearch", "Search", "TableTerms"]

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
                raise ParameterError("k", f"must be at most the number of rows, {n}, got {count}")
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
                "sample_weight needs rescaling='margin' with slack='l1' (or sqrt_loss=False); got "
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
                f"measure={self.name!r} needs rescaling='margin' with slack='l1' (or "
                "sqrt_loss=False) or, without sample_weight, rescaling='none'; got "
                f"{_asked(formulation)}. Measures of labels, such as measure='f1', support all of "
                "them without sample_weight"
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


COUNTED = (BREAK_EVEN, AT_LEAST, AT_MOST)


class MeasureProblem(PackedProblem):
    """One example: all rows.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_rows, n_inputs)
        Rows.
    y : array of shape (n_rows,)
        Labels -1 and +1, both of them.
    measure : Measure
        What is measured.
    sample_weight : array of shape (n_rows,), optional
        What rows count, for the measures that take it.
    fit_intercept : bool
        Append a constant feature.
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        measure: Measure,
        *,
        sample_weight: ArrayLike | None = None,
        fit_intercept: bool = False,
    ) -> None:
        self.rows = make_rows(X, fit_intercept=fit_intercept)
        self.labels = np.ascontiguousarray(y, dtype=np.int64)
        self.measure = measure
        self._n_examples = 1
        n = self.rows.n_rows
        if self.labels.shape != (n,):
            raise ValueError(f"X has {n} rows but y has shape {self.labels.shape}")
        if not np.array_equal(np.unique(self.labels), [-1, 1]):
            raise ValueError(
                "y must have labels -1 and +1, and both of them; got "
                f"{np.unique(self.labels)[:5].tolist()}"
            )
        self.n_features = self.rows.n_inputs
        check_number_of_weights(self.n_features)
        weights = None if sample_weight is None else self._checked_weights(sample_weight)
        search = RankingSearch if measure.ranks else LabelSearch
        self.search: RankingSearch | LabelSearch = search(measure, self.labels > 0, weights)

    def _checked_weights(self, sample_weight: ArrayLike) -> Floats | None:
        """What rows count, as floats; None if that is the same for all."""
        weights = as_floats(sample_weight, "sample_weight")
        if weights.shape != self.labels.shape:
            raise ValueError(
                f"sample_weight must have shape {self.labels.shape}, got {weights.shape}"
            )
        bad = np.flatnonzero(~(weights >= 0) | ~np.isfinite(weights))
        if len(bad):
            raise ValueError(
                f"sample_weight[{bad[0]}] is {weights[bad[0]]}; weights must be finite and >= 0"
            )
        if weights[0] > 0.0 and np.all(weights == weights[0]):
            return None
        if not self.measure.takes_row_weights:
            raise ValueError(
                f"measure={self.measure.name!r} counts rows, and takes no sample_weight; measures "
                "that do: 'error' (weighted errors) and 'roc_auc' (pairs count the product of "
                "their rows' weights)"
            )
        for label in (-1, 1):
            if not weights[self.labels == label].any():
                raise ValueError(f"sample_weight leaves no row of label {label:+d}")
        scaled: Floats = weights / weights.max()  # only ratios matter, and sums stay finite
        return scaled

    @property
    def n_examples(self) -> int:
        """Number of examples: one, or as many copies as a `subset` has asked for."""
        return self._n_examples

    def subset(self, indices: Ints) -> MeasureProblem:
        """See `Problem.subset`: the same example, as often as it is listed."""
        part = copy.copy(self)
        part._n_examples = len(as_examples(indices, self.n_examples))
        return part

    # ----- what the oracle computes ---------------------------------------------------------------

    def input_of(self, i: int) -> Any:
        """All rows, an array or CSR matrix."""
        return matrix_of(self.rows, 0, self.rows.n_rows)

    def output_of(self, i: int) -> Ints:
        """Labels of the rows or, of a ranking, their numbers from the first to the last."""
        if not self.measure.ranks:
            return self.labels.copy()
        return np.argsort(-self.labels, kind="stable")

    def joint_feature(self, x: Any, y: Any) -> Floats:
        """See `Problem.joint_feature`: the weighted mean of rows, half of it."""
        numbers, columns, values = entries_of(x, self.rows)
        steps = values * 0.5 * self._signed_shares(np.asarray(y))[numbers]
        return np.bincount(columns, steps, minlength=self.n_features).astype(np.float64)

    def _signed_shares(self, y: Ints) -> Floats:
        """Twice what each row counts in the joint features of an output."""
        shares = self.search.shares
        if isinstance(self.search, LabelSearch):
            return np.abs(shares) * y
        # Of a positive row, its pairs with negative ones below minus those with ones above.
        ranked = shares[y]
        above = np.cumsum(np.minimum(ranked, 0.0)), np.cumsum(np.maximum(ranked, 0.0))
        signed = np.empty(len(y))
        signed[y] = np.where(
            ranked > 0.0, ranked * (1.0 + 2.0 * above[0]), ranked * (2.0 * above[1] - 1.0)
        )
        return signed

    def loss(self, y: Any, y_hat: Any) -> float:
        """What the measure of ``y_hat`` lacks, where the labels are those of the problem."""
        output = np.asarray(y_hat)
        if isinstance(self.search, LabelSearch):
            return self.search.loss(output > 0)
        places = np.empty(len(output))
        places[output] = np.arange(len(output))
        return self.search.swapped(-places, 0.0).loss

    def predict(self, x: Any, w: Floats) -> Ints:
        """Labels of the largest score, or the ranking by scores; see `Problem.predict`."""
        numbers, columns, values = entries_of(x, self.rows)
        products = values * np.asarray(w, np.float64)[columns]
        scores: Floats = np.bincount(numbers, products, self.rows.n_rows).astype(np.float64)
        if self.measure.ranks:
            return np.argsort(-scores, kind="stable")
        labels: Bools = scores > 0.0
        if isinstance(self.search, LabelSearch) and self.search.terms.kind in COUNTED:
            kind, count = self.search.terms.kind, self.search.terms.count
            best = np.zeros(len(scores), dtype=bool)
            best[np.argsort(-scores, kind="stable")[:count]] = True
            labels = (
                labels | best if kind == AT_LEAST else labels & best if kind == AT_MOST else best
            )
        elif self.measure.needs_floor:  # which only the given labels can tell
            wrong = self.search.best(LARGE * scores, Formulation()).coefficients != 0.0
            labels = (self.labels > 0) != wrong
        return np.where(labels, 1, -1)

    # ----- the oracle -----------------------------------------------------------------------------

    def scores(self, w: Floats) -> Floats:
        """Scores of all rows."""
        scores = np.empty(self.rows.n_rows)
        score_rows(self.rows, w, scores)
        return scores

    def best(self, scores: Floats, formulation: Formulation) -> Candidate:
        """The most violated output where the rows have these scores; the truth if none is."""
        return self.search.best(scores, formulation)

    def add_difference(self, candidate: Candidate, factor: float, total: Floats) -> None:
        """Add ``factor * dpsi`` of a candidate to ``total``."""
        add_rows(self.rows, candidate.coefficients, factor, total)

    def _most_violated(
        self, examples: Ints, w: Floats, rescaling: Rescaling, sqrt_loss: bool
    ) -> Planes:
        """Most violated labels or ranking."""
        n = len(examples)
        formulation = Formulation(rescaling, sqrt_loss=sqrt_loss)
        candidate = self.best(self.scores(w), formulation)
        difference = np.zeros(self.n_features)
        self.add_difference(candidate, 1.0, difference)
        columns = np.flatnonzero(difference)
        return Planes(
            len(columns) * np.arange(n + 1),
            np.tile(columns.astype(np.int32), n),
            np.tile(difference[columns], n),
            np.full(n, candidate.loss),
        )

    def accelerators(self, formulation: Formulation) -> MeasureAccelerators:
        """A pool that knows the objective along lines."""
        return MeasureAccelerators(self)


class MeasureAccelerators(Accelerators):
    """Lines are searched with scores of rows, without passes over the rows."""

    def __init__(self, problem: MeasureProblem) -> None:
        self.problem = problem
        rows = problem.rows
        entries = rows.dense.size or len(rows.values)
        self.oracle_work = 3.0 * entries + 60.0 * rows.n_rows

    def pool(self, oracle: Oracle) -> SamplePool | None:
        """One candidate at a time, any of all that there are."""
        return SamplePool(oracle, self.problem) if self.problem.n_examples == 1 else None
