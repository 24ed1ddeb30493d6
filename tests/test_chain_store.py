"""The store of chains: true visits equal the oracle, revisits find the best recombination."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import chain_case
from checking import expand_blocks
from maxmargin.core.formulation import Formulation
from maxmargin.engine.oracle import Oracle
from maxmargin.engine.parallel import threads
from maxmargin.engine.parallel.threads import Threads
from maxmargin.engine.rows import make_rows
from maxmargin.engine.steps.block_steps import WSS2
from maxmargin.engine.store.block_store import StepRule, make_store
from maxmargin.engine.store.planes import PlaneStore
from maxmargin.engine.training.verifying import hinge_values
from maxmargin.problems.chain import store as chain_store
from maxmargin.problems.chain.kernels import NEAR, SEVERAL, token_scores
from maxmargin.problems.chain.problem import ChainProblem
from maxmargin.problems.chain.store import ChainStore
from maxmargin.problems.chain.store_kernels import WORTHWHILE
from maxmargin.solvers import SOLVERS, make_solver
from stores import check_store

PLENTY = 10**9
STEPS = StepRule(WSS2, 20)
LOOK = StepRule(WSS2, 0, recombine=True)
seeds = st.integers(0, 2**32 - 1)


def random_store(seed, slack="l1", **options):
    """A store after some visits of a random problem, and the problem's twin."""
    rng = np.random.default_rng(seed)
    case = chain_case(rng, lengths=(4, 1, 3, 2), K=3, **options)
    caps = rng.uniform(0.1, 2.0, 4)
    formulation = Formulation(slack=slack, sqrt_loss=False)
    store = make_store(Oracle(case.problem, formulation), caps, PLENTY)
    assert isinstance(store, ChainStore)
    for _ in range(rng.integers(1, 4)):
        store.oracle_pass(rng.permutation(4), STEPS)
    return case, store


def stored(store, i):
    """``(plane ids, parts)`` of block i."""
    arena, planes, parts = store.arena, [], []
    p = store.blocks.first[i]
    while p >= 0:
        parts += list(arena.new_features[arena.new_start[p] : arena.new_start[p + 1]])
        planes.append(p)
        p = arena.next_plane[p]
    return planes, parts


@pytest.mark.nojit
@settings(max_examples=20, deadline=None)
@given(seeds, st.booleans(), st.booleans(), st.booleans(), st.sampled_from(["l1", "l2"]))
def test_a_visit_asks_the_true_oracle(seed, boundary, constrained, normalized, slack):
    loss = "normalized_hamming" if normalized else "hamming"
    case, store = random_store(
        seed, slack, boundary_weights=boundary, constrained=constrained, loss=loss
    )
    hinges = store.oracle_pass(np.arange(4), LOOK).hinges
    np.testing.assert_allclose(
        hinges, hinge_values(case.problem, store.formulation, store.w), atol=1e-9
    )


@settings(max_examples=20, deadline=None)
@given(
    seeds,
    st.booleans(),
    st.sampled_from(["dense", "csr"]),
    st.sampled_from(["l1", "l2"]),
    st.integers(1, 9),
    st.sampled_from([1, PLENTY]),
)
def test_what_threads_find_is_stored_as_by_one(seed, constrained, layout, slack, size, cache):
    rng = np.random.default_rng(seed)
    case = chain_case(
        rng, lengths=rng.integers(1, 6, 21), K=3, constrained=constrained, layout=layout
    )
    caps = rng.uniform(0.0, 1.0, 21) * (rng.random(21) < 0.8)
    formulation = Formulation(slack=slack, sqrt_loss=False)
    stores = [make_store(Oracle(case.problem, formulation), caps, cache) for _ in range(2)]
    stores[1].oracle.threads = Threads(2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "WORTH_SHARING", 0.0)
        patch.setattr(chain_store, "CERTIFIED", 3 * size)
        for _ in range(3):
            order, visited = rng.permutation(21), rng.permutation(21)
            reports = [list(store.certify_pass(order, size, StepRule(WSS2, 0))) for store in stores]
            for store, report in zip(stores, reports, strict=True):
                hinges = np.concatenate([found.hinges for _, found in report])
                true = hinge_values(case.problem, formulation, store.w)
                np.testing.assert_allclose(hinges, np.maximum(true[order], 0.0), atol=1e-9)
                store.oracle_pass(visited, STEPS)
                check_store(store)
            if cache == PLENTY:  # else planes are merged, before or after others were compared
                for (batch, one), (same, two) in zip(*reports, strict=True):
                    assert np.array_equal(batch, same) and np.array_equal(one, two)
    one, two = stores
    assert one.n_planes > 0 and one.oracle.calls == two.oracle.calls
    if cache == PLENTY:
        assert one.work == two.work and np.array_equal(one.w, two.w)
        for name in ("offset", "alpha", "block"):
            values = (getattr(store.arena, name)[: store.used[0]] for store in stores)
            assert np.array_equal(*values)


@pytest.mark.nojit
@settings(max_examples=20, deadline=None)
@given(seeds, st.booleans(), st.booleans(), st.booleans())
def test_a_revisit_finds_the_best_recombination_of_stored_labels(
    seed, boundary, constrained, in_use
):
    with pytest.MonkeyPatch.context() as patch:
        if in_use:
            patch.setattr(chain_store, "MANY_WEIGHTS", 1)
        check_recombinations(
            *random_store(seed, boundary_weights=boundary, constrained=constrained)
        )


def check_recombinations(case, store):
    """Compare gaps with those found by listing all recombinations."""
    problem, w = case.problem, store.w.copy()
    K = problem.layout.n_labels
    of_stored, expected = np.zeros(4), np.zeros(4)
    for i in range(4):
        planes, parts = stored(store, i)
        first, last = problem.data.offsets[i : i + 2]
        truth = problem.data.labels[first:last]
        known = [{int(label)} for label in truth]
        for part in parts:
            if part < store.feature_blocks.n_row_blocks:
                known[part // K - first].add(int(part % K))
        twin = case.twin
        allowed = [
            y for y in twin.outputs(i) if all(k in of for k, of in zip(y, known, strict=True))
        ]
        lattice = max(twin.loss(i, y) - twin.dpsi(i, y) @ w for y in allowed)
        arena = store.arena
        scores = np.array([value_of_plane(store, p, parts) for p in planes])
        best = max(0.0, *scores) if planes else 0.0
        held = float(arena.alpha[planes] @ scores) if planes else 0.0
        gap = store.upper_bounds[i] * best - held
        found = store.upper_bounds[i] * max(best, lattice) - held
        of_stored[i] = gap
        expected[i] = found if found - gap >= WORTHWHILE * found else gap
    store.prepare_cached_passes()
    stored_only = LOOK._replace(recombine=False)
    np.testing.assert_allclose(store.cached_pass(np.arange(4), stored_only), of_stored, atol=1e-9)
    np.testing.assert_allclose(store.cached_pass(np.arange(4), LOOK), expected, atol=1e-9)


def value_of_plane(store, p, parts):
    """Hinge value of plane p at the store's weights."""
    return store.arena.offset[p] - expanded_plane(store, p, parts) @ store.w


def expanded_plane(store, p, parts):
    """Plane p of a block with these parts, as a vector of all weights."""
    arena = store.arena
    entries = slice(arena.entry_start[p], arena.entry_start[p + 1])
    used = [parts[f] for f in arena.ids[entries]]
    return expand_blocks(store.feature_blocks, used, arena.values[entries], len(store.w))


@pytest.mark.parametrize("formulation", [Formulation("slack"), Formulation(sqrt_loss=True)])
def test_losses_that_do_not_add_up_use_the_general_store(formulation):
    case = chain_case(np.random.default_rng(0))
    assert type(make_store(Oracle(case.problem, formulation), np.ones(4), PLENTY)) is PlaneStore


def test_a_subclass_with_an_oracle_of_its_own_is_asked():
    class Own(ChainProblem):
        asked = 0

        def oracle(self, *args, **kwargs):
            self.asked += 1
            return super().oracle(*args, **kwargs)

    problem = Own(np.eye(3), [0, 1, 3], [0, 1, 0], 2)
    store = make_store(Oracle(problem, Formulation()), np.ones(2), PLENTY)
    store.oracle_pass(np.arange(2), STEPS)
    assert problem.asked == 1


@pytest.mark.parametrize(
    "formulation", [Formulation(), Formulation("margin", "l2", sqrt_loss=False)], ids=str
)
@pytest.mark.parametrize("solver", ["sda", "fasole", "sdm", "bcfw", "dcd_light", "dcd", "cpd"])
def test_the_papers_solvers_keep_planes_of_the_oracle_only(solver, formulation, monkeypatch):
    """`auto` recombines stored planes; the others never ask for it, with either slack."""
    if formulation.slack not in SOLVERS[solver].slacks:
        pytest.skip("not this slack")
    asked = []
    cached_pass, solve_jointly = ChainStore.cached_pass, ChainStore.solve_jointly

    def watched(self, examples, rule):
        asked.append(rule.recombine)
        return cached_pass(self, examples, rule)

    def watched_jointly(self, stop_gap, most_work, recombine=False):
        asked.append(recombine)
        return solve_jointly(self, stop_gap, most_work, recombine)

    monkeypatch.setattr(ChainStore, "cached_pass", watched)
    monkeypatch.setattr(ChainStore, "solve_jointly", watched_jointly)
    case = chain_case(np.random.default_rng(0), lengths=(5, 4, 3, 5))
    options = {"tol": 1e-3, "max_passes": 300}
    for joint in (True, False):
        asked.clear()
        make_solver("auto", joint=joint, **options).solve(case.problem, formulation, 0.5)
        assert any(asked)
    asked.clear()
    make_solver(solver, **options).solve(case.problem, formulation, 0.5)
    if solver in ("fasole", "sdm"):
        assert asked
        make_solver(solver, joint=False, **options).solve(case.problem, formulation, 0.5)
    assert not any(asked)


@pytest.mark.nojit
@settings(max_examples=20, deadline=None)
@given(seeds, st.booleans(), st.booleans(), st.booleans(), st.sampled_from(["l1", "l2"]))
def test_revisits_on_the_weights_in_use(seed, boundary, constrained, bias, slack):
    """Planes, products, weights and dual fit each other when all weights are back."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chain_store, "MANY_WEIGHTS", 1)
        _, store = random_store(
            seed,
            slack,
            boundary_weights=boundary,
            constrained=constrained,
            fit_intercept=bias,
            layout="csr",
        )
        n_parts, duals = store.feature_blocks.n_feature_blocks, [store.dual()]
        store.prepare_cached_passes()
        assert (
            store.feature_blocks.n_labels == 1
        )  # parts are lists of weights now, whatever their label
        store.extrapolate(0.0)
        for blocks in ([2, 0, 3], [0, 1, 2, 3]):
            store.cached_pass(np.array(blocks), STEPS._replace(recombine=True))
            store.extrapolate(1.0)
            duals.append(float(store.dual_now[0]))
        gaps = store.cached_pass(np.arange(4), LOOK._replace(recombine=False))
        w = store.arrays()["w"]
    assert np.all(np.diff(duals) >= -1e-12)
    assert store.feature_blocks.n_feature_blocks == n_parts
    np.testing.assert_allclose(
        store.cached_pass(np.arange(4), LOOK._replace(recombine=False)), gaps
    )
    assert store.dual() == pytest.approx(duals[-1], abs=1e-9)
    store.rebuild()
    np.testing.assert_allclose(store.w, w, atol=1e-10)
    for i in range(4):
        planes, parts = stored(store, i)
        rows = np.array([expanded_plane(store, p, parts) for p in planes])
        for j, p in enumerate(planes):
            start = store.arena.gram_start[p]
            products = store.arena.gram[start : start + j + 1]
            np.testing.assert_allclose(products, rows[: j + 1] @ rows[j], atol=1e-9)


@pytest.mark.nojit
@pytest.mark.parametrize("K", [SEVERAL - 1, SEVERAL, 22])
@pytest.mark.parametrize("n_inputs", [4, NEAR // SEVERAL])
def test_scores_of_tokens_with_few_and_with_many_weights(K, n_inputs):
    rng = np.random.default_rng(K)
    tokens = sp.random_array(
        (9, n_inputs), density=20 / n_inputs if n_inputs > 20 else 0.5, rng=rng
    )
    W = rng.normal(size=(n_inputs, K))
    unary = np.full((7, K), np.nan)
    token_scores(make_rows(tokens.tocsr()), 2, 7, W.ravel(), K, unary)
    np.testing.assert_allclose(unary, (tokens.tocsr() @ W)[2:9], atol=1e-12)
