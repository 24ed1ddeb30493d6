"""More cores: pieces of work in threads, with the same bits whatever their number.

Kernels release the GIL, so that threads that call them run at the same time. What a piece of work
is does not depend on the number of threads, and answers come in the order of the pieces.

The process has one pool of threads, which begin when they are first needed and stay. Who asks for
work does its share of it, so that it is done even where no other thread can begin: calls may be
nested, or come from several threads at once, and none waits for another's work.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import cache
from itertools import islice, pairwise
from numbers import Integral
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakSet

import numpy as np

from ...utils.types import Floats, Ints
from ...utils.validation import ParameterError

__all__ = [
    "Threads",
    "check_n_jobs",
    "count_threads",
    "cubes",
    "each_range",
    "note_done",
    "parallel_chunks",
]

Item = TypeVar("Item")
Value = TypeVar("Value")

AHEAD = 4  # pieces for each thread that are begun before they are asked for
RANGES = 4  # pieces for each thread where all are wanted at once: the last, short ones end together
WORTH_SHARING = (
    4e6  # counted work (nanoseconds, at most) below which threads cost more than they do
)


def check_n_jobs(n_jobs: Any) -> None:
    """Raise ValueError for what is no number of jobs."""
    is_number = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not is_number or n_jobs == 0):
        raise ParameterError(
            "n_jobs", f"must be None, a whole number >= 1, or -1 for all cores, got {n_jobs!r}"
        )


def count_threads(n_jobs: Any) -> int:
    """How many threads that asks for: None is 1, or what joblib's context says; -1 all cores."""
    check_n_jobs(n_jobs)
    if n_jobs == 1 or (n_jobs is None and "joblib" not in sys.modules):  # then it has no context
        return 1
    import joblib

    return int(joblib.effective_n_jobs(n_jobs))


class _User(Protocol):
    """Work that threads of the pool are wanted for."""

    @property
    def n_threads(self) -> int:
        """How many."""

    def go_on_alone(self) -> None:
        """In the child of a fork there are none of them."""


class _Pool:
    """The threads of this process: as many as were ever wanted at once, if there are the cores."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a handler of signals may fork, wherever it comes
        self._executor: ThreadPoolExecutor | None = None
        self._retired: list[ThreadPoolExecutor] = []  # their threads end with the work they have
        self._size = 0
        self._begun: list[int] = []  # one entry for each thread of the executor that runs
        # Work that goes on. An interrupt may come anywhere: what nobody knows any more is gone.
        self.users: WeakSet[_User] = WeakSet()

    @property
    def wanted(self) -> int:
        """How many threads there is work for."""
        return sum(user.n_threads for user in self.users)

    def enter(self, user: _User) -> None:
        """Announce work: until `leave`, threads for it stay."""
        with self._lock:
            self.users.add(user)
            if max(user.n_threads, self.wanted) <= self._size:
                return  # to count the cores takes as long as to hand over work
            import joblib

            size = max(user.n_threads, min(self.wanted, joblib.cpu_count()))
            if size > self._size:
                self._size = size
                if self._executor is not None:
                    self._executor.shutdown(wait=False)
                    self._retired.append(self._executor)
                    self._executor = None

    def leave(self, user: _User) -> None:
        """The work is done."""
        with self._lock:
            self.users.discard(user)

    def begin(self, work: Callable[[], None]) -> bool:
        """Let a thread do that; returns whether one will."""
        with self._lock:
            if self._executor is None:
                self._begun = have_begun = []
                self._executor = ThreadPoolExecutor(
                    self._size, "maxmargin", initializer=lambda: have_begun.append(1)
                )
            executor = self._executor
            begun: list[bool] = []

            def submit() -> None:
                with suppress(RuntimeError):
                    executor.submit(work)
                    begun.append(True)

            try:
                if len(self._begun) == self._size:
                    submit()
                else:
                    # Interrupts come to the main thread alone. One that came while a thread begins
                    # would leave it unknown to the executor, and waited for at the end in vain.
                    starter = threading.Thread(target=submit, daemon=True)
                    starter.start()
                    starter.join()
            except RuntimeError:  # at the end of the interpreter, or of what the system gives
                return False
            return bool(begun)

    def before_fork(self) -> None:
        """End threads without work, for none of them would live on in the child."""
        self._lock.acquire()
        if self.wanted == 0:
            for executor in (self._executor, *self._retired):
                if executor is not None:
                    executor.shutdown()
            self._executor = None
            self._retired.clear()

    def after_fork(self) -> None:
        """Go on in the parent."""
        self._lock.release()


_pool = _Pool()


def _begin_anew() -> None:
    """In the child of a fork there are no threads, whatever the parent's were doing."""
    global _pool
    for user in _pool.users:
        user.go_on_alone()
    _pool = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _pool.before_fork(),
        after_in_parent=lambda: _pool.after_fork(),
        after_in_child=_begin_anew,
    )


class _Task(Generic[Item, Value]):
    """A piece of work, and what came of it."""

    __slots__ = ("done", "error", "item", "value")

    value: Value

    def __init__(self, item: Item) -> None:
        self.item = item
        self.done = False
        self.error: BaseException | None = None

    @classmethod
    def failed(cls, error: Exception) -> _Task[Item, Value]:
        """One whose item did not come."""
        task = cls.__new__(cls)
        task.done, task.error = True, error
        return task


class _Shared(Generic[Item, Value]):
    """A function's values for items, which the threads that come take one after the other."""

    def __init__(
        self, function: Callable[[Item], Value], items: Iterator[Item], helpers: int, ahead: int
    ) -> None:
        self._function, self._items = function, items
        self.n_threads = helpers
        self._most_helpers, self._ahead = helpers, ahead
        self._helpers = 0  # that have been sent for and have not left
        self._at_work: set[int] = set()  # helpers that are at a piece
        self._tasks: deque[_Task[Item, Value]] = deque()  # begun, and not asked for yet
        self._left_undone: list[_Task[Item, Value]] = []
        self._is_over = False
        self._new_lock()
        # Each piece in a context of its own: what NumPy does about overflow, say, is in it.
        self._context = copy_context()

    def _new_lock(self) -> None:
        """A lock, and a condition that only waits: an interrupt that enters it would keep it."""
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)

    def values(self) -> Iterator[Value]:
        """All values, in the order of the items; who asks for them does pieces, too."""
        pool = _pool
        try:
            pool.enter(self)
            task = self._next_of_caller()  # so that the first piece is the caller's
            self._send_for_helpers()
            while task is not None:
                if task.done:
                    self._tasks.popleft()
                    self._send_for_helpers()
                    if task.error is not None:
                        raise task.error
                    yield task.value
                else:
                    self._do(task)
                task = self._next_of_caller()
        finally:
            task = None  # see `_do`
            try:
                self._end()
            finally:
                pool.leave(self)

    def go_on_alone(self) -> None:
        """In the child of a fork: the pieces that helpers were at are done by who asks."""
        self._new_lock()
        self._at_work.clear()
        self._most_helpers = 0
        self._left_undone = [task for task in self._tasks if not task.done]

    def _next_of_caller(self) -> _Task[Item, Value] | None:
        """The first piece, where it is done, or else one to do; None where all were given."""
        with self._lock:
            while True:
                if self._tasks and self._tasks[0].done:
                    return self._tasks[0]
                task = self._take()
                if task is not None or not self._tasks:
                    return task
                if not self._tasks[0].done:
                    self._changed.wait()

    def _take(self) -> _Task[Item, Value] | None:
        """The next piece to do, if there is one; under the lock.

        Where items end by an error, it is raised in the place of the item that would come.
        """
        while self._left_undone:
            task = self._left_undone.pop(0)
            if not task.done:
                return task
        if self._is_over or len(self._tasks) >= self._ahead:
            return None
        try:
            task = _Task(next(self._items))
        except StopIteration:
            self._is_over = True
            return None
        except Exception as error:
            self._is_over = True
            self._tasks.append(_Task.failed(error))
            return None
        self._tasks.append(task)
        return task

    def _do(self, task: _Task[Item, Value]) -> None:
        """Do a piece of work; what it raises is kept, but for an interrupt of who asks."""
        try:
            task.value = self._function(task.item)
        except Exception as error:
            task.error = error
        task.done = True
        del task  # its error knows this place: the circle would keep alive all that asked

    def _help(self) -> None:
        """What a thread of the pool does: pieces, as long as there are some."""
        while True:
            with self._lock:
                task = self._take()
                if task is None:
                    self._helpers -= 1
                    return
                self._at_work.add(threading.get_ident())
            try:
                self._context.copy().run(self._do, task)
            except BaseException as error:
                task.error, task.done = error, True
            with self._lock:
                self._at_work.discard(threading.get_ident())
                self._changed.notify()

    def _send_for_helpers(self) -> None:
        """See that there are as many as there is work for; not for a single piece."""
        while (
            self._helpers < self._most_helpers
            and not self._is_over
            and len(self._tasks) <= self._ahead // 2
        ):
            with self._lock:
                self._helpers += 1
            if not _pool.begin(self._help):
                self._most_helpers = 0

    def _end(self) -> None:
        """Drop what has not begun, and wait for what has: it may write where others read.

        A helper may come here itself, where it meets a generator that nobody has any more.
        """
        own = {threading.get_ident()}
        interrupt: KeyboardInterrupt | None = None
        while True:
            try:
                with self._lock:
                    self._is_over = True
                    self._changed.wait_for(lambda: self._at_work <= own)
                break
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt


class Threads:
    """So many threads, which begin with the second piece of work.

    Parameters
    ----------
    count : int
        How many, with the one that asks; one does the work by itself.
    compiled : bool
        Whether such work was done before, so that they may begin with the first piece.
    """

    def __init__(self, count: int, *, compiled: bool = False) -> None:
        self.count = count
        self._compiled = compiled

    def each(
        self, function: Callable[[Item], Value], items: Iterable[Item], kind: Hashable
    ) -> list[Value]:
        """The function's values; all work has ended when this does, also by an exception.

        The first item is worked on by the thread that asks, and so are all where work of this kind
        was not done before: kernels are compiled here, open to Ctrl-C.
        """
        rest = list(items)
        if kind not in _done_before:
            values = [function(item) for item in rest]
            note_done(kind)
            return values
        return list(_Shared(function, iter(rest), self.count - 1, len(rest)).values())

    def map(self, function: Callable[[Item], Value], items: Iterable[Item]) -> Iterator[Value]:
        """The function's values, in the order of the items; a few are worked on ahead.

        What the function raises is raised where its value would come. Where values are no longer
        asked for, the work that has not begun is dropped.
        """
        rest = iter(items)
        if self.count == 1:
            yield from map(function, rest)
            return
        if not self._compiled:
            # Kernels are compiled here, where that is counted once and open to Ctrl-C.
            yield from map(function, islice(rest, 1))
            self._compiled = True
        shared = _Shared(function, rest, self.count - 1, AHEAD * self.count)
        yield from shared.values()


def cubes(lengths: Ints) -> Floats:
    """Bounds for `each_range` where work grows with the third power of lengths."""
    return np.concatenate([[0.0], np.cumsum(lengths.astype(np.float64) ** 3)])


_done_before: set[Hashable] = set()  # kinds of work whose kernels are compiled


def note_done(kind: Hashable) -> None:
    """Work of that kind was done by the thread that asks: threads may do it from now on."""
    _done_before.add(kind)


@cache
def _shards(count: int, ranges: int) -> Floats:
    """Where so many ranges for each thread end, as shares of the work; later ones are shorter."""
    widths = np.repeat(np.arange(float(ranges), 0.0, -1.0), count)
    return np.cumsum(widths)[:-1] / widths.sum()


def parallel_chunks(
    n_jobs: int | Threads | None,
    bounds: Ints | Floats | int,
    unit: float,
    work: Callable[[int, int], Value],
    worth_cutting: float = 0.0,
    kind: Hashable = None,
) -> Iterator[Value]:
    """Let threads do the work of examples ``first`` to ``end - 1``, for ranges that make up all.

    ``bounds`` says how much there is to do before each example, and in all, in units of so much
    counted work; a number stands for so many examples of one unit. Ranges are cut by their share of
    the work, and little work is not shared. What is found must not depend on how examples are
    cut into ranges. Values come in their order, while work on others goes on.

    Where a range begins with caches that hold nothing of use, ``worth_cutting`` is the counted work
    that it should have at least: there are fewer of them then, down to one for each thread.

    ``kind`` tells work from other work whose kernels may be compiled already; by default that is
    the function's own code, which is not enough where it calls another that it was given.
    """
    n = bounds if isinstance(bounds, int) else len(bounds) - 1
    units = n if isinstance(bounds, int) else bounds[-1] - bounds[0]
    count = n_jobs.count if isinstance(n_jobs, Threads) else count_threads(n_jobs)
    if count == 1 or n <= 2 or unit * units < WORTH_SHARING:
        yield work(0, n)
        return
    ranges = int(min(RANGES, max(1.0, unit * units / max(count * worth_cutting, 1.0))))
    shards = _shards(count, ranges) * float(units)
    inner = (
        shards.astype(np.int64)
        if isinstance(bounds, int)
        else np.searchsorted(bounds, bounds[0] + shards)
    )
    cuts = {0, *inner.tolist(), n}
    kind = work.__code__ if kind is None else kind
    is_new = kind not in _done_before
    if is_new:  # the first example by itself, where what others find compiled is compiled
        cuts.add(1)
    ends = pairwise(sorted(cuts))
    yield from Threads(count, compiled=not is_new).map(lambda own: work(*own), ends)
    note_done(kind)


def each_range(
    n_jobs: int | Threads | None,
    bounds: Ints | Floats | int,
    unit: float,
    work: Callable[[int, int], Value],
) -> list[Value]:
    """All that `parallel_chunks` gives."""
    return list(parallel_chunks(n_jobs, bounds, unit, work))
