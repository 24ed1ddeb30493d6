"""Compilation as the user meets it: counted apart, announced, open to Ctrl-C.

Numba compiles a kernel when it is first called, which may be in the middle of a training. Clocks of
training leave that time out (`compile_seconds`). It happens in a thread of its own: Python looks at
signals between two steps of the main thread only, and the compiler's are up to ten seconds long.

A library says nothing unasked, unless somebody is left waiting: the announcement comes once in a
process, after `PATIENCE`, through the logger. Where progress is shown, it says from then on how far
things are (`announce_compiling`).
"""

from __future__ import annotations

import contextlib
import gc
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

__all__ = [
    "announce_compiling",
    "compile_seconds",
    "compiled_kernels",
    "compiling_for",
    "complain_of_cache",
    "in_compiler_thread",
    "interrupted_compiling",
    "note_compilation",
    "working_clock",
]

logger = logging.getLogger("maxmargin")

PATIENCE = 2.0  # seconds of compiling in silence before it is announced
TICK = 0.1  # seconds between two looks at the compiler
# Objects made between two collections of the youngest, and collections of these before older ones.
RARELY = (50_000, 20, 100)

ANNOUNCEMENT = "compiling kernels%s, about 5 to 30 seconds, %s"
KEPT = "for their first use; later runs load them (`maxmargin warm-up` compiles in advance)"
NOT_KEPT = (
    "in every process, because no folder can store them: set NUMBA_CACHE_DIR to a writable folder"
)
PROGRESS = "compiling kernels: %d so far, %.0f s"

COMPILING = "while kernels were compiled"


def interrupted_compiling(interrupt: KeyboardInterrupt) -> bool:
    """Whether kernels were being compiled: what they were needed for has not begun."""
    return interrupt.args == (COMPILING,)


class _Clock:
    """What is known of the compilations of this process."""

    total = 0.0  # seconds
    kernels = 0  # that were compiled, not found in the cache
    seconds = 0.0  # which took so long
    is_announced = False
    tasks: ClassVar[list[str]] = []  # that they are compiled for
    shows: ClassVar[list[Callable[[str], None]]] = []  # what shows how far things are
    cache_is_broken = False
    in_worker = threading.local()
    compiling = 0  # threads that do so at the moment
    usual = gc.get_threshold()
    lock = threading.Lock()


def compile_seconds() -> float:
    """Seconds that this process has spent on compiling kernels, or on reading them from the cache.

    The difference of two values is what a clock between them should leave out.
    """
    return _Clock.total


def working_clock() -> float:
    """A clock in seconds that stands still while kernels are compiled."""
    return time.perf_counter() - _Clock.total


def compiled_kernels() -> int:
    """How many kernels this process has compiled, not found in the cache."""
    return _Clock.kernels


@contextlib.contextmanager
def compiling_for(task: str | None) -> Iterator[None]:
    """Name the task, if there is one, that kernels are compiled for in the block."""
    if task is not None:
        _Clock.tasks.append(task)
    try:
        yield
    finally:
        if task is not None:
            _Clock.tasks.remove(task)


def in_compiler_thread(work: Callable[[], Any], kept: bool) -> Any:
    """Result of ``work``, a compilation, done in a thread that a Ctrl-C leaves behind.

    ``kept`` says whether the code goes to the cache.
    """
    if getattr(_Clock.in_worker, "yes", False):  # for a kernel that is being compiled
        return work()
    started = time.perf_counter()
    try:
        return _in_thread(work, kept)
    finally:
        _Clock.total += time.perf_counter() - started


def note_compilation() -> None:
    """Count a kernel that is not in the cache; called where it is looked for, or has none."""
    _Clock.kernels += 1


@contextlib.contextmanager
def announce_compiling(show: Callable[[str], None]) -> Iterator[None]:
    """Show how far compilations are that were announced, as text that changes."""
    _Clock.shows.append(show)
    try:
        yield
    finally:
        _Clock.shows.remove(show)


def _in_thread(work: Callable[[], Any], kept: bool) -> Any:
    """Do the work, announced if it is a compilation and takes long."""
    outcome: list[Any] = []
    failure: list[BaseException] = []

    def run() -> None:
        _Clock.in_worker.yes = True
        try:
            with _rare_collections():
                outcome.append(work())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, name="maxmargin-compiler", daemon=True)
    started = time.perf_counter()
    before = _Clock.kernels
    if not kept:
        note_compilation()
    try:
        thread.start()
        is_done = False
        while not is_done:
            thread.join(TICK)
            is_done = not thread.is_alive()
            if _Clock.kernels > before:  # rather than read from the cache, which is a matter of ms
                _tell(_Clock.seconds + time.perf_counter() - started, kept)
    except KeyboardInterrupt as interrupt:
        interrupt.args = (COMPILING,)  # no class of its own: Python exits otherwise for those
        raise
    if _Clock.kernels > before:
        _Clock.seconds += time.perf_counter() - started
    if failure:
        raise failure[0]
    return outcome[0]


@contextlib.contextmanager
def _rare_collections() -> Iterator[None]:
    """Collect garbage less often: the compiler makes millions of objects, few of them in cycles."""
    with _Clock.lock:
        if _Clock.compiling == 0:
            _Clock.usual = gc.get_threshold()
            gc.set_threshold(*RARELY)
        _Clock.compiling += 1
    try:
        yield
    finally:
        with _Clock.lock:
            _Clock.compiling -= 1
            if _Clock.compiling == 0 and gc.get_threshold() == RARELY:  # nobody has set it since
                gc.set_threshold(*_Clock.usual)


def _tell(seconds: float, kept: bool) -> None:
    """Say why nothing seems to happen, once, and show how far it is."""
    if seconds < PATIENCE:
        return
    if not _Clock.is_announced:
        _Clock.is_announced = True
        task = f" of {_Clock.tasks[-1]}" if _Clock.tasks else ""
        logger.warning(
            ANNOUNCEMENT, task, KEPT if kept and not _Clock.cache_is_broken else NOT_KEPT
        )
    if _Clock.shows:
        _Clock.shows[-1](PROGRESS % (_Clock.kernels, seconds))


def complain_of_cache(done: str, folder: str, error: Exception) -> None:
    """Warn, once per process, of a cache that is of no use."""
    if not _Clock.cache_is_broken:
        _Clock.cache_is_broken = True
        logger.warning(
            "compiled kernels cannot be %s in %s (%s); every process will compile them again: "
            "empty that folder, or set NUMBA_CACHE_DIR to one that can be written",
            done,
            folder,
            error,
        )
