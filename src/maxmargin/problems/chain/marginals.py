"""Marginals and max-marginals of first-order chains, by forward-backward."""

from __future__ import annotations

import numpy as np

from ..._jit import kernel
from ...engine.rows import Rows
from ...engine.threads import each_range
from ...search.semiring import add_up
from ...types import Bools, Floats, Ints
from .decoder import ChainDecoder
from .distribution import LabellingDistribution
from .kernels import advance, chain_scores, forbid_labels

__all__ = ["SUM_WORK", "ChainDistribution"]

SUM_WORK = 10.0  # counted work of a token, for each pair of labels


class ChainDistribution(LabellingDistribution):
    """Labellings of sequences, by the scores of their tokens' labels and of transitions.

    Parameters
    ----------
    unary : array of shape (n_tokens, n_labels)
        Scores of the labels of all tokens, those of first and last labels included.
    offsets : array of shape (n_sequences + 1,)
        Where sequences begin.
    transition : array of shape (n_labels, n_labels)
        Scores of transitions, from-label first.
    before : int, default=0
        How many sequences there are before these, for errors.
    """

    def __init__(self, unary: Floats, offsets: Ints, transition: Floats, before: int = 0) -> None:
        super().__init__(offsets, before)
        self.unary, self.transition = unary, transition

    @classmethod
    def of(
        cls,
        decoder: ChainDecoder,
        rows: Rows,
        offsets: Ints,
        w: Floats,
        allowed: Bools | None = None,
        before: int = 0,
    ) -> ChainDistribution:
        """Labellings of the tokens in rows, with labels that ``allowed`` (token, label) marks."""
        w, mask = decoder.checked(rows, w), decoder.mask(rows, allowed)
        transition, start, stop = decoder.potentials(w)
        unary = np.empty((rows.n_rows, decoder.layout.n_labels))
        score_labels(rows, offsets, w, start, stop, mask, unary)
        return cls(unary, offsets, transition, before)

    def all_sums(self, temperature: float, *, soft: bool) -> tuple[Floats, Floats]:
        """See `LabellingDistribution`."""
        found, totals = np.empty_like(self.unary), np.empty(len(self.offsets) - 1)
        unary, transition = self.unary, self.transition
        if temperature != 1.0:
            unary, transition = unary / temperature, transition / temperature
        K = self.unary.shape[1]

        def add_up(first: int, end: int) -> None:
            own = self.offsets[first : end + 1]
            forward = np.empty((int(np.diff(own).max(initial=1)), K))
            chain_sums(unary, own, transition, soft, forward, found, totals[first:end])

        each_range(self.n_jobs, self.offsets, SUM_WORK * K * K, add_up)
        return found, totals


@kernel
def chain_sums(unary, offsets, transition, soft, forward, sums, totals):
    """Sums over the labellings of every sequence, of all and of those with a label at a token.

    In: ``unary`` (n_tokens, K), ``transition`` (K, K), -inf for what is forbidden. Out:
    ``sums[t, k]`` over the labellings with label k at token t, ``totals[i]`` over all of sequence
    i; maxima of scores, or with ``soft`` logarithms of sums of their exponentials (Rabiner 1989,
    sec. III.A). Time O(L K^2). ``forward`` is scratch.
    """
    K = unary.shape[1]
    into, after, zeros = np.ascontiguousarray(transition.T), np.empty(K), np.zeros(K)
    for i in range(len(totals)):
        first = offsets[i]
        length = offsets[i + 1] - first
        forward[0] = unary[first]
        for t in range(1, length):
            if soft:
                for k in range(K):
                    forward[t, k] = add_up(forward[t - 1], into[k], K, soft)
            else:
                advance(forward[t - 1], transition, K, forward[t])
            for k in range(K):
                forward[t, k] += unary[first + t, k]
        totals[i] = add_up(forward[length - 1], zeros, K, soft)
        # sums[t] holds what comes behind token t until the forward scores are added.
        sums[first + length - 1] = 0.0
        for t in range(length - 1, 0, -1):
            for k in range(K):
                after[k] = unary[first + t, k] + sums[first + t, k]
                sums[first + t, k] += forward[t, k]
            if soft:
                for k in range(K):
                    sums[first + t - 1, k] = add_up(after, transition[k], K, soft)
            else:
                advance(after, into, K, sums[first + t - 1])
        for k in range(K):
            sums[first, k] += forward[0, k]


@kernel(allocates=False)
def score_labels(rows, offsets, w, start, stop, allowed, unary):
    """Scores of all labels of all tokens, -inf for those that are not allowed."""
    K = unary.shape[1]
    for i in range(len(offsets) - 1):
        first = offsets[i]
        length = offsets[i + 1] - first
        own = unary[first : first + length]
        chain_scores(rows, first, length, w, K, start, stop, own)
        forbid_labels(allowed, first, length, K, own)
