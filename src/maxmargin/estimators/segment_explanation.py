"""What differs between two segmentations of a sequence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..problems.segments.layout import Segment, SegmentLayout
from ..types import Floats
from .explanation import Evidence, Names, Part, differing_parts, input_evidence

__all__ = ["segment_evidence"]


def segment_evidence(
    layout: SegmentLayout,
    w: Floats,
    tokens: Any,
    names: Names,
    classes: Sequence[Any],
    chosen: Sequence[Segment],
    rival: Sequence[Segment],
) -> list[Evidence]:
    """Features of tokens, transitions and lengths that one of the lists of pieces has alone.

    Segments are made of pieces, single tokens outside of them included; tokens are rows.
    """
    weights, found = layout.of_tokens(w), []
    of_chosen, of_rival = (_columns(layout, pieces) for pieces in (chosen, rival))
    for t, (a, b) in enumerate(zip(of_chosen, of_rival, strict=True)):
        if a != b:
            own = weights[:, a].sum(axis=1) - weights[:, b].sum(axis=1)
            found += input_evidence(tokens[[t]], t, own, names)
    both = (_parts(layout, w, classes, pieces) for pieces in (chosen, rival))
    return found + differing_parts(*both)


def _columns(layout: SegmentLayout, pieces: Sequence[Segment]) -> list[list[int]]:
    """Which columns of weights the features of each token have."""
    K = layout.n_labels
    found: list[list[int]] = [[] for _ in range(pieces[-1][1])]
    for start, stop, k in pieces:
        for t in range(start, stop):
            found[t].append(k)
        if k < K:
            found[start].append(K + 1 + k)
            if layout.last_tokens:
                found[stop - 1].append(2 * K + 1 + k)
    return found


def _parts(
    layout: SegmentLayout, w: Floats, classes: Sequence[Any], pieces: Sequence[Segment]
) -> Iterator[Part]:
    """Transitions and lengths."""
    names, transitions = [*map(str, classes), "outside"], np.asarray(layout.transitions(w))
    for (_, _, a), (start, _, b) in pairwise(pieces):
        yield f"{names[a]} -> {names[b]}", start, float(transitions[a, b])
    for start, stop, k in pieces:
        if k < layout.n_labels:
            weight = float(layout.lengths(w, k)[stop - start - 1])
            yield f"length {stop - start} of {names[k]}", start, weight
