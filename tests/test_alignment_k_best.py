"""The k best alignments against all alignments of tiny strings, listed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import maxmargin as mm
from brute import Twin
from brute_alignment import all_alignments, count_operations
from cases import Case
from maxmargin.problems.alignment import k_best as alignment_k_best
from test_alignment_problem import LAYOUTS, LOSSES, alignment_case, homologue_case, layouts, seeds
from test_k_best import RESCALINGS, check_k_best

scales = st.sampled_from([0.0, 0.3, 2.0])


class WithLoss(Twin):
    """A twin whose outputs without loss count as the truth."""

    def __init__(self, twin):
        self.twin, self.n_features = twin, twin.n_features
        self.psi, self.loss, self.truth = twin.psi, twin.loss, twin.truth

    def candidates(self, i):
        return [y for y in self.twin.candidates(i) if self.twin.loss(i, y) > 0]


def check_alignments(problem, twin, w, k, rescaling, sqrt_loss):
    with_loss = twin if rescaling == "margin" else WithLoss(twin)
    check_k_best(Case(problem, with_loss), w, k, rescaling, sqrt_loss)


@pytest.mark.parametrize(("rescaling", "sqrt_loss"), RESCALINGS)
@given(
    loss=st.sampled_from(LOSSES),
    layout=layouts,
    seed=seeds,
    scale=scales,
    whole=st.booleans(),
    k=st.integers(1, 40),
)
def test_k_best_wrong_alignments(rescaling, sqrt_loss, loss, layout, seed, scale, whole, k):
    rng = np.random.default_rng(seed)
    problem, twin = alignment_case(rng, layout, loss)
    w = scale * rng.normal(size=twin.n_features)
    w = np.rint(w) if whole else w  # many ties
    check_alignments(problem, twin, w, k, rescaling, sqrt_loss)


@pytest.mark.nojit
@pytest.mark.parametrize("loss", LOSSES)
def test_without_compilation(loss):
    for seed, layout in enumerate(LAYOUTS[::3]):
        rng = np.random.default_rng(seed)
        problem, twin = alignment_case(rng, layout, loss, n=2, longest=3)
        w = rng.normal(size=twin.n_features)
        for rescaling in ("margin", "slack", "none"):
            check_alignments(problem, twin, w, 5, rescaling, sqrt_loss=seed % 2 == 1)


@given(layout=layouts, seed=seeds, scale=scales, k=st.integers(1, 40))
def test_k_best_alignments_with_decoys(layout, seed, scale, k):
    rng = np.random.default_rng(seed)
    case = Case(*homologue_case(rng, layout))
    w = scale * rng.normal(size=case.twin.n_features)
    for rescaling in ("margin", "slack", "none"):
        check_k_best(case, w, k, rescaling)


def test_the_first_is_the_oracles():
    rng = np.random.default_rng(1)
    for layout in LAYOUTS:
        problem, twin = alignment_case(rng, layout, "residues")
        indices, w = np.arange(3), rng.normal(size=twin.n_features)
        for rescaling in ("margin", "slack"):
            best, first = (
                problem.oracle(indices, w, rescaling),
                problem.k_best(indices, w, 1, rescaling),
            )
            for i in np.flatnonzero(best.losses):
                assert first.losses[i] == pytest.approx(best.losses[i])


def test_tables_that_need_too_much_memory_are_refused(monkeypatch):
    problem, _ = alignment_case(np.random.default_rng(0), LAYOUTS[0])
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
    aligner = mm.SequenceAligner.from_scores(2 * np.eye(3) - 1, "abc", gap_extend=-1.0, task="rank")
    X = [("abca", ["cc", "abca", "abc", "bca"]), ("ab", ["b"])]
    scores = aligner.decision_function(X)
    for k in (1, 3, 9):
        for best, row, ranked in zip(
            aligner.predict(X), scores, aligner.predict_k(X, k), strict=True
        ):
            assert ranked[0][0] == best
            assert [score for _, score in ranked] == sorted(row, reverse=True)[:k]
            assert [row[number] for number, _ in ranked] == [score for _, score in ranked]
