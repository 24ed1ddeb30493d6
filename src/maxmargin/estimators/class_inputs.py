"""Checks of what users hand to a classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples, validate_data

from ..given import LARGEST, first_unusable
from ..sparse_format import check_sparse

__all__ = ["canonical", "check_lengths", "checked_inputs", "checked_pairs"]

OPTIONS: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": (np.float64, np.float32),
    "ensure_all_finite": False,
}


def checked_inputs(estimator: Any, X: Any, *, reset: bool = False) -> Any:
    """Inputs as a matrix of numbers, dense or CSR; ValueError says what is wrong with them."""
    check_sparse(X, "X")
    X = validate_data(estimator, X, reset=reset, **OPTIONS)
    _check_finite(X)
    return X


def checked_pairs(
    estimator: Any, X: Any, y: Any, *, reset: bool = True, y_numeric: bool = False
) -> tuple[Any, NDArray[Any]]:
    """The same of inputs with an output each."""
    check_lengths(X, y)
    X, y = validate_data(estimator, X, y, reset=reset, y_numeric=y_numeric, **OPTIONS)
    _check_finite(X)
    return X, y


def check_lengths(X: Any, y: Any) -> None:
    """Refuse X and y of different lengths; what has no length is left to scikit-learn."""
    check_sparse(X, "X")
    check_sparse(y, "y")
    try:
        n_inputs, n_outputs = _num_samples(X), _num_samples(y)
    except TypeError:
        return
    if n_inputs != n_outputs:
        raise ValueError(
            f"X has {n_inputs} examples but y has {n_outputs}; first without a partner: "
            f"{min(n_inputs, n_outputs)}"
        )


def canonical(X: Any) -> Any:
    """A sparse matrix with sorted indices without repetition, not changing the user's."""
    if not sp.issparse(X):
        return X
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def _check_finite(X: Any) -> None:
    """Refuse features that are NaN, infinite or too large to compute with, naming the first."""
    values = X.data if sp.issparse(X) else X
    entry = first_unusable(values)
    if entry is None:
        return
    if sp.issparse(X):
        row = int(np.searchsorted(X.indptr, entry, side="right")) - 1
        column, value = int(X.indices[entry]), values[entry]
    else:
        row, column = divmod(entry, X.shape[1])
        value = values[row, column]
    name = "NaN" if np.isnan(value) else "inf" if np.isinf(value) else f"{value:g}"
    raise ValueError(
        f"X contains {name} at row {row}, feature {column}; features must be finite, and at most "
        f"{LARGEST:g} in size: scale them"
    )
