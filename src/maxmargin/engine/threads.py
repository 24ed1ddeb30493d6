"""More cores: pieces of work in threads, with the same bits whatever their number.

Kernels release the GIL, so that threads that call them run at the same time. What a piece of work
is does not depend on the number of threads, and answers come in the order of the pieces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from itertools import islice
from numbers import Integral
from types import TracebackType
from typing import Any, TypeVar

import joblib
import numpy as np

from ..types import Floats, Ints

__all__ = ["Threads", "check_n_jobs", "count_threads", "cubes", "each_range"]

Item = TypeVar("Item")
Value = TypeVar("Value")

AHEAD = 4  # pieces for each thread that are begun before they are asked for
RANGES = 4  # pieces for each thread where all are wanted at once: the last ones end together


def check_n_jobs(n_jobs: Any) -> None:
    """Raise ValueError for what is no number of jobs."""
    is_number = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not is_number or n_jobs == 0):
        raise ValueError(
            f"n_jobs must be None, a whole number >= 1, or -1 for all cores, got {n_jobs!r}"
        )


def count_threads(n_jobs: Any) -> int:
    """How many threads that asks for: None is 1, or what joblib's context says; -1 all cores."""
    check_n_jobs(n_jobs)
    return int(joblib.effective_n_jobs(n_jobs))


class Threads:
    """So many threads, which begin with the first piece of work; a context manager.

    Parameters
    ----------
    count : int
        How many; one does the work itself, in the thread that asks.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Threads:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def map(self, function: Callable[[Item], Value], items: Iterable[Item]) -> Iterator[Value]:
        """The function's values, in the order of the items; a few are worked on ahead.

        What the function raises is raised where its value would come. Where values are no longer
        asked for, the work that has not begun is dropped.
        """
        rest = iter(items)
        if self.count == 1:
            yield from map(function, rest)
            return
        if self._pool is None:
            # Kernels are compiled here, where that is counted once and open to Ctrl-C.
            yield from map(function, islice(rest, 1))
            self._pool = ThreadPoolExecutor(self.count, "maxmargin")
        pool = self._pool
        begun: deque[Future[Value]] = deque()

        def begin(n: int) -> None:
            # Each in a context of its own: what NumPy does about overflow, say, is in it.
            begun.extend(
                pool.submit(copy_context().run, function, item) for item in islice(rest, n)
            )

        try:
            begin(AHEAD * self.count)
            while begun:
                value = begun.popleft().result()
                begin(1)
                yield value
        finally:
            for future in begun:
                future.cancel()


def cubes(lengths: Ints) -> Floats:
    """Bounds for `each_range` where work grows with the third power of lengths."""
    return np.concatenate([[0.0], np.cumsum(lengths.astype(np.float64) ** 3)])


def each_range(
    n_jobs: int | None, bounds: Ints | Floats, work: Callable[[int, int], Value]
) -> list[Value]:
    """Let threads do the work of examples ``first`` to ``end - 1``, for ranges that make up all.

    ``bounds`` says how much there is to do before each example, and in all: ranges have about the
    same share of it. What is found must not depend on how examples are cut into ranges.
    """
    n = len(bounds) - 1
    count = count_threads(n_jobs) if n > 2 else 1
    if count == 1:
        return [work(0, n)]
    shares = np.linspace(bounds[0], bounds[-1], RANGES * count + 1)
    # The first example by itself: the caller does it, and compiles what others find compiled.
    cuts = np.unique(np.concatenate([[0, 1], np.searchsorted(bounds, shares[1:-1]), [n]]))
    with Threads(count) as threads:
        ranges = zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)
        return list(threads.map(lambda ends: work(*ends), ranges))
