"""Perceptron and MIRA: w follows mistakes, and the average of all weights is returned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..engine.online_steps import MIRA as MIRA_KIND
from ..engine.online_steps import PERCEPTRON, OnlineRule
from ..formulation import Formulation
from ..problem import Problem
from .online import OnlineRun, OnlineSolver

__all__ = ["MIRA", "Perceptron"]


@dataclass(frozen=True)
class Perceptron(OnlineSolver):
    """Averaged structured perceptron (Collins 2002): ``w += dpsi`` for each wrong prediction.

    It does not regularise, so C has no effect, nor has the formulation; a sample weight multiplies
    the steps of its example. Training ends early after a pass without a mistake.
    """

    name: ClassVar[str] = "perceptron"

    def rule(self, training: OnlineRun) -> OnlineRule:
        """See `OnlineSolver`."""
        return OnlineRule(PERCEPTRON, True, training.C, 0.0, 0.0, np.inf, self.average)


@dataclass(frozen=True)
class MIRA(OnlineSolver):
    """Margin-infused relaxed algorithm (Crammer et al. 2005), averaged, with k candidates.

    Each visit moves w as little as is needed to separate the truth from the k best candidates by
    their losses, or as far as pays:

        min  1/2 |w' - w|^2 + C s xi   s.t.  b_j - <a_j, w'> <= xi,  xi >= 0,   j = 1..k.

    Candidates are the formulation's most violated outputs at w.

    Parameters
    ----------
    k : int
        Candidates for each step; more than one need a problem with a search for the k best.
    """

    k: int = 1  # type: ignore[misc]

    name: ClassVar[str] = "mira"
    products: ClassVar[bool] = True

    def check(self, problem: Problem, formulation: Formulation, C: float) -> None:
        """See `Solver.check`."""
        super().check(problem, formulation, C)
        if self.k < 1:
            raise ValueError(f"k must be >= 1, got {self.k}")

    def rule(self, training: OnlineRun) -> OnlineRule:
        """See `OnlineSolver`."""
        return OnlineRule(MIRA_KIND, False, training.C, 0.0, 0.0, np.inf, self.average)
