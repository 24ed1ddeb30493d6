"""What wrong labels cost, as users say it: a matrix, a mapping, or weights of the true labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics.costs import cost_matrix
from ..types import Floats, Ints
from .example_weights import class_factors

__all__ = ["CostTable", "label_costs", "refuse_unknown_loss"]

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
