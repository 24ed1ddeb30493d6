"""The best labelling of one graph, or a good one with an upper bound on the best.

Forests by max-product, two labels with submodular pairs by a minimum cut, all else by TRW-S. What
that leaves open is split: the node whose two best beliefs are closest has its best label in one
half, and any other in the other half. Both continue from the messages of the whole.
"""

from __future__ import annotations

import heapq
import math
from typing import Literal, NamedTuple

import numpy as np

from ...utils.types import Floats, Ints
from .kernels import Shape, best_of_forest, node_beliefs, tighten
from .max_flow import best_of_cut, is_submodular

__all__ = ["INFERENCES", "Inference", "Labelling", "Messages", "best_labels"]

Inference = Literal["auto", "max_flow", "trws", "exact"]
INFERENCES = ("auto", "max_flow", "trws", "exact")
SWEEPS = 100  # at most, of one search by TRW-S
PRECISION = 1e-10  # of proofs, relative to the sum of all scores of nodes and edges


class Messages:
    """Messages along the edges of a graph, kept from one search to the next.

    Parameters
    ----------
    n_edges, n_labels : int
        Size of the graph.
    """

    def __init__(self, n_edges: int, n_labels: int) -> None:
        self.forward = np.zeros((n_edges, n_labels))
        self.backward = np.zeros((n_edges, n_labels))
        self.size = 0.0

    def scaled_to(self, size: float) -> tuple[Floats, Floats]:
        """Messages for scores of this size: a search may come at a multiple of the last weights."""
        factor = size / self.size if self.size > 0.0 else 0.0
        self.forward *= factor
        self.backward *= factor
        self.size = size
        return self.forward, self.backward


class Labelling(NamedTuple):
    """Labels, their score, and an upper bound on the scores of all labellings."""

    labels: Ints
    score: float
    bound: float

    @property
    def is_proven(self) -> bool:
        """Whether no labels have a larger score."""
        return self.bound <= self.score


def best_labels(
    shape: Shape,
    unary: Floats,
    pair: Floats,
    start: tuple[Ints, float],
    inference: Inference,
    max_nodes: int,
    messages: Messages,
) -> Labelling:
    """Search for the best labels of a graph with these scores; see `kernels`.

    ``start`` has labels that are known, and their score: where none are better, these are found.
    TRW-S begins with the ``messages`` and changes them.
    """
    n, K = unary.shape
    if inference != "trws":
        labels = np.empty(n, np.int64)
        if len(shape.order) == n:
            return _best_of(labels, best_of_forest(shape, unary, pair, labels), start)
        if K == 2 and is_submodular(pair):
            return _best_of(labels, best_of_cut(shape, unary, pair, labels), start)
    n_parts = {"trws": 0.0, "exact": math.inf}.get(inference, float(max_nodes))
    return _branch_and_bound(shape, unary, pair, start, n_parts, messages)


def _best_of(labels: Ints, score: float, start: tuple[Ints, float]) -> Labelling:
    """The best labels, or those of the start where these are as good."""
    labels, score = (labels, score) if score > start[1] else start
    return Labelling(labels, score, score)


def _branch_and_bound(
    shape: Shape,
    unary: Floats,
    pair: Floats,
    start: tuple[Ints, float],
    n_parts: float,
    messages: Messages,
) -> Labelling:
    """TRW-S on the graph, and then on up to ``n_parts`` parts of its labellings."""
    best, value = start[0].copy(), start[1]
    size = float(np.abs(unary[np.isfinite(unary)]).sum() + np.abs(pair).sum())
    tolerance = PRECISION * size

    def bound_of(scores: Floats, own: tuple[Floats, Floats]) -> float:
        nonlocal value
        bound, value = tighten(shape, scores, pair, *own, best, value, tolerance, SWEEPS)
        return float(bound)

    # The open parts, the largest bound first; numbers order equal ones.
    whole = messages.scaled_to(size)
    parts = [(-bound_of(unary, whole), 0, unary, whole)]
    number, beliefs = 0, np.empty(unary.shape)
    while parts and number < n_parts and -parts[0][0] > value + tolerance:
        negative, _, scores, own = heapq.heappop(parts)
        node_beliefs(shape, scores, *own, beliefs)
        two = np.partition(beliefs, -2, axis=1)[:, -2:]
        node = int(np.argmin(two[:, 1] - two[:, 0]))
        if two[node, 0] == -np.inf:
            continue  # every node has one label left, and this labelling was found
        is_best = np.arange(unary.shape[-1]) == np.argmax(beliefs[node])
        for forbidden in (~is_best, is_best):
            half, copies = scores.copy(), (own[0].copy(), own[1].copy())
            half[node, forbidden] = -np.inf
            number += 1
            bound = min(-negative, bound_of(half, copies))
            if bound > value + tolerance:
                heapq.heappush(parts, (-bound, number, half, copies))
    bound = -parts[0][0] if parts else value
    return Labelling(best, value, bound if bound > value + tolerance else value)
