"""Relative gap against CPU time and oracle passes, one row of axes per case."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .case import Point
from .runner import CaseReport

COLOURS = ("#2f6fb0", "#d9822b", "#3a9a5b", "#a5484f", "#7a5aa6", "#8a8f98")


def plot(reports: Sequence[CaseReport], path: Path) -> bool:
    """Write the picture; False if there is no curve to draw."""
    drawn = [report for report in reports if any(report.curves.values())]
    if not drawn:
        return False
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.2 * len(drawn)), dpi=120, layout="constrained")
    labels = list(dict.fromkeys(label for report in drawn for label in report.runs))
    colours = {label: COLOURS[k % len(COLOURS)] for k, label in enumerate(labels)}
    rows = figure.subplots(len(drawn), 2, squeeze=False)
    for report, (left, right) in zip(drawn, rows, strict=True):
        for label, curve in report.curves.items():
            _draw(left, [(p.cpu, p) for p in curve], label, colours[label])
            _draw(right, [(p.passes, p) for p in curve], label, colours[label])
        left.set_title(report.name, fontsize=10, loc="left")
        left.set_xlabel("CPU seconds")
        right.set_xlabel("oracle calls per example")
        left.set_ylabel("relative gap")
        for axes in (left, right):
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.xaxis.set_minor_formatter("")  # labels of minor ticks run into each other
            axes.grid(True, color="#e6e8eb")
            axes.spines[["top", "right"]].set_visible(False)
        left.legend(frameon=False, fontsize=8)
    figure.supxlabel("dots: certified gaps; lines: estimates on the way", fontsize=8)
    figure.savefig(path)
    return True


def _draw(axes: Any, points: list[tuple[float, Point]], label: str, colour: str) -> None:
    """A line through all points that have an abscissa, dots at the certified ones."""
    points = [(x, p) for x, p in points if x == x and p.relative_gap > 0]
    certified = [(x, p) for x, p in points if p.certified]
    if not points:
        return
    axes.plot(*_coordinates(points), color=colour, linewidth=1.5, label=label)
    axes.plot(*_coordinates(certified), "o", color=colour, markersize=5)


def _coordinates(points: list[tuple[float, Point]]) -> tuple[list[float], list[float]]:
    """Abscissae and ordinates."""
    return [x for x, _ in points], [point.relative_gap for _, point in points]
