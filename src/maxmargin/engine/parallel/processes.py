"""More cores for searches that hold the GIL: pieces of passes in other processes.

joblib starts them (by loky, or as its context says) and keeps them. The problem goes out once, in a
file that each process reads at its first piece of work; then only weights and numbers of examples
do, and planes come back. The same search of the same examples: nothing depends on who does it.
"""

from __future__ import annotations

import pickle
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

from ...utils.types import Floats, Ints
from ...utils.warn import warn_user

__all__ = ["Processes", "in_processes"]

FIRST = 4  # examples that the asking process does itself, to see how long they take
WORTH_SENDING = 0.1  # seconds of work below which it is not sent
LONGEST = 0.5  # seconds that a piece may take: interrupts are seen between pieces
PIECES = 4  # for each process at a time


@contextmanager
def in_processes(count: int, search: Any) -> Iterator[Processes]:
    """So many processes that get to know the search when they are first needed."""
    processes = Processes(count, search)
    try:
        yield processes
    finally:
        processes.forget()


class Processes:
    """So many processes, which search for candidates.

    Parameters
    ----------
    count : int
        How many, with the one that asks; 1 where there can be no others.
    search : callable
        Takes examples and weights.
    """

    def __init__(self, count: int, search: Any) -> None:
        from joblib.parallel import get_active_backend

        backend, _ = get_active_backend()
        # Threads would share a problem that does not say that they may. And who has started this
        # process has done so with the number of cores in mind.
        alone = getattr(backend, "supports_sharedmem", False) or parent_process() is not None
        self.count = 1 if alone else count
        self.search = search
        self._path: str | None = None  # of a file with the search, whose name stands for it

    def forget(self) -> None:
        """Remove the file."""
        if self._path is not None:
            Path(self._path).unlink(missing_ok=True)
            self._path = None

    def find(self, examples: Ints, w: Floats) -> Iterator[tuple[Ints, Any]]:
        """Some examples at a time, and what is found for them.

        How long the first ones take tells whether the others are sent, and how many at a time; what
        is found does not depend on it.
        """
        import joblib

        few = FIRST if self.count > 1 else len(examples)
        first, rest = examples[:few], examples[few:]
        began = time.perf_counter()
        yield first, self.search(first, w)
        if not len(rest):
            return
        seconds = (time.perf_counter() - began) / len(first)
        path = self._sent() if seconds * len(rest) >= WORTH_SENDING else None
        if path is None:
            yield rest, self.search(rest, w)
            return
        size = max(1, min(len(rest) // (PIECES * self.count), int(LONGEST / seconds)))
        chunks = [rest[k : k + size] for k in range(0, len(rest), size)]
        for k in range(0, len(chunks), PIECES * self.count):
            some = chunks[k : k + PIECES * self.count]
            found = joblib.Parallel(n_jobs=self.count)(
                joblib.delayed(_search)(path, chunk, w) for chunk in some
            )
            yield from zip(some, found, strict=True)

    def _sent(self) -> str | None:
        """The file with the search; None, with a warning, where it cannot be written."""
        if self._path is None and self.count > 1:
            try:
                packed = _packed(self.search)
                place, self._path = tempfile.mkstemp(prefix="maxmargin-", suffix=".problem")
                with open(place, "wb") as file:
                    file.write(packed)
            except Exception as error:
                warn_user(
                    f"n_jobs={self.count}, but the problem cannot be sent to other processes, so "
                    f"inference runs in one process: {type(error).__name__}: {error}"
                )
                self.forget()
                self.count = 1
                return None
        return self._path


_known: dict[str, Any] = {}  # the last search that this process has read


def _search(path: str, examples: Ints, w: Floats) -> Any:
    """What another process does."""
    if path not in _known:
        if parent_process() is not None:  # Ctrl-C is for the process that asks
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        with open(path, "rb") as file:
            search = pickle.load(file)
        _known.clear()
        _known[path] = search
    try:
        return _known[path](examples, w)
    except (Exception, KeyboardInterrupt) as error:
        if _can_be_sent(error):
            raise
        told = "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))
        raise RuntimeError(f"{type(error).__name__}: {error}{told}") from None


def _packed(thing: Any) -> bytes:
    """It as bytes, also where its class is of a script or a notebook."""
    import joblib

    return pickle.dumps(joblib.wrap_non_picklable_objects(thing, False))


def _can_be_sent(error: BaseException) -> bool:
    """Whether it arrives: joblib would wait for ever for one that does not."""
    try:
        return isinstance(error, Exception) and isinstance(
            pickle.loads(_packed(error)), type(error)
        )
    except Exception:
        return False
