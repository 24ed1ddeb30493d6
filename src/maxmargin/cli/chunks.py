"""What a filter reads: pieces of a stream, each as soon as its end is there.

A piece holds all whole units (lines, sentences, trees, ...) that have arrived: one where a slow
writer sends them one by one, thousands where the reader is the slower one. Files that can be opened
again are one piece.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple

from ..formats.opening import ReadContent, Source, may_be_compressed, open_stream
from .outputs import is_standard

__all__ = ["Chunk", "located", "read_chunks"]

MOST_BYTES = 2**20  # to be read at once
_ASCII = "\n\r\t #()>"


class Chunk(ReadContent):
    """Some whole units of a stream.

    Parameters
    ----------
    content : bytes
        The units.
    name : str
        What the stream is called in messages.
    n_lines_before : int
        How many lines of the stream precede them.
    """

    def __init__(self, content: bytes, name: str, n_lines_before: int) -> None:
        super().__init__(content, name)
        self.n_lines_before = n_lines_before

    @property
    def is_first(self) -> bool:
        """Whether it is the beginning of the stream."""
        return self.n_lines_before == 0


class Unit(NamedTuple):
    """Where a stream can be cut (0: nowhere), and what lines hold nothing by themselves."""

    cut: Callable[[bytes], int]
    empty: re.Pattern[bytes]


def read_chunks(path: str, unit: str, encoding: str) -> Iterator[Source]:
    """Pieces of a file or stream, ``-`` being the standard input."""
    if is_standard(path):
        if sys.stdin is None:
            raise ValueError("the standard input is closed")
        yield from _cut(sys.stdin.buffer, "<stdin>", UNITS[unit], encoding)
        return
    with open_stream(path) as stream:
        if stream is None:
            yield path
        else:
            yield from _cut(stream, path, UNITS[unit], encoding)


@contextmanager
def located(source: Source) -> Iterator[None]:
    """Let errors count lines from the beginning of the stream, not of the piece."""
    try:
        yield
    except ValueError as error:
        before = source.n_lines_before if isinstance(source, Chunk) else 0
        found = re.match(rf"{re.escape(str(source))}:(\d+):", str(error))
        if not before or found is None:
            raise
        rest = str(error)[found.end() :]
        raise ValueError(f"{source}:{int(found[1]) + before}:{rest}") from error


def _cut(stream: BinaryIO, name: str, unit: Unit, encoding: str) -> Iterator[Chunk]:
    """Pieces of a stream; what is compressed, or not ASCII at heart, is one piece."""
    waiting, n_lines, n_chunks = b"", 0, 0
    is_whole = _ASCII.encode(encoding, "replace") != _ASCII.encode()
    while arrived := stream.read1(MOST_BYTES):  # type: ignore[attr-defined]  # binary files have it
        waiting += arrived
        is_whole = is_whole or (n_chunks == 0 and may_be_compressed(waiting))
        end = 0 if is_whole else unit.cut(waiting)
        if end and _holds_something(waiting[:end], unit):
            yield Chunk(waiting[:end], name, n_lines)
            n_chunks += 1
            n_lines += waiting.count(b"\n", 0, end)
            waiting = waiting[end:]
    if n_chunks == 0 or _holds_something(waiting, unit):
        yield Chunk(waiting, name, n_lines)


def _holds_something(content: bytes, unit: Unit) -> bool:
    """Whether there is more than comments and blanks."""
    return any(not unit.empty.fullmatch(line.strip()) for line in content.split(b"\n"))


# ----- units --------------------------------------------------------------------------------------

_BLANK_LINE = re.compile(rb"\n[ \t\r]*\n")
_TWO_BRACKETS = re.compile(rb"\s*(?:[^\s()]+\s+)?\(\s*[^\s()]*\s*\(")
_BRACKET = re.compile(rb"[()]")
_TITLE = re.compile(rb"^#", re.MULTILINE)


def _after_line(content: bytes) -> int:
    """Behind the last line end."""
    return content.rfind(b"\n") + 1


def _after_block(content: bytes) -> int:
    """Behind the last blank line."""
    return max((match.end() for match in _BLANK_LINE.finditer(content)), default=0)


def _after_tree(content: bytes) -> int:
    """Behind the last tree that is closed; sentences that are no trees end with a blank line."""
    if not _TWO_BRACKETS.match(content):
        return _after_block(content)
    depth = end = 0
    for match in _BRACKET.finditer(content):
        depth += 1 if match[0] == b"(" else -1
        end = match.end() if depth == 0 else end
    return end


def _before_title(content: bytes) -> int:
    """Before the last title, which ends the sequences below the one before it."""
    return max((match.start() for match in _TITLE.finditer(content)), default=0)


#: By the names that tasks give them.
UNITS = {
    "line": Unit(_after_line, re.compile(rb"(?:#.*)?")),
    "block": Unit(_after_block, re.compile(rb"(?:-DOCSTART-.*)?")),
    "sentence": Unit(_after_block, re.compile(rb"")),  # one of comments alone has no words
    "commented block": Unit(_after_block, re.compile(rb"(?:#.*)?")),
    "tree": Unit(_after_tree, re.compile(rb"")),
    "titled": Unit(_before_title, re.compile(rb"(?:[#;].*)?")),
}
