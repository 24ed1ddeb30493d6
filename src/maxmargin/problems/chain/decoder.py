"""Scores and best labellings of chains, without a problem to learn."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ...engine.cost_model import scoring_work
from ...engine.packed_problem import entries_per_row
from ...engine.rows import Rows, row_scores
from ...search.limits import as_weights
from ...types import Bools, Floats, Ints, Ints32
from .constraints import ChainConstraints, check_possible, forbidden_moves
from .k_best import decode_k_best, make_k_best_scratch
from .kernels import ChainScratch, decode_chains
from .layout import ChainLayout

__all__ = ["ChainDecoder", "KBest", "empty_k_best"]


class ChainDecoder:
    """Scores and decodes packed sequences with given weights; holds no examples."""

    def __init__(self, layout: ChainLayout, constraints: ChainConstraints | None = None) -> None:
        self.layout = layout
        self.constraints = constraints
        #: See `forbidden_moves`.
        self.forbidden = forbidden_moves(constraints, layout.n_labels)

    def potentials(self, w: Floats) -> tuple[Floats, Floats, Floats]:
        """Transition, start and stop scores at ``w``, with -inf where forbidden."""
        transition = self.layout.transitions(w)
        start, stop = self.layout.boundaries(w)
        if self.constraints is not None:
            transition = np.where(self.constraints.transitions, transition, -np.inf)
            start = np.where(self.constraints.start, start, -np.inf)
            stop = np.where(self.constraints.stop, stop, -np.inf)
        return np.ascontiguousarray(transition), start, stop

    def scratch(self, longest: int, start: Floats, stop: Floats) -> ChainScratch:
        """Work arrays for sequences of at most ``longest`` tokens."""
        K = self.layout.n_labels
        return ChainScratch(
            np.empty((longest, K)), np.empty((longest, K)), np.empty(longest, np.int32), start, stop
        )

    def checked(self, rows: Rows, w: Floats) -> Floats:
        """The weights, if they and the rows are those of the layout."""
        if rows.n_inputs != self.layout.n_inputs:
            raise ValueError(
                f"tokens have {rows.n_inputs} features, expected {self.layout.n_inputs}"
            )
        return as_weights(w, self.layout.size)

    def decode(self, rows: Rows, offsets: Ints, w: Floats, allowed: Bools | None = None) -> Ints32:
        """Best labels of all tokens, of those that ``allowed`` (n_tokens, n_labels) marks."""
        paths = self.decode_possible(rows, offsets, w, allowed)
        check_possible(paths[offsets[:-1]] < 0)
        return paths

    def decode_possible(
        self, rows: Rows, offsets: Ints, w: Floats, allowed: Bools | None = None
    ) -> Ints32:
        """The same, with -1 for all tokens of sequences that no labelling is allowed for."""
        w, mask = self.checked(rows, w), self.mask(rows, allowed)
        transition, start, stop = self.potentials(w)
        paths = np.empty(int(offsets[-1]), dtype=np.int32)
        work = self.scratch(int(np.diff(offsets).max(initial=0)), start, stop)
        decode_chains(rows, offsets, w, self.layout.n_labels, transition, mask, work, paths)
        return paths

    def token_work(self, rows: Rows) -> float:
        """Counted work of a token."""
        K = self.layout.n_labels
        return scoring_work(entries_per_row(rows), K) + 0.5 * K * K

    def mask(self, rows: Rows, allowed: Bools | None) -> Bools:
        """What kernels take for the labels that are allowed."""
        K = self.layout.n_labels
        mask = np.empty((0, K), bool) if allowed is None else np.ascontiguousarray(allowed, bool)
        if allowed is not None and mask.shape != (rows.n_rows, K):
            raise ValueError(f"allowed has shape {mask.shape}, expected {(rows.n_rows, K)}")
        return mask

    def score(self, rows: Rows, offsets: Ints, labels: Ints32, w: Floats) -> Floats:
        """Scores <w, psi(x, y)> of given labels, one of each sequence; constraints do not count."""
        w = self.checked(rows, w)
        first, last = offsets[:-1], offsets[1:] - 1
        scores = row_scores(rows, self.layout.emissions(w))[np.arange(len(labels)), labels]
        after = np.delete(np.arange(len(labels)), first)
        scores[after] += self.layout.transitions(w)[labels[after - 1], labels[after]]
        start, stop = self.layout.boundaries(w)
        scores[first] += start[labels[first]]
        scores[last] += stop[labels[last]]
        return np.add.reduceat(scores, first)

    def decode_k_best(
        self, rows: Rows, offsets: Ints, w: Floats, k: int, allowed: Bools | None = None
    ) -> KBest:
        """The k best labellings of each sequence, best first; none where none is allowed."""
        w, mask = self.checked(rows, w), self.mask(rows, allowed)
        K, longest = self.layout.n_labels, int(np.diff(offsets).max(initial=1))
        transition, start, stop = self.potentials(w)
        best = empty_k_best(offsets, k)
        work = self.scratch(longest, start, stop), make_k_best_scratch(longest, K, k)
        into = best.labels, best.scores, best.found
        decode_k_best(rows, offsets, w, K, transition, mask, k, *work, *into)
        return best


class KBest(NamedTuple):
    """Labellings of sequences, best first, with room for k of each.

    Those of sequence i stand one after the other from ``labels[k * offsets[i]]`` on; there are
    ``found[i]`` of them, with ``scores[i]``.
    """

    labels: Ints32
    scores: Floats
    found: Ints
    offsets: Ints

    def listed(self, labels: list[Any]) -> list[list[tuple[list[Any], float]]]:
        """Of each sequence its labellings and their scores, in lists of what labels stand for.

        ``labels`` has that for all `labels` there are. Loops are left to C, for this takes the GIL.
        """
        ends = np.cumsum(self.found)
        sequence = np.repeat(np.arange(len(ends)), self.found)
        rank = np.arange(len(sequence)) - np.repeat(ends - self.found, self.found)
        lengths = np.diff(self.offsets)[sequence]
        starts = self.scores.shape[1] * self.offsets[sequence] + rank * lengths
        places = map(slice, starts.tolist(), (starts + lengths).tolist())
        paths = map(labels.__getitem__, places)
        pairs = list(zip(paths, self.scores[sequence, rank].tolist(), strict=True))
        return [pairs[first:end] for first, end in pairwise([0, *ends.tolist()])]


def empty_k_best(offsets: Ints, k: int) -> KBest:
    """Room for the k best labellings of each sequence; labels that are not found are 0."""
    n = len(offsets) - 1
    labels = np.zeros(k * int(offsets[-1]), np.int32)
    return KBest(labels, np.empty((n, k)), np.empty(n, np.int64), offsets)
