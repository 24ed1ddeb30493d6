"""Solvers that solve for all stored planes together: fewer passes, and the same optimum."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
import maxmargin.engine.store.planes as planes
from cases import chain_case, multiclass_case
from maxmargin.core.formulation import Formulation
from maxmargin.engine.cuts import working_sets
from maxmargin.engine.oracle import Oracle
from maxmargin.engine.steps.block_steps import WSS2
from maxmargin.engine.store import plane_memory
from maxmargin.engine.store.block_store import StepRule
from maxmargin.engine.store.planes import PlaneStore
from maxmargin.engine.training.run import StopTraining
from maxmargin.problems.chain.problem import ChainProblem
from maxmargin.problems.classes import class_store
from maxmargin.problems.classes.class_store import ClassStore
from maxmargin.solvers import make_solver
from maxmargin.solvers.base import TrainingRequest
from solving import (
    ALL_SOLVERS,
    check_certificate,
    check_optimal,
    medium_chains,
    medium_classes,
    solve,
)

JOINT = ("auto", "fasole", "sdm", "n_slack")
MEDIUM = {"classes": medium_classes, "chains": medium_chains}


@pytest.mark.parametrize("solver", JOINT)
@pytest.mark.parametrize("structure", MEDIUM)
def test_stiff_problems_take_few_passes(structure, solver):
    """Where C is large, blocks hold each other up."""
    problem = MEDIUM[structure]()
    together = solve(solver, problem, 20.0, tol=1e-5, max_passes=200, joint=True)
    assert together.converged
    few = together.n_passes / 0.7
    apart = solve(solver, problem, 20.0, tol=1e-5, max_passes=int(few) + 1, joint=False)
    assert apart.n_passes > few


@pytest.mark.parametrize("slack", ["l1", "l2"])
@pytest.mark.parametrize("solver", JOINT)
@pytest.mark.parametrize("make", [multiclass_case, chain_case])
def test_the_optimum_is_the_same(make, solver, slack):
    case, formulation = make(np.random.default_rng(5)), Formulation(slack=slack)
    for joint in (True, False):
        result = solve(solver, case.problem, 10.0, formulation, joint=joint)
        check_optimal(result, case, 10.0, formulation)


@pytest.mark.parametrize("slack", ["l1", "l2"])
def test_zero_weights_that_are_the_best_take_one_pass(slack):
    """Equal inputs with contrary outputs: the first pass has the primal value, planes the dual."""
    X, labels = np.ones((4, 1)), np.array([0, 1, 1, 0])
    problem = ChainProblem(X, np.arange(5), labels, 2)
    result = solve("auto", problem, 0.1, Formulation(slack=slack), tol=1e-4)
    assert result.converged and result.n_passes == 1.0 and not result.w.any()
    assert result.primal == pytest.approx(0.4)  # a loss of 1 for each of four examples


def test_the_general_store_keeps_w_and_the_dual(monkeypatch):
    """Also after planes were dropped and the rest renumbered."""
    monkeypatch.setattr(planes, "MANY_DEAD", 1)
    case = chain_case(np.random.default_rng(2), lengths=(3,) * 8)
    store = PlaneStore(Oracle(case.problem, Formulation("slack")), np.full(8, 3.0), 10**8)
    rng = np.random.default_rng(0)
    for k in range(12):
        store.oracle_pass(rng.permutation(8), StepRule(WSS2, 0))
        assert store.solve_jointly(1e-6, np.inf) <= 1e-6
        now, w = float(store.dual_now[0]), store.w.copy()
        store.rebuild()
        np.testing.assert_allclose(store.w, w, atol=1e-9)
        assert store.dual() == pytest.approx(now, rel=1e-9)
        # No block has anything to gain from its own planes.
        assert store.cached_pass(np.arange(8), StepRule(WSS2, 0)).sum() <= 2e-6
        store.evict(1 + k % 3)


def test_too_much_work_changes_nothing():
    case = multiclass_case(np.random.default_rng(0), n=20, K=4)
    store = ClassStore(Oracle(case.problem, Formulation()), case.problem, np.ones(20))
    assert store.solve_jointly(0.0, 0.0, recombine=True) is None
    assert not store.alpha.any() and not store.w.any() and store.dual() == 0.0


def test_classes_that_were_never_met_take_part_on_request_only():
    case = multiclass_case(np.random.default_rng(0), n=20, K=4)
    store = ClassStore(Oracle(case.problem, Formulation()), case.problem, np.ones(20))
    store.lists.counts[:] = case.problem.labels != 0  # class 0 is the first of each list
    assert store.solve_jointly(1e-9, np.inf) <= 1e-9
    assert store.alpha[:, 0].any() and not store.alpha[:, 1:].any()
    before = store.dual()
    assert store.solve_jointly(1e-9, np.inf, recombine=True) <= 1e-9
    assert store.alpha[:, 1:].any() and store.dual() > before


@pytest.mark.parametrize(
    ("solver", "make", "module", "name", "call"),
    [
        ("auto", multiclass_case, class_store, "add_listed_classes", 1),
        ("auto", chain_case, plane_memory, "add_weighted_planes", 1),
        ("fasole", chain_case, plane_memory, "add_weighted_planes", 1),
        ("n_slack", chain_case, working_sets, "add_weighted", 3),
    ],
)
def test_an_interrupt_in_the_middle(solver, make, module, name, call, monkeypatch):
    """Multipliers are written before the weights are: the certificate is true all the same."""
    case = make(np.random.default_rng(4))
    calls = []
    function = getattr(module, name)

    def interrupted(*arguments):
        calls.append(name)
        if len(calls) == call:
            raise KeyboardInterrupt
        return function(*arguments)

    monkeypatch.setattr(module, name, interrupted)
    result = solve(solver, case.problem, 5.0, tol=1e-12, joint=True)
    assert result.status == "interrupted"
    check_certificate(result, case, 5.0)
    again = solve(solver, case.problem, 5.0, tol=1e-7, warm_start=result, joint=True)
    check_optimal(again, case, 5.0)


def test_the_time_limit_ends_a_pass_at_fixed_weights():
    """A pass of a slow oracle is not to be waited for, but for the one that certifies."""
    problem = medium_chains()
    solver = make_solver("auto", max_time=0.0)
    run = solver.start(
        TrainingRequest(problem, Formulation(), 5.0, np.ones(problem.n_examples), None, ())
    )
    with pytest.raises(StopTraining, match="max_time"):
        run.certify(limited=True)
    assert 0 < run.oracle_calls <= 0.5 * problem.n_examples


@pytest.mark.parametrize("solver", JOINT)
@pytest.mark.parametrize("structure", MEDIUM)
def test_training_goes_on_from_arrays_as_from_the_state(structure, solver):
    """Products of planes, and the work that was counted for them, make no difference."""
    options = {"tol": None, "random_state": 5, "joint": True}
    problem, again = MEDIUM[structure](), MEDIUM[structure]()
    first = solve(solver, problem, 2.0, max_passes=4, **options)
    arrays = {key: array.copy() for key, array in first.state.arrays().items()}
    other = solve(solver, again, 2.0, max_passes=1, **options)
    other.state.restore(arrays)
    expected = solve(solver, problem, 3.0, tol=1e-5, warm_start=first, joint=True)
    found = solve(solver, again, 3.0, tol=1e-5, warm_start=other, joint=True)
    assert found.n_cache_hits == expected.n_cache_hits
    assert found.n_oracle_calls == expected.n_oracle_calls
    assert found.w.tobytes() == expected.w.tobytes()


@pytest.mark.parametrize("slack", ["l1", "l2"])
@pytest.mark.parametrize("name", ["rank", "bounded rank", "tag"])
def test_rounded_products_of_planes_do_not_lead_astray(name, slack):
    """Products of about 1e18 have no digits left for weights of about 1: such solutions go."""
    rng = np.random.default_rng(3)
    X, y = (
        np.column_stack([0.5 * rng.normal(size=60), 1e9 * rng.normal(size=60)]),
        np.arange(60) % 3,
    )
    y = rng.permutation(y)
    options = {"C": 10.0, "slack": slack, "tol": 1e-6, "max_passes": 30, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if name == "tag":
            model = mm.SequenceTagger(**options).fit(X.reshape(20, 3, 2), y.reshape(20, 3))
        else:
            signs = [1, 0] if name == "bounded rank" else None
            model = mm.RankSVM(monotonic_cst=signs, **options).fit(X, y, qid=np.arange(60) // 3)
    result = model.result_
    assert 0.0 <= result.dual <= result.primal
    assert max(progress.dual for progress in result.history) <= result.primal * (1.0 + 1e-9)


@pytest.mark.parametrize("slack", ["l1", "l2"])
@pytest.mark.parametrize("seed", range(6))
def test_no_history_has_a_dual_above_a_primal_value(seed, slack):
    """Features from 1e-6 to 1e12 in size: any weights bound the optimum, and so all duals."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 3)) * 10.0 ** rng.choice([-6, -3, 0, 0, 3, 6, 9, 12], size=3)
    y = rng.permutation(np.arange(30) % 3)
    C = 10.0 ** rng.integers(-3, 4)
    results = []
    for solver in ("auto", "n_slack", "dcd", "one_slack"):
        if slack in ALL_SOLVERS[solver].slacks:
            options = {"C": C, "slack": slack, "tol": 1e-5, "max_passes": 25, "random_state": 0}
            model = mm.MulticlassSVM(solver=solver, **options)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                results.append(model.fit(X, y).result_)
    lowest = min(result.primal for result in results)
    for result in results:
        assert 0.0 <= result.dual
        assert max(progress.dual for progress in result.history) <= lowest * (1.0 + 1e-9)
