"""The k best orders of documents, by a search that swaps neighbours."""

from __future__ import annotations

import heapq

import numpy as np

from ...utils.types import Floats, Ints

__all__ = ["best_orders"]


def best_orders(scores: Floats, k: int) -> list[tuple[Ints, float]]:
    """The k orders of the largest ``sum over pairs (scores[first] - scores[second]) / 2``.

    The best one is sorted. Every other has neighbours that stand the wrong way round; swapping them
    loses nothing, and leads to the best one in the end. So all orders are reached from the best one
    by swaps of neighbours that never gain, and those with the smallest loss come first.
    """
    sorted_places = np.argsort(-scores, kind="stable")
    ranked, m = scores[sorted_places], len(scores)
    best = float(ranked @ (m - 1.0 - 2.0 * np.arange(m))) / 2.0
    found: list[Ints] = []
    losses: list[float] = []
    seen = set()
    # Loss, the order that it was made of (by number), and the place of the first that it swaps.
    heap = [(0.0, -1, 0)]
    while heap and len(found) < k:
        loss, parent, t = heapq.heappop(heap)
        order = np.arange(m) if parent < 0 else found[parent].copy()
        if parent >= 0:
            order[[t, t + 1]] = order[[t + 1, t]]
        if (key := order.tobytes()) in seen:
            continue
        seen.add(key)
        found.append(order)
        losses.append(loss)
        for place in np.flatnonzero(order[:-1] < order[1:]).tolist():
            swapped = float(ranked[order[place]] - ranked[order[place + 1]])
            heapq.heappush(heap, (loss + swapped, len(found) - 1, place))
    pairs = zip(found, losses, strict=True)
    return [(sorted_places[order], best - loss) for order, loss in pairs]
