"""Planes as oracles return them: sparse rows of feature differences, with losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..utils.sparse_format import check_sparse
from ..utils.types import Floats, Ints, Ints32
from ..utils.validation import LARGEST

__all__ = [
    "BoundedPlanes",
    "Planes",
    "concatenate",
    "difference",
    "empty_planes",
    "entries",
    "split_bounds",
    "stack",
    "stack_k_best",
    "trim",
    "validate_bounds",
    "validate_planes",
]

MOST = 2**31 - 1  # numbers of features have 32 bits
Row = tuple[Ints32, Floats]  # indices and values


class Planes(NamedTuple):
    """Candidates as CSR rows of ``dpsi`` with their losses; row r is the r-th example asked for.

    A column may occur more than once in a row; its values add up.
    """

    indptr: Ints
    indices: Ints32
    values: Floats
    losses: Floats

    def with_bounds(self, bounds: ArrayLike) -> BoundedPlanes:
        """These candidates of a search that is not exact, with what it can promise.

        Parameters
        ----------
        bounds : array of shape (n_rows,)
            Upper bounds on each example's largest violation at the weights that were asked about,
            in the units of what the oracle maximises; inf where nothing is known.

        Returns
        -------
        BoundedPlanes
            What an oracle may return in place of planes.
        """
        return BoundedPlanes(self, np.asarray(bounds, dtype=np.float64))


# Not a field of `Planes`: kernels take those, and would all be compiled again.
class BoundedPlanes(NamedTuple):
    """Candidates that may not be the most violated ones, and bounds on what these would reach."""

    planes: Planes
    bounds: Floats


def split_bounds(answer: Planes | BoundedPlanes) -> tuple[Planes, Floats | None]:
    """The planes of an oracle's answer, and its bounds if it has any."""
    return answer if isinstance(answer, BoundedPlanes) else (answer, None)


def entries(features: Any) -> Row:
    """Turn any joint feature vector into (indices, values)."""
    if sp.issparse(features):
        check_sparse(features, "joint_feature(x, y)")
        if len(features.shape) == 2 and features.shape[0] != 1:
            shape = features.shape
            raise ValueError(f"expected one row of features, got a matrix of shape {shape}")
        if features.format == "csr":  # as most are; in less time than it takes SciPy
            used = slice(int(features.indptr[-1]))
            return features.indices[used].astype(np.int32), features.data[used].astype(np.float64)
        row = features.tocoo()
        return row.col.astype(np.int32), row.data.astype(np.float64)
    if isinstance(features, Mapping):
        return (
            _numbers_of_features(list(features)),
            np.fromiter(features.values(), dtype=np.float64, count=len(features)),
        )
    dense = np.asarray(features, dtype=np.float64).ravel()
    indices = dense.nonzero()[0]
    return indices.astype(np.int32), dense[indices]


def _numbers_of_features(keys: list[Any]) -> Ints32:
    """Keys of a dict of features."""
    numbers = np.array(keys) if keys else np.empty(0, np.int64)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        wrong = next((k for k in keys if not isinstance(k, (int, np.integer))), keys)
        raise ValueError(f"keys of features must be whole numbers, got {wrong!r:.60}")
    if numbers.max(initial=0) > MOST or numbers.min(initial=0) < -MOST:
        raise ValueError(
            f"there is no feature {max(keys, key=abs)}; at most 2**31 - 1 are possible"
        )
    return numbers.astype(np.int32)


def difference(gold: Any, candidate: Any) -> Row:
    """``psi(x, y_i) - psi(x, y)`` as (indices, values)."""
    if isinstance(gold, np.ndarray) and isinstance(candidate, np.ndarray):
        return entries(gold - candidate)
    plus, minus = entries(gold), entries(candidate)
    # What both have cancels: the given output itself is an empty row, not one of rounding.
    columns, places = np.unique(np.concatenate([plus[0], minus[0]]), return_inverse=True)
    values = np.bincount(places, np.concatenate([plus[1], -minus[1]]), len(columns))
    kept = np.flatnonzero(values)
    return columns[kept], values[kept].astype(np.float64, copy=False)


def stack(rows: list[Row], losses: Floats) -> Planes:
    """Stack (indices, values) rows."""
    if len(rows) == 1:  # as solvers ask most often; the rest would take five times as long
        (indices, values) = rows[0]
        return Planes(np.array([0, len(indices)]), indices, values, losses)
    indptr = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(indices) for indices, _ in rows], out=indptr[1:])
    if not rows:
        return Planes(indptr, np.empty(0, np.int32), np.empty(0), losses)
    return Planes(
        indptr,
        np.concatenate([indices for indices, _ in rows]),
        np.concatenate([values for _, values in rows]),
        losses,
    )


def empty_planes(n_rows: int, capacity: int) -> Planes:
    """Arrays for so many rows with at most so many entries in all, for a kernel to fill."""
    return Planes(
        np.zeros(n_rows + 1, np.int64),
        np.empty(capacity, np.int32),
        np.empty(capacity),
        np.zeros(n_rows),
    )


def trim(planes: Planes) -> Planes:
    """Cut off what no row has taken."""
    filled = planes.indptr[-1]
    return planes._replace(indices=planes.indices[:filled], values=planes.values[:filled])


def longest_row(planes: Planes) -> int:
    """Entries of the longest row."""
    if len(planes.losses) == 1:  # as solvers ask most often; a difference of arrays takes longer
        return len(planes.indices)
    return int(np.diff(planes.indptr).max(initial=0))


def stack_k_best(found: list[list[tuple[Row, float]]], k: int) -> Planes:
    """The answer of `Problem.k_best` from (row, loss) lists, one for each example, k at most."""
    nothing = (np.empty(0, np.int32), np.empty(0)), 0.0
    filled = [pair for listed in found for pair in listed + [nothing] * (k - len(listed))]
    return stack([row for row, _ in filled], np.array([loss for _, loss in filled], np.float64))


def validate_planes(planes: Planes, indices: Ints, n_features: int) -> None:
    """Raise ValueError, naming the example, if an oracle's answer cannot be used."""
    if not isinstance(planes, Planes):
        raise ValueError(
            f"oracle must return Planes, or planes.with_bounds(...), got {planes!r:.60}"
        )
    if _are_valid(planes, len(indices), n_features):
        return
    losses = np.asarray(planes.losses)
    if losses.shape != (len(indices),) or len(planes.indptr) != len(indices) + 1:
        raise ValueError(
            f"the oracle was called for {len(indices)} examples and returned {len(losses)} losses "
            f"and {len(planes.indptr) - 1} rows"
        )
    n_entries = len(planes.indices)
    kind = np.asarray(planes.indices).dtype
    if n_entries and kind.kind not in "iu":
        raise ValueError(f"the oracle's indices must be whole numbers, got {kind}")
    steps = np.diff(planes.indptr)
    ends = (planes.indptr[0], planes.indptr[-1], len(planes.values))
    if ends != (0, n_entries, n_entries) or (steps < 0).any():
        raise ValueError("the oracle's indptr, indices and values do not fit each other")
    bad = np.flatnonzero(~(losses >= 0) | ~np.isfinite(losses))
    if len(bad):
        raise ValueError(
            f"the oracle returned loss {losses[bad[0]]} for example {indices[bad[0]]}; "
            "losses must be finite and >= 0"
        )
    wrong = ~(np.abs(planes.values) <= LARGEST)
    wrong |= (planes.indices < 0) | (planes.indices >= n_features)
    if wrong.any():
        entry = int(np.argmax(wrong))
        row = int(np.searchsorted(planes.indptr, entry, side="right")) - 1
        raise ValueError(
            f"the oracle's feature difference for example {indices[row]} has value "
            f"{planes.values[entry]} at index {planes.indices[entry]}; values must be finite, at "
            f"most {LARGEST:g} in size, and indices in 0..{n_features - 1}"
        )


def _are_valid(planes: Planes, n_rows: int, n_features: int) -> bool:
    """Whether rows are valid for certain, by few steps: it is asked for at every oracle call."""
    ends, values = planes.indptr, planes.values
    numbers, losses = np.asarray(planes.indices), np.asarray(planes.losses)
    n = len(numbers)
    if (len(ends), len(values), losses.shape) != (n_rows + 1, n, (n_rows,)):
        return False
    if ends[0] != 0 or ends[-1] != n:
        return False
    if n_rows == 1:
        if not 0.0 <= losses[0] < np.inf:
            return False
    elif n_rows and not (
        losses.min() >= 0.0 and losses.max() < np.inf and np.diff(ends).min() >= 0
    ):
        return False
    # The sum of squares may be too large where all is well, but is this small only then.
    with np.errstate(over="ignore"):
        return n == 0 or bool(
            numbers.dtype.kind in "iu"
            and numbers.min() >= 0
            and numbers.max() < n_features
            and np.dot(values, values) <= LARGEST**2
        )


def validate_bounds(bounds: Floats, indices: Ints) -> None:
    """Raise ValueError, naming the example, if an answer's bounds cannot be used."""
    if bounds.shape != (len(indices),):
        raise ValueError(
            f"the oracle was called for {len(indices)} examples and returned bounds of shape "
            f"{bounds.shape}"
        )
    if np.isnan(bounds).any():
        raise ValueError(f"the oracle's bound for example {indices[np.isnan(bounds)][0]} is nan")


def concatenate(pieces: Sequence[Planes]) -> Planes:
    """The rows of all pieces, one after the other."""
    if len(pieces) == 1:
        return pieces[0]
    starts = np.cumsum([0] + [int(piece.indptr[-1]) for piece in pieces[:-1]])
    ends = [piece.indptr[1:] + start for piece, start in zip(pieces, starts, strict=True)]
    return Planes(
        np.concatenate([np.zeros(1, np.int64), *ends]),
        np.concatenate([piece.indices for piece in pieces]),
        np.concatenate([piece.values for piece in pieces]),
        np.concatenate([piece.losses for piece in pieces]),
    )
