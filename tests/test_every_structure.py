"""Every registered structure: searches against all outputs, listed; solvers against an exact QP."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from brute import all_planes
from cases import LAYOUTS
from checking import (
    RESCALINGS,
    SEARCHES,
    call_for_blocks,
    check_batches,
    check_blocks,
    check_decoding,
    check_k_best,
    check_oracle,
    check_predictions,
    check_ranking,
)
from exact_qp import can_be_met, solve_exactly
from maxmargin.core.formulation import Formulation
from solving import (
    ALL_SOLVERS,
    ONLINE,
    PRECISE,
    SOLVERS,
    check_certificate,
    check_optimal,
    solve,
)
from structures import KIND_IDS, KINDS, STRUCTURES, small_case

every_kind = pytest.mark.parametrize(("name", "loss"), KINDS, ids=KIND_IDS)
seeds = st.integers(0, 2**32 - 1)


def random_weights(rng, twin):
    """Weights of any sign, and special ones: none, whole numbers (many ties), the truth wins."""
    w = rng.normal(size=twin.n_features)
    towards_the_truth = sum(candidates.dpsi.sum(axis=0) for candidates in twin.listed)
    special = (0.0 * w, np.rint(w), 10.0 * towards_the_truth)
    return rng.choice([0.3, 3.0]) * w, special[rng.integers(3)]


def draw(data, name, loss):
    """A structure, a problem with its twin, and weights to try on it."""
    structure = STRUCTURES[name]
    options = data.draw(structure.options)
    rng = np.random.default_rng(data.draw(seeds))
    case = structure.make(rng, loss=loss, **options)
    return structure, case, random_weights(rng, case.twin)


def check_searches(structure, case, w):
    """The oracle, in features and in parts, for all that it may be asked."""
    for rescaling, sqrt_loss in SEARCHES:
        if not structure.finds(rescaling, sqrt_loss):
            with pytest.raises(ValueError, match=structure.not_found):
                case.problem.oracle(np.arange(1), w, rescaling, sqrt_loss)
            continue
        check_oracle(case, w, rescaling, sqrt_loss)
        assert (call_for_blocks(case.problem, np.arange(1), w) is not None) == structure.parts
        if structure.parts:
            check_blocks(case.problem, w, rescaling, sqrt_loss)


def check_outputs(structure, case, w, k):
    """What is predicted, and listed for estimators."""
    check_predictions(case, w)
    if structure.decode:
        check_decoding(case.twin, w, structure.decode(case, w))
    if structure.rank:
        check_ranking(case.twin, w, structure.rank(case, w, k), k)


def check_lists(structure, case, loss, w, k):
    """The k best candidates, or a word on where there are none."""
    for rescaling, sqrt_loss in SEARCHES:
        if structure.k_best(loss, rescaling, sqrt_loss):
            check_k_best(case, w, k, rescaling, sqrt_loss)
        else:
            with pytest.raises(ValueError, match=structure.refusal):
                case.problem.k_best(np.arange(1), w, k, rescaling, sqrt_loss)


# ----- searches ----------------------------------------------------------------------------------


@every_kind
@settings(max_examples=20)
@given(data=st.data())
def test_oracles_find_the_best_of_all_outputs(name, loss, data):
    structure, case, weights = draw(data, name, loss)
    for w in weights:
        check_searches(structure, case, w)


@every_kind
@settings(max_examples=15)
@given(data=st.data(), k=st.integers(1, 12))
def test_predictions_have_the_best_score(name, loss, data, k):
    structure, case, weights = draw(data, name, loss)
    for w in weights:
        check_outputs(structure, case, w, k)


@every_kind
@settings(max_examples=15)
@given(data=st.data(), k=st.integers(1, 30))
def test_the_k_best_outputs(name, loss, data, k):
    structure, case, weights = draw(data, name, loss)
    for w in weights:
        check_lists(structure, case, loss, w, k)


@every_kind
@settings(max_examples=10)
@given(data=st.data())
def test_a_batch_is_its_examples_one_by_one(name, loss, data):
    structure, case, (w, _) = draw(data, name, loss)
    numbers = st.integers(0, case.problem.n_examples - 1)
    asked = np.array(data.draw(st.lists(numbers, max_size=8)), dtype=np.int64)
    found = [rescaling for rescaling in RESCALINGS if structure.finds(rescaling, False)]
    check_batches(case.problem, w, asked, data.draw(st.sampled_from(found)))


@pytest.mark.nojit
@every_kind
def test_searches_without_compilation(name, loss):
    structure = STRUCTURES[name]
    for number, options in enumerate(structure.training):
        rng = np.random.default_rng(number)
        case = structure.make(rng, loss=loss, **options)
        w = rng.normal(size=case.twin.n_features)
        check_searches(structure, case, w)
        check_outputs(structure, case, w, 4)
        check_lists(structure, case, loss, w, 4)


@pytest.mark.nojit
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", [name for name in STRUCTURES if STRUCTURES[name].layouts])
def test_every_layout_of_the_inputs(name, layout):
    structure = STRUCTURES[name]
    for loss in structure.losses:
        for seed in range(2):
            rng = np.random.default_rng(seed)
            options = {"fit_intercept": seed == 1, "n_inputs": 4, "layout": layout}
            case = structure.make(rng, loss=loss, **options)
            check_searches(structure, case, rng.normal(size=case.twin.n_features))


# ----- solvers -----------------------------------------------------------------------------------

#: Every formulation with slacks.
FORMULATIONS = [
    Formulation(rescaling, slack, sqrt_loss)
    for slack in ("l1", "l2")
    for rescaling in RESCALINGS
    for sqrt_loss in ((False,) if rescaling == "none" else (False, True))
]
SHORT = {
    f: f"{f.slack}-{f.rescaling}-{'root' if f.uses_sqrt_loss else 'loss'}" for f in FORMULATIONS
}
#: C and relative precision for each problem in turn. Solvers that take one step for each oracle
#: call need thousands of passes for more; Frank-Wolfe steps converge like 1/k.
PRECISIONS = {
    "sda": ((0.05, 1e-5), (0.5, 1e-4), (2.0, 1e-4), (1.0, 1e-4)),
    "dcd_light": ((0.05, 1e-5), (0.5, 1e-4), (2.0, 1e-4), (1.0, 1e-4)),
    "bcfw": ((0.2, 1e-2), (0.05, 1e-3), (1.0, 1e-2), (1e-3, 1e-6)),
}
HIGH = ((0.05, 1e-7), (0.5, 1e-7), (5.0, 1e-7), (2.0, 1e-7))


def finds(name, formulation):
    """Whether a structure's oracle knows a formulation."""
    return STRUCTURES[name].finds(formulation.rescaling, formulation.uses_sqrt_loss)


def runs(solvers, every=False):
    """Structures, losses, formulations and solvers that go together: ``every`` combination, or few.

    Few are, for each structure, loss and slack, every formulation and every solver at least once;
    which goes with which moves on from loss to loss, so that all pairs of them are met.
    """
    chosen = []
    for turn, (name, loss) in enumerate(KINDS):
        for slack in ("l1", "l2"):
            able = [solver for solver in solvers if slack in ALL_SOLVERS[solver].slacks]
            asked = [f for f in FORMULATIONS if f.slack == slack and finds(name, f)]
            pairs = itertools.product(asked, able)
            if not every:
                rounds = range(max(len(asked), len(able)) if asked and able else 0)
                pairs = [(asked[(n + turn) % len(asked)], able[n % len(able)]) for n in rounds]
            chosen += [(name, loss, formulation, solver) for formulation, solver in pairs]
    return chosen


def pytest_generate_tests(metafunc):
    """Give tests that are `run_with` some solvers their runs."""
    for mark in metafunc.definition.iter_markers("run_with"):
        chosen = runs(mark.args[0], metafunc.config.getoption("--all-combinations"))
        ids = [f"{name}-{loss}-{SHORT[f]}-{solver}" for name, loss, f, solver in chosen]
        metafunc.parametrize(("name", "loss", "formulation", "solver"), chosen, ids=ids)


@pytest.mark.parametrize("solvers", [SOLVERS, ONLINE], ids=["certified", "online"])
def test_few_runs_meet_all_pairs(solvers):
    few, every = runs(solvers), runs(solvers, every=True)
    assert set(few) <= set(every) and len(few) < len(every) / 2

    def structure_and_solver(name, loss, formulation, solver):
        return name, loss, formulation.slack, solver

    def structure_and_formulation(name, loss, formulation, solver):
        return name, loss, formulation

    def formulation_and_solver(name, loss, formulation, solver):
        return formulation, solver

    for pair in (structure_and_solver, structure_and_formulation, formulation_and_solver):
        assert {pair(*run) for run in few} == {pair(*run) for run in every}


def small_cases(name, loss):
    return [small_case(name, loss, n) for n in range(len(STRUCTURES[name].training))]


@pytest.mark.run_with(SOLVERS)
def test_solvers_reach_the_optimum(name, loss, formulation, solver):
    precisions = PRECISIONS.get(solver, HIGH)
    for case, (C, tol) in zip(small_cases(name, loss), precisions, strict=False):
        C *= STRUCTURES[name].scale
        result = solve(solver, case.problem, C, formulation, tol=tol, max_passes=50_000)
        # A gap of tol is relative to the primal value, the precision to the optimum below it.
        check_optimal(result, case, C, formulation, precision=1.001 * tol / (1 - tol))


@pytest.mark.run_with(ONLINE)
def test_online_solvers_learn(name, loss, formulation, solver):
    """They promise no precision, but what is told of their weights is true."""
    case = small_case(name, loss, 0)
    result = solve(solver, case.problem, 0.5, formulation, max_passes=5, certificate=True)
    assert np.isfinite(result.w).all() and result.w.any()
    check_certificate(result, case, 0.5, formulation)


@pytest.mark.parametrize(
    ("name", "loss", "formulation"),
    [
        pytest.param(name, loss, formulation, id=f"{name}-{loss}-{formulation.rescaling}")
        for name, loss in KINDS
        for formulation in (Formulation(rescaling, "none") for rescaling in RESCALINGS)
        if finds(name, formulation)
    ],
)
def test_hard_margins_are_met_or_refused(name, loss, formulation):
    for case in small_cases(name, loss):
        blocks = all_planes(case.twin, formulation)
        if not can_be_met(blocks):
            with pytest.raises(ValueError, match="the hard margin cannot be met"):
                solve("n_slack", case.problem, 1.0, formulation, tol=1e-4)
            continue
        result = solve("n_slack", case.problem, 1.0, formulation, tol=1e-4)
        optimum = solve_exactly(blocks, 1.0, slack="none")
        assert result.converged
        assert all((b - A @ result.w).max(initial=0.0) <= 1e-9 for b, A in blocks)
        assert optimum.dual * (1 - 1e-9) <= result.primal <= optimum.primal * (1 + 1.001e-4)
        assert result.dual <= optimum.primal * (1 + 1e-9)


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("solver", "slack"),
    [(s, slack) for s in PRECISE for slack in ("l1", "l2") if slack in ALL_SOLVERS[s].slacks],
)
@pytest.mark.parametrize("name", ["multiclass", "chain"])
def test_solvers_without_compilation(name, solver, slack):
    case, formulation = small_case(name, "zero_one", 1), Formulation(slack=slack)
    result = solve(solver, case.problem, 0.3, formulation, tol=1e-6)
    check_optimal(result, case, 0.3, formulation)


@settings(max_examples=100)
@given(
    data=st.data(),
    kind=st.sampled_from(KINDS),
    solver=st.sampled_from(PRECISE),
    formulation=st.sampled_from(FORMULATIONS),
)
def test_random_problems(data, kind, solver, formulation):
    """Structure, sizes, options, formulation, C and weights all drawn: certificates are true."""
    _, case, _ = draw(data, *kind)
    assume(formulation.slack in ALL_SOLVERS[solver].slacks)
    assume(finds(kind[0], formulation))
    rng = np.random.default_rng(data.draw(seeds))
    C = float(10 ** rng.uniform(-3, 2.5 if formulation.slack == "l1" else 1.5))
    weights = rng.choice([0.0, 0.3, 1.0, 5.0], case.problem.n_examples)
    result = solve(solver, case.problem, C, formulation, sample_weight=weights, max_passes=300)
    if result.converged:
        check_optimal(result, case, C, formulation, weights)
    else:  # the papers' solvers may take thousands of passes where C is large
        assert solver != "auto"
        check_certificate(result, case, C, formulation, weights)


def test_an_optimum_that_corrected_steps_go_round_in_circles_about():
    """A problem of `test_random_problems`, of which the exact QP found no more than four digits."""
    case = STRUCTURES["parts in images"].make(
        np.random.default_rng(2), loss="deviation", V=2, channels=2, patch=1
    )
    rng = np.random.default_rng(47581)
    C, weights = float(10 ** rng.uniform(-3, 2.5)), rng.choice([0.0, 0.3, 1.0, 5.0], 3)
    found = solve_exactly(all_planes(case.twin, Formulation("none")), C, weights)
    assert found.value == pytest.approx(0.05159994755, rel=1e-9)
