"""Probabilities and margins of classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...search.distribution import Distribution, Tables
from ...types import Floats, Ints

__all__ = ["ClassDistribution"]


class ClassDistribution(Distribution):
    """Classes of examples by their scores, one of each example in a row."""

    def __init__(self, scores: Floats) -> None:
        self.scores = scores.astype(np.float64)

    def sums(self, temperature: float, *, soft: bool) -> tuple[Tables, Floats]:
        """See `Distribution`; all examples are in one table, where they have the same sum."""
        scaled = self.scores / temperature
        reduce = np.logaddexp.reduce if soft else np.maximum.reduce
        return [scaled - reduce(scaled, axis=1, keepdims=True)], np.zeros(1)

    def check_possible(self, example: int) -> None:
        """See `Distribution`: some class is always possible."""

    def lengths(self) -> Ints:
        """See `Distribution`."""
        return np.ones(len(self.scores), np.int64)

    def shown(self, tables: Tables) -> Any:
        """See `Distribution`."""
        return tables[0]
