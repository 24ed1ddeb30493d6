"""Segmentations: labelled segments of a sequence that do not overlap (semi-Markov)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...core.cutting_planes import Planes, empty_planes, trim
from ...core.formulation import Formulation, Rescaling
from ...engine.accelerators import FactoredAccelerators
from ...engine.cost_model import scoring_work
from ...engine.packed_problem import (
    FactoredProblem,
    entries_of,
    entries_per_row,
    feature_blocks_of,
    matrix_of,
    rows_at,
    sparse_row,
    sparse_rows,
)
from ...engine.packed_problem import chunks_of as entries_within
from ...engine.rows import Rows
from ...search.limits import MOST_TABLE_BYTES, as_weights, check_number_of_weights
from ...search.modes import ADDITIVE, BEST_NON_GOLD, ERROR_COUNTS, PREDICT, SearchMode, search_mode
from ...utils.types import Floats, Ints, Ints32
from ...utils.validation import check_choice
from .bounds import F1, HAMMING, SEGMENTS, ZERO_ONE, error_count_loss
from .k_best import FixedPieces, RankedPieces, RankScratch, rank_segments
from .kernels import (
    NOTHING,
    SLOTS,
    count_errors,
    decode_segments,
    error_count_oracle,
    feature_at,
    segment_oracle,
)
from .layout import Pieces, Segment, SegmentLayout, chunks_of, segments_of

__all__ = ["LOSSES", "SegmentDecoder", "SegmentLoss", "SegmentProblem", "check_segments"]

SegmentLoss = Literal["segments", "hamming", "f1", "zero_one"]
LOSSES = {"segments": SEGMENTS, "hamming": HAMMING, "f1": F1, "zero_one": ZERO_ONE}


class SegmentData(NamedTuple):
    """Packed sequences with their gold segmentations, for kernels; see `layout` for the latter."""

    rows: Rows
    offsets: Ints
    labels: Ints32
    lengths: Ints32
    loss: int


class SegmentScratch(NamedTuple):
    """Work arrays for sequences up to some length; tables have a column or row for each label."""

    scores: Floats  # of tokens, by column
    prefix: Floats  # sums of the scores inside segments of a label
    opened: Floats  # best scores of beginnings after which a segment of a label begins
    forward: Floats  # best scores of beginnings that end with a piece of a label
    chosen: Ints32  # length of that piece
    previous: Ints32  # label of the piece before one that begins
    gold_starts: Ints
    labels: Ints32  # the segmentation found
    lengths: Ints32


class SegmentDecoder:
    """Finds and scores segmentations of packed sequences; holds no examples."""

    def __init__(self, layout: SegmentLayout) -> None:
        self.layout = layout

    def scratch(self, longest: int) -> SegmentScratch:
        """Work arrays for sequences of at most ``longest`` tokens."""
        K = self.layout.n_labels
        return SegmentScratch(
            np.zeros((longest, 3 * K + 1)),  # also where last tokens have no weights
            np.empty((K, longest + 1)),
            np.empty((K, longest + 1)),
            np.empty((longest + 1, K + 1)),
            np.empty((longest + 1, K + 1), np.int32),
            np.empty((longest + 1, K + 1), np.int32),
            np.empty(longest + 1, np.int64),
            np.empty(longest, np.int32),
            np.empty(longest, np.int32),
        )

    def decode(self, rows: Rows, offsets: Ints, w: Floats) -> Pieces:
        """Best segmentations, by token; rows as `sparse_rows` makes them."""
        w = self._checked(rows, w)
        labels, lengths = np.empty(rows.n_rows, np.int32), np.empty(rows.n_rows, np.int32)
        work = self.scratch(int(np.diff(offsets).max(initial=1)))
        decode_segments(self.layout.model, rows, offsets, w, work, labels, lengths)
        return Pieces(labels, lengths)

    def decode_k_best(
        self, rows: Rows, offsets: Ints, w: Floats, k: int, fixed: FixedPieces | None = None
    ) -> RankedPieces:
        """The k best segmentations of each sequence, best first, of those that agree with fixed."""
        w, n, longest = self._checked(rows, w), rows.n_rows, int(np.diff(offsets).max(initial=1))
        k = min(k, self._n_segmentations(longest, k))
        work = RankScratch.of(self.layout, longest, k)
        if fixed is None:
            allowed = np.ones((n, self.layout.n_labels + 1), np.bool_)
            fixed = FixedPieces(allowed, np.zeros(n, np.int32))
        n_sequences = len(offsets) - 1
        labels, lengths = np.zeros((k, n), np.int32), np.zeros((k, n), np.int32)
        scores, found = np.empty((n_sequences, k)), np.empty(n_sequences, np.int64)
        best = RankedPieces(labels, lengths, scores, found)
        rank_segments(self.layout.model, rows, offsets, w, *fixed, work, best)
        return best

    def _checked(self, rows: Rows, w: Floats) -> Floats:
        """The weights; ValueError if the tokens have other features."""
        if rows.n_inputs != self.layout.n_inputs:
            raise ValueError(
                f"tokens have {rows.n_inputs} features, expected {self.layout.n_inputs}"
            )
        return as_weights(w, self.layout.size)

    def _n_segmentations(self, n_tokens: int, most: int) -> int:
        """Number of segmentations that a sequence has, counted to ``most``."""
        lengths = [1, *(n + 1 for longest in self.layout.longest.tolist() for n in range(longest))]
        counts = [1]
        for t in range(1, n_tokens + 1):
            counts.append(sum(counts[t - n] for n in lengths if n <= t))
            if counts[t] >= most:
                return most
        return counts[-1]

    def token_work(self, rows: Rows, k: int = 1) -> float:
        """Counted work of a token."""
        layout = self.layout
        moves = 2.0 * float(layout.longest.sum()) + (layout.n_labels + 1.0) ** 2
        return scoring_work(entries_per_row(rows), layout.n_columns) + k * moves

    def features(self, pieces: Pieces) -> tuple[Ints, Ints, Ints]:
        """Tokens and columns of all token features of one sequence, and its single weights."""
        n, model = len(pieces.labels), self.layout.model
        found = [
            [(t, feature_at(model, *pieces, t, n, slot)) for t in range(n)] for slot in range(SLOTS)
        ]
        of_tokens = [pair for slot in found[:3] for pair in slot if pair[1] != NOTHING]
        single = [feature for slot in found[3:] for _, feature in slot if feature != NOTHING]
        tokens, columns = np.array(of_tokens, np.int64).reshape(-1, 2).T
        return tokens, columns, np.array(single, np.int64)


class SegmentProblem(FactoredProblem):
    """Segmentations with exact oracles for every loss and rescaling.

    An output is a list of segments (start, stop, label) that do not overlap; tokens between them
    are outside. `layout` tells the features.

    Parameters
    ----------
    tokens : array or CSR matrix of shape (n_tokens, n_token_features)
        Features of all tokens of all sequences, one after the other.
    offsets : array of int, shape (n_examples + 1,)
        Sequence i has the tokens ``offsets[i]`` to ``offsets[i + 1] - 1``.
    segments : list of lists of (start, stop, label)
        True segments of each sequence, whose tokens are counted from 0; labels from 0, too.
    longest : array of int, shape (n_labels,), optional
        Number of tokens that a segment of each label has at most; by default that of the longest
        true segment of the label, and 1 where there is none.
    n_labels : int, optional
        Number of labels, without ``longest``; by default one more than the largest.
    loss : {"segments", "hamming", "f1", "zero_one"}
        Missed plus false segments, where a segment is right if start, stop and label are; number of
        tokens with a wrong tag, where tags tell the label of the token's segment, whether the token
        is the first one of it, or that it is outside (BIO); 1 - F1 of the segments (0 where
        neither output has any); or 1 if anything is wrong.
    fit_intercept : bool
        Append a constant feature to every token.
    last_tokens : bool
        Whether last tokens of segments have weights of their own, as first ones do.
    """

    in_threads = True

    def __init__(
        self,
        tokens: Any,
        offsets: ArrayLike,
        segments: Sequence[Sequence[Segment]],
        longest: ArrayLike | None = None,
        n_labels: int | None = None,
        *,
        loss: SegmentLoss = "segments",
        fit_intercept: bool = False,
        last_tokens: bool = True,
    ) -> None:
        check_choice(loss, LOSSES, "loss")
        rows = sparse_rows(tokens, fit_intercept)
        bounds = np.ascontiguousarray(offsets, dtype=np.int64)
        lengths = np.diff(bounds)
        if rows.n_rows != bounds[-1] or bounds[0] != 0 or len(segments) != len(lengths):
            raise ValueError(
                f"tokens has {rows.n_rows} rows and offsets runs from {bounds[0]} to "
                f"{bounds[-1]} for {len(lengths)} sequences, but there are segments of "
                f"{len(segments)}"
            )
        if len(lengths) and lengths.min() < 1:
            raise ValueError(f"sequence {int(np.argmin(lengths))} is empty")
        if longest is None:
            longest = longest_segments(segments, n_labels)
        layout = SegmentLayout(rows.n_inputs, np.asarray(longest), last_tokens)
        check_segments(segments, lengths, layout.longest)
        check_number_of_weights(
            layout.size, f"{rows.n_inputs} features x {layout.n_columns} columns make"
        )
        self.layout, self.decoder = layout, SegmentDecoder(layout)
        self.n_features = layout.size
        K = layout.n_labels
        gold = [chunks_of(s, n, K) for s, n in zip(segments, lengths.tolist(), strict=True)]
        labels = np.concatenate([np.empty(0, np.int32), *(pieces.labels for pieces in gold)])
        of_pieces = np.concatenate([np.empty(0, np.int32), *(pieces.lengths for pieces in gold)])
        self._hold(SegmentData(rows, bounds, labels, of_pieces, LOSSES[loss]))

    def _hold(self, data: SegmentData) -> None:
        """Take the examples, and note how long they and their rows are."""
        self.data = data
        self._lengths = np.diff(data.offsets)
        is_start = (data.lengths > 0) & (data.labels < self._K)
        self._n_gold = np.diff(np.concatenate([[0], np.cumsum(is_start)])[data.offsets])
        entries = np.diff(data.rows.indptr[data.offsets])
        with_bias = entries + self._lengths * int(data.rows.bias != 0.0)
        self._row_bounds = 6 * with_bias + 4 * self._lengths
        self._block_bounds = 2 * SLOTS * self._lengths
        self.feature_blocks = feature_blocks_of(data.rows, self.layout.n_columns, self.layout.size)

    @property
    def n_examples(self) -> int:
        """Number of sequences."""
        return len(self.data.offsets) - 1

    def subset(self, indices: Ints) -> SegmentProblem:
        """See `Problem.subset`."""
        tokens, offsets = entries_within(self.data.offsets, indices)
        feature_block = copy.copy(self)
        feature_block._hold(
            self.data._replace(
                rows=rows_at(self.data.rows, tokens),
                offsets=offsets,
                labels=self.data.labels[tokens],
                lengths=self.data.lengths[tokens],
            )
        )
        return feature_block

    # ----- one sequence at a time ---------------------------------------------------------------

    def input_of(self, i: int) -> Any:
        """Token features of sequence i, a CSR matrix without the constant."""
        return matrix_of(self.data.rows, self.data.offsets[i], self.data.offsets[i + 1])

    def output_of(self, i: int) -> list[Segment]:
        """True segments of sequence i."""
        own = slice(self.data.offsets[i], self.data.offsets[i + 1])
        return segments_of(Pieces(self.data.labels[own], self.data.lengths[own]), self._K)

    def joint_feature(self, x: Any, y: Any) -> Any:
        """See `Problem.joint_feature`, and `layout` for the order of the features."""
        pieces = chunks_of(y, x.shape[0], self._K)
        tokens, columns, single = self.decoder.features(pieces)
        rows, inputs, values = entries_of(x, self.data.rows)
        # Every entry of a token's row under every column of the token.
        entry, column = np.nonzero(rows[:, None] == tokens)
        places = inputs[entry] * self.layout.n_columns + columns[column]
        given = np.concatenate([values[entry], np.ones(len(single))])
        return sparse_row(np.concatenate([places, single]), given, self.n_features)

    def loss(self, y: Any, y_hat: Any) -> float:
        """See `Problem.loss`."""
        n_tokens = max((stop for _, stop, _ in [*y, *y_hat]), default=0)
        gold, other = (chunks_of(segments, n_tokens, self._K) for segments in (y, y_hat))
        by_segments = self.data.loss in (SEGMENTS, F1)
        right, count = count_errors(n_tokens, self._K, by_segments, *gold, *other)
        return float(error_count_loss(self.data.loss, right, count, len(y)))

    def predict(self, x: Any, w: Floats) -> list[Segment]:
        """The best segments; see `Problem.predict`."""
        rows = sparse_rows(x, self.data.rows.bias != 0.0)
        return segments_of(self.decoder.decode(rows, np.array([0, rows.n_rows]), w), self._K)

    @property
    def _K(self) -> int:
        """Number of labels."""
        return self.layout.n_labels

    # ----- the search ---------------------------------------------------------------------------

    def predictions(self, indices: Ints, w: Floats) -> Planes:
        """Best segmentation of each listed sequence; see `Problem.predictions`."""
        return self._checked_search(indices, w, PREDICT)

    def accelerators(self, formulation: Formulation) -> SegmentAccelerators:
        """Planes in parts."""
        return SegmentAccelerators(self, formulation)

    def _mode(self, rescaling: Rescaling, sqrt_loss: bool) -> SearchMode:
        """How the loss is searched; 1 - F1 adds up along no search, but has levels."""
        mode = search_mode(rescaling, sqrt_loss, self.data.loss == ZERO_ONE)
        by_error_count = mode.kind == ADDITIVE and self.data.loss == F1
        return mode._replace(kind=ERROR_COUNTS) if by_error_count else mode

    def _search(self, examples: Ints, w: Floats, mode: SearchMode, as_blocks: bool) -> Planes:
        """Segmentations; parts are tokens under columns, and the single weights."""
        if mode.kind == ERROR_COUNTS:
            self._check_tables(examples)
        bounds = self._block_bounds if as_blocks else self._row_bounds
        out = empty_planes(len(examples), int(bounds[examples].sum()))
        work = self.decoder.scratch(int(self._lengths[examples].max(initial=1)))
        search = (
            error_count_oracle if mode.kind in (ERROR_COUNTS, BEST_NON_GOLD) else segment_oracle
        )
        search(self.layout.model, self.data, examples, w, mode, as_blocks, work, out)
        return trim(out)

    def _check_tables(self, examples: Ints) -> None:
        """Raise ValueError where the search by levels would need too much memory."""
        n = self._lengths[examples].astype(np.float64)
        n_right = self._n_gold[examples] if self.data.loss in (SEGMENTS, F1) else 0.0
        n_bytes = 16.0 * (n + 1.0) ** 2 * (n_right + 1.0) * (self._K + 1)
        if n_bytes.max(initial=0.0) > MOST_TABLE_BYTES:
            largest = int(np.argmax(n_bytes))
            raise ValueError(
                f"inference by error counts in sequence {examples[largest]}, of "
                f"{int(n[largest])} tokens, takes too much memory; loss='hamming' or 'segments' "
                "with rescaling='margin' and sqrt_loss=False need none"
            )


class SegmentAccelerators(FactoredAccelerators):
    """Tokens under columns as parts."""

    def __init__(self, problem: SegmentProblem, formulation: Formulation) -> None:
        super().__init__(problem, formulation)
        rows = problem.data.rows
        total = rows.n_rows * problem.decoder.token_work(rows)
        self.oracle_work = total / max(problem.n_examples, 1)
        mode = problem._mode(formulation.rescaling, formulation.uses_sqrt_loss)
        if mode.kind in (ERROR_COUNTS, BEST_NON_GOLD):
            self.oracle_work *= 10.0


def longest_segments(segments: Sequence[Sequence[Segment]], n_labels: int | None = None) -> Ints:
    """Tokens of the longest segment of each label; 1 where there is none."""
    listed = np.array([s for own in segments for s in own], np.int64).reshape(-1, 3)
    K = n_labels if n_labels is not None else int(listed[:, 2].max(initial=-1)) + 1
    longest = np.ones(K, np.int64)
    known = (listed[:, 2] >= 0) & (listed[:, 2] < K)  # others are refused elsewhere
    np.maximum.at(longest, listed[known, 2], listed[known, 1] - listed[known, 0])
    return longest


def check_segments(
    segments: Sequence[Sequence[Segment]], lengths: Ints, longest: Ints | None = None
) -> None:
    """Raise ValueError, naming sequence and segment, unless segments lie in order and within.

    With ``longest`` labels have to be numbers of those, and segments no longer than that.
    """
    for i, (own, n) in enumerate(zip(segments, lengths.tolist(), strict=True)):
        end = 0
        for segment in sorted(own, key=lambda s: s[:2]):
            start, stop, label = segment
            what = f"sequence {i}: segment {segment!r}"
            if not 0 <= start < stop <= n:
                raise ValueError(f"{what} is not within its {n} tokens")
            if start < end:
                raise ValueError(f"{what} overlaps the segment before it, which stops at {end}")
            end = stop
            if longest is None:
                continue
            if not 0 <= label < len(longest):
                raise ValueError(f"{what}: labels must be in 0..{len(longest) - 1}")
            if stop - start > longest[label]:
                raise ValueError(
                    f"{what} has {stop - start} tokens; the most for its label are {longest[label]}"
                )
