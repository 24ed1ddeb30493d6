"""Feature blocks: features that always come together.

The store of planes counts in parts. Mostly a part is a single weight. But where outputs are made of
pieces that each bring a row of input features - a token with its label in a chain - a part is that
whole row under that label: planes get shorter by the number of features in a row, and the row is
read from the data instead of being copied into every plane.

Feature blocks are numbered: first ``row * n_labels + label`` for all rows, then the single weights.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.cutting_planes import Planes
from ..jit.decorator import kernel
from ..utils.types import Floats, Ints, Ints32
from .rows import Rows

__all__ = [
    "FeatureBlocks",
    "add_at_blocks",
    "clear_blocks",
    "gather_blocks",
    "row_products",
    "rows_under_labels",
    "scatter_blocks",
    "single_weights",
    "write_block",
]


class FeatureBlocks(NamedTuple):
    """How parts map to weights; rows are CSR, their weights ``w[f * n_labels + label]``."""

    indptr: Ints
    indices: Ints32
    values: NDArray[Any]
    bias: float
    bias_column: int
    n_labels: int
    n_row_blocks: int
    first_single: int
    n_feature_blocks: int
    #: Whether all values are 1, so that they need not be read.
    unit: bool


def single_weights(n_features: int) -> FeatureBlocks:
    """Every weight is a part of its own."""
    return FeatureBlocks(
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


def rows_under_labels(rows: Rows, n_labels: int, n_weights: int) -> FeatureBlocks:
    """Each (sparse) row under each label is a part; the weights behind those are single."""
    n_row_blocks = (len(rows.indptr) - 1) * n_labels
    first_single = rows.n_inputs * n_labels
    return FeatureBlocks(
        rows.indptr,
        rows.indices,
        rows.values,
        rows.bias,
        rows.n_columns,
        n_labels,
        n_row_blocks,
        first_single,
        n_row_blocks + n_weights - first_single,
        _are_ones(rows.values),
    )


def _are_ones(values: NDArray[Any]) -> bool:
    """Whether all values are 1, without a copy of them."""
    at_a_time = 2**20
    starts = range(0, len(values), at_a_time)
    return all(bool((values[a : a + at_a_time] == 1.0).all()) for a in starts)


def mean_block_size(feature_blocks: FeatureBlocks) -> float:
    """Weights behind a part, on average."""
    if feature_blocks.n_row_blocks == 0:
        return 1.0
    return float(feature_blocks.indptr[-1]) / max(len(feature_blocks.indptr) - 1, 1)


# The loops below are the hottest of all. They take many parts a call, for a call costs more than a
# part; and unsigned indices spare each access the test for a negative one.


@kernel(inline=True)
def gather_blocks(feature_blocks, chosen, start, end, w, out):
    """out[k] = the sum of w over the features of part chosen[k], times their values."""
    indptr, indices, values = feature_blocks.indptr, feature_blocks.indices, feature_blocks.values
    K, n_row_blocks = np.uint64(feature_blocks.n_labels), np.uint64(feature_blocks.n_row_blocks)
    for k in range(start, end):
        feature_block = np.uint64(chosen[k])
        if feature_block >= n_row_blocks:
            out[k] = w[np.uint64(feature_blocks.first_single) + feature_block - n_row_blocks]
            continue
        row = feature_block // K
        label = feature_block - row * K
        total = 0.0
        first, last = np.uint64(indptr[row]), np.uint64(indptr[row + np.uint64(1)])
        if feature_blocks.unit:
            for e in range(first, last):
                total += w[np.uint64(indices[e]) * K + label]
        else:
            for e in range(first, last):
                total += values[e] * w[np.uint64(indices[e]) * K + label]
        if feature_blocks.bias != 0.0:
            total += feature_blocks.bias * w[np.uint64(feature_blocks.bias_column) * K + label]
        out[k] = total


@kernel(inline=True)
def scatter_blocks(feature_blocks, chosen, n, steps, w):
    """Add steps[k] times part chosen[k] to w, for all k < n."""
    indptr, indices, values = feature_blocks.indptr, feature_blocks.indices, feature_blocks.values
    K, n_row_blocks = np.uint64(feature_blocks.n_labels), np.uint64(feature_blocks.n_row_blocks)
    for k in range(n):
        step = steps[k]
        if step == 0.0:
            continue
        feature_block = np.uint64(chosen[k])
        if feature_block >= n_row_blocks:
            w[np.uint64(feature_blocks.first_single) + feature_block - n_row_blocks] += step
            continue
        row = feature_block // K
        label = feature_block - row * K
        first, last = np.uint64(indptr[row]), np.uint64(indptr[row + np.uint64(1)])
        if feature_blocks.unit:
            for e in range(first, last):
                w[np.uint64(indices[e]) * K + label] += step
        else:
            for e in range(first, last):
                w[np.uint64(indices[e]) * K + label] += step * values[e]
        if feature_blocks.bias != 0.0:
            w[np.uint64(feature_blocks.bias_column) * K + label] += step * feature_blocks.bias


@kernel(inline=True)
def clear_blocks(feature_blocks, chosen, n, w):
    """Set w to zero where the parts chosen[:n] have features."""
    indptr, indices = feature_blocks.indptr, feature_blocks.indices
    K, n_row_blocks = np.uint64(feature_blocks.n_labels), np.uint64(feature_blocks.n_row_blocks)
    for k in range(n):
        feature_block = np.uint64(chosen[k])
        if feature_block >= n_row_blocks:
            w[np.uint64(feature_blocks.first_single) + feature_block - n_row_blocks] = 0.0
            continue
        row = feature_block // K
        label = feature_block - row * K
        for e in range(np.uint64(indptr[row]), np.uint64(indptr[row + np.uint64(1)])):
            w[np.uint64(indices[e]) * K + label] = 0.0
        if feature_blocks.bias != 0.0:
            w[np.uint64(feature_blocks.bias_column) * K + label] = 0.0


@kernel(inline=True)
def add_at_blocks(feature_blocks, chosen, n, first, second, out):
    """Set out to first + second where the parts chosen[:n] have features."""
    indptr, indices = feature_blocks.indptr, feature_blocks.indices
    K, n_row_blocks = np.uint64(feature_blocks.n_labels), np.uint64(feature_blocks.n_row_blocks)
    for k in range(n):
        feature_block = np.uint64(chosen[k])
        if feature_block >= n_row_blocks:
            f = np.uint64(feature_blocks.first_single) + feature_block - n_row_blocks
            out[f] = first[f] + second[f]
            continue
        row = feature_block // K
        label = feature_block - row * K
        for e in range(np.uint64(indptr[row]), np.uint64(indptr[row + np.uint64(1)])):
            f = np.uint64(indices[e]) * K + label
            out[f] = first[f] + second[f]
        if feature_blocks.bias != 0.0:
            f = np.uint64(feature_blocks.bias_column) * K + label
            out[f] = first[f] + second[f]


@kernel(allocates=False)
def write_block(rows, i, n_labels, label, value, as_blocks, out, filled):
    """Append ``value`` times the part of row i under a label, as that or by its features.

    Rows are CSR. Returns the new position.
    """
    if as_blocks:
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


def row_products(planes: Planes, feature_blocks: FeatureBlocks, w: Floats) -> Floats:
    """Products of rows, which are in parts, with w."""
    found = np.empty(len(planes.losses))
    _row_products(planes, feature_blocks, w, np.empty(len(planes.indices)), found)
    return found


@kernel
def _row_products(planes, feature_blocks, w, of_parts, found):
    """Row by row."""
    gather_blocks(feature_blocks, planes.indices, 0, len(planes.indices), w, of_parts)
    for r in range(len(found)):
        product = 0.0
        for e in range(planes.indptr[r], planes.indptr[r + 1]):
            product += planes.values[e] * of_parts[e]
        found[r] = product
