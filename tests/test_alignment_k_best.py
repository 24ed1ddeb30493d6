"""The k best alignments: limits of memory, and what estimators list."""

import numpy as np
import pytest

import maxmargin as mm
from brute_alignment import alignment_case, all_alignments, count_operations
from maxmargin.problems.alignment import k_best as alignment_k_best


def test_tables_that_need_too_much_memory_are_refused(monkeypatch):
    problem, _ = alignment_case(np.random.default_rng(0))
    monkeypatch.setattr(alignment_k_best, "MOST_TABLE_BYTES", 1)
    with pytest.raises(ValueError, match=r"number of errors.*rescaling='margin'"):
        problem.k_best(np.arange(3), np.zeros(problem.n_features), 2, "slack")
    with pytest.raises(ValueError, match=r"use shorter strings$"):
        problem.k_best(np.arange(3), np.zeros(problem.n_features), 2, "margin")


# ----- the estimator -----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["local", "global"])
@pytest.mark.parametrize("gaps", ["linear", "affine"])
def test_aligners_list_their_best_alignments(mode, gaps):
    scores = np.random.default_rng(2).normal(size=(3, 3))
    given = {"gap_extend": -0.3, "gap_open": -0.5 if gaps == "affine" else 0.0}
    aligner = mm.SequenceAligner.from_scores(scores, "abc", mode=mode, gaps=gaps, **given)
    X = [("abca", "bca"), ("a", "c"), ("ccb", "babc")]
    layout = {"local": mode == "local", "affine": gaps == "affine"}
    for k in (1, 4, 500):
        for pair, best, ranked in zip(X, aligner.predict(X), aligner.predict_k(X, k), strict=True):
            x, y = (["abc".index(letter) for letter in string] for string in pair)
            score_of = {
                pairs: float(
                    aligner.coef_
                    @ count_operations(x, y, pairs, 3, symmetric=False, own_ends=False, **layout)
                )
                for pairs in all_alignments(len(x), len(y))
            }
            expected = sorted(score_of.values(), reverse=True)[:k]
            assert [score for _, score in ranked] == pytest.approx(expected)
            found = [tuple(map(tuple, pairs.tolist())) for pairs, _ in ranked]
            assert len(set(found)) == len(found)
            assert [score_of[pairs] for pairs in found] == pytest.approx(expected)
            assert ranked[0][0].tolist() == best.tolist()
    with pytest.raises(ValueError, match="k must be a whole number >= 1"):
        aligner.predict_k(X, 0)


def test_rankers_list_their_best_candidates():
    aligner = mm.HomologyRanker.from_scores(2 * np.eye(3) - 1, "abc", gap_extend=-1.0)
    X = [("abca", ["cc", "abca", "abc", "bca"]), ("ab", ["b"])]
    scores = aligner.decision_function(X)
    for k in (1, 3, 9):
        for best, row, ranked in zip(
            aligner.predict(X), scores, aligner.predict_k(X, k), strict=True
        ):
            assert ranked[0][0] == best
            assert [score for _, score in ranked] == sorted(row, reverse=True)[:k]
            assert [row[number] for number, _ in ranked] == [score for _, score in ranked]
