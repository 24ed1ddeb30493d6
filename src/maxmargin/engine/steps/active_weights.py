"""Weights by local numbers: only those that some stored plane touches.

Of millions of weights - a feature for each word of a language under each label - the planes at hand
touch few. Numbered in the order in which they turn up they lie close together in memory, and
whatever is done to all weights is done to few.
"""

from __future__ import annotations

import numpy as np

from ...jit.decorator import kernel
from ...jit.numba_patches import prefetch
from ...utils.types import Floats, Ints32
from ..feature_blocks import FeatureBlocks
from ..parallel.threads import Threads, each_range
from ..store.arena import grown

__all__ = ["LocalWeights"]

AT_A_TIME = 2**15  # parts that are added to a list
PARTS_AHEAD = 2  # from asking for a part's memory to its use
SPREAD_WORK = 5.0  # counted work of a weight that is written to where it belongs


class LocalWeights:
    """Numbers of the weights in use, and listed parts in terms of those.

    Parameters
    ----------
    parts : FeatureBlocks
        How parts map to the problem's own weights.
    n_features : int
        How many those are.
    """

    def __init__(self, feature_blocks: FeatureBlocks, n_features: int) -> None:
        self.feature_blocks = feature_blocks
        self.unit = feature_blocks.n_row_blocks == 0 or (
            feature_blocks.unit and feature_blocks.bias in (0.0, 1.0)
        )
        self.place = np.zeros(n_features, np.int32)  # the number of each weight, plus 1
        self.columns = np.empty(0, np.int32)  # the weight of each number
        self.size = 0
        self.count = 0  # parts listed
        self.indptr = np.zeros(1, np.int64)
        self.indices = np.empty(0, np.int32)
        self.values: Floats = np.empty(0)
        self.numbers = np.empty(0, np.int32)  # 0, 1, 2...: the listed parts
        self._full: Floats = np.empty(0)

    @property
    def nbytes(self) -> int:
        """Bytes of the listed parts."""
        return sum(a.nbytes for a in (self.indptr, self.indices, self.values, self.numbers))

    def restart(self) -> None:
        """Forget the list of parts; the weights keep their numbers."""
        self.count = 0

    def clear(self) -> None:
        """Forget the numbers of the weights as well."""
        self.place[self.columns[: self.size]] = 0
        self.size = 0
        self.restart()

    def release(self) -> None:
        """Forget all, and give the memory back that is not for the weights' numbers."""
        self.clear()
        self.columns = np.empty(0, np.int32)
        self.indptr = np.zeros(1, np.int64)
        self.indices, self.numbers = np.empty(0, np.int32), np.empty(0, np.int32)
        self.values, self._full = np.empty(0), np.empty(0)

    def renumber(self, columns: Ints32) -> None:
        """Forget all, and number these weights 0, 1, 2..."""
        self.clear()
        self.columns, self.size = columns.copy(), len(columns)
        self.place[columns] = np.arange(1, len(columns) + 1)
        self._full = np.empty(0)

    def extend(self, listed: Ints32, count: int) -> None:
        """Add the parts listed[self.count:count] to the list."""
        if count > len(self.numbers):
            self.numbers = np.empty(0, np.int32)
            self.numbers = np.arange(int(1.25 * count) + 64, dtype=np.int32)
        while self.count < count:  # some at a time, for what is known of each takes space
            self._extend(listed, min(count, self.count + AT_A_TIME))

    def _extend(self, listed: Ints32, count: int) -> None:
        """The same for few parts."""
        feature_blocks, new = self.feature_blocks, listed[self.count : count].astype(np.int64)
        lengths = np.ones(len(new), np.int64)
        in_rows = new < feature_blocks.n_row_blocks
        rows = new[in_rows] // feature_blocks.n_labels
        lengths[in_rows] = (
            feature_blocks.indptr[rows + 1]
            - feature_blocks.indptr[rows]
            + (feature_blocks.bias != 0.0)
        )
        start = int(self.indptr[self.count])
        end = start + int(lengths.sum())
        self.indptr = grown(self.indptr, self.count + 1, count + 1)
        self.indices = grown(self.indices, start, end)
        if not self.unit:
            self.values = grown(self.values, start, end)
        most = len(self.place) + 1
        needed = min(self.size + end - start + 1, most)
        self.columns = grown(self.columns, self.size, needed, most=most)
        self.indptr[self.count + 1 : count + 1] = start + np.cumsum(lengths)
        self.size = int(
            number_weights(
                feature_blocks,
                new,
                self.place,
                self.columns,
                self.size,
                start,
                self.indices,
                self.values,
                self.unit,
            )
        )
        self.count = count

    def layout(self) -> FeatureBlocks:
        """The listed parts as rows of numbered weights."""
        return FeatureBlocks(
            self.indptr,
            self.indices,
            self.values,
            0.0,
            0,
            1,
            self.count,
            0,
            self.count,
            self.unit,
        )

    def expand(self, w: Floats, threads: Threads | int = 1) -> Floats:
        """The problem's own weights, in an array that the next call overwrites."""
        if len(self._full) == 0:
            self._full = np.zeros(len(self.place))
        full, columns = self._full, self.columns

        def spread(first: int, end: int) -> None:
            spread_weights(columns, w, first, end, full)

        each_range(threads, len(w), SPREAD_WORK, spread)
        full[columns[len(w) : self.size]] = 0.0
        return full


@kernel(allocates=False)
def spread_weights(columns, w, first, end, full):
    """Weights from ``first`` to ``end - 1`` to where they belong."""
    for k in range(first, end):
        full[columns[k]] = w[k]


@kernel(inline=True)
def _call_for_places(feature_blocks, listed, p, place):
    """Ask for the memory that `number_weights` will need at part listed[p]: it is all over."""
    if p < len(listed) and listed[p] < feature_blocks.n_row_blocks:
        K = np.uint64(feature_blocks.n_labels)
        feature_block = np.uint64(listed[p])
        row = feature_block // K
        label = feature_block - row * K
        first, last = (
            np.uint64(feature_blocks.indptr[row]),
            np.uint64(feature_blocks.indptr[row + np.uint64(1)]),
        )
        for e in range(first, last):
            prefetch(place, np.uint64(feature_blocks.indices[e]) * K + label)


@kernel(allocates=False)
def number_weights(feature_blocks, listed, place, columns, size, at, indices, values, unit):
    """Write the weights of the listed parts from ``at`` on; returns how many numbers are used."""
    K = feature_blocks.n_labels
    for p in range(len(listed)):
        _call_for_places(feature_blocks, listed, p + PARTS_AHEAD, place)
        feature_block = listed[p]
        if feature_block >= feature_blocks.n_row_blocks:
            first, last, label = 0, 1, 0
        else:
            row = feature_block // K
            label = feature_block - row * K
            first, last = (
                feature_blocks.indptr[row],
                feature_blocks.indptr[row + 1] + (feature_blocks.bias != 0.0),
            )
        for e in range(first, last):
            value = 1.0
            if feature_block >= feature_blocks.n_row_blocks:
                weight = feature_blocks.first_single + feature_block - feature_blocks.n_row_blocks
            elif feature_blocks.bias != 0.0 and e == last - 1:
                weight = np.int64(feature_blocks.bias_column) * K + label
                value = feature_blocks.bias
            else:
                weight = np.int64(feature_blocks.indices[e]) * K + label
                if not unit:
                    value = feature_blocks.values[e]
            # No branch: one that is mispredicted would keep the next misses of the cache waiting.
            number = place[weight]
            columns[size] = weight
            size += number == 0
            number = size if number == 0 else number
            place[weight] = number
            indices[at] = number - 1
            if not unit:
                values[at] = value
            at += 1
    return size
