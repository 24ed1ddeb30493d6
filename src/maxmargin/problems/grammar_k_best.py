"""The k best derivations of a sentence, lazily, from a chart of best scores.

Every symbol over a span has a queue of ways to derive it, each with the ranks of its children's
derivations; taking the best way out puts its neighbours in, whose children are derived further
only then (Huang & Chiang 2005, algorithm 3). Few symbols of a chart are ever asked for, so that
this is plain Python on top of the compiled chart.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .grammar_data import GrammarScratch, Nodes, Sentences, TreeDecoder, empty_nodes
from .grammar_kernels import cell_of, fill_chart, lexical_rule, put_node

__all__ = ["best_derivations"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


class _Way(NamedTuple):
    """One derivation of a symbol: its step, the children's places, and their ranks."""

    step: tuple[int, int]  # (rule, split) of a binary rule, (unary rule or -1, -1), or lexical
    children: tuple[Any, ...]
    ranks: tuple[int, ...]


class _Queue:
    """Derivations of one symbol over one span: those known, best first, and the candidates."""

    def __init__(self, ways: list[tuple[float, _Way]]) -> None:
        self.known: list[tuple[float, _Way]] = []
        self.heap = [(-score, way) for score, way in ways]
        heapq.heapify(self.heap)
        self.seen = {way for _, way in ways}


def best_derivations(
    decoder: TreeDecoder,
    sentences: Sentences,
    w: Floats,
    k: int,
    i: int = 0,
    gold_label: Ints | None = None,
    unit: float = 0.0,
) -> list[tuple[Nodes, float]]:
    """The k best derivations of sentence i, with their scores; none if it has none.

    A node whose label is not that of ``gold_label`` for its span adds ``unit`` to the score.
    """
    first = sentences.offsets[i]
    n = int(sentences.offsets[i + 1] - first)
    work = decoder.scratch(n, len(sentences.view_sizes))
    if gold_label is not None:
        work.gold_label[:] = gold_label[: len(work.gold_label)]
    fill_chart(decoder.grammar.arrays, sentences, first, n, w, work.gold_label, unit, work)
    return _Search(decoder, sentences, int(first), n, w, work, unit).best(k)


class _Search:
    """Queues of a sentence's symbols and spans; places are ``(layer, start, end, symbol)``."""

    def __init__(
        self,
        decoder: TreeDecoder,
        sentences: Sentences,
        first: int,
        n: int,
        w: Floats,
        work: GrammarScratch,
        unit: float,
    ) -> None:
        self.arrays, self.terminals = decoder.grammar.arrays, sentences.terminals[first : first + n]
        self.n, self.w, self.low, self.top = n, w, work.low, work.top
        self.gold_label, self.unit = work.gold_label, unit
        self.queues: dict[Any, _Queue] = {}
        self.constants: dict[Any, float] = {}  # span scores, the same for all ways of a place

    def best(self, k: int) -> list[tuple[Nodes, float]]:
        """Take derivations from the roots' queues, best first."""
        arrays, w = self.arrays, self.w
        roots = np.flatnonzero(arrays.start >= 0)
        found: list[tuple[Nodes, float]] = []
        heap = []
        for root in roots.tolist():
            place = ("top", 0, self.n, root)
            if self.top[cell_of(0, self.n, self.n), root] > -np.inf and self._derive(place, 0):
                score = self.queues[place].known[0][0] + w[arrays.start[root]]
                heap.append((-float(score), place, 0))
        heapq.heapify(heap)
        while heap and len(found) < k:
            negative, place, rank = heapq.heappop(heap)
            found.append((self._nodes(place, rank), -negative))
            if self._derive(place, rank + 1):
                score = self.queues[place].known[rank + 1][0] + w[arrays.start[place[3]]]
                heapq.heappush(heap, (-float(score), place, rank + 1))
        return found

    def _derive(self, place: Any, rank: int) -> bool:
        """Make the rank-th derivation of a place known; False if there are fewer."""
        if place not in self.queues:
            ways = self._top_ways(place) if place[0] == "top" else self._low_ways(place)
            self.queues[place] = _Queue([(self._score(place, way), way) for way in ways])
        queue = self.queues[place]
        while len(queue.known) <= rank and queue.heap:
            negative, way = heapq.heappop(queue.heap)
            queue.known.append((-negative, way))
            for c, child in enumerate(way.children):
                ranks = tuple(r + (c == d) for d, r in enumerate(way.ranks))
                further = way._replace(ranks=ranks)
                if further not in queue.seen and self._derive(child, ranks[c]):
                    queue.seen.add(further)
                    heapq.heappush(queue.heap, (-self._score(place, further), further))
        return len(queue.known) > rank

    def _score(self, place: Any, way: _Way) -> float:
        """Score of a derivation whose children's derivations are known, or are their best."""
        score = self.constants.get(place, 0.0)
        if place[0] == "top":
            score += self._unary_score(place, way.step[0])
        else:
            score += self.w[way.step[0]]
        for child, rank in zip(way.children, way.ranks, strict=True):
            layer, start, end, symbol = child
            if rank == 0:
                chart = self.top if layer == "top" else self.low
                score += chart[cell_of(start, end, self.n), symbol]
            else:
                score += self.queues[child].known[rank][0]
        return float(score)

    def _unary_score(self, place: Any, unary: int) -> float:
        """Score of a unary rule (-1: none) above a span, and the loss of the label it makes."""
        _, start, end, symbol = place
        arrays, score = self.arrays, 0.0
        label = arrays.symbol_label[symbol]
        if unary >= 0:
            label, score = arrays.unary_label[unary], float(self.w[arrays.first_unary + unary])
        is_right = label == self.gold_label[cell_of(start, end, self.n)]
        return score if is_right else score + self.unit

    def _top_ways(self, place: Any) -> list[_Way]:
        """No unary rule, or any."""
        _, start, end, symbol = place
        arrays = self.arrays
        scores = self.low[cell_of(start, end, self.n)]
        unaries = range(arrays.unary_ptr[symbol], arrays.unary_ptr[symbol + 1])
        below = [(-1, symbol)] + [(u, int(arrays.unary_bottom[u])) for u in unaries]
        return [
            _Way((u, -1), (("low", start, end, B),), (0,)) for u, B in below if scores[B] > -np.inf
        ]

    def _low_ways(self, place: Any) -> list[_Way]:
        """The lexical rule of a word, or all binary rules at all splits."""
        _, start, end, symbol = place
        arrays, n = self.arrays, self.n
        best = self.low[cell_of(start, end, n), symbol]
        if end == start + 1:
            rule = lexical_rule(arrays, self.terminals[start], symbol)
            self.constants[place] = float(best - self.w[rule])
            return [_Way((int(rule), -1), (), ())]
        rules = arrays.by_parent[arrays.by_parent_ptr[symbol] : arrays.by_parent_ptr[symbol + 1]]
        ways, best_step = [], -np.inf
        for split in range(start + 1, end):
            left = self.top[cell_of(start, split, n), arrays.left[rules]]
            right = self.top[cell_of(split, end, n), arrays.right[rules]]
            scores = left + right + self.w[rules]
            best_step = max(best_step, scores.max(initial=-np.inf))
            for r in rules[scores > -np.inf].tolist():
                children = (
                    ("top", start, split, int(arrays.left[r])),
                    ("top", split, end, int(arrays.right[r])),
                )
                ways.append(_Way((r, split), children, (0, 0)))
        self.constants[place] = float(best - best_step)
        return ways

    def _nodes(self, place: Any, rank: int) -> Nodes:
        """Nodes of a known derivation, in preorder."""
        found = empty_nodes(2 * self.n)
        waiting = [(place, rank)]
        t = 0
        while waiting:
            above, rank = waiting.pop()
            self._derive(above, rank)
            way = self.queues[above].known[rank][1]
            below, unary = way.children[0], way.step[0]
            self._derive(below, way.ranks[0])
            step = self.queues[below].known[way.ranks[0]][1]
            rule, split = step.step
            _, start, end, symbol = below
            put_node(found, t, start, split, end, symbol, rule, unary, above[3])
            t += 1
            waiting += reversed(list(zip(step.children, step.ranks, strict=True)))
        return found
