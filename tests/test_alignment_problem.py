"""Alignment oracles against all alignments of tiny strings, listed."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brute import all_planes, plane_terms, slacks
from brute_alignment import AlignmentTwin, HomologueTwin, all_alignments
from exact_qp import solve_exactly
from maxmargin.engine.oracle import Oracle, hinge_values, violations
from maxmargin.formulation import Formulation
from maxmargin.problems.alignment import problem as alignment_problem
from maxmargin.problems.alignment.homologues import HomologueProblem
from maxmargin.problems.alignment.layout import (
    Aligner,
    AlignmentLayout,
    pack_alignments,
    pack_strings,
)
from maxmargin.problems.alignment.problem import AlignmentProblem
from maxmargin.solvers import make_solver

K = 3
LOSSES = ("pairs", "residues", "zero-one")
LAYOUTS = [
    dict(zip(("local", "affine", "symmetric", "own_ends"), chosen, strict=True))
    for chosen in itertools.product((True, False), repeat=4)
]
layouts = st.sampled_from(LAYOUTS)
seeds = st.integers(0, 2**32 - 1)
ROUNDING = 1e-9


def random_strings(rng, n, longest=4):
    return [rng.integers(0, K, rng.integers(1, longest + 1)) for _ in range(n)]


def random_alignment(rng, x, y, at_least=1):
    listed = [pairs for pairs in all_alignments(len(x), len(y)) if len(pairs) >= at_least]
    return listed[rng.integers(len(listed))]


def alignment_case(rng, layout, loss="pairs", n=3, longest=4):
    xs, ys = random_strings(rng, n, longest), random_strings(rng, n, longest)
    truths = [random_alignment(rng, x, y, loss == "pairs") for x, y in zip(xs, ys, strict=True)]
    packed = pack_strings(xs), pack_strings(ys)
    partners = pack_alignments(truths, *packed)
    problem = AlignmentProblem(*packed, partners, AlignmentLayout(K, **layout), loss)
    return problem, AlignmentTwin(list(zip(xs, ys, strict=True)), truths, K, loss=loss, **layout)


def homologue_case(rng, layout, n=3):
    natives, homologues = random_strings(rng, n), random_strings(rng, n)
    truths = [random_alignment(rng, x, y, 0) for x, y in zip(natives, homologues, strict=True)]
    decoys = [random_strings(rng, rng.integers(0, 4)) for _ in range(n)]
    packed = pack_strings(natives), pack_strings(homologues)
    problem = HomologueProblem(
        *packed,
        pack_alignments(truths, *packed),
        pack_strings([string for strings in decoys for string in strings]),
        np.concatenate([[0], np.cumsum([len(strings) for strings in decoys])]),
        AlignmentLayout(K, **layout),
    )
    return problem, HomologueTwin(natives, homologues, truths, decoys, K, **layout)


def check_oracle(problem, twin, w, rescaling, sqrt_loss):
    """Values, losses and rows of the oracle against the best of all candidates."""
    assert (problem.n_examples, problem.n_features) == (twin.n_examples, twin.n_features)
    formulation = Formulation(rescaling, sqrt_loss=sqrt_loss)
    answer = Oracle(problem, formulation).ask_features(np.arange(problem.n_examples), w)
    planes, values = answer.planes, violations(answer, w)
    tolerance = ROUNDING * (1.0 + abs(w).sum())
    for i in range(problem.n_examples):
        listed = [(twin.loss(i, y), twin.dpsi(i, y)) for y in twin.candidates(i)]
        # Without rescaling, an alignment without loss counts as the truth.
        rivals = [
            offset - scale * float(dpsi @ w)
            for loss, dpsi in listed
            for offset, scale in [plane_terms(loss, rescaling, sqrt_loss)]
            if rescaling != "none" or loss > 0
        ]
        assert values[i] == pytest.approx(max([0.0, *rivals]), abs=tolerance)
        span = slice(planes.indptr[i], planes.indptr[i + 1])
        row = np.bincount(planes.indices[span], planes.values[span], minlength=len(w))
        if planes.losses[i] == 0.0 and not row.any():
            continue
        assert any(
            abs(planes.losses[i] - loss) < ROUNDING and np.abs(row - dpsi).max() < ROUNDING
            for loss, dpsi in listed
        ), "the row is of no alignment"


@pytest.mark.parametrize("sqrt_loss", [False, True], ids=["plain", "sqrt"])
@pytest.mark.parametrize("rescaling", ["margin", "slack", "none"])
@pytest.mark.parametrize("loss", LOSSES)
@given(layout=layouts, seed=seeds, scale=st.sampled_from([0.0, 0.2, 1.0, 5.0]))
def test_most_violated_alignment(loss, rescaling, sqrt_loss, layout, seed, scale):
    rng = np.random.default_rng(seed)
    problem, twin = alignment_case(rng, layout, loss)
    check_oracle(problem, twin, scale * rng.normal(size=twin.n_features), rescaling, sqrt_loss)


@pytest.mark.nojit
@pytest.mark.parametrize("loss", LOSSES)
def test_oracle_without_compilation(loss):
    for seed, layout in enumerate(LAYOUTS):
        rng = np.random.default_rng(seed)
        problem, twin = alignment_case(rng, layout, loss, n=2, longest=3)
        w = rng.normal(size=twin.n_features)
        for rescaling in ("margin", "slack", "none"):
            check_oracle(problem, twin, w, rescaling, sqrt_loss=seed % 2 == 1)


@pytest.mark.parametrize("rescaling", ["margin", "slack", "none"])
@given(layout=layouts, seed=seeds, scale=st.sampled_from([0.0, 0.2, 2.0]))
def test_best_decoy(rescaling, layout, seed, scale):
    rng = np.random.default_rng(seed)
    problem, twin = homologue_case(rng, layout)
    check_oracle(problem, twin, scale * rng.normal(size=twin.n_features), rescaling, False)


@pytest.mark.nojit
@given(layout=layouts, seed=seeds)
def test_best_alignment_and_its_score(layout, seed):
    rng = np.random.default_rng(seed)
    problem, twin = alignment_case(rng, layout, "residues", n=2, longest=3)
    w = rng.normal(size=twin.n_features)
    partners, scores = Aligner(problem.layout).align(problem.xs, problem.ys, w)
    for i in range(problem.n_examples):
        row = partners[problem.xs.offsets[i] : problem.xs.offsets[i + 1]]
        pairs = tuple((k, int(j)) for k, j in enumerate(row) if j >= 0)
        assert scores[i] == pytest.approx(twin.best_score(i, w), abs=1e-9)
        assert w @ twin.psi(i, pairs) == pytest.approx(scores[i], abs=1e-9)


def test_scores_and_weights_are_inverse():
    rng = np.random.default_rng(0)
    for options in LAYOUTS:
        layout = AlignmentLayout(4, **options)
        w = rng.normal(size=layout.size)
        scoring = layout.scoring(w)
        assert np.array_equal(layout.weights(scoring.substitution[:4, :4], scoring.gaps), w)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_training_reaches_the_optimum(loss, rescaling):
    rng = np.random.default_rng(3)
    problem, twin = alignment_case(rng, LAYOUTS[4], loss, n=4, longest=3)
    formulation = Formulation(rescaling)
    blocks = all_planes(twin, formulation)
    exact = solve_exactly(blocks, C=0.7)
    result = make_solver("auto", tol=1e-6).solve(problem, formulation, 0.7)
    assert result.primal == pytest.approx(exact.value, rel=1e-5)
    found = hinge_values(problem, formulation, result.w)
    assert found == pytest.approx(slacks(blocks, result.w), abs=1e-9)


def test_training_to_find_homologues_reaches_the_optimum():
    rng = np.random.default_rng(4)
    problem, twin = homologue_case(rng, LAYOUTS[2], n=5)
    exact = solve_exactly(all_planes(twin, Formulation()), C=0.5)
    result = make_solver("auto", tol=1e-6).solve(problem, Formulation(), 0.5)
    assert result.primal == pytest.approx(exact.value, rel=1e-5)


def test_searches_that_need_too_much_memory_are_refused(monkeypatch):
    problem, _ = alignment_case(np.random.default_rng(0), LAYOUTS[0])
    monkeypatch.setattr(alignment_problem, "MOST_TABLE_BYTES", 1)
    with pytest.raises(ValueError, match="rescaling='margin'"):
        problem.oracle(np.arange(3), np.zeros(problem.n_features), "slack")
    problem.oracle(np.arange(3), np.zeros(problem.n_features), "margin")


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
