"""Confidences of packed sequences: tables of all tokens in one array, worked on without the GIL."""

from __future__ import annotations

from abc import abstractmethod
from itertools import pairwise

import numpy as np

from ..._jit import kernel
from ...search.distribution import Distribution, Tables
from ...types import Floats, Ints
from .constraints import check_possible

__all__ = ["LabellingDistribution"]


class LabellingDistribution(Distribution):
    """Labellings of some sequences of a row of them.

    Parameters
    ----------
    offsets : array of shape (n_sequences + 1,)
        Where sequences begin.
    before : int, default=0
        How many sequences there are before these, for errors.
    """

    def __init__(self, offsets: Ints, before: int = 0) -> None:
        self.offsets, self.before = offsets, before

    @abstractmethod
    def all_sums(self, temperature: float, *, soft: bool) -> tuple[Floats, Floats]:
        """`sums` with all tables below each other, in an array that is the caller's."""

    def sums(self, temperature: float, *, soft: bool) -> tuple[Tables, Floats]:
        """See `Distribution`."""
        found, totals = self.all_sums(temperature, soft=soft)
        return self._by_sequence(found), totals

    def margins(self) -> Tables:
        """See `Distribution`."""
        best, totals = self.all_sums(1.0, soft=False)
        self._check(totals)
        subtract_rivals(best)
        return self._by_sequence(best)

    def log_probabilities(self, temperature: float) -> Tables:
        """See `Distribution`."""
        found, totals = self.all_sums(temperature, soft=True)
        self._check(totals)
        subtract_totals(found, self.offsets, totals)
        return self._by_sequence(found)

    def probabilities(self, temperature: float) -> Tables:
        """See `Distribution`."""
        found, totals = self.all_sums(temperature, soft=True)
        self._check(totals)
        subtract_totals(found, self.offsets, totals)
        normalise(found)
        return self._by_sequence(found)

    def check_possible(self, example: int) -> None:
        """See `Distribution`."""
        check_possible(np.arange(len(self.offsets) - 1) == example, self.before)

    def _by_sequence(self, found: Floats) -> Tables:
        """The table of each sequence."""
        return [found[first:end] for first, end in pairwise(self.offsets.tolist())]


@kernel(allocates=False)
def subtract_rivals(best):
    """Margins in place of scores of best outputs, as `search.distribution.margins_of`."""
    K = best.shape[1]
    for t in range(len(best)):
        chosen, first, second = 0, -np.inf, -np.inf
        for k in range(K):
            score = best[t, k]
            if score > first:
                chosen, first, second = k, score, first
            elif score > second:
                second = score
        for k in range(K):
            if best[t, k] > -np.inf:
                best[t, k] -= second if k == chosen else first


@kernel(allocates=False)
def subtract_totals(sums, offsets, totals):
    """Logarithms of probabilities in place of those of sums over outputs."""
    for i in range(len(totals)):
        for t in range(offsets[i], offsets[i + 1]):
            for k in range(sums.shape[1]):
                # Rounding may leave a choice that has no rival a little above 1.
                sums[t, k] = min(sums[t, k] - totals[i], 0.0)


@kernel(allocates=False)
def normalise(table):
    """Probabilities in place of logarithms; rows sum to 1, as they do but for rounding."""
    for t in range(len(table)):
        total = 0.0
        for k in range(table.shape[1]):
            table[t, k] = np.exp(table[t, k])
            total += table[t, k]
        for k in range(table.shape[1]):
            table[t, k] /= total
