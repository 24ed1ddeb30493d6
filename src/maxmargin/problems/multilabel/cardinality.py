"""The most violated set of independent labels, and that of a few labels with edges of any kind.

Problem solved, for one example with the labels g (0 or 1): the set y that maximises its violation,
which is a function of how many labels of g it misses, how many it adds, and the gain

    sum over labels of (y_l - g_l) s_l  +  sum over edges (a, b) of (y_a y_b - g_a g_b) v_ab.

Without edges the best set for given numbers flips the labels of largest gain among those that are
on, and among those that are off: O(L log L + on * off). With edges all sets are listed.
"""

from __future__ import annotations

import numpy as np

from ...jit.decorator import kernel
from ...search.modes import SearchMode
from ...utils.types import Bools, Floats
from .losses import value_of_counts

__all__ = ["find_among_all", "find_independent"]


def find_independent(scores: Floats, gold: Bools, loss: int, mode: SearchMode) -> Bools:
    """Labels without edges: the most violated set in each row."""
    gains = np.where(gold, -scores, scores)
    order = np.argsort(-gains, axis=1, kind="stable")
    found = gold.copy()
    _flip_by_counts(gains, order, gold, loss, mode, np.empty((2, scores.shape[1] + 1)), found)
    return found


def find_among_all(
    scores: Floats, pairs: Floats, gold: Bools, loss: int, mode: SearchMode
) -> Bools:
    """Few labels: the most violated set in each row; ``pairs[b, a]`` weighs labels a < b."""
    n_sets = 1 << scores.shape[1]
    n_on = np.zeros(n_sets, np.int64)
    for bit in range(scores.shape[1]):
        n_on[1 << bit : 2 << bit] = n_on[: 1 << bit] + 1
    found = gold.copy()
    _try_all(scores, pairs, gold, loss, mode, n_on, np.empty((2, n_sets)), found)
    return found


@kernel(allocates=False)
def _flip_by_counts(gains, order, gold, loss, mode, sums, found):
    """See `find_independent`; ``order`` has labels by falling gain of a flip, ``sums`` is work."""
    L = gains.shape[1]
    for r in range(len(gains)):
        n_on, n_off = 0, 0
        sums[0, 0] = sums[1, 0] = 0.0
        for place in range(L):
            label = order[r, place]
            if gold[r, label]:
                n_on += 1
                sums[0, n_on] = sums[0, n_on - 1] + gains[r, label]
            else:
                n_off += 1
                sums[1, n_off] = sums[1, n_off - 1] + gains[r, label]
        best, missed, added = 0.0, 0, 0
        for a in range(n_on + 1):
            for b in range(n_off + 1):
                if a + b > 0:
                    gain = sums[0, a] + sums[1, b]
                    value = value_of_counts(loss, mode, n_on, a, b, gain)
                    if value > best:
                        best, missed, added = value, a, b
        for place in range(L):
            label = order[r, place]
            if gold[r, label] and missed > 0:
                missed -= 1
                found[r, label] = False
            elif not gold[r, label] and added > 0:
                added -= 1
                found[r, label] = True


@kernel(allocates=False)
def _try_all(scores, pairs, gold, loss, mode, n_on, tables, found):
    """See `find_among_all`: bit l of a set's number is label l; ``n_on`` counts its bits.

    The sets that have l as their last label are those of the labels before it, with the score of l
    and its pairs with them added: tables[0] has the scores, tables[1] these pairs, one l at a time.
    """
    L = scores.shape[1]
    value_of, with_last = tables[0], tables[1]
    for r in range(len(scores)):
        truth = 0
        value_of[0] = 0.0
        for last in range(L):
            first = 1 << last
            with_last[0] = scores[r, last]
            for label in range(last):
                half = 1 << label
                for y in range(half):
                    with_last[half + y] = with_last[y] + pairs[last, label]
            for y in range(first):
                value_of[first + y] = value_of[y] + with_last[y]
            if gold[r, last]:
                truth += first
        best, chosen = 0.0, truth
        for y in range(1 << L):
            if y != truth:
                right = n_on[y & truth]
                missed, added = n_on[truth] - right, n_on[y] - right
                gain = value_of[y] - value_of[truth]
                value = value_of_counts(loss, mode, n_on[truth], missed, added, gain)
                if value > best:
                    best, chosen = value, y
        for label in range(L):
            found[r, label] = (chosen >> label) & 1 == 1
