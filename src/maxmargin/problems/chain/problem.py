"""First-order chains: one label per token, with transitions between neighbours.

Joint features are token features under labels, transitions, and on request first and last labels;
`layout` tells where their weights are.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...engine.native import (
    NativeProblem,
    counted_loss,
    entries_of,
    entries_per_row,
    matrix_of,
    parts_of,
    pieces_of,
    rows_at,
    rows_of,
    same_columns,
    sparse_row,
    sparse_rows,
)
from ...engine.online_steps import OnlineRule, OnlineState
from ...engine.rows import Rows, check_codes, is_mapped, row_scores
from ...engine.threads import each_range, in_ranges
from ...engine.work import scoring_work
from ...formulation import Formulation, Rescaling
from ...plane_rows import Planes, empty_planes, trim
from ...problem import Problem
from ...search.bounded_search import common_unit
from ...search.limits import as_examples, as_weights, check_number_of_weights
from ...search.modes import DEVIATION, LEVELS, PREDICT, SearchMode, search_mode
from ...types import Bools, Floats, Ints, Ints32
from .accelerators import ChainAccelerators
from .cost_kernels import write_labellings
from .costs import checked_costs, costed_labellings
from .k_best import chain_k_best, decode_k_best, make_k_best_scratch
from .kernels import chain_oracle, decode_chains
from .layout import ChainLayout, WeightOffsets
from .online import chain_online

__all__ = ["ChainProblem", "bio_constraints"]

ChainLoss = Literal["hamming", "normalized-hamming", "zero-one"]

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


class ChainScratch(NamedTuple):
    """Work arrays of the kernels, for the longest sequence."""

    unary: Floats
    forward: Floats
    path: Ints32
    start: Floats
    stop: Floats


class ChainConstraints(NamedTuple):
    """Which labels may follow each other, open and close a sequence (True: allowed)."""

    transitions: Bools
    start: Bools
    stop: Bools

    def broken_by(self, labels: Ints32, offsets: Ints) -> Bools:
        """Tokens whose label may not stand where it does."""
        broken = np.zeros(len(labels), dtype=bool)
        broken[1:] = ~self.transitions[labels[:-1], labels[1:]]
        first, last = offsets[:-1], offsets[1:] - 1
        broken[first] = ~self.start[labels[first]]
        broken[last] |= ~self.stop[labels[last]]
        return broken

    def check_gold(self, labels: Ints32, offsets: Ints) -> None:
        """Raise ValueError if a training sequence breaks the constraints."""
        bad = self.broken_by(labels, offsets)
        if bad.any():
            token = int(np.argmax(bad))
            i = int(np.searchsorted(offsets, token, side="right")) - 1
            raise ValueError(
                f"the labels of sequence {i} break the constraints at token {token - offsets[i]}"
            )


def bio_constraints(labels: list[str]) -> ChainConstraints:
    """Allowed transitions of BIO (IOB2) tags: I-X only after B-X or I-X, and never first."""
    K = len(labels)
    names = [str(label) for label in labels]
    allowed = np.ones((K, K), dtype=bool)
    start = np.ones(K, dtype=bool)
    for k, name in enumerate(names):
        if name.startswith("I-"):
            kind = name[2:]
            allowed[:, k] = [other in (f"B-{kind}", f"I-{kind}") for other in names]
            start[k] = False
    return ChainConstraints(allowed, start, np.ones(K, dtype=bool))


class ChainDecoder:
    """Scores and decodes packed sequences with given weights; holds no examples."""

    def __init__(self, layout: ChainLayout, constraints: ChainConstraints | None = None) -> None:
        self.layout = layout
        self.constraints = constraints
        K = layout.n_labels
        for mask, shape in zip(constraints or (), ((K, K), (K,), (K,)), strict=False):
            if mask.shape != shape:
                raise ValueError(f"constraints of shape {mask.shape}, expected {shape}")

    def potentials(self, w: Floats) -> tuple[Floats, Floats, Floats]:
        """Transition, start and stop scores at ``w``, with -inf where forbidden."""
        transition = self.layout.transitions(w)
        start, stop = self.layout.boundaries(w)
        if self.constraints is not None:
            transition = np.where(self.constraints.transitions, transition, -np.inf)
            start = np.where(self.constraints.start, start, -np.inf)
            stop = np.where(self.constraints.stop, stop, -np.inf)
        return np.ascontiguousarray(transition), start, stop

    def forbidden(self) -> Floats:
        """0 or, where forbidden, -inf: for transitions, then one row for starts, one for stops."""
        K = self.layout.n_labels
        if self.constraints is None:
            return np.zeros((K + 2, K))
        allowed = np.vstack(
            [self.constraints.transitions, self.constraints.start, self.constraints.stop]
        )
        return np.where(allowed, 0.0, -np.inf)

    def scratch(self, longest: int, start: Floats, stop: Floats) -> ChainScratch:
        """Work arrays for sequences of at most ``longest`` tokens."""
        K = self.layout.n_labels
        return ChainScratch(
            np.empty((longest, K)), np.empty((longest, K)), np.empty(longest, np.int32), start, stop
        )

    def _checked(self, rows: Rows, w: Floats) -> Floats:
        """The weights, if they and the rows are those of the layout."""
        if rows.n_inputs != self.layout.n_inputs:
            raise ValueError(
                f"tokens have {rows.n_inputs} features, expected {self.layout.n_inputs}"
            )
        return as_weights(w, self.layout.size)

    def decode(
        self,
        rows: Rows,
        offsets: Ints,
        w: Floats,
        allowed: Bools | None = None,
        n_jobs: int | None = None,
    ) -> Ints32:
        """Best labels of all tokens, of those that ``allowed`` (n_tokens, n_labels) marks."""
        paths = self.decode_possible(rows, offsets, w, allowed, n_jobs)
        refuse_impossible(paths[offsets[:-1]] < 0)
        return paths

    def decode_possible(
        self,
        rows: Rows,
        offsets: Ints,
        w: Floats,
        allowed: Bools | None = None,
        n_jobs: int | None = None,
    ) -> Ints32:
        """The same, with -1 for all tokens of sequences that no labelling is allowed for."""
        found = [codes for codes, _ in self.decode_pieces(rows, offsets, w, allowed, n_jobs)]
        return np.concatenate(found) if len(found) > 1 else found[0]

    def decode_pieces(
        self,
        rows: Rows,
        offsets: Ints,
        w: Floats,
        allowed: Bools | None = None,
        n_jobs: int | None = None,
    ) -> Iterator[tuple[Ints32, Ints]]:
        """The same of some sequences at a time, with their offsets."""
        w = self._checked(rows, w)
        K, mask = self.layout.n_labels, self._mask(rows, allowed)
        transition, start, stop = self.potentials(w)
        paths = np.empty(int(offsets[-1]), dtype=np.int32)

        def decode(first: int, end: int) -> tuple[Ints32, Ints]:
            own = offsets[first : end + 1]
            work = self.scratch(int(np.diff(own).max(initial=0)), start, stop)
            decode_chains(rows, own, w, K, transition, mask, work, paths)
            return paths[own[0] : own[-1]], own - own[0]

        return in_ranges(n_jobs, offsets, self.token_work(rows), decode)

    def token_work(self, rows: Rows) -> float:
        """Counted work of a token."""
        K = self.layout.n_labels
        return scoring_work(entries_per_row(rows), K) + 0.5 * K * K

    def _mask(self, rows: Rows, allowed: Bools | None) -> Bools:
        """What kernels take for the labels that are allowed."""
        K = self.layout.n_labels
        mask = np.empty((0, K), bool) if allowed is None else np.ascontiguousarray(allowed, bool)
        if allowed is not None and mask.shape != (rows.n_rows, K):
            raise ValueError(f"allowed has shape {mask.shape}, expected {(rows.n_rows, K)}")
        return mask

    def score(self, rows: Rows, offsets: Ints, labels: Ints32, w: Floats) -> Floats:
        """Scores <w, psi(x, y)> of given labels, one of each sequence; constraints do not count."""
        w = self._checked(rows, w)
        first, last = offsets[:-1], offsets[1:] - 1
        scores = row_scores(rows, self.layout.emissions(w))[np.arange(len(labels)), labels]
        after = np.delete(np.arange(len(labels)), first)
        scores[after] += self.layout.transitions(w)[labels[after - 1], labels[after]]
        start, stop = self.layout.boundaries(w)
        scores[first] += start[labels[first]]
        scores[last] += stop[labels[last]]
        return np.add.reduceat(scores, first)

    def decode_k_best(
        self,
        rows: Rows,
        offsets: Ints,
        w: Floats,
        k: int,
        allowed: Bools | None = None,
        n_jobs: int | None = None,
    ) -> list[tuple[Ints32, Floats]]:
        """The k best labellings of each sequence, best first, one in a row, and their scores."""
        w = self._checked(rows, w)
        n, K, lengths = len(offsets) - 1, self.layout.n_labels, np.diff(offsets)
        if n == 0:
            return []
        make_k_best_scratch(int(lengths.max()), K, k)  # refuses what takes too much memory
        transition, start, stop = self.potentials(w)
        labels = np.empty(k * int(offsets[-1]), np.int32)
        scores, found = np.empty((n, k)), np.empty(n, np.int64)
        mask = self._mask(rows, allowed)

        def decode(first: int, end: int) -> None:
            own, longest = offsets[first : end + 1], int(lengths[first:end].max())
            work = self.scratch(longest, start, stop), make_k_best_scratch(longest, K, k)
            into = labels, scores[first:end], found[first:end]
            decode_k_best(rows, own, w, K, transition, mask, k, *work, *into)

        each_range(n_jobs, offsets, k * self.token_work(rows), decode)
        refuse_impossible(found == 0)
        answers = []
        for i, (length, count) in enumerate(zip(lengths.tolist(), found.tolist(), strict=True)):
            first = k * int(offsets[i])
            table = labels[first : first + count * length].reshape(count, length)
            answers.append((table, scores[i, :count]))
        return answers


def refuse_impossible(impossible: Bools, before: int = 0) -> None:
    """Raise ValueError for the first sequence, behind others, that no labelling is allowed for."""
    if impossible.any():
        raise ValueError(
            f"sequence {before + int(np.argmax(impossible))}: no labelling has allowed labels and "
            "allowed transitions only"
        )


class ChainProblem(NativeProblem):
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
        if loss not in ("hamming", "normalized-hamming", "zero-one"):
            raise ValueError(
                f"loss must be 'hamming', 'normalized-hamming' or 'zero-one', got {loss!r}"
            )
        rows = sparse_rows(tokens, fit_intercept)
        codes = np.ascontiguousarray(labels, dtype=np.int32)
        bounds = np.ascontiguousarray(offsets, dtype=np.int64)
        lengths = np.diff(bounds)
        if not len(codes) == rows.n_rows == bounds[-1] or bounds[0] != 0:
            raise ValueError(
                f"tokens has {rows.n_rows} rows, labels has {len(codes)} entries and offsets runs "
                f"from {bounds[0]} to {bounds[-1]}; the first two and the last must be equal"
            )
        if len(lengths) and lengths.min() < 1:
            raise ValueError(f"sequence {int(np.argmin(lengths))} is empty")
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
        self._part_bounds = 4 * self._lengths + 4
        self.read_together = 0
        if is_mapped(data.rows.indices):
            entries = int(data.rows.indptr[-1]) // max(len(self._lengths), 1)
            self.read_together = max(READ_AT_ONCE // (12 * max(entries, 1)), 1)
        self.parts = parts_of(data.rows, data.n_labels, self.layout.size)

    def subset(self, indices: Ints) -> ChainProblem:
        """See `Problem.subset`."""
        return self._at(*pieces_of(self.data.offsets, indices))

    def _at(self, tokens: Ints, offsets: Ints) -> ChainProblem:
        """The sequences that these tokens make."""
        data, part = self.data, copy.copy(self)
        cost_rows = data.cost_rows[tokens] if len(data.cost_rows) else data.cost_rows
        part._hold(
            data._replace(
                rows=rows_at(data.rows, tokens),
                offsets=offsets,
                labels=data.labels[tokens],
                cost_rows=cost_rows,
            )
        )
        return part

    def is_renumbered(self, other: Problem) -> bool:
        """See `NativeProblem`."""
        if not isinstance(other, ChainProblem) or self.parts is None or other.parts is None:
            return False
        own, its = self.data._asdict(), other.data._asdict()
        return (
            all(np.array_equal(own[name], its[name]) for name in own.keys() - {"rows", "at"})
            and np.array_equal(self.decoder.forbidden(), other.decoder.forbidden())
            and same_columns(own["rows"], its["rows"])
        )

    def pieces(self, tokens: Ints, offsets: Ints) -> ChainProblem:
        """Pieces of the sequences: cuts are no ends, so there are neither ends nor constraints."""
        part = self._at(tokens, offsets)
        part.layout = self.layout._replace(boundary=False)
        part.decoder, part.n_features = ChainDecoder(part.layout), part.layout.size
        part._hold(part.data._replace(at=part.layout.offsets, boundary=False))
        return part

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
        """Parts, a store with the oracle inside and steps of online solvers."""
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

    def oracle(
        self,
        indices: Ints,
        w: Floats,
        rescaling: Rescaling = "margin",
        sqrt_loss: bool = False,
    ) -> Planes:
        """Most violated labelling of each listed sequence; see `Problem.oracle`."""
        return self._checked_search(indices, w, self._mode(rescaling, sqrt_loss))

    def predictions(self, indices: Ints, w: Floats) -> Planes:
        """Best labelling of each listed sequence; see `Problem.predictions`."""
        return self._checked_search(indices, w, PREDICT)

    def part_oracle(
        self, indices: Ints, w: Floats, rescaling: Rescaling, sqrt_loss: bool
    ) -> Planes:
        """The same, in parts: a token under a label, and the single weights behind those.

        Only solvers ask for them, for one example at a time: what they ask is not checked.
        """
        return self._search(indices, w, self._mode(rescaling, sqrt_loss), as_parts=True)

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
        paths = make_k_best_scratch(longest, self.data.n_labels, k + 1, mode.kind == LEVELS)
        chain_k_best(self.data, examples, w, transition, k, mode, work, paths, out)
        return trim(out)

    def online_pass(
        self, examples: Ints, weights: Floats, rule: OnlineRule, state: OnlineState
    ) -> None:
        """Steps of an online solver, one sequence after the other, where the loss adds up."""
        K, forbidden = self.data.n_labels, self.decoder.forbidden()
        work = self.decoder.scratch(self.longest, np.empty(K), np.empty(K))
        capacity = int(self._row_bounds[examples].max(initial=0))
        row = empty_planes(1, capacity)
        chain_online(self.data, examples, weights, forbidden, rule, state, work, row)

    def _mode(self, rescaling: Rescaling, sqrt_loss: bool) -> SearchMode:
        """What to search for; see `costs.costed_labellings` for labellings without costs."""
        mode = search_mode(rescaling, sqrt_loss, self.data.zero_one)
        if mode.kind == DEVIATION and self.has_free_labels:
            return mode._replace(slack=rescaling != "margin")
        return mode

    def _needs_own_search(self, mode: SearchMode) -> bool:
        """Whether labellings are found by `costs.costed_labellings`."""
        has_costs = len(self.data.cost_rows) > 0
        return has_costs and (
            mode.kind == LEVELS or (mode.kind == DEVIATION and self.has_free_labels)
        )

    def _checked_search(self, indices: Ints, w: Floats, mode: SearchMode) -> Planes:
        """Search for features, at what anybody may have asked for."""
        examples = as_examples(indices, self.n_examples)
        return self._search(examples, as_weights(w, self.layout.size), mode, as_parts=False)

    def _search(self, examples: Ints, w: Floats, mode: SearchMode, as_parts: bool) -> Planes:
        """Run the oracle kernel for the listed sequences."""
        bounds = self._part_bounds if as_parts else self._row_bounds
        capacity = int(bounds[examples].sum())
        out = empty_planes(len(examples), capacity)
        if self._needs_own_search(mode):
            found = costed_labellings(self, examples, w, mode)
            write_labellings(self.data, examples, found, as_parts, out)
            return trim(out)
        transition, start, stop = self.decoder.potentials(w)
        work = self.decoder.scratch(self.longest, start, stop)
        chain_oracle(self.data, examples, w, transition, mode, as_parts, work, out)
        return trim(out)

    def _longest_rows(self) -> Ints:
        """Upper bound on the entries of each example's row."""
        rows, offsets = self.data.rows, self.data.offsets
        lengths = np.diff(offsets)
        entries = rows.indptr[offsets[1:]] - rows.indptr[offsets[:-1]]
        return 2 * (entries + lengths * (1 + int(rows.bias != 0.0)) + 2)
