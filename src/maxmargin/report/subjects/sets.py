"""Sets of labels."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from ...metrics.sets import as_indicators
from ...metrics.tallies import tally_of_sets
from .inputs import row_in_words
from .subject import Errors, Subject, count_labels

__all__ = ["describe"]


def describe(estimator: Any, X: Any, y: Any) -> Subject:
    """The labels of each row."""
    predicted = estimator.predict(X)
    indicators = as_indicators(y, predicted.shape[0])
    if indicators.shape != predicted.shape:
        raise ValueError(f"y has {indicators.shape[1]} labels, the model {predicted.shape[1]}")
    predicted = predicted.toarray() if hasattr(predicted, "toarray") else np.asarray(predicted)
    true, found = (
        [np.flatnonzero(row).tolist() for row in table] for table in (indicators, predicted)
    )
    rows = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    names = getattr(estimator, "feature_names_in_", None)

    def draw(i: int) -> tuple[str, str]:
        missed, extra = sorted({*true[i]} - {*found[i]}), sorted({*found[i]} - {*true[i]})
        title = f"example {i}: {len(missed)} labels missed, {len(extra)} false"
        kept = sorted({*true[i]} & {*found[i]})
        labels = (
            f"right {kept or '-'}; missed <span class='bad'>{missed or '-'}</span>; "
            f"false <span class='bad'>{extra or '-'}</span>"
        )
        return title, f"<p>{labels}</p><p>{escape(row_in_words(rows[i], names))}</p>"

    errors = [len({*a} ^ {*b}) for a, b in zip(true, found, strict=True)]
    return Subject(
        tally_of_sets(true, found, indicators.shape[1]),
        Errors(errors, [len({*a} | {*b}) for a, b in zip(true, found, strict=True)]),
        draw,
        [count_labels("Labels", true, found, lambda own: [(k,) for k in own])],
        asked=lambda i: (rows[i : i + 1], indicators[i]),
    )
