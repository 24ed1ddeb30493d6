"""Constraints on weights: every solver against an exact QP, certificates, warm starts, errors."""

import functools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maxmargin as mm
from constrained import KINDS, objective, solve_constrained
from maxmargin.core.formulation import Formulation
from maxmargin.core.result import WeightsCallback
from maxmargin.engine.oracle import Oracle
from maxmargin.engine.steps.block_steps import WSS2
from maxmargin.engine.steps.bound_multipliers import BoundMultipliers
from maxmargin.engine.store.block_store import StepRule, make_store
from maxmargin.engine.training.verifying import hinge_values
from maxmargin.engine.violations import violations
from maxmargin.solvers import certify, make_solver
from maxmargin.solvers.base import TrainingRequest
from maxmargin.solvers.path import tolerated
from solving import ALL_SOLVERS, ONLINE, SLOW, SOLVERS, solve
from structures import STRUCTURES, small_case

#: Structures with parts, with a store of their own, with a pool that knows all, and without.
CASES = [
    ("multiclass", "costs"),
    ("chain", "hamming"),
    ("swapped pairs", "swaps"),
    ("candidates", "costs"),
]
PLACES = [  # slack and rescaling
    ("l1", "margin"),
    ("l1", "slack"),
    ("l2", "margin"),
    ("l2", "slack"),
]
PASSES = {"sda": 1e-4, "dcd_light": 1e-4, "bcfw": 2e-2}  # precision of what takes many passes


@functools.lru_cache
def problem_and_optimum(name, loss, number, kind, slack, rescaling, C):
    """A small problem with constraints, and its exact solution."""
    case = small_case(name, loss, number)
    rng = np.random.default_rng([number, len(kind)])
    constraints = KINDS[kind](rng, case.twin.n_features)
    formulation = Formulation(rescaling, slack, constraints=constraints)
    return case, formulation, solve_constrained(case.twin, formulation, C)


def check(result, case, formulation, C, optimum, sample_weight=None):
    """The constraints hold exactly, and the certificate is true."""
    primal = objective(case.twin, formulation, C, result.w, sample_weight)
    assert result.primal == pytest.approx(primal, rel=1e-9, abs=1e-9)
    rounding = 1e-6 * max(1.0, optimum.primal)
    assert optimum.dual - rounding <= result.primal
    assert result.dual <= optimum.primal + rounding
    assert result.gap >= -1e-9 * max(1.0, result.primal)


def turns():
    """Every solver with every kind of constraint; cases and formulations take turns."""
    for number, solver in enumerate(SOLVERS):
        for turn, kind in enumerate(KINDS):
            name, loss = CASES[(number + turn) % len(CASES)]
            places = [p for p in PLACES if p[0] in ALL_SOLVERS[solver].slacks]
            for slack in dict.fromkeys(slack for slack, _ in places):
                able = [p for p in places if p[0] == slack]
                yield solver, kind, name, loss, *able[(turn + number) % len(able)]


@pytest.mark.parametrize(("solver", "kind", "name", "loss", "slack", "rescaling"), list(turns()))
def test_every_solver_finds_the_optimum(solver, kind, name, loss, slack, rescaling):
    C = 0.02 if solver in SLOW else 0.5
    for number in (0, 1):
        case, formulation, optimum = problem_and_optimum(
            name, loss, number, kind, slack, rescaling, C
        )
        tol = PASSES.get(solver, 1e-6)
        result = solve(solver, case.problem, C, formulation, tol=tol)
        assert result.converged, (result.status, result.relative_gap)
        check(result, case, formulation, C, optimum)
        assert result.primal <= optimum.primal + tol * result.primal + 1e-6


@settings(max_examples=12)
@given(data=st.data())
def test_random_problems(data):
    solver = data.draw(st.sampled_from(sorted(set(SOLVERS) - set(PASSES))))
    slack = data.draw(st.sampled_from(ALL_SOLVERS[solver].slacks).filter(lambda s: s != "none"))
    rescaling = data.draw(st.sampled_from(["margin", "slack", "none"]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    case = STRUCTURES["multiclass"].make(rng, loss="costs")
    kind = data.draw(st.sampled_from(sorted(KINDS)))
    constraints = KINDS[kind](rng, case.twin.n_features)
    formulation = Formulation(rescaling, slack, constraints=constraints)
    C = data.draw(st.sampled_from([0.01, 0.3, 3.0]))
    weights = rng.choice([0.0, 0.5, 2.0], size=case.twin.n_examples)
    weights[0] = 1.0
    result = solve(solver, case.problem, C, formulation, tol=1e-5, sample_weight=weights)
    assert result.converged, (result.status, result.relative_gap)
    optimum = solve_constrained(case.twin, formulation, C, weights)
    check(result, case, formulation, C, optimum, weights)


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "one_slack", "qp": "line_search"},
        {"solver": "one_slack", "kkt": 1e-4},
        {"solver": "one_slack", "reach": 1.0, "cache_size": 0},
        {"solver": "n_slack", "qp": "block", "joint": False},
        {"solver": "n_slack", "variant": "subspace", "joint": False, "batch": 1},
        {"solver": "fasole", "joint": True},
        {"solver": "fasole", "reduced": "paper"},
        {"solver": "auto", "joint": False},
        {"solver": "auto", "cache_mb": 1e-6},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["signs", "all"])
def test_options_of_solvers(options, kind):
    for name, loss in (("chain", "hamming"), ("candidates", "costs")):
        case, formulation, optimum = problem_and_optimum(name, loss, 0, kind, "l1", "margin", 0.5)
        result = solve(problem=case.problem, C=0.5, formulation=formulation, tol=1e-4, **options)
        assert result.converged, (result.status, result.relative_gap)
        check(result, case, formulation, 0.5, optimum)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", ONLINE)
@pytest.mark.parametrize("batch_size", [1, 3])
def test_online_solvers_keep_the_constraints(solver, kind, batch_size):
    case, formulation, optimum = problem_and_optimum(
        "chain", "hamming", 1, kind, "l1", "margin", 0.5
    )
    for average in (False, True):
        options = {"average": average, "batch_size": batch_size, "certificate": True}
        converges = solver in ("sgd", "pegasos")
        passes = 300 if converges else 10
        result = solve(
            solver, case.problem, 0.5, formulation, tol=None, max_passes=passes, **options
        )
        check(result, case, formulation, 0.5, optimum)
        if converges:
            assert result.primal <= 1.05 * optimum.primal


@pytest.mark.parametrize("kind", ["signs", "all"])
def test_every_single_step_of_an_online_solver_keeps_the_bounds(kind):
    case, formulation, _ = problem_and_optimum("chain", "hamming", 1, kind, "l1", "margin", 0.5)
    seen = []
    for solver in ONLINE:
        asked = case.problem

        class Watched(type(asked)):
            def oracle(self, indices, w, *arguments):
                seen.append(w.copy())
                return super().oracle(indices, w, *arguments)

            def predictions(self, indices, w):
                seen.append(w.copy())
                return super().predictions(indices, w)

        watched = Watched.__new__(Watched)
        watched.__dict__.update(asked.__dict__)
        seen.clear()
        solve(solver, watched, 0.5, formulation, tol=None, max_passes=3, batch_size=2)
        assert len(seen) > 5
        for w in seen:
            assert objective(case.twin, formulation, 0.5, w) < np.inf


def test_a_mean_is_a_problem_with_other_offsets():
    """At the mean all solvers start, and where it is optimal they stay."""
    case = small_case("chain", "hamming", 0)
    plain = solve("auto", case.problem, 0.5, tol=1e-8)
    far = solve("auto", case.problem, 50.0, tol=1e-3).w
    formulation = Formulation(constraints=mm.WeightConstraints(mean=far))
    near = solve("auto", case.problem, 1e-6, formulation)
    assert near.w == pytest.approx(far, abs=1e-3)
    zero = Formulation(constraints=mm.WeightConstraints(mean=np.zeros(len(far))))
    same = solve("auto", case.problem, 0.5, zero, tol=1e-8)
    assert same.primal == pytest.approx(plain.primal, rel=1e-7)


def test_constraints_that_do_not_bind_change_nothing():
    case = small_case("multiclass", "zero_one", 0)
    plain = solve("n_slack", case.problem, 0.5, tol=1e-8)
    signs = mm.WeightConstraints(nonnegative=plain.w > 1e-6, nonpositive=plain.w < -1e-6)
    bound = solve("n_slack", case.problem, 0.5, Formulation(constraints=signs), tol=1e-8)
    assert bound.primal == pytest.approx(plain.primal, rel=1e-7)
    assert bound.w == pytest.approx(plain.w, abs=1e-3)


def test_all_weights_fixed_leave_their_slacks():
    case = small_case("candidates", "costs", 0)
    w = np.random.default_rng(0).normal(size=case.twin.n_features)
    fixed = mm.WeightConstraints(fixed=dict(enumerate(w)))
    formulation = Formulation(constraints=fixed)
    slacks = hinge_values(case.problem, Formulation(), w).sum()
    for solver in SOLVERS:
        result = solve(solver, case.problem, 2.0, formulation, tol=1e-6)
        assert result.converged and np.array_equal(result.w, w)
        assert result.primal == pytest.approx(2.0 * slacks)


# ----- warm starts, states, paths ----------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "fasole", "dcd", "n_slack", "one_slack"])
def test_warm_starts_go_on(solver):
    case, formulation, optimum = problem_and_optimum(
        "chain", "hamming", 1, "all", "l1", "margin", 0.5
    )
    first = solve(solver, case.problem, 5.0, formulation, tol=1e-5)
    warm = solve(solver, case.problem, 0.5, formulation, tol=1e-5, warm_start=first)
    check(warm, case, formulation, 0.5, optimum)
    assert warm.converged
    again = solve(solver, case.problem, 0.5, formulation, tol=1e-4, warm_start=warm)
    assert again.n_passes <= 3
    check(again, case, formulation, 0.5, optimum)
    # Under other constraints nothing of it is right: training starts afresh.
    other, changed, best = problem_and_optimum("chain", "hamming", 1, "signs", "l1", "margin", 0.5)
    switched = solve(solver, case.problem, 0.5, changed, tol=1e-5, warm_start=again)
    check(switched, other, changed, 0.5, best)


@pytest.mark.parametrize("solver", ["auto", "dcd", "n_slack", "one_slack"])
def test_states_keep_the_multipliers_of_bounds(solver):
    case, formulation, optimum = problem_and_optimum(
        "chain", "hamming", 1, "all", "l1", "margin", 0.5
    )
    made = make_solver(solver, tol=1e-2, max_passes=4)
    half = made.solve(case.problem, formulation, 0.5)
    empty = made.start(
        TrainingRequest(case.problem, formulation, 0.5, np.ones(case.twin.n_examples), None, ())
    )
    empty.state.restore({name: array.copy() for name, array in half.state.arrays().items()})
    terms, again = half.state.dual_terms(), empty.state.dual_terms()
    assert again == terms
    value = terms.linear - 0.5 * (terms.square + terms.ridge)
    assert value == pytest.approx(terms.at(1.0), rel=1e-3)
    assert value <= optimum.primal + 1e-9


@pytest.mark.parametrize("kind", ["mean", "signs", "all"])
def test_intervals_of_C(kind):
    """Within the interval that is certified, the weights are good enough."""
    case, formulation, _ = problem_and_optimum("chain", "hamming", 1, kind, "l1", "margin", 0.5)
    result = solve("auto", case.problem, 0.5, formulation, tol=0.02)
    low, high = tolerated(result, 0.5, 0.05, None, case.twin.n_examples, formulation)
    assert low < 0.5 < high
    for C in (low * 1.0001, high * 0.9999):
        best = solve_constrained(case.twin, formulation, C)
        here = objective(case.twin, formulation, C, result.w)
        assert here - best.primal <= 0.05 * here


def test_certificates_of_results_that_come_without():
    for kind in KINDS:
        case, formulation, optimum = problem_and_optimum(
            "chain", "hamming", 1, kind, "l1", "margin", 0.5
        )
        for solver in ONLINE:
            result = solve(solver, case.problem, 0.5, formulation, tol=None, max_passes=20)
            assert result.gap is None
            check(certify(case.problem, formulation, 0.5, result), case, formulation, 0.5, optimum)


@pytest.mark.parametrize("solver", ["sgd", "perceptron"])
def test_learners_of_other_constraints_start_from_the_weights(solver):
    case = small_case("chain", "hamming", 1)
    mean = np.random.default_rng(0).normal(size=case.twin.n_features)
    drawn = Formulation(constraints=mm.WeightConstraints(mean=mean))
    first = solve(solver, case.problem, 0.5, drawn, tol=None, max_passes=1, average=False)
    bounds = Formulation(constraints=mm.WeightConstraints(nonnegative=True))
    turned = make_solver(solver, average=False)._learner(Oracle(case.problem, bounds), first)
    assert np.array_equal(turned.w, np.maximum(first.w, 0.0))
    same = make_solver(solver, average=False)._learner(Oracle(case.problem, drawn), first)
    assert same is first.state


def test_constraints_do_not_change_with_what_they_were_made_of():
    numbers, values, mean = [0, 1], {2: 0.5}, np.zeros(4)
    constraints = mm.WeightConstraints(numbers, fixed=values, mean=mean)
    same = mm.WeightConstraints([0, 1], fixed={2: 0.5}, mean=np.zeros(4))
    numbers.append(3)
    values[2] = -2.0
    mean[:] = 1.0
    assert constraints == same and constraints != mm.WeightConstraints(numbers, fixed=values)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mean": "none"}, "mean must be real numbers, got 'none'"),
        ({"mean": [1j] * 4}, "mean must be real numbers"),
        ({"fixed": {0: None}}, r"fixed\[0\] is None; values must be finite numbers"),
        ({"fixed": {0: "1"}}, r"fixed\[0\] is '1'; values must be finite numbers"),
    ],
)
def test_values_that_are_no_numbers_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        mm.WeightConstraints(**given).feasible_set(4)


# ----- pieces ------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_prices_are_the_best_multipliers(seed):
    rng = np.random.default_rng(seed)
    d = 6
    order = rng.permutation(d)
    constraints = mm.WeightConstraints(order[:2], order[2:4], mean=rng.normal(size=d))
    prices = BoundMultipliers(constraints.feasible_set(d))

    def dual(v, beta):
        u = v.copy()
        u[prices.which] += beta
        return prices._value(beta) - 0.5 * float(u @ u)

    v, before = rng.normal(size=d), 0.0
    for _ in range(3):
        u = v.copy()
        u[prices.which] += prices.beta
        before = dual(v, prices.beta)
        gain = prices.project(u)
        best = dual(v, prices.beta)
        assert best - before == pytest.approx(gain, abs=1e-12)
        assert (u[prices.which] >= prices.low).all() and (u[prices.which] <= prices.high).all()
        for _ in range(20):
            sign = np.where(np.isfinite(prices.low), 1.0, -1.0)
            assert dual(v, sign * rng.exponential(size=len(prices))) <= best + 1e-12
        direction, offset = rng.normal(size=d), rng.normal()
        slope = offset - float(direction @ u)
        step = prices.step(u, direction, slope, float(direction @ direction))
        assert 0.0 <= step <= 1.0

        def along(t, v=v, direction=direction, offset=offset):
            moved = v + t * direction
            u, own = moved.copy(), BoundMultipliers(constraints.feasible_set(d))
            own.project(u)
            return t * offset + dual(moved, own.beta)

        assert along(step) >= max(along(t) for t in np.linspace(0.0, 1.0, 41)) - 1e-9
        v = v + step * direction


@pytest.mark.parametrize(("name", "loss"), CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_planes_of_the_change_have_the_values_of_those_of_the_weights(name, loss, kind):
    case = small_case(name, loss, 0)
    rng = np.random.default_rng(0)
    constraints = KINDS[kind](rng, case.twin.n_features)
    plain, asked = (
        Oracle(case.problem, Formulation()),
        Oracle(case.problem, Formulation(constraints=constraints)),
    )
    assert asked.in_blocks == (plain.in_blocks and not asked.feasible_set.fixed.any())
    change = asked.change(rng.normal(size=case.twin.n_features))
    w = asked.weights(change)
    everyone = np.arange(case.twin.n_examples)
    expected = violations(plain.call_features(everyone, w), w)
    assert violations(asked.call_features(everyone, change), change) == pytest.approx(expected)
    assert asked.violations(change).values == pytest.approx(expected)
    halved = asked.call_features(everyone, 2.0 * change, 0.5)
    assert violations(halved, change) == pytest.approx(expected)
    assert hinge_values(case.problem, asked.formulation, w) == pytest.approx(
        np.maximum(expected, 0.0)
    )


def test_equal_constraints_are_equal():
    made = mm.WeightConstraints([0, 2], False, {1: 0.5}, [0.0, 1.0, 2.0])
    for again in (
        mm.WeightConstraints(np.array([0, 2]), False, {1: 0.5}, np.array([0.0, 1.0, 2.0])),
        pickle.loads(pickle.dumps(made)),
    ):
        assert made == again and hash(made) == hash(again)
    for other in (
        mm.WeightConstraints([0], False, {1: 0.5}, [0.0, 1.0, 2.0]),
        mm.WeightConstraints([0, 2], [1], {1: 0.5}, [0.0, 1.0, 2.0]),
        mm.WeightConstraints([0, 2], False, {1: 0.6}, [0.0, 1.0, 2.0]),
        mm.WeightConstraints([0, 2], False, {1: 0.5}, [0.0, 1.0, 2.5]),
        mm.WeightConstraints(True),
        None,
    ):
        assert made != other
    assert Formulation(constraints=made) != Formulation()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nonnegative": [7]}, "nonnegative has weight 7, but there are 4 weights"),
        ({"nonpositive": [-1]}, "nonpositive has weight -1"),
        ({"nonnegative": [0.5]}, "whole numbers"),
        ({"nonnegative": "gaps"}, "must be True, False, or a list"),
        ({"nonnegative": np.ones(3, bool)}, "3 truth values, but there are 4 weights"),
        (
            {"nonnegative": [1], "nonpositive": [1]},
            "weight 1 is both in nonnegative and in nonpositive",
        ),
        ({"fixed": {4: 0.0}}, "fixed has weight 4"),
        ({"fixed": {1: np.nan}}, r"fixed\[1\] is nan"),
        ({"fixed": [1, 2]}, "fixed must be a dict"),
        ({"fixed": {1: -1.0}, "nonnegative": True}, "fixed to -1, but must be nonnegative"),
        ({"fixed": {1: 2.0}, "nonpositive": [1]}, "fixed to 2, but must be nonpositive"),
        ({"mean": np.zeros(3)}, r"mean must have shape \(4,\), got shape \(3,\)"),
        ({"mean": [0.0, np.inf, 0.0, 0.0]}, r"mean\[1\] is inf"),
    ],
)
def test_constraints_that_cannot_be(arguments, message):
    with pytest.raises(ValueError, match=message):
        mm.WeightConstraints(**arguments).feasible_set(4)


def test_solvers_say_what_is_wrong():
    case = small_case("multiclass", "zero_one", 0)
    wrong = Formulation(constraints=mm.WeightConstraints(mean=np.zeros(2)))
    for solver in ("auto", "n_slack", "one_slack", "sgd"):
        with pytest.raises(ValueError, match="mean must have shape"):
            solve(solver, case.problem, 1.0, wrong)
    with pytest.raises(ValueError, match="not for hard margins"):
        Formulation(slack="none", constraints=mm.WeightConstraints(nonnegative=True))
    with pytest.raises(ValueError, match="must be WeightConstraints or None"):
        Formulation(constraints={"nonnegative": True})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "loss"), CASES)
def test_stores_ask_at_the_weights_of_their_change(name, loss, kind):
    """The problem's weights are brought up to date block by block, and never fall behind."""
    case = small_case(name, loss, 1)
    constraints = KINDS[kind](np.random.default_rng(3), case.twin.n_features)
    oracle = Oracle(case.problem, Formulation(constraints=constraints))
    store = make_store(oracle, np.full(case.twin.n_examples, 0.7), 10**7)
    ask, seen = oracle.call, []

    def watched(examples, w, weights=None):
        assert weights == pytest.approx(oracle.weights(w), abs=1e-14)
        assert objective(case.twin, oracle.formulation, 1.0, weights) < np.inf
        seen.append(len(examples))
        return ask(examples, w, weights)

    oracle.call = watched
    rule, rng = StepRule(WSS2, 5), np.random.default_rng(0)
    for turn in range(4):
        for i in rng.permutation(case.twin.n_examples):
            store.oracle_pass(np.array([i]), rule)
            before = store.dual()
            if i % 2:
                store.rebuild()
            assert store.dual() == pytest.approx(before, rel=1e-9, abs=1e-12)
        store.evict(1)
        before = float(store.dual_now[0])
        gain = store.extrapolate(1.0 if turn else 0.0)
        store.cached_pass(rng.permutation(case.twin.n_examples), rule)
        assert store.dual() >= before + gain - 1e-9
        assert objective(case.twin, oracle.formulation, 1.0, oracle.weights(store.w)) < np.inf
    assert len(seen) == 4 * case.twin.n_examples


@pytest.mark.parametrize("solver", ["auto", "n_slack", "one_slack", "sgd"])
def test_callbacks_are_shown_the_weights_of_the_problem(solver):
    case, formulation, _ = problem_and_optimum("chain", "hamming", 1, "all", "l1", "margin", 0.5)
    seen = []

    class Watching(WeightsCallback):
        def __call__(self, progress, weights=None):
            seen.append(weights().copy())

    solve(solver, case.problem, 0.5, formulation, tol=1e-3, max_passes=20, callbacks=[Watching()])
    assert seen
    for w in seen:
        assert objective(case.twin, formulation, 0.5, w) < np.inf
