"""Two threads inside one kernel, which meet there again and again.

A hand-over between threads takes Python some 50 microseconds, as long as several visits. Two
threads that stay inside a kernel and wait for each other by looking at an element of an array take
a tenth of one. So what they do is cut as finely as steps need it, and is the same in every run: who
writes what, and when, follows from the order of the blocks and not from who comes first.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

import joblib
import numpy as np

from .._jit import kernel
from .._numba import give_way, load_acquire, store_release
from ..types import Ints
from .threads import begin_helper

__all__ = ["in_pair", "may_pair", "meet", "post"]

LINE = 16  # numbers from one event to the next: no two in a line of the cache, or in neighbours
EVENTS = 4  # that a thread can tell of
GIVEN_UP = 2 * EVENTS * LINE  # where it says that the other will not come any more
# Looks before the core is left to others, some 250 microseconds, and for how many of these it is:
# naps take far longer, and waits of tens of microseconds are common where examples differ.
PATIENCE, NAP = 2**18, 1


def may_pair() -> bool:
    """Whether two threads can run at the same time here, whatever else does.

    They wait for each other all the time. With two cores, one of which another program keeps busy,
    training took four times as long as with one thread; so a core has to be left for others.
    """
    return sys.platform != "win32" and int(joblib.cpu_count()) > 2


@kernel(allocates=False)
def post(events, me, event, ticket):
    """Tell the other thread that this one has come so far."""
    store_release(events, (me * EVENTS + event) * LINE, ticket)


@kernel(allocates=False)
def meet(events, other, event, ticket):
    """Wait until the other thread has come so far; returns False if it never will."""
    at = (other * EVENTS + event) * LINE
    looks = 0
    while load_acquire(events, at) < ticket:
        looks += 1
        if looks > PATIENCE:
            if load_acquire(events, GIVEN_UP) != 0:
                return False
            give_way(NAP)
    return True


class _Pair:
    """Work that needs a thread of the pool."""

    def __init__(self) -> None:
        self.n_threads = 1

    def go_on_alone(self) -> None:
        """See `threads`: in the child of a fork nobody waits in a kernel."""


def in_pair(work: Callable[[int, Ints], int]) -> int | None:
    """What ``work(0, events)`` gives while a thread of the pool does ``work(1, events)``.

    The two tell each other by the ``events`` how far they have come, see `post` and `meet`. Their
    kernels have to be compiled. None, and nothing is done, where no other thread can begin.
    """
    # Anew for each run: the other thread may still look at those of the last one.
    events, left = np.zeros(GIVEN_UP + LINE, np.int64), threading.Event()
    errors: list[BaseException] = []
    # Whether the other thread begins, by who comes first: it, or who does not wait for it any more.
    begins: dict[str, bool] = {}

    def help_out() -> None:
        if not begins.setdefault("second", True):
            return
        try:
            work(1, events)
        except BaseException as error:  # raised where the work was asked for
            errors.append(error)
            events[GIVEN_UP] = 1
        finally:
            left.set()

    found, finished = None, False
    try:
        with begin_helper(_Pair(), help_out) as begun:
            if begun or begins.setdefault("second", False):
                found = work(0, events)
            finished = not errors
    finally:
        # An interrupt, say: between two kernels, or while the other thread was sent for.
        if not finished:
            events[GIVEN_UP] = 1
            _wait_for(left, begins)
    if errors:
        raise errors[0]
    return found


def _wait_for(left: threading.Event, begins: dict[str, bool]) -> None:
    """Wait, whatever comes: the other thread may write where the caller reads."""
    while True:
        try:
            if begins.setdefault("second", False):
                left.wait()
            return
        except KeyboardInterrupt:
            continue
