"""Known labels at prediction: the best of all outputs that agree, against lists of all outputs."""

import itertools

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.problems.dependency.problem import check_trees
from maxmargin.problems.dependency.trees import crossing_trees

LABELS = ["B-X", "I-X", "O"]
TREE = [(0, 1), (1, 2)]


def agrees(output, known):
    """Whether an output is one of those that are left."""
    if known is None:
        return True
    pairs = zip(output, known, strict=True)
    return all(k is None or (y in k if isinstance(k, (set, frozenset)) else y == k)
               for y, k in pairs)  # fmt: skip


def draw_known(rng, truth, labels_of):
    """For each token nothing, its label, or a set with it."""
    known = []
    for t, label in enumerate(truth):
        kind = rng.integers(3)
        others = [other for other in labels_of(t) if rng.random() < 0.4]
        known.append([None, label, frozenset([label, *others])][kind])
    return known


def check(found, ranked, listed, known, k):
    """The prediction and the k best against a list of (score, output)."""
    left = sorted((s for s, y in listed if agrees(y, known)), reverse=True)
    scores = {y: s for s, y in listed}
    assert agrees(found, known)
    assert scores[tuple(found)] == pytest.approx(left[0], abs=1e-9)
    assert len(ranked) == min(k, len(left))
    assert len({tuple(y) for y, _ in ranked}) == len(ranked)
    for (y, score), expected in zip(ranked, left, strict=False):
        assert agrees(y, known)
        assert score == pytest.approx(expected, abs=1e-9) == scores[tuple(y)]


# ----- sequences ----------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[None, "bio"])
def tagger(request):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 4)) for n in (3, 2, 4, 1)]
    y = [["B-X", "I-X", "O"], ["O", "B-X"], ["O", "O", "B-X", "I-X"], ["O"]]
    options = {"constraints": request.param, "boundary_weights": True, "max_passes": 1}
    model = mm.SequenceTagger(solver="perceptron", random_state=0, **options).fit(X, y)
    model.coef_ = rng.normal(size=model.coef_.shape)
    return model, X, y


def obeys(tags):
    """BIO: an I-X follows a B-X or I-X."""
    return all(tag != "I-X" or before in LABELS[:2]
               for before, tag in itertools.pairwise(["O", *tags]))  # fmt: skip


def test_sequences_against_all_labellings(tagger):
    model, X, y = tagger
    rng = np.random.default_rng(1)
    for _ in range(30):
        known = [draw_known(rng, tags, lambda t: LABELS) for tags in y]
        known[int(rng.integers(4))] = None
        found, ranked = model.predict(X, fixed=known), model.predict_k(X, 4, fixed=known)
        for i, x in enumerate(X):
            listed = [
                (float(model.score_outputs([x], [tags])[0]), tags)
                for tags in itertools.product(LABELS, repeat=len(x))
                if model.constraints is None or obeys(tags)
            ]
            check(found[i], ranked[i], listed, known[i], 4)


def test_nothing_known_of_sequences_is_a_plain_prediction(tagger):
    model, X, _ = tagger
    assert model.predict(X, fixed=[None] * len(X)) == model.predict(X)
    assert model.predict_k(X, 3, fixed=[[None] * len(x) for x in X]) == model.predict_k(X, 3)


@pytest.mark.parametrize("order", [1, 2])
def test_constraints_may_leave_nothing(order):
    rng = np.random.default_rng(0)
    X, y = [rng.normal(size=(3, 2))] * 2, [["B-X", "I-X", "O"]] * 2
    model = mm.SequenceTagger(constraints="bio", order=order, random_state=0).fit(X, y)
    assert model.predict(X, fixed=[None, [None, None, "I-X"]])[1][2] == "I-X"
    known = [None, [None, "O", "I-X"]]
    for predict in (model.predict, lambda X, fixed: model.predict_k(X, 2, fixed=fixed)):
        with pytest.raises(ValueError, match="sequence 1: no labelling"):
            predict(X, fixed=known)


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        ([["O", None, "B-X"]], "X has 4 sequences but fixed has 1"),
        ([None, None, None, ["O", "O"]], "sequence 3 has 1 tokens but 2 labels"),
        ([None, ["O", "B-Y"], None, None], "sequence 1, token 1: label 'B-Y' is not known"),
        ([None, ["O", {"O", 3}], None, None], "sequence 1, token 1: label 3 is not known"),
        ([None, [set(), None], None, None], "sequence 1, token 0: an empty set leaves no label"),
        ([None, [["O"], None], None, None], r"sequence 1, token 0: label \['O'\] is not known"),
        ("OOO", "fixed must be a list"),
        ([None, "OO", None, None], r"fixed\[1\] is 'OO', expected a sequence"),
    ],
)
def test_bad_input(tagger, fixed, message):
    model, X, _ = tagger
    with pytest.raises(ValueError, match=message):
        model.predict(X, fixed=fixed)


# ----- trees --------------------------------------------------------------------------------------


def test_nodes_against_all_labellings():
    """All labellings and their scores are the k best of all without anything known."""
    rng = np.random.default_rng(0)
    sets = [["a", "b"], [1, 2, 3], ["u", "v", "w"]]
    X = rng.normal(size=(12, 3, 2))
    y = [[labels[i % len(labels)] for labels in sets] for i in range(12)]
    model = mm.TreeLabeler(tree=TREE, random_state=0, tol=0.1).fit(X, y)
    model.coef_ = rng.normal(size=model.coef_.shape)
    everything = model.predict_k(X, 1000)
    assert len(everything[0]) == 18
    for _ in range(5):
        known = [draw_known(rng, labels, lambda t: sets[t]) for labels in y]
        known[3] = None
        found, ranked = model.predict(X, fixed=known), model.predict_k(X, 4, fixed=known)
        for i, ranking in enumerate(everything):
            listed = [(score, tuple(labels)) for labels, score in ranking]
            check(found[i], ranked[i], listed, known[i], 4)
    with pytest.raises(ValueError, match="example 2, node 1: label 'a' is not known"):
        model.predict(X, fixed=[None, None, [None, "a", None], *[None] * 9])


def test_parts_against_all_positions():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4, 3, 4)), rng.integers(0, 3, size=(4, 2, 2))
    model = mm.PartLocator(patch=3, tree=[(0, 1)], random_state=0, tol=0.5)
    model.fit(X, y)
    pixels = list(itertools.product(range(3), range(4)))
    for _ in range(5):
        model.coef_ = rng.normal(size=model.coef_.shape)
        everything = model.predict_k(X, 1000)
        assert len(everything[0]) == 144
        truth = [[tuple(part) for part in row] for row in y.tolist()]
        known = [draw_known(rng, row, lambda t: pixels) for row in truth]
        found, ranked = model.predict(X, fixed=known), model.predict_k(X, 4, fixed=known)
        for i, ranking in enumerate(everything):
            listed = [(score, tuple(map(tuple, parts.tolist()))) for parts, score in ranking]
            mine = [(tuple(map(tuple, parts.tolist())), score) for parts, score in ranked[i]]
            check(list(map(tuple, found[i].tolist())), mine, listed, known[i], 4)
    for place in ((3, 0), (0, 4), (1.5, 0), 2):
        with pytest.raises(ValueError, match=r"image 1, part 1: .* 3 x 4 pixels"):
            model.predict(X, fixed=[None, [None, place], None, None])


# ----- dependency trees ---------------------------------------------------------------------------


def all_trees(n, projective, single_root=True):
    """All trees over n tokens, with one root or any number of them."""
    bounds = np.array([0, n + 1])
    for heads in itertools.product(range(n + 1), repeat=n):
        try:
            check_trees(np.array(heads, np.int32), bounds, single_root=single_root)
        except ValueError:
            continue
        if not projective or not crossing_trees(np.array(heads, np.int32), bounds).any():
            yield heads


@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("labeled", [True, False])
def test_heads_against_all_trees(projective, labeled):
    rng = np.random.default_rng(0)
    X = [[("a", "D"), ("b", "N"), ("c", "V"), ("d", "N")][:n] for n in (4, 3)]
    heads = [[2, 3, 0, 3], [2, 0, 2]]
    arcs = [[(h, "lr"[h % 2]) for h in row] for row in heads]
    options = {"projective": projective, "labeled": labeled, "hash_bits": 10, "tol": 0.5}
    model = mm.DependencyParser(random_state=0, **options).fit(X, arcs if labeled else heads)
    model.coef_ = rng.normal(size=model.coef_.shape)
    truth = arcs if labeled else heads
    for i, x in enumerate(X):
        outputs = list(all_trees(len(x), projective))
        if labeled:
            outputs = [
                tuple(zip(tree, labels, strict=True))
                for tree in outputs
                for labels in itertools.product("lr", repeat=len(x))
            ]
        scores = model.score_outputs([x] * len(outputs), outputs).tolist()
        listed = list(zip(scores, outputs, strict=True))
        every = sorted({arc for tree in outputs for arc in tree})
        for _ in range(6):
            known = draw_known(rng, truth[i], lambda t, every=every: [
                arc for arc in every if (arc[0] if labeled else arc) != t + 1])  # fmt: skip
            found = model.predict([x], fixed=[known])
            ranked = model.predict_k([x], 4, fixed=[known])
            check(found[0], ranked[0], listed, known, 4)


def test_heads_or_labels_alone():
    X = [[("a", "D"), ("b", "N"), ("c", "V")]]
    model = mm.DependencyParser(labeled=True, hash_bits=10, random_state=0)
    model.fit(X, [[(2, "x"), (3, "y"), (0, "r")]])
    (tree,) = model.predict(X, fixed=[[3, (None, "x"), None]])
    assert tree[0][0] == 3 and tree[1][1] == "x"
    with pytest.raises(ValueError, match="sentence 0: no projective tree has allowed arcs"):
        model.predict(X, fixed=[[2, 1, None]])
    for arc, message in (
        (4, "sentence 0, word 1: 4, expected 0"),
        (2, "sentence 0, word 1: 2, expected 0"),
        ((1, "z"), "sentence 0, word 1: label 'z' is not known"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict(X, fixed=[[None, arc, None]])
