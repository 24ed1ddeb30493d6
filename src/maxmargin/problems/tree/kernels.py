"""Exact search over the labellings of a tree, by max-product.

A tree of V nodes with their own label sets scores a labelling y by

    sum_v unary[v, y_v] + sum_{v not the root} pair_v(y_parent(v), y_v),

where pair_v is a table, or, for positions on a grid, a quadratic function of the offset from the
parent. A node's message to its parent is ``out[kp] = max_kc scores[kc] + pair_v(kp, kc)``: of a
table in time K K', on a grid in time linear in the positions (`upper_envelope`), whatever the sign
of the quadratic coefficients.

Two searches: the best labelling, on request within bounds on the loss of each node, and the best
labelling for each number of wrong labels, from which slack rescaling, square-root losses and the
best labelling but the gold one follow. Neither stores back-pointers: scores are kept and the
maximiser is found again on the way down.

The k best labellings take one upward pass. The labellings other than the best fall into disjoint
sets (Lawler 1972): those that agree with it before place t of the order and differ at t. The
beliefs hold the best score of everything below a node, so the best labelling of such a set changes
the label at t to the next best one and gives the nodes below it their best labels again: no message
has to be sent twice. The best of all sets is the next labelling, and its set is split likewise.
Time: the upward pass, and O(n_nodes * n_labels) for each labelling.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...jit.decorator import kernel
from ...search.modes import ADDITIVE, BEST_NON_GOLD
from ...search.semiring import argmax
from ...search.violation import violation
from ...utils.types import Floats, Ints


class TreeShape(NamedTuple):
    """Parents (-1 at the root), nodes in an order with parents first, and where tables start."""

    parent: Ints
    order: Ints
    table_start: Ints
    is_grid: bool


class LabellingScratch(NamedTuple):
    """Potentials of the example at hand, and work arrays.

    ``deformation[v]`` is (a_y, b_y, a_x, b_x, constant) of pair_v on a grid of ``grid`` rows and
    columns; ``tables`` holds the pair_v otherwise, parent's label first.
    """

    n_labels: Ints
    grid: Ints
    deformation: Floats
    tables: Floats
    unary: Floats
    belief: Floats
    message: Floats
    error_counts: Floats
    before: Floats
    sent: Floats
    reach: Ints
    before_reach: Ints
    error_count: Ints
    path: Ints
    half: Floats
    line: Floats
    intercepts: Floats
    reached: Floats
    cuts: Floats
    hull: Ints


# ----- messages ---------------------------------------------------------------------------------


@kernel
def upper_envelope(scores, n, a, b, intercepts, hull, cuts, out):
    """out[p] = max_q scores[q] + a (q - p)^2 + b (q - p) for p, q in 0..n-1, in time O(n).

    Up to a term that depends on p alone, candidate q is a line in p of slope -2 a q. The lines come
    sorted by slope, so their upper envelope is found by one sweep: hull[j] is best from cuts[j] to
    cuts[j + 1]. For a < 0 these are the lower envelopes of parabolas of Felzenszwalb and
    Huttenlocher's distance transform; lines serve every sign of a. Scores may be -inf.
    """
    for q in range(n):
        intercepts[q] = scores[q] + (a * q + b) * q
    if abs(a) < 1e-200:
        best = 0
        for q in range(1, n):
            if intercepts[q] > intercepts[best]:
                best = q
        for p in range(n):
            out[p] = intercepts[best] - b * p
        return
    top = -1
    for t in range(n):
        q = t if a < 0.0 else n - 1 - t  # slopes ascend
        if intercepts[q] == -np.inf:
            continue
        cut = -np.inf
        while top >= 0:
            r = hull[top]
            cut = (intercepts[r] - intercepts[q]) / (-2.0 * a * (q - r))
            if cut > cuts[top]:
                break
            top -= 1
        if top < 0:
            cut = -np.inf
        top += 1
        hull[top] = q
        cuts[top] = cut
    j = 0
    for p in range(n):
        if top < 0:
            out[p] = -np.inf
            continue
        while j < top and cuts[j + 1] <= p:
            j += 1
        d = hull[j] - p
        out[p] = scores[hull[j]] + (a * d + b) * d


@kernel
def _send(shape, work, v, scores, out):
    """Message of node v, with these scores of its labels, to its parent."""
    K = work.n_labels[v]
    if not shape.is_grid:
        start = shape.table_start[v]
        tables = work.tables
        for kp in range(work.n_labels[shape.parent[v]]):
            base = start + kp * K
            best = -np.inf
            for kc in range(K):
                best = max(best, scores[kc] + tables[base + kc])
            out[kp] = best
        return
    height, width = work.grid[0], work.grid[1]
    deformation = work.deformation
    a_y, b_y = deformation[v, 0], deformation[v, 1]
    a_x, b_x, constant = deformation[v, 2], deformation[v, 3], deformation[v, 4]
    half, line, reached = work.half, work.line, work.reached
    for y in range(height):
        row = y * width
        upper_envelope(
            scores[row:], width, a_x, b_x, work.intercepts, work.hull, work.cuts, half[row:]
        )
    for x in range(width):
        for y in range(height):
            line[y] = half[y * width + x]
        upper_envelope(line, height, a_y, b_y, work.intercepts, work.hull, work.cuts, reached)
        for y in range(height):
            out[y * width + x] = reached[y] + constant


@kernel
def _best_child_label(shape, work, v, scores, kp):
    """The label of v that maximises its score plus that of the pair with the parent's label."""
    best, best_score = 0, -np.inf
    K = work.n_labels[v]
    if not shape.is_grid:
        base = shape.table_start[v] + kp * K
        for kc in range(K):
            score = scores[kc] + work.tables[base + kc]
            if score > best_score:
                best, best_score = kc, score
        return best
    width = work.grid[1]
    a_y, b_y = work.deformation[v, 0], work.deformation[v, 1]
    a_x, b_x = work.deformation[v, 2], work.deformation[v, 3]
    y_parent, x_parent = kp // width, kp % width
    for y in range(work.grid[0]):
        dy = y - y_parent
        along_y = (a_y * dy + b_y) * dy
        for x in range(width):
            dx = x - x_parent
            score = scores[y * width + x] + along_y + (a_x * dx + b_x) * dx
            if score > best_score:
                best, best_score = y * width + x, score
    return best


@kernel
def pair_score(shape, work, v, kp, k):
    """Score of label k of node v beside label kp of its parent."""
    if not shape.is_grid:
        return work.tables[shape.table_start[v] + kp * work.n_labels[v] + k]
    width = work.grid[1]
    dy, dx = k // width - kp // width, k % width - kp % width
    along_y = (work.deformation[v, 0] * dy + work.deformation[v, 1]) * dy
    along_x = (work.deformation[v, 2] * dx + work.deformation[v, 3]) * dx
    return along_y + along_x + work.deformation[v, 4]


# ----- searches ---------------------------------------------------------------------------------


@kernel
def best_labelling(shape, work):
    """Best labelling at ``work.unary``, into ``work.path``."""
    for v in range(len(shape.order)):
        for k in range(work.n_labels[v]):
            work.belief[v, k] = work.unary[v, k]
    send_up(shape, work)
    _trace_down(shape, work)


@kernel
def best_between(shape, work, losses, lower, upper, multiplier):
    """Best labelling with the loss added, within bounds on the loss of each node.

    Maximises the score plus ``multiplier`` times the sum of losses[v, y_v] over the labellings with
    ``lower[v] < losses[v, y_v] <= upper[v]``. The labelling goes to ``work.path``; its score
    without the loss is returned.
    """
    V = len(shape.order)
    belief, path = work.belief, work.path
    for v in range(V):
        for k in range(work.n_labels[v]):
            inside = lower[v] < losses[v, k] <= upper[v]
            belief[v, k] = work.unary[v, k] + multiplier * losses[v, k] if inside else -np.inf
    send_up(shape, work)
    _trace_down(shape, work)
    return score_labelling(shape, work, path)


@kernel
def score_labelling(shape, work, labels):
    """Score of a labelling at ``work.unary``."""
    total = 0.0
    for v in range(len(shape.order)):
        total += work.unary[v, labels[v]]
        if shape.parent[v] >= 0:
            total += pair_score(shape, work, v, labels[shape.parent[v]], labels[v])
    return total


@kernel
def send_up(shape, work):
    """Add to ``work.belief`` of every node the messages of all nodes below it."""
    belief = work.belief
    for t in range(len(shape.order) - 1, 0, -1):
        v = shape.order[t]
        p = shape.parent[v]
        _send(shape, work, v, belief[v], work.message)
        for k in range(work.n_labels[p]):
            belief[p, k] += work.message[k]


@kernel
def _trace_down(shape, work):
    """Best labelling by the beliefs, from the root down."""
    root = shape.order[0]
    work.path[root] = argmax(work.belief[root], work.n_labels[root])
    for t in range(1, len(shape.order)):
        v = shape.order[t]
        above = work.path[shape.parent[v]]
        work.path[v] = _best_child_label(shape, work, v, work.belief[v], above)


@kernel
def best_by_error_count(shape, work, gold, cap, unit, mode):
    """Labelling, not the gold one, of the largest rescaled violation; returns that violation.

    levels[v, m, k] is the best score of the subtree of v with label k at v and m wrong labels,
    where all numbers from ``cap`` on are one level. The loss is m * unit. With cap = 1 and unit = 1
    this is the best deviation from the gold labelling. The labelling goes to ``work.path``; -inf is
    returned where there is none.
    """
    V = len(shape.order)
    error_counts, before, sent, reach = work.error_counts, work.before, work.sent, work.reach
    for v in range(V):
        reach[v] = 1
        for k in range(work.n_labels[v]):
            wrong = k != gold[v]
            error_counts[v, 0, k] = -np.inf if wrong else work.unary[v, k]
            error_counts[v, 1, k] = work.unary[v, k] if wrong else -np.inf
    for t in range(V - 1, 0, -1):
        c = shape.order[t]
        p = shape.parent[c]
        K = work.n_labels[p]
        for m in range(reach[c] + 1):
            _send(shape, work, c, error_counts[c, m], sent[c, m])
        for m in range(reach[p] + 1):
            for k in range(K):
                before[c, m, k] = error_counts[p, m, k]
        work.before_reach[c] = reach[p]
        reach[p] = min(cap, reach[p] + reach[c])
        for m in range(reach[p] + 1):
            for k in range(K):
                error_counts[p, m, k] = -np.inf
        for mp in range(work.before_reach[c] + 1):
            for mc in range(reach[c] + 1):
                m = min(cap, mp + mc)
                for k in range(K):
                    score = before[c, mp, k] + sent[c, mc, k]
                    if score > error_counts[p, m, k]:
                        error_counts[p, m, k] = score
    root = shape.order[0]
    gold_score = error_counts[root, 0, gold[root]]
    best_value, best_error_count, best_label = -np.inf, 0, 0
    for m in range(1, reach[root] + 1):
        label = argmax(error_counts[root, m], work.n_labels[root])
        gain = error_counts[root, m, label] - gold_score
        if gain == -np.inf:
            continue
        value = violation(m * unit, gain, mode)
        if value > best_value:
            best_value, best_error_count, best_label = value, m, label
    if best_value == -np.inf:
        return best_value
    work.error_count[root] = best_error_count
    work.path[root] = best_label
    # Children are taken off their parents in the reverse of the order they were added in.
    for t in range(1, V):
        c = shape.order[t]
        p = shape.parent[c]
        k = work.path[p]
        best, rest, own = -np.inf, 0, 0
        for mp in range(work.before_reach[c] + 1):
            for mc in range(reach[c] + 1):
                if min(cap, mp + mc) == work.error_count[p]:
                    score = before[c, mp, k] + sent[c, mc, k]
                    if score > best:
                        best, rest, own = score, mp, mc
        work.error_count[p] = rest
        work.error_count[c] = own
        work.path[c] = _best_child_label(shape, work, c, error_counts[c, own], k)
    return best_value


@kernel
def search_tree(shape, work, gold, mode, unit):
    """Find the labelling that the mode asks for; False where the gold labelling is the answer.

    With ADDITIVE the loss is part of ``work.unary`` already.
    """
    if mode.kind == ADDITIVE:
        best_labelling(shape, work)
        return True
    cap = len(gold)
    if (
        mode.kind == BEST_NON_GOLD
    ):  # in one call with the rest: constants would be compiled once more
        cap, unit = 1, 1.0
    return best_by_error_count(shape, work, gold, cap, unit, mode) > 0.0


# ----- k best -----------------------------------------------------------------------------------


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
