"""Scores and best labellings of chains of all orders, without a problem to learn."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...engine.cost_model import scoring_work
from ...engine.packed_problem import entries_per_row, sparse_rows
from ...engine.rows import make_rows
from ...search.limits import as_weights
from ...utils.types import Bools, Floats, Ints, Ints32
from .k_best import check_table, decode_k_best, make_k_best_scratch
from .kernels import ChainScratch, decode_chains
from .layout import ChainConstraints, ChainLayout, ChainModel, check_possible, forbidden_moves
from .state_kernels import ChainInputs, StateScratch, decode_states, score_labellings

__all__ = ["NO_PAIRS", "ChainDecoder", "KBest", "make_scratch"]

NO_PAIRS = sparse_rows(sp.csr_matrix((0, 0)))  # of tokens without transition features


class ChainDecoder:
    """Scores and decodes packed sequences with given weights; holds no examples."""

    def __init__(self, layout: ChainLayout, constraints: ChainConstraints | None = None) -> None:
        self.layout = layout
        self.constraints = constraints
        #: See `forbidden_moves`.
        self.forbidden = forbidden_moves(constraints, layout.n_labels)

    def potentials(self, w: Floats) -> tuple[Floats, Floats, Floats]:
        """Weights of transitions, first and last labels, with -inf where forbidden."""
        K, (start, stop) = self.layout.n_labels, self.layout.boundaries(w)
        transitions = self.layout.transitions(w) + self.forbidden[:K]
        return transitions, start + self.forbidden[K], stop + self.forbidden[K + 1]

    def inputs(
        self, tokens: Any, pair_tokens: Any = None, *, check_indices: bool = True
    ) -> ChainInputs:
        """Features of tokens as kernels take them; a constant one is added if the model has one."""
        has_constant = self.layout.n_inputs == tokens.shape[1] + 1
        # Those of higher orders would take long to compile for other types of rows.
        form: dict[str, Any] = (
            {} if self.layout.is_first_order else {"sparse": True, "dtype": np.float64}
        )
        rows = make_rows(tokens, fit_intercept=has_constant, check_indices=check_indices, **form)
        inputs = ChainInputs(rows, NO_PAIRS if pair_tokens is None else sparse_rows(pair_tokens))
        self._check(inputs)
        return inputs

    def _check(self, inputs: ChainInputs) -> None:
        """Raise ValueError unless inputs are those of the layout."""
        rows, pair_rows = inputs
        sizes = rows.n_inputs, pair_rows.n_inputs
        expected = self.layout.n_inputs, self.layout.n_pair_inputs
        if sizes != expected or (expected[1] and pair_rows.n_rows != rows.n_rows):
            raise ValueError(
                f"{rows.n_rows} tokens have {sizes[0]} features and {pair_rows.n_rows} have "
                f"{sizes[1]} transition features, expected {expected[0]} and {expected[1]}"
            )

    def checked(self, inputs: ChainInputs, w: Floats) -> Floats:
        """The weights, if they and the inputs are those of the layout."""
        self._check(inputs)
        return as_weights(w, self.layout.size)

    def mask(self, inputs: ChainInputs, allowed: Bools | None) -> Bools:
        """What kernels take for the labels that are allowed."""
        K, n = self.layout.n_labels, inputs.rows.n_rows
        mask = np.empty((0, K), bool) if allowed is None else np.ascontiguousarray(allowed, bool)
        if allowed is not None and mask.shape != (n, K):
            raise ValueError(f"allowed has shape {mask.shape}, expected {(n, K)}")
        return mask

    def scratch(self, longest: int, start: Floats, stop: Floats) -> ChainScratch:
        """Work arrays of the fast path, for sequences of at most ``longest`` tokens."""
        K = self.layout.n_labels
        return ChainScratch(
            np.empty((longest, K)), np.empty((longest, K)), np.empty(longest, np.int32), start, stop
        )

    def token_work(self, inputs: ChainInputs) -> float:
        """Counted work of a token."""
        K, work = (
            self.layout.n_labels,
            scoring_work(entries_per_row(inputs.rows), self.layout.n_columns),
        )
        if self.layout.is_first_order:
            return work + 0.5 * K * K
        if self.layout.n_pair_inputs:
            n_pairs = len(self.layout.tuples.pairs)
            work += scoring_work(entries_per_row(inputs.pair_rows), n_pairs)
        return work + moves_work(self.layout.model)

    def decode(
        self, inputs: ChainInputs, offsets: Ints, w: Floats, allowed: Bools | None = None
    ) -> Ints32:
        """Best labels of all tokens, of those that ``allowed`` (n_tokens, n_labels) marks."""
        paths = self.decode_possible(inputs, offsets, w, allowed)
        check_possible(paths[offsets[:-1]] < 0)
        return paths

    def decode_possible(
        self, inputs: ChainInputs, offsets: Ints, w: Floats, allowed: Bools | None = None
    ) -> Ints32:
        """The same, with -1 for all tokens of sequences that no labelling is allowed for."""
        w, mask = self.checked(inputs, w), self.mask(inputs, allowed)
        paths = np.empty(int(offsets[-1]), dtype=np.int32)
        longest = int(np.diff(offsets).max(initial=1))
        if self.layout.is_first_order:
            K, (transition, *ends) = self.layout.n_labels, self.potentials(w)
            work = self.scratch(longest, *ends)
            decode_chains(inputs.rows, offsets, w, K, transition, mask, work, paths)
        else:
            model = self.layout.model
            states = make_scratch(model, longest)
            decode_states(model, inputs, offsets, w, self.forbidden, mask, states, paths)
        return paths

    def score(self, inputs: ChainInputs, offsets: Ints, labels: Ints32, w: Floats) -> Floats:
        """Scores <w, psi(x, y)> of given labels, one of each sequence; constraints do not count."""
        w, model = self.checked(inputs, w), self.layout.model
        work = make_scratch(model, int(np.diff(offsets).max(initial=1)))
        scores, nothing = np.empty(len(offsets) - 1), np.zeros_like(self.forbidden)
        codes = np.ascontiguousarray(labels, np.int32)
        score_labellings(model, inputs, offsets, codes, w, nothing, work, scores)
        return scores

    def decode_k_best(
        self, inputs: ChainInputs, offsets: Ints, w: Floats, k: int, allowed: Bools | None = None
    ) -> KBest:
        """The k best labellings of each sequence, best first; none where none is allowed."""
        w, mask, model = self.checked(inputs, w), self.mask(inputs, allowed), self.layout.model
        longest, n = int(np.diff(offsets).max(initial=1)), len(offsets) - 1
        k = min(k, model.n_labels**longest)  # there are no more
        work = make_scratch(model, longest), make_k_best_scratch(model, longest, k)
        best = KBest(
            np.zeros(k * int(offsets[-1]), np.int32),
            np.empty((n, k)),
            np.empty(n, np.int64),
            offsets,
        )
        decode_k_best(model, inputs, offsets, w, self.forbidden, mask, k, *work, best[:3])
        return best


class KBest(NamedTuple):
    """Labellings of sequences, best first, with room for k of each.

    Those of sequence i stand one after the other from ``labels[k * offsets[i]]`` on; there are
    ``found[i]`` of them, with ``scores[i]``.
    """

    labels: Ints32
    scores: Floats
    found: Ints
    offsets: Ints

    def listed(self, labels: list[Any]) -> list[list[tuple[list[Any], float]]]:
        """Of each sequence its labellings and their scores, in lists of what labels stand for.

        ``labels`` has that for all `labels` there are. Loops are left to C, for this takes the GIL.
        """
        ends = np.cumsum(self.found)
        sequence = np.repeat(np.arange(len(ends)), self.found)
        rank = np.arange(len(sequence)) - np.repeat(ends - self.found, self.found)
        lengths = np.diff(self.offsets)[sequence]
        starts = self.scores.shape[1] * self.offsets[sequence] + rank * lengths
        places = map(slice, starts.tolist(), (starts + lengths).tolist())
        paths = map(labels.__getitem__, places)
        pairs = list(zip(paths, self.scores[sequence, rank].tolist(), strict=True))
        return [pairs[first:end] for first, end in pairwise([0, *ends.tolist()])]


def make_scratch(model: ChainModel, longest: int, n_error_counts: int = 1) -> StateScratch:
    """Work arrays for sequences of at most ``longest`` tokens."""
    K, S = model.n_labels, model.states.n_states
    check_table(8 * longest * n_error_counts * S, longest, S, n_error_counts)
    return StateScratch(
        np.empty((S, K)),
        np.empty((longest, model.n_columns)),
        np.empty(model.n_pairs),
        np.empty((longest, K * K if model.has_pairs else 0)),
        np.empty((longest, n_error_counts, S)),
        np.empty(S),
        np.empty(K),
        np.empty(longest, np.int32),
        np.empty((longest, K), np.bool_),
    )


def moves_work(model: ChainModel) -> float:
    """Counted work of a token's moves."""
    return (0.25 * model.states.n_states + len(model.states.core_last)) * model.n_labels
