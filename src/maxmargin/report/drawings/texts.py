"""Words and labels in drawings that have one in each line."""

from __future__ import annotations

from html import escape
from unicodedata import east_asian_width

__all__ = ["LINE", "short", "text", "width_of"]

LETTER, LINE = 7.5, 19.0  # about the width of a letter, and the height of a line
LONGEST = 40  # letters of a word or label that are shown


def text(x: float, y: float, shown: str, color: str, anchor: str = "start", style: str = "") -> str:
    """A word or a label; ``anchor`` is the part of it that is at x."""
    if not shown:
        return ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
        f'style="fill:var({color});{style}">{escape(shown)}</text>'
    )


def width_of(shown: str) -> float:
    """About how wide a text is."""
    return LETTER * sum(1.6 if east_asian_width(letter) in "WF" else 1.0 for letter in shown)


def short(given: str) -> str:
    """A text that leaves room for others."""
    given = str(given)
    return given if len(given) <= LONGEST else f"{given[: LONGEST - 1]}…"
