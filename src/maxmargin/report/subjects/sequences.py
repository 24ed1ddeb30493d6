"""Tagged sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...metrics import hamming
from ...metrics.tallies import tally_of_tags
from ..drawings import tagged_sentence
from .inputs import sequence_at, words_of
from .subject import Labels, Subject, confidences_of, known_labels, worst_first

__all__ = ["describe"]


def describe(estimator: Any, X: Any, y: Any) -> Subject:
    """Labels of all tokens."""
    found = estimator.predict(X)
    true = known_labels(y)
    wrong = hamming(true, found)
    flat_true = [label for own in true for label in own]
    flat_found = [label for own in found for label in own]
    units = np.repeat(np.arange(len(true)), [len(own) for own in true])
    confidences = confidences_of(estimator, X, flat_true, flat_found)
    starts = np.concatenate([[0], np.cumsum([len(own) for own in true])])

    def draw(i: int) -> tuple[str, str]:
        sure = None if confidences is None else confidences[0][starts[i] : starts[i + 1]]
        words = words_of(sequence_at(X, i))
        title = f"sequence {i}: {int(wrong[i])} of {len(true[i])} labels wrong"
        return title, tagged_sentence(words, true[i], found[i], sure)

    return Subject(
        tally_of_tags(true, found, {*flat_true, *flat_found}),
        worst_first(wrong, draw),
        Labels(flat_true, flat_found, units),
        confidences,
        asked=lambda i: (sequence_at(X, i), true[i]),
    )
