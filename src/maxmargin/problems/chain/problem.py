"""First-order chains: one label per token, with transitions between neighbours.

Joint features are token features under labels, transitions, and on request first and last labels;
`layout` tells where their weights are.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...cutting_planes import Planes, empty_planes, trim
from ...engine.online_steps import OnlineRule, OnlineState
from ...engine.packed_problem import (
    FactoredProblem,
    chunks_of,
    counted_loss,
    entries_of,
    feature_blocks_of,
    matrix_of,
    rows_at,
    rows_of,
    same_columns,
    sparse_row,
    sparse_rows,
)
from ...engine.rows import Rows, check_codes, is_mapped
from ...formulation import Formulation, Rescaling
from ...problem import Problem
from ...search.bounded_search import common_unit
from ...search.limits import as_examples, as_weights, check_number_of_weights
from ...search.modes import BEST_NON_GOLD, ERROR_COUNTS, PREDICT, SearchMode, search_mode
from ...types import Floats, Ints, Ints32
from .accelerators import ChainAccelerators
from .constraints import ChainConstraints
from .cost_kernels import write_labellings
from .costs import checked_costs, costed_labellings
from .decoder import ChainDecoder
from .k_best import chain_k_best, make_k_best_scratch
from .kernels import chain_oracle
from .layout import ChainLayout, WeightOffsets
from .online import chain_online
from .sequences import ChainLoss, check_loss, labelled_tokens

__all__ = ["ChainProblem"]

READ_AT_ONCE = 2**18  # bytes that are read one after the other, of data in a file


class ChainData(NamedTuple):
    """What the kernels need to know of the examples."""

    rows: Rows
    offsets: Ints
    labels: Ints32
    n_labels: int
    at: WeightOffsets
    boundary: bool
    normalized: bool
    zero_one: bool
    costs: Floats
    cost_rows: Ints32  # rows of costs, one for each token; empty where wrong labels cost 1


class ChainProblem(FactoredProblem):
    """Label sequences with exact oracles for every rescaling.

    Parameters
    ----------
    tokens : array or CSR matrix of shape (n_tokens, n_token_features)
        Features of all tokens of all sequences, one after the other.
    offsets : array of int, shape (n_examples + 1,)
        Sequence i has the tokens ``offsets[i]`` to ``offsets[i + 1] - 1``.
    labels : array of int, shape (n_tokens,)
        True labels, in ``0..n_labels - 1``.
    n_labels : int, optional
        Number of labels; by default one more than the largest.
    loss : {"hamming", "normalized-hamming", "zero-one"}
        Number of wrong labels, their share, or 1 if any is wrong. With ``costs``: the sum of the
        costs of the labels, their mean, or 1 if there are any.
    costs : array of shape (n_rows, n_labels), optional
        What labels cost, none of it negative. By default 1, and nothing for the true label.
    cost_rows : array of int, shape (n_tokens,), optional
        Label k costs ``costs[cost_rows[t], k]`` at token t, and the true label nothing. By default
        the true labels, so that ``costs[true, k]`` is the cost of k in place of another.
    fit_intercept : bool
        Append a constant feature to every token.
    boundary_weights : bool
        Learn weights for the first and the last label.
    constraints : ChainConstraints, optional
        Forbidden transitions; they hold in the oracles and in `decode`.
    """

    in_threads = True

    def __init__(
        self,
        tokens: Any,
        offsets: ArrayLike,
        labels: ArrayLike,
        n_labels: int | None = None,
        *,
        loss: ChainLoss = "hamming",
        costs: ArrayLike | None = None,
        cost_rows: ArrayLike | None = None,
        fit_intercept: bool = False,
        boundary_weights: bool = False,
        constraints: ChainConstraints | None = None,
    ) -> None:
        check_loss(loss)
        rows = sparse_rows(tokens, fit_intercept)
        bounds, codes = labelled_tokens(rows.n_rows, offsets, labels)
        K = int(n_labels if n_labels is not None else codes.max() + 1)
        check_codes(codes, K, "labels")
        self.layout = ChainLayout(rows.n_inputs, K, boundary_weights)
        check_number_of_weights(self.layout.size, f"{rows.n_inputs} features x {K} labels make")
        self.decoder = ChainDecoder(self.layout, constraints)
        self.n_features = self.layout.size
        data = ChainData(
            rows,
            bounds,
            codes,
            K,
            self.layout.offsets,
            boundary_weights,
            loss == "normalized-hamming",
            loss == "zero-one",
            *checked_costs(costs, cost_rows, codes, K),
        )
        self.cost_unit = common_unit(data.costs)
        #: Whether a wrong label may cost nothing.
        self.has_free_labels = bool(((data.costs == 0.0).sum(axis=1) > 1).any())
        self._own_rows = cost_rows is not None
        self._hold(data)
        if constraints is not None:
            constraints.check_gold(codes, bounds)

    def _hold(self, data: ChainData) -> None:
        """Take the examples, and note how long they are."""
        self.data = data
        self._lengths = np.diff(data.offsets)
        self.longest = int(self._lengths.max(initial=0))
        self._row_bounds = self._longest_rows()
        self._block_bounds = 4 * self._lengths + 4
        self.read_together = 0
        if is_mapped(data.rows.indices):
            entries = int(data.rows.indptr[-1]) // max(len(self._lengths), 1)
            self.read_together = max(READ_AT_ONCE // (12 * max(entries, 1)), 1)
        self.feature_blocks = feature_blocks_of(data.rows, data.n_labels, self.layout.size)

    def subset(self, indices: Ints) -> ChainProblem:
        """See `Problem.subset`."""
        return self._at(*chunks_of(self.data.offsets, indices))

    def _at(self, tokens: Ints, offsets: Ints) -> ChainProblem:
        """The sequences that these tokens make."""
        data, feature_block = self.data, copy.copy(self)
        cost_rows = data.cost_rows[tokens] if len(data.cost_rows) else data.cost_rows
        feature_block._hold(
            data._replace(
                rows=rows_at(data.rows, tokens),
                offsets=offsets,
                labels=data.labels[tokens],
                cost_rows=cost_rows,
            )
        )
        return feature_block

    def is_renumbered(self, other: Problem) -> bool:
        """See `PackedProblem`."""
        if (
            not isinstance(other, ChainProblem)
            or self.feature_blocks is None
            or other.feature_blocks is None
        ):
            return False
        own, its = self.data._asdict(), other.data._asdict()
        return (
            all(np.array_equal(own[name], its[name]) for name in own.keys() - {"rows", "at"})
            and np.array_equal(self.decoder.forbidden, other.decoder.forbidden)
            and same_columns(own["rows"], its["rows"])
        )

    def pieces(self, tokens: Ints, offsets: Ints) -> ChainProblem:
        """Pieces of the sequences: cuts are no ends, so there are neither ends nor constraints."""
        feature_block = self._at(tokens, offsets)
        feature_block.layout = self.layout._replace(boundary=False)
        feature_block.decoder, feature_block.n_features = (
            ChainDecoder(feature_block.layout),
            feature_block.layout.size,
        )
        feature_block._hold(
            feature_block.data._replace(at=feature_block.layout.offsets, boundary=False)
        )
        return feature_block

    def with_labels(self, labels: Ints32) -> ChainProblem:
        """The same sequences with other true labels, which must be free of costs."""
        other = copy.copy(self)
        other.data = self.data._replace(labels=labels)
        return other

    @property
    def n_examples(self) -> int:
        """Number of sequences."""
        return len(self.data.offsets) - 1

    def accelerators(self, formulation: Formulation) -> ChainAccelerators:
        """Feature blocks, a store with the oracle inside and steps of online solvers."""
        return ChainAccelerators(self, formulation)

    def input_of(self, i: int) -> Any:
        """Token features of sequence i, a CSR matrix without the constant."""
        return matrix_of(self.data.rows, self.data.offsets[i], self.data.offsets[i + 1])

    def output_of(self, i: int) -> Ints32:
        """Gold labels of sequence i."""
        return self.data.labels[self.data.offsets[i] : self.data.offsets[i + 1]].copy()

    def joint_feature(self, x: Any, y: Any) -> Any:
        """See `Problem.joint_feature`, and `layout` for the order of the features."""
        K, at, labels = self.data.n_labels, self.data.at, np.asarray(y, dtype=np.int64)
        tokens, inputs, values = entries_of(x, self.data.rows)
        columns = [inputs * K + labels[tokens], at.transitions + labels[:-1] * K + labels[1:]]
        if self.data.boundary:
            columns += [at.starts + labels[:1], at.stops + labels[-1:]]
        n_ones = sum(map(len, columns[1:]))
        given = np.concatenate([values, np.ones(n_ones)])
        return sparse_row(np.concatenate(columns), given, self.n_features)

    def loss(self, y: Any, y_hat: Any) -> float:
        """Wrong labels, their share, or whether there are any, or costs; see `Problem.loss`."""
        data = self.data
        if not len(data.cost_rows):
            return counted_loss(np.not_equal(y, y_hat), data.normalized, data.zero_one)
        if self._own_rows:
            raise ValueError("the costs of labels depend on their tokens, not on the true labels")
        costs = data.costs[np.asarray(y), np.asarray(y_hat)]
        if data.zero_one:
            return float(costs.any())
        return float(costs.mean() if data.normalized else costs.sum())

    def predict(self, x: Any, w: Floats) -> Ints32:
        """Best labels that the constraints allow; see `Problem.predict`."""
        rows = rows_of(x, self.data.rows)
        return self.decoder.decode(rows, np.array([0, rows.n_rows]), w)

    def predictions(self, indices: Ints, w: Floats) -> Planes:
        """Best labelling of each listed sequence; see `Problem.predictions`."""
        return self._checked_search(indices, w, PREDICT)

    def k_best(
        self,
        indices: Ints,
        w: Floats,
        k: int,
        rescaling: Rescaling = "margin",
        sqrt_loss: bool = False,
    ) -> Planes:
        """The k best wrong labellings of each listed sequence; see `Problem.k_best`."""
        mode = self._mode(rescaling, sqrt_loss)
        if self._needs_own_search(mode):
            raise ValueError(
                "the k best labellings of chains with costs are found where these add up: use "
                "rescaling='margin' with sqrt_loss=False and a loss other than 'zero-one'"
            )
        examples = as_examples(indices, self.n_examples)
        w = as_weights(w, self.layout.size)
        capacity = k * int(self._row_bounds[examples].sum())
        out = empty_planes(k * len(examples), capacity)
        transition, start, stop = self.decoder.potentials(w)
        longest = int(self._lengths[examples].max(initial=1))
        work = self.decoder.scratch(longest, start, stop)
        paths = make_k_best_scratch(longest, self.data.n_labels, k + 1, mode.kind == ERROR_COUNTS)
        chain_k_best(self.data, examples, w, transition, k, mode, work, paths, out)
        return trim(out)

    def online_pass(
        self, examples: Ints, weights: Floats, rule: OnlineRule, state: OnlineState
    ) -> None:
        """Steps of an online solver, one sequence after the other, where the loss adds up."""
        K, forbidden = self.data.n_labels, self.decoder.forbidden
        work = self.decoder.scratch(self.longest, np.empty(K), np.empty(K))
        capacity = int(self._row_bounds[examples].max(initial=0))
        row = empty_planes(1, capacity)
        chain_online(self.data, examples, weights, forbidden, rule, state, work, row)

    def _mode(self, rescaling: Rescaling, sqrt_loss: bool) -> SearchMode:
        """What to search for; see `costs.costed_labellings` for labellings without costs."""
        mode = search_mode(rescaling, sqrt_loss, self.data.zero_one)
        if mode.kind == BEST_NON_GOLD and self.has_free_labels:
            return mode._replace(slack=rescaling != "margin")
        return mode

    def _needs_own_search(self, mode: SearchMode) -> bool:
        """Whether labellings are found by `costs.costed_labellings`."""
        has_costs = len(self.data.cost_rows) > 0
        return has_costs and (
            mode.kind == ERROR_COUNTS or (mode.kind == BEST_NON_GOLD and self.has_free_labels)
        )

    def _search(self, examples: Ints, w: Floats, mode: SearchMode, as_blocks: bool) -> Planes:
        """Labellings; parts are tokens under labels, and the single weights behind those."""
        bounds = self._block_bounds if as_blocks else self._row_bounds
        capacity = int(bounds[examples].sum())
        out = empty_planes(len(examples), capacity)
        if self._needs_own_search(mode):
            found = costed_labellings(self, examples, w, mode)
            write_labellings(self.data, examples, found, as_blocks, out)
            return trim(out)
        transition, start, stop = self.decoder.potentials(w)
        work = self.decoder.scratch(self.longest, start, stop)
        chain_oracle(self.data, examples, w, transition, mode, as_blocks, work, out)
        return trim(out)

    def _longest_rows(self) -> Ints:
        """Upper bound on the entries of each example's row."""
        rows, offsets = self.data.rows, self.data.offsets
        lengths = np.diff(offsets)
        entries = rows.indptr[offsets[1:]] - rows.indptr[offsets[:-1]]
        return 2 * (entries + lengths * (1 + int(rows.bias != 0.0)) + 2)
