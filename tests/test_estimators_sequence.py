"""SequenceTagger: input forms, labels of any type, constraints, weights, scikit-learn's tools."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import maxmargin as mm
from maxmargin.datasets import make_digit_words
from maxmargin.features import WindowFeatures, pack_sequences
from maxmargin.metrics import token_accuracy


@pytest.fixture(scope="module")
def words():
    return make_digit_words(n_train=60, n_test=40, noise=0.2)


@pytest.fixture(scope="module")
def fitted(words):
    model = mm.SequenceTagger(
        C=0.1, fit_intercept=True, boundary_weights=True, tol=1e-3, random_state=0
    )
    return model.fit(words.X_train, words.y_train)


SENTENCES = [["the", "cat", "sat"], ["a", "dog", "sat", "here"], ["the", "dog"], ["cats", "sat"]]
TAGS = [["B-N", "I-N", "O"], ["B-N", "I-N", "O", "O"], ["B-N", "I-N"], ["B-N", "O"]]


@pytest.fixture(scope="module")
def worded():
    return mm.SequenceTagger(C=1.0, features=WindowFeatures(), random_state=0).fit(SENTENCES, TAGS)


def test_certificate_and_accuracy(fitted, words):
    assert fitted.result_.relative_gap <= 1e-3
    assert fitted.result_.state is None
    accuracy = fitted.score(words.X_test, words.y_test)
    predicted = fitted.predict(words.X_test)
    assert accuracy == pytest.approx(token_accuracy(words.y_test, predicted))
    assert accuracy > 0.8
    assert type(predicted[0][0]) is int
    assert [len(p) for p in predicted] == [len(y) for y in words.y_test]


def test_prediction_has_the_best_score(fitted, words):
    X, Y = words.X_test[:10], words.y_test[:10]
    best = fitted.score_outputs(X, fitted.predict(X))
    assert np.all(best >= fitted.score_outputs(X, Y) - 1e-9)
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert np.all(best >= fitted.score_outputs(X, [rng.permutation(y) for y in Y]) - 1e-9)


def test_score_outputs_is_the_inner_product(fitted, words):
    x, y = words.X_test[0], words.y_test[0]
    K, n_inputs = 10, 65
    psi = np.zeros(len(fitted.coef_))
    for t, label in enumerate(y):
        psi[np.arange(64) * K + label] += x[t]
        psi[64 * K + label] += 1.0
        if t:
            psi[n_inputs * K + y[t - 1] * K + label] += 1.0
    psi[(n_inputs + K) * K + y[0]] += 1.0
    psi[(n_inputs + K) * K + K + y[-1]] += 1.0
    assert fitted.score_outputs([x], [y])[0] == pytest.approx(psi @ fitted.coef_)


@pytest.mark.parametrize(
    "form",
    [
        lambda X: [sp.csr_matrix(x) for x in X],
        lambda X: [x.tolist() for x in X],
        lambda X: pack_sequences(X),
        lambda X: [[{f"p{j}": v for j, v in enumerate(t)} for t in x.tolist()] for x in X],
        lambda X: np.array([*X, None], dtype=object)[:-1],
    ],
    ids=["csr", "lists", "packed", "dicts", "objects"],
)
def test_every_form_of_input_trains_the_same_model(fitted, words, form):
    X, Y = words.X_train[:15], words.y_train[:15]
    plain = mm.SequenceTagger(C=0.1, tol=1e-5, random_state=0).fit(X, Y)
    other = clone(plain).fit(form(X), Y)
    assert other.result_.primal == pytest.approx(plain.result_.primal, rel=1e-4)
    assert other.score(form(words.X_test), words.y_test) == pytest.approx(
        plain.score(words.X_test, words.y_test), abs=0.02
    )


def test_cube_of_equal_lengths():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(6, 4, 3)), rng.integers(0, 2, size=(6, 4))
    model = mm.SequenceTagger(random_state=0).fit(X, Y)
    assert np.stack(model.predict(X)).shape == (6, 4)


@pytest.mark.parametrize(
    "rename",
    [
        lambda k: f"digit {k}",
        lambda k: k * 10,
        lambda k: k + 0.5,
        lambda k: k if k % 2 else str(k),
        lambda k: ("tuple", k),
        lambda k: k > 4,
        lambda k: k + 2**70,
    ],
    ids=["str", "int", "float", "mixed", "tuple", "bool", "large"],
)
def test_labels_of_any_type(words, rename):
    Y = [[rename(int(k)) for k in y] for y in words.y_train[:15]]
    model = mm.SequenceTagger(C=0.1, tol=0.01, random_state=0).fit(words.X_train[:15], Y)
    found = {label for y in model.predict(words.X_train[:15]) for label in y}
    wanted = {label for y in Y for label in y}
    assert found <= wanted and {type(f) for f in found} <= {type(w) for w in wanted}
    assert model.score(words.X_train[:15], Y) > 0.85


def test_words_with_window_features(worded):
    assert worded.score(SENTENCES, TAGS) == 1.0
    assert worded.classes_.tolist() == ["B-N", "I-N", "O"]
    top = worded.top_features(3)
    assert list(top) == ["B-N", "I-N", "O"]
    assert all(len(names) == 3 for names in top.values())
    assert all(a[1] >= b[1] for names in top.values() for a, b in pairwise(names))
    assert "w[0]=sat" in [name for name, _ in worded.top_features(20)["O"]]
    assert worded.features is not worded.features_


def test_feature_strings_get_a_dictionary():
    X = [[["a", "b"], ["c"]], [["a"], ["c", "b"]]]
    model = mm.SequenceTagger(random_state=0).fit(X, [["x", "y"], ["x", "y"]])
    assert sorted(model.features_.feature_names_) == ["a", "b", "c"]
    assert model.predict([[["a", "never seen"]]])[0] == ["x"]


def test_transition_weights_are_part_of_coef(fitted):
    assert fitted.transition_weights_.shape == (10, 10)
    start = 65 * 10
    assert np.array_equal(fitted.transition_weights_.ravel(), fitted.coef_[start : start + 100])
    assert fitted.start_weights_.shape == fitted.stop_weights_.shape == (10,)
    assert np.any(fitted.start_weights_ != 0)


CONSTRAINTS = [
    "bio",
    np.array([[True, True, True], [True, True, True], [True, False, True]]),
    [("O", "I-N")],
    {"O": ["I-N"]},
    {"O": "I-N"},
    [("O", "I-N"), ("O", "I-UNSEEN")],
]


@pytest.mark.parametrize(
    "constraints", CONSTRAINTS, ids=["bio", "mask", "pairs", "map", "one", "unseen"]
)
def test_constraints_hold_in_prediction(constraints):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(6, 2)) for _ in range(8)]
    Y = [["B-N", "I-N", "O", "B-N", "I-N", "I-N"] for _ in X]
    noise = [rng.normal(size=(8, 2)) * 50 for _ in range(50)]
    free = mm.SequenceTagger(random_state=0, tol=0.1).fit(X, Y)
    bound = mm.SequenceTagger(random_state=0, tol=0.1, constraints=constraints).fit(X, Y)

    def breaks(model):
        return sum(a == "O" and b == "I-N" for y in model.predict(noise) for a, b in pairwise(y))

    assert breaks(bound) == 0
    # With the same weights of any kind, and none for transitions, the free model breaks the rule.
    weights = rng.normal(size=2 * 3)
    for model in (free, bound):
        model.coef_[:] = np.r_[weights, np.zeros(9)]
    assert breaks(free) > 0
    assert breaks(bound) == 0
    if isinstance(constraints, str):
        assert not any(y[0] == "I-N" for y in bound.predict(noise))


def test_sample_weight_works_like_repetition(words):
    X, Y = words.X_train[:12], words.y_train[:12]
    weights = np.array([1, 2, 3] * 4)
    weighted = mm.SequenceTagger(C=0.05, tol=1e-6, random_state=0).fit(X, Y, sample_weight=weights)
    repeated = mm.SequenceTagger(C=0.05, tol=1e-6, random_state=0).fit(
        [x for x, k in zip(X, weights, strict=True) for _ in range(k)],
        [y for y, k in zip(Y, weights, strict=True) for _ in range(k)],
    )
    assert weighted.result_.primal == pytest.approx(repeated.result_.primal, rel=1e-5)
    assert np.allclose(weighted.coef_, repeated.coef_, atol=5e-3)


def test_weights_of_score(fitted, words):
    X, Y = words.X_test[:5], words.y_test[:5]
    only = fitted.score(X, Y, sample_weight=[0, 0, 1, 0, 0])
    assert only == pytest.approx(fitted.score(X[2:3], Y[2:3]))


def test_clone_and_pickle(fitted, words):
    assert not hasattr(clone(fitted), "coef_")
    data = pickle.dumps(fitted)
    assert len(data) < 20 * fitted.coef_.nbytes
    again = pickle.loads(data)
    assert all(
        np.array_equal(a, b)
        for a, b in zip(again.predict(words.X_test), fitted.predict(words.X_test), strict=True)
    )


def test_grid_search(words):
    search = GridSearchCV(
        mm.SequenceTagger(tol=0.01, random_state=0), {"C": [0.001, 0.1]}, cv=3, error_score="raise"
    )
    search.fit(words.X_train, words.y_train)
    assert search.best_params_ == {"C": 0.1}
    assert search.best_score_ > 0.7


def test_fold_that_lacks_a_label():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(3, 2)) for _ in range(6)]
    Y = [["a", "b", "a"]] * 4 + [["a", "c", "b"], ["b", "a", "c"]]
    model = mm.SequenceTagger(tol=0.01, random_state=0)
    with pytest.warns(UserWarning, match=r"2 of 6 labels are unknown.*'c' at sequence 0, token 1"):
        scores = cross_val_score(model, X, Y, cv=3, error_score="raise")
    assert np.all(np.isfinite(scores)) and scores[2] <= 4 / 6


def test_warm_start_reuses_planes(words):
    model = mm.SequenceTagger(C=0.1, tol=1e-3, warm_start=True, random_state=0)
    model.fit(words.X_train, words.y_train)
    first = model.result_
    model.fit(words.X_train, words.y_train)
    assert model.result_.state is first.state
    assert model.result_.n_oracle_calls < first.n_oracle_calls
    model.set_params(C=0.12).fit(words.X_train, words.y_train)
    cold = mm.SequenceTagger(C=0.12, tol=1e-3, random_state=0)
    cold.fit(words.X_train, words.y_train)
    assert model.result_.primal == pytest.approx(cold.result_.primal, rel=2e-3)
    model.set_params(loss="zero_one").fit(words.X_train, words.y_train)
    assert model.result_.state is not first.state
    model.set_params(warm_start=False).fit(words.X_train, words.y_train)
    assert model.result_.state is None and not hasattr(model, "_kept")


def test_losses_train(words):
    X, Y = words.X_train[:20], words.y_train[:20]
    for loss in ("normalized_hamming", "zero_one"):
        for rescaling in ("margin", "slack"):
            model = mm.SequenceTagger(
                C=1.0, loss=loss, rescaling=rescaling, tol=0.05, random_state=0
            ).fit(X, Y)
            assert model.score(X, Y) > 0.9


def test_a_single_tiny_example_ends():
    """Nothing is left to gain after one step; training must notice."""
    model = mm.SequenceTagger(max_time=10, random_state=0).fit([np.eye(2)], [[0, 1]])
    assert model.result_.converged
