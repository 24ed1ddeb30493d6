"""What results say beside the certificate: support vectors, where time went, measured histories."""

import numpy as np
import pytest

from cases import chain_case, multiclass_case
from maxmargin.core.formulation import Formulation
from maxmargin.core.result import HistoryCallback
from maxmargin.solvers import SOLVERS, make_solver
from online import bare


def case_of(structure):
    rng = np.random.default_rng(3)
    if structure == "chain":
        return chain_case(rng, lengths=rng.integers(2, 6, 20), n_inputs=5, K=3)
    return multiclass_case(rng, n=30, n_inputs=5, K=4)


def solve(solver, problem, **options):
    made = make_solver(solver, **({"tol": 1e-2} | options))
    return made.solve(problem, Formulation(slack=made.slacks[0]), 0.1)


@pytest.mark.parametrize("structure", ["chain", "classes", "bare chain"])
@pytest.mark.parametrize("name", SOLVERS)
def test_time_and_work_are_divided(name, structure):
    problem = case_of(structure.split()[-1]).problem
    result = solve(name, bare(problem) if "bare" in structure else problem)
    assert result.oracle_seconds > 0.0 and result.step_seconds >= 0.0
    assert result.oracle_seconds + result.step_seconds <= result.seconds * (1.0 + 1e-9)
    assert result.other_seconds >= 0.0
    assert result.oracle_work > 0.0
    assert (result.step_work > 0.0) == hasattr(result.state, "store") or name == "n_slack"


def test_steps_take_time_where_there_are_many():
    result = solve("one_slack", bare(case_of("chain").problem), tol=1e-6)
    assert result.step_seconds > 0.0


@pytest.mark.parametrize("structure", ["chain", "classes"])
@pytest.mark.parametrize("name", ["auto", "sda", "one_slack", "n_slack", "dcd"])
def test_support_vectors_are_planes_with_weight(name, structure):
    result = solve(name, case_of(structure).problem)
    assert 0 < result.n_support_vectors <= result.n_planes
    arrays = result.state.arrays()
    alpha = next(value for key, value in arrays.items() if key.split(".")[-1] == "alpha")
    assert result.n_support_vectors <= np.count_nonzero(alpha)
    assert f"support vectors  {result.n_support_vectors}" in str(result)


def test_n_slack_counts_support_vectors_as_the_multipliers_say():
    result = solve("n_slack", case_of("chain").problem)
    slots, _ = result.state.sets.owners()
    assert result.n_support_vectors == np.count_nonzero(result.state.sets.sets.alpha[slots])


@pytest.mark.parametrize("name", ["auto", "dcd", "one_slack", "sgd"])
def test_the_history_has_what_is_measured(name):
    problem = case_of("chain").problem
    every, seen = np.arange(problem.n_examples), []

    def loss(w):
        seen.append(w.copy())
        return problem.predictions(every, w).losses.mean()

    watching = HistoryCallback(
        primal=lambda w: float(w @ w), test_loss=loss, score=lambda w: 1.0 - loss(w)
    )
    made = make_solver(name, tol=1e-2, max_passes=20)
    result = made.solve(problem, Formulation(slack=made.slacks[0]), 0.1, callbacks=[watching])
    plain = made.solve(problem, Formulation(slack=made.slacks[0]), 0.1)
    assert result.w.tobytes() == plain.w.tobytes()
    assert result.n_oracle_calls == plain.n_oracle_calls
    assert len(seen) == 2 * len(result.history)
    for record, w in zip(result.history, seen[::2], strict=True):
        assert record.score == pytest.approx(1.0 - record.test_loss)
        known = record.gap is not None
        assert known or record.primal == pytest.approx(float(w @ w))
    assert any(record.primal is not None for record in result.history)


def test_the_clock_stands_still_while_weights_are_measured():
    import time

    problem = case_of("classes").problem

    def slow(w):
        time.sleep(0.2)
        return 0.0

    result = make_solver("sda", tol=1e-2).solve(
        problem, Formulation(), 0.1, callbacks=[HistoryCallback(score=slow)]
    )
    assert len(result.history) >= 2 and result.seconds < 0.2 * len(result.history)
