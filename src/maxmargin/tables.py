"""Small tables of text, as results and scores print themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["columns", "named_values", "percent"]


def named_values(rows: Iterable[tuple[str, str]]) -> str:
    """Names and values, one pair to a line, the values below each other."""
    rows = list(rows)
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def columns(rows: Iterable[Sequence[str]]) -> str:
    """Rows of cells; the first column is flush left, the others flush right."""
    rows = list(rows)
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            [row[0].ljust(widths[0])]
            + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        )
        for row in rows
    )


def percent(share: float) -> str:
    """A share in per cent, as scores are printed everywhere."""
    return f"{100.0 * share:.2f}"
