"""The k best outputs: from a chart of best scores, or by any search for the best one.

`LazyRanking` derives a *place* of a chart in one of several *ways*: a step and the places below it.
Every place has a queue of ways, each with the ranks of its children's derivations; taking the best
way out puts its neighbours in, whose children are derived further only then (Huang & Chiang 2005,
algorithm 3). Few places of a chart are ever asked for, so that this is plain Python on top of the
compiled chart.

`k_best` needs only a search for the best labelling of slots in a region of them. The outputs other
than the best one of a region fall into regions again: they have its labels in the slots before s,
and another label in slot s (Murty 1968, Lawler 1972).
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from ..utils.types import Ints

__all__ = ["LazyRanking", "Region", "Way", "k_best"]

Place = tuple[Any, ...]


class Way(NamedTuple):
    """One derivation of a place: its step, the children's places, and their ranks."""

    step: tuple[int, ...]
    children: tuple[Place, ...]
    ranks: tuple[int, ...]


class _Queue:
    """Derivations of one place: those known, best first, and the candidates."""

    def __init__(self, ways: list[tuple[float, Way]]) -> None:
        self.known: list[tuple[float, Way]] = []
        self.heap = [(-score, way) for score, way in ways]
        heapq.heapify(self.heap)
        self.seen = {way for _, way in ways}


class LazyRanking(ABC):
    """Queues of the places of a chart; a subclass says how places are derived."""

    def __init__(self) -> None:
        self.queues: dict[Place, _Queue] = {}

    @abstractmethod
    def ways(self, place: Place) -> list[Way]:
        """All ways to derive a place from its children's best derivations."""

    @abstractmethod
    def best_score(self, place: Place) -> float:
        """Score of a place's best derivation, by the chart."""

    @abstractmethod
    def step_score(self, place: Place, step: tuple[int, ...]) -> float:
        """What a step adds to the scores of the children."""

    def rank(self, roots: list[tuple[float, float, Place]]) -> Iterator[tuple[Place, int, float]]:
        """All derivations of the roots, as (place, rank, score), by offset + scale * score.

        ``roots`` has an offset and a positive scale for each place.
        """
        heap = []
        for number, (offset, scale, place) in enumerate(roots):
            if self.derive(place, 0):
                heap.append((-offset - scale * self.score(place, 0), number, 0))
        heapq.heapify(heap)
        while heap:
            _, number, rank = heapq.heappop(heap)
            offset, scale, place = roots[number]
            yield place, rank, self.score(place, rank)
            if self.derive(place, rank + 1):
                value = offset + scale * self.score(place, rank + 1)
                heapq.heappush(heap, (-value, number, rank + 1))

    def way(self, place: Place, rank: int) -> Way:
        """The rank-th derivation of a place."""
        self.derive(place, rank)
        return self.queues[place].known[rank][1]

    def score(self, place: Place, rank: int) -> float:
        """Its score."""
        return self.queues[place].known[rank][0]

    def derive(self, place: Place, rank: int) -> bool:
        """Make the rank-th derivation of a place known; False if there are fewer."""
        if place not in self.queues:
            self.queues[place] = _Queue(
                [(self._score(place, way), way) for way in self.ways(place)]
            )
        queue = self.queues[place]
        while len(queue.known) <= rank and queue.heap:
            negative, way = heapq.heappop(queue.heap)
            queue.known.append((-negative, way))
            for c, child in enumerate(way.children):
                ranks = tuple(r + (c == d) for d, r in enumerate(way.ranks))
                further = way._replace(ranks=ranks)
                if further not in queue.seen and self.derive(child, ranks[c]):
                    queue.seen.add(further)
                    heapq.heappush(queue.heap, (-self._score(place, further), further))
        return len(queue.known) > rank

    def _score(self, place: Place, way: Way) -> float:
        """Score of a derivation whose children's derivations are known, or are their best."""
        score = self.step_score(place, way.step)
        for child, rank in zip(way.children, way.ranks, strict=True):
            score += self.best_score(child) if rank == 0 else self.score(child, rank)
        return float(score)


class Region(NamedTuple):
    """Labellings whose first slots have the labels ``fixed``, and the next none of ``excluded``."""

    fixed: Ints
    excluded: tuple[int, ...]


Found = tuple[Ints, float]


def k_best(find: Callable[[list[Region]], list[Found | None]], k: int) -> list[Found]:
    """The k labellings of the largest scores, best first; fewer if there are fewer.

    ``find`` returns the best labelling of each region with its score, None where there is none.
    """
    heap: list[tuple[float, int, Ints, Region]] = []
    numbers = count()  # ties go to what was found first
    regions, ranked = [Region(np.empty(0, np.int64), ())], list[Found]()
    while True:
        for region, found in zip(regions, find(regions), strict=True):
            if found is not None:
                heapq.heappush(heap, (-found[1], next(numbers), found[0], region))
        if not heap:
            return ranked
        negative, _, labels, region = heapq.heappop(heap)
        ranked.append((labels, -negative))
        if len(ranked) == k:
            return ranked
        first, chosen = len(region.fixed), labels.tolist()
        regions = [
            Region(labels[:s], (chosen[s], *(region.excluded if s == first else ())))
            for s in range(first, len(labels))
        ]
