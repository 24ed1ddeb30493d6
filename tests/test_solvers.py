"""Every solver against a generic QP, and what every solver promises besides."""

import functools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brute import all_planes, slacks
from cases import STRUCTURES, chain_case, make_case, multiclass_case
from exact_qp import solve_exactly
from maxmargin.formulation import Formulation
from maxmargin.objective import hinge_values, primal_value
from maxmargin.planes import PlaneStore
from maxmargin.problem import Problem
from maxmargin.problems.chain import ChainProblem
from maxmargin.problems.multiclass import MulticlassProblem
from maxmargin.solvers import SOLVERS as ALL_SOLVERS
from maxmargin.solvers import make_solver, solvers_for
from maxmargin.solvers.base import Run

RESCALINGS = ("margin", "slack", "none")
STRUCTURE_IDS = [f"{structure}-{loss}" for structure, loss in STRUCTURES]
# Online solvers promise no precision; they have tests of their own. Those for squared slacks only
# are in test_squared_slack.py.
SOLVERS = {
    name: solver
    for name, solver in ALL_SOLVERS.items()
    if solver.certified and "l1" in solver.slacks
}
# Frank-Wolfe steps converge like 1/k, too slowly for high precision where C is not small.
SLOW = ("bcfw",)
PRECISE = [name for name in SOLVERS if name not in SLOW]
# Small problems take tens of passes; limits turn a solver that is stuck into a failure.
# The time is never reached, but for a defect: compiling may take a minute on a busy machine.
PASSES, SECONDS = 5000, 600.0


def solve(
    solver,
    problem,
    C,
    formulation=None,
    *,
    tol=1e-7,
    max_passes=PASSES,
    max_time=SECONDS,
    **arguments,
):
    """Run a solver by name; parameters of `solve` are told from those of the solver."""
    call = {
        name: arguments.pop(name)
        for name in ("sample_weight", "warm_start", "callbacks")
        if name in arguments
    }
    solver = make_solver(solver, tol=tol, max_passes=max_passes, max_time=max_time, **arguments)
    return solver.solve(problem, formulation or Formulation(), C, **call)


def optimum_of(case, C, formulation=None, sample_weight=None):
    formulation = formulation or Formulation()
    planes = all_planes(case.twin, formulation)
    return solve_exactly(planes, C, sample_weight, slack=formulation.slack)


def check_certificate(result, case, C, formulation=None, sample_weight=None):
    """The certificate is true: its primal value by definition, its dual below the optimum."""
    formulation = formulation or Formulation()
    weights = np.ones(case.twin.n_examples) if sample_weight is None else np.array(sample_weight)
    blocks = all_planes(case.twin, formulation)
    power = 2 if formulation.slack == "l2" else 1
    primal = 0.5 * result.w @ result.w + C * float(weights @ slacks(blocks, result.w) ** power)
    assert result.primal == pytest.approx(primal, rel=1e-9, abs=1e-12)
    recomputed = hinge_values(case.problem, formulation, result.w)
    assert result.primal == pytest.approx(
        primal_value(result.w, recomputed, formulation, C, weights), rel=1e-9, abs=1e-12
    )
    optimum = solve_exactly(blocks, C, sample_weight, slack=formulation.slack)
    rounding = 1e-9 * max(1.0, optimum.primal)
    assert optimum.dual - rounding <= result.primal
    assert result.dual <= optimum.primal + rounding
    assert result.gap == result.primal - result.dual >= -rounding
    if result.primal > 0:
        assert result.relative_gap == pytest.approx(result.gap / result.primal)
    return optimum


def check_optimal(result, case, C, formulation=None, sample_weight=None, precision=1e-6):
    assert result.converged and result.status == "converged", (result.status, result.relative_gap)
    optimum = check_certificate(result, case, C, formulation, sample_weight)
    assert result.primal == pytest.approx(optimum.value, rel=precision, abs=1e-9)
    # The optimal w is unique, and as near as the gap tells.
    distance = float(np.linalg.norm(result.w - optimum.w))
    assert distance <= np.sqrt(2.0 * (max(result.gap, 0.0) + 1e-8 * max(1.0, result.primal)))


# ----- the optimum -------------------------------------------------------------------------------

VARIANTS = {
    "multiclass": [
        {},
        {"fit_intercept": True, "K": 4},
        {"layout": "csr", "n": 8},
        {"n": 1},
    ],
    "chain": [
        {},
        {"fit_intercept": True, "boundary_weights": True},
        {"constrained": True, "lengths": (3, 3, 2, 1, 3)},
        {"layout": "csr", "K": 2, "lengths": (4, 1, 1, 3, 4)},
    ],
}


@functools.cache
def small_case(structure, loss, variant):
    rng = np.random.default_rng([variant, len(loss)])
    return make_case(structure, rng, loss=loss, **VARIANTS[structure][variant])


@pytest.mark.parametrize("rescaling", RESCALINGS)
@pytest.mark.parametrize(("structure", "loss"), STRUCTURES, ids=STRUCTURE_IDS)
@pytest.mark.parametrize("solver", PRECISE)
def test_solvers_reach_the_optimum(solver, structure, loss, rescaling):
    formulation = Formulation(rescaling)
    for variant, C in enumerate((0.05, 0.5, 5.0, 2.0)):
        case = small_case(structure, loss, variant)
        result = solve(solver, case.problem, C, formulation)
        check_optimal(result, case, C, formulation)


@pytest.mark.parametrize("rescaling", RESCALINGS)
@pytest.mark.parametrize(("structure", "loss"), STRUCTURES, ids=STRUCTURE_IDS)
@pytest.mark.parametrize("solver", SLOW)
def test_frank_wolfe_reaches_the_optimum(solver, structure, loss, rescaling):
    formulation = Formulation(rescaling)
    for variant, C, tol in ((0, 0.2, 1e-3), (1, 0.05, 1e-4), (2, 1.0, 1e-2), (3, 1e-3, 1e-6)):
        case = small_case(structure, loss, variant)
        result = solve(solver, case.problem, C, formulation, tol=tol, max_passes=50_000)
        check_optimal(result, case, C, formulation, precision=tol)


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), solver=st.sampled_from(PRECISE))
def test_random_problems(seed, solver):
    """Structure, sizes, options, formulation, C and weights all drawn: certificates are true."""
    rng = np.random.default_rng(seed)
    structure, loss = STRUCTURES[rng.integers(len(STRUCTURES))]
    options = {"layout": str(rng.choice(["dense", "csr", "integers"]))}
    options |= {"loss": loss, "fit_intercept": bool(rng.integers(2)), "K": int(rng.integers(2, 4))}
    if structure == "chain":
        options["lengths"] = rng.integers(1, 4, rng.integers(1, 6)).tolist()
        options |= {name: bool(rng.integers(2)) for name in ("boundary_weights", "constrained")}
    else:
        options["n"] = int(rng.integers(1, 12))
    case = make_case(structure, rng, n_inputs=int(rng.integers(1, 5)), **options)
    formulation = Formulation(str(rng.choice(RESCALINGS)), sqrt_loss=bool(rng.integers(2)))
    C = float(10 ** rng.uniform(-3, 2.5))
    weights = rng.choice([0.0, 0.3, 1.0, 5.0], case.problem.n_examples)
    result = solve(solver, case.problem, C, formulation, sample_weight=weights, max_passes=300)
    if result.converged:
        check_optimal(result, case, C, formulation, weights)
    else:  # the papers' solvers may take thousands of passes where C is large
        assert solver != "auto"
        check_certificate(result, case, C, formulation, weights)


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize(("structure", "loss"), STRUCTURES, ids=STRUCTURE_IDS)
def test_the_root_of_the_loss(structure, loss, rescaling):
    formulation = Formulation(rescaling, sqrt_loss=True)
    case = small_case(structure, loss, 1)
    check_optimal(solve("auto", case.problem, 1.0, formulation), case, 1.0, formulation)


@pytest.mark.nojit
@pytest.mark.parametrize("solver", PRECISE)
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_solvers_without_compilation(structure, solver):
    case = small_case(structure, "zero-one", 1)
    check_optimal(solve(solver, case.problem, 0.3, tol=1e-6), case, 0.3)


@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_nearly_hard_margins(structure):
    """Separable data and a huge C: no slack is left, and |w| is finite."""
    labels = np.array([0, 1, 2, 0, 1, 2])
    X = np.eye(3)[labels] + 0.1 * np.random.default_rng(0).normal(size=(6, 3))
    if structure == "multiclass":
        problem = MulticlassProblem(X, labels)
    else:
        problem = ChainProblem(X, [0, 2, 5, 6], labels)
    result = solve("auto", problem, 1e5)
    assert result.converged
    assert hinge_values(problem, Formulation(), result.w).sum() * 1e5 <= 1e-5 * result.primal
    assert 0.1 < result.primal < 100.0


@pytest.mark.parametrize("loss", ["hamming", "normalized-hamming", "zero-one"])
@pytest.mark.parametrize("rescaling", RESCALINGS)
def test_certificates_hold_at_high_precision(loss, rescaling):
    """Many passes at a large C: what rounding adds up to must not enter a certificate."""
    formulation = Formulation(rescaling)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        lengths = rng.integers(1, 4, rng.integers(2, 6)).tolist()
        case = chain_case(rng, lengths=lengths, K=2 + seed % 2, loss=loss, fit_intercept=True)
        result = solve("auto", case.problem, 150.0, formulation, tol=1e-9, max_passes=500)
        check_certificate(result, case, 150.0, formulation)


@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_single_precision_input(structure):
    case = make_case(structure, np.random.default_rng(4), layout="float32")
    check_optimal(solve("auto", case.problem, 1.0), case, 1.0)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", ["zero-one", "costs"])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_an_example_without_features(solver, loss, rescaling):
    """Its planes are (b, 0): a constant in the primal that the dual has to earn, too."""
    rng = np.random.default_rng(1)
    case = multiclass_case(rng, n=4, loss=loss)
    X = case.twin.X.copy()
    X[1] = 0.0
    case.twin.X = X
    problem = MulticlassProblem(X, case.twin.y, 3, costs=case.twin.costs)
    case = case._replace(problem=problem)
    result = solve(solver, problem, 0.1, Formulation(rescaling), tol=1e-4, max_passes=500)
    check_optimal(result, case, 0.1, Formulation(rescaling), precision=1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
def test_nothing_to_learn(solver):
    """One label only: no candidate but the truth, and w = 0 is optimal and certified."""
    problem = ChainProblem(np.ones((3, 2)), [0, 2, 3], [0, 0, 0], 1)
    result = solve(solver, problem, 1.0)
    assert result.converged and not result.w.any()
    assert result.primal == result.dual == result.gap == result.relative_gap == 0.0


# ----- sample weights ----------------------------------------------------------------------------


@pytest.mark.parametrize("solver", PRECISE)
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_sample_weights(structure, solver):
    case = make_case(structure, np.random.default_rng(8))
    n = case.problem.n_examples
    weights = np.random.default_rng(9).uniform(0.1, 3.0, n)
    weights[[0, n - 1]] = 0.0
    result = solve(solver, case.problem, 0.7, sample_weight=weights)
    check_optimal(result, case, 0.7, sample_weight=weights)


@pytest.mark.parametrize("solver", PRECISE)
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_an_integer_weight_is_a_repetition(structure, solver):
    rng = np.random.default_rng(10)
    repeats = np.array([2, 0, 1, 3])
    if structure == "multiclass":
        X, y = rng.normal(size=(4, 3)), np.array([0, 1, 2, 1])
        problem = MulticlassProblem(X, y)
        repeated = MulticlassProblem(X.repeat(repeats, axis=0), y.repeat(repeats), 3)
    else:
        X = [rng.normal(size=(length, 2)) for length in (2, 3, 1, 3)]
        Y = [rng.integers(0, 3, len(x)) for x in X]

        def chains(which):
            lengths = [len(Y[i]) for i in which]
            tokens, labels = (np.concatenate([part[i] for i in which]) for part in (X, Y))
            return ChainProblem(tokens, np.concatenate([[0], np.cumsum(lengths)]), labels, 3)

        problem, repeated = chains(range(4)), chains(np.arange(4).repeat(repeats))
    weighted = solve(solver, problem, 0.5, sample_weight=repeats)
    plain = solve(solver, repeated, 0.5)
    assert weighted.primal == pytest.approx(plain.primal, rel=1e-6)
    assert np.allclose(weighted.w, plain.w, atol=2e-3)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_no_weight_at_all(structure, solver):
    problem = make_case(structure, np.random.default_rng(0)).problem
    result = solve(solver, problem, 1.0, sample_weight=np.zeros(problem.n_examples))
    assert result.converged and result.primal == result.dual == 0.0 and not result.w.any()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 1.0], r"sample_weight must have shape \(6,\), got shape \(2,\)"),
        (np.ones((6, 1)), r"shape \(6,\), got shape \(6, 1\)"),
        ([1, 1, -1, 1, 1, 1], r"sample_weight\[2\] is -1"),
        ([1, np.nan, 1, 1, 1, 1], r"sample_weight\[1\] is nan"),
        ([1, 1, 1, 1, 1, np.inf], r"sample_weight\[5\] is inf"),
    ],
)
def test_bad_sample_weights(weights, message):
    problem = small_case("multiclass", "zero-one", 0).problem
    with pytest.raises(ValueError, match=message):
        solve("auto", problem, 1.0, sample_weight=weights)


# ----- agreement on a problem of some size --------------------------------------------------------


def medium_classes():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 200)
    X = rng.normal(size=(4, 10))[y] + rng.normal(size=(200, 10))
    return MulticlassProblem(X, y, fit_intercept=True)


def medium_chains():
    rng = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 9, 200))])
    labels = rng.integers(0, 4, offsets[-1])
    tokens = rng.normal(size=(4, 10))[labels] + rng.normal(size=(offsets[-1], 10))
    return ChainProblem(tokens, offsets, labels, loss="normalized-hamming", boundary_weights=True)


@pytest.mark.parametrize("make", [medium_classes, medium_chains])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_all_solvers_agree(make, rescaling):
    problem = make()
    tols = {name: 1e-2 if name in SLOW else 1e-3 for name in SOLVERS}
    results = {
        name: solve(name, problem, 0.05, Formulation(rescaling), tol=tol, max_passes=300)
        for name, tol in tols.items()
    }
    lowest = min(result.primal for result in results.values())
    highest = max(result.dual for result in results.values())
    assert highest <= lowest * (1.0 + 1e-9)
    for name, result in results.items():
        assert result.converged, name
        assert result.relative_gap <= tols[name]
        assert result.primal <= lowest * (1.0 + tols[name])


# ----- when to stop ------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_either_criterion_suffices(structure, solver):
    case = small_case(structure, "zero-one", 1)
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
    problem = medium_classes()
    passes = [solve(solver, problem, 0.05, tol=tol).n_passes for tol in (0.3, 0.01)]
    assert passes[0] < passes[1]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_max_passes(structure, solver):
    case = small_case(structure, "zero-one", 1)
    for criteria in ({"tol": 1e-12}, {"tol": None}):
        result = solve(solver, case.problem, 5.0, max_passes=2, **criteria)
        assert result.status == "max_passes" and not result.converged
        # One pass may begin before the limit, and one certifies.
        assert 2.0 <= result.n_passes <= 4.0
        check_certificate(result, case, 5.0)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_max_time(structure, solver):
    case = small_case(structure, "zero-one", 1)
    result = solve(solver, case.problem, 5.0, tol=1e-12, max_time=0.0)
    assert result.status == "max_time" and not result.converged
    assert result.n_passes <= 2.0
    check_certificate(result, case, 5.0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_limit_that_is_not_needed_changes_nothing(solver):
    case = small_case("multiclass", "zero-one", 0)
    result = solve(solver, case.problem, 0.05, tol=1e-2, max_passes=10**6, max_time=3600.0)
    assert result.converged and result.status == "converged"


# ----- history and callbacks ---------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_history(structure, solver):
    case = small_case(structure, "zero-one", 2)
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
    case = small_case(structure, "zero-one", 1)
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
    case = small_case(structure, "zero-one", 1)
    seen = []

    def interrupt(progress):
        seen.append(progress)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match=r"interrupted.*certified gap"):
        result = solve(solver, case.problem, 5.0, tol=1e-14, callbacks=[interrupt])
    assert result.status == "interrupted" and not result.converged
    check_certificate(result, case, 5.0)


def test_an_interrupt_is_told_even_where_the_target_is_met():
    case = small_case("chain", "zero-one", 1)

    def interrupt(progress):
        raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted"):
        result = solve("auto", case.problem, 0.01, tol=0.9, callbacks=[interrupt])
    assert result.status == "interrupted" and result.converged


@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_an_impatient_user_gets_a_certificate_all_the_same(structure):
    """Ctrl-C again and again: what was certified before the last one is returned."""
    case = small_case(structure, "zero-one", 1)

    def interrupt(progress):
        raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted"):
        try:
            result = solve("auto", case.problem, 5.0, tol=1e-14, callbacks=[interrupt])
        except KeyboardInterrupt:  # which would end the whole test run
            pytest.fail("the model is lost")
    assert result.status == "interrupted"
    check_certificate(result, case, 5.0)


def test_the_best_weights_are_kept():
    """A later certificate may be worse than an earlier one; the result is the best."""
    run = Run(make_solver("auto"), 1, ())
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

    def part_oracle(self, indices, w, rescaling="margin", sqrt_loss=False):
        self.calls += len(indices)
        return super().part_oracle(indices, w, rescaling, sqrt_loss)


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
    case = small_case(structure, "zero-one", 1)

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
    case = small_case(structure, "zero-one", 1)
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
    assert isinstance(result.state, PlaneStore)
    assert result.state.nbytes <= 0.06 * 2**20
    check_optimal(result, case, 1.0, precision=1e-3)


# ----- what cannot be done -----------------------------------------------------------------------


@pytest.mark.parametrize("slack", ["l1", "l2", "none"])
@pytest.mark.parametrize("solver", ALL_SOLVERS)
def test_other_slacks_are_refused(solver, slack):
    formulation = Formulation(slack=slack)
    if solver in solvers_for(formulation):
        pytest.skip(f"{solver} handles slack={slack!r}")
    with pytest.raises(ValueError, match=rf"'{solver}'.*slack='{slack}'.*solvers that can: "):
        solve(solver, small_case("chain", "hamming", 0).problem, 1.0, formulation)


def test_solvers_for_names_all_that_can():
    assert set(solvers_for(Formulation())) >= set(SOLVERS)
    for slack in ("l1", "l2", "none"):
        able = {name for name, solver in ALL_SOLVERS.items() if slack in solver.slacks}
        assert set(solvers_for(Formulation(slack=slack))) == able


@pytest.mark.parametrize("C", [0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("solver", SOLVERS)
def test_bad_C(solver, C):
    with pytest.raises(ValueError, match="C must be positive and finite, got"):
        solve(solver, small_case("chain", "hamming", 0).problem, C)


@pytest.mark.parametrize("name", ["tol", "epsilon", "max_passes", "max_time"])
@pytest.mark.parametrize("value", [-1.0, np.nan])
def test_bad_limits(name, value):
    with pytest.raises(ValueError, match=f"{name} must be >= 0, got"):
        solve("auto", small_case("chain", "hamming", 0).problem, 1.0, **{name: value})


def test_training_has_to_end():
    unlimited = {"tol": None, "max_passes": None, "max_time": None}
    with pytest.raises(ValueError, match="at least one of tol, epsilon, max_passes and max_time"):
        solve("auto", small_case("chain", "hamming", 0).problem, 1.0, **unlimited)


def test_no_examples():
    problem = MulticlassProblem(np.empty((0, 2)), np.empty(0, int), 2)
    with pytest.raises(ValueError, match="no examples"):
        solve("auto", problem, 1.0)


def test_make_solver():
    assert make_solver("sda", tol=0.5).tol == 0.5
    solver = SOLVERS["bcfw"]()
    assert make_solver(solver) is solver
    with pytest.raises(ValueError, match=r"solver must be one of \['auto'.*got 'svmlight'"):
        make_solver("svmlight")
    with pytest.raises(ValueError, match="an object with a solve method, got 3"):
        make_solver(3)
    for name, cls in ALL_SOLVERS.items():
        assert cls.name == name


# ----- problems in plain Python ------------------------------------------------------------------


class PythonClasses(Problem):
    """The multiclass problem as a user would write it."""

    def __init__(self, costs, n_inputs):
        self.costs = costs
        self.n_features = n_inputs * len(costs)

    def joint_feature(self, x, y):
        K = len(self.costs)
        return {f * K + y: value for f, value in enumerate(x)}

    def loss(self, y, y_hat):
        return float(self.costs[y][y_hat])

    def most_violated(self, x, y, w, rescaling):
        scores = np.asarray(x) @ w.reshape(len(x), len(self.costs))

        def violation(z):
            margin = scores[y] - scores[z]
            if z == y:
                return 0.0
            if rescaling == "none":
                return 1.0 - margin
            loss = self.loss(y, z)
            return loss - margin if rescaling == "margin" else loss * (1.0 - margin)

        return max(range(len(self.costs)), key=violation)

    def predict(self, x, w):
        return int(np.argmax(np.asarray(x) @ w.reshape(len(x), len(self.costs))))


@pytest.mark.parametrize("solver", PRECISE)
@pytest.mark.parametrize("rescaling", RESCALINGS)
def test_a_python_problem_reaches_the_native_optimum(solver, rescaling):
    case = small_case("multiclass", "costs", 0)
    twin, formulation = case.twin, Formulation(rescaling)
    problem = PythonClasses(twin.costs, twin.X.shape[1]).bind(list(twin.X), twin.y)
    result = solve(solver, problem, 0.5, formulation)
    native = solve(solver, case.problem, 0.5, formulation)
    assert result.primal == pytest.approx(native.primal, rel=1e-6)
    check_optimal(result, case, 0.5, formulation)


def test_a_python_problem_has_no_root_of_the_loss():
    case = small_case("multiclass", "costs", 0)
    problem = PythonClasses(case.twin.costs, 3).bind(list(case.twin.X), case.twin.y)
    with pytest.raises(ValueError, match="PythonClasses has no oracle for the square root"):
        solve("auto", problem, 1.0, Formulation(sqrt_loss=True))


def test_an_object_with_an_oracle_is_a_problem():
    """The contract may be duck-typed: examples, features and the oracle are all a solver needs."""
    case = small_case("chain", "hamming", 0)

    class Duck:
        n_examples = case.problem.n_examples
        n_features = case.problem.n_features

        def oracle(self, indices, w, rescaling="margin", sqrt_loss=False):
            return case.problem.oracle(indices, w, rescaling, sqrt_loss)

    check_optimal(solve("auto", Duck(), 1.0), case, 1.0)
