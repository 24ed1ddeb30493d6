"""Every solver against a generic QP, and against every other solver."""

import numpy as np
import pytest

from cases import BASIC_IDS, BASIC_KINDS, chain_case, make_case, multiclass_case
from maxmargin.core.formulation import Formulation
from maxmargin.engine.training.verifying import hinge_values
from maxmargin.problems.chain.problem import ChainProblem
from maxmargin.problems.classes.multiclass import MulticlassProblem
from solving import (
    PRECISE,
    RESCALINGS,
    SLOW,
    SOLVERS,
    check_certificate,
    check_optimal,
    medium_chains,
    medium_classes,
    small_case,
    solve,
)

# ----- the optimum -------------------------------------------------------------------------------


# Every solver on every structure is in test_every_structure.py, these with less precision.
PATIENT = [("sda", "l1"), ("sda", "l2"), ("dcd_light", "l1"), ("dcd_light", "l2"), ("bcfw", "l1")]


@pytest.mark.parametrize(("structure", "loss"), BASIC_KINDS, ids=BASIC_IDS)
@pytest.mark.parametrize(("solver", "slack"), PATIENT)
def test_slow_solvers_reach_high_precision(solver, slack, structure, loss):
    formulation = Formulation("margin", slack)
    precisions = ((0.2, 1e-3), (0.05, 1e-4)) if solver in SLOW else ((0.05, 1e-7), (0.5, 1e-7))
    for variant, (C, tol) in enumerate(precisions):
        case = small_case(structure, loss, variant)
        result = solve(solver, case.problem, C, formulation, tol=tol, max_passes=50_000)
        check_optimal(result, case, C, formulation, precision=max(tol, 1e-6))


@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_nearly_hard_margins(structure):
    """Separable data and a huge C: no slack is left, and |w| is finite."""
    labels = np.array([0, 1, 2, 0, 1, 2])
    X = np.eye(3)[labels] + 0.1 * np.random.default_rng(0).normal(size=(6, 3))
    if structure == "multiclass":
        problem = MulticlassProblem(X, labels)
    else:
        problem = ChainProblem(X, [0, 2, 5, 6], labels)
    result = solve("auto", problem, 1e5)
    assert result.converged
    assert hinge_values(problem, Formulation(), result.w).sum() * 1e5 <= 1e-5 * result.primal
    assert 0.1 < result.primal < 100.0


@pytest.mark.parametrize("loss", ["hamming", "normalized_hamming", "zero_one"])
@pytest.mark.parametrize("rescaling", RESCALINGS)
def test_certificates_hold_at_high_precision(loss, rescaling):
    """Many passes at a large C: what rounding adds up to must not enter a certificate."""
    formulation = Formulation(rescaling)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        lengths = rng.integers(1, 4, rng.integers(2, 6)).tolist()
        case = chain_case(rng, lengths=lengths, K=2 + seed % 2, loss=loss, fit_intercept=True)
        result = solve("auto", case.problem, 150.0, formulation, tol=1e-9, max_passes=500)
        check_certificate(result, case, 150.0, formulation)


@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_single_precision_input(structure):
    case = make_case(structure, np.random.default_rng(4), layout="float32")
    check_optimal(solve("auto", case.problem, 1.0), case, 1.0)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", ["zero_one", "costs"])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_an_example_without_features(solver, loss, rescaling):
    """Its planes are (b, 0): a constant in the primal that the dual has to earn, too."""
    rng = np.random.default_rng(1)
    case = multiclass_case(rng, n=4, loss=loss)
    X = case.twin.X.copy()
    X[1] = 0.0
    case.twin.X = X
    problem = MulticlassProblem(X, case.twin.y, 3, costs=case.twin.costs)
    case = case._replace(problem=problem)
    result = solve(solver, problem, 0.1, Formulation(rescaling), tol=1e-4, max_passes=500)
    check_optimal(result, case, 0.1, Formulation(rescaling), precision=1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
def test_nothing_to_learn(solver):
    """One label only: no candidate but the truth, and w = 0 is optimal and certified."""
    problem = ChainProblem(np.ones((3, 2)), [0, 2, 3], [0, 0, 0], 1)
    result = solve(solver, problem, 1.0)
    assert result.converged and not result.w.any()
    assert result.primal == result.dual == result.gap == result.relative_gap == 0.0


# ----- problems of a user ------------------------------------------------------------------------


def test_an_object_with_an_oracle_is_a_problem():
    """The contract may be duck-typed: examples, features and the oracle are all a solver needs."""
    case = small_case("chain", "hamming", 0)

    class Duck:
        n_examples = case.problem.n_examples
        n_features = case.problem.n_features

        def oracle(self, indices, w, rescaling="margin", sqrt_loss=False):
            return case.problem.oracle(indices, w, rescaling, sqrt_loss)

    check_optimal(solve("auto", Duck(), 1.0), case, 1.0)


def test_a_python_problem_has_no_root_of_the_loss():
    problem = small_case("plain Python", "costs", 0).problem
    with pytest.raises(ValueError, match="PythonClasses has no oracle for the square root"):
        solve("auto", problem, 1.0, Formulation(sqrt_loss=True))


# ----- sample weights ----------------------------------------------------------------------------


@pytest.mark.parametrize("solver", PRECISE)
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_sample_weights(structure, solver):
    case = make_case(structure, np.random.default_rng(8))
    n = case.problem.n_examples
    weights = np.random.default_rng(9).uniform(0.1, 3.0, n)
    weights[[0, n - 1]] = 0.0
    result = solve(solver, case.problem, 0.7, sample_weight=weights)
    check_optimal(result, case, 0.7, sample_weight=weights)


@pytest.mark.parametrize("solver", PRECISE)
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_an_integer_weight_is_a_repetition(structure, solver):
    rng = np.random.default_rng(10)
    repeats = np.array([2, 0, 1, 3])
    if structure == "multiclass":
        X, y = rng.normal(size=(4, 3)), np.array([0, 1, 2, 1])
        problem = MulticlassProblem(X, y)
        repeated = MulticlassProblem(X.repeat(repeats, axis=0), y.repeat(repeats), 3)
    else:
        X = [rng.normal(size=(length, 2)) for length in (2, 3, 1, 3)]
        Y = [rng.integers(0, 3, len(x)) for x in X]

        def chains(which):
            lengths = [len(Y[i]) for i in which]
            tokens, labels = (np.concatenate([part[i] for i in which]) for part in (X, Y))
            return ChainProblem(tokens, np.concatenate([[0], np.cumsum(lengths)]), labels, 3)

        problem, repeated = chains(range(4)), chains(np.arange(4).repeat(repeats))
    weighted = solve(solver, problem, 0.5, sample_weight=repeats)
    plain = solve(solver, repeated, 0.5)
    assert weighted.primal == pytest.approx(plain.primal, rel=1e-6)
    assert np.allclose(weighted.w, plain.w, atol=2e-3)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_no_weight_at_all(structure, solver):
    problem = make_case(structure, np.random.default_rng(0)).problem
    result = solve(solver, problem, 1.0, sample_weight=np.zeros(problem.n_examples))
    assert result.converged and result.primal == result.dual == 0.0 and not result.w.any()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 1.0], r"sample_weight must have shape \(6,\), got shape \(2,\)"),
        (np.ones((6, 1)), r"shape \(6,\), got shape \(6, 1\)"),
        ([1, 1, -1, 1, 1, 1], r"sample_weight\[2\] is -1"),
        ([1, np.nan, 1, 1, 1, 1], r"sample_weight\[1\] is nan"),
        ([1, 1, 1, 1, 1, np.inf], r"sample_weight\[5\] is inf"),
    ],
)
def test_bad_sample_weights(weights, message):
    problem = small_case("multiclass", "zero_one", 0).problem
    with pytest.raises(ValueError, match=message):
        solve("auto", problem, 1.0, sample_weight=weights)


# ----- agreement on a problem of some size -------------------------------------------------------


@pytest.mark.parametrize("make", [medium_classes, medium_chains])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_all_solvers_agree(make, rescaling):
    problem = make()
    tols = {name: 1e-2 if name in SLOW else 1e-3 for name in SOLVERS}
    results = {
        name: solve(name, problem, 0.05, Formulation(rescaling), tol=tol, max_passes=300)
        for name, tol in tols.items()
    }
    lowest = min(result.primal for result in results.values())
    highest = max(result.dual for result in results.values())
    assert highest <= lowest * (1.0 + 1e-9)
    for name, result in results.items():
        assert result.converged, name
        assert result.relative_gap <= tols[name]
        assert result.primal <= lowest * (1.0 + tols[name])
