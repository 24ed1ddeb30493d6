"""Rows of a data matrix, dense or sparse, behind the three operations that kernels need.

A `Rows` tuple holds either CSR arrays or a dense matrix; the other is empty. Kernels are written
once against these functions, and the branch costs nothing next to the work of a row. Weights are
feature-major: the weights of feature f for the K outputs are ``w[f * K : (f + 1) * K]``. A bias is
a constant feature behind the matrix's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..jit.decorator import kernel
from ..utils.sparse_format import check_sparse
from ..utils.types import Floats, Ints, Ints32
from ..utils.validation import LARGEST
from .parallel.blas_threads import single_blas_thread

__all__ = [
    "Rows",
    "add_row",
    "add_scores",
    "add_sparse_scores",
    "are_usable",
    "check_codes",
    "is_mapped",
    "make_rows",
    "row_scores",
    "row_square_norms",
    "rows_side_by_side",
    "write_pair",
    "write_row",
]

# Below this share of non-zeros a dense matrix is faster as CSR (measured on 784 features x 10).
SPARSE_BELOW = 0.35

ENTRIES_AT_A_TIME = 1 << 16  # of dense matrices that are brought into another layout or type

FEW = 16  # labels: fewer than the compiler unrolls a loop over them to


class Rows(NamedTuple):
    """A matrix as CSR or ``dense``, with a constant feature ``bias`` (1.0 or 0.0: none) behind."""

    indptr: Ints
    indices: Ints32
    values: NDArray[Any]
    dense: NDArray[Any]
    bias: float
    n_columns: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return max(self.dense.shape[0], len(self.indptr) - 1)

    @property
    def n_inputs(self) -> int:
        """Number of features per row, the bias included."""
        return self.n_columns + int(self.bias != 0.0)


def make_rows(
    X: Any,
    *,
    fit_intercept: bool = False,
    sparse: bool = False,
    check_indices: bool = True,
    dtype: Any = None,
) -> Rows:
    """Wrap a CSR or dense matrix, the former without copying it, the latter unless ``sparse``.

    Values get the type ``dtype``, or else stay in single precision if they are.
    """
    bias = 1.0 if fit_intercept else 0.0
    if not sp.issparse(X):
        X = np.asarray(X)
        sample = X[:: max(1, len(X) // 1000)]
        dense = np.count_nonzero(sample) >= SPARSE_BELOW * sample.size
        if sparse or not (X.size == 0 or dense):
            return rows_side_by_side([X], bias, dtype or _float_type(X.dtype))
        X = np.ascontiguousarray(X, dtype or _float_type(X.dtype))
        no_rows = np.zeros(1, np.int64)
        return Rows(no_rows, np.empty(0, np.int32), X[:0, :0].ravel(), X, bias, X.shape[1])
    check_sparse(X, "X", check_indices=check_indices)
    X = X.tocsr()
    if not X.has_canonical_format:  # kernels take every entry for a feature of its own
        X = X.copy()
        X.sum_duplicates()
    values = X.data.astype(dtype or _float_type(X.data.dtype), copy=False)
    return Rows(
        X.indptr.astype(np.int64, copy=False),
        X.indices.astype(np.int32, copy=False),
        values,
        np.empty((0, 0), values.dtype),
        bias,
        X.shape[1],
    )


def is_mapped(array: NDArray[Any]) -> bool:
    """Whether an array is in a file that is mapped into memory."""
    base: Any = array
    while base is not None:
        if isinstance(base, np.memmap):
            return True
        base = getattr(base, "base", None)
    return False


def are_usable(rows: Rows, first: int, end: int) -> bool:
    """Whether the rows ``first`` to ``end - 1`` have numbers and columns to compute with.

    That is what `first_unusable` and `check_sparse` look for, found in one go without the GIL.
    """
    if len(rows.indptr) == 1:
        return bool(_are_usable(rows.dense[first:end].ravel(), rows.indices, 0))
    own = slice(int(rows.indptr[first]), int(rows.indptr[end]))
    return bool(_are_usable(rows.values[own], rows.indices[own], rows.n_columns))


@kernel(allocates=False)
def _are_usable(values, indices, n_columns):
    """Whether all values are numbers, none of them too large, and all indices those of columns."""
    wrong = 0
    for e in range(np.uint64(len(values))):
        wrong += not abs(values[e]) <= LARGEST
    for e in range(np.uint64(len(indices))):
        wrong += indices[e] < 0 or indices[e] >= n_columns
    return wrong == 0


def check_codes(codes: NDArray[Any], n_codes: int, name: str) -> None:
    """Raise ValueError unless all codes are in 0..n_codes - 1."""
    bad = np.flatnonzero((codes < 0) | (codes >= n_codes))
    if len(bad):
        raise ValueError(f"{name}[{bad[0]}] is {codes[bad[0]]}; labels must be in 0..{n_codes - 1}")


def _float_type(dtype: np.dtype[Any]) -> Any:
    """Single precision stays; all else becomes double."""
    return np.float32 if dtype == np.float32 else np.float64


def rows_side_by_side(matrices: Sequence[NDArray[Any]], bias: float, dtype: Any) -> Rows:
    """CSR rows of dense matrices; several times as fast as SciPy's conversion.

    Some rows at a time are brought into the layout and type that kernels take, so that there is no
    other copy of the matrices. One that is in those already, and has no zeros, is not copied.
    """
    n, n_columns = len(matrices[0]), sum(matrix.shape[1] for matrix in matrices)
    X = matrices[0]
    is_ready = len(matrices) == 1 and X.dtype == dtype and X.flags.c_contiguous
    step = max(n, 1) if is_ready else max(ENTRIES_AT_A_TIME // max(n_columns, 1), 1)
    blocks = [[matrix[k : k + step] for matrix in matrices] for k in range(0, n, step)]
    indptr = np.zeros(n + 1, np.int64)
    if is_ready:
        _count_non_zeros(X, indptr)
    else:
        counts = [
            sum(np.count_nonzero(feature_block, axis=1) for feature_block in block)
            for block in blocks
        ]
        np.cumsum(np.concatenate([[0], *counts]), out=indptr)
    if is_ready and indptr[-1] == X.size and X.flags.writeable:  # others have kernels of their own
        indices = np.tile(np.arange(n_columns, dtype=np.int32), n)
        return Rows(indptr, indices, X.reshape(-1), np.empty((0, 0), dtype), bias, n_columns)
    indices, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], dtype)
    for k, block in enumerate(blocks):
        feature_block = X if is_ready else np.empty((len(block[0]), n_columns), dtype)
        if not is_ready:
            np.concatenate(block, axis=1, out=feature_block, casting="unsafe")
        _copy_non_zeros(
            feature_block, indptr[k * step : k * step + len(feature_block) + 1], indices, values
        )
    return Rows(indptr, indices, values, np.empty((0, 0), dtype), bias, n_columns)


@kernel(allocates=False)
def _count_non_zeros(X, indptr):
    """Fill ``indptr`` of the CSR form."""
    for i in range(len(X)):
        count = 0
        for f in range(X.shape[1]):
            count += X[i, f] != 0.0
        indptr[i + 1] = indptr[i] + count


@kernel(allocates=False)
def _copy_non_zeros(X, indptr, indices, values):
    """Fill CSR arrays whose ``indptr`` is known; without branches, which would be mispredicted."""
    for i in range(len(X)):
        filled = indptr[i]
        end = indptr[i + 1]
        for f in range(X.shape[1]):
            if filled == end:
                break
            indices[filled] = f
            values[filled] = X[i, f]
            filled += X[i, f] != 0.0


@kernel(allocates=False)
def add_scores(rows, row, w, K, scores):
    """scores[k] += sum_f x[row, f] w[f * K + k], the bias feature included.

    Two features a round: halves the traffic on ``scores``, which is what limits this loop.
    """
    if rows.dense.shape[0] > 0:
        x = rows.dense[row]
        f = 0
        while f + 1 < rows.n_columns:
            x0, x1 = x[f], x[f + 1]
            w0, w1 = w[f * K :], w[(f + 1) * K :]
            for k in range(K):
                scores[k] += x0 * w0[k] + x1 * w1[k]
            f += 2
        if f < rows.n_columns:
            _add_feature(x[f], w[f * K :], K, scores)
    elif K < FEW:
        _add_few_scores(rows, row, w, K, scores)
    else:
        add_sparse_scores(rows, row, w, K, scores)
    if rows.bias != 0.0:
        _add_feature(rows.bias, w[np.int64(rows.n_columns) * K :], K, scores)


@kernel(allocates=False)
def add_sparse_scores(rows, row, w, K, scores):
    """`add_scores` of a sparse row, without the bias."""
    e, end = rows.indptr[row], rows.indptr[row + 1]
    while e + 1 < end:
        x0, x1 = rows.values[e], rows.values[e + 1]
        w0 = w[np.int64(rows.indices[e]) * K :]
        w1 = w[np.int64(rows.indices[e + 1]) * K :]
        for k in range(K):
            scores[k] += x0 * w0[k] + x1 * w1[k]
        e += 2
    if e < end:
        _add_feature(rows.values[e], w[np.int64(rows.indices[e]) * K :], K, scores)


@kernel(allocates=False)
def _add_few_scores(rows, row, w, K, scores):
    """`add_scores` of a sparse row for few labels, eight at a time, whose sums stay in registers.

    A loop over fewer labels than the compiler unrolls would run one by one.
    """
    indices, values = rows.indices, rows.values
    first, last = np.uint64(rows.indptr[row]), np.uint64(rows.indptr[row + 1])
    stride, k = np.uint64(K), np.uint64(0)
    while k + np.uint64(8) <= stride:
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
        for e in range(first, last):
            x = values[e]
            at = np.uint64(indices[e]) * stride + k
            s0 += x * w[at]
            s1 += x * w[at + np.uint64(1)]
            s2 += x * w[at + np.uint64(2)]
            s3 += x * w[at + np.uint64(3)]
            s4 += x * w[at + np.uint64(4)]
            s5 += x * w[at + np.uint64(5)]
            s6 += x * w[at + np.uint64(6)]
            s7 += x * w[at + np.uint64(7)]
        scores[k] += s0
        scores[k + np.uint64(1)] += s1
        scores[k + np.uint64(2)] += s2
        scores[k + np.uint64(3)] += s3
        scores[k + np.uint64(4)] += s4
        scores[k + np.uint64(5)] += s5
        scores[k + np.uint64(6)] += s6
        scores[k + np.uint64(7)] += s7
        k += np.uint64(8)
    while k + np.uint64(2) <= stride:
        s0 = s1 = 0.0
        for e in range(first, last):
            at = np.uint64(indices[e]) * stride + k
            s0 += values[e] * w[at]
            s1 += values[e] * w[at + np.uint64(1)]
        scores[k] += s0
        scores[k + np.uint64(1)] += s1
        k += np.uint64(2)
    if k < stride:
        for e in range(first, last):
            scores[k] += values[e] * w[np.uint64(indices[e]) * stride + k]


@kernel(allocates=False)
def _add_few_steps(rows, row, steps, w, K):
    """`add_row` of a sparse row for few labels, eight at a time."""
    indices, values = rows.indices, rows.values
    first, last = np.uint64(rows.indptr[row]), np.uint64(rows.indptr[row + 1])
    stride, k = np.uint64(K), np.uint64(0)
    while k + np.uint64(8) <= stride:
        s0, s1, s2, s3 = steps[k], steps[k + 1], steps[k + 2], steps[k + 3]
        s4, s5, s6, s7 = steps[k + 4], steps[k + 5], steps[k + 6], steps[k + 7]
        for e in range(first, last):
            x = values[e]
            at = np.uint64(indices[e]) * stride + k
            w[at] += x * s0
            w[at + np.uint64(1)] += x * s1
            w[at + np.uint64(2)] += x * s2
            w[at + np.uint64(3)] += x * s3
            w[at + np.uint64(4)] += x * s4
            w[at + np.uint64(5)] += x * s5
            w[at + np.uint64(6)] += x * s6
            w[at + np.uint64(7)] += x * s7
        k += np.uint64(8)
    while k < stride:
        step = steps[k]
        if step != 0.0:
            for e in range(first, last):
                w[np.uint64(indices[e]) * stride + k] += values[e] * step
        k += np.uint64(1)


@kernel(allocates=False)
def _add_feature(x, weights, K, scores):
    """scores[k] += x weights[k]."""
    for k in range(K):
        scores[k] += x * weights[k]


@kernel(allocates=False)
def add_row(rows, row, steps, w, K):
    """w[f * K + k] += steps[k] x[row, f], the bias feature included."""
    if rows.dense.shape[0] > 0:
        for f in range(rows.n_columns):
            x = rows.dense[row, f]
            base = f * K
            for k in range(K):
                w[base + k] += x * steps[k]
    elif K < FEW:
        _add_few_steps(rows, row, steps, w, K)
    else:
        for e in range(rows.indptr[row], rows.indptr[row + 1]):
            x = rows.values[e]
            base = np.int64(rows.indices[e]) * K
            for k in range(K):
                w[base + k] += x * steps[k]
    if rows.bias != 0.0:
        base = np.int64(rows.n_columns) * K
        for k in range(K):
            w[base + k] += rows.bias * steps[k]


@kernel(allocates=False)
def write_pair(out, filled, good, bad, value):
    """Append ``value`` at index good and its negative at index bad; returns the new position."""
    out.indices[filled] = good
    out.indices[filled + 1] = bad
    out.values[filled] = value
    out.values[filled + 1] = -value
    return filled + 2


@kernel(allocates=False)
def write_row(rows, row, K, good, bad, out, filled):
    """Append x[row] placed at output good minus x[row] placed at bad; returns the new position."""
    if rows.dense.shape[0] > 0:
        for f in range(rows.n_columns):
            filled = write_pair(out, filled, f * K + good, f * K + bad, rows.dense[row, f])
    else:
        for e in range(rows.indptr[row], rows.indptr[row + 1]):
            base = rows.indices[e] * K
            filled = write_pair(out, filled, base + good, base + bad, rows.values[e])
    if rows.bias != 0.0:
        base = rows.n_columns * K
        filled = write_pair(out, filled, base + good, base + bad, rows.bias)
    return filled


def row_scores(rows: Rows, weights: Floats) -> Floats:
    """Scores of all rows under all outputs, with the weights of a feature in each row."""
    inputs = rows.dense
    if not rows.dense.shape[0]:
        shape = (len(rows.indptr) - 1, rows.n_columns)
        inputs = sp.csr_matrix((rows.values, rows.indices, rows.indptr), shape=shape)
    with single_blas_thread():
        scores = np.asarray(inputs @ weights[: rows.n_columns])
    return scores + rows.bias * weights[-1] if rows.bias else scores


def row_square_norms(rows: Rows) -> Floats:
    """|x|^2 of every row, the bias included."""
    if rows.dense.shape[0]:
        norms = np.einsum("ij,ij->i", rows.dense, rows.dense, dtype=np.float64)
    else:
        norms = np.empty(rows.n_rows)
        _square_sums(rows.indptr, rows.values, norms)
    return norms + rows.bias**2


@kernel(allocates=False)
def _square_sums(indptr, values, norms):
    """Sum of the squares of each CSR row."""
    for i in range(len(norms)):
        square = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            square += np.float64(values[e]) * np.float64(values[e])
        norms[i] = square


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
