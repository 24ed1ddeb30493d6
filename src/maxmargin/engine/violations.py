"""How much candidates violate: hinge values of answers, and of all examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..utils.types import Floats, Ints

if TYPE_CHECKING:
    from .oracle import OracleResult

__all__ = ["Violations", "batches", "violations"]


class Violations(NamedTuple):
    """Values ``b - <a, w>`` of planes at some weights, and their offsets b."""

    values: Floats
    offsets: Floats

    @property
    def hinges(self) -> Floats:
        """The slacks: values, or 0 where those are negative."""
        return np.maximum(self.values, 0.0)


def violations(oracle_result: OracleResult, w: Floats) -> Floats:
    """Values ``b - <a, w>`` of an answer's planes, which are in features, at ``w``."""
    planes, offsets, scales = oracle_result
    products = planes.values * w[planes.indices]
    row_of = np.repeat(np.arange(len(planes.losses)), np.diff(planes.indptr))
    return offsets - scales * np.bincount(row_of, products, minlength=len(planes.losses))


def batches(examples: Ints, size: int) -> Iterator[Ints]:
    """Consecutive pieces of ``examples``."""
    for start in range(0, len(examples), size):
        yield examples[start : start + size]
