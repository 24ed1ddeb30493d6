"""Swapped pairs: every pair of different grades is an output of its own, right or swapped.

Problem solved, for one query with scores s and ``d = s_better - s_worse`` of each of its pairs:
find the set of pairs to swap whose violation is largest, where k swapped pairs with the sum D of
their d have the loss ``k unit`` and ``<dpsi, w> = D unit``. For a given k the k smallest d are
best, so a threshold on d says it all:

* margin rescaling: swap all pairs with d < 1, which makes the slack the sum of the pairs' hinges
  (Joachims 2006, "Training linear SVMs in linear time", Sec. 4);
* else the violation is quasi-concave in k (k (1 - D) and sqrt(k) (1 - D) are products of positive
  concave functions, sqrt(k) - D is concave, and without rescaling the first swap is free), so the
  threshold is found by bisection, over the bits of a number, and pairs that tie there one by one.

The pairs below a threshold are counted in O(m log m), never listed: documents are swept by score,
and a Fenwick tree counts grades.
"""

from __future__ import annotations

import numpy as np

from ...jit.decorator import kernel
from ...search.modes import ADDITIVE, BEST_NON_GOLD
from ...search.violation import violation
from ...utils.types import Floats, Ints
from .queries import add_grade, clear_tree, count_below

__all__ = ["count_pairs", "find_swaps"]


def count_pairs(
    scores: Floats, grades: Ints, n_grades: Ints, offsets: Ints, threshold: float
) -> Floats:
    """Number of pairs of each query with d below a threshold; documents come by falling score."""
    longest = int(np.diff(offsets).max(initial=0))
    work = np.arange(longest), np.empty(longest + 1, np.int64), np.empty(longest)
    numbers = np.empty(len(offsets) - 1)
    _count_pairs(scores, grades, n_grades, offsets, threshold, *work, numbers)
    return numbers


@kernel(allocates=False)
def _count_pairs(scores, grades, n_grades, offsets, threshold, order, tree, counts, numbers):
    """See `count_pairs`."""
    for q in range(len(numbers)):
        first, end = offsets[q], offsets[q + 1]
        numbers[q] = _count_worse(
            scores[first:end], order[: end - first], grades[first:end], n_grades[q], threshold,
            tree, counts,
        )  # fmt: skip


@kernel(inline=True)
def _is_below(better, worse, threshold):
    """Whether a pair's difference is below a threshold; both sweeps have to round alike."""
    return better - worse < threshold


@kernel(allocates=False)
def _count_worse(scores, order, grades, n_grades, threshold, tree, counts):
    """Counts, of each document, the worse ones it has a d below the threshold with; their sum."""
    clear_tree(tree, n_grades)
    total, reached = 0, 0
    for place in range(len(order)):
        better = order[place]
        while reached < len(order) and _is_below(scores[better], scores[order[reached]], threshold):
            add_grade(tree, n_grades, grades[order[reached]], np.int64(1))
            reached += 1
        n_worse = count_below(tree, grades[better])
        counts[better] = n_worse
        total += n_worse
    return total


@kernel(allocates=False)
def _subtract_better(scores, order, first, end, grades, n_grades, threshold, tree, counts):
    """Subtracts, of each document, the number of better ones among order[first:end], likewise."""
    clear_tree(tree, n_grades)
    reached = end - 1
    for place in range(len(order) - 1, -1, -1):
        worse = order[place]
        while reached >= first and _is_below(scores[order[reached]], scores[worse], threshold):
            add_grade(tree, n_grades, grades[order[reached]], np.int64(1))
            reached -= 1
        counts[worse] -= end - 1 - reached - count_below(tree, grades[worse] + 1)


@kernel(allocates=False)
def _swap_below(scores, order, grades, n_grades, threshold, tree, counts):
    """Swap all pairs with a d below the threshold: fills the counts, returns k and D."""
    k = _count_worse(scores, order, grades, n_grades, threshold, tree, counts)
    m = len(order)
    _subtract_better(scores, order, 0, m, grades, n_grades, threshold, tree, counts)
    D = 0.0
    for d in range(m):
        D += counts[d] * scores[d]
    return k, D


@kernel(allocates=False)
def _swap_weighted(scores, order, grades, n_grades, weights, sums, counts):
    """Swap all pairs with d < 1, which count the product of weights; returns what they count."""
    clear_tree(sums, n_grades)
    m, total, reached = len(order), 0.0, 0
    for place in range(m):
        better = order[place]
        while reached < m and _is_below(scores[better], scores[order[reached]], 1.0):
            worse = order[reached]
            add_grade(sums, n_grades, grades[worse], weights[worse])
            reached += 1
        counts[better] = weights[better] * count_below(sums, grades[better])
        total += counts[better]
    # Grades from the other end, for differences of sums would leave something where there is none.
    clear_tree(sums, n_grades)
    last, reached = n_grades - 1, m - 1
    for place in range(m - 1, -1, -1):
        worse = order[place]
        while reached >= 0 and _is_below(scores[order[reached]], scores[worse], 1.0):
            better = order[reached]
            add_grade(sums, n_grades, last - grades[better], weights[better])
            reached -= 1
        counts[worse] -= weights[worse] * count_below(sums, last - grades[worse])
    return total


@kernel(allocates=False)
def _value(k, D, unit, mode):
    """Violation of k swaps; without rescaling there has to be one."""
    if mode.kind == BEST_NON_GOLD:
        return 1.0 - D * unit if k > 0 else -np.inf
    return violation(k * unit, -D * unit, mode)


@kernel(allocates=False)
def _pays(k, D, d, unit, mode):
    """Whether one more swap, with the difference d, does not lower the violation."""
    return _value(k + 1, D + d, unit, mode) >= _value(k, D, unit, mode)


@kernel(allocates=False)
def _swap_some(scores, order, grades, n_grades, low, high, n_ties, tree, counts, more):
    """Swap the pairs with d < low, and so many of those with low <= d < high."""
    m = len(order)
    _count_worse(scores, order, grades, n_grades, low, tree, counts)
    _count_worse(scores, order, grades, n_grades, high, tree, more)
    left, stop = n_ties, 0
    while stop < m and more[order[stop]] - counts[order[stop]] <= left:
        left -= np.int64(more[order[stop]] - counts[order[stop]])
        counts[order[stop]] = more[order[stop]]
        stop += 1
    # Documents before `stop` have all their ties swapped, the one there `left` of them.
    _subtract_better(scores, order, 0, stop, grades, n_grades, high, tree, counts)
    _subtract_better(scores, order, stop, m, grades, n_grades, low, tree, counts)
    if stop < m:
        better = order[stop]
        counts[better] += left
        for worse in order:
            tied = not _is_below(scores[better], scores[worse], low)
            tied = tied and _is_below(scores[better], scores[worse], high)
            if left > 0 and tied and grades[worse] < grades[better]:
                counts[worse] -= 1.0
                left -= 1


@kernel(allocates=False)
def _swap_best(scores, order, grades, n_grades, unit, mode, tree, counts, more, edge, bits):
    """Swap what has the largest violation, by bisection; returns the number of swaps.

    ``bits`` are those of the number ``edge``: of numbers >= 0 they are in the same order.
    """
    low, high = 0.0, scores[order[0]] - scores[order[-1]] + 1.0
    k_low, D_low = _swap_below(scores, order, grades, n_grades, low, tree, counts)
    k_high, _ = _swap_below(scores, order, grades, n_grades, high, tree, counts)
    edge[0] = low
    bits_low = bits[0]
    edge[0] = high
    bits_high = bits[0]
    while k_low < k_high and bits_high - bits_low > 1:
        bits[0] = bits_low + (bits_high - bits_low) // 2
        k, D = _swap_below(scores, order, grades, n_grades, edge[0], tree, counts)
        if _pays(k, D, edge[0], unit, mode):
            bits_low, low, k_low, D_low = bits[0], edge[0], k, D
        else:
            bits_high, high, k_high = bits[0], edge[0], k
    few, many = np.int64(0), k_high - k_low  # all that are left between have d = low
    while few < many:
        half = (few + many) // 2
        if _pays(k_low + half, D_low + half * low, low, unit, mode):
            few = half + 1
        else:
            many = half
    if _value(k_low + few, D_low + few * low, unit, mode) <= 0.0:
        counts[:] = 0.0
        return np.int64(0)
    _swap_some(scores, order, grades, n_grades, low, high, few, tree, counts, more)
    return k_low + few


@kernel(allocates=False)
def find_swaps(queries, examples, mode, ranked, more, edge, bits, losses):
    """Counts and losses of the most violated set of swaps of each listed query.

    ``more`` is scratch for a count of each document of a query, and one more with weights; see
    `_swap_best` for the others.
    """
    for q in range(len(examples)):
        first, unit = queries.offsets[examples[q]], queries.units[examples[q]]
        start = ranked.starts[q]
        m, n_grades = ranked.starts[q + 1] - start, queries.n_grades[examples[q]]
        scores, order = ranked.scores[start : start + m], ranked.order[start : start + m]
        counts, grades = ranked.counts[start : start + m], queries.grades[first : first + m]
        n_swaps = 0.0
        if unit == 0.0:
            counts[:] = 0.0
        elif len(queries.weights) > 0:  # with margin rescaling only
            weights = queries.weights[first : first + m]
            n_swaps = _swap_weighted(scores, order, grades, n_grades, weights, more, counts)
        elif mode.kind == ADDITIVE:
            n_swaps, _ = _swap_below(scores, order, grades, n_grades, 1.0, ranked.tree, counts)
        else:
            n_swaps = _swap_best(
                scores, order, grades, n_grades, unit, mode, ranked.tree, counts, more, edge, bits
            )
        losses[q] = n_swaps * unit
