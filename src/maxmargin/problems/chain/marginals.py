"""Marginals and max-marginals of first-order chains, by forward-backward."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..._jit import kernel
from ...engine.rows import Rows, row_scores
from ...engine.threads import each_range
from ...search.distribution import Distribution, Tables
from ...search.semiring import add_up
from ...types import Bools, Floats, Ints
from .constraints import refuse_impossible
from .decoder import ChainDecoder

__all__ = ["ChainDistribution"]


class ChainDistribution(Distribution):
    """Labellings of sequences, by the scores of their tokens' labels and of transitions.

    Parameters
    ----------
    unary : array of shape (n_tokens, n_labels)
        Scores of the labels of all tokens, those of first and last labels included.
    offsets : array of shape (n_sequences + 1,)
        Where sequences begin.
    transition : array of shape (n_labels, n_labels)
        Scores of transitions, from-label first.
    """

    def __init__(self, unary: Floats, offsets: Ints, transition: Floats) -> None:
        self.unary, self.offsets, self.transition = unary, offsets, transition

    @classmethod
    def of(
        cls,
        decoder: ChainDecoder,
        rows: Rows,
        offsets: Ints,
        w: Floats,
        allowed: Bools | None = None,
    ) -> ChainDistribution:
        """Labellings of the tokens in rows, with labels that ``allowed`` (token, label) marks."""
        unary = row_scores(rows, decoder.layout.emissions(w)).astype(np.float64)
        transition, start, stop = decoder.potentials(w)
        unary[offsets[:-1]] += start
        unary[offsets[1:] - 1] += stop
        if allowed is not None:
            unary[~allowed] = -np.inf
        return cls(unary, offsets, transition)

    def sums(self, temperature: float, *, soft: bool) -> tuple[Tables, Floats]:
        """See `Distribution`."""
        found, totals = np.empty_like(self.unary), np.empty(len(self.offsets) - 1)
        unary, transition = self.unary / temperature, self.transition / temperature
        K = self.unary.shape[1]

        def add_up(first: int, end: int) -> None:
            own = self.offsets[first : end + 1]
            forward = np.empty((int(np.diff(own).max(initial=1)), K))
            chain_sums(unary, own, transition, soft, forward, found, totals[first:end])

        each_range(self.n_jobs, self.offsets, 10.0 * K * K, add_up)
        return [found[first:end] for first, end in pairwise(self.offsets.tolist())], totals

    def refuse_impossible(self, example: int) -> None:
        """See `Distribution`."""
        refuse_impossible(np.arange(len(self.offsets) - 1) == example)


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
            for k in range(K):
                forward[t, k] = unary[first + t, k] + add_up(forward[t - 1], into[k], K, soft)
        totals[i] = add_up(forward[length - 1], zeros, K, soft)
        # sums[t] holds what comes behind token t until the forward scores are added.
        sums[first + length - 1] = 0.0
        for t in range(length - 1, 0, -1):
            for k in range(K):
                after[k] = unary[first + t, k] + sums[first + t, k]
                sums[first + t, k] += forward[t, k]
            for k in range(K):
                sums[first + t - 1, k] = add_up(after, transition[k], K, soft)
        for k in range(K):
            sums[first, k] += forward[0, k]
