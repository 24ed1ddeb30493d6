"""Training ends: by the target, by a limit, or where nothing moves any more."""

import dataclasses
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from cases import chain_case
from constrained import KINDS, objective, solve_constrained
from maxmargin.core.formulation import Formulation
from maxmargin.core.objective import Certificate, Stopping, line_step
from maxmargin.engine.training.convergence import NO_BETTER, WINDOW, Plateau, StallDetector
from maxmargin.solvers import make_solver
from solving import (
    ALL_SOLVERS,
    PRECISE,
    SOLVERS,
    check_certificate,
    check_optimal,
    small_case,
    solve,
)


def run(iterations, certificates, estimate=lambda k: 1.0, dual=lambda k: 1.0):
    """The iteration at which a run of this many is stopped, and how often it was certified."""
    stalling, made = StallDetector(), []

    def certify():
        made.append(Certificate(*certificates(len(made))))
        return made[-1]

    for k in range(iterations):
        if stalling.seen(estimate(k), dual(k), certify):
            return k, len(made)
    return None, len(made)


def test_a_plateau():
    plateau = Plateau()
    assert not any(plateau.seen(0.9**k) for k in range(200))
    assert [plateau.seen(1.0) for _ in range(2 * WINDOW)] == 2 * ([False] * (WINDOW - 1) + [True])
    assert not plateau.seen(-1.0), "it fell"


def test_nothing_is_certified_while_estimates_fall():
    assert run(500, lambda k: (1.0, 0.0), lambda k: 0.99**k) == (None, 0)


def test_nor_while_the_dual_value_rises():
    assert run(500, lambda k: (2.0, 1.0), dual=lambda k: 1.0 + 1e-11 * k) == (None, 0)


def test_bounds_that_move_are_progress():
    assert run(500, lambda k: (1.0 + 0.9**k, 1.0))[0] is None
    assert run(500, lambda k: (2.0, 1.0 + 1e-12 * k))[0] is None


def test_bounds_that_stand_still_are_not():
    stopped, certified = run(500, lambda k: (2.0, 1.0 + 1e-16 * k))
    assert certified == 1 + NO_BETTER and stopped == WINDOW * (1 + certified)


def test_a_negligible_gap_is_not_waited_for():
    stalling, made = StallDetector(), []

    def certify():
        made.append(Certificate(1e-12, 0.0))
        return made[-1]

    stopped = [stalling.seen(1e-12, 0.0, certify, negligible=True) for _ in range(9)]
    assert stopped.index(True) == 2 + NO_BETTER and len(made) >= 1 + NO_BETTER


def test_a_step_within_rounding_is_none():
    assert line_step(1e-9, 1.0, 1.0) == (0.0, 0.0)
    assert line_step(1e-9, 1.0, 1e-9) == (1e-9, pytest.approx(5e-19))
    assert line_step(1e-9, 1.0) == (1e-9, pytest.approx(5e-19))


@pytest.mark.parametrize("C", [1e-2, 1e3])
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
@pytest.mark.parametrize("solver", PRECISE)
def test_a_target_of_zero(solver, structure, C):
    """No solver runs for ever at the level of rounding."""
    case = small_case(structure, "zero_one", 1)
    result = solve(solver, case.problem, C, tol=0.0, max_passes=None, max_time=None)
    assert result.relative_gap <= 1e-6
    assert result.converged == (result.gap <= 0.0)
    assert result.status in ("converged" if result.converged else "rounding", "stalled")
    assert (result.status == "rounding") <= (result.relative_gap <= 1e-9)
    check_certificate(result, case, C)


def test_a_target_of_zero_for_frank_wolfe():
    """It converges too slowly for more than this."""
    case = chain_case(np.random.default_rng(0), lengths=(1, 1), K=2)
    result = solve("bcfw", case.problem, 1e-3, tol=0.0, max_passes=None, max_time=None)
    assert result.status in ("converged", "rounding") and result.relative_gap <= 1e-9


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_limit_alone_ends_training(solver):
    """Cached planes must not keep a solver from the passes that are counted."""
    case = small_case("chain", "hamming", 1)
    result = solve(solver, case.problem, 1.0, tol=None, max_passes=30, max_time=None)
    assert result.status in ("max_passes", "rounding", "converged")
    assert result.n_passes <= 32


@pytest.mark.parametrize("C", [10.0, 100.0])
@pytest.mark.parametrize("seed", [13, 14, 15, 16])
def test_line_searches_lead_to_the_optimum(seed, C):
    """Planes taken near the best point known gain little alone; some have to be kept."""
    case = chain_case(np.random.default_rng(seed), lengths=(3, 3, 3), n_inputs=2, K=2)
    result = solve("one_slack", case.problem, C, tol=1e-3, max_passes=100, qp="line_search")
    check_optimal(result, case, C, precision=1e-3)
    assert len(result.history) < 1000


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ("rounding", r"rounding allows no smaller gap.*tol=0 was met; allow a larger gap"),
        ("stalled", r"neither the objective nor its bound moved.*lower C, use another solver, or"),
    ],
)
def test_a_user_is_told(status, message):
    """Whether rounding leaves a gap is luck: the result is made up."""

    class Stuck(type(make_solver("auto"))):
        def solve(self, *arguments, **options):
            return dataclasses.replace(
                super().solve(*arguments, **options), converged=False, status=status
            )

    X, y = np.random.default_rng(1).normal(size=(12, 3)), np.arange(12) % 3
    with pytest.warns(ConvergenceWarning, match=message):
        mm.MulticlassSVM(solver=Stuck(tol=0.0)).fit(X, y)


def test_examples_without_any_weight():
    """Without any weight the optimum is zero weights, and nothing can move."""
    case = small_case("chain", "hamming", 0)
    weights = np.zeros(case.problem.n_examples)
    for solver in SOLVERS:
        result = solve(
            solver, case.problem, 1.0, Formulation(), sample_weight=weights, max_time=None
        )
        assert result.converged and result.primal == 0.0 and not result.w.any()


@pytest.mark.parametrize("solver", PRECISE)
def test_the_last_record_is_of_the_result(solver):
    case = small_case("chain", "zero_one", 2)
    result = solve(solver, case.problem, 0.3, tol=0.0, max_passes=None)
    last = result.history[-1]
    assert (last.primal, last.dual) == (result.primal, result.dual)
    assert last.oracle_calls == result.n_oracle_calls


# ----- converged means that the gap meets the target ---------------------------------------------


@pytest.mark.parametrize("kind", ["plain", "mean", "signs", "all"])
@pytest.mark.parametrize("slack", ["l1", "l2"])
def test_converged_means_that_the_gap_meets_the_target(slack, kind):
    """Whatever the solver, the constraints and the size of C; and all dual values are bounds."""
    for number, C in enumerate([1e-2, 1.0, 1e3, 1e7, 1e9, 1e10]):
        case = small_case("multiclass", "costs", number % 2)
        rng, d = np.random.default_rng(number), case.twin.n_features
        constraints = mm.WeightConstraints() if kind == "plain" else KINDS[kind](rng, d)
        spelled_out = Formulation(slack=slack, constraints=constraints)
        formulation = Formulation(slack=slack) if kind == "plain" else spelled_out
        limits = {"tol": 1e-4, "epsilon": None} if number % 2 else {"tol": None, "epsilon": 1e-4}
        results = []
        for solver in SOLVERS:
            if slack in ALL_SOLVERS[solver].slacks:
                result = solve(solver, case.problem, C, formulation, max_passes=60, **limits)
                stopping = Stopping(**limits, total_C=C * case.problem.n_examples)
                met = stopping.is_satisfied(Certificate(result.primal, result.dual))
                assert result.converged == met == (result.status == "converged"), (solver, C)
                results.append(result)
        primals = [objective(case.twin, spelled_out, C, result.w) for result in results]
        noise = 1e-13 * C  # of slacks
        assert [r.primal for r in results] == pytest.approx(primals, rel=1e-9, abs=noise)
        bound = min(primals)
        if C <= 1.0:
            bound = min(bound, solve_constrained(case.twin, spelled_out, C).primal)
        assert max(result.dual for result in results) <= bound * (1.0 + 1e-6) + noise


@pytest.mark.parametrize("C", [1e7, 1e9])
def test_a_prior_and_a_large_c(C):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)), rng.integers(0, 3, 60)
    prior = mm.MulticlassSVM(random_state=0).fit(X[:40] + 1.0, y[:40])
    for solver in ("auto", "dcd", "one_slack", "n_slack", "fasole"):
        model = mm.MulticlassSVM(C=C, solver=solver, tol=1e-4, max_passes=40, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = model.fit(X, y, prior=prior).result_
        assert result.converged == (result.relative_gap <= 1e-4) == (result.status == "converged")


def test_an_online_solver_that_settles_above_the_target_has_not_converged():
    """Without mistakes a perceptron never changes again, whatever the gap."""
    case = small_case("multiclass", "zero_one", 0)
    for C in (1e-2, 1e3):
        solver = make_solver("perceptron", certificate=True, max_passes=300, tol=1e-3)
        result = solver.solve(case.problem, Formulation(), C)
        assert result.status == "stalled" and not result.converged and result.relative_gap > 1e-3


def test_what_a_checkpoint_refuses_is_not_recommended(tmp_path):
    X, y = np.random.default_rng(1).normal(size=(60, 3)), np.arange(60) % 3
    limits = {"C": 100.0, "tol": 1e-9, "max_passes": 2, "random_state": 0}
    with pytest.warns(UserWarning, match=r"raise max_passes, or allow a larger gap$"):
        mm.MulticlassSVM(**limits).fit(X, y)
    with pytest.warns(UserWarning, match=r"raise max_passes and resume$"):
        mm.MulticlassSVM(**limits, training={"checkpoint": tmp_path / "c"}).fit(X, y)
