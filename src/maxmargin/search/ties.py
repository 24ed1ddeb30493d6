"""The one rule for ties: the first of the largest."""

from __future__ import annotations

from ..jit.decorator import kernel


@kernel(allocates=False)
def argmax(values, n):
    """Position of the first largest of n values."""
    best = 0
    for k in range(1, n):
        if values[k] > values[best]:
            best = k
    return best
