"""Taxonomies and features of classes: what they hold, how they are read, and what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import maxmargin as mm
from conftest import find_data
from maxmargin.formats import read_taxonomy

ANIMALS = {"cat": "mammal", "dog": "mammal", "eel": "fish", "mammal": "animal", "fish": "animal"}


def random_tree(rng, n):
    """Parents of nodes 1..n - 1; node 0 is the root."""
    return {v: int(rng.integers(0, v)) for v in range(1, n)}


def walk_up(parents, node):
    """A node and all above it, by the definition."""
    path = [node]
    while path[-1] in parents:
        path.append(parents[path[-1]])
    return path


def height(parents, node):
    return max((1 + height(parents, v) for v, above in parents.items() if above == node), default=0)


@given(st.integers(0, 2**32 - 1), st.integers(2, 12))
def test_features_and_losses_of_random_trees(seed, n):
    parents = random_tree(np.random.default_rng(seed), n)
    taxonomy = mm.Taxonomy(parents)
    leaves = [v for v in range(n) if v not in parents.values()]
    assert sorted(taxonomy.classes) == leaves
    features, nodes = taxonomy.features(leaves)
    losses = taxonomy.losses(leaves)
    for a, leaf in enumerate(leaves):
        above = set(walk_up(parents, leaf))
        assert {nodes[c] for c in features[a].indices} == above & set(nodes)
        for b, other in enumerate(leaves):
            first = next(v for v in walk_up(parents, leaf) if v in walk_up(parents, other))
            assert losses[a, b] == height(parents, first)
    dropped = set(range(n)) - set(nodes)
    for v in dropped:
        assert sum(v in walk_up(parents, leaf) for leaf in leaves) in (0, len(leaves))


def test_a_graph_with_several_parents():
    """A class with two parents has the features of both; the lowest common ancestor counts."""
    taxonomy = mm.Taxonomy(
        {"bat": ["mammal", "flyer"], "hawk": ["bird", "flyer"], "cow": "mammal"}
        | {"bird": "animal", "mammal": "animal", "flyer": "animal"}
    )
    features, nodes = taxonomy.features(["bat", "hawk", "cow"])
    assert set(nodes) == {"bat", "hawk", "cow", "mammal", "flyer", "bird"}
    assert {nodes[c] for c in features[0].indices} == {"bat", "mammal", "flyer"}
    assert taxonomy.losses(["bat", "hawk", "cow"]).tolist() == [[0, 1, 1], [1, 0, 2], [1, 2, 0]]


def test_weights_of_nodes():
    taxonomy = mm.Taxonomy(ANIMALS, weights={"mammal": 0.5, "fish": 0.0})
    features, nodes = taxonomy.features(["cat", "eel"])
    assert dict(zip(nodes, features.toarray()[0], strict=True)) == {
        "mammal": 0.5,
        "cat": 1,
        "eel": 0,
    }


@given(st.integers(0, 2**32 - 1), st.integers(2, 12))
def test_balanced_weights_of_random_trees(seed, n):
    """By default no leaf has more in common with the leaves, itself included, than another."""
    parents = random_tree(np.random.default_rng(seed), n)
    taxonomy = mm.Taxonomy(parents)
    features, nodes = taxonomy.features()
    everyone = (features @ features.T).toarray().sum(axis=1)
    if features.shape[0] > 1:
        above_all = [v for v in range(n) if v not in nodes]
        rest = sum(taxonomy.weights[v] ** 2 * features.shape[0] for v in above_all)
        assert np.allclose(everyone + rest, 1.0)


def test_children_of_one_root_are_plain_classes():
    features, _ = mm.Taxonomy(dict.fromkeys("abc", "top")).features()
    assert np.array_equal(features.toarray(), np.eye(3))


def test_balanced_weights():
    """The square root of step / (height of the tree * number of classes below)."""
    weights = mm.Taxonomy(ANIMALS).weights
    expected = {"mammal": 1 / 4, "cat": 1 / 2, "dog": 1 / 2, "fish": 1 / 2, "eel": 1 / 2}
    assert weights == pytest.approx({k: v**0.5 for k, v in expected.items()} | {"animal": 0.0})
    features, _ = mm.Taxonomy(ANIMALS, weights={}).features()
    assert set(features.data) == {1.0}


def test_shared_weight_counts_a_chain_of_nodes_once():
    taxonomy = mm.Taxonomy(ANIMALS).with_shared_weight(0.3)
    features, _ = taxonomy.features(["cat", "dog", "eel"])
    products = (features @ features.T).toarray()
    assert np.allclose(products, [[1.09, 0.09, 0.0], [0.09, 1.09, 0.0], [0.0, 0.0, 1.0]])
    with pytest.raises(ValueError, match="shared weight must be finite and >= 0, got -1"):
        taxonomy.with_shared_weight(-1)


def test_several_roots_are_as_far_apart_as_can_be():
    forest = mm.Taxonomy({"a1": "a", "a2": "a", "b1": "b"})
    assert forest.losses(["a1", "a2", "b1"]).tolist() == [[0, 1, 2], [1, 0, 2], [2, 2, 0]]


def test_classes_at_inner_nodes():
    taxonomy = mm.Taxonomy(ANIMALS, classes={"any mammal": "mammal", "a cat": "cat"})
    assert taxonomy.losses().tolist() == [[0, 1], [1, 0]]


def test_mean_loss():
    taxonomy = mm.Taxonomy(ANIMALS)
    assert taxonomy.mean_loss(["cat", "dog", "eel"], np.array(["cat", "cat", "cat"])) == 1.0
    with pytest.raises(ValueError, match="no class 'cow'"):
        taxonomy.mean_loss(["cat"], ["cow"])
    with pytest.raises(ValueError, match="2 true classes and 1 predictions"):
        taxonomy.mean_loss(["cat", "dog"], ["cat"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({},), "at least one node"),
        (({"a": "b", "b": "c", "c": "a"},), "cycle: node 'a'"),
        ((ANIMALS, {"cow": "cow"}), "class 'cow' is at node 'cow'"),
        ((ANIMALS, {"x": "cat", "y": "cat"}), "classes 'x' and 'y' are both at node 'cat'"),
        ((ANIMALS, None, {"cow": 1.0}), "weights has node 'cow'"),
        ((ANIMALS, None, {"cat": np.nan}), "weight of node 'cat' is nan"),
    ],
)
def test_bad_taxonomies(arguments, message):
    with pytest.raises(ValueError, match=message):
        mm.Taxonomy(*arguments)


# ----- files ------------------------------------------------------------------------------------


def test_read(tmp_path):
    path = tmp_path / "tree.tsv"
    path.write_text("node\tparent\tleaf_label\nx\tROOT\t\ny\tx\t3\nz\tx\t10\nz\tw\t10\nw\t\t\n")
    taxonomy = read_taxonomy(path)
    assert taxonomy.classes == {3: "y", 10: "z"}
    assert taxonomy.parents == {"x": ("ROOT",), "y": ("x",), "z": ("x", "w"), "w": (), "ROOT": ()}
    path.write_text("b\ta\nc\ta\n")
    assert read_taxonomy(path).classes == {"b": "b", "c": "c"}
    path.write_text("b\ta\tblue\nc\ta\t7\r\n")
    assert read_taxonomy(path).classes == {"blue": "b", "7": "c"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\n", ":1: expected node, parent"),
        ("b\ta\nc\td\te\tf\n", ":2: expected node, parent"),
        ("b\ta\t1\nb\tc\t2\n", ":2: node 'b' has class '2' here and '1' in line 1"),
        ("b\ta\t1\nc\ta\t1\n", ":2: class '1' is at node 'c' here and at 'b' in line 1"),
        ("\n", "expected at least one node"),
        ("a\tb\nb\ta\n", "has a cycle"),
    ],
)
def test_bad_files(tmp_path, text, message):
    path = tmp_path / "tree.tsv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        read_taxonomy(path)
    assert "tree.tsv" in str(caught.value)


def test_files_of_the_benchmarks():
    newsgroups = read_taxonomy(find_data("newsgroups20/hierarchy.tsv"))
    assert len(newsgroups.parents) == 39 and sorted(newsgroups.classes) == list(range(20))
    images = read_taxonomy(find_data("taxonomy/imclef07a_hierarchy.tsv"))
    assert len(images.parents) == 97 and sorted(images.classes) == list(range(63))
    assert np.unique(images.losses()).tolist() == [0, 1, 2, 3]


# ----- class features ---------------------------------------------------------------------------


def test_similarity_becomes_features():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 3))
    known = mm.ClassFeatures.from_similarity(list("abcde"), root @ root.T)
    assert known.matrix.shape == (5, 3)
    assert np.allclose((known.matrix @ known.matrix.T).toarray(), root @ root.T)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mm.ClassFeatures(["a", "b"], np.ones((3, 2))), "2 classes but 3 rows"),
        (lambda: mm.ClassFeatures(["a", "a"], np.ones((2, 2))), "class 'a' has more than one"),
        (
            lambda: mm.ClassFeatures(["a", "b"], [[1, 0], [0, np.inf]]),
            "class 'b' have a NaN or infinite value",
        ),
        (lambda: mm.ClassFeatures.from_mapping({"a": [1, 2], "b": [1]}), "'b' has 1 features"),
        (
            lambda: mm.ClassFeatures.from_similarity("ab", [[1, 2], [2, 1]]),
            "not positive semidefinite: its smallest eigenvalue is -1",
        ),
        (
            lambda: mm.ClassFeatures.from_similarity("ab", [[1, 0.5], [0.4, 1]]),
            r"not symmetric: entry \[0, 1\] is 0.5",
        ),
        (lambda: mm.ClassFeatures.from_similarity("ab", np.ones((2, 3))), "square matrix"),
    ],
)
def test_bad_class_features(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_identity_tells_equal_classes_apart():
    known = mm.ClassFeatures(["a", "b"], sp.csr_matrix(np.ones((2, 1))), identity=True)
    assert known.matrix.toarray().tolist() == [[1, 1, 0], [1, 0, 1]]
    assert known.rows(["b"]).toarray().tolist() == [[1, 0, 1]]
    with pytest.raises(ValueError, match="class 'c' has no features"):
        known.rows(["c"])
