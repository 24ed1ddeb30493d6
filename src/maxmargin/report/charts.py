"""Small charts as SVG, in the colours of the page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Literal, NamedTuple

import numpy as np

__all__ = ["Line", "line_chart", "reliability_diagram"]

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
