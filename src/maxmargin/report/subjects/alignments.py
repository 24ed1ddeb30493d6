"""Alignments of two sequences."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from ...estimators.alignment_data import as_pairs
from ...metrics.alignments import pair_counts
from ...metrics.tallies import tally_of_alignments, tally_of_labels
from ..drawings import alignment
from .subject import Errors, Subject

__all__ = ["describe"]

LONGEST = 500  # letters of a sequence that are shown


def describe(estimator: Any, X: Any, y: Any) -> Subject:
    """Aligned pairs of letters; of models that choose among candidates, which were right."""
    found = estimator.predict(X)
    if estimator.task != "align":
        return _of_candidates(X, y, found)
    true = [as_pairs(own, x[0], x[1], i) for i, (x, own) in enumerate(zip(X, y, strict=True))]
    n_true, _, n_right = pair_counts(true, found).T
    missed = n_true - n_right

    def draw(i: int) -> tuple[str, str]:
        title = f"pair {i}: {missed[i]:.0f} of {n_true[i]:.0f} pairs missed"
        return title, alignment(X[i][0], X[i][1], found[i], true[i])

    return Subject(
        tally_of_alignments(true, found),
        Errors(missed, n_true),
        draw,
        asked=lambda i: (X[i], true[i]),
    )


def _of_candidates(X: Any, y: Any, found: Any) -> Subject:
    """Which candidates are the homologues; y may also have their alignments."""
    true = [int(own[0] if isinstance(own, (tuple, list)) else own) for own in y]
    numbers = np.asarray(found).tolist()

    def draw(i: int) -> tuple[str, str]:
        native, candidates = X[i]
        rows = [
            ("native", native),
            ("found", candidates[numbers[i]]),
            ("true", candidates[true[i]]),
        ]
        lines = "\n".join(f"{name:7}{''.join(map(str, row)):.{LONGEST}}" for name, row in rows)
        title = f"example {i}: candidate {numbers[i]}, but it is {true[i]}"
        return title, f'<div class="pair wrapped">{escape(lines)}</div>'

    wrong = [float(a != b) for a, b in zip(true, numbers, strict=True)]
    return Subject(
        tally_of_labels(true, numbers), Errors(wrong), draw, asked=lambda i: (X[i], true[i])
    )
