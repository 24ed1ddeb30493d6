"""The k best trees of a sentence, by splitting what is left (Lawler 1972, Murty 1968).

The trees other than the best fall into n disjoint sets: those that agree with it on the tokens
before t and differ at t. Each set's best tree is found by the ordinary search with arcs forbidden;
the best of all sets is the next tree, and its set is split in the same way.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np

from ...types import Floats, Ints32
from .kernels import best_tree

__all__ = ["RankedTree", "rank_trees"]


class RankedTree(NamedTuple):
    """Heads and labels (-1 without labels) by node, and the score."""

    heads: Ints32
    labels: Ints32
    score: float


def rank_trees(arcs: Floats, labels: Floats, k: int, options: Any, work: Any) -> list[RankedTree]:
    """The k best trees, best first; fewer if there are not so many.

    Parameters
    ----------
    arcs : array of shape (n + 1, n + 1)
        Scores of the arcs, head first.
    labels : array of shape (n + 1, n + 1, n_labels)
        Scores to add for the labels; ``n_labels`` may be 0.
    k : int
        How many trees to find.
    options, work : DependencyOptions, DependencyScratch
        Which trees there are; scratch.
    """
    scores = _LabeledScores(arcs, labels)
    ranked: list[RankedTree] = []
    # Entries: minus score, a number that breaks ties, the tree, the first token that is free, and
    # what is forbidden to that token.
    heap: list[tuple[float, int, RankedTree, int, frozenset[tuple[int, int]]]] = []
    serial = 0

    def search(before: RankedTree | None, t: int, banned: frozenset[tuple[int, int]]) -> None:
        nonlocal serial
        tree = scores.best(before, t, banned, options, work)
        if tree is not None:
            heapq.heappush(heap, (-tree.score, serial, tree, t, banned))
            serial += 1

    search(None, 1, frozenset())
    while heap and len(ranked) < k:
        _, _, tree, t, banned = heapq.heappop(heap)
        ranked.append(tree)
        if len(ranked) == k:
            break
        for s in range(t, len(arcs)):
            taken = (int(tree.heads[s]), int(tree.labels[s]))
            search(tree, s, (banned if s == t else frozenset()) | {taken})
    return ranked


class _LabeledScores:
    """Scores of arcs under their best labels, and searches with some of them forbidden."""

    def __init__(self, arcs: Floats, labels: Floats) -> None:
        self.arcs, self.labels = arcs, labels
        self.best_labels = np.full(arcs.shape, -1, dtype=np.int32)
        self.best_scores = arcs.copy()
        if labels.shape[2]:
            self.best_labels = labels.argmax(axis=2).astype(np.int32)
            self.best_scores += labels.max(axis=2)

    def best(
        self,
        before: RankedTree | None,
        t: int,
        banned: frozenset[tuple[int, int]],
        options: Any,
        work: Any,
    ) -> RankedTree | None:
        """Best tree like ``before`` up to token t - 1 and without what is banned at token t."""
        scores, choice = self.best_scores.copy(), self.best_labels
        for s in range(1, t):
            assert before is not None
            head = before.heads[s]
            score = self._score(head, s, int(before.labels[s]))
            scores[:, s] = -np.inf
            scores[head, s] = score
        if banned:
            choice = choice.copy()
            for head in {head for head, _ in banned}:
                scores[head, t] = -np.inf
                for label in self._by_score(head, t):
                    if (head, label) not in banned:
                        scores[head, t] = self._score(head, t, label)
                        choice[head, t] = label
                        break
        heads = np.full(len(scores), -1, dtype=np.int32)
        total = float(best_tree(scores, options, work, heads))
        if total == -np.inf:
            return None
        tokens = np.arange(1, len(heads))
        labels = np.full(len(heads), -1, dtype=np.int32)
        labels[1:] = choice[heads[1:], tokens]
        if before is not None:
            labels[1:t] = before.labels[1:t]
        return RankedTree(heads, labels, total)

    def _score(self, head: int, token: int, label: int) -> float:
        """Score of an arc under a label (-1: none)."""
        score = float(self.arcs[head, token])
        return score + float(self.labels[head, token, label]) if label >= 0 else score

    def _by_score(self, head: int, token: int) -> list[int]:
        """Labels of an arc, best first."""
        order: list[int] = np.argsort(-self.labels[head, token], kind="stable").tolist()
        return order
