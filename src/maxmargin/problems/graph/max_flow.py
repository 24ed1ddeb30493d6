"""Two labels whose pairs are submodular: the best labelling is a minimum cut.

Boykov and Kolmogorov (2004), "An experimental comparison of min-cut/max-flow algorithms for energy
minimization in vision": search trees grow from source and sink until they touch, the path between
them is filled, and nodes cut off by that look for new parents. Nodes of label 1 are on the side of
the source. Arc 2 e leads from the lower node of edge e to the higher one, 2 e + 1 back.
"""

from __future__ import annotations

import numpy as np

from ...jit.decorator import kernel
from .kernels import score_of

__all__ = ["best_of_cut", "is_submodular"]

FREE, TERMINAL, ORPHAN = -1, -2, -3  # parents that are no arcs


@kernel(allocates=False)
def is_submodular(pair):
    """Whether a maximum cut finds the best labels of two: equal ones are worth more in all."""
    for e in range(len(pair)):
        if pair.shape[1] == 1:
            if pair[e, 0, 0] < 0.0:
                return False
        elif pair[e, 0, 0] + pair[e, 1, 1] < pair[e, 0, 1] + pair[e, 1, 0]:
            return False
    return True


@kernel
def best_of_cut(shape, unary, pair, labels):
    """Fill the best labels of a graph with two labels and submodular pairs; returns their score."""
    n, m = len(unary), len(shape.low)
    excess = np.empty(n)  # capacity from the source, or to the sink if negative
    capacity = np.empty(2 * m)
    head = np.empty(2 * m, np.int64)
    for s in range(n):
        excess[s] = unary[s, 1] - unary[s, 0]
    for e in range(m):
        low, high = shape.low[e], shape.high[e]
        head[2 * e], head[2 * e + 1] = high, low
        if pair.shape[1] == 1:
            half, of_low, of_high = pair[e, 0, 0], 0.0, 0.0
        else:
            # P(a, b) = P(0, 0) + a of_low + b of_high - half |a - b|
            none = pair[e, 0, 0]
            half = 0.5 * (none + pair[e, 1, 1] - pair[e, 0, 1] - pair[e, 1, 0])
            of_low, of_high = pair[e, 1, 0] - none + half, pair[e, 0, 1] - none + half
        excess[low] += of_low
        excess[high] += of_high
        capacity[2 * e] = capacity[2 * e + 1] = half
    starts = np.empty(n + 1, np.int64)
    arcs = np.empty(2 * m, np.int64)
    starts[0] = 0
    for s in range(n):
        at = starts[s]
        for q in range(shape.before_ends[s], shape.before_ends[s + 1]):
            arcs[at] = 2 * shape.before[q] + 1
            at += 1
        for q in range(shape.after_ends[s], shape.after_ends[s + 1]):
            arcs[at] = 2 * shape.after[q]
            at += 1
        starts[s + 1] = at
    _cut(starts, arcs, head, capacity, excess, labels)
    return score_of(shape, unary, pair, labels)


@kernel
def _cut(starts, arcs, head, capacity, excess, labels):
    """Find a minimum cut; labels are 1 in the tree of the source. All flows are left behind."""
    n = len(excess)
    parent = np.full(n, FREE)  # the arc to the parent
    of_sink = np.zeros(n, np.bool_)
    stamp, distance = np.zeros(n, np.int64), np.zeros(n, np.int64)
    queue, queued = np.empty(n + 1, np.int64), np.zeros(n, np.bool_)
    orphans = np.empty(n + 1, np.int64)
    first, last, time = 0, 0, 0
    for s in range(n):
        if excess[s] != 0.0:
            parent[s] = TERMINAL
            of_sink[s] = excess[s] < 0.0
            distance[s] = 1
            queue[last] = s
            last += 1
            queued[s] = True
    current = -1
    while True:
        if current < 0 or parent[current] == FREE:
            current = -1
            while first != last and current < 0:
                s = queue[first]
                first = (first + 1) % (n + 1)
                queued[s] = False
                if parent[s] != FREE:
                    current = s
            if current < 0:
                break
        s, meeting = current, -1
        for q in range(starts[s], starts[s + 1]):
            # Arcs of residual capacity: away from the source, or towards the sink.
            arc = arcs[q]
            if capacity[arc ^ 1 if of_sink[s] else arc] <= 0.0:
                continue
            other = head[arc]
            if parent[other] == FREE:
                of_sink[other] = of_sink[s]
                parent[other] = arc ^ 1
                stamp[other], distance[other] = stamp[s], distance[s] + 1
                if not queued[other]:
                    queued[other] = True
                    queue[last] = other
                    last = (last + 1) % (n + 1)
            elif of_sink[other] != of_sink[s]:
                meeting = arc ^ 1 if of_sink[s] else arc
                break
            elif stamp[other] <= stamp[s] and distance[other] > distance[s]:
                parent[other] = arc ^ 1
                stamp[other], distance[other] = stamp[s], distance[s] + 1
        time += 1
        if meeting < 0:
            current = -1
            continue
        n_orphans = _augment(meeting, head, capacity, excess, parent, orphans)
        done = 0
        while done != n_orphans:
            s = orphans[done]
            done = (done + 1) % (n + 1)
            side = of_sink[s]
            nearest, new_parent = np.int64(2**62), FREE
            for q in range(starts[s], starts[s + 1]):
                arc = arcs[q]
                other = head[arc]
                if capacity[arc if side else arc ^ 1] <= 0.0:
                    continue
                if of_sink[other] != side or parent[other] == FREE:
                    continue
                far = _distance(other, time, head, parent, stamp, distance)
                if far < 0:
                    continue
                if far < nearest:
                    nearest, new_parent = far, arc
                while stamp[other] != time:
                    stamp[other], distance[other] = time, far
                    far -= 1
                    other = head[parent[other]]
            if new_parent != FREE:
                parent[s] = new_parent
                stamp[s], distance[s] = time, nearest + 1
                continue
            parent[s] = FREE
            for q in range(starts[s], starts[s + 1]):
                arc = arcs[q]
                other = head[arc]
                if of_sink[other] != side or parent[other] == FREE:
                    continue
                if capacity[arc if side else arc ^ 1] > 0.0 and not queued[other]:
                    queued[other] = True
                    queue[last] = other
                    last = (last + 1) % (n + 1)
                if parent[other] >= 0 and head[parent[other]] == s:
                    parent[other] = ORPHAN
                    orphans[n_orphans] = other
                    n_orphans = (n_orphans + 1) % (n + 1)
    for s in range(n):
        labels[s] = parent[s] != FREE and not of_sink[s]


@kernel(allocates=False)
def _distance(s, time, head, parent, stamp, distance):
    """Steps from a node to its terminal, -1 if an orphan is on the way."""
    steps = 0
    while True:
        if stamp[s] == time:
            return steps + distance[s]
        arc = parent[s]
        steps += 1
        if arc == TERMINAL:
            stamp[s], distance[s] = time, 1
            return steps
        if arc == ORPHAN:
            return -1
        s = head[arc]


@kernel(allocates=False)
def _augment(meeting, head, capacity, excess, parent, orphans):
    """Fill the path through an arc from the source's tree to the sink's; returns orphans."""
    room = capacity[meeting]
    s = head[meeting ^ 1]
    while parent[s] != TERMINAL:
        room = min(room, capacity[parent[s] ^ 1])
        s = head[parent[s]]
    room = min(room, excess[s])
    s = head[meeting]
    while parent[s] != TERMINAL:
        room = min(room, capacity[parent[s]])
        s = head[parent[s]]
    room = min(room, -excess[s])
    capacity[meeting] -= room
    capacity[meeting ^ 1] += room
    n_orphans = 0
    s = head[meeting ^ 1]
    while parent[s] != TERMINAL:
        arc = parent[s]
        capacity[arc] += room
        capacity[arc ^ 1] -= room
        after = head[arc]
        if capacity[arc ^ 1] <= 0.0:
            parent[s] = ORPHAN
            orphans[n_orphans] = s
            n_orphans += 1
        s = after
    excess[s] -= room
    if excess[s] <= 0.0:
        parent[s] = ORPHAN
        orphans[n_orphans] = s
        n_orphans += 1
    s = head[meeting]
    while parent[s] != TERMINAL:
        arc = parent[s]
        capacity[arc ^ 1] += room
        capacity[arc] -= room
        after = head[arc]
        if capacity[arc] <= 0.0:
            parent[s] = ORPHAN
            orphans[n_orphans] = s
            n_orphans += 1
        s = after
    excess[s] += room
    if excess[s] >= 0.0:
        parent[s] = ORPHAN
        orphans[n_orphans] = s
        n_orphans += 1
    return n_orphans
