"""The best projective tree for each number of wrong arcs.

The chart of `eisner` with one more dimension, the number of wrong arcs in a span:
``right[i, j, a]`` and so on. Numbers are counted up to ``cap`` only; level ``cap`` stands for "cap
or more". With ``cap = n`` the levels are all losses there are (slack rescaling, square-root
losses); with ``cap = 1`` level 1 is the best tree other than the gold tree (zero-one loss).

An arc counts as wrong and scores ``scores[h, m]``, except for ``gold[m] -> m``, which may also be
taken as right with the score ``gold_scores[m]``. (With labels the same arc with another label is
wrong; without labels ``scores[gold[m], m]`` is -inf.)
"""

from __future__ import annotations

import numpy as np

from ..._jit import kernel
from .eisner import COMPLETE_LEFT, COMPLETE_RIGHT, OPEN_LEFT, OPEN_RIGHT, push_span


@kernel
def make_error_counts(scores, gold_scores, gold, n, single_root, cap):
    """Fill and return a chart of shape (4 kinds, n + 1, n + 1, cap + 1).

    Time O(n^5) for ``cap = n``, O(n^3) for a constant one.
    """
    chart = np.full((4, n + 1, n + 1, cap + 1), -np.inf)
    right, left = chart[COMPLETE_RIGHT], chart[COMPLETE_LEFT]
    open_right, open_left = chart[OPEN_RIGHT], chart[OPEN_LEFT]
    span = np.empty(cap + 1)
    for i in range(n + 1):
        right[i, i, 0] = left[i, i, 0] = 0.0
    for width in range(1, n + 1):
        for i in range(n + 1 - width):
            j = i + width
            span[:] = -np.inf
            last = i + 1 if i == 0 and single_root else j
            for k in range(i, last):
                _join(right[i, k], k - i, left[k + 1, j], j - k - 1, cap, span)
            _add_arc(span, scores[i, j], gold_scores[j], gold[j] == i, cap, open_right[i, j])
            if i > 0:
                _add_arc(span, scores[j, i], gold_scores[i], gold[i] == j, cap, open_left[i, j])
            for k in range(i + 1, j + 1):
                _join(open_right[i, k], k - i, right[k, j], j - k, cap, right[i, j])
            if i > 0:
                for k in range(i, j):
                    _join(left[i, k], k - i, open_left[k, j], j - k, cap, left[i, j])
    return chart


@kernel
def _join(first, n_first, second, n_second, cap, joined):
    """joined[a + b] = max(itself, first[a] + second[b]) for spans of so many arcs."""
    for a in range(min(n_first, cap) + 1):
        score = first[a]
        if score == -np.inf:
            continue
        for b in range(min(n_second, cap) + 1):
            error_count = min(a + b, cap)
            joined[error_count] = max(joined[error_count], score + second[b])


@kernel
def _add_arc(span, score, gold_scores, is_gold, cap, out):
    """Put an arc on top of a span."""
    for a in range(cap + 1):
        error_count = min(a + 1, cap)
        out[error_count] = max(out[error_count], span[a] + score)
        if is_gold:
            out[a] = max(out[a], span[a] + gold_scores)


@kernel
def trace_error_counts(
    chart, scores, gold_scores, gold, n, single_root, cap, error_count, heads, wrong
):
    """Heads of the best tree of a level, and which of its arcs were taken as wrong."""
    right, left = chart[COMPLETE_RIGHT], chart[COMPLETE_LEFT]
    open_right, open_left = chart[OPEN_RIGHT], chart[OPEN_LEFT]
    stack = np.empty((2 * n + 4, 4), np.int64)
    pair = np.empty(3, np.int64)
    span = np.empty(cap + 1)
    best = np.empty(1)
    push_span(stack, 0, COMPLETE_RIGHT, 0, n)
    stack[0, 3] = error_count
    size = 1
    while size > 0:
        size -= 1
        kind, i, j, error_count = stack[size, 0], stack[size, 1], stack[size, 2], stack[size, 3]
        if i == j:
            continue
        best[0] = -np.inf
        if kind == COMPLETE_RIGHT:
            for k in range(i + 1, j + 1):
                _find(open_right[i, k], right[k, j], cap, error_count, k, best, pair)
            push_span(stack, size, OPEN_RIGHT, i, pair[0])
            push_span(stack, size + 1, COMPLETE_RIGHT, pair[0], j)
        elif kind == COMPLETE_LEFT:
            for k in range(i, j):
                _find(left[i, k], open_left[k, j], cap, error_count, k, best, pair)
            push_span(stack, size, COMPLETE_LEFT, i, pair[0])
            push_span(stack, size + 1, OPEN_LEFT, pair[0], j)
        else:
            h, m = (i, j) if kind == OPEN_RIGHT else (j, i)
            heads[m] = h
            last = i + 1 if i == 0 and single_root else j
            span[:] = -np.inf
            for k in range(i, last):
                _join(right[i, k], k - i, left[k + 1, j], j - k - 1, cap, span)
            below = _error_count_below(
                span, scores[h, m], gold_scores[m], gold[m] == h, cap, error_count
            )
            wrong[m] = below >= 0
            error_count = below if below >= 0 else error_count
            for k in range(i, last):
                _find(right[i, k], left[k + 1, j], cap, error_count, k, best, pair)
            push_span(stack, size, COMPLETE_RIGHT, i, pair[0])
            push_span(stack, size + 1, COMPLETE_LEFT, pair[0] + 1, j)
        stack[size, 3], stack[size + 1, 3] = pair[1], pair[2]
        size += 2


@kernel
def _find(first, second, cap, error_count, k, best, pair):
    """Note the split k and its levels if they beat the best so far."""
    for a in range(error_count + 1):
        most = cap if error_count == cap else error_count - a
        for b in range(error_count - a, most + 1):
            if first[a] + second[b] > best[0]:
                best[0] = first[a] + second[b]
                pair[0], pair[1], pair[2] = k, a, b


@kernel
def _error_count_below(span, score, gold_scores, is_gold, cap, error_count):
    """Level of the span under a wrong arc; -1 if the arc is best taken as right."""
    best, below = -np.inf, -1
    if is_gold:
        best = span[error_count] + gold_scores
    if error_count > 0 and span[error_count - 1] + score > best:
        best, below = span[error_count - 1] + score, error_count - 1
    if error_count == cap and cap > 0 and span[cap] + score > best:
        below = cap
    return below
