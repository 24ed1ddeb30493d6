"""Paths of C: every point certified, for its own C and for those around it."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from brute import slacks
from cases import chain_case, multiclass_case
from exact_qp import solve_exactly
from maxmargin.core.formulation import Formulation
from maxmargin.core.objective import DualTerms, dual_value, primal_value
from maxmargin.solvers import make_solver
from maxmargin.solvers.path import solve_path, tolerated
from solving import planes_of, solve

SOLVERS = [
    ("auto", "l1"),
    ("auto", "l2"),
    ("n_slack", "l1"),
    ("n_slack", "l2"),
    ("one_slack", "l1"),
]
X, Y = load_digits(return_X_y=True)
X, Y = X[:300] / 16.0, Y[:300]


def digits(**parameters):
    return mm.MulticlassSVM(random_state=0, **parameters)


@pytest.mark.parametrize(("solver", "slack"), SOLVERS)
@given(seed=st.integers(0, 2**32 - 1), C=st.floats(0.01, 10.0), tol=st.floats(0.001, 0.5))
def test_weights_are_good_enough_in_their_interval(solver, slack, seed, C, tol):
    """By an exact optimum at both ends and in between."""
    rng = np.random.default_rng(seed)
    case = (multiclass_case if seed % 2 else chain_case)(rng)
    formulation = Formulation(slack=slack)
    weights = rng.integers(0, 3, case.problem.n_examples).astype(float)
    result = solve(
        solver, case.problem, C, formulation, tol=0.5 * tol, sample_weight=weights, random_state=0
    )
    low, high = tolerated(result, C, tol, None, weights.sum())
    assert low <= C <= high
    planes = planes_of(case.twin, formulation)
    low, high = max(low, C / 1000.0), min(high, 1000.0 * C)
    for other in (low, high, np.sqrt(low * high)):
        primal = primal_value(result.w, slacks(planes, result.w), formulation, other, weights)
        optimum = solve_exactly(planes, other, weights, slack=slack)
        assert primal - optimum.primal <= tol * primal + 1e-7


@given(
    seed=st.integers(0, 2**32 - 1),
    ratio=st.floats(0.01, 100.0),
    slack=st.sampled_from(["l1", "l2"]),
)
def test_scaled_multipliers_have_the_dual_value_that_is_claimed(seed, ratio, slack):
    """No factor that C allows does better, and the best one does as well."""
    rng = np.random.default_rng(seed)
    formulation, caps = Formulation(slack=slack), rng.random(4) + 0.1
    sums = caps * rng.random(4)
    sums[0] = caps[0]  # one is at its bound
    w, linear = rng.normal(size=3), rng.random()
    terms = DualTerms.of(w, linear, formulation, sums, caps)
    assert terms.linear - 0.5 * (terms.square + terms.ridge) == pytest.approx(
        dual_value(w, linear, formulation, 1.0, sums, caps)
    )

    def value(factor):
        return dual_value(
            factor * w, factor * linear, formulation, 1.0, factor * sums, ratio * caps
        )

    most = ratio if slack == "l1" else 100.0 * linear / float(w @ w)
    factors = np.linspace(0.0, most, 2001)
    best = max(value(factor) for factor in factors)
    assert best <= terms.at(ratio) * (1 + 1e-9)
    assert terms.at(ratio) <= best + 0.5 * (float(w @ w) + terms.ridge / ratio) * factors[1] ** 2


@pytest.mark.parametrize(("solver", "slack"), SOLVERS)
def test_a_cover_leaves_no_hole(solver, slack):
    models = mm.path(digits(solver=solver, slack=slack, tol=0.05), X, Y, [1e-3, 1.0], cover=True)
    assert models.Cs[0] == 1e-3 and np.all(np.diff(models.Cs) > 0)
    reached = 1e-3
    for low, high in models.intervals:
        assert low <= reached
        reached = max(reached, high)
    assert reached >= 1.0
    for C in np.logspace(-3, 0, 7):
        model = models.at(C)
        assert model.C == C and models.covers(C)
        optimum = digits(C=C, slack=slack, tol=1e-5).fit(X, Y).result_
        hinges = np.maximum(0.0, _hinges(model.decision_function(X), Y))
        powers = hinges**2 if slack == "l2" else hinges
        primal = 0.5 * np.sum(model.coef_**2) + C * powers.sum()
        assert primal - optimum.dual <= 0.05 * primal + 1e-6


def _hinges(scores, y):
    own = scores[np.arange(len(y)), y].copy()
    scores = scores + 1.0
    scores[np.arange(len(y)), y] -= 1.0
    return scores.max(axis=1) - own


def test_each_c_goes_on_from_the_one_before():
    Cs = [10.0, 0.1, 1.0, 0.1]
    models = mm.path(digits(tol=1e-3), X, Y, Cs)
    assert models.Cs.tolist() == [0.1, 1.0, 10.0] and len(models) == 3
    alone = [digits(C=C, tol=1e-3).fit(X, Y).result_ for C in models.Cs]
    for result, other in zip(models.results, alone, strict=True):
        assert result.converged and result.primal == pytest.approx(other.primal, rel=2e-3)
    assert sum(r.n_passes for r in models.results) < sum(r.n_passes for r in alone)
    assert models.scores(X, Y).shape == (3,)
    assert models.at(10.0).score(X, Y) == models.scores(X, Y)[-1]
    assert "relative gap" in str(models) and "3 points" in repr(models)


def test_the_estimator_stays_as_it_is_and_features_are_built_once():
    built = []

    class Counting(mm.features.WindowFeatures):
        def fit_transform(self, *arguments):
            built.append(len(arguments[0]))
            return super().fit_transform(*arguments)

    words = [["the", "cat"], ["a", "dog", "sleeps"]]
    tags = [["D", "N"], ["D", "N", "V"]]
    tagger = mm.SequenceTagger(features=Counting(), random_state=0)
    models = tagger.fit_path(words, tags, [0.1, 1.0, 10.0])
    assert built == [2] and not hasattr(tagger, "coef_") and tagger.C == 1.0
    assert models.at(10.0).predict(words) == tags


def test_what_no_point_covers_is_refused():
    models = mm.path(digits(tol=1e-3), X, Y, [0.01, 1.0])
    assert not models.covers(0.1)
    with pytest.raises(ValueError, match=r"no point .* for C=0\.1; the nearest is that of C="):
        models.at(0.1)


def test_a_path_that_is_ended_tells_what_it_reached():
    with pytest.warns(match="max_passes=2"):
        models = mm.path(digits(tol=1e-6, max_passes=2), X, Y, [0.1, 1.0], cover=True)
    assert len(models) == 1 and np.isnan(models.intervals).all()


def test_an_interrupt_ends_the_path():
    calls = []

    def interrupt(progress):
        calls.append(progress)
        if len(calls) == 6:
            raise KeyboardInterrupt

    estimator = digits(tol=1e-4, training={"callbacks": [interrupt], "on_interrupt": "return"})
    with pytest.warns(match="interrupted"):
        models = mm.path(estimator, X, Y, np.logspace(-2, 1, 10))
    assert len(models) < 10 and models.results[-1].status == "interrupted"


def test_every_point_that_was_ended_is_told():
    with pytest.warns(ConvergenceWarning) as told:
        mm.path(digits(tol=1e-6, max_passes=2), X, Y, [0.01, 1.0])
    assert [str(warning.message)[:7] for warning in told] == ["C=0.01:", "C=1: tr"]


def test_a_cover_by_epsilon():
    models = mm.path(digits(tol=None, epsilon=0.02), X, Y, [0.001, 0.1], cover=True)
    assert all(models.covers(C) for C in np.logspace(-3, -1, 50))


def test_a_cover_ends_where_intervals_are_single_points():
    def solve_for(solver, C, start):
        return make_result(C)

    solver = make_solver("auto", tol=0.0)
    assert len(solve_path(solve_for, solver, [0.1, 1.0], 1.0, cover=True)) == 1


def make_result(C):
    """An optimum with the least interval there can be: no gap is allowed, and there is a slack."""
    case = multiclass_case(np.random.default_rng(0), n=3)
    result = solve("auto", case.problem, 1.0, Formulation(), tol=1e-9, random_state=0)
    return replace(result, state=None, primal=C, dual=C, w=np.zeros_like(result.w))


@pytest.mark.parametrize("loss", ["absolute", "pairs"])
def test_thresholds_are_those_of_the_point(loss):
    """Grades by pairs have thresholds that are set after the weights."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.digitize(X @ [1.0, 2.0, 0.0] + 0.5 * rng.normal(size=60), [-1.0, 0.5])
    make = partial(mm.OrdinalSVM, loss=loss, tol=1e-9, random_state=0)
    models = mm.path(make(), X, y, [0.01, 1.0])
    for C in (0.01, 1.0):
        alone = make(C=C).fit(X, y)
        assert models.at(C).thresholds_ == pytest.approx(alone.thresholds_, rel=1e-3)
        assert np.array_equal(models.at(C).predict(X), alone.predict(X))


@pytest.mark.parametrize("C", [0, -1.0, np.nan, np.inf, "1", None, [1.0]])
def test_what_is_no_c(C):
    models = mm.path(digits(), X, Y, [0.01])
    for method in (models.at, models.covers):
        with pytest.raises(ValueError, match="C must be a positive, finite number, got"):
            method(C)


def test_only_our_estimators_have_paths():
    for search in (mm.path, lambda *data: mm.SearchCV(data[0], data[3]).fit(*data[1:3])):
        with pytest.raises(TypeError, match=r"one of maxmargin.*make SearchCV the last step"):
            search(make_pipeline(digits()), X, Y, [0.01])
    search = make_pipeline(StandardScaler(), mm.SearchCV(digits(), [0.01, 0.1], cv=2))
    assert search.fit(X, Y).score(X, Y) > 0.9


@pytest.mark.parametrize(
    ("parameters", "Cs", "message"),
    [
        ({}, [], "at least one"),
        ({}, [1.0, -1.0], "positive, finite"),
        ({}, [np.nan], "positive, finite"),
        ({}, "many", "positive, finite .* got 'many'"),
        ({}, {1.0}, "positive, finite"),
        ({"slack": "none", "solver": "n_slack"}, [1.0], "has no C"),
        ({"solver": "sgd"}, [1.0], "returns no certificate"),
        ({"tol": None, "max_passes": 3}, [1.0], "needs a precision"),
    ],
)
def test_what_cannot_be_a_path(parameters, Cs, message):
    with pytest.raises(ValueError, match=message):
        mm.path(digits(**parameters), X, Y, Cs, cover=True)


def test_points_are_those_of_their_solver_from_a_warm_start():
    """Also without states: what multipliers keep when they are scaled down still bounds the gap."""
    case = multiclass_case(np.random.default_rng(0), n=20)
    solver = make_solver("auto", tol=0.1, random_state=0)

    def without_state(solver, C, start):
        result = solver.solve(case.problem, Formulation(), C)
        result.state = None
        return result

    points = solve_path(without_state, solver, [0.1, 1.0], 20.0, cover=True)
    wide = solve_path(
        lambda solver, C, start: solver.solve(case.problem, Formulation(), C, warm_start=start),
        solver,
        [0.1, 1.0],
        20.0,
        cover=True,
    )
    assert len(wide) < len(points)
    assert all(point.covers(point.C) for point in points + wide)
