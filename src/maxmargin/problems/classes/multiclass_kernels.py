"""Kernels of the multiclass problem: the oracle, and the k best classes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...engine.rows import add_scores, write_row
from ...engine.steps.online_steps import SCALE, single_step
from ...jit.decorator import kernel
from ...search.violation import plane_value
from ...utils.types import Floats, Ints


class ClassTerms(NamedTuple):
    """Offset and scale of the planes of all classes, in the row of each example.

    Without costs of their own, examples of a class have the same row, which has its number.
    """

    offsets: Floats
    scales: Floats
    unit_scales: bool
    rows: Ints


@kernel
def class_oracle(rows, labels, examples, w, terms, K, best):
    """Class with the largest ``b - <a, w>`` for each example; ties: the gold class."""
    scores = np.empty(K)
    for r in range(len(examples)):
        i = examples[r]
        gold, row = labels[i], terms.rows[i]
        scores[:] = 0.0
        add_scores(rows, i, w, K, scores)
        best[r] = gold
        largest = 0.0
        for y in range(K):
            gain = scores[y] - scores[gold]
            value = plane_value(terms.offsets[row, y], terms.scales[row, y], gain)
            if y != gold and value > largest:
                best[r] = y
                largest = value


@kernel
def keep_best(values, y, best, found, k):
    """Put y into its place among the ``found`` in ``best``, k at most; returns their number."""
    position = found  # insertion sort into a list of k
    while position > 0 and values[best[position - 1]] < values[y]:
        if position < k:
            best[position] = best[position - 1]
        position -= 1
    if position == k:
        return found
    best[position] = y
    return min(found + 1, k)


@kernel
def class_k_best(rows, labels, examples, w, terms, K, k, best):
    """The k classes but gold with the largest ``b - <a, w>``, best first; gold ones behind.

    Where a plane is nothing at all, its class counts as gold.
    """
    scores = np.empty(K)
    values = np.empty(K)
    for r in range(len(examples)):
        i = examples[r]
        gold, row = labels[i], terms.rows[i]
        scores[:] = 0.0
        add_scores(rows, i, w, K, scores)
        for y in range(K):
            gain = scores[y] - scores[gold]
            values[y] = plane_value(terms.offsets[row, y], terms.scales[row, y], gain)
        found = 0
        for y in range(K):
            if y != gold and terms.scales[row, y] > 0.0:
                found = keep_best(values, y, best[r], found, k)
        for c in range(found, k):
            best[r, c] = gold


@kernel
def best_classes(rows, examples, w, K, best):
    """Class of the largest score of each example; the first of several."""
    scores = np.empty(K)
    for r in range(len(examples)):
        scores[:] = 0.0
        add_scores(rows, examples[r], w, K, scores)
        best[r] = np.argmax(scores)


@kernel
def class_online(rows, labels, examples, weights, terms, costs, rule, state, row):
    """A step of an online solver for each example, at the weights the one before has left.

    The candidate is the best class (``rule.plain``), or the one with the largest ``b - <a, w>``;
    ``terms`` holds the offsets b and scales of all classes. ``row`` (Planes) is scratch.
    """
    K = terms.offsets.shape[1]
    scores = np.empty(K)
    for r in range(len(examples)):
        i = examples[r]
        gold, own = labels[i], terms.rows[i]
        scores[:] = 0.0
        add_scores(rows, i, state.v, K, scores)
        if rule.plain:
            best = np.argmax(scores)
        else:
            best = gold
            largest = 0.0
            for y in range(K):
                gain = state.numbers[SCALE] * (scores[y] - scores[gold])
                value = plane_value(terms.offsets[own, y], terms.scales[own, y], gain)
                if y != gold and value > largest:
                    best, largest = y, value
        row.indptr[1] = 0
        if best != gold:
            row.indptr[1] = write_row(rows, i, K, gold, best, row, 0)
        b, c = terms.offsets[own, best], terms.scales[own, best]
        single_step(row, 0, i, costs[own, best], b, c, weights[i], rule, state)
