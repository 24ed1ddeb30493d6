"""Best projective trees (Eisner 1996).

A chart has four kinds of spans over the nodes i..j: ``right[i, j]`` is complete with head i,
``left[i, j]`` complete with head j; ``open_right[i, j]`` has the arc i -> j on top of two complete
halves, ``open_left[i, j]`` the arc j -> i. No back-pointers are stored: scores are kept, and the
maximiser is found again on the way back.

Where a sentence has a single root, node 0 takes one arc only: the half at its side is empty.
"""

from __future__ import annotations

import numpy as np

from ..._jit import kernel

COMPLETE_RIGHT, COMPLETE_LEFT, OPEN_RIGHT, OPEN_LEFT = 0, 1, 2, 3


@kernel
def eisner(scores, n, single_root, chart, stack, heads):
    """Best projective tree into heads[1 : n + 1]; returns its score.

    ``scores[h, m]`` is the score of an arc, -inf where forbidden; ``chart`` (4, n + 1, n + 1) and
    ``stack`` are scratch. Time O(n^3): rows are finished from the last node to the first, and each
    finished span is pushed to all larger ones, which keeps the inner loops contiguous. Until arcs
    are added, the open spans hold the best pair of halves.
    """
    right, left = chart[COMPLETE_RIGHT], chart[COMPLETE_LEFT]
    open_right, open_left = chart[OPEN_RIGHT], chart[OPEN_LEFT]
    for i in range(n, -1, -1):
        for j in range(i, n + 1):
            open_right[i, j] = right[i, j] = left[i, j] = -np.inf
        right[i, i] = left[i, i] = 0.0
        for j in range(i, n + 1):
            if j > i:
                halves = open_right[i, j]
                arc = halves + scores[i, j]
                open_right[i, j] = arc
                for q in range(j, n + 1):
                    right[i, q] = max(right[i, q], arc + right[j, q])
                if i > 0:
                    arc = halves + scores[j, i]
                    open_left[i, j] = arc
                    done = max(left[i, j], arc)
                    left[i, j] = done
                    for q in range(j + 1, n + 1):
                        left[i, q] = max(left[i, q], done + open_left[j, q])
            if i > 0 or j == 0 or not single_root:
                done = right[i, j]
                for q in range(j + 1, n + 1):
                    open_right[i, q] = max(open_right[i, q], done + left[j + 1, q])
    if right[0, n] > -np.inf:
        _trace(chart, n, single_root, stack, heads)
    return right[0, n]


@kernel
def _trace(chart, n, single_root, stack, heads):
    """Find the heads of the best tree from the finished chart."""
    right, left = chart[COMPLETE_RIGHT], chart[COMPLETE_LEFT]
    open_right, open_left = chart[OPEN_RIGHT], chart[OPEN_LEFT]
    _push_span(stack, 0, COMPLETE_RIGHT, 0, n)
    size = 1
    while size > 0:
        size -= 1
        kind, i, j = stack[size, 0], stack[size, 1], stack[size, 2]
        if i == j:
            continue
        best, split = -np.inf, i
        if kind == COMPLETE_RIGHT:
            for k in range(i + 1, j + 1):
                if open_right[i, k] + right[k, j] > best:
                    best, split = open_right[i, k] + right[k, j], k
            _push_span(stack, size, OPEN_RIGHT, i, split)
            _push_span(stack, size + 1, COMPLETE_RIGHT, split, j)
        elif kind == COMPLETE_LEFT:
            for k in range(i, j):
                if left[i, k] + open_left[k, j] > best:
                    best, split = left[i, k] + open_left[k, j], k
            _push_span(stack, size, COMPLETE_LEFT, i, split)
            _push_span(stack, size + 1, OPEN_LEFT, split, j)
        else:
            if kind == OPEN_RIGHT:
                heads[j] = i
            else:
                heads[i] = j
            last = i + 1 if i == 0 and single_root else j
            for k in range(i, last):
                if right[i, k] + left[k + 1, j] > best:
                    best, split = right[i, k] + left[k + 1, j], k
            _push_span(stack, size, COMPLETE_RIGHT, i, split)
            _push_span(stack, size + 1, COMPLETE_LEFT, split + 1, j)
        size += 2


@kernel
def _push_span(stack, size, kind, i, j):
    """Put a span on the stack."""
    stack[size, 0], stack[size, 1], stack[size, 2] = kind, i, j
