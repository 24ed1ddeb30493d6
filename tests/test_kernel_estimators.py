"""Estimators with kernels: the optimum of the kernelised problem, support vectors, files."""

import copy
import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import maxmargin as mm
from brute import ChainTwin, MulticlassTwin, all_planes
from brute_measures import LabelTwin
from exact_qp import solve_exactly
from maxmargin.core.formulation import Formulation
from maxmargin.features import KernelMap
from maxmargin.features.kernels import functions as kernel_basis
from maxmargin.features.kernels import map as kernel_map
from maxmargin.problems.measures.measure import Measure

RNG = np.random.default_rng(0)
GAMMA = 0.4
X = RNG.normal(size=(16, 3))
NEW = RNG.normal(size=(40, 3))
CLASSES = np.array([0, 1, 2, 1] * 4)
OFFSETS = np.array([0, 3, 5, 9, 12, 16])
LABELS = RNG.integers(0, 3, 16)
K = rbf_kernel(X, gamma=GAMMA)
ACROSS = rbf_kernel(NEW, X, gamma=GAMMA)
EXACT = {"tol": 1e-6, "random_state": 0}
RBF = {"kernel": "rbf", "gamma": GAMMA}
RBF_MAP = KernelMap("rbf", gamma=GAMMA)


def root(matrix):
    """Features by eigenvectors, which the package makes none of; and those of other rows."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > 1e-12
    return vectors[:, kept] * np.sqrt(values[kept]), vectors[:, kept] / np.sqrt(values[kept])


FEATURES, TO_FEATURES = root(K)


def sequences(rows, offsets=OFFSETS):
    return [rows[a:b] for a, b in itertools.pairwise(offsets)]


# ----- the optimum ------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "n_slack", "one_slack", "dcd"])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("intercept", [False, True])
def test_classes(solver, rescaling, intercept):
    costs = RNG.uniform(0.5, 2.0, (3, 3)) * (1 - np.eye(3))
    twin = MulticlassTwin(FEATURES, CLASSES, 3, costs=costs, fit_intercept=intercept)
    planes = all_planes(twin, Formulation(rescaling=rescaling))
    best = solve_exactly(planes, 2.0)
    model = mm.MulticlassSVM(
        2.0, solver=solver, loss=costs, rescaling=rescaling, fit_intercept=intercept, **RBF, **EXACT
    ).fit(X, CLASSES)
    assert model.result_.converged
    assert model.result_.primal == pytest.approx(best.value, rel=1e-5)
    weights = best.w.reshape(-1, 3)
    scores = ACROSS @ TO_FEATURES @ weights[: FEATURES.shape[1]]
    scores += weights[-1] if intercept else 0.0
    assert np.allclose(model.decision_function(NEW), scores, atol=0.02)
    clear = np.diff(np.sort(scores, axis=1))[:, -1] > 0.05
    assert clear.sum() > 20
    assert np.array_equal(model.predict(NEW)[clear], scores.argmax(axis=1)[clear])


@pytest.mark.parametrize("slack", ["l1", "l2"])
@pytest.mark.parametrize("boundary", [False, True])
def test_chains(slack, boundary):
    twin = ChainTwin(FEATURES, OFFSETS, LABELS, 3, boundary_weights=boundary, fit_intercept=True)
    best = solve_exactly(all_planes(twin, Formulation(slack=slack)), 2.0, slack=slack)
    model = mm.SequenceTagger(
        2.0, slack=slack, boundary_weights=boundary, fit_intercept=True, kernel=RBF_MAP, **EXACT
    ).fit(sequences(X), sequences(LABELS))
    assert model.result_.primal == pytest.approx(best.value, rel=1e-5)
    # Scores of labellings of other sequences, by the weights of the QP.
    mapped = ACROSS @ TO_FEATURES
    y = RNG.integers(0, 3, 16)
    other = ChainTwin(mapped[:16], OFFSETS, y, 3, boundary_weights=boundary, fit_intercept=True)
    expected = [best.w @ other.psi(i, other.truth(i)) for i in range(other.n_examples)]
    assert np.allclose(model.score_outputs(sequences(NEW[:16]), sequences(y)), expected, atol=0.05)


def test_chains_of_second_order():
    """A kernel that has the features' own inner products changes nothing."""
    tagger = mm.SequenceTagger(
        2.0, order={"transitions": 2, "emissions": 1}, transition_features=[1], **EXACT
    )
    linear = clone(tagger).fit(sequences(X), sequences(LABELS))
    model = clone(tagger).set_params(kernel=linear_kernel).fit(sequences(X), sequences(LABELS))
    assert model.kernel_report_.rank == 3
    assert model.result_.primal == pytest.approx(linear.result_.primal, rel=1e-5)
    y = RNG.integers(0, 3, 16)
    scores = [t.score_outputs(sequences(NEW[:16]), sequences(y)) for t in (model, linear)]
    assert np.allclose(*scores, atol=0.05)


def test_measures():
    y = CLASSES == 1
    twin = LabelTwin(FEATURES[:9], np.where(y[:9], 1, -1), Measure("f1"), fit_intercept=True)
    best = solve_exactly(all_planes(twin, Formulation()), 50.0)
    model = mm.PerformanceSVM(50.0 / 9, measure="f1", **RBF, **EXACT).fit(X[:9], y[:9])
    assert model.result_.primal == pytest.approx(best.value, rel=1e-5)


def test_low_rank_is_the_optimum_of_its_own_matrix():
    model = mm.MulticlassSVM(2.0, n_components=6, **RBF, **EXACT).fit(X, CLASSES)
    basis = KernelMap("rbf", gamma=GAMMA, n_components=6).fit(X).basis_indices_
    approximation = K[:, basis] @ np.linalg.inv(K[basis][:, basis]) @ K[basis]
    planes = all_planes(
        MulticlassTwin(root(approximation)[0], CLASSES, 3, fit_intercept=True), Formulation()
    )
    assert model.result_.primal == pytest.approx(solve_exactly(planes, 2.0).value, rel=1e-5)
    report = model.kernel_report_
    assert report.rank == 6 and set(model.support_) <= set(basis)
    assert report.trace_residual == pytest.approx(np.trace(K - approximation))
    assert report.trace_residual_share == pytest.approx(report.trace_residual / 16)


@pytest.mark.parametrize("kind", ["classes", "chains", "measures"])
def test_supports_are_those_of_a_kernel_map(kind, monkeypatch, tmp_path):
    """Classes of inputs reach it, and the model is made of its basis."""
    monkeypatch.setattr(kernel_map, "LEAST", 2)
    options = {"n_components": 4, "basis": "supports", **RBF}
    y = {"classes": CLASSES, "chains": LABELS, "measures": CLASSES == 1}[kind]
    if kind == "chains":
        model = mm.SequenceTagger(2.0, kernel=KernelMap(**options), **EXACT)
        model.fit(sequences(X), sequences(y))
    else:
        estimator = mm.MulticlassSVM if kind == "classes" else mm.PerformanceSVM
        model = estimator(2.0, **options, **EXACT).fit(X, y)
    mapping = KernelMap("rbf", gamma=GAMMA, n_components=4, basis="supports", random_state=0).fit(
        X, y
    )
    assert model.support_.tolist() == mapping.basis_indices_.tolist()
    assert model.kernel_report_.trace_residual == mapping.trace_residual_
    other = KernelMap("rbf", gamma=GAMMA, n_components=4, basis="supports", random_state=0)
    assert other.fit(X, np.sort(y)).basis_indices_.tolist() != model.support_.tolist()
    model.save(tmp_path / "model.mm")
    loaded, new = mm.load(tmp_path / "model.mm"), [NEW] if kind == "chains" else NEW
    assert np.array_equal(loaded.predict(new), model.predict(new))


# ----- what is kept -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def digits():
    inputs, y = load_digits(return_X_y=True)
    return inputs / 16, y


@pytest.fixture(scope="module")
def fitted(digits):
    return mm.MulticlassSVM(10.0, kernel="rbf", tol=1e-3, random_state=0).fit(
        digits[0][:400], digits[1][:400]
    )


def test_only_support_vectors_are_kept(fitted, digits):
    inputs, _ = digits
    assert 0 < len(fitted.support_) < 250 < fitted.kernel_report_.rank == 400
    assert np.array_equal(fitted.support_vectors_, inputs[:400][fitted.support_])
    assert fitted.dual_coef_.shape == (10, len(fitted.support_))
    gamma = 1 / (64 * inputs[:400].var())
    values = rbf_kernel(inputs[400:500], fitted.support_vectors_, gamma=gamma)
    scores = values @ fitted.dual_coef_.T + fitted.intercept_
    assert np.allclose(fitted.decision_function(inputs[400:500]), scores)
    assert not hasattr(fitted, "coef_") and fitted._kernel._mapping is None
    report = fitted.kernel_report_
    assert report.n_bytes_training >= 2 * 400 * 400 * 8 > 5 * report.n_bytes_model
    assert len(pickle.dumps(fitted)) < 400 * 400 * 8 / 2
    # Nothing is lost by those that are gone.
    whole = KernelMap("rbf")
    Z, new = whole.fit_transform(inputs[:400]), whole.transform(inputs[400:500])
    linear = mm.MulticlassSVM(10.0, tol=1e-3, random_state=0).fit(Z, digits[1][:400])
    assert np.allclose(linear.decision_function(new), scores, atol=1e-5)
    assert linear.result_.primal == pytest.approx(fitted.result_.primal, rel=1e-12)


def test_errors_are_those_of_svc(fitted, digits):
    inputs, y = digits
    peer = SVC(C=10.0).fit(inputs[:400], y[:400]).score(inputs[400:], y[400:])
    assert abs(fitted.score(inputs[400:], y[400:]) - peer) < 0.015


def test_two_classes_have_one_row_of_coefficients():
    y = np.where(CLASSES == 1, "yes", "no")
    model = mm.MulticlassSVM(2.0, fit_intercept=False, **RBF, **EXACT).fit(X, y)
    assert model.dual_coef_.shape == (1, len(model.support_))
    scores = ACROSS[:, model.support_] @ model.dual_coef_[0]
    assert np.allclose(model.decision_function(NEW), scores)


@pytest.mark.parametrize("kind", ["dense", "sparse", "precomputed"])
def test_files(kind, tmp_path, digits):
    inputs, y = digits
    train, test = inputs[:150], inputs[150:250]
    options = dict(RBF, kernel="rbf", n_components=100)
    if kind == "sparse":
        train, test = sp.csr_matrix(train), sp.csr_matrix(test)
    if kind == "precomputed":
        train, test = rbf_kernel(train), rbf_kernel(test, train)
        options["kernel"] = "precomputed"
    model = mm.MulticlassSVM(random_state=0, **options).fit(train, y[:150])
    model.save(tmp_path / "model.mm")
    loaded = mm.load(tmp_path / "model.mm")
    assert np.array_equal(loaded.decision_function(test), model.decision_function(test))
    assert np.array_equal(loaded.support_, model.support_)
    assert loaded.kernel_report_ == model.kernel_report_
    assert loaded.get_params() == model.get_params()
    loaded.save(tmp_path / "again.mm")
    assert np.array_equal(mm.load(tmp_path / "again.mm").predict(test), model.predict(test))


@pytest.mark.parametrize("order", [1, 2])
def test_files_of_taggers_and_measures(order, tmp_path):
    tagger = mm.SequenceTagger(order=order, kernel=RBF_MAP, **EXACT).fit(
        sequences(X), sequences(LABELS)
    )
    tagger.save(tmp_path / "model.mm")
    loaded = mm.load(tmp_path / "model.mm")
    other = sequences(NEW[:16])
    assert loaded.predict_k(other, 3) == tagger.predict_k(other, 3)
    assert np.array_equal(loaded.transition_weights_, tagger.transition_weights_)
    model = mm.PerformanceSVM(9.0, **RBF, **EXACT).fit(X, CLASSES == 1)
    model.save(tmp_path / "model.mm")
    scores = mm.load(tmp_path / "model.mm").decision_function(NEW)
    assert np.array_equal(scores, model.decision_function(NEW))


def test_a_function_is_pickled_but_not_saved(tmp_path):
    model = mm.MulticlassSVM(kernel=rbf_kernel, kernel_params={"gamma": GAMMA}, **EXACT)
    model.fit(X, CLASSES)
    named = mm.MulticlassSVM(**RBF, **EXACT).fit(X, CLASSES)
    assert np.allclose(model.decision_function(NEW), named.decision_function(NEW), atol=1e-6)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(NEW), model.decision_function(NEW))
    with pytest.raises(ValueError, match="cannot store a custom kernel function"):
        model.save(tmp_path / "model.mm")
    assert not (tmp_path / "model.mm").exists()


def test_precomputed_values():
    named = mm.MulticlassSVM(**RBF, **EXACT).fit(X, CLASSES)
    model = mm.MulticlassSVM(kernel="precomputed", **EXACT).fit(K, CLASSES)
    assert np.allclose(model.decision_function(ACROSS), named.decision_function(NEW), atol=1e-6)
    assert np.array_equal(model.support_, named.support_) and model.support_vectors_ is None
    tagger = mm.SequenceTagger(kernel=RBF_MAP, **EXACT).fit(sequences(X), sequences(LABELS))
    given = mm.SequenceTagger(kernel="precomputed", **EXACT).fit(sequences(K), sequences(LABELS))
    assert given.predict(sequences(ACROSS[:16])) == tagger.predict(sequences(NEW[:16]))
    # Folds take rows and columns.
    scores = cross_val_score(mm.MulticlassSVM(kernel="precomputed", **EXACT), K, CLASSES, cv=2)
    peers = cross_val_score(mm.MulticlassSVM(**RBF, **EXACT), X, CLASSES, cv=2)
    assert np.array_equal(scores, peers)
    with pytest.raises(ValueError, match="features"):
        model.predict(ACROSS[:, :5])


# ----- all else that estimators do --------------------------------------------------------------


def test_predictions_some_rows_at_a_time(monkeypatch, fitted, digits):
    tagger = mm.SequenceTagger(kernel=RBF_MAP, **EXACT).fit(sequences(X), sequences(LABELS))
    other, labels = sequences(NEW[:16]), sequences(LABELS)

    def answers():
        return (
            fitted.decision_function(digits[0]),
            tagger.predict(other),
            tagger.predict_k(other, 2),
            tagger.score(other, labels),
            tagger.score_outputs(other, labels).tolist(),
        )

    whole = answers()
    monkeypatch.setattr(kernel_basis, "VALUES_AT_A_TIME", 60)
    parts = answers()
    assert np.allclose(parts[0], whole[0])
    assert parts[1] == whole[1] and parts[3] == whole[3]
    assert np.allclose(parts[4], whole[4])
    assert [[y for y, _ in k] for k in parts[2]] == [[y for y, _ in k] for k in whole[2]]


def test_paths_of_C(digits):
    inputs, y = digits
    inputs, y = inputs[:120], y[:120]
    estimator = mm.MulticlassSVM(kernel="rbf", tol=1e-4, random_state=0)
    models = mm.path(estimator, inputs, y, [0.1, 1.0, 10.0])
    for C in (0.1, 1.0, 10.0):
        single = clone(estimator).set_params(C=C).fit(inputs, y)
        found = models.at(C).decision_function(digits[0][120:200])
        assert np.allclose(found, single.decision_function(digits[0][120:200]), atol=0.05)
    values, named = (
        mm.MulticlassSVM(kernel="precomputed", **EXACT),
        mm.MulticlassSVM(**RBF, **EXACT),
    )
    folds = [
        mm.SearchCV(estimator, [0.1, 1.0], cv=2).fit(rows, CLASSES)
        for estimator, rows in ((values, K), (named, X))
    ]
    scores = [search.cv_results_["split1_test_score"] for search in folds]
    assert np.array_equal(*scores)
    search = mm.SearchCV(
        mm.SequenceTagger(kernel=KernelMap(n_components=8, **RBF)), [0.1, 1.0], cv=2
    )
    search.fit(sequences(X), sequences(LABELS))
    assert len(search.predict(sequences(NEW[:16]))) == 5


def test_warm_starts(digits):
    inputs, y = digits[0][:200], digits[1][:200]
    model = mm.MulticlassSVM(1.0, kernel="rbf", warm_start=True, tol=1e-4, random_state=0)
    first = model.fit(inputs, y).result_.n_passes
    scores = model.decision_function(inputs)
    again = model.fit(inputs, y).result_.n_passes
    assert again < first / 3
    assert np.allclose(model.decision_function(inputs), scores, atol=0.01)
    model.set_params(C=2.0).fit(inputs, y)
    cold = clone(model).set_params(warm_start=False).fit(inputs, y)
    assert model.result_.primal == pytest.approx(cold.result_.primal, rel=3e-4)
    # Another kernel is another problem.
    model.set_params(gamma=0.1).fit(inputs, y)
    cold = clone(model).set_params(warm_start=False).fit(inputs, y)
    assert model.result_.primal == pytest.approx(cold.result_.primal, rel=3e-4)


def test_a_fit_replaces_all_of_the_one_before():
    model = mm.MulticlassSVM(**RBF, **EXACT).fit(X, CLASSES)
    kept, predicted = copy.copy(model), model.predict(NEW)
    linear = mm.MulticlassSVM(**EXACT).fit(X, CLASSES)
    model.set_params(kernel="linear").fit(X, CLASSES)
    assert np.array_equal(model.coef_, linear.coef_)
    assert not any(hasattr(model, name) for name in ("support_", "dual_coef_", "kernel_report_"))
    assert np.array_equal(kept.predict(NEW), predicted)
    tagger = mm.SequenceTagger(**EXACT).fit(sequences(X), sequences(LABELS))
    weights = tagger.coef_
    tagger.set_params(kernel=RBF_MAP).fit(sequences(X), sequences(LABELS))
    tagger.set_params(kernel="linear").fit(sequences(X), sequences(LABELS))
    assert np.array_equal(tagger.coef_, weights)


def test_pipelines_and_searches(digits):
    inputs, y = digits[0][:150], digits[1][:150]
    model = make_pipeline(StandardScaler(), mm.MulticlassSVM(kernel="rbf", random_state=0))
    search = GridSearchCV(model, {"multiclasssvm__n_components": [5, 80]}, cv=3).fit(inputs, y)
    assert search.best_params_ == {"multiclasssvm__n_components": 80}


def test_described_classes_and_weights_of_examples():
    features = np.eye(3)[:, :2] + 0.1
    weights = np.where(np.arange(16) < 4, 0.0, 1.5)
    options = {"class_features": features, **EXACT}
    model = mm.MulticlassSVM(**RBF, **options).fit(X, CLASSES, sample_weight=weights)
    linear = mm.MulticlassSVM(**options).fit(FEATURES, CLASSES, sample_weight=weights)
    assert model.result_.primal == pytest.approx(linear.result_.primal, rel=1e-5)
    mapped = ACROSS @ TO_FEATURES
    assert np.allclose(model.decision_function(NEW), linear.decision_function(mapped), atol=0.01)


def test_what_is_left_out_is_not_trained_on():
    labels = [["B-X", "I-X"], ["O", "I-X", "O"], ["B-X", "O"]]
    tokens = sequences(X[:7], np.array([0, 2, 5, 7]))
    values = sequences(K[:7, :7], np.array([0, 2, 5, 7]))
    options = {"constraints": "bio", "on_violation": "drop", **EXACT}
    with pytest.warns(UserWarning, match="1"):
        given = mm.SequenceTagger(kernel="precomputed", **options).fit(values, labels)
    with pytest.warns(UserWarning, match="1"):
        model = mm.SequenceTagger(kernel=RBF_MAP, **options).fit(tokens, labels)
    assert given.predict(values) == model.predict(tokens)


@pytest.mark.parametrize("solver", ["perceptron", "mira", "sgd"])
def test_online_solvers(solver, digits):
    inputs, y = digits[0][:200], digits[1][:200]
    model = mm.MulticlassSVM(kernel="rbf", solver=solver, max_passes=2, random_state=0)
    model.fit(inputs, y)
    linear = mm.MulticlassSVM(solver=solver, max_passes=2, random_state=0)
    linear.fit(mapped := KernelMap().fit_transform(inputs), y)
    assert np.allclose(model.decision_function(inputs), linear.decision_function(mapped))
    with pytest.raises(ValueError, match="partial_fit needs kernel='linear'"):
        model.partial_fit(inputs, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "gauss"}, "kernel must be one of 'linear', 'poly', 'rbf', 'precomputed'"),
        ({"kernel": "rbf", "gamma": -1}, "gamma must be finite and >= 0, got -1"),
        ({"kernel": "rbf", "n_components": 0}, "n_components must be None or a whole number >= 1"),
        ({"kernel": "rbf", "basis": "few"}, "basis must be one of"),
        ({"kernel": "precomputed"}, r"square matrix; got shape \(16, 3\)"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        mm.MulticlassSVM(**parameters).fit(X, CLASSES)
    with pytest.raises(ValueError, match=message):
        kernel = KernelMap(**parameters) if len(parameters) > 1 else parameters["kernel"]
        mm.SequenceTagger(kernel=kernel).fit(sequences(X), sequences(LABELS))
    with pytest.raises(ValueError, match=message):
        mm.PerformanceSVM(**parameters).fit(X, CLASSES == 1)


def test_features_without_names_have_no_weights(fitted):
    with pytest.raises(ValueError, match="top_features needs kernel='linear'"):
        fitted.top_features()
    tagger = mm.SequenceTagger(kernel=RBF_MAP, **EXACT).fit(sequences(X), sequences(LABELS))
    with pytest.raises(ValueError, match="top_features needs kernel='linear'"):
        tagger.top_features()
    assert tagger.top_transitions(2)


def test_labels_known_in_part():
    """A kernel that has the features' own inner products changes nothing."""
    y = [labels.tolist() for labels in sequences(LABELS)]
    y[0][1], y[2][0] = None, {0, 1}
    linear = mm.SequenceTagger(**EXACT).fit(sequences(X), y)
    model = mm.SequenceTagger(kernel=linear_kernel, **EXACT).fit(sequences(X), y)
    assert model.result_.primal == pytest.approx(linear.result_.primal, rel=1e-4)
    assert model._kernel._mapping is None and len(model.support_) == 3
    with pytest.raises(ValueError, match="needs y, with the class of every row"):
        mm.SequenceTagger(kernel=KernelMap(basis="supports", **RBF)).fit(sequences(X), y)
    new, labels = sequences(NEW[:16]), sequences(LABELS)
    scores = [t.score_outputs(new, labels) for t in (model, linear)]
    assert np.allclose(*scores, atol=0.05)


def test_fixed_labels_some_rows_at_a_time(monkeypatch):
    tagger = mm.SequenceTagger(kernel=RBF_MAP, **EXACT).fit(sequences(X), sequences(LABELS))
    new = sequences(NEW[:16])
    fixed = [[None] * len(tokens) for tokens in new]
    fixed[3] = [2] * len(new[3])
    whole = tagger.predict(new, fixed=fixed)
    assert whole[3] == fixed[3]
    monkeypatch.setattr(kernel_basis, "VALUES_AT_A_TIME", 60)
    assert tagger.predict(new, fixed=fixed) == whole
    assert [answers[0][0] for answers in tagger.predict_k(new, 2, fixed=fixed)] == whole


def test_costs_of_examples():
    costs = RNG.uniform(0.5, 2.0, (16, 3)) * (CLASSES[:, None] != np.arange(3))
    model = mm.MulticlassSVM(**RBF, **EXACT).fit(X, CLASSES, costs=costs)
    linear = mm.MulticlassSVM(**EXACT).fit(FEATURES, CLASSES, costs=costs)
    assert model.result_.primal == pytest.approx(linear.result_.primal, rel=1e-5)
