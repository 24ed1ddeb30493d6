"""Segments of sequences."""

from __future__ import annotations

from typing import Any

from ...metrics import segments_to_tags
from ...metrics.tallies import tally_of_segments
from ..drawings import tagged_sentence
from .inputs import sequence_at, words_of
from .subject import Errors, Subject, count_labels

__all__ = ["describe"]

RIGHT = "A segment is right if its ends and its label are."


def describe(estimator: Any, X: Any, y: Any) -> Subject:
    """Segments, drawn as the tags that they are."""
    found = estimator.predict(X)
    true = [[tuple(segment) for segment in own] for own in y]
    errors = [len(set(a) ^ set(b)) for a, b in zip(true, found, strict=True)]
    sizes = [len(a) + len(b) for a, b in zip(true, found, strict=True)]

    def draw(i: int) -> tuple[str, str]:
        words = words_of(sequence_at(X, i))
        tags, guesses = segments_to_tags([true[i], found[i]], [len(words)] * 2)
        missed, extra = len(set(true[i]) - set(found[i])), len(set(found[i]) - set(true[i]))
        title = f"sequence {i}: {missed} segments missed, {extra} false"
        return title, tagged_sentence(words, tags, guesses)

    return Subject(
        tally_of_segments(true, found),
        Errors(errors, sizes),
        draw,
        [count_labels("Segments", true, found, note=RIGHT)],
        asked=lambda i: (sequence_at(X, i), true[i]),
    )
