"""Basis vectors of kernels: what is left of a kernel's features when a model is trained."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..engine.blas_threads import single_blas_thread
from ..schema import Count, SparseBlocks, as_sparse, sparse_blocks
from ..types import Ints
from .kernel_functions import KERNELS, PRECOMPUTED, Kernel

__all__ = ["KernelBasis", "KernelState", "columns_of", "rows_at_a_time", "slices_of_rows"]

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
                "a model file cannot keep a kernel that is a function of your own; pickle the "
                "estimator, or train it with kernel='precomputed'"
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
