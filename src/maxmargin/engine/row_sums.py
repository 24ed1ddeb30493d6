"""Passes over the rows of a sample: their scores, and weighted sums of them."""

from __future__ import annotations

import numpy as np

from .._jit import kernel

# Unsigned indices spare each access the test for a negative one.


@kernel(allocates=False)
def score_rows(rows, w, scores):
    """scores[i] = <w, x_i>."""
    dense, indices, values = rows.dense, rows.indices, rows.values
    constant = rows.bias * w[rows.n_columns] if rows.bias != 0.0 else 0.0
    for i in range(len(scores)):
        total = constant
        if dense.shape[0] > 0:
            for f in range(dense.shape[1]):
                total += dense[i, f] * w[f]
        else:
            for e in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
                total += values[e] * w[np.uint64(indices[e])]
        scores[i] = total


@kernel(allocates=False)
def add_rows(rows, steps, factor, total):
    """Add factor * sum_i steps[i] x_i to ``total``."""
    dense, indices, values = rows.dense, rows.indices, rows.values
    constant = 0.0
    for i in range(len(steps)):
        step = factor * steps[i]
        if step == 0.0:
            continue
        constant += step
        if dense.shape[0] > 0:
            for f in range(dense.shape[1]):
                total[f] += step * dense[i, f]
        else:
            for e in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
                total[np.uint64(indices[e])] += step * values[e]
    if rows.bias != 0.0:
        total[rows.n_columns] += constant * rows.bias
