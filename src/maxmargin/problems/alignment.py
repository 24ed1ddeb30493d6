"""Alignments of two strings with learned scores: the alignment itself, or which string aligns best.

Joint features count operations: the pairs of letters (x-letter first, or unordered where
``symmetric``), then gaps: their letters (linear), or how many there are and their letters (affine),
then, with ``own_ends``, the same for unpaired letters before the first and after the last pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..formulation import Rescaling
from ..problem import Planes, Problem
from .alignment_kernels import AlignmentScratch, Scoring, Strings, align_pairs, psi_rows
from .alignment_oracles import (
    ADDITIVE,
    DEVIATION,
    LEVELS,
    LevelScratch,
    TruePairs,
    alignment_oracle,
    homologue_oracle,
)

__all__ = ["Aligner", "AlignmentLayout", "AlignmentProblem", "HomologueProblem", "pack_strings"]

Floats = NDArray[np.float64]
AlignmentLoss = Literal["pairs", "residues", "zero-one"]
#: Searches by number of errors need 2 bytes for each cell and number; more than this is refused.
MOST_LEVEL_BYTES = 4 * 2**30


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

    def pair_feature(self) -> NDArray[np.int32]:
        """Feature of each pair of letters; -1 in the last row and column, for unknown letters."""
        K = self.n_letters
        table = np.full((K + 1, K + 1), -1, dtype=np.int32)
        if self.symmetric:
            low, high = np.triu_indices(K)
            table[low, high] = table[high, low] = np.arange(self.n_pairs)
        else:
            table[:K, :K] = np.arange(K * K).reshape(K, K)
        return table

    def gap_feature(self) -> NDArray[np.int32]:
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
        with_zero = np.append(w, 0.0)  # the feature -1
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


def pack_alignments(alignments: Sequence[ArrayLike], xs: Strings, ys: Strings) -> NDArray[np.int32]:
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

    def align(self, xs: Strings, ys: Strings, w: Floats) -> tuple[NDArray[np.int32], Floats]:
        """Partners (flat like xs.letters) and scores of the best alignments."""
        partners = np.empty(len(xs.letters), dtype=np.int32)
        scores = np.empty(len(xs.offsets) - 1)
        align_pairs(xs, ys, self.layout.scoring(w), self.scratch(xs, ys), partners, scores)
        return partners, scores

    def psi(self, xs: Strings, ys: Strings, partners: NDArray[np.int32]) -> Planes:
        """Joint features of given alignments as CSR rows; the losses mean nothing."""
        n = len(xs.offsets) - 1
        out = empty_planes(n, n * self.layout.size)
        scoring = self.layout.scoring(np.zeros(self.layout.size))
        psi_rows(xs, ys, partners, scoring, self.scratch(xs, ys), out)
        return trim(out)


def empty_planes(n_rows: int, capacity: int) -> Planes:
    """Room for rows."""
    return Planes(
        np.zeros(n_rows + 1, np.int64),
        np.empty(capacity, np.int32),
        np.empty(capacity),
        np.zeros(n_rows),
    )


def trim(planes: Planes) -> Planes:
    """Cut off what no row uses."""
    filled = planes.indptr[-1]
    return planes._replace(indices=planes.indices[:filled], values=planes.values[:filled])


def _check_examples(xs: Strings, ys: Strings, partners: NDArray[Any]) -> None:
    """Raise ValueError unless the arrays fit each other."""
    if len(xs.offsets) != len(ys.offsets) or len(partners) != len(xs.letters):
        raise ValueError(
            f"xs has {len(xs.offsets) - 1} strings of {len(xs.letters)} letters in all, ys has "
            f"{len(ys.offsets) - 1} strings, and there are {len(partners)} partners"
        )
    lengths = np.minimum(np.diff(xs.offsets), np.diff(ys.offsets))
    if len(lengths) and lengths.min() < 1:
        raise ValueError(f"example {int(np.argmin(lengths))} has an empty string")


class AlignmentProblem(Problem):
    """Predict the alignment of two strings, with exact oracles for every rescaling.

    Parameters
    ----------
    xs, ys : Strings
        Coded strings, with letters in ``0..layout.n_letters - 1``.
    partners : array of int
        True alignments, flat like ``xs.letters``: position of each letter's partner, or -1.
    layout : AlignmentLayout
        What has a weight.
    loss : {"pairs", "residues", "zero-one"}
        Share of the true pairs that are missed; share of all letters whose partner (or lack of
        one) is not the true one; or 1 if the alignments differ.
    """

    trusted = True

    def __init__(
        self,
        xs: Strings,
        ys: Strings,
        partners: NDArray[np.int32],
        layout: AlignmentLayout,
        loss: AlignmentLoss = "pairs",
    ) -> None:
        if loss not in ("pairs", "residues", "zero-one"):
            raise ValueError(f"loss must be 'pairs', 'residues' or 'zero-one', got {loss!r}")
        _check_examples(xs, ys, partners)
        self.xs, self.ys, self.layout = xs, ys, layout
        self.aligner = Aligner(layout)
        self.n_features = layout.size
        letters = np.diff(xs.offsets) + np.diff(ys.offsets)
        n_true = np.add.reduceat(partners >= 0, xs.offsets[:-1]).astype(np.int64)
        if loss == "pairs" and n_true.min() == 0:
            raise ValueError(
                f"the true alignment of example {int(np.argmin(n_true))} has no pairs, so its "
                "share of wrong pairs is not defined; use loss='residues'"
            )
        most = {"pairs": n_true, "residues": letters, "zero-one": np.ones_like(letters)}[loss]
        psi = self.aligner.psi(xs, ys, partners)
        self.true_pairs = TruePairs(
            np.ascontiguousarray(partners, dtype=np.int32),
            *psi[:3],
            units=1.0 / most,
            most_errors=most,
            residues=loss != "pairs",
            zero_one=loss == "zero-one",
        )

    @property
    def n_examples(self) -> int:
        """Number of pairs of strings."""
        return len(self.xs.offsets) - 1

    def oracle(
        self,
        indices: NDArray[np.int64],
        w: Floats,
        rescaling: Rescaling = "margin",
        sqrt_loss: bool = False,
    ) -> Planes:
        """Most violated alignment of each listed pair of strings; see `Problem.oracle`."""
        examples = np.ascontiguousarray(indices, dtype=np.int64)
        mode = LEVELS
        if self.true_pairs.zero_one or rescaling == "none":
            mode = DEVIATION
        elif rescaling == "margin" and not sqrt_loss:
            mode = ADDITIVE
        out = empty_planes(len(examples), len(examples) * self.layout.size)
        alignment_oracle(
            self.xs,
            self.ys,
            self.true_pairs,
            examples,
            w,
            self.layout.scoring(w),
            mode,
            rescaling == "slack",
            sqrt_loss,
            self.aligner.scratch(self.xs, self.ys),
            self._level_scratch(examples, mode),
            out,
        )
        return trim(out)

    def _level_scratch(self, examples: NDArray[np.int64], mode: int) -> LevelScratch:
        """Work arrays for searches by number of errors; empty where there is none."""
        m = n = levels = 0
        if mode != ADDITIVE and len(examples):
            m = int(np.diff(self.xs.offsets)[examples].max())
            n = int(np.diff(self.ys.offsets)[examples].max())
            most = 1 if mode == DEVIATION else int(self.true_pairs.most_errors[examples].max())
            levels = most + 1
        if 2 * m * n * levels > MOST_LEVEL_BYTES:
            raise ValueError(
                f"slack rescaling and square-root losses search by number of errors, which takes "
                f"{2 * m * n * levels / 2**30:.1f} GiB for strings of {m} and {n} letters; use "
                "rescaling='margin' with sqrt_loss=False, or shorter strings"
            )
        return LevelScratch(
            np.empty((m, n, levels), np.uint16),
            np.empty((3, n + 1, levels)),
            np.empty((2, 3, levels)),
            np.empty(levels),
            np.empty((levels, 3), np.int64),
            np.empty(m + 1, np.int64),
            np.empty(n + 1, np.int64),
        )


class HomologueProblem(Problem):
    """Find the homologue of a string among decoys, by the score of the best alignment.

    Every decoy has loss 1, so rescalings are all the same.

    Parameters
    ----------
    natives, homologues : Strings
        Coded strings and their homologues.
    partners : array of int
        Alignments of those, flat like ``natives.letters``: position of each letter's partner, or
        -1.
    decoys : Strings
        Decoys of all examples.
    groups : array of int, shape (n_examples + 1,)
        Example i has the decoys ``groups[i]`` to ``groups[i + 1] - 1``.
    layout : AlignmentLayout
        What has a weight.
    """

    trusted = True

    def __init__(
        self,
        natives: Strings,
        homologues: Strings,
        partners: NDArray[np.int32],
        decoys: Strings,
        groups: ArrayLike,
        layout: AlignmentLayout,
    ) -> None:
        _check_examples(natives, homologues, partners)
        self.natives, self.decoys, self.layout = natives, decoys, layout
        self.groups = np.ascontiguousarray(groups, dtype=np.int64)
        n_decoys = len(decoys.offsets) - 1
        rising = len(self.groups) == len(natives.offsets) and (np.diff(self.groups) >= 0).all()
        if not rising or self.groups[0] != 0 or self.groups[-1] != n_decoys:
            raise ValueError(
                f"groups must rise from 0 to {n_decoys} in {len(natives.offsets) - 1} steps"
            )
        self.aligner = Aligner(layout)
        self.n_features = layout.size
        ones = np.ones(self.n_examples)
        psi = self.aligner.psi(natives, homologues, partners)
        self.true_pairs = TruePairs(
            np.ascontiguousarray(partners, dtype=np.int32),
            *psi[:3],
            units=ones,
            most_errors=ones.astype(np.int64),
            residues=False,
            zero_one=True,
        )

    @property
    def n_examples(self) -> int:
        """Number of native strings."""
        return len(self.natives.offsets) - 1

    def oracle(
        self,
        indices: NDArray[np.int64],
        w: Floats,
        rescaling: Rescaling = "margin",
        sqrt_loss: bool = False,
    ) -> Planes:
        """Best decoy of each listed string, in its best alignment; see `Problem.oracle`."""
        examples = np.ascontiguousarray(indices, dtype=np.int64)
        out = empty_planes(len(examples), len(examples) * self.layout.size)
        work = self.aligner.scratch(self.natives, self.decoys)
        homologue_oracle(
            self.natives,
            self.decoys,
            self.groups,
            self.true_pairs,
            examples,
            w,
            self.layout.scoring(w),
            work,
            np.empty_like(work.partner),
            out,
        )
        return trim(out)
