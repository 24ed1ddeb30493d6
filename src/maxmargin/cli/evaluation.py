"""Scores as reports: for programs, and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..metrics.tallies import Tally

__all__ = ["Evaluation", "as_json", "confusions", "count_unknown", "error_lines"]

N_CONFUSIONS = 10  # most frequent confusions to list
N_UNKNOWN = 10  # unknown labels to list


class Evaluation(NamedTuple):
    """Scores that can be written as JSON, and as text; and what they are made of, unit by unit."""

    report: dict[str, Any]
    text: str
    tally: Tally | None = None


def as_json(each: dict[Any, Any]) -> dict[str, dict[str, Any]]:
    """Scores of labels or types as they can be written to JSON."""
    return {str(name): scores._asdict() for name, scores in each.items()}


def count_unknown(gold: Iterable[Any], known: set[Any]) -> dict[str, int]:
    """How often there are labels that the model does not know."""
    return dict(Counter(str(y) for y in gold if y not in known))


def confusions(gold: list[Any], predicted: list[Any]) -> list[dict[str, Any]]:
    """The most frequent errors."""
    counts = Counter((a, b) for a, b in zip(gold, predicted, strict=True) if a != b)
    return [
        {"true": a, "predicted": b, "count": count}
        for (a, b), count in counts.most_common(N_CONFUSIONS)
    ]


def error_lines(report: dict[str, Any]) -> list[str]:
    """The confusions and unknown labels of a report, for people."""
    lines = []
    if report["confusions"]:
        lines += ["", "most frequent errors (true, predicted, number)"]
        for item in report["confusions"]:
            lines.append(f"  {item['true']!s:<12}{item['predicted']!s:<12}{item['count']:>8}")
    unknown = Counter(report["unknown_labels"])
    for label, count in unknown.most_common(N_UNKNOWN):
        lines.append(f"label {label!r} is unknown to the model: {count} counted as wrong")
    if len(unknown) > N_UNKNOWN:
        rest = sum(unknown.values()) - sum(n for _, n in unknown.most_common(N_UNKNOWN))
        lines.append(f"{len(unknown) - N_UNKNOWN} more labels are unknown: {rest} counted as wrong")
    return lines
