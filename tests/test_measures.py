"""Measures of whole samples: searches of every measure, in small and in large; the estimator."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import average_precision_score, fbeta_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import LinearSVC

import maxmargin as mm
from brute import plane_terms
from brute_measures import LABEL_MEASURES, RANKING_MEASURES, measure_case, measure_of_labels
from checking import RESCALINGS, SEARCHES, check_oracle, check_predictions
from maxmargin.core.formulation import Formulation
from maxmargin.engine.cuts.sample_pool import minimum_on_line
from maxmargin.problems.measures.measure import Measure
from maxmargin.problems.measures.problem import LabelSearch, MeasureProblem, RankingSearch
from solving import check_optimal, solve

MEASURES = (*LABEL_MEASURES, *RANKING_MEASURES)
PARAMETERS = {
    "fbeta": {"beta": 0.5},
    "precision_at_k": {"k": 20},
    "recall_at_k": {"k": 20},
    "recall_at_precision": {"floor": 0.7},
    "precision_at_recall": {"floor": 0.7},
}
every_measure = pytest.mark.parametrize("name", MEASURES)
seeds = st.integers(0, 2**32 - 1)


def measure_named(name):
    return Measure(name, **PARAMETERS.get(name, {}))


def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return X / X.max(axis=0), y


# ----- searches ----------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("name", LABEL_MEASURES)
def test_labels_of_every_measure(name):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        options = {"n": 3 + seed, "k": 1 + seed, "beta": (0.3, 2.0)[seed % 2]}
        case = measure_case(rng, loss=name, n_positive=1 + seed % 4, **options)
        for w in (rng.normal(size=2), 20.0 * rng.normal(size=2), np.zeros(2)):
            for rescaling, sqrt_loss in SEARCHES:
                check_oracle(case, w, rescaling, sqrt_loss)
            check_predictions(case, w)


@pytest.mark.nojit
@pytest.mark.parametrize("name", ["error", "roc_auc"])
def test_rows_of_different_weights(name):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        case = measure_case(rng, loss=name, n=5, weighted=True)
        for scale in (1.0, 10.0):
            check_oracle(case, scale * rng.normal(size=2), "margin")
        for rescaling, sqrt_loss in SEARCHES:
            if (rescaling, sqrt_loss) != ("margin", False):
                with pytest.raises(ValueError, match="sample_weight"):
                    case.problem.oracle(np.arange(1), np.ones(2), rescaling, sqrt_loss)


@every_measure
def test_problems_pass_their_check(name):
    for seed in range(3):
        problem, twin = measure_case(np.random.default_rng(seed), loss=name, n=5)
        listed = [problem.Y[0]] if name in RANKING_MEASURES else []
        if name in RANKING_MEASURES:
            listed += [np.array(order) for order in twin.orders.values()]
            rescalings = RESCALINGS if name == "precision_at_recall" else ("margin", "none")
        else:
            listed += [np.array(y) for y in twin.outputs(0)]
            rescalings = RESCALINGS
        mm.check_problem(problem, outputs=lambda x, listed=listed: listed, rescalings=rescalings)
        outputs = twin.orders if name in RANKING_MEASURES else {y: y for y in twin.outputs(0)}
        for key, output in outputs.items():
            mine = problem.joint_feature(problem.X[0], np.array(output))
            assert mine == pytest.approx(twin.psi(0, key), abs=1e-12)
            loss = problem.loss(problem.Y[0], np.array(output))
            assert loss == pytest.approx(twin.loss(0, key), abs=1e-12)


def best_of_all_tables(measure, positive, scores, rescaling, sqrt_loss):
    """The largest violation, by a list of all tables as Joachims (2005) has it."""
    n, P = len(scores), int(positive.sum())
    high, low = np.sort(scores[positive])[::-1], np.sort(scores[~positive])[::-1]
    best, gold = 0.0, np.repeat([1, -1], [P, n - P])

    def value_of(labels):
        return measure_of_labels(gold, labels, measure.name, measure.beta, measure.k, measure.floor)

    highest = value_of(gold)
    for a, b in itertools.product(range(P + 1), range(n - P + 1)):
        labels = np.repeat([1, -1, 1, -1], [a, P - a, b, n - P - b])
        value = value_of(labels)
        if value is None:
            continue
        loss = 0.0 if abs(value - highest) < 1e-12 else highest - value
        gain = (high[:a].sum() + low[:b].sum() - high.sum()) / n
        offset, scale = plane_terms(loss, rescaling, sqrt_loss)
        best = max(best, float(offset + scale * gain))
    return best


@pytest.mark.parametrize("name", LABEL_MEASURES)
@settings(max_examples=10)
@given(seed=seeds, spread=st.sampled_from([0.1, 1.0, 30.0]), ties=st.booleans())
def test_the_best_of_many_tables(name, seed, spread, ties):
    rng = np.random.default_rng(seed)
    n = 40
    positive = np.arange(n) < rng.integers(1, 30)
    rng.shuffle(positive)
    scores = rng.normal(size=n) * spread + positive
    scores = np.rint(scores) if ties else scores
    measure = measure_named(name)
    for rescaling, sqrt_loss in SEARCHES:
        formulation = Formulation(rescaling, sqrt_loss=sqrt_loss)
        found = LabelSearch(measure, positive).best(scores, formulation)
        offsets, scales = formulation.plane_terms(np.array([found.loss]))
        value = offsets[0] - scales[0] * (found.coefficients @ scores)
        expected = best_of_all_tables(measure, positive, scores, rescaling, sqrt_loss)
        assert value == pytest.approx(expected, abs=1e-9)


@settings(max_examples=40)
@given(seed=seeds, spread=st.sampled_from([0.1, 1.0, 30.0, 1000.0]))
def test_the_best_ranking_of_many_rows(seed, spread):
    """Average precision: each negative row at the best of all places (Yue et al. 2007)."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    positive = np.arange(n) < rng.integers(1, n)
    scores = rng.normal(size=n) * spread
    found = RankingSearch(Measure("average_precision"), positive).best(scores, Formulation())
    high, low = np.sort(scores[positive])[::-1], np.sort(scores[~positive])[::-1]
    P, N = len(high), len(low)
    ranks = np.arange(1, P + 1)
    total = 0.0
    for j in range(1, N + 1):
        gains = ranks / (ranks + j - 1) - ranks / (ranks + j) + (low[j - 1] - high) / N
        total += max(gains[i:].sum() for i in range(P + 1)) / P
    value = found.loss - found.coefficients @ scores
    assert value == pytest.approx(total, abs=1e-9 * (1.0 + spread))


def test_searches_that_are_not_exact_are_refused():
    problem = measure_case(np.random.default_rng(0), loss="average_precision").problem
    with pytest.raises(ValueError, match=r"needs rescaling='margin'.*measure='f1', support all"):
        solve("one_slack", problem, 1.0, Formulation("slack"))
    with pytest.raises(ValueError, match=r"sqrt_loss=False"):
        solve("auto", problem, 1.0, Formulation(slack="l2"))


@given(seed=seeds)
def test_minimum_on_a_line(seed):
    """Never worse than a grid by more than a part of the decrease there is."""
    rng = np.random.default_rng(seed)
    lines = rng.normal(size=(6, 2)) * [1.0, 5.0]
    slope, curvature, weight = rng.normal(), rng.exponential(), rng.exponential()

    def hinge(t):
        values = lines[:, 0] + t * lines[:, 1]
        k = int(np.argmax(values))
        return (values[k], lines[k, 1]) if values[k] > 0.0 else (0.0, 0.0)

    def objective(t):
        return slope * t + 0.5 * curvature * t * t + weight * hinge(t)[0]

    t, value = minimum_on_line(hinge, weight, slope, curvature, guess=rng.uniform(0.01, 2.0))
    assert 0.0 <= t <= 1.0 and value == hinge(t)[0]
    lowest = min(objective(s) for s in np.linspace(0.0, 1.0, 301))
    assert objective(t) - lowest <= 0.2 * (objective(0.0) - lowest) + 1e-12


# ----- solvers -----------------------------------------------------------------------------------


def test_auto_leaves_a_single_example_to_one_slack():
    case = measure_case(np.random.default_rng(0), loss="f1")
    result = solve("auto", case.problem, 50.0)
    check_optimal(result, case, 50.0)
    assert result.state.kind == "one_slack"
    again = solve("auto", case.problem, 60.0, warm_start=result)
    check_optimal(again, case, 60.0)
    assert again.n_passes < result.n_passes
    squared = Formulation(slack="l2")
    assert solve("auto", case.problem, 5.0, squared).state.kind == "dual_ascent"


@pytest.mark.parametrize("measure", ["error", "f1", "roc_auc"])
def test_large_features_take_few_passes(measure):
    X, _ = breast_cancer()
    X, noise = X[:60, :4] - X[:60, :4].mean(axis=0), np.random.default_rng(0).normal(size=60)
    y = X[:, 0] + 0.1 * noise > 0.0
    model = mm.PerformanceSVM(measure=measure, solver="one_slack", max_passes=200)
    assert model.fit(1e6 * X, y).result_.converged


def test_a_single_example_of_ones_own():
    class Sign(mm.Problem):
        def joint_feature(self, x, y):
            return x * y

        def loss(self, y, y_hat):
            return float(y != y_hat)

        def most_violated(self, x, y, w, rescaling):
            return max((-1, 1), key=lambda z: self.loss(y, z) + w @ self.joint_feature(x, z))

        def predict(self, x, w):
            return 1 if w @ x > 0 else -1

    result = solve("auto", Sign().bind([np.array([1.0, 2.0])], [1]), 10.0)
    assert result.converged and result.state.kind == "one_slack"
    assert result.w == pytest.approx([0.1, 0.2]) and result.primal == pytest.approx(0.025)


@pytest.mark.parametrize("name", ["error", "f1", "roc_auc"])
def test_training_goes_on_from_arrays(name):
    """A state that went through arrays leads to the same bits."""
    X, y = breast_cancer()
    problem = MeasureProblem(X, 2 * y - 1, Measure(name))
    first = [solve("one_slack", problem, 100.0, tol=1e-2) for _ in range(2)]
    arrays = {key: array.copy() for key, array in first[1].state.arrays().items()}
    first[1].state.restore(arrays)
    ends = [solve("one_slack", problem, 200.0, tol=1e-4, warm_start=result) for result in first]
    assert np.array_equal(ends[0].w, ends[1].w) and ends[0].n_passes == ends[1].n_passes


# ----- the estimator -----------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_error_is_the_svm_of_linear_svc(fit_intercept):
    X, y = breast_cancer()
    C = 0.3
    inputs = np.hstack([X, np.ones((len(X), 1))]) if fit_intercept else X
    peer = LinearSVC(C=C, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=10**6)
    w = peer.fit(inputs, y).coef_[0]
    hinges = np.maximum(0.0, 1.0 - (2 * y - 1) * (inputs @ w))
    optimum = 0.5 * w @ w + C * hinges.sum()
    model = mm.PerformanceSVM(C=C, fit_intercept=fit_intercept, tol=1e-6).fit(X, y)
    assert model.result_.primal == pytest.approx(optimum, rel=1e-5)
    assert np.append(model.coef_, model.intercept_)[: len(w)] == pytest.approx(w, abs=2e-2)
    assert (model.predict(X) == peer.predict(inputs)).mean() > 0.99


def rare(rng, n=2000, fraction=0.03, distance=2.0):
    """Rows of five features; those of the rare class are some way off in two of them."""
    y = (rng.random(n) < fraction).astype(int)
    X = rng.normal(size=(n, 5))
    X[y == 1, :2] += distance
    return X, y


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("name", [name for name in MEASURES if name != "recall_at_precision"])
def test_default_C_learns_a_rare_class(name):
    rng = np.random.default_rng(0)
    (X, y), (unseen, labels) = rare(rng), rare(rng)
    model = mm.PerformanceSVM(measure=name, **PARAMETERS.get(name, {})).fit(X, y)
    scores = model.decision_function(unseen)
    assert roc_auc_score(labels, scores) > 0.9 and average_precision_score(labels, scores) > 0.4
    if name in ("f1", "fbeta"):
        assert fbeta_score(labels, scores > 0.0, beta=1.0) > 0.4


def test_precision_of_few_rows_is_learned():
    """k far below the number of positive rows: weights are not 0, whatever C is."""
    X, y = rare(np.random.default_rng(0), fraction=0.23, distance=1.5)
    for C in (1.0 / len(y), 1.0):  # the first is SVM-perf's default
        model = mm.PerformanceSVM(C=C, measure="precision_at_k", k=23).fit(X, y)
        assert model.score(X, y) == 1.0 and roc_auc_score(y, model.decision_function(X)) > 0.9


def test_models_that_tell_no_rows_apart_warn():
    X, y = rare(np.random.default_rng(0), fraction=0.01, distance=1.2)
    for name in ("f1", "prbep", "recall_at_k"):
        for C in (1.0, 1e4):
            model = mm.PerformanceSVM(C=C, measure=name, k=40)
            with pytest.warns(UserWarning, match=f"{name}'.*all weights are 0.*'roc_auc'"):
                assert not model.fit(X, y).coef_.any()
    with pytest.warns(UserWarning, match="predicts the class 0 for all training rows.*balanced"):
        mm.PerformanceSVM().fit(X, y)
    with pytest.warns(UserWarning, match="predicts the class 'b' for all training rows"):
        mm.PerformanceSVM(C=1e-3).fit(X, np.array(["b", "a"])[y])


def test_a_common_word_that_is_positive_warns(recwarn):
    """Words have an order that nobody has chosen; numbers and truth values say which is meant."""
    X, y = rare(np.random.default_rng(0), fraction=0.1, distance=3.0)
    words = np.where(y == 1, "fraud", "ok")
    with pytest.warns(UserWarning, match="here 'ok' with 9.* train with y == 'fraud'"):
        model = mm.PerformanceSVM(measure="f1").fit(X, words)
    assert model.classes_[1] == "ok"
    recwarn.clear()
    for labels in (words == "fraud", words == "ok", np.where(y == 1, "spam", "ham")):
        mm.PerformanceSVM(measure="f1").fit(X, labels)
    mm.PerformanceSVM(measure="roc_auc").fit(X, words)
    assert not [str(one.message) for one in recwarn if "positive class" in str(one.message)]


@every_measure
def test_every_measure_learns(name):
    X, y = breast_cancer()
    labels = np.array(["benign", "malign"])[y]
    model = mm.PerformanceSVM(C=20.0, measure=name, **PARAMETERS.get(name, {})).fit(X, labels)
    scores = model.decision_function(X)
    assert model.classes_.tolist() == ["benign", "malign"] and scores.shape == labels.shape
    assert np.array_equal(model.predict(X), model.classes_[(scores > 0).astype(int)])
    assert scores == pytest.approx(X @ model.coef_[0] + model.intercept_[0])
    found = model.score(X, labels)
    highest = 20 / y.sum() if name == "recall_at_k" else 1.0
    assert 0.95 * highest < found <= highest
    sparse = clone(model).fit(sp.csr_matrix(X), labels)
    assert sparse.result_.primal == pytest.approx(model.result_.primal, rel=2e-2)
    assert sparse.score(sp.csr_matrix(X), labels) == pytest.approx(found, abs=0.02)
    if name == "roc_auc":
        assert found == pytest.approx(roc_auc_score(y, scores))
    elif name == "average_precision":
        assert found == pytest.approx(average_precision_score(y, scores))
    elif name in ("f1", "fbeta"):
        beta = PARAMETERS.get(name, {"beta": 1.0})["beta"]
        assert found == pytest.approx(fbeta_score(y, scores > 0, beta=beta))
    elif name == "error":
        assert found == (model.predict(X) == labels).mean()
    else:
        order, P = np.argsort(-scores), y.sum()
        hits = np.cumsum(y[order])
        precision, recall = hits / np.arange(1, len(y) + 1), hits / P
        expected = {
            "prbep": precision[P - 1],
            "precision_at_k": precision[19],
            "recall_at_k": recall[19],
            "recall_at_precision": recall[precision >= 0.7].max(initial=0.0),
            "precision_at_recall": precision[recall >= 0.7].max(),
        }[name]
        assert found == pytest.approx(expected)


def test_equal_scores_count_in_part():
    X = np.array([[2.0], [1.0], [1.0], [1.0], [0.0]])
    y = np.array([1, 1, 0, 0, 0])
    model = mm.PerformanceSVM(measure="prbep", C=10.0).fit(X, y)
    assert model.score(X, y) == pytest.approx((1 + 1 / 3) / 2)


@pytest.mark.parametrize("name", ["error", "roc_auc"])
def test_weights_are_repetitions(name):
    X, y = breast_cancer()
    times = np.random.default_rng(0).integers(0, 3, len(y))
    again = np.repeat(np.arange(len(y)), times)
    options = {"measure": name, "C": 0.2, "tol": 1e-6}
    weighted = mm.PerformanceSVM(**options).fit(X, y, sample_weight=times)
    repeated = mm.PerformanceSVM(**options).fit(X[again], y[again])
    assert weighted.result_.primal == pytest.approx(repeated.result_.primal, rel=1e-5)
    assert weighted.score(X, y, times) == pytest.approx(weighted.score(X[again], y[again]))


@pytest.mark.parametrize("name", ["error", "f1", "roc_auc"])
def test_a_factor_of_all_weights_is_one_of_C(name):
    X, y = breast_cancer()
    weights = np.ones(len(y)) if name == "f1" else np.linspace(1.0, 2.0, len(y))
    one, other = (
        mm.PerformanceSVM(C=C, measure=name, random_state=0).fit(X, y, sample_weight=s * weights)
        for C, s in ((1.0, 1.0), (0.25, 4.0))
    )
    assert np.array_equal(one.coef_, other.coef_) and one.result_.primal == other.result_.primal
    with pytest.raises(ValueError, match="weights must be finite"):
        mm.PerformanceSVM().fit(X, y, sample_weight=np.full(len(y), 2.0**1022))


def test_weights_that_have_no_meaning_are_refused():
    X, y = breast_cancer()
    weights = np.ones(len(y))
    for name in ("f1", "prbep", "average_precision"):
        model = mm.PerformanceSVM(measure=name, random_state=0)
        same = [clone(model).fit(X, y, s).result_.w for s in (None, weights)]
        assert np.array_equal(*same)
        with pytest.raises(ValueError, match=f"measure='{name}' counts rows, and takes no sample"):
            model.fit(X, y, sample_weight=weights + y)
    with pytest.raises(ValueError, match="the weights of all rows of class 1 are 0"):
        mm.PerformanceSVM().fit(X, y, sample_weight=weights - y)
    with pytest.raises(ValueError, match=r"sample_weight\[0\] is -1.0"):
        mm.PerformanceSVM().fit(X, y, sample_weight=-weights)


def test_bad_parameters():
    X, y = breast_cancer()
    for parameters, said in (
        ({"measure": "accuracy"}, "measure must be one of error, f1, .*; got 'accuracy'"),
        (
            {"measure": "precision_at_k"},
            "k must be a whole number >= 1, .* measure='precision_at_k'; got None",
        ),
        ({"measure": "recall_at_k", "k": 0.5}, "k must be a whole number >= 1, .*got 0.5"),
        ({"measure": "precision_at_k", "k": 10**6}, "k must be at most the number of rows, 569"),
        (
            {"measure": "recall_at_precision"},
            "floor must be the smallest precision allowed.*got None",
        ),
        ({"measure": "precision_at_recall", "floor": 1.5}, "the smallest recall allowed.*got 1.5"),
        ({"measure": "fbeta", "beta": 0.0}, "beta must be a positive number .*got 0.0"),
        ({"measure": "fbeta", "beta": 1e200}, "beta must be .*from 1e-100 to 1e100, got 1e\\+200"),
        ({"measure": "roc_auc", "slack": "l2"}, "got rescaling='margin', sqrt_loss=True .as slack"),
        ({"measure": "roc_auc", "rescaling": "slack"}, "needs rescaling='margin'"),
    ):
        with pytest.raises(ValueError, match=said):
            mm.PerformanceSVM(**parameters).fit(X, y)
    with pytest.raises(ValueError, match=r"Only binary .*y has 3 classes \(0, 1, 2\).*needs 2"):
        mm.PerformanceSVM().fit(X[:3], [0, 1, 2])
    model = mm.PerformanceSVM().fit(X, y)
    with pytest.raises(ValueError, match=r"y\[1\] is 7, which is not one of the classes \[0, 1\]"):
        model.score(X[:2], np.array([0, 7]))
    with pytest.raises(ValueError, match="y has no positive row"):
        mm.PerformanceSVM(measure="prbep").fit(X, y).score(X[:2], [0, 0])
    for wrong, said in (([1, 1, 0], "labels -1 and [+]1"), ([1, -1], "X has 3 rows but y")):
        with pytest.raises(ValueError, match=said):
            MeasureProblem(np.eye(3), wrong, Measure())


def test_searches_for_parameters():
    X, y = breast_cancer()
    search = GridSearchCV(mm.PerformanceSVM(measure="f1"), {"C": [1e-3, 20.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"C": 20.0} and search.best_score_ > 0.95
    scores = cross_val_score(mm.PerformanceSVM(), X, y, scoring="roc_auc", cv=3)
    assert scores.min() > 0.95
    model = mm.PerformanceSVM(C=2.0, warm_start=True).fit(X, y)
    first = model.result_.n_passes
    assert model.set_params(C=2.2).fit(X, y).result_.n_passes < first
