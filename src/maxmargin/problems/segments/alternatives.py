"""The best segmentation of a sequence that lacks a given piece.

For explanations of single sequences; `kernels` has the search that training and prediction use.
"""

from __future__ import annotations

import numpy as np

from ...utils.types import Floats
from .layout import Pieces, Segment, SegmentLayout

__all__ = ["best_without", "list_chunks"]


def list_chunks(pieces: Pieces) -> list[Segment]:
    """Start, stop and label of all pieces, those outside of segments too, from left to right."""
    starts = np.flatnonzero(pieces.lengths > 0)
    stops = starts + pieces.lengths[starts]
    return list(zip(starts.tolist(), stops.tolist(), pieces.labels[starts].tolist(), strict=True))


def best_without(
    layout: SegmentLayout, w: Floats, token_scores: Floats, piece: Segment
) -> list[Segment] | None:
    """All pieces of the best segmentation that has not this one; None if there is no other.

    ``token_scores`` has a row for each token and a column for each of `SegmentLayout.of_tokens`.
    """
    n, K, transitions = len(token_scores), layout.n_labels, layout.transitions(w)
    sums = np.vstack([np.zeros(token_scores.shape[1]), np.cumsum(token_scores, axis=0)])
    longest = [*layout.longest.tolist(), 1]
    best = np.full((n + 1, K + 1), -np.inf)  # of the tokens before t, the last piece of label k
    came_from = np.zeros((n + 1, K + 1, 2), np.int64)  # start of that piece, label before it
    before = np.zeros((n + 1, K + 1))  # best score up to a piece of label k that starts at t
    previous = np.full((n + 1, K + 1), -1)
    for t in range(1, n + 1):
        for k in range(K + 1):
            for start in range(max(0, t - longest[k]), t):
                if (start, t, k) == piece:
                    continue
                score = before[start, k] + sums[t, k] - sums[start, k]
                if k < K:
                    score += token_scores[start, K + 1 + k]
                    score += layout.lengths(w, k)[t - start - 1]
                    if layout.last_tokens:
                        score += token_scores[t - 1, 2 * K + 1 + k]
                if score > best[t, k]:
                    best[t, k] = score
                    came_from[t, k] = start, previous[start, k]
        reached = best[t][:, None] + transitions
        before[t], previous[t] = reached.max(axis=0), reached.argmax(axis=0)
    label, t = int(np.argmax(best[n])), n
    if best[n, label] == -np.inf:
        return None
    found: list[Segment] = []
    while t > 0:
        start, earlier = came_from[t, label].tolist()
        found.append((start, t, label))
        t, label = start, earlier
    return found[::-1]
