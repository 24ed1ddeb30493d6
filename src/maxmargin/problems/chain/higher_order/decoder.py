"""Scores and best labellings of chains that remember labels, without a problem to learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ....engine.cost_model import scoring_work
from ....engine.packed_problem import entries_per_row, sparse_rows
from ....search.limits import as_weights
from ....types import Bools, Floats, Ints, Ints32
from ..constraints import ChainConstraints, check_possible, forbidden_moves
from ..decoder import KBest, empty_k_best
from .k_best import decode_k_best
from .kernels import decode_higher_order, score_higher_order
from .layout import HigherOrderLayout
from .scratch import HigherOrderInputs, make_lists, make_scratch

__all__ = ["HigherOrderDecoder"]


class HigherOrderDecoder:
    """Scores and decodes packed sequences with given weights; holds no examples."""

    def __init__(
        self, layout: HigherOrderLayout, constraints: ChainConstraints | None = None
    ) -> None:
        self.layout = layout
        self.constraints = constraints
        #: See `forbidden_moves`.
        self.forbidden = forbidden_moves(constraints, layout.n_labels)

    def potentials(self, w: Floats) -> tuple[Floats, Floats, Floats]:
        """Weights of transitions, first and last labels, with -inf where forbidden."""
        K, (start, stop) = self.layout.n_labels, self.layout.boundaries(w)
        transitions = self.layout.transitions(w) + self.forbidden[:K]
        return transitions, start + self.forbidden[K], stop + self.forbidden[K + 1]

    def inputs(self, tokens: Any, pair_tokens: Any = None) -> HigherOrderInputs:
        """Features of tokens as kernels take them; a constant one is added if the model has one."""
        n_columns = tokens.shape[1]
        rows = sparse_rows(tokens, fit_intercept=self.layout.n_inputs == n_columns + 1)
        if pair_tokens is None:
            pair_tokens = sp.csr_matrix((rows.n_rows, 0))
        pair_rows = sparse_rows(pair_tokens)
        sizes, expected = (rows.n_inputs, pair_rows.n_inputs), self._n_inputs
        if sizes != expected or pair_rows.n_rows != rows.n_rows:
            raise ValueError(
                f"{rows.n_rows} tokens have {sizes[0]} features and {pair_rows.n_rows} have "
                f"{sizes[1]} transition features, expected {expected[0]} and {expected[1]}"
            )
        return HigherOrderInputs(rows, pair_rows)

    def token_work(self, inputs: HigherOrderInputs) -> float:
        """Counted work of a token."""
        model, K = self.layout.model, self.layout.n_labels
        return (
            scoring_work(entries_per_row(inputs.rows), model.n_columns)
            + scoring_work(entries_per_row(inputs.pair_rows), model.n_pairs)
            + (0.25 * model.states.n_states + len(model.states.core_last)) * K
        )

    @property
    def _n_inputs(self) -> tuple[int, int]:
        """Features of a token, and transition features."""
        return self.layout.n_inputs, self.layout.n_pair_inputs

    def decode(
        self, inputs: HigherOrderInputs, offsets: Ints, w: Floats, allowed: Bools | None = None
    ) -> Ints32:
        """Best labels of all tokens, of those that ``allowed[token, label]`` tells."""
        paths = self.decode_possible(inputs, offsets, w, allowed)
        if allowed is not None:
            check_possible(paths[offsets[:-1]] < 0)
        return paths

    def decode_possible(
        self, inputs: HigherOrderInputs, offsets: Ints, w: Floats, allowed: Bools | None = None
    ) -> Ints32:
        """The same, with -1 for all tokens of sequences that no labelling is allowed for."""
        if allowed is not None:  # the k best tell whether there is any
            best = self.decode_k_best(inputs, offsets, w, 1, allowed)
            return np.where(np.repeat(best.found > 0, np.diff(offsets)), best.labels, np.int32(-1))
        w, model = as_weights(w, self.layout.size), self.layout.model
        paths = np.zeros(int(offsets[-1]), dtype=np.int32)
        work = make_scratch(model, int(np.diff(offsets).max(initial=1)))
        given = work.all_allowed
        decode_higher_order(model, inputs, offsets, w, self.forbidden, given, work, paths)
        return paths

    def score(self, inputs: HigherOrderInputs, offsets: Ints, labels: Ints32, w: Floats) -> Floats:
        """Scores <w, psi(x, y)> of given labels, one of each sequence; constraints do not count."""
        w = as_weights(w, self.layout.size)
        work = make_scratch(self.layout.model, int(np.diff(offsets).max(initial=1)))
        scores, nothing = np.empty(len(offsets) - 1), np.zeros_like(self.forbidden)
        codes = np.ascontiguousarray(labels, np.int32)
        score_higher_order(self.layout.model, inputs, offsets, codes, w, nothing, work, scores)
        return scores

    def decode_k_best(
        self,
        inputs: HigherOrderInputs,
        offsets: Ints,
        w: Floats,
        k: int,
        allowed: Bools | None = None,
    ) -> KBest:
        """The k best labellings of each sequence, best first; none where none is allowed."""
        w, model = as_weights(w, self.layout.size), self.layout.model
        longest = int(np.diff(offsets).max(initial=1))
        k = min(k, model.n_labels**longest)  # there are no more
        work, lists = make_scratch(model, longest), make_lists(model, longest, k)
        mask = None if allowed is None else np.ascontiguousarray(allowed, np.bool_)
        given = work.all_allowed if mask is None else mask
        best = empty_k_best(offsets, k)
        into = best.labels, best.scores, best.found
        decode_k_best(model, inputs, offsets, w, self.forbidden, given, k, work, lists, into)
        return best
