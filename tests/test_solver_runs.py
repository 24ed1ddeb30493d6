"""When solvers stop, what they report on the way, and where they start."""

import time

import numpy as np
import pytest

from cases import chain_case, multiclass_case
from maxmargin.core.formulation import Formulation
from maxmargin.engine.store.planes import PlaneStore
from maxmargin.problems.chain.problem import ChainProblem
from maxmargin.solvers import make_solver
from maxmargin.solvers.base import TrainingRequest
from solving import (
    PRECISE,
    SOLVERS,
    check_certificate,
    check_optimal,
    medium_chains,
    optimum_of,
    small_case,
    solve,
)


def long_case(structure):
    """A problem that takes every solver several passes: to be stopped on the way."""
    if structure == "chain":
        return small_case("chain", "zero_one", 1)
    return multiclass_case(np.random.default_rng(0), n=60, n_inputs=20, K=7)


# ----- when to stop ------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_either_criterion_suffices(structure, solver):
    case = small_case(structure, "zero_one", 1)
    weights = np.linspace(0.5, 2.0, case.problem.n_examples)
    C = 0.4

    def run(**criteria):
        return solve(solver, case.problem, C, sample_weight=weights, **criteria)

    for result in (
        run(tol=None, epsilon=0.05),
        run(tol=1e-15, epsilon=0.05),
        run(tol=0.0, epsilon=0.05),
    ):
        assert result.converged and result.status == "converged"
        assert result.gap / (C * weights.sum()) <= 0.05
    for result in (run(tol=0.1), run(tol=0.1, epsilon=1e-15)):
        assert result.converged and result.relative_gap <= 0.1


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_easy_target_takes_fewer_passes(solver):
    problem = medium_chains()
    passes = [solve(solver, problem, 0.05, tol=tol).n_passes for tol in (0.2, 1e-7)]
    assert passes[0] < passes[1]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_max_passes(structure, solver):
    case = long_case(structure)
    for criteria in ({"tol": 1e-12}, {"tol": None}):
        result = solve(solver, case.problem, 5.0, max_passes=2, **criteria)
        assert result.status == "max_passes" and not result.converged
        # One pass may begin before the limit, and one certifies.
        assert 2.0 <= result.n_passes <= 4.0
        check_certificate(result, case, 5.0)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_max_time(structure, solver):
    case = long_case(structure)
    result = solve(solver, case.problem, 5.0, tol=1e-12, max_time=0.0)
    assert result.status == "max_time" and not result.converged
    assert result.n_passes <= 2.0
    check_certificate(result, case, 5.0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_limit_that_is_not_needed_changes_nothing(solver):
    case = small_case("multiclass", "zero_one", 0)
    result = solve(solver, case.problem, 0.05, tol=1e-2, max_passes=10**6, max_time=3600.0)
    assert result.converged and result.status == "converged"


# ----- history and callbacks ---------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_history(structure, solver):
    case = small_case(structure, "zero_one", 2)
    seen = []
    result = solve(solver, case.problem, 0.3, tol=1e-3, callbacks=[seen.append])
    history = result.history
    assert seen == history and len(history) >= 1
    optimum = optimum_of(case, 0.3)
    duals = np.array([record.dual for record in history])
    assert np.all(np.diff(duals) >= -1e-10 * abs(duals[-1])), "the dual never falls"
    assert np.all(duals <= optimum.primal * (1.0 + 1e-9))
    for name in ("seconds", "oracle_calls"):
        assert np.all(np.diff([getattr(record, name) for record in history]) >= 0)
    for record in history:
        assert (record.primal is None) == (record.gap is None)
        if record.gap is not None:
            assert record.primal >= result.primal
            assert record.gap == pytest.approx(record.primal - record.dual)
            assert record.primal >= optimum.dual * (1.0 - 1e-9)
        assert record.planes > 0
    last = history[-1]
    assert (last.primal, last.dual) == (result.primal, result.dual)
    assert last.oracle_calls == result.n_oracle_calls
    assert last.planes == result.n_planes
    assert result.n_passes == result.n_oracle_calls / case.problem.n_examples
    assert result.seconds >= last.seconds


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_a_callback_stops_training(structure, solver):
    case = long_case(structure)
    seen, others = [], []

    def stop_at_third(progress):
        seen.append(progress)
        return len(seen) == 3

    result = solve(solver, case.problem, 5.0, tol=1e-14, callbacks=[stop_at_third, others.append])
    assert result.status == "callback" and not result.converged
    assert len(seen) <= 4  # the third, and perhaps the certificate at the end
    assert seen == others == result.history
    check_certificate(result, case, 5.0)


def test_an_error_in_a_callback_is_not_swallowed():
    def fail(progress):
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="the disk is full"):
        solve("auto", small_case("chain", "hamming", 0).problem, 1.0, callbacks=[fail])


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_an_interrupt_returns_the_best_so_far(structure, solver):
    case = long_case(structure)
    seen = []

    def interrupt(progress):
        seen.append(progress)
        if len(seen) == 2:
            raise KeyboardInterrupt

    result = solve(solver, case.problem, 5.0, tol=1e-14, callbacks=[interrupt])
    assert result.status == "interrupted" and not result.converged
    check_certificate(result, case, 5.0)


def test_an_interrupt_is_told_even_where_the_target_is_met():
    case = small_case("chain", "zero_one", 1)

    def interrupt(progress):
        raise KeyboardInterrupt

    result = solve("auto", case.problem, 0.01, tol=0.9, callbacks=[interrupt])
    assert result.status == "interrupted" and result.converged


@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_an_impatient_user_gets_a_certificate_all_the_same(structure):
    """Ctrl-C again and again: what was certified before the last one is returned."""
    case = long_case(structure)

    def interrupt(progress):
        raise KeyboardInterrupt

    try:
        result = solve("auto", case.problem, 5.0, tol=1e-14, callbacks=[interrupt])
    except KeyboardInterrupt:  # which would end the whole test run
        pytest.fail("the model is lost")
    assert result.status == "interrupted"
    check_certificate(result, case, 5.0)


def test_the_best_weights_are_kept():
    """A later certificate may be worse than an earlier one; the result is the best."""
    problem = chain_case(np.random.default_rng(0), lengths=(2,)).problem
    run = make_solver("auto").start(
        TrainingRequest(problem, Formulation(), 1.0, np.ones(1), None, ())
    )
    w = np.zeros(2)
    for primal in (3.0, 2.0, 5.0):
        w[:] = primal
        run.offer(primal, w)
    assert run.best[0] == 2.0 and run.best[1].tolist() == [2.0, 2.0]


class CountingChains(ChainProblem):
    calls = 0

    def oracle(self, indices, w, rescaling="margin", sqrt_loss=False):
        self.calls += len(indices)
        return super().oracle(indices, w, rescaling, sqrt_loss)

    def factored_oracle(self, indices, w, rescaling="margin", sqrt_loss=False):
        self.calls += len(indices)
        return super().factored_oracle(indices, w, rescaling, sqrt_loss)


@pytest.mark.parametrize("solver", SOLVERS)
def test_oracle_calls_are_counted_truly(solver):
    rng = np.random.default_rng(0)
    problem = CountingChains(rng.normal(size=(40, 3)), np.arange(0, 41, 4), rng.integers(0, 3, 40))
    result = solve(solver, problem, 0.1, tol=1e-2)
    assert result.n_oracle_calls == problem.calls
    assert result.n_passes == problem.calls / 10
    if solver == "fasole":
        assert result.n_cache_hits > 0


# ----- repeatable, and warm starts ---------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_a_seed_makes_training_repeatable(structure, solver, monkeypatch):
    """Decisions by measured time aside, which a clock that ticks evenly takes out."""
    case = small_case(structure, "zero_one", 1)

    def run(seed):
        ticks = iter(range(10**9))
        monkeypatch.setattr(time, "perf_counter", lambda: 1e-6 * next(ticks))
        result = solve(solver, case.problem, 0.5, tol=1e-3, random_state=seed)
        monkeypatch.undo()
        return result

    one, same = run(3), run(3)
    assert np.array_equal(one.w, same.w)
    assert (one.primal, one.dual, one.history) == (same.primal, same.dual, same.history)
    for seed in (None, np.random.default_rng(5)):
        assert run(seed).primal == pytest.approx(one.primal, rel=1e-3)


@pytest.mark.parametrize("solver", PRECISE)
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
@pytest.mark.parametrize("before", [0.01, 0.3, 10.0])
def test_a_warm_start_leads_to_the_same_optimum(structure, solver, before):
    case = small_case(structure, "zero_one", 1)
    earlier = solve(solver, case.problem, before)
    w = earlier.w.copy()
    result = solve(solver, case.problem, 0.3, warm_start=earlier)
    check_optimal(result, case, 0.3)
    assert np.array_equal(earlier.w, w), "the earlier result is left alone"
    if before == 0.3:
        assert result.n_passes <= 3.0
    weights = np.linspace(0.0, 2.0, case.problem.n_examples)
    again = solve(solver, case.problem, 0.3, warm_start=result, sample_weight=weights)
    check_optimal(again, case, 0.3, sample_weight=weights)
    back = solve(solver, case.problem, 0.3, warm_start=again)
    check_optimal(back, case, 0.3)


def test_a_warm_start_may_come_from_another_solver():
    case = small_case("chain", "hamming", 1)
    first = solve("sda", case.problem, 0.1)
    check_optimal(solve("auto", case.problem, 1.0, warm_start=first), case, 1.0)


def test_a_warm_start_of_another_problem_does_no_harm():
    case, other = small_case("chain", "hamming", 1), small_case("chain", "hamming", 0)
    earlier = solve("auto", other.problem, 1.0)
    check_optimal(solve("auto", case.problem, 1.0, warm_start=earlier), case, 1.0)
    earlier = solve("auto", case.problem, 1.0, Formulation("slack"))
    check_optimal(solve("auto", case.problem, 1.0, warm_start=earlier), case, 1.0)


def test_a_small_cache_still_leads_to_the_optimum():
    """Planes are dropped and merged all the time, yet certificates stay true."""
    case = chain_case(np.random.default_rng(0), lengths=[3] * 12, n_inputs=8, K=4)
    result = solve("auto", case.problem, 1.0, tol=1e-3, cache_mb=0.06)
    assert isinstance(result.state.store, PlaneStore)
    assert result.state.store.nbytes <= 0.06 * 2**20
    check_optimal(result, case, 1.0, precision=1e-3)
