"""Best trees without regard to crossing arcs: maximum arborescences (Chu & Liu, Edmonds).

The dense form of Tarjan's algorithm, O(n^2): starting anywhere, follow best incoming arcs; a cycle
becomes a new node whose incoming arcs are charged with what they replace; on reaching the root all
nodes of the path are done. Cycles are then opened again from the last one made.
"""

from __future__ import annotations

import numpy as np

from ..._jit import kernel

# Rows of ``cycles``, the scratch by node: tokens 0..n, then contracted cycles.
# OWNER: the outermost cycle that holds a token; PARENT: the next one that holds a node, or -1;
# FROM, TO: the tokens at the ends of the chosen incoming arc.
OWNER, PARENT, FROM, TO, DONE, PATH = 0, 1, 2, 3, 4, 5


@kernel
def edmonds(scores, n, single_root, gain, target, cycles, heads):
    """Best tree over nodes 0..n with root 0 into heads[1 : n + 1]; returns its score.

    ``scores[h, m]`` may be -inf for forbidden arcs; -inf is returned if there is no tree. A single
    root is forced by a charge on the root's arcs that no gain elsewhere outweighs.
    """
    charge = 0.0
    if single_root:
        low, high = np.inf, -np.inf
        for m in range(1, n + 1):
            for h in range(n + 1):
                if h != m and scores[h, m] > -np.inf:
                    low, high = min(low, scores[h, m]), max(high, scores[h, m])
        if low > high:
            return -np.inf
        charge = 1.0 + (n + 1) * (high - low)
    n_nodes = _grow(scores, n, charge, gain, target, cycles)
    if n_nodes == 0:
        return -np.inf
    _open_cycles(n, n_nodes, cycles, heads)
    total, n_roots = 0.0, 0
    for m in range(1, n + 1):
        total += scores[heads[m], m]
        if heads[m] == 0:
            n_roots += 1
    return -np.inf if single_root and n_roots > 1 else total


@kernel
def _grow(scores, n, charge, gain, target, cycles):
    """Choose an incoming arc for every node and cycle; returns their number, 0 if one has no arc.

    ``gain[v, h]`` is the score of the best arc from the token h into v, less what it replaces, and
    ``target[v, h]`` where that arc ends.
    """
    for m in range(1, n + 1):
        for h in range(n + 1):
            gain[m, h] = scores[h, m] - charge if h == 0 else scores[h, m]
            target[m, h] = m
    for node in range(n + 1):
        cycles[OWNER, node] = node
    cycles[PARENT, : 2 * n + 2] = -1
    cycles[DONE, : 2 * n + 2] = 0
    cycles[DONE, 0] = 1
    n_nodes = n + 1
    for start in range(1, n + 1):
        v = cycles[OWNER, start]
        length = 0
        while cycles[DONE, v] == 0:
            cycles[PATH, length] = v
            length += 1
            best, source = -np.inf, 0
            for h in range(n + 1):
                if cycles[OWNER, h] != v and gain[v, h] > best:
                    best, source = gain[v, h], h
            if best == -np.inf:
                return 0
            cycles[FROM, v], cycles[TO, v] = source, target[v, source]
            v = cycles[OWNER, source]
            first = length - 1
            while first >= 0 and cycles[PATH, first] != v:
                first -= 1
            if first >= 0:
                v = n_nodes
                n_nodes += 1
                _contract(n, first, length, v, gain, target, cycles)
                length = first
        for k in range(length):
            cycles[DONE, cycles[PATH, k]] = 1
    return n_nodes


@kernel
def _contract(n, first, length, v, gain, target, cycles):
    """Make the cycle of the nodes first to length - 1 of the path the node v."""
    gain[v, : n + 1] = -np.inf
    for k in range(first, length):
        part = cycles[PATH, k]
        cycles[PARENT, part] = v
        replaced = gain[part, cycles[FROM, part]]
        for h in range(n + 1):
            if gain[part, h] - replaced > gain[v, h]:
                gain[v, h] = gain[part, h] - replaced
                target[v, h] = target[part, h]
    for h in range(1, n + 1):
        if cycles[PARENT, cycles[OWNER, h]] == v:
            cycles[OWNER, h] = v


@kernel
def _open_cycles(n, n_nodes, cycles, heads):
    """Give each cycle's incoming arc to the member it ends in; the others keep their own."""
    for v in range(n_nodes - 1, n, -1):
        member = cycles[TO, v]
        while cycles[PARENT, member] != v:
            member = cycles[PARENT, member]
        cycles[FROM, member], cycles[TO, member] = cycles[FROM, v], cycles[TO, v]
    for m in range(1, n + 1):
        heads[m] = cycles[FROM, m]
