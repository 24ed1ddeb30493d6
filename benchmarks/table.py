"""Findings as a table of text."""

from __future__ import annotations

from collections.abc import Iterable

from .runner import CaseReport, Finding

HEADINGS = ("what", "ours", "reference", "must", "ok?")
SIGNS = {True: "yes", False: "NO", None: "-"}


def table(reports: Iterable[CaseReport]) -> str:
    """All findings, grouped by case."""
    reports = list(reports)
    rows = {report.name: [_cells(finding) for finding in report.findings] for report in reports}
    lines = [HEADINGS, *(cells for group in rows.values() for cells in group)]
    widths = [max(len(cells[column]) for cells in lines) for column in range(len(HEADINGS))]

    def line(cells: tuple[str, ...]) -> str:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        return " | ".join(padded).rstrip()

    text = [line(HEADINGS), "-+-".join("-" * width for width in widths)]
    for name, group in rows.items():
        text += [f"* {name}", *map(line, group)]
    return "\n".join(text)


def _cells(finding: Finding) -> tuple[str, ...]:
    """One row."""
    target = finding.target
    value = f"{finding.value:.4g} {target.unit}".strip()
    value += "" if finding.converged else " (stopped)"
    return (f"  {target.what}", value, target.reference, target.must, SIGNS[finding.ok])
