"""What alignments are scored by: pairs of letters, and gaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..problems.alignment.kernels import Scoring
from ..types import Ints
from .explanation import Part

__all__ = ["alignment_parts", "rows_of_alignment"]

LONGEST = 60  # letters of a row that are shown


def alignment_parts(
    codes: Any, other_codes: Any, pairs: Ints, scoring: Scoring, first: Any, second: Any
) -> Iterator[Part]:
    """Pairs and gaps of an alignment by their places in the first sequence; see `kernels`."""
    last, ends = (-1, -1), 2  # the first gap is an end
    for i, j in [*pairs.tolist(), (len(first), len(second))]:
        is_end = i == len(first)
        for gap, which in ((i - last[0] - 1, "second"), (j - last[1] - 1, "first")):
            yield from _gap(gap, which, i, 2 if is_end else ends, scoring)
        if not is_end:
            weight = float(scoring.substitution[codes[i], other_codes[j]])
            yield f"pair {first[i]} {second[j]}", i, weight
        last, ends = (i, j), 0


def _gap(length: int, which: str, place: int, ends: int, scoring: Scoring) -> Iterator[Part]:
    """A gap in one of the sequences, of so many letters of the other one."""
    kind = f"{'end ' if ends else ''}gap in the {which} sequence"
    if length and scoring.gap_feature[ends] >= 0:
        yield f"{kind}, opened", place, float(scoring.gaps[ends])
    if length and scoring.gap_feature[ends + 1] >= 0:
        for _ in range(length):
            yield f"{kind}, letters", place, float(scoring.gaps[ends + 1])


def rows_of_alignment(first: Sequence[Any], second: Sequence[Any], pairs: Ints) -> str:
    """An alignment as two rows with gaps, the ends that are not shown left out."""
    rows: tuple[list[str], list[str]] = ([], [])
    at = (0, 0)
    for i, j in [*pairs.tolist(), (len(first), len(second))]:
        alone = [*first[at[0] : i]], [*second[at[1] : j]]
        rows[0].extend([*map(str, alone[0]), *["-"] * len(alone[1])])
        rows[1].extend([*["-"] * len(alone[0]), *map(str, alone[1])])
        if i < len(first):
            rows[0].append(str(first[i]))
            rows[1].append(str(second[j]))
        at = (i + 1, j + 1)
    return " / ".join(
        "".join(row[:LONGEST]) + ("..." if len(row) > LONGEST else "") for row in rows
    )
