"""The k best labellings of a tree, exactly, from one upward pass of messages.

Nodes come in an order with parents first. The labellings other than the best fall into disjoint
sets (Lawler 1972): those that agree with it before place t of the order and differ at t. The
beliefs hold the best score of everything below a node, so the best labelling of such a set changes
the label at t to the next best one and gives the nodes below it their best labels again: no message
has to be sent twice. The best of all sets is the next labelling, and its set is split likewise.
Time: the upward pass, and O(n_nodes * n_labels) for each labelling.
"""

from __future__ import annotations

import math

import numpy as np

from ...jit.decorator import kernel
from ...search.ties import argmax
from ...utils.types import Floats, Ints
from .kernels import LabellingScratch, TreeShape, pair_score, send_up

__all__ = ["rank_labellings"]


def rank_labellings(shape: TreeShape, work: LabellingScratch, k: int) -> tuple[Ints, Floats]:
    """The k best labellings at the potentials in ``work``, best first, and their scores.

    There are fewer than k where the tree has no more labellings. Labels whose ``work.unary`` is
    -inf are forbidden.
    """
    V = len(shape.order)
    counts = (
        int((work.unary[v, :K] > -np.inf).sum()) for v, K in enumerate(work.n_labels.tolist())
    )
    k = min(k, math.prod(counts))
    labels, scores = np.empty((k, V), np.int64), np.empty(k)
    sets = np.full(k * V, -np.inf), np.empty((k * V, 3), np.int64)
    k_best_labellings(shape, work, labels, scores, np.empty((k, 2), np.int64), *sets)
    return labels, scores


@kernel
def k_best_labellings(shape, work, labels, scores, origin, set_scores, sets):
    """Fill ``labels`` (k, V) and ``scores`` (k), where there are at least k labellings.

    Scratch: ``origin[r]`` (k, 2), the labelling that r was split off from and the place of its
    change; for each set not yet used the score of its best labelling (-inf once used), and in
    ``sets`` the labelling it was split off from, the place, and the new label there.
    """
    V = len(shape.order)
    for v in range(V):
        for label in range(work.n_labels[v]):
            work.belief[v, label] = work.unary[v, label]
    send_up(shape, work)
    labels[0] = -1
    _settle(shape, work, labels[0], 0)
    scores[0] = work.belief[shape.order[0], labels[0, shape.order[0]]]
    origin[0, 0], origin[0, 1] = -1, 0
    n_sets = 0
    for r in range(1, len(labels)):
        n_sets = _split(shape, work, labels, scores, origin, r - 1, set_scores, sets, n_sets)
        best = argmax(set_scores, n_sets)
        source, place, label = sets[best, 0], sets[best, 1], sets[best, 2]
        scores[r] = set_scores[best]
        set_scores[best] = -np.inf
        origin[r, 0], origin[r, 1] = source, place
        labels[r] = labels[source]
        labels[r, shape.order[place]] = label
        _settle(shape, work, labels[r], place + 1)


@kernel
def _values(shape, work, v, labels):
    """Fill ``work.message`` with the best scores of all from v on down, by the label of v."""
    p = shape.parent[v]
    for k in range(work.n_labels[v]):
        work.message[k] = work.belief[v, k]
        if p >= 0:
            work.message[k] += pair_score(shape, work, v, labels[p], k)


@kernel
def _settle(shape, work, labels, place):
    """Give all nodes from a place of the order on their best labels, given those before."""
    for t in range(place, len(shape.order)):
        v = shape.order[t]
        _values(shape, work, v, labels)
        labels[v] = argmax(work.message, work.n_labels[v])


@kernel
def _split(shape, work, labels, scores, origin, r, set_scores, sets, n_sets):
    """Append the sets that labelling r leaves of its own; returns the new number of sets."""
    for t in range(origin[r, 1], len(shape.order)):
        v = shape.order[t]
        _values(shape, work, v, labels[r])
        own = work.message[labels[r, v]]
        work.message[labels[r, v]] = -np.inf
        other = r
        while origin[other, 1] == t and origin[other, 0] >= 0:  # taken from this set before
            other = origin[other, 0]
            work.message[labels[other, v]] = -np.inf
        label = argmax(work.message, work.n_labels[v])
        if work.message[label] > -np.inf:
            set_scores[n_sets] = scores[r] + (work.message[label] - own)
            sets[n_sets, 0], sets[n_sets, 1], sets[n_sets, 2] = r, t, label
            n_sets += 1
    return n_sets
