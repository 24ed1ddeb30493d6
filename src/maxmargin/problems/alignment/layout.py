"""Where the weights of alignments are, strings as codes, and alignment with given weights.

Joint features count operations: the pairs of letters (x-letter first, or unordered where
``symmetric``), then gaps: their letters (linear), or how many there are and their letters (affine),
then, with ``own_ends``, the same for unpaired letters before the first and after the last pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.cutting_planes import Planes, empty_planes, trim
from ...engine.packed_problem import chunks_of
from ...engine.parallel.threads import each_range
from ...search.limits import as_weights
from ...utils.types import Floats, Ints, Ints32
from .k_best import Ranked, rank_alignments
from .kernels import AlignmentScratch, Scoring, Strings, align_pairs, psi_rows

__all__ = [
    "Aligner",
    "AlignmentLayout",
    "pack_alignments",
    "pack_strings",
    "string_at",
]


class AlignmentLayout(NamedTuple):
    """Which operations have a weight, and where it is."""

    n_letters: int
    local: bool = True
    affine: bool = False
    symmetric: bool = False
    own_ends: bool = False

    @property
    def n_pairs(self) -> int:
        """Number of weights of pairs of letters."""
        K = self.n_letters
        return K * (K + 1) // 2 if self.symmetric else K * K

    @property
    def n_gap_weights(self) -> int:
        """Number of weights of gaps."""
        return (1 + self.affine) * (1 + (self.own_ends and not self.local))

    @property
    def size(self) -> int:
        """Length of the weight vector."""
        return self.n_pairs + self.n_gap_weights

    def pair_feature(self) -> Ints32:
        """Feature of each pair of letters; -1 in the last row and column, for unknown letters."""
        K = self.n_letters
        table = np.full((K + 1, K + 1), -1, dtype=np.int32)
        if self.symmetric:
            low, high = np.triu_indices(K)
            table[low, high] = table[high, low] = np.arange(self.n_pairs)
        else:
            table[:K, :K] = np.arange(K * K).reshape(K, K)
        return table

    def gap_feature(self) -> Ints32:
        """Features of open, extend, end_open and end_extend; -1 where there is none."""
        first = self.n_pairs
        inner = [first, first + 1] if self.affine else [-1, first]
        if self.local:
            ends = [-1, -1]
        elif self.own_ends:
            shift = 1 + self.affine
            ends = [f + shift if f >= 0 else -1 for f in inner]
        else:
            ends = inner
        return np.array(inner + ends, dtype=np.int32)

    def scoring(self, w: Floats) -> Scoring:
        """Scores of all operations at ``w``; 0 for those that have no weight."""
        with_zero = np.append(as_weights(w, self.size), 0.0)  # the feature -1
        pairs, gaps = self.pair_feature(), self.gap_feature()
        return Scoring(with_zero[pairs], with_zero[gaps], pairs, gaps)

    def weights(self, substitution: Floats, gaps: Floats) -> Floats:
        """Weight vector of given scores; the inverse of `scoring`."""
        K = self.n_letters
        w = np.zeros(self.size + 1)
        w[self.pair_feature()[:K, :K]] = substitution
        w[self.gap_feature()] = gaps
        return w[:-1]


def pack_strings(strings: Sequence[ArrayLike]) -> Strings:
    """Coded strings, one after the other."""
    arrays = [np.asarray(string, dtype=np.uint8) for string in strings]
    offsets = np.zeros(len(arrays) + 1, dtype=np.int64)
    np.cumsum([len(array) for array in arrays], out=offsets[1:])
    return Strings(np.concatenate([np.empty(0, np.uint8), *arrays]), offsets)


def strings_at(strings: Strings, indices: Ints) -> Strings:
    """The listed strings alone."""
    letters, offsets = chunks_of(strings.offsets, indices)
    return Strings(strings.letters[letters], offsets)


def string_at(strings: Strings, i: int) -> NDArray[np.uint8]:
    """Coded string i."""
    return strings.letters[strings.offsets[i] : strings.offsets[i + 1]]


def pack_alignments(alignments: Sequence[ArrayLike], xs: Strings, ys: Strings) -> Ints32:
    """Partners of all letters of xs, from lists of pairs; checks that these are alignments."""
    partners = np.full(len(xs.letters), -1, dtype=np.int32)
    m, n = np.diff(xs.offsets), np.diff(ys.offsets)
    for i, alignment in enumerate(alignments):
        pairs = np.asarray(alignment)
        if pairs.size == 0:
            continue
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
            raise ValueError(
                f"alignment {i} must be pairs of positions, an integer array of shape (n, 2); got "
                f"{pairs.dtype} of shape {pairs.shape}"
            )
        if pairs.min() < 0 or pairs[:, 0].max() >= m[i] or pairs[:, 1].max() >= n[i]:
            raise ValueError(
                f"alignment {i} has a position outside its strings of {m[i]} and {n[i]} letters"
            )
        falling = np.flatnonzero((np.diff(pairs, axis=0) <= 0).any(axis=1))
        if len(falling):
            k = int(falling[0])
            raise ValueError(
                f"alignment {i}: positions must rise, but {pairs[k + 1].tolist()} follows "
                f"{pairs[k].tolist()}"
            )
        partners[xs.offsets[i] + pairs[:, 0]] = pairs[:, 1]
    return partners


CELL_WORK = 5.0  # counted work of a pair of letters


class Aligner:
    """Aligns strings with given weights; holds no examples."""

    def __init__(self, layout: AlignmentLayout) -> None:
        self.layout = layout

    def scratch(self, xs: Strings, ys: Strings) -> AlignmentScratch:
        """Work arrays for the longest of the strings."""
        m = int(np.diff(xs.offsets).max(initial=0))
        n = int(np.diff(ys.offsets).max(initial=0))
        return AlignmentScratch(
            back=np.empty((m, n), np.uint8),
            rows=np.empty((3, n + 1)),
            right_x=np.zeros(m),
            wrong_x=np.empty(m),
            wrong_y=np.empty(n),
            left_x=np.empty(m),
            left_y=np.empty(n),
            begin_x=np.empty(m + 1),
            begin_y=np.empty(n + 1),
            end_x=np.empty(m + 1),
            end_y=np.empty(n + 1),
            partner=np.empty(m, np.int32),
            counts=np.zeros(self.layout.size),
        )

    def align(
        self, xs: Strings, ys: Strings, w: Floats, n_jobs: int | None = None
    ) -> tuple[Ints32, Floats]:
        """Partners (flat like xs.letters) and scores of the best alignments."""
        partners = np.empty(len(xs.letters), dtype=np.int32)
        scores = np.empty(len(xs.offsets) - 1)
        scoring, tables = self.layout.scoring(w), np.diff(xs.offsets) * np.diff(ys.offsets)

        def align(first: int, end: int) -> None:
            own = slice(first, end + 1)
            x, y = (strings._replace(offsets=strings.offsets[own]) for strings in (xs, ys))
            align_pairs(x, y, scoring, self.scratch(x, y), partners, scores[first:end])

        each_range(n_jobs, np.concatenate([[0], np.cumsum(tables)]), CELL_WORK, align)
        return partners, scores

    def align_k(
        self, xs: Strings, ys: Strings, w: Floats, k: int, n_jobs: int | None = None
    ) -> list[list[Ranked]]:
        """The k best alignments of each pair of strings, with their scores."""
        scoring, tables = self.layout.scoring(w), np.diff(xs.offsets) * np.diff(ys.offsets)

        def align(first: int, end: int) -> list[list[Ranked]]:
            work = self.scratch(xs, ys)
            return [
                rank_alignments(string_at(xs, i), string_at(ys, i), scoring, k, work)
                for i in range(first, end)
            ]

        bounds = np.concatenate([[0], np.cumsum(tables)])
        return list(chain.from_iterable(each_range(n_jobs, bounds, k * CELL_WORK, align)))

    def psi(self, xs: Strings, ys: Strings, partners: Ints32) -> Planes:
        """Joint features of given alignments as CSR rows; the losses mean nothing."""
        n = len(xs.offsets) - 1
        out = empty_planes(n, n * self.layout.size)
        scoring = self.layout.scoring(np.zeros(self.layout.size))
        psi_rows(xs, ys, partners, scoring, self.scratch(xs, ys), out)
        return trim(out)
