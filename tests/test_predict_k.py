"""The k best outputs of estimators that find them by other searches than chains and trees."""

import itertools

import numpy as np
import pytest

import maxmargin as mm
from brute_multilabel import multilabel_case
from brute_segments import all_segmentations, segment_case
from maxmargin.engine.rows import make_rows
from maxmargin.problems.multilabel.problem import rank_labels
from maxmargin.problems.segments.layout import Pieces, segments_of


def check_ranking(ranked, every, k):
    """``every`` has the score of each possible output; ties come in any order."""
    expected = sorted(every.values(), reverse=True)[:k]
    assert [score for _, score in ranked] == pytest.approx(expected, rel=1e-9, abs=1e-9)
    outputs = [output for output, _ in ranked]
    assert len(set(outputs)) == len(outputs) == len(expected)
    own = [every[output] for output in outputs]
    assert own == pytest.approx(expected, rel=1e-9, abs=1e-9)


# ----- segments ----------------------------------------------------------------------------------


def ranked_segments(case, w, k):
    data = case.problem.data
    best = case.problem.decoder.decode_k_best(data.rows, data.offsets, w, k)
    for i, (first, end) in enumerate(itertools.pairwise(data.offsets)):
        yield [
            (
                tuple(
                    segments_of(
                        Pieces(best.labels[r, first:end], best.lengths[r, first:end]), case.twin.K
                    )
                ),
                best.scores[i, r],
            )
            for r in range(best.found[i])
        ]


@pytest.mark.parametrize("last_tokens", [True, False])
@pytest.mark.parametrize("longest", [(2, 3), (1,), (4, 1, 2)])
def test_segmentations_equal_brute_force(longest, last_tokens):
    rng = np.random.default_rng(7)
    for k in (1, 2, 7, 10_000):
        case = segment_case(rng, longest=longest, last_tokens=last_tokens)
        for w in (rng.normal(size=case.twin.n_features), np.zeros(case.twin.n_features)):
            for i, ranked in enumerate(ranked_segments(case, w, k)):
                check_ranking(ranked, {y: case.twin.psi(i, y) @ w for y in case.twin.outputs(i)}, k)


def segmenter_and_data(rng, n_jobs=None):
    lengths = [3, 1, 4, 2]
    X = [rng.normal(size=(n, 2)) for n in lengths]
    y = [[(0, 2, "b")], [(0, 1, "a")], [(1, 4, "b"), (0, 1, "c")], []]
    model = mm.SequenceSegmenter(fit_intercept=True, random_state=0, C=3.0, n_jobs=n_jobs)
    return model.fit(X, y), X


def scores_of_all(model, x):
    """Scores of all lists of segments of a sequence, by the weights as the docs describe them."""
    names, lengths = model.classes_.tolist(), model.max_segment_lengths_
    K, weights = len(names), model.length_weights_
    inputs = np.hstack([x, np.ones((len(x), 1))])
    tokens = inputs @ model.coef_[: 3 * (3 * K + 1)].reshape(3, 3 * K + 1)
    every = {}
    for coded in all_segmentations(len(x), [lengths[name] for name in names]):
        pieces = {start: (start, stop, k) for start, stop, k in coded}
        t, before, total = 0, None, 0.0
        while t < len(x):
            start, stop, k = pieces.get(t, (t, t + 1, K))
            total += tokens[start:stop, k].sum()
            if k < K:
                total += tokens[start, K + 1 + k] + tokens[stop - 1, 2 * K + 1 + k]
                total += weights[names[k]][stop - start - 1]
            if before is not None:
                total += model.transition_weights_[before, k]
            t, before = stop, k
        every[tuple((start, stop, names[k]) for start, stop, k in coded)] = total
    return every


def as_tuples(ranked):
    return [(tuple(segments), score) for segments, score in ranked]


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_segmenters_list_their_best_segmentations(n_jobs):
    model, X = segmenter_and_data(np.random.default_rng(0), n_jobs)
    for k in (1, 4, 1000):
        for x, best, ranked in zip(X, model.predict(X), model.predict_k(X, k), strict=True):
            assert ranked[0][0] == best
            check_ranking(as_tuples(ranked), scores_of_all(model, x), k)
    assert model.predict_k([X[0][:0], X[0]], 2)[0] == [([], 0.0)]
    with pytest.raises(ValueError, match="k must be a whole number >= 1"):
        model.predict_k(X, 0)


def test_fixed_segments_equal_brute_force():
    rng = np.random.default_rng(1)
    model, _ = segmenter_and_data(rng)
    labels, longest = model.classes_.tolist(), model.max_segment_lengths_
    n_choices = 0
    for _ in range(60):
        X = [rng.normal(size=(n, 2)) for n in (4, 2, 5)]
        every = [scores_of_all(model, x) for x in X]
        fixed = []
        for own in every:
            outputs = [output for output in own if output]
            output = outputs[rng.integers(len(outputs))]
            n_kept = rng.integers(len(output) + 1)
            fixed.append([])
            for i in sorted(rng.permutation(len(output))[:n_kept].tolist()):
                start, stop, label = output[i]
                kind = rng.integers(3)
                label = [label, {label, labels[rng.integers(3)]}, None][kind]
                fixed[-1].append((start, stop, label))
                n_choices += kind > 0
        fixed[1] = None

        def agrees(output, known):
            return all(
                any(
                    segment[:2] == own[:2] and (own[2] is None or segment[2] in own[2])
                    for segment in output
                )
                for own in known or ()
            )

        found = model.predict(X, fixed=fixed)
        for k in (1, 3, 1000):
            for own, known, best, ranked in zip(
                every, fixed, found, model.predict_k(X, k, fixed), strict=True
            ):
                allowed = {y: score for y, score in own.items() if agrees(y, known)}
                check_ranking(as_tuples(ranked), allowed, k)
                assert ranked[0][0] == best
    assert n_choices > 20 and max(longest.values()) == 3


def test_wrong_fixed_segments():
    model, X = segmenter_and_data(np.random.default_rng(2))
    for fixed, message in (
        ([[(0, 2, "b"), (1, 3, "b")]], r"fixed: sequence 0: segments .* overlap"),
        (
            [[(2, 4, "b")]],
            r"fixed: sequence 0, segment 0: \(2, 4, 'b'\) is not within the 3 tokens",
        ),
        ([[(0, 2, "a")]], r"\(0, 2, 'a'\) has 2 tokens, more than max_segment_lengths_ allows: 1"),
        ([[(0, 2, {"a", "c"})]], "has 2 tokens, more than max_segment_lengths_ allows: 1"),
        ([[(0, 1, "z")]], r"'z' is not a label; expected one of \['a', 'b', 'c'\]"),
        ([[(0, 1, set())]], "the set is empty"),
        ([[(0, 1)]], r"fixed: sequence 0, segment 0: expected \(start, stop, label\)"),
        ([[], []], "X has 1 sequences but fixed has 2"),
        ("abc", "fixed must be a list of segments"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict(X[:1], fixed)
    with pytest.raises(ValueError, match="example 0 is empty, but fixed has 1 entries"):
        model.predict([X[0][:0]], [[(0, 1, "a")]])
    assert model.predict(X, [None] * len(X)) == model.predict(X)


# ----- sets of labels ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["none", "tree", "forest", "cycle"])
def test_label_sets_equal_brute_force(kind):
    rng = np.random.default_rng(3)
    for k in (1, 5, 100):
        case = multilabel_case(rng, kind=kind, fit_intercept=True)
        for w in (rng.normal(size=case.twin.n_features), np.zeros(case.twin.n_features)):
            ranked = rank_labels(make_rows(case.twin.X), case.problem.graph, w, k)
            for i, own in enumerate(ranked):
                every = {y: case.twin.psi(i, y) @ w for y in case.twin.outputs(i)}
                check_ranking([(tuple(y.tolist()), score) for y, score in own], every, k)


@pytest.mark.parametrize("edges", [None, "tree", "pairs"])
def test_multilabel_classifiers_list_their_best_sets(edges):
    rng = np.random.default_rng(4)
    X, Y = rng.normal(size=(30, 3)), rng.random((30, 4)) < 0.4
    model = mm.MultilabelSVM(edges=edges, random_state=0).fit(X, Y)
    for found, ranked in zip(model.predict(X), model.predict_k(X, 40), strict=True):
        assert len(ranked) == 16 and ranked[0][0].tolist() == found.tolist()
    on = np.array(list(itertools.product((0, 1), repeat=4)))
    together = np.array([[y[a] * y[b] for a, b in model.edges_] for y in on]).reshape(16, -1)
    scores = (X @ model.coef_.T + model.intercept_) @ on.T + together @ model.pair_weights_
    for own, ranked in zip(scores, model.predict_k(X, 3), strict=True):
        every = dict(zip(map(tuple, on.tolist()), own.tolist(), strict=True))
        check_ranking([(tuple(y.tolist()), score) for y, score in ranked], every, 3)


# ----- matchings ---------------------------------------------------------------------------------


@pytest.mark.parametrize("allow_unmatched", [False, True])
def test_matchings_equal_brute_force(allow_unmatched):
    rng = np.random.default_rng(5)
    shapes = [(3, 3), (2, 4), (4, 2), (1, 1), (0, 2), (2, 0)]
    X = [rng.normal(size=(*shape, 2)) for shape in shapes]
    y = [[0, 1, 2], [3, 0], [1, 0, -1, -1], [0], [], [-1, -1]]
    model = mm.SetMatcher(allow_unmatched=allow_unmatched, random_state=0).fit(X, y)
    n_tied = 0
    for _ in range(10):
        X = [np.round(rng.normal(size=(*shape, 2))) for shape in shapes]
        for k in (1, 4, 1000):
            for x, best, ranked in zip(X, model.predict(X), model.predict_k(X, k), strict=True):
                pair = x @ model.coef_[:2] + model.coef_[2]
                n_left, n_right = pair.shape
                every = {}
                for partners in itertools.product(range(-1, n_right), repeat=n_left):
                    used = [p for p in partners if p >= 0]
                    fewest = 0 if allow_unmatched else min(n_left, n_right)
                    if len(set(used)) == len(used) >= fewest:
                        pairs = [pair[i, p] for i, p in enumerate(partners) if p >= 0]
                        every[partners] = sum(pairs)
                check_ranking([(tuple(p.tolist()), score) for p, score in ranked], every, k)
                assert ranked[0][0].tolist() == best.tolist()
                scores = np.sort(list(every.values()))
                n_tied += int((np.diff(scores) < 1e-12).sum())
    assert n_tied > 0
    again = model.predict_k(X, 50)
    assert repr(again) == repr(model.predict_k(X, 50))


# ----- grades ------------------------------------------------------------------------------------


@pytest.mark.parametrize("grades", [["low", "high"], ["low", "middle", "high", "top"]])
@pytest.mark.parametrize("loss", ["absolute", "pairs"])
def test_grades_by_score(grades, loss):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(40, 2))
    y = np.array(grades)[np.digitize(X[:, 0], [0.0, 0.5, 1.0][: len(grades) - 1])]
    model = mm.OrdinalSVM(grades=grades, loss=loss, random_state=0).fit(X, y)
    linear = X @ model.coef_
    for i, (best, ranked) in enumerate(zip(model.predict(X), model.predict_k(X, 9), strict=True)):
        beyond = linear[i] - model.thresholds_
        every = {grade: float(beyond[:g].sum()) for g, grade in enumerate(grades)}
        check_ranking(ranked, every, 9)
        assert ranked[0][0] == best
    assert [len(ranked) for ranked in model.predict_k(X, 1)] == [1] * 40
