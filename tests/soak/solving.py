"""Part `solvers`: random problems of every structure, judged by lists of all outputs."""

import os
import tempfile
import warnings
from typing import NamedTuple

import numpy as np
from sklearn.base import clone

import maxmargin as mm
from maxmargin.solvers import SOLVERS

from .listing import ROUNDING, Formulation, Objective
from .reference_qp import PRECISION, Infeasible, NotSolved, solve
from .tasks import TASKS

ONLINE = ("perceptron", "mira", "sgd", "pegasos")
# Up to which C s solvers must converge: those that go from example to example take ever longer.
BLOCKWISE = {"fasole": 100.0, "sdm": 100.0, "dcd": 100.0, "cpd": 100.0, "n_slack": 1000.0}
SLOW = ("bcfw", "sda", "dcd_light")  # one step for each oracle call
# How training may end before it has converged.
ENDINGS = ("max_passes", "max_time", "interrupted", "callback", "rounding", "stalled")
LIMITS = {"max_passes": 3000, "max_time": 20.0}


class Setting(NamedTuple):
    """What a task is trained with."""

    formulation: Formulation
    C: float
    sample_weight: np.ndarray | None
    solver: str
    options: dict
    tol: float
    seed: int
    n_jobs: int | None

    def parameters(self):
        """Parameters of an estimator."""
        limits = {"tol": self.tol, **LIMITS, "random_state": self.seed, "n_jobs": self.n_jobs}
        if not self.must_converge:
            limits["max_passes"] = 300
        shared = {"C": self.C, **self.formulation._asdict()}
        if self.solver in ONLINE:
            limits.pop("max_passes")
            return {**shared, "solver": SOLVERS[self.solver](**{**limits, **self.options})}
        if not self.options:
            return {**shared, "solver": self.solver, **limits}
        return {**shared, "solver": SOLVERS[self.solver](**limits, **self.options)}

    def weights(self, n):
        return np.ones(n) if self.sample_weight is None else self.sample_weight

    @property
    def must_converge(self):
        """Whether the precision should be reached long before the limits."""
        if self.solver in ONLINE:
            return False
        most = 1.0 if is_slow(self.solver, self.options) else BLOCKWISE.get(self.solver, np.inf)
        return self.formulation.slack == "none" or self.C * self.weights(1).max() <= most

    def objective(self, examples):
        return Objective(examples, self.formulation, self.C, self.weights(len(examples)))


def prepare(rng, number):
    """One problem and one solver."""
    task = TASKS[number % len(TASKS)](rng)
    setting = random_setting(rng, task)

    def run():
        model = task.make(**setting.parameters())
        if fit_or_refuse(task, model, setting):
            examples = task.list_examples(model)
            check_fit(model.result_, examples, setting)
            check_predictions(rng, task, model, examples)
            check_copies(task, model, setting)
            if rng.random() < 0.5:
                check_more_threads(rng, task, examples, setting)
            else:
                check_two_pieces(rng, task, model, setting)

    return f"{task.name}: {task.make}\n{setting}", run


def random_setting(rng, task):
    slack = str(rng.choice(["l1", "l1", "l2", "none"], p=[0.4, 0.2, 0.3, 0.1]))
    able = [name for name, kind in SOLVERS.items() if slack in kind.slacks]
    solver = str(rng.choice(able))
    rescaling = str(rng.choice(["margin", "slack", "none"]))
    sqrt_loss = [None, False, True][int(rng.integers(3))]
    if not task.has_sqrt_loss or task.margin_only:
        sqrt_loss = False
    if task.margin_only:
        rescaling = "margin"
    weights = None
    if rng.random() < 0.5:
        weights = rng.choice([0.0, 0.5, 1.0, 1.0, 3.0, 1000.0], task.n_examples)
        weights[rng.integers(task.n_examples)] = 1.0
    C = 10.0 ** rng.uniform(-3, 3)
    tol = float(rng.choice([1e-2, 1e-3, 1e-5]))
    options = random_options(rng, solver, task) if rng.random() < 0.6 or solver in ONLINE else {}
    if is_slow(solver, options):
        tol = 0.05
    formulation = Formulation(rescaling, slack, sqrt_loss)
    n_jobs = random_n_jobs(rng)
    return Setting(formulation, C, weights, solver, options, tol, int(rng.integers(1000)), n_jobs)


def random_n_jobs(rng):
    """Threads: none, one, as many as there are cores here, or more."""
    return [None, 1, 2, 3][int(rng.integers(4))]


def is_slow(solver, options):
    """Whether few planes are kept, or few steps made from them: slow where C is large."""
    merges = options.get("qp") == "line_search" or options.get("cache_mb", 1.0) < 1.0
    return solver in SLOW or merges


def random_options(rng, solver, task):
    """Some of a solver's own options, far from their defaults."""
    choices = {
        "cache_mb": [1e-4, 1e-3, 1.0],
        "batch_size": [1, 3, 100],
    }
    if solver == "one_slack":
        choices = {
            "qp": ["fsmo", "line_search"],
            "cache_size": [0, 1, 10],
            "cache_mb": [1e-4, 1.0],
            "reach": [0.1, 1.0],
            "inactive_limit": [2, 50],
        }
        if rng.random() < 0.3:
            choices |= {"qp": ["fsmo"], "kkt": [1e-10]}
    elif solver == "n_slack":
        choices = {
            "qp": ["fsmo", "block"],
            "variant": ["full", "subspace"],
            "batch": [1, 3, 100],
            "inactive_limit": [2, 50],
        }
    elif solver in ONLINE:
        choices = {
            "certificate": [True],
            "max_passes": [1, 3, 10],
            "batch_size": [1, 3],
            "average": [False, True],
            "held_out": [0.0, 0.0, 0.3],
        }
        if solver == "mira":
            choices |= {"loss_augmented": [True, False], "capped": [True, False]}
            if task.has_k_best:
                choices["k"] = [1, 3]
        if solver == "sgd":
            choices["schedule"] = ["bottou", "chang_yih"]
    elif solver == "sda":
        choices |= {"every_block": [False, True]}
    elif solver == "dcd":
        choices |= {"r": [1, 5], "extrapolation": [0.0, 3.0]}
    elif solver == "auto":
        choices |= {"extrapolation": [0.0, 1.0], "idle_limit": [1, 4]}
    return {name: values[int(rng.integers(len(values)))] for name, values in choices.items()}


def fit_or_refuse(task, model, setting):
    """Train; returns False where that is rightly refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            task.fit(model, setting.sample_weight)
            return True
        except ValueError as error:
            check_refusal(task, setting, str(error))
            return False


def check_refusal(task, setting, message):
    """A refusal must be one that the documentation tells of."""
    formulation = setting.formulation
    if "hard margin cannot be met" in message and formulation.slack == "none":
        # Listing needs the layout of a fitted model, which does not depend on the formulation.
        fitted = task.make(C=1.0, tol=None, max_passes=1)
        fit_or_refuse(task, fitted, setting._replace(sample_weight=None))
        try:
            found = solve(setting.objective(task.list_examples(fitted)))
        except (Infeasible, NotSolved):
            return
        raise AssertionError(f"{message!r}, but it can: {found}")
    rescaled = formulation.rescaling == "slack" or formulation.uses_sqrt_loss
    if "k best" in message and setting.options.get("k", 1) > 1 and rescaled:
        assert task.name in ("label trees", "parts", "dependencies"), message
        return
    raise AssertionError(f"fit refused: {message}")


def check_fit(result, examples, setting, must_converge=None):
    """The certificate is true, and what has converged is optimal."""
    w = result.w
    assert np.isfinite(w).all() and w.shape == examples[0].truth.shape, (w, examples[0].truth)
    objective = setting.objective(examples)
    primal, rounding = objective.primal(w), objective.rounding(w)
    assert result.status != "inexact oracle", "the oracle is called inexact"
    assert result.primal is not None and result.dual is not None, "no certificate"
    assert close(result.primal, primal, rounding), f"primal {result.primal}, by listing {primal}"
    if setting.solver not in ONLINE:
        kinds = ("converged", "interrupted") if result.converged else ENDINGS
        assert result.status in kinds, result.status
    if result.converged and result.primal > 0:
        assert result.relative_gap <= setting.tol, result.relative_gap
    try:
        optimum = solve(objective)
    except Infeasible:
        raise AssertionError(f"the hard margin cannot be met: {result}") from None
    except NotSolved:
        return
    may_fail = not (setting.must_converge if must_converge is None else must_converge)
    assert result.converged or may_fail, f"{result.status}, relative gap {result.relative_gap}"
    slop = rounding + 2.0 * PRECISION * max(optimum.upper, 1e-3)
    if objective.slack == "none":
        slop += objective.missed(optimum.upper)
    assert result.dual <= optimum.upper + slop, f"dual {result.dual} above {optimum}"
    assert result.primal >= optimum.lower - slop, f"primal {result.primal} below {optimum}"
    if result.converged:
        assert result.primal - optimum.lower <= setting.tol * result.primal + slop, optimum


def close(a, b, rounding):
    return a == b or abs(a - b) <= rounding


def check_predictions(rng, task, model, examples):
    """Predictions have the best scores of all outputs, and the k best are the k best."""
    w = model.result_.w
    k = int(rng.choice([1, 2, 5, 300]))
    ranked = model.predict_k(task.X, k) if task.has_k_best else [None] * len(examples)
    predicted = task.predict(model)
    assert len(predicted) == len(ranked) == len(examples), "not one prediction for each example"
    for i, (example, output, best) in enumerate(zip(examples, predicted, ranked, strict=True)):
        scores = example.scores(w)
        sizes = (np.abs(rows) @ np.abs(w) for rows in example.answers.values())
        rounding = ROUNDING * (1.0 + max(size.max() for size in sizes))
        order = sorted(scores.values(), reverse=True)
        key = task.key(output)
        assert key in scores, f"example {i}: {output} is no output"
        assert scores[key] >= order[0] - rounding, f"example {i}: {output} is not the best"
        if best is None:
            continue
        keys = [task.key(output) for output, _ in best]
        assert len(set(keys)) == len(keys) == min(k, len(order)), f"example {i}: {len(keys)} of {k}"
        for key, (_, score), expected in zip(keys, best, order, strict=False):
            assert close(score, scores[key], rounding), f"example {i}: {score}, not {scores[key]}"
            assert close(score, expected, rounding), f"example {i}: {score}, not {expected}"


def check_copies(task, model, setting):
    """A model that was saved and loaded predicts the same; a clone learns the same again."""
    if task.savable:
        loaded = saved_and_loaded(model)
        assert np.array_equal(loaded.result_.w, model.result_.w), "weights change in a file"
        check_same(task, model, loaded)
    again = clone(model)
    assert fit_or_refuse(task, again, setting), "a clone is refused"
    if "max_time" not in (model.result_.status, again.result_.status):
        assert np.array_equal(again.result_.w, model.result_.w), "not the same bits again"


def check_more_threads(rng, task, examples, setting):
    """Another number of threads comes to the same optimum, which the certificate tells of."""
    setting = setting._replace(n_jobs=random_n_jobs(rng))
    model = task.make(**setting.parameters())
    assert fit_or_refuse(task, model, setting), f"{setting.n_jobs} threads are refused"
    check_fit(model.result_, examples, setting)


def check_two_pieces(rng, task, model, setting):
    """A training that stops, and goes on from its file, comes to the same bits."""
    wait = iter(range(int(rng.choice([0, 1, 2, 5, 20]))))
    with tempfile.TemporaryDirectory() as folder:
        kept = {"checkpoint": os.path.join(folder, "c"), "checkpoint_every": 0.0}
        first = task.make(**setting.parameters())
        stop = [lambda progress: next(wait, None) is None]
        first.set_params(training={**kept, "callbacks": stop})
        assert fit_or_refuse(task, first, setting), "with a checkpoint it is refused"
        again = task.make(**setting.parameters()).set_params(training={**kept, "resume": True})
        assert fit_or_refuse(task, again, setting), "it does not go on"
    found, expected = again.result_, model.result_
    if "max_time" not in (found.status, expected.status):
        assert np.array_equal(found.w, expected.w), "not the same bits after a checkpoint"
        outcomes = [(r.status, r.primal, r.dual) for r in (found, expected)]
        assert outcomes[0] == outcomes[1], outcomes
        if first.result_.status != expected.status:  # online ones certify what was over once more
            calls = found.n_oracle_calls, expected.n_oracle_calls
            assert calls[0] == calls[1], calls


def saved_and_loaded(model):
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a solver's own options are not kept
        path = os.path.join(folder, "model.mm")
        model.save(path)
        return mm.load(path)


def check_same(task, model, other):
    """Both models predict the same."""
    left, right = task.keys(model), task.keys(other)
    assert left == right, f"{left} and {right}"
