"""The best segmentation for each level of loss, and from them the most violated one.

A level is two numbers (a, b): right and predicted segments for losses that count segments, nothing
and wrong tokens for those of tokens. States of the search are a place, the label of the piece that
ends there and a level; `best_by_level` takes time O(levels T K (L + K)). For the best segmentation
but the gold one, wrong tokens are counted up to 1.
"""

from __future__ import annotations

import numpy as np

from ..._jit import kernel
from ...search.modes import DEVIATION
from ...search.violation import violation

HAMMING, SEGMENTS, F1, ZERO_ONE = 0, 1, 2, 3


@kernel(inline=True)
def level_loss(loss, right, count, n_gold):
    """Loss of a level."""
    if loss == HAMMING:
        return 1.0 * count
    if loss == ZERO_ONE:
        return min(1.0 * count, 1.0)
    if loss == SEGMENTS:
        return 1.0 * (n_gold + count - 2 * right)
    return 1.0 - 2.0 * right / (n_gold + count) if n_gold + count > 0 else 0.0


@kernel(allocates=False)
def piece_terms(model, w, by_segments, s, t, label, gold_labels, gold_lengths, wrong, work):
    """Score of a piece s..t-1 without its transition, and by how much it raises the level."""
    K, scores = model.n_labels, work.scores
    if label == K:
        counted = 0 if by_segments else int(gold_labels[s] != K)
        return scores[s, K], 0, counted
    score = (
        work.prefix[label, t]
        - work.prefix[label, s]
        + scores[s, K + 1 + label]
        + scores[t - 1, 2 * K + 1 + label]
        + w[model.lengths[label] + t - s - 1]
    )
    if by_segments:
        return score, int(gold_labels[s] == label and gold_lengths[s] == t - s), 1
    counted = wrong[label, t] - wrong[label, s]
    if gold_labels[s] == label:  # the first token is told from the others
        counted += -1 if gold_lengths[s] > 0 else 1
    return score, 0, counted


@kernel(allocates=False)
def prepare(model, length, gold_labels, gold_lengths, wrong, work):
    """Prefix sums of scores, and of the tokens that are wrong inside a segment of each label."""
    for k in range(model.n_labels):
        work.prefix[k, 0] = 0.0
        wrong[k, 0] = 0
        for t in range(length):
            is_right = gold_labels[t] == k and gold_lengths[t] == 0
            work.prefix[k, t + 1] = work.prefix[k, t] + work.scores[t, k]
            wrong[k, t + 1] = wrong[k, t] + (0 if is_right else 1)


@kernel(allocates=False)
def gold_score(model, w, length, gold_labels, gold_lengths, wrong, work):
    """Score of the gold segmentation."""
    score, t = 0.0, 0
    while t < length:
        stop = t + gold_lengths[t]
        label = np.int64(gold_labels[t])
        if t > 0:
            score += w[model.transitions + gold_labels[t - 1] * (model.n_labels + 1) + label]
        score += piece_terms(
            model, w, False, t, stop, label, gold_labels, gold_lengths, wrong, work
        )[0]
        t = stop
    return score


@kernel(allocates=False)
def raise_levels(source, target, score, most_a, most_b, more_a, more_b):
    """target[a + more_a, b + more_b] = max(.., source[a, b] + score), b no more than there is."""
    cap = target.shape[1] - 1
    for a in range(most_a + 1):
        given, reached = source[a], target[a + more_a]
        for b in range(min(most_b, cap - more_b) + 1):
            reached[b + more_b] = max(reached[b + more_b], given[b] + score)
        for b in range(max(cap - more_b + 1, 0), most_b + 1):
            reached[cap] = max(reached[cap], given[b] + score)


@kernel
def best_by_level(model, w, length, loss, mode, gold_labels, gold_lengths, n_gold, work):
    """Segmentation that maximises the rescaled violation, into work; returns if it is above 0."""
    K = model.n_labels
    by_segments = mode.kind != DEVIATION and (loss == SEGMENTS or loss == F1)
    most_right = n_gold if by_segments else 0
    cap = 1 if mode.kind == DEVIATION else length
    # entered[t, c]: before a piece of label c that begins at t; left[t, c]: after one that ends.
    entered = np.full((length + 1, K + 1, most_right + 1, cap + 1), -np.inf)
    left = np.full((length + 1, K + 1, most_right + 1, cap + 1), -np.inf)
    wrong = np.empty((K, length + 1), np.int64)
    ended = np.zeros(length + 1, np.int64)  # gold segments that end here or before
    prepare(model, length, gold_labels, gold_lengths, wrong, work)
    for c in range(K + 1):
        entered[0, c, 0, 0] = 0.0
    for t in range(1, length + 1):
        ended[t] = ended[t - 1] + (by_segments and work.gold_starts[t] >= 0)
        for c in range(K + 1):
            longest = model.longest[c] if c < K else np.int64(1)
            for n in range(1, min(longest, t) + 1):
                s = t - n
                score, more_a, more_b = piece_terms(
                    model, w, by_segments, s, t, c, gold_labels, gold_lengths, wrong, work
                )
                most_b = min(s, cap)
                raise_levels(entered[s, c], left[t, c], score, ended[s], most_b, more_a, more_b)
        if t < length:
            for j in range(K + 1):
                for c in range(K + 1):
                    move = w[model.transitions + j * (K + 1) + c]
                    raise_levels(left[t, j], entered[t, c], move, ended[t], min(t, cap), 0, 0)
    of_gold = gold_score(model, w, length, gold_labels, gold_lengths, wrong, work)
    best, label, a, b = 0.0, -1, 0, 0
    for c in range(K + 1):
        for right in range(most_right + 1):
            for count in range(cap + 1):
                delta = float(count) if mode.kind == DEVIATION else 0.0
                if mode.kind != DEVIATION:
                    delta = level_loss(loss, right, count, n_gold)
                gain = left[length, c, right, count] - of_gold
                if delta <= 0.0 or gain == -np.inf:
                    continue
                value = violation(delta, gain, mode)
                if value > best:
                    best, label, a, b = value, c, right, count
    if label < 0:
        return False
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
                value = left[t, j, a, b] + w[model.transitions + j * (K + 1) + label]
                if value > top:
                    top, previous = value, j
            label = previous
    return True
