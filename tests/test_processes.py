"""Oracles that hold the GIL are asked in processes: the same bits, errors, interrupts."""

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import joblib
import numpy as np
import pytest

from maxmargin.core.formulation import Formulation
from maxmargin.core.problem import Problem
from maxmargin.engine.oracle import Oracle
from maxmargin.engine.parallel import processes
from maxmargin.engine.training.verifying import hinge_values
from maxmargin.solvers import make_solver


class Signs(Problem):
    """Two labels."""

    n_features = 2

    def __init__(self, n=30):
        rng = np.random.default_rng(0)
        self.X, self.Y = list(rng.normal(size=(n, 2))), list(rng.choice([-1, 1], n))

    def joint_feature(self, x, y):
        return x * y

    def loss(self, y, y_hat):
        return float(y != y_hat)

    def most_violated(self, x, y, w, rescaling):
        return max((-1, 1), key=lambda z: self.loss(y, z) + w @ self.joint_feature(x, z))

    def predict(self, x, w):
        return max((-1, 1), key=lambda z: w @ self.joint_feature(x, z))


class Noting(Signs):
    """Leaves a file for each process that it is asked in."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def most_violated(self, x, y, w, rescaling):
        Path(self.folder, str(os.getpid())).touch()
        return super().most_violated(x, y, w, rescaling)


class Failing(Signs):
    def most_violated(self, x, y, w, rescaling):
        if x is self.X[20]:
            raise RuntimeError("cannot be searched")
        return super().most_violated(x, y, w, rescaling)


@pytest.fixture(autouse=True)
def all_is_sent(monkeypatch):
    monkeypatch.setattr(processes, "WORTH_SENDING", 0.0)


@pytest.fixture(scope="module", autouse=True)
def no_process_stays():
    yield
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)


def solved(name, n_jobs, problem=None):
    solver = make_solver(name, tol=1e-3, max_passes=20, random_state=3, n_jobs=n_jobs)
    result = solver.solve(problem or Signs(), Formulation(), 1.0)
    return result.w.tobytes(), result.primal, result.dual, result.n_oracle_calls


def asked_in(folder):
    return {int(path.name) for path in Path(folder).iterdir()}


@pytest.mark.parametrize("name", ["one_slack", "n_slack", "auto", "sgd"])
def test_the_same_bits(name):
    assert solved(name, 1) == solved(name, 2) == solved(name, 3)


def test_others_are_asked_and_know_the_problem(tmp_path):
    before = set(Path(tempfile.gettempdir()).glob("maxmargin-*.problem"))
    solved("one_slack", 2, Noting(tmp_path))
    asked = asked_in(tmp_path)
    assert os.getpid() in asked and len(asked) > 1
    assert set(Path(tempfile.gettempdir()).glob("maxmargin-*.problem")) == before


def test_little_work_is_not_sent(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "WORTH_SENDING", 60.0)
    solved("one_slack", 2, Noting(tmp_path))
    assert asked_in(tmp_path) == {os.getpid()}


def test_certificates_and_copies():
    problem, w = Signs(), np.array([0.3, -0.2])
    assert (
        hinge_values(problem, Formulation(), w).tobytes()
        == hinge_values(problem, Formulation(), w, 2).tobytes()
    )
    with (asked := Oracle(problem, Formulation())).in_threads(2):
        asked.violations(w)
        copied = pickle.loads(pickle.dumps(asked))
    assert copied.violations(w).values.tobytes() == asked.violations(w).values.tobytes()


def test_an_error_names_its_example():
    with pytest.raises(RuntimeError, match="cannot be searched") as raised:
        solved("one_slack", 2, Failing())
    assert raised.value.__notes__ == ["(raised for example 20)"]


def test_a_problem_that_cannot_be_sent():
    problem = Signs()
    problem.lock = threading.Lock()
    with pytest.warns(UserWarning, match="cannot be sent to other processes"):
        found = solved("one_slack", 2, problem)
    assert found == solved("one_slack", 1)


def test_a_full_disk(monkeypatch):
    def refuse(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    with pytest.warns(UserWarning, match="cannot be sent.*No space left"):
        found = solved("one_slack", 2)
    assert found == solved("one_slack", 1)


class Odd(Exception):
    """Cannot be sent, as exceptions with arguments of their own cannot."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


class Oddly(Signs):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    @property
    def error(self):
        error = Odd("this", "that") if self.kind == "arguments" else KeyboardInterrupt("by itself")
        if self.kind == "lock":
            error = RuntimeError("with a lock")
            error.lock = threading.Lock()
        return error

    def most_violated(self, x, y, w, rescaling):
        if x is self.X[20]:
            raise self.error
        return super().most_violated(x, y, w, rescaling)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("arguments", "Odd: this and that\n(raised for example 20)"),
        ("lock", "RuntimeError: with a lock\n(raised for example 20)"),
        ("interrupt", "KeyboardInterrupt: by itself"),
    ],
)
def test_an_error_that_cannot_be_sent_as_it_is(kind, told):
    with pytest.raises(RuntimeError) as raised:
        solved("one_slack", 2, Oddly(kind))
    assert str(raised.value) == told


class Killed(Signs):
    """Ends the process that it is asked in."""

    def __init__(self):
        super().__init__()
        self.asker = os.getpid()

    def most_violated(self, x, y, w, rescaling):
        if os.getpid() != self.asker:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().most_violated(x, y, w, rescaling)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_process_that_ends_is_told_of_and_others_take_its_place():
    with pytest.raises(RuntimeError, match="terminated"):
        solved("one_slack", 2, Killed())
    assert solved("one_slack", 2) == solved("one_slack", 1)


@pytest.mark.parametrize("backend", ["threading", "sequential"])
def test_contexts_without_processes(backend, tmp_path):
    with joblib.parallel_config(backend, n_jobs=2):
        found = solved("one_slack", 2, Noting(tmp_path))
    assert asked_in(tmp_path) == {os.getpid()} and found == solved("one_slack", 1)


def test_a_context_of_other_processes(tmp_path):
    with joblib.parallel_config("multiprocessing", n_jobs=2):
        found = solved("one_slack", None, Noting(tmp_path))
    assert len(asked_in(tmp_path)) > 1 and found == solved("one_slack", 1)


def solved_and_noted(folder):
    processes.WORTH_SENDING = 0.0
    return solved("one_slack", 2, Noting(folder)), os.getpid()


def test_processes_start_no_others(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(solved_and_noted)(f) for f in folders)
    for folder, (answer, process) in zip(folders, found, strict=True):
        assert asked_in(folder) == {process} and answer == solved("one_slack", 1)


INTERRUPTED = """
import sys, time
sys.path.insert(0, {tests!r})
from test_processes import Formulation, Noting, make_solver

class Slow(Noting):
    def most_violated(self, *question):
        time.sleep(0.02)
        return super().most_violated(*question)

result = make_solver("one_slack", tol=1e-9, n_jobs=2).solve(Slow({folder!r}), Formulation(), 1.0)
print(result.status)
"""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs groups of processes")
def test_an_interrupt_leaves_no_process(tmp_path):
    script = INTERRUPTED.format(tests=str(Path(__file__).parent), folder=str(tmp_path))
    training = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        while training.poll() is None and len(asked_in(tmp_path)) < 2:
            time.sleep(0.01)
        os.killpg(training.pid, signal.SIGINT)
        assert training.communicate(timeout=120)[0] == "interrupted\n"
        for _ in range(1000):
            if not any(is_alive(process) for process in asked_in(tmp_path)):
                return
            time.sleep(0.02)
        raise AssertionError("processes stay")
    finally:
        training.kill()


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
