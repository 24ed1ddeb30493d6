"""Searches of chains whose labels have costs of any size, where sums of gain and loss do not do."""

from __future__ import annotations

import numpy as np

from ..._jit import kernel
from ...search.ties import argmax
from .kernels import best_predecessor, chain_scores, loss_of, viterbi, write_difference


@kernel
def labelling_score(unary, length, transition, path):
    """Score of a labelling."""
    score = unary[0, path[0]]
    for t in range(1, length):
        score += unary[t, path[t]] + transition[path[t - 1], path[t]]
    return score


@kernel
def best_between(unary, transition, losses, lower, upper, multiplier, work, path):
    """Labelling of the largest score plus ``multiplier * loss``; returns its score alone.

    Only labels with ``lower[t] < losses[t, k] <= upper[t]`` are taken. ``work`` is scratch.
    """
    length, K = losses.shape
    for t in range(length):
        for k in range(K):
            loss = losses[t, k]
            taken = lower[t] < loss <= upper[t]
            work.unary[t, k] = unary[t, k] + multiplier * loss if taken else -np.inf
    viterbi(work.unary, length, transition, K, work.forward, path)
    return labelling_score(unary, length, transition, path)


@kernel
def _best_costly(unary, length, transition, K, costs, rows, free_counts, error_counts, path):
    """Labelling of the largest value, 1 + gain with costs and gain without; returns the value.

    levels[t, c, k] is the best score of a prefix that ends in k at t and has costs (c = 1) or
    none. Labellings without costs are left out unless ``free_counts``.
    """
    for t in range(length):
        for k in range(K):
            before0, before1 = 0.0, -np.inf
            if t > 0:
                j = best_predecessor(error_counts[t - 1, 0], transition, k, K)
                before0 = error_counts[t - 1, 0, j] + transition[j, k]
                j = best_predecessor(error_counts[t - 1, 1], transition, k, K)
                before1 = error_counts[t - 1, 1, j] + transition[j, k]
            costly = costs[rows[t], k] > 0.0
            error_counts[t, 0, k] = -np.inf if costly else before0 + unary[t, k]
            error_counts[t, 1, k] = (max(before0, before1) if costly else before1) + unary[t, k]
    end = length - 1
    label = argmax(error_counts[end, 1], K)
    value, error_count = 1.0 + error_counts[end, 1, label], 1
    free = argmax(error_counts[end, 0], K)
    if free_counts and error_counts[end, 0, free] > value:
        label, value, error_count = free, error_counts[end, 0, free], 0
    if value == -np.inf:
        return value
    path[end] = label
    for t in range(end, 0, -1):
        stay = best_predecessor(error_counts[t - 1, error_count], transition, label, K)
        if error_count == 1 and costs[rows[t], label] > 0.0:
            leave = best_predecessor(error_counts[t - 1, 0], transition, label, K)
            first_cost = error_counts[t - 1, 0, leave] + transition[leave, label]
            if first_cost > error_counts[t - 1, 1, stay] + transition[stay, label]:
                stay, error_count = leave, 0
        label = stay
        path[t - 1] = label
    return value


@kernel
def costly_labellings(chain, examples, w, transition, free_counts, work, found):
    """Most violated labellings where costs count as 1, one after the other into ``found``.

    The gold labelling is found where nothing is violated. See `_best_costly` for what counts.
    """
    K = chain.n_labels
    error_counts = np.empty((len(work.unary), 2, K))
    filled = 0
    for r in range(len(examples)):
        first = chain.offsets[examples[r]]
        length = chain.offsets[examples[r] + 1] - first
        gold = chain.labels[first : first + length]
        rows = chain.cost_rows[first : first + length]
        path = found[filled : filled + length]
        chain_scores(chain.rows, first, length, w, K, work.start, work.stop, work.unary)
        of_gold = labelling_score(work.unary, length, transition, gold)
        value = _best_costly(
            work.unary, length, transition, K, chain.costs, rows, free_counts, error_counts, path
        )
        if not value > of_gold:
            path[:] = gold
        filled += length


@kernel
def write_labellings(chain, examples, found, as_blocks, out):
    """Rows of these labellings, which lie one after the other; see `kernels.chain_oracle`."""
    filled = 0
    begin = 0
    out.indptr[0] = 0
    for r in range(len(examples)):
        first = chain.offsets[examples[r]]
        length = chain.offsets[examples[r] + 1] - first
        gold = chain.labels[first : first + length]
        path = found[begin : begin + length]
        loss_unit = 1.0 / length if chain.normalized else 1.0
        _, out.losses[r] = loss_of(chain, first, length, gold, path, loss_unit)
        filled = write_difference(chain, first, length, gold, path, as_blocks, out, filled)
        out.indptr[r + 1] = filled
        begin += length
