"""The best segmentation for each level of loss, and from them the most violated one.

A level is two numbers (a, b): right and predicted segments for losses that count segments, nothing
and wrong tokens for those of tokens. States of the search are a place, the label of the piece that
ends there and a level, so that it would take time O(levels T K (L + K)). For the best segmentation
but the gold one, wrong tokens are counted up to 1. Otherwise bounds come first, see `bounds`: they
often tell the best segmentation by themselves, and leave few states where they do not.
"""

from __future__ import annotations

import numpy as np

from ...jit.decorator import kernel
from ...search.modes import BEST_NON_GOLD
from ...search.violation import violation
from .bounds import (
    F1,
    ROUNDS,
    SEGMENTS,
    ErrorCounts,
    bound_error_counts,
    error_count_loss,
    gold_score,
    piece_terms,
    prepare,
)

FIRST_A, LAST_A, FIRST_B, LAST_B = 0, 1, 2, 3  # ends of a box of levels


@kernel(allocates=False)
def clear(table, box):
    """No state is reached yet at the levels of a box."""
    for a in range(box[FIRST_A], box[LAST_A] + 1):
        for b in range(box[FIRST_B], box[LAST_B] + 1):
            table[a, b] = -np.inf


@kernel(allocates=False)
def widen(box, other, more_a, more_b, most_a, cap):
    """Widen a box by another one that is moved."""
    if other[FIRST_A] > other[LAST_A]:
        return
    box[FIRST_A] = min(box[FIRST_A], other[FIRST_A] + more_a)
    box[LAST_A] = max(box[LAST_A], min(other[LAST_A] + more_a, most_a))
    box[FIRST_B] = min(box[FIRST_B], other[FIRST_B] + more_b, cap)
    box[LAST_B] = max(box[LAST_B], min(other[LAST_B] + more_b, cap))


@kernel(allocates=False)
def empty(box):
    """Make a box one without levels."""
    box[FIRST_A], box[LAST_A], box[FIRST_B], box[LAST_B] = 2**30, -1, 2**30, -1


@kernel(allocates=False)
def raise_error_counts(source, box, target, score, more_a, more_b):
    """target[a + more_a, b + more_b] = max(.., source[a, b] + score), b no more than there is."""
    cap = target.shape[1] - 1
    for a in range(box[FIRST_A], box[LAST_A] + 1):
        given, reached = source[a], target[a + more_a]
        for b in range(box[FIRST_B], min(box[LAST_B], cap - more_b) + 1):
            reached[b + more_b] = max(reached[b + more_b], given[b] + score)
        for b in range(max(cap - more_b + 1, box[FIRST_B]), box[LAST_B] + 1):
            reached[cap] = max(reached[cap], given[b] + score)


@kernel(allocates=False)
def shrink(table, box, rest, price_a, price_b, limit):
    """Leave the states that reach a limit, with what may follow; the box becomes theirs."""
    first_a, last_a, first_b, last_b = 2**30, -1, 2**30, -1
    for a in range(box[FIRST_A], box[LAST_A] + 1):
        for b in range(box[FIRST_B], box[LAST_B] + 1):
            # Not "less than": without a limit all that is reached stays.
            if table[a, b] + price_a * a + price_b * b + rest >= limit and table[a, b] > -np.inf:
                first_a, last_a = min(first_a, a), max(last_a, a)
                first_b, last_b = min(first_b, b), max(last_b, b)
            else:
                table[a, b] = -np.inf
    box[FIRST_A], box[LAST_A], box[FIRST_B], box[LAST_B] = first_a, last_a, first_b, last_b


@kernel(inline=True)
def is_in(box, a, b):
    """Whether a level is one of a box."""
    return box[FIRST_A] <= a <= box[LAST_A] and box[FIRST_B] <= b <= box[LAST_B]


@kernel
def best_by_error_count(model, w, length, loss, mode, gold_labels, gold_lengths, n_gold, work):
    """Segmentation that maximises the rescaled violation, into work; returns if it is above 0."""
    K = model.n_labels
    by_segments = mode.kind != BEST_NON_GOLD and (loss == SEGMENTS or loss == F1)
    most_right = n_gold if by_segments else 0
    cap = 1 if mode.kind == BEST_NON_GOLD else length
    error_counts = ErrorCounts(
        np.empty((K, length + 1), np.int64),
        np.zeros((length + 1, K + 1)),
        np.zeros((length + 1, K + 1)),
        np.empty((length + 1, K + 1), np.int64),
        np.empty((length + 1, K + 1), np.int64),
        np.zeros((ROUNDS, 3)),
        np.array([0.0, -np.inf]),
    )
    wrong = error_counts.wrong
    prepare(model, length, gold_labels, gold_lengths, wrong, work)
    of_gold = gold_score(model, w, length, gold_labels, gold_lengths, wrong, work)
    rounds = 1
    if mode.kind != BEST_NON_GOLD:
        rounds = bound_error_counts(
            model, w, length, loss, mode, by_segments, gold_labels, gold_lengths, n_gold, of_gold,
            error_counts, work,
        )  # fmt: skip
        if rounds == 0:
            return error_counts.limits[0] > 0.0
    price_a, price_b = (
        error_counts.multipliers[rounds - 1, 1],
        error_counts.multipliers[rounds - 1, 2],
    )
    limit = error_counts.limits[1]
    # entered[t, c]: before a piece of label c that begins at t; left[t, c]: after one that ends.
    # They have levels within boxes only.
    entered = np.empty((length + 1, K + 1, most_right + 1, cap + 1))
    left = np.empty((length + 1, K + 1, most_right + 1, cap + 1))
    before_piece = np.empty((length + 1, K + 1, 4), np.int64)
    after_piece = np.empty((length + 1, K + 1, 4), np.int64)
    for c in range(K + 1):
        before_piece[0, c] = 0
        entered[0, c, 0, 0] = 0.0
    for t in range(1, length + 1):
        for c in range(K + 1):
            box = after_piece[t, c]
            empty(box)
            longest = model.longest[c] if c < K else np.int64(1)
            for again in range(2):  # first its box, then its states
                for n in range(1, min(longest, t) + 1):
                    s = t - n
                    source = before_piece[s, c]
                    if source[FIRST_A] > source[LAST_A]:
                        continue
                    score, more_a, more_b = piece_terms(
                        model, w, by_segments, s, t, c, gold_labels, gold_lengths, wrong, work
                    )
                    if again == 0:
                        widen(box, source, more_a, more_b, most_right, cap)
                    else:
                        raise_error_counts(entered[s, c], source, left[t, c], score, more_a, more_b)
                if again == 0:
                    clear(left[t, c], box)
            shrink(left[t, c], box, error_counts.after[t, c], price_a, price_b, limit)
        if t == length:
            break
        for c in range(K + 1):
            box = before_piece[t, c]
            empty(box)
            for j in range(K + 1):
                widen(box, after_piece[t, j], 0, 0, most_right, cap)
            clear(entered[t, c], box)
            for j in range(K + 1):
                move = w[model.transitions + j * (K + 1) + c]
                raise_error_counts(left[t, j], after_piece[t, j], entered[t, c], move, 0, 0)
            shrink(entered[t, c], box, error_counts.open[t, c], price_a, price_b, limit)
    best, label, a, b = error_counts.limits[0], -1, 0, 0
    for c in range(K + 1):
        box = after_piece[length, c]
        for right in range(box[FIRST_A], box[LAST_A] + 1):
            for count in range(box[FIRST_B], box[LAST_B] + 1):
                delta = float(count) if mode.kind == BEST_NON_GOLD else 0.0
                if mode.kind != BEST_NON_GOLD:
                    delta = error_count_loss(loss, right, count, n_gold)
                gain = left[length, c, right, count] - of_gold
                if delta <= 0.0 or gain == -np.inf:
                    continue
                value = violation(delta, gain, mode)
                if value > best:
                    best, label, a, b = value, c, right, count
    if label < 0:
        return best > 0.0
    t = length
    while t > 0:
        # The piece that ends here: its length, and the level before it.
        top, chosen, before_a, before_b = -np.inf, 1, 0, 0
        longest = model.longest[label] if label < K else np.int64(1)
        for n in range(1, min(longest, t) + 1):
            s = t - n
            score, more_a, more_b = piece_terms(
                model, w, by_segments, s, t, label, gold_labels, gold_lengths, wrong, work
            )
            if more_a > a or (more_b > b and b < cap):
                continue
            lowest = max(b - more_b, 0)
            for other in range(lowest, (cap if b == cap else lowest) + 1):
                if not is_in(before_piece[s, label], a - more_a, other):
                    continue
                value = entered[s, label, a - more_a, other] + score
                if value > top:
                    top, chosen, before_a, before_b = value, n, a - more_a, other
        t -= chosen
        a, b = before_a, before_b
        for u in range(t, t + chosen):
            work.labels[u] = label
            work.lengths[u] = 0
        work.lengths[t] = chosen
        if t > 0:
            top, previous = -np.inf, 0
            for j in range(K + 1):
                if not is_in(after_piece[t, j], a, b):
                    continue
                value = left[t, j, a, b] + w[model.transitions + j * (K + 1) + label]
                if value > top:
                    top, previous = value, j
            label = previous
    return True
