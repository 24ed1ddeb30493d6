"""Open plain and compressed files by one rule, with errors that name the file."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO

__all__ = ["open_binary", "open_text", "write_text_atomically"]

PathLike = str | os.PathLike[str]

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


def _opener(path: PathLike) -> Callable[..., Any]:
    """Choose the opening function by the file name's ending."""
    return _OPENERS.get(Path(path).suffix.lower(), open)


@contextmanager
def open_binary(path: PathLike) -> Iterator[BinaryIO]:
    """Open a file for reading bytes; ``.gz``, ``.xz`` and ``.bz2`` are decompressed on the way.

    Damage of a compressed file shows only while it is read, so errors raised inside the ``with``
    block are translated too.

    Parameters
    ----------
    path : str or path-like
        File to read.

    Yields
    ------
    stream : binary file

    Raises
    ------
    ValueError
        The compressed data is truncated or damaged; the message names the file.
    """
    with _opener(path)(path, "rb") as stream:
        try:
            yield stream
        except (EOFError, lzma.LZMAError, zlib.error) as error:
            raise ValueError(f"{path}: truncated or damaged compressed file ({error})") from error
        except OSError as error:
            # The decompressors raise bare OSErrors; those of the system carry an error number.
            if error.errno is not None:
                raise
            raise ValueError(f"{path}: not a valid compressed file ({error})") from error


@contextmanager
def open_text(path: PathLike, encoding: str = "utf-8") -> Iterator[TextIO]:
    r"""Open a plain or compressed text file for reading.

    Lines end at ``\n`` only (the ``\r`` of a Windows file is left to the reader), so that line
    numbers agree with those of an editor.

    Parameters
    ----------
    path : str or path-like
        File to read; ``.gz``, ``.xz`` and ``.bz2`` are decompressed.
    encoding : str, default="utf-8"
        Text encoding.

    Yields
    ------
    stream : text file

    Raises
    ------
    ValueError
        Truncated compressed data, or bytes that are not text in this encoding; the message names
        the file and, for the latter, the line.
    """
    with open_binary(path) as binary:
        stream = io.TextIOWrapper(binary, encoding=encoding, newline="\n")
        try:
            yield stream
        except UnicodeDecodeError as error:
            line = _first_undecodable_line(path, encoding)
            where = str(path) if line is None else f"{path}:{line}"
            raise ValueError(f"{where}: not valid {encoding} text ({error.reason})") from error
        finally:
            stream.detach()


def _first_undecodable_line(path: PathLike, encoding: str) -> int | None:
    """Find the line of the first bytes that cannot be decoded."""
    with open_binary(path) as stream:
        data = stream.read()
    try:
        data.decode(encoding)
    except UnicodeDecodeError as error:
        # Decoding what precedes also counts lines in encodings where b"\n" is not a line end.
        return data[: error.start].decode(encoding, errors="ignore").count("\n") + 1
    return None


@contextmanager
def write_text_atomically(path: PathLike, encoding: str = "utf-8") -> Iterator[TextIO]:
    """Write a text file so that it appears complete or not at all.

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
    """
    target = Path(path)
    handle, temporary = tempfile.mkstemp(
        dir=target.parent, prefix=f".{target.name}.", suffix=target.suffix
    )
    os.close(handle)
    try:
        with _opener(target)(temporary, "wt", encoding=encoding, newline="\n") as stream:
            yield stream
        _give_default_permissions(temporary)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _give_default_permissions(path: str) -> None:
    """Undo the owner-only mode of temporary files: the user expects that of an ordinary file."""
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(path, 0o666 & ~mask)
