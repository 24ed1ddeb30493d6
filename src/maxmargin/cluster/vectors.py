"""Vectors on their way between machines: dense or sparse, whichever is shorter."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..types import Floats, Ints32

__all__ = ["Packed", "pack"]


class Packed(NamedTuple):
    """A vector, or its entries other than 0; ``ids`` is None where all are there."""

    size: int
    ids: Ints32 | None
    values: Floats

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers."""
        return self.values.nbytes + (0 if self.ids is None else self.ids.nbytes)

    def add_to(self, total: Floats, factor: float = 1.0) -> None:
        """Add the vector times a factor to a dense one."""
        if self.ids is None:
            total += factor * self.values
        else:
            total[self.ids] += factor * self.values

    def dense(self) -> Floats:
        """All entries."""
        if self.ids is None:
            return self.values
        total = np.zeros(self.size)
        self.add_to(total)
        return total

    def product(self, dense: Floats) -> float:
        """Inner product with a dense vector."""
        return float(self.values @ (dense if self.ids is None else dense[self.ids]))


def pack(vector: Floats) -> Packed:
    """The shorter form of a vector; an entry of the sparse one takes 12 bytes in place of 8."""
    ids = np.flatnonzero(vector)
    if 3 * len(ids) >= 2 * len(vector):
        return Packed(len(vector), None, vector)
    return Packed(len(vector), ids.astype(np.int32), vector[ids])
