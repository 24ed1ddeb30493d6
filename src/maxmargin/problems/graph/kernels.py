"""Labellings of one graph: its potentials, forests exactly, other graphs by TRW-S.

A graph of n nodes with K labels has scores ``unary[s, k]`` and, for the edge e between the nodes
``low[e] < high[e]``, ``pair[e, a, b]`` for their labels a and b. Where only equal labels have a
score, ``pair`` has the shape (m, 1, 1) with that score, and a message takes O(K).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...engine.rows import add_scores
from ...jit.decorator import kernel
from ...utils.types import Ints

__all__ = [
    "Shape",
    "best_of_forest",
    "fill_potentials",
    "forest_order",
    "node_beliefs",
    "score_of",
    "tighten",
]

FEWEST_SWEEPS = 3
PROGRESS = 0.02  # of the gap, by which a sweep has to lower the bound to be followed by another
POLISHING = 10  # rounds of the local search for better labels, at most


class Shape(NamedTuple):
    """Edges of a graph and the edges at its nodes; ``order`` is empty unless it is a forest.

    The edges to nodes before s are ``before[before_ends[s] : before_ends[s + 1]]``. ``order`` has
    parents before children, and ``parent`` the edge of each node to its parent, -1 for roots.
    """

    low: Ints
    high: Ints
    before_ends: Ints
    before: Ints
    after_ends: Ints
    after: Ints
    order: Ints
    parent: Ints


@kernel
def forest_order(shape, order, parent):
    """Fill the order and the parents of a forest; False where there is a cycle."""
    n = len(order)
    seen = np.zeros(n, np.bool_)
    filled = 0
    for root in range(n):
        if seen[root]:
            continue
        seen[root] = True
        parent[root] = -1
        order[filled] = root
        done, filled = filled, filled + 1
        while done < filled:
            s = order[done]
            done += 1
            degree = shape.before_ends[s + 1] - shape.before_ends[s]
            for q in range(degree + shape.after_ends[s + 1] - shape.after_ends[s]):
                if q < degree:
                    e = shape.before[shape.before_ends[s] + q]
                    other = shape.low[e]
                else:
                    e = shape.after[shape.after_ends[s] + q - degree]
                    other = shape.high[e]
                if e == parent[s]:
                    continue
                if seen[other]:
                    return False
                seen[other] = True
                parent[other] = e
                order[filled] = other
                filled += 1
    return True


@kernel
def fill_potentials(nodes, first_node, edges, first_edge, flipped, w, pairs, n_pairs, unary, pair):
    """Scores of the labels of all nodes, and of the pairs of labels of all edges, of one graph.

    ``pair`` of shape (m, 1, 1) takes the single weight of equal labels.
    """
    n, K = unary.shape
    m = len(flipped)
    unary[:] = 0.0
    for s in range(n):
        add_scores(nodes, first_node + s, w, K, unary[s])
    start = (np.int64(nodes.n_columns) + np.int64(nodes.bias != 0.0)) * K
    own = w[start:]
    table = np.empty(n_pairs)
    for e in range(m):
        table[:] = 0.0
        add_scores(edges, first_edge + e, own, n_pairs, table)
        if pair.shape[1] == 1:
            pair[e, 0, 0] = table[0]
            continue
        for a in range(K):
            for b in range(K):
                pair[e, a, b] = table[pairs[b, a] if flipped[e] else pairs[a, b]]


@kernel(allocates=False)
def pair_score(pair, e, a, b):
    """Score of the labels a and b of the lower and the higher node of an edge."""
    if pair.shape[1] == 1:
        return pair[e, 0, 0] if a == b else 0.0
    return pair[e, a, b]


@kernel(allocates=False)
def score_of(shape, unary, pair, labels):
    """Score of a labelling."""
    total = 0.0
    for s in range(len(labels)):
        total += unary[s, labels[s]]
    for e in range(len(shape.low)):
        total += pair_score(pair, e, labels[shape.low[e]], labels[shape.high[e]])
    return total


# ----- forests ------------------------------------------------------------------------------------


@kernel
def best_of_forest(shape, unary, pair, labels):
    """Fill the best labels of a forest by max-product; returns their score."""
    n, K = unary.shape
    total = unary.copy()
    best = np.empty((n, K), np.int64)  # label of a node for each label of its parent
    for position in range(n - 1, -1, -1):
        s = shape.order[position]
        e = shape.parent[s]
        if e < 0:
            continue
        is_low = shape.low[e] == s
        above = shape.high[e] if is_low else shape.low[e]
        for a in range(K):
            top, at = -np.inf, 0
            for k in range(K):
                value = total[s, k]
                value += pair_score(pair, e, k, a) if is_low else pair_score(pair, e, a, k)
                if value > top:
                    top, at = value, k
            best[s, a] = at
            total[above, a] += top
    for position in range(n):
        s = shape.order[position]
        e = shape.parent[s]
        if e < 0:
            labels[s] = np.argmax(total[s])
        else:
            above = shape.high[e] if shape.low[e] == s else shape.low[e]
            labels[s] = best[s, labels[above]]
    return score_of(shape, unary, pair, labels)


# ----- TRW-S --------------------------------------------------------------------------------------
# Kolmogorov (2006), "Convergent tree-reweighted message passing for energy minimization", with
# maxima for minima: chains are monotonic in the order of the nodes.


@kernel(allocates=False)
def belief_at(shape, s, unary, forward, backward, belief):
    """Fill the belief of a node: its scores and the messages from all neighbours."""
    K = unary.shape[1]
    for k in range(K):
        belief[k] = unary[s, k]
    for q in range(shape.before_ends[s], shape.before_ends[s + 1]):
        e = shape.before[q]
        for k in range(K):
            belief[k] += forward[e, k]
    for q in range(shape.after_ends[s], shape.after_ends[s + 1]):
        e = shape.after[q]
        for k in range(K):
            belief[k] += backward[e, k]


@kernel(allocates=False)
def node_beliefs(shape, unary, forward, backward, beliefs):
    """Fill the beliefs of all nodes."""
    for s in range(len(unary)):
        belief_at(shape, s, unary, forward, backward, beliefs[s])


@kernel(allocates=False)
def send(pair, e, source, is_forward, message):
    """Fill the message of an edge from what its source has without it; returns its largest entry.

    That is subtracted: messages have the maximum 0.
    """
    K = len(source)
    if pair.shape[1] == 1:
        best, second, at = -np.inf, -np.inf, 0
        for k in range(K):
            if source[k] > best:
                second = best
                best, at = source[k], k
            elif source[k] > second:
                second = source[k]
        for k in range(K):
            message[k] = max(second if k == at else best, source[k] + pair[e, 0, 0])
    elif is_forward:
        for k in range(K):
            message[k] = -np.inf
        for j in range(K):
            if source[j] > -np.inf:
                for k in range(K):
                    message[k] = max(message[k], source[j] + pair[e, j, k])
    else:
        for j in range(K):
            top = -np.inf
            for k in range(K):
                top = max(top, source[k] + pair[e, j, k])
            message[j] = top
    top = -np.inf
    for k in range(K):
        top = max(top, message[k])
    for k in range(K):
        message[k] -= top
    return top


@kernel(allocates=False)
def forward_sweep(shape, unary, pair, forward, backward, belief, source, labels):
    """Messages to later nodes, and labels chosen on the way."""
    n, K = unary.shape
    for s in range(n):
        belief_at(shape, s, unary, forward, backward, belief)
        n_before = shape.before_ends[s + 1] - shape.before_ends[s]
        n_after = shape.after_ends[s + 1] - shape.after_ends[s]
        top, at = -np.inf, 0
        for k in range(K):
            value = unary[s, k]
            for q in range(shape.before_ends[s], shape.before_ends[s + 1]):
                e = shape.before[q]
                value += pair_score(pair, e, labels[shape.low[e]], k)
            for q in range(shape.after_ends[s], shape.after_ends[s + 1]):
                value += backward[shape.after[q], k]
            if value > top:
                top, at = value, k
        labels[s] = at
        weight = 1.0 / max(n_before, n_after, 1)
        for q in range(shape.after_ends[s], shape.after_ends[s + 1]):
            e = shape.after[q]
            for k in range(K):
                source[k] = weight * belief[k] - backward[e, k]
            send(pair, e, source, True, forward[e])


@kernel(allocates=False)
def backward_sweep(shape, unary, pair, forward, backward, belief, source):
    """Messages to earlier nodes; returns an upper bound on the score of all labellings.

    It is the sum of all that is subtracted to make the maxima 0: with that, the scores of all
    nodes and edges are reparametrised, and none of their maxima is positive.
    """
    n, K = unary.shape
    bound = 0.0
    for s in range(n - 1, -1, -1):
        belief_at(shape, s, unary, forward, backward, belief)
        n_before = shape.before_ends[s + 1] - shape.before_ends[s]
        n_after = shape.after_ends[s + 1] - shape.after_ends[s]
        weight = 1.0 / max(n_before, n_after, 1)
        top = -np.inf
        for k in range(K):
            top = max(top, belief[k])
        bound += top
        for k in range(K):
            belief[k] -= top
        for q in range(shape.before_ends[s], shape.before_ends[s + 1]):
            e = shape.before[q]
            for k in range(K):
                source[k] = weight * belief[k] - forward[e, k]
            bound += send(pair, e, source, False, backward[e])
    return bound


@kernel(allocates=False)
def polish(shape, unary, pair, labels):
    """Change labels of single nodes while that raises the score."""
    n, K = unary.shape
    for _ in range(POLISHING):
        changed = False
        for s in range(n):
            own, top, at = -np.inf, -np.inf, labels[s]
            for k in range(K):
                value = unary[s, k]
                for q in range(shape.before_ends[s], shape.before_ends[s + 1]):
                    e = shape.before[q]
                    value += pair_score(pair, e, labels[shape.low[e]], k)
                for q in range(shape.after_ends[s], shape.after_ends[s + 1]):
                    e = shape.after[q]
                    value += pair_score(pair, e, k, labels[shape.high[e]])
                if k == labels[s]:
                    own = value
                if value > top:
                    top, at = value, k
            if top > own + 1e-12 * abs(own):
                labels[s] = at
                changed = True
        if not changed:
            return


@kernel
def tighten(shape, unary, pair, forward, backward, best, value, tolerance, n_sweeps):
    """TRW-S from the messages there are, until the bound meets the value, or progress is slow.

    ``best`` has labels of score ``value``, and gets better ones where some are found. Returns the
    bound and the value.
    """
    n, K = unary.shape
    belief, source = np.empty(K), np.empty(K)
    labels = np.empty(n, np.int64)
    bound = np.inf
    for sweep in range(n_sweeps):
        forward_sweep(shape, unary, pair, forward, backward, belief, source, labels)
        new = backward_sweep(shape, unary, pair, forward, backward, belief, source)
        polish(shape, unary, pair, labels)
        found = score_of(shape, unary, pair, labels)
        if found > value:
            value = found
            best[:] = labels
        gain = bound - new
        bound = min(bound, new)
        if bound <= value + tolerance:
            break
        if sweep >= FEWEST_SWEEPS and gain < PROGRESS * (bound - value):
            break
    return bound, value
