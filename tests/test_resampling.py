"""Intervals and tests by resampling, against plain loops over units."""

import itertools

import numpy as np
import pytest

from maxmargin.metrics import (
    Ratio,
    bootstrap_intervals,
    chunk_counts,
    chunk_scores,
    paired_comparison,
)
from maxmargin.metrics.tallies import _resampled, _swapped, _table

N = 60


def drawn_scores(seed, n=N):
    """F1 and accuracy of made-up units."""
    rng = np.random.default_rng(seed)
    true, found = rng.integers(0, 4, n), rng.integers(0, 4, n)
    right = np.minimum(np.minimum(true, found), rng.integers(0, 4, n))
    lengths = rng.integers(4, 9, n)
    return {
        "f1": Ratio(2.0 * right, (true + found).astype(float)),
        "accuracy": Ratio(lengths - rng.integers(0, 3, n).astype(float), lengths.astype(float)),
    }


def naive(scores, chosen):
    """The score of some units, one after the other."""
    top = bottom = 0.0
    for unit in chosen:
        top, bottom = top + scores.tops[unit], bottom + scores.bottoms[unit]
    return top / bottom if bottom else 0.0


def test_intervals_are_those_of_a_loop():
    scores = drawn_scores(0)
    rng = np.random.default_rng(5)
    draws = [rng.integers(0, N, N) for _ in range(4000)]
    found = bootstrap_intervals(scores, resamples=20000, random_state=1)
    for name, ratio in scores.items():
        values = [naive(ratio, draw) for draw in draws]
        assert found[name].score == pytest.approx(naive(ratio, range(N)))
        assert found[name][1:] == pytest.approx(np.quantile(values, [0.025, 0.975]), abs=0.01)
    narrow = bootstrap_intervals(scores, level=0.5, resamples=20000, random_state=1)
    assert narrow["f1"].high - narrow["f1"].low < 0.5 * (found["f1"].high - found["f1"].low)
    assert bootstrap_intervals(scores) == bootstrap_intervals(scores)
    assert bootstrap_intervals(scores) != bootstrap_intervals(scores, random_state=1)


def test_resamples_draw_as_many_units_and_all_columns_together():
    """Of two kinds of units there are as many as of all, and what belongs together stays so."""
    kinds = np.array([0.0] * 30 + [1.0] * 10)
    sums = np.concatenate(list(_resampled(np.column_stack([kinds, 1 - kinds]), 3000, 0)))
    assert np.all(sums.sum(axis=1) == 40)
    assert sums[:, 0].mean() == pytest.approx(10, abs=0.3)
    assert sums[:, 0].var() == pytest.approx(40 * 0.25 * 0.75, rel=0.15)


def test_blocks_of_resamples_make_up_all_of_them(monkeypatch):
    monkeypatch.setattr("maxmargin.metrics.tallies.MOST_DRAWS", 7 * N)
    scores = drawn_scores(0)
    assert len(np.concatenate(list(_resampled(_table(scores), 100, 0)))) == 100
    assert 0.0 <= paired_comparison(scores, drawn_scores(1), resamples=100)["f1"].p <= 1.0


def test_p_is_that_of_all_exchanges():
    """Of eight units all 256 ways to exchange them can be listed."""
    ours, theirs = drawn_scores(3, 8), drawn_scores(4, 8)
    found = paired_comparison(ours, theirs, resamples=50000, random_state=2)
    for name in ours:
        a, b = np.array(ours[name][:2]), np.array(theirs[name][:2])
        seen = []
        for swaps in itertools.product([False, True], repeat=8):
            first, second = np.where(swaps, b, a).sum(axis=1), np.where(swaps, a, b).sum(axis=1)
            seen.append(abs(first[0] / first[1] - second[0] / second[1]))
        difference = ours[name].score - theirs[name].score
        assert found[name].difference == pytest.approx(difference)
        exact = np.mean(np.array(seen) >= abs(difference) - 1e-12)
        assert found[name].p == pytest.approx(exact, abs=0.01)


def test_interval_of_a_difference_draws_the_same_units_for_both():
    scores = drawn_scores(0)
    worse = {"f1": scores["f1"]._replace(tops=scores["f1"].tops * 0.5)}
    found = paired_comparison(scores, worse, resamples=20000)
    assert list(found) == ["f1"]
    rng = np.random.default_rng(5)
    values = []
    for _ in range(4000):
        draw = rng.integers(0, N, N)
        values.append(naive(scores["f1"], draw) - naive(worse["f1"], draw))
    assert found["f1"][3:5] == pytest.approx(np.quantile(values, [0.025, 0.975]), abs=0.01)
    assert found["f1"].p == pytest.approx(1 / 20001)


def test_a_model_does_not_differ_from_itself():
    scores = drawn_scores(0)
    for found in paired_comparison(scores, scores).values():
        assert (found.difference, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)


def test_exchanges_keep_what_both_have():
    ours, theirs = _table(drawn_scores(0)), _table(drawn_scores(1))
    for sums in _swapped(ours, theirs, 50, 0):
        half = sums.shape[1] // 2
        both = sums[:, :half] + sums[:, half:]
        assert both == pytest.approx(np.broadcast_to((ours + theirs).sum(axis=0), both.shape))


def test_nothing_to_divide_by_counts_as_nothing():
    assert Ratio(np.zeros(3), np.zeros(3)).score == 0.0
    found = bootstrap_intervals({"f1": Ratio(np.zeros(3), np.zeros(3))})["f1"]
    assert found == (0.0, 0.0, 0.0)


def test_bad_arguments_are_refused():
    scores = drawn_scores(0)
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        bootstrap_intervals(scores, level=95)
    with pytest.raises(ValueError, match="resamples must be 1 or more"):
        bootstrap_intervals(scores, resamples=0)
    with pytest.raises(ValueError, match="of 60 units, the others of 8"):
        paired_comparison(scores, drawn_scores(0, 8))
    with pytest.raises(ValueError, match="different numbers of units"):
        bootstrap_intervals({"a": scores["f1"], "b": drawn_scores(0, 8)["f1"]})


def test_chunk_counts_add_up_to_the_scores():
    rng = np.random.default_rng(0)
    tags = ["O", "B-NP", "I-NP", "B-VP", "I-VP"]
    true = [rng.choice(tags, n).tolist() for n in rng.integers(1, 9, 50)]
    guess = [
        [b if rng.random() < 0.3 else a for a, b in zip(ys, rng.choice(tags, len(ys)), strict=True)]
        for ys in true
    ]
    counts = chunk_counts(true, guess)
    for i in range(50):
        own = chunk_scores(true[i : i + 1], guess[i : i + 1]).per_type.values()
        expected = [(s.n_true, s.n_predicted, s.n_correct) for s in own] or [(0, 0, 0)]
        assert counts[i].tolist() == np.sum(expected, axis=0).tolist()
    n_true, n_predicted, n_correct = counts.sum(axis=0)
    assert chunk_scores(true, guess).f1 == pytest.approx(2 * n_correct / (n_true + n_predicted))
