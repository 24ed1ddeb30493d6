"""Squared slacks: the same stores and solvers, against the same oracles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brute import all_planes
from cases import BASIC_KINDS, make_case, multiclass_case
from exact_qp import solve_exactly
from maxmargin import MulticlassSVM
from maxmargin.core.formulation import Formulation
from maxmargin.core.objective import ridges, scale_to_fit
from maxmargin.engine.oracle import Oracle
from maxmargin.engine.steps.block_steps import (
    ALL_PLANES,
    COORDINATES,
    MVP,
    WSS2,
    block_gap,
    improve_block,
)
from maxmargin.engine.store.block_store import StepRule, make_store
from maxmargin.engine.store.planes import PlaneStore
from maxmargin.problems.classes.multiclass import ClassStore
from maxmargin.solvers import solvers_for
from solving import (
    RESCALINGS,
    check_certificate,
    check_optimal,
    medium_chains,
    medium_classes,
    small_case,
    solve,
)
from stores import check_store, operations, run_operations

PLENTY = 10**9
#: Every formulation with squared slacks: rescaling, and whether the root of the loss is taken.
FORMULATIONS = [
    Formulation(rescaling, "l2", sqrt_loss)
    for rescaling in RESCALINGS
    for sqrt_loss in ((True,) if rescaling == "none" else (True, False))
]
FORMULATION_IDS = [f"{f.rescaling}-{'root' if f.uses_sqrt_loss else 'loss'}" for f in FORMULATIONS]
L2_SOLVERS = solvers_for(FORMULATIONS[0])
KINDS = {"mvp": MVP, "wss2": WSS2, "all-planes": ALL_PLANES}
seeds = st.integers(0, 2**32 - 1)
rules = st.builds(
    StepRule,
    kind=st.sampled_from([*KINDS.values(), COORDINATES]),
    max_steps=st.sampled_from([0, 1, 3, 30]),
    precision=st.sampled_from([0.0, 0.1]),
    threshold=st.sampled_from([0.0, 0.05]),
    delta=st.sampled_from([0.0, 0.1]),
    seed=st.integers(0, 2**31 - 2),
)


def formulations():
    return st.sampled_from(FORMULATIONS)


# ----- steps inside a block ----------------------------------------------------------------------


class Block:
    """A random block with squared slack; plane 0 is the truth, whose plane is zero."""

    def __init__(self, seed, m=5, rank=4, cap=1.0):
        rng = np.random.default_rng(seed)
        self.cap, self.ridge = cap, 0.5 / cap
        self.planes = rng.normal(size=(m, rank))
        self.offsets = rng.uniform(0.0, 2.0, m)
        self.planes[0], self.offsets[0] = 0.0, 0.0
        self.rest = rng.normal(size=rank)  # part of w that belongs to other blocks
        self.alpha = min(cap, 3.0) * rng.exponential(size=m) * (rng.random(m) < 0.6)
        self.alpha[0] = np.inf
        self.gram = self.planes @ self.planes.T
        self.gram[1:, 1:] += self.ridge

    def values(self, alpha):
        return self.offsets - self.planes @ (self.rest + alpha[1:] @ self.planes[1:])

    def scores(self, alpha):
        scores = self.values(alpha) - self.ridge * alpha[1:].sum()
        scores[0] = 0.0
        return scores

    def dual(self, alpha):
        w = self.rest + alpha[1:] @ self.planes[1:]
        return alpha[1:] @ self.offsets[1:] - 0.5 * w @ w - alpha[1:].sum() ** 2 / (4 * self.cap)

    def gap(self, alpha):
        """Primal minus dual value, the rest of w held fixed: both have it in the same terms."""
        slack = max(0.0, self.values(alpha).max())
        held = alpha[1:] @ self.values(alpha)[1:]
        return self.cap * slack**2 - held + alpha[1:].sum() ** 2 / (4 * self.cap)

    def optimum(self):
        """Largest dual value, by the generic QP over this block alone."""
        linear = self.offsets - self.planes @ self.rest
        if len(linear) == 1 or linear[1:].max() <= 0:
            return -0.5 * float(self.rest @ self.rest)
        solved = solve_exactly([(linear[1:], self.planes[1:])], self.cap, slack="l2")
        return solved.value - 0.5 * float(self.rest @ self.rest)

    def improve(self, kind, max_steps, stop_gap=0.0):
        alpha, scores = self.alpha.copy(), self.scores(self.alpha)
        gain = improve_block(
            kind, max_steps, stop_gap, scores, alpha, self.gram, len(alpha), self.cap, self.ridge
        )
        return gain, alpha, scores


def blocks():
    return st.builds(
        Block, seeds, st.integers(1, 7), st.integers(1, 6), st.sampled_from([1e-3, 1.0, 50.0])
    )


@pytest.mark.nojit
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@given(block=blocks(), max_steps=st.integers(0, 4))
def test_a_step_gains_what_it_says(kind, block, max_steps):
    gain, alpha, scores = block.improve(kind, max_steps)
    size = 1.0 + abs(block.dual(block.alpha)) + block.alpha[1:].sum() ** 2
    assert gain >= 0.0
    assert gain == pytest.approx(block.dual(alpha) - block.dual(block.alpha), abs=1e-10 * size)
    assert np.all(alpha >= 0.0) and alpha[0] == np.inf
    assert np.allclose(scores, block.scores(alpha), atol=1e-10 * size)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@given(block=blocks())
def test_many_steps_reach_the_optimum(kind, block):
    _, alpha, scores = block.improve(kind, 20000)
    best = block.optimum()
    assert block.dual(alpha) == pytest.approx(best, abs=1e-7 * (1.0 + abs(best)))
    gap, _ = block_gap(scores, alpha, len(alpha), block.cap, block.ridge)
    assert gap <= 1e-6 * (1.0 + abs(best))


@pytest.mark.nojit
@given(block=blocks())
def test_the_gap_is_that_of_the_objective(block):
    gap, u = block_gap(
        block.scores(block.alpha), block.alpha, len(block.alpha), block.cap, block.ridge
    )
    size = 1.0 + abs(gap)
    assert gap == pytest.approx(block.gap(block.alpha), abs=1e-9 * size)
    assert gap >= -1e-9 * size
    assert u == np.argmax(block.scores(block.alpha))
    assert block.optimum() - block.dual(block.alpha) <= gap + 1e-7 * size


# ----- the stores --------------------------------------------------------------------------------


@pytest.mark.parametrize("compact", [False, True], ids=["planes", "compact"])
@settings(max_examples=60)
@given(data=st.data(), formulation=formulations(), kind=st.sampled_from(BASIC_KINDS))
def test_stores(compact, formulation, kind, data):
    structure, loss = kind
    rng = np.random.default_rng(data.draw(seeds))
    case = make_case(structure, rng, loss=loss)
    n = case.problem.n_examples
    caps = data.draw(st.sampled_from([0.1, 1.0, 20.0])) * rng.uniform(0.2, 2.0, n)
    caps[rng.integers(n)] = 0.0
    store = (make_store if compact else PlaneStore)(Oracle(case.problem, formulation), caps, PLENTY)
    assert isinstance(store, ClassStore) == (compact and structure == "multiclass")
    run_operations(store, case.twin, data.draw(operations(n, rules)))


@pytest.mark.nojit
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_stores_without_compilation(structure):
    case = make_case(structure, np.random.default_rng(2))
    every = list(range(case.problem.n_examples))
    drawn = [
        ("oracle_pass", every, StepRule(WSS2, 1)),
        ("extrapolate", 0.0),
        ("oracle_pass", every, StepRule(ALL_PLANES, 5, 0.1)),
        ("extrapolate", 3.0),
        ("oracle_pass", every, StepRule(MVP, 2, 0.0, 0.01)),
        ("compact", True),
        ("cached_pass", every, StepRule(WSS2, 3)),
        ("oracle_pass", every, StepRule(COORDINATES, 2, delta=0.01, seed=5)),
    ]
    for formulation in (Formulation("margin", "l2"), Formulation("slack", "l2", False)):
        store = make_store(Oracle(case.problem, formulation), np.full(len(every), 2.0), PLENTY)
        run_operations(store, case.twin, drawn)


@pytest.mark.parametrize("compact", [False, True], ids=["planes", "classes"])
@pytest.mark.parametrize("formulation", FORMULATIONS, ids=FORMULATION_IDS)
def test_gaps_at_a_fixed_w_are_the_duality_gap(compact, formulation):
    rng = np.random.default_rng(0)
    case = multiclass_case(rng, loss="costs")
    caps, every = rng.uniform(0.5, 2.0, 6), np.arange(6)
    caps[2] = 0.0
    store = (make_store if compact else PlaneStore)(Oracle(case.problem, formulation), caps, PLENTY)
    for _ in range(3):
        report = store.oracle_pass(every, StepRule(WSS2, 0))
        planes = all_planes(case.twin, formulation)
        slacks = np.array([max(0.0, (b - A @ store.w).max()) for b, A in planes])
        assert np.allclose(np.maximum(report.hinges, 0.0), slacks)
        primal = 0.5 * store.w @ store.w + caps @ slacks**2
        assert report.gaps.sum() == pytest.approx(primal - store.dual())
        store.oracle_pass(every, StepRule(WSS2, 1))


@pytest.mark.parametrize("loss", ["zero_one", "costs"])
@given(seed=seeds, C=st.sampled_from([0.01, 1.0, 100.0]), K=st.integers(2, 6))
def test_the_closed_form_solves_a_multiclass_block(loss, seed, C, K):
    """One visit of a block makes it optimal, with every class in play."""
    case = multiclass_case(np.random.default_rng(seed), n=4, K=K, loss=loss)
    store = make_store(Oracle(case.problem, Formulation("margin", "l2")), np.full(4, C), 0)
    for i in range(4):
        store.oracle_pass(np.array([i]), StepRule(WSS2, 1))
    before = store.oracle_pass(np.array([0]), StepRule(ALL_PLANES, 1)).gaps[0]
    after = store.oracle_pass(np.array([0]), StepRule(ALL_PLANES, 0)).gaps[0]
    assert abs(after) <= 1e-9 * (1.0 + before)
    check_store(store)


@pytest.mark.parametrize("compact", [False, True], ids=["planes", "classes"])
@given(seed=seeds, kind=st.sampled_from(["same", "larger", "smaller", "mixed", "some zero"]))
def test_other_weights(compact, seed, kind):
    """A store goes on with another C: no multiplier is bounded, but examples may vanish."""
    rng = np.random.default_rng(seed)
    case = multiclass_case(rng, loss="costs")
    caps, every = rng.uniform(0.5, 2.0, 6), np.arange(6)
    caps[0] = 0.0
    oracle = Oracle(case.problem, Formulation(slack="l2"))
    store = (make_store if compact else PlaneStore)(oracle, caps, PLENTY)
    for _ in range(3):
        store.oracle_pass(every, StepRule(WSS2, 3))
    factor = {
        "same": np.ones(6),
        "larger": np.full(6, 10.0),
        "smaller": np.full(6, 0.01),
        "mixed": rng.uniform(0.1, 10.0, 6),
        "some zero": rng.integers(0, 2, 6).astype(float),
    }[kind]
    new = caps * factor
    new[0] = 1.0
    store.rescale(new)
    dual = check_store(store)
    assert dual >= -1e-12  # the best multiple of the multipliers is no worse than none
    for _ in range(3):
        store.extrapolate(1.0)
        store.oracle_pass(every, StepRule(WSS2, 3))
        after = check_store(store)
        assert after >= dual - 1e-10 * (1 + abs(dual))
        dual = after


def test_ridges():
    caps = np.array([0.0, 0.5, 2.0])
    assert ridges(Formulation(slack="l2"), caps).tolist() == [0.0, 1.0, 0.25]
    assert not ridges(Formulation(), caps).any()


def test_scale_to_fit():
    """Capped: the factor that fits. Squared: the best multiple, D(t) = 3 t - t^2/2 (1 + 4/2)."""
    w, sums = np.array([1.0]), np.array([2.0, 0.0])
    old, new = np.array([1.0, 0.0]), np.array([1.0, 1.0])
    assert scale_to_fit(w, 3.0, Formulation(slack="l2"), sums, old, new) == pytest.approx(1.0)
    assert scale_to_fit(w, 3.0, Formulation(slack="l2"), sums, old, 0.0 * new) == 0.0
    assert scale_to_fit(w, 3.0, Formulation(), sums, old, 0.25 * new) == 0.25


# ----- solvers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", L2_SOLVERS)
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_sample_weights_and_warm_starts(structure, solver):
    case, formulation = make_case(structure, np.random.default_rng(8)), Formulation(slack="l2")
    n = case.problem.n_examples
    weights = np.random.default_rng(9).uniform(0.1, 3.0, n)
    weights[[0, n - 1]] = 0.0
    first = solve(solver, case.problem, 0.7, formulation, sample_weight=weights)
    check_optimal(first, case, 0.7, formulation, weights)
    second = solve(solver, case.problem, 0.2, formulation, warm_start=first)
    check_optimal(second, case, 0.2, formulation)
    back = solve(solver, case.problem, 0.7, formulation, sample_weight=weights, warm_start=second)
    check_optimal(back, case, 0.7, formulation, weights)


@pytest.mark.parametrize("solver", L2_SOLVERS)
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_an_example_without_features(solver, rescaling):
    """Its planes are (b, 0): a constant in the primal that the dual has to earn, too."""
    case = multiclass_case(np.random.default_rng(1), n=4, loss="costs")
    X = case.twin.X.copy()
    X[1] = 0.0
    case.twin.X = X
    problem = type(case.problem)(X, case.twin.y, 3, costs=case.twin.costs)
    formulation = Formulation(rescaling, "l2")
    result = solve(solver, problem, 0.4, formulation)
    check_optimal(result, case._replace(problem=problem), 0.4, formulation)


@pytest.mark.parametrize("solver", L2_SOLVERS)
def test_no_weight_at_all(solver):
    problem = make_case("chain", np.random.default_rng(0)).problem
    formulation = Formulation(slack="l2")
    result = solve(solver, problem, 1.0, formulation, sample_weight=np.zeros(problem.n_examples))
    assert result.converged and result.primal == result.dual == 0.0 and not result.w.any()


@pytest.mark.parametrize("solver", L2_SOLVERS)
def test_epsilon_is_the_gap_per_weight(solver):
    case, formulation = small_case("chain", "hamming", 1), Formulation(slack="l2")
    weights = np.linspace(0.5, 2.0, case.problem.n_examples)
    result = solve(
        solver, case.problem, 0.4, formulation, sample_weight=weights, tol=None, epsilon=1e-3
    )
    assert result.converged and result.gap <= 1e-3 * 0.4 * weights.sum()
    check_certificate(result, case, 0.4, formulation, weights)


@pytest.mark.parametrize("make", [medium_classes, medium_chains])
def test_all_solvers_agree(make):
    problem = make()
    for formulation in (Formulation("margin", "l2", False), Formulation("slack", "l2")):
        results = [
            solve(name, problem, 0.05, formulation, tol=1e-3, max_passes=500) for name in L2_SOLVERS
        ]
        lowest = min(result.primal for result in results)
        assert max(result.dual for result in results) <= lowest * (1.0 + 1e-9)
        for name, result in zip(L2_SOLVERS, results, strict=True):
            assert result.converged, name
            assert result.primal <= lowest * 1.001


def test_estimators_take_squared_slacks():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)
    plain = MulticlassSVM(C=0.1, slack="l2", tol=1e-6).fit(X, y)
    assert plain.result_.converged
    other = MulticlassSVM(C=0.1, slack="l1", tol=1e-6).fit(X, y)
    assert not np.allclose(plain.coef_, other.coef_, atol=1e-3)
