"""Compilation is counted apart, announced if it takes long, and open to Ctrl-C."""

import gc
import io
import logging
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numba
import pytest

import maxmargin as mm
from maxmargin.core.formulation import Formulation
from maxmargin.jit import compiling
from maxmargin.jit.compiling import compile_seconds, interrupted_compiling
from maxmargin.jit.numba_patches import compile_aside
from maxmargin.progress import ProgressDisplay
from maxmargin.registry import task_of
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
    before, started = compile_seconds(), time.perf_counter()
    outer.compile(())
    assert threads[0] is threads[1] is not threading.current_thread()
    assert compile_seconds() - before <= time.perf_counter() - started


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
    assert seen == 3 * [compiling.RARELY]
    assert gc.get_threshold() == usual


def test_thresholds_that_somebody_sets_meanwhile_stay():
    usual = gc.get_threshold()
    try:
        SlowDispatcher(lambda: gc.set_threshold(1234, 5, 6)).compile(())
        assert gc.get_threshold() == (1234, 5, 6)
    finally:
        gc.set_threshold(*usual)


@pytest.fixture
def quiet_so_far(monkeypatch):
    """As in a process that has compiled nothing yet."""
    for name, value in (("kernels", 0), ("seconds", 0.0), ("is_announced", False)):
        monkeypatch.setattr(compiling._Clock, name, value)


def announcements(caplog):
    return [record.message for record in caplog.records if record.name == "maxmargin"]


def test_a_long_compilation_is_announced_once(monkeypatch, caplog, quiet_so_far):
    monkeypatch.setattr(compiling, "PATIENCE", 0.01)
    slow = SlowDispatcher(lambda: time.sleep(0.1))
    with caplog.at_level(logging.WARNING, logger="maxmargin"):
        slow.compile(())
        slow.compile(())
    assert announcements(caplog) == [compiling.ANNOUNCEMENT % ("", compiling.NOT_KEPT)]


def test_it_names_the_task_and_comes_once_in_a_process(monkeypatch, caplog, quiet_so_far):
    clock, skipped = time.perf_counter, [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock() + skipped[0])
    slow = SlowDispatcher(lambda: skipped.__setitem__(0, skipped[0] + 3.0))
    with compiling.compiling_for("tag"), compiling.compiling_for(None):
        slow.compile(())
        skipped[0] += 1e4  # a long time without any
        slow.compile(())
    assert announcements(caplog) == [compiling.ANNOUNCEMENT % (" of tag", compiling.NOT_KEPT)]


def test_half_a_second_is_not_announced_where_progress_is_shown(monkeypatch, caplog, quiet_so_far):
    clock, skipped, shown = time.perf_counter, [0.0], []
    monkeypatch.setattr(time, "perf_counter", lambda: clock() + skipped[0])
    with compiling.announce_compiling(shown.append):
        SlowDispatcher(lambda: skipped.__setitem__(0, 0.5)).compile(())
    assert not announcements(caplog) and not shown


def test_a_fit_names_its_task(caplog, quiet_so_far, monkeypatch):
    named = []

    class Noticed(mm.MulticlassSVM):
        def _training_set(self, *given, **named_ones):
            named.append(compiling._Clock.tasks[-1])
            return super()._training_set(*given, **named_ones)

    Noticed().fit([[0.0], [1.0]], [0, 1])
    assert set(named) == {"multiclass"} and not compiling._Clock.tasks
    assert task_of(mm.StructuralSVM) == "StructuralSVM"


def test_many_short_ones_are_announced_too(monkeypatch, caplog, quiet_so_far):
    """It is the sum that users wait for."""
    monkeypatch.setattr(compiling, "PATIENCE", 1000.0)
    short = SlowDispatcher(lambda: None)
    short.compile(())
    assert not announcements(caplog)
    monkeypatch.setattr(compiling._Clock, "seconds", 1000.0)
    short.compile(())
    assert len(announcements(caplog)) == 1


def test_a_short_one_is_not(caplog, quiet_so_far):
    SlowDispatcher(lambda: None).compile(())
    assert not caplog.records


def test_reading_the_cache_is_no_compilation(monkeypatch, caplog, quiet_so_far):
    monkeypatch.setattr(compiling, "PATIENCE", 0.0)
    monkeypatch.setattr(compiling, "TICK", 0.01)
    compiling.in_compiler_thread(lambda: time.sleep(0.05), True)
    assert not caplog.records
    compiling.in_compiler_thread(compiling.note_compilation, True)  # as a cache that has nothing
    assert announcements(caplog) == [compiling.ANNOUNCEMENT % ("", compiling.KEPT)]


def test_where_progress_is_shown_it_says_how_far_things_are(monkeypatch, caplog, quiet_so_far):
    monkeypatch.setattr(compiling, "PATIENCE", 0.02)
    monkeypatch.setattr(compiling, "TICK", 0.01)
    shown = []

    def until_told_of_twice():
        before, waits = len(shown), time.monotonic() + 60.0
        while len(shown) < before + 2 and time.monotonic() < waits:
            time.sleep(0.01)

    slow = SlowDispatcher(until_told_of_twice)
    with compiling.announce_compiling(shown.append):
        slow.compile(())
        slow.compile(())
    assert len(announcements(caplog)) == 1
    assert len(shown) >= 4 and re.fullmatch(r"compiling kernels: 1 so far, \d+ s", shown[0])
    assert shown[-1].startswith("compiling kernels: 2 so far")
    before = len(shown)
    SlowDispatcher(lambda: time.sleep(0.1)).compile(())
    assert len(shown) == before


@pytest.mark.parametrize("live", [False, True])
def test_a_display_shows_compilation(monkeypatch, caplog, quiet_so_far, live):
    monkeypatch.setattr(compiling, "PATIENCE", 0.0)
    stream = io.StringIO()
    if live:
        stream.isatty = lambda: True
    with ProgressDisplay(10, stream=stream):
        SlowDispatcher(lambda: time.sleep(0.01)).compile(())
    assert "training  compiling kernels: 1 so far, " in stream.getvalue()
    assert not compiling._Clock.shows


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


def test_the_clock_of_training_leaves_compilation_out(monkeypatch):
    """Compiling in the middle of training does not use up max_time."""
    clock, skipped, compiled = time.perf_counter, [0.0], []
    monkeypatch.setattr(time, "perf_counter", lambda: clock() + skipped[0])
    late = SlowDispatcher(lambda: skipped.__setitem__(0, 1e4))

    def compile_once(progress):
        if not compiled:
            compiled.append(late.compile(()))

    problem = small_case("chain", "hamming", 0).problem
    make_solver("auto").solve(problem, Formulation(), 1.0)  # what it really needs is compiled here
    solver = make_solver("auto", max_time=9e3)
    result = solver.solve(problem, Formulation(), 1.0, callbacks=[compile_once])
    assert result.converged and result.compile_seconds >= 1e4
    assert [record.seconds < 9e3 for record in result.history] == [True] * len(result.history)


SCRIPT = """
import logging, sys
from maxmargin.jit import decorator
logging.basicConfig(format="%(name)s: %(message)s")

@decorator.kernel
def double(x):
    return 2 * x

print(double(1.5))
"""


def run_kernel(folder, cache, prepare=None):
    if not (folder / "kernels.py").exists():  # written anew, it would be another source
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
    for file in cache.rglob("*.nbi"):  # an index of its version, with nothing behind that
        with open(file, "rb") as stream:
            version = pickle.load(stream)
        Path(file).write_bytes(pickle.dumps(version))
    damaged = run_kernel(tmp_path, cache)
    assert damaged.stdout == "3.0\n", damaged.stderr
    assert "cannot be read" in damaged.stderr


@pytest.mark.skipif(
    os.name == "nt" or numba.config.DISABLE_JIT, reason="needs POSIX and a compiler"
)
def test_without_any_folder_kernels_work_and_it_is_told_what_that_costs(tmp_path):
    """Files stand where Numba would make folders: permissions do not stop everybody."""
    for name in ("cache", "home", "__pycache__"):
        (tmp_path / name).write_text("no folder")
    script = SCRIPT.replace(
        "print(", "from maxmargin.jit import compiling\ncompiling.PATIENCE = 0.0\nprint("
    )
    (tmp_path / "kernels.py").write_text(script)
    home = str(tmp_path / "home")
    places = {name: home for name in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA")}
    done = subprocess.run(
        [sys.executable, "kernels.py"],
        cwd=tmp_path,
        env=os.environ | places | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "3.0\n", done.stderr
    assert done.stderr == f"maxmargin: {compiling.ANNOUNCEMENT % ('', compiling.NOT_KEPT)}\n"
