"""Online learning of classes: score an example, change the weights, go on to the next."""

from __future__ import annotations

import numpy as np

from ..._jit import kernel
from ...engine.online_steps import SCALE, single_step
from ...engine.rows import add_scores, write_row
from ...search.violation import plane_value


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
