"""Explanations: all that differs, and nothing else, adds up to the margins."""

import html
import itertools
import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.estimators.abilities.explanation import token_name
from maxmargin.estimators.sequences.token_inputs import TokenInputs
from maxmargin.features import WindowFeatures
from maxmargin.problems.dependency.decoder import DependencyDecoder
from maxmargin.problems.dependency.features import DEFAULT_TEMPLATES, TokenFields, arc_feature_names
from maxmargin.problems.dependency.kernels import most_arc_features
from maxmargin.problems.dependency.scores import arc_features
from maxmargin.report.subjects import words_of

LABELS = ["B-X", "I-X", "O"]


@pytest.mark.parametrize("as_input", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("intercept", [True, False])
def test_classes(as_input, intercept):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 4)) * (rng.random((12, 4)) < 0.6), np.array(list("abc") * 4)
    model = mm.MulticlassSVM(fit_intercept=intercept, random_state=0).fit(as_input(X), y)
    margins, weights = model.predict_margins(X), model._per_class()
    for i, x in enumerate(X):
        chosen = int(np.argmax(margins[i]))
        found = model.explain(as_input(X[i : i + 1]))
        assert found.output == model.classes_[chosen] == model.predict(X[i : i + 1])[0]
        assert found.margin == pytest.approx(margins[i].max())
        for rival in range(3):
            compared = model.explain(as_input(X[i : i + 1]), model.classes_[rival])
            own = {one.name: (one.value, one.weight) for one in compared.decisions[0].evidence}
            wanted = {
                f"x{f}": (x[f], weights[f, chosen] - weights[f, rival]) for f in np.flatnonzero(x)
            } | ({"intercept": (1.0, weights[4, chosen] - weights[4, rival])} if intercept else {})
            assert own == ({} if rival == chosen else wanted)


@pytest.fixture(scope="module", params=[None, "bio"])
def tagger(request):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 4)) for n in (3, 2, 4, 1)]
    y = [["B-X", "I-X", "O"], ["O", "B-X"], ["O", "O", "B-X", "I-X"], ["O"]]
    options = {"constraints": request.param, "boundary_weights": True, "fit_intercept": True}
    model = mm.SequenceTagger(random_state=0, tol=0.1, **options).fit(X, y)
    model.coef_ = rng.normal(size=model.coef_.shape)
    return model, X


def test_each_token_has_its_margin(tagger):
    model, X = tagger
    margins = model.predict_margins(X)
    for i, x in enumerate(X):
        found = model.explain(x)
        assert found.output == model.predict([x])[0] and found.rival is None
        assert [one.place for one in found.decisions] == list(range(len(x)))
        for t, one in enumerate(found.decisions):
            assert one.chosen == found.output[t] != one.rival
            assert one.margin == pytest.approx(margins[i][t].max())
            others = np.where(np.array(LABELS) == one.chosen, -np.inf, margins[i][t])
            if one.rival is not None:
                assert one.rival == LABELS[int(np.argmax(others))]
                contributions = [abs(piece.contribution) for piece in one.evidence]
                assert contributions == sorted(contributions, reverse=True)


def test_a_rival_of_all_tokens(tagger):
    model, X = tagger
    for x in X:
        own = model.predict([x])[0]
        for rival in itertools.product(LABELS, repeat=len(x)):
            found = model.explain(x, list(rival))
            scores = model.score_outputs([x, x], [own, rival])
            assert found.margin == pytest.approx(scores[0] - scores[1], abs=1e-9)
            differ = {t for t in range(len(x)) if own[t] != rival[t]}
            assert differ <= {one.place for one in found.decisions}
            assert all(one.evidence for one in found.decisions)
    assert str(model.explain(X[0], model.predict(X[:1])[0])) == "no difference"


@pytest.mark.parametrize("options", [{}, {"span_features": True}])
def test_parse_trees(options):
    trees = [
        "(S (NP (D a) (N b)) (VP (V c)))",
        "(S (NP (NP (D a) (N b)) (PP (P d) (NP (N b)))) (VP (V c) (NP (N b))))",
        "(S (NP (N b)) (VP (V c) (NP (NP (D a) (N b)) (PP (P d) (NP (N b))))))",
        "(S (NP (N b)) (VP (V c) (NP (D a) (N b)) (PP (P d) (NP (N b)))))",
    ]
    model = mm.GrammarParser(tol=0.1, random_state=0, **options).fit(trees)
    model.coef_ = np.random.default_rng(0).normal(size=model.coef_.shape)
    x = [("b", "N"), ("c", "V"), ("a", "D"), ("b", "N"), ("d", "P"), ("b", "N")]
    (ranked,) = model.predict_k([x], 100)
    assert len(ranked) >= 2
    found = model.explain(x)
    assert (found.output, found.rival) == (ranked[0][0], ranked[1][0])
    for rival, score in ranked:
        compared = model.explain(x, rival)
        assert compared.margin == pytest.approx(ranked[0][1] - score, abs=1e-9)
        assert bool(compared.decisions[0].evidence) == (rival != ranked[0][0])
    assert "VP -> V @VP|V, words 1-5" in {one.name for one in found.decisions[0].evidence}
    assert model.explain([("b", "N"), ("c", "V")]).decisions[0].rival is None
    for wrong, message in (
        (["?"], "has no tree"),
        (x[:2], "y_hat is not a tree"),
        (x, "y_hat is not a tree"),
    ):
        with pytest.raises(ValueError, match=message):
            model.explain(wrong, trees[0])


NAMED_TOKENS = [
    ("Oslo", "Oslo"),
    (("Oslo", "NNP"), "Oslo"),
    (["Oslo", "NNP"], "Oslo"),
    ({"bias": 1.0, "word": "Oslo", "pos": "NNP"}, "Oslo"),
    ({"w": "Oslo", "w[-1]": "in"}, "Oslo"),
    ({"w[-1]": "in", "w[0]": "Oslo"}, "Oslo"),
    # as in the tutorials of sklearn-crfsuite and python-crfsuite
    ({"bias": 1.0, "word[-3:]": "slo", "word.lower()": "oslo", "-1:word.lower()": "in"}, "oslo"),
    (["bias", "-1:word.lower=in", "word.lower=oslo", "word[-3:]=slo"], "oslo"),
    ({"w[-1]=in": 1.0, "w[0]=Oslo": 1.0}, "Oslo"),
    ({"w[0]==": 1.0}, "="),
    (["=", "SYM"], "="),
    # no word: the first features with a value
    ({"bias": 1.0, "shape": "Xxxx", "pos": "NNP", "cap": True}, "shape=Xxxx pos=NNP"),
    (["bias", "shape=Xxxx"], "shape=Xxxx"),
    ({"bias": 1.0, "length": 4.0}, None),
    ([0.0, 1.0], None),
    ((), None),
    ({}, None),
]


@pytest.mark.parametrize("token, word", NAMED_TOKENS)
def test_tokens_of_any_kind_are_shown_by_their_words(token, word):
    named = "token 0" if word is None else f"token 0 {word!r}"
    assert token_name([token], 0) == token_name((token,), 0) == named
    assert words_of([token]) == ["1" if word is None else word]


def test_rows_of_frames_are_shown_by_their_words():
    frame = pytest.importorskip("pandas").DataFrame({"pos": ["NNP"], "word": ["Oslo"]})
    assert token_name(frame, 0) == "token 0 'Oslo'" and words_of(frame) == ["Oslo"]


@pytest.mark.parametrize("make", [mm.SequenceTagger, mm.SequenceSegmenter])
def test_explanations_and_reports_of_dicts_show_words(make):
    def features(word):
        return {"bias": 1.0, "word.lower()": word.lower(), "word.istitle()": word.istitle()}

    X = [[features(w) for w in s.split()] for s in ("Anna left", "cold Oslo", "Anna sees Oslo")]
    tags = [["PER", "O"], ["O", "LOC"], ["PER", "O", "LOC"]]
    segments = [[(0, 1, "PER")], [(1, 2, "LOC")], [(0, 1, "PER"), (2, 3, "LOC")]]
    is_tagger = make is mm.SequenceTagger
    model = make(random_state=0).fit(X, tags if is_tagger else segments)
    assert "token 0 'anna'" in str(model.explain(X[0]))
    wrong = [["LOC", "O"]] if is_tagger else [[(0, 1, "LOC")]]
    page = html.unescape(model.report(X[:1], wrong)._repr_html_())
    assert "token 0 'anna'" in html.unescape(page)


def test_text_and_html():
    X = [["Anna", "lives", "in", "<Oslo>"], ["<Oslo>", "is", "cold"], ["Anna", "left"]]
    y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"], ["PER", "O"]]
    model = mm.SequenceTagger(features=WindowFeatures(), random_state=0).fit(X, y)
    found = model.explain(["Anna", "left", "<Oslo>"], n=2)
    text, table = str(found), found._repr_html_()
    assert re.search(r"^token 0 'Anna': PER, not \w+, by [\d.]+$", text, re.MULTILINE)
    assert "w[0]=Anna" in text and re.search(r"^\d+ more", text, re.MULTILINE)
    assert "<Oslo>" not in table and "&lt;Oslo&gt;" in table
    assert table.count("<table>") == 3 == table.count("</table>")


def test_names_of_other_features_are_not_listed(monkeypatch):
    X, y = (
        [["Anna", "lives", "in", "Oslo"], ["Oslo", "is", "cold"]],
        [["P", "O", "O", "L"], ["L", "O", "O"]],
    )
    model = mm.SequenceTagger(features=WindowFeatures(), random_state=0).fit(X, y)
    calls, listed = [], WindowFeatures.get_feature_names_out
    monkeypatch.setattr(
        WindowFeatures, "get_feature_names_out", lambda own: calls.append(1) or listed(own)
    )
    model.explain(X[0])
    assert not calls  # of large models they would take longer than all else


def test_what_is_refused(tagger):
    model, X = tagger
    with pytest.raises(ValueError, match="label '\\?' is not known"):
        model.explain(X[1], ["O", "?"])
    with pytest.raises(ValueError, match="n must be a whole number"):
        model.explain(X[1], n=0)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 2)), [0, 1] * 3
    classes = mm.MulticlassSVM(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="one input, got 2 rows"):
        classes.explain(X[:2])
    with pytest.raises(ValueError, match="kernel='linear'"):
        mm.MulticlassSVM(kernel="rbf", random_state=0).fit(X, y).explain(X[0])


@pytest.mark.parametrize(
    "options",
    [
        {"order": 2},
        {"order": {"transitions": 3, "eta": 0.5}, "constraints": "bio"},
        {"order": {"emissions": 1, "label_tuples": "allowed"}, "boundary_weights": True},
        {"order": {"transitions": 2, "emissions": 1, "eta": 2.0}, "transition_features": [0, 2]},
    ],
)
def test_longer_histories(options):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 3)) for n in (4, 2, 5, 1)]
    y = [["B-X", "I-X", "I-X", "O"], ["O", "B-X"], ["O", "O", "B-X", "I-X", "O"], ["O"]]
    model = mm.SequenceTagger(random_state=0, tol=0.1, **options).fit(X, y)
    model.coef_ = rng.normal(size=model.coef_.shape)
    margins = model.predict_margins(X)
    for i, x in enumerate(X):
        found = model.explain(x)
        assert found.output == model.predict([x])[0]
        for t, one in enumerate(found.decisions):
            assert one.margin == pytest.approx(margins[i][t].max())
        rivals = list(itertools.product(LABELS, repeat=len(x)))
        for k in rng.permutation(len(rivals))[:20].tolist():
            compared = model.explain(x, list(rivals[k]))
            scores = model.score_outputs([x, x], [found.output, rivals[k]])
            assert compared.margin == pytest.approx(scores[0] - scores[1], abs=1e-9)


SENTENCE = [("The", "D", "d1"), ("old", "A", "a1"), ("CAT", "N", "n1"), ("sleeps", "V", "v2")]
ARCS = [[(3, "det"), (3, "mod"), (4, "subj"), (0, "root")], [(2, "subj"), (0, "root")]]


@pytest.mark.parametrize("options", [{}, {"projective": False}, {"labeled": True}])
def test_arcs(options):
    X = [SENTENCE, [("dogs", "N", "n2"), ("bark", "V", "v1")]]
    y = ARCS if "labeled" in options else [[head for head, _ in tree] for tree in ARCS]
    model = mm.DependencyParser(hash_bits=16, tol=0.1, random_state=0, **options).fit(X, y)
    model.coef_ = np.random.default_rng(0).normal(size=model.coef_.shape)
    margins = model.predict_margins(X)
    for i, x in enumerate(X):
        found = model.explain(x)
        assert found.output == model.predict([x])[0] and len(found.decisions) == len(x)
        for t, one in enumerate(found.decisions):
            assert one.chosen == found.output[t] != one.rival
            assert one.margin == pytest.approx(margins[i][t].max())
        for rival, score in model.predict_k([x], 30)[0]:
            compared = model.explain(x, rival)
            best = model.score_outputs([x], [found.output])[0]
            assert compared.margin == pytest.approx(best - score, abs=1e-9)
            assert [one.place for one in compared.decisions] == [
                t for t in range(len(x)) if found.output[t] != rival[t]
            ]
    assert "word 3 'CAT'" in str(model.explain(X[0]))
    for wrong, message in (([0, 1], "4"), ([9, 9, 9, 9], "head"), ([0, 3, 2, 1], "circle")):
        rival = [(head, "det") for head in wrong] if "labeled" in options else wrong
        with pytest.raises(ValueError, match=message):
            model.explain(X[0], rival)


def test_names_of_arc_features_are_those_that_were_hashed():
    X = [SENTENCE, [("the", "D", "d1"), ("cat", "A", "x"), ("The", "D", "d1")]]
    templates = DEFAULT_TEMPLATES._replace(
        arcs=(*DEFAULT_TEMPLATES.arcs, ("prefix", "word+1 tag-2")),
        between=(*DEFAULT_TEMPLATES.between, ("tag", "", "word fine")),
    )
    ids, names = {}, {}
    for sentence in X:
        decoder = DependencyDecoder(templates, 26, 3)
        keys, N = decoder.keys(TokenFields.of([sentence])), len(sentence) + 1
        for h, m, label in itertools.product(range(N), range(1, N), range(3)):
            if h == m:
                continue
            out = np.empty(most_arc_features(keys, N), np.int32)
            count = arc_features(keys, 0, h, m, label, out)
            named = arc_feature_names(templates, sentence, keys, h, m, "abc"[label])
            for name, feature in zip(named, out[:count].tolist(), strict=True):
                ids.setdefault(name, set()).add(feature)
                names.setdefault(feature, set()).add(name)
    assert len(ids) > 1000
    assert max(map(len, ids.values())) == 1
    # Head and modifier are told apart by their fields and the direction alone (see `features`).
    alone = [own for own in names.values() if len(own) == 1]
    assert len(alone) > 0.98 * len(names)


def numbers(n=30, d=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)


@pytest.mark.parametrize("as_input", [np.asarray, sp.csr_matrix])
def test_measures_of_two_classes(as_input):
    rng, X = numbers()
    y = np.where(X @ [1.0, 2.0, 0.0, -1.0] + rng.normal(size=30) > 0.0, "yes", "no")
    model = mm.PerformanceSVM(measure="f1", C=10.0, random_state=0).fit(X, y)
    for x, score, label in zip(X, model.decision_function(X), model.predict(X), strict=True):
        found = model.explain(as_input(x[None]))
        assert (found.output, found.margin) == (label, pytest.approx(abs(score)))
        assert found.rival == ("no" if label == "yes" else "yes")
        assert model.explain(as_input(x[None]), label).decisions[0].evidence == ()
    with pytest.raises(ValueError, match="not one of the classes"):
        model.explain(X[0], "maybe")
    kernel = mm.PerformanceSVM(measure="f1", kernel="rbf", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="kernel='linear'"):
        kernel.explain(X[0])


@pytest.mark.parametrize("loss", ["absolute", "pairs"])
def test_grades(loss):
    rng, X = numbers()
    y = np.digitize(X @ [1.0, 2.0, 0.0, -1.0] + rng.normal(size=30), [-1.0, 0.0, 1.0])
    model = mm.OrdinalSVM(loss=loss, random_state=0).fit(X, y)
    for x, scores, grade in zip(X, model.decision_function(X), model.predict(X), strict=True):
        found = model.explain(x)
        assert found.output == grade
        best, second = np.sort(scores)[-2:][::-1]
        assert found.margin == pytest.approx(best - second)
        for rival in range(4):
            compared = model.explain(x, rival)
            assert compared.margin == pytest.approx(scores[grade] - scores[rival], abs=1e-9)
    with pytest.raises(ValueError, match="not one of the grades"):
        model.explain(X[0], 9)


@pytest.mark.parametrize("as_input", [np.asarray, sp.csr_matrix])
def test_documents(as_input):
    _, X = numbers()
    model = mm.RankSVM(random_state=0).fit(X, np.arange(30) % 3, qid=np.arange(30) // 10)
    scores = model.predict(X)
    found = model.explain(as_input(X))
    assert [one.chosen for one in found.decisions] == [f"document {i}" for i in found.output[:-1]]
    margins = -np.diff(scores[found.output])
    assert [one.margin for one in found.decisions] == pytest.approx(margins, abs=1e-9)
    assert (margins >= 0.0).all()
    compared = model.explain(as_input(X[:1]), as_input(X[1:2]))
    assert compared.margin == pytest.approx(scores[0] - scores[1])
    changes = {one.name: one.value for one in compared.decisions[0].evidence}
    assert changes == {f"x{f}": v for f, v in enumerate(X[0] - X[1]) if v}


def test_documents_of_a_frame():
    _, X = numbers()
    frame = pytest.importorskip("pandas").DataFrame(X, columns=list("abcd"))
    model = mm.RankSVM(random_state=0).fit(frame, np.arange(30) % 3, qid=np.arange(30) // 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # scikit-learn warns where names are missing
        found = model.explain(frame)
        compared = model.explain(frame[:1], frame[1:2])
    for one in (found, compared):
        assert {evidence.name for evidence in one.decisions[0].evidence} <= set("abcd")
    with pytest.raises(ValueError, match="feature names"):
        model.explain(frame[list("dcba")])


@pytest.mark.parametrize("edges", [None, "tree", "pairs"])
def test_sets_of_labels(edges):
    rng, X = numbers()
    Y = (X @ rng.normal(size=(4, 4)) > 0.3).astype(int)
    model = mm.MultilabelSVM(edges=edges, random_state=0).fit(X, Y)
    pairs = list(zip(model.edges_.tolist(), model.pair_weights_, strict=True))

    def score(x, labels):
        own = (x @ model.coef_.T + model.intercept_) @ labels
        return own + sum(weight for (a, b), weight in pairs if labels[a] and labels[b])

    sets = [np.array(own) for own in itertools.product((0, 1), repeat=4)]
    for x in X[:10]:
        found = model.explain(x)
        best = score(x, found.output)
        assert best == pytest.approx(max(score(x, own) for own in sets))
        for k, one in enumerate(found.decisions):
            others = [score(x, own) for own in sets if own[k] != found.output[k]]
            assert one.margin == pytest.approx(best - max(others), abs=1e-9)
            assert one.chosen == ("on" if found.output[k] else "off") != one.rival
        for own in sets:
            compared = model.explain(x, own)
            assert compared.margin == pytest.approx(best - score(x, own), abs=1e-9)


@pytest.mark.parametrize("allow_unmatched", [True, False])
def test_partners(allow_unmatched):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(*shape, 2)) for shape in ((2, 3), (3, 3), (3, 2), (1, 1))]
    y = [rng.permutation(x.shape[1])[: len(x)] for x in X[:2]]
    model = mm.SetMatcher(allow_unmatched=allow_unmatched, random_state=0).fit(X[:2], y)
    model.coef_ = rng.normal(size=model.coef_.shape)
    for x in X:
        n_pairs = min(x.shape[:2])
        every = [
            np.array(own)
            for own in itertools.product(range(-1, x.shape[1]), repeat=len(x))
            for used in [[j for j in own if j >= 0]]
            if len(set(used)) == len(used) and (allow_unmatched or len(used) == n_pairs)
        ]
        scores = [model.coef_ @ model._matcher.joint_feature(x, own) for own in every]
        found = model.explain(x)
        assert np.array_equal(found.output, model.predict([x])[0])
        for k, one in enumerate(found.decisions):
            others = [s for own, s in zip(every, scores, strict=True) if own[k] != found.output[k]]
            assert one.margin == pytest.approx(max(scores) - max(others, default=-np.inf))
        for own, score in zip(every, scores, strict=True):
            compared = model.explain(x, own)
            assert compared.margin == pytest.approx(max(scores) - score, abs=1e-9)


@pytest.mark.parametrize("edge_features", [False, True])
def test_labels_of_nodes(edge_features):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 4, 2)), rng.integers(0, 3, size=(6, 4))
    y[:, 0] = [0, 1] * 3
    edges, tree = rng.normal(size=(6, 3, 2)), [(0, 1), (2, 0), (2, 3)]
    given = {"nodes": X, "edges": edges} if edge_features else X
    model = mm.TreeLabeler(tree=tree, tol=0.1, random_state=0).fit(given, y)
    model.coef_ = rng.normal(size=model.coef_.shape)
    margins = model.predict_margins(given)
    ranked = model.predict_k(given, 20)
    for i in range(6):
        x = {"nodes": X[[i]], "edges": edges[[i]]} if edge_features else X[i]
        found = model.explain(x)
        assert found.output == ranked[i][0][0].tolist()
        for v, one in enumerate(found.decisions):
            assert one.margin == pytest.approx(margins[v][i].max())
        for rival, score in ranked[i]:
            compared = model.explain(x, rival)
            assert compared.margin == pytest.approx(ranked[i][0][1] - score, abs=1e-9)
    with pytest.raises(ValueError, match="label 7 of node 1 is not known"):
        model.explain(x, [0, 7, 0, 0])


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "global"},
        {"mode": "global", "end_gaps": "own"},
        {"mode": "local", "gaps": "linear", "symmetric": True},
    ],
)
def test_alignments(options):
    X, y = [("ACGT", "AGT"), ("TCGA", "TGA")], [("ACGT", "A-GT"), ("TCGA", "T-GA")]
    model = mm.SequenceAligner(random_state=0, **options).fit(X, y)
    model.coef_ = np.random.default_rng(0).normal(size=model.coef_.shape)
    for x in [*X, ("AXGT", "GA")]:
        (ranked,) = model.predict_k([x], 50)
        found = model.explain(x)
        assert found.margin == pytest.approx(ranked[0][1] - ranked[1][1], abs=1e-9)
        for rival, score in ranked:
            compared = model.explain(x, rival)
            assert compared.margin == pytest.approx(ranked[0][1] - score, abs=1e-9)
    with pytest.raises(ValueError, match="outside its strings"):
        model.explain(X[0], [(0, 9)])
    ranker = mm.HomologyRanker(random_state=0, **options)
    ranker.fit([("ACGT", ["AGT", "TTT"])] * 2, [(0, [(0, 0)])] * 2)
    x = ("ACGT", ["AGT", "TTT", "CGT"])
    (scores,), found = ranker.decision_function([x]), ranker.explain(x)
    assert found.margin == pytest.approx(np.diff(np.sort(scores))[-1])
    assert ranker.explain(x, 1).margin == pytest.approx(scores.max() - scores[1])


def all_segmentations(n, longest, start=0):
    """Every list of segments of n tokens, by brute force."""
    if start == n:
        return [[]]
    found = all_segmentations(n, longest, start + 1)
    for label, most in longest.items():
        for stop in range(start + 1, min(start + most, n) + 1):
            rest = all_segmentations(n, longest, stop)
            found = found + [[(start, stop, label), *own] for own in rest]
    return found


@pytest.mark.parametrize("options", [{}, {"last_tokens": False, "fit_intercept": True}])
def test_segments(options):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 3)) for n in (4, 2, 5, 1)]
    y = [[(0, 2, "a"), (3, 4, "b")], [(1, 2, "b")], [(1, 4, "a")], []]
    model = mm.SequenceSegmenter(tol=0.1, random_state=0, **options).fit(X, y)
    model.coef_ = rng.normal(size=model.coef_.shape)
    for x in X:
        every = all_segmentations(len(x), model.max_segment_lengths_)
        problem = model._batch(TokenInputs.of(model).packed([x]), [[]], None).make_problem()
        coded = [[(s, e, "ab".index(label)) for s, e, label in own] for own in every]
        scores = [
            (problem.joint_feature(problem.input_of(0), own) @ model.coef_).item() for own in coded
        ]
        found = model.explain(x)
        assert found.output == model.predict([x])[0] == every[int(np.argmax(scores))]
        for one in found.decisions:
            piece = next((s for s in found.output if s[0] == one.place), None)

            def has_it(own, piece=piece, t=one.place):
                return piece in own if piece else not any(s <= t < e for s, e, _ in own)

            others = [s for own, s in zip(every, scores, strict=True) if not has_it(own)]
            assert one.margin == pytest.approx(max(scores) - max(others), abs=1e-9)
        for k in rng.permutation(len(every))[:20].tolist():
            compared = model.explain(x, every[k])
            assert compared.margin == pytest.approx(max(scores) - scores[k], abs=1e-9)
    with pytest.raises(ValueError, match="not among the labels"):
        model.explain(X[0], [(0, 1, "z")])
    with pytest.raises(ValueError, match="more than max_segment_length"):
        model.explain(X[0], [(0, 2, "b")])
