"""One core and no other: threads of the linear algebra library that nobody asked for."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["single_blas_thread"]


class _Limit:
    """The limit of this process: set by who comes first, lifted by who leaves last."""

    lock = threading.RLock()
    users = 0
    of_library: Any = None


if hasattr(os, "register_at_fork"):  # a child would wait for ever for a thread that it has not
    os.register_at_fork(
        before=_Limit.lock.acquire,
        after_in_parent=_Limit.lock.release,
        after_in_child=_Limit.lock.release,
    )


@cache
def _controller() -> ThreadpoolController:
    """What knows the libraries; to find them takes milliseconds, to limit them microseconds."""
    import scipy.linalg  # noqa: F401  SciPy has a library of its own, which must be there to be found

    return ThreadpoolController()


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Within it, products of matrices and vectors use one thread.

    NumPy's library wakes threads for long vectors, which wait for work by spinning: on a busy
    machine that costs more than the product. And the order of its sums, so their last bits, would
    depend on the number of threads. That number is one for the whole process: where fits in several
    threads overlap, the first to end must not give it back.
    """
    controller = _controller()
    with _Limit.lock:
        if _Limit.users == 0:
            _Limit.of_library = controller.limit(limits=1, user_api="blas")
        _Limit.users += 1
    try:
        yield
    finally:
        with _Limit.lock:
            _Limit.users -= 1
            if _Limit.users == 0:
                _Limit.of_library.restore_original_limits()
