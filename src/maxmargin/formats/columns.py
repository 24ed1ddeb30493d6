"""CoNLL column files: one token per line, its fields in columns, blank lines between sequences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np
from numpy.typing import ArrayLike

from ..utils.types import Ints
from .opening import PathLike, Source, open_text
from .writing import write_text_atomically

__all__ = ["TokenColumns", "read_columns", "read_columns_in_parts", "write_columns"]

_DOCUMENT_START = "-DOCSTART-"
# White space at which str.split() cuts but which may stand inside a token (no-break space ...).
_UNUSUAL_SPACES = [c for c in map(chr, range(0x3001)) if c.isspace() and c not in " \t\r\n"]
_FIELD = re.compile(r"[^ \t\r\n]+")


class TokenColumns(NamedTuple):
    """Tokens of many sequences, column by column.

    Attributes
    ----------
    columns : list of list of str
        ``columns[j][t]`` is field j of token t, over the tokens of all sequences in order.
    offsets : ndarray of int64, shape (n_sequences + 1,)
        Tokens of sequence i are ``offsets[i]:offsets[i + 1]``.
    source : str or None
        Name of the file the tokens are from.
    lines : ndarray of int64 or None
        Line of each token in that file, from 1.
    """

    columns: list[list[str]]
    offsets: Ints
    source: str | None = None
    lines: Ints | None = None

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return len(self.offsets) - 1

    @property
    def n_tokens(self) -> int:
        """Number of tokens in all sequences."""
        return int(self.offsets[-1])

    def select(self, columns: Iterable[int]) -> TokenColumns:
        """Keep the listed columns only (negative numbers count from the last)."""
        return self._replace(columns=[self.columns[j] for j in columns])

    def take(self, sequences: ArrayLike) -> TokenColumns:
        """Keep the sequences with these numbers only, in this order."""
        chosen = np.asarray(sequences, dtype=np.int64)
        lengths = np.diff(self.offsets)[chosen]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        shifts = np.repeat(self.offsets[:-1][chosen] - offsets[:-1], lengths)
        tokens = np.arange(offsets[-1]) + shifts
        listed = tokens.tolist()
        return TokenColumns(
            [[column[t] for t in listed] for column in self.columns],
            offsets,
            self.source,
            None if self.lines is None else self.lines[tokens],
        )

    def split(self, column: int) -> list[list[str]]:
        """Give one column as one list per sequence, as tags are usually wanted."""
        values, bounds = self.columns[column], self.offsets.tolist()
        return [values[a:b] for a, b in pairwise(bounds)]

    def sequences(self) -> list[list[tuple[str, ...]]]:
        """Give each sequence as a list of tokens, each token a tuple of its fields."""
        tokens, bounds = list(zip(*self.columns, strict=True)), self.offsets.tolist()
        return [tokens[a:b] for a, b in pairwise(bounds)]


def read_columns(
    path: Source,
    *,
    separator: str | None = None,
    comment: str | None = None,
    encoding: str = "utf-8",
    n_columns: int | None = None,
) -> TokenColumns:
    """Read a CoNLL column file.

    Blank lines separate sequences; ``-DOCSTART-`` lines are skipped (and separate too).

    Parameters
    ----------
    path : str or path-like
        Plain text, or ``.gz``, ``.xz``, ``.bz2``.
    separator : str, optional
        What stands between two fields, once: fields may be empty or, between tabs, hold spaces. By
        default any run of spaces and tabs.
    comment : str, optional
        Lines that begin with this are skipped. By default there are no comments, for "#" is a
        word like others in many corpora.
    encoding : str, default="utf-8"
        Text encoding.
    n_columns : int, optional
        Number of columns every line must have; by default that of the first token.

    Returns
    -------
    TokenColumns
        Columns of all tokens, and the offsets of the sequences.

    Raises
    ------
    ValueError
        A line with another number of columns, a NUL character, a file without tokens, damaged or
        undecodable content; the message names file and line.

    Examples
    --------
    >>> data = read_columns("train.txt.xz")                # doctest: +SKIP
    >>> X, y = data.select([0, 1]), data.split(-1)         # doctest: +SKIP
    """
    with open_text(path, encoding) as stream:
        text = stream.read()
    data = _parse(path, text, 1, separator, comment, n_columns)
    if data is None:
        raise ValueError(f"{path}: no tokens found, expected one token per line")
    return data


def read_columns_in_parts(
    path: Source,
    *,
    separator: str | None = None,
    comment: str | None = None,
    encoding: str = "utf-8",
    n_columns: int | None = None,
    size: int = 2**24,
) -> Iterator[TokenColumns]:
    """Read a CoNLL column file of any size, some sequences at a time.

    Parameters
    ----------
    path, separator, comment, encoding, n_columns
        As for `read_columns`.
    size : int, default=16777216
        Characters to read at a time; a sequence is never cut.

    Yields
    ------
    TokenColumns
        The next sequences, with their lines in the file.

    Raises
    ------
    ValueError
        As for `read_columns`, when the part is reached.
    """
    waiting, line, first_line = "", 1, None
    with open_text(path, encoding) as stream:
        while True:
            read = stream.read(size)
            waiting += read
            end = len(waiting) if not read else _after_blank_line(waiting)
            if end:
                data = _parse(path, waiting[:end], line, separator, comment, n_columns, first_line)
                if data is not None:
                    yield data
                    n_columns = len(data.columns)
                    if first_line is None and data.lines is not None:
                        first_line = int(data.lines[0])
                line += waiting.count("\n", 0, end)
                waiting = waiting[end:]
            if not read:
                break
    if first_line is None:
        raise ValueError(f"{path}: no tokens found, expected one token per line")


def _after_blank_line(text: str) -> int:
    """Where the last blank line ends; 0 if there is none."""
    end = len(text)
    while (end := text.rfind("\n", 0, end)) >= 0:
        before = text.rfind("\n", 0, end)
        if not text[before + 1 : end].strip(" \t\r"):
            return end + 1
    return 0


def _parse(
    path: Source,
    text: str,
    line: int,
    separator: str | None,
    comment: str | None,
    n_columns: int | None,
    like: int | None = None,
) -> TokenColumns | None:
    """The tokens of a text that begins at this line of a file; None if it has none.

    ``like`` is the line that the number of columns is from, where it was not given.
    """
    _check_text(path, text, line)
    numbers = None
    if comment and comment in text:
        # Dropped, not blanked: a comment inside a sequence must not cut it in two.
        lines = text.split("\n")
        numbers = [n for n, one in enumerate(lines, line) if not one.startswith(comment)]
        text = "\n".join(lines[n - line] for n in numbers)
    if _DOCUMENT_START in text:
        text = re.sub(rf"^[ \t\r]*{_DOCUMENT_START}.*", "", text, flags=re.MULTILINE)
    fields, widths = _split_fields(text, separator)

    line_of = line + np.arange(len(widths)) if numbers is None else np.array(numbers)
    is_token = widths > 0
    where = np.flatnonzero(is_token)
    if where.size == 0:
        return None
    expected = int(widths[where[0]]) if n_columns is None else n_columns
    wrong = where[widths[where] != expected]
    if wrong.size:
        found = int(widths[wrong[0]])
        like = int(line_of[where[0]]) if n_columns is None else like
        reason = "" if like is None else f" (line {like} has {expected})"
        raise ValueError(
            f"{path}:{line_of[wrong[0]]}: expected {expected} columns, found {found}{reason}"
        )

    # A sequence begins at each token line that follows a blank line or the top of the file.
    first = is_token.copy()
    first[1:] &= ~is_token[:-1]
    offsets = np.append(np.flatnonzero(first[where]), where.size).astype(np.int64)
    columns = [fields[j::expected] for j in range(expected)]
    return TokenColumns(columns, offsets, str(path), line_of[where])


def _check_text(path: Source, text: str, line: int) -> None:
    """Refuse what no column file holds but a damaged or foreign file may."""
    if "\0" in text:
        line += text.count("\n", 0, text.index("\0"))
        raise ValueError(f"{path}:{line}: found a NUL character, expected text")
    if "\r" in text and "\r" in (body := text.strip()) and "\n" not in body:
        raise ValueError(f"{path}: lines end in \\r, expected \\n or \\r\\n")


def _split_fields(text: str, separator: str | None) -> tuple[list[str], Ints]:
    """Give the fields of all lines in one list, and how many each line has (0: blank)."""
    if separator is None and not any(space in text for space in _UNUSUAL_SPACES):
        # Much faster than line by line, where a list for each token keeps the collector busy.
        return text.split(), _count_fields(text)
    fields: list[str] = []
    widths: list[int] = []
    for line in text.split("\n"):
        if separator is None:
            found = _FIELD.findall(line)
        else:
            found = line.rstrip("\r").split(separator) if line.strip(" \t\r") else []
        fields.extend(found)
        widths.append(len(found))
    return fields, np.array(widths, dtype=np.int64)


def _count_fields(text: str) -> Ints:
    """Count the fields of each line: bytes that follow white space but are none."""
    data = np.frombuffer(f"{text}\n".encode(), dtype=np.uint8)
    line_end = data == ord("\n")
    space = line_end | (data == ord(" ")) | (data == ord("\t")) | (data == ord("\r"))
    starts = ~space
    starts[1:] &= space[:-1]
    return np.diff(np.cumsum(starts, dtype=np.int64)[line_end], prepend=0)


def write_columns(
    target: PathLike | TextIO,
    columns: Sequence[Sequence[str]],
    offsets: ArrayLike,
    *,
    separator: str = " ",
    encoding: str = "utf-8",
) -> None:
    """Write tokens as a CoNLL column file.

    Parameters
    ----------
    target : path-like or text stream
        A file is written whole or not at all, and compressed if it ends in ``.gz``, ``.xz``
        or ``.bz2``.
    columns : sequence of sequences of str
        ``columns[j][t]`` is field j of token t.
    offsets : array-like of int, shape (n_sequences + 1,)
        Tokens of sequence i are ``offsets[i]:offsets[i + 1]``.
    separator : str, default=" "
        What to put between two fields.
    encoding : str, default="utf-8"
        Text encoding of a file; a stream has its own.

    Raises
    ------
    ValueError
        Columns of different lengths, offsets that do not fit them, or a field that could not be
        read back (with a line end, NUL or the separator in it, or, between spaces, empty).
    """
    bounds = _checked_bounds(columns, offsets)
    _check_fields(columns, separator)
    lines = list(map(separator.join, zip(*columns, strict=True)))
    text = "".join("\n".join(lines[a:b]) + "\n\n" for a, b in pairwise(bounds))
    if isinstance(target, (str, Path)) or hasattr(target, "__fspath__"):
        with write_text_atomically(target, encoding) as stream:
            # A token that begins with a byte order mark needs one before it, which readers drop.
            stream.write(f"\ufeff{text}" if text.startswith("\ufeff") else text)
    else:
        target.write(text)


def _checked_bounds(columns: Sequence[Sequence[str]], offsets: ArrayLike) -> list[int]:
    """Check that the columns are of one length and that the offsets cover them."""
    lengths = {len(column) for column in columns}
    if len(lengths) != 1:
        raise ValueError(f"expected columns of one length, found lengths {sorted(lengths)}")
    bounds = np.asarray(offsets, dtype=np.int64)
    n_tokens = lengths.pop()
    covers = bounds.ndim == 1 and bounds.size > 0 and bounds[0] == 0 and bounds[-1] == n_tokens
    if not covers:
        raise ValueError(f"expected offsets from 0 to {n_tokens}, the number of tokens")
    if (np.diff(bounds) <= 0).any():
        bad = int(np.argmax(np.diff(bounds) <= 0))
        raise ValueError(f"sequence {bad} is empty: a column file cannot hold it")
    return [int(bound) for bound in bounds]


def _check_fields(columns: Sequence[Sequence[str]], separator: str) -> None:
    """Refuse fields that would be read back as something else."""
    by_spaces = not separator.strip(" ")
    forbidden = set("\r\n\0\t " if by_spaces else f"\r\n\0{separator}")
    for number, column in enumerate(columns):
        bad = {
            field for field in set(column) if forbidden & set(field) or (by_spaces and not field)
        }
        if bad:
            token, field = next((t, f) for t, f in enumerate(column) if f in bad)
            raise ValueError(
                f"token {token}, column {number}: {field!r:.60} cannot be written, expected text "
                "without line ends and separators"
            )
    for token, field in enumerate(columns[0] if columns else ()):
        if field.lstrip(" \t").startswith(_DOCUMENT_START):
            raise ValueError(
                f"token {token}: {field!r:.60} cannot be written, it would be read as the start "
                "of a document"
            )
    if by_spaces:
        return
    for token, row in enumerate(zip(*columns, strict=True)):
        if not "".join(row).strip(" \t"):
            raise ValueError(
                f"token {token}: all its fields are empty: a blank line ends a sequence"
            )
