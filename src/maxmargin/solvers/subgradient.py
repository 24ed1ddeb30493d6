"""Stochastic subgradient descent on the primal objective: `sgd` and `pegasos`.

Both minimise ``P(w) / (C sum_i s_i) = lambda/2 |w|^2 + mean hinge`` with lambda = 1/(C sum_i s_i),
the mean weighted by s, and step along a subgradient of the regulariser and of one hinge, or of a
few. Where examples come in chunks (`partial_fit`), the sums are over all that have come so far:
each chunk makes lambda smaller, and the weights go on from where they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..engine.online_steps import SCALE, SUBGRADIENT, OnlineRule, make_state
from ..engine.oracle import BATCH, batches
from ..formulation import Formulation
from ..problem import Problem
from .online import OnlineRun, OnlineSolver

__all__ = ["SGD", "Pegasos"]


@dataclass(frozen=True)
class SGD(OnlineSolver):
    """Stochastic subgradient descent, ``eta_t = eta0 / (1 + eta0 T / C)^0.75``.

    T counts passes, t / n after t steps, so that ``T / C = lambda t``, as in Bottou's schedule;
    it is how Chang & Yih (2013) state it, who leave open in which units. By default eta0 is the
    one among 1/2, 1/4, ..., 1/32 whose pass over 1,000 examples gives them the smallest objective;
    these oracle calls count in the result, not in ``max_passes``.

    Parameters
    ----------
    eta0 : float, optional
        First step size; chosen by trial if not given.
    sample : int
        Number of examples to choose it by.
    """

    average: bool = False
    eta0: float | None = None
    sample: int = 1000

    name: ClassVar[str] = "sgd"
    candidates: ClassVar[tuple[float, ...]] = (2.0**-1, 2.0**-2, 2.0**-3, 2.0**-4, 2.0**-5)

    def check(self, problem: Problem, formulation: Formulation, C: float) -> None:
        """See `Solver.check`."""
        super().check(problem, formulation, C)
        if self.eta0 is not None and not (np.isfinite(self.eta0) and self.eta0 > 0):
            raise ValueError(f"eta0 must be positive and finite, got {self.eta0}")
        if self.sample < 1:
            raise ValueError(f"sample must be >= 1, got {self.sample}")

    def rule(self, training: OnlineRun) -> OnlineRule:
        """See `OnlineSolver`."""
        learner = training.learner
        if self.eta0 is not None:
            learner.eta0 = self.eta0
        elif learner.eta0 is None:
            learner.eta0 = self._by_trial(training)
        return self._with(learner.eta0, training)

    def _with(self, eta0: float, training: OnlineRun) -> OnlineRule:
        """The rule with a first step size."""
        kind, decay = SUBGRADIENT, training.decay
        return OnlineRule(kind, False, training.C, decay, eta0, np.inf, self.average)

    def _by_trial(self, training: OnlineRun) -> float:
        """Train on a sample with each candidate, and take the one of the smallest objective."""
        size = min(self.sample, len(training.examples))
        sample = training.learner.rng.choice(training.examples, size, replace=False)
        d, n = len(training.learner.state.v), len(training.weights)
        values = []
        for eta0 in self.candidates:
            state = make_state(d, n, False, False)
            training.visit(sample, self._with(eta0, training), state)
            values.append(training.objective(sample, state.numbers[SCALE] * state.v))
        return self.candidates[int(np.argmin(values))]


@dataclass(frozen=True)
class Pegasos(OnlineSolver):
    """Pegasos for structured outputs (Lee & Jang 2010, Alg. 3), ``eta_t = 1 / (lambda t)``.

    A step takes ``batch_size`` examples, the paper's k. It ends with a projection on a ball that
    holds the optimum. The paper's has the radius ``1 / sqrt(lambda)``, which is right for losses up
    to 1; ours is ``sqrt(L / lambda)`` with L the mean of the examples' largest losses, measured by
    one pass at w = 0, for the paper's would cut off the optimum where losses count labels.

    Parameters
    ----------
    radius : float, optional
        Radius of the ball; ``inf`` for no projection.
    """

    average: bool = False
    radius: float | None = None

    name: ClassVar[str] = "pegasos"

    def check(self, problem: Problem, formulation: Formulation, C: float) -> None:
        """See `Solver.check`."""
        super().check(problem, formulation, C)
        if self.radius is not None and not self.radius > 0:
            raise ValueError(f"radius must be positive, got {self.radius}")

    def rule(self, training: OnlineRun) -> OnlineRule:
        """See `OnlineSolver`."""
        radius = self._radius(training) if self.radius is None else float(self.radius)
        kind, decay = SUBGRADIENT, training.decay
        return OnlineRule(kind, False, training.C, decay, 0.0, radius, self.average)

    @staticmethod
    def _radius(training: OnlineRun) -> float:
        """The dual value at the optimum is at most C sum_i s_i L, and |w|^2 at most that."""
        seen = training.learner.seen
        if training.has_new_examples or seen.measured == 0.0:
            nothing = np.zeros(len(training.learner.state.v))
            for batch in batches(training.examples, BATCH):
                answer = training.oracle.ask_features(batch, nothing)
                seen.losses += float(training.weights[batch] @ answer.offsets)
                seen.measured += float(training.weights[batch].sum())
                training.check()
        return float(np.sqrt(seen.losses / seen.measured / training.decay))
