"""What a solver keeps: whose it is, and that arrays are all of it."""

import numpy as np
import pytest

from cases import chain_case, multiclass_case
from maxmargin.core.formulation import Formulation
from maxmargin.engine.training.state import (
    add_prefix,
    fingerprint,
    from_text,
    of_kind,
    strip_prefix,
    to_text,
)
from maxmargin.solvers import SOLVERS, make_solver
from maxmargin.solvers.ascent.auto import AutoLoop
from maxmargin.solvers.ascent.dual_ascent import DualAscentState
from maxmargin.solvers.base import TrainingRequest
from maxmargin.solvers.cutting_plane.n_slack import NSlackState

CASES = {"chains": chain_case, "classes": multiclass_case}


def draw(name):
    """The same problem each time, as another object."""
    return CASES[name](np.random.default_rng(7)).problem


def first_passes(name, problem, **options):
    solver = make_solver(name, tol=None, max_passes=3, random_state=5, **options)
    return solver.solve(problem, Formulation(), 2.0)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("case", CASES)
def test_training_goes_on_from_arrays_as_from_the_state(case, name):
    """The same bits, in a process that has nothing but the arrays and the data."""
    if Formulation().slack not in SOLVERS[name].slacks:
        pytest.skip("another slack")
    problem = draw(case)
    result = first_passes(name, problem)
    arrays = {key: array.copy() for key, array in result.state.arrays().items()}
    again = draw(case)
    other = first_passes(name, again)  # with a state to be overwritten
    other.state.restore(arrays)
    if name in ("perceptron", "mira", "sgd", "pegasos"):
        other.state.trained_on = other.state.counted = again
    further = make_solver(name, tol=1e-4, max_passes=4, random_state=6)
    expected = further.solve(problem, Formulation(), 3.0, warm_start=result)
    other.w = result.w
    found = further.solve(again, Formulation(), 3.0, warm_start=other)
    assert found.w.tobytes() == expected.w.tobytes()
    assert found.n_oracle_calls == expected.n_oracle_calls
    assert (found.primal, found.dual) == (expected.primal, expected.dual)


def test_arrays_of_large_pools_and_bundles():
    """Candidates with weights of their own, and sparse planes."""
    wide = chain_case(np.random.default_rng(1), n_inputs=30_000).problem
    result = first_passes("one_slack", wide)
    assert result.state.pool.grows and not result.state.bundle.dense
    arrays = {key: array.copy() for key, array in result.state.arrays().items()}
    again = chain_case(np.random.default_rng(1), n_inputs=30_000).problem
    other = first_passes("one_slack", again)
    other.state.restore(arrays)
    further = make_solver("one_slack", tol=1e-3)
    expected = further.solve(wide, Formulation(), 3.0, warm_start=result)
    found = further.solve(again, Formulation(), 3.0, warm_start=other)
    assert found.w.tobytes() == expected.w.tobytes()


@pytest.mark.parametrize("case", CASES)
def test_states_belong_to_data_and_formulation(case):
    problem = draw(case)
    result = first_passes("auto", problem)
    state = result.state
    assert state.matches(problem, Formulation()) and state.matches(draw(case), Formulation())
    assert not state.matches(problem, Formulation("slack"))
    another = CASES[case](np.random.default_rng(8)).problem
    assert not state.matches(another, Formulation())
    assert of_kind(result, DualAscentState, problem, Formulation()) is state
    assert of_kind(result, NSlackState, problem, Formulation()) is None
    assert of_kind(None, DualAscentState, problem, Formulation()) is None


def test_fingerprints():
    assert fingerprint(draw("chains")) == fingerprint(draw("chains"))
    problem = draw("classes")
    before = fingerprint(problem)
    problem.labels[0] = 1 - problem.labels[0]
    assert fingerprint(problem) != before
    problem.unpicklable = lambda: None
    assert fingerprint(problem) is None


def test_loops_can_be_kept():
    problem = draw("chains")
    run = make_solver("auto").start(
        TrainingRequest(problem, Formulation(), 2.0, np.ones(problem.n_examples), None, ())
    )
    loop = AutoLoop(make_solver("auto"), run)
    loop.estimate, loop.schedule.age[0] = 0.1, 2
    kept = {key: array.copy() for key, array in loop.arrays().items()}
    estimate, ages = loop.estimate, loop.schedule.age.copy()
    loop.estimate, loop.trying, loop.momentum.pause = 0.0, True, 3
    loop.schedule.age[:] = 99
    loop.restore(kept)
    assert loop.estimate == estimate and np.array_equal(loop.schedule.age, ages)
    assert loop.momentum.pause != 3


def test_names_of_arrays():
    arrays = {"a": np.ones(2), "b.c": np.zeros(1)}
    assert set(add_prefix("x", arrays)) == {"x.a", "x.b.c"}
    assert set(strip_prefix("x", {**add_prefix("x", arrays), "xy.a": np.ones(1)})) == set(arrays)
    values = {"f": float("inf"), "s": "text", "l": [1, 2], "n": None}
    assert from_text(to_text(values)) == values
