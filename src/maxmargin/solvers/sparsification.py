"""Weights of fewer digits, and fewer of them, whose gap is certified like that of training.

Training leaves a dual value, which bounds the optimum whatever weights one looks at; the primal
value of other weights takes one pass of true oracle calls at them. So weights may be rounded and
dropped as far as one likes, and it is known how far from the optimum that leads.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..core.formulation import Formulation
from ..core.objective import Certificate, primal_value
from ..core.problem import Problem
from ..core.result import Result
from ..engine.training.verifying import hinge_values
from ..utils.types import Floats, Ints
from ..utils.validation import is_at_least
from .base import checked_weights

__all__ = ["check_tolerance", "sparsify"]

T = TypeVar("T")

BITS = (*range(2, 23), 23, None)  # of the fraction of a weight; 23: single precision, None: as is
FOR_ROUNDING = 0.25  # share of the growth of the gap that rounding may use; dropping uses the rest
STEPS = 128  # how finely the number of dropped weights is chosen
SAME = 1e-9  # relative difference of primal values that is rounding


def check_tolerance(trained: Result, tol: float) -> None:
    """Raise ValueError unless a tolerance is larger than the certified gap that there is."""
    gap = trained.relative_gap
    if gap is None:
        raise ValueError("compact needs a model with a certified gap, and this one has none")
    if not is_at_least(tol, 0, finite=False) or not tol > gap:
        raise ValueError(
            f"tol must be larger than the relative gap that the model has, {gap:.3g}, got {tol!r}"
        )


def sparsify(
    trained: Result,
    tol: float,
    problem: Problem,
    formulation: Formulation,
    C: float,
    *,
    sample_weight: ArrayLike | None = None,
) -> Result:
    """Shorter weights with their certificate.

    Parameters
    ----------
    trained : Result
        What training gave, with a certified gap.
    tol : float
        Largest relative gap of the shorter weights; see `check_tolerance`.
    problem, formulation, C, sample_weight
        What it was trained on, as for `Solver.solve`.

    Returns
    -------
    Result

    Raises
    ------
    ValueError
        If this is not the problem that the weights were trained on.
    """
    if formulation.slack == "none":
        raise ValueError("weights of a hard margin cannot be rounded: set slack='l1' or 'l2'")
    if not getattr(problem, "has_features", True):  # problems may be duck-typed
        raise ValueError(
            f"compact needs weights of features, but {type(problem).__name__} has a joint "
            "kernel, and its weights are coefficients of points"
        )
    weights = checked_weights(sample_weight, problem.n_examples)
    assert trained.dual is not None and trained.primal is not None

    def certificate(w: Floats) -> Certificate:
        """Of the weights nearest to these that satisfy all constraints."""
        slacks = hinge_values(problem, formulation, w)
        assert trained.dual is not None
        change = formulation.change(w)
        return Certificate(primal_value(change, slacks, formulation, C, weights), trained.dual)

    w, size = trained.w, problem.n_features
    primal = certificate(w).primal if w.shape == (size,) else np.inf
    if not abs(primal - trained.primal) <= SAME * max(abs(primal), abs(trained.primal)):
        raise ValueError(
            "compact needs the data and parameters of the training: the objective of the "
            f"weights was {trained.primal:.10g}, and with these data it is {primal:.10g}"
        )
    own = Certificate(trained.primal, trained.dual).relative_gap
    for_rounding = own + FOR_ROUNDING * (tol - own)
    bits = _first(BITS, lambda b: certificate(_rounded(w, b)).relative_gap <= for_rounding)
    rounded = formulation.nearest(_rounded(w, bits))
    order = np.argsort(np.abs(rounded), kind="stable")
    order = order[np.searchsorted(np.abs(rounded[order]), 0.0, side="right") :]
    counts = np.unique(np.linspace(len(order), 0, STEPS + 1).astype(np.int64))[::-1]
    dropped = _first(
        counts.tolist(),
        lambda k: certificate(_without(rounded, order[:k])).relative_gap <= tol,
    )
    short = formulation.nearest(_without(rounded, order[:dropped]))
    return dataclasses.replace(
        trained,
        w=short,
        primal=certificate(short).primal,
        converged=True,
        status="compacted",
        bound_gap=None,
        state=None,
    )


def _first(candidates: Sequence[T], is_good: Callable[[T], bool]) -> T:
    """The first good candidate, by bisection; the last is known to be one."""
    low, high = 0, len(candidates) - 1
    while low < high:
        middle = (low + high) // 2
        if is_good(candidates[middle]):
            high = middle
        else:
            low = middle + 1
    return candidates[high]


def _rounded(w: Floats, bits: int | None) -> Floats:
    """Numbers of single precision with so many bits behind the leading one."""
    if bits is None or np.abs(w).max(initial=0.0) > np.finfo(np.float32).max / 2:
        return w
    fractions, exponents = np.frexp(w)
    scaled = np.rint(np.ldexp(fractions, bits + 1))
    return np.ldexp(scaled, exponents - bits - 1).astype(np.float32).astype(np.float64)


def _without(w: Floats, dropped: Ints) -> Floats:
    """The weights, with 0 in place of some."""
    kept = w.copy()
    kept[dropped] = 0.0
    return kept
