"""OrdinalSVM, and thresholds of grades."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

import maxmargin as mm
from maxmargin.core.formulation import Formulation
from maxmargin.problems.ranking.problem import RankingProblem
from maxmargin.problems.ranking.thresholds import ThresholdProblem, best_thresholds

LOSSES = ("absolute", "pairs")
WORDS = ["poor", "fair", "good", "excellent"]


def graded(n=200, seed=0):
    """Four grades of a linear score with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score = X @ [1.0, -1.0, 0.5, 0.0] + 0.2 * rng.normal(size=n)
    return X, np.searchsorted([-1.5, 0.0, 1.0], score)


X, Y = graded()
X_TEST, Y_TEST = graded(seed=1)


def ordinal(**parameters):
    return mm.OrdinalSVM(random_state=0, **parameters)


@pytest.mark.parametrize("loss", LOSSES)
def test_grades_are_learned(loss, tmp_path):
    model = ordinal(loss=loss, C=10.0).fit(X, Y)
    assert model.result_.converged and model.result_.n_examples == (1 if loss == "pairs" else 200)
    found = model.predict(X_TEST)
    assert model.score(X_TEST, Y_TEST) == (found == Y_TEST).mean() > 0.8
    scores = model.linear_score(X_TEST)
    assert np.allclose(scores, X_TEST @ model.coef_)
    assert np.array_equal(np.argmax(model.decision_function(X_TEST), axis=1), found)
    assert np.array_equal(found, (scores[:, None] > model.thresholds_).sum(axis=1))
    assert (np.diff(model.thresholds_) > 0).all()
    model.save(tmp_path / "model")
    again = mm.load(tmp_path / "model")
    assert np.array_equal(again.predict(X_TEST), found)
    assert np.array_equal(again.thresholds_, model.thresholds_)


@pytest.mark.parametrize("loss", LOSSES)
def test_grades_have_any_type_and_a_given_order(loss):
    expected = ordinal(loss=loss).fit(X, Y)
    words = np.array(WORDS)[Y]
    series = pd.Series(pd.Categorical(words, categories=WORDS, ordered=True))
    for y, parameters in ((words, {"grades": WORDS}), (series, {})):
        model = ordinal(loss=loss, **parameters).fit(X, y)
        assert np.array_equal(model.coef_, expected.coef_)
        assert model.classes_.tolist() == WORDS
        assert np.array_equal(model.predict(X), np.array(WORDS)[expected.predict(X)])
        assert model.score(X, y) == expected.score(X, Y)
    halves = ordinal(loss=loss, grades=[0.5, 1.0, 1.5, 2.0]).fit(X, Y / 2 + 0.5)
    assert np.array_equal(halves.predict(X), expected.predict(X) / 2 + 0.5)


def test_the_order_of_words_is_told():
    with pytest.warns(UserWarning, match="'excellent', 'fair', 'good', 'poor'"):
        mm.OrdinalSVM().fit(X, np.array(WORDS)[Y])


def test_grades_that_no_example_has():
    """Between two others it has no place; above or below all, its threshold is beyond them."""
    between = ordinal(grades=range(5), C=10.0, tol=1e-6).fit(X, Y + (Y > 1))
    assert 2 not in between.predict(X)
    assert between.thresholds_[1] == pytest.approx(between.thresholds_[2], abs=1e-3)
    beyond = ordinal(grades=[-1, 0, 1, 2, 3, 4], C=1e3).fit(X, Y)
    assert set(beyond.predict(X)) <= set(range(4))


def test_two_grades_are_two_classes():
    """The threshold is the constant feature of LinearSVC, with the sign changed."""
    y = (Y > 1).astype(int)
    model = ordinal(C=2.0, tol=1e-6).fit(X, y)
    peer = LinearSVC(C=2.0, loss="hinge", tol=1e-9, max_iter=10**6).fit(X, y)
    assert np.allclose(model.coef_, peer.coef_[0], atol=1e-3)
    assert np.allclose(model.thresholds_, -peer.intercept_, atol=1e-3)
    assert np.allclose(model.decision_function(X), peer.decision_function(X), atol=1e-2)


def test_pairs_are_those_of_a_ranking_without_queries():
    model = ordinal(loss="pairs", C=5.0).fit(X, Y)
    ranker = mm.RankSVM(loss="normalized_swaps", C=5.0, random_state=0).fit(X, Y)
    assert np.array_equal(model.coef_, ranker.coef_)


def test_thresholds_are_in_order_at_the_optimum():
    """Also of grades that are as good as without order."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        inputs, grades = rng.normal(size=(30, 2)), rng.integers(0, 6, 30)
        model = ordinal(C=1.0, tol=1e-7).fit(inputs, grades)
        assert (np.diff(model.result_.w[2:]) > -1e-4).all()


def test_disorder_before_the_optimum_changes_no_prediction():
    model = ordinal(solver="sgd", max_passes=1).fit(X[:20], Y[:20])
    model.result_.w[4:] = [1.0, -1.0, 0.0]
    above = model.linear_score(X)[:, None] > [1.0, -1.0, 0.0]
    assert np.array_equal(model.predict(X), above.sum(axis=1))


# ----- weights -----------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_are_repetitions(loss):
    times = np.random.default_rng(0).integers(0, 4, len(Y))
    weighted = ordinal(loss=loss, tol=1e-7, C=0.1).fit(X, Y, sample_weight=times)
    repeated = ordinal(loss=loss, tol=1e-7, C=0.1)
    rows = np.repeat(np.arange(len(Y)), times)
    repeated.fit(X[rows], Y[rows])
    assert weighted.result_.primal == pytest.approx(repeated.result_.primal, rel=1e-5)
    assert np.allclose(weighted.coef_, repeated.coef_, atol=1e-3)
    if loss == "pairs":
        assert weighted.score(X, Y, times) == pytest.approx(repeated.score(X[rows], Y[rows]))
        same = ordinal(loss=loss, C=0.1).fit(X, Y, sample_weight=np.full(len(Y), 3.0))
        assert np.array_equal(same.coef_, ordinal(loss=loss, C=0.1).fit(X, Y).coef_)


def test_weights_of_pairs_need_margin_rescaling():
    model = ordinal(loss="pairs", rescaling="slack")
    assert model.fit(X, Y).result_.converged
    with pytest.raises(ValueError, match="weights of documents need rescaling='margin'"):
        model.fit(X, Y, sample_weight=np.arange(len(Y)))


def test_weighted_pairs_are_counted_as_if_they_were_listed():
    rng = np.random.default_rng(0)
    documents, w, weights = rng.normal(size=(300, 3)), rng.normal(size=3), rng.random(300)
    y = rng.integers(0, 5, 300)
    scores = documents @ w
    pairs = np.outer(weights, weights) * (y[:, None] > y)
    hinges = pairs * np.maximum(0.0, 1.0 - (scores[:, None] - scores))
    for loss, total in (("swaps", 1.0), ("normalized_swaps", pairs.sum())):
        problem = RankingProblem(documents, y, [0, 300], loss, document_weights=weights)
        planes = problem.oracle(np.arange(1), w)
        value = planes.losses[0] - planes.values @ w[planes.indices]
        assert value == pytest.approx(hinges.sum() / total)


@pytest.mark.parametrize(
    ("offsets", "loss", "weights", "message"),
    [
        ([0, 2, 4], "swaps", np.ones(4), "swapped pairs of one query, got 2 queries"),
        ([0, 4], "ndcg", np.ones(4), "swapped pairs of one query, .* loss='ndcg'"),
        ([0, 4], "swaps", np.ones(3), "there are 4 documents, but weights of"),
        ([0, 4], "swaps", [1, 1, -1, 1], "weight of document 2 is -1.0"),
    ],
)
def test_bad_weights_of_documents(offsets, loss, weights, message):
    with pytest.raises(ValueError, match=message):
        RankingProblem(np.eye(4), [0, 1, 0, 1], offsets, loss, document_weights=weights)


# ----- thresholds --------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_best_thresholds_are_the_best_of_all(seed, weighted):
    rng = np.random.default_rng(seed)
    n, R = int(rng.integers(1, 7)), int(rng.integers(2, 5))
    scores, grades = rng.integers(-2, 3, n) / 2.0, rng.integers(0, R, n)
    weights = rng.integers(0, 3, n).astype(float) if weighted else None
    found = best_thresholds(scores, grades, R, weights)
    assert len(found) == R - 1 and (np.diff(found) >= 0).all()

    def error(thresholds):
        away = np.abs((scores[:, None] > np.array(thresholds)).sum(axis=1) - grades)
        return float(away @ (np.ones(n) if weights is None else weights))

    places = [*(np.unique(scores) - 0.25), 5.0]
    every = itertools.combinations_with_replacement(places, R - 1)
    assert error(found) == min(error(thresholds) for thresholds in every)


def test_thresholds_between_scores_that_nearly_touch():
    low = 1.0
    scores = np.array([low, np.nextafter(low, 2.0), 1e300, np.nextafter(1e300, np.inf)])
    for grades in ([0, 1, 1, 1], [0, 0, 0, 1], [1, 1, 1, 1]):
        (threshold,) = best_thresholds(scores, np.array(grades), 2)
        assert (scores > threshold).astype(int).tolist() == grades


# ----- manners -----------------------------------------------------------------------------------


def test_inputs_in_any_form():
    for loss in LOSSES:
        expected = ordinal(loss=loss, tol=1e-6).fit(X, Y)
        for matrix in (sp.csr_matrix(X), sp.csc_array(X), X.astype(np.float32)):
            model = ordinal(loss=loss, tol=1e-6).fit(matrix, Y)
            assert model.result_.primal == pytest.approx(expected.result_.primal, rel=1e-5)
            assert model.linear_score(matrix).dtype == np.float64


def test_every_formulation_trains():
    for loss, rescaling, slack in itertools.product(
        LOSSES, ("margin", "slack", "none"), ("l1", "l2")
    ):
        model = ordinal(loss=loss, rescaling=rescaling, slack=slack).fit(X[:60], Y[:60])
        assert model.result_.converged, Formulation(rescaling, slack)


def test_grid_search():
    search = GridSearchCV(ordinal(), {"loss": LOSSES, "C": [1e-3, 1.0]}, cv=3).fit(X, Y)
    assert 0.8 < search.best_score_ <= 1.0
    assert np.array_equal(search.predict(X), clone(search.best_estimator_).fit(X, Y).predict(X))


def test_check_estimator():
    """But for weights, which are to give all digits that repetitions give."""
    for loss in LOSSES:
        results = check_estimator(mm.OrdinalSVM(loss=loss), on_fail=None, on_skip=None)
        failed = {r["check_name"] for r in results if r["status"] == "failed"}
        assert all("sample_weight_equivalence" in name for name in failed), failed
        assert sum(r["status"] == "passed" for r in results) > 40


@pytest.mark.parametrize(
    ("parameters", "y", "message"),
    [
        ({"loss": "zero_one"}, Y, "loss must be 'absolute' or 'pairs', got 'zero_one'"),
        ({}, Y[:-1], "X has 200 examples but y has 199"),
        ({}, np.zeros(200), r"y has one class, 0.0; expected 2 grades or more"),
        ({}, X[:, 0], "200 different real values; if these are grades"),
        ({"grades": [0, 1, 2]}, Y, r"y\[\d+\] is 3, which is not one of the grades \[0, 1, 2\]"),
        ({"grades": [0, 1, 1]}, Y, "grades must be 2 different values or more"),
        ({"grades": "abc"}, Y, "grades must be a list of them, got 'abc'"),
        ({"grades": [0, None]}, Y, "grades must be 2 different values or more"),
        ({"grades": [0, 1, np.nan]}, Y, "grades must be 2 different values or more"),
        ({}, ["a", None] * 100, r"y\[1\] is None, which has no order beside y\[0\], 'a'"),
        ({}, [None, "a"] * 100, r"y\[0\] is None"),
        (
            {"loss": "pairs"},
            pd.Series(pd.Categorical(["a"] * 200, ["a"], ordered=True)),
            r"category \['a'\] alone; expected 2 grades",
        ),
    ],
)
def test_bad_input(parameters, y, message):
    with pytest.raises(ValueError, match=message):
        ordinal(**parameters).fit(X, y)


def test_bad_problems():
    for grades, n_grades, message in (
        ([0, 1], 1, "2 grades at least"),
        ([0, 2], 2, r"grades\[1\] is 2"),
        ([0, 1, 1], 2, "X has 2 rows"),
    ):
        with pytest.raises(ValueError, match=message):
            ThresholdProblem(np.eye(2), grades, n_grades)


def test_a_problem_is_what_it_says():
    problem = ThresholdProblem(X[:20], Y[:20], 4)
    mm.check_problem(problem, candidates=lambda x, rng: rng.random(3) < 0.5)
    chosen = np.array([7, 2, 2, 19])
    w = np.random.default_rng(0).normal(size=7)
    whole, part = problem.oracle(chosen, w), problem.subset(chosen).oracle(np.arange(4), w)
    for a, b in zip(whole, part, strict=True):
        assert np.array_equal(a, b)
    weighted = RankingProblem(
        X[:9], Y[:9], [0, 9], "normalized_swaps", document_weights=1.0 + np.arange(9)
    )
    mm.check_problem(weighted, candidates=lambda x, rng: rng.permutation(9), rescalings=("margin",))
