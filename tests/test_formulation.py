"""Formulations, the papers' constants, and the one definition of primal, dual and gap."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import multiclass_case
from maxmargin.core.cutting_planes import Planes
from maxmargin.core.formulation import C_from_paper, C_to_paper, Formulation
from maxmargin.core.objective import Certificate, Stopping, dual_value, line_step, primal_value
from maxmargin.engine.oracle import OracleResult
from maxmargin.engine.training.verifying import hinge_values
from maxmargin.engine.violations import violations

# The table of formulations, row by row: (slack, rescaling, sqrt_loss) and what Delta = 4 becomes.
TABLE = {
    "SVM0": (("none", "none", None), 1.0, 1.0),
    "SVM1": (("l1", "none", None), 1.0, 1.0),
    "SVM2": (("l2", "none", None), 1.0, 1.0),
    "SVM1 Delta-s": (("l1", "slack", None), 4.0, 4.0),
    "SVM1 Delta-m": (("l1", "margin", None), 4.0, 1.0),
    "SVM2 Delta-s": (("l2", "slack", None), 2.0, 2.0),
    "SVM2 Delta-m": (("l2", "margin", None), 2.0, 1.0),
    "L2-loss SSVM": (("l2", "margin", False), 4.0, 1.0),
    "root of the loss, l1": (("l1", "margin", True), 2.0, 1.0),
    "root of the loss, l1, slack": (("l1", "slack", True), 2.0, 2.0),
    "no rescaling knows no root": (("l1", "none", True), 1.0, 1.0),
}
positive = st.floats(1e-6, 1e6)


@pytest.mark.parametrize(("row", "b", "scale"), TABLE.values(), ids=TABLE.keys())
def test_the_table(row, b, scale):
    slack, rescaling, sqrt_loss = row
    formulation = Formulation(rescaling, slack, sqrt_loss)
    offsets, scales = formulation.plane_terms(np.array([4.0, 0.0]))
    assert (offsets[0], scales[0]) == (b, scale)
    # Without loss: the truth, whose dpsi is zero, or, with margin rescaling, an output as good.
    assert (offsets[1], scales[1]) == (0.0, 1.0 if rescaling == "margin" else 0.0)


@pytest.mark.parametrize(("row", "b", "scale"), TABLE.values(), ids=TABLE.keys())
def test_violations(row, b, scale):
    slack, rescaling, sqrt_loss = row
    formulation = Formulation(rescaling, slack, sqrt_loss)
    planes = Planes(
        np.array([0, 2, 2, 3]),
        np.array([0, 1, 2], np.int32),
        np.array([1.0, -1.0, 2.0]),
        np.array([4.0, 0.0, 4.0]),
    )
    w = np.array([0.5, 0.25, -1.0])
    answer = OracleResult(planes, *formulation.plane_terms(planes.losses))
    assert violations(answer, w) == pytest.approx([b - scale * 0.25, 0.0, b + scale * 2.0])


def test_defaults_and_equality():
    assert Formulation() == Formulation("margin", "l1", None)
    assert not Formulation().uses_sqrt_loss and Formulation(slack="l2").uses_sqrt_loss
    assert "slack='l2'" in str(Formulation("slack", "l2")) and "sqrt" in str(
        Formulation("slack", "l2")
    )
    assert "sqrt" not in str(Formulation())
    with pytest.raises(AttributeError):
        Formulation().slack = "l2"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rescaling": "loss"}, "rescaling must be 'margin', 'slack' or 'none', got 'loss'"),
        ({"rescaling": None}, "rescaling must be"),
        ({"slack": "l3"}, "slack must be 'l1', 'l2' or 'none', got 'l3'"),
    ],
)
def test_bad_formulations(arguments, message):
    with pytest.raises(ValueError, match=message):
        Formulation(**arguments)


# ----- the papers' constants ---------------------------------------------------------------------


@given(C=positive, n=st.integers(1, 10**6))
def test_conversions_are_the_stated_ones(C, n):
    assert C_to_paper(C, n, "joachims") == pytest.approx(n * C)
    assert C_to_paper(C, n, "tsochantaridis") == pytest.approx(n * C)
    assert C_to_paper(C, n, "tsochantaridis", "l2") == pytest.approx(2 * n * C)
    assert C_to_paper(C, n, "franc") == pytest.approx(1 / (n * C))
    for slack in ("l1", "l2"):
        assert C_to_paper(C, n, "chang_yih", slack) == C


@given(
    C=positive,
    n=st.integers(1, 10**6),
    convention=st.sampled_from(["joachims", "tsochantaridis", "franc", "chang_yih"]),
    slack=st.sampled_from(["l1", "l2"]),
)
def test_conversions_are_each_others_inverse(C, n, convention, slack):
    there = C_to_paper(C, n, convention, slack)
    assert C_from_paper(there, n, convention, slack) == pytest.approx(C)
    back = C_from_paper(C, n, convention, slack)
    assert C_to_paper(back, n, convention, slack) == pytest.approx(C)


@given(seed=st.integers(0, 1000), C=positive)
def test_converted_objectives_are_the_papers(seed, C):
    """The papers' objectives with their constants are ours, up to their own factor."""
    rng = np.random.default_rng(seed)
    n = 5
    w, xi = rng.normal(size=3), rng.exponential(size=n)
    half = 0.5 * w @ w
    ours = primal_value(w, xi, Formulation(), C)
    assert half + C_to_paper(C, n, "joachims") / n * xi.sum() == pytest.approx(ours)
    lam = C_to_paper(C, n, "franc")
    assert lam * half + xi.mean() == pytest.approx(ours / (n * C))
    squared = primal_value(w, xi, Formulation(slack="l2"), C)
    tsochantaridis = C_to_paper(C, n, "tsochantaridis", "l2")
    assert half + tsochantaridis / (2 * n) * (xi**2).sum() == pytest.approx(squared)


@pytest.mark.parametrize("convert", [C_from_paper, C_to_paper])
def test_unknown_conventions(convert):
    with pytest.raises(ValueError, match=r"convention must be 'joachims'.*got 'vapnik'"):
        convert(1.0, 10, "vapnik")


# ----- primal ------------------------------------------------------------------------------------

W = np.array([3.0, -4.0])  # |w|^2 / 2 = 12.5
XI = np.array([0.0, 2.0, 1.0])


@pytest.mark.parametrize(
    ("slack", "weights", "expected"),
    [
        ("l1", None, 12.5 + 10 * 3.0),
        ("l1", [1.0, 0.5, 0.0], 12.5 + 10 * 1.0),
        ("l2", None, 12.5 + 10 * 5.0),
        ("l2", [7.0, 0.5, 2.0], 12.5 + 10 * 4.0),
        ("none", None, np.inf),
    ],
)
def test_primal_value(slack, weights, expected):
    weights = None if weights is None else np.array(weights)
    assert primal_value(W, XI, Formulation(slack=slack), 10.0, weights) == expected


def test_hard_margins_allow_no_slack():
    hard = Formulation("none", "none")
    assert primal_value(W, np.zeros(3), hard, 1.0) == 12.5
    assert primal_value(W, np.full(3, 1e-12), hard, 1.0) == 12.5
    assert primal_value(W, np.full(3, 1e-3), hard, 1.0) == np.inf
    assert primal_value(W, np.full(3, 1e-3), hard, 1.0, feasibility=1e-2) == 12.5


@pytest.mark.parametrize("rescaling", ["margin", "slack", "none"])
def test_hinge_values_are_the_slacks(rescaling):
    problem, twin = multiclass_case(np.random.default_rng(0), n=700, loss="costs")
    w = np.random.default_rng(1).normal(size=twin.n_features)
    expected = np.zeros(700)  # more examples than one batch of the oracle
    for i in range(700):
        for y in twin.candidates(i):
            delta, margin = twin.loss(i, y), w @ twin.dpsi(i, y)
            value = {
                "margin": delta - margin,
                "slack": delta * (1 - margin),
                "none": 1 - margin,
            }[rescaling]
            expected[i] = max(expected[i], value)
    assert hinge_values(problem, Formulation(rescaling), w) == pytest.approx(expected)


# ----- dual --------------------------------------------------------------------------------------


def test_dual_value():
    assert dual_value(W, 20.0, Formulation(), 10.0) == 20.0 - 12.5
    sums = np.array([2.0, 0.0, 4.0])
    l2 = Formulation(slack="l2")
    assert dual_value(W, 20.0, l2, 10.0, sums) == pytest.approx(7.5 - 20.0 / 40.0)
    weights = np.array([0.5, 0.0, 2.0])
    assert dual_value(W, 20.0, l2, 10.0, sums, weights) == pytest.approx(
        7.5 - (4.0 / 0.5 + 16.0 / 2.0) / 40.0
    )
    with pytest.raises(ValueError, match="block_sums"):
        dual_value(W, 20.0, l2, 10.0)


@pytest.mark.parametrize("slack", ["l1", "l2"])
@given(seed=st.integers(0, 2**32 - 1), C=st.floats(0.01, 100.0))
def test_weak_duality(slack, seed, C):
    """No feasible multipliers give more than any primal value."""
    rng = np.random.default_rng(seed)
    n, m, d = 3, 4, 5
    b, a = rng.uniform(0, 2, (n, m)), rng.normal(size=(n, m, d))
    s = rng.uniform(0.2, 2.0, n)
    formulation = Formulation(slack=slack)
    alpha = rng.exponential(size=(n, m))
    if slack == "l1":
        alpha *= (C * s * rng.random(n) / alpha.sum(axis=1))[:, None]
    v = np.einsum("ij,ijk->k", alpha, a)
    dual = dual_value(v, float((alpha * b).sum()), formulation, C, alpha.sum(axis=1), s)
    for w in (v, rng.normal(size=d), np.zeros(d)):
        xi = np.maximum(0.0, (b - a @ w).max(axis=1))
        primal = primal_value(w, xi, formulation, C, s)
        assert dual <= primal * (1.0 + 1e-12)


@pytest.mark.parametrize("slack", ["l1", "l2"])
def test_no_gap_at_the_optimum(slack):
    """One plane b = 1, a = 1 with w = 1/2: known solutions of both slacks."""
    formulation, w = Formulation(slack=slack), np.array([0.5])
    C = 0.5  # both have the optimum alpha = w = 1/2
    alpha = np.array([0.5])
    primal = primal_value(w, np.array([0.5]), formulation, C)
    dual = dual_value(w, 0.5, formulation, C, alpha)
    assert primal == pytest.approx(dual)


@given(slope=st.floats(-5, 5), curvature=st.floats(0, 5))
def test_line_step(slope, curvature):
    step, gain = line_step(slope, curvature)
    steps = np.linspace(0.0, 1.0, 1001)
    gains = steps * slope - 0.5 * steps**2 * curvature
    assert 0.0 <= step <= 1.0
    assert gain == pytest.approx(step * slope - 0.5 * step**2 * curvature)
    assert gain >= gains.max() - 1e-9


# ----- stopping ----------------------------------------------------------------------------------


def test_certificate():
    certificate = Certificate(primal=10.0, dual=8.0)
    assert certificate.gap == 2.0 and certificate.relative_gap == 0.2
    assert Certificate(0.0, 0.0).relative_gap == 0.0


@pytest.mark.parametrize(
    ("tol", "epsilon", "met"),
    [
        (0.2, None, True),
        (0.19, None, False),
        (None, 0.4, True),
        (None, 0.39, False),
        (0.2, 1e-9, True),
        (1e-9, 0.4, True),
        (1e-9, 1e-9, False),
        (None, None, False),
    ],
)
def test_either_criterion_suffices(tol, epsilon, met):
    """Gap 2 at primal 10 and C sum s = 5: relative 0.2, absolute 0.4."""
    stopping = Stopping(tol, epsilon, total_C=5.0)
    assert stopping.is_satisfied(Certificate(10.0, 8.0)) == met
    assert stopping.is_satisfied(Certificate(10.0, 10.0))


@pytest.mark.parametrize("tol", [1e-9, 0.01, 0.3, 1.0, 2.0])
@pytest.mark.parametrize("epsilon", [None, 0.1])
def test_the_target_is_where_the_criterion_is_met(tol, epsilon):
    stopping = Stopping(tol, epsilon, total_C=5.0)
    for dual in (0.0, 7.0):
        target = min(stopping.target(dual), 1e6)
        assert stopping.is_satisfied(Certificate(dual + 0.999 * target, dual))
        assert stopping.target(dual) == np.inf or not stopping.is_satisfied(
            Certificate(dual + 1.001 * target + 1e-12, dual)
        )
    assert Stopping(None, epsilon, 5.0).target(7.0) == 5.0 * (epsilon or 0.0)
    assert Stopping(tol, None, 5.0).target(-1.0) == (0.0 if tol < 1.0 else np.inf)
