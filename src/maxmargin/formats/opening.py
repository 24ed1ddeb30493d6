"""Open plain and compressed files by one rule, and read text block by block.

Errors name the file and, where there is one, the line.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, TextIO, TypeVar

__all__ = [
    "BadLine",
    "ReadContent",
    "Source",
    "line_of_item",
    "may_be_compressed",
    "open_binary",
    "open_stream",
    "open_text",
    "read_blocks",
    "read_lines",
    "read_once",
    "standard_input",
]

PathLike = str | os.PathLike[str]
Item = TypeVar("Item")
#: Lines with their numbers, from 1.
NumberedLines = list[tuple[int, str]]
Opener = Callable[..., Any]

_BY_NAME: dict[str, Opener] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
#: What compressed files begin with, whatever they are called.
_BY_CONTENT: tuple[tuple[bytes, Opener], ...] = (
    (b"\x1f\x8b\x08", gzip.open),
    (b"\xfd7zXZ\x00", lzma.open),
    *((b"BZh%d1AY&SY" % level, bz2.open) for level in range(1, 10)),
)
_LONGEST_MARK = max(len(mark) for mark, _ in _BY_CONTENT)


class ReadContent(io.BytesIO):
    """What was read from a stream that can be read but once; in messages it has a name.

    Parameters
    ----------
    content : bytes
        The content.
    name : str
        What to call it.
    """

    def __init__(self, content: bytes, name: str) -> None:
        super().__init__(content)
        self.name = name

    def __str__(self) -> str:
        return self.name


#: What readers take: a file, or what was read from a stream.
Source = PathLike | ReadContent


def standard_input() -> ReadContent:
    """Read all of standard input."""
    if sys.stdin is None:
        raise ValueError("standard input is closed")
    return ReadContent(sys.stdin.buffer.read(), "<stdin>")


def read_once(source: Source) -> Source:
    """Read pipes and other things that cannot be opened twice; a file is left for later."""
    if isinstance(source, ReadContent):
        return source
    with open_stream(source) as stream:
        return source if stream is None else ReadContent(stream.read(), os.fspath(source))


@contextmanager
def open_stream(path: PathLike) -> Iterator[BinaryIO | None]:
    """Open what cannot be opened twice, such as a named pipe; None for a file."""
    mode = os.stat(path).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        yield None
        return
    with open(path, "rb") as stream:
        yield stream


def may_be_compressed(beginning: bytes) -> bool:
    """Whether a stream begins as compressed ones do, as far as can be seen."""
    return any(mark.startswith(beginning[: len(mark)]) for mark, _ in _BY_CONTENT)


def opener_by_name(path: PathLike) -> Opener | None:
    """The function that compresses and decompresses files of this name; None for plain ones."""
    return _BY_NAME.get(Path(path).suffix.lower())


def _opener(source: Source, beginning: bytes) -> Opener | None:
    """The function that decompresses; files without the usual ending are known by their content."""
    for mark, opener in _BY_CONTENT:
        if beginning.startswith(mark):
            return opener
    return None if isinstance(source, ReadContent) else opener_by_name(source)


@contextmanager
def open_binary(source: Source) -> Iterator[BinaryIO]:
    """Open a file for reading bytes; gzip, xz and bzip2 are decompressed on the way.

    Damage of a compressed file shows only while it is read, so errors raised inside the ``with``
    block are translated too.

    Parameters
    ----------
    source : str or path-like
        File to read; compressed if it ends in ``.gz``, ``.xz`` or ``.bz2``, or begins as such
        files do.

    Yields
    ------
    stream : binary file

    Raises
    ------
    ValueError
        The compressed data is truncated or damaged; the message names the file.
    """
    source = read_once(source)
    # What was read from a pipe is not closed: it may be wanted again.
    opened = nullcontext(source) if isinstance(source, ReadContent) else open(source, "rb")
    with opened as raw:
        try:
            raw.seek(0)
            opener = _opener(source, raw.read(_LONGEST_MARK))
            raw.seek(0)
            with nullcontext(raw) if opener is None else opener(raw, "rb") as stream:
                yield stream
        except (EOFError, lzma.LZMAError, zlib.error) as error:
            raise ValueError(f"{source}: truncated or damaged compressed file ({error})") from error
        except OSError as error:
            # The decompressors raise bare OSErrors; those of the system carry an error number.
            if error.errno is not None:
                error.filename = error.filename or str(source)
                raise
            raise ValueError(f"{source}: not a valid compressed file ({error})") from error


@contextmanager
def open_text(source: Source, encoding: str = "utf-8") -> Iterator[TextIO]:
    r"""Open a plain or compressed text file for reading.

    Lines end at ``\n`` only (the ``\r`` of a Windows file is left to the reader), so that line
    numbers agree with those of an editor. A byte order mark is not part of the text.

    Parameters
    ----------
    source : str or path-like
        File to read, plain or compressed.
    encoding : str, default="utf-8"
        Text encoding.

    Yields
    ------
    stream : text file

    Raises
    ------
    ValueError
        Truncated compressed data, an unknown encoding, or bytes that are not text in this
        encoding; the message names the file and, for the last, the line.
    """
    check_encoding(encoding)
    codec = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
    source = read_once(source)
    with open_binary(source) as binary:
        stream = io.TextIOWrapper(binary, encoding=codec, newline="\n")
        try:
            yield stream
        except UnicodeError as error:
            line = _first_undecodable_line(source, codec)
            where = str(source) if line is None else f"{source}:{line}"
            reason = getattr(error, "reason", error)
            raise ValueError(
                f"{where}: not valid {encoding} text ({reason}); if the file has another "
                "encoding, name it, as in encoding='latin-1'"
            ) from error
        finally:
            stream.detach()


def check_encoding(encoding: str) -> None:
    """Raise ValueError unless this is a text encoding that Python knows."""
    try:
        io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    except (LookupError, ValueError):  # the latter for names with NUL or beyond ASCII
        raise ValueError(
            f"unknown text encoding {encoding!r}, expected one such as 'utf-8' or 'latin-1'"
        ) from None


def _first_undecodable_line(source: Source, encoding: str) -> int | None:
    """Find the line of the first bytes that cannot be decoded."""
    with open_binary(source) as stream:
        data = stream.read()
    try:
        data.decode(encoding)
    except UnicodeDecodeError as error:
        # Decoding what precedes also counts lines in encodings where b"\n" is not a line end.
        return data[: error.start].decode(encoding, errors="ignore").count("\n") + 1
    except UnicodeError:
        pass
    return None


# ----- lines and blocks of lines -----------------------------------------------------------------


class BadLine(Exception):
    """What is wrong with a line, whose number is that of the line being read unless it is given."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def read_lines(
    source: Source, parse: Callable[[int, str], Item], *, encoding: str = "utf-8"
) -> Iterator[Item]:
    """Parse each line that is not blank, as ``parse(number, line)``; a `BadLine` names the file."""
    return _parsed(source, encoding, lambda block: parse(*block[0]), one_by_one=True)


def read_blocks(
    source: Source, parse: Callable[[NumberedLines], Item], *, encoding: str = "utf-8"
) -> Iterator[Item]:
    """Parse the lines between blank lines, all of a block at once; a `BadLine` names the file."""
    return _parsed(source, encoding, parse, one_by_one=False)


def _parsed(
    source: Source, encoding: str, parse: Callable[[NumberedLines], Item], one_by_one: bool
) -> Iterator[Item]:
    """Parse blocks of lines, or lines one by one."""
    with open_text(source, encoding) as stream:
        for block in _blocks(stream, one_by_one):
            try:
                item = parse(block)
            except BadLine as error:
                line = block[0][0] if error.line is None else error.line
                raise ValueError(f"{source}:{line}: {error}") from None
            yield item


def _blocks(stream: TextIO, one_by_one: bool) -> Iterator[NumberedLines]:
    """Numbered lines between blank lines, without their ends; or each line alone."""
    block: NumberedLines = []
    for number, line in enumerate(stream, 1):
        text = line.rstrip("\r\n")
        is_blank = not text.strip()
        if not is_blank:
            block.append((number, text))
        if block and (is_blank or one_by_one):
            yield block
            block = []
    if block:
        yield block


def line_of_item(
    source: Source, index: int, is_item: Callable[[str], object], *, encoding: str = "utf-8"
) -> int:
    """The number of the line of an item, for messages about what is wrong with it."""
    with open_text(source, encoding) as stream:
        for number, line in enumerate(stream, 1):
            index -= bool(is_item(line))
            if index < 0:
                return number
    raise ValueError(f"{source}: no such item")
