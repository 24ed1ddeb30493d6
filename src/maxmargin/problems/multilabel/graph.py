"""Which labels have a weight for being on together: none, those of a forest, or any few."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...search.spanning_tree import cheapest_tree
from ...utils.types import Bools, Floats, Ints

__all__ = ["MOST_LISTED", "Forest", "LabelGraph", "all_pairs", "make_graph", "tree_of_labels"]

MOST_LISTED = 14  # labels of a graph with cycles: their 2**14 sets are listed for every example


class Forest(NamedTuple):
    """The graph as trees that hang on a root of their own, numbered behind the labels.

    Attributes
    ----------
    order : array of int
        Labels, children before their parents.
    parent : array of int
        Of each label; the number of labels where the parent is that root.
    edge : array of int
        The edge to the parent, or -1.
    """

    order: Ints
    parent: Ints
    edge: Ints


class LabelGraph(NamedTuple):
    """Edges between labels, and the forest that they are unless there is a cycle.

    Attributes
    ----------
    n_labels : int
        Number of labels.
    edges : array of int of shape (n_edges, 2)
        Pairs of labels, the smaller first.
    forest : Forest or None
        None where the edges have a cycle.
    """

    n_labels: int
    edges: Ints
    forest: Forest | None


def make_graph(n_labels: int, edges: ArrayLike | Sequence[Any]) -> LabelGraph:
    """The graph of these edges; ValueError where its best labels could not be found exactly."""
    pairs = np.asarray(edges)
    if pairs.size == 0:
        pairs = np.empty((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(
            f"edges must be pairs of label numbers, got {pairs.dtype} of shape {pairs.shape}"
        )
    pairs = np.sort(pairs.astype(np.int64), axis=1)
    known: set[tuple[int, int]] = set()
    for number, (a, b) in enumerate(pairs.tolist()):
        if a < 0 or b >= n_labels or a == b or (a, b) in known:
            what = "is there twice" if (a, b) in known else "is no pair of different labels"
            raise ValueError(
                f"edge {number}, ({a}, {b}), {what}; labels are numbered from 0 to {n_labels - 1}"
            )
        known.add((a, b))
    forest = _as_forest(n_labels, pairs)
    if forest is None and n_labels > MOST_LISTED:
        raise ValueError(
            f"the {len(pairs)} edges between {n_labels} labels have a cycle; with cycles the best "
            f"labels are found exactly for at most {MOST_LISTED} labels: give the edges of a tree "
            "(edges='tree' learns one), or none"
        )
    return LabelGraph(n_labels, pairs, forest)


def all_pairs(n_labels: int) -> Ints:
    """Every two labels."""
    return np.array(list(combinations(range(n_labels), 2)), dtype=np.int64).reshape(-1, 2)


def tree_of_labels(on: Bools, weights: Floats | None = None) -> Ints:
    """The tree of largest mutual information between neighbours (Chow and Liu).

    Examples count as often as their weights say, so that those of weight 0 might as well not be
    there.
    """
    counts = np.ones(len(on)) if weights is None else weights
    if not counts.any():
        return np.array(cheapest_tree(np.zeros((on.shape[1],) * 2)), dtype=np.int64).reshape(-1, 2)
    shares: Floats = counts / counts.max()
    shares /= shares.sum()
    given: Floats = on.astype(np.float64)
    both, share = given.T @ (given * shares[:, None]), shares @ given
    # A pair that is there counts at least as much as one example.
    rounding = max(0.5 * float(shares[shares > 0.0].min()), 1e-14)
    information = np.zeros_like(both)
    first, second = share[:, None], share[None, :]
    for joint, product in (
        (both, first * second),
        (first - both, first * (1.0 - second)),
        (second - both, (1.0 - first) * second),
        (1.0 - first - second + both, (1.0 - first) * (1.0 - second)),
    ):
        seen = joint > rounding
        information[seen] += joint[seen] * np.log(joint[seen] / product[seen])
    return np.array(cheapest_tree(-information), dtype=np.int64).reshape(-1, 2)


def _as_forest(n_labels: int, edges: Ints) -> Forest | None:
    """Parents and an order with children first; None if there is a cycle."""
    neighbours: list[list[tuple[int, int]]] = [[] for _ in range(n_labels)]
    for e, (a, b) in enumerate(edges.tolist()):
        neighbours[a].append((b, e))
        neighbours[b].append((a, e))
    parent = np.full(n_labels, -1, np.int64)
    edge = np.full(n_labels, -1, np.int64)
    order: list[int] = []
    for root in range(n_labels):
        if parent[root] >= 0:
            continue
        parent[root] = n_labels
        tree = [root]
        for v in tree:  # grows
            for u, e in neighbours[v]:
                if e == edge[v]:
                    continue
                if parent[u] >= 0:
                    return None
                parent[u], edge[u] = v, e
                tree.append(u)
        order += tree
    return Forest(np.array(order[::-1], np.int64), parent, edge)
