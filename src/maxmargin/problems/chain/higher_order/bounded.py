"""The most violated labelling where labels cost differently and the loss does not add up.

With costs there is no number of errors to tell labellings apart by. The ordinary search with some
tokens held to cheap or dear labels is enough for an exact branch and bound; see `bounded_search`.
"""

from __future__ import annotations

import numpy as np

from ....search.bounded_search import Candidate, Decoder, Violation, most_violated
from ....types import Floats, Ints32
from .kernels import best_path, path_score
from .layout import HigherOrderModel
from .scratch import HigherOrderScratch

__all__ = ["bounded_path"]


def bounded_path(
    model: HigherOrderModel,
    gold: Ints32,
    costs: Floats,
    unit: float,
    violation: Violation,
    work: HigherOrderScratch,
) -> Ints32:
    """The path of the largest violation, or the gold one if none is positive.

    ``costs`` are those of the labels of each token, multiples of the ``unit`` if it is not 0; the
    token's scores are in ``work``.
    """
    decode, largest = _decoder(model, gold, costs, work), costs.max(axis=1)
    best = most_violated(decode, largest, violation, unit)
    if not violation.slack:
        # Labellings without loss, of which there may be several, are violated by their gain.
        free = decode(np.full(len(gold), -1.0), np.zeros(len(gold)), 0.0)
        if free.gain > (0.0 if best is None else violation.value(best.loss, best.gain)):
            best = free
    return gold if best is None else best.output


def _decoder(
    model: HigherOrderModel, gold: Ints32, costs: Floats, work: HigherOrderScratch
) -> Decoder:
    """The search for sums of score and loss, with the losses of tokens within bounds."""
    n, K = costs.shape
    tokens = np.arange(n)
    scores = work.unary[:n, :K].copy()
    gold_score = path_score(model, gold, n, work)

    def decode(lower: Floats, upper: Floats, multiplier: float) -> Candidate:
        outside = (costs <= lower[:, None]) | (costs > upper[:, None])
        work.unary[:n, :K] = np.where(outside, -np.inf, scores + multiplier * costs)
        best_path(model, n, work, work.path)
        path = work.path[:n].copy()
        work.unary[:n, :K] = scores
        losses = costs[tokens, path]
        gain = path_score(model, path, n, work) - gold_score
        return Candidate(path, losses, float(losses.sum()), float(gain))

    return decode
