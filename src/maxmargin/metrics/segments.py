"""Segments (start, stop, label): to and from tags of tokens, and how good predicted ones are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .chunks import chunks
from .counts import Averages, TypeScores, macro_average, score_table, scores_of

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
    true, predicted = _as_sets(y_true), _as_sets(y_pred)
    _check_lengths(true, predicted)
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
    true, predicted = _as_sets(y_true), _as_sets(y_pred)
    _check_lengths(true, predicted)
    weights = np.ones(len(true)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    if weights.shape != (len(true),):
        raise ValueError(f"expected {len(true)} weights, got an array of shape {weights.shape}")
    bad = np.flatnonzero(~(weights >= 0.0) | ~np.isfinite(weights))
    if len(bad):
        raise ValueError(
            f"sample_weight[{bad[0]}] is {weights[bad[0]]}; weights must be finite and >= 0"
        )
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
    return [[(start, stop, label) for label, start, stop in chunks(tags)] for tags in y]


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
    _check_lengths(y, lengths)
    tags = [["O"] * int(n) for n in lengths]
    for i, (found, segments) in enumerate(zip(tags, y, strict=True)):
        for start, stop, label in segments:
            if not 0 <= start < stop <= len(found):
                segment = (start, stop, label)
                raise ValueError(f"sequence {i}: {segment!r} is not within {len(found)} tokens")
            found[start:stop] = [f"B-{label}"] + [f"I-{label}"] * (stop - start - 1)
    return tags


def _as_sets(y: Sequence[Segments]) -> list[set[tuple[int, int, Any]]]:
    """The segments of each sequence, to be compared."""
    sets: list[set[tuple[int, int, Any]]] = []
    for segments in y:
        try:
            sets.append({(int(start), int(stop), label) for start, stop, label in segments})
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"sequence {len(sets)}: expected a list of (start, stop, label), got "
                f"{segments!r:.60} ({error})"
            ) from None
    return sets


def _check_lengths(first: Sequence[Any], second: Sequence[Any]) -> None:
    """Raise ValueError unless there is something for each sequence."""
    if len(first) != len(second):
        raise ValueError(f"{len(first)} sequences are given, and {len(second)}")
