"""Tagged sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...metrics import are_chunk_tags, hamming, tags_to_segments
from ...metrics.tallies import tally_of_tags
from ..drawings import tagged_sentence
from .inputs import sequence_at, words_of
from .subject import (
    Errors,
    Labels,
    Subject,
    confidences_of,
    count_labels,
    known_labels,
    score_gaps,
)

__all__ = ["describe"]

RIGHT = "A chunk is right if its ends and its type are."


def describe(estimator: Any, X: Any, y: Any) -> Subject:
    """Labels of all tokens."""
    found = estimator.predict(X)
    true = known_labels(y)
    wrong = hamming(true, found)
    flat_true = [label for own in true for label in own]
    flat_found = [label for own in found for label in own]
    lengths = [len(own) for own in true]
    by_label = [count_labels("Labels", true, found, enumerate)]
    if are_chunk_tags({*flat_true, *flat_found}):
        spans = tags_to_segments(true), tags_to_segments(found)
        by_label.insert(0, count_labels("Chunks", *spans, note=RIGHT))
    confidences = confidences_of(estimator, X, flat_true, flat_found)
    starts = np.concatenate([[0], np.cumsum(lengths)])

    def margins() -> Any:
        known = set(estimator.classes_.tolist())
        return score_gaps(estimator, X, true, found, lambda own: {*own} <= known)

    def draw(i: int) -> tuple[str, str]:
        sure = None if confidences is None else confidences[0][starts[i] : starts[i + 1]]
        words = words_of(sequence_at(X, i))
        title = f"sequence {i}: {int(wrong[i])} of {lengths[i]} labels wrong"
        return title, tagged_sentence(words, true[i], found[i], sure)

    return Subject(
        tally_of_tags(true, found, {*flat_true, *flat_found}),
        Errors(wrong, lengths, margins),
        draw,
        by_label,
        Labels(flat_true, flat_found),
        confidences,
        asked=lambda i: (sequence_at(X, i), true[i]),
    )
