"""Bounds on the violation of segmentations, by levels of their loss.

With the best score G(a, b) of all segmentations of a level, and any two prices,

    G(a, b) <= D - price_a a - price_b b,
    D = max over all z of score(z) + price_a a(z) + price_b b(z),

and D takes one search without levels. The loss of a level and its largest score give the largest
violation it may have. The next prices are the slopes of the violation at the level of the largest
bound: a segmentation found there is the best of all where its own violation reaches all bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...jit.decorator import kernel
from ...search.semiring import argmax
from ...search.violation import plane_terms, violation
from ...utils.types import Floats, Ints

__all__ = ["ErrorCounts", "bound_error_counts", "error_count_loss", "piece_terms", "prepare"]

HAMMING, SEGMENTS, F1, ZERO_ONE = 0, 1, 2, 3
ROUNDS = 4  # searches with prices
PRECISION = 1e-11  # of scores, relative to the largest: rounding of their sums


class ErrorCounts(NamedTuple):
    """What is known of a sequence: best scores of what follows a place, with prices in them.

    ``open[t, c]`` has a piece of label c that begins at t, ``after[t, c]`` one that ends before t;
    ``length[t, c]`` is how long that piece is, ``next[t, c]`` the label of the one behind it.
    """

    wrong: Ints  # by label: tokens before a place that are wrong inside a segment
    open: Floats
    after: Floats
    length: Ints
    next: Ints
    multipliers: Floats  # D, price_a and price_b of each round
    limits: Floats  # violation of the best segmentation so far, and what its states have to reach


@kernel(inline=True)
def error_count_loss(loss, right, count, n_gold):
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
def search_with_prices(
    model, w, length, by_segments, gold_labels, gold_lengths, price_a, price_b, error_counts, work
):
    """Fill the tables of `ErrorCounts`; returns D."""
    K = model.n_labels
    for c in range(K + 1):
        error_counts.after[length, c] = 0.0
    for t in range(length - 1, -1, -1):
        for c in range(K + 1):
            longest = model.longest[c] if c < K else np.int64(1)
            best, chosen = -np.inf, np.int64(1)
            for n in range(1, min(longest, length - t) + 1):
                score, more_a, more_b = piece_terms(
                    model,
                    w,
                    by_segments,
                    t,
                    t + n,
                    c,
                    gold_labels,
                    gold_lengths,
                    error_counts.wrong,
                    work,
                )
                value = score + price_a * more_a + price_b * more_b + error_counts.after[t + n, c]
                if value > best:
                    best, chosen = value, n
            error_counts.open[t, c], error_counts.length[t, c] = best, chosen
        if t > 0:
            for j in range(K + 1):
                best, chosen = -np.inf, np.int64(0)
                for c in range(K + 1):
                    value = w[model.transitions + j * (K + 1) + c] + error_counts.open[t, c]
                    if value > best:
                        best, chosen = value, np.int64(c)
                error_counts.after[t, j], error_counts.next[t, j] = best, chosen
    return error_counts.open[0, argmax(error_counts.open[0], K + 1)]


@kernel(allocates=False)
def error_count_found(model, w, length, by_segments, gold_labels, gold_lengths, error_counts, work):
    """The level of the segmentation that the tables tell."""
    right, count, t = 0, 0, 0
    label = np.int64(argmax(error_counts.open[0], model.n_labels + 1))
    while t < length:
        n = error_counts.length[t, label]
        _, more_a, more_b = piece_terms(
            model,
            w,
            by_segments,
            t,
            t + n,
            label,
            gold_labels,
            gold_lengths,
            error_counts.wrong,
            work,
        )
        right, count, t = right + more_a, count + more_b, t + n
        if t < length:
            label = error_counts.next[t, label]
    return right, count


@kernel(allocates=False)
def take_found(model, length, error_counts, work):
    """Write the segmentation that the tables tell to work."""
    t, label = 0, np.int64(argmax(error_counts.open[0], model.n_labels + 1))
    while t < length:
        n = error_counts.length[t, label]
        for u in range(t, t + n):
            work.labels[u] = label
            work.lengths[u] = 0
        work.lengths[t] = n
        t += n
        if t < length:
            label = error_counts.next[t, label]


@kernel(allocates=False)
def slopes(loss, mode, n_gold, a, b, gain):
    """By what the violation rises with a and with b at a level, in units of scores."""
    scale = plane_terms(error_count_loss(loss, a, b, n_gold), mode)[1]
    low_a, high_a = max(a - 1, 0), max(min(a + 1, n_gold), 1)
    low_b = max(b - 1, 0)
    rise_a = value_at(loss, mode, n_gold, high_a, b, gain)
    rise_a -= value_at(loss, mode, n_gold, low_a, b, gain)
    rise_b = value_at(loss, mode, n_gold, a, b + 1, gain)
    rise_b -= value_at(loss, mode, n_gold, a, low_b, gain)
    return rise_a / ((high_a - low_a) * scale), rise_b / ((b + 1 - low_b) * scale)


@kernel(allocates=False)
def value_at(loss, mode, n_gold, a, b, gain):
    """Violation at a level, also at one that no segmentation has."""
    return violation(max(error_count_loss(loss, a, b, n_gold), 0.0), gain, mode)


@kernel(allocates=False)
def bound_error_counts(
    model,
    w,
    length,
    loss,
    mode,
    by_segments,
    gold_labels,
    gold_lengths,
    n_gold,
    of_gold,
    error_counts,
    work,
):
    """Search for good segmentations; returns the number of rounds, 0 if the best one is in work.

    levels.limits gets the violation of that in work (0 for the truth), and what states have to
    reach under the prices of the last round to lead to a better one.
    """
    most_a = n_gold if by_segments else 0
    a, b, gain = -1, -1, 0.0
    price_a, price_b = 0.0, 0.0
    error_counts.limits[0] = 0.0
    for r in range(ROUNDS):
        if r > 0:
            price_a, price_b = slopes(loss, mode, n_gold, a, b, gain)
        D = search_with_prices(
            model,
            w,
            length,
            by_segments,
            gold_labels,
            gold_lengths,
            price_a,
            price_b,
            error_counts,
            work,
        )
        (
            error_counts.multipliers[r, 0],
            error_counts.multipliers[r, 1],
            error_counts.multipliers[r, 2],
        ) = D, price_a, price_b
        found_a, found_b = error_count_found(
            model, w, length, by_segments, gold_labels, gold_lengths, error_counts, work
        )
        delta = error_count_loss(loss, found_a, found_b, n_gold)
        if delta > 0.0:
            gain = D - price_a * found_a - price_b * found_b - of_gold
            value = violation(delta, gain, mode)
            if value > error_counts.limits[0]:
                error_counts.limits[0] = value
                take_found(model, length, error_counts, work)
        # The level of the largest bound that is above what was found.
        rounding = PRECISION * (1.0 + abs(D) + abs(of_gold))
        top, before_a, before_b = error_counts.limits[0] + rounding, a, b
        error_counts.limits[1] = np.inf
        proven = True
        for right in range(most_a + 1):
            for count in range(right if by_segments else 1, length + 1):
                delta = error_count_loss(loss, right, count, n_gold)
                if delta <= 0.0:
                    continue
                most = np.inf
                for k in range(r + 1):
                    price = error_counts.multipliers[k]
                    most = min(most, price[0] - price[1] * right - price[2] * count)
                bound = violation(delta, most - of_gold, mode)
                if bound <= error_counts.limits[0] + rounding:
                    continue
                proven = False
                offset, scale = plane_terms(delta, mode)
                needed = of_gold + (error_counts.limits[0] - offset) / scale
                needed += price_a * right + price_b * count
                error_counts.limits[1] = min(error_counts.limits[1], needed - rounding)
                if bound > top:
                    top, a, b, gain = bound, right, count, most - of_gold
        if proven:
            return 0
        if a == before_a and b == before_b:
            return r + 1
    return ROUNDS
