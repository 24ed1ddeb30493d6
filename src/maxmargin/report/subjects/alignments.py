"""Alignments of two sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...metrics import pair_accuracies
from ...metrics.tallies import tally_of_alignments, tally_of_labels
from ..drawings import alignment
from .subject import Subject, worst_first

__all__ = ["describe"]


def describe(estimator: Any, X: Any, y: Any) -> Subject:
    """Aligned pairs of letters; of models that choose among candidates, which were right."""
    found = estimator.predict(X)
    if estimator.task != "align":
        return Subject(tally_of_labels(np.asarray(y).tolist(), np.asarray(found).tolist()), [])
    true = [_pairs(own) for own in y]
    missed = 1.0 - pair_accuracies(true, found)

    def draw(i: int) -> tuple[str, str]:
        title = f"pair {i}: {missed[i]:.1%} of the true pairs missed"
        return title, alignment(X[i][0], X[i][1], found[i], true[i])

    return Subject(tally_of_alignments(true, found), worst_first(missed, draw))


def _pairs(given: Any) -> Any:
    """Aligned positions; two rows with gaps are taken apart."""
    if isinstance(given, (tuple, list)) and len(given) == 2 and isinstance(given[0], str):
        places, pairs = [0, 0], []
        for a, b in zip(*given, strict=True):
            if a != "-" and b != "-":
                pairs.append(tuple(places))
            places = [places[0] + (a != "-"), places[1] + (b != "-")]
        return np.array(pairs, np.int64).reshape(-1, 2)
    return np.asarray(given, np.int64).reshape(-1, 2)
