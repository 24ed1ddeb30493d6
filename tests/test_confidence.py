"""Margins and probabilities against lists of all outputs; calibration, files and errors."""

import itertools
import re

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.metrics import log_loss

import maxmargin as mm
from every_estimator import KINDS, make
from maxmargin.estimators.abilities.confidence import Calibration
from maxmargin.estimators.examples import examples_at, n_examples_of
from maxmargin.estimators.trees.tree_labels import tree_inputs_at
from maxmargin.features import PackedSequences, WindowFeatures, words_templates
from maxmargin.formats import TokenColumns
from test_known_labels import LABELS, agrees, all_trees, draw_known, obeys

SCALES = (1.0, 1e-9, 1e5)  # of weights; the last would overflow any exponential
CALIBRATED = (
    "classes", "described", "kernel classes", "kernel tagger", "tagger", "higher-order tagger",
    "dependency", "labels", "grammar",
)  # fmt: skip


def expected(listed, position, choices, temperature):
    """Margins and probabilities at a position, from all (score, output)."""
    scores = np.array([score for score, _ in listed])
    total = logsumexp(scores / temperature)
    margins, shares = [], []
    for choice in choices:
        has = np.array([output[position] == choice for _, output in listed])
        if not has.any():
            margins.append(-np.inf)
        else:
            margins.append(scores[has].max() - scores[~has].max(initial=-np.inf))
        shares.append(np.exp(logsumexp(scores[has] / temperature) - total) if has.any() else 0.0)
    return np.array(margins), np.array(shares)


def check(listed, margins, shares, choices_of, temperature):
    """Rows of margins and probabilities of an example, for the choices of each position."""
    largest = max(abs(score) for score, _ in listed) + 1e-300
    for t in range(len(listed[0][1])):
        wanted_margins, wanted_shares = expected(listed, t, choices_of(t), temperature)
        mine = np.ravel(margins[t])
        assert np.array_equal(np.isinf(mine), np.isinf(wanted_margins))
        finite = np.isfinite(mine)
        np.testing.assert_allclose(
            mine[finite], wanted_margins[finite], rtol=1e-9, atol=1e-10 * largest
        )
        assert np.array_equal(mine[~finite], wanted_margins[~finite])
        found = np.ravel(shares[t])
        np.testing.assert_allclose(found, wanted_shares, rtol=1e-6, atol=1e-9)
        assert found.sum() == pytest.approx(1.0, abs=1e-12)


def set_temperature(model, temperature):
    model.calibration_ = Calibration(temperature, 0.0, 1)


# ----- against all outputs ------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes(scale, n_classes):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 3)), np.arange(8) % n_classes
    model = mm.MulticlassSVM(random_state=0).fit(X, y)
    model.result_.w[:] = scale * rng.normal(size=model.result_.w.shape)
    set_temperature(model, 0.7)
    margins, shares = model.predict_margins(X), model.predict_proba(X)
    assert margins.shape == shares.shape == (8, n_classes)
    for i, scores in enumerate(model._scores(X)):
        listed = [(float(score), (k,)) for k, score in enumerate(scores)]
        check(listed, margins[i : i + 1], shares[i : i + 1], lambda t: range(n_classes), 0.7)
    assert np.array_equal(margins.argmax(axis=1), model.predict(X))
    if n_classes == 2:
        np.testing.assert_allclose(margins[:, 1], model.decision_function(X), atol=1e-6 * scale)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("constraints", [None, "bio"])
def test_sequences(scale, order, constraints):
    rng = np.random.default_rng(order)
    X = [rng.normal(size=(n, 4)) for n in (3, 2, 5, 1)]
    y = [["B-X", "I-X", "O"], ["O", "B-X"], ["O", "O", "B-X", "I-X", "I-X"], ["O"]]
    options = {"constraints": constraints, "boundary_weights": True, "max_passes": 1}
    if order > 1:
        options["transition_features"] = [1]
    shape = {"transitions": order, "emissions": max(order - 2, 0)}
    model = mm.SequenceTagger(solver="perceptron", order=shape, random_state=0, **options)
    model.fit(X, y)
    model.coef_ = scale * rng.normal(size=model.coef_.shape)
    set_temperature(model, 0.5)
    for known in (None, [draw_known(rng, tags, lambda t: LABELS) for tags in y]):
        margins, shares = model.predict_margins(X, known), model.predict_proba(X, known)
        for i, x in enumerate(X):
            outputs = [
                tags
                for tags in itertools.product(LABELS, repeat=len(x))
                if (constraints is None or obeys(tags)) and agrees(tags, known and known[i])
            ]
            scores = model.score_outputs([x] * len(outputs), outputs).tolist()
            listed = list(zip(scores, outputs, strict=True))
            check(listed, margins[i], shares[i], lambda t: LABELS, 0.5)


@pytest.mark.parametrize("scale", SCALES)
def test_nodes(scale):
    rng = np.random.default_rng(0)
    sets = [["a", "b"], [1, 2, 3], ["u", "v", "w"], [True, False]]
    X = rng.normal(size=(6, 4, 2))
    y = [[labels[i % len(labels)] for labels in sets] for i in range(6)]
    model = mm.TreeLabeler(tree=[(0, 1), (1, 2), (1, 3)], random_state=0, tol=0.1).fit(X, y)
    model.coef_ = scale * rng.normal(size=model.coef_.shape)
    set_temperature(model, 2.0)
    everything = model.predict_k(X, 1000)
    for known in (None, [draw_known(rng, labels, lambda t: sets[t]) for labels in y]):
        margins, shares = model.predict_margins(X, known), model.predict_proba(X, known)
        assert [table.shape for table in shares] == [(6, len(labels)) for labels in sets]
        for i, ranking in enumerate(everything):
            listed = [
                (score, tuple(labels))
                for labels, score in ranking
                if agrees(tuple(labels), known and known[i])
            ]
            rows = [[table[i] for table in tables] for tables in (margins, shares)]
            check(listed, *rows, lambda t: model.classes_[t].tolist(), 2.0)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("labeled", [True, False])
@pytest.mark.parametrize("single_root", [True, False])
def test_heads(scale, projective, labeled, single_root):
    rng = np.random.default_rng(0)
    X = [[("a", "D"), ("b", "N"), ("c", "V"), ("d", "N")][:n] for n in (4, 3, 1)]
    heads = [[2, 3, 0, 3], [2, 0, 2], [0]]
    arcs = [[(h, "lr"[h % 2]) for h in row] for row in heads]
    options = {"projective": projective, "labeled": labeled, "single_root": single_root}
    model = mm.DependencyParser(hash_bits=10, tol=0.5, random_state=0, **options)
    truth = arcs if labeled else heads
    model.fit(X, truth)
    model.coef_ = scale * rng.normal(size=model.coef_.shape)
    set_temperature(model, 1.5)
    for i, x in enumerate(X):
        outputs = list(all_trees(len(x), projective, single_root))
        choices = list(range(len(x) + 1))
        if labeled:
            outputs = [
                tuple(zip(tree, labels, strict=True))
                for tree in outputs
                for labels in itertools.product("lr", repeat=len(x))
            ]
            choices = list(itertools.product(choices, "lr"))
        scores = model.score_outputs([x] * len(outputs), outputs).tolist()
        every = sorted({arc for tree in outputs for arc in tree})
        known = draw_known(rng, truth[i], lambda t, every=every: [
            arc for arc in every if (arc[0] if labeled else arc) != t + 1])  # fmt: skip
        for fixed in (None, known):
            pairs = zip(scores, outputs, strict=True)
            listed = [(score, tree) for score, tree in pairs if agrees(tree, fixed)]
            given = None if fixed is None else [fixed]
            (margins,), (shares,) = (
                model.predict_margins([x], given),
                model.predict_proba([x], given),
            )
            assert shares.shape == (len(x), len(x) + 1, 2)[: 2 + labeled]
            check(listed, margins, shares, lambda t, choices=choices: choices, 1.5)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("options", [{}, {"span_features": True, "horizontal": 0}])
def test_constituents(scale, options):
    trees = [
        "(S (NP (D a) (N b)) (VP (V c)))",
        "(S (NP (NP (D a) (N b)) (PP (P d) (NP (N b)))) (VP (V c) (NP (N b))))",
        "(S (VP (V c) (NP (NP (D a) (N b)) (PP (P d) (NP (D a) (N b))))))",
        "(S (NP (N b)) (VP (V c) (NP (D a) (N b)) (PP (P d) (NP (N b)))))",
    ]
    rng = np.random.default_rng(0)
    model = mm.GrammarParser(tol=0.5, random_state=0, **options).fit(trees)
    model.coef_ = scale * rng.normal(size=model.coef_.shape)
    set_temperature(model, 0.8)
    X = [["N", "V", "D", "N", "P", "N"], ["V", "N", "P", "N", "P", "N"], ["N", "V"], ["?"]]
    everything = model.predict_k(X, 100_000)
    margins, shares = model.predict_margins(X), model.predict_proba(X)
    assert margins[3] == shares[3] == {} and len(everything[0]) > 1
    for i, ranking in enumerate(everything[:3]):
        scores = np.array([score for _, score in ranking])
        spans = [set(tree.spans()) for tree, _ in ranking]
        best = model.predict([X[i]])[0]
        assert set(margins[i]) == set(best.spans())
        for span in set.union(*spans):
            has = np.array([span in own for own in spans])
            share = np.exp(logsumexp(scores[has] / 0.8) - logsumexp(scores / 0.8))
            assert shares[i].get(span, 0.0) == pytest.approx(share, rel=1e-6, abs=1e-9)
            if span in margins[i]:
                wanted = scores[has].max() - scores[~has].max(initial=-np.inf)
                assert margins[i][span] == pytest.approx(wanted, rel=1e-9, abs=1e-9 * scale)
        assert set(shares[i]) <= set.union(*spans)


def test_impossible_outputs_are_refused():
    rng = np.random.default_rng(0)
    X, y = [rng.normal(size=(3, 2))] * 2, [["B-X", "I-X", "O"]] * 2
    for order in (1, 2):
        model = mm.SequenceTagger(constraints="bio", order=order, random_state=0).fit(X, y)
        with pytest.raises(ValueError, match="sequence 1: no labelling"):
            model.predict_margins(X, fixed=[None, [None, "O", "I-X"]])


# ----- calibration --------------------------------------------------------------------------------


def noisy(n, seed):
    """Classes that differ by less than the noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    return rng.normal(size=(n, 3)) + np.eye(3)[y], y


def test_the_temperature_is_the_most_likely_one():
    model = mm.MulticlassSVM(random_state=0).fit(*noisy(200, 0))
    X, y = noisy(600, 1)
    model.calibrate(X, y)
    found = model.calibration_
    assert found.n_positions == 600
    assert found.log_loss == pytest.approx(log_loss(y, model.predict_proba(X)))
    for factor in (0.9, 1.1):
        set_temperature(model, factor * found.temperature)
        assert log_loss(y, model.predict_proba(X)) > found.log_loss
    # The same model with larger weights has the same probabilities.
    other = clone(model).fit(*noisy(200, 0))
    other.result_.w[:] *= 1e6
    other.calibrate(X, y)
    assert other.calibration_.temperature == pytest.approx(1e6 * found.temperature, rel=1e-2)


def test_without_errors_probabilities_stay_below_1():
    X = np.array([[-1.0], [1.0]] * 20)
    y = (X[:, 0] > 0).astype(int)
    shares = mm.MulticlassSVM(random_state=0, tol=1e-6).fit(X, y).calibrate(X, y).predict_proba(X)
    assert 0.95 < shares.max() < 0.999


@pytest.mark.filterwarnings("ignore:.* labels are impossible")  # of a node that a fold lacks
@pytest.mark.parametrize("kind", CALIBRATED)
def test_folds(kind):
    X, y = KINDS[kind].first
    if kind in ("dependency", "grammar"):
        X, y = X * 2, None if y is None else y * 2
    model = make(kind, probability=True)
    model.fit(X, y)
    assert 0.0 < model.calibration_.temperature < np.inf
    assert len(model.predict_proba(X)) == len(model.predict_margins(X))
    # The same weights as without.
    assert np.array_equal(model._get_weights(), make(kind).fit(X, y)._get_weights())
    again = make(kind, probability=True).fit(X, y)
    assert again.calibration_ == model.calibration_


@pytest.mark.parametrize("kind", ["classes", "tagger", "dependency", "grammar", "labels"])
def test_files_keep_the_calibration(kind, tmp_path):
    X, y = KINDS[kind].first
    model = make(kind).fit(X, y).calibrate(X, y)
    model.save(tmp_path / "model")
    loaded = mm.load(tmp_path / "model")
    assert loaded.calibration_ == model.calibration_
    for mine, its in zip(model.predict_proba(X), loaded.predict_proba(X), strict=True):
        assert mine == its if isinstance(mine, dict) else np.array_equal(mine, its)


@pytest.mark.parametrize("kind", ["classes", "tagger", "dependency", "grammar", "labels"])
def test_a_weight_of_2_is_an_example_given_twice(kind):
    X, y = KINDS[kind].first
    if kind == "grammar":  # sentences that have more than one tree
        X = [
            "(S (NP (JJ old) (NP (NN stone) (NN age))) (VP (VBZ ends)))",
            "(S (NP (NP (JJ old) (NN stone)) (NN age)) (VP (VBZ ends)))",
            "(S (NP (NP (NN stone) (NN age)) (NN man)) (VP (VBZ sleeps)))",
        ]
    n = n_examples_of(X if y is None else y)
    weights = np.ones(n)
    weights[0], weights[1] = 2.0, 0.0
    numbers = np.array([0, 0, *range(2, n)])
    model = make(kind).fit(X, y)
    twice = (
        tree_inputs_at(X, numbers) if kind == "labels" else examples_at(X, numbers),
        examples_at(y, numbers),
    )
    wanted = model.calibrate(*twice).calibration_
    found = model.calibrate(X, y, sample_weight=weights).calibration_
    assert found[:2] == pytest.approx(wanted[:2], rel=1e-6)
    assert found[:2] != pytest.approx(model.calibrate(X, y).calibration_[:2], rel=1e-4)
    with pytest.raises(ValueError, match="sample_weight must have shape"):
        model.calibrate(X, y, sample_weight=[1.0])


def test_folds_count_weights():
    """What is wrong without weight makes no difference."""
    rng = np.random.default_rng(0)
    y = [rng.integers(0, 2, size=4) for _ in range(30)]
    X = [np.eye(2)[labels] + 0.5 * rng.normal(size=(4, 2)) for labels in y]
    weights = np.arange(30) % 2
    wrong = [labels if w else 1 - labels for labels, w in zip(y, weights, strict=True)]
    right, other = (
        mm.SequenceTagger(probability=True, tol=1e-6, random_state=0).fit(X, z, weights)
        for z in (y, wrong)
    )
    assert other.calibration_[:2] == pytest.approx(right.calibration_[:2], rel=1e-2)


def test_other_weights_need_another_calibration():
    X, y = KINDS["tagger"].first
    model = make("tagger").fit(X, y).calibrate(X, y)
    assert hasattr(model, "predict_proba")
    model.fit(X, y)
    assert not hasattr(model, "calibration_") and not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match=re.escape("call calibrate(X, y)")):
        model.predict_proba(X)


def test_containers():
    """Folds of whatever sequences come in."""
    words = [["a", "b", "c"], ["b", "a"], ["c", "c"], ["a", "c"], ["b", "c"], ["c", "a"]]
    tags = [[word.upper() for word in sentence] for sentence in words]
    flat = [word for sentence in words for word in sentence]
    offsets = np.concatenate([[0], np.cumsum([len(sentence) for sentence in words])])
    columns = TokenColumns([flat], offsets)
    vectors = np.array([[float(word == other) for other in "abc"] for word in flat])
    options = {"random_state": 0, "probability": True}
    features = {"features": WindowFeatures(words_templates())}
    found = [
        mm.SequenceTagger(**options, **more).fit(X, tags).calibration_
        for X, more in (
            (PackedSequences(vectors, offsets), {}),
            (np.split(vectors, offsets[1:-1]), {}),
            (columns, features),
            (words, features),
        )
    ]
    assert found[0] == found[1] and found[2] == found[3]


def test_what_is_refused():
    X, y = KINDS["tagger"].first
    with pytest.raises(ValueError, match="labels that are all known"):
        make("tagger", probability=True).fit(X, [[None, *row[1:]] for row in y])
    with pytest.raises(ValueError, match="at least 3; got 2"):
        make("tagger", probability=True).fit(X[:2], y[:2])
    model = make("tagger").fit(X, y)
    with pytest.warns(UserWarning, match="4 of 24 labels are impossible"):
        model.calibrate(X, [["?"] * 4, *y[1:]])
    assert model.calibration_.n_positions == 20
    with pytest.raises(ValueError, match="no labels that the model could predict"):
        model.calibrate(X, [["?"] * 4] * len(y))
    X, y = KINDS["labels"].first
    with pytest.raises(ValueError, match="probability=True needs labels that are all known"):
        make("labels", probability=True).fit(X, [[None, *y[0][1:]], *y[1:].tolist()])
    with pytest.raises(ValueError, match="does not support kernel='precomputed'"):
        mm.MulticlassSVM(kernel="precomputed", probability=True).fit(np.eye(6), [0, 1] * 3)
