"""How the examples of a part come to its worker: by arrays that are sent once, or from files.

A part that is lost with its worker is made again elsewhere, so what is kept of it is how it is
made. A problem whose arrays are mapped into memory from files is not sent at all: workers map the
same files, which must be where they can read them, and take their examples out.
"""

from __future__ import annotations

import io
import pickle
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.problem import Problem
from ..utils.types import Ints
from .executor import Loader

__all__ = ["ArrayShard", "FileShard", "cut", "mapping_of"]

CHECKED_BYTES = 4096  # at the end of a file, whose checksum recognises it


@dataclass(frozen=True)
class ArrayShard:
    """Makes the problem of some examples of another one; sent to a worker, it has no others."""

    problem: Problem
    indices: Ints

    def __call__(self) -> Problem:
        """The problem of these examples."""
        return self.problem.subset(self.indices)

    def __reduce__(self) -> tuple[Any, ...]:
        """The examples of the part alone."""
        return ArrayShard, (self(), np.arange(len(self.indices)))


@dataclass(frozen=True)
class FileShard:
    """Makes the problem of examples ``first`` to ``end - 1`` of another one.

    The other one's pickle names arrays in files.
    """

    whole: bytes
    first: int
    end: int

    def __call__(self) -> Problem:
        """The problem of these examples."""
        problem: Problem = pickle.loads(self.whole)
        return problem.subset(np.arange(self.first, self.end))


def cut(problem: Problem, n_shards: int) -> tuple[list[Loader], list[Ints]]:
    """Recipes of parts, and which examples each has.

    Examples are dealt out in turn, for neighbours may be alike; those in files in one chunk, to be
    read from beginning to end.
    """
    n = problem.n_examples
    if not 1 <= n_shards <= n:
        raise ValueError(f"n_shards must be from 1 to the number of examples, {n}, got {n_shards}")
    if _write(problem, _Nowhere()):
        buffer = io.BytesIO()
        _write(problem, buffer)
        chunks = list(np.array_split(np.arange(n), n_shards))
        whole = buffer.getvalue()
        return [FileShard(whole, int(p[0]), int(p[-1]) + 1) for p in chunks], chunks
    chunks = [np.arange(k, n, n_shards) for k in range(n_shards)]
    return [ArrayShard(problem, chunk) for chunk in chunks], chunks


# ----- arrays in files ---------------------------------------------------------------------------


class _Nowhere(io.BytesIO):
    """A file that forgets."""

    def write(self, data: Any) -> int:
        """Count, and forget; long arrays come as buffers, which have no length of their own."""
        return memoryview(data).nbytes


def _write(problem: Problem, file: io.BytesIO) -> bool:
    """Pickle a problem; returns whether arrays in files are named there, not copied."""
    import cloudpickle  # comes with Dask; unlike pickle it knows classes of the main program

    class MappingPickler(cloudpickle.Pickler):  # type: ignore[misc]
        """Writes the file and place of arrays that are mapped, in place of their content."""

        n_mapped = 0

        def reducer_override(self, thing: Any) -> Any:
            """See `pickle.Pickler`."""
            place = _location_of(thing) if isinstance(thing, np.ndarray) else None
            if place is None:
                return super().reducer_override(thing)
            self.n_mapped += 1
            return _map, place

    pickler = MappingPickler(file, protocol=pickle.HIGHEST_PROTOCOL)
    try:
        pickler.dump(problem)
    except Exception:  # whatever a user's objects raise: the parts themselves may do
        return False
    return pickler.n_mapped > 0


def _location_of(array: Any) -> tuple[Any, ...] | None:
    """Where an array is mapped from, as `_map` wants it; None if it is not."""
    base = mapping_of(array)
    if base is None or base.filename is None or not array.flags.c_contiguous or not array.nbytes:
        return None
    start = array.ctypes.data - base.ctypes.data + base.offset
    end = base.offset + base.nbytes
    last = (
        np.asarray(base)
        .reshape(-1)[-(-CHECKED_BYTES // base.itemsize) :]
        .tobytes()[-CHECKED_BYTES:]
    )
    checksum = zlib.crc32(last)
    return str(base.filename), array.dtype.str, array.shape, start, end - len(last), end, checksum


def mapping_of(array: Any) -> np.memmap[Any, Any] | None:
    """The mapping that an array is a view of."""
    found = None
    while array is not None:
        if isinstance(array, np.memmap):
            found = array
        array = getattr(array, "base", None)
    return found


def _map(
    filename: str, kind: str, shape: tuple[int, ...], start: int, last: int, end: int, checksum: int
) -> Any:
    """Map an array of a file; raises OSError, with its name, where that cannot be read.

    The ``checksum`` of the bytes from ``last`` to ``end`` shows files that have changed: those
    of packed sequences say at their end what they contain.
    """
    with open(filename, "rb") as stream:
        stream.seek(last)
        if zlib.crc32(stream.read(end - last)) != checksum:
            raise ValueError(f"{filename}: not the file that was opened, or changed since then")
    return np.asarray(np.memmap(filename, np.dtype(kind), "r", start, shape))
