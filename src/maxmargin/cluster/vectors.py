"""Vectors on their way between machines: dense or sparse, whichever is shorter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..types import Floats, Ints32

__all__ = ["Packed", "pack", "products"]

BLOCK = 2**15  # entries of vectors that are written out side by side
# What decides how products are made: nanoseconds of an entry that is gathered, of one that is
# written out, and of a multiplication of matrices.
GATHERED, WRITTEN, MULTIPLIED = 2.0, 2.0, 0.05


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

    def write(self, start: int, row: Floats) -> None:
        """Write the entries from ``start`` on into a row, which is zero."""
        end = min(start + len(row), self.size)
        if self.ids is None:
            row[: end - start] = self.values[start:end]
        else:
            own = slice(*np.searchsorted(self.ids, (start, end)))
            row[self.ids[own] - start] = self.values[own]

    def product(self, dense: Floats) -> float:
        """Inner product with a dense vector."""
        return float(self.values @ (dense if self.ids is None else dense[self.ids]))


def pack(vector: Floats) -> Packed:
    """The shorter form of a vector; an entry of the sparse one takes 12 bytes in place of 8."""
    ids = np.flatnonzero(vector)
    if 3 * len(ids) >= 2 * len(vector):
        return Packed(len(vector), None, vector)
    return Packed(len(vector), ids.astype(np.int32), vector[ids])


def products(some: Sequence[Packed], others: Sequence[Packed], size: int) -> Floats:
    """Inner products of vectors with others: one by one, or of matrices, block by block.

    The latter where vectors are long, and have entries in most places.
    """
    entries = sum(len(vector.values) for vector in others)
    by_one = GATHERED * len(some) * entries
    written = WRITTEN * (entries + sum(len(vector.values) for vector in some))
    by_blocks = written + MULTIPLIED * size * len(some) * len(others)
    if by_one <= by_blocks:
        found = np.empty((len(some), len(others)))
        for r, vector in enumerate(some):
            dense = vector.dense()
            found[r] = [other.product(dense) for other in others]
        return found
    total = np.zeros((len(some), len(others)))
    for start in range(0, size, BLOCK):
        left, right = _written(some, start), _written(others, start)
        total += left @ right.T
    return total


def _written(vectors: Sequence[Packed], start: int) -> Floats:
    """A block of entries of all vectors, as a matrix."""
    rows = np.zeros((len(vectors), BLOCK))
    for vector, row in zip(vectors, rows, strict=True):
        vector.write(start, row)
    return rows
