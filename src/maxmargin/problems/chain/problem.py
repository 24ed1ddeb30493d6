"""Chains: one label per token, with transitions between neighbours, of any order.

Joint features are token features under labels or pairs of them, tuples of labels, and on request
first and last labels; `layout` says where their weights are, and how labellings are searched.
"""

from __future__ import annotations

import copy
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...core.cutting_planes import Planes, empty_planes, trim
from ...core.formulation import Formulation, Rescaling
from ...core.problem import Problem
from ...engine.accelerators import FactoredAccelerators
from ...engine.cost_model import scoring_work
from ...engine.oracle import Oracle
from ...engine.packed_problem import (
    FactoredProblem,
    chunks_of,
    counted_loss,
    entries_of,
    feature_blocks_of,
    matrix_of,
    rows_at,
    same_columns,
    sparse_row,
    sparse_rows,
)
from ...engine.rows import Rows, check_codes, is_mapped
from ...engine.steps.online_steps import OnlineRule, OnlineState
from ...search.bounded_search import Violation, common_unit
from ...search.limits import as_examples, as_weights, check_number_of_weights
from ...search.modes import (
    ADDITIVE,
    BEST_NON_GOLD,
    ERROR_COUNTS,
    PREDICT,
    PREDICTION,
    SearchMode,
    search_mode,
)
from ...utils.types import Floats, Ints, Ints32
from ...utils.validation import check_choice
from .costs import bounded_path, checked_costs
from .decoder import NO_PAIRS, ChainDecoder, make_scratch, moves_work
from .k_best import k_best_rows, make_k_best_scratch
from .kernels import chain_online, chain_oracle
from .layout import ChainConstraints, ChainLayout, LabelTuples, WeightOffsets
from .state_kernels import (
    ChainInputs,
    score_moves,
    score_sequence,
    state_oracle,
    write_labellings,
)
from .store import ChainStore

__all__ = ["ChainLoss", "ChainProblem"]

ChainLoss = Literal["hamming", "normalized_hamming", "zero_one"]
READ_AT_ONCE = 2**18  # bytes that are read one after the other, of data in a file


class ChainData(NamedTuple):
    """What the kernels need to know of the examples."""

    rows: Rows
    pair_rows: Rows
    offsets: Ints
    labels: Ints32
    n_labels: int
    at: WeightOffsets
    boundary: bool
    normalized: bool
    zero_one: bool
    costs: Floats
    cost_rows: Ints32  # rows of costs, one for each token; empty where wrong labels cost 1

    @property
    def inputs(self) -> ChainInputs:
        """What a decoder takes."""
        return ChainInputs(self.rows, self.pair_rows)


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
    tuples : LabelTuples, optional
        Pairs of labels that features of the input have weights for, triples and quadruples that
        have weights; see `label_tuples`. By default a chain is of first order.
    pair_tokens : array or CSR matrix of shape (n_tokens, n_pair_features), optional
        Transition features: features of a token on the label before it together with its own.
    emission_order : {0, 1}
        With 1 all token features have weights for those pairs, besides those for labels.
    eta : float
        What transitions and transition features are multiplied by.
    loss : {"hamming", "normalized_hamming", "zero_one"}
        Number of wrong labels, the fraction of them, or 1 if any is wrong. With ``costs``: the sum
        of the costs of the labels, their mean, or 1 if there are any.
    costs : array of shape (n_rows, n_labels), optional
        What labels cost, none of it negative. By default 1, and nothing for the true label.
    cost_rows : array of int, shape (n_tokens,), optional
        Label k costs ``costs[cost_rows[t], k]`` at token t, and the true label nothing. By default
        the true labels, so that ``costs[true, k]`` is the cost of predicting k.
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
        tuples: LabelTuples | None = None,
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
        check_choice(loss, ("hamming", "normalized_hamming", "zero_one"), "loss")
        rows = sparse_rows(tokens, fit_intercept)
        pair_rows = NO_PAIRS if pair_tokens is None else sparse_rows(pair_tokens)
        bounds, codes = _labelled_tokens(rows.n_rows, offsets, labels)
        K = int(n_labels if n_labels is not None else codes.max() + 1)
        check_codes(codes, K, "labels")
        self.layout = ChainLayout(
            rows.n_inputs,
            K,
            boundary_weights,
            tuples,
            emission_order=emission_order,
            n_pair_inputs=pair_rows.n_inputs,
            eta=eta,
        )
        made_by = f"{K} labels" + (" and pairs" if self.layout.n_columns > K else "")
        check_number_of_weights(self.layout.size, f"{rows.n_inputs} features x {made_by} make")
        self.decoder = ChainDecoder(self.layout, constraints)
        self.n_features = self.layout.size
        data = ChainData(
            rows,
            pair_rows,
            bounds,
            codes,
            K,
            self.layout.offsets,
            boundary_weights,
            loss == "normalized_hamming",
            loss == "zero_one",
            *checked_costs(costs, cost_rows, codes, K),
        )
        self.decoder.checked(data.inputs, np.empty(self.n_features))
        self.cost_unit = common_unit(data.costs)
        #: Whether a wrong label may cost nothing.
        self.has_free_labels = bool(((data.costs == 0.0).sum(axis=1) > 1).any())
        self._own_rows = cost_rows is not None
        self._hold(data)
        if constraints is not None:
            constraints.check_gold(codes, bounds)

    def _hold(self, data: ChainData) -> None:
        """Take the examples, and note how long they and their rows are."""
        self.data = data
        lengths, rows, layout = np.diff(data.offsets), data.rows, self.layout
        self._lengths = lengths
        self.longest = int(lengths.max(initial=0))
        entries = _entries(rows, data.offsets) + lengths * int(rows.bias != 0.0)
        of_pairs = _entries(data.pair_rows, data.offsets) if layout.n_pair_inputs else 0
        # Of a token: its features under a label and maybe a pair, and tuples; right and wrong.
        n_emissions = 1 + (layout.n_columns > layout.n_labels)
        n_tuples = 1 + sum(len(table) > 0 for table in layout.tuples[1:])
        moves = of_pairs + n_tuples * lengths + 2
        self._row_bounds = 2 * (n_emissions * entries + moves)
        self._block_bounds = 2 * (n_emissions * lengths + moves)
        self.read_together = 0
        if is_mapped(rows.indices):
            of_one = int(rows.indptr[-1]) // max(len(lengths), 1)
            self.read_together = max(READ_AT_ONCE // (12 * max(of_one, 1)), 1)
        self.feature_blocks = feature_blocks_of(rows, layout.n_columns, layout.size)

    def subset(self, indices: Ints) -> ChainProblem:
        """See `Problem.subset`."""
        return self._at(*chunks_of(self.data.offsets, indices))

    def _at(self, tokens: Ints, offsets: Ints) -> ChainProblem:
        """The sequences that these tokens make."""
        data, chosen = self.data, copy.copy(self)
        has_pair_rows = self.layout.n_pair_inputs > 0
        chosen._hold(
            data._replace(
                rows=rows_at(data.rows, tokens),
                pair_rows=rows_at(data.pair_rows, tokens) if has_pair_rows else NO_PAIRS,
                offsets=offsets,
                labels=data.labels[tokens],
                cost_rows=data.cost_rows[tokens] if len(data.cost_rows) else data.cost_rows,
            )
        )
        return chosen

    def is_renumbered(self, other: Problem) -> bool:
        """See `PackedProblem`."""
        if (
            not isinstance(other, ChainProblem)
            or self.feature_blocks is None
            or other.feature_blocks is None
            or self.layout.n_pair_inputs
            or not self.layout.is_like(other.layout)
        ):
            return False
        own, its = self.data._asdict(), other.data._asdict()
        compared = own.keys() - {"rows", "pair_rows", "at"}
        return (
            all(np.array_equal(own[name], its[name]) for name in compared)
            and np.array_equal(self.decoder.forbidden, other.decoder.forbidden)
            and same_columns(own["rows"], its["rows"])
        )

    def pieces(self, tokens: Ints, offsets: Ints) -> ChainProblem:
        """Pieces of the sequences: cuts are no ends, so there are neither ends nor constraints."""
        chosen = self._at(tokens, offsets)
        chosen.layout = self.layout.with_sizes(self.layout.n_inputs, boundary=False)
        chosen.decoder, chosen.n_features = ChainDecoder(chosen.layout), chosen.layout.size
        chosen._hold(chosen.data._replace(at=chosen.layout.offsets, boundary=False))
        return chosen

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

    # ----- one sequence at a time ---------------------------------------------------------------

    def input_of(self, i: int) -> Any:
        """Token features of sequence i without the constant, with transition features if any."""
        data = self.data
        first, end = data.offsets[i], data.offsets[i + 1]
        tokens = matrix_of(data.rows, first, end)
        if not self.layout.n_pair_inputs:
            return tokens
        return tokens, matrix_of(data.pair_rows, first, end)

    def output_of(self, i: int) -> Ints32:
        """Gold labels of sequence i."""
        return self.data.labels[self.data.offsets[i] : self.data.offsets[i + 1]].copy()

    def joint_feature(self, x: Any, y: Any) -> Any:
        """See `Problem.joint_feature`, and `layout` for the order of the features."""
        layout, at, data = self.layout, self.layout.offsets, self.data
        K, W, P, eta = layout.n_labels, layout.n_columns, len(layout.tuples.pairs), layout.eta
        labels = np.asarray(y, dtype=np.int64)
        tokens, inputs, values = entries_of(x[0] if layout.n_pair_inputs else x, data.rows)
        found = [(inputs * W + labels[tokens], values)]
        number = np.full(len(labels), -1, np.int64)
        if layout.has_pairs:
            number[1:] = layout.model.pair_number[labels[:-1] * K + labels[1:]]
        if W > K:
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
        if layout.n_pair_inputs:
            tokens, inputs, values = entries_of(x[1], data.pair_rows)
            known = number[tokens] >= 0
            place = at.pair_features + inputs * P + number[tokens]
            found.append((place[known], eta * values[known]))
        if layout.boundary:
            found.append(_ones(np.array([at.starts + labels[0], at.stops + labels[-1]]), 1.0))
        columns, given = (np.concatenate(each) for each in zip(*found, strict=True))
        return sparse_row(columns, given, self.n_features)

    def loss(self, y: Any, y_hat: Any) -> float:
        """Wrong labels, or whether there are any, or costs; see `Problem.loss`."""
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
        tokens, pair_tokens = x if self.layout.n_pair_inputs else (x, None)
        rows = sparse_rows(tokens, self.data.rows.bias != 0.0)
        inputs = ChainInputs(rows, NO_PAIRS if pair_tokens is None else sparse_rows(pair_tokens))
        return self.decoder.decode(inputs, np.array([0, rows.n_rows]), w)

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
        if len(self.data.cost_rows) > 0 and mode.kind == ERROR_COUNTS:
            raise ValueError(
                "the k best labellings of chains with costs need rescaling='margin' with "
                "sqrt_loss=False, where costs add up"
            )
        examples = as_examples(indices, self.n_examples)
        w, model = as_weights(w, self.layout.size), self.layout.model
        out = empty_planes(k * len(examples), k * int(self._row_bounds[examples].sum()))
        longest = int(self._lengths[examples].max(initial=1))
        has_free = mode.kind == BEST_NON_GOLD and self.has_free_labels
        counts = longest + 1 if has_free or mode.kind == ERROR_COUNTS else 1
        work = make_scratch(model, longest, counts)
        paths = make_k_best_scratch(model, longest, k + 1, counts)
        k_best_rows(
            model, self.data, examples, w, k, mode, self.decoder.forbidden, work, paths, out
        )
        return trim(out)

    def _mode(self, rescaling: Rescaling, sqrt_loss: bool) -> SearchMode:
        """See `FactoredProblem`; labellings without loss are violated in margin rescaling only."""
        mode = search_mode(rescaling, sqrt_loss, self.data.zero_one)
        return mode._replace(slack=mode.slack or rescaling != "margin")

    def _search(
        self, examples: Ints, w: Floats, mode: SearchMode, as_blocks: bool, scale: float = 1.0
    ) -> Planes:
        """Labellings at ``scale * w``, in features or blocks: tokens under labels and pairs."""
        bounds = self._block_bounds if as_blocks else self._row_bounds
        out = empty_planes(len(examples), int(bounds[examples].sum()))
        # Often one example: a maximum by numpy takes several times as long.
        longest = max(self._lengths[examples].tolist(), default=1)
        if self.layout.is_first_order and mode.kind in (ADDITIVE, PREDICTION):
            transition, start, stop = self.decoder.potentials(w)
            work = self.decoder.scratch(longest, start, stop)
            plain = mode.kind == PREDICTION
            chain_oracle(self.data, examples, w, scale, plain, transition, as_blocks, work, out)
        elif len(self.data.cost_rows) > 0 and mode.kind == ERROR_COUNTS:
            self._bounded_search(examples, scale * w, mode, as_blocks, out)
        else:
            model, forbidden = self.layout.model, self.decoder.forbidden
            counts = {BEST_NON_GOLD: 2, ERROR_COUNTS: longest + 1}.get(mode.kind, 1)
            states = make_scratch(model, longest, counts)
            state_oracle(
                model, self.data, examples, w, scale, mode, as_blocks, forbidden, states, out
            )
        return trim(out)

    def _bounded_search(
        self, examples: Ints, w: Floats, mode: SearchMode, as_blocks: bool, out: Planes
    ) -> None:
        """By branch and bound, where losses have no error counts."""
        data, model, forbidden = self.data, self.layout.model, self.decoder.forbidden
        violation = Violation(mode.slack, mode.sqrt_loss)
        work = make_scratch(model, int(self._lengths[examples].max(initial=1)))
        paths, inputs = [np.empty(0, np.int32)], data.inputs
        score_moves(model, w, forbidden, work.scores)
        for i in examples.tolist():
            first, end = int(data.offsets[i]), int(data.offsets[i + 1])
            score_sequence(model, inputs, first, end - first, w, forbidden, work.wrong[:0], work)
            loss_unit = 1.0 / (end - first) if data.normalized else 1.0
            costs = loss_unit * data.costs[data.cost_rows[first:end]]
            gold, unit = data.labels[first:end], loss_unit * self.cost_unit
            paths.append(bounded_path(model, gold, costs, unit, violation, work))
        write_labellings(model, data, examples, np.concatenate(paths), as_blocks, out)


class ChainAccelerators(FactoredAccelerators):
    """Tokens under labels as blocks; searches inside stores and online passes of first order."""

    def __init__(self, problem: ChainProblem, formulation: Formulation) -> None:
        super().__init__(problem, formulation)
        self.mode = problem._mode(formulation.rescaling, formulation.uses_sqrt_loss)
        data, layout = problem.data, problem.layout
        tokens, K = float(data.rows.n_rows), layout.n_labels
        total = scoring_work(float(data.rows.indptr[-1]), layout.n_columns)
        total += scoring_work(float(data.pair_rows.indptr[-1]), len(layout.tuples.pairs))
        if layout.is_first_order:
            total += 0.5 * tokens * K * K
        else:
            counts = 2.0 if self.mode.kind == BEST_NON_GOLD else 1.0
            total += tokens * moves_work(layout.model) * counts
            total *= 10.0 if self.mode.kind == ERROR_COUNTS else 1.0
        self.oracle_work = total / max(problem.n_examples, 1)
        #: Whether the planes' offsets are plain losses, so that those of tokens may add up.
        self.offsets_are_losses = (
            formulation.rescaling == "margin" and not formulation.uses_sqrt_loss
        )

    def oracle_at_scale(self, indices: Ints, v: Floats, scale: float) -> Planes:
        """See `Accelerators`."""
        found: Planes = self.problem._search(indices, v, self.mode, False, float(scale))
        return found

    def store(self, oracle: Oracle, upper_bounds: Floats, cache_bytes: int) -> ChainStore | None:
        """A store with the oracle inside, of first order, where the loss adds up over tokens."""
        adds_up = self.offsets_are_losses and not self.problem.data.zero_one
        if not adds_up or self.feature_blocks is None or not self.problem.layout.is_first_order:
            return None
        return ChainStore(oracle, self.problem, upper_bounds, cache_bytes)

    def online_pass(
        self, examples: Ints, weights: Floats, rule: OnlineRule, state: OnlineState
    ) -> bool:
        """See `Accelerators`; predictions need no loss that adds up."""
        data, decoder = self.problem.data, self.problem.decoder
        adds_up = self.offsets_are_losses and (rule.plain or not data.zero_one)
        if not adds_up or not self.problem.layout.is_first_order:
            return False
        work = decoder.scratch(
            self.problem.longest, np.empty(data.n_labels), np.empty(data.n_labels)
        )
        row = empty_planes(1, int(self.problem._row_bounds[examples].max(initial=0)))
        chain_online(data, examples, weights, decoder.forbidden, rule, state, work, row)
        return True


def _labelled_tokens(n_tokens: int, offsets: ArrayLike, labels: ArrayLike) -> tuple[Ints, Ints32]:
    """Offsets and labels for kernels; ValueError unless they are those of so many tokens."""
    codes = np.ascontiguousarray(labels, dtype=np.int32)
    bounds = np.ascontiguousarray(offsets, dtype=np.int64)
    if not len(codes) == n_tokens == bounds[-1] or bounds[0] != 0:
        raise ValueError(
            f"tokens has {n_tokens} rows, labels has {len(codes)} entries and offsets runs "
            f"from {bounds[0]} to {bounds[-1]}; the first two and the last must be equal"
        )
    lengths = np.diff(bounds)
    if len(lengths) and lengths.min() < 1:
        raise ValueError(f"sequence {int(np.argmin(lengths))} is empty")
    return bounds, codes


def _entries(rows: Rows, offsets: Ints) -> Ints:
    """Entries of each sequence."""
    counts: Ints = np.diff(rows.indptr[offsets])
    return counts


def _ones(columns: Ints, value: float) -> tuple[Ints, Floats]:
    """Columns with a value each."""
    return columns, np.full(len(columns), value)
