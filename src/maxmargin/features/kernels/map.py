"""Feature maps of kernels: linear models of their features are models with that kernel."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ...engine.parallel.blas_threads import single_blas_thread
from ...utils.sparse_format import check_sparse
from ...utils.types import Floats, Ints
from .functions import FLOATS, PRECOMPUTED, KernelBasis, columns_of, make_kernel, slices_of_rows
from .pivoted_cholesky import BASES as UNLABELLED
from .pivoted_cholesky import least_margins, pivoted_cholesky

__all__ = ["KernelMap"]

#: Coefficients of basis vectors count as zero below this share of the largest.
ZERO = 1e-8
SUPPORTS = "supports"
BASES = (*UNLABELLED, SUPPORTS)
#: Basis vectors are drawn from so many times their number of rows, which a model of this share of
#: their number finds; there are at least so many of both.
CANDIDATES, FIRST_RANK, LEAST = 2, 0.25, 50


class KernelMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Features whose inner products are the values of a kernel, exactly or in low rank.

    They are a pivoted Cholesky factor of the kernel matrix of the training rows: with basis
    vectors B among these rows and ``L L' = K(B, B)``, the features of X are ``K(X, B) L^-T``. Any
    linear learner trained on them has that kernel.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "precomputed"} or callable, default="rbf"
        As in scikit-learn: ``(gamma <x, z> + coef0)^degree``, ``exp(-gamma |x - z|^2)``, or a
        function of two matrices that returns the values of all pairs of their rows. It has to be
        positive semidefinite. "precomputed": X holds the values themselves, of the training rows
        with each other in `fit`, and of other rows with all training rows in `transform`.
    gamma : {"scale", "auto"} or float, default="scale"
        Of "poly" and "rbf". "scale" is ``1 / (n_features * X.var())``, "auto" ``1 / n_features``.
    degree : int, default=3
        Of "poly".
    coef0 : float, default=0.0
        Of "poly".
    kernel_params : dict, optional
        Further arguments of a kernel that is a function.
    n_components : int, optional
        Number of basis vectors, and of features; fewer where they represent all training rows. By
        default as many as that takes: features are exact, there may be as many as rows, and the
        kernel's values of all training rows are computed, a block of columns at a time.
    basis : {"pivots", "random", "kmeans++", "supports"}, default="pivots"
        Which rows become basis vectors: those that the basis so far represents worst (within a
        factor of 2), any, or rows drawn by their squared distance in the kernel's space to the
        nearest one drawn before (as many at a time as there are, up to 128). "supports" draws like
        that, too, but from the 2 `n_components` rows that a first classifier, of a quarter of the
        rank and random rows, tells from other classes by the least margins. It represents the
        kernel worse, and the models trained with it often better, where ranks are high; it needs y.
    tol : float, default=1e-10
        Rows are represented exactly if no more than this share of the kernel matrix's trace is
        missing (with single precision 1e-4, if that is more).
    random_state : int, Generator or None, default=None
        Seed of all but "pivots".

    Attributes
    ----------
    basis_indices_ : ndarray of shape (n_components,)
        Which training rows are basis vectors, in the order of the features.
    basis_ : KernelBasis
        The vectors and the kernel, with the numbers that ``gamma`` stood for.
    factor_ : ndarray of shape (n_components, n_components)
        L, lower triangular.
    trace_residual_, trace_residual_share_ : float
        What the features lack of the trace of the training rows' kernel matrix, and its share. No
        entry of the matrix, and no eigenvalue, is further off than that.
    n_bytes_ : int
        Memory of the fitted map.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> Z = KernelMap("rbf", gamma=0.1).fit_transform(X)
    >>> bool(np.allclose(Z @ Z.T, np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))))
    True
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        kernel_params: Any = None,
        n_components: int | None = None,
        basis: str = "pivots",
        tol: float = 1e-10,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.n_components = n_components
        self.basis = basis
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> KernelMap:
        """Choose the basis.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Training rows.
        y : array of shape (n_rows,), optional
            Their classes, for ``basis="supports"``; ignored by others.

        Returns
        -------
        self
        """
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> NDArray[Any]:
        """Choose the basis, and return the features of the training rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Training rows.
        y : array of shape (n_rows,), optional
            Their classes, for ``basis="supports"``; ignored by others.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
            In single precision if X is.
        """
        check_sparse(X, "X")
        if self.basis != SUPPORTS:
            X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS)
            return self._fit_checked(X)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=FLOATS)
        check_classification_targets(y)
        return self._fit_checked(X, y)

    def _fit_checked(self, X: Any, y: Any = None) -> NDArray[Any]:
        """See `fit_transform`; X is known to be a matrix of finite numbers."""
        self._check_parameters()
        if self.basis == SUPPORTS and y is None:
            raise ValueError("basis='supports' needs y, with the class of every row")
        parameters = (self.gamma, self.degree, self.coef0, self.kernel_params)
        kernel = make_kernel(self.kernel, *parameters, X)
        is_precomputed = kernel.name == PRECOMPUTED
        if is_precomputed:
            _check_square(X)

        def columns(rows: Ints) -> NDArray[Any]:
            return columns_of(X, rows) if is_precomputed else kernel(X, X[rows])

        n = int(X.shape[0])
        diagonal = kernel.diagonal(X)
        _check_diagonal(diagonal)
        max_rank = n if self.n_components is None else min(int(self.n_components), n)
        basis, random_state, preferred = self.basis, self.random_state, None
        if basis == SUPPORTS:
            basis, random_state = "kmeans++", np.random.default_rng(random_state)
            preferred = _supports(columns, diagonal, y, max_rank, random_state)
        with single_blas_thread():
            pivots, features, residuals = pivoted_cholesky(
                columns,
                diagonal,
                max_rank=max_rank,
                basis=basis,  # type: ignore[arg-type]  # checked above
                tol=self.tol,
                random_state=random_state,
                preferred=preferred,
            )
        self.basis_ = KernelBasis(kernel, pivots, None if is_precomputed else X[pivots])
        self.basis_indices_ = pivots
        self.factor_ = features[pivots]
        self.trace_residual_ = float(residuals.sum())
        self.trace_residual_share_ = float(self.trace_residual_ / diagonal.sum())
        self.n_bytes_ = int(self.factor_.nbytes + self.basis_.n_bytes)
        return features

    def transform(self, X: Any) -> NDArray[Any]:
        """Features of rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
        """
        check_is_fitted(self, "basis_")
        check_sparse(X, "X")
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=FLOATS)
        features = np.empty((X.shape[0], len(self.basis_)), np.result_type(X.dtype, self.factor_))
        for rows in slices_of_rows(X.shape[0], len(self.basis_)):
            values = self.basis_.values(X[rows])
            with single_blas_thread():
                features[rows] = solve_triangular(self.factor_, values.T, lower=True).T
        return features

    def coefficients(self, weights: Floats) -> Floats:
        """Weights of the features as coefficients of the basis vectors.

        Parameters
        ----------
        weights : ndarray of shape (n_components, n_outputs)
            Weights of the features.

        Returns
        -------
        ndarray of shape (n_components, n_outputs)
            ``K(X, B) @ coefficients`` is ``transform(X) @ weights``.
        """
        check_is_fitted(self, "basis_")
        with single_blas_thread():
            factor = self.factor_.astype(np.float64, copy=False)
            return solve_triangular(factor, weights, lower=True, trans="T")

    def _matter(self, coefficients: Floats) -> NDArray[np.bool_]:
        """Which basis vectors have coefficients other than zero; at least one."""
        norms = np.sqrt(np.einsum("ij,ij->i", self.factor_, self.factor_, dtype=np.float64))
        sizes = np.abs(coefficients).max(axis=1, initial=0.0) * norms
        return sizes >= max(ZERO * sizes.max(), 0.0) if sizes.any() else sizes >= sizes.max()

    def _check_parameters(self) -> None:
        """Raise ValueError for parameters that are none."""
        if self.basis not in BASES:
            names = ", ".join(map(repr, BASES))
            raise ValueError(f"basis must be one of {names}, got {self.basis!r:.60}")
        n = self.n_components
        if n is not None and (isinstance(n, bool) or not isinstance(n, Integral) or n < 1):
            raise ValueError(f"n_components must be None or a whole number >= 1, got {n!r:.60}")
        if not isinstance(self.tol, Real) or not 0.0 <= self.tol < 1.0:
            raise ValueError(f"tol must be at least 0 and below 1, got {self.tol!r:.60}")

    @property
    def _n_features_out(self) -> int:
        """For names of features."""
        return len(self.basis_indices_)

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn should know of the transformer."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == PRECOMPUTED
        tags.target_tags.required = self.basis == SUPPORTS
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _supports(
    columns: Callable[[Ints], NDArray[Any]],
    diagonal: Floats,
    y: Any,
    n_components: int,
    generator: np.random.Generator,
) -> Ints | None:
    """The rows to draw from; None where that is all of them."""
    classes, codes = np.unique(y, return_inverse=True)
    count, rank = max(CANDIDATES * n_components, LEAST), max(int(FIRST_RANK * n_components), LEAST)
    if count >= len(diagonal) or len(classes) < 2:
        return None
    with single_blas_thread():
        return least_margins(columns, diagonal, codes, count, rank=rank, generator=generator)


def _check_square(values: Any) -> None:
    """Refuse precomputed values that are no symmetric matrix, or no inner products."""
    n, width = values.shape
    if n != width:
        raise ValueError(
            "with kernel='precomputed' X holds the values of the training rows with each other, a "
            f"square matrix; got shape {values.shape}"
        )
    scale = np.sqrt(np.finfo(values.dtype).eps) * abs(values).max()
    for rows in slices_of_rows(n, n):
        uneven = abs(values[rows] - values[:, rows].T) > scale
        if uneven.sum():
            row, column = (int(k[0]) for k in uneven.nonzero())
            row += rows.start
            raise ValueError(
                f"the precomputed kernel is not symmetric: entry [{row}, {column}] is "
                f"{values[row, column]}, [{column}, {row}] is {values[column, row]}"
            )
    norms = np.sqrt(np.maximum(values.diagonal(), 0.0))
    for rows in slices_of_rows(n, n):
        sizes = abs(values[rows])
        sizes = sizes.toarray() if sp.issparse(sizes) else sizes
        large = sizes > np.outer(norms[rows], norms) + scale
        if large.any():
            row, column = (int(k) for k in np.argwhere(large)[0])
            row += rows.start
            raise ValueError(
                "the kernel is not positive semidefinite: the value of rows "
                f"{row} and {column} is {values[row, column]}, those of each with itself are "
                f"{values[row, row]} and {values[column, column]}"
            )


def _check_diagonal(diagonal: Floats) -> None:
    """Refuse kernels that are negative somewhere, or zero everywhere."""
    if not np.isfinite(diagonal).all():
        row = int(np.argmin(np.isfinite(diagonal)))
        raise ValueError(f"the kernel's value of row {row} with itself is {diagonal[row]}")
    row = int(np.argmin(diagonal))
    if diagonal[row] < 0.0:
        raise ValueError(
            "the kernel is not positive semidefinite: its value of row "
            f"{row} with itself is {diagonal[row]}"
        )
    if not diagonal.any():
        raise ValueError("the kernel's values of all training rows with themselves are zero")
