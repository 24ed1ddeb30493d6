"""The most violated sets of labels, by the search that the edges allow."""

from __future__ import annotations

import numpy as np

from ...search.modes import SearchMode
from ...utils.types import Bools, Floats
from .cardinality import find_among_all, find_independent
from .graph import LabelGraph
from .trees import find_in_forest

__all__ = ["find_labels"]


def find_labels(
    scores: Floats, graph: LabelGraph, pairs: Floats, gold: Bools, loss: int, mode: SearchMode
) -> Bools:
    """The most violated set of each row; ``pairs`` are the weights of the edges."""
    if not len(graph.edges):
        return find_independent(scores, gold, loss, mode)
    if graph.forest is not None:
        return find_in_forest(scores, pairs, graph.forest, gold, loss, mode)
    matrix = np.zeros((graph.n_labels, graph.n_labels))
    matrix[graph.edges[:, 1], graph.edges[:, 0]] = pairs
    return find_among_all(scores, matrix, gold, loss, mode)
