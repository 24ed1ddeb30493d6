"""The k best segmentations of sequences, of those that have given segments.

`kernels` has the search for the best one. This one keeps up to k scores where that keeps one: of
the beginnings that end with a piece of a label, and of those after which such a piece begins.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...jit.decorator import kernel
from ...search.limits import MOST_TABLE_BYTES
from ...utils.types import Bools, Floats, Ints, Ints32
from .kernels import score_tokens
from .layout import Pieces, Segment, SegmentLayout

__all__ = [
    "ANY",
    "INSIDE",
    "START",
    "FixedPieces",
    "RankScratch",
    "RankedPieces",
    "best_without",
    "list_chunks",
    "rank_segments",
]

ANY, START, INSIDE = 0, 1, 2  # a piece may begin at a token, has to, or must not


class FixedPieces(NamedTuple):
    """Which pieces segmentations may have, by token."""

    allowed: Bools  # (n_tokens, n_labels + 1): labels of pieces that may hold the token
    begins: Ints32  # ANY, START or INSIDE

    def between(self, tokens: slice) -> FixedPieces:
        """The same of some of the tokens."""
        return FixedPieces(self.allowed[tokens], self.begins[tokens])


class RankedPieces(NamedTuple):
    """Segmentations, best first, with room for k of each sequence; see `layout` for the arrays."""

    labels: Ints32  # (k, n_tokens)
    lengths: Ints32
    scores: Floats  # (n_sequences, k)
    found: Ints  # (n_sequences,): how many there are


class Ranks(NamedTuple):
    """Scores by place, label and rank, best first, and what each is made of."""

    scores: Floats
    choice: Ints32  # length of the last piece, or label of the piece before
    rank: Ints32  # rank of what is before that
    known: Ints32  # (place, label): how many there are


class RankScratch(NamedTuple):
    """Work arrays for sequences up to some length."""

    scores: Floats  # of tokens, by column
    prefix: Floats  # sums of the scores inside segments of a label
    ended: Ranks  # beginnings whose last piece has the label
    opened: Ranks  # beginnings after which a piece of the label begins
    last: Ranks  # whole segmentations

    @classmethod
    def of(cls, layout: SegmentLayout, longest: int, k: int) -> RankScratch:
        """Arrays for the k best of ``longest`` tokens at most; ValueError if they are too big."""
        K = layout.n_labels
        size = 32 * (longest + 1) * (K + 1) * k
        if size > MOST_TABLE_BYTES:
            raise ValueError(
                f"the search for the {k} best segmentations of {longest} tokens with {K} labels "
                f"takes {size / 2**30:.1f} GiB, more than {MOST_TABLE_BYTES / 2**30:.0f}; use a "
                "smaller k or shorter sequences"
            )

        def ranks(n: int, n_labels: int) -> Ranks:
            shape = n, n_labels, k
            choice, rank = np.empty(shape, np.int32), np.empty(shape, np.int32)
            return Ranks(np.empty(shape), choice, rank, np.zeros(shape[:2], np.int32))

        scores, prefix = np.zeros((longest, 3 * K + 1)), np.empty((K, longest + 1))
        tables = ranks(longest + 1, K + 1), ranks(longest + 1, K + 1), ranks(1, 1)
        return cls(scores, prefix, *tables)


@kernel(allocates=False)
def _insert(ranks, t, label, value, choice, rank):
    """Insert a score behind those that are not smaller; False if it is not among the k best."""
    scores, k = ranks.scores[t, label], ranks.scores.shape[2]
    at = ranks.known[t, label]
    if at == k:
        if value <= scores[k - 1]:
            return False
        at -= 1
    else:
        ranks.known[t, label] += 1
    while at > 0 and value > scores[at - 1]:
        scores[at] = scores[at - 1]
        ranks.choice[t, label, at] = ranks.choice[t, label, at - 1]
        ranks.rank[t, label, at] = ranks.rank[t, label, at - 1]
        at -= 1
    scores[at] = value
    ranks.choice[t, label, at] = choice
    ranks.rank[t, label, at] = rank
    return True


@kernel(allocates=False)
def _end_pieces(model, w, t, c, allowed, begins, work):
    """Rank the beginnings of t tokens whose last piece has label c."""
    K, scores, opened, ended = model.n_labels, work.scores, work.opened, work.ended
    ended.known[t, c] = 0
    most = min(model.longest[c], t) if c < K else 1
    for n in range(1, most + 1):
        start = t - n
        if not allowed[start, c]:
            break
        if begins[start] != INSIDE:
            for r in range(opened.known[start, c]):
                value = opened.scores[start, c, r]
                if c < K:
                    # In the order of `best_segments`, so that ties are the same.
                    value = value + scores[start, K + 1 + c] - work.prefix[c, start]
                    value += w[model.lengths[c] - 1 + n]
                if not _insert(ended, t, c, value, n, r):
                    break
        if begins[start] == START:
            break
    for r in range(ended.known[t, c]):
        if c < K:
            ended.scores[t, c, r] += work.prefix[c, t]
            ended.scores[t, c, r] += scores[t - 1, 2 * K + 1 + c]
        else:
            ended.scores[t, c, r] += scores[t - 1, K]


@kernel(allocates=False)
def _rank_one(model, w, length, allowed, begins, work):
    """Rank the segmentations of one sequence by work.scores, into work.last."""
    K, opened, ended, last = model.n_labels, work.opened, work.ended, work.last
    for c in range(K + 1):
        opened.known[0, c] = 1
        opened.scores[0, c, 0] = 0.0
    for c in range(K):
        work.prefix[c, 0] = 0.0
    for t in range(1, length + 1):
        for c in range(K + 1):
            if c < K:
                work.prefix[c, t] = work.prefix[c, t - 1] + work.scores[t - 1, c]
            if t < length and begins[t] == INSIDE:
                ended.known[t, c] = 0
            else:
                _end_pieces(model, w, t, c, allowed, begins, work)
        if t == length:
            break
        for c in range(K + 1):
            opened.known[t, c] = 0
            for j in range(K + 1):
                for r in range(ended.known[t, j]):
                    value = ended.scores[t, j, r] + w[model.transitions + j * (K + 1) + c]
                    if not _insert(opened, t, c, value, j, r):
                        break
    last.known[0, 0] = 0
    for c in range(K + 1):
        for r in range(ended.known[length, c]):
            if not _insert(last, 0, 0, ended.scores[length, c, r], c, r):
                break


@kernel(allocates=False)
def rank_segments(model, rows, offsets, w, allowed, begins, work, out):
    """The k best segmentations of every sequence, best first, into ``out`` (RankedPieces).

    In: ``model`` (SegmentModel), ``allowed`` and ``begins`` (see FixedPieces), ``work``
    (RankScratch). Ties go to shorter last pieces, then to labels of smaller numbers.
    """
    for i in range(len(offsets) - 1):
        first, end = offsets[i], offsets[i + 1]
        length = end - first
        score_tokens(rows, first, length, w, model.n_columns, work.scores)
        _rank_one(model, w, length, allowed[first:end], begins[first:end], work)
        out.found[i] = work.last.known[0, 0]
        for place in range(work.last.known[0, 0]):
            out.scores[i, place] = work.last.scores[0, 0, place]
            label, rank = work.last.choice[0, 0, place], work.last.rank[0, 0, place]
            t = length
            while t > 0:
                n = work.ended.choice[t, label, rank]
                rank = work.ended.rank[t, label, rank]
                t -= n
                for u in range(first + t, first + t + n):
                    out.labels[place, u] = label
                    out.lengths[place, u] = 0
                out.lengths[place, first + t] = n
                if t > 0:
                    before = work.opened.choice[t, label, rank]
                    rank = work.opened.rank[t, label, rank]
                    label = before


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
