"""Explanations: all that differs, and nothing else, adds up to the margins."""

import itertools
import re

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.features import WindowFeatures

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
        (x[:2], "y_hat is no tree"),
        (x, "y_hat is no tree"),
    ):
        with pytest.raises(ValueError, match=message):
            model.explain(wrong, trees[0])


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
        {"order": 3, "constraints": "bio", "eta": 0.5},
        {"emission_order": 1, "boundary_weights": True, "label_tuples": "allowed"},
        {"order": 2, "emission_order": 1, "transition_features": [0, 2], "eta": 2.0},
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
