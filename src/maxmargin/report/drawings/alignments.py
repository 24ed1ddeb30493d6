"""Alignments: two rows of letters, lines between those that are aligned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

__all__ = ["alignment"]

COLUMNS = 90  # of a block


def alignment(
    first: Sequence[Any],
    second: Sequence[Any],
    found: Iterable[Sequence[int]],
    truth: Iterable[Sequence[int]],
) -> str:
    """Letters in columns as found; pairs that the true alignment has are green, others red."""
    pairs, true = [tuple(map(int, p)) for p in found], {tuple(map(int, p)) for p in truth}
    rows: list[list[str]] = [[], [], []]
    i = j = 0
    for a, b in [*pairs, (len(first), len(second))]:
        for k in range(i, a):
            _column(rows, _letter(first[k]), " ", "-")
        for k in range(j, b):
            _column(rows, "-", " ", _letter(second[k]))
        if a < len(first) and b < len(second):
            kind = "good" if (a, b) in true else "bad"
            _column(rows, _letter(first[a]), f'<span class="{kind}">|</span>', _letter(second[b]))
        i, j = a + 1, b + 1
    missed = len(true - set(pairs))
    blocks = (
        "\n".join("".join(row[start : start + COLUMNS]) for row in rows)
        for start in range(0, max(len(rows[0]), 1), COLUMNS)
    )
    lines = "\n\n".join(blocks)
    return f'<div class="scroll pair">{lines}</div><p class="muted">{missed} true pairs missed</p>'


def _letter(letter: Any) -> str:
    """A letter as it is shown."""
    return escape(str(letter))


def _column(rows: list[list[str]], *cells: str) -> None:
    """Write one column."""
    for row, cell in zip(rows, cells, strict=True):
        row.append(cell)
