"""How a loss and a feature difference become a plane, and how the papers' constants convert.

Notation, used throughout the package. Examples ``(x_i, y_i)``, ``i = 1..n``, with joint features
``psi(x, y)`` and a loss ``Delta(y_i, y) >= 0`` that is zero at the truth. For a candidate ``y``

    dpsi_i(y) = psi(x_i, y_i) - psi(x_i, y).

A *plane* ``(b, a)`` has the hinge value ``b - <a, w>``. Solvers see planes only; this module turns
``(Delta, dpsi)`` into planes:

=================================  =====  =========  ===========  =================
formulation                        slack  rescaling  b            a
=================================  =====  =========  ===========  =================
SVM0 (hard margin)                 none   none       1            dpsi
SVM1 / SVM2                        l1/l2  none       1            dpsi
SVM1 Delta-s                       l1     slack      Delta        Delta dpsi
SVM1 Delta-m                       l1     margin     Delta        dpsi
SVM2 Delta-s                       l2     slack      sqrt(Delta)  sqrt(Delta) dpsi
SVM2 Delta-m                       l2     margin     sqrt(Delta)  dpsi
L2-loss SSVM (``sqrt_loss=False``)  l2     margin     Delta        dpsi
=================================  =====  =========  ===========  =================

The names SVM0, SVM1, SVM2 are those of Tsochantaridis et al. (2005); the last row is the
formulation of Chang & Yih (2013).

With `WeightConstraints` planes are those of the change from the weights' mean (`engine.oracle`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..utils.types import Floats
from ..utils.validation import check_choice
from .weight_constraints import WeightConstraints

__all__ = ["C_from_paper", "C_to_paper", "Formulation"]

Rescaling = Literal["margin", "slack", "none"]
RESCALINGS: tuple[Rescaling, ...] = ("margin", "slack", "none")
Slack = Literal["l1", "l2", "none"]
Convention = Literal["joachims", "tsochantaridis", "franc", "chang_yih"]


@dataclass(frozen=True)
class Formulation:
    """The kind of structural SVM that is trained.

    Parameters
    ----------
    rescaling : {"margin", "slack", "none"}
        What the loss rescales. ``"none"`` asks for a margin of 1 over every wrong output.
    slack : {"l1", "l2", "none"}
        Whether slacks enter the objective linearly, squared, or not at all (hard margin).
    sqrt_loss : bool, optional
        Use the square root of the loss. By default true for squared slacks, so that they still
        bound the loss, and false otherwise.
    constraints : WeightConstraints, optional
        What the weights must satisfy, or are drawn to.
    """

    rescaling: Rescaling = "margin"
    slack: Slack = "l1"
    sqrt_loss: bool | None = None
    constraints: WeightConstraints | None = None

    def __post_init__(self) -> None:
        check_choice(self.rescaling, ("margin", "slack", "none"), "rescaling")
        check_choice(self.slack, ("l1", "l2", "none"), "slack")
        if self.sqrt_loss is not None and not isinstance(self.sqrt_loss, (bool, np.bool_)):
            raise ValueError(f"sqrt_loss must be None, True or False, got {self.sqrt_loss!r:.60}")
        if self.constraints is not None:
            if not isinstance(self.constraints, WeightConstraints):
                raise ValueError(
                    f"constraints must be WeightConstraints or None, got {self.constraints!r:.60}"
                )
            if self.slack == "none":
                raise ValueError(
                    "constraints on weights are not for hard margins (slack='none'): use "
                    "slack='l1' or 'l2' with a large C"
                )

    @property
    def uses_sqrt_loss(self) -> bool:
        """Whether planes are built from the square root of the loss."""
        if self.rescaling == "none":
            return False
        return self.slack == "l2" if self.sqrt_loss is None else self.sqrt_loss

    def change(self, w: Floats) -> Floats:
        """What solvers have for w: with constraints the change from the mean, else w itself."""
        return w if self.constraints is None else self.constraints.feasible_set(len(w)).change(w)

    def nearest(self, w: Floats) -> Floats:
        """The weights nearest to w that satisfy the constraints, if there are any."""
        return w if self.constraints is None else self.constraints.feasible_set(len(w)).nearest(w)

    def __str__(self) -> str:
        loss = ", sqrt loss" if self.uses_sqrt_loss else ""
        bound = ", constraints on weights" if self.constraints is not None else ""
        return f"slack={self.slack!r}, rescaling={self.rescaling!r}{loss}{bound}"

    def plane_terms(self, losses: Floats) -> tuple[Floats, Floats]:
        """Return ``(b, scale)`` for candidates of these losses; the plane is ``(b, scale * dpsi)``.

        The truth has no loss and no ``dpsi``: its plane is zero. Without rescaling a candidate
        that has no loss counts as the truth.
        """
        losses = np.asarray(losses, dtype=np.float64)
        if self.rescaling == "none":
            wrong = (losses > 0).astype(np.float64)
            return wrong, wrong
        offsets = np.sqrt(losses) if self.uses_sqrt_loss else losses
        return offsets, (offsets if self.rescaling == "slack" else np.ones_like(losses))


def C_from_paper(C: float, n_examples: int, convention: Convention, slack: Slack = "l1") -> float:
    """Convert a paper's regularisation constant to the ``C`` of this package.

    ``"joachims"`` and ``"tsochantaridis"`` divide by n (l1: C/n sum xi; l2: C/2n sum xi^2),
    ``"franc"`` gives lambda = 1/(n C), ``"chang_yih"`` uses our own convention.

    Parameters
    ----------
    C : float
        The paper's constant (lambda for ``"franc"``).
    n_examples : int
        Number of training examples.
    convention : {"joachims", "tsochantaridis", "franc", "chang_yih"}
        Whose convention ``C`` follows.
    slack : {"l1", "l2"}
        The formulation's slack.

    Returns
    -------
    float
        ``C`` such that the objective is ``1/2 |w|^2 + C sum_i xi_i`` (or ``xi_i^2``).
    """
    return (
        1.0 / (n_examples * C)
        if convention == "franc"
        else C / _factor(n_examples, convention, slack)
    )


def C_to_paper(C: float, n_examples: int, convention: Convention, slack: Slack = "l1") -> float:
    """Convert this package's ``C`` to a paper's constant; the inverse of `C_from_paper`."""
    return (
        1.0 / (n_examples * C)
        if convention == "franc"
        else C * _factor(n_examples, convention, slack)
    )


def _factor(n_examples: int, convention: str, slack: str) -> float:
    """Return C_paper / C for the papers whose constant is proportional to ours."""
    if convention == "chang_yih":
        return 1.0
    if convention == "tsochantaridis":
        return 2.0 * n_examples if slack == "l2" else float(n_examples)
    if convention == "joachims":
        return float(n_examples)
    raise ValueError(
        "convention must be 'joachims', 'tsochantaridis', 'franc' or 'chang_yih', "
        f"got {convention!r}"
    )
