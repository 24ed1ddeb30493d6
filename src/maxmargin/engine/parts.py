"""Parts: features that always come together.

The store of planes counts in parts. Mostly a part is a single weight. But where outputs are made of
pieces that each bring a row of input features - a token with its label in a chain - a part is that
whole row under that label: planes get shorter by the number of features in a row, and the row is
read from the data instead of being copied into every plane.

Parts are numbered: first ``row * n_labels + label`` for all rows, then the single weights.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._jit import kernel
from ..plane_rows import Planes
from ..types import Floats, Ints, Ints32
from .rows import Rows

__all__ = [
    "Parts",
    "add_at_parts",
    "clear_parts",
    "gather_parts",
    "row_products",
    "rows_under_labels",
    "scatter_parts",
    "single_weights",
    "write_part",
]


class Parts(NamedTuple):
    """How parts map to weights; rows are CSR, their weights ``w[f * n_labels + label]``."""

    indptr: Ints
    indices: Ints32
    values: NDArray[Any]
    bias: float
    bias_column: int
    n_labels: int
    n_row_parts: int
    first_single: int
    n_parts: int
    #: Whether all values are 1, so that they need not be read.
    unit: bool


def single_weights(n_features: int) -> Parts:
    """Every weight is a part of its own."""
    return Parts(
        np.zeros(1, np.int64),
        np.empty(0, np.int32),
        np.empty(0),
        0.0,
        0,
        1,
        0,
        0,
        n_features,
        False,
    )


def rows_under_labels(rows: Rows, n_labels: int, n_weights: int) -> Parts:
    """Each (sparse) row under each label is a part; the weights behind those are single."""
    n_row_parts = (len(rows.indptr) - 1) * n_labels
    first_single = rows.n_inputs * n_labels
    return Parts(
        rows.indptr,
        rows.indices,
        rows.values,
        rows.bias,
        rows.n_columns,
        n_labels,
        n_row_parts,
        first_single,
        n_row_parts + n_weights - first_single,
        _are_ones(rows.values),
    )


def _are_ones(values: NDArray[Any]) -> bool:
    """Whether all values are 1, without a copy of them."""
    at_a_time = 2**20
    starts = range(0, len(values), at_a_time)
    return all(bool((values[a : a + at_a_time] == 1.0).all()) for a in starts)


def mean_part_size(parts: Parts) -> float:
    """Weights behind a part, on average."""
    if parts.n_row_parts == 0:
        return 1.0
    return float(parts.indptr[-1]) / max(len(parts.indptr) - 1, 1)


# The loops below are the hottest of all. They take many parts a call, for a call costs more than a
# part; and unsigned indices spare each access the test for a negative one.


@kernel(inline=True)
def gather_parts(parts, chosen, start, end, w, out):
    """out[k] = the sum of w over the features of part chosen[k], times their values."""
    indptr, indices, values = parts.indptr, parts.indices, parts.values
    K, n_row_parts = np.uint64(parts.n_labels), np.uint64(parts.n_row_parts)
    for k in range(start, end):
        part = np.uint64(chosen[k])
        if part >= n_row_parts:
            out[k] = w[np.uint64(parts.first_single) + part - n_row_parts]
            continue
        row = part // K
        label = part - row * K
        total = 0.0
        first, last = np.uint64(indptr[row]), np.uint64(indptr[row + np.uint64(1)])
        if parts.unit:
            for e in range(first, last):
                total += w[np.uint64(indices[e]) * K + label]
        else:
            for e in range(first, last):
                total += values[e] * w[np.uint64(indices[e]) * K + label]
        if parts.bias != 0.0:
            total += parts.bias * w[np.uint64(parts.bias_column) * K + label]
        out[k] = total


@kernel(inline=True)
def scatter_parts(parts, chosen, n, steps, w):
    """Add steps[k] times part chosen[k] to w, for all k < n."""
    indptr, indices, values = parts.indptr, parts.indices, parts.values
    K, n_row_parts = np.uint64(parts.n_labels), np.uint64(parts.n_row_parts)
    for k in range(n):
        step = steps[k]
        if step == 0.0:
            continue
        part = np.uint64(chosen[k])
        if part >= n_row_parts:
            w[np.uint64(parts.first_single) + part - n_row_parts] += step
            continue
        row = part // K
        label = part - row * K
        first, last = np.uint64(indptr[row]), np.uint64(indptr[row + np.uint64(1)])
        if parts.unit:
            for e in range(first, last):
                w[np.uint64(indices[e]) * K + label] += step
        else:
            for e in range(first, last):
                w[np.uint64(indices[e]) * K + label] += step * values[e]
        if parts.bias != 0.0:
            w[np.uint64(parts.bias_column) * K + label] += step * parts.bias


@kernel(inline=True)
def clear_parts(parts, chosen, n, w):
    """Set w to zero where the parts chosen[:n] have features."""
    indptr, indices = parts.indptr, parts.indices
    K, n_row_parts = np.uint64(parts.n_labels), np.uint64(parts.n_row_parts)
    for k in range(n):
        part = np.uint64(chosen[k])
        if part >= n_row_parts:
            w[np.uint64(parts.first_single) + part - n_row_parts] = 0.0
            continue
        row = part // K
        label = part - row * K
        for e in range(np.uint64(indptr[row]), np.uint64(indptr[row + np.uint64(1)])):
            w[np.uint64(indices[e]) * K + label] = 0.0
        if parts.bias != 0.0:
            w[np.uint64(parts.bias_column) * K + label] = 0.0


@kernel(inline=True)
def add_at_parts(parts, chosen, n, first, second, out):
    """Set out to first + second where the parts chosen[:n] have features."""
    indptr, indices = parts.indptr, parts.indices
    K, n_row_parts = np.uint64(parts.n_labels), np.uint64(parts.n_row_parts)
    for k in range(n):
        part = np.uint64(chosen[k])
        if part >= n_row_parts:
            f = np.uint64(parts.first_single) + part - n_row_parts
            out[f] = first[f] + second[f]
            continue
        row = part // K
        label = part - row * K
        for e in range(np.uint64(indptr[row]), np.uint64(indptr[row + np.uint64(1)])):
            f = np.uint64(indices[e]) * K + label
            out[f] = first[f] + second[f]
        if parts.bias != 0.0:
            f = np.uint64(parts.bias_column) * K + label
            out[f] = first[f] + second[f]


@kernel(allocates=False)
def write_part(rows, i, n_labels, label, value, as_parts, out, filled):
    """Append ``value`` times the part of row i under a label, as that or by its features.

    Rows are CSR. Returns the new position.
    """
    if as_parts:
        out.indices[filled] = i * n_labels + label
        out.values[filled] = value
        return filled + 1
    for e in range(rows.indptr[i], rows.indptr[i + 1]):
        out.indices[filled] = rows.indices[e] * n_labels + label
        out.values[filled] = value * rows.values[e]
        filled += 1
    if rows.bias != 0.0:
        out.indices[filled] = rows.n_columns * n_labels + label
        out.values[filled] = value * rows.bias
        filled += 1
    return filled


def row_products(planes: Planes, parts: Parts, w: Floats) -> Floats:
    """Products of rows, which are in parts, with w."""
    found = np.empty(len(planes.losses))
    _row_products(planes, parts, w, np.empty(len(planes.indices)), found)
    return found


@kernel
def _row_products(planes, parts, w, of_parts, found):
    """Row by row."""
    gather_parts(parts, planes.indices, 0, len(planes.indices), w, of_parts)
    for r in range(len(found)):
        product = 0.0
        for e in range(planes.indptr[r], planes.indptr[r + 1]):
            product += planes.values[e] * of_parts[e]
        found[r] = product
