"""The most violated ranking for the loss 1 - average precision, of queries and of whole samples.

Problem solved (Yue, Finley, Radlinski & Joachims 2007, sec. 4.3): P positive and N negative rows,
each kind in the order of its scores, are ranked, with the largest sum of loss and gain. The j-th
best negative row is placed below ``i`` positive ones, which costs precision at those that are then
below it. The sum falls apart into one function of i for each j,

    - (H(i + j - 1) + j / (i + j)) / P + (sums(i) - i s_j) / (P N),    H the harmonic numbers,

with the sums of the scores of the i best positive rows. Its maximiser never falls with j. So that
of a row in the middle halves the choice of all others: O((P + N) log N) in place of P N.
"""

from __future__ import annotations

import numpy as np

from ..jit.decorator import kernel
from ..utils.types import Floats

__all__ = ["harmonic_numbers", "place_negatives", "write_swaps"]


def harmonic_numbers(n: int) -> Floats:
    """H(0) .. H(n)."""
    numbers: Floats = np.zeros(n + 1)
    np.cumsum(1.0 / np.arange(1.0, n + 1.0), out=numbers[1:])
    return numbers


@kernel(allocates=False)
def place_negatives(scores, positive, negative, harmonic, sums, places):
    """Place each negative row where it is best; returns the loss of that ranking.

    In: rows of either kind from the highest score to the lowest, `harmonic_numbers` up to P + N,
    sums of the scores of the best positive rows, from none to all. Out: ``places[j]`` positive rows
    are above the j-th negative one, for j = 1 .. N; there is room for N + 2 numbers.
    """
    P, N = len(positive), len(negative)
    places[0], places[N + 1] = 0, P
    step = 1
    while 2 * step <= N:
        step *= 2
    while step > 0:
        for j in range(step, N + 1, 2 * step):
            score = scores[negative[j - 1]]
            low, high = places[j - step], places[min(j + step, N + 1)]
            best, value = low, -np.inf
            for i in range(low, high + 1):
                here = (sums[i] - i * score) / N - harmonic[i + j - 1] - j / (i + j)
                if here > value:
                    best, value = i, here
            places[j] = best
        step //= 2
    total, above = 0.0, 0
    for k in range(1, P + 1):
        while above < N and places[above + 1] < k:
            above += 1
        total += above / (k + above)
    return total / P


@kernel(allocates=False)
def write_swaps(positive, negative, places, unit, out):
    """What rows count in the difference of the features to those of the truth.

    For each row the number of swapped pairs it is in, of a positive row that is below a negative
    one, over ``unit``: with a plus for positive rows, a minus for others.
    """
    P, N = len(positive), len(negative)
    above = 0
    for k in range(1, P + 1):
        while above < N and places[above + 1] < k:
            above += 1
        out[positive[k - 1]] = above / unit
    for j in range(1, N + 1):
        out[negative[j - 1]] = -(P - places[j]) / unit
