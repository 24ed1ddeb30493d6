"""Training on outputs of which only a part is known: alternation between completing and training.

Of example i the outputs H_i agree with what is known; each of them is right, and costs nothing. Its
slack, here for margin rescaling,

    xi_i(w) = max_y [Delta_i(y) + <w, psi(x_i, y)>] - max_{h in H_i} <w, psi(x_i, h)>,

is a difference of convex functions of w (Yu & Joachims 2009, latent structural SVMs). With the
second maximum replaced by any one completion h the problem is an ordinary, convex structural SVM,
whose objective is an upper bound on the true one, and equal to it where h is the best completion.
So: complete at w, train to a certified gap, complete again. The true objective falls with every
round (a round that would raise it, by less than its gap, is not taken), towards a point that no
other completion improves: a local optimum, not a global one. For other rescalings the slack falls
with the score of the completion too, and the same holds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..core.formulation import Formulation
from ..core.objective import primal_value
from ..core.problem import Problem
from ..core.result import Callback, Result
from ..engine.oracle import Oracle
from ..engine.parallel.threads import count_threads
from ..utils.types import Floats, Ints
from .ascent.dual_ascent import DualAscentState
from .base import Solver, checked_weights
from .checkpoint_group import CheckpointGroup

__all__ = ["CCCP", "PartialProblem", "Round", "alternate"]


#: What ends a training from outside, so that another round might be better.
ENDED = ("interrupted", "callback", "max_time")


class PartialProblem(Protocol):
    """Examples of which outputs are known in part; a completion is an array of labels."""

    @property
    def n_examples(self) -> int:
        """Number of examples."""

    def first_weights(self, train: Callable[[Problem, Ints], Floats]) -> Floats:
        """Weights to begin with, by ``train`` on what is known; its examples name their origins."""

    def complete(self, w: Floats) -> Any:
        """The best completion of all examples at ``w``."""

    def completed(self, completion: Any) -> Problem:
        """The convex problem whose true outputs are these, and other right ones cost nothing."""

    def differing(self, one: Any, other: Any) -> Ints:
        """Examples whose completions differ."""


class Round(NamedTuple):
    """One round: training with completions as they were, and completing at the weights found.

    Attributes
    ----------
    objective : float
        The true objective, with the best completions at the weights found.
    bound : float
        The objective of the convex problem that was solved, at the same weights.
    gap : float or None
        Certified gap of the convex problem; None of solvers without.
    n_changed : int
        Examples whose completion changed afterwards.
    n_passes : float
        Oracle calls of the training divided by the number of examples.
    """

    objective: float
    bound: float
    gap: float | None
    n_changed: int
    n_passes: float


class CCCP(NamedTuple):
    """Where alternation ended: the last convex problem, its result, and all rounds.

    ``settled`` tells whether no further round would lower the objective by the tolerance. An
    interrupt ends it, whichever training it meets: the result has that status.
    """

    result: Result
    completion: Any
    rounds: list[Round]
    settled: bool


def alternate(
    partial: PartialProblem,
    solver: Solver,
    formulation: Formulation,
    C: float,
    *,
    sample_weight: Floats | None = None,
    max_rounds: int = 10,
    tol: float = 1e-2,
    callbacks: Iterable[Callback] = (),
) -> CCCP:
    """Complete and train in turn.

    Parameters
    ----------
    partial : PartialProblem
        The examples.
    solver : Solver
        Trains the convex problems, each up to its own tolerance and ``max_passes``; ``max_time`` is
        that of all rounds together.
    formulation : Formulation
        The kind of structural SVM.
    C : float
        Multiplies the sum of the slacks.
    sample_weight : array of shape (n_examples,), optional
        Multiplies each example's slack.
    max_rounds : int
        How often to train at most. After one round the result is that of the convex upper bound
        with the completions of the first weights.
    tol : float
        Stop when a round has lowered the objective by at most this share of it.
    callbacks : iterable of callable
        Called with a `Progress` after every outer iteration of the solver.

    The ``checkpoint`` of the solver, if it has one, keeps all rounds.
    """
    weights = checked_weights(sample_weight, partial.n_examples)

    def identity() -> dict[str, str]:  # limits of rounds included
        limits = {"max_passes": solver.max_passes, "max_rounds": max_rounds, "tolerance": tol}
        told = {name: repr(value) for name, value in limits.items()}
        return solver.identity(partial, formulation, C, weights) | told

    series = CheckpointGroup(solver, identity, ENDED)
    found = _rounds(
        partial, solver, formulation, C, weights, max_rounds, tol, tuple(callbacks), series
    )
    if found.settled or len(found.rounds) >= max_rounds:
        series.finish()
    return found


def _rounds(
    partial: PartialProblem,
    solver: Solver,
    formulation: Formulation,
    C: float,
    weights: Floats,
    max_rounds: int,
    tol: float,
    callbacks: tuple[Callback, ...],
    series: CheckpointGroup,
) -> CCCP:
    """See `alternate`."""
    end = _end(solver)

    def train(problem: Problem, own: Floats, warm: Result | None = None) -> Result:
        nonlocal end
        began = monotonic()
        step = series.train(
            solver if end is None else _limited(solver, end),
            lambda left: left.solve(
                problem, formulation, C, sample_weight=own, warm_start=warm, callbacks=callbacks
            ),
        )
        if end is not None:  # what was done before it was gone on with counts, too
            end -= max(0.0, step.seconds + step.compile_seconds - (monotonic() - began))
        return step

    def objective_of(problem: Problem, w: Floats) -> float:
        n_jobs = getattr(solver, "n_jobs", None)  # solvers may be duck-typed
        return _objective(problem, formulation, C, w, weights, n_jobs)

    begun: list[Result] = []

    def first(problem: Problem, origins: Ints) -> Floats:
        begun.append(train(problem, weights[origins]))
        return begun[-1].w

    w = partial.first_weights(first)
    completion = partial.complete(w)
    if begun and begun[-1].status == "interrupted":
        value = objective_of(partial.completed(completion), w)
        # No multipliers are known, and 0 is the dual value of none.
        dual = None if begun[-1].dual is None else 0.0
        step = dataclasses.replace(begun[-1], w=w, primal=value, dual=dual, state=None)
        rounds = [Round(value, value, step.gap, 0, step.n_passes)]
        return CCCP(step, completion, rounds, settled=False)
    kept: Result | None = None
    warm: Result | None = None
    rounds = []
    while True:
        problem = partial.completed(completion)
        step = train(problem, weights, warm)
        bound = step.primal
        if bound is None:
            bound = objective_of(problem, step.w)
        if kept is not None and bound >= rounds[-1].objective:
            if step.status == "interrupted":
                kept = dataclasses.replace(kept, status=step.status)
            return CCCP(kept, completion, rounds, settled=step.status not in ENDED)
        better = partial.complete(step.w)
        changed = partial.differing(completion, better)
        objective = bound
        if len(changed):
            following = partial.completed(better)
            objective = min(bound, objective_of(following, step.w))
        before = rounds[-1].objective if rounds else np.inf
        rounds.append(Round(objective, bound, step.gap, len(changed), step.n_passes))
        kept, completion = step, better
        settled = not len(changed) or before - objective <= tol * objective
        if settled or len(rounds) >= max_rounds or step.status in ("interrupted", "callback"):
            return CCCP(step, better, rounds, settled)
        if end is not None and monotonic() >= end:
            return CCCP(step, better, rounds, settled)
        warm = _moved(step, following, changed)


def _objective(
    problem: Problem,
    formulation: Formulation,
    C: float,
    w: Floats,
    weights: Floats,
    n_jobs: int | None,
) -> float:
    """The primal value at ``w``, by one true oracle call for each example."""
    oracle = Oracle(problem, formulation)
    change = oracle.change(w)
    with oracle.in_threads(count_threads(n_jobs)):
        slacks = oracle.bounded(oracle.violations(change).hinges)
    return primal_value(change, slacks, formulation, C, weights)


def _moved(step: Result, following: Problem, changed: Ints) -> Result | None:
    """A start for the next problem: planes of the examples that have not changed, if kept apart."""
    if not isinstance(step.state, DualAscentState):
        return None
    return dataclasses.replace(step, state=step.state.moved_to(following, changed))


def _end(solver: Solver) -> float | None:
    """When training has to end, by the clock of the machine."""
    limit = getattr(solver, "max_time", None)  # solvers may be duck-typed
    return None if limit is None else monotonic() + limit


def _limited(solver: Solver, end: float) -> Solver:
    """The solver with the time that is left."""
    return dataclasses.replace(solver, max_time=max(end - monotonic(), 0.0))
