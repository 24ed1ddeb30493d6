"""Two classes, one of them positive."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from ...metrics.tallies import tally_of_positives
from .inputs import row_in_words
from .subject import Errors, Labels, Subject, count_labels

__all__ = ["describe"]


def describe(estimator: Any, X: Any, y: Any) -> Subject:
    """Rows by their scores; those far on the wrong side come first."""
    true, found = np.asarray(y).tolist(), estimator.predict(X).tolist()
    negative, positive = estimator.classes_.tolist()
    for i, label in enumerate(true):
        if label not in (negative, positive):
            raise ValueError(
                f"y[{i}] is {label!r:.40}, which is none of the classes {[negative, positive]}"
            )
    scores = np.asarray(estimator.decision_function(X), np.float64)
    is_positive = np.array([label == positive for label in true])
    is_found = np.array([label == positive for label in found])
    rows = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    names = getattr(estimator, "feature_names_in_", None)

    def draw(i: int) -> tuple[str, str]:
        title = f"row {i}: {found[i]} (score {scores[i]:.4g}), but it is {true[i]}"
        return title, f"<p>{escape(row_in_words(rows[i], names))}</p>"

    return Subject(
        tally_of_positives(is_positive, is_found),
        Errors(is_positive != is_found, None, lambda: np.abs(scores)),
        draw,
        [count_labels("Labels", true, found, lambda label: [(label,)])],
        Labels(true, found),
        asked=lambda i: (rows[i : i + 1], true[i]),
    )
