"""Pages that stand for themselves: one file of HTML, nothing fetched, light and dark.

Text is escaped here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Any, Literal, NamedTuple

import numpy as np

from ..utils.tables import percent
from ..utils.types import Floats

__all__ = [
    "Fraction",
    "Line",
    "Section",
    "articles",
    "bar",
    "both_ways",
    "heat_map",
    "line_chart",
    "named_table",
    "page",
    "reliability_diagram",
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


WIDTH, HEIGHT = 460, 250
LEFT, RIGHT, TOP, BOTTOM = 62, 10, 10, 40
MOST_POINTS = 400


class Line(NamedTuple):
    """A curve: its name, points, and colour; as dots, or joined."""

    name: str
    points: Sequence[tuple[float, float]]
    color: str  # of the page: --blue, --orange, ...
    is_dotted: bool = False


class _Axis(NamedTuple):
    """Where values lie on the page."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool

    def place(self, value: float) -> float:
        value = np.log10(value) if self.is_log else value
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        if self.is_log:
            step = max(1, round((self.high - self.low) / 5))
            powers = range(int(np.ceil(self.low)), int(np.floor(self.high)) + 1, step)
            return [(10.0**power, f"1e{power}") for power in powers]
        raw = (self.high - self.low) / 4
        size = 10.0 ** np.floor(np.log10(raw))
        step = next(m * size for m in (1.0, 2.0, 2.5, 5.0, 10.0) if m * size >= raw)
        first = np.ceil(self.low / step) * step
        found = np.arange(first, self.high + 1e-9 * step, step)
        return [(float(value), f"{value:g}") for value in np.round(found, 12)]


def line_chart(
    lines: Sequence[Line], x: str, y: str, *, scale: Literal["linear", "log"] = "linear"
) -> str:
    """Draw curves with their axes and names; empty if there is nothing to draw."""
    is_log = scale == "log"
    kept = [
        line._replace(points=_thinned([p for p in line.points if p[1] > 0.0 or not is_log]))
        for line in lines
    ]
    kept = [line for line in kept if line.points]
    if not kept:
        return ""
    across = _axis([p[0] for line in kept for p in line.points], LEFT, WIDTH - RIGHT, False)
    up = _axis([p[1] for line in kept for p in line.points], HEIGHT - BOTTOM, TOP, is_log)
    parts = [_frame(across, up, x, y), *(_curve(line, across, up) for line in kept)]
    return _figure(parts, [(line.name, line.color) for line in kept])


def reliability_diagram(bins: Sequence[tuple[float, float, int]], caption: str) -> str:
    """Draw how often labels of a confidence are right: (confidence, share right, number)."""
    if not bins:
        return ""
    across = _Axis(0.0, 1.0, LEFT, WIDTH - RIGHT, False)
    up = _Axis(0.0, 1.0, HEIGHT - BOTTOM, TOP, False)
    largest = max(n for _, _, n in bins)
    diagonal = (
        f'<line x1="{across.place(0)}" y1="{up.place(0)}" x2="{across.place(1)}" '
        f'y2="{up.place(1)}" style="stroke:var(--muted)" stroke-dasharray="4"/>'
    )
    dots = [
        f'<circle cx="{across.place(sure):.1f}" cy="{up.place(right):.1f}" '
        f'r="{2.5 + 6.0 * (n / largest) ** 0.5:.1f}" style="fill:var(--blue)">'
        f"<title>{n:,} of confidence {sure:.3f}: {right:.3f} right</title></circle>"
        for sure, right, n in bins
    ]
    frame = _frame(across, up, "confidence", "share right")
    return _figure([frame, diagonal, *dots], [(caption, "--blue")])


def _axis(values: Sequence[float], start: float, end: float, is_log: bool) -> _Axis:
    """An axis that has room for all values."""
    numbers = np.log10(values) if is_log else np.asarray(values, np.float64)
    low, high = float(numbers.min()), float(numbers.max())
    if high - low < 1e-12 * max(abs(high), 1e-300):
        room = 1.0 if is_log else max(0.5 * abs(high), 1e-12)
        low, high = low - room, high + room
    room = 0.03 * (high - low)
    low = low if low == 0.0 and not is_log else low - room
    return _Axis(low, high + room, start, end, is_log)


def _frame(across: _Axis, up: _Axis, x: str, y: str) -> str:
    """Grid, numbers and names of both axes."""
    parts = []
    for value, text in across.ticks():
        at = f"{across.place(value):.1f}"
        parts.append(
            f'<line class="grid" x1="{at}" x2="{at}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
            f'<text class="soft" x="{at}" y="{HEIGHT - BOTTOM + 15}" text-anchor="middle">'
            f"{text}</text>"
        )
    for value, text in up.ticks():
        place = up.place(value)
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{place:.1f}" '
            f'y2="{place:.1f}"/>'
            f'<text class="soft" x="{LEFT - 6}" y="{place + 4:.1f}" text-anchor="end">{text}</text>'
        )
    middle = 0.5 * (TOP + HEIGHT - BOTTOM)
    parts.append(
        f'<text x="{0.5 * (LEFT + WIDTH)}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x)}</text>'
        f'<text transform="translate(13,{middle}) rotate(-90)" text-anchor="middle">'
        f"{escape(y)}</text>"
    )
    return "".join(parts)


def _curve(line: Line, across: _Axis, up: _Axis) -> str:
    """The points of a line."""
    places = [(across.place(a), up.place(b)) for a, b in line.points]
    if line.is_dotted:
        return "".join(
            f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" style="fill:var({line.color})"/>'
            for a, b in places
        )
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
    return (
        f'<polyline points="{points}" style="stroke:var({line.color})" stroke-width="2" '
        'fill="none"/>'
    )


def _figure(parts: Sequence[str], names: Sequence[tuple[str, str]]) -> str:
    """A drawing with the names of its colours below."""
    legend = " &nbsp; ".join(
        f'<span style="color:var({color})">&#9679;</span> {escape(name)}' for name, color in names
    )
    return (
        f'<figure><svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img">{"".join(parts)}'
        f"</svg><figcaption>{legend}</figcaption></figure>"
    )


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """As many points as a drawing of this size can show."""
    if len(points) <= MOST_POINTS:
        return list(points)
    chosen = np.linspace(0, len(points) - 1, MOST_POINTS).astype(np.int64)
    return [points[k] for k in chosen.tolist()]
