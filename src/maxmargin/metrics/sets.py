"""How good predicted sets of labels are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..features.containers import is_frame
from ..utils.tables import named_values, percent
from ..utils.types import Bools
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

__all__ = ["SetScores", "as_indicators", "set_scores"]


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
