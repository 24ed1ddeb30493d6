"""The papers' bounds on iterations and constraints, on random problems and in the tight case."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brute import all_planes
from cases import make_case
from maxmargin.core.formulation import C_to_paper, Formulation
from maxmargin.engine.cuts.master import printed_fsmo
from maxmargin.engine.cuts.set_kernels import BLOCK
from maxmargin.engine.cuts.working_sets import WorkingSets
from maxmargin.engine.oracle import Oracle
from maxmargin.engine.steps.block_steps import COORDINATES
from maxmargin.engine.store.block_store import StepRule
from maxmargin.engine.store.planes import PlaneStore
from maxmargin.engine.training.verifying import hinge_values
from maxmargin.problems.chain.problem import ChainProblem
from maxmargin.problems.classes.class_features import ClassFeatureProblem
from maxmargin.problems.classes.multiclass import MulticlassProblem
from maxmargin.solvers import DCD, SDA, OneSlack, make_solver
from online import bare

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
    solver = make_solver("one_slack", epsilon=epsilon, **PAPER)
    result = solver.solve(case.problem, Formulation(rescaling), C)
    assert result.converged
    assert result.n_passes <= bound
    # The default takes planes elsewhere, and no more of them than the theorem allows either.
    ours = make_solver("one_slack", epsilon=epsilon, tol=None)
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
    solver = make_solver("n_slack", epsilon=epsilon, tol=None, batch=1, inactive_limit=10**9)
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
    solver = make_solver("one_slack", **{**PAPER, "qp_precision": 1e-12}, max_passes=n_planes)
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


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("copies", [3, 10])
def test_iterations_and_support_vectors_do_not_depend_on_n(copies, rescaling):
    """Corollary 1: with every example so many times, and the paper's C, the run is the same."""
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(15, 4)), rng.integers(0, 3, 15)

    def run(k):
        problem = MulticlassProblem(np.tile(X, (k, 1)), np.tile(y, k), 3)
        solver = OneSlack.published(violation=1e-3, kkt=1e-9)
        return solver.solve(problem, Formulation(rescaling), 0.3 / k)

    one, many = run(1), run(copies)
    assert one.status == many.status == "converged"
    assert many.n_passes == one.n_passes and many.n_oracle_calls == copies * one.n_oracle_calls
    assert many.n_planes == one.n_planes
    assert many.n_support_vectors == one.n_support_vectors > 3
    assert many.w == pytest.approx(one.w, abs=1e-5)


# ----- Lee & Jang (2010): every round of Algorithm 2 gains by the square of what it changes ------


@pytest.mark.nojit
@given(seed=st.integers(0, 2**32 - 1))
def test_rounds_of_fsmo_gain_by_the_square_of_their_change(seed):
    """Equations 13, 18 and 19, from which convergence follows; and it ends."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 8))
    planes = rng.normal(size=(m, 9)) + rng.normal(size=9)
    gram, delta, C = planes @ planes.T, rng.uniform(0.1, 3.0, m), float(10 ** rng.uniform(-2, 2))
    alpha, scores, moved = np.zeros(m), delta.copy(), True
    for _ in range(10**5):
        before, bounded = alpha.copy(), alpha.sum() >= C * (1.0 - 1e-14)
        printed_fsmo(gram, scores, alpha, m, C, 1e-4, 1)
        change = alpha - before
        moved = bool(change.any())
        if not moved:
            break
        gain = delta @ change - 0.5 * (alpha @ gram @ alpha - before @ gram @ before)
        if bounded:
            u, v = np.argmax(change), np.argmin(change)
            square = gram[u, u] + gram[v, v] - 2.0 * gram[u, v]
            least = 0.25 * square * (change @ change)
        else:
            least = 0.5 * np.diag(gram) @ (change * change)
        assert gain >= least * (1.0 - 1e-6) - 1e-12
    assert not moved


# ----- Tsochantaridis et al. (2005): what slacks mean, and what a constraint gains ---------------


@given(
    seed=st.integers(0, 2**32 - 1),
    rescaling=st.sampled_from(["margin", "slack"]),
    slack=st.sampled_from(["l1", "l2"]),
)
def test_slacks_bound_the_risk(seed, rescaling, slack):
    """Propositions 1 and 2, at any weights; squared slacks with the square root of the loss."""
    case, _, _ = draw(seed)
    rng = np.random.default_rng(seed)
    w = rng.normal(size=case.twin.n_features) * 10 ** rng.uniform(-2, 1)
    every = np.arange(case.problem.n_examples)
    hinges = hinge_values(case.problem, Formulation(rescaling, slack), w)
    losses = case.problem.predictions(every, w).losses
    bounds = np.maximum(hinges, 0.0) ** (2 if slack == "l2" else 1)
    assert np.all(bounds >= losses * (1.0 - 1e-9))


@pytest.mark.parametrize("eta", [0.1, 7.0])
@pytest.mark.parametrize("solver", ["auto", "n_slack", "one_slack"])
def test_slack_rescaling_does_not_depend_on_the_scale_of_the_loss(solver, eta):
    """Proposition 3: with C / eta the optimum is the same; that of margin rescaling is not."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(12, 3)), rng.integers(0, 4, 12)
    costs = rng.uniform(0.2, 3.0, (4, 4)) * (1.0 - np.eye(4))

    def optimum(rescaling, scale):
        problem = MulticlassProblem(X, y, 4, costs=scale * costs)
        made = make_solver(solver, tol=1e-9, max_passes=5000)
        return made.solve(problem, Formulation(rescaling), 0.5 / scale)

    one, other = optimum("slack", 1.0), optimum("slack", eta)
    assert other.primal == pytest.approx(one.primal, rel=1e-7)
    assert other.w == pytest.approx(one.w, abs=1e-3 * np.abs(one.w).max())
    one, other = optimum("margin", 1.0), optimum("margin", eta)
    assert np.abs(other.w - one.w).max() > 0.1 * np.abs(one.w).max()


@given(seed=st.integers(0, 2**32 - 1), n_classes=st.integers(2, 6))
def test_lengths_of_planes_of_classes(seed, n_classes):
    """Proposition 20, which holds with equality."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(8, 3)), rng.integers(0, n_classes, 8)
    problem = MulticlassProblem(X, y, n_classes)
    squares = row_squares(problem, 10.0 * rng.normal(size=problem.n_features))
    assert squares[squares > 0.0] == pytest.approx(2.0 * np.sum(X * X, axis=1)[squares > 0.0])


@given(seed=st.integers(0, 2**32 - 1), signed=st.booleans())
def test_lengths_of_planes_of_classes_with_features(seed, signed):
    """Proposition 24. Its proof needs outputs whose features have no negative products.

    Without, it is 4 in place of 2.
    """
    rng = np.random.default_rng(seed)
    X, y, Lambda = rng.normal(size=(8, 3)), rng.integers(0, 4, 8), rng.uniform(0, 1, (4, 5))
    if signed:
        Lambda -= rng.uniform(0, 1, (4, 5))
    problem = ClassFeatureProblem(X, y, Lambda, allowed=[True] * 4)
    squares = row_squares(problem, rng.normal(size=problem.n_features))
    R2, S2 = np.sum(X * X, axis=1), np.max(np.sum(Lambda * Lambda, axis=1))
    assert np.all(squares <= (4.0 if signed else 2.0) * R2 * S2 * (1.0 + 1e-9))


def test_proposition_24_needs_products_that_are_not_negative():
    problem = ClassFeatureProblem(np.ones((1, 1)), [0], [[1.0], [-1.0]], allowed=[True] * 2)
    assert row_squares(problem, np.array([-1.0])) == pytest.approx(4.0)  # 2 R^2 S^2 is 2


@given(seed=st.integers(0, 2**32 - 1), T=st.integers(1, 6))
def test_lengths_of_planes_of_sequences(seed, T):
    """Proposition 25, with eta = 1."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(4 * T, 3)), rng.integers(0, 3, 4 * T)
    problem = ChainProblem(X, np.arange(0, 4 * T + 1, T), y, 3)
    squares = row_squares(problem, 3.0 * rng.normal(size=problem.n_features))
    R2 = np.sum(X * X, axis=1).reshape(4, T).max(axis=1)
    assert np.all(squares <= 2.0 * T * T * (R2 + 1.0) * (1.0 + 1e-9))


def row_squares(problem, w):
    """Squared lengths of the planes that the oracle finds."""
    rows = problem.oracle(np.arange(problem.n_examples), w)
    dense = np.zeros((problem.n_examples, problem.n_features))
    for i in range(problem.n_examples):
        entries = slice(rows.indptr[i], rows.indptr[i + 1])
        np.add.at(dense[i], rows.indices[entries], rows.values[entries])
    return np.sum(dense * dense, axis=1)


def solve_sets(sets):
    """Step 10 (a): the dual over all working sets."""
    used = np.flatnonzero(sets.sets.count)
    for _ in range(20000):
        if sets.improve(used, BLOCK, 50).sum() <= 1e-12:
            return
    raise AssertionError("the dual over the working sets is not solved")


@given(
    seed=st.integers(0, 2**32 - 1),
    rescaling=st.sampled_from(["margin", "slack"]),
    slack=st.sampled_from(["l1", "l2"]),
)
def test_every_constraint_raises_the_dual(seed, rescaling, slack):
    """Propositions 14 to 17. The last lacks C epsilon / 2n in print; Theorem 18 has it."""
    case, C, epsilon = draw(seed)
    n = case.twin.n_examples
    formulation = Formulation(rescaling, slack)
    sets = WorkingSets(Oracle(case.problem, formulation), np.full(n, C))
    dual, added = 0.0, 1
    while added:
        added = 0
        for i in range(n):
            found = sets.examine(np.array([i]), epsilon)
            if not found.added:
                continue
            added += 1
            solve_sets(sets)
            before, dual = dual, sets.dual()
            pairs = [(case.twin.loss(i, y), case.twin.dpsi(i, y)) for y in case.twin.candidates(i)]
            loss = max(loss for loss, _ in pairs)
            R2 = max(float(dpsi @ dpsi) for _, dpsi in pairs)
            if slack == "l2":  # n / C of the paper is our 1 / (2 C)
                scaled = R2 * loss if rescaling == "slack" else R2
                least = 0.5 * epsilon**2 / (scaled + 0.5 / C)
            else:
                scaled = R2 * loss**2 if rescaling == "slack" else R2
                least = min(0.5 * C * epsilon, epsilon**2 / (8.0 * scaled))
            assert dual - before >= least * (1.0 - 1e-6) - 1e-11
    assert sets.examine(np.arange(n), epsilon).added == 0


# ----- Franc (2014) ------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32 - 1))
def test_updates_of_sda(seed):
    """Theorem 1: Algorithm 2 ends after 8 L D^2 / (epsilon^2 lambda) updates at most."""
    case, C, epsilon = draw(seed)
    n, updates = case.twin.n_examples, 0

    class Counting(SDA):
        def _is_enough(self, ascent, estimate):
            nonlocal updates
            updates += int(np.sum(ascent.gaps > ascent.block_epsilon * ascent.store.upper_bounds))
            return super()._is_enough(ascent, estimate)

    solver = Counting(tol=None, epsilon=epsilon, every_block=True, max_passes=10**5)
    result = solver.solve(case.problem, Formulation(), C)
    _, loss = largest(case.twin)
    D2 = max(
        float(np.sum(case.twin.psi(i, y) ** 2)) for i in range(n) for y in case.twin.outputs(i)
    )
    assert result.converged and result.gap <= epsilon * C * n * (1.0 + 1e-9)
    assert updates <= 8.0 * loss * D2 / (epsilon**2 * C_to_paper(C, n, "franc"))


# ----- Chang & Yih (2013) ------------------------------------------------------------------------

SQUARED = Formulation("margin", "l2", sqrt_loss=False)


@pytest.mark.parametrize("solver", ["dcd_light", "dcd"])
@given(seed=st.integers(0, 2**32 - 1), delta=st.sampled_from([0.03, 0.2, 1.0]))
def test_structures_added_by_dual_coordinate_descent(solver, seed, delta):
    """Theorem 1: each one added has a slope of delta or more, and comes first in its sweep."""
    case, C, _ = draw(seed)
    R2, loss = largest(case.twin)
    gains = []
    visit = PlaneStore.oracle_pass

    def watched(self, examples, rule):
        before, dual = self.n_planes, float(self.dual_now[0])
        report = visit(self, examples, rule)
        if rule.max_steps > 0 and self.n_planes > before:
            gains.append(float(self.dual_now[0]) - dual)
        return report

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PlaneStore, "oracle_pass", watched)
        made = make_solver(solver, tol=None, max_passes=40, delta=delta, batch_size=1)
        made.solve(bare(case.problem), SQUARED, C)
    least = delta**2 / (2.0 * (R2 + 0.5 / C))
    assert len(gains) <= case.twin.n_examples * C * loss**2 / least
    assert all(gain >= least * (1.0 - 1e-9) for gain in gains)
    assert gains or loss < delta


@given(seed=st.integers(0, 2**32 - 1))
def test_fixed_working_sets_converge_linearly(seed):
    """Theorem 2: every further digit takes about as many rounds as the one before."""
    case, C, _ = draw(seed)
    n, rng = case.twin.n_examples, np.random.default_rng(seed)
    store = PlaneStore(Oracle(case.problem, SQUARED), np.full(n, C), 10**8)
    for _ in range(4):
        store.w[:] = rng.normal(size=len(store.w))  # candidates of many kinds
        store.oracle_pass(np.arange(n), StepRule(COORDINATES, 0))
    store.rebuild()
    values = []
    for k in range(4000):
        store.cached_pass(rng.permutation(n), StepRule(COORDINATES, 1, seed=k))
        values.append(store.dual())
    below = 1.0 - np.array(values) / values[-1]
    rounds = [int(np.argmax(below <= level)) for level in (1e-6, 1e-8)]
    assert below[-500] <= 1e-9
    assert rounds[1] <= 20 * rounds[0] + 50  # a rate of 1 / k would take a hundred times as many


@given(seed=st.integers(0, 2**32 - 1))
def test_iterations_of_dcd(seed):
    """Theorem 3: O(log(1 / epsilon) / epsilon^2) passes, a factor of 150 for each digit."""
    case, C, _ = draw(seed)
    passes = []
    for epsilon in (1e-1, 1e-2, 1e-3):
        made = DCD.published(delta=1e-6, max_passes=2000, tol=epsilon)
        result = made.solve(case.problem, SQUARED, C)
        assert result.converged and result.relative_gap <= epsilon
        passes.append(result.n_passes)
    for some, more in itertools.pairwise(passes):
        assert more <= 150.0 * some
    assert passes[-1] <= 200  # it is far better than that
