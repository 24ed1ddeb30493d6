"""Who does the work of the shards, wherever the workers are, and the shards as examples.

The examples of a shard come to its worker by arrays that are sent once, or from files. A shard that
is lost with its worker is made again elsewhere, so what is kept of it is how it is made. A problem
whose arrays are mapped into memory from files is not sent at all: workers map the same files, which
must be where they can read them, and take their examples out.
"""

from __future__ import annotations

import io
import pickle
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np

from ..core.cutting_planes import BoundedPlanes, Planes, stack
from ..core.formulation import Formulation, Rescaling
from ..core.problem import Problem
from ..engine.packed_problem import PackedProblem
from ..engine.training.run import StopTraining
from ..engine.training.state import fingerprint
from ..utils.types import Floats, Ints, Ints32
from .shard import Packed, Shard, ShardOptions, ShardPlane

__all__ = [
    "ArrayShard",
    "ClusterLost",
    "Executor",
    "FileShard",
    "InProcess",
    "Loader",
    "NobodyWorks",
    "Reply",
    "ShardConfig",
    "ShardInfo",
    "ShardedProblem",
    "Traffic",
    "build_shard",
    "count_bytes",
    "cut",
    "mapping_of",
]

#: Makes the problem of a part, where the part is to be.
Loader = Callable[[], Problem]


class NobodyWorks(RuntimeError):
    """Raised where a cluster has nobody to train, before there is any model."""


class ClusterLost(StopTraining):
    """Raised where nobody answers any more: training ends with the best model so far."""

    def __init__(self, why: str) -> None:
        super().__init__("cluster lost")
        self.why = why


class ShardConfig(NamedTuple):
    """What a part is trained for, beside its examples; ``weights`` None are ones."""

    formulation: Formulation
    C: float
    weights: Floats | None
    options: ShardOptions
    hashed: bool = False  # whether the content of the examples is to be told from others


class ShardInfo(NamedTuple):
    """What the driver has to know of a part."""

    n_examples: int
    n_features: int
    weight: float
    exact: bool
    content: str | None


@dataclass
class Traffic:
    """Bytes of the numbers that each question sent to all parts, w once, and of the answers."""

    sent: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)


class Reply(NamedTuple):
    """An answer, and in which call of `Executor.call` it was asked for."""

    answer: Any
    asked: int


class Executor(Protocol):
    """Shards that answer.

    Attributes
    ----------
    facts : list of ShardInfo
        Of all parts.
    traffic : Traffic
        What went to and fro.
    asked : int
        Calls of `call` so far.
    """

    info: list[ShardInfo]
    traffic: Traffic
    asked: int

    def call(
        self,
        method: str,
        w: Floats,
        messages: Mapping[int, tuple[Any, ...]],
        *,
        may_be_late: bool = False,
    ) -> dict[int, Reply]:
        """Call a method of parts with w and a message for each; answers by part.

        Where answers may be late, they may also come from a later call, and then belong to
        the one before; a part that still works on an earlier question is not asked.
        """


def build_shard(loader: Loader, config: ShardConfig) -> tuple[Shard, ShardInfo]:
    """A part, and what is to be known of it; raises ValueError where its weights do not fit."""
    from ..solvers.base import checked_weights

    problem = loader()
    weights = checked_weights(config.weights, problem.n_examples)
    shard = Shard(problem, config.formulation, config.C, weights, config.options)
    content = fingerprint(problem) if config.hashed else None
    info = ShardInfo(
        problem.n_examples,
        shard.oracle.n_features,
        float(weights.sum()),
        shard.oracle.exact,
        content,
    )
    return shard, info


class InProcess:
    """All parts in this process, one after the other: for tests, and to see what rounds there are.

    Parameters
    ----------
    recipes : list of callables
        Make the problems of the parts.
    terms : list of ShardConfig
        What each is trained for.
    """

    def __init__(self, loaders: list[Loader], config: list[ShardConfig]) -> None:
        built = [build_shard(loader, of) for loader, of in zip(loaders, config, strict=True)]
        self.shards = [shard for shard, _ in built]
        self.info = [info for _, info in built]
        self.traffic = Traffic()
        self.asked = 0

    def call(
        self,
        method: str,
        w: Floats,
        messages: Mapping[int, tuple[Any, ...]],
        *,
        may_be_late: bool = False,
    ) -> dict[int, Reply]:
        """See `Executor`."""
        self.asked += 1
        self.traffic.sent.append(w.nbytes + sum(map(count_bytes, messages.values())))
        answers = {
            k: Reply(getattr(self.shards[k], method)(w, *message), self.asked)
            for k, message in messages.items()
        }
        self.traffic.received.append(sum(count_bytes(a.answer) for a in answers.values()))
        return answers


def count_bytes(answer: Any) -> int:
    """Bytes of the numbers of an answer."""
    if hasattr(answer, "nbytes"):
        return int(answer.nbytes)
    if isinstance(answer, Mapping):
        return sum(8 + count_bytes(value) for value in answer.values())
    if isinstance(answer, tuple):
        return sum(map(count_bytes, answer))
    return 0 if answer is None else 8


class ShardedProblem(PackedProblem):
    """All shards as examples: a problem whose oracle calls all shards at once, on their workers.

    With S_k the sum of shard k's sample weights, the shard is one example of that weight, whose
    slack is the weighted mean of those of its own (for squared slacks, of their squares). A cutting
    plane of this mean is its candidate, so that solvers of linear slacks solve the problem of all
    examples without knowing it: one-slack cutting planes as they are, by one pass over all data for
    each plane.

    Parameters
    ----------
    executor : Executor
        Who answers for the shards.
    formulation : Formulation
        That of the examples.
    """

    def __init__(self, executor: Executor, formulation: Formulation) -> None:
        self.executor = executor
        #: What solvers are to be given: the planes are made already.
        self.formulation = Formulation(constraints=formulation.constraints)
        self.n_features = executor.info[0].n_features
        self.exact = all(info.exact for info in executor.info)
        #: Sums of the sample weights of the parts.
        self.weights: Floats = np.array([info.weight for info in executor.info])
        self.size = sum(info.n_examples for info in executor.info)

    @property
    def n_examples(self) -> int:
        """Number of parts."""
        return len(self.executor.info)

    def input_of(self, i: int) -> ShardInfo:
        """What is known of a part; its examples are elsewhere."""
        return self.executor.info[i]

    def output_of(self, i: int) -> None:
        """None: it is with the examples."""

    def subset(self, indices: Ints) -> NoReturn:
        """Shards are not cut again."""
        raise TypeError("a shard on a worker cannot be divided further")

    def __getstate__(self) -> dict[str, object]:
        """What tells it from others: the examples, not who answers for them."""
        return {"info": self.executor.info}

    def _most_violated(  # type: ignore[override]
        self, examples: Ints, w: Floats, rescaling: Rescaling, sqrt_loss: bool
    ) -> Planes | BoundedPlanes:
        """See `PackedProblem`."""
        shards = examples.tolist()
        answers = self.executor.call("plane", w, dict.fromkeys(shards, ()))
        found: list[ShardPlane] = [answers[k].answer for k in shards]
        scales = 1.0 / np.maximum(self.weights[shards], 1e-300)
        rows = [_row(plane.vector, scale) for plane, scale in zip(found, scales, strict=True)]
        planes = stack(rows, scales * np.array([plane.offset for plane in found]))
        bounds = [plane.sums.bound for plane in found]
        if all(bound is None for bound in bounds):
            return planes
        known = [b if b is not None else p.sums.slacks for b, p in zip(bounds, found, strict=True)]
        return planes.with_bounds(scales * np.array(known))


def _row(vector: Packed, scale: float) -> tuple[Ints32, Floats]:
    """A vector times a factor as a sparse row."""
    if vector.ids is not None:
        return vector.ids, scale * vector.values
    ids = np.flatnonzero(vector.values).astype(np.int32)
    return ids, scale * vector.values[ids]


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
