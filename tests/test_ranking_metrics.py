"""Scores of rankings, against their definitions spelled out."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score

from maxmargin.metrics import (
    average_precision,
    letor_ndcg,
    mean_swapped_pairs,
    ndcg,
    ranking_scores,
    swapped_pairs,
)

# One query: relevances by falling score are 0, 2, 1, 0, 1.
Y, S = [0, 2, 1, 0, 1], [5.0, 4.0, 3.0, 2.0, 1.0]


def queries(rng, whole_scores=True):
    n = int(rng.integers(1, 25))
    y, qid = rng.integers(0, 3, n), rng.integers(0, 5, n) * 7 - 3
    return y, rng.integers(0, 6, n) / 2.0 if whole_scores else rng.normal(size=n), qid


def by_query(y, s, qid):
    return [(y[qid == q], s[qid == q]) for q in np.unique(qid)]


def ranked(y, s):
    return [y[d] for d in sorted(range(len(y)), key=lambda d: -s[d])]


def dcg(relevances, discount, k):
    places = list(enumerate(relevances, 1))[:k]
    return sum((2**r - 1) / discount(p) for p, r in places)


def mean_ndcg(y, s, qid, discount, k, empty, shortest=0):
    values = []
    for own, scores in by_query(y, s, qid):
        best = dcg(sorted(own, reverse=True), discount, k)
        if best and len(own) >= shortest:
            values.append(dcg(ranked(own, scores), discount, k) / best)
        elif empty is not None:
            values.append(empty)
    return np.mean(values) if values else math.nan


def test_one_query_by_hand():
    best = 3 + 1 / math.log2(3) + 1 / 2
    found = 3 / math.log2(3) + 1 / 2 + 1 / math.log2(6)
    assert ndcg(Y, S) == pytest.approx(found / best)
    assert ndcg(Y, S, k=2) == pytest.approx((3 / math.log2(3)) / (3 + 1 / math.log2(3)))
    letor = (3 + 1 / math.log2(3) + 1 / math.log2(5)) / (3 + 1 + 1 / math.log2(3))
    assert letor_ndcg(Y, S) == pytest.approx(letor)
    assert letor_ndcg(Y, S, k=2) == pytest.approx(3 / 4)
    assert letor_ndcg(Y, S, k=5) == pytest.approx(letor)
    assert letor_ndcg(Y, S, k=6) == 0.0  # fewer documents than places
    assert average_precision(Y, S) == pytest.approx((1 / 2 + 2 / 3 + 3 / 5) / 3)
    # 8 pairs: the first document stands before 3 better ones, the fourth before one.
    assert swapped_pairs(Y, S) == mean_swapped_pairs(Y, S) == 4 / 8


def test_equal_scores():
    assert swapped_pairs([0, 1], [1.0, 1.0]) == 0.5
    assert swapped_pairs([0, 1], [1.0, 1.0], ties="wrong") == 1.0
    assert ndcg([0, 1], [1.0, 1.0]) == pytest.approx(1 / math.log2(3))  # in the order of the data
    with pytest.raises(ValueError, match="ties must be 'half' or 'wrong', got 'right'"):
        swapped_pairs(Y, S, ties="right")


def test_queries_in_which_nothing_can_be_wrong():
    y, s, qid = [0, 0, 0, 1], [1.0, 2.0, 2.0, 1.0], [1, 1, 2, 2]
    half = 1 / math.log2(3)
    assert ndcg(y, s, qid) == pytest.approx(half)
    assert ndcg(y, s, qid, empty=1.0) == pytest.approx((1 + half) / 2)
    assert letor_ndcg(y, s, qid) == 0.5
    assert average_precision(y, s, qid) == 0.25
    assert average_precision(y, s, qid, empty=None) == 0.5
    assert swapped_pairs(y, s, qid) == mean_swapped_pairs(y, s, qid) == 1.0
    assert mean_swapped_pairs(y, s, qid, empty=0.0) == 0.5
    for score in (ndcg, swapped_pairs, mean_swapped_pairs):
        assert math.isnan(score([1, 1], [1.0, 2.0]) if score is not ndcg else ndcg([0], [1.0]))


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), k=st.sampled_from([None, 1, 2, 5]))
def test_against_the_definitions(seed, k):
    y, s, qid = queries(np.random.default_rng(seed))
    usual, letor = (lambda p: math.log2(p + 1)), (lambda p: max(1.0, math.log2(p)))
    for empty in (None, 0.0, 1.0):
        expected = mean_ndcg(y, s, qid, usual, k, empty)
        assert ndcg(y, s, qid, k=k, empty=empty) == pytest.approx(expected, nan_ok=True)
    expected = mean_ndcg(y, s, qid, letor, k, 0.0, shortest=k or 0)
    assert letor_ndcg(y, s, qid, k=k) == pytest.approx(expected)
    for ties, weight in (("half", 0.5), ("wrong", 1.0)):
        swapped, pairs = [], []
        for own, scores in by_query(y, s, qid):
            better = own[:, None] > own
            lower = (scores[:, None] < scores) + weight * (scores[:, None] == scores)
            swapped.append(lower[better].sum())
            pairs.append(better.sum())
        swapped, pairs = np.array(swapped), np.array(pairs)
        if pairs.any():
            assert swapped_pairs(y, s, qid, ties=ties) == pytest.approx(swapped.sum() / pairs.sum())
            mean = (swapped[pairs > 0] / pairs[pairs > 0]).mean()
            assert mean_swapped_pairs(y, s, qid, ties=ties) == pytest.approx(mean)


def test_beside_scikit_learn():
    rng = np.random.default_rng(0)
    for _ in range(20):
        y, s, _ = queries(rng, whole_scores=False)
        if y.any() and len(y) > 1:
            gains = 2.0**y - 1
            assert ndcg(y, s, k=3) == pytest.approx(ndcg_score([gains], [s], k=3))
            assert average_precision(y, s) == pytest.approx(average_precision_score(y > 0, s))


def test_weights_of_queries():
    y, s, qid = [0, 1, 1, 0], [2.0, 1.0, 2.0, 1.0], [1, 1, 2, 2]
    weights = [3.0, 3.0, 1.0, 1.0]
    assert mean_swapped_pairs(y, s, qid, sample_weight=weights) == 0.75
    assert average_precision(y, s, qid, sample_weight=weights) == (3 * 0.5 + 1) / 4
    assert letor_ndcg(y, s, qid, k=1, sample_weight=weights) == 0.25
    assert ndcg(y, s, qid, k=1, sample_weight=[0, 0, 1, 1]) == 1.0
    with pytest.raises(ValueError, match=r"sample_weight\[1\] is 2.0, but 3.0 for another"):
        ndcg(y, s, qid, sample_weight=[3.0, 2.0, 1.0, 1.0])


def test_all_scores_at_once():
    y, s, qid = queries(np.random.default_rng(3))
    scores = ranking_scores(y, s, qid, k=2)
    assert scores.ndcg == ndcg(y, s, qid, k=2) and scores.letor_ndcg == letor_ndcg(y, s, qid, k=2)
    assert scores.svm_rank_loss == mean_swapped_pairs(y, s, qid, empty=0.0)
    assert "NDCG@2 of LETOR 4.0" in str(scores) and len(str(scores).splitlines()) == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2], [1.0]), r"shapes \(2,\) and \(1,\)"),
        (([1, 2], [1.0, 2.0], [1]), r"qid of shape \(1,\)"),
        (([], []), "at least one document"),
        (([1, 2], [1.0, np.nan]), r"y_score\[1\] is nan"),
        (([np.inf, 2], [1.0, 1.0]), r"y_true\[0\] is inf"),
        (([-1, 2], [1.0, 1.0]), "relevances >= 0, got -1"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        ndcg(*arguments)
    with pytest.raises(ValueError, match="k must be a whole number of places >= 1"):
        ndcg(Y, S, k=0)
