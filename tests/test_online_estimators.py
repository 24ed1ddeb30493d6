"""Online solvers in estimators and on the command line; partial_fit."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

import maxmargin as mm
from every_estimator import KINDS
from maxmargin.cli import main
from maxmargin.datasets import make_digit_words
from maxmargin.solvers import MIRA, SGD, SOLVERS, Perceptron

ONLINE = [name for name, solver in SOLVERS.items() if not solver.certified]


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


@pytest.fixture(scope="module")
def words():
    return make_digit_words(n_train=60, n_test=40, noise=0.3)


@pytest.mark.parametrize("solver", ONLINE)
def test_classes(solver, iris):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no precision was promised, so none is missed
        model = mm.MulticlassSVM(C=1.0, solver=solver, random_state=0).fit(*iris)
    assert model.score(*iris) > 0.9
    assert model.result_.gap is None and model.result_.state is None
    assert len(model.result_.history) <= 10


@pytest.mark.parametrize("solver", ONLINE)
def test_sequences(solver, words):
    model = mm.SequenceTagger(C=0.1, solver=solver, max_passes=15, random_state=0)
    model.fit(words.X_train, words.y_train)
    assert model.score(words.X_test, words.y_test) > 0.7


def test_instances(words):
    solver = MIRA(k=3, max_passes=4, held_out=0.2, certificate=True, random_state=1)
    model = mm.SequenceTagger(C=0.1, solver=solver).fit(words.X_train, words.y_train)
    assert model.score(words.X_test, words.y_test) > 0.7
    assert model.result_.gap > 0
    assert model.result_.history[0].held_out_loss is not None


class Nearest(mm.Problem):
    """Which of two points is nearer."""

    n_features = 1

    def joint_feature(self, x, y):
        return np.array([-abs(x - y)])

    def loss(self, y, y_hat):
        return float(y != y_hat)

    def most_violated(self, x, y, w, rescaling):
        return max((0, 1), key=lambda z: self.loss(y, z) + w @ self.joint_feature(x, z))

    def predict(self, x, w):
        return max((0, 1), key=lambda z: w @ self.joint_feature(x, z))


@pytest.mark.parametrize("solver", ONLINE)
def test_outputs_of_a_user(solver):
    X = np.random.default_rng(0).uniform(-1, 2, 40)
    Y = (X > 0.5).astype(int)
    model = mm.StructuralSVM(Nearest(), solver=solver, random_state=0).fit(X, Y)
    assert model.predict(X) == Y.tolist()


# ----- partial_fit -------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ONLINE)
def test_calls_are_passes_over_classes(solver, iris):
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(iris[1]))
    model = mm.MulticlassSVM(C=0.1, solver=solver, random_state=3)
    whole = clone(model).set_params(max_passes=3).fit(*iris, weights)
    for _ in range(3):
        model.partial_fit(*iris, sample_weight=weights)
    assert np.array_equal(model.coef_, whole.coef_)
    assert np.array_equal(model.predict(iris[0]), whole.predict(iris[0]))
    model.partial_fit(*iris, classes=whole.classes_)
    assert not np.array_equal(model.coef_, whole.coef_)


@pytest.mark.parametrize("solver", ONLINE)
def test_calls_are_passes_over_sequences(solver, words):
    model = mm.SequenceTagger(
        C=0.1, solver=solver, random_state=3, boundary_weights=True, fit_intercept=True
    )
    whole = clone(model).set_params(max_passes=3).fit(words.X_train, words.y_train)
    for _ in range(3):
        model.partial_fit(words.X_train, words.y_train)
    assert np.array_equal(model.coef_, whole.coef_)
    # A copy goes on where the original would have.
    copied = pickle.loads(pickle.dumps(model))
    for one in (model, copied):
        one.partial_fit(words.X_train, words.y_train)
    assert np.array_equal(copied.coef_, model.coef_)


@pytest.mark.parametrize("solver", ONLINE)
def test_data_in_pieces(solver, words):
    model = mm.SequenceTagger(C=0.1, solver=solver, random_state=0)
    labels = np.unique(np.concatenate(words.y_train))
    for _ in range(3):
        for start in range(0, 60, 15):
            piece = slice(start, start + 15)
            model.partial_fit(words.X_train[piece], words.y_train[piece], classes=labels)
    assert model.score(words.X_test, words.y_test) > 0.6
    assert model.classes_.tolist() == labels.tolist()


@pytest.mark.parametrize("solver", ["sgd", "pegasos"])
def test_pieces_make_up_one_objective(solver, iris):
    """The regulariser is that of all examples, each with its weight, however they come."""
    X, y = iris
    order = np.random.default_rng(1).permutation(len(y))
    weights = np.linspace(0.2, 2.0, len(y))
    pieces = np.array_split(order, [20, 60, 110])
    C = 0.05
    model = mm.MulticlassSVM(C=C, solver=solver, random_state=0)
    for _ in range(60):
        for piece in pieces:
            model.partial_fit(
                X[piece], y[piece], classes=np.unique(y), sample_weight=weights[order][piece]
            )
    exact = mm.MulticlassSVM(C=C, tol=1e-6, random_state=0).fit(X, y, weights[order])
    codes = np.searchsorted(exact.classes_, y)

    def primal(w):
        scores = np.column_stack([X, np.ones(len(y))]) @ w.reshape(-1, 3)
        margins = 1.0 + scores - scores[np.arange(len(y)), codes][:, None]
        margins[np.arange(len(y)), codes] = 0.0
        return 0.5 * w @ w + C * weights[order] @ margins.max(axis=1)

    assert exact.result_.primal == pytest.approx(primal(exact.result_.w), rel=1e-9)
    assert primal(model.result_.w) < 1.03 * exact.result_.primal
    seen = model._online.state.seen
    assert seen.count == len(y)
    assert seen.weight == pytest.approx(weights.sum())


def test_examples_of_a_fit_count(iris):
    X, y = iris
    model = mm.MulticlassSVM(solver="pegasos", max_passes=2, random_state=0).fit(X, y)
    before = model.coef_.copy()
    model.partial_fit(X[:2], y[:2])
    assert model._online.state.seen.count == pytest.approx(model_size(X, y) + 2)
    assert np.linalg.norm(model.coef_ - before) < 0.5 * np.linalg.norm(before)


def model_size(X, y):
    """Number of examples that differ, for identical ones are merged."""
    codes = np.unique(y, return_inverse=True)[1]
    return len(np.unique(np.column_stack([X, codes]), axis=0))


def test_features_of_later_pieces():
    """Names that the first call did not know have no weights."""
    model = mm.SequenceTagger(solver="perceptron", random_state=0)
    model.partial_fit([[["a"], ["b"]]], [["X", "Y"]])
    model.partial_fit([[["c"], ["b"]]], [["X", "Y"]])
    assert model.n_features_in_ == 2
    assert model.predict([[["a"], ["b"]]])[0] == ["X", "Y"]


def test_going_on_after_fit_and_load(tmp_path, words):
    model = mm.SequenceTagger(C=0.1, solver="auto", random_state=0)
    model.fit(words.X_train, words.y_train)
    model.save(tmp_path / "model.mm")
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError) as caught:
        model.partial_fit(words.X_train, words.y_train)
    assert all(repr(name) in str(caught.value) for name in [*ONLINE, "auto"])
    loaded = mm.load(tmp_path / "model.mm").set_params(solver="perceptron")
    before = loaded.coef_.copy()
    loaded.partial_fit(words.X_train[:1], words.y_train[:1])
    assert loaded.coef_ @ before > 0.5 * (before @ before)
    loaded.save(tmp_path / "again.mm")
    again = mm.load(tmp_path / "again.mm")
    assert again.result_.history[0].loss == loaded.result_.history[0].loss
    # A fit begins afresh, whatever came before.
    loaded.set_params(solver="perceptron").fit(words.X_train, words.y_train)
    fresh = mm.SequenceTagger(C=0.1, solver="perceptron", random_state=0)
    assert np.array_equal(fresh.fit(words.X_train, words.y_train).coef_, loaded.coef_)


def test_warm_starts_go_on(iris):
    model = mm.MulticlassSVM(solver="mira", max_passes=2, warm_start=True, random_state=0)
    model.fit(*iris).fit(*iris)
    whole = mm.MulticlassSVM(solver="mira", max_passes=4, random_state=0).fit(*iris)
    assert np.array_equal(model.coef_, whole.coef_)


def test_bad_calls(iris):
    X, y = iris
    model = mm.MulticlassSVM(solver="sgd", random_state=0)
    with pytest.raises(ValueError, match="at least 2 classes"):
        model.partial_fit(X[:10], y[:10])
    model.partial_fit(X[:100], y[:100])
    with pytest.raises(ValueError, match=r"y\[0\] is .*virginica.* not among the classes"):
        model.partial_fit(X[100:], y[100:])
    with pytest.raises(ValueError, match="classes must be those of the first call"):
        model.partial_fit(X[:100], y[:100], classes=["a", "b"])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:100, :2], y[:100])
    tagger = mm.SequenceTagger(solver="sgd", random_state=0)
    with pytest.raises(ValueError, match="at least 2 labels"):
        tagger.partial_fit([np.eye(2)], [["a", "a"]])
    tagger.partial_fit([np.eye(2)], [["a", "b"]])
    with pytest.raises(ValueError, match=r"sequence 0, token 1: label 'c' is not known"):
        tagger.partial_fit([np.eye(2)], [["a", "c"]])
    with pytest.raises(ValueError, match=r"the model was made with order=.'transitions': 1"):
        tagger.set_params(order=2).partial_fit([np.eye(2)], [["a", "b"]])
    assert hasattr(mm.MulticlassSVM(solver=SGD()), "partial_fit")
    assert not hasattr(mm.MulticlassSVM(), "partial_fit")


@pytest.mark.parametrize("kind", ["ranker", "sets", "sets in a tree", "segmenter"])
@pytest.mark.parametrize("solver", ["perceptron", "sgd"])
def test_calls_are_passes(kind, solver, tmp_path):
    inputs, outputs = KINDS[kind].first
    model = KINDS[kind].make(C=0.1, solver=solver, random_state=3)
    whole = clone(model).set_params(max_passes=3).fit(inputs, outputs)
    for _ in range(3):
        model.partial_fit(inputs, outputs)
    assert np.array_equal(model.coef_, whole.coef_)
    model.save(tmp_path / "model.mm")
    loaded = mm.load(tmp_path / "model.mm").set_params(solver=solver)
    loaded.partial_fit(inputs, outputs)
    if solver == "sgd":  # the perceptron may have nothing left to learn
        assert not np.array_equal(loaded.coef_, whole.coef_)
    with pytest.raises(ValueError, match=r"features|columns"):
        model.partial_fit(*KINDS[kind].second)
    assert not hasattr(KINDS[kind].make(), "partial_fit")


def test_queries_come_as_a_whole():
    X, y = KINDS["ranker"].first
    qid = np.arange(len(y)) // 4
    whole = mm.RankSVM(solver="sgd", max_passes=1, random_state=0).fit(X, y, qid=qid)
    model = mm.RankSVM(solver="sgd", random_state=0).partial_fit(X, y, qid=qid)
    assert np.array_equal(model.coef_, whole.coef_)
    assert model.partial_fit(X[:3], y[:3]).result_.n_examples == 1


def test_labels_of_later_pieces():
    X, y = KINDS["segmenter"].first
    model = mm.SequenceSegmenter(solver="sgd", random_state=0)
    model.partial_fit(X, y, classes=["a", "b", "c"])
    assert model.max_segment_lengths_ == {"a": 2, "b": 2, "c": 1}
    model.partial_fit(X[:1], [[(1, 2, "c")]])
    with pytest.raises(ValueError, match=r"sequence 0, segment 1: label 'd' is not among"):
        model.partial_fit(X[:1], [[(0, 1, "a"), (1, 2, "d")]])
    with pytest.raises(ValueError, match=r"sequence 0: segment .* more than max_segment_length, 1"):
        model.partial_fit(X[:1], [[(1, 3, "c")]])
    sets = mm.MultilabelSVM(solver="sgd", random_state=0).partial_fit(*KINDS["sets"].first)
    with pytest.raises(ValueError, match="y has 2 labels, the model 4"):
        sets.partial_fit(KINDS["sets"].first[0], KINDS["sets"].second[1])


# ----- command line ------------------------------------------------------------------------------

COLUMNS = "the D\ncat N\nsleeps V\n\na D\ndog N\nbarks V\n\nthe D\ndog N\nsleeps V\n"


@pytest.mark.parametrize("solver", ONLINE)
def test_training_from_a_file(solver, tmp_path, capsys):
    data, model = tmp_path / "data.txt", tmp_path / "model.mm"
    data.write_text(COLUMNS)
    options = ["--solver", solver, "--features", "words"]
    assert main(["train", "tag", str(data), "-o", str(model), *options]) == 0
    shown = capsys.readouterr()
    assert "no certificate" in shown.out and "saved" in shown.out
    assert mm.load(model).predict([["a", "cat", "barks"]])[0] == ["D", "N", "V"]


def test_progress_is_shown(capsys):
    X, Y = [np.eye(2)] * 4, [["a", "b"]] * 4
    solver = Perceptron(held_out=0.5, max_passes=2)
    mm.SequenceTagger(solver=solver, verbose=2).fit(X, Y)
    shown = capsys.readouterr().err
    assert "mean loss" in shown and "held out" in shown
