"""Packed sequences in files that are mapped into memory, for data larger than that.

A file has the arrays of a CSR matrix, the offsets of the sequences and the numbers of their labels,
each as it lies in memory, then a header that says where they are, and an end mark. The header comes
last, for it is known last: a file is written from its beginning to its end, part by part.
"""

from __future__ import annotations

import json
import os
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..formats.opening import PathLike
from ..formats.writing import write_atomically
from ..utils.schema import Count, from_values
from ..utils.sparse_format import check_sparse
from ..utils.types import Ints, Ints32
from .packing import PackedSequences, check_packed, tidy_csr

__all__ = ["PackedWriter", "StoredLabels", "StoredSequences", "open_packed", "write_packed"]

MAGIC = b"maxmargin packed 1\n"
END = b"packed 1"
ALIGNED = 64  # bytes: arrays begin at multiples of it
TYPES = {"indices": "<i4", "values": "<f8", "indptr": "<i8", "offsets": "<i8", "labels": "<i4"}
PIECE = 2**22  # entries that are looked at, or copied, at a time

KINDS_OF_LABELS = "labels must be all strings, or all whole numbers (of 64 bits), to be stored"

Label = str | int


class StoredLabels(NamedTuple):
    """The labels of stored sequences, for an estimator's ``y``.

    Attributes
    ----------
    codes : ndarray of int32, shape (n_tokens,)
        Number of each token's label.
    offsets : ndarray of int64, shape (n_sequences + 1,)
        Labels of sequence i are ``codes[offsets[i]:offsets[i + 1]]``.
    classes : tuple
        The labels that the numbers stand for, sorted; of all sequences of the file.
    """

    codes: Ints32
    offsets: Ints
    classes: tuple[Label, ...]

    def of(self, sequences: Iterable[int]) -> list[list[Label]]:
        """The labels of some sequences."""
        bounds = ((self.offsets[i], self.offsets[i + 1]) for i in sequences)
        return [[self.classes[k] for k in self.codes[a:b].tolist()] for a, b in bounds]


class StoredSequences(PackedSequences):
    """Packed sequences of a file, mapped into memory; made by `PackedSequences.open`.

    Attributes
    ----------
    labels : StoredLabels or None
        Their labels, if they were stored too.
    path : str
        The file.
    first, end : int
        Which of its sequences these are.
    """

    labels: StoredLabels | None
    path: str
    first: int
    end: int
    _checksum: int  # of the header, by which the file is recognised

    def part(self, first: int, end: int) -> StoredSequences:
        """Sequences ``first`` to ``end - 1`` of these, mapped as well.

        Parameters
        ----------
        first, end : int

        Returns
        -------
        StoredSequences
        """
        n = self.end - self.first
        if not 0 <= first < end <= n:
            raise ValueError(
                f"there are sequences 0 to {n - 1}, got a request for {first} to {end - 1}"
            )
        return _reopen(self.path, self.first + first, self.first + end, self._checksum)

    def __reduce__(self) -> tuple[Callable[..., StoredSequences], tuple[Any, ...]]:
        # Another process maps the file itself.
        return _reopen, (self.path, self.first, self.end, self._checksum)


class _Stored(NamedTuple):
    """Where an array is, and what its bytes add up to."""

    name: str
    start: Count
    length: Count
    checksum: Count


class _Header(NamedTuple):
    """What a file says of itself."""

    n_features: Count
    classes: list[str] | list[int] | None
    arrays: list[_Stored]


# ----- writing ------------------------------------------------------------------------------------


class PackedWriter:
    """Writes packed sequences part by part.

    Parameters
    ----------
    stream : binary file
        At its beginning; written from there to its end.
    folder : path-like
        Where to keep what is written last, for a while.
    """

    def __init__(self, stream: BinaryIO, folder: PathLike) -> None:
        self._stream = stream
        self._folder = folder
        self._at = 0
        self._kept = ExitStack()
        self._spools: dict[str, BinaryIO] = {}
        self._sizes = dict.fromkeys(TYPES, 0)
        self._n_tokens = self._n_entries = 0
        self.n_features: int | None = None
        self.n_sequences = 0
        self._checksum = 0

    def __enter__(self) -> PackedWriter:
        for name in TYPES:
            if name != "indices":  # the longest, but for values, goes to its place at once
                spool = tempfile.TemporaryFile(dir=self._folder)
                self._spools[name] = self._kept.enter_context(spool)
        self._write(MAGIC)
        self._align()
        for name in ("indptr", "offsets"):
            self._spool(name, np.zeros(1, np.int64))
        return self

    def __exit__(self, *_: object) -> None:
        self._kept.close()

    def add(self, packed: PackedSequences, codes: Ints32 | None = None) -> None:
        """Append sequences, and numbers of their labels: of all of them, or of none."""
        check_packed(packed)
        check_sparse(packed.tokens, "X.tokens")
        rows = tidy_csr(packed.tokens)
        if self.n_features not in (None, rows.shape[1]):
            raise ValueError(
                f"sequence {self.n_sequences} has {rows.shape[1]} features per token, expected "
                f"{self.n_features} like sequence 0"
            )
        if rows.shape[1] >= 2**31:
            raise ValueError(
                f"{rows.shape[1]} features are too many: the file has 32 bits for them"
            )
        if self.n_sequences and (codes is None) != (self._sizes["labels"] == 0):
            raise ValueError(
                f"sequence {self.n_sequences}: expected labels of all sequences, or of none"
            )
        self.n_features = int(rows.shape[1])
        indices = np.ascontiguousarray(rows.indices, TYPES["indices"]).tobytes()
        self._checksum = zlib.crc32(indices, self._checksum)
        self._write(indices)
        self._sizes["indices"] += rows.nnz
        self._spool("values", rows.data)
        self._spool("indptr", rows.indptr[1:].astype(np.int64) + self._n_entries)
        self._spool("offsets", packed.offsets[1:] + self._n_tokens)
        if codes is not None:
            self._spool("labels", codes)
        self._n_entries += rows.nnz
        self._n_tokens += rows.shape[0]
        self.n_sequences += len(packed.offsets) - 1

    def finish(self, classes: Sequence[Label] | None) -> None:
        """Write the rest; labels are numbered by ``classes``, and will be in their sorted order."""
        if self.n_sequences == 0 or self.n_features is None:
            raise ValueError("expected at least one sequence, found none")
        renumber: Callable[[NDArray[Any]], NDArray[Any]] | None = None
        if classes is not None:
            in_order = sorted(range(len(classes)), key=classes.__getitem__)
            numbers = np.empty(len(classes), np.int32)
            numbers[in_order] = np.arange(len(classes))
            classes = [classes[k] for k in in_order]
            renumber = numbers.__getitem__
        arrays = [_Stored("indices", _aligned(len(MAGIC)), self._sizes["indices"], self._checksum)]
        for name, spool in self._spools.items():
            self._align()
            start, checksum = self._at, 0
            spool.seek(0)
            while piece := spool.read(8 * PIECE):
                if name == "labels" and renumber is not None:
                    piece = renumber(np.frombuffer(piece, TYPES[name])).tobytes()
                checksum = zlib.crc32(piece, checksum)
                self._write(piece)
            arrays.append(_Stored(name, start, self._sizes[name], checksum))
        header = _Header(self.n_features, classes, arrays)  # type: ignore[arg-type]
        text = json.dumps(header._asdict()).encode()
        self._write(text + _ending(text))

    def _spool(self, name: str, array: NDArray[Any]) -> None:
        """Keep what is to be written behind the indices."""
        self._spools[name].write(np.ascontiguousarray(array, TYPES[name]).view(np.uint8).data)
        self._sizes[name] += len(array)

    def _write(self, content: Any) -> None:
        """Write bytes, and count them: not every stream knows where it is."""
        self._stream.write(content)
        self._at += len(content)

    def _align(self) -> None:
        """Fill up to where an array may begin."""
        self._write(bytes(_aligned(self._at) - self._at))


def write_packed(path: PathLike, parts: Iterable[Any]) -> None:
    """See `PackedSequences.write`."""
    numbers: dict[Label, int] = {}
    folder = Path(os.path.realpath(path)).parent
    with write_atomically(path) as stream, PackedWriter(stream, folder) as writer:
        for part in parts:
            packed, y = _with_labels(part)
            codes = None if y is None else _encode(y, packed.offsets, writer.n_sequences, numbers)
            writer.add(packed, codes)
        writer.finish(_comparable(numbers) if numbers else None)


def _with_labels(part: Any) -> tuple[PackedSequences, Any]:
    """Sequences and their labels; those of a file bring their own."""
    if isinstance(part, PackedSequences):
        packed, y = part, getattr(part, "labels", None)
    elif isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], PackedSequences):
        packed, y = part
    else:
        got = ", ".join(type(one).__name__ for one in part) if isinstance(part, tuple) else ""
        raise ValueError(
            "expected parts that are PackedSequences, or pairs of those and their labels, got "
            f"{type(part).__name__}{f' of {got}' if got else ''} (features.pack_sequences makes "
            "them of lists of arrays)"
        )
    if isinstance(y, StoredLabels):
        y = y.of(range(len(y.offsets) - 1))
    return packed, y


def _encode(y: Any, offsets: Ints, before: int, numbers: dict[Label, int]) -> Ints32:
    """Numbers of labels; new ones get the next."""
    try:
        lengths = [len(labels) for labels in y]
        len(y)
    except TypeError as error:
        raise ValueError(
            f"from sequence {before} on: expected labels as a list of lists ({error})"
        ) from error
    wrong = np.flatnonzero(np.array(lengths[: len(offsets) - 1]) != np.diff(offsets)[: len(y)])
    if len(wrong) or len(y) != len(offsets) - 1:
        i = int(wrong[0]) if len(wrong) else min(len(y), len(offsets) - 1)
        tokens, labels = (
            f"{ends[i + 1] - ends[i]}" if i < len(ends) - 1 else "no"
            for ends in (offsets, np.cumsum([0, *lengths]))
        )
        raise ValueError(f"sequence {before + i} has {tokens} tokens but {labels} labels")
    try:
        codes = [numbers.setdefault(label, len(numbers)) for label in chain.from_iterable(y)]
    except TypeError as error:  # a list in place of a label, say
        raise ValueError(f"from sequence {before} on: {KINDS_OF_LABELS} ({error})") from error
    return np.array(codes, np.int32)


def _comparable(numbers: dict[Any, int]) -> list[Label]:
    """The labels, if a file can hold them: strings only, or whole numbers only."""
    labels = [int(y) if isinstance(y, np.integer) else y for y in numbers]
    if all(isinstance(y, str) for y in labels):
        return labels
    if all(isinstance(y, int) and not isinstance(y, bool) and abs(y) < 2**63 for y in labels):
        return labels
    raise ValueError(f"{KINDS_OF_LABELS}; got {labels[:5]!r:.80}")


def _aligned(place: int) -> int:
    """The next place that an array may begin at."""
    return -(-place // ALIGNED) * ALIGNED


def _ending(header: bytes) -> bytes:
    """What stands behind the header: its length and checksum, and the end mark."""
    return len(header).to_bytes(8, "little") + zlib.crc32(header).to_bytes(4, "little") + END


# ----- reading ------------------------------------------------------------------------------------


def open_packed(
    path: PathLike, first: int = 0, end: int | None = None, *, verify: bool = False
) -> StoredSequences:
    """See `PackedSequences.open`."""
    header, checksum, arrays = _map(os.fspath(path))
    if verify:
        for stored in header.arrays:
            if _checksum(arrays[stored.name]) != stored.checksum:
                raise ValueError(f"{path}: damaged, the checksum of its {stored.name} is another")
    offsets, indptr = arrays["offsets"], arrays["indptr"]
    n, n_tokens, n_entries = len(offsets) - 1, len(indptr) - 1, len(arrays["indices"])
    fits = n >= 1 and _rises(offsets, n_tokens, 1) and _rises(indptr, n_entries, 0)
    fits = fits and len(arrays["values"]) == n_entries
    has_labels = header.classes is not None
    if not fits or len(arrays["labels"]) != (n_tokens if has_labels else 0):
        raise ValueError(f"{path}: damaged, its arrays do not fit each other")
    end = n if end is None else end
    if not 0 <= first < end <= n:
        raise ValueError(
            f"{path} has sequences 0 to {n - 1}, got a request for {first} to {end - 1}"
        )
    t0, t1 = int(offsets[first]), int(offsets[end])
    e0, e1 = int(indptr[t0]), int(indptr[t1])
    # scipy would make both index types the same, and copy the longer array for it.
    tokens = sparse.csr_array((t1 - t0, header.n_features))
    tokens.data, tokens.indices = arrays["values"][e0:e1], arrays["indices"][e0:e1]
    tokens.indptr = _from_zero(indptr[t0 : t1 + 1])
    tokens.has_canonical_format = True
    own = _from_zero(offsets[first : end + 1])
    packed = StoredSequences(tokens, own)
    packed.labels = None
    if header.classes is not None:
        packed.labels = StoredLabels(arrays["labels"][t0:t1], own, tuple(header.classes))
    packed.path, packed.first, packed.end = os.path.abspath(path), first, end
    packed._checksum = checksum
    return packed


def _reopen(path: str, first: int, end: int, checksum: int) -> StoredSequences:
    """Open a file again; raises ValueError if another one has its name now."""
    if _map(path)[1] != checksum:
        raise ValueError(f"{path}: not the file that was opened, or changed since then")
    return open_packed(path, first, end)


def _map(path: str) -> tuple[_Header, int, dict[str, NDArray[Any]]]:
    """The header of a file, its checksum, and the arrays.

    Raises ValueError where it is not as it was written.
    """
    length = len(_ending(b""))
    with open(path, "rb") as stream:
        if stream.read(len(MAGIC)) != MAGIC:
            raise ValueError(f"{path}: not a file of packed sequences that this version can read")
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(size - length, 0))
        ending = stream.read()
        n_bytes = int.from_bytes(ending[:8], "little")
        start = size - length - n_bytes
        if not ending.endswith(END) or start < len(MAGIC):
            raise ValueError(f"{path}: truncated or damaged file of packed sequences")
        stream.seek(start)
        text = stream.read(n_bytes)
    if _ending(text) != ending:
        raise ValueError(f"{path}: damaged file of packed sequences (the header's checksum)")
    header = from_values(_Header, json.loads(text), path)
    content = np.memmap(path, np.uint8, mode="r")
    arrays = {}
    for name, begun, count, _ in header.arrays:
        n_bytes = count * np.dtype(TYPES.get(name, "u1")).itemsize
        if begun + n_bytes > start or name not in TYPES:
            raise ValueError(f"{path}: damaged, its arrays do not fit each other")
        arrays[name] = np.asarray(content[begun : begun + n_bytes]).view(TYPES[name])
    if arrays.keys() != TYPES.keys():
        raise ValueError(f"{path}: damaged, it lacks arrays")
    return header, zlib.crc32(text), arrays


def _rises(array: NDArray[Any], last: int, least: int) -> bool:
    """Whether an array goes from 0 to ``last`` in steps of at least so much."""
    if int(array[0]) != 0 or int(array[-1]) != last:
        return False
    return all(bool((np.diff(part) >= least).all()) for part in _pieces(array, 1))


def _from_zero(bounds: Ints) -> Ints:
    """The same from 0 on; where they begin there, they stay where they are."""
    return bounds if int(bounds[0]) == 0 else bounds - bounds[0]


def _checksum(array: NDArray[Any]) -> int:
    """What the bytes of an array add up to."""
    found = 0
    for part in _pieces(array):
        found = zlib.crc32(part.tobytes(), found)
    return found


def _pieces(array: NDArray[Any], overlap: int = 0) -> Iterator[NDArray[Any]]:
    """An array, some of it at a time."""
    return (array[a : a + PIECE + overlap] for a in range(0, max(len(array), 1), PIECE))
