"""Online solvers: the exact optimum, the course of training, problems and options of all kinds."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brute import all_planes, slacks
from cases import BASIC_IDS, BASIC_KINDS, chain_case, make_case
from exact_qp import solve_exactly
from maxmargin.core.formulation import Formulation
from maxmargin.core.problem import Problem
from maxmargin.solvers import certify
from online import FUSED, ONLINE, bare, draw, solve, tagging

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
    evaluated = solve(name, case.problem, max_passes=2, certificate=True, tol=0.999)
    assert evaluated.converged == (evaluated.relative_gap <= 0.999)


def test_certificates_of_other_slacks_are_refused():
    case = chain_case(np.random.default_rng(0))
    result = solve("perceptron", case.problem)
    with pytest.raises(ValueError, match="slack='l1'"):
        certify(case.problem, Formulation(slack="l2"), 1.0, result)


# ----- the course of training --------------------------------------------------------------------


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
    with pytest.raises(ValueError, match="use solver="):
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
        ("sgd", {"schedule": "slow"}, "schedule must be 'bottou' or 'chang_yih', got 'slow'"),
    ],
)
def test_bad_switches(solver, options, message):
    case = chain_case(np.random.default_rng(1))
    with pytest.raises(ValueError, match=message):
        solve(solver, case.problem, **options)
