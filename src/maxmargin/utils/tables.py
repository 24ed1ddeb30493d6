"""Small tables of text, as results and scores print themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = [
    "columns",
    "gap_fraction",
    "is_fraction",
    "named_score",
    "named_values",
    "percent",
    "score_name",
    "score_text",
]

_NAMES = {"f1": "F1", "las": "LAS", "uas": "UAS", "map": "MAP"}
_UNITS = ("mean_absolute_error", "mean_distance", "mean_loss")  # scores that are no fractions


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


def percent(fraction: float) -> str:
    """A fraction in per cent, as scores are printed everywhere."""
    return f"{100.0 * fraction:.2f}"


def is_fraction(name: str) -> bool:
    """Whether the score of this name is a fraction; errors are counted in units of their own."""
    return name not in _UNITS


def score_text(name: str, score: float) -> str:
    """A score as it is printed: fractions in per cent, errors as they are."""
    return percent(score) if is_fraction(name) else f"{score:.4f}"


def score_name(name: str) -> str:
    """A score as it is called in text."""
    return _NAMES.get(name, name.replace("_", " ").replace("ndcg", "NDCG"))


def named_score(name: str, score: float) -> str:
    """A score with its name, for a line of text."""
    return f"{score_name(name)} {score_text(name, score)}{' %' if is_fraction(name) else ''}"


def gap_fraction(relative_gap: float) -> str:
    """A gap as a fraction of the objective; rounding may have put it below 0."""
    return f"{100.0 * max(relative_gap, 0.0):.3g} %"
