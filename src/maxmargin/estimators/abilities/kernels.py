"""Estimators that take a kernel: they are trained on explicit features of it (`KernelMap`).

Weights of those features are turned into coefficients of basis vectors at the end, and vectors
without any are dropped: what is kept is a linear model of the kernel's values with the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from ...features.kernels.functions import (
    PRECOMPUTED,
    KernelBasis,
    KernelState,
    rows_at_a_time,
    slices_of_rows,
)
from ...utils.schema import Count
from ...utils.sklearn_bases import clone
from ...utils.sparse_format import check_sparse
from ...utils.types import Floats, Ints
from ..parameters import seed_of

__all__ = [
    "LINEAR",
    "FittedKernel",
    "KernelModel",
    "KernelParameters",
    "KernelReport",
    "Kernelized",
    "check_no_kernel",
    "sequences_at_a_time",
]


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


class FittedKernel:
    """The kernel that an estimator was trained with, which it holds; `LINEAR` if with none.

    Attributes
    ----------
    basis : KernelBasis or None
        What the weights of the model are coefficients of; None: the inputs themselves.
    report : KernelReport or None
        How well training knew the kernel.
    """

    def __init__(
        self, basis: KernelBasis | None, report: KernelReport | None, mapping: Any = None
    ) -> None:
        self.basis, self.report, self._mapping = basis, report, mapping

    @classmethod
    def fit(cls, estimator: Any, X: Any, labels: Any) -> tuple[Any, FittedKernel]:
        """Features to train on: those of the kernel, or X itself; each row of X has a label."""
        if isinstance(estimator.kernel, str) and estimator.kernel == "linear":
            return X, LINEAR
        check_sparse(X, "X")
        mapping = estimator._kernel_map()
        if mapping.random_state is None and mapping.basis != "pivots":
            mapping.random_state = seed_of(estimator.random_state)
        features = mapping._fit_checked(X, labels)
        report = KernelReport(
            len(mapping.basis_),
            mapping.trace_residual_,
            mapping.trace_residual_share_,
            int(features.nbytes + mapping.n_bytes_),
            mapping.n_bytes_,
        )
        return features, cls(mapping.basis_, report, mapping)

    def coefficients(
        self, learned: Sequence[Floats], width: int
    ) -> tuple[list[Floats], FittedKernel]:
        """Coefficients of the basis vectors that have any, and the kernel with those alone.

        They are made of the weights of the solutions for one C or for several, of which each
        feature has ``width``, one behind the other.
        """
        if self._mapping is None:
            return list(learned), self
        n = len(self._mapping.basis_) * width
        tables = [self._mapping.coefficients(w[:n].reshape(-1, width)) for w in learned]
        kept = self._mapping._matter(np.hstack(tables))
        basis = self._mapping.basis_.subset(kept)
        size = basis.n_bytes + sum(int(kept.sum()) * width * 8 for _ in tables)
        assert self.report is not None
        pairs = zip(tables, learned, strict=True)
        weights = [np.concatenate([table[kept].ravel(), w[n:]]) for table, w in pairs]
        return weights, FittedKernel(basis, self.report._replace(n_bytes_model=size))

    def n_inputs(self, n_features: int) -> int:
        """Features of an input that have weights, the constant one aside."""
        return n_features if self.basis is None else len(self.basis)

    def scores(self, scores: Callable[[Any], Floats], X: Any) -> Floats:
        """Scores of what the weights are for: the kernel's values with the basis, or X itself."""
        basis = self.basis
        if basis is None:
            return scores(X)
        slices = slices_of_rows(X.shape[0], len(basis))
        return np.concatenate([scores(basis.values(X[rows])) for rows in slices])

    def basis_for(self, name: str) -> KernelBasis:
        """The basis that an attribute is about; AttributeError, as hasattr expects it, for none."""
        if self.basis is None:
            raise AttributeError(f"{name} exists only once a model with a kernel is fitted")
        return self.basis

    def check_linear(self, name: str) -> None:
        """Raise AttributeError, as hasattr expects it, with a kernel."""
        if self.basis is not None:
            raise AttributeError(f"{name} needs kernel='linear'; other models have dual_coef_")

    def to_state(self) -> KernelModel | None:
        """What a file keeps."""
        if self.basis is None or self.report is None:
            return None
        return KernelModel(self.basis.to_state(), self.report)

    @classmethod
    def of_state(cls, model: KernelModel | None, n_features: int) -> FittedKernel:
        """The kernel that a file has."""
        return LINEAR if model is None else cls(model.basis.basis(n_features), model.report)


LINEAR = FittedKernel(None, None)


def check_no_kernel(estimator: Any, method: str) -> None:
    """Raise ValueError with a kernel: some things need features known in advance, or names."""
    if estimator._kernel.basis is not None or estimator.kernel != "linear":
        raise ValueError(
            f"{method} needs kernel='linear'; with others, train on features of a KernelMap"
        )


@dataclass(kw_only=True, eq=False, repr=False)
class Kernelized:
    """Kernels for estimators whose joint features are those of an input, placed by the output.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "precomputed"}, callable or KernelMap, default="linear"
        Instead of inner products of inputs, as in scikit-learn: ``(gamma <x, z> + coef0)^degree``,
        ``exp(-gamma |x - z|^2)``, or a function of two matrices that returns the values of all
        pairs of their rows. "precomputed": inputs are values, of the training inputs with each
        other in ``fit``, and of others with all training inputs later. A
        `maxmargin.features.KernelMap` has further options:
        ``KernelMap("rbf", gamma=0.1, n_components=300)``, say, for training in low rank.
    """

    kernel: Any = "linear"

    _kernel = LINEAR

    def _kernel_map(self) -> Any:
        """What makes features of the kernel, not fitted yet."""
        from ...features.kernels.map import KernelMap

        return clone(self.kernel) if isinstance(self.kernel, KernelMap) else KernelMap(self.kernel)

    @property
    def kernel_report_(self) -> KernelReport:
        """How well training knew the kernel, with one other than "linear"."""
        self._kernel.basis_for("kernel_report_")
        assert self._kernel.report is not None
        return self._kernel.report

    @property
    def support_(self) -> Ints:
        """Which training inputs the model is made of, with a kernel other than "linear"."""
        return self._kernel.basis_for("support_").indices

    @property
    def support_vectors_(self) -> Any:
        """These inputs."""
        return self._kernel.basis_for("support_vectors_").vectors

    def _weights_per_input(self) -> int:
        """How many weights each feature of an input has, one behind the other."""
        raise NotImplementedError

    def _kept_weights(self, learned: Sequence[Floats]) -> list[Floats]:
        """See `MaxMarginEstimator`: coefficients of the basis vectors that have any."""
        weights, self._kernel = self._kernel.coefficients(learned, self._weights_per_input())
        return weights

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn should know of the estimator."""
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.pairwise = getattr(self.kernel, "kernel", self.kernel) == PRECOMPUTED
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class KernelParameters(Kernelized):
    """Kernels with their options as parameters of the estimator.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "precomputed"} or callable, default="linear"
        Instead of inner products of inputs, as in scikit-learn: ``(gamma <x, z> + coef0)^degree``,
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
    n_components : int, optional
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
    n_components: int | None = None
    basis: Literal["pivots", "random", "kmeans++", "supports"] = "pivots"

    def _kernel_map(self) -> Any:
        """See `Kernelized`."""
        from ...features.kernels.map import KernelMap

        names = ("kernel", "gamma", "degree", "coef0", "kernel_params", "n_components", "basis")
        return KernelMap(**{name: getattr(self, name) for name in names})


def sequences_at_a_time(offsets: Ints, width: int) -> Iterator[tuple[int, int]]:
    """First and end of sequences whose tokens, of so many values each, are held at a time."""
    first, n = 0, len(offsets) - 1
    while first < n:
        limit = offsets[first] + rows_at_a_time(width) if width else offsets[-1]
        last = max(int(np.searchsorted(offsets, limit, side="right")) - 1, first + 1)
        yield first, last
        first = last
