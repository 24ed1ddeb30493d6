"""A full check of sparse matrices, before SciPy or a kernel reads beyond their arrays.

SciPy checks the arrays only when it makes a matrix. Its routines, like our kernels, trust them: a
matrix whose arrays were changed since crashes the process. Every entry that takes a sparse matrix
therefore calls `check_sparse` first.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["check_sparse"]


def check_sparse(X: Any, name: str, *, check_indices: bool = True) -> None:
    """Raise ValueError for a sparse matrix whose arrays do not fit together.

    Parameters
    ----------
    X : sparse matrix, or anything else
        In any of SciPy's formats. It is not changed. What is not sparse passes.
    name : str
        What the error calls it, such as "X" or "sequence 3".
    check_indices : bool, default=True
        Whether to look at each index of a CSR, CSC or BSR matrix; ``False`` where kernels do.

    Raises
    ------
    ValueError
        It says which array is wrong, where, and what was expected.
    """
    if not sp.issparse(X):
        return
    try:
        if X.format == "coo":
            _check_coordinates(X)
        elif X.format == "dia":
            _check_diagonals(X)
        elif X.format == "lil":
            _check_lists(X)
        elif X.format == "dok":
            _check_keys(X)
        else:
            _check_compressed(X, check_indices)
        if np.dtype(X.dtype).kind not in "biuf":
            raise ValueError(f"its values have the type {X.dtype}, expected real numbers")
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        kind = f"{X.format.upper()} {'array' if isinstance(X, sp.sparray) else 'matrix'}"
        raise ValueError(f"{name} is a damaged sparse {kind}: {error}") from None


def _check_compressed(X: Any, check_indices: bool) -> None:
    """CSR, CSC and BSR."""
    data, indices, indptr = X.data, X.indices, X.indptr
    shape = (1, *X.shape)[-2:]  # one axis is one row
    if X.format == "bsr":
        _check_array("data", data, 3)
        blocks = data.shape[1:]
        if 0 in blocks or shape[0] % blocks[0] or shape[1] % blocks[1]:
            raise ValueError(f"blocks of shape {blocks} do not make up the shape {shape}")
        shape = shape[0] // blocks[0], shape[1] // blocks[1]
    else:
        _check_array("data", data, 1)
    n, width = shape[::-1] if X.format == "csc" else shape
    _check_array("indices", indices, 1, "iu")
    _check_array("indptr", indptr, 1, "iu")
    if len(indices) != len(data):
        raise ValueError(f"it has {len(indices)} indices, but {len(data)} values")
    if len(indptr) != n + 1:
        raise ValueError(f"indptr has {len(indptr)} entries, expected {n + 1}")
    if indptr[0] != 0:
        raise ValueError(f"indptr[0] is {indptr[0]}, expected 0")
    falls = indptr[1:] < indptr[:-1]
    if falls.any():
        k = int(np.argmax(falls))
        raise ValueError(f"indptr falls from {indptr[k]} at {k} to {indptr[k + 1]} at {k + 1}")
    if indptr[-1] > len(data):
        k = int(np.argmax(indptr > len(data)))
        raise ValueError(f"indptr[{k}] is {indptr[k]}, but there are {len(data)} values")
    used = indices[: int(indptr[-1])]
    if check_indices and not _are_inside(used, width):
        k = int(np.argmax((used < 0) | (used >= width)))
        which = int(np.searchsorted(indptr, k, side="right")) - 1
        inside, along = ("column", "rows") if X.format == "csc" else ("row", "columns")
        blocks_of = "blocks of " if X.format == "bsr" else ""
        raise ValueError(
            f"{inside} {which} has the index {used[k]}, but there are {width} {blocks_of}{along}"
        )


def _check_coordinates(X: Any) -> None:
    _check_array("data", X.data, 1)
    for axis, (length, places) in enumerate(zip(X.shape, X.coords, strict=True)):
        _check_array(f"coords[{axis}]", places, 1, "iu")
        if len(places) != len(X.data):
            raise ValueError(
                f"coords[{axis}] has {len(places)} entries, but there are {len(X.data)} values"
            )
        if not _are_inside(places, length):
            k = int(np.argmax((places < 0) | (places >= length)))
            where = ("row", "column")[axis - len(X.shape)]
            raise ValueError(
                f"value {k} is in {where} {places[k]}, but there are {length} {where}s"
            )


def _check_diagonals(X: Any) -> None:
    _check_array("data", X.data, 2)
    _check_array("offsets", X.offsets, 1, "iu")
    if len(X.offsets) != len(X.data):
        raise ValueError(f"it has {len(X.offsets)} offsets, but {len(X.data)} diagonals")
    if len(np.unique(X.offsets)) != len(X.offsets):
        raise ValueError("it has an offset more than once")


def _check_lists(X: Any) -> None:
    n, width = X.shape
    for name, lists in (("rows", X.rows), ("data", X.data)):
        _check_array(name, lists, 1, "O")
        if len(lists) != n:
            raise ValueError(f"{name} has {len(lists)} lists, expected {n}")
    for i, (columns, values) in enumerate(zip(X.rows, X.data, strict=True)):
        if not isinstance(columns, list) or not isinstance(values, list):
            raise ValueError(f"row {i} has something else than lists of indices and values")
        if len(columns) != len(values):
            raise ValueError(f"row {i} has {len(columns)} indices, but {len(values)} values")
    _check_places(np.repeat(np.arange(n), list(map(len, X.rows))), chain(*X.rows), width)
    np.fromiter(chain(*X.data), np.float64)


def _check_keys(X: Any) -> None:
    n, width = (1, *X.shape)[-2:]
    keys = list(X.keys())
    if len(X.shape) == 1:
        keys = [(0, key[0] if isinstance(key, tuple) else key) for key in keys]
    rows, columns = zip(*keys, strict=True) if keys else ((), ())
    bad = next((key for key in keys if not 0 <= key[0] < n), None)
    if bad is not None:
        raise ValueError(f"it has a value in row {bad[0]}, but there are {n} rows")
    _check_places(np.array(rows, np.int64), columns, width)
    np.fromiter(X.values(), np.float64)


def _check_places(rows: NDArray[Any], columns: Any, width: int) -> None:
    """Check columns of values, given as numbers of Python."""
    places = np.array(list(columns))
    if len(places) and places.dtype.kind not in "iu":
        raise ValueError(f"indices must be whole numbers, found the type {places.dtype}")
    if not _are_inside(places, width):
        k = int(np.argmax((places < 0) | (places >= width)))
        raise ValueError(f"row {rows[k]} has the index {places[k]}, but there are {width} columns")


def _check_array(name: str, array: Any, n_axes: int, kinds: str = "") -> None:
    """Check that this is an array of these axes, and of one of these kinds."""
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{name} is not an array but {type(array).__name__}")
    if array.ndim != n_axes:
        raise ValueError(f"{name} has the shape {array.shape}, expected {n_axes} axes")
    if kinds and array.dtype.kind not in kinds:
        raise ValueError(f"{name} has the type {array.dtype}, expected whole numbers")


def _are_inside(places: NDArray[Any], length: int) -> bool:
    """Whether all are places along an axis."""
    # As numbers without sign, negative ones are larger than all others.
    unsigned = places.view(places.dtype.str.replace("i", "u")) if len(places) else places
    return not len(places) or int(unsigned.max()) < length
