"""SequenceSegmenter, its metrics, and searches for segments at sizes that cannot be listed."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict

import maxmargin as mm
from brute_segments import segment_case
from checking import dense_rows
from maxmargin import check_problem
from maxmargin.core.formulation import Formulation
from maxmargin.features import WindowFeatures
from maxmargin.metrics import (
    chunk_scores,
    segment_f1,
    segment_scores,
    segments_to_tags,
    tags_to_segments,
)
from maxmargin.problems.segments import problem as segment_problem
from maxmargin.problems.segments.problem import LOSSES, SegmentProblem

WORDS = [
    ["Ann", "is", "in", "New", "York", "City"],
    ["New", "York", "is", "old"],
    ["in", "Rome", "Bo", "and", "Ann", "met"],
    ["it", "is", "old", "and", "new"],
]
SEGMENTS = [
    [(0, 1, "who"), (3, 6, "where")],
    [(0, 2, "where")],
    [(1, 2, "where"), (2, 3, "who"), (4, 5, "who")],
    [],
]


def segmenter(**parameters):
    return mm.SequenceSegmenter(random_state=0, **parameters)


def drawn(n=60, seed=0):
    """Vectors of tokens that tell the label of their segment, and, by noise, not where it ends."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        length = int(rng.integers(1, 12))
        x, own, t = rng.normal(size=(length, 4)), [], 0
        while t < length:
            label, size = int(rng.integers(3)), int(rng.integers(1, 5))
            stop = min(t + size, length)
            if label < 2:
                own.append((t, stop, label))
                x[t:stop, label] += 4.0
                x[t, 2] += 4.0
                x[stop - 1, 3] += 4.0
                t = stop
            else:
                t += 1
        X.append(x)
        y.append(own)
    return X, y


X, Y = drawn()
X_TEST, Y_TEST = drawn(seed=1)


# ----- the estimator ----------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_segments_are_learned(loss, tmp_path):
    model = segmenter(loss=loss, fit_intercept=True).fit(X, Y)
    assert model.result_.converged
    predicted = model.predict(X_TEST)
    assert model.score(X_TEST, Y_TEST) == segment_f1(Y_TEST, predicted) > 0.8
    assert all(type(value) is int for own in predicted for segment in own for value in segment)
    model.save(tmp_path / "model")
    assert mm.load(tmp_path / "model").predict(X_TEST) == predicted


def test_words_strings_dicts_and_matrices():
    model = segmenter(features=WindowFeatures()).fit(WORDS, SEGMENTS)
    assert model.predict(WORDS) == SEGMENTS and model.score(WORDS, SEGMENTS) == 1.0
    assert model.max_segment_lengths_ == {"where": 3, "who": 1}
    named = [[{"word": word} for word in words] for words in WORDS]
    assert segmenter(C=10.0).fit(named, SEGMENTS).predict(named) == SEGMENTS
    expected = segmenter().fit(X, Y)
    as_csr = segmenter().fit([sp.csr_matrix(x) for x in X], Y)
    assert np.array_equal(as_csr.coef_, expected.coef_)
    arrays = [np.array(own, dtype=np.int64).reshape(-1, 3)[::-1] for own in Y]  # in any order
    assert np.array_equal(segmenter().fit(X, arrays).coef_, expected.coef_)


def test_without_weights_of_last_tokens(tmp_path):
    full, model = segmenter().fit(X, Y), segmenter(last_tokens=False).fit(X, Y)
    assert len(full.coef_) - len(model.coef_) == 2 * X[0].shape[1]  # of two labels
    model.save(tmp_path / "model.mm")
    loaded = mm.load(tmp_path / "model.mm")
    assert loaded.predict(X) == model.predict(X) and loaded.top_features(2) == model.top_features(2)


def test_lengths_are_learned_or_given():
    seen = segmenter().fit(X, Y).max_segment_lengths_
    assert seen == {0: 4, 1: 4}
    model = segmenter(max_segment_length={1: 7}).fit(X, Y)
    assert model.max_segment_lengths_ == {0: 4, 1: 7}
    assert [len(w) for w in model.length_weights_.values()] == [4, 7]
    longest = max(len(x) for x in X)
    assert segmenter(max_segment_length=10**9).fit(X, Y).max_segment_lengths_ == {
        0: longest,
        1: longest,
    }
    # Nothing but the length tells where these segments end.
    same = [np.ones((n, 1)) for n in (3, 6, 9)]
    thirds = [[(t, t + 3, "x") for t in range(0, len(x), 3)] for x in same]
    model = segmenter(C=10.0, max_segment_length=5).fit(same, thirds)
    assert model.predict(same) == thirds
    assert np.argmax(model.length_weights_["x"]) == 2
    longest = max(
        stop - start for own in model.predict([np.ones((50, 1))]) for start, stop, _ in own
    )
    assert longest <= 5


def test_what_was_learned_can_be_looked_at():
    model = segmenter(features=WindowFeatures(), fit_intercept=True).fit(WORDS, SEGMENTS)
    assert model.transition_weights_.shape == (3, 3)
    inside = model.top_features(3)
    assert list(inside) == ["where", "who", None] and all(len(v) <= 3 for v in inside.values())
    assert list(model.top_features(where="last", against=True)) == ["where", "who"]
    with pytest.raises(ValueError, match="where must be 'inside', 'first' or 'last'"):
        model.top_features(where="middle")
    with pytest.raises(ValueError, match="last_tokens is False"):
        segmenter(last_tokens=False).fit(X, Y).top_features(where="last")
    # The columns are those that the scores are made of.
    weights = np.zeros_like(model.coef_)
    weights[model._decoder.layout.model.lengths[1]] = 1.0
    model.coef_ = weights
    assert model.length_weights_["who"].tolist() == [1.0]
    assert model.predict([["x"]]) == [[(0, 1, "who")]]


def test_scikit_learns_tools():
    search = GridSearchCV(segmenter(), {"C": [1e-4, 1.0], "loss": ["hamming"]}, cv=3).fit(X, Y)
    assert search.best_params_["C"] == 1.0 and search.best_score_ > 0.7
    model = segmenter(max_segment_length=6)
    assert clone(model).get_params() == model.get_params()
    found = cross_val_predict(model, X, Y, cv=2)
    half = len(X) // 2
    assert list(found[half:]) == clone(model).fit(X[:half], Y[:half]).predict(X[half:])


def test_weights_of_sequences_multiply_their_slacks():
    weights = np.where(np.arange(len(X)) < 10, 3.0, 1.0)
    model = segmenter(tol=1e-5).fit(X, Y, sample_weight=weights)
    same = segmenter(tol=1e-5).fit(X + X[:10] * 2, Y + Y[:10] * 2)
    assert model.result_.primal == pytest.approx(same.result_.primal, rel=1e-4)
    assert model.score(X, Y, sample_weight=weights) == pytest.approx(
        model.score(X + X[:10] * 2, Y + Y[:10] * 2)
    )


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            [(0, 2, "a"), (1, 3, "b")],
            r"sequence 1: segments \(0, 2, 'a'\) and \(1, 3, 'b'\) overlap",
        ),
        ([(2, 4, "a")], r"sequence 1, segment 0: \(2, 4, 'a'\) is not within the 3 tokens"),
        ([(1, 1, "a")], "sequence 1, segment 0: .* expected 0 <= start < stop <= 3"),
        ([(-1, 1, "a")], "sequence 1, segment 0: .* is not within"),
        ([(0.5, 1, "a")], "sequence 1, segment 0: start and stop must be whole numbers"),
        ([(0, 1, "a"), (1, 2)], r"sequence 1, segment 1: expected \(start, stop, label\), got"),
        (["B-a"], r"sequence 1, segment 0: expected \(start, stop, label\), got 'B-a'"),
        (7, r"y\[1\] is 7, expected a list of \(start, stop, label\)"),
        ([(0, 1, None)], "sequence 1, segment 0: None is not a label"),
        ([(0, 1, ["a"])], "sequence 1, segment 0: label .* is not hashable"),
    ],
)
def test_wrong_segments_are_named(wrong, said):
    with pytest.raises(ValueError, match=said):
        segmenter().fit([np.ones((2, 2)), np.ones((3, 2))], [[(0, 1, "a")], wrong])


def test_other_wrong_input():
    given = [np.ones((3, 2))], [[(0, 3, "a")]]
    for parameters, said in (
        ({"loss": "f2"}, "loss must be 'segments', 'hamming', 'f1' or 'zero_one', got 'f2'"),
        (
            {"max_segment_length": 2},
            r"sequence 0: segment \(0, 3, 'a'\) has 3 tokens, more than max_segment_length",
        ),
        ({"max_segment_length": 0}, "max_segment_length must be a whole number >= 1, got 0"),
        (
            {"max_segment_length": {"b": 2}},
            "max_segment_length has 'b', which is not a segment label",
        ),
    ):
        with pytest.raises(ValueError, match=said):
            segmenter(**parameters).fit(*given)
    with pytest.raises(ValueError, match="y has no segments"):
        segmenter().fit(given[0], [[]])
    with pytest.raises(ValueError, match="X has 1 sequences but y has 2"):
        segmenter().fit(given[0], [[], []])
    model = segmenter().fit(*given)
    with pytest.warns(UserWarning, match="'new' at sequence 1, segment 0"):
        assert model.score([np.ones((3, 2))] * 2, [[(0, 3, "a")], [(0, 3, "new")]]) == 0.5
    with pytest.raises(ValueError, match=r"sample_weight\[0\] is -1.0; .* finite and >= 0"):
        model.score(*given, sample_weight=[-1.0])
    with pytest.raises(NotFittedError):
        segmenter().top_features()


# ----- the problem ------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("loss", LOSSES)
def test_the_problem_says_what_its_oracle_computes(loss):
    for options in ({}, {"layout": "csr", "fit_intercept": True, "longest": (1, 2, 5)}):
        case = segment_case(np.random.default_rng(3), loss=loss, **options)
        check_problem(case.problem)
        part = case.problem.subset(np.array([3, 0]))
        assert part.Y[:] == [case.problem.Y[3], case.problem.Y[0]]
        w = np.random.default_rng(0).normal(size=case.problem.n_features)
        both, whole = part.oracle(np.arange(2), w), case.problem.oracle(np.array([3, 0]), w)
        assert all(np.array_equal(a, b) for a, b in zip(both, whole, strict=True))


@pytest.mark.parametrize("loss", ["hamming", "segments"])
def test_searches_agree_on_long_sequences(loss, monkeypatch):
    """Along the search and by levels: what 1 - F1 and slack rescaling need, on 60 tokens."""
    rng = np.random.default_rng(0)
    tokens, offsets = rng.normal(size=(60, 5)), np.array([0, 60])
    gold = [[(t, t + 1 + t % 4, t % 3) for t in range(0, 55, 5)]]
    problem = SegmentProblem(tokens, offsets, gold, loss=loss)
    w = 0.1 * rng.normal(size=problem.n_features)
    plain = problem.oracle(np.arange(1), w)
    by_levels = segment_problem.SearchMode(segment_problem.ERROR_COUNTS, False, False)
    monkeypatch.setattr(segment_problem, "search_mode", lambda *_: by_levels)
    levels = problem.oracle(np.arange(1), w)
    assert plain.losses[0] == levels.losses[0] > 0.0
    assert np.allclose(dense_rows(plain, len(w)), dense_rows(levels, len(w)))


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("loss", ["f1", "segments", "hamming"])
def test_bounds_lose_no_segmentation(loss, rescaling):
    """Against all levels of all beginnings, on more tokens than can be listed."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n, K, most = 14, 2, 3
        gold = [(t, t + 1 + t % 2, t % K) for t in range(0, n - 1, 3)]
        problem = SegmentProblem(rng.normal(size=(n, 2)), [0, n], [gold], [most] * K, loss=loss)
        w = 10.0 ** rng.uniform(-2, 1) * rng.normal(size=problem.n_features)
        found = problem.oracle(np.arange(1), w, rescaling, sqrt_loss=seed % 2 == 1)
        terms = Formulation(rescaling, sqrt_loss=seed % 2 == 1).plane_terms
        best = 0.0
        for (right, count), gain in best_gains(problem, gold, w).items():
            delta = float(count) if loss == "hamming" else len(gold) + count - 2.0 * right
            delta /= len(gold) + count if loss == "f1" else 1.0
            offset, scale = terms(np.array([delta]))
            best = max(best, float((offset + scale * gain)[0]))
        offset, scale = terms(found.losses)
        value = offset[0] - scale[0] * (dense_rows(found, len(w)) @ w)[0]
        assert value == pytest.approx(best, abs=1e-9)


def best_gains(problem, gold, w):
    """The best score beyond the truth's of all levels, by states (place, label, level)."""
    x, layout, K = problem.input_of(0).toarray(), problem.layout, problem.layout.n_labels
    scores, moves, n = x @ layout.of_tokens(w), layout.transitions(w), len(x)
    tags = [(K, True)] * n
    for start, stop, label in gold:
        tags[start:stop] = [(label, t == start) for t in range(start, stop)]
    states = [{} for _ in range(n + 1)]
    states[0] = {(None, 0, 0): 0.0}
    for s in range(n):
        for (before, right, count), score in states[s].items():
            for label in range(K + 1):
                for stop in range(
                    s + 1, min(s + (layout.longest[label] if label < K else 1), n) + 1
                ):
                    value = score + scores[s:stop, label].sum()
                    value += 0.0 if before is None else moves[before, label]
                    if label < K:
                        value += scores[s, K + 1 + label] + scores[stop - 1, 2 * K + 1 + label]
                        value += layout.lengths(w, label)[stop - s - 1]
                    if problem.data.loss == LOSSES["hamming"]:
                        wrong = [tags[t] != (label, t == s) for t in range(s, stop)]
                        key = (label, 0, count + sum(wrong))
                    else:
                        key = (label, right + ((s, stop, label) in gold), count + (label < K))
                    states[stop][key] = max(states[stop].get(key, -np.inf), value)
    of_gold = (problem.joint_feature(problem.input_of(0), gold).toarray() @ w).item()
    gains = {}
    for (_, right, count), score in states[n].items():
        gains[right, count] = max(gains.get((right, count), -np.inf), score - of_gold)
    return gains


def test_tables_that_are_too_large_are_refused():
    gold = [[(0, 1, 0)], [(t, t + 1, 0) for t in range(1000)]]
    problem = SegmentProblem(np.ones((1001, 1)), np.array([0, 1, 1001]), gold, loss="f1")
    with pytest.raises(
        ValueError, match="inference by error counts in sequence 1, of 1000 tokens, takes too"
    ):
        problem.oracle(np.arange(2), np.zeros(problem.n_features))
    problem.predictions(np.arange(2), np.zeros(problem.n_features))


def test_the_problem_refuses_segments_that_do_not_fit():
    tokens, offsets = np.ones((3, 1)), np.array([0, 3])
    for segments, longest, said in (
        ([(0, 4, 0)], None, r"sequence 0: segment \(0, 4, 0\) is not within its 3 tokens"),
        ([(0, 2, 0), (1, 3, 0)], None, "overlaps the segment before it, which stops at 2"),
        ([(0, 2, 0)], [1], "has 2 tokens; the most for its label are 1"),
        ([(0, 2, 1)], [3], r"labels must be in 0..0"),
    ):
        with pytest.raises(ValueError, match=said):
            SegmentProblem(tokens, offsets, [segments], longest)


# ----- metrics ----------------------------------------------------------------------------------


def test_tags_and_segments_there_and_back():
    lengths = [len(x) for x in X]
    named = [[(start, stop, f"L{label}") for start, stop, label in own] for own in Y]
    tags = segments_to_tags(named, lengths)
    assert tags_to_segments(tags) == named
    with pytest.raises(ValueError, match=r"sequence 0: \(0, 9, 'a'\) is not within 3 tokens"):
        segments_to_tags([[(0, 9, "a")]], [3])


def test_scores_are_those_of_chunks():
    lengths = [len(x) for x in X_TEST]
    predicted = segmenter().fit(X, Y).predict(X_TEST)
    scores = segment_scores(Y_TEST, predicted)
    expected = chunk_scores(segments_to_tags(Y_TEST, lengths), segments_to_tags(predicted, lengths))
    assert scores[:3] == expected[:3] and scores.f1 == segment_f1(Y_TEST, predicted)
    assert list(scores.per_label.values()) == list(expected.per_type.values())
    assert "micro average" in str(scores) and scores.macro == expected.macro
    assert segment_f1([[]], [[]]) == 1.0 and segment_f1([[]], [[(0, 1, "a")]]) == 0.0
    with pytest.raises(ValueError, match="y_true has 1 lists of segments, y_pred has 2"):
        segment_f1([[]], [[], []])
