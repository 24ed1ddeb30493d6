"""Alignment problems: weights and scores, limits of memory, and what is refused."""

import itertools

import numpy as np
import pytest

from brute_alignment import alignment_case
from maxmargin.problems.alignment import k_best
from maxmargin.problems.alignment.homologues import HomologueProblem
from maxmargin.problems.alignment.problem import (
    AlignmentLayout,
    AlignmentProblem,
    pack_alignments,
    pack_strings,
)

LAYOUTS = [
    dict(zip(("local", "affine", "symmetric", "own_ends"), chosen, strict=True))
    for chosen in itertools.product((True, False), repeat=4)
]


def test_scores_and_weights_are_inverse():
    rng = np.random.default_rng(0)
    for options in LAYOUTS:
        layout = AlignmentLayout(4, **options)
        w = rng.normal(size=layout.size)
        scoring = layout.scoring(w)
        assert np.array_equal(layout.weights(scoring.substitution[:4, :4], scoring.gaps), w)


def test_searches_that_need_too_much_memory_are_refused(monkeypatch):
    problem, _ = alignment_case(np.random.default_rng(0))
    monkeypatch.setattr(k_best, "MOST_TABLE_BYTES", 1)
    with pytest.raises(ValueError, match="rescaling='margin'"):
        problem.oracle(np.arange(3), np.zeros(problem.n_features), "none")
    for rescaling in ("margin", "slack"):
        problem.oracle(np.arange(3), np.zeros(problem.n_features), rescaling)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([[0, 0], [1, 2]], "outside"),
        ([[1, 0], [0, 1]], "must rise"),
        ([[0.5, 1.0]], "pairs of positions"),
        ([0, 1], "pairs of positions"),
        ([[-1, 0]], "outside"),
    ],
)
def test_alignments_that_are_none(pairs, message):
    strings = pack_strings([[0, 1]])
    with pytest.raises(ValueError, match=f"alignment 0.*{message}"):
        pack_alignments([pairs], strings, strings)


def test_a_pairs_loss_needs_pairs():
    strings = pack_strings([[0, 1]])
    with pytest.raises(ValueError, match="example 0 has no pairs"):
        AlignmentProblem(strings, strings, np.array([-1, -1]), AlignmentLayout(2))


def test_examples_that_do_not_fit():
    strings, layout = pack_strings([[0, 1], [1]]), AlignmentLayout(2)
    with pytest.raises(ValueError, match="2 partners"):
        AlignmentProblem(strings, strings, np.array([0, -1]), layout)
    with pytest.raises(ValueError, match="example 1 has an empty string"):
        empty = pack_strings([[0], []])
        AlignmentProblem(empty, empty, np.array([0]), layout)
    with pytest.raises(ValueError, match="loss must be"):
        AlignmentProblem(strings, strings, np.zeros(3, np.int32), layout, "hamming")
    with pytest.raises(ValueError, match="groups must rise"):
        HomologueProblem(strings, strings, np.full(3, -1), strings, [0, 1, 3], layout)
