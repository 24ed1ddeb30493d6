"""The spanning tree of least cost, by which trees are learned from outputs."""

from __future__ import annotations

import numpy as np

from ..utils.types import Floats

__all__ = ["cheapest_tree"]


def cheapest_tree(costs: Floats) -> list[tuple[int, int]]:
    """Edges of the spanning tree of least total cost, from the lower triangle of the costs."""
    from scipy.sparse.csgraph import minimum_spanning_tree

    lower = np.tril(np.ones(costs.shape, dtype=bool), -1)
    # A cost of 0 would be no edge at all.
    shifted = np.where(lower, costs - costs[lower].min(initial=0.0) + 1.0, 0.0)
    found = minimum_spanning_tree(shifted).tocoo()
    return [(int(a), int(b)) for a, b in zip(found.row, found.col, strict=True)]
