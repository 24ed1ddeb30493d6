"""How good predicted labels of tokens and sequences are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..types import Floats, Ints
from .counts import Averages, TypeScores, macro_average, score_table, scores_of
from .sequences import flat_labels, sorted_labels, sums_of

__all__ = ["LabelScores", "hamming", "label_scores", "sequence_accuracy", "token_accuracy"]


class LabelScores(NamedTuple):
    """Scores of predicted labels.

    Attributes
    ----------
    accuracy : float
        Share of tokens with the right label, between 0 and 1. Precision, recall and F1 over all
        labels together are the same number.
    per_label : dict of label to TypeScores
        Precision, recall, F1 and numbers of tokens of each label, in sorted order.
    """

    accuracy: float
    per_label: dict[Any, TypeScores]

    @property
    def macro(self) -> Averages:
        """Plain means of the scores of the labels."""
        return macro_average(self.per_label)

    def __repr__(self) -> str:
        return f"LabelScores(accuracy={self.accuracy:.4f}, {len(self.per_label)} labels)"

    def __str__(self) -> str:
        return score_table("labels", self.per_label, Averages(*[self.accuracy] * 3))


def label_scores(y_true: Sequence[Any], y_pred: Sequence[Any]) -> LabelScores:
    """Precision, recall and F1 of each label of tokens.

    Parameters
    ----------
    y_true, y_pred : list of sequences of labels
        Of the same lengths; labels of any hashable type.

    Returns
    -------
    LabelScores
        It prints as a table.

    Examples
    --------
    >>> print(label_scores([["D", "N", "V"]], [["D", "N", "N"]]))
    labels         precision  recall      F1  number
    D                 100.00  100.00  100.00       1
    N                  50.00  100.00   66.67       1
    V                   0.00    0.00    0.00       1
    micro average      66.67   66.67   66.67       3
    macro average      50.00   66.67   55.56       3
    """
    true, predicted, _ = flat_labels(y_true, y_pred)
    n_true, n_predicted = Counter(true), Counter(predicted)
    n_correct = Counter(a for a, b in zip(true, predicted, strict=True) if a == b)
    return LabelScores(
        n_correct.total() / len(true),
        {
            label: scores_of(n_true[label], n_predicted[label], n_correct[label])
            for label in sorted_labels({*n_true, *n_predicted})
        },
    )


def token_accuracy(y_true: Sequence[Any], y_pred: Sequence[Any]) -> float:
    """Share of tokens with the right label.

    Parameters
    ----------
    y_true, y_pred : list of sequences of labels
        Of the same lengths; labels of any hashable type.

    Returns
    -------
    float
    """
    wrong, lengths = _count_wrong(y_true, y_pred)
    return float(1.0 - wrong.sum() / lengths.sum())


def sequence_accuracy(y_true: Sequence[Any], y_pred: Sequence[Any]) -> float:
    """Share of sequences with all labels right.

    Parameters
    ----------
    y_true, y_pred : list of sequences of labels
        Of the same lengths; labels of any hashable type.

    Returns
    -------
    float
    """
    wrong, _ = _count_wrong(y_true, y_pred)
    return float(np.mean(wrong == 0))


def hamming(y_true: Sequence[Any], y_pred: Sequence[Any], *, normalize: bool = False) -> Floats:
    """Hamming loss of each sequence: the number of wrong labels.

    Parameters
    ----------
    y_true, y_pred : list of sequences of labels
        Of the same lengths; labels of any hashable type.
    normalize : bool, default=False
        Divide by the length of the sequence.

    Returns
    -------
    ndarray of float64, shape (n_sequences,)
    """
    wrong, lengths = _count_wrong(y_true, y_pred)
    return wrong / np.maximum(lengths, 1) if normalize else wrong.astype(np.float64)


def _count_wrong(y_true: Sequence[Any], y_pred: Sequence[Any]) -> tuple[Ints, Ints]:
    """Number of wrong labels and of all labels in each sequence."""
    true, predicted, offsets = flat_labels(y_true, y_pred)
    differs = np.fromiter(
        (a != b for a, b in zip(true, predicted, strict=True)), np.int64, len(true)
    )
    return sums_of(differs, offsets), np.diff(offsets)
