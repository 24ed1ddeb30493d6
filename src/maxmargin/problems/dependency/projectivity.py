"""Trees with crossing arcs: which they are, and the projective trees nearest to them."""

from __future__ import annotations

import numpy as np

from ...types import Bools, Ints, Ints32

__all__ = ["crossing_trees", "projectivised"]


def crossing_trees(heads: Ints32, bounds: Ints) -> Bools:
    """Which trees have crossing arcs; the root stands before the first word."""
    starts = bounds - np.arange(len(bounds))
    crosses = np.zeros(len(bounds) - 1, np.bool_)
    for i in range(len(crosses)):
        tree = heads[starts[i] : starts[i + 1]]
        tokens = np.arange(1, len(tree) + 1)
        low, high = np.minimum(tree, tokens), np.maximum(tree, tokens)
        strip_prefix = (low[:, None] < low) & (low < high[:, None]) & (high > high[:, None])
        crosses[i] = strip_prefix.any()
    return crosses


def projectivised(tree: list[int]) -> list[int]:
    """A tree without crossing arcs, by lifting (Nivre & Nilsson 2005, section 2).

    As long as there are arcs over words that do not descend from their head, the shortest of them,
    the leftmost of such, is moved to the head of its head. A word never gets to hang on the root so
    if one alone does: all words descend from that one.
    """
    heads = [0, *tree]
    while True:
        lifted = min(
            ((abs(h - m), m) for m, h in enumerate(heads) if m and _is_broken(heads, h, m)),
            default=None,
        )
        if lifted is None:
            return heads[1:]
        m = lifted[1]
        heads[m] = heads[heads[m]]


def _is_broken(heads: list[int], head: int, modifier: int) -> bool:
    """Whether some word between the two does not descend from the head."""
    for node in range(min(head, modifier) + 1, max(head, modifier)):
        while node not in (0, head):
            node = heads[node]
        if node != head:
            return True
    return False
