"""What models say of their strongest weights: features, transitions and rules, for and against."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

import maxmargin as mm
from maxmargin.features import WindowFeatures

SENTENCES = [["the", "cat", "sat"], ["a", "dog", "sat", "here"], ["the", "dog"], ["cats", "sat"]]
TAGS = [["B-N", "I-N", "O"], ["B-N", "I-N", "O", "O"], ["B-N", "I-N"], ["B-N", "O"]]


@pytest.fixture(scope="module")
def tagger():
    return mm.SequenceTagger(
        features=WindowFeatures(),
        constraints="bio",
        boundary_weights=True,
        fit_intercept=True,
        random_state=0,
    ).fit(SENTENCES, TAGS)


@pytest.fixture(scope="module")
def classifier():
    return mm.MulticlassSVM(tol=0.01, random_state=0).fit(*load_iris(return_X_y=True))


def every(of_label):
    return [weight for named in of_label.values() for _, weight in named]


def test_features_for_and_against_labels(tagger):
    n_inputs = tagger.n_features_in_ + 1
    weights = tagger.coef_[: n_inputs * 3].reshape(n_inputs, 3)
    names = [*tagger.features_.get_feature_names_out(), "intercept"]
    for against in (False, True):
        listed = tagger.top_features(10**6, against=against)
        assert list(listed) == ["B-N", "I-N", "O"]
        for k, named in enumerate(listed.values()):
            column = weights[:, k]
            kept = np.flatnonzero(column < 0 if against else column > 0)
            assert dict(named) == {names[f]: column[f] for f in kept}
            sizes = [abs(weight) for _, weight in named]
            assert sizes == sorted(sizes, reverse=True)
        few = tagger.top_features(2, against=against)
        assert few == {label: named[:2] for label, named in listed.items()}
    assert "intercept" in dict(tagger.top_features(100)["O"]) or "intercept" in dict(
        tagger.top_features(100, against=True)["O"]
    )


def test_transitions_for_and_against(tagger):
    transitions = tagger.transition_weights_
    liked, disliked = tagger.top_transitions(100), tagger.top_transitions(100, against=True)
    found = {(a, b): weight for a, b, weight in [*liked, *disliked]}
    labels = tagger.classes_.tolist()
    expected = {
        (a, b): transitions[i, j] for i, a in enumerate(labels) for j, b in enumerate(labels)
    }
    expected |= {(None, b): tagger.start_weights_[j] for j, b in enumerate(labels)}
    expected |= {(a, None): tagger.stop_weights_[i] for i, a in enumerate(labels)}
    expected[("O", "I-N")] = expected[(None, "I-N")] = 0.0  # forbidden
    assert found == {pair: weight for pair, weight in expected.items() if weight != 0.0}
    assert any(a is None for a, _ in found) and any(b is None for _, b in found)
    for listed, sign in ((liked, 1), (disliked, -1)):
        sizes = [sign * weight for *_, weight in listed]
        assert sizes == sorted(sizes, reverse=True) and min(sizes) > 0
    assert tagger.top_transitions(1) == liked[:1]


def test_forbidden_transitions_of_any_weight_are_left_out(tagger):
    coef = tagger.coef_.copy()
    try:
        tagger.coef_ = np.where(np.arange(len(coef)) >= len(coef) - 15, -5.0, 0.0)
        pairs = {(a, b) for a, b, _ in tagger.top_transitions(100, against=True)}
    finally:
        tagger.coef_ = coef
    assert len(pairs) == 13 and not pairs & {("O", "I-N"), (None, "I-N")}


def test_features_of_classes(classifier):
    pro, contra = classifier.top_features(), classifier.top_features(against=True)
    assert list(pro) == [0, 1, 2]
    assert min(every(pro)) > 0 > max(every(contra))
    table = np.column_stack([classifier.coef_, classifier.intercept_])
    names = ["x0", "x1", "x2", "x3", "intercept"]
    for k in range(3):
        listed = dict(pro[k]) | dict(contra[k])
        assert listed == {name: w for name, w in zip(names, table[k], strict=True) if w != 0.0}
    assert [len(named) for named in classifier.top_features(1).values()] == [1, 1, 1]


def test_features_of_classes_have_the_names_of_the_columns():
    X = np.array([[0.0, 1.0], [0.0, 2.0], [1.0, 0.0], [2.0, 0.0]])
    model = mm.MulticlassSVM(fit_intercept=False, random_state=0).fit(X, [0, 0, 1, 1])
    model.feature_names_in_ = np.array(["length", "width"], dtype=object)  # as of a data frame
    assert [name for name, _ in model.top_features()[0]] == ["width"]
    assert [name for name, _ in model.top_features(against=True)[0]] == ["length"]


def test_rules_for_and_against():
    high = "(S (NP (NN a)) (VP (VB b) (NP (NN c)) (PP (IN d) (NP (NN e)))))"
    low = "(S (NP (NN a)) (VP (VB b) (NP (NP (NN c)) (PP (IN d) (NP (NN e))))))"
    parser = mm.GrammarParser(random_state=0).fit([high, high, low])
    pro, contra = parser.top_rules(100), parser.top_rules(100, against=True)
    weights = parser.coef_[: parser.grammar_.n_rules]
    assert [w for _, w in pro] == sorted(weights[weights > 0], reverse=True)
    assert [w for _, w in contra] == sorted(weights[weights < 0])
    assert "NP -> NP PP" in dict(contra) and parser.top_rules(1) == pro[:1]


@pytest.mark.parametrize("n", [0, -1, 2.5, "3"])
def test_bad_numbers(tagger, classifier, n):
    for method in (tagger.top_features, tagger.top_transitions, classifier.top_features):
        with pytest.raises(ValueError, match="n must be a whole number >= 1"):
            method(n)


@pytest.mark.parametrize("ask", [lambda t: t.top_features(), lambda t: t.top_transitions()])
def test_before_a_fit(ask):
    with pytest.raises(NotFittedError, match="SequenceTagger instance is not fitted"):
        ask(mm.SequenceTagger())
    assert not hasattr(mm.MulticlassSVM(), "coef_")
    with pytest.raises(AttributeError, match="MulticlassSVM is not fitted yet"):
        _ = mm.MulticlassSVM().intercept_
