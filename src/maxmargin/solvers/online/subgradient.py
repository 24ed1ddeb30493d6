"""Stochastic subgradient descent on the primal objective: `sgd` and `pegasos`.

Both minimise ``P(w) / (C sum_i s_i) = lambda/2 |w|^2 + mean hinge`` with lambda = 1/(C sum_i s_i),
the mean weighted by s, and step along a subgradient of the regulariser and of one hinge, or of a
few. Where examples come in chunks (`partial_fit`), the sums are over all that have come so far:
each chunk makes lambda smaller, and the weights go on from where they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np

from ...core.formulation import Formulation
from ...core.problem import Problem
from ...engine.steps.online_steps import SCALE, SUBGRADIENT, OnlineRule, make_state
from ...engine.violations import violations
from ...utils.validation import check_choice
from .solver import OnlineRun, OnlineSolver

__all__ = ["SGD", "Pegasos"]


@dataclass(frozen=True)
class SGD(OnlineSolver):
    """Stochastic subgradient descent as Chang & Yih (2013, Section 4.3) use it.

    The step sizes are ``eta_t = eta0 / (1 + eta0 r t)^0.75`` at the t-th update. By default eta0 is
    the one among 1/2, 1/4, ..., 1/32 whose pass over 1,000 examples gives them the smallest
    objective; these oracle calls count in the result, not in ``max_passes``.

    Parameters
    ----------
    schedule : {"bottou", "chang_yih"}
        The rate r by which step sizes fall. "chang_yih": ``1 / C``, as that paper prints it: its T
        is the number of updates. "bottou": ``lambda = 1 / (C sum_i s_i)``, n times slower, as in
        Bottou's programs, whom the paper says it follows.
    eta0 : float, optional
        First step size; chosen by trial if not given.
    sample : int
        Number of examples to choose it by.

    Notes
    -----
    **Deviations**

    * The schedule; ``schedule="chang_yih"`` gives the paper's. It is not the default because it is
      worse: after ten passes its objective on CoNLL-2000 (C = 0.11) is 3524 and F1 90.1, that of
      the default 1655 and 93.4; on OCR letters (C = 0.1) 2969 with 23.5 % of the letters wrong, and
      2342 with 16.7 %.
    * The paper does not say along which multiple of a subgradient it steps: here that of
      ``lambda/2 |w|^2 + hinge of the example``. Steps are never longer than ``1 / (2 lambda)``.
    * The objective of the trial has the lambda of all examples, not that of the sample.
    * Examples are visited in random passes. ``batch_size`` examples are decoded at the same
      weights; 1, the default, is the paper's.
    """

    average: bool = False
    schedule: Literal["bottou", "chang_yih"] = "bottou"
    eta0: float | None = None
    sample: int = 1000

    name: ClassVar[str] = "sgd"
    as_published: ClassVar[Mapping[str, Any]] = {"schedule": "chang_yih"}
    candidates: ClassVar[tuple[float, ...]] = (2.0**-1, 2.0**-2, 2.0**-3, 2.0**-4, 2.0**-5)

    def check(self, problem: Problem, formulation: Formulation, C: float) -> None:
        """See `Solver.check`."""
        super().check(problem, formulation, C)
        if self.eta0 is not None and not (np.isfinite(self.eta0) and self.eta0 > 0):
            raise ValueError(f"eta0 must be positive and finite, got {self.eta0}")
        check_choice(self.schedule, ("bottou", "chang_yih"), "schedule")
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
        # 1 / C, where C is that of an example of mean weight.
        rate = decay if self.schedule == "bottou" else decay * training.learner.seen.count
        return OnlineRule(kind, False, training.C, decay, eta0, np.inf, self.average, rate)

    def _by_trial(self, training: OnlineRun) -> float:
        """Train on a sample with each candidate, and take the one of the smallest objective."""
        size = min(self.sample, len(training.examples))
        sample = training.learner.rng.choice(training.examples, size, replace=False)
        d, n = len(training.learner.state.v), len(training.weights)
        values = []
        for eta0 in self.candidates:
            state = make_state(d, n, False, False)
            training.oracle_pass(sample, self._with(eta0, training), state)
            values.append(training.objective(sample, state.numbers[SCALE] * state.v))
        return self.candidates[int(np.argmin(values))]


@dataclass(frozen=True)
class Pegasos(OnlineSolver):
    """Pegasos for structured outputs (Lee & Jang 2010, Alg. 3), ``eta_t = 1 / (lambda t)``.

    A step takes ``batch_size`` examples, the paper's k, and ends with a projection on a ball that
    holds the optimum.

    Parameters
    ----------
    radius : float or "paper", optional
        Radius of the ball; ``inf`` for no projection, "paper" for ``1 / sqrt(lambda)``. By default
        ``sqrt(L / lambda)`` with L the mean of the examples' largest losses, measured by one pass
        at w = 0.
    ratio : float, optional
        The paper's stopping rule, where it is 0.01: end after a pass that changes the objective by
        no more than this share of what it was. It takes a pass of oracle calls more for each pass.

    Notes
    -----
    **Deviations**

    * The paper's radius is ``1 / sqrt(lambda)``, right for losses up to 1 only: where losses count
      labels it cuts off the optimum. ``radius="paper"`` gives the paper's.
    * Training ends after ``max_passes``. With ``ratio=0.01`` it also ends by the paper's rule,
      ``|1 - f(w_(t+1)) / f(w_t)| <= 0.01``. The paper does not say how often it measures f; here
      t counts passes.
    * The paper draws each ``A_t`` anew; here passes visit every example once, in random order.
    * With ``average=True`` the average of all weights is returned; the paper has the last ones.
    """

    average: bool = False
    radius: float | Literal["paper"] | None = None
    ratio: float | None = None  # type: ignore[misc]

    name: ClassVar[str] = "pegasos"
    as_published: ClassVar[Mapping[str, Any]] = {"radius": "paper", "ratio": 0.01}

    def check(self, problem: Problem, formulation: Formulation, C: float) -> None:
        """See `Solver.check`."""
        super().check(problem, formulation, C)
        known = self.radius is None or self.radius == "paper"
        if not known and not (isinstance(self.radius, Real) and self.radius > 0):
            raise ValueError(f"radius must be positive or 'paper', got {self.radius!r}")
        if self.ratio is not None and not self.ratio >= 0:
            raise ValueError(f"ratio must be >= 0, got {self.ratio}")

    def rule(self, training: OnlineRun) -> OnlineRule:
        """See `OnlineSolver`."""
        if self.radius is None:
            radius = self._radius(training)
        else:
            radius = training.decay**-0.5 if self.radius == "paper" else float(self.radius)
        kind, decay = SUBGRADIENT, training.decay
        return OnlineRule(kind, False, training.C, decay, 0.0, radius, self.average)

    @staticmethod
    def _radius(training: OnlineRun) -> float:
        """The dual value at the optimum is at most C sum_i s_i L, and |w|^2 at most that.

        With bounds on weights L are the slacks at the weights nearest to zero, and half of |w|^2 at
        the optimum is at most the objective there.
        """
        seen, oracle = training.learner.seen, training.oracle
        start = np.zeros(len(training.learner.state.v))
        if oracle.feasible_set is not None:
            start[oracle.feasible_set.bounded] = np.clip(
                0.0, oracle.feasible_set.low, oracle.feasible_set.high
            )
        if training.has_new_examples or seen.measured == 0.0:
            for batch, oracle_result in oracle.call_all(training.examples, start):
                found = (
                    violations(oracle_result, start) if oracle.has_bounds else oracle_result.offsets
                )
                seen.losses += float(training.weights[batch] @ np.maximum(found, 0.0))
                seen.measured += float(training.weights[batch].sum())
                training.check()
        if oracle.has_bounds:
            square = start @ start + 2.0 * seen.losses / seen.measured / training.decay
            return float(np.sqrt(square))
        return float(np.sqrt(seen.losses / seen.measured / training.decay))
