"""The most violated tree where the loss does not add up over arcs.

The ordinary search with some tokens held right or wrong is enough for an exact branch and bound;
see `bounded_search`. The loss counts wrong tokens, and the best score is nearly concave in their
number, so that few sentences need more than the searches along the hull.
"""

from __future__ import annotations

import numpy as np

from ...search.bounded_search import Candidate, Decoder, Violation, most_violated
from ...types import Floats, Ints, Ints32
from .features import ArcKeys
from .kernels import best_between, score_sentence
from .work import DependencyOptions, DependencyScratch, FoundTrees

__all__ = ["bounded_dependency_oracle"]


def bounded_dependency_oracle(
    arcs: ArcKeys,
    gold: Ints32,
    gold_labels: Ints32,
    examples: Ints,
    starts: Ints,
    w: Floats,
    scale: float,
    options: DependencyOptions,
    violation: Violation,
    work: DependencyScratch,
    found: FoundTrees,
) -> None:
    """Most violated tree of each example, into ``found`` with its loss; see `dependency_oracle`."""
    for r, i in enumerate(examples.tolist()):
        first, end = int(arcs.bounds[i]), int(arcs.bounds[i + 1])
        n = end - first - 1
        gold_heads, true_labels = gold[first:end], gold_labels[first:end]
        score_sentence(arcs, first, n, w, scale, gold_heads, true_labels, work)
        unit = 1.0 / n if options.normalized else 1.0
        decode = _decoder(n, gold_heads, unit, options, work)
        best = most_violated(decode, np.full(n, unit), violation, unit)
        heads = found.heads[starts[r] : starts[r + 1]]
        labels = found.labels[starts[r] : starts[r + 1]]
        heads[:], labels[:], found.losses[r] = gold_heads, true_labels, 0.0
        if best is not None:
            tokens = 1 + np.flatnonzero(best.slot_losses)
            heads[tokens] = best.output[tokens]
            if arcs.n_labels > 0:
                labels[tokens] = work.labels[heads[tokens], tokens]
            found.losses[r] = unit * len(tokens)


def _decoder(
    n: int, gold: Ints32, unit: float, options: DependencyOptions, work: DependencyScratch
) -> Decoder:
    """The search for sums of gain and loss, with some tokens held right or wrong.

    Outputs are heads by node; a token with a loss has the best wrong label of its arc.
    """
    scores = np.empty((n + 1, n + 1))

    def decode(lower: Floats, upper: Floats, multiplier: float) -> Candidate:
        heads, losses = np.empty(n + 1, np.int32), np.empty(n)
        bounds = (lower, upper, unit, multiplier)
        gain, loss = best_between(n, gold, *bounds, options, work, scores, heads, losses)
        return Candidate(heads, losses, loss, gain)

    return decode
