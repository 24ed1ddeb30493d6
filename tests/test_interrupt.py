"""Ctrl-C during a fit raises KeyboardInterrupt, or returns, with the best model so far in place."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV

import maxmargin as mm
from every_estimator import KINDS
from maxmargin.datasets import make_digit_words


def interrupt_after(n):
    """A callback that does what Ctrl-C does, in iteration n."""
    seen = []

    def callback(progress):
        seen.append(progress)
        if len(seen) == n:
            raise KeyboardInterrupt

    return callback


def check(model):
    result = model.result_
    assert result.status == "interrupted" and not result.converged
    assert result.primal is not None and result.dual is not None
    assert result.gap >= -1e-9 * result.primal
    assert np.array_equal(model._weights, result.w) and np.isfinite(model.coef_).all()


def scaled_iris():
    X, y = load_iris(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.mark.parametrize("solver", ["auto", "fasole", "sda"])
def test_classes(solver):
    X, y = scaled_iris()
    model = mm.MulticlassSVM(
        C=0.1, solver=solver, tol=1e-9, training={"callbacks": [interrupt_after(3)]}
    )
    with pytest.raises(KeyboardInterrupt, match=r"keeps the best model so far \(relative gap"):
        model.fit(X, y)
    check(model)
    assert model.score(X, y) > 0.6


def test_sequences():
    words = make_digit_words(n_train=40, n_test=20, noise=0.2)
    model = mm.SequenceTagger(
        C=1.0, tol=1e-9, training={"on_interrupt": "return", "callbacks": [interrupt_after(8)]}
    )
    with pytest.warns(UserWarning, match="interrupted"):
        model.fit(words.X_train, words.y_train)
    check(model)
    assert model.score(words.X_test, words.y_test) > 0.5


@pytest.mark.parametrize("name", KINDS)
def test_every_estimator_keeps_its_model(name):
    kind = KINDS[name]
    X, y = kind.first
    raising = kind.make().set_params(training={"callbacks": [interrupt_after(1)]}, random_state=0)
    with pytest.raises(KeyboardInterrupt, match="best model so far"):
        raising.fit(X, y)
    returning = kind.make().set_params(
        training={"callbacks": [interrupt_after(1)], "on_interrupt": "return"}, random_state=0
    )
    with pytest.warns(UserWarning, match="interrupted") as warned:
        assert returning.fit(X, y) is returning
    assert [w.filename for w in warned if "interrupted" in str(w.message)] == [__file__]
    for model in (raising, returning):
        assert model.result_.status == "interrupted"
    assert np.array_equal(raising.result_.w, returning.result_.w)
    assert str(raising.predict(X)) == str(returning.predict(X))


def test_an_interrupt_ends_a_search():
    """A search that goes on would compare a model that was cut short with others."""
    fits = []

    def interrupt_second_fit(progress):
        fits.append(progress)
        if len(fits) == 2:
            raise KeyboardInterrupt

    X, y = scaled_iris()
    search = GridSearchCV(
        mm.MulticlassSVM(tol=0.5, training={"callbacks": [interrupt_second_fit]}),
        {"C": [0.1, 1.0]},
        cv=3,
    )
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y)
    assert len(fits) <= 3  # the certificate after the interrupt is recorded, too
    assert not hasattr(search, "best_params_")


SCRIPT = """
import sys, warnings
import numpy as np
import maxmargin as mm

rng = np.random.default_rng(0)
X = [rng.normal(size=(8, 20)) for _ in range(300)]
Y = [rng.integers(0, 4, 8) for _ in X]
seen = []

def started(progress):
    seen.append(progress)
    if len(seen) == 3:
        print("started", flush=True)

warnings.simplefilter("always")
model = mm.SequenceTagger(C=100.0, tol=0.0, max_time=60, training={"callbacks": [started]})
model.set_params(training__on_interrupt="return").fit(X, Y)
result = model.result_
print(result.status, result.gap >= 0, result.primal < np.inf, len(model.predict(X)), flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of Windows are different")
def test_signal(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    try:
        assert process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert out.split() == ["interrupted", "True", "True", "300"]
    assert "training was interrupted" in err
