"""Hard margins of problems in plain Python, against an exact QP and linear programming."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brute import all_planes
from brute_classes import FORMS, PythonClasses, PythonClassTwin
from cases import Case, chain_case
from exact_qp import can_be_met, solve_exactly
from maxmargin.core.formulation import Formulation
from maxmargin.solvers import make_solver
from maxmargin.solvers.base import TrainingRequest
from maxmargin.solvers.cutting_plane import n_slack


def draw(seed, form, n_wrong=0):
    """Classes in an order, which a linear rule separates, but for some labels."""
    rng = np.random.default_rng(seed)
    K, d, n = (int(size) for size in rng.integers((2, 2, 1), (5, 5, 12)))
    X = rng.normal(size=(n, d))
    y = (X @ rng.normal(size=(d, K))).argmax(axis=1)
    y[rng.integers(0, n, n_wrong)] = rng.integers(0, K, n_wrong)
    return bind(X, y.tolist(), K, form)


def bind(X, y, K, form):
    costs = np.abs(np.subtract.outer(np.arange(K), np.arange(K))).astype(float)
    problem = PythonClasses(costs, X.shape[1], form).bind(list(X), y)
    return Case(problem, PythonClassTwin(X, y, costs))


def solve(problem, formulation, **parameters):
    call = {
        name: parameters.pop(name) for name in ("sample_weight", "warm_start") if name in parameters
    }
    parameters = {"tol": 1e-4, "max_passes": 2000, **parameters}
    return make_solver("n_slack", **parameters).solve(problem, formulation, 1.0, **call)


@pytest.mark.parametrize("form", FORMS)
@given(
    seed=st.integers(0, 2**32 - 1),
    qp=st.sampled_from(["fsmo", "block"]),
    variant=st.sampled_from(["full", "subspace"]),
    batch=st.sampled_from([1, 3, 100]),
    rescaling=st.sampled_from(["none", "margin", "slack"]),
)
def test_separable_problems(form, seed, qp, variant, batch, rescaling):
    (problem, twin), formulation = draw(seed, form), Formulation(rescaling, "none")
    result = solve(problem, formulation, qp=qp, variant=variant, batch=batch)
    assert result.converged and result.status == "converged"
    blocks = all_planes(twin, formulation)
    assert all((b - A @ result.w).max() <= 1e-9 for b, A in blocks)
    assert result.primal == 0.5 * result.w @ result.w
    optimum = solve_exactly(blocks, 1.0, slack="none")
    assert optimum.dual * (1 - 1e-6) <= result.primal <= optimum.primal * (1 + 1.02e-4)
    assert result.dual <= optimum.primal * (1 + 1e-9)


@given(
    seed=st.integers(0, 2**32 - 1),
    form=st.sampled_from(FORMS),
    qp=st.sampled_from(["fsmo", "block"]),
    variant=st.sampled_from(["full", "subspace"]),
    batch=st.sampled_from([1, 100]),
)
def test_what_cannot_be_met_is_refused(seed, form, qp, variant, batch):
    (problem, twin), formulation = draw(seed, form, n_wrong=3), Formulation("margin", "none")
    if can_be_met(all_planes(twin, formulation)):
        result = solve(problem, formulation, qp=qp, variant=variant, batch=batch)
        assert result.converged and np.isfinite(result.primal)
    else:
        with pytest.raises(ValueError, match="the hard margin cannot be met"):
            solve(problem, formulation, qp=qp, variant=variant, batch=batch)


def test_a_dual_that_passes_solve_slowly(monkeypatch):
    """Two examples that all but contradict each other: the weights are large."""
    problem, twin = bind(np.array([[1.0, 0.0], [1.0, 1e-3]]), [0, 1], 2, "dense")
    formulation = Formulation("margin", "none")
    optimum = solve_exactly(all_planes(twin, formulation), 1.0, slack="none")
    result = solve(problem, formulation, max_passes=100)
    assert result.converged and result.primal == pytest.approx(optimum.value, rel=1e-4)
    assert result.n_cache_hits < 10_000
    monkeypatch.setattr(n_slack, "LARGEST_SYSTEM", 0)
    assert not solve(problem, formulation, max_passes=10).converged


def test_examples_without_weight_take_no_part_in_it(monkeypatch):
    monkeypatch.setattr(n_slack, "OUTRIGHT", 1)
    (problem, twin), formulation = draw(1, "dense"), Formulation("none", "none")
    first = solve(problem, formulation)
    weights = np.arange(problem.n_examples) % 2.0
    part = solve(problem, formulation, warm_start=first, sample_weight=weights)
    blocks = [all_planes(twin, formulation)[i] for i in np.flatnonzero(weights)]
    assert part.converged
    assert part.primal == pytest.approx(solve_exactly(blocks, 1.0, slack="none").value, rel=1e-4)


def test_weights_are_scaled_by_the_square_root_of_the_loss():
    """Margins of 1 and sqrt 2 over the outputs of a chain of two labels, not of 1 and 2."""
    case = chain_case(np.random.default_rng(1), lengths=(2, 2), n_inputs=6, K=2)
    formulation = Formulation("margin", "none", sqrt_loss=True)
    good = solve(case.problem, formulation, tol=1e-6)
    asked = set()

    class Watched:
        n_examples, n_features = case.problem.n_examples, case.problem.n_features

        def oracle(self, indices, w, rescaling="margin", sqrt_loss=False):
            asked.add(sqrt_loss)
            return case.problem.oracle(indices, w, rescaling, sqrt_loss)

    solver = make_solver("n_slack")
    cutting = solver.start(TrainingRequest(Watched(), formulation, 1.0, np.ones(2), None, ()))
    # Half the weights that are needed, said to be all but enough: one scaling is not.
    solver._scale_up(cutting, 0.5 * good.w, np.full(2, 1e-6), np.ones(2))
    assert asked == {True}
    assert cutting.best[0] == pytest.approx(good.primal, rel=1e-5)


@pytest.mark.parametrize("form", ["sparse", "dict"])
def test_the_truth_is_an_empty_row(form):
    problem, _ = draw(3, form)
    row = problem.oracle(np.array([0]), 100.0 * problem.psi(problem.X[0], problem.Y[0]))
    assert row.losses[0] == 0.0 and row.indptr.tolist() == [0, 0]
    apart = problem.oracle(np.array([0]), np.zeros(problem.n_features))
    other = int(np.argmax(problem.costs[problem.Y[0]]))
    expected = problem.psi(problem.X[0], problem.Y[0]) - problem.psi(problem.X[0], other)
    assert np.array_equal(np.bincount(apart.indices, apart.values, problem.n_features), expected)
    assert len(apart.indices) == np.count_nonzero(expected)
