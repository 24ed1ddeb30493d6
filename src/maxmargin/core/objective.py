"""Primal, dual and gap: the only definition, used by solvers, tests and benchmarks alike.

    P(w)     = 1/2 |w|^2 + C sum_i s_i xi_i      (slack "l1")
    P(w)     = 1/2 |w|^2 + C sum_i s_i xi_i^2    (slack "l2"),      xi_i = max(0, max_y b - <a, w>)
    P(w)     = 1/2 |w|^2, all xi_i = 0           (slack "none")

    D(alpha) = sum alpha b - 1/2 |sum alpha a|^2,  alpha >= 0, and
               sum_y alpha_i(y) <= C s_i                           (slack "l1")
               minus sum_i (sum_y alpha_i(y))^2 / (4 C s_i)        (slack "l2")

With constraints on weights (`WeightConstraints`), w here and in all solvers is the change u from
the mean w0, and the planes are those of u. Bounds ``l <= u <= h`` on single changes have
multipliers beta, with ``w = sum alpha a + beta``, and add to the dual, in its ``linear`` part,

    sum_j (l_j max(beta_j, 0) + h_j min(beta_j, 0)).

A gap is a certificate only if the hinge values ``xi`` come from one full pass of true oracle calls
at ``w`` (`engine.oracle`); values remembered from earlier never enter it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..utils.types import Floats
from .formulation import Formulation

__all__ = [
    "NEGLIGIBLE",
    "Certificate",
    "DualTerms",
    "Stopping",
    "dual_value",
    "line_step",
    "primal_value",
    "ridges",
    "scale_to_fit",
]

NEGLIGIBLE = 1e-15  # share of a value below which a change of it is rounding


class Certificate(NamedTuple):
    """A primal and a dual value and what follows from them."""

    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """Duality gap, an upper bound on the suboptimality of the primal value."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """Gap divided by the primal value."""
        if self.primal == np.inf:  # where bounds of the oracle tell nothing
            return np.inf
        return self.gap / self.primal if self.primal > 0 else 0.0

    @property
    def is_contradictory(self) -> bool:
        """Whether the dual value exceeds the primal one by more than rounding."""
        return self.gap < -1e-6 * max(abs(self.primal), abs(self.dual), 1e-6)

    def __str__(self) -> str:
        return f"primal {self.primal:.6g}, dual {self.dual:.6g}, gap {self.gap:.4g}"


class DualTerms(NamedTuple):
    """What a dual value is made of: ``linear - (square + ridge) / 2``.

    Attributes
    ----------
    linear : float
        ``sum alpha b``.
    square : float
        ``|sum alpha a|^2``.
    ridge : float
        For squared slacks, ``sum_i (sum_y alpha_i(y))^2 / (2 C s_i)``; else 0.
    capped : bool
        Whether C bounds the multipliers, as for linear slacks.
    """

    linear: float
    square: float
    ridge: float
    capped: bool

    @classmethod
    def of(
        cls,
        w: Floats,
        linear: float,
        formulation: Formulation,
        block_sums: Floats,
        upper_bounds: Floats,
    ) -> DualTerms:
        """Those of multipliers with ``w = sum alpha a``; ``caps`` is ``C * sample_weight``."""
        ridge = float(ridges(formulation, upper_bounds) @ (block_sums * block_sums))
        return cls(linear, float(w @ w), ridge, formulation.slack == "l1")

    def at(self, ratio: float) -> float:
        """Largest dual value of these multipliers times a factor, for ``ratio`` times the C."""
        curvature = self.square + self.ridge / ratio
        if self.capped:
            factor = ratio if self.linear >= ratio * curvature else self.linear / curvature
        else:
            factor = self.linear / curvature if curvature > 0.0 else 0.0
        return factor * (self.linear - 0.5 * factor * curvature)


@dataclass(frozen=True)
class Stopping:
    """When a solution is good enough: either criterion that is given suffices.

    Parameters
    ----------
    tol : float, optional
        Relative gap, ``(P - D) / P <= tol``.
    epsilon : float, optional
        The papers' absolute criterion, ``(P - D) / (C sum_i s_i) <= epsilon``: units of mean loss.
    total_C : float
        ``C * sum_i s_i``.
    """

    tol: float | None
    epsilon: float | None
    total_C: float

    def target(self, dual: float) -> float:
        """Return the gap at which to stop for this dual value: ``P - D <= tol P`` in terms of D.

        In terms of a primal value the target would be far off as long as that is.
        """
        tol = 0.0 if self.tol is None else self.tol
        relative = tol / (1.0 - tol) * max(dual, 0.0) if tol < 1.0 else float("inf")
        return max(relative, self._absolute)

    def is_satisfied(self, certificate: Certificate) -> bool:
        """Whether the certificate satisfies a criterion."""
        if not np.isfinite(certificate.primal):  # as of a hard margin that is not met
            return False
        relative = self.tol * certificate.primal if self.tol is not None else 0.0
        return bool(certificate.gap <= max(relative, self._absolute))

    @property
    def _absolute(self) -> float:
        """The gap that epsilon allows."""
        return self.epsilon * self.total_C if self.epsilon is not None else 0.0


def line_step(slope: float, curvature: float, value: float = 0.0) -> tuple[float, float]:
    """Best step in [0, 1] along a direction of the dual, and the dual's increase.

    Where that is lost in the rounding of the dual's ``value`` the slope is no more than rounding
    either, and there is no step: it would lead anywhere.
    """
    if slope <= 0.0:
        return 0.0, 0.0
    step = min(1.0, slope / curvature) if curvature > 0.0 else 1.0
    gain = step * (slope - 0.5 * step * curvature)
    return (step, gain) if gain > NEGLIGIBLE * abs(value) else (0.0, 0.0)


def primal_value(
    w: Floats,
    slacks: Floats,
    formulation: Formulation,
    C: float,
    sample_weight: Floats | None = None,
    *,
    feasibility: float = 1e-9,
) -> float:
    """Primal objective at ``w``, given the slacks there."""
    regulariser = 0.5 * float(w @ w)
    if formulation.slack == "none":
        return regulariser if np.all(slacks <= feasibility) else float("inf")
    powers = slacks * slacks if formulation.slack == "l2" else slacks
    total = powers.sum() if sample_weight is None else powers @ sample_weight
    return regulariser + C * float(total)


def dual_value(
    w: Floats,
    linear: float,
    formulation: Formulation,
    C: float,
    block_sums: Floats | None = None,
    sample_weight: Floats | None = None,
) -> float:
    """Dual objective at multipliers with ``w = sum alpha a`` and ``linear = sum alpha b``.

    ``block_sums`` (each example's sum of multipliers) is needed for squared slacks only.
    """
    value = linear - 0.5 * float(w @ w)
    if formulation.slack == "l2":
        if block_sums is None:
            raise ValueError("the dual of squared slacks needs block_sums")
        squares = block_sums * block_sums
        if sample_weight is not None:
            used = sample_weight > 0
            squares = squares[used] / sample_weight[used]
        value -= float(squares.sum()) / (4.0 * C)
    return value


def ridges(formulation: Formulation, upper_bounds: Floats) -> Floats:
    """Per example, r of the term ``-r/2 (sum of multipliers)^2`` in the dual of squared slacks.

    ``caps`` is ``C * sample_weight``. Zero for other slacks, and for examples without weight, whose
    multipliers are zero: they are as if capped at 0.
    """
    if formulation.slack != "l2":
        return np.zeros(len(upper_bounds))
    return np.divide(0.5, upper_bounds, out=np.zeros(len(upper_bounds)), where=upper_bounds > 0)


def scale_to_fit(
    w: Floats,
    linear: float,
    formulation: Formulation,
    block_sums: Floats,
    old_upper_bounds: Floats,
    upper_bounds: Floats,
) -> float:
    """Factor by which multipliers scale when ``C * sample_weight`` changes to ``caps``.

    It makes the dual as large as such a factor can; capped blocks have to fit, and where one has to
    vanish all do.
    """
    used = old_upper_bounds > 0
    most = float(np.min(upper_bounds[used] / old_upper_bounds[used])) if used.any() else 1.0
    if most == 0.0:
        return 0.0
    square = 2.0 * (linear - dual_value(w, linear, formulation, 1.0, block_sums, upper_bounds))
    best = linear / square if square > 0.0 else 1.0
    return best if formulation.slack == "l2" else min(best, most)
