"""No Ctrl-C is lost, whatever it hits; handlers of the program are left alone."""

import signal
import threading

import numpy as np
import pytest

from brute_classes import PythonClasses
from maxmargin.core.formulation import Formulation
from maxmargin.engine.training.interrupts import InterruptWatch
from maxmargin.solvers import SOLVERS, make_solver
from solving import small_case

pytestmark = pytest.mark.skipif(
    signal.getsignal(signal.SIGINT) is not signal.default_int_handler,
    reason="the test run has a handler of its own",
)


class Deaf(PythonClasses):
    """A search in whose depths an interrupt is dropped, as compiled code sometimes does."""

    calls = 0

    def drop_an_interrupt(self):
        self.calls += 1
        if self.calls == 4:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                pass

    def most_violated(self, x, y, w, rescaling):
        self.drop_an_interrupt()
        return super().most_violated(x, y, w, rescaling)

    def predict(self, x, w):  # what the perceptron asks for
        self.drop_an_interrupt()
        return super().predict(x, w)


def deaf_problem():
    twin = small_case("multiclass", "costs", 0).twin
    return Deaf(twin.costs, twin.X.shape[1]).bind(list(twin.X), twin.y)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_dropped_interrupt_ends_training(name):
    problem = deaf_problem()
    solver = make_solver(name, tol=0.0, max_passes=200, random_state=0)
    result = solver.solve(problem, Formulation(), 1.0)
    assert result.status == "interrupted"
    assert result.n_passes < 20
    assert np.isfinite(result.w).all()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_in_the_last_moment_is_told():
    """The end of training answers no interrupts, but it keeps them."""
    case = small_case("chain", "zero_one", 1)

    def interrupt(progress):
        if progress.gap is not None and progress.gap <= progress.target:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                pass

    solver = make_solver("auto", tol=1e-3)
    result = solver.solve(case.problem, Formulation(), 1.0, callbacks=[interrupt])
    assert result.status == "interrupted" and result.converged


def test_a_handler_of_the_program_stays():
    heard = []
    signal.signal(signal.SIGINT, lambda *_: heard.append("yes"))
    try:
        with InterruptWatch() as watch:
            signal.raise_signal(signal.SIGINT)
            watch.check()
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert heard == ["yes", "yes"]


def test_a_handler_set_inside_stays():
    def later(number, frame):
        raise AssertionError

    try:
        with InterruptWatch():
            signal.signal(signal.SIGINT, later)
        assert signal.getsignal(signal.SIGINT) is later
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def test_threads_train_without_a_watch():
    problem, results = small_case("chain", "hamming", 0).problem, []

    def train():
        results.append(make_solver("auto").solve(problem, Formulation(), 1.0))

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert results[0].converged


def test_each_interrupt_is_raised_once():
    with InterruptWatch() as watch:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert watch.pending
        with pytest.raises(KeyboardInterrupt):
            watch.check()
        watch.note_arrival()
        watch.check()
