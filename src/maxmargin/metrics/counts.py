"""Precision, recall and F1 from counts, their averages, and how they are printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..tables import columns, percent

__all__ = ["Averages", "TypeScores", "macro_average", "score_table", "scores_of"]


class Averages(NamedTuple):
    """Precision, recall and F1 over several types or labels."""

    precision: float
    recall: float
    f1: float


class TypeScores(NamedTuple):
    """Scores of the chunks of one type, or of one label."""

    precision: float
    recall: float
    f1: float
    n_true: int
    n_predicted: int
    n_correct: int


def scores_of(n_true: int, n_predicted: int, n_correct: int) -> TypeScores:
    """Precision, recall and F1 from counts; 0 where there is nothing to divide by."""
    precision = n_correct / n_predicted if n_predicted else 0.0
    recall = n_correct / n_true if n_true else 0.0
    f1 = 2 * n_correct / (n_true + n_predicted) if n_correct else 0.0
    return TypeScores(precision, recall, f1, n_true, n_predicted, n_correct)


def macro_average(each: Mapping[Any, TypeScores]) -> Averages:
    """Plain means, in which all types or labels count the same."""
    n = max(len(each), 1)
    return Averages(*(sum(scores[k] for scores in each.values()) / n for k in range(3)))


def score_table(title: str, each: Mapping[Any, TypeScores], micro: Averages) -> str:
    """A row for each type or label, then the averages; shares in per cent."""
    number = sum(scores.n_true for scores in each.values())
    rows = [(str(name), scores[:3], scores.n_true) for name, scores in each.items()]
    rows += [("micro average", micro, number), ("macro average", macro_average(each), number)]
    heading = (title, "precision", "recall", "F1", "number")
    return columns([heading, *((name, *map(percent, s), str(n)) for name, s, n in rows)])
