"""Perceptron and MIRA: w follows mistakes, and the average of all weights is returned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...core.formulation import Formulation
from ...core.problem import Problem
from ...engine.steps.online_steps import MIRA as MIRA_KIND
from ...engine.steps.online_steps import NO_CAP, PERCEPTRON, OnlineRule
from .solver import OnlineRun, OnlineSolver

__all__ = ["MIRA", "Perceptron"]


@dataclass(frozen=True)
class Perceptron(OnlineSolver):
    """Averaged structured perceptron (Collins 2002): ``w += dpsi`` for each wrong prediction.

    It does not regularise, so C has no effect, nor has the formulation; a sample weight multiplies
    the steps of its example. Training ends early after a pass without a mistake. It is Chang &
    Yih's (2013, Section 2.1) baseline.

    Notes
    -----
    **Deviations**

    * Examples are visited in random order, as Chang & Yih do; ``order="given"`` is Collins's.
    * Sample weights, and ``batch_size`` examples decoded at the same weights, are not in the paper;
      without weights and with 1, the default, the steps are the paper's.
    * Of several best outputs the problem's decoder decides which is the prediction.
    """

    name: ClassVar[str] = "perceptron"
    as_published: ClassVar[Mapping[str, Any]] = {}

    def rule(self, training: OnlineRun) -> OnlineRule:
        """See `OnlineSolver`."""
        return OnlineRule(PERCEPTRON, True, training.C, 0.0, 0.0, np.inf, self.average)


@dataclass(frozen=True)
class MIRA(OnlineSolver):
    """Margin-infused relaxed algorithm (Crammer et al. 2005), averaged, with k candidates.

    Each visit moves w as little as is needed to separate the truth from the k candidates by their
    losses, or as far as pays::

        min  1/2 |w' - w|^2 + C s xi   s.t.  b_j - <a_j, w'> <= xi,  xi >= 0,   j = 1..k.

    Chang & Yih (2013, Section 2.1) state it without the slack xi, and with the k best predictions
    at w as candidates; ours are the formulation's most violated outputs.

    Parameters
    ----------
    k : int
        Candidates for each step; more than one need a problem with a search for the k best.
    loss_augmented : bool
        Whether candidates are the most violated outputs, or else the best ones by score.
    capped : bool
        Whether steps are bounded by C. Without a bound C has no effect, and every constraint of a
        step is met that can be.

    Notes
    -----
    **Deviations**

    * ``MIRA(loss_augmented=False, capped=False)`` gives the algorithm that Chang & Yih state.
      Candidates that are not loss-augmented leave alone an example that is predicted right,
      however small its margin; the default is known as cost-augmented MIRA with slack.
    * With k > 1, the k best outputs are the best wrong ones; in the paper the truth may be among
      the k, where its constraint says nothing.
    * Wrong outputs with the very features of the truth cannot be separated; without a cap they are
      left out.
    * Slack rescaling, square-root losses and sample weights are not in the paper.
    """

    k: int = 1  # type: ignore[misc]
    loss_augmented: bool = True
    capped: bool = True

    name: ClassVar[str] = "mira"
    as_published: ClassVar[Mapping[str, Any]] = {"loss_augmented": False, "capped": False}
    products: ClassVar[bool] = True

    def check(self, problem: Problem, formulation: Formulation, C: float) -> None:
        """See `Solver.check`."""
        super().check(problem, formulation, C)
        if self.k < 1:
            raise ValueError(f"k must be >= 1, got {self.k}")

    def rule(self, training: OnlineRun) -> OnlineRule:
        """See `OnlineSolver`."""
        C, plain = training.C if self.capped else NO_CAP, not self.loss_augmented
        return OnlineRule(MIRA_KIND, plain, C, 0.0, 0.0, np.inf, self.average)
