"""Costs of labels: what is taken for one, and the searches that they ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ...search.bounded_search import Candidate, Decoder, Violation, most_violated
from ...search.modes import ERROR_COUNTS, SearchMode
from ...types import Floats, Ints, Ints32
from .cost_kernels import best_between, costly_labellings, labelling_score
from .kernels import ChainScratch, chain_scores

if TYPE_CHECKING:
    from .problem import ChainProblem

__all__ = ["checked_costs", "costed_labellings"]


def checked_costs(
    costs: ArrayLike | None, cost_rows: ArrayLike | None, labels: Ints32, K: int
) -> tuple[Floats, Ints32]:
    """The table and the row of each token, both empty if there are no costs; ValueError if wrong.

    The true label of a token costs nothing, others something or nothing.
    """
    if costs is None:
        if cost_rows is not None:
            raise ValueError("cost_rows are rows of costs, and there are none")
        return np.empty((0, K)), np.empty(0, np.int32)
    table = np.ascontiguousarray(costs, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != K or (cost_rows is None and len(table) != K):
        expected = "rows" if cost_rows is not None else f"{K} rows"
        raise ValueError(f"costs must have {expected} of {K} labels, got shape {table.shape}")
    wrong = ~(np.isfinite(table) & (table >= 0.0))
    if wrong.any():
        row, k = np.argwhere(wrong)[0]
        raise ValueError(f"costs[{row}, {k}] is {table[row, k]}; costs are numbers from 0 on")
    rows = np.ascontiguousarray(labels if cost_rows is None else cost_rows, dtype=np.int32)
    if rows.shape != labels.shape:
        raise ValueError(f"there are {len(labels)} tokens, but cost_rows has shape {rows.shape}")
    if len(rows) and not 0 <= rows.min() <= rows.max() < len(table):
        raise ValueError(f"cost_rows must be in 0..{len(table) - 1}, the rows of costs")
    of_truth = table[rows, labels]
    if of_truth.any():
        token = int(np.argmax(of_truth > 0.0))
        raise ValueError(
            f"costs[{rows[token]}, {labels[token]}] is {of_truth[token]}, the cost of the true "
            f"label of token {token}; it must be 0"
        )
    return table, rows


def costed_labellings(problem: ChainProblem, examples: Ints, w: Floats, mode: SearchMode) -> Ints32:
    """Most violated labellings, one after the other, where a plain search does not find them.

    That is where losses are rescaled or roots are taken (LEVELS), by branch and bound; and where
    wrong labels may cost nothing and costs count as 1 (DEVIATION). Labellings without costs are
    violated by their gain alone, or not at all if ``mode.slack``.
    """
    data, lengths = problem.data, np.diff(problem.data.offsets)[examples]
    found = np.empty(int(lengths.sum()), np.int32)
    transition, start, stop = problem.decoder.potentials(w)
    work = problem.decoder.scratch(int(lengths.max(initial=1)), start, stop)
    if mode.kind != ERROR_COUNTS:
        costly_labellings(data, examples, w, transition, not mode.slack, work, found)
        return found
    violation = Violation(mode.slack, mode.sqrt_loss)
    begin = 0
    for i, length in zip(examples.tolist(), lengths.tolist(), strict=True):
        first = int(data.offsets[i])
        scores = np.empty((length, data.n_labels))
        chain_scores(data.rows, first, length, w, data.n_labels, start, stop, scores)
        loss_unit = 1.0 / length if data.normalized else 1.0
        losses = loss_unit * data.costs[data.cost_rows[first : first + length]]
        gold = data.labels[first : first + length]
        decode = _decoder(scores, transition, losses, gold, work)
        best = most_violated(decode, losses.max(axis=1), violation, loss_unit * problem.cost_unit)
        found[begin : begin + length] = gold if best is None else best.output
        begin += length
    return found


def _decoder(
    scores: Floats, transition: Floats, losses: Floats, gold: Ints32, work: ChainScratch
) -> Decoder:
    """The search for sums of gain and loss; see `bounded_search`."""
    of_gold = labelling_score(scores, len(gold), transition, gold)
    tokens = np.arange(len(gold))
    path = work.path[: len(gold)]

    def decode(lower: Floats, upper: Floats, multiplier: float) -> Candidate:
        score = best_between(scores, transition, losses, lower, upper, multiplier, work, path)
        slots = losses[tokens, path]
        return Candidate(path.copy(), slots, float(slots.sum()), float(score - of_gold))

    return decode
