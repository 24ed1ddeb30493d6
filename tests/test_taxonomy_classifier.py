"""Classes with features: the estimator."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer

import maxmargin as mm

ANIMALS = {"cat": "mammal", "dog": "mammal", "eel": "fish", "ray": "fish"}
ANIMALS |= {"mammal": "animal", "fish": "animal"}


def test_the_identity_is_the_plain_multiclass_problem():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)
    plain = mm.MulticlassSVM(tol=1e-6, random_state=0).fit(X, y)
    described = mm.MulticlassSVM(class_features=np.eye(3), tol=1e-6, random_state=0).fit(X, y)
    assert described.result_.primal == pytest.approx(plain.result_.primal, rel=2e-6)
    assert np.allclose(described.coef_, plain.coef_, atol=2e-2)


@pytest.fixture(scope="module")
def zoo():
    """Animals in the plane: what is told apart first is the kind, then the animal."""
    rng = np.random.default_rng(1)
    names = np.array(["cat", "dog", "eel", "ray"])
    centres = np.array([[3.0, 1.0], [3.0, -1.0], [-3.0, 1.0], [-3.0, -1.0]])
    y = np.repeat(names, 20)
    return np.repeat(centres, 20, axis=0) + 0.3 * rng.normal(size=(80, 2)), y


def test_taxonomy(zoo):
    X, y = zoo
    model = mm.MulticlassSVM(taxonomy=ANIMALS, loss="taxonomy", random_state=0).fit(X, y)
    assert model.result_.converged and model.score(X, y) == 1.0
    assert model.classes_.tolist() == model.seen_classes_.tolist() == ["cat", "dog", "eel", "ray"]
    scores = X @ model.coef_.T + model.intercept_
    assert np.allclose(scores, model.decision_function(X))
    assert model.coef_.shape == (4, 2) and model.result_.w.shape == (3 * 6,)
    assert clone(model).get_params()["loss"] == "taxonomy"


def test_a_class_without_examples_is_predicted(zoo):
    """Attributes (kind, side) of the class left out are known from the other three."""
    X, y = zoo
    attributes = {"cat": [1, 1], "dog": [1, -1], "eel": [-1, 1], "ray": [-1, -1]}
    seen = y != "ray"
    model = mm.MulticlassSVM(class_features=attributes, random_state=0).fit(X[seen], y[seen])
    assert model.seen_classes_.tolist() == ["cat", "dog", "eel"]
    assert np.mean(model.predict(X[~seen]) == "ray") > 0.9
    known = model.predict(X, classes=model.seen_classes_)
    assert "ray" not in known and np.mean(known[seen] == y[seen]) > 0.9
    with pytest.raises(ValueError, match="classes has 'cow'"):
        model.predict(X, classes=["cow"])
    with pytest.raises(ValueError, match="at least one class"):
        model.predict(X, classes=[])


def test_descriptions_and_taxonomy_together(zoo):
    X, y = zoo
    texts = ["a furry pet", "a furry friend", "a long fish", "a flat fish", "a dark bird"]
    names = ["cat", "dog", "eel", "ray", "crow"]
    known = mm.ClassFeatures(names, TfidfVectorizer().fit_transform(texts), identity=True)
    model = mm.MulticlassSVM(taxonomy=ANIMALS, class_features=known, random_state=0).fit(X, y)
    assert model.classes_.tolist() == ["cat", "dog", "eel", "ray"]  # crows are in one of them only
    assert model.score(X, y) == 1.0
    alone = mm.MulticlassSVM(class_features=known, random_state=0).fit(X, y)
    assert alone.classes_.tolist() == sorted(names)


def test_warm_start_notices_other_features(zoo):
    X, y = zoo
    model = mm.MulticlassSVM(taxonomy=ANIMALS, warm_start=True, random_state=0).fit(X, y)
    calls = model.result_.n_oracle_calls
    assert model.fit(X, y).result_.n_oracle_calls < calls
    other = mm.Taxonomy(ANIMALS).with_shared_weight(0.1)
    assert model.set_params(taxonomy=other).fit(X, y).result_.primal != pytest.approx(0)


@pytest.mark.parametrize("kind", ["taxonomy", "features", "similarity"])
def test_save_and_load(zoo, tmp_path, kind):
    X, y = zoo
    names = ["cat", "dog", "eel", "ray"]
    options = {
        "taxonomy": {"taxonomy": mm.Taxonomy(ANIMALS, weights={"fish": 2.0}), "loss": "taxonomy"},
        "features": {"class_features": mm.ClassFeatures(names, np.eye(4)[:, :3])},
        "similarity": {"class_features": mm.ClassFeatures.from_similarity(names, np.eye(4) + 1)},
    }[kind]
    model = mm.MulticlassSVM(random_state=0, **options).fit(X[:60], y[:60])
    model.save(tmp_path / "zoo.mm")
    loaded = mm.load(tmp_path / "zoo.mm")
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
    assert loaded.seen_classes_.tolist() == names[:3] and loaded.classes_.tolist() == names
    again = loaded.fit(X[:60], y[:60])
    assert np.allclose(again.coef_, model.coef_, atol=1e-2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "taxonomy"}, "loss='taxonomy' needs a taxonomy"),
        ({"loss": "tree"}, "'zero_one', 'taxonomy' or a cost matrix, got 'tree'"),
        ({"taxonomy": {"cat": "mammal"}}, "taxonomy has no class 'dog'"),
        ({"taxonomy": ["cat"]}, "must be a maxmargin.Taxonomy or a mapping.*got 'list'"),
        ({"class_features": {"cat": [1.0]}}, "class 'dog' has no features"),
        ({"class_features": np.eye(3)}, r"shape \(3, 3\), but y has 4 classes"),
        ({"class_features": np.zeros((4, 0))}, "no features that tell them apart"),
        ({"taxonomy": ANIMALS | {"cow": "mammal"}, "loss": 1 - np.eye(4)}, "5 classes are descri"),
        ({"class_features": {"cat": [1], "dog": [1], "eel": [1], "ray": [1], 5: [1]}}, "kinds"),
    ],
)
def test_bad_descriptions(zoo, options, message):
    with pytest.raises(ValueError, match=message):
        mm.MulticlassSVM(**options).fit(*zoo)


@pytest.mark.parametrize("kind", ["flat", "taxonomy"])
def test_the_k_best_classes(zoo, kind):
    X, y = zoo
    options = {"taxonomy": ANIMALS} if kind == "taxonomy" else {}
    model = mm.MulticlassSVM(C=1.0, random_state=0, **options).fit(X, y)
    scores = model.decision_function(X).reshape(X.shape[0], -1)
    for k in (1, 3, 9):
        for row, best, ranked in zip(scores, model.predict(X), model.predict_k(X, k), strict=True):
            assert ranked[0][0] == best
            labels = [label for label, _ in ranked]
            assert len(set(labels)) == len(labels) == min(k, len(row))
            assert [score for _, score in ranked] == sorted(row, reverse=True)[:k]
            places = np.searchsorted(model.classes_, labels)
            assert row[places].tolist() == [score for _, score in ranked]
    few = model.predict_k(X, 9, classes=model.classes_[1:3])
    for ranked, best in zip(few, model.predict(X, classes=model.classes_[1:3]), strict=True):
        assert ranked[0][0] == best
        assert {label for label, _ in ranked} == set(model.classes_[1:3].tolist())
    with pytest.raises(ValueError, match="which the model does not know"):
        model.predict_k(X, 2, classes=["unicorn"])
    with pytest.raises(ValueError, match="k must be a whole number"):
        model.predict_k(X, 0)
