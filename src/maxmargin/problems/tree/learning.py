"""What trees learn from outputs alone: edges of most information or rigidity, typical offsets."""

from __future__ import annotations

import numpy as np

from ...search.spanning_tree import cheapest_tree
from ...utils.types import Bools, Floats, Ints

__all__ = ["scale_offsets", "tree_of_labels", "tree_of_positions"]


def tree_of_labels(codes: Ints, n_labels: Ints) -> list[tuple[int, int]]:
    """The tree of largest mutual information between neighbours (Chow and Liu).

    Negative codes are labels that are not known; pairs with such are not counted.
    """
    from sklearn.metrics import mutual_info_score

    V = codes.shape[1]
    information = np.zeros((V, V))
    for a in range(V):
        for b in range(a):
            counts = np.zeros((n_labels[a], n_labels[b]))
            known = (codes[:, a] >= 0) & (codes[:, b] >= 0)
            np.add.at(counts, (codes[known, a], codes[known, b]), 1.0)
            if known.any():
                information[a, b] = mutual_info_score(None, None, contingency=counts)
    return cheapest_tree(-information)


def tree_of_positions(positions: Ints, known: Bools) -> list[tuple[int, int]]:
    """The tree whose offsets between neighbours, where both are known, vary least."""
    offsets = positions[:, :, None, :] - positions[:, None, :, :]
    if known.all():
        return cheapest_tree(offsets.var(axis=0).sum(axis=2))
    both = known[:, :, None] & known[:, None, :]
    V = positions.shape[1]
    spread = np.full((V, V), np.inf)
    for a, b in zip(*np.nonzero(both.any(axis=0)), strict=True):
        spread[a, b] = offsets[both[:, a, b], a, b].var(axis=0).sum()
    seen = np.isfinite(spread)
    spread[~seen] = 1.0 + 2.0 * spread[seen].max(initial=0.0)  # rather any other edge
    return cheapest_tree(spread)


def scale_offsets(positions: Ints, parent: Ints, known: Bools) -> tuple[Floats, Floats]:
    """Mean and spread, at least one pixel, of the offset of each node from its parent."""
    inner = parent >= 0
    anchors, spreads = np.zeros((len(parent), 2)), np.ones((len(parent), 2))
    offsets = positions[:, inner] - positions[:, parent[inner]]
    if known.all():
        anchors[inner] = offsets.mean(axis=0)
        spreads[inner] = np.maximum(1.0, offsets.std(axis=0))
        return anchors, spreads
    both = known[:, inner] & known[:, parent[inner]]
    for place, v in enumerate(np.flatnonzero(inner)):
        if both[:, place].any():
            seen = offsets[both[:, place], place]
            anchors[v], spreads[v] = seen.mean(axis=0), np.maximum(1.0, seen.std(axis=0))
    return anchors, spreads
