"""The k best labellings of slots, by a search for the best one in a region of them.

The outputs other than the best one of a region fall into regions again: they have its labels in the
slots before s, and another label in slot s (Murty 1968, Lawler 1972).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from typing import NamedTuple

import numpy as np

from ..utils.types import Ints

__all__ = ["Region", "k_best"]


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
