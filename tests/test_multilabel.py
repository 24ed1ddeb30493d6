"""MultilabelSVM: beside scikit-learn, its graphs, what it takes and gives back, and its words."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import accuracy_score, f1_score, mutual_info_score
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

import maxmargin as mm
from maxmargin.checking import check_problem
from maxmargin.problems.multilabel.graph import MOST_LISTED, all_pairs, make_graph, tree_of_labels
from maxmargin.problems.multilabel.problem import MultilabelProblem

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 5))
Y = (X @ RNG.normal(size=(5, 4)) + RNG.normal(size=(90, 4)) > 0.5).astype(int)
TRAIN, TEST = slice(0, 60), slice(60, 90)


def model(**parameters):
    return mm.MultilabelSVM(**{"random_state": 0, **parameters})


def fitted(**parameters):
    return model(**parameters).fit(X[TRAIN], Y[TRAIN])


# ----- what is learned --------------------------------------------------------------------------


def test_independent_labels_with_hamming_loss_are_one_hinge_each():
    ours = fitted(C=0.5, tol=1e-7)
    peer = LinearSVC(C=0.5, loss="hinge", tol=1e-9, max_iter=1_000_000)
    peer = OneVsRestClassifier(peer).fit(X[TRAIN], Y[TRAIN])
    for label, one in enumerate(peer.estimators_):
        assert ours.coef_[label] == pytest.approx(one.coef_[0], abs=2e-3)
        assert ours.intercept_[label] == pytest.approx(one.intercept_[0], abs=2e-3)
    assert np.array_equal(ours.predict(X[TEST]), peer.predict(X[TEST]))
    scores = ours.decision_function(X[TEST])
    assert scores == pytest.approx(X[TEST] @ ours.coef_.T + ours.intercept_)
    assert np.array_equal(ours.predict(X[TEST]), scores > 0.0)


def test_training_for_f1_finds_more_labels_where_they_are_rare():
    rng = np.random.default_rng(1)
    inputs = rng.normal(size=(300, 6))
    labels = (inputs @ rng.normal(size=(6, 8)) + 2.0 * rng.normal(size=(300, 8)) > 3.0).astype(int)
    found = {}
    for loss, C in (("hamming", 0.1), ("f1", 1.0)):
        predicted = model(loss=loss, C=C).fit(inputs[:200], labels[:200]).predict(inputs[200:])
        found[loss] = f1_score(labels[200:], predicted, average="samples", zero_division=1.0)
    assert found["f1"] > found["hamming"] + 0.05


@pytest.mark.parametrize("loss", ["hamming", "f1", "zero_one"])
@pytest.mark.parametrize("edges", [None, "tree", "pairs", [(1, 2), (1, 0)]])
def test_edges_keep_labels_apart(loss, edges):
    """One of three labels, side by side: no line tells the middle one from the others."""
    rng = np.random.default_rng(2)
    side = rng.integers(0, 3, 200)
    inputs = 0.5 * rng.normal(size=(200, 2)) + np.outer(side - 1, [1.0, 0.0])
    trained = model(edges=edges, loss=loss, tol=1e-4).fit(inputs, np.eye(3)[side])
    single = np.mean(trained.predict(inputs).sum(axis=1) == 1)
    if edges is None:
        assert single < 0.9
        return
    pairs = zip(map(tuple, trained.edges_.tolist()), trained.pair_weights_, strict=True)
    weights = dict(pairs)
    assert weights[0, 1] < -1.0 and weights[1, 2] < -1.0
    assert single > 0.95
    assert not hasattr(trained, "decision_function")


def test_scores_are_those_of_the_attributes():
    trained = fitted(edges="pairs", loss="f1")
    every = np.array(list(itertools.product((0, 1), repeat=4)))
    together = every[:, trained.edges_].all(axis=2) @ trained.pair_weights_
    own = (X[TEST] @ trained.coef_.T + trained.intercept_) @ every.T
    assert np.array_equal(trained.predict(X[TEST]), every[np.argmax(own + together, axis=1)])


# ----- graphs -----------------------------------------------------------------------------------


def test_the_learned_tree_has_the_largest_information():
    rng = np.random.default_rng(3)
    for _ in range(5):
        labels = rng.random((30, 5)) < rng.random(5)
        labels[:, 4] |= labels[:, 1]

        def information(edges, labels=labels):
            return sum(mutual_info_score(labels[:, a], labels[:, b]) for a, b in edges)

        def is_tree(edges):
            reached = {0}
            for _ in edges:
                reached |= {v for edge in edges if reached & set(edge) for v in edge}
            return len(reached) == 5

        trees = [
            edges for edges in itertools.combinations(all_pairs(5).tolist(), 4) if is_tree(edges)
        ]
        assert len(trees) == 5**3  # Cayley
        learned = tree_of_labels(labels)
        assert is_tree(learned.tolist())
        assert information(learned) == pytest.approx(max(map(information, trees)))


def test_examples_of_no_weight_have_no_say_in_the_tree():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, size=(200, 4)).astype(bool)
    Y[:100, 1], Y[100:, 2] = Y[:100, 0], Y[100:, 0]  # one half ties label 1 to 0, the other 2
    for own, weights in ((Y[:100], np.arange(200) < 100), (Y[100:], np.arange(200) >= 100)):
        given = tree_of_labels(Y, 3.0 * weights)
        assert np.array_equal(given, tree_of_labels(own))
        assert not np.array_equal(given, tree_of_labels(Y[::-1], 3.0 * weights))


def test_a_tree_of_labels_that_never_change_is_a_tree():
    for labels in (np.zeros((4, 3), bool), np.ones((4, 3), bool), np.zeros((2, 1), bool)):
        edges = tree_of_labels(labels)
        assert len(edges) == labels.shape[1] - 1
        assert make_graph(labels.shape[1], edges).forest is not None


def test_edges_are_checked():
    for edges, message in (
        ([(0, 4)], r"edge 0, \(0, 4\), is no pair of different labels; .* from 0 to 3"),
        ([(0, 1), (2, 2)], r"edge 1, \(2, 2\), is no pair"),
        ([(0, 1), (1, 0)], r"edge 1, \(0, 1\), is there twice"),
        ([(-1, 0)], "is no pair"),
        ([0, 1], r"edges must be pairs of label numbers, got int64 of shape \(2,\)"),
        ([(0.0, 1.0)], "got float64"),
        ("chain", "edges must be None, 'tree', 'pairs' or pairs of labels, got 'chain'"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted(edges=edges)


def test_many_labels_have_no_cycles():
    n = MOST_LISTED + 1
    labels = np.random.default_rng(0).integers(0, 2, (10, n))
    with pytest.raises(ValueError, match=rf"edges between {n} labels have a cycle; .* 14 labels"):
        model(edges="pairs").fit(X[:10], labels)
    for edges in ("tree", [(k, k + 1) for k in range(n - 1)]):
        assert model(edges=edges, tol=0.1).fit(X[:10], labels).edges_.shape == (n - 1, 2)


@pytest.mark.parametrize("loss", ["hamming", "f1", "zero_one"])
@pytest.mark.parametrize("edges", [[], [(0, 1), (1, 3)], [(0, 1), (1, 2), (0, 2)]])
def test_the_contract_of_a_problem(loss, edges):
    problem = MultilabelProblem(X[:8], Y[:8], edges, loss=loss, fit_intercept=True)
    check_problem(problem)
    part = problem.subset(np.array([5, 2]))
    w = np.random.default_rng(4).normal(size=problem.n_features)
    whole, alone = problem.oracle(np.array([5, 2]), w), part.oracle(np.array([0, 1]), w)
    assert all(np.array_equal(a, b) for a, b in zip(whole, alone, strict=True))


# ----- scikit-learn -----------------------------------------------------------------------------


@pytest.mark.parametrize("as_given", [sp.csr_matrix, sp.csc_matrix, sp.coo_array])
def test_sparse_labels_and_inputs(as_given, tmp_path):
    dense = fitted(edges="tree")
    sparse = model(edges="tree").fit(sp.csr_matrix(X[TRAIN]), as_given(Y[TRAIN]))
    assert np.array_equal(dense.result_.w, sparse.result_.w)
    predicted = sparse.predict(sp.csr_matrix(X[TEST]))
    assert sp.issparse(predicted) and predicted.format == "csr"
    assert np.array_equal(predicted.toarray(), dense.predict(X[TEST]))
    assert isinstance(dense.predict(X[TEST]), np.ndarray)
    assert sparse.score(X[TEST], as_given(Y[TEST])) == dense.score(X[TEST], Y[TEST])
    sparse.save(tmp_path / "model.mm")
    again = mm.load(tmp_path / "model.mm")
    assert (again.predict(X[TEST]) != predicted).nnz == 0
    assert np.array_equal(again.edges_, sparse.edges_)


def test_labels_of_other_types():
    expected = fitted().coef_
    for given in (Y.astype(bool), Y.astype(float), Y.tolist()):
        assert np.array_equal(model().fit(X[TRAIN], given[TRAIN]).coef_, expected)


def test_score_is_subset_accuracy():
    trained, weights = fitted(), np.linspace(0.0, 1.0, 30)
    predicted = trained.predict(X[TEST])
    assert trained.score(X[TEST], Y[TEST]) == accuracy_score(Y[TEST], predicted)
    weighted = accuracy_score(Y[TEST], predicted, sample_weight=weights)
    assert trained.score(X[TEST], Y[TEST], weights) == pytest.approx(weighted)


def test_weights_multiply_slacks():
    twice = model(tol=1e-6).fit(np.vstack([X, X[:9]]), np.vstack([Y, Y[:9]]))
    weighted = model(tol=1e-6).fit(X, Y, sample_weight=1.0 + (np.arange(90) < 9))
    assert weighted.coef_ == pytest.approx(twice.coef_, abs=1e-2)


def test_searches_of_scikit_learn():
    search = GridSearchCV(model(), {"C": [1e-4, 1.0], "edges": [None, "tree"]}, cv=3).fit(X, Y)
    assert search.best_params_["C"] == 1.0
    assert cross_val_predict(model(), X, Y, cv=3).shape == Y.shape
    scores = cross_val_predict(model(), X, Y, cv=3, method="decision_function")
    assert scores.shape == Y.shape


#: Checks of scikit-learn that hand over one class for each example, or are stricter than ``tol``.
NOT_FOR_SETS = {
    "check_class_weight_classifiers",
    "check_classifier_data_not_an_array",
    "check_classifier_not_supporting_multiclass",
    "check_classifiers_classes",
    "check_classifiers_one_label",
    "check_classifiers_one_label_sample_weights",
    "check_classifiers_regression_target",
    "check_classifiers_train",
    "check_estimators_dtypes",
    "check_fit2d_1feature",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_sample_weights_not_an_array",
    "check_sample_weights_not_overwritten",
    "check_sample_weights_pandas_series",
    "check_sample_weights_shape",
}


def test_check_estimator():
    results = check_estimator(mm.MultilabelSVM(), on_fail=None, on_skip=None)
    by_status = {status: set() for status in ("passed", "failed", "skipped")}
    for result in results:
        by_status[result["status"]].add(result["check_name"])
    assert by_status["failed"] <= NOT_FOR_SETS
    assert len(by_status["passed"]) > 30
    for method in ("predict", "decision_function"):
        assert f"check_classifiers_multilabel_output_format_{method}" in by_status["passed"]


# ----- words ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "labels", "message"),
    [
        ({"loss": "jaccard"}, Y, "loss must be one of 'hamming', .* got 'jaccard'"),
        ({}, Y[:-1], "X has 90 examples but y has 89; first without a partner: 89"),
        ({}, Y[:, 0], r"a row of 0 and 1 for each of 90 examples.*MultiLabelBinarizer"),
        (
            {},
            [[label] * (i % 3) for i, label in enumerate(Y[:, 0])],
            "MultiLabelBinarizer makes it",
        ),
        ({"edges": 3}, Y, "edges must be None, 'tree', 'pairs' or pairs of labels, got 3"),
        ({"edges": np.array(3)}, Y, "edges must be None, 'tree', 'pairs' or pairs of labels"),
        ({}, Y[:, :0], r"got an array of shape \(90, 0\)"),
        ({}, Y + (np.arange(90) == 7)[:, None] * 2, r"y\[7, 0\] is [23]; expected 0 or 1"),
        ({}, Y.astype(str), "y must be 0 and 1, got an array of <U"),
        ({}, np.where(Y == 1, np.nan, 0.0), r"y\[\d+, \d+\] is .*nan.*; expected 0 or 1"),
    ],
)
def test_bad_input(parameters, labels, message):
    with pytest.raises(ValueError, match=message):
        model(**parameters).fit(X, labels)


def test_bad_scoring():
    with pytest.raises(ValueError, match="y has 3 labels, the model 4"):
        fitted().score(X, Y[:, :3])
    with pytest.raises(AttributeError, match="decision_function"):
        fitted(edges="tree").decision_function(X)
