"""Marginals and max-marginals of trees of labels, by messages up and down."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...engine.parallel.threads import each_range
from ...engine.rows import Rows
from ...jit.decorator import kernel
from ...search.distribution import Distribution, Tables
from ...search.limits import as_weights
from ...search.semiring import plus
from ...utils.types import Bools, Floats
from .label_kernels import label_potentials
from .labels import LabelLayout

__all__ = ["LabelTreeDistribution"]


class LabelTreeDistribution(Distribution):
    """Labellings of the nodes of trees, with the labels that ``allowed`` marks.

    That is an array of shape (n_examples, n_nodes, most labels of a node).
    """

    def __init__(
        self, rows: Rows, layout: LabelLayout, w: Floats, allowed: Bools | None = None
    ) -> None:
        self.rows, self.layout = rows, layout
        self.shape, self.columns, size = layout.shape_and_columns()
        self.w = as_weights(w, size)
        none = np.empty((0, 0, 0), bool)
        self.allowed = none if allowed is None else np.ascontiguousarray(allowed, bool)

    def sums(self, temperature: float, *, soft: bool) -> tuple[Tables, Floats]:
        """See `Distribution`; labels that a node does not have are impossible."""
        n, V, K = self.rows.n_rows, len(self.layout.parent), int(self.layout.n_labels.max())
        found, totals = np.full((n, V, K), -np.inf), np.empty(n)

        def add_up(first: int, end: int) -> None:
            rows = self.rows._replace(indptr=self.rows.indptr[first : end + 1])
            data = (self.shape, rows, self.columns, self.w, self.allowed[first:end])
            into = self.layout.work(0), np.empty((3, V, K)), found[first:end], totals[first:end]
            label_tree_sums(*data, 1.0 / temperature, soft, *into)

        each_range(self.n_jobs, n, 10.0 * V * K * K, add_up)
        return list(found), totals

    def check_possible(self, example: int) -> None:
        """See `Distribution`: every node has a label that is allowed."""
        raise ValueError(f"example {example}: no labelling has allowed labels only")

    def shown(self, tables: Tables) -> Any:
        """For each node an array with the labels it has in columns."""
        stacked = np.stack(tables)
        return [stacked[:, v, :K] for v, K in enumerate(self.layout.n_labels.tolist())]


@kernel
def label_tree_sums(shape, rows, columns, w, allowed, factor, soft, work, scratch, sums, totals):
    """Sums over the labellings of every tree, of all and of those with a label at a node.

    Scores count ``factor`` times. ``allowed`` is empty if all labels are. Out: ``sums[i, v, k]``
    and ``totals[i]``, maxima or with ``soft`` logarithms of sums (Pearl 1988, belief propagation).
    ``sent[v]`` is the message of v to its parent, ``given[v]`` that of the parent to v.
    """
    own, sent, given = scratch[0], scratch[1], scratch[2]
    V = len(shape.order)
    root = shape.order[0]
    for i in range(len(totals)):
        label_potentials(rows, columns, i, w, work)
        for v in range(V):
            for k in range(work.n_labels[v]):
                own[v, k] = factor * work.unary[v, k]
                if len(allowed) > 0 and not allowed[i, v, k]:
                    own[v, k] = -np.inf
                given[v, k] = 0.0
        for t in range(V - 1, 0, -1):
            v = shape.order[t]
            p, K, start = shape.parent[v], work.n_labels[v], shape.table_start[v]
            for kp in range(work.n_labels[p]):
                total = -np.inf
                for k in range(K):
                    score = _below(shape, sent, v, k, -1, own[v, k])
                    score += factor * work.tables[start + kp * K + k]
                    total = plus(total, score, soft)
                sent[v, kp] = total
        for t in range(1, V):
            v = shape.order[t]
            p, K, start = shape.parent[v], work.n_labels[v], shape.table_start[v]
            for k in range(K):
                total = -np.inf
                for kp in range(work.n_labels[p]):
                    score = _below(shape, sent, p, kp, v, own[p, kp] + given[p, kp])
                    score += factor * work.tables[start + kp * K + k]
                    total = plus(total, score, soft)
                given[v, k] = total
        for v in range(V):
            for k in range(work.n_labels[v]):
                sums[i, v, k] = _below(shape, sent, v, k, -1, own[v, k] + given[v, k])
        totals[i] = -np.inf
        for k in range(work.n_labels[root]):
            totals[i] = plus(totals[i], sums[i, root, k], soft)


@kernel(inline=True)
def _below(shape, sent, v, k, but, score):
    """A score of label k at v with the messages of its children, but for one of them."""
    for c in range(len(shape.parent)):
        if shape.parent[c] == v and c != but:
            score += sent[c, k]
    return score
