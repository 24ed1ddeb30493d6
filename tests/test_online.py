"""Online solvers against naive dense versions of themselves, and against the exact optimum."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from brute import all_planes, slacks
from cases import BASIC_IDS, BASIC_KINDS, chain_case, make_case
from checking import dense_rows
from exact_qp import solve_exactly
from maxmargin.formulation import Formulation
from maxmargin.problem import Planes, Problem
from maxmargin.problems.classes.multiclass import MulticlassProblem
from maxmargin.solvers import SOLVERS, certify, make_solver

ONLINE = [name for name, solver in SOLVERS.items() if not solver.certified]
FUSED = [True, False]  # whether the problem steps through examples by itself


def solve(name, problem, C=0.5, formulation=None, **arguments):
    call = {
        key: arguments.pop(key)
        for key in ("sample_weight", "warm_start", "callbacks")
        if key in arguments
    }
    solver = make_solver(name, **{"random_state": 0, **arguments})
    return solver.solve(problem, formulation or Formulation(), C, **call)


def bare(problem):
    """The problem with nothing but its batch oracle and its searches."""
    return SimpleNamespace(
        n_examples=problem.n_examples,
        n_features=problem.n_features,
        oracle=problem.oracle,
        predictions=problem.predictions,
        k_best=problem.k_best,
        trusted=True,
    )


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
        for other_w in (self.w + noise, self.w - noise):
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


def draw(seed):
    """A random problem, formulation, C and weights."""
    rng = np.random.default_rng(seed)
    structure, loss = BASIC_KINDS[rng.integers(len(BASIC_KINDS))]
    options = {"loss": loss, "fit_intercept": bool(rng.integers(2))}
    if structure == "chain":
        options |= {name: bool(rng.integers(2)) for name in ("boundary_weights", "constrained")}
    options["layout"] = str(rng.choice(["dense", "csr"]))
    case = make_case(structure, rng, **options)
    formulation = Formulation(str(rng.choice(["margin", "slack", "none"])))
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], case.problem.n_examples)
    weights[rng.integers(len(weights))] = 1.0
    return case, formulation, float(10 ** rng.uniform(-1.5, 1)), weights


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
    schedule=st.sampled_from(["bottou", "chang-yih"]),
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


# ----- the optimum -------------------------------------------------------------------------------


@pytest.mark.parametrize("rescaling", ["margin", "slack", "none"])
@pytest.mark.parametrize(("structure", "loss"), BASIC_KINDS, ids=BASIC_IDS)
@pytest.mark.parametrize(("name", "batch"), [("sgd", 1), ("pegasos", 1), ("pegasos", 3)])
def test_subgradients_lead_to_the_optimum(name, batch, structure, loss, rescaling):
    formulation = Formulation(rescaling)
    case = make_case(structure, np.random.default_rng(2), loss=loss, fit_intercept=True)
    optimum = solve_exactly(all_planes(case.twin, formulation), 0.2)
    options = {"max_passes": 500, "batch_size": batch, "certificate": True}
    result = solve(name, case.problem, 0.2, formulation, **options)
    assert result.primal == pytest.approx(optimum.value, rel=0.03)
    assert result.dual == pytest.approx(optimum.value, rel=0.06)
    assert np.linalg.norm(result.w - optimum.w) <= 0.2 * np.linalg.norm(optimum.w)


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), name=st.sampled_from(ONLINE), average=st.booleans())
def test_certificates_are_true(seed, name, average):
    """Primal by definition, dual below the optimum, for any solver, problem and weights."""
    case, formulation, C, weights = draw(seed)
    options = {"max_passes": 3, "average": average, "certificate": True}
    result = solve(name, case.problem, C, formulation, sample_weight=weights, **options)
    blocks = all_planes(case.twin, formulation)
    primal = 0.5 * result.w @ result.w + C * float(weights @ slacks(blocks, result.w))
    assert result.primal == pytest.approx(primal, rel=1e-9, abs=1e-12)
    optimum = solve_exactly(blocks, C, weights)
    rounding = 1e-8 * max(1.0, optimum.primal)
    assert 0.0 <= result.dual <= optimum.primal + rounding
    assert result.gap >= -rounding
    # Without the state of the training the bound is another, and as true.
    result.state = None
    again = certify(case.problem, formulation, C, result, sample_weight=weights)
    assert again.primal == pytest.approx(primal, rel=1e-9, abs=1e-12)
    assert 0.0 <= again.dual <= optimum.primal + rounding


@pytest.mark.parametrize("name", ONLINE)
def test_no_certificate_unless_asked_for(name):
    case = chain_case(np.random.default_rng(0))
    result = solve(name, case.problem, max_passes=2)
    assert result.primal is result.dual is result.gap is result.relative_gap is None
    assert result.status in ("max_passes", "converged")
    later = certify(case.problem, Formulation(), 0.5, result)
    at_once = solve(name, case.problem, max_passes=2, certificate=True)
    assert (later.primal, later.dual) == (at_once.primal, at_once.dual)
    assert later.gap > 0
    judged = solve(name, case.problem, max_passes=2, certificate=True, tol=0.999)
    assert judged.converged == (judged.relative_gap <= 0.999)


def test_certificates_of_other_slacks_are_refused():
    case = chain_case(np.random.default_rng(0))
    result = solve("perceptron", case.problem)
    with pytest.raises(ValueError, match="slack='l1'"):
        certify(case.problem, Formulation(slack="l2"), 1.0, result)


# ----- the course of training --------------------------------------------------------------------


def tagging(n=40, seed=0, noise=0.5):
    """Sequences that can be learned, with some noise."""
    from maxmargin.problems.chain.problem import ChainProblem

    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 6, n)
    labels = rng.integers(0, 3, lengths.sum())
    tokens = np.eye(3)[labels] + noise * rng.normal(size=(len(labels), 3))
    return ChainProblem(tokens, np.concatenate([[0], np.cumsum(lengths)]), labels, 3)


@pytest.mark.parametrize("name", ONLINE)
def test_the_same_seed_gives_the_same_weights(name):
    problem = tagging()
    first, same, other = (
        solve(name, problem, max_passes=3, random_state=seed).w for seed in (1, 1, 2)
    )
    assert np.array_equal(first, same) and not np.array_equal(first, other)


@pytest.mark.parametrize("name", ONLINE)
def test_history(name):
    problem = tagging(noise=1.0)
    seen = []
    result = solve(name, problem, callbacks=[seen.append], max_passes=2.5)
    assert seen == result.history and len(seen) == 3
    for record in seen:
        assert record.primal is record.dual is record.gap is record.held_out_loss is None
        assert record.loss >= 0
    assert seen[0].oracle_calls < seen[1].oracle_calls < seen[2].oracle_calls
    assert len(solve(name, problem).history) == 10  # by default


@pytest.mark.parametrize("name", ONLINE)
@pytest.mark.parametrize("fused", FUSED)
def test_going_on_is_the_same_as_not_stopping(name, fused):
    problem = tagging(noise=1.0)
    problem = problem if fused else bare(problem)
    whole = solve(name, problem, max_passes=4, certificate=True)
    result = None
    for _ in range(4):
        result = solve(name, problem, max_passes=1, warm_start=result, certificate=True)
    assert np.array_equal(result.w, whole.w)
    assert result.dual == whole.dual


def test_examples_of_a_later_problem_do_not_count_in_an_earlier_result():
    problems = [chain_case(np.random.default_rng(seed), n_inputs=2, K=2).problem for seed in (0, 1)]
    first = solve("pegasos", problems[0], 1.0, average=False, max_passes=1)
    n = problems[0].n_examples
    for _ in range(2):
        later = solve(
            "pegasos", problems[1], 1.0, average=True, max_passes=1, warm_start=first
        ).state.seen
        assert (first.state.seen.count, later.count) == (n, n + problems[1].n_examples)


def test_a_warm_start_from_weights_alone():
    """Of another solver, say: training goes on from there and does not begin at zero."""
    problem = tagging()
    good = solve("auto", problem, tol=1e-3)
    for name in ONLINE:
        result = solve(name, problem, warm_start=good, max_passes=0.1, C=0.5)
        assert result.w @ good.w > 0.5 * np.linalg.norm(result.w) * np.linalg.norm(good.w)
        # Multipliers of these weights are not known, and none are invented.
        assert certify(problem, Formulation(), 0.5, result).dual <= good.primal
    with pytest.raises(ValueError, match="warm start has 3 weights"):
        solve("sgd", problem, warm_start=SimpleNamespace(w=np.zeros(3), state=None))
    # And the other way round.
    online = solve("sgd", problem)
    assert solve("auto", problem, warm_start=online, tol=1e-3).converged


@pytest.mark.parametrize("name", ONLINE)
def test_held_out_examples(name):
    problem = tagging(n=60, noise=2.0)
    seen = []
    result = solve(
        name, problem, C=10.0, held_out=0.3, patience=2, max_passes=200, callbacks=[seen.append]
    )
    assert result.status == "early_stopping"
    losses = [record.held_out_loss for record in seen]
    best = int(np.argmin(losses))
    assert len(losses) == best + 3  # the best pass, and two more
    assert min(losses) <= losses[0]
    # Training up to the best pass gives the same weights; calls beside the visits do not count.
    again = solve(name, problem, C=10.0, held_out=0.3, patience=500, max_passes=best + 1)
    assert np.array_equal(again.w, result.w)
    # 18 of 60 are never visited: their multipliers stay zero.
    assert np.count_nonzero(result.state.state.alpha) <= 42


@pytest.mark.parametrize("name", ONLINE)
def test_interrupts(name):
    problem = tagging(noise=1.0)
    seen = []

    def interrupt(progress):
        seen.append(progress)
        if len(seen) == 2:
            raise KeyboardInterrupt

    result = solve(name, problem, callbacks=[interrupt])
    assert result.status == "interrupted" and not result.converged
    assert np.array_equal(result.w, solve(name, problem, max_passes=2).w)


@pytest.mark.parametrize("name", ONLINE)
def test_callbacks_and_time_end_training(name):
    problem = tagging(noise=1.0)
    result = solve(name, problem, callbacks=[lambda progress: True])
    assert result.status == "callback" and len(result.history) == 1
    assert solve(name, problem, max_time=0.0).status == "max_time"
    assert not solve(name, problem, max_passes=0).w.any()


def test_a_perceptron_without_mistakes_is_done():
    result = solve("perceptron", tagging(noise=0.01))
    assert result.status == "converged" and result.converged and len(result.history) < 10
    assert result.history[-1].loss == 0.0


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


# ----- problems in plain Python ------------------------------------------------------------------


class Signs(Problem):
    """The sign of a number, as a user would write it, without k_best and predictions."""

    n_features = 2

    def joint_feature(self, x, y):
        return {0: x * y, 1: float(y)}

    def loss(self, y, y_hat):
        return float(y != y_hat)

    def most_violated(self, x, y, w, rescaling):
        return max((-1, 1), key=lambda z: self.loss(y, z) + (w[0] * x + w[1]) * z)

    def predict(self, x, w):
        return max((-1, 1), key=lambda z: (w[0] * x + w[1]) * z)


@pytest.mark.parametrize("name", ONLINE)
def test_problems_in_plain_python(name):
    X = np.random.default_rng(0).normal(size=30)
    Y = np.where(X > 0.3, 1, -1)
    problem = Signs().bind(X, Y)
    result = solve(name, problem, C=10.0, max_passes=30, held_out=0.2, patience=30)
    right = [problem.predict(x, result.w) == y for x, y in zip(X, Y, strict=True)]
    assert np.mean(right) >= 0.9
    # The least that a solver needs to know.
    duck = SimpleNamespace(n_examples=30, n_features=2, oracle=problem.oracle)
    assert np.array_equal(
        solve(name, duck, C=10.0, max_passes=5).w, solve(name, problem, C=10.0, max_passes=5).w
    )


def test_bad_answers_are_named():
    class Wrong(Signs):
        def loss(self, y, y_hat):
            return -1.0

    problem = Wrong().bind([1.0, -1.0], [1, -1])
    with pytest.raises(ValueError, match=r"loss -1\.0 for example"):
        solve("perceptron", problem)
    with pytest.raises(ValueError, match="Signs has no search for the k best outputs"):
        solve("mira", Signs().bind([1.0, -1.0], [1, -1]), k=2)


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("perceptron", "batch_size", 0),
        ("perceptron", "held_out", 1.0),
        ("perceptron", "held_out", -0.1),
        ("perceptron", "patience", 0),
        ("perceptron", "max_passes", -1),
        ("mira", "k", 0),
        ("sgd", "eta0", 0.0),
        ("sgd", "eta0", np.inf),
        ("sgd", "sample", 0),
        ("pegasos", "radius", 0.0),
    ],
)
def test_bad_parameters(name, option, value):
    with pytest.raises(ValueError, match=option):
        solve(name, tagging(4), **{option: value})


@pytest.mark.parametrize("name", ONLINE)
def test_other_slacks_are_refused(name):
    with pytest.raises(ValueError, match="solvers that can"):
        solve(name, tagging(4), formulation=Formulation(slack="l2"))


def test_nobody_to_train_on():
    with pytest.raises(ValueError, match="no examples are left"):
        solve("sgd", tagging(4), sample_weight=np.zeros(4))


@pytest.mark.nojit
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_without_compilation(structure):
    case = make_case(structure, np.random.default_rng(1))
    for name in ONLINE:
        result = solve(name, case.problem, max_passes=2, certificate=True)
        assert result.gap >= 0
    assert solve("mira", case.problem, max_passes=1, k=2).w.any()
    assert solve("pegasos", case.problem, max_passes=1, batch_size=2).w.any()


# ----- the paper's stop of Pegasos ---------------------------------------------------------------


def test_pegasos_ends_by_the_ratio_of_objectives():
    """Lee & Jang: ``|1 - f(w_(t+1)) / f(w_t)| <= 0.01``, with t counted in passes."""
    case = chain_case(np.random.default_rng(1), lengths=(3, 2, 4, 1, 3))
    C, ratio, n = 0.5, 0.01, 5
    blocks = all_planes(case.twin, Formulation())

    def objective(w):
        return 0.5 * w @ w / (C * n) + slacks(blocks, w).mean()

    result = solve("pegasos", case.problem, C, max_passes=500, ratio=ratio)
    passes = len(result.history)
    assert result.status == "converged" and result.converged and 2 <= passes < 500
    values = [
        objective(solve("pegasos", case.problem, C, max_passes=p).w) for p in range(1, passes + 1)
    ]
    changes = np.abs(1.0 - np.array(values[1:]) / values[:-1])
    assert changes[-1] <= ratio and np.all(changes[:-1] > ratio)
    # Passes of steps, one that measures the radius, and one after each that measures f.
    assert result.n_oracle_calls == (2 * passes + 1) * n


@pytest.mark.parametrize(
    ("solver", "options", "message"),
    [
        ("pegasos", {"ratio": -0.1}, "ratio must be >= 0, got -0.1"),
        ("sgd", {"schedule": "slow"}, "schedule must be 'bottou' or 'chang-yih', got 'slow'"),
    ],
)
def test_bad_switches(solver, options, message):
    case = chain_case(np.random.default_rng(1))
    with pytest.raises(ValueError, match=message):
        solve(solver, case.problem, **options)
