"""TreeLabeler and PartLocator: trees given and learned, files, and what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import maxmargin as mm
from maxmargin.datasets import FACE_PARTS, FACE_TREE, make_faces

STAR = [(0, 1), (0, 2), (2, 3)]


@pytest.fixture(scope="module")
def weather():
    """Four nodes with label sets of their own; neighbours in STAR agree more often than not."""
    rng = np.random.default_rng(0)
    sets = [["dry", "wet"], [1, 2, 3], ["low", "high"], [True, False]]
    n = 120
    codes = np.empty((n, 4), int)
    codes[:, 0] = rng.integers(0, 2, n)
    for parent, child in STAR:
        keep = rng.random(n) < 0.85
        guess = rng.integers(0, len(sets[child]), n)
        codes[:, child] = np.where(keep, codes[:, parent] % len(sets[child]), guess)
    nodes = [np.eye(len(s))[codes[:, v]] + 0.8 * rng.normal(size=(n, len(s)))
             for v, s in enumerate(sets)]  # fmt: skip
    Y = [[sets[v][k] for v, k in enumerate(row)] for row in codes]
    return nodes, Y


@pytest.fixture(scope="module")
def faces():
    return make_faces(n_train=40, n_test=20, size=18, noise=0.15, random_state=1)


@pytest.fixture(scope="module")
def finder(faces):
    model = mm.PartLocator(C=0.02, tree=FACE_TREE, patch=5, tol=0.01, random_state=0)
    return model.fit(faces.X_train, faces.y_train)


def test_labels_of_their_own(weather):
    nodes, Y = weather
    model = mm.TreeLabeler(C=0.5, tree=STAR, random_state=0).fit(nodes, Y)
    assert model.result_.converged
    assert [c.tolist() for c in model.classes_] == [
        ["dry", "wet"], [1, 2, 3], ["high", "low"], [False, True]
    ]  # fmt: skip
    found = model.predict(nodes)
    assert found.shape == (120, 4) and {type(k) for k in found[0]} == {str, int, bool}
    assert model.score(nodes, Y) > 0.85
    assert model.score(nodes, Y) == pytest.approx(1 - model.losses(nodes, Y).mean())
    assert model.tree_ == STAR
    with pytest.raises(AttributeError, match="templates_"):
        model.templates_  # noqa: B018


def test_sparse_nodes_are_the_same_data(weather):
    nodes, Y = weather
    options = {"C": 0.5, "tree": STAR, "tol": 1e-5, "random_state": 0}
    dense = mm.TreeLabeler(**options).fit(nodes, Y)
    sparse = mm.TreeLabeler(**options).fit([sp.csr_matrix(x) for x in nodes], Y)
    assert sparse.result_.primal == pytest.approx(dense.result_.primal, rel=2e-5)
    assert np.mean(sparse.predict(nodes) == dense.predict(nodes)) > 0.98


def test_the_tree_helps_and_can_be_learned(weather):
    """Nodes 1 and 3 are connected with what they depend on, with no edge given."""
    nodes, Y = weather
    model = mm.TreeLabeler(C=0.5, random_state=0).fit(nodes, Y)
    assert {frozenset(edge) for edge in model.tree_} == {frozenset(edge) for edge in STAR}


def test_features_of_edges(weather):
    """An edge feature that says whether neighbours agree; its order is that of ``tree``."""
    rng = np.random.default_rng(2)
    n = 80
    codes = rng.integers(0, 2, (n, 3))
    tree = [(2, 1), (1, 0)]
    agree = np.stack([2.0 * (codes[:, a] == codes[:, b]) - 1 for a, b in tree], axis=1)[:, :, None]
    X = {"nodes": 0.1 * rng.normal(size=(n, 3, 1)), "edges": agree}
    X["nodes"][:, 0, 0] += 2.0 * codes[:, 0] - 1.0
    model = mm.TreeLabeler(C=1.0, tree=tree, random_state=0).fit(X, codes)
    assert model.score(X, codes) == 1.0
    with pytest.raises(ValueError, match="expected 1 features of each edge, found none"):
        model.predict(X["nodes"])
    with pytest.raises(ValueError, match="tree must say which edges"):
        mm.TreeLabeler().fit(X, codes)


def test_a_single_node_is_a_classifier():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(50, 4)), rng.integers(0, 3, 50)
    tree = mm.TreeLabeler(tol=1e-6, random_state=0).fit(X[:, None], y[:, None])
    flat = mm.MulticlassSVM(tol=1e-6, random_state=0).fit(X, y)
    assert tree.result_.primal == pytest.approx(flat.result_.primal, rel=3e-6)


# ----- positions --------------------------------------------------------------------------------


def test_positions(finder, faces):
    found = finder.predict(faces.X_test)
    assert found.shape == faces.y_test.shape and found.dtype == np.int64
    deviation = np.hypot(*np.moveaxis(found - faces.y_test, 2, 0)).mean() / 18 * 100
    assert finder.score(faces.X_test, faces.y_test) == pytest.approx(-deviation)
    assert deviation < 6.0  # a position drawn at random is off by ten times as much
    assert finder.templates_.shape == (8, 1, 5, 5)
    assert finder.tree_ == sorted(FACE_TREE, key=lambda edge: edge[1])
    assert clone(finder).get_params()["patch"] == 5


def test_images_of_different_sizes_with_channels(finder, faces):
    """A face on a larger ground, given twice over as two channels, is found where it is."""
    images = [np.pad(x, ((0, k % 3), (0, k % 4)), mode="edge") for k, x in enumerate(faces.X_train)]
    images = [np.stack([x, -x], axis=2) for x in images]
    model = clone(finder).set_params(tol=0.05).fit(images, faces.y_train)
    assert model.templates_.shape == (8, 2, 5, 5)
    assert model.losses(images, faces.y_train).mean() < 6.0
    with pytest.raises(ValueError, match=r"image 0 has shape \(18, 18\).* 2 channels"):
        model.predict(faces.X_test)


def test_the_size_of_an_example(faces):
    eyes = mm.PartLocator(C=1e-3, patch=3, size=(1, 2), tol=0.1)
    eyes.fit(faces.X_train, faces.y_train)
    between = np.sqrt(((faces.y_test[:, 1] - faces.y_test[:, 2]) ** 2).sum(axis=1))
    found = eyes.predict(faces.X_test)
    far = np.sqrt(((found - faces.y_test) ** 2).sum(axis=2)).mean(axis=1)
    assert np.allclose(eyes.losses(faces.X_test, faces.y_test), 100 * far / between)
    with pytest.raises(ValueError, match="size names nodes 0 and 9"):
        eyes.set_params(size=(0, 9)).fit(faces.X_train, faces.y_train)


def test_learned_tree_of_positions():
    """Part 2 follows part 0, and part 1 follows part 2 closely."""
    rng = np.random.default_rng(0)
    Y = np.empty((30, 3, 2), int)
    Y[:, 0] = rng.integers(2, 8, (30, 2))
    Y[:, 2] = Y[:, 0] + rng.integers(-1, 2, (30, 2))
    Y[:, 1] = Y[:, 2] + rng.integers(0, 2, (30, 2))
    model = mm.PartLocator(patch=1, tol=0.2).fit(np.zeros((30, 12, 12)), Y)
    assert model.tree_ == [(2, 1), (0, 2)]


def test_slack_rescaling(faces):
    options = {"patch": 3, "C": 0.01, "tol": 0.05, "rescaling": "slack"}
    for loss in ("hamming", "deviation"):
        model = mm.PartLocator(loss=loss, random_state=0, **options)
        assert model.fit(faces.X_train[:8], faces.y_train[:8]).result_.converged


def test_warm_start(faces):
    model = mm.PartLocator(C=0.001, patch=3, warm_start=True, tol=0.02, random_state=0).fit(
        faces.X_train, faces.y_train
    )
    calls = model.result_.n_oracle_calls
    assert model.fit(faces.X_train, faces.y_train).result_.n_oracle_calls < calls


# ----- files, data, errors ----------------------------------------------------------------------


def test_save_and_load(finder, faces, weather, tmp_path):
    finder.save(tmp_path / "faces.mm")
    loaded = mm.load(tmp_path / "faces.mm")
    assert np.array_equal(loaded.predict(faces.X_test), finder.predict(faces.X_test))
    assert loaded.tree_ == finder.tree_
    nodes, Y = weather
    model = mm.TreeLabeler(tree=STAR, random_state=0, tol=0.01).fit(nodes, Y)
    model.save(tmp_path / "weather.mm")
    loaded = mm.load(tmp_path / "weather.mm")
    assert np.array_equal(loaded.predict(nodes), model.predict(nodes))
    assert loaded.get_params() == model.get_params()
    assert loaded.score(nodes, Y) == model.score(nodes, Y)


def test_faces():
    faces = make_faces(n_train=5, n_test=3, size=20)
    again = make_faces(n_train=5, n_test=3, size=20)
    assert all(np.array_equal(a, b) for a, b in zip(faces, again, strict=True))
    assert faces.X_test.shape == (3, 20, 20) and faces.y_train.shape == (5, len(FACE_PARTS), 2)
    assert faces.y_train.min() >= 0 and faces.y_train.max() < 20
    for arguments in ({"n_train": 0}, {"size": 4}, {"noise": -1.0}):
        with pytest.raises(ValueError, match="expected"):
            make_faces(**arguments)


@pytest.mark.parametrize(
    ("options", "change", "message"),
    [
        ({"tree": [(0, 1)]}, {}, "1 edges reach 2 of 4 nodes"),
        ({"tree": [-1, 0, 1]}, {}, "edge 0 of the tree is -1; expected a pair of nodes"),
        ({}, {"Y": [["a", "b"], ["a", np.nan]]}, "example 1, node 1: nan is not a label"),
        ({}, {"Y": [[{"a", "b"}] * 4] * 120}, "y says nothing: any label of any node of all 120"),
        ({"loss": "deviation"}, {}, "loss must be .* got 'deviation'"),
        ({}, {"Y": [["a"] * 4] * 120}, "every node has a single label"),
        ({}, {"Y": [["a", "b"], ["a"]]}, r"y\[1\] has 1 labels, but y\[0\] has 2"),
        ({}, {"Y": []}, "at least one example"),
        ({}, {"X": np.zeros((120, 4))}, r"X has shape \(120, 4\)"),
        ({}, {"X": np.zeros((120, 3, 2))}, "X has 3 nodes; expected 4"),
        ({}, {"X": np.zeros((7, 4, 2))}, "X has 7 examples at node 0, but 120 are expected"),
        ({}, {"X": np.full((120, 4, 2), np.nan)}, "features of node 0 have a NaN or infinite"),
        ({}, {"X": {"node": 1}}, "keys 'nodes' and 'edges'"),
        ({}, {"X": [[1, 2], [3, 4]]}, "one matrix for each node"),
    ],
)
def test_bad_labels(weather, options, change, message):
    data = {"X": weather[0], "Y": weather[1]} | change
    with pytest.raises(ValueError, match=message):
        mm.TreeLabeler(**options).fit(data["X"], data["Y"])


@pytest.mark.parametrize(
    ("options", "change", "message"),
    [
        ({"patch": 0}, {}, "patch must be a whole number from 1 to 32768, got 0"),
        ({}, {"Y": np.zeros((2, 3))}, r"y has shape \(2, 3\); expected \(2, n_nodes, 2\)"),
        ({}, {"Y": np.full((2, 3, 2), np.nan)}, r"y\[0\] is not finite"),
        ({}, {"Y": np.full((2, 3, 2), 9)}, r"part 0 of example 0 is at \(9, 9\)"),
        ({}, {"X": [np.zeros((5, 5)), np.zeros(5)]}, r"image 1 has shape \(5,\)"),
        ({}, {"X": [np.zeros((5, 5)), np.full((5, 5), np.inf)]}, "image 1 has a NaN or infinite"),
        ({}, {"X": []}, "at least one image"),
        ({"size": -1.0}, {}, "a positive number, got -1.0"),
    ],
)
def test_bad_images(options, change, message):
    data = {"X": np.zeros((2, 5, 5)), "Y": np.zeros((2, 3, 2))} | change
    with pytest.raises(ValueError, match=message):
        mm.PartLocator(**options).fit(data["X"], data["Y"])
