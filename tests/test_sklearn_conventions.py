"""Estimators behave as scikit-learn's do, and take what users have: pandas, generators, tuples."""

import inspect
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import maxmargin as mm
from every_estimator import KINDS, TREES, make
from maxmargin.features import WindowFeatures

X, Y = load_iris(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
WORDS = [["the", "cat"], ["a", "dog", "barks"], ["dogs"], ["the", "dog", "and", "cats"]] * 3
TAGS = [["D", "N"], ["D", "N", "V"], ["N"], ["D", "N", "C", "N"]] * 3


def classifier(**parameters):
    return mm.MulticlassSVM(random_state=0, **parameters)


def tagger(**parameters):
    return mm.SequenceTagger(tol=0.1, features=WindowFeatures(), random_state=0, **parameters)


# ----- names ------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [*dict.fromkeys(type(make(kind)) for kind in KINDS), mm.PCFGParser])
def test_the_second_argument_is_called_y(cls):
    for name in ("fit", "partial_fit", "score", "score_outputs", "losses"):
        if hasattr(cls, name):
            assert list(inspect.signature(getattr(cls, name)).parameters)[1:3] == ["X", "y"], name


# ----- coef_ of a classifier --------------------------------------------------------------------


def test_coef_has_a_row_for_each_class():
    model = classifier().fit(X, Y)
    assert model.coef_.shape == (3, 4) and model.intercept_.shape == (3,)
    assert np.allclose(model.decision_function(X), X @ model.coef_.T + model.intercept_)
    assert np.array_equal(model.result_.w.reshape(5, 3)[:4].T, model.coef_)
    assert classifier(fit_intercept=False).fit(X, Y).intercept_.tolist() == [0.0, 0.0, 0.0]


def test_coef_of_two_classes_is_that_of_the_second_against_the_first():
    two = Y < 2
    y = np.array(["no", "yes"])[Y[two]]
    model, peer = classifier().fit(X[two], y), LinearSVC().fit(X[two], y)
    assert model.coef_.shape == peer.coef_.shape == (1, 4)
    assert model.intercept_.shape == peer.intercept_.shape == (1,)
    values = X[two] @ model.coef_[0] + model.intercept_[0]
    assert np.allclose(model.decision_function(X[two]), values)
    assert np.array_equal(model.predict(X[two]), model.classes_[(values > 0).astype(int)])
    assert classifier(fit_intercept=False).fit(X[two], y).intercept_.tolist() == [0.0]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_coef_of_described_classes_is_that_of_the_classes(n_classes):
    few = Y < n_classes
    features = np.random.default_rng(0).normal(size=(n_classes, 5))
    model = classifier(class_features=features).fit(X[few], Y[few])
    rows = 1 if n_classes == 2 else 3
    assert model.coef_.shape == (rows, 4) and model.intercept_.shape == (rows,)
    values = X[few] @ model.coef_.T + model.intercept_
    assert np.allclose(model.decision_function(X[few]), values[:, 0] if rows == 1 else values)


def test_coef_of_a_classifier_cannot_be_changed():
    model = classifier().fit(X, Y)
    with pytest.raises(AttributeError):
        model.coef_ = np.zeros((3, 4))
    with pytest.raises(ValueError, match="read-only"):
        model.coef_[0, 0] = 1.0
    assert not hasattr(classifier(), "coef_")


def test_selection_of_features():
    noisy = np.hstack([X, np.random.default_rng(0).normal(size=(len(X), 6))])
    chosen = SelectFromModel(classifier(C=0.1)).fit(noisy, Y).get_support()
    assert chosen[2:4].all() and not chosen[4:].any()
    ranking = RFE(classifier(C=0.1, tol=0.1), n_features_to_select=2).fit(noisy, Y).ranking_
    assert ranking[2] == ranking[3] == 1


# ----- weights of classes -----------------------------------------------------------------------


def test_class_weight_multiplies_c():
    base = np.linspace(0.5, 2.0, len(Y))
    factors = np.array([1.0, 3.0, 0.5])
    for sample_weight in (None, base):
        given = factors[Y] if sample_weight is None else base * factors[Y]
        expected = classifier().fit(X, Y, sample_weight=given)
        model = classifier(class_weight={1: 3.0, 2: 0.5}).fit(X, Y, sample_weight=sample_weight)
        assert np.array_equal(model.coef_, expected.coef_)


def test_balanced_classes_weigh_as_much():
    few = np.r_[0:50, 50:60, 100:130]
    base = np.linspace(0.5, 2.0, len(few))
    for sample_weight in (None, base):
        weight = np.ones(len(few)) if sample_weight is None else base
        totals = np.bincount(Y[few], weight)
        given = weight * (totals.sum() / (3 * totals))[Y[few]]
        expected = classifier().fit(X[few], Y[few], sample_weight=given)
        model = classifier(class_weight="balanced")
        model.fit(X[few], Y[few], sample_weight=sample_weight)
        assert np.allclose(model.coef_, expected.coef_)


def test_class_weight_is_checked():
    for wrong, said in (
        ("even", "must be None, 'balanced' or a mapping"),
        ([1.0, 2.0, 3.0], "must be None, 'balanced' or a mapping"),
        (
            {0: 1.0, 7: 2.0},
            r"has 7, which is not a class of y \(is it misspelt\? there is no weight of 1\)",
        ),
        ({0: -1.0}, r"class_weight\[0\] is -1.0"),
    ):
        with pytest.raises(ValueError, match=said):
            classifier(class_weight=wrong).fit(X, Y)
    classifier(class_weight={0: 1.0, 1: 2.0, 2: 1.0, 3: 5.0}).fit(X, Y)  # a fold may lack a class
    online = mm.MulticlassSVM(solver="sgd", class_weight="balanced")
    with pytest.raises(ValueError, match="needs all examples at once"):
        online.partial_fit(X, Y)
    online.set_params(class_weight={0: 2.0}).partial_fit(X, Y)


# ----- scikit-learn's tools ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["tagger", "dependency", "aligner", "own", "classes"])
def test_cross_val_predict_gives_what_the_folds_predict(kind):
    inputs, outputs = KINDS[kind].first
    inputs, outputs = list(inputs) * 3, list(outputs) * 3
    found = cross_val_predict(make(kind), inputs, outputs, cv=2)
    assert len(found) == len(inputs)
    half = len(inputs) // 2
    if kind != "classes":  # whose folds are stratified
        second = make(kind).fit(inputs[:half], outputs[:half]).predict(inputs[half:])
        assert repr(list(found[half:])) == repr(list(second))


def test_cross_val_predict_of_trees():
    found = cross_val_predict(make("grammar"), TREES * 2, TREES * 2, cv=2)
    assert [tree.label for tree in found] == ["S"] * 4


def test_taggers_in_searches_and_pipelines():
    scores = cross_val_score(tagger(), WORDS, TAGS, cv=3)
    assert scores.shape == (3,) and scores.min() > 0.8
    search = GridSearchCV(tagger(), {"C": [0.01, 1.0], "features__min_count": [1, 2]}, cv=2)
    search.fit(WORDS, TAGS)
    assert search.best_score_ > 0.8 and search.predict(WORDS[:1]) == TAGS[:1]
    pipeline = make_pipeline(WindowFeatures(), mm.SequenceTagger(tol=0.1)).fit(WORDS, TAGS)
    assert pipeline.predict(WORDS) == TAGS and pipeline.score(WORDS, TAGS) == 1.0
    assert clone(pipeline).fit(WORDS, TAGS).predict(WORDS) == TAGS


def test_classifiers_in_pipelines():
    pipeline = make_pipeline(StandardScaler(), classifier())
    assert cross_val_score(pipeline, X, Y, cv=3).mean() > 0.9


# ----- predictions are lists --------------------------------------------------------------------


@pytest.mark.parametrize("labels", [["D", "N", "V"], [1, 2, 3], [True, False], ["a", 2, (3, 4)]])
def test_predicted_labels_are_of_python_types(labels):
    sequences = [np.eye(len(labels))[: k + 1] for k in range(len(labels))]
    y = [labels[: k + 1] for k in range(len(labels))]
    model = mm.SequenceTagger(tol=0.1).fit(sequences, y)
    predicted = model.predict(sequences)
    assert predicted == y and isinstance(predicted, list)
    for found, true in zip(predicted, y, strict=True):
        assert type(found) is list
        assert [type(label) for label in found] == [type(label) for label in true]
    best = [answer[0][0] for answer in model.predict_k(sequences, 2)]
    assert best == y and all(type(found) is list for found in best)


def test_predictions_are_one_array_of_objects():
    model = tagger().fit(WORDS, TAGS)
    for words in (WORDS, WORDS[:1] * 2):  # of different lengths, of the same
        array = np.asarray(model.predict(words))
        assert array.shape == (len(words),) and array.dtype == object
        assert array.tolist() == model.predict(words)


# ----- containers -------------------------------------------------------------------------------


def test_sequences_in_other_containers():
    arrays, labels = KINDS["tagger"].first
    expected = make("tagger").fit(arrays, labels).predict(arrays)
    objects = np.empty(len(arrays), dtype=object)
    objects[:] = arrays
    for given in (
        tuple(arrays),
        iter(arrays),
        np.stack(arrays),
        objects,
        [a.tolist() for a in arrays],
    ):
        model = make("tagger").fit(given, iter(labels))
        assert model.predict(x for x in arrays) == expected


def test_other_estimators_take_generators():
    for kind in ("dependency", "aligner", "own"):
        inputs, outputs = KINDS[kind].first
        expected = make(kind).fit(inputs, outputs)
        model = make(kind).fit(iter(inputs), iter(outputs))
        assert repr(model.predict(iter(inputs))) == repr(expected.predict(inputs))
        assert model.score(iter(inputs), iter(outputs)) == expected.score(inputs, outputs)
    parser = make("grammar").fit(iter(TREES))
    assert len(parser.score_outputs(iter(TREES), iter(TREES))) == 2


def test_pandas_series():
    pd = pytest.importorskip("pandas")
    expected = tagger().fit(WORDS, TAGS).predict(WORDS)
    index = np.arange(len(WORDS))[::-1]
    given = pd.Series(WORDS, index=index), pd.Series(TAGS, index=index)
    assert tagger().fit(*given).predict(given[0]) == expected
    each = [pd.Series(tags, index=np.arange(len(tags))[::-1]) for tags in TAGS]
    model = tagger().fit([pd.Series(words) for words in WORDS], each)
    assert model.predict(WORDS) == expected and model.score(WORDS, each) == 1.0


def frames(pd, columns=("a", "b", "c")):
    arrays, labels = KINDS["tagger"].first
    return [pd.DataFrame(array, columns=list(columns)) for array in arrays], arrays, labels


def test_frames_of_numbers_are_sequences(tmp_path):
    pd = pytest.importorskip("pandas")
    given, arrays, labels = frames(pd)
    model = make("tagger").fit(given, [pd.DataFrame({"tag": y}) for y in labels])
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.predict(given) == model.predict(arrays)
    assert model.predict(given) == make("tagger").fit(arrays, labels).predict(arrays)
    model.save(tmp_path / "model")
    for same in (model, mm.load(tmp_path / "model")):
        assert {name for top in same.top_features().values() for name, _ in top} <= {"a", "b", "c"}
        with pytest.raises(ValueError, match=r"columns \['a', 'c', 'b'\], but those of the train"):
            same.predict([frame[["a", "c", "b"]] for frame in given])
    with pytest.raises(ValueError, match="sequence 1 has the columns"):
        make("tagger").fit([given[0], given[1][["b", "a", "c"]], *given[2:]], labels)
    missing = [given[0].astype("Float64").replace(given[0].iloc[1, 1], pd.NA), *given[1:]]
    with pytest.raises(ValueError, match="sequence 0, token 1 has a NaN"):
        model.predict(missing)
    with pytest.raises(ValueError, match="X is one DataFrame; expected a list"):
        model.predict(given[0])
    model.fit(arrays, labels)
    assert not hasattr(model, "feature_names_in_")


def test_frames_with_strings_are_sequences_of_dicts():
    pd = pytest.importorskip("pandas")
    dicts = [[{"word": w, "length": len(w), "long": len(w) > 3} for w in words] for words in WORDS]
    given = [pd.DataFrame(tokens) for tokens in dicts]
    model = mm.SequenceTagger(tol=0.1, random_state=0).fit(given, TAGS)
    twin = mm.SequenceTagger(tol=0.1, random_state=0).fit(dicts, TAGS)
    assert model.features_.feature_names_ == twin.features_.feature_names_
    assert model.predict(given) == model.predict(dicts) == twin.predict(dicts)
    backwards = [frame[["long", "length", "word"]] for frame in given]
    assert model.predict(backwards) == twin.predict(dicts)
    with pytest.raises(ValueError, match="sequence 1 has other things than numbers"):
        mm.SequenceTagger().fit([given[0][["length"]], given[1]], TAGS[:2])


def test_frames_of_words_are_sequences_for_an_extractor():
    pd = pytest.importorskip("pandas")
    columns = [[(word, word[:1]) for word in words] for words in WORDS]
    given = [pd.DataFrame(tokens, columns=["word", "letter"]) for tokens in columns]
    model = tagger().fit(given, TAGS)
    assert (
        model.predict(given)
        == model.predict(columns)
        == tagger().fit(columns, TAGS).predict(columns)
    )


def test_frames_for_parsers_and_trees():
    pd = pytest.importorskip("pandas")
    sentences, trees = KINDS["dependency"].first
    words = [pd.DataFrame(tokens, columns=["word", "tag"]) for tokens in sentences]
    arcs = [pd.DataFrame(tree, columns=["head", "label"]) for tree in trees]
    model = make("dependency").fit(words, arcs)
    assert model.predict(words) == make("dependency").fit(sentences, trees).predict(sentences)
    nodes, labels = KINDS["labels"].first
    model = make("labels").fit(nodes, pd.DataFrame(labels))
    assert model.score(nodes, pd.DataFrame(labels)) == model.score(nodes, labels)


def test_frames_for_classifiers():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    names = pd.Series(np.array(["setosa", "versicolor", "virginica"])[Y])
    for y in (names, names.astype("category"), names.to_numpy(), names.tolist()):
        model = classifier(tol=0.1).fit(frame, y)
        assert set(model.predict(frame)) == set(names) and model.score(frame, y) > 0.9
        assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a", "c", "d"]])


# ----- warnings ---------------------------------------------------------------------------------


def lines_of_warnings(call):
    """Where warnings of a call point; all must be in this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return {warning.filename for warning in caught}


def test_warnings_point_at_the_line_of_the_user(tmp_path):
    model = make("tagger").fit(*KINDS["tagger"].first)
    sequences, labels = KINDS["tagger"].first
    unknown = [["?"] * 4, *labels[1:]]
    parser = make("grammar").fit(TREES)
    aligner = make("aligner").fit(*KINDS["aligner"].first)
    listening = classifier(training={"callbacks": [lambda progress: None]}).fit(X, Y)
    for call in (
        lambda: make("classes", max_passes=1).set_params(tol=1e-9).fit(X, Y),
        lambda: (
            make("dependency", max_passes=1).set_params(tol=1e-9).fit(*KINDS["dependency"].first)
        ),
        lambda: cross_val_score(classifier(max_passes=1).set_params(tol=1e-9), X, Y, cv=2),
        lambda: model.score(sequences, unknown),
        lambda: classifier(tol=0.1).fit(X, Y).score(X[:2], [7, 0]),
        lambda: parser.predict([["x", "y"]]),
        lambda: parser.predict_k([["x", "y"]], 2),
        lambda: aligner.predict([("AC#", "A")]),
        lambda: aligner.score([("AC#", "A")], [("AC#", "A--")]),
        lambda: make("tagger", constraints=[("x", "y")]).fit(sequences, labels),
        lambda: listening.save(tmp_path / "m"),
    ):
        assert lines_of_warnings(call) == {__file__}, inspect.getsource(call)


def test_warnings_of_a_solver_point_at_its_caller():
    class Wrong(mm.Problem):
        """An oracle that finds anything but the most violated output."""

        n_features = 2

        def joint_feature(self, x, y):
            return np.eye(2)[y] * x

        def loss(self, y, y_hat):
            return float(y != y_hat)

        def most_violated(self, x, y, w, rescaling):
            return 1 - y if w @ w == 0 else int(np.argmin(w * x))

        def predict(self, x, w):
            return int(np.argmax(w * x))

    problem = Wrong().bind([1.0, 2.0, -1.0], [0, 1, 0])
    solver = mm.solvers.SDA(max_passes=5)
    call = lambda: solver.solve(problem, mm.Formulation(), 1.0)  # noqa: E731
    assert lines_of_warnings(call) == {__file__}
