"""Identical examples are one example of larger weight, and examples of weight 0 are none.

The objective is the same either way. Merging makes that visible: training with integer weights and
training with repeated rows become the same computation, to the last bit, and repeated rows cost
nothing. Rows are found by an exact integer hash of their bits, and compared to be sure.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...utils.types import Bools, Floats, Hashes, Ints

__all__ = ["merge_examples"]


ROWS_AT_A_TIME = 256  # bounds the temporary arrays


def merge_examples(
    X: Any, y: Ints, sample_weight: Floats | None
) -> tuple[Any, Ints, Floats | None]:
    """Merge equal (row, class) pairs, adding up their weights, and drop weights of 0.

    Returns the data untouched if there is nothing to merge and no weight is given; otherwise
    examples come in an order that does not depend on the order given.
    """
    keys = _row_hashes(X) + _scramble(y.astype(np.uint64) + np.uint64(1))
    order = np.argsort(keys, kind="stable")
    if sample_weight is None and np.all(np.diff(keys[order]) != 0):
        return X, y, None
    weights = np.ones(len(y)) if sample_weight is None else sample_weight
    order = order[weights[order] != 0]
    first = np.ones(len(order), dtype=bool)
    first[1:] = np.diff(keys[order]) != 0
    again = np.flatnonzero(~first)
    different = _rows_differ(X, order[again], order[again - 1]) | (
        y[order[again]] != y[order[again - 1]]
    )
    first[again[different]] = True  # a collision of hashes
    chosen = order[first]
    totals = np.add.reduceat(weights[order], np.flatnonzero(first))
    return X[chosen], y[chosen], totals


def _scramble(values: Hashes) -> Hashes:
    """Spread numbers over all 64 bits (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _bits(values: NDArray[Any]) -> Hashes:
    """The bits of floats as numbers, with 0.0 for -0.0."""
    values = values + values.dtype.type(0)
    bits = values.view(np.uint64 if values.itemsize == 8 else np.uint32)
    return bits.astype(np.uint64, copy=False)


def _salts(columns: NDArray[Any]) -> Hashes:
    """What the values of columns are multiplied by."""
    return _scramble(columns.astype(np.uint64) + np.uint64(1)) | np.uint64(1)


def _row_hashes(X: Any) -> Hashes:
    """A hash of each row: sums of scrambled bits, wrapping around, the same in any storage."""
    n_rows, n_columns = X.shape
    if not sp.issparse(X):
        salts = _salts(np.arange(n_columns))
        hashes = np.empty(n_rows, dtype=np.uint64)
        for start in range(0, n_rows, ROWS_AT_A_TIME):
            stop = start + ROWS_AT_A_TIME
            hashes[start:stop] = _bits(X[start:stop]) @ salts
        return _scramble(hashes)
    running = np.zeros(len(X.data) + 1, dtype=np.uint64)
    np.cumsum(_bits(X.data) * _salts(X.indices), out=running[1:])  # of millions, few are used
    return _scramble(running[X.indptr[1:]] - running[X.indptr[:-1]])


def _rows_differ(X: Any, left: Ints, right: Ints) -> Bools:
    """Whether the listed pairs of rows differ anywhere."""
    if not sp.issparse(X):
        return np.array(
            [not np.array_equal(X[a], X[b]) for a, b in zip(left, right, strict=True)], dtype=bool
        )
    return np.asarray((X[left] != X[right]).sum(axis=1)).ravel() > 0
