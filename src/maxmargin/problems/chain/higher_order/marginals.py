"""Marginals and max-marginals of chains that remember several labels."""

from __future__ import annotations

import numpy as np

from ...._jit import kernel
from ....engine.threads import each_range
from ....search.limits import as_weights
from ....search.semiring import plus
from ....types import Bools, Floats, Ints
from ..distribution import LabellingDistribution
from .decoder import HigherOrderDecoder
from .kernels import score_moves, score_tokens
from .scratch import HigherOrderInputs, make_scratch

__all__ = ["HigherOrderDistribution"]


class HigherOrderDistribution(LabellingDistribution):
    """Labellings of sequences, with the labels that ``allowed`` (token, label) marks."""

    def __init__(
        self,
        decoder: HigherOrderDecoder,
        inputs: HigherOrderInputs,
        offsets: Ints,
        w: Floats,
        allowed: Bools | None = None,
        before: int = 0,
    ) -> None:
        super().__init__(offsets, before)
        self.decoder, self.inputs = decoder, inputs
        self.w = as_weights(w, decoder.layout.size)
        no_mask = np.empty((0, 0), np.bool_)
        self.allowed = no_mask if allowed is None else np.ascontiguousarray(allowed, np.bool_)

    def all_sums(self, temperature: float, *, soft: bool) -> tuple[Floats, Floats]:
        """See `LabellingDistribution`."""
        model = self.decoder.layout.model
        found = np.full((int(self.offsets[-1]), model.n_labels), -np.inf)
        totals = np.empty(len(self.offsets) - 1)

        def add_up(first: int, end: int) -> None:
            own = self.offsets[first : end + 1]
            work = make_scratch(model, int(np.diff(own).max(initial=1)))
            behind = np.empty((2, model.states.n_states))
            data = (self.inputs, own, self.w, self.decoder.forbidden, self.allowed)
            into = work, behind, found, totals[first:end]
            higher_order_sums(model, *data, 1.0 / temperature, soft, *into)

        unit = 10.0 * model.states.n_states * model.n_labels
        each_range(self.n_jobs, self.offsets, unit, add_up)
        return found, totals


@kernel
def higher_order_sums(
    model, inputs, offsets, w, forbidden, allowed, factor, soft, work, behind, sums, totals
):
    """Sums over the labellings of every sequence, as `chain_sums`, over states of the automaton.

    Scores count ``factor`` times. ``sums`` is -inf at first; ``work`` and ``behind`` (two rows of
    states) are scratch. Time O(L S K) for S states and K labels.
    """
    K, states = model.n_labels, model.states
    S = len(states.last)
    score_moves(model, w, forbidden, work.scores)
    for i in range(len(totals)):
        first = offsets[i]
        length = offsets[i + 1] - first
        score_tokens(model, inputs, first, length, w, forbidden, allowed, work)
        for t in range(length):
            for s in range(S):
                work.forward[t, 0, s] = -np.inf
        for k in range(K):
            work.forward[0, 0, states.alone[k]] = factor * work.unary[0, k]
        for t in range(1, length):
            before, reached = work.forward[t - 1, 0], work.forward[t, 0]
            for s in range(S):
                if before[s] == -np.inf:
                    continue
                for k in range(K):
                    to = states.after[states.core[s], k]
                    score = before[s] + factor * _move(model, work, t, s, k)
                    reached[to] = plus(reached[to], score, soft)
        totals[i] = -np.inf
        for s in range(S):
            totals[i] = plus(totals[i], work.forward[length - 1, 0, s], soft)
            behind[0, s] = 0.0
        for t in range(length - 1, -1, -1):
            now = behind[(length - 1 - t) % 2]
            for s in range(S):
                label = states.last[s]
                score = work.forward[t, 0, s] + now[s]
                sums[first + t, label] = plus(sums[first + t, label], score, soft)
            if t == 0:
                break
            earlier = behind[(length - t) % 2]
            for s in range(S):
                total = -np.inf
                for k in range(K):
                    to = states.after[states.core[s], k]
                    total = plus(total, now[to] + factor * _move(model, work, t, s, k), soft)
                earlier[s] = total


@kernel(inline=True)
def _move(model, work, t, s, k):
    """Score of label k at token t behind a state."""
    score = work.scores[s, k] + work.unary[t, k]
    if model.has_pairs:
        score += work.pairs[t, model.states.last[s] * model.n_labels + k]
    return score
