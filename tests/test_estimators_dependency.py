"""DependencyParser: fits, predictions, files, errors; and attachment scores."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import maxmargin as mm
from conftest import find_data
from maxmargin.features import ArcTemplates, arc_templates
from maxmargin.formats import ConlluTreebank, read_conllu
from maxmargin.metrics import attachment_scores

RNG = np.random.default_rng(0)
TAGS = ("D", "A", "N", "V", "P")


def sentence(rng):
    """A clause of noun phrases around a verb, with its labelled tree."""
    tokens, arcs = [], []

    def phrase(head_place):
        """Determiner, adjectives and noun; head_place is filled in later."""
        start = len(tokens)
        n_adjectives = int(rng.integers(0, 3))
        noun = start + 1 + n_adjectives + 1
        tokens.append((str(rng.choice(["the", "a"])), "D"))
        arcs.append((noun, "det"))
        for _ in range(n_adjectives):
            tokens.append((str(rng.choice(["red", "old", "big"])), "A"))
            arcs.append((noun, "amod"))
        tokens.append((str(rng.choice(["cat", "dog", "tree"])), "N"))
        arcs.append(head_place)

    phrase((None, "nsubj"))
    verb = len(tokens) + 1
    tokens.append((str(rng.choice(["sees", "likes"])), "V"))
    arcs.append((0, "root"))
    if rng.random() < 0.7:
        phrase((None, "obj"))
    return tokens, [(verb if head is None else head, label) for head, label in arcs]


DRAWN = [sentence(RNG) for _ in range(40)]
X = [tokens for tokens, _ in DRAWN]
LABELED = [arcs for _, arcs in DRAWN]
HEADS = [[head for head, _ in arcs] for arcs in LABELED]


def parser(**options):
    return mm.DependencyParser(**({"hash_bits": 14, "random_state": 0, "tol": 0.05} | options))


@pytest.fixture(scope="module")
def labeled():
    return parser(labeled=True).fit(X[:30], LABELED[:30])


def test_heads_are_learned():
    model = parser().fit(X[:30], HEADS[:30])
    assert model.score(X[30:], HEADS[30:]) > 0.95
    predicted = model.predict(X[30:])
    assert attachment_scores(HEADS[30:], predicted).uas == model.score(X[30:], HEADS[30:])
    assert attachment_scores(HEADS[30:], predicted).las is None
    assert model.result_.converged and model.result_.relative_gap <= 0.05
    assert model.score_outputs(X, model.predict(X)).min() >= model.score_outputs(X, HEADS).min()


def test_slack_rescaling_where_arcs_may_cross():
    model = parser(projective=False, labeled=True, rescaling="slack").fit(X[:30], LABELED[:30])
    assert model.result_.converged and model.score(X[30:], LABELED[30:]) > 0.95


def test_labels_are_learned(labeled):
    assert labeled.classes_.tolist() == ["amod", "det", "nsubj", "obj", "root"]
    assert labeled.score(X[30:], LABELED[30:]) > 0.95
    scores = attachment_scores(LABELED[30:], labeled.predict(X[30:]))
    assert scores.las == labeled.score(X[30:], LABELED[30:]) <= scores.uas


@pytest.mark.parametrize("projective", [True, False])
def test_k_best_trees(labeled, projective):
    if not projective:
        labeled = parser(labeled=True, projective=False).fit(X[:30], LABELED[:30])
    for i, trees in enumerate(labeled.predict_k(X[:3], 4)):
        assert len(trees) == 4 and trees[0][0] == labeled.predict([X[i]])[0]
        scores = [score for _, score in trees]
        assert scores == sorted(scores, reverse=True)
        outputs = [tree for tree, _ in trees]
        assert labeled.score_outputs([X[i]] * 4, outputs) == pytest.approx(scores)
    with pytest.raises(ValueError, match="k must be a whole number"):
        labeled.predict_k(X[:1], 0)


def test_save_and_load(labeled, tmp_path):
    path = tmp_path / "parser.mm"
    labeled.save(path)
    loaded = mm.load(path)
    assert loaded.predict(X) == labeled.predict(X)
    assert loaded.get_params() == labeled.get_params()
    templates = ArcTemplates((("tag", "tag"), ("word", "")), (("tag", "tag", "tag"),), ())
    model = parser(features=templates, projective=False).fit(X, HEADS)
    model.save(path)
    loaded = mm.load(path)
    assert loaded.features == templates and isinstance(loaded.features, ArcTemplates)
    assert all(map(np.array_equal, loaded.predict(X), model.predict(X)))


def test_arc_templates_are_the_default():
    X, y = [[("the", "D"), ("cat", "N"), ("sleeps", "V")]], [[2, 3, 0]]
    default = mm.DependencyParser(hash_bits=8, random_state=0).fit(X, y)
    explicit = clone(default).set_params(features=arc_templates()).fit(X, y)
    assert np.array_equal(default.coef_, explicit.coef_)
    fewer = clone(default).set_params(features=arc_templates()._replace(between=())).fit(X, y)
    assert not np.array_equal(default.coef_, fewer.coef_)


def test_a_third_field_is_the_fine_tag():
    """Where coarse tags say nothing, fine ones tell the trees apart."""
    fine = [[(word, "X", tag) for word, tag in tokens] for tokens in X]
    model = parser().fit(fine[:30], HEADS[:30])
    assert model.score(fine[30:], HEADS[30:]) > 0.95


def test_a_treebank_brings_its_trees():
    rows = [
        [
            [str(t + 1), word, "_", tag, tag, "_", str(head), label, "_", "_"]
            for t, ((word, tag), (head, label)) in enumerate(zip(tokens, arcs, strict=True))
        ]
        for tokens, arcs in DRAWN
    ]
    treebank = ConlluTreebank(rows, [[] for _ in rows])
    model = parser(labeled=True).fit(treebank)
    assert model.score(treebank) == model.score(treebank, LABELED) > 0.95
    assert treebank.with_trees(model.predict(treebank)).labeled_heads() == model.predict(treebank)


def test_sample_weights_and_warm_start():
    weights = np.r_[np.ones(20), np.zeros(20)]
    weighted = parser(tol=1e-3).fit(X, HEADS, weights)
    alone = parser(tol=1e-3).fit(X[:20], HEADS[:20])
    assert weighted.result_.primal == pytest.approx(alone.result_.primal, rel=2e-3)
    warm = parser(warm_start=True).fit(X, HEADS)
    first = warm.result_.n_oracle_calls
    warm.set_params(C=1.1).fit(X, HEADS)
    assert warm.result_.n_oracle_calls < 2 * first and warm.result_.converged
    assert clone(warm).get_params()["C"] == 1.1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": "a sentence"}, "X must be a list of sentences"),
        ({"X": []}, "at least one sentence"),
        ({"X": [[]]}, "sentence 0 is empty"),
        ({"X": ["word"]}, "sentence 0 is 'word', expected a list of tokens"),
        ({"X": [["word"]]}, "sentence 0, word 0: 'word', expected"),
        ({"X": [[("a", "N", 3)]]}, "sentence 0, word 0"),
        ({"Y": None}, "y is missing"),
        ({"Y": [[0, 1]]}, "sentence 0 has 1 words but 2 heads"),
        ({"Y": [[0], [0]]}, "X has 1 sentences but y has 2"),
        ({"Y": [0]}, r"y\[0\] is 0, expected a sequence of heads, one for each word"),
        ({"Y": [["x"]]}, "sentence 0, word 0: 'x', expected the number of its head"),
        ({"Y": [[1]]}, "sentence 0: the head of word 1 is 1"),
        ({"labeled": True}, r"expected a pair \(head, label\)"),
        ({"loss": "f1"}, "loss must be"),
        ({"hash_bits": 2}, "hash_bits must be"),
    ],
)
def test_bad_input_is_refused(change, message):
    change = {"X": [[("a", "N")]], "Y": [[0]]} | change
    sentences, trees = change.pop("X"), change.pop("Y")
    with pytest.raises(ValueError, match=message):
        parser(**change).fit(sentences, trees)


def test_unknown_labels(labeled):
    other = [[(head, "other") for head in tree] for tree in HEADS[:2]]
    with pytest.warns(UserWarning, match="labels are unknown to the model.*sentence 0, word 0"):
        assert labeled.score(X[:2], other) == 0.0
    with pytest.raises(ValueError, match="label 'other' is not known"):
        labeled.score_outputs(X[:2], other)
    with pytest.raises(NotFittedError):
        parser().predict(X)


def test_attachment_scores():
    truth = [[(2, "det"), (0, "root")], [(0, "root")]]
    guess = [[(2, "amod"), (1, "root")], [(0, "root")]]
    assert attachment_scores(truth, guess) == pytest.approx((2 / 3, 1 / 3, 1 / 2))
    ignored = attachment_scores(truth, guess, ignore=[[False, True], [False]])
    assert ignored == pytest.approx((1.0, 1 / 2, 1 / 2))
    with pytest.raises(ValueError, match="found both"):
        attachment_scores(truth, [[2, 0], [0]])
    with pytest.raises(ValueError, match="sequence 0 has"):
        attachment_scores(truth, [[(0, "root")], [(0, "root")]])
    with pytest.raises(ValueError, match="all tokens are ignored"):
        attachment_scores([[0]], [[0]], ignore=[[True]])


@pytest.mark.slow
def test_parsing_english():
    """One pass over a part of the treebank is enough for most heads."""
    treebank = read_conllu(find_data("ud_english_ewt/en_ewt-ud-dev.conllu.xz"))
    train, test = treebank.select(range(1500)), treebank.select(range(1500, 2001))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = mm.DependencyParser(C=0.01, max_passes=3, hash_bits=20, random_state=0).fit(train)
    assert model.score(test) > 0.8
