"""Kernel of the keys of nodes: hashes of the fields around each, by template."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._jit import kernel
from ...types import Hashes, Ints

__all__ = ["HashedSides", "fill_keys"]

NO_NODE = 2**30  # behind all nodes


class HashedSides(NamedTuple):
    """What is hashed: the distinct sides of templates, and which of them each column has.

    Side s begins with ``seeds[s]`` and has the rows ``bounds[s]`` to ``bounds[s + 1] - 1`` of
    ``parts``, which are a field and how far the node is that it is taken from. Column c is side
    ``columns[c]`` (-1 for an empty one) times ``factors[c]``; ``between`` has the sides of the
    values between head and modifier. ``outside`` stands for fields outside of the sentence.
    """

    seeds: Hashes
    parts: Ints
    bounds: Ints
    columns: Ints
    factors: Hashes
    between: Ints
    outside: Hashes


@kernel(allocates=False)
def fill_keys(sides, fields, sentences, hashes, values, keys, same):
    """Keys of all nodes, and the nearest nodes with the same values, as `ArcKeys` has them.

    ``fields`` (n_fields, n_nodes) are hashes of what the nodes have, ``sentences`` the bounds of
    these. ``hashes`` (n_sides,) and ``values`` (n_nodes, n_between) are for work.
    """
    high = np.uint64(32)
    for i in range(len(sentences) - 1):
        first, end = sentences[i], sentences[i + 1]
        for node in range(first, end):
            for s in range(len(hashes)):
                total = sides.seeds[s]
                for p in range(sides.bounds[s], sides.bounds[s + 1]):
                    at = node + sides.parts[p, 1]
                    value = sides.outside[0]
                    if first <= at < end:
                        value = fields[sides.parts[p, 0], at]
                    total = _mixed(total ^ value)
                hashes[s] = total
            for c in range(len(sides.columns)):
                s = sides.columns[c]
                keys[node, c] = 0
                if s >= 0:
                    keys[node, c] = (hashes[s] * sides.factors[c]) >> high
            for b in range(len(sides.between)):
                values[node, b] = hashes[sides.between[b]]
                same[node, b, 0], same[node, b, 1] = -1, NO_NODE
                for other in range(node - 1, first - 1, -1):
                    if values[other, b] == values[node, b]:
                        same[node, b, 0], same[other, b, 1] = other - first, node - first
                        break


@kernel(inline=True)
def _mixed(value):
    """Spread every bit over all others (the finaliser of SplitMix64)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
