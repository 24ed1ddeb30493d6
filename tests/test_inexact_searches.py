"""Searches that are not exact: bounds keep certificates true, and without them there are none."""

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.core.cutting_planes import Planes, split_bounds, stack
from maxmargin.core.formulation import Formulation
from maxmargin.core.objective import primal_value
from maxmargin.core.problem import Problem
from maxmargin.engine import oracle as asking
from maxmargin.engine.oracle import Oracle
from maxmargin.engine.training.verifying import hinge_values
from maxmargin.search.margin_search import search_of
from maxmargin.solvers import SOLVERS, make_solver
from maxmargin.solvers.certify import certify
from maxmargin.solvers.path import tolerated

D = 3
CERTIFIED = [
    (name, slack)
    for name, solver in SOLVERS.items()
    if solver.certified
    for slack in ("l1", "l2")
    if slack in solver.slacks
]


class Listed(Problem):
    """Examples whose outputs are listed, as losses and feature differences; the first is true."""

    rescalings = ("margin", "slack", "none")
    n_features = D

    def __init__(self, rng, n=6, K=5, unit=0.0):
        self.losses = rng.uniform(0.1, 3.0, (n, K))
        if unit:
            self.losses = unit * np.ceil(self.losses / unit)
        self.losses[:, 0] = 0.0
        self.dpsi = rng.normal(size=(n, K, D)) + 0.3
        self.dpsi[:, 0] = 0.0
        self.loss_unit = unit

    @property
    def n_examples(self):
        return len(self.losses)

    def values(self, w, rescaling="margin", sqrt_loss=False):
        """The table of all violations, by definition."""
        margins = self.dpsi @ w
        if rescaling == "none":
            return np.where(self.losses > 0, 1.0 - margins, -np.inf)
        losses = np.sqrt(self.losses) if sqrt_loss else self.losses
        return losses * (1.0 - margins) if rescaling == "slack" else losses - margins

    def rows(self, indices, chosen):
        dense = [self.dpsi[i, y] for i, y in zip(indices, chosen, strict=True)]
        rows = [(np.flatnonzero(a).astype(np.int32), a[np.flatnonzero(a)]) for a in dense]
        return stack(rows, self.losses[indices, chosen])

    def oracle(self, indices, w, rescaling="margin", sqrt_loss=False):
        return self.rows(indices, self.values(w, rescaling, sqrt_loss)[indices].argmax(axis=1))


class Sloppy(Listed):
    """It overlooks outputs, and knows by how much; ``slop`` is what bounds have to spare."""

    slop = 0.0
    overlooked = 1

    def oracle(self, indices, w, rescaling="margin", sqrt_loss=False):
        values = self.values(w, rescaling, sqrt_loss)[indices]
        bounds = values.max(axis=1) + self.slop
        shown = values.copy()
        shown[:, 1 : 1 + self.overlooked] = -np.inf
        return self.rows(indices, shown.argmax(axis=1)).with_bounds(bounds)


class Unbounded(Sloppy):
    exact = False

    def oracle(self, indices, w, rescaling="margin", sqrt_loss=False):
        return super().oracle(indices, w, rescaling, sqrt_loss).planes


class MarginsOnly(Listed):
    rescalings = ("margin",)

    def oracle(self, indices, w, rescaling="margin", sqrt_loss=False):
        assert (rescaling, sqrt_loss) == ("margin", False)
        return super().oracle(indices, w)


class SloppyMargins(Sloppy):
    rescalings = ("margin",)


def true_primal(problem, w, formulation, C):
    values = problem.values(w, formulation.rescaling, formulation.uses_sqrt_loss)
    return primal_value(w, np.maximum(values.max(axis=1), 0.0), formulation, C)


def solve(name, problem, formulation, C=0.5, **options):
    options = {"tol": 1e-3, "max_passes": 3000, **options}
    return make_solver(name, **options).solve(problem, formulation, C)


# ----- certificates ------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "slack"), CERTIFIED)
def test_bounds_that_are_reached_change_nothing(name, slack):
    problem = Sloppy(np.random.default_rng(0))
    problem.overlooked = 0
    formulation = Formulation(slack=slack)
    result = solve(name, problem, formulation)
    assert result.status == "converged" and result.relative_gap <= 1e-3
    assert result.primal == pytest.approx(true_primal(problem, result.w, formulation, 0.5))


@pytest.mark.parametrize(("name", "slack"), CERTIFIED)
@pytest.mark.parametrize("slop", [0.0, 0.5])
def test_what_is_overlooked_is_in_the_certificate(name, slack, slop):
    problem = Sloppy(np.random.default_rng(1))
    problem.slop = slop
    formulation = Formulation(slack=slack)
    result = solve(name, problem, formulation)
    true = true_primal(problem, result.w, formulation, 0.5)
    assert result.primal >= true - 1e-9
    found = true_primal(Listed(np.random.default_rng(1)), result.w, formulation, 0.5)
    assert result.primal == pytest.approx(found) if slop == 0.0 else result.primal > found
    best = solve(name, Listed(np.random.default_rng(1)), formulation, tol=1e-4)
    assert result.dual <= best.primal
    assert not result.converged and result.status == "loose bounds"
    assert result.n_passes < 500


def test_hard_margins_are_not_met_by_bounds_above_zero():
    problem = Listed(np.random.default_rng(2), n=2, K=3)
    problem.dpsi = np.abs(problem.dpsi)
    problem.dpsi[:, 0] = 0.0
    formulation = Formulation("margin", "none")
    assert solve("n_slack", problem, formulation).converged
    sloppy = Sloppy(np.random.default_rng(2), n=2, K=3)
    sloppy.dpsi, sloppy.slop, sloppy.overlooked = problem.dpsi, 0.1, 0
    result = solve("n_slack", sloppy, formulation, max_passes=50)
    assert result.primal == np.inf and not result.converged


def test_estimators_say_that_bounds_are_loose():
    class Bound(mm.Problem):
        n_features = 1

        def joint_feature(self, x, y):
            return np.array([x * y])

        def loss(self, y, y_hat):
            return float(y != y_hat)

        def oracle(self, indices, w, rescaling="margin", sqrt_loss=False):
            truth = np.array([self.Y[i] for i in indices], float)
            dpsi = 2.0 * truth * np.array([self.X[i] for i in indices])
            n = len(indices)
            planes = Planes(np.arange(n + 1), np.zeros(n, np.int32), dpsi, np.ones(n))
            return planes.with_bounds(np.maximum(1.0 - dpsi * w, 0.0) + 1.0)

    with pytest.warns(ConvergenceWarning, match="bounds are too loose"):
        mm.StructuralSVM(Bound()).fit([1.0, 2.0, -1.0], [1, 1, -1])


def test_online_weights_are_certified_by_bounds():
    problem = Sloppy(np.random.default_rng(3))
    weights = make_solver("perceptron", max_passes=5).solve(problem, Formulation(), 1.0)
    result = certify(problem, Formulation(), 1.0, weights)
    assert result.primal == pytest.approx(true_primal(problem, result.w, Formulation(), 1.0))
    unbounded = certify(Unbounded(np.random.default_rng(3)), Formulation(), 1.0, weights)
    assert unbounded.primal < result.primal and unbounded.gap is None


# ----- bounds as they come -----------------------------------------------------------------------


def test_hinge_values_are_bounds():
    problem = Sloppy(np.random.default_rng(4))
    w = np.full(D, 0.3)
    assert hinge_values(problem, Formulation(), w) == pytest.approx(
        np.maximum(problem.values(w).max(axis=1), 0.0)
    )


def test_pieces_of_a_batch_keep_their_bounds(monkeypatch):
    monkeypatch.setattr(asking, "MOST", 4)
    monkeypatch.setattr(asking, "FEWEST", 1)
    problem = Sloppy(np.random.default_rng(5), n=11)
    whole, w = Oracle(problem, Formulation()), np.full(D, -0.4)
    whole.call(np.arange(11), w)
    problem.in_threads = True
    pieces = Oracle(problem, Formulation())
    with pieces.in_threads(2):
        pieces.call(np.arange(11), w)
    assert np.array_equal(whole.bounds, pieces.bounds)


def test_answers_without_bounds_among_others():
    class Sometimes(Sloppy):
        def oracle(self, indices, *rest):
            answer = super().oracle(indices, *rest)
            return answer if indices[0] == 0 else answer.planes

    problem, w = Sometimes(np.random.default_rng(6)), np.zeros(D)
    for exact in (True, False):
        problem.exact = exact
        asked = Oracle(problem, Formulation())
        assert asked.certifies is exact
        asked.call(np.array([0, 1]), w)
        asked.call(np.array([2, 1]), w)
        assert np.isfinite(asked.bounds[0]) and asked.certifies
        assert np.all(asked.bounds[1:] == (-np.inf if exact else np.inf))


def test_predictions_leave_the_bounds_alone():
    asked = Oracle(Sloppy(np.random.default_rng(6)), Formulation())
    asked.predictions(np.arange(6), np.ones(D))
    assert asked.bounds is None


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (lambda n: np.full(n, -5.0), r"bound for example 0 is -5, but the candidate itself"),
        (lambda n: np.full(n, np.nan), r"bound for example 0 is nan"),
        (lambda n: np.zeros(n + 1), r"called for 6 examples and returned bounds of shape \(7,\)"),
    ],
)
def test_bounds_that_are_none(bounds, message):
    class Wrong(Listed):
        def oracle(self, indices, *rest):
            return super().oracle(indices, *rest).with_bounds(bounds(len(indices)))

    problem = Wrong(np.random.default_rng(7))
    with pytest.raises(ValueError, match=message):
        Oracle(problem, Formulation()).violations(np.zeros(D))
    with pytest.raises(ValueError, match=r"bound for example 0 is|bounds of shape"):
        mm.check_problem(problem)


# ----- no bounds ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "slack"), CERTIFIED)
def test_without_bounds_all_is_relative_to_the_oracle(name, slack):
    problem = Unbounded(np.random.default_rng(8))
    formulation = Formulation(slack=slack)
    with pytest.warns(UserWarning, match="relative to the oracle"):
        result = solve(name, problem, formulation)
    assert result.converged and result.status == "converged"
    assert result.gap is None and result.relative_gap is None and result.relative_to_oracle
    assert all(record.gap is None for record in result.history)
    assert "relative to the oracle" in str(result) and "relative to the oracle" in repr(result)
    assert result.primal <= true_primal(problem, result.w, formulation, 0.5) + 1e-9
    assert tolerated(result, 0.5, 0.1, None, 6.0) == (np.inf, -np.inf)


@pytest.mark.parametrize(
    ("problem", "x", "rescaling"),
    [
        (mm.AssignmentProblem(), np.eye(2)[..., None], "margin"),
        (mm.LinearProgramProblem(relaxed=True), (np.eye(2), None), "slack"),
    ],
)
def test_what_warm_starts_keep_can_be_pickled(problem, x, rescaling):
    X, y = [x], [[0, 1]]
    model = mm.StructuralSVM(problem, rescaling=rescaling, warm_start=True, tol=0.5).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert again.result_.state is not None
    assert np.array_equal(again.fit(X, y).coef_, model.fit(X, y).coef_)


def test_saved_models_keep_it(tmp_path):
    model = mm.MulticlassSVM().fit(np.eye(3), [0, 1, 2])
    model.result_ = dataclasses.replace(model.result_, relative_to_oracle=True)
    model.save(tmp_path / "model.mm")
    result = mm.load(tmp_path / "model.mm").result_
    assert result.relative_to_oracle and result.gap is None and result.primal is not None


# ----- slack rescaling through margins -----------------------------------------------------------


@pytest.mark.parametrize(
    ("rescaling", "sqrt_loss"), [("slack", False), ("slack", True), ("margin", True)]
)
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([0.0, 0.3, 1.0, 20.0]),
    unit=st.sampled_from([0.0, 0.5]),
    sloppy=st.booleans(),
)
def test_bounds_through_the_margin_oracle(rescaling, sqrt_loss, seed, scale, unit, sloppy):
    rng = np.random.default_rng(seed)
    problem = (SloppyMargins if sloppy else MarginsOnly)(rng, n=4, K=5, unit=unit)
    w = scale * rng.normal(size=D)
    values = problem.values(w, rescaling, sqrt_loss)
    planes, bounds = split_bounds(search_of(problem, rescaling, sqrt_loss)(np.arange(4), w))
    largest = np.maximum(values.max(axis=1), 0.0)
    assert np.all(bounds >= largest * (1.0 - 1e-9) - 1e-9)
    for i in range(4):  # each row is a candidate's, and no other vertex of the hull is better
        losses, gains = problem.losses[i], -problem.dpsi[i] @ w
        row = slice(planes.indptr[i], planes.indptr[i + 1])
        dpsi = np.bincount(planes.indices[row], planes.values[row], minlength=D)
        y = np.flatnonzero((losses == planes.losses[i]) & np.isclose(problem.dpsi[i], dpsi).all(1))
        assert len(y) == 1
        if not sloppy:
            vertices = {np.argmax(gains + m * losses) for m in np.geomspace(1e-4, 1e4, 400)}
            assert values[i, y[0]] >= max(0.0, *(values[i, v] for v in vertices)) - 1e-9


def test_the_bound_is_that_of_the_hull():
    """One output between two vertices is missed, and the bound allows for it."""
    problem = MarginsOnly(np.random.default_rng(0), n=1, K=4)
    problem.losses = np.array([[0.0, 1.0, 2.0, 3.0]])
    problem.dpsi = -np.array([[0.0, 2.0, 0.8, 0.0]])[..., None] * np.eye(D)[0]
    planes, bounds = split_bounds(search_of(problem, "slack", False)(np.arange(1), np.eye(D)[0]))
    assert planes.losses[0] == 1.0 or planes.losses[0] == 3.0
    # The line through (1, 2) and (3, 0) has its largest 'Delta (1 + gain)' at (2, 1), which is 4.
    assert bounds[0] == pytest.approx(4.0) and problem.values(np.eye(D)[0], "slack").max() < 4.0


@pytest.mark.parametrize(("name", "slack"), CERTIFIED)
def test_training_with_slack_rescaling_through_margins(name, slack):
    problem = MarginsOnly(np.random.default_rng(9), unit=0.5)
    formulation = Formulation("slack", slack)
    result = solve(name, problem, formulation, C=0.1)
    assert result.primal >= true_primal(problem, result.w, formulation, 0.1) - 1e-9
    best = solve(name, Listed(np.random.default_rng(9), unit=0.5), formulation, C=0.1)
    assert result.dual <= best.primal * (1 + 1e-9)
    assert result.status in ("converged", "loose bounds")


def test_plain_problems_that_know_margins_only():
    class Plain(mm.Problem):
        rescalings = ("margin",)
        loss_unit = 1.0

        def joint_feature(self, x, y):
            return np.concatenate([x * (y == k) for k in range(3)])

        def loss(self, y, y_hat):
            return float(abs(y - y_hat))

        def most_violated(self, x, y, w, rescaling):
            assert rescaling == "margin"
            return max(range(3), key=lambda k: self.loss(y, k) + w @ self.joint_feature(x, k))

        def predict(self, x, w):
            return max(range(3), key=lambda k: w @ self.joint_feature(x, k))

    X, y = list(np.random.default_rng(0).normal(size=(8, 2))), [0, 1, 2, 0, 1, 2, 0, 1]
    mm.check_problem(
        Plain().bind(X, y), outputs=lambda x: range(3), rescalings=("margin", "slack"), n_weights=5
    )
    model = mm.StructuralSVM(Plain(), rescaling="slack", tol=0.05).fit(X, y)
    assert model.result_.relative_gap <= 0.05
    with pytest.raises(ValueError, match="no oracle for rescaling='none'"):
        mm.StructuralSVM(Plain(), rescaling="none").fit(X, y)


def test_margins_that_are_not_exact_make_slacks_relative_to_the_oracle():
    class Both(Unbounded):
        rescalings = ("margin",)

    with pytest.warns(UserWarning, match="relative to the oracle"):
        result = solve("auto", Both(np.random.default_rng(9)), Formulation("slack"), C=0.1)
    assert result.gap is None


# ----- check_problem -----------------------------------------------------------------------------


def test_checks_compare_with_bounds():
    class TooLow(Sloppy):
        def oracle(self, indices, *rest):
            planes, bounds = super().oracle(indices, *rest)
            return planes.with_bounds(0.5 * bounds)

    mm.check_problem(Sloppy(np.random.default_rng(0)), rescalings=("margin", "slack"))
    with pytest.raises(ValueError, match=r"margin oracle's bound for example \d is .*, but"):
        mm.check_problem(TooLow(np.random.default_rng(0)))


def test_checks_of_problems_without_methods_in_python():
    problem = Listed(np.random.default_rng(0))
    mm.check_problem(problem, rescalings=("margin", "slack", "none"))
    mm.check_problem(Unbounded(np.random.default_rng(0)))
    blind = Unbounded(np.random.default_rng(0))
    blind.exact, blind.overlooked = True, 4  # finds the truth alone: others are never seen
    blind.predictions = problem.predictions
    with pytest.raises(ValueError, match=r"example \d has value 0, but the prediction has \d"):
        mm.check_problem(blind)


class Costs(Problem):
    """One of some rows; costs are given, and may be 0 for rows other than the given one."""

    rescalings = ("margin",)

    def joint_feature(self, x, y):
        return x[y]

    def loss(self, y, y_hat):
        return 0.0 if y == y_hat else float(self.costs[y_hat])

    def most_violated(self, x, y, w, rescaling):
        return max(range(len(x)), key=lambda z: self.loss(y, z) + x[z] @ w)

    def predict(self, x, w):
        return int(np.argmax(x @ w))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), unit=st.sampled_from([0.0, 0.5]), k=st.integers(1, 8))
def test_margin_oracles_bound_all_outputs_also_those_without_loss(seed, unit, k):
    rng = np.random.default_rng(seed)
    problem, x = Costs(), rng.normal(size=(k, 2))
    problem.costs = rng.integers(0, rng.choice([1, 5]), k) * (unit or rng.random(k))
    problem.loss_unit = unit
    bound = problem.bind([x], [0])
    w = rng.normal(size=2) * rng.choice([0.1, 1.0, 100.0])
    losses = np.array([problem.loss(0, z) for z in range(k)])
    for rescaling, sqrt_loss in (("slack", False), ("slack", True), ("margin", True)):
        formulation = Formulation(rescaling, sqrt_loss=sqrt_loss)
        offsets, scales = formulation.plane_terms(losses)
        best = float(np.max(offsets + scales * ((x - x[0]) @ w)))
        planes, bounds = split_bounds(search_of(bound, rescaling, sqrt_loss)(np.arange(1), w))
        offset, scale = formulation.plane_terms(planes.losses)
        found = float((offset - scale * (planes.values @ w[planes.indices]))[0])
        rounding = 1e-8 * (1.0 + np.abs(w).sum())
        assert found - rounding <= best <= (found if bounds is None else bounds[0]) + rounding
