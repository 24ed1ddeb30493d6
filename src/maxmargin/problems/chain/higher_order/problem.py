"""Chains with transitions of higher orders and features of the input on pairs of labels.

`layout` tells the joint features, `automaton` how they are searched.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ....cutting_planes import Planes, empty_planes, trim
from ....engine.accelerators import FactoredAccelerators
from ....engine.cost_model import scoring_work
from ....engine.packed_problem import (
    FactoredProblem,
    chunks_of,
    counted_loss,
    entries_of,
    feature_blocks_of,
    matrix_of,
    rows_at,
    sparse_row,
)
from ....engine.rows import check_codes
from ....formulation import Formulation, Rescaling
from ....search.bounded_search import Violation, common_unit
from ....search.limits import as_examples, as_weights, check_number_of_weights
from ....search.modes import BEST_NON_GOLD, ERROR_COUNTS, PREDICT, SearchMode, search_mode
from ....types import Floats, Ints, Ints32
from ..constraints import ChainConstraints
from ..costs import checked_costs
from ..sequences import ChainLoss, check_loss, labelled_tokens
from .bounded import bounded_path
from .decoder import HigherOrderDecoder
from .k_best import higher_order_k_best
from .kernels import (
    higher_order_oracle,
    score_moves,
    score_tokens,
    write_candidates,
)
from .layout import HigherOrderLayout
from .scratch import HigherOrderInputs, HigherOrderScratch, make_lists, make_scratch
from .tuples import LabelTuples

__all__ = ["HigherOrderChainProblem"]


class HigherOrderData(NamedTuple):
    """What the kernels need to know of the examples."""

    inputs: HigherOrderInputs
    offsets: Ints
    labels: Ints32
    costs: Floats  # (row, label)
    cost_rows: Ints32  # (token,)
    normalized: bool
    zero_one: bool


class HigherOrderChainProblem(FactoredProblem):
    """Label sequences whose features see several labels, with exact oracles for every rescaling.

    Parameters
    ----------
    tokens : array or CSR matrix of shape (n_tokens, n_token_features)
        Features of all tokens of all sequences, one after the other.
    offsets : array of int, shape (n_examples + 1,)
        Sequence i has the tokens ``offsets[i]`` to ``offsets[i + 1] - 1``.
    labels : array of int, shape (n_tokens,)
        True labels, in ``0..n_labels - 1``.
    n_labels : int
        Number of labels.
    tuples : LabelTuples
        Pairs of labels that features of the input have weights for, triples and quadruples that
        have weights; see `label_tuples`.
    pair_tokens : array or CSR matrix of shape (n_tokens, n_pair_features), optional
        Transition features: features of a token on the label before it together with its own.
    emission_order : {0, 1}
        With 1 all token features have weights for those pairs, besides those for labels.
    eta : float
        What transitions and transition features are multiplied by.
    loss : {"hamming", "normalized-hamming", "zero-one"}
        Number of wrong labels, their share, or 1 if any is wrong.
    costs : array of shape (n_rows, n_labels), optional
        What labels cost in place of 1: label k of token t ``costs[cost_rows[t], k]``.
    cost_rows : array of int, shape (n_tokens,), optional
        By default the true labels.
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
        n_labels: int,
        tuples: LabelTuples,
        pair_tokens: Any = None,
        *,
        emission_order: int = 0,
        eta: float = 1.0,
        loss: ChainLoss = "hamming",
        costs: ArrayLike | None = None,
        cost_rows: ArrayLike | None = None,
        fit_intercept: bool = False,
        boundary_weights: bool = False,
        constraints: ChainConstraints | None = None,
    ) -> None:
        check_loss(loss)
        if loss == "zero-one" and costs is not None:
            raise ValueError("costs of labels are not for loss='zero-one'")
        n_tokens, n_columns = tokens.shape
        bounds, codes = labelled_tokens(n_tokens, offsets, labels)
        K = int(n_labels)
        check_codes(codes, K, "labels")
        self.layout = HigherOrderLayout(
            n_columns + bool(fit_intercept),
            K,
            boundary_weights,
            tuples,
            emission_order=emission_order,
            n_pair_inputs=0 if pair_tokens is None else pair_tokens.shape[1],
            eta=eta,
        )
        check_number_of_weights(
            self.layout.size,
            f"{self.layout.n_inputs} features x {self.layout.n_columns} labels and pairs make",
        )
        self.decoder = HigherOrderDecoder(self.layout, constraints)
        self.n_features = self.layout.size
        #: Whether a wrong label costs 1, so that the loss is a number of errors.
        self.unit_costs = costs is None
        table, rows = checked_costs(costs, cost_rows, codes, K)
        if costs is None:
            table, rows = 1.0 - np.eye(K), codes
        self._cost_unit = common_unit(table)
        inputs = self.decoder.inputs(tokens, pair_tokens)
        normalized, zero_one = loss == "normalized-hamming", loss == "zero-one"
        self._hold(HigherOrderData(inputs, bounds, codes, table, rows, normalized, zero_one))
        if constraints is not None:
            constraints.check_gold(codes, bounds)

    def _hold(self, data: HigherOrderData) -> None:
        """Take the examples, and note how long they and their rows are."""
        self.data = data
        self._lengths = np.diff(data.offsets)
        ends, starts = data.offsets[1:], data.offsets[:-1]
        rows, pair_rows = data.inputs
        entries = rows.indptr[ends] - rows.indptr[starts] + self._lengths * (rows.bias != 0.0)
        of_pairs = pair_rows.indptr[ends] - pair_rows.indptr[starts]
        emissions = 2 if self.layout.emission_order else 1
        # Of a token: a pair, a triple and a quadruple of labels, right and wrong.
        self._row_bounds = 2 * (emissions * entries + of_pairs + 3 * self._lengths + 2)
        self._block_bounds = 2 * (of_pairs + (3 + emissions) * self._lengths + 2)
        self.feature_blocks = feature_blocks_of(rows, self.layout.n_columns, self.layout.size)

    def subset(self, indices: Ints) -> HigherOrderChainProblem:
        """See `Problem.subset`."""
        tokens, offsets = chunks_of(self.data.offsets, indices)
        rows, pair_rows = self.data.inputs
        feature_block = copy.copy(self)
        feature_block._hold(
            self.data._replace(
                inputs=HigherOrderInputs(rows_at(rows, tokens), rows_at(pair_rows, tokens)),
                offsets=offsets,
                labels=self.data.labels[tokens],
                cost_rows=self.data.cost_rows[tokens],
            )
        )
        return feature_block

    @property
    def n_examples(self) -> int:
        """Number of sequences."""
        return len(self.data.offsets) - 1

    def accelerators(self, formulation: Formulation) -> HigherOrderAccelerators:
        """Planes in parts, and searches at scaled weights."""
        return HigherOrderAccelerators(self, formulation)

    # ----- one sequence at a time ---------------------------------------------------------------

    def input_of(self, i: int) -> tuple[Any, Any, Ints32]:
        """Features of the tokens of sequence i, transition features, and rows of costs."""
        first, end = self.data.offsets[i], self.data.offsets[i + 1]
        rows, pair_rows = self.data.inputs
        cost_rows = self.data.cost_rows[first:end].copy()
        return matrix_of(rows, first, end), matrix_of(pair_rows, first, end), cost_rows

    def output_of(self, i: int) -> Ints32:
        """Gold labels of sequence i."""
        return self.data.labels[self.data.offsets[i] : self.data.offsets[i + 1]].copy()

    def joint_feature(self, x: Any, y: Any) -> Any:
        """See `Problem.joint_feature`, and `layout` for the order of the features."""
        layout, at = self.layout, self.layout.offsets
        K, W, P, eta = layout.n_labels, layout.n_columns, len(layout.tuples.pairs), layout.eta
        labels = np.asarray(y, dtype=np.int64)
        rows, pair_rows = self.data.inputs
        tokens, inputs, values = entries_of(x[0], rows)
        found = [(inputs * W + labels[tokens], values)]
        number = np.full(len(labels), -1, np.int64)
        number[1:] = layout.model.pair_number[labels[:-1] * K + labels[1:]]
        if layout.emission_order:
            known = number[tokens] >= 0
            found.append(((inputs * W + K + number[tokens])[known], values[known]))
        found.append(_ones(at.transitions + labels[:-1] * K + labels[1:], eta))
        for begin, table in ((at.triples, layout.tuples[1]), (at.quadruples, layout.tuples[2])):
            listed = {t: n for n, t in enumerate(map(tuple, table.tolist()))}
            windows = zip(
                *(labels[start:].tolist() for start in range(table.shape[1])), strict=False
            )
            places = [begin + listed[window] for window in windows if window in listed]
            found.append(_ones(np.array(places, np.int64), eta))
        tokens, inputs, values = entries_of(x[1], pair_rows)
        known = number[tokens] >= 0
        place = at.pair_features + inputs * P + number[tokens]
        found.append((place[known], eta * values[known]))
        if layout.boundary:
            found.append(_ones(np.array([at.starts + labels[0], at.stops + labels[-1]]), 1.0))
        columns, given = (
            np.concatenate(feature_blocks) for feature_blocks in zip(*found, strict=True)
        )
        return sparse_row(columns, given, self.n_features)

    def loss(self, y: Any, y_hat: Any) -> float:
        """What wrong labels cost; see `Problem.loss`. Costs are those of the true labels' rows."""
        if self.unit_costs:
            wrong = np.not_equal(y, y_hat)
            return counted_loss(wrong, self.data.normalized, self.data.zero_one)
        total = self.data.costs[np.asarray(y), np.asarray(y_hat)]
        return float(total.mean() if self.data.normalized else total.sum())

    def predict(self, x: Any, w: Floats) -> Ints32:
        """Best labels that the constraints allow; see `Problem.predict`."""
        inputs = self.decoder.inputs(x[0], x[1])
        return self.decoder.decode(inputs, np.array([0, inputs.rows.n_rows]), w)

    # ----- the search ---------------------------------------------------------------------------

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
        if mode.kind == ERROR_COUNTS and not self.unit_costs:
            raise ValueError(
                "with costs of labels the k best are found for rescaling='margin' with "
                "sqrt_loss=False only"
            )
        examples = as_examples(indices, self.n_examples)
        w = as_weights(w, self.layout.size)
        out = empty_planes(k * len(examples), k * int(self._row_bounds[examples].sum()))
        longest = int(self._lengths[examples].max(initial=1))
        error_counts, model = n_error_counts(mode, longest), self.layout.model
        work, lists = make_scratch(model, longest), make_lists(model, longest, k + 1, error_counts)
        higher_order_k_best(
            model, self.data, examples, w, k, mode, self.decoder.forbidden, work, lists, out
        )
        return trim(out)

    def _mode(self, rescaling: Rescaling, sqrt_loss: bool) -> SearchMode:
        """See `FactoredProblem`."""
        return search_mode(rescaling, sqrt_loss, self.data.zero_one)

    def _search(self, examples: Ints, w: Floats, mode: SearchMode, as_blocks: bool) -> Planes:
        """Labellings; parts are tokens under labels and pairs, and the single weights."""
        return self.search_at_scale(examples, w, 1.0, mode, as_blocks)

    def search_at_scale(
        self, examples: Ints, w: Floats, scale: float, mode: SearchMode, as_blocks: bool
    ) -> Planes:
        """The search at ``scale * w``; what is asked is not checked."""
        bounds = self._block_bounds if as_blocks else self._row_bounds
        out = empty_planes(len(examples), int(bounds[examples].sum()))
        longest = int(self._lengths[examples].max(initial=1))
        by_bounds = mode.kind == ERROR_COUNTS and not self.unit_costs
        error_counts = 1 if by_bounds else n_error_counts(mode, longest)
        model = self.layout.model
        work = make_scratch(model, longest, error_counts)
        if by_bounds:
            self._bounded_search(examples, scale * w, mode, as_blocks, work, out)
        else:
            higher_order_oracle(
                model,
                self.data,
                examples,
                w,
                float(scale),
                mode,
                as_blocks,
                self.decoder.forbidden,
                work,
                out,
            )
        return trim(out)

    def _bounded_search(
        self,
        examples: Ints,
        w: Floats,
        mode: SearchMode,
        as_blocks: bool,
        work: HigherOrderScratch,
        out: Planes,
    ) -> None:
        """By branch and bound, where losses have no levels."""
        data, model, forbidden = self.data, self.layout.model, self.decoder.forbidden
        violation = Violation(mode.slack, mode.sqrt_loss)
        paths, losses = [np.empty(0, np.int32)], np.empty(len(examples))
        score_moves(model, w, forbidden, work.scores)
        for r, i in enumerate(examples):
            first, end = int(data.offsets[i]), int(data.offsets[i + 1])
            n = end - first
            score_tokens(model, data.inputs, first, n, w, forbidden, work.all_allowed, work)
            share = 1.0 / n if data.normalized else 1.0
            costs, unit = share * data.costs[data.cost_rows[first:end]], share * self._cost_unit
            path = bounded_path(model, data.labels[first:end], costs, unit, violation, work)
            losses[r] = costs[np.arange(n), path].sum()
            paths.append(path)
        write_candidates(model, data, examples, np.concatenate(paths), losses, as_blocks, out)


class HigherOrderAccelerators(FactoredAccelerators):
    """Tokens under labels and pairs as parts; searches at scaled weights."""

    def __init__(self, problem: HigherOrderChainProblem, formulation: Formulation) -> None:
        super().__init__(problem, formulation)
        self.mode = problem._mode(formulation.rescaling, formulation.uses_sqrt_loss)
        (rows, pair_rows), model = problem.data.inputs, problem.layout.model
        tokens, K = float(rows.n_rows), model.n_labels
        total = scoring_work(float(rows.indptr[-1]), model.n_columns)
        total += scoring_work(float(pair_rows.indptr[-1]), model.n_pairs)
        moves = 0.25 * model.states.n_states * K + len(model.states.core_last) * K
        total += tokens * moves * (2.0 if self.mode.kind == BEST_NON_GOLD else 1.0)
        self.oracle_work = total / max(problem.n_examples, 1)
        if self.mode.kind == ERROR_COUNTS:
            self.oracle_work *= 10.0

    def oracle_at_scale(self, indices: Ints, v: Floats, scale: float) -> Planes:
        """See `Accelerators`."""
        found: Planes = self.problem.search_at_scale(indices, v, scale, self.mode, as_blocks=False)
        return found


def n_error_counts(mode: SearchMode, longest: int) -> int:
    """Numbers of errors that a search tells apart."""
    if mode.kind == BEST_NON_GOLD:
        return 2
    return longest + 1 if mode.kind == ERROR_COUNTS else 1


def _ones(columns: Ints, value: float) -> tuple[Ints, Floats]:
    """Columns with a value each."""
    return columns, np.full(len(columns), value)
