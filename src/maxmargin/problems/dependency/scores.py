"""Scores of all arcs of a sentence from hashed features, and arcs as lists of features.

Nodes are numbered from the root, 0; keys of node h are in row ``first + h``. With the keys A of
the head, B of the modifier and D of the direction, template t has the features

    f = (A[h, t] ^ B[m, t] ^ D) mod n_weights     and     f ^ bucket of the distance,

a between template ``(A[h, t] ^ B[m, t] ^ D ^ V[b, t]) mod n_weights`` for each distinct value
V[b, t] between h and m. Labels have weights of their own behind those of the arcs: row r, label k
is ``n_weights + r * n_labels + k`` with ``r = (A[h, t] ^ B[m, t] ^ D) mod n_rows``.
"""

from __future__ import annotations

import numpy as np

from ...jit.decorator import kernel
from .features import (
    ALONE_HEAD,
    ALONE_MODIFIER,
    BETWEEN_HEAD,
    BETWEEN_MODIFIER,
    BETWEEN_VALUE,
    LABEL_ALONE_HEAD,
    LABEL_ALONE_MODIFIER,
    LABEL_PAIR_HEAD,
    LABEL_PAIR_MODIFIER,
    PAIR_HEAD,
    PAIR_MODIFIER,
)

LEFT, RIGHT = np.uint64(0x5BD1E995), np.uint64(0xB5297A4D)  # keys of the directions


@kernel
def _add_alone(keys, row, start, end, D, w, mask, sums):
    """Add the features of one-sided templates to sums[bucket], for all buckets."""
    for t in range(start, end):
        base = (np.uint64(keys[row, t]) ^ D) & mask
        plain = w[base]
        for bucket in range(8):
            sums[bucket] += plain + w[base ^ np.uint64(bucket)]


@kernel
def score_arcs(arcs, first, n, w, alone, passed, scores):
    """Fill scores[h, m] for all arcs of the n tokens behind node ``first``.

    In: ``arcs`` (ArcKeys). Scratch: ``alone[0 or 1, node, side, bucket]``, the sums of one-sided
    templates for heads and for modifiers; ``passed[t]``, keys of what has come between so far.
    """
    keys, starts = arcs.keys, arcs.starts
    mask = np.uint64(arcs.n_weights - 1)
    n_pairs = starts[PAIR_MODIFIER] - starts[PAIR_HEAD]
    n_between = starts[BETWEEN_MODIFIER] - starts[BETWEEN_HEAD]
    A, B = starts[PAIR_HEAD], starts[PAIR_MODIFIER]
    for node in range(n + 1):
        for kind, group in ((0, ALONE_HEAD), (1, ALONE_MODIFIER)):
            for side in range(2):
                D = RIGHT if side == 1 else LEFT
                sums = alone[kind, node, side]
                sums[:] = 0.0
                _add_alone(keys, first + node, starts[group], starts[group + 1], D, w, mask, sums)
    for m in range(1, n + 1):
        modifier = first + m
        for side in range(2):
            D = RIGHT if side == 1 else LEFT
            step = -1 if side == 1 else 1
            h = m + step
            while 0 <= h <= n:
                head = first + h
                bucket = np.uint64(arcs.buckets[abs(h - m)])
                total = alone[0, h, side, bucket] + alone[1, m, side, bucket]
                for t in range(n_pairs):
                    base = np.uint64(keys[head, A + t]) ^ np.uint64(keys[modifier, B + t]) ^ D
                    base &= mask
                    total += w[base] + w[base ^ bucket]
                scores[h, m] = total
                h += step
            for t in range(n_between):
                _add_between(arcs, first, n, m, t, D, step, w, mask, passed, scores)


@kernel
def _add_between(arcs, first, n, m, t, D, step, w, mask, passed, scores):
    """Add the features of between template t to the arcs into m from one side, nearest first."""
    keys = arcs.keys
    A, V = arcs.starts[BETWEEN_HEAD] + t, arcs.starts[BETWEEN_VALUE] + t
    base = np.uint64(keys[first + m, arcs.starts[BETWEEN_MODIFIER] + t]) ^ D
    count = 0
    h = m + 2 * step
    while 0 <= h <= n:
        b = h - step  # the token that has come between
        previous, following = arcs.same[first + b, t, 0], arcs.same[first + b, t, 1]
        if following >= m if step < 0 else previous <= m:
            passed[count] = base ^ np.uint64(keys[first + b, V])
            count += 1
        key = np.uint64(keys[first + h, A])
        total = 0.0
        for k in range(count):
            total += w[(passed[k] ^ key) & mask]
        scores[h, m] += total
        h += step


@kernel(inline=True)
def arc_features(arcs, first, h, m, label, out):
    """Write the features of an arc (and its label, if >= 0) to ``out``; returns their number.

    All but those of what is between come first, in a fixed order; see `count_fixed`.
    """
    keys, starts = arcs.keys, arcs.starts
    mask = np.uint64(arcs.n_weights - 1)
    D = RIGHT if h < m else LEFT
    head, modifier = first + h, first + m
    bucket = np.uint64(arcs.buckets[abs(h - m)])
    filled = 0
    for t in range(starts[PAIR_MODIFIER] - starts[PAIR_HEAD]):
        key = np.uint64(keys[head, starts[PAIR_HEAD] + t])
        key ^= np.uint64(keys[modifier, starts[PAIR_MODIFIER] + t])
        filled = _append(out, filled, (key ^ D) & mask, bucket)
    for t in range(starts[ALONE_HEAD], starts[ALONE_HEAD + 1]):
        filled = _append(out, filled, (np.uint64(keys[head, t]) ^ D) & mask, bucket)
    for t in range(starts[ALONE_MODIFIER], starts[ALONE_MODIFIER + 1]):
        filled = _append(out, filled, (np.uint64(keys[modifier, t]) ^ D) & mask, bucket)
    if label >= 0:
        filled = _label_features(arcs, head, modifier, D, label, out, filled)
    low, high = min(h, m), max(h, m)
    for t in range(starts[BETWEEN_MODIFIER] - starts[BETWEEN_HEAD]):
        key = np.uint64(keys[head, starts[BETWEEN_HEAD] + t]) ^ D
        key ^= np.uint64(keys[modifier, starts[BETWEEN_MODIFIER] + t])
        for b in range(low + 1, high):
            if arcs.same[first + b, t, 0] <= low:
                value = np.uint64(keys[first + b, starts[BETWEEN_VALUE] + t])
                out[filled] = np.int32((key ^ value) & mask)
                filled += 1
    return filled


@kernel(allocates=False)
def count_fixed(arcs):
    """Number of features that every arc has."""
    starts = arcs.starts
    n_arc = starts[BETWEEN_HEAD] - starts[PAIR_MODIFIER]
    return 2 * n_arc + starts[LABEL_ALONE_MODIFIER + 1] - starts[LABEL_PAIR_MODIFIER]


@kernel(inline=True)
def _append(out, filled, base, bucket):
    """Append a feature and its copy for the distance."""
    out[filled] = np.int32(base)
    out[filled + 1] = np.int32(base ^ bucket)
    return filled + 2


@kernel(inline=True)
def _label_features(arcs, head, modifier, D, label, out, filled):
    """Append the features of an arc together with its label."""
    keys, starts = arcs.keys, arcs.starts
    for t in range(starts[LABEL_PAIR_MODIFIER] - starts[LABEL_PAIR_HEAD]):
        key = np.uint64(keys[head, starts[LABEL_PAIR_HEAD] + t])
        key ^= np.uint64(keys[modifier, starts[LABEL_PAIR_MODIFIER] + t])
        out[filled] = _label_row(arcs, key ^ D) + label
        filled += 1
    for t in range(starts[LABEL_ALONE_HEAD], starts[LABEL_ALONE_HEAD + 1]):
        out[filled] = _label_row(arcs, np.uint64(keys[head, t]) ^ D) + label
        filled += 1
    for t in range(starts[LABEL_ALONE_MODIFIER], starts[LABEL_ALONE_MODIFIER + 1]):
        out[filled] = _label_row(arcs, np.uint64(keys[modifier, t]) ^ D) + label
        filled += 1
    return filled


@kernel(inline=True)
def _label_row(arcs, key):
    """Where the weights of all labels for a key begin."""
    return arcs.n_weights + np.int64(key & np.uint64(arcs.n_rows - 1)) * arcs.n_labels


@kernel
def score_labels_alone(arcs, first, n, w, alone):
    """Fill alone[0 for heads or 1 for modifiers, node, side, label] for all nodes."""
    starts, K = arcs.starts, arcs.n_labels
    for kind, group in ((0, LABEL_ALONE_HEAD), (1, LABEL_ALONE_MODIFIER)):
        for node in range(n + 1):
            for side in range(2):
                sums = alone[kind, node, side]
                sums[:] = 0.0
                for t in range(starts[group], starts[group + 1]):
                    key = np.uint64(arcs.keys[first + node, t]) ^ (RIGHT if side == 1 else LEFT)
                    row = _label_row(arcs, key)
                    for k in range(K):
                        sums[k] += w[row + k]


@kernel
def score_labels(arcs, first, h, m, w, alone, scores):
    """Fill scores[label] of an arc; `score_labels_alone` comes first."""
    starts, K = arcs.starts, arcs.n_labels
    side = 1 if h < m else 0
    D = RIGHT if h < m else LEFT
    for k in range(K):
        scores[k] = alone[0, h, side, k] + alone[1, m, side, k]
    for t in range(starts[LABEL_PAIR_MODIFIER] - starts[LABEL_PAIR_HEAD]):
        key = np.uint64(arcs.keys[first + h, starts[LABEL_PAIR_HEAD] + t])
        key ^= np.uint64(arcs.keys[first + m, starts[LABEL_PAIR_MODIFIER] + t])
        row = _label_row(arcs, key ^ D)
        for k in range(K):
            scores[k] += w[row + k]
