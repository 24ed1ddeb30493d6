"""Weights of another size are refused, those of another type converted, before kernels see them."""

import dataclasses
import pickle

import numpy as np
import pytest

import maxmargin as mm
from every_estimator import KINDS, TREES, make
from maxmargin.estimators import base

METHODS = (
    "predict",
    "predict_k",
    "score",
    "score_outputs",
    "decision_function",
    "linear_score",
    "losses",
    "rank",
    "similarity",
    "top_features",
    "top_rules",
    "top_transitions",
)


def put(model, w):
    """Give a model other weights; those of classifiers are in their results."""
    if isinstance(getattr(type(model), "coef_", None), property):
        model.result_ = dataclasses.replace(model.result_, w=w)
    else:
        model.coef_ = w


def calls(model, X, Y):
    """Every call that needs the weights, by name."""
    Y = X if Y is None else Y
    arguments = {
        "predict_k": (X, 2),
        "score": (X, Y),
        "score_outputs": (X, Y),
        "losses": (X, Y),
        "top_features": (),
        "top_rules": (),
        "top_transitions": (),
    }
    names = [name for name in METHODS if hasattr(model, name)]
    return {name: (getattr(model, name), arguments.get(name, (X,))) for name in names}


@pytest.mark.parametrize("kind", KINDS)
def test_a_coef_of_another_size_is_an_error(kind):
    X, Y = KINDS[kind].first
    model = make(kind).fit(X, Y)
    w = model.result_.w
    size = len(w)
    for wrong in (w[:-1], np.append(w, 0.0), w[None], "abc"):
        put(model, wrong)
        for name, (method, arguments) in calls(model, X, Y).items():
            if kind.startswith("kernel") and name == "top_features":
                continue  # features have no weights
            with pytest.raises(ValueError, match=f"expected a vector of {size} weights"):
                method(*arguments)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_that_are_not_finite_are_refused(kind):
    X, Y = KINDS[kind].first
    model = make(kind).fit(X, Y)
    model.predict(X)
    last = len(model.result_.w) - 1
    for bad in (np.nan, np.inf):
        put(model, np.append(model.result_.w[:-1], bad))
        with pytest.raises(ValueError, match=f"weight {last} is {bad}; weights must be finite"):
            model.predict(X)


def test_a_coef_of_a_counted_grammar_too():
    model = mm.PCFGParser().fit(TREES)
    model.coef_ = model.coef_[:-1]
    for name, (method, arguments) in calls(model, TREES, None).items():
        with pytest.raises(ValueError, match="expected a vector of"):
            print(name, method(*arguments))


@pytest.mark.parametrize("kind", KINDS)
def test_a_coef_of_another_type_is_converted(kind):
    X, Y = KINDS[kind].first
    model = make(kind).fit(X, Y)
    w = np.rint(4 * model.result_.w)
    put(model, w)
    told = repr(model.predict(X))
    for same in (w.astype(np.int16), w.astype(np.float32), np.repeat(w, 2)[::2], w.tolist()):
        put(model, same)
        assert repr(model.predict(X)) == told


def problem_of(kind):
    model = make(kind, warm_start=True, solver="sda").fit(*KINDS[kind].first)
    return model._kept.problem


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "own"])
def test_oracles_refuse_wrong_weights_and_examples(kind):
    problem = problem_of(kind)
    w = np.rint(np.random.default_rng(1).normal(size=problem.n_features))
    last = problem.n_examples - 1
    indices = np.array([0, last])
    searches = {
        "oracle": lambda i, w: problem.oracle(i, w),
        "none": lambda i, w: problem.oracle(i, w, "none"),
        "predictions": lambda i, w: problem.predictions(i, w),
        "k_best": lambda i, w: problem.k_best(i, w, 2),
    }
    for name in ("predictions", "k_best"):
        if getattr(type(problem), name) is getattr(mm.Problem, name):
            searches.pop(name)
    if "none" not in problem.rescalings:
        searches.pop("none")
    for name, search in searches.items():
        expected = search(indices, w)
        for same in (w.astype(np.float32), np.repeat(w, 2)[::2], w.astype(np.int8)):
            for mine, theirs in zip(search([0, last], same), expected, strict=True):
                assert np.array_equal(mine, theirs), name
        for wrong in (w[:-1], np.append(w, 0.0), w[None], w.astype(complex)):
            with pytest.raises(ValueError, match="expected a vector of"):
                search(indices, wrong)
        for number in (-1, last + 1):
            with pytest.raises(ValueError, match=f"there is no example {number}"):
                search(np.array([0, number]), w)
        with pytest.raises(ValueError, match="array of shape"):
            search(indices[None], w)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_looked_through_once(kind, monkeypatch):
    """Millions of them take longer than one prediction; two models in turn change nothing."""
    X, Y = KINDS[kind].first
    models = [make(kind).fit(X, Y) for _ in range(2)]
    for model in models:
        model.predict(X)
    looked = []
    size = len(models[0].result_.w)
    isfinite = np.isfinite

    def counted(values, *args, **kwargs):
        looked.append(np.shape(values) == (size,))
        return isfinite(values, *args, **kwargs)

    monkeypatch.setattr(base.np, "isfinite", counted)
    for model in [*models, *models]:
        model.predict(X)
    assert not any(looked)
    again = pickle.loads(pickle.dumps(models[0]))
    again.predict(X)
    again.predict(X)
    put(models[1], models[1].result_.w.copy())
    models[1].predict(X)
    assert sum(looked) == 2
