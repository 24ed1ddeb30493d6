"""Alignments of two strings with learned scores, in training and with given weights.

Joint features count operations: the pairs of letters (x-letter first, or unordered where
``symmetric``), then gaps: their letters (linear), or how many there are and their letters (affine),
then, with ``own_ends``, the same for unpaired letters before the first and after the last pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.cutting_planes import Planes, Row, empty_planes, stack, stack_k_best, trim
from ...core.formulation import Rescaling
from ...engine.packed_problem import PackedProblem, chunks_of
from ...engine.parallel.threads import each_range
from ...search.bounded_search import Candidate, Violation, most_violated
from ...search.limits import as_examples, as_weights
from ...search.margin_search import LEAST
from ...search.modes import ADDITIVE, BEST_NON_GOLD, SearchMode, error_count_terms, search_mode
from ...utils.types import Floats, Ints, Ints32
from ...utils.validation import check_choice
from .k_best import PLAIN, Ranked, Ranking, rank_alignments
from .kernels import (
    AlignmentScratch,
    Scoring,
    Strings,
    TruePairs,
    add_counts,
    align_pairs,
    alignment_oracle,
    best_between,
    count_errors,
    psi_rows,
)

__all__ = [
    "Aligner",
    "AlignmentLayout",
    "AlignmentProblem",
    "check_examples",
    "dpsi_row",
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


AlignmentLoss = Literal["pairs", "residues", "zero_one"]

CELL = 6.0  # work of a pair of letters in a search


class Partners(NamedTuple):
    """An alignment: for the letters of either string the position of the partner, or -1."""

    of_x: Ints32
    of_y: Ints32

    @classmethod
    def of(cls, partner: Ints32, n: int) -> Partners:
        """From the partners of the letters of x, where y has n letters."""
        of_y = np.full(n, -1, np.int32)
        paired = np.flatnonzero(partner >= 0)
        of_y[partner[paired]] = paired
        return cls(partner.copy(), of_y)


def dpsi_row(
    true_pairs: TruePairs,
    i: int,
    x: NDArray[np.uint8],
    y: NDArray[np.uint8],
    partner: Ints32,
    scoring: Scoring,
    size: int,
) -> Row:
    """Joint features of the gold alignment of example i minus those of an alignment of x and y."""
    counts = np.zeros(size)
    own = slice(true_pairs.indptr[i], true_pairs.indptr[i + 1])
    counts[true_pairs.indices[own]] = true_pairs.values[own]
    add_counts(x, y, partner, scoring, -1.0, counts)
    columns = np.flatnonzero(counts)
    return columns.astype(np.int32), counts[columns]


def check_examples(xs: Strings, ys: Strings, partners: NDArray[Any]) -> None:
    """Raise ValueError unless the arrays fit each other."""
    if len(xs.offsets) != len(ys.offsets) or len(partners) != len(xs.letters):
        raise ValueError(
            f"xs has {len(xs.offsets) - 1} strings of {len(xs.letters)} letters in all, ys has "
            f"{len(ys.offsets) - 1} strings, and there are {len(partners)} partners"
        )
    lengths = np.minimum(np.diff(xs.offsets), np.diff(ys.offsets))
    if len(lengths) and lengths.min() < 1:
        raise ValueError(f"example {int(np.argmin(lengths))} has an empty string")


class AlignmentProblem(PackedProblem):
    """Predict the alignment of two strings, with exact oracles for every rescaling.

    Parameters
    ----------
    xs, ys : Strings
        Coded strings, with letters in ``0..layout.n_letters - 1``.
    partners : array of int
        True alignments, flat like ``xs.letters``: position of each letter's partner, or -1.
    layout : AlignmentLayout
        What has a weight.
    loss : {"pairs", "residues", "zero_one"}
        Share of the true pairs that are missed; share of all letters whose partner (or lack of
        one) is not the true one; or 1 if the alignments differ.
    """

    in_threads = True

    def __init__(
        self,
        xs: Strings,
        ys: Strings,
        partners: Ints32,
        layout: AlignmentLayout,
        loss: AlignmentLoss = "pairs",
    ) -> None:
        check_choice(loss, ("pairs", "residues", "zero_one"), "loss")
        check_examples(xs, ys, partners)
        self.xs, self.ys, self.layout, self.loss_name = xs, ys, layout, loss
        self.aligner = Aligner(layout)
        self.n_features = layout.size
        letters = np.diff(xs.offsets) + np.diff(ys.offsets)
        n_true = np.add.reduceat(partners >= 0, xs.offsets[:-1]).astype(np.int64)
        if loss == "pairs" and n_true.min(initial=1) == 0:
            raise ValueError(
                f"the true alignment of example {int(np.argmin(n_true))} has no pairs, so its "
                "fraction of wrong pairs is not defined; use loss='residues'"
            )
        most = {"pairs": n_true, "residues": letters, "zero_one": np.ones_like(letters)}[loss]
        psi = self.aligner.psi(xs, ys, partners)
        self.true_pairs = TruePairs(
            np.ascontiguousarray(partners, dtype=np.int32),
            *psi[:3],
            units=1.0 / most,
            most_errors=most,
            residues=loss != "pairs",
            zero_one=loss == "zero_one",
        )

    @property
    def n_examples(self) -> int:
        """Number of pairs of strings."""
        return len(self.xs.offsets) - 1

    @property
    def search_sizes(self) -> Floats:
        """Pairs of letters of each example, by which work is shared out."""
        return (np.diff(self.xs.offsets) * np.diff(self.ys.offsets)).astype(np.float64)

    @property
    def search_work(self) -> float:
        """Work of a search, on average."""
        return CELL * float(self.search_sizes.mean())

    def subset(self, indices: Ints) -> AlignmentProblem:
        """See `Problem.subset`."""
        letters, _ = chunks_of(self.xs.offsets, indices)
        partners = self.true_pairs.partners[letters]
        xs, ys = strings_at(self.xs, indices), strings_at(self.ys, indices)
        return AlignmentProblem(xs, ys, partners, self.layout, self.loss_name)

    def input_of(self, i: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """The two coded strings of example i."""
        return string_at(self.xs, i).copy(), string_at(self.ys, i).copy()

    def output_of(self, i: int) -> Partners:
        """The gold alignment of example i."""
        own = slice(self.xs.offsets[i], self.xs.offsets[i + 1])
        n = self.ys.offsets[i + 1] - self.ys.offsets[i]
        return Partners.of(self.true_pairs.partners[own], int(n))

    def joint_feature(self, x: Any, y: Any) -> Floats:
        """See `Problem.joint_feature`: how often an alignment has each operation."""
        counts = np.zeros(self.n_features)
        add_counts(x[0], x[1], y.of_x, self.layout.scoring(counts), 1.0, counts)
        return counts

    def loss(self, y: Any, y_hat: Any) -> float:
        """Share of true pairs or of letters that are wrong, or whether any is."""
        wrong_x, wrong_y = y.of_x != y_hat.of_x, y.of_y != y_hat.of_y
        if self.true_pairs.zero_one:
            return float(wrong_x.any())
        if self.true_pairs.residues:
            n_wrong = np.count_nonzero(wrong_x) + np.count_nonzero(wrong_y)
            return float(n_wrong / (len(wrong_x) + len(wrong_y)))
        return float(wrong_x[y.of_x >= 0].mean())

    def predict(self, x: Any, w: Floats) -> Partners:
        """The best alignment; see `Problem.predict`."""
        partners, _ = self.aligner.align(pack_strings([x[0]]), pack_strings([x[1]]), w)
        return Partners.of(partners, len(x[1]))

    def _most_violated(
        self, examples: Ints, w: Floats, rescaling: Rescaling, sqrt_loss: bool
    ) -> Planes:
        """Most violated alignment of each listed pair of strings."""
        mode = search_mode(rescaling, sqrt_loss, self.true_pairs.zero_one)
        scoring, work = self.layout.scoring(w), self.aligner.scratch(self.xs, self.ys)
        if mode.kind != ADDITIVE:
            rows, losses = [], np.zeros(len(examples))
            for r, i in enumerate(examples.tolist()):
                partner = self._search(i, w, scoring, mode, work)
                row, losses[r] = self._row(i, partner, scoring)
                rows.append(row)
            return stack(rows, losses)
        out = empty_planes(len(examples), len(examples) * self.layout.size)
        data = (self.xs, self.ys, self.true_pairs)
        alignment_oracle(*data, examples, w, scoring, work, out)
        return trim(out)

    def _search(
        self, i: int, w: Floats, scoring: Scoring, mode: SearchMode, work: AlignmentScratch
    ) -> Ints32:
        """The alignment of example i that is violated most, where errors do not add up."""
        given, x, y = self.true_pairs, string_at(self.xs, i), string_at(self.ys, i)
        gold, own = self._gold(i), slice(given.indptr[i], given.indptr[i + 1])
        gold_score = float(w[given.indices[own]] @ given.values[own])
        if mode.kind == BEST_NON_GOLD:
            ranked = rank_alignments(x, y, scoring, 1, work, gold, self._wrong_alone)
            return ranked[0].partner if ranked and ranked[0].score > gold_score - 1.0 else gold
        largest = np.zeros(len(x) + len(y))
        largest[: len(x)][gold >= 0] = 1.0
        if given.residues:
            largest[:] = 1.0
        unit, counts = float(given.units[i]), np.zeros(self.n_features)

        def decode(lower: Floats, upper: Floats, multiplier: float) -> Candidate:
            losses, price = np.zeros(len(largest)), max(unit * multiplier, LEAST)
            data = (x, y, gold, given.residues, scoring)
            best_between(*data, price, lower, upper / unit, work, losses)
            partner = work.partner[: len(x)].copy()
            counts[:] = 0.0
            add_counts(x, y, partner, scoring, 1.0, counts)
            loss, gain = unit * float(losses.sum()), float(counts @ w) - gold_score
            return Candidate(partner, unit * losses, loss, gain)

        violation = Violation(mode.slack, mode.sqrt_loss)
        best = most_violated(decode, unit * largest, violation, unit)
        return gold if best is None else best.output

    def _gold(self, i: int) -> Ints32:
        """Partners of the letters of string i of xs."""
        return self.true_pairs.partners[self.xs.offsets[i] : self.xs.offsets[i + 1]]

    def _row(self, i: int, partner: Ints32, scoring: Scoring) -> tuple[Row, float]:
        """Row of dpsi of an alignment of example i, and its loss."""
        given, x, y = self.true_pairs, string_at(self.xs, i), string_at(self.ys, i)
        errors = int(count_errors(x, y, self._gold(i), partner, given.residues))
        loss = float(min(errors, 1) if given.zero_one else errors * given.units[i])
        return dpsi_row(given, i, x, y, partner, scoring, self.layout.size), loss

    @property
    def _wrong_alone(self) -> Ranking:
        """By the score, those with errors alone."""
        return Ranking(0.0, np.zeros(2), np.array([0.0, 1.0]), self.true_pairs.residues)

    def k_best(
        self,
        indices: Ints,
        w: Floats,
        k: int,
        rescaling: Rescaling = "margin",
        sqrt_loss: bool = False,
    ) -> Planes:
        """The k best wrong alignments of each listed pair of strings; see `Problem.k_best`.

        With slack rescaling and with none, an alignment without loss (the true pairs and others
        beside them, if the loss is "pairs") counts as the gold alignment.
        """
        w = as_weights(w, self.n_features)
        scoring, work = self.layout.scoring(w), self.aligner.scratch(self.xs, self.ys)
        found: list[list[tuple[Row, float]]] = []
        for i in as_examples(indices, self.n_examples).tolist():
            x, y = string_at(self.xs, i), string_at(self.ys, i)
            gold = self._gold(i)
            ranking = self._ranking(i, w, rescaling, sqrt_loss)
            listed: list[tuple[Row, float]] = []
            for partner, _ in rank_alignments(x, y, scoring, k + 1, work, gold, ranking):
                if len(listed) < k and not np.array_equal(partner, gold):
                    listed.append(self._row(i, partner, scoring))
            found.append(listed)
        return stack_k_best(found, k)

    def _ranking(self, i: int, w: Floats, rescaling: Rescaling, sqrt_loss: bool) -> Ranking:
        """What alignments of example i are ranked by."""
        given = self.true_pairs
        kind = search_mode(rescaling, sqrt_loss, given.zero_one).kind
        if kind == ADDITIVE:
            return PLAIN._replace(unit=float(given.units[i]), residues=given.residues)
        if kind == BEST_NON_GOLD:  # no errors, or any
            return self._wrong_alone
        losses = np.arange(given.most_errors[i] + 1) * given.units[i]
        own = slice(given.indptr[i], given.indptr[i + 1])
        gold_score = float(w[given.indices[own]] @ given.values[own])
        terms = error_count_terms(losses, gold_score, rescaling, sqrt_loss)
        return Ranking(0.0, *terms, given.residues)
