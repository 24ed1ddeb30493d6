"""Classes in threads: shares of a pass with weights of their own, combined without a loss."""

import numpy as np
import pytest
import scipy.sparse as sp

from exact_qp import solve_exactly
from maxmargin import MulticlassSVM
from maxmargin.core.formulation import Formulation
from maxmargin.engine.oracle import Oracle
from maxmargin.engine.parallel.threads import Threads
from maxmargin.engine.steps.block_steps import ALL_PLANES
from maxmargin.engine.store.block_store import StepRule
from maxmargin.problems.classes import class_sharding
from maxmargin.problems.classes.class_store import ClassStore
from maxmargin.problems.classes.multiclass import MulticlassProblem
from maxmargin.solvers import make_solver

RULE = StepRule(ALL_PLANES, 50)


@pytest.fixture(autouse=True)
def always_shared(monkeypatch):
    """Let threads share the work of a few examples, which does not pay."""
    monkeypatch.setattr(class_sharding, "SYNCHRONIZATION", 1e-3)
    monkeypatch.setattr(class_sharding, "AVERAGED", 0.0)
    monkeypatch.setattr(class_sharding, "CHEAP_VISIT", 0.0)
    monkeypatch.setattr(class_sharding, "LONG", 4)


def drawn(K, sparse=False, n=40, costs=False, seed=0):
    """A problem whose classes overlap."""
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    X = rng.normal(size=(n, 6)) + 1.0 + np.eye(K, 6)[y]
    if sparse:
        X = sp.csr_matrix(np.where(rng.random(X.shape) < 0.3, X, 0.0))
    table = rng.integers(1, 4, (K, K)) * (1.0 - np.eye(K)) if costs else None
    return MulticlassProblem(X, y, K, costs=table, fit_intercept=True)


def all_planes(problem, formulation):
    """Offsets and planes of all classes of each example."""
    K = problem.n_classes
    blocks = []
    for i in range(problem.n_examples):
        gold = problem.output_of(i)
        psi = [sp.csr_matrix(problem.joint_feature(problem.input_of(i), k)) for k in range(K)]
        psi = [row.toarray().ravel() for row in psi]
        others = [k for k in range(K) if k != gold]
        losses = problem.costs[problem.cost_rows[i], others]
        offsets, scales = formulation.plane_terms(losses)
        blocks.append((offsets, scales[:, None] * (psi[gold] - np.array(psi)[others])))
    return blocks


def store_of(problem, formulation, threads, C=0.5):
    """Blocks that so many threads visit."""
    oracle = Oracle(problem, formulation)
    store = ClassStore(oracle, problem, np.full(problem.n_examples, C))
    oracle.threads = Threads(threads)
    return store


@pytest.mark.parametrize("slack", ["l1", "l2"])
@pytest.mark.parametrize(("K", "sparse"), [(2, False), (2, True), (4, False), (9, True)])
@pytest.mark.parametrize("threads", [2, 3])
def test_the_dual_never_falls_and_is_that_of_the_multipliers(K, sparse, slack, threads):
    problem = drawn(K, sparse)
    store = store_of(problem, Formulation(slack=slack), threads)
    order = np.random.default_rng(1)
    before = 0.0
    for turn in range(12):
        examples = order.permutation(problem.n_examples)
        (store.cached_pass if turn % 3 == 2 else store.oracle_pass)(examples, RULE)
        if turn % 4 == 3:
            store.extrapolate(1.0)
        now, weights = float(store.dual_now[0]), store.w
        assert now >= before - 1e-12
        assert store.dual() == pytest.approx(now, rel=1e-12)
        store.rebuild()
        np.testing.assert_allclose(store.w, weights, atol=1e-12)
        before = now
    assert before > 0.0


def test_shares_of_equal_examples_do_not_step_too_far():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(16, 5)), rng.integers(3, size=16)
    problem = MulticlassProblem(np.vstack([X, X]), np.concatenate([y, y]), 3)
    store = store_of(problem, Formulation(), 2, C=100.0)
    duals = [0.0]
    for _ in range(20):
        store.oracle_pass(np.arange(32), RULE)  # the same in both threads
        duals.append(store.dual())
    assert np.all(np.diff(duals) >= -1e-9)


def test_surveys_find_the_same_bits_with_any_number_of_threads():
    problem = drawn(4)
    w_of = {}
    for threads in (1, 2, 5):
        store = store_of(problem, Formulation(), threads)
        store.oracle.threads, kept = None, store.oracle.threads
        store.oracle_pass(np.arange(40), RULE)
        store.oracle.threads = kept
        report = store.oracle_pass(np.arange(40), RULE._replace(max_steps=0))
        w_of[threads] = (report.gaps, report.hinges, store.w)
    for other in (2, 5):
        for one, found in zip(w_of[1], w_of[other], strict=True):
            np.testing.assert_array_equal(one, found)


@pytest.mark.parametrize("slack", ["l1", "l2"])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize(("K", "sparse"), [(2, True), (4, False)])
def test_the_optimum_is_that_of_a_qp_and_bits_are_the_same_again(K, sparse, rescaling, slack):
    problem = drawn(K, sparse, costs=True)
    formulation = Formulation(rescaling, slack=slack)
    weights = np.random.default_rng(2).uniform(0.0, 2.0, problem.n_examples)
    weights[3] = 0.0
    best = solve_exactly(all_planes(problem, formulation), 0.3, weights, slack=slack)
    found = {}
    for n_jobs in (1, 2, 3, 2):
        solver = make_solver("auto", tol=1e-5, random_state=0, n_jobs=n_jobs, joint=False)
        result = solver.solve(problem, formulation, 0.3, sample_weight=weights)
        assert result.relative_gap <= 1e-5
        assert result.primal == pytest.approx(best.value, rel=1e-4)
        if n_jobs in found:
            np.testing.assert_array_equal(found[n_jobs].w, result.w)
        found[n_jobs] = result
    assert not np.array_equal(found[1].w, found[2].w)  # or nothing was shared


@pytest.mark.parametrize("n", [3, 5])
def test_fewer_examples_than_threads(n):
    problem = drawn(3, n=n)
    one, eight = (
        make_solver("auto", tol=1e-6, n_jobs=n_jobs, joint=False).solve(problem, Formulation(), 1.0)
        for n_jobs in (1, 8)
    )
    assert eight.primal == pytest.approx(one.primal, rel=1e-5)


def test_training_goes_on_with_another_number_of_threads(tmp_path):
    problem = drawn(4, n=200)
    path = tmp_path / "kept"

    def train(n_jobs, **more):
        solver = make_solver("auto", random_state=0, n_jobs=n_jobs, joint=False, **more)
        return solver.solve(problem, Formulation(), 1.0)

    options = {"tol": 1e-4, "checkpoint": path, "checkpoint_every": 0}
    whole = train(2, tol=1e-4)
    train(2, max_passes=4, **options)
    same = train(2, resume=True, **options)
    np.testing.assert_array_equal(same.w, whole.w)
    train(2, max_passes=4, **options)
    other = train(1, resume=True, **options)
    assert other.relative_gap <= 1e-4
    assert other.primal == pytest.approx(whole.primal, rel=2e-4)


def test_an_interrupt_leaves_a_certified_model():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=300)
    X = rng.normal(size=(300, 6)) + np.eye(4, 6)[y]
    model = MulticlassSVM(solver="auto", tol=1e-6, C=1.0, random_state=0, n_jobs=2)
    problem = MulticlassProblem(X, y, 4)
    seen = []

    def stop(progress):
        seen.append(progress)
        if len(seen) == 4:
            raise KeyboardInterrupt

    solver = make_solver("auto", tol=1e-6, random_state=0, n_jobs=2)
    result = solver.solve(problem, Formulation(), 1.0, callbacks=[stop])
    assert result.status == "interrupted"
    assert result.primal >= result.dual > 0.0
    assert model.fit(X, y).result_.relative_gap <= 1e-6
    warm = solver.solve(problem, Formulation(), 1.0, warm_start=result)
    assert warm.relative_gap <= 1e-6


def test_passes_of_shares_are_extrapolated_more_often(monkeypatch):
    """Their steps are shorter, which extrapolations make up for."""
    problem = drawn(4, n=400)
    pushed = []
    extrapolate = ClassStore.extrapolate

    def noted(store, factor):
        pushed.append(store.oracle.calls)
        return extrapolate(store, factor)

    monkeypatch.setattr(ClassStore, "extrapolate", noted)

    def least_visits(n_jobs):
        """Between two extrapolations, for each example."""
        pushed.clear()
        solver = make_solver("auto", tol=1e-4, random_state=0, n_jobs=n_jobs)
        assert solver.solve(problem, Formulation(), 0.1).relative_gap <= 1e-4
        return np.diff(pushed).min() / problem.n_examples

    assert least_visits(1) >= 0.3
    assert 0.1 <= least_visits(2) < 0.3
