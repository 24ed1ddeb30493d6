"""The papers' bounds on iterations and constraints, on random problems and in the tight case."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brute import all_planes
from cases import make_case
from maxmargin.formulation import C_to_paper, Formulation
from maxmargin.problems.classes.multiclass import MulticlassProblem
from maxmargin.solvers import make_solver

# Algorithms 3 and 4 as printed: no cache, planes at the minimiser, the QP solved well.
PAPER = {"reach": 1.0, "cache_size": 0, "qp_precision": 1e-5, "tol": None}


def largest(twin):
    """``R^2`` and ``Delta`` of the theorems: over all examples and outputs."""
    pairs = [(i, y) for i in range(twin.n_examples) for y in twin.candidates(i)]
    return (
        max(float(np.sum(twin.dpsi(i, y) ** 2)) for i, y in pairs),
        max(twin.loss(i, y) for i, y in pairs),
    )


def draw(seed):
    rng = np.random.default_rng(seed)
    structure = ("multiclass", "chain")[int(rng.integers(2))]
    loss = "costs" if structure == "multiclass" else "hamming"
    case = make_case(structure, rng, loss=loss)
    return case, float(10 ** rng.uniform(-3, 0)), float(10 ** rng.uniform(-2, -0.5))


@given(seed=st.integers(0, 2**32 - 1), rescaling=st.sampled_from(["margin", "slack"]))
def test_iterations_of_one_slack(seed, rescaling):
    """Theorem 5 (margin rescaling) and Theorem 6 (slack rescaling) of Joachims et al. (2009)."""
    case, C, epsilon = draw(seed)
    R2, loss = largest(case.twin)
    paper_C = C_to_paper(C, case.twin.n_examples, "joachims")
    if rescaling == "slack":  # planes are longer by the loss
        R2 *= loss * loss
    epsilon = min(epsilon, 4 * R2 * paper_C)
    first = max(0, math.ceil(math.log2(loss / (4 * R2 * paper_C))))
    bound = first + math.ceil(16 * R2 * paper_C / epsilon)
    solver = make_solver("one-slack", epsilon=epsilon, **PAPER)
    result = solver.solve(case.problem, Formulation(rescaling), C)
    assert result.converged
    assert result.n_passes <= bound
    # The default takes planes elsewhere, and no more of them than the theorem allows either.
    ours = make_solver("one-slack", epsilon=epsilon, tol=None)
    assert len(ours.solve(case.problem, Formulation(rescaling), C).history) <= bound + 2


@given(
    seed=st.integers(0, 2**32 - 1),
    rescaling=st.sampled_from(["margin", "slack"]),
    slack=st.sampled_from(["l1", "l2"]),
)
def test_constraints_of_n_slack(seed, rescaling, slack):
    """Theorem 18 of Tsochantaridis et al. (2005)."""
    case, C, epsilon = draw(seed)
    n = case.twin.n_examples
    formulation = Formulation(rescaling, slack)
    solver = make_solver("n-slack", epsilon=epsilon, tol=None, batch=1, inactive_limit=10**9)
    result = solver.solve(case.problem, formulation, C)
    assert result.converged
    R2, loss = largest(case.twin)
    paper_C = C_to_paper(C, n, "tsochantaridis", slack)
    e = smallest_violation(case, formulation, C, epsilon)
    power = 1 if rescaling == "margin" else 3 if slack == "l1" else 2
    if slack == "l1":
        bound = max(2 * n * loss / e, 8 * paper_C * loss**power * R2 / e**2)
    else:
        bound = (paper_C * loss**power * R2 + n * loss) / e**2
    assert result.n_planes <= bound


def smallest_violation(case, formulation, C, epsilon):
    """What the solver takes for a violation: half of the gap asked for must not be lost."""
    n = case.twin.n_examples
    if formulation.slack == "l1":
        return 0.5 * epsilon
    blocks = all_planes(case.twin, formulation)
    slack = max(float(b.max(initial=0.0)) for b, _ in blocks)  # at w = 0, where it is largest
    return math.sqrt(slack**2 + 0.5 * epsilon) - slack if n else epsilon


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("n_planes", [1, 2, 3, 7, 20])
def test_the_tight_example(n_planes, rescaling):
    """Section 3.2: one example, one feature, endlessly many classes.

    The multipliers sum to k / (k + 1), so that C has to be 1 at least; the paper's 1/2 is enough
    for the first plane only.
    """
    K = n_planes + 5
    problem = MulticlassProblem(np.ones((1, 1)), [0], K)
    duals = []
    solver = make_solver("one-slack", **{**PAPER, "qp_precision": 1e-12}, max_passes=n_planes)
    result = solver.solve(
        problem, Formulation(rescaling), 1.0, callbacks=[lambda p: duals.append(p.dual)]
    )
    bundle = result.state.bundle
    assert bundle.size == n_planes
    bundle.solve(1e-13, max_rounds=10**5)
    w = bundle.weights()
    k = n_planes
    assert w[0] == pytest.approx(k / (k + 1), abs=1e-5)
    assert np.allclose(np.sort(w[1:]), [-1 / (k + 1)] * k + [0.0] * 4, atol=1e-5)
    # Every class that is still outside is violated by 1 / (k + 1).
    outside = 1.0 - (w[0] - w[1:][np.abs(w[1:]) < 1e-9])
    assert np.allclose(outside, 1 / (k + 1), atol=1e-5)
    # The master's values on the way are those of the solutions over 0, 1, ... planes.
    expected = [0.5 * j / (j + 1) for j in range(k)]
    assert np.allclose(duals[:k], expected, atol=1e-6)
