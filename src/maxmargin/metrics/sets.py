"""Scores of sets: of labels, and of the pairs of alignments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..features.containers import is_frame
from ..utils.tables import named_values, percent
from ..utils.types import Bools, Floats
from ..utils.validation import as_floats
from .scoring import (
    NAMES,
    Averages,
    TypeScores,
    check_labels,
    listed,
    macro_average,
    paired,
    score_table,
    scores_of,
)

__all__ = [
    "AlignmentScores",
    "SetScores",
    "alignment_scores",
    "as_indicators",
    "pair_accuracies",
    "set_scores",
]


class SetScores(NamedTuple):
    """Scores of predicted sets of labels, between 0 and 1.

    Attributes
    ----------
    subset_accuracy : float
        Share of examples whose labels are all right, and no others.
    hamming_loss : float
        Share of wrong decisions, over all examples and labels.
    example_f1 : float
        F1 of the labels of an example, mean over the examples; two empty sets have an F1 of 1.
    micro : Averages
        Precision, recall and F1 over the labels of all examples together.
    per_label : dict of label to TypeScores
        The same for each label.
    """

    subset_accuracy: float
    hamming_loss: float
    example_f1: float
    micro: Averages
    per_label: dict[Any, TypeScores]

    @property
    def macro(self) -> Averages:
        """Plain means of the scores of the labels."""
        return macro_average(self.per_label)

    def __str__(self) -> str:
        shares = [
            ("labels all right", self.subset_accuracy),
            ("Hamming loss", self.hamming_loss),
            ("F1 of examples", self.example_f1),
        ]
        head = named_values((name, f"{percent(share)} %") for name, share in shares)
        return f"{head}\n\n{score_table('labels', self.per_label, self.micro)}"


def set_scores(
    y_true: Sequence[Collection[Any]],
    y_pred: Sequence[Collection[Any]],
    *,
    labels: Iterable[Any] = (),
) -> SetScores:
    """Compare predicted sets of labels with the true ones.

    Parameters
    ----------
    y_true, y_pred : array or sparse matrix of shape (n_examples, n_labels), or list of collections
        Indicators: 0 and 1 in a column for each label, as `MultilabelSVM` has them, also as a
        DataFrame or as lists. Or the labels of each example, of any hashable type, none twice. Both
        have to be of the same form.
    labels : iterable, optional
        Of indicators the names of the columns, by default numbers from 0 or the columns of the
        DataFrame. Of collections, labels that count although no example has them.

    Returns
    -------
    SetScores
        It prints as a table.

    Raises
    ------
    ValueError
        The numbers of examples or of columns differ, or something is neither an indicator nor a
        collection of labels.

    Examples
    --------
    >>> scores = set_scores([{"a", "b"}, {"b"}], [{"a"}, {"b"}])
    >>> scores.subset_accuracy, scores.hamming_loss, scores.micro.f1
    (0.5, 0.25, 0.8)
    >>> set_scores([[1, 1, 0], [0, 1, 0]], [[1, 0, 0], [0, 1, 0]]).micro.f1
    0.8
    """
    pairs, counted = _read(y_true, y_pred, list(labels))
    n_true, n_predicted, n_correct = (
        Counter(label for found in sets for label in found)
        for sets in ([a for a, _ in pairs], [b for _, b in pairs], [a & b for a, b in pairs])
    )
    names = sorted({*n_true, *n_predicted, *counted}, key=_order)
    wrong = sum(len(a ^ b) for a, b in pairs)
    total = scores_of(n_true.total(), n_predicted.total(), n_correct.total())
    return SetScores(
        sum(a == b for a, b in pairs) / len(pairs),
        wrong / (len(pairs) * max(len(names), 1)),
        sum(2 * len(a & b) / (len(a) + len(b)) if a or b else 1.0 for a, b in pairs) / len(pairs),
        Averages(*total[:3]),
        {name: scores_of(n_true[name], n_predicted[name], n_correct[name]) for name in names},
    )


def as_indicators(y: Any, n_examples: int, name: str = "y") -> Bools:
    """Which labels are on; ValueError unless y has 0 and 1 in a row for each example."""
    try:
        given: NDArray[Any] = y.toarray() if sp.issparse(y) else np.asarray(y)
    except ValueError:  # lists of different lengths
        given = np.empty(n_examples, dtype=object)
    if given.ndim != 2 or len(given) != n_examples or given.shape[1] == 0:
        raise ValueError(
            f"{name} must have a row of 0 and 1 for each of {n_examples} examples, a column for "
            f"each label; got an array of shape {given.shape}. "
            "sklearn.preprocessing.MultiLabelBinarizer makes it from lists of labels"
        )
    if given.dtype.kind not in "biuf" and given.dtype != object:
        raise ValueError(f"{name} must be 0 and 1, got an array of {given.dtype}")
    wrong = np.argwhere((given != 0) & (given != 1))
    if len(wrong):
        row, column = (int(k) for k in wrong[0])
        value = given[row : row + 1, column].tolist()[0]
        raise ValueError(f"{name}[{row}, {column}] is {value!r}; expected 0 or 1")
    return given.astype(np.bool_)


def _read(
    y_true: Any, y_pred: Any, labels: list[Any]
) -> tuple[list[tuple[set[Any], set[Any]]], list[Any]]:
    """Sets of labels of each example, and labels that count although none has them."""
    both = [
        y if _is_matrix(y) else listed(y, n, "sets of labels") for y, n in _named(y_true, y_pred)
    ]
    are_matrices = [_is_matrix(y) for y in both]
    if not any(are_matrices) and all(map(_looks_like_indicators, both)):
        are_matrices = [True, True]
    if any(are_matrices) and not all(are_matrices):
        raise ValueError(
            "expected indicators of 0 and 1 as y_true and y_pred, or collections of labels as "
            "both; found one of each"
        )
    if are_matrices[0]:
        return _sets_of_columns(both[0], both[1], labels)
    true, predicted = paired(both[0], both[1], "sets of labels")
    sets = [[_as_set(own, n, i) for i, own in enumerate(y)] for y, n in _named(true, predicted)]
    flat = [[label for own in y for label in own] for y in sets]
    check_labels(flat[0], flat[1], lambda k: f"label {k}")
    return list(zip(*sets, strict=True)), labels


def _sets_of_columns(
    y_true: Any, y_pred: Any, labels: list[Any]
) -> tuple[list[tuple[set[Any], set[Any]]], list[Any]]:
    """Sets of the labels whose columns are 1."""
    lengths = [y.shape[0] if hasattr(y, "shape") else len(y) for y in (y_true, y_pred)]
    tables = [as_indicators(y, lengths[0], n) for y, n in _named(y_true, y_pred)]
    if lengths[0] == 0 or tables[0].shape != tables[1].shape:
        raise ValueError(
            f"y_true has the shape {tables[0].shape}, y_pred {tables[1].shape}; expected the same "
            "numbers of examples, at least one, and of labels"
        )
    columns = [list(y.columns) for y in (y_true, y_pred) if is_frame(y)]
    if len(columns) == 2 and columns[0] != columns[1]:
        raise ValueError("y_true and y_pred have different columns, or in a different order")
    names = labels or (columns[0] if columns else list(range(tables[0].shape[1])))
    if len(set(names)) != tables[0].shape[1] or len(names) != tables[0].shape[1]:
        raise ValueError(
            f"expected a different name for each of {tables[0].shape[1]} columns, got {names!r:.60}"
        )
    rows = ([{names[j] for j in np.flatnonzero(row).tolist()} for row in t] for t in tables)
    return list(zip(*rows, strict=True)), names


def _named(y_true: Any, y_pred: Any) -> Iterable[tuple[Any, str]]:
    """Both with their names."""
    return zip((y_true, y_pred), NAMES, strict=True)


def _is_matrix(y: Any) -> bool:
    """Whether this can be nothing but indicators."""
    return sp.issparse(y) or is_frame(y) or getattr(y, "ndim", 1) == 2


def _looks_like_indicators(y: Any) -> bool:
    """Whether lists are rows of a matrix of 0 and 1: as long as each other, and two at least."""
    widths = {len(own) if isinstance(own, (list, tuple, np.ndarray)) else 0 for own in y}
    return len(widths) == 1 and max(widths) > 1 and all(v in (0, 1) for own in y for v in own)


def _as_set(given: Any, name: str, i: int) -> set[Any]:
    """The labels of an example; ValueError unless they are a collection, none of them twice."""
    if isinstance(given, (set, frozenset)):
        return set(given)
    if isinstance(given, (str, bytes, Mapping)) or not hasattr(given, "__iter__"):
        raise ValueError(
            f"{name}[{i}] is {given!r:.40}, expected a collection of labels, such as {{'a', 'b'}}"
        )
    own = given.tolist() if isinstance(given, np.ndarray) else list(given)
    try:
        found = set(own)
    except TypeError:
        raise ValueError(f"{name}[{i}] is {given!r:.40}, expected a collection of labels") from None
    if len(found) < len(own):
        raise ValueError(
            f"{name}[{i}] has a label twice: {given!r:.40}; expected a collection of labels, or "
            "rows of 0 and 1 of the same length"
        )
    return found


def _order(label: Any) -> tuple[str, Any]:
    """Numbers by value, all else by name."""
    is_number = isinstance(label, (int, float))
    return ("", label) if is_number else (type(label).__name__, str(label))


class AlignmentScores(NamedTuple):
    """Scores of predicted alignments.

    Attributes
    ----------
    pair_accuracy : float
        Share of the true pairs that were found, mean over the examples (the developer score or
        Q-score of the alignment literature).
    precision, recall, f1 : float
        Over the pairs of all examples together; 0 where there is nothing to divide by.
    exact : float
        Share of alignments that are right as a whole.
    """

    pair_accuracy: float
    precision: float
    recall: float
    f1: float
    exact: float

    def __str__(self) -> str:
        names = ("pairs found, mean", "precision of pairs", "recall of pairs", "F1 of pairs")
        fractions = zip((*names, "alignments right"), self, strict=True)
        return named_values((name, f"{percent(fraction)} %") for name, fraction in fractions)


def pair_counts(truths: Sequence[ArrayLike], predictions: Sequence[ArrayLike]) -> Floats:
    """True pairs, predicted pairs, and those that are both, of each example."""
    both = paired(truths, predictions, "alignments", ("truths", "predictions"))
    counts = np.zeros((len(both[0]), 3))
    for i, (row, truth, prediction) in enumerate(zip(counts, *both, strict=True)):
        true_pairs, found = _pairs(truth, f"truths[{i}]"), _pairs(prediction, f"predictions[{i}]")
        row[:] = len(true_pairs), len(found), len(true_pairs & found)
    return counts


def _pairs(given: ArrayLike, name: str) -> set[tuple[int, ...]]:
    """Pairs of positions; ValueError unless they are those of an alignment, from left to right."""
    found = as_floats(given, name)
    if found.size and (found.ndim != 2 or found.shape[1] != 2):
        raise ValueError(f"{name} must be pairs of positions, got {given!r:.60}")
    pairs = found.reshape(-1, 2)
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    is_whole = np.isfinite(pairs) & (pairs >= 0) & (pairs == np.floor(pairs))
    if not is_whole.all() or (np.diff(pairs, axis=0) <= 0).any():
        raise ValueError(
            f"{name} must be pairs of positions (whole numbers from 0), none of them twice, and no "
            f"two pairs that cross; got {given!r:.60}"
        )
    return set(map(tuple, pairs.astype(np.int64).tolist()))


def pair_accuracies(truths: Sequence[ArrayLike], predictions: Sequence[ArrayLike]) -> Floats:
    """Share of the true pairs of each example that were found; 1 where there are none.

    Parameters
    ----------
    truths, predictions : sequence of array of int, shape (n_pairs, 2)
        Paired positions.

    Returns
    -------
    ndarray of shape (n_examples,)
    """
    return _fractions_found(pair_counts(truths, predictions))


def _fractions_found(counts: Floats) -> Floats:
    """Share of the true pairs that were found, of the counts of each example."""
    n_true, _, n_right = counts.T
    fractions: Floats = np.where(n_true > 0, n_right / np.maximum(n_true, 1.0), 1.0)
    return fractions


def alignment_scores(
    truths: Sequence[ArrayLike], predictions: Sequence[ArrayLike]
) -> AlignmentScores:
    """Compare predicted alignments with the true ones.

    Parameters
    ----------
    truths, predictions : sequence of array of int, shape (n_pairs, 2)
        Paired positions.

    Returns
    -------
    AlignmentScores

    Examples
    --------
    >>> alignment_scores([[[0, 0], [1, 1]]], [[[0, 0], [1, 2]]]).recall
    0.5
    """
    counts = pair_counts(truths, predictions)
    n_true, n_found, n_right = counts.sum(axis=0)
    precision = float(n_right / n_found) if n_found else 0.0
    recall = float(n_right / n_true) if n_true else 0.0
    both = precision + recall
    return AlignmentScores(
        pair_accuracy=float(_fractions_found(counts).mean()),
        precision=precision,
        recall=recall,
        f1=2.0 * precision * recall / both if both else 0.0,
        exact=float((counts == counts[:, :1]).all(axis=1).mean()),
    )
