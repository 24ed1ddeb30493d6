"""Dual coordinate descent; test_squared_slack.py and test_solvers.py tell that it is optimal."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brute import all_planes
from cases import make_case
from maxmargin.core.formulation import Formulation
from maxmargin.core.result import WeightsCallback
from maxmargin.engine.oracle import Oracle
from maxmargin.engine.steps.block_steps import COORDINATES, block_gap, sweep_block
from maxmargin.engine.store.block_store import StepRule, make_store
from maxmargin.engine.store.planes import PlaneStore
from maxmargin.solvers import make_solver
from maxmargin.solvers.base import TrainingRequest
from solving import (
    check_certificate,
    check_optimal,
    medium_chains,
    medium_classes,
    optimum_of,
    small_case,
    solve,
)
from test_squared_slack import Block, blocks, seeds

FAMILY = ("dcd_light", "dcd", "cpd")
SQUARED = Formulation("margin", "l2", sqrt_loss=False)  # that of Chang & Yih
LINEAR = Formulation("margin", "l1")
BOTH = pytest.mark.parametrize("formulation", [SQUARED, LINEAR], ids=["squared", "linear"])
PLENTY = 10**9


def sweep(block, max_sweeps, *, stop_gap=0.0, newest=0, seed=0):
    """Returns the kernel's gain and the new multipliers and scores."""
    alpha, scores = block.alpha.copy(), block.scores(block.alpha)
    m = len(alpha)
    order = np.zeros(m, np.int64)
    gain = sweep_block(
        max_sweeps,
        stop_gap,
        scores,
        alpha,
        block.gram,
        m,
        block.cap,
        block.ridge,
        newest,
        seed,
        order,
    )
    return gain, alpha, scores


@pytest.mark.nojit
@given(block=blocks(), sweeps=st.integers(0, 3), seed=st.integers(0, 2**31 - 2), data=st.data())
def test_a_sweep_gains_what_it_says(block, sweeps, seed, data):
    newest = data.draw(st.integers(0, len(block.alpha) - 1))
    gain, alpha, scores = sweep(block, sweeps, newest=newest, seed=seed)
    size = 1.0 + abs(block.dual(block.alpha)) + block.alpha[1:].sum() ** 2
    assert gain >= 0.0
    assert gain == pytest.approx(block.dual(alpha) - block.dual(block.alpha), abs=1e-10 * size)
    assert np.all(alpha >= 0.0) and alpha[0] == np.inf
    assert np.allclose(scores, block.scores(alpha), atol=1e-10 * size)


@pytest.mark.nojit
@given(seed=seeds, newest=st.integers(1, 2))
def test_algorithm_1_by_hand(seed, newest):
    """With two planes the order is known: the newest, then the other."""
    block = Block(seed, m=3)
    expected = block.alpha.copy()
    for j in (newest, 3 - newest):
        held = expected[1:].sum()
        w = block.rest + expected[1:] @ block.planes[1:]
        step = block.offsets[j] - block.planes[j] @ w - held / (2.0 * block.cap)
        step /= block.planes[j] @ block.planes[j] + 1.0 / (2.0 * block.cap)
        expected[j] = max(expected[j] + step, 0.0)
    gap, _ = block_gap(block.scores(block.alpha), block.alpha, 3, block.cap, block.ridge)
    if gap > 0.0:
        assert np.allclose(sweep(block, 1, newest=newest)[1][1:], expected[1:])


@given(block=blocks())
def test_many_sweeps_reach_the_optimum(block):
    _, alpha, scores = sweep(block, 20000)
    best = block.optimum()
    assert block.dual(alpha) == pytest.approx(best, abs=1e-7 * (1.0 + abs(best)))
    gap, _ = block_gap(scores, alpha, len(alpha), block.cap, block.ridge)
    assert gap <= 1e-6 * (1.0 + abs(best))


def test_the_order_is_drawn_from_the_seed():
    block = Block(3, m=7)
    ends = [sweep(block, 1, seed=seed)[1].tolist() for seed in range(20)]
    assert ends == [sweep(block, 1, seed=seed)[1].tolist() for seed in range(20)]
    assert len({tuple(end) for end in ends}) > 5


@given(block=blocks(), share=st.sampled_from([0.5, 0.1]))
def test_sweeps_stop_at_the_asked_precision(block, share):
    start, _ = block_gap(
        block.scores(block.alpha), block.alpha, len(block.alpha), block.cap, block.ridge
    )
    _, alpha, scores = sweep(block, 20000, stop_gap=share * start)
    gap, _ = block_gap(scores, alpha, len(alpha), block.cap, block.ridge)
    assert gap <= share * start + 1e-9 * (1.0 + start)


# ----- working sets ------------------------------------------------------------------------------


@pytest.mark.parametrize("compact", [False, True], ids=["planes", "classes"])
def test_planes_below_the_threshold_are_not_stored(compact):
    case = make_case("multiclass", np.random.default_rng(0), loss="costs")
    every = np.arange(case.problem.n_examples)
    make = make_store if compact else PlaneStore

    def planes_after_a_pass(delta):
        store = make(Oracle(case.problem, SQUARED), np.ones(len(every)), PLENTY)
        report = store.oracle_pass(every, StepRule(COORDINATES, 0, delta=delta))
        return store.n_planes, report.hinges

    n_planes, scores = planes_after_a_pass(0.0)  # at w = 0 a plane's score is its loss
    assert n_planes == len(every)
    middle = float(np.median(scores))
    assert planes_after_a_pass(middle)[0] == np.sum(scores >= middle) < len(every)
    assert planes_after_a_pass(100.0)[0] == 0


@pytest.mark.parametrize("compact", [False, True], ids=["planes", "classes"])
def test_planes_without_weight_are_dropped(compact):
    problem = medium_classes()
    store = (make_store if compact else PlaneStore)(Oracle(problem, SQUARED), np.ones(200), PLENTY)
    every = np.arange(200)
    for seed in range(5):
        store.oracle_pass(every, StepRule(COORDINATES, 1, seed=seed))
    before = store.n_planes
    store.evict(1)
    if compact:
        assert store.n_planes == np.count_nonzero(store.alpha) < before
    else:
        used = store.arena.alpha[: store.used[0]] > 0.0
        assert store.n_planes == np.count_nonzero(used) < before


# ----- solvers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", FAMILY)
@pytest.mark.parametrize("delta", [None, 0.0, 1e-6])
@BOTH
def test_a_small_threshold_leads_to_the_target(solver, delta, formulation):
    case = small_case("chain", "hamming", 1)
    result = solve(solver, case.problem, 0.5, formulation, tol=1e-5, delta=delta)
    check_optimal(result, case, 0.5, formulation, precision=1e-5)


@pytest.mark.parametrize("solver", FAMILY)
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_the_threshold_says_how_precisely_is_solved(solver, structure):
    """Planes of a slope of delta or more are let in, and no others: the gap is what that leaves."""
    case, C = small_case(structure, "costs" if structure == "multiclass" else "hamming", 1), 0.5
    planes = all_planes(case.twin, SQUARED)
    left_out = 0
    for delta in (0.05, 0.3, 1.0, 100.0):
        result = solve(solver, case.problem, C, SQUARED, tol=1e-9, delta=delta)
        check_certificate(result, case, C, SQUARED)
        slopes, sums = largest_slopes(result.state.store, planes, C)
        assert slopes.max() < delta + 1e-6
        allowed = float(sums.sum()) * delta + C * len(planes) * delta**2
        assert result.gap <= allowed + 1e-6
        if not result.converged:
            assert result.status == "stalled" and slopes.max() > 0.0
            left_out += 1
    assert left_out >= 2 and result.n_planes == 0 and not result.w.any()


def largest_slopes(store, planes, C):
    """Of each example: the dual's largest slope in a multiplier, and the sum of multipliers."""
    if isinstance(store, PlaneStore):
        p = store.used[0]
        sums = np.bincount(store.arena.block[:p], store.arena.alpha[:p], len(planes))
    else:
        sums = store.alpha.sum(axis=1)
    tops = np.array([float((b - A @ store.w).max()) for b, A in planes])
    return tops - sums / (2.0 * C), sums


def test_a_threshold_is_not_negative():
    with pytest.raises(ValueError, match="delta must be >= 0, got -1"):
        solve("dcd", medium_chains(), 0.5, SQUARED, delta=-1.0)


@pytest.mark.parametrize("make", [medium_classes, medium_chains])
@BOTH
def test_rounds_without_the_oracle_save_passes(make, formulation):
    problem = make()
    passes = {
        r: solve(
            "dcd", problem, 0.2, formulation, tol=1e-2, r=r, max_rounds=r, extrapolation=0.0
        ).n_passes
        for r in (0, 5)
    }
    assert passes[5] < passes[0]
    light = solve("dcd_light", problem, 0.2, formulation, tol=1e-2).n_passes
    assert light == passes[0]  # Algorithm 3 without its rounds is Algorithm 2


@pytest.mark.parametrize("name", ["dcd", "fasole", "bcfw"])
def test_settling_can_be_left_out(name):
    """Then the weights are those that the last pass has left."""
    problem = make_case("chain", np.random.default_rng(1)).problem
    seen = []

    class Watch(WeightsCallback):
        def __call__(self, progress, weights=None):
            seen.append(weights().copy())

    options = {"tol": None, "max_passes": 2, "settle": False}
    solver = make_solver(name, **options)
    formulation = Formulation(slack=solver.slacks[0])
    result = solver.solve(problem, formulation, 5.0, callbacks=[Watch()])
    assert result.status == "max_passes"
    assert result.w == pytest.approx(seen[-2], rel=1e-12)
    settled = make_solver(name, **{**options, "settle": True}).solve(problem, formulation, 5.0)
    assert settled.dual > result.dual


def test_the_order_of_passes():
    problem = make_case("chain", np.random.default_rng(1)).problem
    orders = {}
    for order in ("runs", "shuffled", "given"):
        solver = make_solver("sda", order=order)
        run = solver.start(
            TrainingRequest(problem, Formulation(), 1.0, np.ones(problem.n_examples), None, ())
        )
        orders[order] = [run.order().tolist() for _ in range(3)]
        chosen = np.arange(problem.n_examples) % 2 == 0
        assert sorted(run.order(chosen)) == np.flatnonzero(chosen).tolist()
    every = list(range(problem.n_examples))
    assert orders["given"] == [every] * 3
    assert all(sorted(order) == every != order for order in orders["shuffled"])
    assert orders["shuffled"][0] != orders["shuffled"][1]
    with pytest.raises(
        ValueError, match="order must be 'runs', 'shuffled' or 'given', got 'sorted'"
    ):
        make_solver("sda", order="sorted").check(problem, Formulation(), 1.0)


def test_cutting_planes_certify_every_pass():
    problem = medium_chains()
    result = solve("cpd", problem, 0.2, SQUARED, tol=1e-2)
    assert result.n_passes == len(result.history)
    assert all(record.gap is not None for record in result.history)


@pytest.mark.parametrize("solver", FAMILY)
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_limits_and_history(solver, structure):
    case = small_case(structure, "zero_one", 2)
    result = solve(solver, case.problem, 5.0, SQUARED, tol=1e-12, max_passes=2)
    assert result.status == "max_passes" and 2.0 <= result.n_passes <= 4.0
    check_certificate(result, case, 5.0, SQUARED)
    result = solve(solver, case.problem, 5.0, SQUARED, tol=1e-12, max_time=0.0)
    assert result.status == "max_time"
    check_certificate(result, case, 5.0, SQUARED)
    result = solve(solver, case.problem, 0.3, SQUARED, tol=1e-3)
    duals = [record.dual for record in result.history]
    assert np.all(np.diff(duals) >= -1e-10 * abs(duals[-1])), "the dual never falls"
    assert duals[-1] <= optimum_of(case, 0.3, SQUARED).primal * (1.0 + 1e-9)


@pytest.mark.parametrize("solver", FAMILY)
def test_the_seed_decides(solver):
    problem = medium_chains()

    def run(seed):
        # Extrapolation pauses by the clock.
        options = {"extrapolation": 0.0} if solver == "dcd" else {}
        return solve(solver, problem, 0.1, SQUARED, tol=1e-2, random_state=seed, **options).w

    assert np.array_equal(run(1), run(1))
    assert not np.array_equal(run(1), run(2))


@BOTH
def test_a_cache_for_hardly_a_plane(formulation):
    """Planes that no sweep has met yet survive the merging that a small budget forces."""
    result = solve("cpd", medium_chains(), 0.05, formulation, tol=0.05, cache_mb=0.01)
    assert result.converged
