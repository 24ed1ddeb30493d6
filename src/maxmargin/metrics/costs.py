"""What wrong labels cost: tables of it, and the mean over predictions."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..utils.types import Floats
from ..utils.validation import is_list
from ..utils.warn import warn_user
from .scoring import check_labels, flat_labels, flatten, listed, paired, sorted_labels

__all__ = ["as_reals", "cost_matrix", "mean_cost"]


def mean_cost(
    y_true: Sequence[Any], y_pred: Sequence[Any], costs: Any, labels: Sequence[Any] | None = None
) -> float:
    """Mean cost of predicted labels; 1 is what a wrong label costs with costs of 1.

    Parameters
    ----------
    y_true, y_pred : sequence of labels, or list of sequences of labels
        True and predicted labels, of classes or of tokens. A tuple is a label where ``labels`` or
        ``costs`` name it, and otherwise a sequence of labels.
    costs : array of shape (n_labels, n_labels) or mapping
        The cost of predicting a label (column) where another is right (row), or a mapping
        ``{(right, predicted): cost}`` or ``{right: {predicted: cost}}``, where what is not named
        costs 1; as the parameter ``loss`` of estimators has it.
    labels : sequence of labels, optional
        In the order of the rows, such as ``estimator.classes_``; by default those of ``y_true`` and
        ``y_pred``, sorted.

    Returns
    -------
    float

    Examples
    --------
    >>> mean_cost(["O", "A", "A"], ["O", "O", "A"], {("A", "O"): 6.0})
    2.0
    """
    true, predicted = paired(y_true, y_pred, "labels")
    if _are_sequences([*true, *predicted], costs, labels):
        true, predicted, _ = flat_labels(true, predicted)
    else:
        true, predicted = flatten([true]), flatten([predicted])
        check_labels(true, predicted, lambda k: f"label {k}")
    if labels is None:
        order = sorted_labels({*true, *predicted})
    else:
        order = list(listed(labels, "labels", "labels in the order of the rows of costs"))
        if len(set(order)) < len(order):
            raise ValueError(f"labels has a label twice: {_shown(order)}")
    matrix = cost_matrix(costs, order, are_all=False)
    number = {label: k for k, label in enumerate(order)}
    unknown = [label for label in (*true, *predicted) if label not in number]
    if unknown:
        raise ValueError(f"{unknown[0]!r:.40} is not one of the labels {_shown(order)}")
    rows, columns = ([number[label] for label in given] for given in (true, predicted))
    return float(matrix[rows, columns].mean())


def _are_sequences(given: list[Any], costs: Any, labels: Sequence[Any] | None) -> bool:
    """Whether these are sequences of labels; tuples that are named as labels are labels."""
    if not all(is_list(value) or hasattr(value, "__next__") for value in given):
        return False
    named = [] if labels is None else list(labels)
    if labels is None and isinstance(costs, Mapping):
        for key, cost in costs.items():
            named += [key, *cost] if isinstance(cost, Mapping) else key
    return not any(value in named for value in given if isinstance(value, tuple))


def cost_matrix(table: Any, labels: list[Any], are_all: bool = True) -> Floats:
    """A cost matrix in the order of the labels, true ones in rows; ValueError unless it is one.

    A mapping has the cost of ``(true, predicted)``, or for each true label a mapping from the
    predicted one; what it does not name costs 1. If the labels are all there are, others that it
    names are warned of.
    """
    K = len(labels)
    if isinstance(table, Mapping):
        costs = 1.0 - np.eye(K)
        for (true, predicted), cost in _pairs(table, labels, are_all):
            costs[true, predicted] = _number(cost, labels[true], labels[predicted])
    else:
        try:
            costs = as_reals(table)
        except (TypeError, ValueError):
            raise ValueError(
                f"loss must be the name of a loss or a table of costs, numbers in {K} rows of "
                f"{K} or a mapping from pairs of labels; got {table!r:.60}"
            ) from None
        if costs.shape != (K, K):
            raise ValueError(
                f"loss has shape {costs.shape}; expected {(K, K)}, the labels {_shown(labels)} in "
                "rows where they are right and in columns where they are predicted"
            )
    wrong = ~(np.isfinite(costs) & (costs >= 0.0))
    wrong[np.diag_indices(K)] |= np.diag(costs) != 0.0
    if wrong.any():
        true, predicted = np.argwhere(wrong)[0]
        expected = "nothing" if true == predicted else "a finite number from 0 on"
        raise ValueError(
            f"loss says that {labels[predicted]!r:.40} costs {costs[true, predicted]} where "
            f"{labels[true]!r:.40} is right; expected {expected}"
        )
    return costs


def as_reals(table: Any) -> Floats:
    """A table as an array of its own; TypeError or ValueError unless it holds real numbers."""
    given = np.asarray(table)
    if np.iscomplexobj(given):  # NumPy would drop the imaginary parts
        raise TypeError("expected real numbers, got complex ones")
    try:
        return np.array(given, dtype=np.float64)
    except OverflowError:  # of whole numbers of Python
        raise ValueError("expected numbers that are floats, got a larger one") from None


def _pairs(
    table: Mapping[Any, Any], labels: list[Any], are_all: bool
) -> list[tuple[tuple[int, int], Any]]:
    """Pairs of label numbers that a mapping names, with their costs."""
    entries: list[tuple[Any, Any, Any]] = []
    for key, value in table.items():
        if isinstance(value, Mapping):
            entries += [(key, predicted, cost) for predicted, cost in value.items()]
        elif isinstance(key, tuple) and len(key) == 2:
            entries.append((*key, value))
        else:
            raise ValueError(
                f"loss has {key!r:.40}: {value!r:.40}; expected (true label, predicted label): "
                "cost, or true label: {predicted label: cost}"
            )
    number = {label: k for k, label in enumerate(labels)}
    texts = {str(label): label for label in labels}
    found, unknown = [], []
    for true, predicted, cost in entries:
        missing = [label for label in (true, predicted) if label not in number]
        for label in missing:
            if str(label) in texts:
                known = texts[str(label)]
                raise ValueError(
                    f"loss has {label!r:.40}, of type {type(label).__name__}; the label of y is "
                    f"{known!r:.40}, of type {type(known).__name__}"
                )
        if missing:
            unknown += missing
        else:
            found.append(((number[true], number[predicted]), cost))
    if unknown and are_all:  # no error: a fold may lack a label
        near = difflib.get_close_matches(str(unknown[0]), list(texts), n=1)
        meant = f" (did you mean {texts[near[0]]!r:.40}?)" if near else ""
        warn_user(
            f"loss has costs of {unknown[0]!r:.40}, which is not a label in y{meant}; labels are "
            f"{_shown(labels)}"
        )
    return found


def _number(cost: Any, true: Any, predicted: Any) -> float:
    """A cost as a number; ValueError unless it is one."""
    try:
        return float(cost)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"loss has {cost!r:.40} for {(true, predicted)!r:.60}, expected a number"
        ) from None


def _shown(labels: list[Any]) -> str:
    """The first labels, for messages."""
    return ", ".join(repr(label) for label in labels[:6]) + (", ..." if len(labels) > 6 else "")
