"""The most violated labels and rankings of positive and negative rows.

Labels of n rows, P of them positive, with ``a`` positive rows labelled positive and ``b`` negative
ones labelled so, have a loss Delta(a, b); of all labels with that table the highest scored rows are
the best. So the violation of a table is known from sums of sorted scores, and the best of all
tables is to be found (Joachims 2005, Alg. 2, lists all of them, P times N). Here the best b of each
a is found by climbing from that of the a before. For a given a, Delta is concave in b, and so is
the score: Delta + gain, with or without a root, is concave, and Delta (1 + gain) is log-concave
where it is positive. Either has one peak.

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

ERROR, F_BETA, BREAK_EVEN, AT_LEAST, AT_MOST, RECALL_AT_PRECISION = 0, 1, 2, 3, 4, 5
NOTHING = -1e300  # value of no table


@kernel(inline=True)
def allowed_false(terms, a):
    """First and last number of negative rows labelled positive, next to a positive ones."""
    first, last = np.int64(0), terms.n_neg
    if terms.kind == BREAK_EVEN or terms.kind == AT_LEAST:
        first = max(first, terms.count - a)
    if terms.kind == BREAK_EVEN or terms.kind == AT_MOST:
        last = min(last, terms.count - a)
    if terms.kind == RECALL_AT_PRECISION:
        last = np.int64(min(float(last), a * (1.0 - terms.floor) / terms.floor + 1e-9))
    return first, last


@kernel(inline=True)
def table_loss(terms, a, b):
    """What the measure lacks of the best, in a form that rounding leaves at 0 where it is 0."""
    P, N = float(terms.n_pos), float(terms.n_neg)
    if terms.kind == ERROR:
        return (P - a + b) / (P + N)
    if terms.kind == F_BETA:
        return (b + terms.beta2 * (P - a)) / (a + b + terms.beta2 * P)
    if terms.kind == AT_LEAST:
        return terms.highest * b / max(a + b, 1)
    return terms.highest * (P - a) / P


@kernel(inline=True)
def table_value(terms, mode, a, b, gain):
    """Violation of the best labels with a table; those without loss are the truth's equals."""
    loss = table_loss(terms, a, b)
    if mode.kind == BEST_NON_GOLD:
        return 1.0 + gain if loss > 0.0 else NOTHING
    return violation(loss, gain, mode)


@kernel(allocates=False)
def climb(terms, mode, a, b, first, last, kept, taken):
    """Best b in first..last, by steps from b; returns it and the violation there."""
    cost = kept[a]
    value = table_value(terms, mode, a, b, taken[b] - cost)
    start = b
    while b < last:
        above = table_value(terms, mode, a, b + 1, taken[b + 1] - cost)
        if above <= value:
            break
        b, value = b + 1, above
    while b <= start and b > first:
        below = table_value(terms, mode, a, b - 1, taken[b - 1] - cost)
        if below <= value:
            break
        b, value = b - 1, below
    return b, value


@kernel(allocates=False)
def best_table(terms, mode, kept, taken, best):
    """Write the table of the largest violation to ``best``; returns that, and the table's loss.

    ``kept[a]`` is what it costs to label all but the a best positive rows negative, ``taken[b]``
    what the b best negative rows gain when they are labelled positive: the difference of the two is
    the gain over the truth.
    """
    P, N = terms.n_pos, terms.n_neg
    # Where the score alone is the best; the loss never falls with b, so the peak is not below.
    peak = 0
    while peak < N and taken[peak + 1] > taken[peak]:
        peak += 1
    found, b = NOTHING, peak
    for a in range(P + 1):
        first, last = allowed_false(terms, a)
        if first > last:
            continue
        b = max(first, min(b, last))
        # A product of two negative factors is no violation, and no place to climb from.
        if mode.slack and taken[b] - kept[a] <= -1.0:
            b = max(first, min(peak, last))
            if taken[b] - kept[a] <= -1.0:
                continue
        b, value = climb(terms, mode, a, b, first, last, kept, taken)
        if value > found:
            found, best[0], best[1] = value, a, b
    return found, table_loss(terms, best[0], best[1])


@kernel
def loss_of_table(terms, a, b):
    """The loss of labels with a table."""
    return table_loss(terms, a, b)


@kernel(allocates=False)
def flip_lowest_and_highest(scores, shares, limits, ties, out):
    """Mark positive rows below a limit and negative ones above another: out = shares there.

    ``shares`` are positive for positive rows and negative for others. Rows at a limit are marked
    while ``ties`` of their kind are left.
    """
    for i in range(len(scores)):
        kind = 0 if shares[i] > 0.0 else 1
        beyond = limits[0] - scores[i] if kind == 0 else scores[i] - limits[1]
        marked = beyond > 0.0
        if beyond == 0.0 and ties[kind] > 0:
            ties[kind] -= 1
            marked = True
        out[i] = shares[i] if marked else 0.0


@kernel(allocates=False)
def flip_violated(scores, shares, out):
    """Mark rows whose margin is below 1, each on its own: out = shares there; returns the loss.

    For the error rate with margin rescaling: the loss is a sum over rows.
    """
    loss = 0.0
    for i in range(len(scores)):
        score = scores[i] if shares[i] > 0.0 else -scores[i]
        out[i] = shares[i] if score < 1.0 else 0.0
        loss += abs(out[i])
    return loss


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
