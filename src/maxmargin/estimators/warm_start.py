"""What a training leaves for the next one: its problem, and what was learned about it."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..engine.state import fingerprint as content_of
from ..problem import Problem
from ..result import Result
from ..solvers.online_learner import Learner

__all__ = ["Kept", "beginning", "fingerprint"]


class Kept(NamedTuple):
    """What a warm start needs of the fit before.

    The problem may refer to arrays of the user, who may have written to them since; ``held`` is
    what it had in it then.
    """

    fingerprint: str
    problem: Problem
    held: str | None

    @classmethod
    def of(cls, fingerprint: str, problem: Problem) -> Kept:
        """A problem as it is now, of data with this fingerprint."""
        return cls(fingerprint, problem, content_of(problem))

    @property
    def is_untouched(self) -> bool:
        """Whether the problem is still that of the fit before."""
        return self.held is not None and content_of(self.problem) == self.held

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled, as the hash of equal objects differs where they share others."""
        return _copied, (self.fingerprint, self.problem, self.is_untouched)


def _copied(fingerprint: str, problem: Problem, is_untouched: bool) -> Kept:
    """What was kept, out of a pickle."""
    return Kept(fingerprint, problem, content_of(problem) if is_untouched else None)


def beginning(earlier: Result | None) -> Result | None:
    """Where training goes on from, which it changes: an online learner is copied, planes are not.

    Planes may be large, and can be found again.
    """
    if earlier is None or not isinstance(earlier.state, Learner):
        return earlier
    return dataclasses.replace(earlier, state=earlier.state.copy())


def fingerprint(*parts: Any) -> str:
    """Hash of the content of arrays, matrices and small values."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        if sp.issparse(part):
            arrays = [part.data, part.indices, part.indptr]
            digest.update(f"sparse{part.shape}".encode())
        elif isinstance(part, np.ndarray) and part.dtype != object:
            arrays = [part]
        else:
            arrays = []
            digest.update(part if isinstance(part, bytes) else repr(part).encode())
        for array in arrays:
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()
