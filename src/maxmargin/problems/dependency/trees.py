"""Best trees: projective ones (Eisner 1996) and any (Chu & Liu, Edmonds); trees with crossing arcs.

A chart of projective trees has four kinds of spans over the nodes i..j: ``right[i, j]`` is complete
with head i, ``left[i, j]`` complete with head j; ``open_right[i, j]`` has the arc i -> j on top of
two complete halves, ``open_left[i, j]`` the arc j -> i. No back-pointers are stored: scores are
kept, and the maximiser is found again on the way back. Where a sentence has a single root, node 0
takes one arc only: the half at its side is empty.

Maximum arborescences are found by the dense form of Tarjan's algorithm, O(n^2): starting anywhere,
follow best incoming arcs; a cycle becomes a new node whose incoming arcs are charged with what they
replace; on reaching the root all nodes of the path are done. Cycles are then opened again from the
last one made.
"""

from __future__ import annotations

import numpy as np

from ...jit.decorator import kernel
from ...search.semiring import plus
from ...utils.types import Bools, Ints, Ints32

__all__ = ["crossing_trees", "projectivised"]


COMPLETE_RIGHT, COMPLETE_LEFT, OPEN_RIGHT, OPEN_LEFT = 0, 1, 2, 3


@kernel
def eisner(scores, n, single_root, chart, stack, heads):
    """Best projective tree into heads[1 : n + 1]; returns its score.

    ``scores[h, m]`` is the score of an arc, -inf where forbidden; ``chart`` (4, n + 1, n + 1) and
    ``stack`` are scratch.
    """
    fill_spans(scores, n, single_root, False, chart)
    total = chart[COMPLETE_RIGHT, 0, n]
    if total > -np.inf:
        _trace(chart, n, single_root, stack, heads)
    return total


@kernel
def fill_spans(scores, n, single_root, soft, chart):
    """Best scores of all spans, or with ``soft`` logarithms of the sums over what is in them.

    Time O(n^3): rows are finished from the last node to the first, and each finished span is pushed
    to all larger ones, which keeps the inner loops contiguous. Until arcs are added, the open spans
    hold the best pair of halves.
    """
    right, left = chart[COMPLETE_RIGHT], chart[COMPLETE_LEFT]
    open_right, open_left = chart[OPEN_RIGHT], chart[OPEN_LEFT]
    for i in range(n, -1, -1):
        for j in range(i, n + 1):
            open_right[i, j] = open_left[i, j] = right[i, j] = left[i, j] = -np.inf
        right[i, i] = left[i, i] = 0.0
        for j in range(i, n + 1):
            if j > i:
                halves = open_right[i, j]
                arc = halves + scores[i, j]
                open_right[i, j] = arc
                for q in range(j, n + 1):
                    right[i, q] = plus(right[i, q], arc + right[j, q], soft)
                if i > 0:
                    arc = halves + scores[j, i]
                    open_left[i, j] = arc
                    done = plus(left[i, j], arc, soft)
                    left[i, j] = done
                    for q in range(j + 1, n + 1):
                        left[i, q] = plus(left[i, q], done + open_left[j, q], soft)
            if i > 0 or j == 0 or not single_root:
                done = right[i, j]
                for q in range(j + 1, n + 1):
                    open_right[i, q] = plus(open_right[i, q], done + left[j + 1, q], soft)


@kernel
def _trace(chart, n, single_root, stack, heads):
    """Find the heads of the best tree from the finished chart."""
    right, left = chart[COMPLETE_RIGHT], chart[COMPLETE_LEFT]
    open_right, open_left = chart[OPEN_RIGHT], chart[OPEN_LEFT]
    _push_span(stack, 0, COMPLETE_RIGHT, 0, n)
    size = 1
    while size > 0:
        size -= 1
        kind, i, j = stack[size, 0], stack[size, 1], stack[size, 2]
        if i == j:
            continue
        best, split = -np.inf, i
        if kind == COMPLETE_RIGHT:
            for k in range(i + 1, j + 1):
                if open_right[i, k] + right[k, j] > best:
                    best, split = open_right[i, k] + right[k, j], k
            _push_span(stack, size, OPEN_RIGHT, i, split)
            _push_span(stack, size + 1, COMPLETE_RIGHT, split, j)
        elif kind == COMPLETE_LEFT:
            for k in range(i, j):
                if left[i, k] + open_left[k, j] > best:
                    best, split = left[i, k] + open_left[k, j], k
            _push_span(stack, size, COMPLETE_LEFT, i, split)
            _push_span(stack, size + 1, OPEN_LEFT, split, j)
        else:
            if kind == OPEN_RIGHT:
                heads[j] = i
            else:
                heads[i] = j
            last = i + 1 if i == 0 and single_root else j
            for k in range(i, last):
                if right[i, k] + left[k + 1, j] > best:
                    best, split = right[i, k] + left[k + 1, j], k
            _push_span(stack, size, COMPLETE_RIGHT, i, split)
            _push_span(stack, size + 1, COMPLETE_LEFT, split + 1, j)
        size += 2


@kernel
def _push_span(stack, size, kind, i, j):
    """Put a span on the stack."""
    stack[size, 0], stack[size, 1], stack[size, 2] = kind, i, j


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
