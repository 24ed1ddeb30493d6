"""Pages that stand for themselves: one file of HTML, nothing fetched, light and dark.

Text is escaped here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from ..utils.tables import percent
from ..utils.types import Floats

__all__ = [
    "Fraction",
    "Section",
    "articles",
    "bar",
    "both_ways",
    "heat_map",
    "named_table",
    "page",
    "table",
]


class Section(NamedTuple):
    """A part of a page with a heading of its own; an empty body leaves it out."""

    title: str
    body: str

    @property
    def anchor(self) -> str:
        """Where links lead to."""
        return "-".join("".join(c if c.isalnum() else " " for c in self.title.lower()).split())


def page(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """Return a whole page."""
    shown = [section for section in sections if section.body]
    links = "".join(f'<a href="#{s.anchor}">{escape(s.title)}</a>' for s in shown)
    bodies = "\n".join(
        f'<section id="{s.anchor}"><h2>{escape(s.title)}</h2>\n{s.body}</section>' for s in shown
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>
{_read("page.css")}</style>
</head>
<body>
<header><h1>{escape(title)}</h1><button id="theme" type="button">light / dark</button></header>
<p class="muted">{escape(subtitle)}</p>
<nav>{links}</nav>
<main>
{bodies}
</main>
<script>
{_read("page.js")}</script>
</body>
</html>
"""


def _read(name: str) -> str:
    """A file that lies beside this one."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


SHOWN_AT_FIRST = 10


def named_table(rows: Iterable[tuple[str, Any]]) -> str:
    """Names and values below each other."""
    body = "".join(f"<tr><td>{escape(name)}</td>{_cell(value)}</tr>" for name, value in rows)
    return f'<div class="scroll"><table><tbody>{body}</tbody></table></div>'


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table that readers can sort; numbers are shown short and sorted in full."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table class="sortable"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def heat_map(
    labels: Sequence[str], values: Any, corner: str, *, columns: Sequence[str] | None = None
) -> str:
    """Numbers in a square of labels; blue is positive, orange negative, the darker the larger."""
    numbers: Floats = np.asarray(values, np.float64)
    known = np.abs(numbers[np.isfinite(numbers)])
    largest = float(known.max()) if known.size and known.max() > 0.0 else 1.0
    head = "".join(f"<th>{escape(name)}</th>" for name in columns or labels)
    rows = []
    for name, row in zip(labels, numbers.tolist(), strict=True):
        cells = "".join(_heat_cell(value, largest) for value in row)
        rows.append(f"<tr><th>{escape(name)}</th>{cells}</tr>")
    return (
        f'<div class="scroll"><table class="heat"><thead><tr><th>{escape(corner)}</th>{head}'
        f"</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def bar(shares: Iterable[tuple[str, float, str]]) -> str:
    """A bar of named parts, with their colours; parts are given by their sizes."""
    parts = [part for part in shares if part[1] > 0.0]
    whole = sum(size for _, size, _ in parts) or 1.0
    rects, texts, left = [], [], 0.0
    for name, size, color in parts:
        width = 100.0 * size / whole
        rects.append(
            f'<rect x="{left:.3f}%" width="{width:.3f}%" height="14" style="fill:var({color})"/>'
        )
        texts.append(f'<span style="color:var({color})">&#9632;</span> {escape(name)}')
        left += width
    drawn = f'<svg width="480" height="14" role="img">{"".join(rects)}</svg>'
    return f"<figure>{drawn}<figcaption>{' &nbsp; '.join(texts)}</figcaption></figure>"


def both_ways(title: str, speak_for: Iterable[Any], against: Iterable[Any]) -> str:
    """What has the largest weights, and what the most negative ones: names and weights."""
    parts = [
        f"<div>{table((heading, 'weight'), rows)}</div>"
        for heading, rows in (("for", list(speak_for)), ("against", list(against)))
        if rows
    ]
    return f"<h3>{escape(title)}</h3><div class='columns'>{''.join(parts)}</div>" if parts else ""


def articles(items: Sequence[tuple[str, str]]) -> str:
    """Headings with drawn bodies, of which the first are shown and the others on request."""
    if not items:
        return ""
    drawn = [
        f"<article{' hidden' if k >= SHOWN_AT_FIRST else ''}><h3>{escape(title)}</h3>"
        f"{body}</article>"
        for k, (title, body) in enumerate(items)
    ]
    rest = len(items) - SHOWN_AT_FIRST
    more = f'<button class="more" type="button">{rest} more</button>' if rest > 0 else ""
    return f"<div>{''.join(drawn)}{more}</div>"


def number(value: float) -> str:
    """A number that is short enough for a table."""
    return f"{value:.4g}" if np.isfinite(value) else "-"


class Fraction(float):
    """A fraction, which is shown in per cent."""


def _cell(value: Any) -> str:
    """A cell: text, or a number with all its digits for sorting."""
    if value is None:
        return "<td></td>"
    if isinstance(value, (bool, str)):
        return f"<td>{escape(str(value))}</td>"
    if isinstance(value, (int, np.integer)):
        return f'<td data-value="{value}">{value:,}</td>'
    shown = percent(value) if isinstance(value, Fraction) else number(float(value))
    return f'<td data-value="{float(value)!r}">{shown}</td>'


def _heat_cell(value: float, largest: float) -> str:
    """A cell whose colour tells its size; forbidden pairs are crossed out."""
    if not np.isfinite(value):
        return "<td>&times;</td>"
    color = "--blue" if value >= 0.0 else "--orange"
    strength = round(85.0 * abs(value) / largest)
    shown = number(value) if value else ""
    style = f"background:color-mix(in srgb, var({color}) {strength}%, transparent)"
    return f'<td data-value="{value!r}" style="{style}">{shown}</td>'
