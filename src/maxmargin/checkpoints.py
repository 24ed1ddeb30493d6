"""Trainings on disk: what a run is made of, in a file that is whole or not there.

    magic line | length of the header, 8 bytes | header, JSON | arrays | SHA-256 of all before

The header says whose training it is, how it ended if it did, and names, types and shapes of the
arrays, whose bytes follow. A new file is complete, and on the disk, before the last one makes place
for it and becomes ``path + ".1"``; so whenever the process ends, one of the two can be read.
"""

from __future__ import annotations

import glob
import hashlib
import json
import logging
import math
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .formats.opening import PathLike
from .formats.writing import check_writable, remove_leftovers, write_atomically
from .utils.schema import Count, from_values
from .utils.warn import warn_user

__all__ = [
    "Checkpoint",
    "check_location",
    "identity_at",
    "older_of",
    "part_of",
    "remove_checkpoint",
]

logger = logging.getLogger("maxmargin")

MAGIC = b"maxmargin checkpoint 1\n"
DIGEST = 32  # bytes of a SHA-256
LENGTH = 8  # bytes that the length of the header is written in
#: Of a path of C, and of a calibration.
PARTS = (FOLD, HELD_OUT) = ("fold", "held-out")
#: Why training ends that may go on.
UNFINISHED = ("interrupted", "callback", "max_time", "max_passes", "cluster lost")


class Damaged(ValueError):
    """A file that is no checkpoint, or not all of one."""


class Content(NamedTuple):
    """What a file holds."""

    identity: dict[str, str]
    finished: str | None
    arrays: dict[str, NDArray[Any]]


class _Header(NamedTuple):
    """What a file says of itself: names, types and shapes of its arrays last."""

    identity: dict[str, str]
    finished: str | None
    arrays: list[tuple[str, str, list[Count]]]


class Checkpoint:
    """The file, or two, that one training is kept in.

    Parameters
    ----------
    path : str or path-like
        File to write, and to go on from.
    every : float
        Seconds from one writing to the next.
    identity : mapping of str to str
        Whose training it is: a file goes on only with one of the same.

    Raises
    ------
    OSError
        The file cannot be written.
    ValueError
        There is another file of this name.
    """

    may_go_on = UNFINISHED
    holds_more = False

    def __init__(self, path: PathLike, every: float, identity: Mapping[str, str]) -> None:
        self.path = os.path.realpath(path)
        self.every = every
        self.identity = dict(identity)
        self._due = time.monotonic() + every
        self._keeps_last = True  # as the older one; not what is damaged
        self._failed = False
        check_location(path)
        remove_leftovers(self.path)

    @property
    def is_due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() >= self._due

    def write(self, arrays: Mapping[str, NDArray[Any]], finished: str | None = None) -> None:
        """Write a new file, and keep the last one; warns where that is not possible.

        An interrupt that comes meanwhile is raised when there is a file to go on from; a second one
        at once.
        """
        content = Content(self.identity, finished, dict(arrays))
        try:
            self._replace(content)
        except KeyboardInterrupt:
            self._replace(content)
            raise

    def _replace(self, content: Content) -> None:
        """See `write`."""
        try:
            with write_atomically(self.path) as stream:
                _write(stream, content)
                stream.flush()
                os.fsync(stream.fileno())
                if self._keeps_last:
                    with suppress(FileNotFoundError):
                        os.replace(self.path, older_of(self.path))
            self._keeps_last, self._failed = True, False
        except OSError as error:
            if not self._failed:
                warn_user(
                    f"{self.path}: the checkpoint could not be written "
                    f"({error.strerror or error}); training continues, and the previous checkpoint "
                    "is kept"
                )
            self._failed = True
        self._due = time.monotonic() + self.every

    def load(self) -> tuple[dict[str, NDArray[Any]], str | None] | None:
        """What was written last, and how the training ended if it did; None if there is nothing.

        Raises
        ------
        ValueError
            Neither file can be read, or what there is belongs to another training.
        """
        damage = []
        for path in (self.path, older_of(self.path)):
            try:
                content = _read(path)
            except FileNotFoundError:
                continue
            except Damaged as error:
                damage.append(str(error))
                continue
            self._check_identity(path, content.identity)
            if damage:
                self._keeps_last = False
                warn_user(f"{damage[0]}; training resumes from the previous checkpoint, {path}")
            logger.info("training resumes from %s", path)
            return content.arrays, content.finished
        if damage:
            raise ValueError(f"{'; '.join(damage)}; remove it to start afresh")
        logger.info("there is no checkpoint %s yet: training starts afresh", self.path)
        return None

    def _check_identity(self, path: str, identity: Mapping[str, str]) -> None:
        """Raise ValueError, and say what differs, if a file is of another training."""
        differences = [
            f"{name} ({identity.get(name)} there, {self.identity.get(name)} here)"
            for name in {**self.identity, **identity}
            if identity.get(name) != self.identity.get(name)
        ]
        if differences:
            raise ValueError(
                f"{path}: the checkpoint is of another training, with another "
                + ", ".join(differences)
            )


def check_location(path: PathLike) -> None:
    """Raise OSError, or ValueError, if no checkpoint can or should be written there."""
    check_writable(path)
    older = older_of(path)
    for name in (older, os.fspath(path)):
        if os.path.lexists(name) and not _may_be_checkpoint(name):
            if os.path.isfile(name) and os.path.exists(older) and name != older:
                continue  # beside a checkpoint: a damaged one
            raise ValueError(f"{name}: a file of this name exists and is not a checkpoint")


def identity_at(path: PathLike) -> dict[str, str] | None:
    """Whose training would be gone on with there; None if there is nothing that can be read."""
    for name in (os.fspath(path), older_of(path)):
        with suppress(FileNotFoundError, Damaged):
            return _read(name).identity
    return None


def older_of(path: PathLike) -> str:
    """Where the checkpoint before the last one is."""
    return f"{os.fspath(path)}.1"


def part_of(path: PathLike | None, what: str, number: int) -> str | None:
    """Where a training on some of the examples is kept, beside that on all; None: not kept."""
    return None if path is None else f"{os.fspath(path)}-{what}{number}"


def remove_checkpoint(path: PathLike) -> None:
    """Remove both files of a training that is over, and those of its parts."""
    path = os.path.realpath(path)
    parts = [name for what in PARTS for name in glob.glob(f"{glob.escape(path)}-{what}[0-9]*")]
    for name in (path, older_of(path), *parts):
        with suppress(OSError):
            if _may_be_checkpoint(name):
                os.unlink(name)


def _may_be_checkpoint(path: str) -> bool:
    """Whether a file begins as a checkpoint does, or is the beginning of one."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as stream:
        return MAGIC.startswith(stream.read(len(MAGIC)))


def _write(stream: BinaryIO, content: Content) -> None:
    """Write a file from its beginning to its end."""
    arrays = content.arrays
    described = [[name, array.dtype.str, array.shape] for name, array in arrays.items()]
    header = {"identity": content.identity, "finished": content.finished, "arrays": described}
    text = json.dumps(header).encode()
    digest = hashlib.sha256()
    start = MAGIC + len(text).to_bytes(LENGTH, "little") + text
    rows = (np.ascontiguousarray(array).reshape(-1) for array in arrays.values())  # or copies
    flat: Iterator[Any] = (row.view(np.uint8) for row in rows)
    for piece in chain([start], flat):
        digest.update(piece)
        stream.write(piece)
    stream.write(digest.digest())


def _read(path: str) -> Content:
    """Read a file; raises Damaged where it is not as it was written."""
    with open(path, "rb") as stream:
        data = memoryview(stream.read())
    body, begun = data[:-DIGEST], len(MAGIC) + LENGTH
    if len(body) < begun or hashlib.sha256(body).digest() != data[-DIGEST:]:
        raise Damaged(f"{path}: truncated or damaged checkpoint")
    if body[: len(MAGIC)] != MAGIC:
        raise Damaged(f"{path}: not a checkpoint that this version of maxmargin can read")
    try:
        return _content(body, begun)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:  # by other hands
        raise Damaged(f"{path}: damaged checkpoint ({error!s:.200})") from error


def _content(body: memoryview, begun: int) -> Content:
    """What is in a file whose checksum is right; its header begins at ``begun``."""
    place = begun + int.from_bytes(body[len(MAGIC) : begun], "little")
    header = from_values(_Header, json.loads(bytes(body[begun:place])), "header")
    arrays = {}
    for name, dtype, shape in header.arrays:
        array = np.frombuffer(body, np.dtype(dtype), math.prod(shape), place).reshape(shape)
        arrays[name] = array
        place += array.nbytes
    return Content(header.identity, header.finished, arrays)
