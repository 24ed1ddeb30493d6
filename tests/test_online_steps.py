"""Online solvers against naive dense versions of themselves."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cases import chain_case
from checking import dense_rows
from exact_qp import solve_exactly
from maxmargin.core.formulation import Formulation
from maxmargin.core.problem import Planes
from maxmargin.problems.classes.multiclass import MulticlassProblem
from maxmargin.solvers import SOLVERS
from online import FUSED, bare, draw, solve, tagging


class Naive:
    """Visits in the order of the solvers, with dense weights and a dense sum of all of them."""

    def __init__(self, problem, formulation, passes, batch, seed=0, sample_weight=None):
        self.problem, self.formulation, self.batch = problem, formulation, batch
        n = problem.n_examples
        self.s = np.ones(n) if sample_weight is None else np.asarray(sample_weight)
        rng = np.random.default_rng(seed)
        used = np.flatnonzero(self.s > 0)
        self.orders = [rng.permutation(used) for _ in range(passes)]
        self.w = np.zeros(problem.n_features)
        self.total, self.steps = np.zeros(problem.n_features), 0
        self.tied = False
        self.touched = np.zeros(problem.n_features, dtype=bool)

    def batches(self):
        for order in self.orders:
            for start in range(0, len(order), self.batch):
                yield order[start : start + self.batch]

    def planes(self, batch, plain=False, k=1):
        """Candidates at w; notes where rounding decides which, or whether one is violated."""
        found = self.search(batch, self.w, plain, k)
        noise = np.random.default_rng(self.steps).uniform(-1e-9, 1e-9, len(self.w))
        # Weights that came back to 0 may be a rounding away from it; untouched ones are not.
        self.touched |= self.w != 0.0
        noise *= self.touched * np.abs(self.w).max(initial=0.0)
        # Sums of the same weights in another order are told apart by their last bits only.
        scaled = [self.w * (1.0 + 1e-12 * j) for j in range(1, 9)]
        for other_w in (self.w + noise, self.w - noise, *scaled):
            other = self.search(batch, other_w, plain, k)
            self.tied |= not np.array_equal(*(dense_rows(p, len(self.w)) for p in (found, other)))
        b, c = self.formulation.plane_terms(found.losses)
        A = c[:, None] * dense_rows(found, len(self.w))
        self.tied |= bool((A.any(axis=1) & (np.abs(b - A @ self.w) < 1e-9)).any())
        return b, A, found

    def search(self, batch, w, plain, k):
        kind = (self.formulation.rescaling, self.formulation.uses_sqrt_loss)
        if plain:
            return self.problem.predictions(batch, w)
        if k > 1:
            return self.problem.k_best(batch, w, k, *kind)
        return self.problem.oracle(batch, w, *kind)

    def end_step(self):
        self.total += self.w
        self.steps += 1

    def result(self, average):
        return self.total / self.steps if average else self.w


def naive_perceptron(naive):
    for batch in naive.batches():
        _, _, planes = naive.planes(batch, plain=True)
        for i, dpsi in zip(batch, dense_rows(planes, len(naive.w)), strict=True):
            naive.w = naive.w + naive.s[i] * dpsi
            naive.end_step()


def naive_sgd(naive, C, eta0, schedule="bottou"):
    used = naive.s > 0
    decay = 1.0 / (C * naive.s.sum())
    rate = decay if schedule == "bottou" else 1.0 / (C * naive.s[used].mean())
    t = 0
    for batch in naive.batches():
        b, A, _ = naive.planes(batch)
        for r, i in enumerate(batch):
            t += 1
            eta = eta0 / (1.0 + eta0 * t * rate) ** 0.75
            eta = min(eta, 0.5 / decay)
            hinge = b[r] - A[r] @ naive.w
            naive.w = (1.0 - eta * decay) * naive.w
            if hinge > 0:
                naive.w = naive.w + eta * naive.s[i] / naive.s[used].mean() * A[r]
            naive.end_step()


def naive_pegasos(naive, C, radius):
    decay = 1.0 / (C * naive.s.sum())
    mean = naive.s[naive.s > 0].mean()
    for t, batch in enumerate(naive.batches(), 1):
        b, A, _ = naive.planes(batch)
        eta = 1.0 / (decay * t)
        violated = b - A @ naive.w > 0
        step = (naive.s[batch] / mean * violated) @ A / len(batch)
        naive.w = (1.0 - eta * decay) * naive.w + eta * step
        norm = np.linalg.norm(naive.w)
        if norm > radius:
            naive.w = naive.w * radius / norm
        naive.end_step()


def largest_losses(problem, formulation, s):
    """sqrt(L / lambda) / sqrt(C) of `Pegasos`."""
    planes = problem.oracle(
        np.arange(problem.n_examples),
        np.zeros(problem.n_features),
        formulation.rescaling,
        formulation.uses_sqrt_loss,
    )
    return np.sqrt(s @ formulation.plane_terms(planes.losses)[0])


def check_same(result, naive, average):
    expected = naive.result(average)
    same = np.allclose(result.w, expected, rtol=1e-6, atol=1e-8 * (1 + np.abs(expected).max()))
    assume(same or not naive.tied)
    assert result.w == pytest.approx(expected, rel=1e-7, abs=1e-9 * (1 + np.abs(expected).max()))


@pytest.mark.parametrize("fused", FUSED)
@given(seed=st.integers(0, 2**32 - 1), batch=st.integers(1, 3), average=st.booleans())
def test_perceptron(fused, seed, batch, average):
    """The lazy average is the average of all weights."""
    case, formulation, C, weights = draw(seed)
    naive = Naive(case.problem, formulation, 4, batch, sample_weight=weights)
    naive_perceptron(naive)
    problem = case.problem if fused else bare(case.problem)
    options = {"max_passes": 4, "batch_size": batch, "average": average}
    result = solve("perceptron", problem, C, formulation, sample_weight=weights, **options)
    if result.status == "converged":  # a pass without a mistake ends training early
        naive = Naive(case.problem, formulation, len(result.history), batch, sample_weight=weights)
        naive_perceptron(naive)
    check_same(result, naive, average)


@pytest.mark.parametrize("fused", FUSED)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), k=st.sampled_from([1, 1, 2, 4]))
def test_mira(fused, seed, k):
    """Each step is the solution of its small QP, in the change of w.

    Steps are compared one by one: they leave candidates tied, so rounding decides the next ones.
    """
    case, formulation, C, weights = draw(seed)
    problem = case.problem if fused else bare(case.problem)
    used = np.flatnonzero(weights > 0)
    rng = np.random.default_rng(0)
    naive = Naive(case.problem, formulation, 0, 1)
    options = {"max_passes": 1 / len(used), "k": k, "average": False, "sample_weight": weights}
    result = None
    for _ in range(8):
        i = rng.permutation(used)[0]
        b, A, _ = naive.planes(np.array([i]), k=k)
        hinges = b - A @ naive.w
        result = solve("mira", problem, C, formulation, warm_start=result, **options)
        change = result.w - naive.w
        optimum = solve_exactly([(hinges, A)], C * weights[i])
        value = 0.5 * change @ change + C * weights[i] * max(0.0, (hinges - A @ change).max())
        assert value == pytest.approx(optimum.value, rel=1e-7, abs=1e-9)
        naive.w = result.w


@pytest.mark.parametrize("fused", FUSED)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), k=st.sampled_from([1, 1, 3]), capped=st.booleans())
def test_mira_from_predictions(fused, seed, k, capped):
    """The paper's candidates, and without a cap its hard constraints: all are met after a step."""
    case, formulation, C, weights = draw(seed)
    problem = case.problem if fused else bare(case.problem)
    used = np.flatnonzero(weights > 0)
    rng = np.random.default_rng(0)
    naive = Naive(case.problem, formulation, 0, 1)
    options = {"max_passes": 1 / len(used), "k": k, "average": False, "sample_weight": weights}
    result = None
    for _ in range(8):
        i = np.array([rng.permutation(used)[0]])
        if k == 1:
            planes = case.problem.predictions(i, naive.w)
        else:
            planes = case.problem.k_best(i, naive.w, k, "none")
        b, c = formulation.plane_terms(planes.losses)
        A = c[:, None] * dense_rows(planes, len(naive.w))
        hinges = b - A @ naive.w
        result = solve(
            "mira",
            problem,
            C,
            formulation,
            warm_start=result,
            loss_augmented=False,
            capped=capped,
            **options,
        )
        change = result.w - naive.w
        hinges, A = hinges[A.any(axis=1)], A[A.any(axis=1)]
        if len(hinges) == 0 or hinges.max() <= 0.0:
            assert np.abs(change).max() <= 1e-9
        elif capped:
            bound = C * weights[i[0]]
            value = 0.5 * change @ change + bound * max(0.0, (hinges - A @ change).max())
            optimum = solve_exactly([(hinges, A)], bound).value
            assert value == pytest.approx(optimum, rel=1e-7, abs=1e-9)
        elif k == 1:  # the nearest point that meets the one constraint
            assert change == pytest.approx(hinges[0] / (A[0] @ A[0]) * A[0], rel=1e-9)
        else:
            size = 1.0 + np.abs(hinges).max()
            assume(np.linalg.cond(A @ A.T) < 1e6)  # else they may contradict each other
            assert (hinges - A @ change).max() <= 1e-6 * size
            multipliers = np.linalg.lstsq(A.T, change, rcond=None)[0]
            assert multipliers.min() >= -1e-6 * np.abs(multipliers).max() - 1e-9
        naive.w = result.w


def test_mira_from_predictions_ends_without_mistakes():
    """An example predicted right is left alone, however small its margin."""
    X, y = np.eye(3), np.arange(3)
    problem = MulticlassProblem(X, y, 3, costs=5.0 * (1.0 - np.eye(3)))
    options = {"C": 0.01, "max_passes": 50}
    right = solve("mira", problem, loss_augmented=False, **options)
    assert right.status == "converged" and len(right.history) < 50
    assert solve("mira", problem, **options).status == "max_passes"


@pytest.mark.parametrize("k", [1, 2])
def test_mira_without_a_cap_leaves_out_what_cannot_be_met(k):
    """Example 1 has a wrong output with the very features of the truth: entries that cancel."""

    def rows(indices):
        cancels = np.repeat(np.asarray(indices) == 1, k)
        cancels[1::2] |= k == 2  # as the second best output of all
        values = np.where(cancels[:, None], [1.0, -1.0], [1.0, 2.0]).ravel()
        columns = np.where(cancels[:, None], [0, 0], [0, 1]).ravel().astype(np.int32)
        return Planes(np.arange(0, 2 * len(cancels) + 1, 2), columns, values, np.ones(len(cancels)))

    problem = SimpleNamespace(
        n_examples=2,
        n_features=2,
        oracle=lambda indices, *_: rows(indices),
        k_best=lambda indices, *_: rows(indices),
    )
    result = solve("mira", problem, k=k, capped=False, max_passes=6, average=False)
    assert result.w == pytest.approx([0.2, 0.4], rel=1e-9)  # a . w = 1, as near to 0 as can be


def test_mira_is_averaged():
    case = chain_case(np.random.default_rng(6))
    n = case.problem.n_examples
    total, last = np.zeros(case.twin.n_features), None
    for _ in range(3 * n):
        last = solve("mira", case.problem, max_passes=1 / n, average=False, warm_start=last)
        total += last.w
    averaged = None
    for _ in range(3 * n):
        averaged = solve("mira", case.problem, max_passes=1 / n, warm_start=averaged)
    assert averaged.w == pytest.approx(total / (3 * n), rel=1e-9)


@pytest.mark.parametrize("fused", FUSED)
@given(
    seed=st.integers(0, 2**32 - 1),
    batch=st.integers(1, 3),
    eta0=st.sampled_from([0.5, 0.05, 100.0]),
    schedule=st.sampled_from(["bottou", "chang_yih"]),
    average=st.booleans(),
)
def test_sgd(fused, seed, batch, eta0, schedule, average):
    """Scaled weights are shrunk weights, also where the scale has to be folded in."""
    case, formulation, C, weights = draw(seed)
    naive = Naive(case.problem, formulation, 8, batch, sample_weight=weights)
    naive_sgd(naive, C, eta0, schedule)
    problem = case.problem if fused else bare(case.problem)
    options = {"max_passes": 8, "batch_size": batch, "eta0": eta0, "average": average}
    options["schedule"] = schedule
    result = solve("sgd", problem, C, formulation, sample_weight=weights, **options)
    check_same(result, naive, average)


@pytest.mark.parametrize("fused", FUSED)
@given(
    seed=st.integers(0, 2**32 - 1),
    batch=st.integers(1, 3),
    radius=st.sampled_from([None, np.inf, 0.5]),
    average=st.booleans(),
)
def test_pegasos(fused, seed, batch, radius, average):
    case, formulation, C, weights = draw(seed)
    naive = Naive(case.problem, formulation, 5, batch, sample_weight=weights)
    ball = np.sqrt(C) * largest_losses(case.problem, formulation, weights)
    naive_pegasos(naive, C, ball if radius is None else radius)
    problem = case.problem if fused else bare(case.problem)
    options = {"max_passes": 5, "batch_size": batch, "radius": radius, "average": average}
    result = solve("pegasos", problem, C, formulation, sample_weight=weights, **options)
    check_same(result, naive, average)


def test_sgd_tries_step_sizes():
    problem = tagging(n=50)
    result = solve("sgd", problem, C=0.1)
    assert result.state.eta0 in (0.5, 0.25, 0.125, 0.0625, 0.03125)
    assert solve("sgd", problem, eta0=0.3).state.eta0 == 0.3
    by_trial = SOLVERS["sgd"](sample=20, max_passes=0.0, random_state=1)
    chosen = by_trial.solve(problem, Formulation(), 0.1)
    rng = np.random.default_rng(1)
    sample = rng.choice(np.arange(50), 20, replace=False)
    values = []
    for eta0 in by_trial.candidates:
        naive = Naive(problem, Formulation(), 0, 1)
        naive.orders = [sample]
        naive_sgd(naive, 0.1, eta0)
        b, A, _ = naive.planes(sample)
        hinges = np.maximum(b - A @ naive.w, 0.0)
        values.append(0.5 * naive.w @ naive.w / (0.1 * 50) + hinges.mean())
    assert chosen.state.eta0 == by_trial.candidates[int(np.argmin(values))]
