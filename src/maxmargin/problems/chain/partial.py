"""Chains of which some labels are not known, or known to be one of several."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...problem import Problem
from ...types import Bools, Floats, Ints, Ints32
from .problem import ChainProblem

__all__ = ["PartialChains", "costs_of_choices"]


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


class PartialChains:
    """Sequences with a set of right labels for each token; see `alternation.PartialProblem`.

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
        data = self.problem.data
        known = self.allowed.sum(axis=1) == 1
        tokens = np.flatnonzero(known)
        opens = np.zeros(len(known), dtype=bool)
        opens[data.offsets[:-1]] = True
        opens[1:] |= ~known[:-1]
        starts = np.flatnonzero(opens[tokens])
        offsets = np.append(starts, len(tokens)).astype(np.int64)
        origins = np.searchsorted(data.offsets, tokens[starts], side="right") - 1
        w = np.zeros(self.problem.n_features)
        if len(tokens):
            pieces = self.problem.pieces(tokens, offsets)
            w[: pieces.n_features] = train(pieces, origins)
        return w

    def complete(self, w: Floats) -> Ints32:
        """The best right labels of all tokens."""
        data = self.problem.data
        return self.problem.decoder.decode(data.rows, data.offsets, w, self.allowed)

    def completed(self, completion: Ints32) -> ChainProblem:
        """The sequences with these labels."""
        return self.problem.with_labels(completion)

    def differing(self, one: Ints32, other: Ints32) -> Ints:
        """Sequences whose labels differ."""
        starts = self.problem.data.offsets[:-1]
        return np.flatnonzero(np.logical_or.reduceat(one != other, starts))
