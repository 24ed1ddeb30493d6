r"""CRFsuite's data files: a label and its attributes on each line, with tabs between them.

    B-NP    w[0]=An    w[1]=A.P.    length:2
    I-NP    w[0]=A.P.  time=10\:30

An attribute may have a value behind a colon, 1 otherwise. In names ``\:`` is a colon and ``\\`` a
backslash. A blank line ends a sequence.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np

from ..utils.types import Ints
from .opening import BadLine, Source, read_blocks

__all__ = ["CrfsuiteData", "read_crfsuite"]

_ESCAPED = re.compile(r"\\([:\\])")
# A name with its escapes, and what is behind the first colon that is not escaped.
_FIELD = re.compile(r"(?P<name>(?:\\[:\\]|[^:])*)(?::(?P<value>.*))?", re.DOTALL)


class CrfsuiteData(NamedTuple):
    """Content of a file, sequence by sequence.

    Attributes
    ----------
    X : list of list of dict
        Attributes of each token, ``{name: value}``.
    y : list of list of str
        Labels.
    source : str or None
        Name of the file.
    lines : ndarray of int64 or None
        Line of each token in that file, from 1.
    """

    X: list[list[dict[str, float]]]
    y: list[list[str]]
    source: str | None = None
    lines: Ints | None = None

    @property
    def offsets(self) -> Ints:
        """Tokens of sequence i are ``offsets[i]:offsets[i + 1]``."""
        return np.cumsum([0, *map(len, self.y)], dtype=np.int64)

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return len(self.y)

    @property
    def n_tokens(self) -> int:
        """Number of tokens in all sequences."""
        return sum(map(len, self.y))


def read_crfsuite(path: Source, *, encoding: str = "utf-8") -> CrfsuiteData:
    """Read a data file of CRFsuite, plain or compressed (``.gz``, ``.xz``, ``.bz2``).

    Parameters
    ----------
    path : str or path-like
        File to read.
    encoding : str, default="utf-8"
        Text encoding.

    Returns
    -------
    CrfsuiteData
        ``X`` and ``y`` as `SequenceTagger` takes them. Values of an attribute that stands on a
        line more than once add up, as CRFsuite counts them.

    Raises
    ------
    ValueError
        A line without a label, a value that is not a finite number, a file without tokens, or one
        of CoNLL columns, without tabs; the message names file and line.
    """
    blocks = list(
        read_blocks(path, lambda block: [_token(*line) for line in block], encoding=encoding)
    )
    if not blocks:
        raise ValueError(f"{path}: no tokens found, expected a label and attributes on each line")
    tokens = [token for block in blocks for token in block]
    if any(" " in label for _, label, _ in tokens) and not any(found for *_, found in tokens):
        raise ValueError(
            f"{path}: no line has a tab, expected a label and attributes, with tabs between them; "
            "for CoNLL columns use 'maxmargin train tag', and a model that it trained on columns"
        )
    return CrfsuiteData(
        [[attributes for _, _, attributes in block] for block in blocks],
        [[label for _, label, _ in block] for block in blocks],
        str(path),
        np.array([number for block in blocks for number, _, _ in block], dtype=np.int64),
    )


def _token(number: int, line: str) -> tuple[int, str, dict[str, float]]:
    """The number of a line, its label and its attributes."""
    label, *fields = line.split("\t")
    try:
        return number, _label(label), _attributes(fields)
    except BadLine as error:
        raise BadLine(str(error), number) from None


def _label(field: str) -> str:
    """The label of a line; CRFsuite reads no more than what is before a colon."""
    name, _ = _split(field)
    if not name:
        raise BadLine("expected a label first, then attributes, with tabs between them")
    return name


def _attributes(fields: list[str]) -> dict[str, float]:
    """Names and values of the attributes of a line."""
    found: dict[str, float] = {}
    for field in fields:
        if field:
            name, value = _split(field)
            found[name] = found.get(name, 0.0) + value
    return found


def _split(field: str) -> tuple[str, float]:
    """Name and value of an attribute."""
    if ":" not in field and "\\" not in field:
        return field, 1.0
    match = _FIELD.fullmatch(field)
    assert match is not None  # anything matches
    name = _ESCAPED.sub(r"\1", match["name"])
    if not match["value"]:  # CRFsuite takes nothing for 1
        return name, 1.0
    try:
        value = float(match["value"])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BadLine(
            f"expected NAME:NUMBER, found {field!r:.60}; a colon in a name is written \\:"
        )
    return name, value
