"""Where the weights of a segmentation are, and segmentations as arrays.

A sequence is cut into *pieces*: segments with one of K labels, and single tokens outside of all
segments, whose label is K. Every token feature has ``3 K + 1`` weights, one behind the other (or
``2 K + 1``, where last tokens have none of their own):

    column k            the token is in a segment of label k
    column K            it is outside
    column K + 1 + k    it is the first token of such a segment
    column 2 K + 1 + k  it is the last one

Behind those of all features are the (K + 1) x (K + 1) transitions between consecutive pieces (from-
label first), then for each label one weight for every length that a segment of it may have.

Arrays have two numbers for each token: the label of its piece, and the length of the piece if the
token is the first one of it, 0 otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...utils.types import Floats, Ints, Ints32

__all__ = [
    "Pieces",
    "Segment",
    "SegmentLayout",
    "SegmentModel",
    "chunks_of",
    "segments_by_sequence",
    "segments_of",
]

Segment = tuple[int, int, int]  # start, stop (behind the last token) and label


class SegmentModel(NamedTuple):
    """Labels, lengths and places of weights, for kernels."""

    n_labels: int
    longest: Ints  # of each label's segments
    lengths: Ints  # where the weights of each label's lengths begin
    transitions: int  # where those of transitions begin
    n_columns: int


class Pieces(NamedTuple):
    """A segmentation, by token: labels of the pieces, and their lengths at first tokens."""

    labels: Ints32
    lengths: Ints32


class SegmentLayout:
    """Where the weights are.

    Parameters
    ----------
    n_inputs : int
        Number of features of a token.
    longest : array of int, shape (n_labels,)
        Number of tokens that a segment of each label has at most.
    last_tokens : bool
        Whether last tokens of segments have weights of their own.
    """

    def __init__(self, n_inputs: int, longest: Ints, last_tokens: bool = True) -> None:
        self.n_inputs = int(n_inputs)
        self.longest = np.ascontiguousarray(longest, dtype=np.int64)
        self.n_labels = len(self.longest)
        self.last_tokens = bool(last_tokens)
        self.n_columns = (3 if last_tokens else 2) * self.n_labels + 1
        self._transitions = self.n_inputs * self.n_columns
        self._lengths = self._transitions + (self.n_labels + 1) ** 2
        self.size = self._lengths + int(self.longest.sum())

    @cached_property
    def model(self) -> SegmentModel:
        """What kernels are told."""
        starts = self._lengths + np.cumsum(self.longest) - self.longest
        numbers = self._transitions, self.n_columns
        return SegmentModel(self.n_labels, self.longest, starts, *numbers)

    def of_tokens(self, w: Floats) -> Floats:
        """View of the weights of token features, shape (n_inputs, n_columns)."""
        return w[: self._transitions].reshape(self.n_inputs, self.n_columns)

    def transitions(self, w: Floats) -> Floats:
        """View of the weights of transitions, from-label first; outside is the last label."""
        size = self.n_labels + 1
        return w[self._transitions : self._lengths].reshape(size, size)

    def lengths(self, w: Floats, label: int) -> Floats:
        """View of the weights of lengths 1, 2, ... of a label's segments."""
        first = int(self.model.lengths[label])
        return w[first : first + int(self.longest[label])]


def chunks_of(segments: Sequence[Segment], n_tokens: int, n_labels: int) -> Pieces:
    """A segmentation as arrays; segments have to fit, in any order."""
    labels, lengths = np.full(n_tokens, n_labels, np.int32), np.ones(n_tokens, np.int32)
    for start, stop, label in segments:
        labels[start:stop] = label
        lengths[start:stop] = 0
        lengths[start] = stop - start
    return Pieces(labels, lengths)


def segments_of(pieces: Pieces, n_labels: int) -> list[Segment]:
    """The segments, from left to right."""
    starts = np.flatnonzero((pieces.lengths > 0) & (pieces.labels < n_labels))
    stops, labels = starts + pieces.lengths[starts], pieces.labels[starts]
    return list(zip(starts.tolist(), stops.tolist(), labels.tolist(), strict=True))


def segments_by_sequence(
    pieces: Pieces, offsets: Ints, labels: NDArray[np.object_]
) -> list[list[tuple[int, int, Any]]]:
    """The segments of each of some sequences, with these labels; all in one go, for speed."""
    starts = np.flatnonzero((pieces.lengths > 0) & (pieces.labels < len(labels)))
    bounds = np.searchsorted(starts, offsets)
    begins = starts - np.repeat(offsets[:-1], np.diff(bounds))
    stops, named = begins + pieces.lengths[starts], labels[pieces.labels[starts]]
    listed = list(zip(begins.tolist(), stops.tolist(), named.tolist(), strict=True))
    return [listed[first:end] for first, end in pairwise(bounds.tolist())]
