"""Grades by thresholds on a linear score, which have weights of their own.

With grades 0 .. R - 1 and the thresholds b_1, ..., b_{R-1}, the grade of x is the number of
thresholds below its score <w, x>. So an example is R - 1 decisions, whether the score is above each
threshold, and its loss is the number of wrong ones, which is the distance of the grades. Every
decision is an output of its own, so with margin rescaling the slack is the sum of the hinges
``1 - s_k (<w, x> - b_k)`` with s_k = 1 for the thresholds below the true grade and -1 for others:
Chu & Keerthi's SVOR with implicit constraints (2007), the all-threshold loss of Rennie & Srebro
(2005). At the optimum thresholds are in order without a constraint that says so: two that are not
can change places, which lets no example lose, and those with grades between them win.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...core.cutting_planes import Planes, empty_planes, trim
from ...core.formulation import Formulation, Rescaling
from ...engine.accelerators import FactoredAccelerators
from ...engine.cost_model import scoring_work
from ...engine.feature_blocks import write_block
from ...engine.packed_problem import (
    FactoredProblem,
    entries_of,
    feature_blocks_of,
    matrix_of,
    rows_at,
    sparse_row,
    sparse_rows,
)
from ...engine.rows import Rows, add_scores, check_codes
from ...jit.decorator import kernel
from ...search.limits import as_weights, check_number_of_weights
from ...search.modes import ADDITIVE, BEST_NON_GOLD, SearchMode, search_mode
from ...search.violation import violation
from ...utils.types import Bools, Floats, Ints

__all__ = ["ThresholdProblem", "best_thresholds"]


class ThresholdProblem(FactoredProblem):
    """Grades of examples, by thresholds on a linear score.

    An output says of each threshold whether the score is above it. Weights are those of the inputs,
    then the thresholds. Joint features are half the sum over the thresholds of x and -1 for the
    threshold, or minus that where the score is not above it.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_examples, n_inputs)
        Inputs.
    grades : array of int of shape (n_examples,)
        Grades from 0 on.
    n_grades : int
        Number of grades, at least 2.
    """

    in_threads = True

    def __init__(self, X: Any, grades: ArrayLike, n_grades: int) -> None:
        rows = sparse_rows(X)
        given = np.ascontiguousarray(grades, dtype=np.int64)
        if given.shape != (rows.n_rows,):
            raise ValueError(f"X has {rows.n_rows} rows, but grades have shape {given.shape}")
        if n_grades < 2:
            raise ValueError(f"there must be 2 grades at least, got n_grades={n_grades}")
        check_codes(given, n_grades, "grades")
        self.n_thresholds = n_grades - 1
        self.n_features = rows.n_inputs + self.n_thresholds
        check_number_of_weights(self.n_features)
        self._hold(rows, given)

    def _hold(self, rows: Rows, grades: Ints) -> None:
        """Take the examples."""
        self.rows, self.grades = rows, grades
        self.feature_blocks = feature_blocks_of(rows, 1, self.n_features)

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return len(self.grades)

    def subset(self, indices: Ints) -> ThresholdProblem:
        """See `Problem.subset`."""
        feature_block = copy.copy(self)
        feature_block._hold(rows_at(self.rows, indices), self.grades[indices])
        return feature_block

    # ----- one example at a time ----------------------------------------------------------------

    def input_of(self, i: int) -> Any:
        """Row i of the inputs, a CSR matrix of one row."""
        return matrix_of(self.rows, i, i + 1)

    def output_of(self, i: int) -> Bools:
        """Thresholds below the grade of example i."""
        above: Bools = self.grades[i] > np.arange(self.n_thresholds)
        return above

    def joint_feature(self, x: Any, y: Any) -> Any:
        """See `Problem.joint_feature`."""
        signs = np.where(np.asarray(y, dtype=np.bool_), 0.5, -0.5)
        _, inputs, values = entries_of(x, self.rows)
        thresholds = self.rows.n_inputs + np.arange(self.n_thresholds)
        return sparse_row(
            np.concatenate([inputs, thresholds]),
            np.concatenate([values * signs.sum(), -signs]),
            self.n_features,
        )

    def loss(self, y: Any, y_hat: Any) -> float:
        """Number of thresholds that the score is on the wrong side of."""
        return float(np.count_nonzero(np.asarray(y) != np.asarray(y_hat)))

    def predict(self, x: Any, w: Floats) -> Bools:
        """Thresholds that are below the score."""
        w = as_weights(w, self.n_features)
        _, inputs, values = entries_of(x, self.rows)
        above: Bools = values @ w[inputs] > w[self.rows.n_inputs :]
        return above

    # ----- the search ---------------------------------------------------------------------------

    def _mode(self, rescaling: Rescaling, sqrt_loss: bool) -> SearchMode:
        """See `FactoredProblem`."""
        return search_mode(rescaling, sqrt_loss)

    def _search(self, examples: Ints, w: Floats, mode: SearchMode, as_blocks: bool) -> Planes:
        """Decisions; parts are an example's whole input, and thresholds."""
        n_entries = len(examples) * (1 + self.n_thresholds)
        if not as_blocks:
            n_entries += int((self.rows.indptr[examples + 1] - self.rows.indptr[examples]).sum())
        out = empty_planes(len(examples), n_entries)
        work = np.empty(self.n_thresholds), np.empty(self.n_thresholds, np.int64), np.empty(1)
        _find_wrong(self.rows, self.grades, examples, w, mode, as_blocks, *work, out)
        return trim(out)

    def accelerators(self, formulation: Formulation) -> ThresholdAccelerators:
        """Inputs as parts."""
        return ThresholdAccelerators(self, formulation)


class ThresholdAccelerators(FactoredAccelerators):
    """An input is a part, and so is a threshold."""

    def __init__(self, problem: ThresholdProblem, formulation: Formulation) -> None:
        super().__init__(problem, formulation)
        inputs = float(problem.rows.indptr[-1]) / max(problem.rows.n_rows, 1)
        # Asked in small batches, whose cost is counted too.
        self.oracle_work = scoring_work(inputs, 1) + 10.0 * problem.n_thresholds + 1e4


@kernel(allocates=False)
def _find_wrong(rows, grades, examples, w, mode, as_blocks, margins, order, score, out):
    """The most violated decisions of each listed example: rows of dpsi, and losses.

    The decisions of the smallest margins s_k (<w, x> - b_k) are wrong: those below 1 where losses
    and hinges add up, else as many as have the largest violation together. ``margins``, ``order``
    and ``score`` are scratch.
    """
    T = len(margins)
    first_weight, first_part = np.int64(rows.n_columns), len(rows.indptr) - 1
    filled = 0
    for r in range(len(examples)):
        i = examples[r]
        score[0] = 0.0
        add_scores(rows, i, w, 1, score)
        for k in range(T):
            margin = score[0] - w[first_weight + k]
            margins[k] = margin if grades[i] > k else -margin
        n_wrong = _choose(margins, order, mode)
        n_above = 0  # true thresholds below the grade, minus others, that are wrong
        for place in range(n_wrong):
            n_above += 1 if grades[i] > order[place] else -1
        if n_above != 0:
            filled = write_block(rows, i, 1, 0, 1.0 * n_above, as_blocks, out, filled)
        for place in range(n_wrong):
            k = order[place]
            out.indices[filled] = (first_part if as_blocks else first_weight) + k
            out.values[filled] = -1.0 if grades[i] > k else 1.0
            filled += 1
        out.losses[r] = n_wrong
        out.indptr[r + 1] = filled


@kernel(allocates=False)
def _choose(margins, order, mode):
    """Put the decisions to get wrong first in ``order``; returns their number."""
    T = len(margins)
    if mode.kind == ADDITIVE:
        n_wrong = 0
        for k in range(T):
            if margins[k] < 1.0:
                order[n_wrong] = k
                n_wrong += 1
        return n_wrong
    for k in range(T):  # sorted by insertion: thresholds are mostly in order
        place = k
        while place > 0 and margins[order[place - 1]] > margins[k]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = k
    total, best, n_wrong = 0.0, 0.0, 0
    for count in range(1, T + 1):
        total += margins[order[count - 1]]
        value = 1.0 - total if mode.kind == BEST_NON_GOLD else violation(1.0 * count, -total, mode)
        if value > best:
            best, n_wrong = value, count
    return n_wrong


def best_thresholds(
    scores: Floats, grades: Ints, n_grades: int, weights: Floats | None = None
) -> Floats:
    """Thresholds with the least mean absolute error of examples with these scores, in order.

    The error is a sum over the thresholds, each of which has its own minimum. With k rising the
    examples that should be below the threshold get more, so the first minimum never falls.
    """
    order = np.argsort(scores, kind="stable")
    ranked, graded = scores[order], grades[order]
    shares = np.ones(len(order)) if weights is None else weights[order]
    ends = np.flatnonzero(np.append(np.diff(ranked) > 0.0, True))  # of runs of equal scores
    above = ranked[np.append(0, ends[:-1] + 1)]  # the scores that lie just above each place
    places = np.concatenate([[ranked[0] - 1.0], (above[:-1] + above[1:]) / 2.0])
    places = np.append(np.minimum(places, np.nextafter(above, -np.inf)), ranked[-1] + 1.0)
    thresholds = np.empty(n_grades - 1)
    for k in range(n_grades - 1):
        # By how much the error grows if the threshold rises above an example.
        steps = np.where(graded > k, shares, -shares)
        errors = np.concatenate([[0.0], np.cumsum(steps)[ends]])
        thresholds[k] = places[np.argmin(errors)]
    return np.maximum.accumulate(thresholds)  # which rounding of weights could disturb
