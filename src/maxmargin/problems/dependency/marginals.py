"""Marginals and max-marginals of arcs: inside-outside for projective trees, elimination for all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from ...engine.parallel.threads import cubes, each_range
from ...jit.decorator import kernel
from ...search.distribution import Distribution, Tables
from ...search.limits import as_weights
from ...search.semiring import plus
from ...utils.types import Bools, Floats
from .decoder import ARC_WORK, DependencyDecoder, check_possible, sentence_scores
from .features import TokenFields
from .kernels import make_work
from .trees import COMPLETE_LEFT, COMPLETE_RIGHT, OPEN_LEFT, OPEN_RIGHT, edmonds, fill_spans

__all__ = ["TreeDistribution"]


class TreeDistribution(Distribution):
    """Trees of sentences; a choice of a token is a head, and with labels a pair (head, label).

    ``allowed`` tells for sentences which arcs (n + 1, n + 1), head first, there may be, and which
    labels these may have; all if it is None.
    """

    def __init__(
        self,
        decoder: DependencyDecoder,
        fields: TokenFields,
        w: Floats,
        allowed: Sequence[tuple[Bools, Bools] | None] | None = None,
    ) -> None:
        self.options, w, keys = decoder.options, as_weights(w, decoder.size), decoder.keys(fields)
        longest = int(np.diff(keys.bounds).max(initial=1))
        work = make_work(keys, longest, self.options.projective)
        self.n_labels = keys.n_labels
        #: Scores (head, modifier, label) of all arcs of each sentence; one label if there are none.
        self.scores: list[Floats] = []
        for i in range(len(keys.bounds) - 1):
            arcs, labels = sentence_scores(keys, i, w, work)
            scores = arcs[:, :, None] + (labels if self.n_labels else 0.0)
            if allowed is not None and (mask := allowed[i]) is not None:
                scores[~mask[0]] = -np.inf
                if self.n_labels:
                    scores[~mask[1]] = -np.inf
            scores[np.arange(len(arcs)), np.arange(len(arcs))] = scores[:, 0] = -np.inf
            self.scores.append(scores)

    def sums(self, temperature: float, *, soft: bool) -> tuple[Tables, Floats]:
        """See `Distribution`: of each token a row, and in it all heads with all their labels."""

        def add_up(first: int, end: int) -> list[tuple[Floats, float]]:
            return [self._sums_of(scores, temperature, soft) for scores in self.scores[first:end]]

        work = cubes(np.array([len(scores) for scores in self.scores]))
        found = list(chain.from_iterable(each_range(self.n_jobs, work, ARC_WORK, add_up)))
        return [table for table, _ in found], np.array([total for _, total in found])

    def _sums_of(self, scores: Floats, temperature: float, soft: bool) -> tuple[Floats, float]:
        """The same of one sentence."""
        by_label = scores / temperature
        arcs = (np.logaddexp if soft else np.maximum).reduce(by_label, axis=2)
        found = np.full_like(arcs, -np.inf)
        total = self._arc_sums(arcs, soft, found)
        # Of the outputs with an arc, each label has the share that it has of the arc's score.
        with np.errstate(invalid="ignore"):
            shares = np.where(by_label == -np.inf, -np.inf, by_label - arcs[:, :, None])
        table = np.moveaxis(found[:, :, None] + shares, 1, 0)[1:]
        return table.reshape(len(table), -1), total

    def _arc_sums(self, arcs: Floats, soft: bool, found: Floats) -> float:
        """Sums over the trees with each arc, into ``found``; returns that over all trees."""
        n, single_root = len(arcs) - 1, self.options.single_root
        if self.options.projective:
            return float(projective_sums(arcs, n, single_root, soft, found))
        if soft:
            return float(spanning_sums(arcs, n, single_root, found))
        return float(best_spanning_trees(arcs, n, single_root, found))

    def check_possible(self, example: int) -> None:
        """See `Distribution`."""
        check_possible(example, [], self.options.projective)

    def shown(self, tables: Tables) -> Any:
        """Of each sentence an array (token, head), or (token, head, label)."""
        if not self.n_labels:
            return tables
        return [table.reshape(len(table), -1, self.n_labels) for table in tables]


@kernel
def projective_sums(scores, n, single_root, soft, sums):
    """Sums over projective trees with each arc, into ``sums[h, m]``; returns that over all.

    Inside and outside scores of the spans of Eisner's algorithm (`trees.fill_spans`).
    Every tree has one derivation, so that sums count it once. Time O(n^3).
    """
    chart = np.empty((4, n + 1, n + 1))
    fill_spans(scores, n, single_root, soft, chart)
    right, left = chart[COMPLETE_RIGHT], chart[COMPLETE_LEFT]
    open_right, open_left = chart[OPEN_RIGHT], chart[OPEN_LEFT]
    around = np.full((4, n + 1, n + 1), -np.inf)
    around[COMPLETE_RIGHT, 0, n] = 0.0
    for width in range(n, 0, -1):
        for i in range(n + 1 - width):
            j = i + width
            outer = around[COMPLETE_RIGHT, i, j]
            for k in range(i + 1, j + 1):
                _add(around[OPEN_RIGHT], i, k, outer + right[k, j], soft)
                _add(around[COMPLETE_RIGHT], k, j, outer + open_right[i, k], soft)
            outer = around[COMPLETE_LEFT, i, j]
            for k in range(i, j):
                _add(around[COMPLETE_LEFT], i, k, outer + open_left[k, j], soft)
                _add(around[OPEN_LEFT], k, j, outer + left[i, k], soft)
            sums[i, j] = around[OPEN_RIGHT, i, j] + open_right[i, j]
            outer = around[OPEN_RIGHT, i, j] + scores[i, j]
            if i > 0:
                sums[j, i] = around[OPEN_LEFT, i, j] + open_left[i, j]
                outer = plus(outer, around[OPEN_LEFT, i, j] + scores[j, i], soft)
            for k in range(i, i + 1 if i == 0 and single_root else j):
                _add(around[COMPLETE_RIGHT], i, k, outer + left[k + 1, j], soft)
                _add(around[COMPLETE_LEFT], k + 1, j, outer + right[i, k], soft)
    return right[0, n]


@kernel(inline=True)
def _add(table, i, j, score, soft):
    """Add a score to an entry of a table."""
    table[i, j] = plus(table[i, j], score, soft)


@kernel
def best_spanning_trees(scores, n, single_root, sums):
    """Scores of the best trees, crossing arcs or not, with each arc; returns the best of all.

    All other arcs into the modifier are forbidden, for one arc after the other: O(n^4).
    """
    gain, target = np.empty((2 * n + 2, n + 1)), np.empty((2 * n + 2, n + 1), np.int32)
    cycles, heads = np.empty((6, 2 * n + 2), np.int32), np.empty(n + 1, np.int32)
    best, column = -np.inf, np.empty(n + 1)
    for m in range(1, n + 1):
        column[:] = scores[:, m]
        scores[:, m] = -np.inf
        for h in range(n + 1):
            if column[h] > -np.inf:
                scores[h, m] = column[h]
                sums[h, m] = edmonds(scores, n, single_root, gain, target, cycles, heads)
                scores[h, m] = -np.inf
                best = max(best, sums[h, m])
        scores[:, m] = column
    return best


@kernel
def spanning_sums(scores, n, single_root, sums):
    """Logarithms of the sums over all trees with each arc; returns that over all trees.

    The sum is a determinant (matrix-tree theorem; Koo et al. 2007). It is found by eliminating
    one token after the other: an arc to it and one from it become one arc, which adds positive
    numbers only, so that logarithms can be taken throughout and nothing cancels, however far
    apart the scores are. Marginals are the derivatives, by the same steps backwards. Time O(n^3).
    A single root is forced by a charge on the root's arcs, beside which two of them are nothing.
    """
    charge = 0.0
    if single_root:
        low, high = np.inf, -np.inf
        for m in range(1, n + 1):
            for h in range(n + 1):
                if scores[h, m] > -np.inf:
                    low, high = min(low, scores[h, m]), max(high, scores[h, m])
        charge = 50.0 + (n + 1) * (high - low + np.log(n + 1.0))
    # weight[k, m, h]: of the arc from h to m before token k + 1 is eliminated.
    weight = np.full((n + 1, n + 1, n + 1), -np.inf)
    for m in range(1, n + 1):
        for h in range(n + 1):
            if h != m:
                weight[0, m, h] = scores[h, m] - (charge if h == 0 else 0.0)
    total, into = charge if single_root else 0.0, np.empty(n + 1)
    for k in range(1, n + 1):
        old, new = weight[k - 1], weight[k]
        into[k] = old[k, 0]
        for h in range(k + 1, n + 1):
            into[k] = plus(into[k], old[k, h], True)
        if into[k] == -np.inf:
            return -np.inf
        total += into[k]
        for m in range(k + 1, n + 1):
            for h in range(n + 1):
                if (h == 0 or h > k) and h != m:
                    new[m, h] = plus(old[m, h], old[m, k] + old[k, h] - into[k], True)
    share = np.zeros((n + 1, n + 1))  # of the trees, that with an arc from h to m
    for k in range(n, 0, -1):
        old, new = weight[k - 1], weight[k]
        slope = 1.0
        for m in range(k + 1, n + 1):
            for h in range(n + 1):
                if (h == 0 or h > k) and h != m and new[m, h] > -np.inf:
                    detour = share[m, h] * np.exp(old[m, k] + old[k, h] - into[k] - new[m, h])
                    share[m, h] *= np.exp(old[m, h] - new[m, h])
                    share[m, k] += detour
                    share[k, h] += detour
                    slope -= detour
        for h in range(n + 1):
            if h == 0 or h > k:
                share[k, h] += slope * np.exp(old[k, h] - into[k])
    for m in range(1, n + 1):
        for h in range(n + 1):
            sums[h, m] = total + np.log(max(share[m, h], 0.0))
    return total
