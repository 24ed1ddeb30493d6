"""What online solvers learn with: weights, multipliers and what they have seen."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ...core.formulation import Formulation
from ...core.problem import Problem
from ...core.weight_constraints import WeightConstraints
from ...engine.steps.online_steps import (
    LINEAR,
    LINEAR_LAGGED,
    SCALE,
    SCALES,
    SQUARE,
    STEPS,
    TIME,
    OnlineState,
    make_state,
)
from ...engine.training.state import (
    Arrays,
    SolverState,
    add_prefix,
    from_text,
    named_arrays,
    strip_prefix,
    to_text,
)
from ...utils.schema import Amount, checked_arrays, from_values, numbers
from ...utils.types import Floats
from ..certify import DualPoint

__all__ = ["Learner", "Seen"]


@dataclass
class Seen(SolverState):
    """The examples that training has been given so far, in one problem after the other.

    Examples that come again with the same problem, or in a chunk whose fingerprint is among
    ``contents``, count once.
    """

    count: float = 0.0
    weight: float = 0.0  # sum of their weights, the s_i of the objective
    losses: float = 0.0  # of `pegasos`: sum of s_i times the largest loss of an output
    measured: float = 0.0  # sum of the weights of the examples in that
    contents: set[str] = field(default_factory=set)

    kind = "seen"

    def matches(self, problem: Problem, formulation: Formulation) -> bool:
        """See `SolverState`: what was seen before stays so."""
        return True

    def arrays(self) -> Arrays:
        """See `SolverState`."""
        values = {**dataclasses.asdict(self), "contents": sorted(self.contents)}
        return {"numbers": to_text(values)}

    def restore(self, arrays: Arrays) -> None:
        """See `SolverState`."""
        known = from_values(_SeenNumbers, from_text(arrays["numbers"]), "seen")
        self.count, self.weight, self.losses, self.measured, contents = known
        self.contents = set(contents)


class _SeenNumbers(NamedTuple):
    """See `Seen`."""

    count: Amount  # type: ignore[assignment]
    weight: Amount
    losses: Amount
    measured: Amount
    contents: list[str]


class _LearnerNumbers(NamedTuple):
    """See `Learner`."""

    average: bool
    eta0: Amount | None


class Learner(SolverState):
    """Weights on their way, and all that is needed to go on with them.

    Unlike the states of other solvers it goes on with any problem of these features.
    """

    kind = "online"

    def __init__(
        self,
        n_features: int,
        n_examples: int,
        average: bool,
        products: bool,
        rng: np.random.Generator,
    ) -> None:
        self.state: OnlineState = make_state(n_features, n_examples, average, products)
        self.rng = rng
        self.average = average
        self.eta0: float | None = None  # of `sgd`, once it has been chosen
        self.seen = Seen()
        self.counted: Problem | None = None  # whose examples have been counted last
        self.trained_on: Problem | None = None  # to which the multipliers belong
        self.constraints: WeightConstraints | None = None  # whose changes the weights are

    def matches(self, problem: Problem, formulation: Formulation) -> bool:
        """See `SolverState`: weights are good for any problem that has as many."""
        return len(self.state.v) == int(problem.n_features or 0)

    def arrays(self) -> Arrays:
        """See `SolverState`."""
        return {
            **add_prefix("state", named_arrays(self.state)),
            **add_prefix("seen", self.seen.arrays()),
            "numbers": to_text({"average": self.average, "eta0": self.eta0}),
            "rng": to_text(self.rng.bit_generator.state),
        }

    def restore(self, arrays: Arrays) -> None:
        """See `SolverState`."""
        n, d = len(self.state.alpha), len(self.state.v)
        known = from_values(_LearnerNumbers, from_text(arrays["numbers"]), "numbers")
        if known.average != self.average:
            raise ValueError("numbers.average: expected that of the solver")
        # A learner that has forgotten its examples has no scratch either, until it has others.
        n_scratch = (
            len(arrays["state.scratch"]) and len(self.state.scratch)
            if n == 0
            else len(self.state.scratch)
        )
        declared = {
            "v": numbers(d),
            "lagged": numbers(d if self.average else 0),
            "alpha": numbers(n, low=0.0),
            "alpha_lagged": numbers(n if self.average else 0),
            "numbers": numbers(len(self.state.numbers)),
            "scratch": numbers(n_scratch, low=0.0, high=0.0),
        }
        state = OnlineState(**checked_arrays(strip_prefix("state", arrays), declared))
        if not (state.numbers[[SCALE, SQUARE]] >= 0.0).all() or state.numbers[SCALE] == 0.0:
            raise ValueError("state.numbers: expected a positive scale")
        self.state, self.eta0 = state, known.eta0
        self.seen.restore(strip_prefix("seen", arrays))
        self.rng.bit_generator.state = from_text(arrays["rng"])

    def copy(self) -> Learner:
        """A learner that goes on from here and leaves this one as it is."""
        again = copy.copy(self)
        again.state = OnlineState(*(np.copy(array) for array in self.state))
        again.rng = copy.deepcopy(self.rng)
        again.seen = dataclasses.replace(self.seen, contents=set(self.seen.contents))
        return again

    def begin_at(self, w: Floats, steps: float) -> None:
        """Start from given weights, as if they came from so many steps."""
        self.state.v[:] = w
        self.state.numbers[SQUARE] = float(w @ w)
        self.state.numbers[TIME] = steps

    def turn_to(self, problem: Problem) -> None:
        """Go on with a problem; the multipliers behind w are lost if it is another than before."""
        if self.trained_on is problem:
            return
        self.trained_on = None
        zeros = np.zeros(problem.n_examples)
        lagged = zeros.copy() if self.average else np.zeros(0)
        self.state = self.state._replace(alpha=zeros, alpha_lagged=lagged)

    def forget_examples(self) -> None:
        """Drop all that belongs to the examples, such that the learner is as small as can be."""
        self.trained_on = self.counted = None
        self.state = self.state._replace(
            alpha=np.zeros(0), alpha_lagged=np.zeros(0), scratch=np.zeros(0)
        )

    @property
    def w(self) -> Floats:
        """The weights, averaged if the solver averages."""
        v, numbers = self.state.v, self.state.numbers
        if self.average and numbers[STEPS] > 0:
            averaged: Floats = (numbers[SCALES] * v - self.state.lagged) / numbers[STEPS]
            return averaged
        return numbers[SCALE] * v

    def dual_point(self, upper_bounds: Floats) -> DualPoint:
        """What w is made of, as multipliers; see `certify`."""
        state, numbers = self.state, self.state.numbers
        if self.average and numbers[STEPS] > 0:
            sums = (numbers[SCALES] * state.alpha - state.alpha_lagged) / numbers[STEPS]
            linear = (numbers[SCALES] * numbers[LINEAR] - numbers[LINEAR_LAGGED]) / numbers[STEPS]
        else:
            sums, linear = numbers[SCALE] * state.alpha, numbers[SCALE] * numbers[LINEAR]
        return DualPoint.strip_prefix(self.w, float(linear), sums, upper_bounds)
