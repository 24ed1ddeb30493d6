"""Marginals and max-marginals of chains, by forward-backward over states."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ...engine.parallel.threads import each_range
from ...jit.decorator import kernel
from ...search.distribution import Distribution, Tables
from ...search.semiring import add_up, plus
from ...utils.types import Bools, Floats, Ints
from .decoder import ChainDecoder
from .layout import ChainModel, check_possible
from .state_kernels import ChainInputs, advance, score_moves, score_tokens

__all__ = ["SUM_WORK", "ChainDistribution"]

SUM_WORK = 10.0  # counted work of a token, for each move


class ChainDistribution(Distribution):
    """Labellings of sequences, by the scores of their tokens' labels and of moves.

    Tables of all tokens are in one array, worked on without the GIL.

    Parameters
    ----------
    model : ChainModel
        Labels and states.
    unary : array of shape (n_tokens, n_labels)
        Scores of the labels of all tokens, those of first and last labels included.
    pairs : array of shape (n_tokens, n_pairs), or empty
        Scores of the pairs of labels that features of the input have weights for.
    moves : array of shape (n_states, n_labels)
        Scores of a label to come, by state.
    offsets : array of shape (n_sequences + 1,)
        Where sequences begin.
    before : int, default=0
        How many sequences there are before these, for errors.
    """

    def __init__(
        self,
        model: ChainModel,
        unary: Floats,
        pairs: Floats,
        moves: Floats,
        offsets: Ints,
        before: int = 0,
    ) -> None:
        self.model, self.unary, self.pairs, self.moves = model, unary, pairs, moves
        self.offsets, self.before = offsets, before

    @classmethod
    def of(
        cls,
        decoder: ChainDecoder,
        inputs: ChainInputs,
        offsets: Ints,
        w: Floats,
        allowed: Bools | None = None,
        before: int = 0,
    ) -> ChainDistribution:
        """Labellings of tokens, with labels that ``allowed`` (token, label) marks."""
        w, mask = decoder.checked(inputs, w), decoder.mask(inputs, allowed)
        model, n = decoder.layout.model, int(offsets[-1])
        unary, moves = (
            np.empty((n, model.n_labels)),
            np.empty((model.states.n_states, model.n_labels)),
        )
        pairs = np.empty((n if model.has_pairs else 0, model.n_pairs))
        longest = int(np.diff(offsets).max(initial=1))
        wide = np.empty((longest, model.n_columns))
        table = np.empty((longest if model.has_pairs else 0, model.n_labels**2))
        work = wide, np.empty(model.n_pairs), table
        score_labels(model, inputs, offsets, w, decoder.forbidden, mask, work, unary, pairs, moves)
        return cls(model, unary, pairs, moves, offsets, before)

    @classmethod
    def joined(cls, parts: list[ChainDistribution], offsets: Ints) -> ChainDistribution:
        """The labellings of several parts of the same sequences."""
        if len(parts) == 1:
            return parts[0]
        unary, pairs = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("unary", "pairs")
        )
        return cls(parts[0].model, unary, pairs, parts[0].moves, offsets)

    def all_sums(self, temperature: float, *, soft: bool) -> tuple[Floats, Floats]:
        """`sums` with all tables below each other, in an array that is the caller's."""
        found, totals = np.empty_like(self.unary), np.empty(len(self.offsets) - 1)
        unary, pairs, moves = self.unary, self.pairs, self.moves
        if temperature != 1.0:
            unary, pairs, moves = (each / temperature for each in (unary, pairs, moves))
        model, (S, K) = self.model, self.moves.shape
        into = np.ascontiguousarray(moves.T)

        def add_up(first: int, end: int) -> None:
            own = self.offsets[first : end + 1]
            forward = np.empty((int(np.diff(own).max(initial=1)), S))
            work = forward, np.empty((3, S)), np.empty((2, K)), np.zeros(K * K)
            chain_sums(model, unary, pairs, own, moves, into, soft, work, found, totals[first:end])

        each_range(self.n_jobs, self.offsets, SUM_WORK * S * K, add_up)
        return found, totals

    def sums(self, temperature: float, *, soft: bool) -> tuple[Tables, Floats]:
        """See `Distribution`."""
        found, totals = self.all_sums(temperature, soft=soft)
        return self._by_sequence(found), totals

    def margins(self) -> Tables:
        """See `Distribution`."""
        best, totals = self.all_sums(1.0, soft=False)
        self._check(totals)
        subtract_rivals(best)
        return self._by_sequence(best)

    def log_probabilities(self, temperature: float) -> Tables:
        """See `Distribution`."""
        return self._by_sequence(self._logarithms(temperature))

    def probabilities(self, temperature: float) -> Tables:
        """See `Distribution`."""
        found = self._logarithms(temperature)
        normalise(found)
        return self._by_sequence(found)

    def _logarithms(self, temperature: float) -> Floats:
        """Logarithms of probabilities."""
        found, totals = self.all_sums(temperature, soft=True)
        self._check(totals)
        subtract_totals(found, self.offsets, totals)
        return found

    def check_possible(self, example: int) -> None:
        """See `Distribution`."""
        check_possible(np.arange(len(self.offsets) - 1) == example, self.before)

    def _by_sequence(self, found: Floats) -> Tables:
        """The table of each sequence."""
        return [found[first:end] for first, end in pairwise(self.offsets.tolist())]


@kernel(allocates=False)
def score_labels(model, inputs, offsets, w, forbidden, allowed, work, unary, pairs, moves):
    """Scores of all labels of all tokens, -inf for those that are not allowed, and of moves."""
    wide, pair_sums, table = work
    score_moves(model, w, forbidden, moves)
    for i in range(len(offsets) - 1):
        first = offsets[i]
        length = offsets[i + 1] - first
        score_tokens(model, inputs, first, length, w, forbidden, allowed, wide, pair_sums, table)
        for t in range(length):
            for k in range(model.n_labels):
                unary[first + t, k] = wide[t, k]
            if model.has_pairs:
                for p in range(model.n_pairs):
                    pairs[first + t, p] = table[t, model.pair_place[p]]


@kernel(allocates=False)
def chain_sums(model, unary, pairs, offsets, moves, into, soft, work, sums, totals):
    """Sums over the labellings of every sequence, of all and of those with a label at a token.

    In: ``unary`` (n_tokens, K), ``pairs`` (n_tokens, P), ``moves`` (S, K) and its transpose
    ``into``, -inf for what is forbidden. Out: ``sums[t, k]`` over the labellings with label k at
    token t, ``totals[i]`` over all of sequence i; maxima of scores, or with ``soft`` logarithms of
    sums of their exponentials (Rabiner 1989, sec. III.A). Time O(L S K). ``work`` is scratch.
    """
    states, K = model.states, model.n_labels
    forward, rows, labels, of_pairs = work
    S, n_cores = len(states.last), len(states.core_last)
    reached, behind, zeros = rows[0], rows[1], rows[2]
    best, after = labels[0], labels[1]
    for s in range(S):
        zeros[s] = 0.0
    for i in range(len(totals)):
        first = offsets[i]
        length = offsets[i + 1] - first
        for s in range(S):
            forward[0, s] = -np.inf
        for k in range(K):
            forward[0, states.alone[k]] = unary[first, k]
        for t in range(1, length):
            place_pairs(model, pairs, first + t, of_pairs)
            if soft:
                for s in range(S):
                    reached[s] = -np.inf
                for c in range(n_cores):
                    start, end = states.core_states[c], states.core_states[c + 1]
                    for k in range(K):
                        total = add_up(
                            forward[t - 1, start:end], into[k, start:end], end - start, soft
                        )
                        if model.has_pairs:
                            total += of_pairs[states.core_last[c] * K + k]
                        to = states.after[c, k]
                        reached[to] = plus(reached[to], total, soft)
            else:
                advance(model, forward[t - 1], moves, of_pairs, best, reached)
            for s in range(S):
                forward[t, s] = reached[s] + unary[first + t, states.last[s]]
        totals[i] = add_up(forward[length - 1], zeros, S, soft)
        for s in range(S):
            behind[s] = 0.0
        for t in range(length - 1, -1, -1):
            own, ends = sums[first + t], forward[t]
            for k in range(K):
                own[k] = -np.inf
            for s in range(S):
                label = states.last[s]
                if soft:
                    own[label] = plus(own[label], ends[s] + behind[s], soft)
                else:
                    own[label] = max(own[label], ends[s] + behind[s])
                behind[s] += unary[first + t, label]
            if t == 0:
                break
            place_pairs(model, pairs, first + t, of_pairs)
            for c in range(n_cores):
                for k in range(K):
                    after[k] = behind[states.after[c, k]]
                    if model.has_pairs:
                        after[k] += of_pairs[states.core_last[c] * K + k]
                start, end = states.core_states[c], states.core_states[c + 1]
                if soft:
                    for s in range(start, end):
                        reached[s] = add_up(after, moves[s], K, soft)
                    continue
                for s in range(start, end):
                    reached[s] = after[0] + into[0, s]
                k = 1
                while k + 1 < K:  # two a round, for fewer loads
                    score0, score1 = after[k], after[k + 1]
                    row0, row1 = into[k], into[k + 1]
                    for s in range(start, end):
                        reached[s] = max(reached[s], max(score0 + row0[s], score1 + row1[s]))
                    k += 2
                if k < K:
                    for s in range(start, end):
                        reached[s] = max(reached[s], after[k] + into[k, s])
            for s in range(S):
                behind[s] = reached[s]


@kernel(inline=True)
def place_pairs(model, pairs, token, of_pairs):
    """The scores of a token's pairs of labels, by their labels; the others are 0."""
    if model.has_pairs:
        for p in range(model.n_pairs):
            of_pairs[model.pair_place[p]] = pairs[token, p]


@kernel(allocates=False)
def subtract_rivals(best):
    """Margins in place of scores of best outputs, as `search.distribution.margins_of`."""
    K = best.shape[1]
    for t in range(len(best)):
        chosen, first, second = 0, -np.inf, -np.inf
        for k in range(K):
            score = best[t, k]
            if score > first:
                chosen, first, second = k, score, first
            elif score > second:
                second = score
        for k in range(K):
            if best[t, k] > -np.inf:
                best[t, k] -= second if k == chosen else first


@kernel(allocates=False)
def subtract_totals(sums, offsets, totals):
    """Logarithms of probabilities in place of those of sums over outputs."""
    for i in range(len(totals)):
        for t in range(offsets[i], offsets[i + 1]):
            for k in range(sums.shape[1]):
                # Rounding may leave a choice that has no rival a little above 1.
                sums[t, k] = min(sums[t, k] - totals[i], 0.0)


@kernel(allocates=False)
def normalise(table):
    """Probabilities in place of logarithms; rows sum to 1, as they do but for rounding."""
    for t in range(len(table)):
        total = 0.0
        for k in range(table.shape[1]):
            table[t, k] = np.exp(table[t, k])
            total += table[t, k]
        for k in range(table.shape[1]):
            table[t, k] /= total
