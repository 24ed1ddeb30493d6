"""Trees that fit training outputs best: spanning trees of mutual information or of rigidity."""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree

from ...types import Floats, Ints

__all__ = ["tree_of_labels", "tree_of_positions"]


def tree_of_labels(codes: Ints, n_labels: Ints) -> list[tuple[int, int]]:
    """The tree of largest mutual information between neighbours (Chow and Liu)."""
    n, V = codes.shape
    information = np.zeros((V, V))
    for a in range(V):
        for b in range(a):
            joint = np.zeros((n_labels[a], n_labels[b]))
            np.add.at(joint, (codes[:, a], codes[:, b]), 1.0 / n)
            apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
            seen = joint > 0
            information[a, b] = float((joint[seen] * np.log(joint[seen] / apart[seen])).sum())
    return _cheapest_tree(-information)


def tree_of_positions(positions: Ints) -> list[tuple[int, int]]:
    """The tree whose offsets between neighbours vary least."""
    offsets = positions[:, :, None, :] - positions[:, None, :, :]
    return _cheapest_tree(offsets.var(axis=0).sum(axis=2))


def _cheapest_tree(costs: Floats) -> list[tuple[int, int]]:
    """Edges of the spanning tree of least total cost, from the lower triangle of the costs."""
    lower = np.tril(np.ones(costs.shape, dtype=bool), -1)
    # A cost of 0 would be no edge at all.
    shifted = np.where(lower, costs - costs[lower].min(initial=0.0) + 1.0, 0.0)
    found = minimum_spanning_tree(shifted).tocoo()
    return [(int(a), int(b)) for a, b in zip(found.row, found.col, strict=True)]
