"""Write files so that they appear complete or not at all, with errors that name the file."""

from __future__ import annotations

import errno
import io
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO

from .opening import PathLike, check_encoding, opener_by_name

__all__ = [
    "check_writable",
    "descriptor_of",
    "remove_leftovers",
    "write_atomically",
    "write_text_atomically",
]

# Names of open descriptors: they are written to where they stand, not opened again.
_DESCRIPTOR = re.compile(r"/dev/(?:(stdin|stdout|stderr)|fd/(\d+))|/proc/self/fd/(\d+)")
_STANDARD = ("stdin", "stdout", "stderr")


@contextmanager
def write_atomically(path: PathLike) -> Iterator[BinaryIO]:
    """Write a file so that it appears complete or not at all.

    The content is written to a new file in the same folder, which then takes the name ``path``. A
    link is followed, and a file that is replaced hands down its permissions. Pipes and devices,
    ``/dev/stdout`` among them, have no place for a second file and are written to at once.

    Parameters
    ----------
    path : str or path-like
        File to write.

    Yields
    ------
    stream : binary file
        Its content takes the place of ``path`` when the block ends without an error; after one,
        ``path`` is as it was.

    Raises
    ------
    OSError
        No such folder, no permission, a full disk, ...; ``filename`` is ``path``.
    """
    with _errors_that_name(path):
        if (stream := _open_in_place(path)) is not None:
            with stream:
                yield stream
        else:
            yield from _write_beside(path)


@contextmanager
def write_text_atomically(path: PathLike, encoding: str = "utf-8") -> Iterator[TextIO]:
    """Write a text file so that it appears complete or not at all; see `write_atomically`.

    Parameters
    ----------
    path : str or path-like
        File to write; ``.gz``, ``.xz`` and ``.bz2`` are compressed.
    encoding : str, default="utf-8"
        Text encoding.

    Yields
    ------
    stream : text file
        Its content takes the place of ``path`` when the block ends without an error.

    Raises
    ------
    ValueError
        An unknown encoding, or text that it has no bytes for; the message names the file.
    OSError
        As for `write_atomically`.
    """
    check_encoding(encoding)
    opener = opener_by_name(path)
    with write_atomically(path) as binary:
        try:
            if opener is None:
                stream = io.TextIOWrapper(binary, encoding=encoding, newline="\n")
                try:
                    yield stream
                    stream.flush()
                finally:
                    with suppress(OSError):  # after an error, which the caller is told of already
                        stream.detach()
            else:
                with opener(binary, "wt", encoding=encoding, newline="\n") as compressed:
                    yield compressed
        except UnicodeEncodeError as error:
            bad = error.object[error.start : error.end][:20]
            raise ValueError(f"{path}: {bad!r} cannot be written in {encoding}") from error


def check_writable(path: PathLike) -> None:
    """Raise what `write_atomically` would raise for lack of a folder or of permission.

    Parameters
    ----------
    path : str or path-like
        File that is to be written later on.

    Raises
    ------
    OSError
        The folder is missing or cannot be written to, the path is a folder or a file that may not
        be changed; ``filename`` is ``path``.
    """
    with _errors_that_name(path):
        number = descriptor_of(path)
        if number is not None:
            os.fstat(number)
        elif _is_special(path):
            if not os.access(path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        else:
            temporary, handle = _new_file_beside(_target(path))
            os.close(handle)
            os.unlink(temporary)


def remove_leftovers(path: PathLike) -> None:
    """Remove what processes have left that were killed while they wrote a file.

    Parameters
    ----------
    path : str or path-like
        File that nobody else is writing now.
    """
    target = Path(os.path.realpath(path))
    leftover = re.compile(re.escape(_hidden_name(target)) + r"[0-9a-f]{16}")
    with suppress(OSError):
        for name in os.listdir(target.parent):
            if leftover.fullmatch(name):
                os.unlink(target.with_name(name))


def _open_in_place(path: PathLike) -> BinaryIO | None:
    """Open what cannot be replaced; None for an ordinary file."""
    number = descriptor_of(path)
    if number is not None:
        return io.BufferedWriter(_InOrder(os.dup(number), "wb"))
    return io.BufferedWriter(_InOrder(path, "wb")) if _is_special(path) else None


class _InOrder(io.FileIO):
    """A stream without positions: those of devices, or of a file written to before, are no help."""

    def seekable(self) -> bool:
        return False

    def seek(self, *_: int) -> int:
        raise io.UnsupportedOperation("seek")

    def tell(self) -> int:
        raise io.UnsupportedOperation("tell")


def descriptor_of(path: PathLike) -> int | None:
    """The open descriptor that a path stands for; None if it stands for a file."""
    match = _DESCRIPTOR.fullmatch(os.fspath(path))
    if match is None:
        return None
    name, *numbers = match.groups()
    return _STANDARD.index(name) if name else int(next(n for n in numbers if n))


def _is_special(path: PathLike) -> bool:
    """Whether there is something at the path that is neither file nor folder."""
    with suppress(OSError):
        mode = os.stat(path).st_mode
        return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
    return False


def _target(path: PathLike) -> Path:
    """The file to be replaced, links followed; raises OSError where there can be none."""
    text = os.fspath(path)
    target = Path(os.path.realpath(text))
    if not text:
        raise FileNotFoundError(errno.ENOENT, "the name of the file is empty")
    if target.is_symlink():  # one that ends in itself
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if target.is_dir() or text.endswith(os.sep):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"there is no folder {Path(text).parent}")
    # A rename asks for permission of the folder only; a file that is write-protected stays.
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return target


def _new_file_beside(target: Path) -> tuple[Path, int]:
    """A new, empty file in the folder of another, with its permissions, open for writing."""
    temporary = target.with_name(f"{_hidden_name(target)}{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(temporary, flags, 0o666)
    with suppress(OSError):
        before = os.stat(target)
        with suppress(OSError, AttributeError):  # Windows has no owners
            os.chown(temporary, before.st_uid, before.st_gid)
        os.chmod(temporary, stat.S_IMODE(before.st_mode))
    return temporary, handle


def _hidden_name(target: Path) -> str:
    """What the names of new files for a target begin with; cut, for they have at most 255 bytes."""
    return f".{target.name[:40]}."


def _write_beside(path: PathLike) -> Iterator[BinaryIO]:
    """Write to a new file, and give it the place of the old one."""
    target = _target(path)
    temporary, handle = _new_file_beside(target)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Bring a new name to the disk, where the system has a way to."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _errors_that_name(path: PathLike) -> Iterator[None]:
    """Let errors of the system name the file the user named, not one that helps to write it."""
    try:
        yield
    except OSError as error:
        if error.errno is None or not _is_about(error.filename, path):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _is_about(filename: object, path: PathLike) -> bool:
    """Whether an error with this file name is one of writing ``path``."""
    if filename is None:
        return True
    target, found = Path(os.path.realpath(path)), Path(str(filename))
    return found == target or found.name.startswith(_hidden_name(target))
