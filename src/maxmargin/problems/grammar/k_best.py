"""The k best derivations of a sentence, from a chart of best scores; see `search.k_best`.

Places of the chart are ``(layer, start, end, symbol, level)``. Where derivations are ranked by a
loss that does not add up, the level is the number of right nodes, and the chart that of
`oracle.best_by_error_count`; otherwise it is 0.
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

import numpy as np

from ...core.formulation import Formulation
from ...search.k_best import LazyRanking, Place, Way
from ...search.limits import as_weights
from ...search.modes import error_count_terms
from ...utils.types import Floats, Ints32
from .data import GrammarDecoder, GrammarScratch, Nodes, Sentences, empty_nodes
from .kernels import cell_of, count_right, fill_chart, lexical_rule, put_node
from .oracle import ROUNDING, Lists, list_error_counts

__all__ = ["GoldDerivation", "best_derivations", "best_rescaled_derivations"]

LOW, TOP = 0, 1  # layers: a symbol without, and with what may be a unary rule on top
ANY_ERROR_COUNT = 0


class GoldDerivation(NamedTuple):
    """Gold nodes and where they begin, their labels by span, and their score."""

    nodes: Nodes
    base: int
    label: Ints32
    score: float


def best_derivations(
    decoder: GrammarDecoder,
    sentences: Sentences,
    w: Floats,
    k: int,
    i: int = 0,
    gold_label: Ints32 | None = None,
    unit: float = 0.0,
) -> list[tuple[Nodes, float]]:
    """The k best derivations of sentence i, with their scores; none if it has none.

    A node whose label is not that of ``gold_label`` for its span adds ``unit`` to the score.
    """
    w = as_weights(w, decoder.n_features)
    first = sentences.offsets[i]
    n = int(sentences.offsets[i + 1] - first)
    work = decoder.scratch(n, len(sentences.view_sizes))
    if gold_label is not None:
        work.gold_label[:] = gold_label[: len(work.gold_label)]
    arrays = decoder.grammar.arrays
    fill_chart(arrays, sentences, first, n, w, work.gold_label, unit, False, work)
    search = _Search(decoder, sentences, int(first), n, w, work, unit)
    return search.best(k, np.zeros(1), np.ones(1))


def best_rescaled_derivations(
    decoder: GrammarDecoder,
    sentences: Sentences,
    w: Floats,
    k: int,
    i: int,
    gold: GoldDerivation,
    formulation: Formulation,
) -> list[tuple[Nodes, float]]:
    """The k derivations of sentence i with the largest rescaled violations, and their scores.

    The gold one is among the k best where its violation of 0 is large enough, but with slack
    rescaling never.
    """
    nodes, base, gold_label, gold_score = gold
    first = sentences.offsets[i]
    n = int(sentences.offsets[i + 1] - first)
    arrays, n_nodes = decoder.grammar.arrays, 2 * n - 1
    losses = np.arange(n_nodes, -1, -1) / n_nodes  # by number of right nodes
    rescaling, sqrt_loss = formulation.rescaling, formulation.uses_sqrt_loss
    offsets, scales = error_count_terms(losses, gold_score, rescaling, sqrt_loss)
    # Derivations that are best with the loss added are candidates: what is among the k best has
    # no smaller a violation than the k-th of them.
    unit = 1.0 / n_nodes
    values = []
    for found, score in best_derivations(decoder, sentences, w, k + 1, i, gold_label, unit):
        right = int(count_right(arrays, found, n, gold_label))
        if scales[right] > 0.0:
            values.append(offsets[right] + scales[right] * (score - losses[right]))
    least = sorted(values)[-k] if len(values) >= k else -np.inf
    # The loss, or its root, is between 1 / n_nodes and 1, which bounds the score from below.
    needed = gold_score - 1.0 + min(least, least * n_nodes)
    needed -= ROUNDING * (1.0 + abs(needed))
    work = decoder.scratch(n, len(sentences.view_sizes), outside=True)
    work.gold_label[:] = gold_label[: len(work.gold_label)]
    lists = list_error_counts(arrays, sentences, first, n, nodes, base, w, needed, True, work)
    search = _Search(decoder, sentences, int(first), n, w, work, 0.0, lists)
    return search.best(k, offsets, scales)


class _Search(LazyRanking):
    """How a sentence's symbols over spans are derived."""

    def __init__(
        self,
        decoder: GrammarDecoder,
        sentences: Sentences,
        first: int,
        n: int,
        w: Floats,
        work: GrammarScratch,
        unit: float,
        lists: tuple[Lists, Lists] | None = None,
    ) -> None:
        super().__init__()
        self.arrays, self.terminals = decoder.grammar.arrays, sentences.terminals[first : first + n]
        self.n, self.w, self.charts, self.lists = n, w, (work.low, work.top), lists
        self.gold_label, self.unit = work.gold_label, unit
        self.constants: dict[Place, float] = {}  # span scores, the same for all ways of a place
        self.listed: dict[Place, dict[int, float]] = {}

    def best(self, k: int, offsets: Floats, scales: Floats) -> list[tuple[Nodes, float]]:
        """The k best derivations with their scores, ranked by the terms of their levels."""
        start, roots = self.arrays.start, []
        for root in np.flatnonzero(start >= 0).tolist():
            for error_count in self._scores(TOP, 0, self.n, root):
                offset = offsets[error_count] + scales[error_count] * self.w[start[root]]
                if scales[error_count] > 0.0:
                    roots.append((offset, scales[error_count], (TOP, 0, self.n, root, error_count)))
        return [
            (self._nodes(place, rank), score + float(self.w[start[place[3]]]))
            for place, rank, score in islice(self.rank(roots), k)
        ]

    def best_score(self, place: Place) -> float:
        """See `LazyRanking`."""
        return self._scores(*place[:4])[place[4]]

    def step_score(self, place: Place, step: tuple[int, ...]) -> float:
        """See `LazyRanking`: the score of a rule, with the loss of the label that it makes."""
        layer, start, end, symbol, _ = place
        if layer == LOW:
            return self.constants[place[:4]] + float(self.w[step[0]])
        score = 0.0 if step[0] < 0 else float(self.w[self.arrays.first_unary + step[0]])
        return score + self.unit * (not self._is_right(start, end, symbol, step[0]))

    def ways(self, place: Place) -> list[Way]:
        """See `LazyRanking`."""
        return self._top_ways(*place[1:]) if place[0] == TOP else self._low_ways(*place[1:])

    def _scores(self, layer: int, start: int, end: int, symbol: int) -> dict[int, float]:
        """Best scores of a symbol over a span by level; empty where there is no derivation."""
        place = (layer, start, end, symbol)
        if place not in self.listed:
            cell = cell_of(start, end, self.n)
            if self.lists is None:
                score = float(self.charts[layer][cell, symbol])
                self.listed[place] = {ANY_ERROR_COUNT: score} if score > -np.inf else {}
            else:
                lists = self.lists[layer]
                first = lists.ptr[cell, symbol]
                own = slice(first, first + lists.size[cell, symbol])
                error_counts, scores = lists.error_counts[own].tolist(), lists.scores[own].tolist()
                self.listed[place] = dict(zip(error_counts, scores, strict=True))
        return self.listed[place]

    def _is_right(self, start: int, end: int, symbol: int, unary: int) -> bool:
        """Whether a node with a unary rule (-1: none) has the true label."""
        arrays = self.arrays
        label = arrays.symbol_label[symbol] if unary < 0 else arrays.unary_label[unary]
        return bool(label == self.gold_label[cell_of(start, end, self.n)])

    def _top_ways(self, start: int, end: int, symbol: int, error_count: int) -> list[Way]:
        """No unary rule, or any."""
        arrays = self.arrays
        unaries = range(arrays.unary_ptr[symbol], arrays.unary_ptr[symbol + 1])
        found = []
        for u, B in [(-1, symbol)] + [(u, int(arrays.unary_bottom[u])) for u in unaries]:
            below = error_count
            if self.lists is not None:
                below -= self._is_right(start, end, symbol, u)
            if below in self._scores(LOW, start, end, B):
                found.append(Way((u, -1), ((LOW, start, end, B, below),), (0,)))
        return found

    def _low_ways(self, start: int, end: int, symbol: int, error_count: int) -> list[Way]:
        """The lexical rule of a word, or all binary rules at all splits."""
        arrays, n, (low, top) = self.arrays, self.n, self.charts
        place = (LOW, start, end, symbol)
        best = low[cell_of(start, end, n), symbol]
        if end == start + 1:
            rule = int(lexical_rule(arrays, self.terminals[start], symbol))
            self.constants[place] = float(best - self.w[rule])
            return [Way((rule, -1), (), ())]
        rules = arrays.by_parent[arrays.by_parent_ptr[symbol] : arrays.by_parent_ptr[symbol + 1]]
        found, best_step = [], -np.inf
        for split in range(start + 1, end):
            left = top[cell_of(start, split, n), arrays.left[rules]]
            right = top[cell_of(split, end, n), arrays.right[rules]]
            scores = left + right + self.w[rules]
            best_step = max(best_step, scores.max(initial=-np.inf))
            for r in rules[scores > -np.inf].tolist():
                B, C = int(arrays.left[r]), int(arrays.right[r])
                on_right = self._scores(TOP, split, end, C)
                for a in self._scores(TOP, start, split, B):
                    b = error_count - a
                    if b in on_right:
                        children = (TOP, start, split, B, a), (TOP, split, end, C, b)
                        found.append(Way((r, split), children, (0, 0)))
        self.constants[place] = float(best - best_step)
        return found

    def _nodes(self, place: Place, rank: int) -> Nodes:
        """Nodes of a known derivation, in preorder."""
        found = empty_nodes(2 * self.n)
        waiting = [(place, rank)]
        t = 0
        while waiting:
            above, rank = waiting.pop()
            way = self.way(above, rank)
            below = way.children[0]
            step = self.way(below, way.ranks[0])
            rule, split = step.step
            _, start, end, symbol, _ = below
            put_node(found, t, start, split, end, symbol, rule, way.step[0], above[3])
            t += 1
            waiting += reversed(list(zip(step.children, step.ranks, strict=True)))
        return found
