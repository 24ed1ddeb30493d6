"""A fit that fails, however late, leaves the estimator as it was."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import maxmargin as mm
from every_estimator import KINDS, MORE_TREES, ONLINE, TREES, make
from maxmargin.estimators.trees import grammar
from maxmargin.features import WindowFeatures


class Failing:
    """A solver that does not get far."""

    def __init__(self, error):
        self.error = error

    def solve(self, *args, **kwargs):
        raise self.error


def fail(error):
    def callback(progress):
        raise error

    return [callback]


#: Parameters and arguments with which a fit fails once it has read its data.
LATE_ERRORS = {
    "weights": ({}, {"sample_weight": -1.0}, ValueError),
    "too few weights": ({}, {"sample_weight": 1.0}, ValueError),
    "callback": ({"training": {"callbacks": fail(RuntimeError("stop"))}}, {}, RuntimeError),
    "memory": ({"solver": Failing(MemoryError())}, {}, MemoryError),
    "interrupt": ({"solver": Failing(KeyboardInterrupt())}, {}, KeyboardInterrupt),
    "formulation": ({"rescaling": "both"}, {}, ValueError),
}


def fit_and_fail(model, data, error):
    """Let a fit fail, with the parameters set for it put back afterwards."""
    parameters, arguments, kind = LATE_ERRORS[error]
    X, Y = data
    if "sample_weight" in arguments:
        n = len(X) - (error == "too few weights")
        arguments = {"sample_weight": np.full(n, arguments["sample_weight"])}
    usual = {name: getattr(model, name) for name in parameters}
    model.set_params(**parameters)
    with pytest.raises(kind):
        model.fit(X, Y, **arguments)
    model.set_params(**usual)


def outputs(model, X):
    """All that a model says of X, comparable."""
    return repr((model.predict(X), model.predict_k(X, 2) if hasattr(model, "predict_k") else None))


@pytest.mark.parametrize("error", LATE_ERRORS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_refit_that_fails_changes_nothing(kind, error):
    first, second = KINDS[kind].first, KINDS[kind].second
    model = make(kind).fit(*first)
    before, told = dict(vars(model)), outputs(model, first[0])
    fit_and_fail(model, second, error)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)
    assert outputs(model, first[0]) == told
    model.fit(*second)
    assert len(model.predict(second[0])) == len(second[0])


@pytest.mark.parametrize("kind", KINDS)
def test_a_first_fit_that_fails_leaves_an_estimator_that_is_not_fitted(kind):
    model = make(kind)
    before = dict(vars(model))
    for error in LATE_ERRORS:
        fit_and_fail(model, KINDS[kind].first, error)
        assert vars(model) == before, error


def test_an_error_in_the_features_changes_nothing():
    class Broken(WindowFeatures):
        def fit_transform(self, X, y=None):
            super().fit_transform(X)
            raise RuntimeError("features")

    model = mm.SequenceTagger(features=WindowFeatures(), tol=0.1)
    model.fit([["a", "b"], ["b", "a"]], [[0, 1], [1, 0]])
    before = dict(vars(model))
    model.features = Broken()
    with pytest.raises(RuntimeError, match="features"):
        model.fit([["c"], ["d"]], [[2], [3]])
    model.features = before["features"]
    assert vars(model) == before


def test_a_count_of_rules_that_fails_changes_nothing(monkeypatch):
    model = mm.PCFGParser().fit(TREES)
    before = dict(vars(model))
    told = outputs(model, TREES)

    def no_memory(*args):
        raise MemoryError

    monkeypatch.setattr(grammar, "relative_frequencies", no_memory)
    with pytest.raises(MemoryError):
        model.fit(MORE_TREES)
    assert vars(model) == before
    assert outputs(model, TREES) == told


@pytest.mark.parametrize("kind", sorted(ONLINE))
def test_a_pass_that_fails_does_not_count(kind):
    X, Y = KINDS[kind].first
    parameters = {"solver": "sgd", "random_state": 3}
    model, twin = (KINDS[kind].make(**parameters) for _ in range(2))
    for k in range(3):
        before = dict(vars(model))
        model.set_params(training={"callbacks": fail(RuntimeError("after the pass"))})
        with pytest.raises(RuntimeError, match="after the pass"):
            model.partial_fit(X[: 4 + k], Y[: 4 + k], **ONLINE[kind])
        model.training = before["training"]
        assert vars(model).keys() == before.keys()
        model.partial_fit(X, Y, **ONLINE[kind])
        twin.partial_fit(X, Y, **ONLINE[kind])
        assert np.array_equal(model.result_.w, twin.result_.w)


@pytest.mark.parametrize("solver", ["auto", "fasole", "n_slack", "one_slack", "dcd"])
def test_callbacks_of_an_earlier_fit_are_not_kept(solver):
    X, Y = KINDS["classes"].first
    model = make(
        "classes", warm_start=True, solver=solver, training={"callbacks": [lambda progress: False]}
    )
    model.fit(X, Y).set_params(training__callbacks=())
    again = pickle.loads(pickle.dumps(model))  # no file holds a lambda
    assert np.array_equal(again.fit(X, Y).result_.w, model.fit(X, Y).result_.w)


@pytest.mark.parametrize("solver", ["auto", "n_slack", "one_slack", "sgd"])
@pytest.mark.parametrize("kind", ["classes", "tagger"])
def test_a_warm_start_that_fails_does_not_spoil_the_next(kind, solver):
    X, Y = KINDS[kind].first
    model = make(kind, warm_start=True, solver=solver).fit(X, Y)
    w = model.result_.w.copy()
    model.set_params(C=10.0, training__callbacks=fail(RuntimeError("stop")))
    with pytest.raises(RuntimeError):
        model.fit(X, Y)
    assert np.array_equal(model.result_.w, w)
    model.set_params(tol=1e-3, training__callbacks=()).fit(X, Y)
    if solver != "sgd":
        cold = make(kind).set_params(C=10.0, tol=1e-3, solver=solver).fit(X, Y)
        assert model.result_.primal == pytest.approx(cold.result_.primal, rel=2e-3)


def test_a_callback_sees_the_model_of_before_and_may_write_to_it():
    X, y = KINDS["classes"].first
    other, z = KINDS["classes"].second
    model = mm.MulticlassSVM(tol=0.1, random_state=0).fit(X, y)
    told, seen = model.predict(X), []

    def callback(progress):
        seen.append(np.array_equal(model.predict(X), told))
        model.met = len(seen)

    model.set_params(training__callbacks=[callback]).fit(other, z)
    assert seen and all(seen)
    assert model.met == len(seen)
    assert model.n_features_in_ == other.shape[1] and len(model.predict(other)) == len(other)


@pytest.mark.parametrize("name", ["tagger", "classes", "grammar", "labels"])
def test_a_fit_makes_one_solver(name):
    """A generator of random numbers is asked for one seed."""
    given, twin = np.random.RandomState(0), np.random.RandomState(0)
    make(name).set_params(random_state=given).fit(*KINDS[name].first)
    twin.randint(2**31 - 1)
    assert given.randint(2**31 - 1) == twin.randint(2**31 - 1)


class Careful(mm.MulticlassSVM):
    """A subclass, which may refuse a model after it has been trained."""

    refuse = False

    def _training_set(self, X, y, **given):
        return replace(super()._training_set(X, y, **given), finish=self.check)

    def check(self, problem):
        self.extra_ = problem.n_examples
        if self.refuse:
            raise RuntimeError("not good enough")


def test_a_subclass_that_refuses_its_model_keeps_the_one_before():
    model = Careful(tol=0.1).fit(*KINDS["classes"].first)
    assert model.extra_ == 12
    before = dict(vars(model), refuse=True)
    model.refuse = True
    with pytest.raises(RuntimeError, match="not good enough"):
        model.fit(*KINDS["classes"].second)
    assert vars(model) == before
