"""The one-slack solver's own parts: master problem, bundle, pools; and all of its variants."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brute import all_planes
from cases import chain_case, make_case, multiclass_case
from exact_qp import solve_exactly
from maxmargin.core.formulation import Formulation
from maxmargin.engine.cuts import bundle as bundle_module
from maxmargin.engine.cuts import pool as pool_module
from maxmargin.engine.cuts.bundle import Bundle
from maxmargin.engine.cuts.master import best_candidates, best_total, blend, line_minimum
from maxmargin.engine.cuts.pool import CandidatePool, make_pool
from maxmargin.engine.oracle import Oracle
from maxmargin.engine.training.verifying import hinge_values
from maxmargin.solvers import OneSlack, make_solver

RESCALINGS = ("margin", "slack", "none")


def solve(problem, C, formulation=None, *, warm_start=None, callbacks=(), **parameters):
    solver = make_solver("one_slack", **{"tol": 1e-6, "max_passes": 5000, **parameters})
    formulation = formulation or Formulation()
    return solver.solve(problem, formulation, C, warm_start=warm_start, callbacks=callbacks)


def optimum_of(case, C, formulation=None):
    return solve_exactly(all_planes(case.twin, formulation or Formulation()), C)


# ----- the master problem ------------------------------------------------------------------------


def filled_bundle(rng, m, n_features, cap):
    bundle = Bundle(n_features, cap)
    planes = rng.normal(size=(m, n_features)) + rng.normal(size=n_features)
    offsets = rng.uniform(-0.5, 3.0, m)
    for plane, offset in zip(planes, offsets, strict=True):
        bundle.add(plane.copy(), offset)
    return bundle, planes, offsets


@pytest.mark.parametrize("dense", [True, False])
def test_a_bundle_grows_again_and_again(dense):
    planes = np.random.default_rng(0).normal(size=(400, 3))
    bundle = Bundle(3, 1.0, dense)
    for plane in planes:
        bundle.add(plane.copy(), 1.0)
    np.testing.assert_allclose(bundle.gram[:400, :400], planes @ planes.T)
    np.testing.assert_allclose(bundle.products(planes[5]), planes @ planes[5])


@pytest.mark.nojit
@given(seed=st.integers(0, 2**32 - 1), stored=st.sampled_from(["dense", "sparse"]))
def test_fsmo_solves_the_master(seed, stored):
    rng = np.random.default_rng(seed)
    m, n_features, cap = int(rng.integers(1, 9)), int(rng.integers(1, 7)), 10 ** rng.uniform(-2, 2)
    bundle_module.DENSE_BELOW, before = (10**6 if stored == "dense" else -1), 2**16
    try:
        bundle, planes, offsets = filled_bundle(rng, m, n_features, cap)
    finally:
        bundle_module.DENSE_BELOW = before
    optimum = solve_exactly([(offsets, planes)], cap)
    scale = max(1.0, optimum.primal)
    gap = bundle.solve(1e-9 * scale, max_rounds=100_000)
    assert gap <= 1e-8 * scale
    assert (bundle.alpha[:m] >= 0).all() and bundle.alpha[:m].sum() <= cap * (1 + 1e-12)
    w = bundle.weights()
    assert np.allclose(w, bundle.alpha[:m] @ planes)
    assert bundle.dual(w) == pytest.approx(bundle.dual(), abs=1e-9 * scale)
    assert bundle.dual(w) == pytest.approx(optimum.value, abs=1e-7 * scale)
    assert bundle.slack == pytest.approx(max(0.0, (offsets - planes @ w).max()), abs=1e-8 * scale)


@pytest.mark.parametrize("dense", [True, False])
def test_a_bundle_grows_as_long_as_planes_come(dense):
    rng = np.random.default_rng(0)
    bundle, planes = Bundle(3, 1.0, dense=dense), rng.normal(size=(600, 3))
    for plane in planes:
        bundle.add(plane.copy(), 1.0)
    bundle.alpha[:600] = rng.random(600)
    assert bundle.size == 600 and np.allclose(bundle.weights(), bundle.alpha[:600] @ planes)
    assert np.allclose(bundle.gram[:600, :600], planes @ planes.T)


@pytest.mark.nojit
@pytest.mark.parametrize("dense", [True, False])
def test_a_bundle_keeps_within_its_room(dense):
    """Merged planes are means of planes: neither w nor the dual value changes."""
    rng, n_features = np.random.default_rng(0), 30
    room = 12 * n_features * 20
    bundle, free = Bundle(n_features, 5.0, dense, room), Bundle(n_features, 5.0, dense)
    planes = rng.normal(size=(200, n_features)) * (rng.random((200, n_features)) < 0.6)
    planes += 0.3 * rng.normal(size=n_features)
    offsets, dual, sizes, merged = rng.uniform(1.0, 3.0, 200), 0.0, [], 0
    for plane, offset in zip(planes, offsets, strict=True):
        free.add(plane.copy(), offset)
    free.solve(1e-6)
    for _ in range(150):
        w, linear, total = bundle.weights(), bundle.linear(), bundle.alpha[: bundle.size].sum()
        worst = int(np.argmax(offsets - planes @ w))
        plane, offset = planes[worst], offsets[worst]
        before = np.count_nonzero(bundle.alpha[: bundle.size])
        bundle.add(plane.copy(), offset)
        m = bundle.size
        merged += np.count_nonzero(bundle.alpha[:m]) < before
        np.testing.assert_allclose(bundle.weights(), w, atol=1e-12)
        assert bundle.linear() == pytest.approx(linear) and bundle.room == room
        assert bundle.alpha[:m].sum() == pytest.approx(total)
        stored = bundle.matrix[:m] if dense else unpacked(bundle)
        np.testing.assert_allclose(bundle.gram[:m, :m], stored @ stored.T, atol=1e-10)
        taken = bundle.matrix.nbytes + bundle.ids.nbytes + bundle.values.nbytes + bundle.gram.nbytes
        assert taken <= room
        bundle.solve(1e-6)
        assert bundle.dual() >= dual - 1e-9
        dual = bundle.dual()
        sizes.append(m)
    assert merged and max(sizes) < 15
    assert 0.98 * free.dual() < dual <= free.dual() + 1e-6


def unpacked(bundle):
    """The planes of a sparse bundle, written out."""
    rows = np.zeros((bundle.size, bundle.n_features))
    for k in range(bundle.size):
        entries = slice(bundle.starts[k], bundle.starts[k + 1])
        rows[k, bundle.ids[entries]] = bundle.values[entries]
    return rows


def test_a_loose_solution_is_feasible_and_has_the_gap_it_says():
    bundle, planes, offsets = filled_bundle(np.random.default_rng(1), 8, 3, 2.0)
    gap = bundle.solve(0.3)
    w = bundle.weights()
    primal = 0.5 * w @ w + 2.0 * max(0.0, (offsets - planes @ w).max())
    assert gap == pytest.approx(primal - bundle.dual(w)) and 0 <= gap <= 0.3


@pytest.mark.nojit
@given(seed=st.integers(0, 2**32 - 1))
def test_line_searches_raise_the_dual_and_end_at_the_optimum(seed):
    rng = np.random.default_rng(seed)
    m, cap = int(rng.integers(1, 7)), 10 ** rng.uniform(-2, 2)
    bundle, planes, offsets = filled_bundle(rng, m, 3, cap)
    optimum = solve_exactly([(offsets, planes)], cap)
    scale = max(1.0, optimum.primal)
    last = 0.0
    for _ in range(3000):
        gap = bundle.search_lines(1e-7 * scale)
        alpha = bundle.alpha[:m]
        dual = alpha @ offsets - 0.5 * np.sum((alpha @ planes) ** 2)
        assert (alpha >= 0).all() and alpha.sum() <= cap * (1 + 1e-12)
        assert last - 1e-12 * scale <= dual == pytest.approx(bundle.dual(), abs=1e-9 * scale)
        last = dual
        if gap <= 1e-7 * scale:
            break
    assert dual == pytest.approx(optimum.value, abs=2e-7 * scale)


@pytest.mark.parametrize("below", [10**6, -1])
def test_a_plane_is_held_once(monkeypatch, below):
    monkeypatch.setattr(bundle_module, "DENSE_BELOW", below)
    bundle, planes, offsets = filled_bundle(np.random.default_rng(5), 4, 6, 1.0)
    bundle.add(planes[2] * (1 + 1e-16), offsets[2])
    assert bundle.size == 4
    bundle.add(planes[2].copy(), 2.0 * offsets[2])
    bundle.add(planes[2] + 1e-9 * np.arange(6), offsets[2])
    bundle.add(np.zeros(6), 1.0)
    bundle.add(np.zeros(6), 1.0)
    assert bundle.size == 7


@pytest.mark.parametrize("below", [10**6, -1])
def test_dropping_idle_planes_changes_nothing_else(monkeypatch, below):
    monkeypatch.setattr(bundle_module, "DENSE_BELOW", below)
    rng = np.random.default_rng(3)
    bundle, planes, _ = filled_bundle(rng, 40, 2, 3.0)
    for _ in range(3):
        bundle.solve(1e-10)
    w, dual, active = bundle.weights(), bundle.dual(), bundle.alpha[:40] > 0
    bundle.drop(4)
    assert bundle.size == 40
    bundle.drop(3)
    assert bundle.size == active.sum() < 40
    assert np.allclose(bundle.weights(), w) and bundle.dual() == pytest.approx(dual)
    plane = rng.normal(size=2)
    kept = planes[active]
    assert np.allclose(bundle.products(plane), kept @ plane)
    assert np.allclose(bundle.gram[: len(kept), : len(kept)], kept @ kept.T)


@given(seed=st.integers(0, 2**32 - 1))
def test_the_minimum_on_a_line_of_tables(seed):
    rng = np.random.default_rng(seed)
    n, f = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    start, end = rng.normal(size=(2, n, f))
    weights = rng.uniform(0, 2, n)
    slope, curvature = rng.normal(), abs(rng.normal())

    def value(t):
        table = start + t * (end - start)
        return slope * t + 0.5 * curvature * t**2 + weights @ np.maximum(table.max(axis=1), 0.0)

    t = line_minimum(start, end, weights, slope, curvature)
    assert 0.0 <= t <= 1.0
    assert value(t) <= min(value(s) for s in np.linspace(0, 1, 501)) + 0.02 * (1 + abs(slope))
    assert best_total(start, weights) == pytest.approx(value(0.0))
    chosen = np.empty(n, np.int64)
    best_candidates(start, end, 0.5, chosen)
    half = 0.5 * (start + end)
    for i in range(n):
        assert chosen[i] == (half[i].argmax() if half[i].max() > 0 else -1)
    w = np.array([1.0, 2.0])
    blend(w, np.array([3.0, 0.0]), 0.25)
    assert w.tolist() == [1.5, 1.5]


# ----- pools -------------------------------------------------------------------------------------


def no_check():
    pass


@pytest.mark.parametrize("rescaling", RESCALINGS)
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_a_complete_pool_is_the_oracle(rescaling, layout):
    rng = np.random.default_rng(0)
    formulation = Formulation(rescaling)
    case = multiclass_case(rng, n=9, loss="costs", fit_intercept=True, layout=layout)
    pool = make_pool(Oracle(case.problem, formulation), 3, 2**20)
    weights = rng.uniform(0.5, 2.0, 9)
    for w in (np.zeros(case.problem.n_features), rng.normal(size=case.problem.n_features)):
        hinges, chosen = pool.call(w, no_check)
        assert np.allclose(hinges, hinge_values(case.problem, formulation, w))
        plane = np.zeros(len(w))
        offset = pool.add_up(chosen, weights, plane)
        assert offset - plane @ w == pytest.approx(weights @ hinges)


@pytest.mark.parametrize("rescaling", RESCALINGS)
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_a_pool_of_recent_candidates(structure, rescaling):
    rng = np.random.default_rng(5)
    formulation = Formulation(rescaling)
    case = make_case(structure, rng)
    n, n_features = case.problem.n_examples, case.problem.n_features
    blocks = all_planes(case.twin, formulation)
    pool = CandidatePool(Oracle(case.problem, formulation), 3, 2**20)
    weights = rng.uniform(0.5, 2.0, n)
    for step in range(12):
        w = rng.normal(size=n_features)
        hinges, chosen = pool.call(w, no_check)
        assert np.allclose(hinges, hinge_values(case.problem, formulation, w))
        table = pool.values(w)
        assert np.allclose(table.max(axis=1)[hinges > 0], hinges[hinges > 0])
        plane = np.zeros(n_features)
        offset = pool.add_up(chosen, weights, plane)
        assert offset - plane @ w == pytest.approx(weights @ hinges)
        for i, (b, A) in enumerate(blocks):  # every slot holds a candidate of its example, once
            held = table[i][table[i] > -1e29]
            values = b - A @ w
            assert all(np.isclose(values, value).any() for value in held)
        if step == 6:
            pool.forget(2)
            assert np.allclose(pool.values(w)[table > -1e29].max(), table.max())
    assert (pool.slots.last_used >= 0).sum(axis=1).max() > 1


@pytest.mark.parametrize(("rescaling", "kind"), [("margin", np.int16), ("slack", np.float64)])
def test_values_of_candidates_are_kept_exactly(rescaling, kind):
    """Counts in 16 bits; counts times a share of wrong labels in doubles."""
    case = chain_case(np.random.default_rng(4), lengths=[3] * 9, loss="normalized_hamming")
    formulation = Formulation(rescaling=rescaling)
    pool = CandidatePool(Oracle(case.problem, formulation), 3, 2**20)
    w = np.random.default_rng(5).normal(size=case.problem.n_features)
    pool.call(w, lambda: None)
    assert pool.slots.values.dtype == kind
    hinges = hinge_values(case.problem, formulation, w)
    np.testing.assert_allclose(pool.values(w).max(axis=1).clip(0.0), hinges, atol=1e-12)


def test_candidates_in_16_bits_stay_when_a_larger_one_comes(monkeypatch):
    case = chain_case(np.random.default_rng(4), lengths=[3] * 9)
    pool = CandidatePool(Oracle(case.problem, Formulation()), 3, 2**20)
    rng = np.random.default_rng(5)
    w, other = rng.normal(size=(2, case.problem.n_features))
    pool.call(w, lambda: None)
    before = pool.values(other)
    monkeypatch.setattr(pool_module, "LARGEST_SMALL", 0)
    pool.call(w, lambda: None)
    assert pool.slots.values.dtype == np.float64
    np.testing.assert_array_equal(pool.values(other), before)


def test_a_candidate_is_held_once():
    case = make_case("chain", np.random.default_rng(0))
    pool = CandidatePool(Oracle(case.problem, Formulation()), 5, 2**20)
    w = np.random.default_rng(1).normal(size=case.problem.n_features)
    for _ in range(3):
        _, chosen = pool.call(w, no_check)
    assert ((pool.slots.last_used >= 0).sum(axis=1) == (chosen >= 0)).all()


@pytest.mark.parametrize("structure", ["multiclass", "chain"])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_pool_with_weights_of_its_own(structure, intercept, monkeypatch):
    """It numbers the weights that its candidates touch, and is the same pool otherwise."""
    rng = np.random.default_rng(6)
    make = {"chain": chain_case, "multiclass": multiclass_case}[structure]
    case = make(rng, fit_intercept=intercept, layout="csr")
    n, n_features = case.problem.n_examples, case.problem.n_features
    plain = CandidatePool(Oracle(case.problem, Formulation()), 3, 2**20)
    monkeypatch.setattr(bundle_module, "DENSE_BELOW", -1)
    pool = CandidatePool(Oracle(case.problem, Formulation()), 3, 2**20)
    weights = rng.uniform(0.5, 2.0, n)
    own = np.empty(0)
    assert not plain.grows and pool.grows and pool.n_weights == 0
    for step in range(12):
        w = pool.expand(own).copy()
        assert np.count_nonzero(w) == len(own)
        hinges, chosen = pool.call(own, no_check)
        same_hinges, same_chosen = plain.call(w, no_check)
        assert np.allclose(hinges, same_hinges) and np.array_equal(chosen, same_chosen)
        own = np.concatenate((own, np.zeros(pool.n_weights - len(own))))
        table = pool.values(own)
        assert np.allclose(table, plain.values(w))
        if step % 5 == 4:
            pool.forget(3)
            plain.forget(3)
            pool.renew(table, hinges, chosen)
            assert np.allclose(table, pool.values(own))
            assert np.allclose(table, plain.values(w))
        plane, same_plane = np.zeros(pool.n_weights), np.zeros(n_features)
        offset = pool.add_up(chosen, weights, plane)
        assert offset == pytest.approx(plain.add_up(chosen, weights, same_plane))
        assert np.allclose(pool.expand(plane), same_plane)
        own = rng.normal(size=pool.n_weights)
    assert 0 < pool.n_weights <= n_features


def test_the_least_recently_used_candidate_goes_first():
    case = chain_case(np.random.default_rng(2), lengths=(3,))
    pool = CandidatePool(Oracle(case.problem, Formulation()), 2, 2**20)
    rng, seen = np.random.default_rng(3), []
    while len(seen) < 3:
        w = rng.normal(size=case.problem.n_features)
        before = pool.slots.last_used.copy()
        _, chosen = pool.call(w, no_check)
        if chosen[0] >= 0 and before[0, chosen[0]] < pool.clock - 1:
            seen.append((int(chosen[0]), before[0].tolist()))
    slot, before = seen[-1]
    assert before[slot] == min(before)


# ----- variants of the solver --------------------------------------------------------------------

VARIANTS = {
    "paper": {"reach": 1.0, "cache_size": 0},
    "paper, cached": {"reach": 1.0},
    "one candidate": {"cache_size": 1},
    "line search": {"qp": "line_search", "tol": 1e-2},
    "line search, paper": {"qp": "line_search", "reach": 1.0, "tol": 1e-2},
    "single line search": {"qp": "single_line_search", "tol": 3e-2},
    "smo": {"qp": "smo"},
    "smo to a threshold": {"qp": "smo", "kkt": 1e-9, "reach": 1.0},
    "printed fsmo": {"qp": "fsmo_paper", "kkt": 1e-9, "tol": 1e-3},
    "the paper's cache": {"cache": "paper", "reach": 1.0, "cache_size": 3},
    "impatient": {"inactive_limit": 1},
    "no room": {"cache_mb": 0.0},
}


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_reach_the_optimum(variant, structure, rescaling):
    formulation = Formulation(rescaling)
    loss = {"loss": "costs"} if structure == "multiclass" else {}
    case = make_case(structure, np.random.default_rng(7), fit_intercept=True, **loss)
    result = solve(case.problem, 0.5, formulation, **VARIANTS[variant])
    assert result.converged
    optimum = optimum_of(case, 0.5, formulation)
    assert result.dual <= optimum.value * (1 + 1e-9)
    tol = VARIANTS[variant].get("tol", 1e-6)
    assert result.primal == pytest.approx(optimum.value, rel=1.01 * tol)


@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_sparse_planes_lead_to_the_same_weights(structure, monkeypatch):
    case = make_case(structure, np.random.default_rng(8))
    dense = solve(case.problem, 1.0)
    monkeypatch.setattr(bundle_module, "DENSE_BELOW", -1)
    sparse = solve(case.problem, 1.0)
    assert not sparse.state.bundle.dense
    assert sparse.primal == pytest.approx(dense.primal, rel=2e-6)


def medium_case():
    return chain_case(np.random.default_rng(0), lengths=[4] * 60, n_inputs=8, K=4)


def test_the_cache_saves_oracle_calls():
    problem = medium_case().problem
    passes = {
        size: solve(problem, 0.5, tol=1e-3, cache_size=size, reach=1.0).n_passes for size in (0, 10)
    }
    assert passes[10] < 0.5 * passes[0]
    result = solve(problem, 0.05, tol=1e-3)
    assert result.n_cache_hits > result.n_oracle_calls


def test_the_papers_cache_serves_classes_too():
    """Their outputs can all be listed, so that by default there is none."""
    problem = multiclass_case(np.random.default_rng(0), n=80, n_inputs=6, K=5).problem
    options = {"violation": 1e-3, "kkt": 1e-4, "qp": "fsmo"}
    cached, plain = (
        OneSlack.published(cache_size=size, **options).solve(problem, Formulation(), 0.5)
        for size in (10, 0)
    )
    assert isinstance(cached.state.pool, CandidatePool)
    assert cached.status == plain.status == "converged"
    assert cached.n_passes < 0.5 * plain.n_passes and cached.n_cache_hits > 0
    # Both are the master's minimisers, whose planes are violated by no more than epsilon.
    for result in (cached, plain):
        total = 0.5 * 80
        assert result.primal - result.dual <= 1.2e-3 * total


def test_a_single_line_search_is_that_of_theorem_5():
    bundle, planes, offsets = filled_bundle(np.random.default_rng(4), 5, 8, 0.4)
    bundle.solve(0.05)
    before = bundle.alpha[:5].copy()
    values = offsets - planes @ (before @ planes)
    u = int(np.argmax(values))
    bundle.search_line()
    after = bundle.alpha[:5].copy()
    rest = np.arange(5) != u
    step = 1.0 - after[rest].sum() / before[rest].sum()
    assert 0.0 < step <= 1.0
    assert after[rest] == pytest.approx((1.0 - step) * before[rest])
    assert after[u] == pytest.approx((1.0 - step) * before[u] + step * 0.4)

    def dual(t):
        alpha = (1.0 - t) * before
        alpha[u] += t * 0.4
        return alpha @ offsets - 0.5 * np.sum((alpha @ planes) ** 2)

    assert dual(step) >= max(dual(t) for t in np.linspace(0.0, 1.0, 1001)) - 1e-12


def test_a_center_saves_planes():
    problem = medium_case().problem
    steps = {
        reach: len(solve(problem, 1.0, tol=1e-3, reach=reach, cache_size=50).history)
        for reach in (0.1, 1.0)
    }
    assert steps[0.1] < 0.85 * steps[1.0]


def test_states_of_other_solvers_are_left_alone():
    case = make_case("chain", np.random.default_rng(4))
    optimum = optimum_of(case, 1.0).value
    own = solve(case.problem, 0.3)
    other = make_solver("auto", tol=1e-6).solve(case.problem, Formulation(), 0.3)
    there = make_solver("auto", tol=1e-6).solve(case.problem, Formulation(), 1.0, warm_start=own)
    back = solve(case.problem, 1.0, warm_start=other)
    for result in (there, back):
        assert result.primal == pytest.approx(optimum, rel=2e-6)


def test_an_interrupt_leaves_no_state_behind():
    def interrupt(progress):
        raise KeyboardInterrupt

    case = make_case("chain", np.random.default_rng(0))
    result = solve(case.problem, 1.0, callbacks=[interrupt])
    assert result.state is None and result.gap is not None
    assert solve(case.problem, 1.0, warm_start=result).converged


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"qp": "simplex"}, "qp must be 'fsmo', 'fsmo_paper', 'smo', .*, got 'simplex'"),
        ({"reach": 0.0}, r"reach must be in \(0, 1\], got 0"),
        ({"reach": 1.5}, r"reach must be in \(0, 1\], got 1.5"),
        ({"violation": 0.1}, "violation must be positive, with reach=1, got 0.1 and 0.1"),
        ({"qp": "fsmo_paper"}, "give kkt, such as 0.001"),
        ({"cache": "paper"}, "cache='paper' needs reach=1, got 0.1"),
        ({"cache": "none"}, "cache must be 'fast' or 'paper', got 'none'"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        solve(make_case("chain", np.random.default_rng(0)).problem, 1.0, **parameters)


def test_the_master_solved_by_the_papers_rule():
    """Lee & Jang's threshold, in units of mean loss: no score of the last master is off by more."""
    case = make_case("chain", np.random.default_rng(4))
    n, kkt = case.problem.n_examples, 1e-3
    options = {"reach": 1.0, "cache_size": 0, "tol": None, "epsilon": 0.01}
    result = make_solver("one_slack", kkt=kkt, **options).solve(case.problem, Formulation(), 0.5)
    assert result.converged
    bundle = result.state.bundle
    bundle.solve(0.0, kkt * n)
    bundle.refresh()
    scores, alpha = bundle.scores[: bundle.size], bundle.alpha[: bundle.size]
    slack = max(0.0, float(scores.max()))
    assert np.all(slack - scores[alpha > 0.0] <= kkt * n * (1.0 + 1e-9))
    before = alpha.copy()
    bundle.solve(0.0, kkt * n)
    assert np.array_equal(before, alpha)  # nothing moves any more
    bundle.solve(0.0, 0.0)
    assert not np.array_equal(before, alpha)  # though there is something to gain


@pytest.mark.parametrize("options", [{"kkt": 0.0}, {"kkt": 0.1, "qp": "line_search"}])
def test_a_threshold_of_the_master_needs_fsmo(options):
    case = make_case("chain", np.random.default_rng(4))
    with pytest.raises(ValueError, match="kkt must be positive, with qp in"):
        make_solver("one_slack", **options).solve(case.problem, Formulation(), 0.5)
