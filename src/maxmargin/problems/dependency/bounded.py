"""The most violated tree where arcs may cross and the loss does not add up over arcs.

There is no table of best scores by wrong arcs for arborescences as there is for projective trees.
The ordinary search with some tokens held right or wrong is enough for an exact branch and bound;
see `bounded_search`. The loss counts wrong tokens, and the best score is nearly concave in their
number, so that few sentences need more than the searches along the hull.
"""

from __future__ import annotations

import numpy as np

from ...search.bounded_search import Candidate, Decoder, Violation, most_violated
from ...types import Floats, Ints, Ints32
from .features import ArcKeys
from .kernels import best_tree, score_sentence
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
    for r, i in enumerate(examples):
        first, end = int(arcs.bounds[i]), int(arcs.bounds[i + 1])
        n = end - first - 1
        gold_heads, true_labels = gold[first:end], gold_labels[first:end]
        score_sentence(arcs, first, n, w, scale, gold_heads, true_labels, work)
        wrong, right = work.scores[: n + 1, : n + 1].copy(), work.gold_scores[0, : n + 1].copy()
        unit = 1.0 / n if options.normalized else 1.0
        decode = _decoder(wrong, right, gold_heads, unit, options, work)
        best = most_violated(decode, np.full(n, unit), violation, unit)
        heads = found.heads[starts[r] : starts[r + 1]]
        labels = found.labels[starts[r] : starts[r + 1]]
        heads[:], labels[:], found.losses[r] = gold_heads, true_labels, 0.0
        if best is not None:
            its_heads, is_wrong = best.output
            tokens = 1 + np.flatnonzero(is_wrong)
            heads[tokens] = its_heads[tokens]
            if arcs.n_labels > 0:
                labels[tokens] = work.labels[heads[tokens], tokens]
            found.losses[r] = unit * len(tokens)


def _decoder(
    wrong: Floats,
    right: Floats,
    gold: Ints32,
    unit: float,
    options: DependencyOptions,
    work: DependencyScratch,
) -> Decoder:
    """The search for sums of gain and loss, with some tokens held right or wrong.

    ``wrong[h, m]`` is the score of an arc under its best wrong label (-inf for the true arcs
    without labels), ``right[m]`` that of the true arc. Outputs are heads by node, and which of the
    tokens are wrong.
    """
    tokens = np.arange(1, len(gold))
    gold, right = gold[1:], right[1:]
    gold_score = right.sum()

    def decode(lower: Floats, upper: Floats, multiplier: float) -> Candidate:
        scores = wrong + multiplier * unit
        scores[:, 1:][:, upper < unit] = -np.inf
        as_wrong, as_right = scores[gold, tokens], np.where(lower < 0.0, right, -np.inf)
        scores[gold, tokens] = np.maximum(as_wrong, as_right)
        heads = np.full(len(scores), -1, dtype=np.int32)
        best_tree(scores, options, work, heads)
        is_wrong = (heads[1:] != gold) | (as_wrong > as_right)
        gain = np.where(is_wrong, wrong[heads[1:], tokens], right).sum() - gold_score
        loss = unit * np.count_nonzero(is_wrong)
        return Candidate((heads, is_wrong), unit * is_wrong, loss, float(gain))

    return decode
