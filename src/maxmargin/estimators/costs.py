"""What examples and wrong labels count, as users say it: weights of examples, classes and costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..metrics.costs import as_reals, cost_matrix
from ..solvers.base import checked_weights
from ..utils.types import Bools, Floats, Ints
from ..utils.validation import spelling_hint
from ..utils.warn import warn_user
from .examples import LabelEncoder, flatten_labels, n_examples_of

__all__ = [
    "CostTable",
    "check_loss",
    "costs_of_nodes",
    "costs_of_sets",
    "example_weights",
    "label_costs",
    "score_weights",
    "share_of_right",
    "used_class_weight",
]

#: What the parameter ``loss`` may be where it is no name.
CostTable = NDArray[np.generic] | list[list[float]] | Mapping[Any, Any]


def used_class_weight(class_weight: Any, has_effect: bool, otherwise: str) -> Any:
    """The parameter ``class_weight``; None, with a warning, where the loss has no use for it.

    A search over losses may set it for those that have.
    """
    if class_weight is None or has_effect:
        return class_weight
    warn_user(f"class_weight has no effect: {otherwise}")
    return None


def example_weights(
    sample_weight: ArrayLike | None, class_weight: Any, X: Any, y: NDArray[Any]
) -> Floats | None:
    """What the examples' slacks are multiplied by; None where that is 1 for all."""
    weights = _checked_weights(sample_weight, X)
    if class_weight is None:
        return weights
    classes, codes = np.unique(y, return_inverse=True)
    factors = class_factors(class_weight, classes.tolist(), codes, weights)
    return factors[codes] if weights is None else weights * factors[codes]


def class_factors(
    class_weight: Any, classes: list[Any], codes: Ints, weights: Floats | None
) -> Floats:
    """Weights of the classes by the parameter ``class_weight``.

    "balanced" counts the ``codes``, numbers of classes, by their ``weights``.
    """
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals: Floats = np.bincount(codes, weights, len(classes)).astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = totals.sum() / (len(classes) * totals)
        factors[totals == 0.0] = 0.0  # no example of weight is there to be multiplied
        return factors
    if isinstance(class_weight, Mapping):
        return _listed_factors(class_weight, classes)
    raise ValueError(
        f"class_weight must be None, 'balanced' or a mapping of class to weight, got "
        f"{class_weight!r:.60}"
    )


def _listed_factors(class_weight: Mapping[Any, Any], classes: list[Any]) -> Floats:
    """Weights of the classes by a mapping, 1 where it has none."""
    missing = [label for label in classes if label not in class_weight]
    extra = [label for label in class_weight if label not in set(classes)]
    texts = {str(label): label for label in missing}
    alike = [(label, texts[str(label)]) for label in extra if str(label) in texts]
    if alike:
        given, label = alike[0]
        raise ValueError(
            f"class_weight has {given!r:.40}, of type {type(given).__name__}; the class of y is "
            f"{label!r:.40}, of type {type(label).__name__}"
        )
    if missing and extra:  # as scikit-learn has it: a fold may lack a class
        raise ValueError(
            f"class_weight has {extra[0]!r:.40}, which is not a class of y (is it misspelt? "
            f"there is no weight of {missing[0]!r:.40})"
        )
    factors = np.array([_number(class_weight, label) for label in classes])
    bad = np.flatnonzero(~(factors >= 0.0) | ~np.isfinite(factors))
    if len(bad):
        raise ValueError(
            f"class_weight[{classes[bad[0]]!r:.40}] is {factors[bad[0]]}; weights must be finite "
            "and >= 0"
        )
    return factors


def _number(class_weight: Mapping[Any, Any], label: Any) -> float:
    """The weight of a class; ValueError unless it is a number."""
    weight = class_weight.get(label, 1.0)
    try:
        return float(weight)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"class_weight[{label!r:.40}] is {weight!r:.40}; weights must be finite and >= 0"
        ) from None


def score_weights(sample_weight: ArrayLike | None, n_examples: int) -> Floats:
    """Weights of examples in a score, ones by default; ValueError if none counts."""
    weights = checked_weights(sample_weight, n_examples)
    if not weights.any():
        raise ValueError(
            "sample_weight is 0 for all examples, expected at least one non-zero weight"
        )
    return weights


def _checked_weights(sample_weight: ArrayLike | None, X: Any) -> Floats | None:
    """Sample weights as floats; None stays None."""
    if sample_weight is None:
        return None
    n = n_examples_of(X)
    return score_weights(sample_weight, n) if n else checked_weights(sample_weight, n)


def share_of_right(right: Bools, lengths: Ints, sample_weight: Any) -> float:
    """Share of the tokens that are right, of examples of these lengths and weights."""
    if sample_weight is None:
        return float(np.mean(right))
    weights = score_weights(sample_weight, len(lengths))
    return float(np.average(right, weights=np.repeat(weights, lengths)))


# ----- costs of labels --------------------------------------------------------------------------


def check_loss(loss: Any, names: tuple[str, ...]) -> None:
    """Raise ValueError for a name that is none of these; all else may be a table of costs."""
    if loss is None or (isinstance(loss, str) and loss not in names):
        listed = ", ".join(map(repr, names))
        hint = spelling_hint(loss, names)
        raise ValueError(f"loss must be one of {listed}, or a table of costs; got {loss!r}{hint}")


def label_costs(
    loss: Any, class_weight: Any, classes: NDArray[Any], codes: Ints, weights: Floats | None
) -> Floats | None:
    """Costs of labels, true ones in rows, if there is a table of them or weights of the labels.

    ``codes`` are the labels that "balanced" counts, ``weights`` how much each of them counts.
    """
    costs = None if isinstance(loss, str) else cost_matrix(loss, classes.tolist())
    if class_weight is None:
        return costs
    factors = class_factors(class_weight, classes.tolist(), codes, weights)
    unweighted = 1.0 - np.eye(len(classes)) if costs is None else costs
    return factors[:, None] * unweighted


def costs_of_nodes(
    loss: Any, class_weight: Any, classes: list[NDArray[Any]], codes: Ints, weights: Floats | None
) -> Floats | None:
    """Costs of the labels of nodes with label sets of their own, a row for each true label.

    Rows of the first node come first; they are as long as the most labels of a node ask for. A
    table is one for all labels of all nodes, sorted, or a list with that of each node. Negative
    codes are labels that are not known.
    """
    if isinstance(loss, str) and class_weight is None:
        return None
    every = LabelEncoder.of(flatten_labels([labels.tolist() for labels in classes]))
    numbers = [every.encode(flatten_labels([labels.tolist()])) for labels in classes]
    by_node = isinstance(loss, (list, tuple, np.ndarray)) and all(map(_is_table, loss))
    if by_node and len(loss) != len(classes):
        raise ValueError(f"loss has tables of {len(loss)} nodes, expected {len(classes)}")
    shared = None if isinstance(loss, str) or by_node else cost_matrix(loss, every.classes.tolist())
    table = np.zeros((sum(map(len, classes)), max(map(len, classes))))
    first = 0
    for v, labels in enumerate(classes):
        K = len(labels)
        costs = 1.0 - np.eye(K)
        if by_node:
            try:
                costs = cost_matrix(loss[v], labels.tolist())
            except ValueError as error:
                raise ValueError(f"node {v}: {error}") from None
        elif shared is not None:
            costs = shared[np.ix_(numbers[v], numbers[v])]
        if isinstance(class_weight, Mapping):
            listed = class_factors(class_weight, every.classes.tolist(), codes[:, v], weights)
            costs = listed[numbers[v], None] * costs
        elif class_weight is not None:
            known = codes[:, v] >= 0
            own = None if weights is None else weights[known]
            factors = class_factors(class_weight, labels.tolist(), codes[known, v], own)
            costs = factors[:, None] * costs
        table[first : first + K, :K] = costs
        first += K
    return table


def _is_table(value: Any) -> bool:
    """Whether this has costs of pairs of labels: it is a mapping, or made of rows."""
    return isinstance(value, Mapping) or (
        isinstance(value, (list, tuple, np.ndarray))
        and all(isinstance(row, (list, tuple, np.ndarray)) and np.ndim(row) > 0 for row in value)
    )


def costs_of_sets(
    loss: Any, class_weight: Any, gold: Bools, weights: Floats | None
) -> Floats | None:
    """Costs of missing and of adding each label, if there are any or weights of on and off."""
    n_labels = gold.shape[1]
    costs = None if isinstance(loss, str) else _pair_costs(loss, n_labels)
    class_weight = used_class_weight(
        class_weight,
        costs is not None or loss == "hamming",
        f"it weighs labels, and loss={loss!r} does not add up over them; use loss='hamming', or a "
        "table of costs",
    )
    if class_weight is None:
        return costs
    by_label = isinstance(class_weight, (list, tuple))
    if by_label and len(class_weight) != n_labels:
        raise ValueError(
            f"class_weight lists weights of {len(class_weight)} labels, expected {n_labels}"
        )
    listed = class_weight if by_label else [class_weight] * n_labels
    codes = gold.astype(np.int64)
    factors = []
    for k, of in enumerate(listed):
        try:
            factors.append(class_factors(of, [0, 1], codes[:, k], weights))
        except ValueError as error:
            raise ValueError(f"label {k}: {error}" if by_label else str(error)) from None
    # A label that is on is missed, one that is off is added.
    off_and_on = np.array(factors)[:, ::-1]
    return off_and_on * (np.ones((n_labels, 2)) if costs is None else costs)


def _pair_costs(loss: Any, n_labels: int) -> Floats:
    """Costs of missing and of adding each label; ValueError unless the parameter says them."""
    try:
        costs = as_reals(loss)
    except (TypeError, ValueError):
        raise ValueError(
            "loss must be the name of a loss, or the costs of a missed and of an added "
            f"label, for all labels or in a row for each; got {loss!r:.60}"
        ) from None
    if costs.shape == (2,):
        costs = np.tile(costs, (n_labels, 1))
    if costs.shape != (n_labels, 2):
        raise ValueError(
            f"loss has shape {costs.shape}; expected {(n_labels, 2)}, the costs of missing and of "
            "adding each label, or (2,), those of all"
        )
    wrong = np.argwhere(~(np.isfinite(costs) & (costs >= 0.0)))
    if len(wrong):
        label, kind = wrong[0].tolist()
        raise ValueError(
            f"loss says that {('missing', 'adding')[kind]} label {label} costs "
            f"{costs[label, kind]}; expected a finite number >= 0"
        )
    return costs
