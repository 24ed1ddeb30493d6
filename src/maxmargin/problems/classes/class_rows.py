"""Rows times weights of classes, in the layout that the blocks of a multiclass dual keep them in.

Sparse rows want the weights of a feature next to each other (``weights[f * stride + y]``): one
cache line for eight classes. Dense rows want those of a class (``weights[y * stride + f]``): few
long products replace many short ones, and a single class is scored by itself. The stride is padded
so that lines and vector registers are full. Of two classes only the second has weights: those of
the first are their negatives.
"""

from __future__ import annotations

import numpy as np

from ...engine.rows import Rows
from ...jit.decorator import kernel
from ...utils.types import Floats

LINE = 8  # numbers in a cache line
MANY = 4  # classes of a sparse row that are changed one by one


def class_stride(rows: Rows, K: int) -> int:
    """Weights from a feature (sparse rows) or class (dense rows) to the next; 0 for two classes."""
    if K == 2:
        return 0
    if rows.dense.shape[0] == 0:
        return K + -K % LINE
    stride = rows.n_inputs + -rows.n_inputs % LINE
    # Classes a power of two apart would share cache sets.
    return stride + LINE if stride % (8 * LINE) == 0 else stride


def no_class_weights(rows: Rows, K: int) -> Floats:
    """Zeros in the layout, at the start of a cache line."""
    size = class_stride(rows, K) * (K if rows.dense.shape[0] else rows.n_inputs) or rows.n_inputs
    buffer = np.zeros(size + LINE)
    start = -(buffer.ctypes.data // buffer.itemsize) % LINE
    return buffer[start : start + size]


def feature_major(rows: Rows, K: int, weights: Floats) -> Floats:
    """The weights as the problem has them, ``w[f * K + y]``."""
    if K == 2:
        return np.stack([-weights, weights], axis=1).ravel()
    by_stride = weights.reshape(-1, class_stride(rows, K))
    if rows.dense.shape[0] == 0:
        return by_stride[:, :K].ravel()
    return by_stride[:, : rows.n_inputs].T.ravel()


def by_class_layout(rows: Rows, K: int, w: Floats) -> Floats:
    """Weights ``w[f * K + y]`` in the layout; of two classes the first must mirror the second."""
    weights, of_inputs = no_class_weights(rows, K), w.reshape(-1, K)
    if K == 2:
        weights[:] = of_inputs[:, 1]
    elif rows.dense.shape[0] == 0:
        weights.reshape(-1, class_stride(rows, K))[:, :K] = of_inputs
    else:
        weights.reshape(-1, class_stride(rows, K))[:, : rows.n_inputs] = of_inputs.T
    return weights


@kernel(inline=True)
def score_all_classes(rows, i, weights, stride, K, scores):
    """Scores of all classes for row i; ``scores`` has a multiple of eight places."""
    if rows.dense.shape[0] > 0:
        _score_dense(rows, np.uint64(i), weights, np.uint64(stride), K, scores)
    else:
        _score_lines(rows, i, weights, np.uint64(stride), scores)


@kernel(inline=True)
def _score_dense(rows, row, weights, stride, K, scores):
    """Four classes a round, for fewer loads of x."""
    dense, n_columns = rows.dense, np.uint64(rows.n_columns)
    y = 0
    while y + 4 <= K:
        w0 = np.uint64(y) * stride
        w1, w2, w3 = w0 + stride, w0 + np.uint64(2) * stride, w0 + np.uint64(3) * stride
        s0 = s1 = s2 = s3 = 0.0
        for f in range(n_columns):
            x = dense[row, f]
            s0 += x * weights[w0 + f]
            s1 += x * weights[w1 + f]
            s2 += x * weights[w2 + f]
            s3 += x * weights[w3 + f]
        scores[y], scores[y + 1], scores[y + 2], scores[y + 3] = s0, s1, s2, s3
        y += 4
    while y < K:
        w0 = np.uint64(y) * stride
        s0 = 0.0
        for f in range(n_columns):
            s0 += dense[row, f] * weights[w0 + f]
        scores[y] = s0
        y += 1
    if rows.bias != 0.0:
        for y in range(K):
            scores[y] += rows.bias * weights[np.uint64(y) * stride + n_columns]


@kernel(inline=True)
def _score_lines(rows, i, weights, stride, scores):
    """Four entries of a sparse row a round, for less traffic on ``scores``."""
    indices, values = rows.indices, rows.values
    e, end = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    bias = np.uint64(rows.n_columns) * stride
    for k in range(stride):
        scores[k] = rows.bias * weights[bias + k] if rows.bias != 0.0 else 0.0
    while e + four <= end:
        x0, x1, x2, x3 = values[e], values[e + one], values[e + two], values[e + three]
        w0, w1 = np.uint64(indices[e]) * stride, np.uint64(indices[e + one]) * stride
        w2, w3 = np.uint64(indices[e + two]) * stride, np.uint64(indices[e + three]) * stride
        for k in range(stride):
            scores[k] += (
                x0 * weights[w0 + k]
                + x1 * weights[w1 + k]
                + x2 * weights[w2 + k]
                + x3 * weights[w3 + k]
            )
        e += four
    while e < end:
        x0, w0 = values[e], np.uint64(indices[e]) * stride
        for k in range(stride):
            scores[k] += x0 * weights[w0 + k]
        e += one


@kernel(inline=True)
def score_classes(rows, i, weights, stride, classes, m, scores):
    """Scores of the first m of ``classes`` for row i, two a round."""
    stride = np.uint64(stride)
    for j in range(0, m, 2):
        a = np.uint64(classes[j])
        b = np.uint64(classes[min(j + 1, m - 1)])
        s0 = s1 = 0.0
        if rows.dense.shape[0] > 0:
            dense, row = rows.dense, np.uint64(i)
            a, b = a * stride, b * stride
            for f in range(np.uint64(rows.n_columns)):
                s0 += dense[row, f] * weights[a + f]
                s1 += dense[row, f] * weights[b + f]
            if rows.bias != 0.0:
                s0 += rows.bias * weights[a + np.uint64(rows.n_columns)]
                s1 += rows.bias * weights[b + np.uint64(rows.n_columns)]
        else:
            indices, values = rows.indices, rows.values
            for e in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
                at = np.uint64(indices[e]) * stride
                s0 += values[e] * weights[at + a]
                s1 += values[e] * weights[at + b]
            if rows.bias != 0.0:
                at = np.uint64(rows.n_columns) * stride
                s0 += rows.bias * weights[at + a]
                s1 += rows.bias * weights[at + b]
        scores[j] = s0
        if j + 1 < m:
            scores[j + 1] = s1


@kernel(inline=True)
def add_to_classes(rows, i, classes, steps, m, weights, stride, wide):
    """Add steps[j] x to the weights of classes[j], for j < m; ``wide`` is scratch of a stride."""
    if stride == 0:
        add_input(rows, i, steps[0] if classes[0] == 1 else steps[1], weights)
        return
    stride = np.uint64(stride)
    if rows.dense.shape[0] > 0:
        dense, row = rows.dense, np.uint64(i)
        for j in range(m):
            own, step = np.uint64(classes[j]) * stride, steps[j]
            for f in range(np.uint64(rows.n_columns)):
                weights[own + f] += step * dense[row, f]
            if rows.bias != 0.0:
                weights[own + np.uint64(rows.n_columns)] += step * rows.bias
        return
    indices, values = rows.indices, rows.values
    first, last = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])
    if m > MANY:
        for k in range(stride):
            wide[k] = 0.0
        for j in range(m):
            wide[np.uint64(classes[j])] = steps[j]
        for e in range(first, last):
            x, at = values[e], np.uint64(indices[e]) * stride
            for k in range(stride):
                weights[at + k] += x * wide[k]
        if rows.bias != 0.0:
            at = np.uint64(rows.n_columns) * stride
            for k in range(stride):
                weights[at + k] += rows.bias * wide[k]
        return
    for j in range(0, m - 1, 2):
        a, b = np.uint64(classes[j]), np.uint64(classes[j + 1])
        step, other = steps[j], steps[j + 1]
        for e in range(first, last):
            at = np.uint64(indices[e]) * stride
            weights[at + a] += step * values[e]
            weights[at + b] += other * values[e]
    if m % 2 == 1:
        a, step = np.uint64(classes[m - 1]), steps[m - 1]
        for e in range(first, last):
            weights[np.uint64(indices[e]) * stride + a] += step * values[e]
    if rows.bias != 0.0:
        at = np.uint64(rows.n_columns) * stride
        for j in range(m):
            weights[at + np.uint64(classes[j])] += steps[j] * rows.bias


@kernel(inline=True)
def score_input(rows, i, weights):
    """Product of row i with one vector of weights."""
    score = 0.0
    if rows.dense.shape[0] > 0:
        dense, row = rows.dense, np.uint64(i)
        for f in range(np.uint64(rows.n_columns)):
            score += dense[row, f] * weights[f]
    else:
        indices, values = rows.indices, rows.values
        for e in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
            score += values[e] * weights[np.uint64(indices[e])]
    if rows.bias != 0.0:
        score += rows.bias * weights[rows.n_columns]
    return score


@kernel(inline=True)
def add_input(rows, i, step, weights):
    """Add ``step`` times row i to one vector of weights."""
    if rows.dense.shape[0] > 0:
        dense, row = rows.dense, np.uint64(i)
        for f in range(np.uint64(rows.n_columns)):
            weights[f] += step * dense[row, f]
    else:
        indices, values = rows.indices, rows.values
        for e in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
            weights[np.uint64(indices[e])] += step * values[e]
    if rows.bias != 0.0:
        weights[rows.n_columns] += step * rows.bias


@kernel(inline=True)
def _goals(i, lists, limit, factor, goals):
    """Feasible multipliers of example i, ``factor`` times their last change further."""
    alpha, before = lists.alpha, lists.before
    total = 0.0
    for j in range(lists.counts[i]):
        goals[j] = max(0.0, alpha[i, j] + factor * (alpha[i, j] - before[i, j]))
        total += goals[j]
    if total > limit:
        for j in range(lists.counts[i]):
            goals[j] *= limit / total


@kernel(allocates=False)
def extrapolated_change(blocks, limits, factor, carried, work):
    """What an extrapolation adds to the dual, but for the weights; the planes that are clipped.

    Without clipping, the weights change by ``factor`` times their last change; what clipping alters
    is added to ``carried``. Returns the changes' sum times offsets, and for squared slacks what
    ridges make of slope and curvature.
    """
    labels, terms, lists = blocks.labels, blocks.terms, blocks.lists
    classes, alpha, before, counts, moved = lists
    goals, changed, steps, wide = work.new, work.changed, work.steps, work.scores
    linear = 0.0
    slope = 0.0
    curvature = 0.0
    for i in range(len(counts)):
        if not moved[i]:
            continue
        _goals(i, lists, limits[i], factor, goals)
        gold, row = labels[i], terms.rows[i]
        held = 0.0
        rise = 0.0
        lost = 0.0
        n = 0
        for j in range(counts[i]):
            y = classes[i, j]
            change = goals[j] - alpha[i, j]
            linear += change * terms.offsets[row, y]
            held += alpha[i, j]
            rise += change
            clipped = (change - factor * (alpha[i, j] - before[i, j])) * terms.scales[row, y]
            if clipped != 0.0:
                changed[n] = y
                steps[n] = -clipped
                lost += clipped
                n += 1
        slope -= blocks.ridges[i] * held * rise
        curvature += blocks.ridges[i] * rise * rise
        if n > 0:
            changed[n] = gold
            steps[n] = lost
            add_to_classes(blocks.rows, i, changed, steps, n + 1, carried, blocks.stride, wide)
    return linear, slope, curvature


@kernel(allocates=False)
def extrapolate_lists(lists, limits, factor, step, goals):
    """Go ``step`` of the way to the goals of an extrapolation, and remember where from."""
    _, alpha, before, counts, moved = lists
    for i in range(len(counts)):
        if not moved[i]:
            continue
        _goals(i, lists, limits[i], factor, goals)
        moved[i] = False
        for j in range(counts[i]):
            before[i, j] = alpha[i, j]
            alpha[i, j] += step * (goals[j] - alpha[i, j])
            moved[i] |= alpha[i, j] != before[i, j]


@kernel(allocates=False)
def add_listed_classes(blocks, weights, work):
    """Add the sum of multipliers times planes to ``weights``."""
    labels, terms = blocks.labels, blocks.terms
    classes, alpha, _, counts, _ = blocks.lists
    changed, steps, wide = work.changed, work.steps, work.scores
    for i in range(len(counts)):
        gold, row = labels[i], terms.rows[i]
        moved = 0.0
        n = 0
        for j in range(counts[i]):
            y = classes[i, j]
            if alpha[i, j] != 0.0:
                changed[n] = y
                steps[n] = -alpha[i, j] * terms.scales[row, y]
                moved -= steps[n]
                n += 1
        if n > 0:
            changed[n] = gold
            steps[n] = moved
            add_to_classes(blocks.rows, i, changed, steps, n + 1, weights, blocks.stride, wide)
