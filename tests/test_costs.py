"""Costs of labels and weights of classes, as estimators take them."""

import itertools
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.svm import LinearSVC
from sklearn.utils.class_weight import compute_class_weight

import maxmargin as mm
from maxmargin.metrics import mean_cost
from maxmargin.problems.chain.problem import ChainProblem
from maxmargin.problems.classes.multiclass import MulticlassProblem
from maxmargin.problems.multilabel.problem import MultilabelProblem
from maxmargin.problems.tree.labels import LabelTreeProblem

DEAR = {("A", "O"): 4.0, ("B", "O"): 2.5}
#: The same in the order O comes last in, and nested.
MATRIX = np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 2.5], [1.0, 1.0, 0.0]])
NESTED = {"A": {"O": 4.0}, "B": {"O": 2.5}}


def sentences(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(length, 4)) for length in rng.integers(1, 7, n)]
    noise = [x[:, :3] + rng.normal(size=(len(x), 3)) + [0.0, 0.0, 1.0] for x in X]
    return X, [["ABO"[k] for k in np.argmax(scores, axis=1)] for scores in noise]


def flat(labels):
    return list(itertools.chain.from_iterable(labels))


def problem_of(estimator, *data, **options):
    """The problem that an estimator trains on."""
    kept = estimator.set_params(warm_start=True, max_passes=1, tol=None).fit(*data, **options)
    return kept._kept.problem


def tagger(**options):
    return mm.SequenceTagger(random_state=0, **options)


@pytest.mark.parametrize("loss", [DEAR, NESTED, MATRIX, MATRIX.tolist()])
def test_a_table_of_costs_in_every_form(loss, tmp_path):
    X, y = sentences()
    model = tagger(loss=loss, tol=1e-3).fit(X, y)
    assert np.array_equal(model.coef_, tagger(loss=DEAR, tol=1e-3).fit(X, y).coef_)
    assert not np.array_equal(model.coef_, tagger(tol=1e-3).fit(X, y).coef_)
    model.save(tmp_path / "model")
    loaded = mm.load(tmp_path / "model")
    assert np.array_equal(np.asarray(loaded.loss), np.asarray(loss))
    assert np.array_equal(loaded.fit(X, y).coef_, model.coef_)
    assert np.array_equal(clone(model).fit(X, y).coef_, model.coef_)


def test_the_chain_problem_has_the_table():
    X, y = sentences()
    problem = problem_of(tagger(loss=DEAR), X, y)
    assert isinstance(problem, ChainProblem)
    assert np.array_equal(problem.data.costs, MATRIX)
    assert np.array_equal(problem.data.cost_rows, problem.data.labels)
    assert len(problem_of(tagger(), X, y).data.cost_rows) == 0  # none where a number says it all
    assert problem.loss(np.array([0, 1, 2]), np.array([2, 2, 0])) == 4.0 + 2.5 + 1.0


def test_the_objective_is_that_of_the_costs():
    """At any weights, the mean cost of predictions is below the mean slack."""
    X, y = sentences()
    for rescaling in ("margin", "slack"):
        model = tagger(loss=DEAR, rescaling=rescaling, C=0.5).fit(X, y)
        tokens = sum(map(len, y))
        total = tokens * mean_cost(y, model.predict(X), DEAR, ["A", "B", "O"])
        slack = model.result_.primal - 0.5 * model.coef_ @ model.coef_
        assert total <= slack / 0.5 + 1e-9


def test_dear_mistakes_become_rare():
    X, y = sentences(200)
    missed = {}
    for cost in (1.0, 8.0):
        model = tagger(loss={("A", "O"): cost, ("B", "O"): cost}, tol=1e-3).fit(X, y)
        pairs = zip(flat(y), flat(model.predict(X)), strict=True)
        missed[cost] = sum(true != "O" and found == "O" for true, found in pairs)
    assert missed[8.0] < 0.5 * missed[1.0]


def balanced(labels):
    classes = np.unique(labels)
    return compute_class_weight("balanced", classes=classes, y=labels)


def test_class_weight_multiplies_rows_of_costs():
    X, y = sentences()
    labels = np.array(flat(y))
    weights = {"A": 2.0, "O": 0.5}
    costs = problem_of(tagger(class_weight=weights), X, y).data.costs
    assert np.array_equal(costs, np.array([[2.0], [1.0], [0.5]]) * (1.0 - np.eye(3)))
    costs = problem_of(tagger(class_weight="balanced", loss=DEAR), X, y).data.costs
    assert np.allclose(costs, balanced(labels)[:, None] * MATRIX)
    counted = np.repeat(np.arange(1.0, len(y) + 1.0), list(map(len, y)))
    problem = problem_of(tagger(class_weight="balanced"), X, y, np.arange(1.0, len(y) + 1.0))
    totals = np.array([counted[labels == label].sum() for label in "ABO"])
    assert np.allclose(problem.data.costs[0, 1], counted.sum() / (3.0 * totals[0]))


def test_partial_fit_with_costs():
    X, y = sentences()
    whole = tagger(solver="sgd", loss=DEAR, max_passes=1).fit(X, y)
    part = tagger(solver="sgd", loss=DEAR).partial_fit(X, y)
    assert np.array_equal(whole.coef_, part.coef_)
    with pytest.raises(ValueError, match="needs all sequences at once"):
        tagger(solver="sgd", class_weight="balanced").partial_fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "ham"}, "loss must be one of 'hamming'"),
        ({"loss": None}, "or a table of costs; got None"),
        ({"loss": np.ones((3, 3))}, "'A' costs 1.0 where 'A' is right; expected nothing"),
        ({"loss": 1.0 - np.eye(2)}, r"shape \(2, 2\); expected \(3, 3\), the labels 'A', 'B', 'O'"),
        ({"loss": -MATRIX}, "'B' costs -1.0 where 'A' is right"),
        ({"loss": MATRIX * np.nan}, "'A' costs nan"),
        ({"loss": {("A", "O"): np.inf}}, "'O' costs inf where 'A' is right"),
        ({"loss": {("A", "O"): "dear"}}, "expected a number"),
        ({"loss": {"A": 3.0}}, "true label: {predicted label: cost}"),
        ({"loss": [[0.0, 1.0], [1.0]]}, "3 rows of 3"),
        ({"class_weight": {"Q": 2.0}}, "'Q', which is not a class of y"),
        ({"class_weight": {"A": -2.0}}, "is -2.0; weights must be finite"),
        ({"class_weight": "even"}, "must be None, 'balanced' or a mapping"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        tagger(**options).fit(*sentences())


def test_labels_in_tables_that_y_lacks():
    X, y = sentences()
    with pytest.warns(UserWarning, match="costs of 'Q', which is not a label in y"):
        tagger(loss={("Q", "A"): 3.0}, max_passes=1, tol=None).fit(X, y)
    named = [[{"A": "benign"}.get(label, label) for label in labels] for labels in y]
    with pytest.warns(UserWarning, match=r"'bening', .* in y \(did you mean 'benign'\?\); labels"):
        tagger(loss={("bening", "O"): 3.0}, max_passes=1, tol=None).fit(X, named)
    numbers = [[ord(label) for label in labels] for labels in y]
    with pytest.raises(ValueError, match=r"'65', of type str; the label of y is 65, of type int"):
        tagger(loss={("65", 79): 3.0}).fit(X, numbers)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"costs": np.ones((2, 3))}, "3 rows of 3 labels"),
        ({"costs": -np.ones((3, 3))}, r"costs\[0, 0\] is -1.0"),
        ({"costs": np.ones((3, 3))}, "the cost of the true label of token 0"),
        ({"costs": np.zeros((1, 3)), "cost_rows": [0]}, "there are 3 tokens"),
        ({"costs": np.zeros((1, 3)), "cost_rows": [0, 0, 1]}, r"must be in 0\.\.0"),
        ({"cost_rows": [0, 0, 0]}, "cost_rows needs costs"),
    ],
)
def test_costs_that_chains_refuse(options, message):
    with pytest.raises(ValueError, match=message):
        ChainProblem(np.ones((3, 1)), [0, 3], [0, 1, 2], 3, **options)


# ----- classes -----------------------------------------------------------------------------------


def classes(n=120, K=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.argmax(X[:, :K] + rng.normal(size=(n, K)), axis=1)
    costs = rng.uniform(0.0, 3.0, (n, K)) * (rng.random((n, K)) < 0.8)
    costs[np.arange(n), y] = 0.0
    return X, y, costs


def svm(**options):
    return mm.MulticlassSVM(random_state=0, **options)


@pytest.mark.parametrize("K", [2, 3])
def test_costs_of_single_examples(K):
    X, y, costs = classes(K=K)
    same = 1.0 - np.eye(K)[y]
    assert np.allclose(
        svm(tol=1e-8).fit(X, y, costs=same).coef_, svm(tol=1e-8).fit(X, y).coef_, atol=1e-6
    )
    by_class = np.arange(1.0, K * K + 1.0).reshape(K, K) * (1.0 - np.eye(K))
    assert np.allclose(
        svm(tol=1e-8).fit(X, y, costs=by_class[y]).coef_,
        svm(tol=1e-8, loss=by_class).fit(X, y).coef_,
        atol=1e-5,
    )
    own = svm(tol=1e-6).fit(X, y, costs=costs)
    general = svm(tol=1e-6, solver="n_slack").fit(X, y, costs=costs)
    assert own.result_.converged
    assert own.result_.primal == pytest.approx(general.result_.primal, rel=1e-5)
    found = np.searchsorted(own.classes_, own.predict(X))
    slack = own.result_.primal - 0.5 * own.result_.w @ own.result_.w
    assert costs[np.arange(len(y)), found].sum() <= slack + 1e-9


def test_equal_examples_with_different_costs_stay_apart():
    X, y, costs = classes(40)
    X, y, costs = np.vstack([X, X]), np.tile(y, 2), np.vstack([costs, 2.0 * costs])
    problem = problem_of(svm(), X, y, costs=costs)
    assert isinstance(problem, MulticlassProblem)
    assert problem.n_examples == 80 and np.array_equal(problem.costs, costs)


def test_costs_of_examples_come_in_parts():
    X, y, costs = classes()
    whole = svm(solver="sgd", max_passes=1).fit(X, y, costs=costs)
    part = svm(solver="sgd").partial_fit(X, y, costs=costs)
    assert np.array_equal(whole.coef_, part.coef_)
    assert not np.array_equal(whole.coef_, svm(solver="sgd", max_passes=1).fit(X, y).coef_)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda costs: costs[:5], {}, r"shape \(5, 3\); expected \(120, 3\)"),
        (lambda costs: -costs, {}, "finite numbers >= 0"),
        (lambda costs: costs + 1.0, {}, "the cost of the true class of example 0; it must be 0"),
        (lambda costs: costs, {"loss": 1.0 - np.eye(3)}, "replace the loss"),
        (lambda costs: costs, {"class_features": np.eye(3)}, "class features"),
    ],
)
def test_costs_of_examples_that_are_refused(change, options, message):
    X, y, costs = classes()
    with pytest.raises(ValueError, match=message):
        svm(**options).fit(X, y, costs=change(costs))


def test_classes_take_mappings():
    X, y, _ = classes()
    table = np.ones((3, 3)) - np.eye(3)
    table[0, 2] = 5.0
    mapping = svm(loss={(0, 2): 5.0}).fit(X, y)
    assert np.array_equal(mapping.coef_, svm(loss=table).fit(X, y).coef_)


# ----- trees, sets, whole samples ----------------------------------------------------------------


def nodes(n=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2, 3))
    y = np.empty((n, 2), object)
    y[:, 0] = ["abc"[k] for k in np.argmax(X[:, 0] + rng.normal(size=(n, 3)), axis=1)]
    y[:, 1] = ["bz"[k] for k in (X[:, 1, 0] > 0.5).astype(int)]
    return X, y


def labeler(**options):
    return mm.TreeLabeler(random_state=0, **options)


def test_costs_of_trees():
    X, y = nodes()
    ones = 1.0 - np.eye(3)
    problem = problem_of(labeler(loss={("a", "c"): 5.0, ("b", "z"): 3.0}), X, y)
    assert isinstance(problem, LabelTreeProblem)
    first = ones.copy()
    first[0, 2] = 5.0
    second = [[0.0, 3.0, 0.0], [1.0, 0.0, 0.0]]  # as wide as the other's, b before z
    assert np.array_equal(problem.true_labels.costs, np.vstack([first, second]))
    assert problem.loss([0, 0], [2, 1]) == 8.0
    of_all = 1.0 - np.eye(4)
    of_all[0, 2], of_all[1, 3] = 5.0, 3.0
    listed = [first, [[0.0, 3.0], [1.0, 0.0]]]
    for loss in (of_all, listed):
        again = problem_of(labeler(loss=loss), X, y)
        assert np.array_equal(problem.true_labels.costs, again.true_labels.costs)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ([[0.0, 3.0], [1.0, 1.0]], "node 1: loss says that 'z' costs 1.0 where 'z' is right"),
        ([[0.0, 3.0], [1.0]], "node 1: loss must be the name of a loss or a table"),
        ({("b", "z"): "much"}, "node 1: loss has 'much'"),
    ],
)
def test_tables_of_nodes(second, message):
    X, y = nodes()
    shared = problem_of(labeler(loss={("a", "c"): 5.0, ("b", "z"): 3.0}), X, y)
    listed = problem_of(labeler(loss=[{("a", "c"): 5.0}, {("b", "z"): 3.0}]), X, y)
    assert np.array_equal(shared.true_labels.costs, listed.true_labels.costs)
    with pytest.raises(ValueError, match=message):
        labeler(loss=[1.0 - np.eye(3), second]).fit(X, y)


def test_class_weights_of_trees():
    X, y = nodes()
    costs = problem_of(labeler(class_weight="balanced"), X, y).true_labels.costs
    expected = np.concatenate([balanced(y[:, v].astype(str)) for v in (0, 1)])
    assert np.allclose(costs.max(axis=1), expected)
    costs = problem_of(labeler(class_weight={"b": 3.0}), X, y).true_labels.costs
    assert np.array_equal(costs.max(axis=1), [1.0, 3.0, 1.0, 3.0, 1.0])
    with pytest.raises(ValueError, match="tables of 1 nodes, expected 2"):
        labeler(loss=[1.0 - np.eye(3)]).fit(X, y)


def label_sets(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X + rng.normal(size=(n, 3)) > 0.8).astype(int)


def sets(**options):
    return mm.MultilabelSVM(random_state=0, **options)


def test_costs_of_sets(tmp_path):
    X, Y = label_sets()
    each = np.tile([4.0, 1.0], (3, 1))
    for options in ({"loss": (4.0, 1.0)}, {"loss": each}, {"class_weight": {1: 4.0}}):
        problem = problem_of(sets(**options), X, Y)
        assert isinstance(problem, MultilabelProblem)
        assert np.array_equal(problem.costs, each)
    assert problem.loss([1, 1, 0], [0, 1, 1]) == 5.0
    assert problem_of(sets(), X, Y).costs is None
    plain, dear = sets().fit(X, Y).predict(X), sets(loss=(4.0, 1.0)).fit(X, Y)
    assert ((Y > dear.predict(X)).sum()) < (Y > plain).sum()
    dear.save(tmp_path / "model")
    assert list(mm.load(tmp_path / "model").loss) == [4.0, 1.0]


def test_class_weights_of_sets():
    X, Y = label_sets()
    costs = problem_of(sets(class_weight="balanced"), X, Y).costs
    off_and_on = np.array([balanced(column) for column in Y.T])
    assert np.allclose(costs, off_and_on[:, ::-1])
    listed = [{1: 2.0}, {0: 3.0}, {}]
    costs = problem_of(sets(class_weight=listed, loss=(2.0, 1.0)), X, Y).costs
    assert np.array_equal(costs, [[4.0, 1.0], [2.0, 3.0], [2.0, 1.0]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": (1.0, 2.0, 3.0)}, r"expected \(3, 2\)"),
        ({"loss": (-1.0, 2.0)}, "missing label 0 costs -1.0"),
        ({"loss": {"a": 1.0}}, "the costs of a missed and of an added label"),
        ({"class_weight": [{}]}, "1 labels, expected 3"),
        ({"class_weight": [{}, {1: -2.0}, {}]}, r"label 1: class_weight\[1\] is -2.0"),
    ],
)
def test_costs_of_sets_that_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        sets(**options).fit(*label_sets())


def test_class_weight_of_a_sample():
    X, Y = label_sets()
    model = mm.PerformanceSVM(C=1.0, fit_intercept=False, class_weight="balanced", tol=1e-6)
    peer = LinearSVC(loss="hinge", class_weight="balanced", fit_intercept=False, tol=1e-8)
    peer.set_params(max_iter=10**6, C=1.0)
    found, expected = (each.fit(X, Y[:, 0]).coef_ for each in (model, peer))
    assert np.allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize(
    ("make", "data", "why"),
    [
        (lambda: tagger(loss="zero_one"), sentences(), "counts sequences"),
        (lambda: labeler(loss="zero_one"), nodes(), "counts examples"),
        (lambda: sets(loss="f1"), label_sets(), "does not add up over them"),
        (
            lambda: mm.PerformanceSVM(measure="f1"),
            (label_sets()[0], label_sets()[1][:, 0]),
            "does not add up over rows",
        ),
    ],
    ids=["tagger", "labeler", "sets", "measure"],
)
def test_losses_that_do_not_add_up_ignore_class_weight(make, data, why):
    """Otherwise no search over losses could set it for those that do."""
    limits = {"max_passes": 2, "tol": None, "random_state": 0}
    with pytest.warns(UserWarning, match=f"class_weight has no effect: .*{why}"):
        found = make().set_params(class_weight="balanced", **limits).fit(*data)
    expected = make().set_params(**limits).fit(*data)
    assert np.array_equal(found.result_.w, expected.result_.w)


# ----- the metric --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda: tagger(loss=1j * (1.0 - np.eye(2))).fit(*sentences(4)), "loss must be the name"),
        (lambda: tagger(class_weight={"O": "much"}).fit(*sentences(4)), r"\['O'\] is 'much'"),
        (lambda: svm(loss=1j * (1.0 - np.eye(3))).fit(*classes()[:2]), "loss must be 'zero_one'"),
        (lambda: svm(loss=[["a"] * 3] * 3).fit(*classes()[:2]), "loss must be 'zero_one'"),
        (lambda: svm().fit(*classes()[:2], costs=[["a"] * 3] * 120), r"shape \(120, 3\), got"),
        (lambda: svm().fit(*classes()[:2], costs=[[0.0]] * 119 + [[]]), r"shape \(120, 3\), got"),
        (lambda: sets(loss=np.array([1j, 1.0])).fit(*label_sets()), "the costs of a missed"),
    ],
)
def test_costs_are_real_numbers(fit, message):
    with pytest.raises(ValueError, match=message):
        fit()


def test_balanced_weights_where_nothing_counts():
    """Without a warning of NumPy's."""
    X, y = sentences(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = tagger(class_weight="balanced").fit(X, y, sample_weight=np.zeros(4))
    assert not model.coef_.any()


def test_mean_cost():
    assert mean_cost(["A", "O"], ["O", "O"], DEAR) == 2.0
    assert mean_cost([["A"], ["O", "B"]], [["O"], ["B", "B"]], DEAR) == pytest.approx(5.0 / 3.0)
    assert mean_cost(["A", "O"], ["O", "O"], MATRIX, labels=["A", "B", "O"]) == 2.0
    assert mean_cost([0, 1], np.array([1, 1]), {(0, 1): 3.0}) == 1.5
    with pytest.raises(ValueError, match="'Q' is not one of the labels 'A', 'B', 'O'"):
        mean_cost(["Q"], ["A"], MATRIX, labels=["A", "B", "O"])
    with pytest.raises(ValueError, match="y_true has 1 labels, y_pred has 2"):
        mean_cost(["A"], ["A", "B"], DEAR)
