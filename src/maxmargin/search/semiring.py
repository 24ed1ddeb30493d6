"""Sums of scores in two senses, for dynamic programmes that are run in either, and ties."""

from __future__ import annotations

import numpy as np

from ..jit.decorator import kernel

__all__ = ["add_up", "argmax", "plus"]

NEGLIGIBLE = -40.0  # logarithm of what is lost by rounding beside 1


@kernel(inline=True)
def plus(a, b, soft):
    """log(exp a + exp b) if ``soft``, else max(a, b); -inf is the score of what cannot be.

    With the maximum a search finds scores of best outputs, with the other sum logarithms of sums
    over all outputs. It cannot overflow, for the larger score is taken out of the sum.
    """
    if a < b:
        a, b = b, a
    if not soft or a == -np.inf or b - a < NEGLIGIBLE:
        return a
    return a + np.log1p(np.exp(b - a))


@kernel(allocates=False)
def add_up(scores, others, n, soft):
    """The sum of scores[j] + others[j] over n values of j, in the sense of `plus`."""
    best = -np.inf
    for j in range(n):
        best = max(best, scores[j] + others[j])
    if not soft or best == -np.inf:
        return best
    total = 0.0
    for j in range(n):
        total += np.exp(scores[j] + others[j] - best)
    return best + np.log(total)


@kernel(allocates=False)
def argmax(values, n):
    """Position of the first largest of n values."""
    best = 0
    for k in range(1, n):
        if values[k] > values[best]:
            best = k
    return best
