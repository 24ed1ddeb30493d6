"""Compilation as the user meets it: counted apart, announced if it takes long, open to Ctrl-C.

Numba compiles a kernel when it is first called, which may be in the middle of a training. Clocks of
training leave that time out (`compile_seconds`). It happens in a thread of its own: Python looks at
signals between two steps of the main thread only, and the compiler's are up to ten seconds long.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

__all__ = [
    "compile_seconds",
    "complain_of_cache",
    "in_compiler_thread",
    "interrupted_compiling",
]

logger = logging.getLogger("maxmargin")

PATIENCE = 1.5  # seconds of silence before a compilation is announced
# Objects made between two collections of the youngest, and collections of these before older ones.
RARELY = (50_000, 20, 100)
NEWS_AFTER = 30.0  # seconds without compiling after which another one is announced

ANNOUNCEMENT = "compiling kernels for their first use, which may take half a minute; %s"
KEPT = "later runs find them in the cache"
NOT_KEPT = (
    "there is no folder to keep them in, so every process will do so again: "
    "set NUMBA_CACHE_DIR to a folder that can be written"
)


COMPILING = "while kernels were compiled"


def interrupted_compiling(interrupt: KeyboardInterrupt) -> bool:
    """Whether kernels were being compiled: what they were needed for has not begun."""
    return interrupt.args == (COMPILING,)


class _Clock:
    """What is known of the compilations of this process."""

    total = 0.0  # seconds
    announced_until = -float("inf")  # when the last compilation that the user knows of ended
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


def _in_thread(work: Callable[[], Any], kept: bool) -> Any:
    """Do the work, announced if it takes long."""
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
    try:
        thread.start()
        thread.join(PATIENCE)
        if thread.is_alive():
            _announce(kept)
            thread.join()
            _Clock.announced_until = time.perf_counter()
    except KeyboardInterrupt as interrupt:
        interrupt.args = (COMPILING,)  # no class of its own: Python exits otherwise for those
        raise
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
            if _Clock.compiling == 0:
                gc.set_threshold(*_Clock.usual)


def _announce(kept: bool) -> None:
    """Say why nothing seems to happen, unless that was said a moment ago."""
    if time.perf_counter() - _Clock.announced_until > NEWS_AFTER:
        logger.warning(ANNOUNCEMENT, KEPT if kept and not _Clock.cache_is_broken else NOT_KEPT)


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
