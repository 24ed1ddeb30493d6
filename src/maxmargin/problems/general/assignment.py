"""Matchings of two sets, by linear assignment."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from ...search.limits import as_numbers
from ...utils.types import Floats, Ints
from ...utils.validation import first_unusable, unusable
from .slots import NoOutput, SlotLoss, SlotProblem

__all__ = ["AssignmentProblem"]


class AssignmentProblem(SlotProblem):
    """Match the items of a left set with those of a right one, each with one other at most.

    An input is an array of shape (n_left, n_right, n_pair_features): the features of every pair. An
    output has the partner of each left item, -1 where it has none. The joint feature vector is the
    sum of the features of all pairs that are matched.

    Parameters
    ----------
    loss : {"hamming", "normalized_hamming", "zero_one"}
        Number of left items with a wrong partner, their share, or 1 if there are any.
    allow_unmatched : bool
        Whether items may stay alone. Without it there are as many pairs as the smaller set has
        items.
    fit_intercept : bool
        Add a constant feature of pairs, the last one: what a pair is worth against none.

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> pairs = np.array([[[1.0], [0.0]], [[0.9], [0.2]]])
    >>> problem = mm.AssignmentProblem().bind([pairs], [[0, 1]])
    >>> problem.predict(pairs, np.array([1.0])).tolist()
    [0, 1]
    """

    trusted = True

    def __init__(
        self,
        loss: SlotLoss = "hamming",
        *,
        allow_unmatched: bool = False,
        fit_intercept: bool = False,
    ) -> None:
        super().__init__(loss)
        self.allow_unmatched = allow_unmatched
        self.fit_intercept = fit_intercept

    def input_of(self, x: Any, where: str = "") -> Floats:
        """See `SlotProblem`."""
        pairs = as_numbers(x, where)
        if pairs.ndim != 3:
            raise ValueError(
                f"{where}expected features of pairs, of shape (n_left, n_right, n_features), got "
                f"shape {pairs.shape}"
            )
        bad = first_unusable(pairs)
        if bad is not None:
            left, right, feature = np.unravel_index(bad, pairs.shape)
            raise ValueError(
                f"{where}feature {feature} of the pair ({left}, {right}) is "
                f"{unusable(pairs[left, right, feature])}"
            )
        return pairs

    def check_output(self, x: Floats, y: Any, where: str) -> None:
        """See `SlotProblem`."""
        n_left, n_right = x.shape[:2]
        partners = np.asarray(y)
        if partners.shape != (n_left,) or (n_left and partners.dtype.kind not in "iu"):
            raise ValueError(
                f"{where}there are {n_left} left items; expected as many numbers of partners, -1 "
                f"for none, got {y!r:.60}"
            )
        outside = np.flatnonzero((partners < -1) | (partners >= n_right))
        if len(outside):
            raise ValueError(
                f"{where}the partner of left item {outside[0]} is {partners[outside[0]]}; right "
                f"items are numbered from 0 to {n_right - 1}"
            )
        used, counts = np.unique(partners[partners >= 0], return_counts=True)
        if (counts > 1).any():
            raise ValueError(
                f"{where}right item {used[np.argmax(counts > 1)]} is the partner of several items"
            )
        if not self.allow_unmatched and len(used) < min(n_left, n_right):
            raise ValueError(
                f"{where}there are {len(used)} pairs of {min(n_left, n_right)} that are possible; "
                "matchings in which items stay alone need allow_unmatched=True"
            )

    def width_of(self, x: Floats) -> int:
        """See `SlotProblem`."""
        return int(x.shape[2]) + int(self.fit_intercept)

    def joint_feature(self, x: Any, y: Any) -> Floats:
        """Sum of the features of the matched pairs."""
        x, partners = np.asarray(x, np.float64), np.asarray(y, np.int64)
        matched = np.flatnonzero(partners >= 0)
        n_known = len(matched) + np.count_nonzero(partners == -1)
        try:
            if partners.shape != x.shape[:1] or n_known < len(partners):
                raise IndexError
            total: Floats = x[matched, partners[matched]].sum(axis=0)
        except IndexError:
            raise ValueError(
                f"there are {x.shape[0]} left and {x.shape[1]} right items; expected a partner of "
                f"each left one, -1 for none, got {y!r:.60}"
            ) from None
        return np.append(total, float(len(matched))) if self.fit_intercept else total

    def shape_of(self, x: Floats) -> tuple[int, int]:
        """See `SlotProblem`; the last label is to have no partner."""
        return x.shape[0], x.shape[1] + 1

    def labels_of(self, x: Floats, y: Any) -> Ints:
        """See `SlotProblem`."""
        partners = np.asarray(y, np.int64)
        return np.where(partners < 0, x.shape[1], partners)

    def output_of(self, x: Floats, labels: Ints) -> Ints:
        """See `SlotProblem`."""
        return np.where(labels == x.shape[1], -1, labels)

    def scores_of(self, x: Floats, w: Floats) -> _Table:
        """See `SlotProblem`."""
        n_left, n_right, d = x.shape
        table = np.zeros((n_left, n_right + 1))
        table[:, :-1] = x @ w[:d] + (w[d] if self.fit_intercept else 0.0)
        return _Table(table, n_left if self.allow_unmatched else max(0, n_left - n_right))


class _Table:
    """Scores of pairs, and of items without a partner in the last column."""

    def __init__(self, table: Floats, n_alone: int) -> None:
        self.table = table
        self.n_alone = n_alone  # left items that may have no partner

    def best(self, bonus: Floats) -> Ints:
        """See `SlotScores`."""
        n_right = self.table.shape[1] - 1
        total = self.table + bonus
        # Any item may take any of the columns that stand for no partner: they score the same.
        columns = np.concatenate([np.arange(n_right), np.full(self.n_alone, n_right)])
        try:
            rows, found = linear_sum_assignment(total[:, columns], maximize=True)
        except ValueError as error:  # "cost matrix is infeasible", or not numbers
            if np.isnan(total).any():
                raise ValueError("the scores of pairs are not finite") from error
            raise NoOutput from error
        labels = np.empty(len(total), np.int64)
        labels[rows] = columns[found]
        return labels

    def score(self, labels: Ints) -> float:
        """See `SlotScores`."""
        return float(self.table[np.arange(len(labels)), labels].sum())
