"""Hard margins of problems in plain Python, against an exact QP and linear programming."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from cases import chain_case
from exact_qp import solve_exactly
from maxmargin.formulation import Formulation
from maxmargin.plane_rows import Planes
from maxmargin.problem import Problem
from maxmargin.solvers import make_solver, n_slack

KINDS = ("dense", "sparse", "dict", "loose")


class OrderedClasses(Problem):
    """Classes in an order; joint features in any form, with one that all outputs share.

    The kind "loose" has an oracle of its own, whose rows are all entries of both psi: those of the
    truth cancel only when added up.
    """

    def __init__(self, K, d, kind):
        self.K, self.d, self.kind, self.n_features = K, d, kind, K * d + 1

    def psi(self, x, y):
        features = np.zeros(self.n_features)
        features[np.arange(self.d) * self.K + y] = x
        features[-1] = 1.0
        return features

    def joint_feature(self, x, y):
        features = self.psi(x, y)
        if self.kind == "sparse":
            return sp.csr_matrix(features)
        return (
            {k: features[k] for k in np.flatnonzero(features)} if self.kind == "dict" else features
        )

    def loss(self, y, y_hat):
        return float(abs(y - y_hat))

    def most_violated(self, x, y, w, rescaling):
        def value(z):
            if z == y:
                return -np.inf if rescaling == "none" else 0.0
            margin, loss = w @ (self.psi(x, y) - self.psi(x, z)), self.loss(y, z)
            values = {"none": 1 - margin, "margin": loss - margin, "slack": loss * (1 - margin)}
            return values[rescaling]

        return max(range(self.K), key=value)

    def oracle(self, indices, w, rescaling="margin", sqrt_loss=False):
        if self.kind != "loose":
            return super().oracle(indices, w, rescaling, sqrt_loss)
        ids, values, losses = [], [], []
        for i in indices:
            x, y = self.X[i], self.Y[i]
            z = self.most_violated(x, y, w, rescaling)
            ids.append(np.tile(np.arange(self.n_features), 2))
            values.append(np.concatenate([self.psi(x, y), -self.psi(x, z)]))
            losses.append(self.loss(y, z))
        indptr = 2 * self.n_features * np.arange(len(indices) + 1)
        return Planes(
            indptr, np.concatenate(ids).astype(np.int32), np.concatenate(values), np.array(losses)
        )

    def planes(self, formulation):
        """All planes ``(b, A)`` of every example."""
        blocks = []
        for x, y in zip(self.X, self.Y, strict=True):
            others = [z for z in range(self.K) if z != y]
            b, scales = formulation.plane_terms(np.array([self.loss(y, z) for z in others]))
            rows = np.array([self.psi(x, y) - self.psi(x, z) for z in others])
            blocks.append((b, scales[:, None] * rows))
        return blocks


def draw(seed, kind, n_wrong=0):
    """A problem whose classes a linear rule separates, but for some labels."""
    rng = np.random.default_rng(seed)
    K, d, n = (int(size) for size in rng.integers((2, 2, 1), (5, 5, 12)))
    X = rng.normal(size=(n, d))
    y = (X @ rng.normal(size=(d, K))).argmax(axis=1)
    y[rng.integers(0, n, n_wrong)] = rng.integers(0, K, n_wrong)
    return OrderedClasses(K, d, kind).bind(list(X), y.tolist())


def can_be_met(blocks):
    A = np.vstack([planes for _, planes in blocks])
    b = np.concatenate([offsets for offsets, _ in blocks])
    found = linprog(np.zeros(A.shape[1]), A_ub=-A, b_ub=-b, bounds=(None, None))
    return found.status == 0


def solve(problem, formulation, **parameters):
    call = {
        name: parameters.pop(name) for name in ("sample_weight", "warm_start") if name in parameters
    }
    parameters = {"tol": 1e-4, "max_passes": 2000, **parameters}
    return make_solver("n-slack", **parameters).solve(problem, formulation, 1.0, **call)


@pytest.mark.parametrize("kind", KINDS)
@given(
    seed=st.integers(0, 2**32 - 1),
    qp=st.sampled_from(["fsmo", "block"]),
    variant=st.sampled_from(["full", "subspace"]),
    batch=st.sampled_from([1, 3, 100]),
    rescaling=st.sampled_from(["none", "margin", "slack"]),
)
def test_separable_problems(kind, seed, qp, variant, batch, rescaling):
    problem, formulation = draw(seed, kind), Formulation(rescaling, "none")
    result = solve(problem, formulation, qp=qp, variant=variant, batch=batch)
    assert result.converged and result.status == "converged"
    blocks = problem.planes(formulation)
    assert all((b - A @ result.w).max() <= 1e-9 for b, A in blocks)
    assert result.primal == 0.5 * result.w @ result.w
    optimum = solve_exactly(blocks, 1.0, slack="none")
    assert optimum.dual * (1 - 1e-6) <= result.primal <= optimum.primal * (1 + 1.02e-4)
    assert result.dual <= optimum.primal * (1 + 1e-9)


@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(KINDS),
    qp=st.sampled_from(["fsmo", "block"]),
    variant=st.sampled_from(["full", "subspace"]),
    batch=st.sampled_from([1, 100]),
)
def test_what_cannot_be_met_is_refused(seed, kind, qp, variant, batch):
    problem, formulation = draw(seed, kind, n_wrong=3), Formulation("margin", "none")
    if can_be_met(problem.planes(formulation)):
        result = solve(problem, formulation, qp=qp, variant=variant, batch=batch)
        assert result.converged and np.isfinite(result.primal)
    else:
        with pytest.raises(ValueError, match="the hard margin cannot be met"):
            solve(problem, formulation, qp=qp, variant=variant, batch=batch)


def test_a_dual_that_passes_solve_slowly(monkeypatch):
    """Two examples that all but contradict each other: the weights are large."""
    problem = OrderedClasses(2, 2, "dense").bind(
        [np.array([1.0, 0.0]), np.array([1.0, 1e-3])], [0, 1]
    )
    formulation = Formulation("margin", "none")
    optimum = solve_exactly(problem.planes(formulation), 1.0, slack="none")
    result = solve(problem, formulation, max_passes=100)
    assert result.converged and result.primal == pytest.approx(optimum.value, rel=1e-4)
    assert result.n_cache_hits < 10_000
    monkeypatch.setattr(n_slack, "LARGEST_SYSTEM", 0)
    assert not solve(problem, formulation, max_passes=10).converged


def test_examples_without_weight_take_no_part_in_it(monkeypatch):
    monkeypatch.setattr(n_slack, "OUTRIGHT", 1)
    problem, formulation = draw(1, "dense"), Formulation("none", "none")
    first = solve(problem, formulation)
    weights = np.arange(problem.n_examples) % 2.0
    part = solve(problem, formulation, warm_start=first, sample_weight=weights)
    blocks = [problem.planes(formulation)[i] for i in np.flatnonzero(weights)]
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

    solver = make_solver("n-slack")
    cutting = solver.start(Watched(), formulation, 1.0, np.ones(2), None, ())
    # Half the weights that are needed, said to be all but enough: one scaling is not.
    solver._scale_up(cutting, 0.5 * good.w, np.full(2, 1e-6), np.ones(2))
    assert asked == {True}
    assert cutting.best[0] == pytest.approx(good.primal, rel=1e-5)


@pytest.mark.parametrize("kind", ["sparse", "dict"])
def test_the_truth_is_an_empty_row(kind):
    problem = draw(3, kind)
    row = problem.oracle(np.array([0]), 100.0 * problem.psi(problem.X[0], problem.Y[0]))
    assert row.losses[0] == 0.0 and row.indptr.tolist() == [0, 0]
    apart = problem.oracle(np.array([0]), np.zeros(problem.n_features))
    other = max(range(problem.K), key=lambda z: problem.loss(problem.Y[0], z))
    expected = problem.psi(problem.X[0], problem.Y[0]) - problem.psi(problem.X[0], other)
    assert np.array_equal(np.bincount(apart.indices, apart.values, problem.n_features), expected)
    assert len(apart.indices) == np.count_nonzero(expected)
