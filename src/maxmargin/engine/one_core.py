"""One core and no other: threads of the linear algebra library that nobody asked for."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_core"]


@cache
def _controller() -> ThreadpoolController:
    """What knows the libraries; to find them takes milliseconds, to limit them microseconds."""
    import scipy.linalg  # noqa: F401  SciPy has a library of its own, which must be there to be found

    return ThreadpoolController()


def one_core() -> AbstractContextManager[Any]:
    """Within it, products of matrices and vectors use one thread.

    NumPy's library wakes threads for long vectors, which wait for work by spinning: on a busy
    machine that costs more than the product. And the order of its sums, so their last bits, would
    depend on the number of threads.
    """
    return _controller().limit(limits=1, user_api="blas")
