"""What wrong labels cost, as users say it: a matrix, a mapping, or weights of the true labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics.costs import cost_matrix
from ..types import Floats, Ints
from .example_weights import class_factors
from .labels import LabelEncoder, flatten_labels

__all__ = ["CostTable", "costs_of_nodes", "label_costs", "refuse_unknown_loss"]

#: What the parameter ``loss`` may be where it is no name.
CostTable = NDArray[np.generic] | list[list[float]] | Mapping[Any, Any]


def refuse_unknown_loss(loss: Any, names: tuple[str, ...]) -> None:
    """Raise ValueError for a name that is none of these; all else may be a table of costs."""
    if loss is None or (isinstance(loss, str) and loss not in names):
        listed = ", ".join(map(repr, names))
        raise ValueError(f"loss must be one of {listed}, or a table of costs; got {loss!r}")


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
    table is one for all labels of all nodes, sorted, or a list with that of each node.
    """
    if isinstance(loss, str) and class_weight is None:
        return None
    every = LabelEncoder.of(flatten_labels([labels.tolist() for labels in classes]))
    numbers = [every.encode(flatten_labels([labels.tolist()])) for labels in classes]
    by_node = isinstance(loss, (list, tuple, np.ndarray)) and all(np.ndim(t) == 2 for t in loss)
    if by_node and len(loss) != len(classes):
        raise ValueError(f"loss has tables of {len(loss)} nodes, expected {len(classes)}")
    shared = None if isinstance(loss, str) or by_node else cost_matrix(loss, every.classes.tolist())
    table = np.zeros((sum(map(len, classes)), max(map(len, classes))))
    first = 0
    for v, labels in enumerate(classes):
        K = len(labels)
        costs = 1.0 - np.eye(K)
        if by_node:
            costs = cost_matrix(loss[v], labels.tolist())
        elif shared is not None:
            costs = shared[np.ix_(numbers[v], numbers[v])]
        if isinstance(class_weight, Mapping):
            listed = class_factors(class_weight, every.classes.tolist(), codes[:, v], weights)
            costs = listed[numbers[v], None] * costs
        elif class_weight is not None:
            costs = (
                class_factors(class_weight, labels.tolist(), codes[:, v], weights)[:, None] * costs
            )
        table[first : first + K, :K] = costs
        first += K
    return table
