"""How the examples of a part come to its worker: by arrays that are sent once, or from files.

A part that is lost with its worker is made again elsewhere, so what is kept of it is how it is
made. A problem whose arrays are mapped into memory from files is not sent at all: workers map the
same files, which must be where they can read them, and take their examples out.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..problem import Problem
from ..types import Ints
from .team import Recipe

__all__ = ["PartOf", "PartOfFiles", "cut"]


@dataclass(frozen=True)
class PartOf:
    """Makes the problem of some examples of another one; sent to a worker, it has no others."""

    problem: Problem
    indices: Ints

    def __call__(self) -> Problem:
        """The problem of these examples."""
        return self.problem.subset(self.indices)

    def __reduce__(self) -> tuple[Any, ...]:
        """The examples of the part alone."""
        return PartOf, (self(), np.arange(len(self.indices)))


@dataclass(frozen=True)
class PartOfFiles:
    """Makes the problem of some examples of another one, whose pickle names arrays in files."""

    whole: bytes
    indices: Ints

    def __call__(self) -> Problem:
        """The problem of these examples."""
        problem: Problem = pickle.loads(self.whole)
        return problem.subset(self.indices)


def cut(problem: Problem, n_parts: int) -> tuple[list[Recipe], list[Ints]]:
    """Recipes of parts, and which examples each has.

    Examples are dealt out in turn, for neighbours may be alike; those in files in one piece, to be
    read from beginning to end.
    """
    n = problem.n_examples
    if not 1 <= n_parts <= n:
        raise ValueError(f"n_parts must be from 1 to the number of examples, {n}, got {n_parts}")
    if _write(problem, _Nowhere()):
        buffer = io.BytesIO()
        _write(problem, buffer)
        pieces = list(np.array_split(np.arange(n), n_parts))
        return [PartOfFiles(buffer.getvalue(), piece) for piece in pieces], pieces
    pieces = [np.arange(k, n, n_parts) for k in range(n_parts)]
    return [PartOf(problem, piece) for piece in pieces], pieces


# ----- arrays in files ---------------------------------------------------------------------------


class _Nowhere(io.BytesIO):
    """A file that forgets."""

    def write(self, data: Any) -> int:
        """Count, and forget."""
        return len(data)


def _write(problem: Problem, file: io.BytesIO) -> bool:
    """Pickle a problem; returns whether arrays in files are named there, not copied."""
    pickler = _MappingPickler(file, protocol=pickle.HIGHEST_PROTOCOL)
    try:
        pickler.dump(problem)
    except Exception:  # whatever a user's objects raise: the parts themselves may do
        return False
    return pickler.n_mapped > 0


class _MappingPickler(pickle.Pickler):
    """Writes the file and place of arrays that are mapped, in place of their content."""

    n_mapped = 0

    def reducer_override(self, thing: Any) -> Any:
        """See `pickle.Pickler`."""
        if not isinstance(thing, np.ndarray) or not thing.flags.c_contiguous or not thing.nbytes:
            return NotImplemented
        base = _mapping_of(thing)
        if base is None or base.filename is None:
            return NotImplemented
        self.n_mapped += 1
        place = thing.ctypes.data - base.ctypes.data + base.offset
        return _map, (str(base.filename), thing.dtype.str, thing.shape, place)


def _mapping_of(array: Any) -> np.memmap[Any, Any] | None:
    """The mapping that an array is a view of."""
    found = None
    while array is not None:
        if isinstance(array, np.memmap):
            found = array
        array = getattr(array, "base", None)
    return found


def _map(filename: str, kind: str, shape: tuple[int, ...], place: int) -> Any:
    """Map an array of a file; raises OSError, with its name, where that cannot be read."""
    return np.asarray(np.memmap(filename, np.dtype(kind), "r", place, shape))
