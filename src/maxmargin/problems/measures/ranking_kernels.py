"""The most violated rankings of positive and negative rows.

A ranking is known by its *swapped* pairs, of a positive row that is below a negative one. Its joint
features differ from those of the truth by the mean over all P N pairs of x_i - x_j where (i, j) is
swapped, and nothing otherwise.
"""

from __future__ import annotations

import numpy as np

from ...jit.decorator import kernel
from ...search.average_precision import write_swaps
from ...search.modes import BEST_NON_GOLD
from ...search.violation import violation


@kernel(allocates=False)
def swap_pairs(margin, scores, shares, positive, negative, out):
    """Swap every pair (i, j) with scores[i] - scores[j] < margin; returns the share of these.

    ROC area with margin rescaling, where pairs are swapped each on its own (Joachims 2005, Alg. 3).
    ``positive`` and ``negative`` list the rows from the highest score to the lowest; shares of rows
    add up to 1 and to -1. ``out[i]`` gets the weight of row i in the difference of features.
    """
    loss = 0.0
    above, j = 0.0, 0
    for i in positive:
        while j < len(negative) and scores[i] - scores[negative[j]] < margin:
            above -= shares[negative[j]]
            j += 1
        out[i] = shares[i] * above
        loss += out[i]
    below, k = 0.0, len(positive) - 1
    for r in range(len(negative) - 1, -1, -1):
        j = negative[r]
        while k >= 0 and scores[positive[k]] - scores[j] < margin:
            below += shares[positive[k]]
            k -= 1
        out[j] = shares[j] * below
    return loss


@kernel(allocates=False)
def precision_loss(shares, positive, out):
    """1 minus the average precision of a ranking whose swaps `swap_pairs` has written."""
    P = len(positive)
    N = 0.0
    for i in range(len(shares)):
        N += shares[i] < 0.0
    total = 0.0
    for k in range(P):
        i = positive[k]
        above = np.rint(N * out[i] / shares[i])
        total += above / (k + 1 + above)
    return total / P


@kernel(allocates=False)
def place_negatives_at(a, mode, scores, positive, negative, sums, places, out):
    """Ranking of the largest violation; returns its loss, 1 - precision at the a-th positive row.

    The loss is m / (a + m) with m negative rows above that one. For each m the best ranking is
    known: the m best negative rows are above it and the others below, and all have as many positive
    ones above them as have larger scores, as far as that allows. So any rescaling is searched by
    going through all m. ``out`` is left alone where nothing is better than the truth.
    """
    P, N = len(positive), len(negative)
    pairs = float(P) * N
    higher, gain = 0, 0.0
    for j in range(1, N + 1):
        score = scores[negative[j - 1]]
        while higher < P and scores[positive[higher]] >= score:
            higher += 1
        places[j] = higher
        i = max(higher, a)
        gain += ((P - i) * score - (sums[P] - sums[i])) / pairs
    best, most = 0.0, 0
    if mode.kind != BEST_NON_GOLD and not mode.slack:
        best = gain  # with m = 0 there is no loss
    for m in range(1, N + 1):
        score, i, k = scores[negative[m - 1]], min(places[m], a - 1), max(places[m], a)
        gain += ((k - i) * score - (sums[k] - sums[i])) / pairs
        if mode.kind == BEST_NON_GOLD:
            value = 1.0 + gain
        else:
            value = violation(m / (a + m), gain, mode)
        if value > best:
            best, most = value, m
    if best <= 0.0:
        return 0.0
    for j in range(1, N + 1):
        places[j] = min(places[j], a - 1) if j <= most else max(places[j], a)
    write_swaps(positive, negative, places, pairs, out)
    return most / (a + most)
