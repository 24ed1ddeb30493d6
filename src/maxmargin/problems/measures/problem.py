"""A whole sample as one example: labels or a ranking of all its rows are the output.

Joachims' multivariate SVM (2005). With rows x_i and labels y_i of -1 and +1, the joint features of
labels z are the mean of ``z_i x_i / 2``; those of a ranking are the mean over all pairs of a
positive and a negative row of ``(x_i - x_j) / 2``, or minus that where the pair is swapped. So a
wrong label, or a swapped pair, changes the features by its row or by the difference of its rows.

Precision and recall of k rows are those of labels with at least k positive ones where k is at most
P, the number of positive rows, else of labels with at most k, as in SVM-perf: so the gold labels
are always allowed.
"""

from __future__ import annotations

import copy
from typing import Any

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
from ...search.limits import as_examples, check_number_of_weights
from ...utils.types import Bools, Floats, Ints
from ...utils.validation import as_floats
from .measure import Measure
from .search import LabelSearch, RankingSearch
from .table_kernels import AT_LEAST, AT_MOST, BREAK_EVEN

__all__ = ["MeasureProblem"]

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
