"""Estimators that take a kernel: they are trained on explicit features of it (`KernelMap`).

Weights of those features are turned into coefficients of basis vectors at the end, and vectors
without any are dropped: what is kept is a linear model of the kernel's values with the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from ..features.kernels.functions import (
    PRECOMPUTED,
    KernelBasis,
    KernelState,
    rows_at_a_time,
    slices_of_rows,
)
from ..schema import Count
from ..sparse_format import check_sparse
from ..types import Floats, Ints
from .seeds import seed_of

__all__ = ["KernelModel", "KernelParameters", "KernelReport", "sequences_at_a_time"]


class KernelReport(NamedTuple):
    """How well training knew the kernel, and what that took."""

    rank: Count
    trace_residual: float
    trace_residual_share: float
    n_bytes_training: Count
    n_bytes_model: Count


class KernelModel(NamedTuple):
    """What a file keeps of a model with a kernel."""

    basis: KernelState
    report: KernelReport


class KernelMethods:
    """What `KernelParameters` do in training, predictions and files."""

    kernel: Any
    gamma: Any
    degree: int
    coef0: float
    kernel_params: Any
    n_basis: int | None
    basis: Any
    random_state: Any
    n_features_in_: int
    kernel_report_: KernelReport
    _kernel_basis: KernelBasis | None = None
    _kernel_map: Any = None

    # ----- training -----------------------------------------------------------------------------

    def _fit_kernel(self, X: Any, labels: Any) -> Any:
        """Features to train on: those of the kernel, or X itself; each row of X has a label."""
        self.__dict__.pop("_kernel_basis", None)
        self.__dict__.pop("kernel_report_", None)
        if isinstance(self.kernel, str) and self.kernel == "linear":
            return X
        check_sparse(X, "X")
        from ..features.kernels.map import KernelMap

        names = ("kernel", "gamma", "degree", "coef0", "kernel_params", "n_basis", "basis")
        options = {name: getattr(self, name) for name in names}
        seed = None if self.basis == "pivots" else seed_of(self.random_state)
        mapping = KernelMap(**options, random_state=seed)
        features = mapping._fit_checked(X, labels)
        self._kernel_map, self._kernel_basis = mapping, mapping.basis_
        self.kernel_report_ = KernelReport(
            len(mapping.basis_),
            mapping.trace_residual_,
            mapping.trace_residual_share_,
            int(features.nbytes + mapping.n_bytes_),
            mapping.n_bytes_,
        )
        return features

    def _kept_weights(self, learned: Sequence[Floats]) -> list[Floats]:
        """See `MaxMarginEstimator`: coefficients of the basis vectors that have any."""
        mapping = self.__dict__.pop("_kernel_map", None)
        if mapping is None:
            return list(learned)
        width = self._weights_per_input()
        n = len(mapping.basis_) * width
        tables = [mapping.coefficients(w[:n].reshape(-1, width)) for w in learned]
        kept = mapping._matter(np.hstack(tables))
        self._kernel_basis = mapping.basis_.subset(kept)
        self._basis_was_cut()
        size = self._kernel_basis.n_bytes + sum(int(kept.sum()) * width * 8 for _ in tables)
        self.kernel_report_ = self.kernel_report_._replace(n_bytes_model=size)
        pairs = zip(tables, learned, strict=True)
        return [np.concatenate([table[kept].ravel(), w[n:]]) for table, w in pairs]

    def _weights_per_input(self) -> int:
        """How many weights each feature of an input has, one behind the other."""
        raise NotImplementedError

    def _basis_was_cut(self) -> None:
        """Called when basis vectors without coefficients are gone."""

    def _check_no_kernel(self, method: str) -> None:
        """Some things need features that are there in advance, or have names."""
        if self._kernel_basis is not None or self.kernel != "linear":
            raise ValueError(
                f"{method} needs kernel='linear'; with others, train on features of a KernelMap"
            )

    # ----- prediction ---------------------------------------------------------------------------

    @property
    def _n_inputs(self) -> int:
        """Features of an input that have weights, the constant one aside."""
        return self.n_features_in_ if self._kernel_basis is None else len(self._kernel_basis)

    def _by_kernel_values(self, scores: Callable[[Any], Floats], X: Any) -> Floats:
        """Scores of what the weights are for: the kernel's values with the basis, or X itself."""
        basis = self._kernel_basis
        if basis is None:
            return scores(X)
        slices = slices_of_rows(X.shape[0], len(basis))
        return np.concatenate([scores(basis.values(X[rows])) for rows in slices])

    @property
    def support_(self) -> Ints:
        """Which training inputs the model is made of, with a kernel other than "linear"."""
        return self._basis_or_raise("support_").indices

    @property
    def support_vectors_(self) -> Any:
        """These inputs."""
        return self._basis_or_raise("support_vectors_").vectors

    def _only_linear(self, name: str) -> None:
        """An AttributeError, as hasattr expects it, with a kernel."""
        if self._kernel_basis is not None:
            raise AttributeError(f"{name} needs kernel='linear'; other models have dual_coef_")

    def _basis_or_raise(self, name: str) -> KernelBasis:
        """An AttributeError, as hasattr expects it, without a kernel."""
        if self._kernel_basis is None:
            raise AttributeError(f"{name} is there once a model with a kernel is fitted")
        return self._kernel_basis

    # ----- persistence --------------------------------------------------------------------------

    def _kernel_state(self) -> KernelModel | None:
        """What a file keeps."""
        if self._kernel_basis is None:
            return None
        return KernelModel(self._kernel_basis.to_state(), self.kernel_report_)

    def _set_kernel_state(self, model: KernelModel | None) -> None:
        """Take it up; ``n_features_in_`` is known."""
        if model is not None:
            self._kernel_basis = model.basis.basis(self.n_features_in_)
            self.kernel_report_ = model.report

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn should know of the estimator."""
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.pairwise = self.kernel == PRECOMPUTED
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class KernelParameters(KernelMethods):
    """Kernels for estimators whose joint features are those of an input, placed by the output.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "precomputed"} or callable, default="linear"
        In place of inner products of inputs, as in scikit-learn: ``(gamma <x, z> + coef0)^degree``,
        ``exp(-gamma |x - z|^2)``, or a function of two matrices that returns the values of all
        pairs of their rows. "precomputed": inputs are values, of the training inputs with each
        other in ``fit``, and of others with all training inputs later.
    gamma : {"scale", "auto"} or float, default="scale"
        Of "poly" and "rbf". "scale" is ``1 / (n_features * X.var())``, "auto" ``1 / n_features``.
    degree : int, default=3
        Of "poly".
    coef0 : float, default=0.0
        Of "poly".
    kernel_params : dict, optional
        Further arguments of a kernel that is a function; others ignore them.
    n_basis : int, optional
        Rank of the approximation by which kernels other than "linear" are trained; by default they
        are exact, which takes memory for a square of the number of inputs, and time for its cube.
    basis : {"pivots", "random", "kmeans++", "supports"}, default="pivots"
        Which inputs are its basis; see `KernelMap`. "supports", inputs that a first model nearly
        confuses, may make fewer errors at the same rank.
    """

    kernel: Any = "linear"
    gamma: Literal["scale", "auto"] | float = "scale"
    degree: int = 3
    coef0: float = 0.0
    kernel_params: Any = None
    n_basis: int | None = None
    basis: Literal["pivots", "random", "kmeans++", "supports"] = "pivots"


def sequences_at_a_time(offsets: Ints, width: int) -> Iterator[tuple[int, int]]:
    """First and end of sequences whose tokens, of so many values each, are held at a time."""
    first, n = 0, len(offsets) - 1
    while first < n:
        limit = offsets[first] + rows_at_a_time(width) if width else offsets[-1]
        last = max(int(np.searchsorted(offsets, limit, side="right")) - 1, first + 1)
        yield first, last
        first = last
