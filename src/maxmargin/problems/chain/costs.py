"""Costs of labels and the search for any of them; chains of which some labels are not known."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ...core.problem import Problem
from ...search.bounded_search import Candidate, Violation, most_violated
from ...utils.types import Bools, Floats, Ints, Ints32
from .layout import ChainModel
from .state_kernels import StateScratch, best_path, path_score

if TYPE_CHECKING:
    from .problem import ChainProblem

__all__ = ["PartialChains", "bounded_path", "checked_costs", "costs_of_choices", "known_runs"]


def checked_costs(
    costs: ArrayLike | None, cost_rows: ArrayLike | None, labels: Ints32, K: int
) -> tuple[Floats, Ints32]:
    """The table and the row of each token, both empty if there are no costs; ValueError if wrong.

    The true label of a token costs nothing, others something or nothing.
    """
    if costs is None:
        if cost_rows is not None:
            raise ValueError("cost_rows needs costs, whose rows it names")
        return np.empty((0, K)), np.empty(0, np.int32)
    table = np.ascontiguousarray(costs, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != K or (cost_rows is None and len(table) != K):
        expected = "rows" if cost_rows is not None else f"{K} rows"
        raise ValueError(f"costs must have {expected} of {K} labels, got shape {table.shape}")
    wrong = ~(np.isfinite(table) & (table >= 0.0))
    if wrong.any():
        row, k = np.argwhere(wrong)[0]
        raise ValueError(f"costs[{row}, {k}] is {table[row, k]}; costs must be numbers >= 0")
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


def costs_of_choices(allowed: Bools, costs: Floats | None = None) -> tuple[Floats, Ints32]:
    """A table of costs with a row for each set of labels, and the row of each token.

    A label costs what it does beside the right label that it is nearest to, ``costs[right, label]``
    (1 for all wrong labels by default): nothing if it is one of the set.
    """
    K = allowed.shape[1]
    table = 1.0 - np.eye(K) if costs is None else costs
    packed = np.packbits(allowed, axis=1)
    _, first, rows = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    sets = allowed[first]
    nearest = np.stack([table[chosen].min(axis=0) for chosen in sets])
    return nearest, rows.ravel().astype(np.int32)


def bounded_path(
    model: ChainModel,
    gold: Ints32,
    costs: Floats,
    unit: float,
    violation: Violation,
    work: StateScratch,
) -> Ints32:
    """The path of the largest rescaled violation, or the gold one if none is positive.

    With costs there is no number of errors to tell labellings apart by. The ordinary search with
    some tokens held to cheap or dear labels is enough for an exact branch and bound; see
    `bounded_search`. ``costs`` are those of the labels of each token, multiples of the ``unit`` if
    it is not 0; the tokens' scores are in ``work``.
    """
    n, K = costs.shape
    tokens, scores = np.arange(n), work.unary[:n, :K].copy()
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

    best = most_violated(decode, costs.max(axis=1), violation, unit)
    if not violation.slack:
        # Labellings without loss, of which there may be several, are violated by their gain.
        free = decode(np.full(n, -1.0), np.zeros(n), 0.0)
        if free.gain > (0.0 if best is None else violation.value(best.loss, best.gain)):
            best = free
    return gold if best is None else best.output


class PartialChains:
    """Sequences with a set of right labels for each token; see `cccp.PartialProblem`.

    Parameters
    ----------
    problem : ChainProblem
        The sequences with any completion, and the costs of `costs_of_choices`.
    allowed : array of bool, shape (n_tokens, n_labels)
        The right labels of each token.
    """

    def __init__(self, problem: ChainProblem, allowed: Bools) -> None:
        self.problem, self.allowed = problem, allowed

    @property
    def n_examples(self) -> int:
        """Number of sequences."""
        return self.problem.n_examples

    def first_weights(self, train: Callable[[Problem, Ints], Floats]) -> Floats:
        """Weights of a model of the tokens whose label is known, and of neighbours among them.

        Sequences are cut where labels are not known. Cuts are no first or last tokens: there are no
        weights for those here, and no constraints.
        """
        tokens, offsets = known_runs(self.allowed, self.problem.data.offsets)
        w = np.zeros(self.problem.n_features)
        if len(tokens):
            starts = tokens[offsets[:-1]]
            origins = np.searchsorted(self.problem.data.offsets, starts, side="right") - 1
            pieces = self.problem.pieces(tokens, offsets)
            w[: pieces.n_features] = train(pieces, origins)
        return w

    def complete(self, w: Floats) -> Ints32:
        """The best right labels of all tokens."""
        data = self.problem.data
        return self.problem.decoder.decode(data.inputs, data.offsets, w, self.allowed)

    def completed(self, completion: Ints32) -> ChainProblem:
        """The sequences with these labels."""
        return self.problem.with_labels(completion)

    def differing(self, one: Ints32, other: Ints32) -> Ints:
        """Sequences whose labels differ."""
        starts = self.problem.data.offsets[:-1]
        return np.flatnonzero(np.logical_or.reduceat(one != other, starts))


def known_runs(allowed: Bools, offsets: Ints) -> tuple[Ints, Ints]:
    """Tokens that may have one label only, and where runs of neighbours among them begin."""
    known = allowed.sum(axis=1) == 1
    tokens = np.flatnonzero(known)
    opens = np.zeros(len(known), dtype=bool)
    opens[offsets[:-1]] = True
    opens[1:] |= ~known[:-1]
    return tokens, np.append(np.flatnonzero(opens[tokens]), len(tokens)).astype(np.int64)
