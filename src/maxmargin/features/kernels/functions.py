"""Kernels: inner products of rows in a space of features that is never written down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...engine.parallel.blas_threads import single_blas_thread
from ...utils.schema import Count, SparseBlocks, as_sparse, sparse_blocks
from ...utils.sparse_format import check_sparse
from ...utils.types import Floats, Ints
from ...utils.validation import is_at_least

__all__ = [
    "FLOATS",
    "KERNELS",
    "PRECOMPUTED",
    "Kernel",
    "KernelBasis",
    "KernelState",
    "columns_of",
    "make_kernel",
    "rows_at_a_time",
    "slices_of_rows",
]

PRECOMPUTED = "precomputed"
KERNELS = ("linear", "poly", "rbf", PRECOMPUTED)
_OWN = "callable"
FLOATS = (np.float64, np.float32)
ROWS_AT_A_TIME = 64  # for the diagonal of a function of the user's


class Kernel(NamedTuple):
    """A kernel with all its parameters; of a precomputed one, rows are its values."""

    name: str
    gamma: float
    degree: int
    coef0: float
    function: Callable[..., Any] | None = None
    params: Mapping[str, Any] = {}

    def __call__(self, X: Any, Y: Any) -> NDArray[Any]:
        """Values of all rows of X with all rows of Y."""
        # Here, for it takes longer to import than a command that needs no kernel takes to start.
        from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

        if self.name == "rbf":
            return rbf_kernel(X, Y, gamma=self.gamma)
        if self.function is not None:
            values = self._own(X, Y)
        else:
            values = linear_kernel(X, Y)
        if self.name == "poly":
            with np.errstate(over="ignore"):
                values *= self.gamma
                values += self.coef0
                values **= self.degree
        if not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0].tolist()
            raise ValueError(f"kernel gave {values[row, column]} for rows {row} and {column}")
        return values

    def _own(self, X: Any, Y: Any) -> NDArray[Any]:
        """What a function of the user's gives, as an array of floats of the right shape."""
        assert self.function is not None
        try:
            values = self.function(X, Y, **self.params)
        except TypeError as error:  # as of a function that takes one row, or no arrays
            raise TypeError(
                f"kernel={self.function!r:.60} is called with two arrays of rows, of shapes "
                f"{X.shape} and {Y.shape}: {error}"
            ) from error
        check_sparse(values, "what kernel gave")
        values = values.toarray() if sp.issparse(values) else np.asarray(values)
        shape = (X.shape[0], Y.shape[0])
        if values.shape != shape:
            raise ValueError(f"kernel gave an array of shape {values.shape}, expected {shape}")
        if values.dtype in FLOATS:
            return values
        if not np.can_cast(values.dtype, np.float64, "same_kind"):
            raise ValueError(f"kernel gave values of type {values.dtype}, expected real numbers")
        return values.astype(np.float64)

    def diagonal(self, X: Any) -> Floats:
        """Values of rows with themselves."""
        if self.name == PRECOMPUTED:
            return np.asarray(X.diagonal(), dtype=np.float64)
        if self.name == "rbf":
            return np.ones(X.shape[0])
        if self.name == _OWN:
            starts = range(0, X.shape[0], ROWS_AT_A_TIME)
            parts = (X[start : start + ROWS_AT_A_TIME] for start in starts)
            return np.concatenate([self(part, part).diagonal() for part in parts]).astype(float)
        norms = _square_norms(X)
        if self.name == "linear":
            return norms
        with np.errstate(over="ignore"):
            return np.asarray((self.gamma * norms + self.coef0) ** self.degree)


def make_kernel(
    kernel: Any, gamma: Any, degree: Any, coef0: Any, kernel_params: Any, X: Any
) -> Kernel:
    """The kernel that these parameters ask for, with rows such as X; ValueError for bad ones."""
    if kernel_params is not None and not isinstance(kernel_params, Mapping):
        raise ValueError(f"kernel_params must be a dict, got {kernel_params!r:.60}")
    if callable(kernel):
        return Kernel(_OWN, 0.0, 0, 0.0, kernel, dict(kernel_params or {}))
    if not isinstance(kernel, str) or kernel not in KERNELS:
        names = ", ".join(map(repr, KERNELS))
        raise ValueError(f"kernel must be one of {names} or a function, got {kernel!r:.60}")
    is_whole = isinstance(degree, Integral) and not isinstance(degree, bool)
    if not is_whole or not 0 <= degree < 2**31:
        raise ValueError(f"degree must be a whole number from 0 to 2**31 - 1, got {degree!r:.60}")
    is_number = isinstance(coef0, Real) and not isinstance(coef0, bool)
    if not is_number or not is_at_least(abs(coef0), 0):
        raise ValueError(f"coef0 must be a finite number, got {coef0!r:.60}")
    return Kernel(kernel, _gamma(gamma, X, kernel), int(degree), float(coef0))


def _gamma(gamma: Any, X: Any, kernel: str) -> float:
    """The number that gamma stands for, as scikit-learn's SVC has it."""
    if isinstance(gamma, str) and gamma in ("scale", "auto"):
        if kernel not in ("poly", "rbf"):
            return 1.0
        spread = _variance(X) if gamma == "scale" else 1.0
        return 1.0 / (X.shape[1] * spread) if spread > 0.0 else 1.0
    if isinstance(gamma, (str, bool)) or not isinstance(gamma, Real):
        raise ValueError(f"gamma must be 'scale', 'auto' or a number >= 0, got {gamma!r:.60}")
    if not is_at_least(gamma, 0):
        raise ValueError(f"gamma must be finite and >= 0, got {gamma!r}")
    return float(gamma)


def _variance(X: Any) -> float:
    """Variance of all entries."""
    if not sp.issparse(X):
        return float(X.var(dtype=np.float64))
    size = X.shape[0] * X.shape[1]
    mean = X.sum(dtype=np.float64) / size
    return float(np.square(X.data, dtype=np.float64).sum() / size - mean**2)


def _square_norms(X: Any) -> Floats:
    """|x|^2 of every row."""
    if sp.issparse(X):
        squares = X.multiply(X).sum(axis=1)
        return np.asarray(squares, dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X, dtype=np.float64))


VALUES_AT_A_TIME = 2**24  # of kernels, in predictions: 128 MB


@dataclass(frozen=True)
class KernelBasis:
    """Basis vectors and their kernel: all that predictions need."""

    kernel: Kernel
    indices: Ints  # rows of the training data
    vectors: Any  # dense or CSR; None where values are precomputed

    def __len__(self) -> int:
        """Number of basis vectors."""
        return len(self.indices)

    def values(self, X: Any) -> NDArray[Any]:
        """The kernel's values of rows with the basis vectors."""
        with single_blas_thread():
            if self.vectors is None:
                return columns_of(X, self.indices)
            return self.kernel(X, self.vectors)

    def subset(self, chosen: NDArray[Any]) -> KernelBasis:
        """Some of the basis vectors."""
        vectors = None if self.vectors is None else self.vectors[chosen]
        return KernelBasis(self.kernel, self.indices[chosen], vectors)

    @property
    def n_bytes(self) -> int:
        """Memory of the vectors."""
        if self.vectors is None:
            return self.indices.nbytes
        if sp.issparse(self.vectors):
            return sum(part.nbytes for part in sparse_blocks(self.vectors)[:3])
        return int(self.vectors.nbytes)

    def to_state(self) -> KernelState:
        """What a model file keeps; ValueError for a function of the user's."""
        if self.kernel.function is not None:
            raise ValueError(
                "a model file cannot store a custom kernel function; pickle the estimator, or "
                "train it with kernel='precomputed'"
            )
        dense = None if sp.issparse(self.vectors) else self.vectors
        sparse = sparse_blocks(self.vectors) if sp.issparse(self.vectors) else None
        return KernelState(*self.kernel[:4], self.indices, dense, sparse)


class KernelState(NamedTuple):
    """What a file keeps of basis vectors and their kernel."""

    kernel: str
    gamma: float
    degree: Count
    coef0: float
    indices: NDArray[np.integer]
    dense: NDArray[np.floating] | None
    sparse: SparseBlocks | None

    def basis(self, n_features: int) -> KernelBasis:
        """The basis, for inputs of so many features; ValueError where parts do not fit."""
        if self.kernel not in KERNELS:
            raise ValueError(f"unknown kernel {self.kernel!r:.40}")
        kernel = Kernel(self.kernel, self.gamma, self.degree, self.coef0)
        indices = self.indices.astype(np.int64)
        if self.kernel == PRECOMPUTED:
            if len(indices) and not 0 <= indices.min() <= indices.max() < n_features:
                raise ValueError(f"basis vectors beyond the {n_features} training rows")
            return KernelBasis(kernel, indices, None)
        vectors = self.dense if self.sparse is None else as_sparse(*self.sparse)
        if vectors is None or vectors.shape != (len(indices), n_features):
            found = None if vectors is None else vectors.shape
            raise ValueError(f"basis vectors of {found}, expected {(len(indices), n_features)}")
        return KernelBasis(kernel, indices, vectors)


def rows_at_a_time(width: int) -> int:
    """How many rows of so many values are held at a time."""
    return max(1, VALUES_AT_A_TIME // max(width, 1))


def slices_of_rows(n_rows: int, width: int) -> Iterator[slice]:
    """Slices of as many rows of so many values as are held at a time."""
    size = rows_at_a_time(width)
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def columns_of(values: Any, columns: Ints) -> NDArray[Any]:
    """Columns of precomputed values."""
    chosen = values[:, columns]
    return chosen.toarray() if sp.issparse(chosen) else np.ascontiguousarray(chosen)
