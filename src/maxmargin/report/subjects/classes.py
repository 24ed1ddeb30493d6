"""Classes, and grades, of rows."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from ...metrics.sequences import check_labels
from ...metrics.tallies import tally_of_grades, tally_of_labels
from .inputs import row_in_words
from .subject import Labels, Subject, confidences_of, worst_first

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
    return Subject(
        tally,
        worst_first(wrong * _by_how_much(estimator, X, true, classes), draw),
        Labels(true, found, np.arange(len(true))),
        confidences,
        order,
        lambda i: (rows[i : i + 1], true[i]),
    )


def _by_how_much(estimator: Any, X: Any, true: list[Any], classes: list[Any]) -> Any:
    """How far the scores of other classes are above that of the right one, or grades off."""
    place = {label: k for k, label in enumerate(classes)}
    right = np.array([place.get(label, -1) for label in true])
    if hasattr(estimator, "thresholds_"):
        found = np.array([place[label] for label in estimator.predict(X).tolist()])
        return np.abs(found - right).astype(np.float64)
    scores = np.asarray(estimator.decision_function(X), np.float64)
    if scores.ndim == 1:  # two classes: how far above the second one is
        scores = np.column_stack([-scores, scores])
    known = np.where(right >= 0, scores[np.arange(len(right)), right], scores.min(axis=1))
    return 1e-12 + scores.max(axis=1) - known
