"""MulticlassSVM: scikit-learn's contract, labels of any type, costs, weights, warm starts."""

import logging

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

import maxmargin as mm
from maxmargin.problems.classes.merging import merge_examples


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def fitted(iris):
    return mm.MulticlassSVM(tol=1e-3, random_state=0).fit(*iris)


def test_check_estimator():
    results = check_estimator(mm.MulticlassSVM(), on_fail=None, on_skip=None)
    assert [r["check_name"] for r in results if r["status"] in ("failed", "xfail")] == []
    assert sum(r["status"] == "passed" for r in results) > 50


def test_fit_is_certified_and_predicts(fitted, iris):
    X, y = iris
    assert fitted.result_.converged and fitted.result_.relative_gap <= 1e-3
    assert fitted.result_.state is None
    assert fitted.score(X, y) > 0.95
    scores = X @ fitted.coef_.T + fitted.intercept_
    assert np.allclose(scores, fitted.decision_function(X))


def test_two_classes_give_one_score(iris):
    X, y = iris[0][:100], np.where(iris[1][:100] == 0, "no", "yes")
    model = mm.MulticlassSVM(random_state=0).fit(X, y)
    assert model.decision_function(X).shape == (100,)
    assert np.array_equal(model.predict(X) == "yes", model.decision_function(X) > 0)
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("convert", [sp.csr_matrix, sp.csc_matrix, sp.coo_array])
def test_sparse_input_is_the_same_data(fitted, iris, convert):
    X, y = iris
    model = mm.MulticlassSVM(tol=1e-3, random_state=0).fit(convert(X), y)
    assert np.abs(model.decision_function(convert(X)) - fitted.decision_function(X)).max() < 0.2
    assert model.result_.primal == pytest.approx(fitted.result_.primal, rel=1e-3)


def test_costs_move_predictions(iris):
    X, y = iris
    costs = np.ones((3, 3)) - np.eye(3)
    costs[2, 1] = 20.0  # virginica taken for versicolor
    model = mm.MulticlassSVM(loss=costs, random_state=0).fit(X, y)
    plain = mm.MulticlassSVM(random_state=0).fit(X, y)

    def missed(m):
        return int(np.sum(m.predict(X[y == 2]) == 1))

    assert missed(model) <= missed(plain)
    assert np.sum(model.predict(X[y == 1]) == 2) > np.sum(plain.predict(X[y == 1]) == 2)


def test_warm_start_on_the_same_data(caplog):
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    model = mm.MulticlassSVM(C=0.1, tol=1e-3, warm_start=True, random_state=0).fit(X, y)
    first = model.result_
    assert first.state is not None
    model.set_params(C=0.11).fit(X, y)
    cold = mm.MulticlassSVM(C=0.11, tol=1e-3, random_state=0).fit(X, y)
    assert model.result_.state is first.state
    assert model.result_.n_oracle_calls < cold.result_.n_oracle_calls
    assert model.result_.primal == pytest.approx(cold.result_.primal, rel=2e-3)
    with caplog.at_level(logging.DEBUG, logger="maxmargin"):
        model.fit(X[:500], y[:500])
    assert "starts afresh" in caplog.text
    assert model.result_.state is not first.state


def test_limits_give_a_convergence_warning(iris):
    with pytest.warns(
        ConvergenceWarning, match=r"max_passes=1 .* relative gap of .* raise max_passes"
    ):
        mm.MulticlassSVM(C=100.0, max_passes=1, random_state=0).fit(*iris)
    with pytest.warns(ConvergenceWarning, match="a callback ended training"):
        mm.MulticlassSVM(C=100.0, training={"callbacks": [lambda progress: True]}).fit(*iris)


def test_no_warning_where_no_precision_was_asked_for(iris, recwarn):
    mm.MulticlassSVM(tol=None, max_passes=2, random_state=0).fit(*iris)
    assert not [w for w in recwarn if issubclass(w.category, ConvergenceWarning)]


def test_solver_instance_keeps_its_own_settings(iris):
    from maxmargin.solvers import FASOLE

    model = mm.MulticlassSVM(solver=FASOLE(tol=0.1, joint=False), tol=1e-8).fit(*iris)
    assert 1e-8 < model.result_.relative_gap <= 0.1


def test_solver_that_cannot_is_named(iris):
    with pytest.raises(ValueError, match=r"solver='sda' does not support slack='none'"):
        mm.MulticlassSVM(slack="none", solver="sda").fit(*iris)


def test_merging_adds_up_weights_whatever_the_order():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 4)).round(1) * (rng.random((6, 4)) < 0.6)
    y = np.array([0, 1, 0, 1, 0, 1])
    repeats = np.array([1, 3, 2, 1, 1, 4])
    shuffled = rng.permutation(repeats.sum())
    many, labels = X.repeat(repeats, axis=0)[shuffled], y.repeat(repeats)[shuffled]
    weighted = merge_examples(X, y, repeats.astype(float))
    for matrix in (many, sp.csr_matrix(many)):
        merged = merge_examples(matrix, labels, None)
        dense = merged[0].toarray() if sp.issparse(merged[0]) else merged[0]
        order = np.lexsort((merged[1], *dense.T))
        expected = np.lexsort((weighted[1], *weighted[0].T))
        assert np.array_equal(dense[order], weighted[0][expected])
        assert np.array_equal(merged[1][order], weighted[1][expected])
        assert np.array_equal(merged[2][order], weighted[2][expected])


def test_merging_survives_equal_hashes(monkeypatch):
    from maxmargin.problems.classes import merging

    monkeypatch.setattr(merging, "_row_hashes", lambda X: np.zeros(X.shape[0], np.uint64))
    X = np.array([[1.0], [2.0], [1.0]])
    merged = merge_examples(X, np.zeros(3, np.int64), None)
    assert np.dot(merged[0].ravel(), merged[2]) == 4.0
    assert sorted(set(merged[0].ravel().tolist())) == [1.0, 2.0]
    assert merged[2].sum() == 3.0


def test_merging_leaves_plain_data_alone():
    X, y = np.arange(6.0).reshape(3, 2), np.array([0, 1, 0])
    same = merge_examples(X, y, None)
    assert same[0] is X and same[1] is y and same[2] is None


def test_too_many_features_are_refused_before_memory_is_taken():
    X = sp.csr_matrix(([1.0, 1.0], ([0, 1], [0, 2**31 - 2])), shape=(2, 2**31 - 1))
    with pytest.raises(ValueError, match=r"features x 2 classes make .* weights; at most"):
        mm.MulticlassSVM().fit(X, [0, 1])
