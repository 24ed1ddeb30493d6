"""FASTA files, and aligned rows of them as pairs of positions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..utils.types import Ints
from .opening import PathLike, Source, line_of_item, read_lines
from .writing import write_text_atomically

__all__ = [
    "FastaRecord",
    "gapped_rows",
    "line_of_record",
    "pairs_of_rows",
    "read_fasta",
    "read_fasta_groups",
    "write_fasta",
]

GAPS = "-."
_LINE_LENGTH = 60


class FastaRecord(NamedTuple):
    """A sequence and its name.

    Attributes
    ----------
    name : str
        The first word behind ``>``.
    sequence : str
        The letters, in upper case; gaps are kept.
    description : str
        What follows the name.
    """

    name: str
    sequence: str
    description: str = ""


def read_fasta(path: Source, *, encoding: str = "utf-8") -> list[FastaRecord]:
    """Read all sequences of a FASTA file.

    Parameters
    ----------
    path : str or path-like
        File to read; ``.gz``, ``.xz`` and ``.bz2`` are decompressed. Lines that begin with ``;`` or
        ``#`` are comments.
    encoding : str, default="utf-8"
        Text encoding.

    Returns
    -------
    list of FastaRecord

    Raises
    ------
    ValueError
        Letters before the first name, a name without letters, a character that is neither letter
        nor gap, or a file without sequences; the message names file and line.
    """
    groups = read_fasta_groups(path, encoding=encoding)
    if not groups:
        raise ValueError(f"{path}: no sequences found, expected '>' and a name before each")
    return [record for _, records in groups for record in records]


def read_fasta_groups(
    path: Source, *, encoding: str = "utf-8", keep_empty: bool = False
) -> list[tuple[str, list[FastaRecord]]]:
    """Read a file of several sets of sequences, each below a line that begins with ``#``.

    Parameters
    ----------
    path : str or path-like
        File to read.
    encoding : str, default="utf-8"
        Text encoding.
    keep_empty : bool, default=False
        Keep names without letters, as empty sequences.

    Returns
    -------
    list of (title, records)
        Titles without the ``#``; "" for sequences before the first title. Titles without
        sequences are left out.

    Raises
    ------
    ValueError
        As for `read_fasta`; a file without sequences however is an empty list.
    """
    groups: list[tuple[str, list[FastaRecord]]] = [("", [])]
    header, begun = "", 0  # of the record that is being read
    letters: list[str] = []
    for number, line in read_lines(path, _stripped, encoding=encoding):
        if line[0] in ">#" and begun:
            groups[-1][1].append(_record(path, begun, header, letters, keep_empty))
            begun, letters = 0, []
        if line[0] == "#":
            groups.append((line[1:].strip(), []))
        elif line[0] == ">":
            header, begun = line[1:].strip(), number
            if not header:
                raise ValueError(f"{path}:{number}: expected a name behind '>'")
        elif line[0] != ";":
            if not begun:
                raise ValueError(f"{path}:{number}: expected '>' and a name, found {line:.30}")
            letters.append(_checked_letters(path, number, line))
    if begun:
        groups[-1][1].append(_record(path, begun, header, letters, keep_empty))
    return [(title, records) for title, records in groups if records]


def line_of_record(path: Source, record: int, *, encoding: str = "utf-8") -> int:
    """The line of the name of a sequence, for messages about what is wrong with it."""
    return line_of_item(path, record, lambda line: line.strip().startswith(">"), encoding=encoding)


def _stripped(number: int, line: str) -> tuple[int, str]:
    """A line without blanks around it."""
    return number, line.strip()


def _checked_letters(path: Source, number: int, line: str) -> str:
    """A line of a sequence in upper case, without blanks and the final asterisk of some files."""
    letters = "".join(line.split()).removesuffix("*").upper()
    bad = [c for c in letters if not (c.isalpha() and c.isascii()) and c not in GAPS]
    if bad:
        raise ValueError(f"{path}:{number}: expected letters and gaps, found {bad[0]!r}")
    return letters


def _record(
    path: Source, number: int, header: str, letters: list[str], keep_empty: bool
) -> FastaRecord:
    """A record whose header is on this line."""
    if not any(letters) and not keep_empty:
        raise ValueError(f"{path}:{number}: {header:.30} has no sequence")
    name, _, description = header.partition(" ")
    return FastaRecord(name, "".join(letters), description.strip())


def write_fasta(path: PathLike, records: Iterable[FastaRecord]) -> None:
    """Write sequences to a FASTA file.

    Parameters
    ----------
    path : str or path-like
        File to write, which appears complete or not at all.
    records : iterable of FastaRecord
        What to write.
    """
    with write_text_atomically(path) as stream:
        for name, sequence, description in records:
            stream.write(f">{name} {description}".rstrip() + "\n")
            for start in range(0, len(sequence), _LINE_LENGTH):
                stream.write(sequence[start : start + _LINE_LENGTH] + "\n")


def pairs_of_rows(row_x: str, row_y: str) -> tuple[str, str, Ints]:
    """Strings and paired positions of two rows of an alignment.

    Parameters
    ----------
    row_x, row_y : str
        Rows of equal length; ``-`` and ``.`` are gaps.

    Returns
    -------
    x, y : str
        The rows without gaps.
    pairs : ndarray of int64, shape (n_pairs, 2)
        Positions in x and y of the letters that share a column.

    Examples
    --------
    >>> pairs_of_rows("AC-G", "-CTG")[2].tolist()
    [[1, 0], [2, 2]]
    """
    if len(row_x) != len(row_y):
        raise ValueError(
            f"rows of an alignment must be equally long, got {len(row_x)} and {len(row_y)} columns"
        )
    filled = np.array([[c not in GAPS for c in row] for row in (row_x, row_y)], dtype=bool)
    columns = np.flatnonzero(filled.all(axis=0)) if filled.size else np.empty(0, np.int64)
    places = np.cumsum(filled, axis=1) - 1
    x, y = ("".join(c for c in row if c not in GAPS) for row in (row_x, row_y))
    return x, y, places[:, columns].T.astype(np.int64).reshape(-1, 2)


def gapped_rows(x: str, y: str, pairs: ArrayLike) -> tuple[str, str]:
    """Rows of equal length that show an alignment; the inverse of `pairs_of_rows`.

    Parameters
    ----------
    x, y : str
        Strings.
    pairs : array of int, shape (n_pairs, 2)
        Paired positions, rising.

    Returns
    -------
    row_x, row_y : str
        Unpaired letters of x stand before those of y.

    Examples
    --------
    >>> gapped_rows("ACG", "CTG", [[1, 0], [2, 2]])
    ('AC-G', '-CTG')
    """
    rows: tuple[list[str], list[str]] = ([], [])
    i = j = 0
    for next_i, next_j in [*np.asarray(pairs, dtype=np.int64).reshape(-1, 2), (len(x), len(y))]:
        rows[0].append(x[i:next_i] + "-" * (next_j - j))
        rows[1].append("-" * (next_i - i) + y[j:next_j])
        if next_i < len(x):
            rows[0].append(x[next_i])
            rows[1].append(y[next_j])
        i, j = next_i + 1, next_j + 1
    return "".join(rows[0]), "".join(rows[1])
