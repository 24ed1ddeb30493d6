"""Trees of which some labels, or positions of parts, are not known."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.problem import Problem
from ...engine.rows import Rows
from ...utils.types import Bools, Floats, Ints
from .grid_parts import GridPartsProblem, as_pixels, find_parts
from .labels import LabelTreeProblem, decode_label_trees

__all__ = ["PartialLabelTrees", "PartialParts", "costs_of_node_choices"]


NO_COSTS = 0  # the first row of all tables of costs


def costs_of_node_choices(
    allowed: Bools, n_labels: Ints, costs: Floats | None = None
) -> tuple[Floats, Ints]:
    """A table of costs with a row for each node's sets of labels, and the rows of all nodes.

    A label costs what it does beside the right label that it is nearest to: nothing if it is one of
    the set. ``costs`` has a row for each label of node 0, then of node 1, and so on; by default all
    wrong labels cost 1.
    """
    n, V, most = allowed.shape
    table, rows, first = [np.zeros(most)], np.empty((n, V), np.int64), 0
    for v, K in enumerate(n_labels.tolist()):
        own = 1.0 - np.eye(K, most) if costs is None else costs[first : first + K]
        sets, numbers = np.unique(allowed[:, v, :K], axis=0, return_inverse=True)
        rows[:, v] = len(table) + numbers.ravel()
        table += [own[chosen].min(axis=0) for chosen in sets]
        first += K
    return np.stack(table), rows


class _PartialTrees:
    """What the two have in common: completions are (n_examples, n_nodes)."""

    problem: Any
    #: Whether anything is known of an example; else its slack is 0, whatever the weights.
    says_something: Bools

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return int(self.problem.n_examples)

    def differing(self, one: Ints, other: Ints) -> Ints:
        """Examples whose labels differ."""
        return np.flatnonzero((one != other).any(axis=1))


class PartialLabelTrees(_PartialTrees):
    """Trees with a set of right labels for each node; see `alternation.PartialProblem`.

    Parameters
    ----------
    problem : LabelTreeProblem
        The examples with any completion, and the costs of `costs_of_node_choices`.
    allowed : array of bool, shape (n_examples, n_nodes, most labels of a node)
        The right labels of each node.
    """

    def __init__(self, problem: LabelTreeProblem, allowed: Bools) -> None:
        self.problem: LabelTreeProblem = problem
        self.allowed = allowed
        n_right = allowed.sum(axis=2)
        self.says_something = np.logical_or.reduce(n_right < problem.layout.n_labels, axis=1)

    def first_weights(self, train: Callable[[Problem, Ints], Floats]) -> Floats:
        """Weights of a model of the nodes whose label is known, and of edges between them."""
        known = self.allowed.sum(axis=2) == 1
        if not known.any():
            return np.zeros(self.problem.n_features)
        truth = self.problem.true_labels
        feature_block = LabelTreeProblem(
            _without_unknown(self.problem, known),
            self.problem.labels,
            self.problem.layout,
            loss=self.problem.loss_name,
            costs=truth.costs,
            cost_rows=np.where(known, truth.cost_rows, NO_COSTS),
        )
        return train(feature_block, np.arange(self.n_examples))

    def complete(self, w: Floats) -> Ints:
        """The best right labels of all nodes."""
        return decode_label_trees(self.problem.rows, self.problem.layout, w, self.allowed)

    def completed(self, completion: Ints) -> LabelTreeProblem:
        """The examples with these labels."""
        other = copy.copy(self.problem)
        other.labels = completion
        other.true_labels = self.problem.true_labels._replace(labels=completion)
        return other


def _without_unknown(problem: LabelTreeProblem, known: Bools) -> Rows:
    """The inputs without those of nodes that are not known, and of edges that end in such."""
    rows, columns, parent = problem.rows, problem.columns, problem.shape.parent
    edge_known = known & known[:, np.maximum(parent, 0)]
    examples = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))
    nodes = columns.node[rows.indices]
    on_edges = columns.table_start[rows.indices] >= 0
    kept = np.where(on_edges, edge_known[examples, nodes], known[examples, nodes])
    counts = np.bincount(examples[kept], minlength=rows.n_rows)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(rows.indptr.dtype)
    return rows._replace(indptr=indptr, indices=rows.indices[kept], values=rows.values[kept])


class PartialParts(_PartialTrees):
    """Parts in images, of which some positions are known; see `alternation.PartialProblem`.

    Parameters
    ----------
    problem : GridPartsProblem
        The images, with likely positions of the parts whose own are not known.
    """

    def __init__(self, problem: GridPartsProblem) -> None:
        self.problem: GridPartsProblem = problem
        self.says_something = np.logical_or.reduce(problem.true_parts.known, axis=1)
        positions = as_pixels(problem.labels, problem.maps.grids)
        self.choices = [
            [place[None] if is_known else None for place, is_known in zip(*image, strict=True)]
            for image in zip(positions, problem.true_parts.known, strict=True)
        ]

    def first_weights(self, train: Callable[[Problem, Ints], Floats]) -> Floats:
        """Weights of a model of the images whose parts are all known, or else of all images."""
        complete = np.flatnonzero(self.problem.true_parts.known.all(axis=1))
        if len(complete) == 0:
            return train(self.problem, np.arange(self.n_examples))
        return train(self.problem.subset(complete), complete)

    def complete(self, w: Floats) -> Ints:
        """The best positions of all parts, as pixel numbers."""
        found = find_parts(self.problem.maps, self.problem.layout, w, self.choices)
        return found[:, :, 0] * self.problem.maps.grids[:, 1:] + found[:, :, 1]

    def completed(self, completion: Ints) -> GridPartsProblem:
        """The images with parts at these pixels."""
        other = copy.copy(self.problem)
        other.labels = completion
        other.true_parts = self.problem.true_parts._replace(labels=completion)
        return other
