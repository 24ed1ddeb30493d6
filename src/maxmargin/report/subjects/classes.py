"""Classes, and grades, of rows."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from ...metrics.sequences import check_labels
from ...metrics.tallies import tally_of_grades, tally_of_labels
from .inputs import row_in_words
from .subject import Errors, Labels, Subject, confidences_of, count_labels

__all__ = ["describe"]


def describe(estimator: Any, X: Any, y: Any) -> Subject:
    """One label for each row; examples that are wrong by far come first."""
    true, found = np.asarray(y, object).tolist(), estimator.predict(X).tolist()
    rows = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    names = getattr(estimator, "feature_names_in_", None)
    classes = np.asarray(estimator.classes_).tolist()
    order = classes if hasattr(estimator, "thresholds_") else None
    tally = tally_of_labels(true, found) if order is None else tally_of_grades(true, found, order)
    check_labels(true, found, lambda i: f"example {i}")
    wrong = np.array([a != b for a, b in zip(true, found, strict=True)], np.float64)

    def draw(i: int) -> tuple[str, str]:
        title = f"example {i}: {found[i]}, but it is {true[i]}"
        return title, f"<p>{escape(row_in_words(rows[i], names))}</p>"

    confidences = confidences_of(estimator, X, true, found)
    margins = None if order else lambda: _margins(estimator, X, true, classes)
    return Subject(
        tally,
        Errors(wrong * _grades_off(true, found, order), None, margins),
        draw,
        [count_labels("Labels", true, found, lambda label: [(label,)])],
        Labels(true, found),
        confidences,
        order,
        lambda i: (rows[i : i + 1], true[i]),
    )


def _grades_off(true: list[Any], found: list[Any], order: list[Any] | None) -> Any:
    """How far apart two grades are; 1 for classes without an order."""
    if order is None:
        return 1.0
    place = {grade: k for k, grade in enumerate(order)}
    return np.array([abs(place[a] - place[b]) for a, b in zip(true, found, strict=True)])


def _margins(estimator: Any, X: Any, true: list[Any], classes: list[Any]) -> Any:
    """How far the best score is above that of the right class; NaN for unknown ones."""
    place = {label: k for k, label in enumerate(classes)}
    right = np.array([place.get(label, -1) for label in true])
    scores = np.asarray(estimator.decision_function(X), np.float64)
    if scores.ndim == 1:  # two classes: how far above the second one is
        scores = np.column_stack([-scores, scores])
    known = scores[np.arange(len(right)), right]
    return np.where(right >= 0, scores.max(axis=1) - known, np.nan)
