"""Alignments of two strings with learned scores; see `layout` for the weights."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.cutting_planes import Planes, Row, empty_planes, stack, stack_k_best, trim
from ...core.formulation import Rescaling
from ...engine.packed_problem import PackedProblem, chunks_of
from ...search.bounded_search import Candidate, Violation, most_violated
from ...search.limits import as_examples, as_weights
from ...search.margin_search import LEAST
from ...search.modes import ADDITIVE, BEST_NON_GOLD, SearchMode, error_count_terms, search_mode
from ...utils.types import Floats, Ints, Ints32
from ...utils.validation import check_choice
from .k_best import PLAIN, Ranking, rank_alignments
from .kernels import (
    AlignmentScratch,
    Scoring,
    Strings,
    TruePairs,
    add_counts,
    alignment_oracle,
    best_between,
    count_errors,
)
from .layout import Aligner, AlignmentLayout, pack_strings, string_at, strings_at

__all__ = ["AlignmentProblem", "check_examples", "dpsi_row"]

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
