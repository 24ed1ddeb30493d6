"""Compilation is counted apart, announced if it takes long, and open to Ctrl-C."""

import gc
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numba
import numpy as np
import pytest

from maxmargin import _compiling
from maxmargin._compiling import compile_seconds, interrupted_compiling
from maxmargin._numba import compile_aside
from maxmargin.formulation import Formulation
from maxmargin.solvers import make_solver
from solving import small_case


class SlowDispatcher:
    """Stands for Numba's, whose compilation takes as long as it is told."""

    _cache = object()

    def __init__(self, work):
        self.compile = lambda signature: work()
        compile_aside(self)


def test_compilation_is_counted():
    before = compile_seconds()
    SlowDispatcher(lambda: time.sleep(0.1)).compile(())
    assert compile_seconds() - before >= 0.1


def test_compilation_within_another_is_counted_once_and_in_its_thread():
    threads = []
    inner = SlowDispatcher(lambda: threads.append(threading.current_thread()) or time.sleep(0.2))
    outer = SlowDispatcher(lambda: inner.compile(()) or threads.append(threading.current_thread()))
    before = compile_seconds()
    outer.compile(())
    assert threads[0] is threads[1] is not threading.current_thread()
    assert compile_seconds() - before < 0.4


def test_errors_of_the_compiler_arrive():
    def fail():
        raise TypeError("no such type")

    with pytest.raises(TypeError, match="no such type"):
        SlowDispatcher(fail).compile(())


def test_garbage_is_collected_rarely_as_long_as_there_is_a_compilation():
    """Two at a time, one of which ends while the other goes on, and a failure."""
    usual, seen, begun, may_end = gc.get_threshold(), [], threading.Event(), threading.Event()

    def wait():
        begun.set()
        may_end.wait(10)
        seen.append(gc.get_threshold())

    def fail():
        seen.append(gc.get_threshold())
        raise TypeError

    other = threading.Thread(target=SlowDispatcher(wait).compile, args=((),))
    other.start()
    begun.wait(10)
    with pytest.raises(TypeError):
        SlowDispatcher(fail).compile(())
    seen.append(gc.get_threshold())
    may_end.set()
    other.join()
    assert seen == 3 * [_compiling.RARELY]
    assert gc.get_threshold() == usual


def test_a_long_compilation_is_announced_once(monkeypatch, caplog):
    monkeypatch.setattr(_compiling, "PATIENCE", 0.01)
    monkeypatch.setattr(_compiling._Clock, "announced_until", -np.inf)
    slow = SlowDispatcher(lambda: time.sleep(0.1))
    with caplog.at_level(logging.WARNING, logger="maxmargin"):
        slow.compile(())
        slow.compile(())
    assert [record.message for record in caplog.records] == [
        _compiling.ANNOUNCEMENT % _compiling.NOT_KEPT
    ]


def test_a_short_one_is_not(caplog):
    SlowDispatcher(lambda: None).compile(())
    assert not caplog.records


def test_an_interrupt_does_not_wait_for_the_compiler():
    release = threading.Event()
    slow = SlowDispatcher(lambda: release.wait(60.0))
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            slow.compile(())
    finally:
        waited = not release.is_set()
        release.set()
        timer.join()
    assert waited
    assert caught.type is KeyboardInterrupt  # of a subclass, Python exits with another code
    assert interrupted_compiling(caught.value)
    assert not interrupted_compiling(KeyboardInterrupt())


def test_the_clock_of_training_leaves_compilation_out():
    """Compiling in the middle of training does not use up max_time."""
    late = SlowDispatcher(lambda: time.sleep(1.0))
    compiled = []

    def compile_once(progress):
        if not compiled:
            compiled.append(late.compile(()))

    problem = small_case("chain", "hamming", 0).problem
    make_solver("auto").solve(problem, Formulation(), 1.0)  # what it really needs is compiled here
    solver = make_solver("auto", max_time=0.9)
    result = solver.solve(problem, Formulation(), 1.0, callbacks=[compile_once])
    assert result.converged and result.compile_seconds >= 1.0
    assert [record.seconds < 0.9 for record in result.history] == [True] * len(result.history)


SCRIPT = """
import logging, sys
from maxmargin import _jit
logging.basicConfig(format="%(name)s: %(message)s")

@_jit.kernel
def double(x):
    return 2 * x

print(double(1.5))
"""


def run_kernel(folder, cache, prepare=None):
    (folder / "kernels.py").write_text(SCRIPT)
    return subprocess.run(
        [sys.executable, "kernels.py"],
        cwd=folder,
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        preexec_fn=prepare,
    )


def limit_file_size():
    """Writing any file fails, as on a full disk."""
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


@pytest.mark.skipif(
    os.name == "nt" or numba.config.DISABLE_JIT, reason="needs POSIX and a compiler"
)
def test_a_cache_that_cannot_be_written_or_read_is_told(tmp_path):
    cache = tmp_path / "cache"
    full = run_kernel(tmp_path, cache, limit_file_size)
    assert full.stdout == "3.0\n", full.stderr
    assert "cannot be written" in full.stderr and "NUMBA_CACHE_DIR" in full.stderr
    good = run_kernel(tmp_path, cache)
    assert good.stdout == "3.0\n" and "cannot be" not in good.stderr
    for file in cache.rglob("*.nbc"):
        Path(file).write_bytes(b"no code")
    damaged = run_kernel(tmp_path, cache)
    assert damaged.stdout == "3.0\n", damaged.stderr
    assert "cannot be read" in damaged.stderr
