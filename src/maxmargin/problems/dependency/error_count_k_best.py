"""The k best projective trees where the loss does not add up over arcs; see `lazy_k_best`.

Places are the spans of the chart of `error_counts`, ``(kind, i, j, number of wrong arcs)``.
Every projective tree has one derivation, so that no tree comes twice.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from ...search.lazy_k_best import LazyRanking, Place, Way
from ...types import Floats, Ints32
from .eisner import COMPLETE_LEFT, COMPLETE_RIGHT, OPEN_LEFT, OPEN_RIGHT
from .error_counts import make_error_counts
from .k_best import RankedTree

__all__ = ["rank_trees_by_error_count"]


def rank_trees_by_error_count(
    arcs: Floats,
    labels: Floats,
    k: int,
    options: Any,
    gold: Ints32,
    gold_labels: Ints32,
    offsets: Floats,
    scales: Floats,
) -> list[RankedTree]:
    """The k trees with the largest ``offsets[e] + scales[e] * score``, for e wrong arcs.

    Those with a scale of 0 are left out. The other arguments are as for `rank_trees`; ``gold`` and
    ``gold_labels`` are by node, as in a `RankedTree`.
    """
    search = _Search(arcs, labels, k, bool(options.single_root), gold, gold_labels)
    n = len(arcs) - 1
    roots = [
        (
            float(offsets[error_count]),
            float(scales[error_count]),
            (COMPLETE_RIGHT, 0, n, error_count),
        )
        for error_count in range(n + 1)
        if scales[error_count] > 0.0 and search.chart[COMPLETE_RIGHT, 0, n, error_count] > -np.inf
    ]
    return [search.tree(place, rank, score) for place, rank, score in islice(search.rank(roots), k)]


class _Search(LazyRanking):
    """How the spans of a sentence are derived."""

    def __init__(
        self,
        arcs: Floats,
        labels: Floats,
        k: int,
        single_root: bool,
        gold: Ints32,
        gold_labels: Ints32,
    ) -> None:
        super().__init__()
        self.arcs, self.labels, self.k, self.single_root = arcs, labels, k, single_root
        self.gold, self.gold_labels = gold, gold_labels
        n, tokens = len(arcs) - 1, np.arange(1, len(arcs))
        gold_scores, wrong = np.zeros(n + 1), arcs.copy()
        gold_scores[1:] = arcs[gold[1:], tokens]
        if labels.shape[2]:
            right = (gold[1:], tokens, gold_labels[1:])
            gold_scores[1:] += labels[right]
            others = labels.copy()
            others[right] = -np.inf
            wrong += others.max(axis=2)
        else:
            wrong[gold[1:], tokens] = -np.inf
        self.chart = make_error_counts(wrong, gold_scores, gold, n, single_root, n)

    def best_score(self, place: Place) -> float:
        """See `LazyRanking`."""
        return float(self.chart[place])

    def step_score(self, place: Place, step: tuple[int, ...]) -> float:
        """See `LazyRanking`: the score of an arc, with its label."""
        kind, i, j, _ = place
        if kind not in (OPEN_RIGHT, OPEN_LEFT):
            return 0.0
        head, token = (i, j) if kind == OPEN_RIGHT else (j, i)
        score = float(self.arcs[head, token])
        return score if step[0] < 0 else score + float(self.labels[head, token, step[0]])

    def ways(self, place: Place) -> list[Way]:
        """See `LazyRanking`."""
        kind, i, j, error_count = place
        if i == j:
            return [Way((), (), ())]
        if kind == COMPLETE_RIGHT:
            halves = [((OPEN_RIGHT, i, s), (COMPLETE_RIGHT, s, j)) for s in range(i + 1, j + 1)]
            return self._join(halves, error_count, ())
        if kind == COMPLETE_LEFT:
            halves = [((COMPLETE_LEFT, i, s), (OPEN_LEFT, s, j)) for s in range(i, j)]
            return self._join(halves, error_count, ())
        last = i + 1 if i == 0 and self.single_root else j
        halves = [((COMPLETE_RIGHT, i, s), (COMPLETE_LEFT, s + 1, j)) for s in range(i, last)]
        head, token = (i, j) if kind == OPEN_RIGHT else (j, i)
        found = []
        for label, is_wrong in self._choices(head, token):
            if error_count >= is_wrong:
                found += self._join(halves, error_count - is_wrong, (label,))
        return found

    def _choices(self, head: int, token: int) -> list[tuple[int, bool]]:
        """Labels of an arc (-1 without labels) and whether they make it wrong; k and one more."""
        is_gold = int(self.gold[token]) == head
        if not self.labels.shape[2]:
            return [(-1, not is_gold)]
        best = np.argsort(-self.labels[head, token], kind="stable").tolist()
        own = int(self.gold_labels[token]) if is_gold else -1
        wrong = [(label, True) for label in best if label != own][: self.k]
        return [*wrong, (own, False)] if is_gold else wrong

    def _join(self, halves: list[Any], error_count: int, step: tuple[int, ...]) -> list[Way]:
        """All ways to put two halves together that have so many wrong arcs."""
        found = []
        for first, second in halves:
            scores = self.chart[first][: error_count + 1] + self.chart[second][error_count::-1]
            for a in np.flatnonzero(scores > -np.inf).tolist():
                found.append(Way(step, ((*first, a), (*second, error_count - a)), (0, 0)))
        return found

    def tree(self, place: Place, rank: int, score: float) -> RankedTree:
        """The tree of a known derivation."""
        heads, labels = np.full((2, len(self.arcs)), -1, dtype=np.int32)
        waiting = [(place, rank)]
        while waiting:
            (kind, i, j, error_count), rank = waiting.pop()
            way = self.way((kind, i, j, error_count), rank)
            if kind in (OPEN_RIGHT, OPEN_LEFT):
                head, token = (i, j) if kind == OPEN_RIGHT else (j, i)
                heads[token], labels[token] = head, way.step[0]
            waiting += zip(way.children, way.ranks, strict=True)
        return RankedTree(heads, labels, score)
