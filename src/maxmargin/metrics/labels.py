"""How good predicted labels of tokens and sequences are, and grades: classes in an order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..utils.tables import columns, named_values, percent
from ..utils.types import Floats, Ints
from ..utils.validation import as_floats, is_at_least
from .chunks import are_chunk_tags, chunk_scores
from .scoring import (
    Averages,
    TypeScores,
    flat_labels,
    listed,
    macro_average,
    paired,
    score_table,
    scores_of,
    sorted_labels,
    sums_of,
)

__all__ = [
    "GradeScores",
    "LabelScores",
    "Reliability",
    "grade_scores",
    "hamming",
    "label_scores",
    "reliability",
    "sequence_accuracy",
    "tagging_report",
    "token_accuracy",
]


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


def tagging_report(y_true: Sequence[Any], y_pred: Sequence[Any]) -> str:
    """Accuracies, and tables of precision, recall and F1 of chunks and of labels.

    Chunks come in where the labels are tags such as B-NP, I-NP and O. All shares are in per cent.
    The numbers behind the text: `chunk_scores`, `label_scores`, `token_accuracy` and
    `sequence_accuracy`.

    Parameters
    ----------
    y_true, y_pred : list of sequences of labels
        Of the same lengths; labels of any hashable type.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        Lengths differ; the message names the first bad sequence.

    Examples
    --------
    >>> y_true = [["B-PER", "I-PER", "O"], ["B-LOC", "O"]]
    >>> print(tagging_report(y_true, [["B-PER", "O", "O"], ["B-LOC", "O"]]))
    sequences            2
    tokens               5
    token accuracy       80.00 %
    sequences all right  50.00 %
    <BLANKLINE>
    chunks         precision  recall      F1  number
    LOC               100.00  100.00  100.00       1
    PER                 0.00    0.00    0.00       1
    micro average      50.00   50.00   50.00       2
    macro average      50.00   50.00   50.00       2
    <BLANKLINE>
    labels         precision  recall      F1  number
    B-LOC             100.00  100.00  100.00       1
    B-PER             100.00  100.00  100.00       1
    I-PER               0.00    0.00    0.00       1
    O                  66.67  100.00   80.00       2
    micro average      80.00   80.00   80.00       5
    macro average      66.67   75.00   70.00       5
    """
    y_true, y_pred = (
        listed(y, name, "sequences") for y, name in ((y_true, "y_true"), (y_pred, "y_pred"))
    )
    labels = label_scores(y_true, y_pred)
    head = named_values(
        [
            ("sequences", str(len(y_true))),
            ("tokens", str(sum(scores.n_true for scores in labels.per_label.values()))),
            ("token accuracy", f"{percent(labels.accuracy)} %"),
            ("sequences all right", f"{percent(sequence_accuracy(y_true, y_pred))} %"),
        ]
    )
    parts = [head, str(labels)]
    if are_chunk_tags(labels.per_label):
        parts.insert(1, chunk_scores(y_true, y_pred).table())
    return "\n\n".join(parts)


class GradeScores(NamedTuple):
    """Scores of predicted grades.

    Attributes
    ----------
    mean_absolute_error : float
        Mean distance, counted in grades.
    accuracy : float
        Share of right grades.
    within_one : float
        Share of grades that are right or next to it.
    kappa : float
        Cohen's kappa with quadratic weights: 1 minus the mean squared distance over that of grades
        drawn at random from what was given and what was predicted. NaN where that is 0.
    """

    mean_absolute_error: float
    accuracy: float
    within_one: float
    kappa: float

    def __str__(self) -> str:
        return named_values(
            [
                ("mean absolute error", f"{self.mean_absolute_error:.4f} grades"),
                ("accuracy", f"{percent(self.accuracy)} %"),
                ("right or next to it", f"{percent(self.within_one)} %"),
                ("kappa, quadratic weights", f"{self.kappa:.4f}"),
            ]
        )


def grade_scores(
    y_true: Sequence[Any], y_pred: Sequence[Any], grades: Sequence[Any]
) -> GradeScores:
    """Compare predicted grades with the true ones.

    Parameters
    ----------
    y_true, y_pred : sequence
        Grades of the examples.
    grades : sequence
        All grades, from the lowest to the highest.

    Returns
    -------
    GradeScores

    Raises
    ------
    ValueError
        The lists differ in length or are empty, or have something that is no grade.

    Examples
    --------
    >>> grade_scores(["low", "high"], ["low", "medium"], ["low", "medium", "high"])[:2]
    (0.5, 0.5)
    """
    y_true, y_pred = paired(y_true, y_pred, "grades")
    order = list(listed(grades, "grades", "all grades, from the lowest to the highest"))
    place = {grade: k for k, grade in enumerate(order)}
    if len(place) < len(order):
        raise ValueError(f"grades has a grade twice: {order!r:.80}")
    for i, grade in enumerate([*y_true, *y_pred]):
        if not isinstance(grade, Hashable) or grade not in place:
            name = "y_true" if i < len(y_true) else "y_pred"
            raise ValueError(
                f"{name}[{i % len(y_true)}] is {grade!r:.40} ({type(grade).__name__}), which is "
                f"not one of the grades {order!r:.80}"
            )
    true, found = (np.array([place[grade] for grade in y]) for y in (y_true, y_pred))
    far = np.abs(true - found)
    by_chance = float(np.mean((true[:, None] - np.arange(len(place))) ** 2 @ _shares(found, place)))
    kappa = 1.0 - float(np.mean(far**2)) / by_chance if by_chance else float("nan")
    return GradeScores(float(far.mean()), float(np.mean(far == 0)), float(np.mean(far <= 1)), kappa)


def _shares(found: Any, place: dict[Any, int]) -> Any:
    """How often each grade is found."""
    return np.bincount(found, minlength=len(place)) / len(found)


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
