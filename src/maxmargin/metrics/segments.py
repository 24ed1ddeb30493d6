"""Segments (start, stop, label): to and from tags of tokens, and how good predicted ones are."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .chunks import chunks
from .scoring import (
    NAMES,
    Averages,
    TypeScores,
    check_labels,
    listed,
    macro_average,
    paired,
    score_table,
    scores_of,
)

__all__ = [
    "SegmentScores",
    "segment_f1",
    "segment_scores",
    "segments_to_tags",
    "tags_to_segments",
]

Segments = Sequence[tuple[int, int, Any]]


class SegmentScores(NamedTuple):
    """Scores of predicted segments.

    Attributes
    ----------
    precision, recall, f1 : float
        Over the segments of all labels, between 0 and 1; 0 where there is nothing to divide by.
    per_label : dict of label to TypeScores
        The same for each label, with the numbers of segments, sorted by their names.
    """

    precision: float
    recall: float
    f1: float
    per_label: dict[Any, TypeScores]

    @property
    def macro(self) -> Averages:
        """Plain means of the scores of the labels."""
        return macro_average(self.per_label)

    def __str__(self) -> str:
        named = {str(label): scores for label, scores in self.per_label.items()}
        return score_table("segments", named, Averages(*self[:3]))


def segment_scores(y_true: Sequence[Segments], y_pred: Sequence[Segments]) -> SegmentScores:
    """Precision, recall and F1 of segments, which are right if start, stop and label are.

    Parameters
    ----------
    y_true, y_pred : list of lists of (start, stop, label)
        Segments of each sequence.

    Returns
    -------
    SegmentScores

    Examples
    --------
    >>> scores = segment_scores([[(0, 2, "NP"), (2, 3, "VP")]], [[(0, 1, "NP"), (2, 3, "VP")]])
    >>> scores.precision, scores.recall, scores.f1
    (0.5, 0.5, 0.5)
    """
    true, predicted = _as_sets(y_true, y_pred)
    counts = [
        Counter(label for found in listed for _, _, label in found)
        for listed in (true, predicted, [a & b for a, b in zip(true, predicted, strict=True)])
    ]
    per_label = {
        label: scores_of(*(count[label] for count in counts))
        for label in sorted(counts[0] | counts[1], key=str)
    }
    total = scores_of(*(count.total() for count in counts))
    return SegmentScores(total.precision, total.recall, total.f1, per_label)


def segment_f1(
    y_true: Sequence[Segments],
    y_pred: Sequence[Segments],
    sample_weight: ArrayLike | None = None,
) -> float:
    """F1 of predicted segments over all labels, between 0 and 1; 1 where there are none at all.

    Parameters
    ----------
    y_true, y_pred : list of lists of (start, stop, label)
        Segments of each sequence.
    sample_weight : array of shape (n_sequences,), optional
        What the segments of each sequence count.

    Returns
    -------
    float
    """
    true, predicted = _as_sets(y_true, y_pred)
    weights = np.ones(len(true)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    if weights.shape != (len(true),):
        raise ValueError(f"expected {len(true)} weights, got an array of shape {weights.shape}")
    bad = np.flatnonzero(~(weights >= 0.0) | ~np.isfinite(weights))
    if len(bad):
        raise ValueError(
            f"sample_weight[{bad[0]}] is {weights[bad[0]]}; weights must be finite and >= 0"
        )
    if not weights.any():
        raise ValueError("sample_weight is 0 for all sequences, expected at least one above 0")
    right = weights @ [len(a & b) for a, b in zip(true, predicted, strict=True)]
    listed = weights @ [len(a) + len(b) for a, b in zip(true, predicted, strict=True)]
    return float(2.0 * right / listed) if listed else 1.0


def tags_to_segments(y: Sequence[Sequence[str]]) -> list[list[tuple[int, int, str]]]:
    """Segments of tagged sequences, read as conlleval reads them; see `chunks`.

    Parameters
    ----------
    y : list of sequences of str
        "O", or B, I, E, S, followed by "-label".

    Returns
    -------
    list of lists of (start, stop, label)

    Examples
    --------
    >>> tags_to_segments([["B-NP", "I-NP", "O", "B-VP"]])
    [[(0, 2, 'NP'), (3, 4, 'VP')]]
    """
    listed_tags = listed(y, "y", "sequences of tags")
    return [[(start, stop, label) for label, start, stop in chunks(tags)] for tags in listed_tags]


def segments_to_tags(y: Sequence[Segments], lengths: Sequence[int]) -> list[list[str]]:
    """BIO tags (IOB2) of segments.

    Parameters
    ----------
    y : list of lists of (start, stop, label)
        Segments of each sequence.
    lengths : list of int
        Number of tokens of each sequence.

    Returns
    -------
    list of lists of str

    Examples
    --------
    >>> segments_to_tags([[(0, 2, "NP"), (3, 4, "VP")]], [4])
    [['B-NP', 'I-NP', 'O', 'B-VP']]
    """
    y, lengths = listed(y, "y", "lists of segments"), listed(lengths, "lengths", "numbers")
    if len(y) != len(lengths):
        raise ValueError(f"y has {len(y)} sequences, lengths has {len(lengths)}")
    tags = [["O"] * operator.index(n) for n in lengths]
    for i, (found, segments) in enumerate(zip(tags, y, strict=True)):
        end = 0
        for start, stop, label in sorted(_as_set(segments, f"y, sequence {i}"), key=itemgetter(0)):
            if stop > len(found):
                segment = (start, stop, label)
                raise ValueError(f"sequence {i}: {segment!r} is not within {len(found)} tokens")
            if start < end:
                segment = (start, stop, label)
                raise ValueError(f"sequence {i}: {segment!r} overlaps the segment before it")
            end = stop
            found[start:stop] = [f"B-{label}"] + [f"I-{label}"] * (stop - start - 1)
    return tags


def _as_sets(
    y_true: Sequence[Segments], y_pred: Sequence[Segments]
) -> tuple[list[set[tuple[int, int, Any]]], list[set[tuple[int, int, Any]]]]:
    """The segments of each sequence, to be compared."""
    both = paired(y_true, y_pred, "lists of segments")
    true, predicted = (
        [_as_set(segments, f"{name}, sequence {i}") for i, segments in enumerate(y)]
        for y, name in zip(both, NAMES, strict=True)
    )
    labels = [[label for own in y for _, _, label in own] for y in (true, predicted)]
    check_labels(labels[0], labels[1], lambda k: f"segment {k}")
    return true, predicted


def _as_set(segments: Any, name: str) -> set[tuple[int, int, Any]]:
    """Segments of a sequence; ValueError unless they are a list of them."""
    if isinstance(segments, (str, bytes, Mapping)) or not hasattr(segments, "__iter__"):
        raise ValueError(f"{name}: expected a list of (start, stop, label), got {segments!r:.60}")
    try:
        return {_as_segment(segment, name) for segment in segments}
    except TypeError:
        raise ValueError(f"{name}: labels must be hashable, got {segments!r:.60}") from None


def _as_segment(segment: Any, name: str) -> tuple[int, int, Any]:
    """Start, stop and label; ValueError unless it is a segment."""
    try:
        if isinstance(segment, str):
            raise TypeError
        start, stop, label = segment
        start, stop = operator.index(start), operator.index(stop)
    except (TypeError, ValueError):
        start = stop = 0
    if not 0 <= start < stop:
        raise ValueError(
            f"{name}: expected (start, stop, label) with whole numbers 0 <= start < stop, got "
            f"{segment!r:.60}"
        )
    return start, stop, label
