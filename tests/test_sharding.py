"""Blocks in shares: the same optimum, the same bits in every run, and w is the sum of planes."""

import warnings

import numpy as np
import pytest

from brute_dependency import tree_case
from brute_grammar import grammar_case
from maxmargin.core.formulation import Formulation
from maxmargin.engine.oracle import Oracle
from maxmargin.engine.steps.block_steps import ALL_PLANES
from maxmargin.engine.store import sharded_passes, sharding
from maxmargin.engine.store.block_store import StepRule, make_store
from maxmargin.engine.store.sharding import ShardedStore
from maxmargin.solvers import make_solver
from structures import STRUCTURES

RULE = StepRule(ALL_PLANES, 20, precision=0.1)
LENGTHS = (4, 2, 3, 4, 3, 4)
CASES = {
    "grammar": lambda: grammar_case(np.random.default_rng(0), lengths=LENGTHS),
    "dependency": lambda: tree_case(np.random.default_rng(0), lengths=LENGTHS),
}


@pytest.fixture(autouse=True)
def cut_small(monkeypatch):
    """Shares of a few examples, and threads for any work."""
    monkeypatch.setattr(sharding, "FEWEST", 1)
    monkeypatch.setattr(sharding, "LEAST_SEARCH", 0.0)
    for name in ("ASKED", "VISITS", "MANY"):
        monkeypatch.setattr(sharded_passes, name, 1)
    for name in ("LEAST_WORK", "ADDING", "HANDED_OVER"):
        monkeypatch.setattr(sharded_passes, name, 0.0)


def solve(problem, formulation, n_jobs, **settings):
    settings = {"tol": 1e-5, "random_state": 3, "joint": False, **settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_solver("auto", n_jobs=n_jobs, **settings).solve(problem, formulation, 1.0)


def small_problem(name):
    structure = STRUCTURES[name]
    rng = np.random.default_rng(0)
    return structure.make(rng, loss=structure.losses[0], **structure.training[0]).problem


@pytest.mark.parametrize("name", STRUCTURES)
def test_shares_reach_the_optimum_by_the_same_bits_every_time(name):
    slack = ("l1", "l2")[list(STRUCTURES).index(name) % 2]
    problem, formulation = small_problem(name), Formulation(slack=slack)
    if not problem.in_threads or problem.n_examples < 2:
        return
    one, two, again = (solve(problem, formulation, n_jobs) for n_jobs in (1, 2, 2))
    assert two.w.tobytes() == again.w.tobytes()
    assert (two.primal, two.dual) == (again.primal, again.dual)
    assert two.dual <= one.primal * (1 + 1e-9) and one.dual <= two.primal * (1 + 1e-9)
    if not one.bound_gap:  # loose bounds of different candidates differ
        assert two.primal == pytest.approx(one.primal, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("slack", ["l1", "l2"])
@pytest.mark.parametrize("n_shards", [2, 3])
@pytest.mark.parametrize("name", CASES)
def test_w_is_the_sum_of_planes_and_the_dual_never_falls(name, n_shards, slack):
    problem = CASES[name]().problem
    caps = np.full(problem.n_examples, 2.0)
    store = make_store(Oracle(problem, Formulation(slack=slack)), caps, 10**8, n_shards)
    assert isinstance(store, ShardedStore)
    everything, before = np.arange(problem.n_examples), 0.0
    for k in range(12):
        if k % 3 == 0:
            store.oracle_pass(everything[::-1] if k % 2 else everything, RULE)
        else:
            store.cached_pass(everything, RULE)
        store.extrapolate(0.0 if k == 0 else 1.0)
        if k == 5:
            store.evict(1)
        now, w = float(store.dual_now[0]), store.w.copy()
        assert now >= before - 1e-12
        store.rebuild()
        np.testing.assert_allclose(w, store.w, atol=1e-12)
        np.testing.assert_allclose(store.dual(), now, rtol=1e-10)
        before = now
    assert before > 0.0


def test_first_visits_in_turns_are_those_of_one_store(monkeypatch):
    """Where hand-overs are dear, shares step at the same weights, one after the other."""
    monkeypatch.setattr(sharded_passes, "HANDED_OVER", 1e9)
    problem = CASES["dependency"]().problem
    oracle, caps = Oracle(problem, Formulation()), np.full(problem.n_examples, 2.0)
    whole, cut = (make_store(oracle, caps, 10**8, n_shards) for n_shards in (1, 2))
    everything = np.arange(problem.n_examples)
    in_turns = np.concatenate([everything[::2], everything[1::2]])
    gaps = cut.oracle_pass(everything, RULE).gaps
    np.testing.assert_array_equal(gaps[in_turns], whole.oracle_pass(in_turns, RULE).gaps)
    np.testing.assert_array_equal(cut.w, whole.w)
    np.testing.assert_allclose(cut.dual_now, whole.dual_now)


@pytest.mark.parametrize(("searches", "expected"), [(0.5, [1, 1, 1]), (2.0, [2, 1])])
def test_short_searches_are_asked_for_in_batches(monkeypatch, searches, expected):
    monkeypatch.setattr(sharded_passes, "BEGINNING", 0)
    monkeypatch.setattr(sharded_passes, "VISITS", 1e9)
    problem = CASES["grammar"]().problem
    store = make_store(Oracle(problem, Formulation()), np.full(6, 1.0), 10**8, 2)
    monkeypatch.setattr(sharded_passes, "ASKED", searches * store.stores[0].search_work)
    sizes, own = [], store.stores[0]
    visit = own.oracle_pass
    own.oracle_pass = lambda examples, rule: (sizes.append(len(examples)), visit(examples, rule))[1]
    store.oracle_pass(np.arange(6), RULE)
    assert sizes == expected


def test_steps_are_cut_where_shares_ask_for_the_same():
    """All examples are alike, so that a sum of all changes would be three times too far."""
    case = CASES["grammar"]()
    problem = case.problem.subset(np.zeros(9, np.int64))
    store = make_store(Oracle(problem, Formulation()), np.full(9, 1.0), 10**8, 3)
    steps = []
    for share in store.shards:
        end = share.end
        share.end = lambda step, end=end: (steps.append(step), end(step))
    store.oracle_pass(np.arange(9), RULE)
    assert min(steps) < 0.8
    now = float(store.dual_now[0])
    assert now > 0.0
    np.testing.assert_allclose(store.dual(), now, rtol=1e-10)


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_training_goes_on_to_the_same_bits_with_any_number_of_threads(n_jobs, tmp_path):
    problem, formulation = CASES["dependency"]().problem, Formulation()
    expected = solve(problem, formulation, 2)
    kept = {"checkpoint": tmp_path / "kept", "checkpoint_every": 0}
    solve(problem, formulation, 2, max_passes=3, **kept)
    found = solve(problem, formulation, n_jobs, resume=True, **kept)
    assert found.state.store.n_shards == 2
    assert found.w.tobytes() == expected.w.tobytes()
    assert (found.primal, found.dual) == (expected.primal, expected.dual)


def test_a_single_store_is_gone_on_from_in_one_piece(tmp_path):
    problem, formulation = CASES["dependency"]().problem, Formulation()
    kept = {"checkpoint": tmp_path / "kept", "checkpoint_every": 0}
    solve(problem, formulation, 1, max_passes=3, **kept)
    found = solve(problem, formulation, 2, resume=True, **kept)
    expected = solve(problem, formulation, 1)
    assert found.primal == pytest.approx(expected.primal, rel=1e-4)
    assert found.state.store.n_shards == 1


def test_warm_starts_from_other_bounds_and_fewer_examples():
    problem, formulation = CASES["grammar"]().problem, Formulation()
    for n_jobs in (1, 2):  # of the first fit
        first = solve(problem.subset(np.arange(4)), formulation, n_jobs)
        solver = make_solver("auto", tol=1e-5, n_jobs=2, joint=False)
        warm = solver.solve(problem, formulation, 3.0, warm_start=first)
        again = solver.solve(problem, formulation, 1.0, warm_start=warm)
        expected = solve(problem, formulation, 1)
        assert again.primal == pytest.approx(expected.primal, rel=1e-4)
        assert warm.state.store.n_shards == 2


def test_an_interrupt_leaves_a_certified_result(monkeypatch):
    problem, formulation = CASES["dependency"]().problem, Formulation()
    calls, improve = [], sharded_passes.Shard.improve

    def interrupted(share, *given):
        calls.append(None)
        if len(calls) == 9:
            raise KeyboardInterrupt
        return improve(share, *given)

    monkeypatch.setattr(sharded_passes.Shard, "improve", interrupted)
    result = solve(problem, formulation, 2)
    assert result.status == "interrupted"
    store = result.state.store
    w = store.w.copy()
    store.rebuild()
    np.testing.assert_allclose(w, store.w, atol=1e-12)
    assert 0.0 <= result.primal - result.dual < np.inf


def test_a_small_budget_is_kept():
    problem, formulation = CASES["dependency"]().problem, Formulation()
    expected = solve(problem, formulation, 1)
    found = solve(problem, formulation, 2, cache_mb=0.003, tol=1e-2)
    assert found.primal == pytest.approx(expected.primal, rel=2e-2)
    stores = found.state.store.stores
    assert all(not store.is_overdrawn and not store.stays for store in stores)


@pytest.mark.parametrize("n_shards", [2, 3])
def test_examples_are_dealt_out_by_their_work(n_shards):
    sizes = np.random.default_rng(0).integers(1, 50, size=100) ** 2.0
    owner = sharded_passes.deal(sizes, n_shards)
    counts = np.bincount(owner, minlength=n_shards)
    assert counts.max() - counts.min() <= 1
    totals = np.bincount(owner, sizes)
    assert totals.max() - totals.min() <= sizes.max()
    pieces = sharded_passes.split(np.arange(100), sizes, 4)
    assert np.concatenate(pieces).tolist() == list(range(100))
    assert max(sizes[own].sum() for own in pieces) <= sizes.sum() / 4 + sizes.max()
    assert list(map(len, sharded_passes.split(np.arange(0), sizes[:0], 4))) == [0] * 4
