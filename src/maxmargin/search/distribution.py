"""Outputs as random: P(y | x) is proportional to exp(<w, psi(x, y)> / temperature)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ..utils.types import Floats, Ints, Ints32

__all__ = ["Distribution", "margins_of"]

Tables = list[Floats]  # of each example: positions in rows, what can stand there in columns


class Distribution(ABC):
    """The outputs of some examples, made of positions at which one of several choices stands.

    Where probabilities are asked for, an output has that of a Gibbs distribution.
    """

    #: How many threads add up, as estimators have it.
    n_jobs: int | None = None

    @abstractmethod
    def sums(self, temperature: float, *, soft: bool) -> tuple[Tables, Floats]:
        """Sums over the outputs with a choice at a position, and over all outputs of an example.

        Maxima of scores / temperature, or with ``soft`` logarithms of the sums of their
        exponentials. -inf stands for what cannot be.
        """

    @abstractmethod
    def check_possible(self, example: int) -> None:
        """Raise ValueError for an example that no output is allowed for."""

    def margins(self) -> Tables:
        """How much the best output with a choice beats the best one with another, by position."""
        return [margins_of(best) for best in self._checked_sums(1.0, soft=False)[0]]

    def log_probabilities(self, temperature: float) -> Tables:
        """Logarithms of the probabilities of all choices at all positions."""
        tables, totals = self._checked_sums(temperature, soft=True)
        # Rounding may leave a choice that has no rival a little above 1.
        return [np.minimum(t - total, 0.0) for t, total in zip(tables, totals, strict=True)]

    def probabilities(self, temperature: float) -> Tables:
        """Probabilities of all choices at all positions; those of a position sum to 1."""
        return [_normalised(table) for table in self.log_probabilities(temperature)]

    def log_probabilities_of_best(self, temperature: float) -> Floats:
        """Logarithms of the probabilities of the best output of each example."""
        best, totals = (self._checked_sums(temperature, soft=soft)[1] for soft in (False, True))
        return np.minimum(best - totals, 0.0)

    def log_likelihoods(self, gold: Ints | Ints32, temperature: float) -> Floats:
        """Those of the gold choices of all positions; -inf where it is not known (-1)."""
        tables = self.log_probabilities(temperature)
        found = np.empty(sum(map(len, tables)))
        start = 0
        for table in tables:
            codes = gold[start : start + len(table)]
            chosen = table[np.arange(len(table)), codes]
            found[start : start + len(table)] = np.where(codes >= 0, chosen, -np.inf)
            start += len(table)
        return found

    def lengths(self) -> Ints:
        """How many positions each example has."""
        return np.array([len(table) for table in self.sums(1.0, soft=False)[0]], np.int64)

    def shown(self, tables: Tables) -> Any:
        """Tables as users get them."""
        return tables

    def _checked_sums(self, temperature: float, *, soft: bool) -> tuple[Tables, Floats]:
        """The sums, if every example has an output."""
        tables, totals = self.sums(temperature, soft=soft)
        self._check(totals)
        return tables, totals

    def _check(self, totals: Floats) -> None:
        """Raise ValueError unless every example has an output."""
        if (totals == -np.inf).any():
            self.check_possible(int(np.argmin(totals)))


def _normalised(logarithms: Floats) -> Floats:
    """Probabilities that sum to 1 in all rows; they do but for rounding."""
    probabilities = np.exp(logarithms)
    return probabilities / probabilities.sum(axis=-1, keepdims=True)


def margins_of(best: Floats) -> Floats:
    """By how much each choice of a row beats the best other one.

    ``best[..., k]`` is the score of the best output with choice k. -inf for a choice that cannot be
    made, inf for the only one that can.
    """
    if best.shape[-1] == 1:
        return np.where(best > -np.inf, np.inf, -np.inf)
    second, first = np.moveaxis(np.partition(best, -2, axis=-1)[..., -2:], -1, 0)
    is_first = np.arange(best.shape[-1]) == best.argmax(axis=-1)[..., None]
    with np.errstate(invalid="ignore"):
        found = best - np.where(is_first, second[..., None], first[..., None])
    return np.where(best == -np.inf, -np.inf, found)
