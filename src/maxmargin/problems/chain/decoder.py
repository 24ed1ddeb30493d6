"""Scores and best labellings of chains, without a problem to learn."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ...engine.native import entries_per_row
from ...engine.rows import Rows, row_scores
from ...engine.threads import each_range, in_ranges
from ...engine.work import scoring_work
from ...search.limits import as_weights
from ...types import Bools, Floats, Ints, Ints32
from .constraints import ChainConstraints, forbidden_moves, refuse_impossible
from .k_best import decode_k_best, make_k_best_scratch
from .kernels import ChainScratch, decode_chains
from .layout import ChainLayout

__all__ = ["ChainDecoder", "tables_of"]

WORTH_CUTTING = 5e6  # counted work: the weights in use are brought into the cache for each range


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

    def _checked(self, rows: Rows, w: Floats) -> Floats:
        """The weights, if they and the rows are those of the layout."""
        if rows.n_inputs != self.layout.n_inputs:
            raise ValueError(
                f"tokens have {rows.n_inputs} features, expected {self.layout.n_inputs}"
            )
        return as_weights(w, self.layout.size)

    def decode(
        self,
        rows: Rows,
        offsets: Ints,
        w: Floats,
        allowed: Bools | None = None,
        n_jobs: int | None = None,
    ) -> Ints32:
        """Best labels of all tokens, of those that ``allowed`` (n_tokens, n_labels) marks."""
        paths = self.decode_possible(rows, offsets, w, allowed, n_jobs)
        refuse_impossible(paths[offsets[:-1]] < 0)
        return paths

    def decode_possible(
        self,
        rows: Rows,
        offsets: Ints,
        w: Floats,
        allowed: Bools | None = None,
        n_jobs: int | None = None,
    ) -> Ints32:
        """The same, with -1 for all tokens of sequences that no labelling is allowed for."""
        found = [codes for codes, _ in self.decode_pieces(rows, offsets, w, allowed, n_jobs)]
        return np.concatenate(found) if len(found) > 1 else found[0]

    def decode_pieces(
        self,
        rows: Rows,
        offsets: Ints,
        w: Floats,
        allowed: Bools | None = None,
        n_jobs: int | None = None,
        check: Callable[[int, int], None] | None = None,
    ) -> Iterator[tuple[Ints32, Ints]]:
        """The same of some sequences at a time, with their offsets.

        ``check`` refuses sequences ``first`` to ``end - 1`` before they are looked at.
        """
        w = self._checked(rows, w)
        K, mask = self.layout.n_labels, self._mask(rows, allowed)
        transition, start, stop = self.potentials(w)
        paths = np.empty(int(offsets[-1]), dtype=np.int32)

        def decode(first: int, end: int) -> tuple[Ints32, Ints]:
            if check is not None:
                check(first, end)
            own = offsets[first : end + 1]
            work = self.scratch(int(np.diff(own).max(initial=0)), start, stop)
            decode_chains(rows, own, w, K, transition, mask, work, paths)
            return paths[own[0] : own[-1]], own - own[0]

        return in_ranges(n_jobs, offsets, self.token_work(rows), decode, WORTH_CUTTING)

    def token_work(self, rows: Rows) -> float:
        """Counted work of a token."""
        K = self.layout.n_labels
        return scoring_work(entries_per_row(rows), K) + 0.5 * K * K

    def _mask(self, rows: Rows, allowed: Bools | None) -> Bools:
        """What kernels take for the labels that are allowed."""
        K = self.layout.n_labels
        mask = np.empty((0, K), bool) if allowed is None else np.ascontiguousarray(allowed, bool)
        if allowed is not None and mask.shape != (rows.n_rows, K):
            raise ValueError(f"allowed has shape {mask.shape}, expected {(rows.n_rows, K)}")
        return mask

    def score(self, rows: Rows, offsets: Ints, labels: Ints32, w: Floats) -> Floats:
        """Scores <w, psi(x, y)> of given labels, one of each sequence; constraints do not count."""
        w = self._checked(rows, w)
        first, last = offsets[:-1], offsets[1:] - 1
        scores = row_scores(rows, self.layout.emissions(w))[np.arange(len(labels)), labels]
        after = np.delete(np.arange(len(labels)), first)
        scores[after] += self.layout.transitions(w)[labels[after - 1], labels[after]]
        start, stop = self.layout.boundaries(w)
        scores[first] += start[labels[first]]
        scores[last] += stop[labels[last]]
        return np.add.reduceat(scores, first)

    def decode_k_best(
        self,
        rows: Rows,
        offsets: Ints,
        w: Floats,
        k: int,
        allowed: Bools | None = None,
        n_jobs: int | None = None,
    ) -> list[tuple[Ints32, Floats]]:
        """The k best labellings of each sequence, best first, one in a row, and their scores."""
        w = self._checked(rows, w)
        n, K, lengths = len(offsets) - 1, self.layout.n_labels, np.diff(offsets)
        if n == 0:
            return []
        make_k_best_scratch(int(lengths.max()), K, k)  # refuses what takes too much memory
        transition, start, stop = self.potentials(w)
        labels = np.empty(k * int(offsets[-1]), np.int32)
        scores, found = np.empty((n, k)), np.empty(n, np.int64)
        mask = self._mask(rows, allowed)

        def decode(first: int, end: int) -> None:
            own, longest = offsets[first : end + 1], int(lengths[first:end].max())
            work = self.scratch(longest, start, stop), make_k_best_scratch(longest, K, k)
            into = labels, scores[first:end], found[first:end]
            decode_k_best(rows, own, w, K, transition, mask, k, *work, *into)

        each_range(n_jobs, offsets, k * self.token_work(rows), decode)
        refuse_impossible(found == 0)
        return tables_of(labels, scores, found, offsets)


def tables_of(
    labels: Ints32, scores: Floats, found: Ints, offsets: Ints
) -> list[tuple[Ints32, Floats]]:
    """Of each sequence its labellings, one in a row, and their scores.

    There is room for as many of each as ``scores`` has columns; sequence i has ``found[i]``.
    """
    k, answers = scores.shape[1], []
    lengths = np.diff(offsets)
    for i, (length, count) in enumerate(zip(lengths.tolist(), found.tolist(), strict=True)):
        first = k * int(offsets[i])
        table = labels[first : first + count * length].reshape(count, length)
        answers.append((table, scores[i, :count]))
    return answers
