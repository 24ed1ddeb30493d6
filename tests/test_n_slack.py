"""The n-slack solver: every formulation, working sets, and hard margins that cannot be met."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from brute import all_planes, slacks
from cases import chain_case, make_case, multiclass_case
from exact_qp import solve_exactly
from maxmargin.core.formulation import Formulation
from maxmargin.engine.cuts.set_kernels import BLOCK, FSMO, SMO
from maxmargin.engine.cuts.working_sets import WorkingSets
from maxmargin.engine.oracle import Oracle
from maxmargin.problems.chain.problem import ChainProblem
from maxmargin.problems.classes.multiclass import MulticlassProblem
from maxmargin.solvers import make_solver

SOFT = [  # the table of formulations, without its first row
    Formulation("none", "l1"),
    Formulation("none", "l2"),
    Formulation("slack", "l1"),
    Formulation("margin", "l1"),
    Formulation("slack", "l2"),
    Formulation("margin", "l2"),
    Formulation("margin", "l2", sqrt_loss=False),
]
HARD = Formulation("none", "none")
WAYS = [
    {"qp": qp, "variant": variant}
    for qp in ("fsmo", "block", "smo")
    for variant in ("full", "subspace")
]
WAYS.append({"cache_mb": 1e-3})  # no room: constraints go as soon as they have no weight
WAYS += [{"qp": qp, "kkt": 1e-9, "joint": False} for qp in ("fsmo", "smo")]
WAY_IDS = ["-".join(str(value) for value in way.values()) for way in WAYS]


def solve(problem, C, formulation, *, sample_weight=None, warm_start=None, **parameters):
    solver = make_solver("n_slack", **{"tol": 1e-6, "max_passes": 5000, **parameters})
    return solver.solve(problem, formulation, C, sample_weight=sample_weight, warm_start=warm_start)


def separable(structure):
    labels = np.array([0, 1, 2, 0, 1, 2])
    X = np.eye(3)[labels] + 0.1 * np.random.default_rng(0).normal(size=(6, 3))
    if structure == "multiclass":
        return MulticlassProblem(X, labels)
    return ChainProblem(X, [0, 2, 5, 6], labels)


# ----- the optimum -------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS, ids=WAY_IDS)
@pytest.mark.parametrize("formulation", SOFT, ids=str)
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_every_formulation(structure, formulation, way):
    loss = {"loss": "costs"} if structure == "multiclass" else {}
    case = make_case(structure, np.random.default_rng(11), fit_intercept=True, **loss)
    blocks = all_planes(case.twin, formulation)
    for C, batch in ((0.05, 100), (2.0, 1)):
        optimum = solve_exactly(blocks, C, slack=formulation.slack)
        result = solve(case.problem, C, formulation, batch=batch, **way)
        assert result.converged
        assert result.primal == pytest.approx(optimum.value, rel=2e-6)
        assert result.dual <= optimum.primal * (1 + 1e-9)
        powers = slacks(blocks, result.w) ** (2 if formulation.slack == "l2" else 1)
        assert result.primal == pytest.approx(0.5 * result.w @ result.w + C * powers.sum())


@pytest.mark.parametrize("way", WAYS[:-2], ids=WAY_IDS[:-2])
@pytest.mark.parametrize("rescaling", ["none", "margin", "slack"])
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_hard_margins(structure, rescaling, way):
    problem = separable(structure)
    result = solve(problem, 1.0, Formulation(rescaling, "none"), tol=1e-5, **way)
    assert result.converged and np.isfinite(result.primal)
    assert result.primal == 0.5 * result.w @ result.w
    # With a C so large that no slack pays the soft margin is the hard one.
    soft = make_solver("auto", tol=1e-7).solve(problem, Formulation(rescaling), 1e4)
    assert result.primal == pytest.approx(soft.primal, rel=2e-5)
    assert result.dual <= soft.primal <= result.primal * (1 + 1e-6)


def test_hard_margins_do_not_depend_on_C():
    results = [solve(separable("chain"), C, HARD).primal for C in (1e-3, 1.0, 1e3)]
    assert results == pytest.approx([results[0]] * 3, rel=1e-5)


def test_a_tight_run_agrees_with_auto():
    rng = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 9, 150))])
    labels = rng.integers(0, 4, offsets[-1])
    tokens = rng.normal(size=(4, 10))[labels] + rng.normal(size=(offsets[-1], 10))
    problem = ChainProblem(tokens, offsets, labels)
    best = make_solver("auto", tol=1e-6).solve(problem, Formulation(), 0.05)
    for way in WAYS:
        result = solve(problem, 0.05, Formulation(), tol=1e-4, **way)
        assert result.converged and result.primal == pytest.approx(best.primal, rel=1e-4)


def test_no_constraint_is_left_violated():
    """The paper's stopping rule: beyond its own slack, none by more than epsilon."""
    case = chain_case(np.random.default_rng(2), lengths=(3, 2, 3, 1))
    epsilon, C = 0.01, 0.5
    result = solve(case.problem, C, Formulation(), tol=None, epsilon=epsilon)
    found = result.state.sets.examine(np.arange(4), np.inf)
    assert found.added == 0
    assert (found.values - found.slacks).max() <= epsilon


# ----- hard margins that cannot be met -----------------------------------------------------------


@pytest.mark.parametrize("qp", ["fsmo", "block", "smo"])
def test_two_labels_for_the_same_input(qp):
    X = np.random.default_rng(0).normal(size=(8, 5))
    y = np.array([0, 1, 2, 0, 1, 2, 0, 1])
    assert solve(MulticlassProblem(X[:5], y[:5]), 1.0, HARD, qp=qp).converged
    X[7] = X[3]
    with pytest.raises(ValueError, match=r"hard margin cannot be met.*example (3|7).*(3|7)"):
        solve(MulticlassProblem(X, y), 1.0, HARD, qp=qp)
    weights = np.ones(8)
    weights[3] = 0.0  # the contradiction does not count
    X = np.hstack([X, np.eye(8)])
    X[7] = X[3]
    assert solve(MulticlassProblem(X, y), 1.0, HARD, qp=qp, sample_weight=weights).converged


def test_an_example_without_features():
    X = np.eye(4)
    X[2] = 0.0
    message = "example 2 has a wrong output with the same features as the true one"
    with pytest.raises(ValueError, match=message):
        solve(MulticlassProblem(X, [0, 1, 2, 0]), 1.0, HARD)


@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_many_examples_that_cannot_be_separated(structure):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 60)
    X = rng.normal(size=(60, 3))
    problem = (
        MulticlassProblem(X, labels)
        if structure == "multiclass"
        else ChainProblem(X, np.arange(0, 61, 3), labels)
    )
    with pytest.raises(ValueError, match=r"no weights satisfy the constraints of example \d+"):
        solve(problem, 1.0, HARD)


@given(seed=st.integers(0, 2**32 - 1))
def test_separable_data_are_never_refused(seed):
    """Also where the margin is small."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(4, 3))
    X = rng.normal(size=(12, 4))
    y = (X @ truth).argmax(axis=1)
    result = solve(MulticlassProblem(X, y, 3), 1.0, HARD, tol=1e-2, max_passes=2000)
    assert result.converged and np.isfinite(result.primal)


def test_hard_margins_stopped_early_are_said_to_be_infeasible():
    result = solve(separable("chain"), 1.0, HARD, tol=1e-9, max_passes=1)
    assert result.status == "max_passes" and not result.converged
    assert result.primal == np.inf and np.isfinite(result.dual)


# ----- working sets ------------------------------------------------------------------------------


@pytest.mark.nojit
@given(seed=st.integers(0, 2**32 - 1))
def test_working_sets_keep_their_books(seed):
    """Planes come, get weight and go: Gram matrices, w and the dual stay what they should be."""
    rng = np.random.default_rng(seed)
    formulation = SOFT[rng.integers(len(SOFT))]
    case = make_case(("multiclass", "chain")[seed % 2], rng)
    n, C = case.problem.n_examples, float(10 ** rng.uniform(-1, 1))
    budget = int(rng.choice([2_000, 20_000, 2**40]))
    sets = WorkingSets(Oracle(case.problem, formulation), np.full(n, C), budget)
    optimum = solve_exactly(all_planes(case.twin, formulation), C, slack=formulation.slack)
    blocks = all_planes(case.twin, formulation)
    last = 0.0
    for _ in range(15):
        examples = rng.permutation(n)[: rng.integers(1, n + 1)]
        found = sets.examine(examples, 0.0)
        assert np.allclose(
            np.maximum(found.values, 0.0), slacks([blocks[i] for i in examples], sets.w)
        )
        kind = int(rng.choice([FSMO, BLOCK, SMO]))
        sets.improve(rng.permutation(n), kind, int(rng.integers(1, 5)))
        if rng.random() < 0.3:
            sets.count_solution(np.arange(n))
            sets.drop(int(rng.integers(1, 3)))
        w = sets.w.copy()
        dual = sets.dual()
        assert np.allclose(sets.w, w), "w was kept up to date"
        assert last - 1e-9 * C <= dual <= optimum.primal * (1 + 1e-9)
        last = dual
        totals = sets.sums(sets.sets.alpha)
        assert (sets.sets.alpha >= 0).all()
        assert formulation.slack == "l2" or (totals <= C * (1 + 1e-9)).all()
        for i in range(n):
            size, capacity, at = sets.sets.count[i], sets.sets.capacity[i], sets.sets.gram_start[i]
            gram = sets.sets.gram[at : at + capacity * capacity].reshape(capacity, capacity)[
                :size, :size
            ]
            planes = np.array([sets.plane(sets.sets.start[i] + k) for k in range(size)])
            assert np.allclose(gram, planes @ planes.T if size else np.empty((0, 0)))


def test_inactive_constraints_go():
    case = multiclass_case(np.random.default_rng(3), n=12, K=4)
    few = solve(case.problem, 1.0, Formulation(), inactive_limit=1)
    many = solve(case.problem, 1.0, Formulation(), inactive_limit=10**6)
    assert few.primal == pytest.approx(many.primal, rel=1e-5)
    assert few.n_planes < many.n_planes


@pytest.mark.parametrize("variant", ["full", "subspace"])
def test_inactive_constraints_go_at_the_end_of_a_pass(variant, monkeypatch):
    """Joachims et al. (2009): those not active in the last solutions, however many a pass has."""
    case, limit = multiclass_case(np.random.default_rng(3), n=12, K=4), 5
    sizes = set()
    solutions = []  # the sets that were solved, and which constraints had weight
    count, drop = WorkingSets.count_solution, WorkingSets.drop

    def names(sets, slots):
        return {(float(sets.sets.offset[s]), sets.plane(s).tobytes()) for s in slots}

    def counting(sets, examples):
        slots, owners = sets.owners()
        slots = slots[np.isin(owners, examples)]
        sizes.add(len(examples))
        solutions.append((names(sets, slots), names(sets, slots[sets.sets.alpha[slots] > 0.0])))
        count(sets, examples)

    dropped = []

    def dropping(sets, idle):
        before = names(sets, sets.owners()[0])
        drop(sets, idle)
        dropped.append(before - names(sets, sets.owners()[0]))
        for one in before:
            own = [one in active for solved, active in solutions if one in solved]
            assert (one in dropped[-1]) == (len(own) >= limit and not any(own[-limit:]))

    monkeypatch.setattr(WorkingSets, "count_solution", counting)
    monkeypatch.setattr(WorkingSets, "drop", dropping)
    # Multipliers that are solved for together take too few passes for constraints to go.
    parameters = {"inactive_limit": limit, "batch": 2, "variant": variant, "joint": False}
    result = solve(case.problem, 1.0, Formulation(), **parameters)
    assert result.converged and any(dropped)
    if variant == "full":
        assert sizes == {12} and len(solutions) > len(dropped) + 5  # solutions, not passes
    else:
        assert min(sizes) <= 2  # those of the changed sets are their own


def test_constraints_stay_for_some_passes_however_many_solutions_those_have(monkeypatch):
    case, limits = multiclass_case(np.random.default_rng(3), n=40, K=3), []
    monkeypatch.setattr(WorkingSets, "drop", lambda sets, limit: limits.append(limit))
    for parameters in ({"batch": 2}, {"batch": 40}, {"batch": 2, "inactive_limit": 7}):
        solve(case.problem, 1.0, Formulation(), **parameters)
        limits.append(None)
    assert [limit for limit in dict.fromkeys(limits) if limit is not None] == [95, 50, 7]


@pytest.mark.parametrize("slack", ["l1", "l2"])
def test_the_papers_stopping_rule(slack):
    case = multiclass_case(np.random.default_rng(3), n=12, K=4)
    formulation, C = Formulation("none", slack), 1.0
    best = solve(case.problem, C, formulation).primal
    blocks = all_planes(case.twin, formulation)
    primal_values = []
    for violation in (0.5, 0.05):
        result = solve(case.problem, C, formulation, violation=violation, batch=1)
        implied = result.state.sets.examine(
            np.arange(12), np.inf
        ).slacks  # of the working sets, at w
        beyond = slacks(blocks, result.w) - implied
        assert result.converged and beyond.max() <= violation + 1e-9
        primal_values.append(result.primal)
    assert primal_values[0] > primal_values[1] * 1.001 > best  # it is not the gap that ends it


def test_the_papers_stopping_rule_needs_slacks():
    problem = separable("multiclass")
    for formulation, violation in ((HARD, 0.1), (Formulation(), 0.0), (Formulation(), np.nan)):
        with pytest.raises(ValueError, match="violation must be positive"):
            solve(problem, 1.0, formulation, violation=violation)


def test_a_warm_start_of_hard_margins():
    problem = separable("multiclass")
    first = solve(problem, 1.0, HARD)
    again = solve(problem, 1.0, HARD, warm_start=first)
    assert again.converged and again.n_passes <= 3
    weights = np.array([0.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    part = solve(problem, 1.0, HARD, warm_start=again, sample_weight=weights)
    assert part.converged and part.primal <= first.primal * (1 + 1e-5)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"qp": "simplex"}, r"qp must be 'fsmo', 'block' or 'smo', got 'simplex'"),
        ({"variant": "c"}, r"variant must be 'full' or 'subspace', got 'c'"),
        ({"batch": 0}, "batch must be >= 1, got 0"),
        ({"kkt": 0.0}, "kkt must be positive and there must be slacks, got 0.0"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        solve(separable("chain"), 1.0, Formulation(), **parameters)


def test_estimates_on_the_way_are_of_the_size_of_the_gap():
    """Violations beyond the working sets' slacks say nothing of how well these are optimised."""
    X, y = load_digits(return_X_y=True)
    problem = MulticlassProblem(X[:300] / 16.0, y[:300], 10)
    # All multipliers together would be optimised too well.
    history = solve(problem, 1.0, Formulation(), tol=1e-4, joint=False).history
    first = next(record for record in history if record.gap is not None)
    assert first is not history[-1]  # a certificate that was not good enough
    assert 0.5 * first.gap <= first.gap_estimate <= 2.0 * first.gap


def test_work_arrays_fit_planes_out_of_a_file():
    """The next planes may all be shorter than those."""
    problem = multiclass_case(np.random.default_rng(0), n_inputs=300).problem
    caps = np.ones(problem.n_examples)
    sets, again = (WorkingSets(Oracle(problem, Formulation()), caps) for _ in range(2))
    sets.examine(np.arange(problem.n_examples), 0.0)
    again.restore(sets.arrays())
    longest = int((sets.sets.last - sets.sets.first).max())
    assert len(again.scratch.products) >= longest > 256
