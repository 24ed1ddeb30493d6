"""What trees learn from outputs alone: edges of most information or rigidity, typical offsets."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import mutual_info_score

from ...search.spanning_tree import cheapest_tree
from ...types import Floats, Ints

__all__ = ["scale_offsets", "tree_of_labels", "tree_of_positions"]


def tree_of_labels(codes: Ints, n_labels: Ints) -> list[tuple[int, int]]:
    """The tree of largest mutual information between neighbours (Chow and Liu)."""
    V = codes.shape[1]
    information = np.zeros((V, V))
    for a in range(V):
        for b in range(a):
            counts = np.zeros((n_labels[a], n_labels[b]))
            np.add.at(counts, (codes[:, a], codes[:, b]), 1.0)
            information[a, b] = mutual_info_score(None, None, contingency=counts)
    return cheapest_tree(-information)


def tree_of_positions(positions: Ints) -> list[tuple[int, int]]:
    """The tree whose offsets between neighbours vary least."""
    offsets = positions[:, :, None, :] - positions[:, None, :, :]
    return cheapest_tree(offsets.var(axis=0).sum(axis=2))


def scale_offsets(positions: Ints, parent: Ints) -> tuple[Floats, Floats]:
    """Mean and spread, at least one pixel, of the offset of each node from its parent."""
    inner = parent >= 0
    anchors, spreads = np.zeros((len(parent), 2)), np.ones((len(parent), 2))
    offsets = positions[:, inner] - positions[:, parent[inner]]
    anchors[inner] = offsets.mean(axis=0)
    spreads[inner] = np.maximum(1.0, offsets.std(axis=0))
    return anchors, spreads
