"""Costs of missed and of added labels: they add up, so that scores can take them in.

The most violated set, for plain losses, is then the best one by other scores. Rescaled losses and
roots are searched by branch and bound, where some labels may have to be wrong or right: they get
scores that decide.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ...search.bounded_search import (
    Candidate,
    Decoder,
    Violation,
    best_with_loss,
    common_unit,
    most_violated,
)
from ...search.modes import ADDITIVE, ERROR_COUNTS, PREDICT, SearchMode
from ...utils.types import Bools, Floats
from .graph import LabelGraph
from .inference import find_labels

__all__ = ["checked_costs", "find_with_costs", "flip_costs"]


def checked_costs(costs: ArrayLike, n_labels: int, loss: str) -> Floats:
    """Costs of missing and of adding each label; ValueError unless they are."""
    table = np.ascontiguousarray(costs, dtype=np.float64)
    if table.shape != (n_labels, 2) or loss != "hamming":
        raise ValueError(
            f"costs must be of shape {(n_labels, 2)}, with loss='hamming'; got shape "
            f"{table.shape} with loss={loss!r}"
        )
    if not np.all(np.isfinite(table) & (table >= 0.0)):
        raise ValueError("costs must be finite numbers >= 0")
    return table


def flip_costs(gold: Bools, costs: Floats) -> Floats:
    """What it costs to have each label wrong."""
    return np.where(gold, costs[:, 0], costs[:, 1])


def find_with_costs(
    scores: Floats,
    graph: LabelGraph,
    pairs: Floats,
    gold: Bools,
    costs: Floats,
    mode: SearchMode,
) -> Bools:
    """The most violated set of each row; without rescaling, sets without costs are not violated."""
    wrong = flip_costs(gold, costs)
    if mode.kind == ADDITIVE:
        return find_labels(_with_costs(scores, gold, wrong), graph, pairs, gold, 0, PREDICT)
    if mode.kind != ERROR_COUNTS and np.all(wrong > 0.0):
        return find_labels(scores, graph, pairs, gold, 0, mode)
    unit = common_unit(costs)
    found = gold.copy()
    for r in range(len(gold)):
        decode = _decoder(scores[r], graph, pairs, gold[r], wrong[r])
        if mode.kind == ERROR_COUNTS:
            violation = Violation(mode.slack, mode.sqrt_loss)
            best = most_violated(decode, wrong[r], violation, unit)
        else:
            best = best_with_loss(decode, wrong[r], free_counts=False)
        if best is not None:
            found[r] = best.output
    return found


def _with_costs(scores: Floats, gold: Bools, costs: Floats) -> Floats:
    """Scores of labels by which a wrong one gains its costs."""
    return scores + np.where(gold, -costs, costs)


def _decoder(
    scores: Floats, graph: LabelGraph, pairs: Floats, gold: Bools, costs: Floats
) -> Decoder:
    """The search for sums of gain and loss; see `bounded_search`."""
    edges = graph.edges
    both = gold[edges].all(axis=1)
    scale = 1.0 + 2.0 * (np.abs(scores).sum() + np.abs(pairs).sum())

    def decode(lower: Floats, upper: Floats, multiplier: float) -> Candidate:
        may_be_wrong = (lower < costs) & (costs <= upper)
        may_be_right = (lower < 0.0) & (upper >= 0.0)
        deciding = scale + 2.0 * multiplier * costs.sum()  # more than all else together
        changed = multiplier * costs
        changed = np.where(may_be_wrong, changed, -deciding)
        changed = np.where(may_be_right, changed, deciding)
        at = _with_costs(scores, gold, changed)
        labels = find_labels(at[None], graph, pairs, gold[None], 0, PREDICT)[0]
        slots = np.where(labels != gold, costs, 0.0)
        gain = float(scores[labels].sum() - scores[gold].sum())
        gain += float(pairs @ (labels[edges].all(axis=1).astype(np.float64) - both))
        return Candidate(labels, slots, float(slots.sum()), gain)

    return decode
