"""What tests of solvers share: run one by name, and check what it returns against a generic QP."""

import functools

import numpy as np
import pytest

from brute import all_planes, slacks
from checking import RESCALINGS as RESCALINGS
from exact_qp import solve_exactly
from maxmargin.core.formulation import Formulation
from maxmargin.core.objective import primal_value
from maxmargin.engine.training.verifying import hinge_values
from maxmargin.problems.chain.problem import ChainProblem
from maxmargin.problems.classes.multiclass import MulticlassProblem
from maxmargin.solvers import SOLVERS as ALL_SOLVERS
from maxmargin.solvers import make_solver
from structures import small_case as small_case

# Online solvers promise no precision; they have tests of their own. Squared slacks are in
# test_squared_slack.py.
SOLVERS = {
    name: solver
    for name, solver in ALL_SOLVERS.items()
    if solver.certified and "l1" in solver.slacks
}
# Frank-Wolfe steps converge like 1/k, too slowly for high precision where C is not small.
SLOW = ("bcfw",)
ONLINE = [name for name, solver in ALL_SOLVERS.items() if not solver.certified]
PRECISE = [name for name in SOLVERS if name not in SLOW]
# Small problems take tens of passes; limits turn a solver that is stuck into a failure.
# The time is never reached, but for a defect: compiling may take a minute on a busy machine.
PASSES, SECONDS = 5000, 600.0


def medium_classes():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 200)
    X = rng.normal(size=(4, 10))[y] + rng.normal(size=(200, 10))
    return MulticlassProblem(X, y, fit_intercept=True)


def medium_chains():
    rng = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 9, 200))])
    labels = rng.integers(0, 4, offsets[-1])
    tokens = rng.normal(size=(4, 10))[labels] + rng.normal(size=(offsets[-1], 10))
    return ChainProblem(tokens, offsets, labels, loss="normalized_hamming", boundary_weights=True)


def solve(
    solver,
    problem,
    C,
    formulation=None,
    *,
    tol=1e-7,
    max_passes=PASSES,
    max_time=SECONDS,
    **arguments,
):
    """Run a solver by name; parameters of `solve` are told from those of the solver."""
    call = {
        name: arguments.pop(name)
        for name in ("sample_weight", "warm_start", "callbacks")
        if name in arguments
    }
    solver = make_solver(solver, tol=tol, max_passes=max_passes, max_time=max_time, **arguments)
    return solver.solve(problem, formulation or Formulation(), C, **call)


@functools.lru_cache(maxsize=64)
def planes_of(twin, formulation):
    return all_planes(twin, formulation)


@functools.lru_cache(maxsize=64)
def _optimum(twin, C, formulation, weights):
    return solve_exactly(planes_of(twin, formulation), C, weights, slack=formulation.slack)


def optimum_of(case, C, formulation=None, sample_weight=None):
    """The exact solution, found once for all solvers that are compared with it."""
    weights = None if sample_weight is None else tuple(sample_weight)
    return _optimum(case.twin, C, formulation or Formulation(), weights)


def check_certificate(result, case, C, formulation=None, sample_weight=None):
    """The certificate is true: its primal value by definition, its dual below the optimum."""
    formulation = formulation or Formulation()
    weights = np.ones(case.twin.n_examples) if sample_weight is None else np.array(sample_weight)
    blocks = planes_of(case.twin, formulation)
    power = 2 if formulation.slack == "l2" else 1
    primal = 0.5 * result.w @ result.w + C * float(weights @ slacks(blocks, result.w) ** power)
    assert result.primal == pytest.approx(primal, rel=1e-9, abs=1e-12)
    recomputed = hinge_values(case.problem, formulation, result.w)
    assert result.primal == pytest.approx(
        primal_value(result.w, recomputed, formulation, C, weights), rel=1e-9, abs=1e-12
    )
    optimum = optimum_of(case, C, formulation, sample_weight)
    rounding = 1e-9 * max(1.0, optimum.primal)
    assert optimum.dual - rounding <= result.primal
    assert result.dual <= optimum.primal + rounding
    assert result.gap == result.primal - result.dual >= -rounding
    if result.primal > 0:
        assert result.relative_gap == pytest.approx(result.gap / result.primal)
    return optimum


def check_optimal(result, case, C, formulation=None, sample_weight=None, precision=1e-6):
    assert result.converged and result.status == "converged", (result.status, result.relative_gap)
    optimum = check_certificate(result, case, C, formulation, sample_weight)
    assert result.primal == pytest.approx(optimum.value, rel=precision, abs=1e-9)
    # The optimal w is unique, and as near as the gap tells.
    distance = float(np.linalg.norm(result.w - optimum.w))
    assert distance <= np.sqrt(2.0 * (max(result.gap, 0.0) + 1e-8 * max(1.0, result.primal)))
