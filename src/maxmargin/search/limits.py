"""What problems refuse, in words, before memory or integers run out or a kernel reads elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..utils.sparse_format import check_sparse
from ..utils.types import Floats, Ints

__all__ = [
    "MOST_TABLE_BYTES",
    "as_examples",
    "as_numbers",
    "as_weights",
    "check_number_of_weights",
]

#: Tables of a search that are larger than this are refused.
MOST_TABLE_BYTES = 4 * 2**30
MOST_WEIGHTS = 2**31 - 1  # planes number them by 32 bits


def check_number_of_weights(n_weights: int, made_by: str = "") -> None:
    """Raise ValueError if there are too many; ``made_by`` says what they come from."""
    if n_weights > MOST_WEIGHTS:
        makes = f"{made_by} " if made_by else ""
        raise ValueError(f"{makes}{n_weights} weights; at most 2**31 - 1 are supported")


def as_weights(w: ArrayLike, size: int) -> Floats:
    """Weights as kernels need them, which do not look where an array ends; ValueError otherwise."""
    weights = np.asarray(w)
    if weights.shape != (size,) or weights.dtype.kind not in "fiub":
        raise ValueError(
            f"expected a vector of {size} weights, got {weights.dtype} of shape {weights.shape}"
        )
    if weights.dtype == np.float64 and weights.flags.c_contiguous:
        return weights  # numpy makes another view of an array that was pickled, at every call
    return np.ascontiguousarray(weights, dtype=np.float64)


def as_numbers(values: Any, where: str = "") -> Floats:
    """Any numbers as an array; ValueError, beginning with ``where``, for what is none."""
    check_sparse(values, f"{where}x")
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):  # words, rows that differ in length, 10**400
        raise ValueError(f"{where}expected an array of numbers, got {values!r:.60}") from None


def as_examples(indices: ArrayLike, n_examples: int) -> Ints:
    """Numbers of examples as kernels need them; ValueError for one that does not exist."""
    examples = np.ascontiguousarray(indices, dtype=np.int64)
    # As numbers without sign, negative ones are larger than all others.
    if examples.ndim != 1 or examples.view(np.uint64).max(initial=0) >= max(n_examples, 1):
        wrong = examples[(examples < 0) | (examples >= n_examples)]
        raise ValueError(
            f"there is no example {wrong[0]}; examples are numbered from 0 to {n_examples - 1}"
            if len(wrong)
            else f"expected a list of numbers of examples, got an array of shape {examples.shape}"
        )
    return examples
