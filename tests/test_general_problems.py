"""Declared searches beyond what all structures share: bad input, relaxations, check_problem."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint

import maxmargin as mm
from brute_general import program_case
from checking import dense_rows, values_of
from maxmargin.core.cutting_planes import split_bounds
from maxmargin.core.formulation import Formulation
from maxmargin.engine.training.verifying import hinge_values
from solving import check_certificate, solve
from structures import STRUCTURES, small_case

PAIRS = np.ones((2, 3, 1))
ONE = np.ones((2, 1))
TIE = np.ones((2, 2, 1))


@pytest.mark.parametrize("name", STRUCTURES)
def test_every_structure_passes_its_check(name):
    structure = STRUCTURES[name]
    rescalings = [r for r in ("margin", "slack", "none") if structure.finds(r, False)]
    for loss in structure.losses:
        mm.check_problem(small_case(name, loss, 0).problem, rescalings=rescalings)


# ----- the relaxation of 0/1 programs ------------------------------------------------------------


def relaxed_case(rng, **options):
    exact = program_case(rng, **options)
    relaxed = mm.LinearProgramProblem(exact.problem.loss_name, relaxed=True)
    return relaxed.bind(exact.problem.X, exact.problem.Y), exact.twin


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([0.0, 0.3, 3.0]))
def test_the_relaxation_bounds_all_outputs(seed, scale):
    rng = np.random.default_rng(seed)
    problem, twin = relaxed_case(rng, loss="normalized_hamming")
    w = scale * rng.normal(size=twin.n_features)
    planes, bounds = split_bounds(problem.oracle(np.arange(problem.n_examples), w))
    values = values_of(planes.losses, dense_rows(planes, len(w)), w, "margin")
    for i, candidates in enumerate(twin.listed):
        best = max(0.0, values_of(*candidates, w, "margin").max(initial=0.0))
        assert 0.0 <= values[i] + 1e-9 and values[i] <= best + 1e-6 and best <= bounds[i] + 1e-6
    for rescaling in ("margin", "slack"):
        formulation = Formulation(rescaling)
        bounded = hinge_values(problem, formulation, w)
        true = [values_of(*c, w, rescaling).max(initial=0.0) for c in twin.listed]
        assert np.all(bounded >= np.array(true) - 1e-6)


def test_what_the_relaxation_does_not_decide_is_an_integer_program():
    """Three variables, but no two of a pair: halves are best, at 3; a single 1 has 2."""
    A = np.array([[1.0, 1, 0], [0, 1, 1], [1, 0, 1]])
    x = (np.eye(3), LinearConstraint(A, -np.inf, 1.0))
    problem = mm.LinearProgramProblem(relaxed=True).bind([x], [[0, 0, 0]])
    planes, bounds = split_bounds(problem.oracle(np.arange(1), np.ones(3)))
    assert planes.losses[0] == 1.0 and 2.0 <= bounds[0] < 3.0
    exact = mm.LinearProgramProblem().bind([x], [[0, 0, 0]])
    assert exact.oracle(np.arange(1), np.ones(3)).losses[0] == 1.0
    assert exact.predict(x, np.ones(3)).sum() == 1


@pytest.mark.parametrize("C", [0.1, 3.0])
def test_training_with_relaxations_of_knapsacks_converges(C):
    """Their relaxations are hardly ever whole: rounded, those ended with a gap of 6 to 10 %."""
    rng = np.random.default_rng(0)
    exact = mm.LinearProgramProblem()
    X, Y = [], []
    for _ in range(20):
        features, sizes = rng.normal(size=(12, 4)), rng.integers(1, 10, 12).astype(float)
        limit = LinearConstraint(sizes[None], -np.inf, np.floor(0.4 * sizes.sum()))
        X.append((features, limit))
        one = exact.bind(X[-1:], [np.zeros(12, int)])
        Y.append(one.predict(X[-1], np.array([1.0, -1.0, 0.5, 0.2]) + 0.5 * rng.normal(size=4)))
    primals = []
    for problem in (exact, mm.LinearProgramProblem(relaxed=True)):
        result = solve("auto", problem.bind(X, Y), C, tol=1e-2)
        assert result.converged and result.relative_gap <= 1e-2
        primals.append(result.primal)
    assert primals[1] == pytest.approx(primals[0], rel=1e-2)


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_training_with_relaxations_is_certified(rescaling):
    problem, twin = relaxed_case(np.random.default_rng(3), n=4)
    formulation = Formulation(rescaling)
    result = solve("auto", problem, 0.5, formulation, tol=1e-2)
    assert result.status in ("converged", "loose bounds")
    case = type(small_case("chain", "hamming", 0))(problem, twin)
    values = [values_of(*c, result.w, rescaling).max(initial=0.0) for c in twin.listed]
    true = 0.5 * result.w @ result.w + 0.5 * np.maximum(values, 0.0).sum()
    assert result.primal >= true - 1e-6
    if rescaling == "margin" and result.converged:
        check_certificate(result, case, 0.5, formulation)


def test_relaxations_refuse_what_they_cannot():
    with pytest.raises(ValueError, match="no linear relaxation"):
        mm.LinearProgramProblem("zero_one", relaxed=True)
    problem, _ = relaxed_case(np.random.default_rng(0))
    with pytest.raises(ValueError, match="relaxed=False"):
        problem.oracle(np.arange(1), np.zeros(2), "slack")


# ----- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "X", "Y", "message"),
    [
        (mm.AssignmentProblem(), [PAIRS[0]], [[0]], r"example 0: .*got shape \(3, 1\)"),
        (mm.AssignmentProblem(), [PAIRS, PAIRS * np.nan], [[0, 1]] * 2, r"example 1: feature 0 of"),
        (mm.AssignmentProblem(), [PAIRS], [[0]], r"example 0: there are 2 left items; expected"),
        (mm.AssignmentProblem(), [PAIRS], [[0, 3]], r"partner of left item 1 is 3; .* 0 to 2"),
        (mm.AssignmentProblem(), [PAIRS], [[1, 1]], r"right item 1 is the partner of several"),
        (mm.AssignmentProblem(), [PAIRS], [[1, -1]], r"1 pairs of 2 .* need allow_unmatched=True"),
        (mm.AssignmentProblem(), [PAIRS], [[0.5, 1]], r"expected as many numbers"),
        (
            mm.AssignmentProblem(),
            [PAIRS, np.ones((1, 1, 2))],
            [[0, 1], [0]],
            r"example 1 has 2 features, but example 0 has 1",
        ),
        (mm.CandidateProblem(), [ONE, ONE[:0]], [0, 0], r"example 1: expected a row of features"),
        (mm.CandidateProblem(), [ONE], [2], r"example 0: there is no candidate 2; .* 0 to 1"),
        (mm.CandidateProblem(), [ONE], [[0.1]], r"example 0: there are 2 candidates; expected"),
        (mm.CandidateProblem(), [ONE, np.ones((2, 3))], [0, 0], r"example 1 has 3 features, but"),
        (
            mm.CandidateProblem(),
            [ONE * np.inf],
            [0],
            r"example 0: a feature is a NaN or infinite value",
        ),
        (mm.LinearProgramProblem(), [ONE], [[0, 1]], r"example 0: expected a pair \(features"),
        (mm.LinearProgramProblem(), [(ONE, None)], [[0, 2]], r"2 variables; expected as many 0s"),
        (
            mm.LinearProgramProblem(),
            [(ONE, LinearConstraint(np.ones((1, 2)), 0, 1))],
            [[1, 1]],
            r"example 0: the given output violates the constraints",
        ),
        (mm.FactorTree(), [ONE], [[0]], r"example 0: expected Factors, got 'ndarray'"),
        (mm.FactorTree(), [mm.Factors([ONE])], [[2]], r"label of variable 0 is 2; .* 0 to 1"),
        (mm.FactorTree(), [mm.Factors([ONE])], [[0, 0]], r"there are 1 variables; expected"),
        (
            mm.FactorTree(),
            [mm.Factors([ONE] * 3, [(0, 1), (1, 2), (2, 0)], [TIE] * 3)],
            [[0] * 3],
            r"example 0: the pair \(\d, \d\) closes a cycle",
        ),
        (
            mm.FactorTree(),
            [mm.Factors([ONE, ONE], [(0, 2)], [TIE])],
            [[0, 0]],
            r"the pair \(0, 2\) names no two of 2 variables",
        ),
        (
            mm.FactorTree(),
            [mm.Factors([ONE, ONE], [(0, 1)], [TIE[:1]])],
            [[0, 0]],
            r"table of the pair \(0, 1\) needs shape \(2, 2, 1\), got \(1, 2, 1\)",
        ),
        (mm.FactorTree(), [mm.Factors([ONE, ONE], [(0, 1)])], [[0, 0]], r"1 pairs, but 0 tables"),
    ],
)
def test_bad_examples_are_named(problem, X, Y, message):
    with pytest.raises(ValueError, match=message):
        problem.bind(X, Y)


def test_unknown_losses():
    for kind in (mm.AssignmentProblem, mm.FactorTree, mm.LinearProgramProblem):
        with pytest.raises(ValueError, match="loss must be 'hamming'"):
            kind("f1")


def test_examples_without_choices():
    """One candidate, one label, no items: there is nothing to learn, and nothing breaks."""
    problem = mm.AssignmentProblem().bind([np.ones((0, 2, 1)), np.ones((1, 1, 1))], [[], [0]])
    for rescaling in ("margin", "slack", "none"):
        planes = problem.oracle(np.arange(2), np.ones(1), rescaling)
        assert planes.indptr[-1] == 0 and not planes.losses.any()


def test_scores_that_are_not_numbers():
    problem = mm.AssignmentProblem().bind([PAIRS], [[0, 1]])
    with pytest.raises(ValueError, match="not finite"):
        problem.predict(PAIRS, np.array([np.nan]))


# ----- the estimator -----------------------------------------------------------------------------


def test_matchers():
    rng = np.random.default_rng(0)
    Y = [rng.permutation(5)[:4] for _ in range(20)]
    X = [rng.normal(size=(4, 5, 3)) for _ in Y]
    for x, y in zip(X, Y, strict=True):
        x[np.arange(4), y, 0] += 3.0
    model = mm.SetMatcher(random_state=0).fit(X[:15], Y[:15])
    assert model.result_.relative_gap <= 1e-2 and model.score(X[15:], Y[15:]) > 0.8
    problem = mm.AssignmentProblem(fit_intercept=True)
    same = mm.StructuralSVM(problem, random_state=0).fit(X[:15], Y[:15])
    assert np.array_equal(same.coef_, model.coef_)
    alone = mm.SetMatcher(allow_unmatched=True).fit([X[0], X[1][:0]], [[-1, 0, 1, 2], []])
    assert len(alone.predict([X[1][:0]])[0]) == 0
    with pytest.raises(ValueError, match="pairs have 2 features, but the model was trained with 3"):
        model.predict([np.ones((2, 2, 2))])
    with pytest.raises(ValueError, match="example 0: there are 4 left items; expected as many"):
        model.score(X[:1], [[0, 1, 2]])
