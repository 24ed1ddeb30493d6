"""Trees of labels: nodes with label sets of their own, and a table of weights on every edge.

Joint features, in this order: for each node v, its input features under each of its labels
(``w[start + f * K_v + k]``); then for each node but the root, the features of the edge to its
parent under each pair of labels, the parent's first (``w[start + (f * K_parent + kp) * K_v + k]``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..formulation import Rescaling
from ..problem import Planes, Problem
from .rows import Rows, check_codes, make_rows
from .tree_kernels import (
    ADDITIVE,
    DEVIATION,
    LEVELS,
    TreeShape,
    TreeWork,
    decode_labels,
    label_oracle,
)

__all__ = ["LabelLayout", "LabelTreeProblem", "decode_label_trees", "make_work", "root_tree"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TreeLoss = Literal["hamming", "normalized-hamming", "zero-one"]
LOSSES = ("hamming", "normalized-hamming", "zero-one")


def root_tree(n_nodes: int, edges: Sequence[tuple[int, int]]) -> tuple[Ints, Ints]:
    """Parents (-1 at node 0, the root) and an order with parents first, of undirected edges."""
    neighbours: list[list[int]] = [[] for _ in range(n_nodes)]
    for number, edge in enumerate(edges):
        a, b = (int(node) for node in edge)
        if not (0 <= a < n_nodes and 0 <= b < n_nodes) or a == b:
            raise ValueError(
                f"edge {number} of the tree is {(a, b)}; expected two different nodes of "
                f"0..{n_nodes - 1}"
            )
        neighbours[a].append(b)
        neighbours[b].append(a)
    parent = np.full(n_nodes, -1, np.int64)
    order = [0]
    for node in order:  # grows on the way
        for other in neighbours[node]:
            if other != 0 and parent[other] < 0:
                parent[other] = node
                order.append(other)
    if len(order) != n_nodes or len(edges) != n_nodes - 1:
        raise ValueError(
            f"{len(edges)} edges reach {len(order)} of {n_nodes} nodes from node 0; a tree has "
            f"{n_nodes - 1} edges that reach all"
        )
    return parent, np.array(order, np.int64)


class LabelColumns(NamedTuple):
    """For each input column: its node, where its weights start, how many there are, and where
    the node's table starts, or -1 for a feature of the node itself."""  # noqa: D205, D209

    node: Ints
    weight_start: Ints
    width: Ints
    table_start: Ints


class LabelLayout(NamedTuple):
    """Sizes of a tree of labels, from which all positions follow."""

    parent: Ints
    order: Ints
    n_labels: Ints
    n_inputs: Ints
    n_edge_inputs: int

    @property
    def n_columns(self) -> int:
        """Input columns: those of all nodes, then those of all edges."""
        return int(self.n_inputs.sum()) + self.n_edge_inputs * (len(self.parent) - 1)

    def shape_and_columns(self) -> tuple[TreeShape, LabelColumns, int]:
        """What the kernels need, and the number of weights."""
        node, weight_start, width, table_start = [], [], [], []
        start = 0
        for v, K in enumerate(self.n_labels.tolist()):
            for _ in range(int(self.n_inputs[v])):
                node.append(v)
                weight_start.append(start)
                width.append(K)
                table_start.append(-1)
                start += K
        tables = np.zeros(len(self.parent), np.int64)
        filled = 0
        for v, p in enumerate(self.parent.tolist()):
            if p < 0:
                continue
            size = int(self.n_labels[v] * self.n_labels[p])
            tables[v] = filled
            for _ in range(self.n_edge_inputs):
                node.append(v)
                weight_start.append(start)
                width.append(size)
                table_start.append(filled)
                start += size
            filled += size
        arrays = (np.array(a, np.int64) for a in (node, weight_start, width, table_start))
        return TreeShape(self.parent, self.order, tables, False), LabelColumns(*arrays), start

    def work(self, n_levels: int) -> TreeWork:
        """Work arrays; ``n_levels`` is 0 where no search by levels is made."""
        inner = self.parent >= 0
        size = int((self.n_labels[inner] * self.n_labels[self.parent[inner]]).sum())
        return make_work(self.n_labels.copy(), int(self.n_labels.max()), size, 0, n_levels)


def make_work(n_labels: Ints, most: int, tables: int, side: int, n_levels: int) -> TreeWork:
    """Work arrays for trees of at most ``most`` labels a node, on grids of at most ``side``."""
    V = len(n_labels)
    by_level = (V, n_levels, most) if n_levels else (0, 0, 0)
    return TreeWork(
        n_labels,
        np.zeros(2, np.int64),
        np.zeros((V, 5)),
        np.zeros(tables),
        np.empty((V, most)),
        np.empty((V, most)),
        np.empty(most),
        np.empty(by_level),
        np.empty(by_level),
        np.empty(by_level),
        np.zeros(V, np.int64),
        np.zeros(V, np.int64),
        np.zeros(V, np.int64),
        np.zeros(V, np.int64),
        np.empty(most if side else 0),
        np.empty(side),
        np.empty(side),
        np.empty(side),
        np.empty(side),
        np.empty(side, np.int64),
    )


def search_mode(loss: str, rescaling: Rescaling, sqrt_loss: bool) -> int:
    """Which search of `tree_kernels` an oracle needs."""
    if loss == "zero-one" or rescaling == "none":
        return DEVIATION
    return ADDITIVE if rescaling == "margin" and not sqrt_loss else LEVELS


def levels_of(mode: int, n_nodes: int) -> int:
    """Levels of wrong labels that a search needs."""
    return {ADDITIVE: 0, DEVIATION: 2, LEVELS: n_nodes + 1}[mode]


def pack_columns(nodes: Sequence[Any], edges: Sequence[Any] = ()) -> Rows:
    """Rows of all examples, the columns of all nodes and then of all edges side by side."""
    matrices = [sp.csr_matrix(matrix, dtype=np.float64) for matrix in (*nodes, *edges)]
    rows = make_rows(sp.hstack(matrices, format="csr"), sparse=True)
    return rows._replace(values=rows.values.astype(np.float64, copy=False), dense=np.empty((0, 0)))


class LabelTreeProblem(Problem):
    """A tree of labels with exact oracles for every rescaling.

    Parameters
    ----------
    rows : Rows
        Inputs of all examples; see `pack_columns`.
    labels : array of int, shape (n_examples, n_nodes)
        True labels, those of node v in ``0..n_labels[v] - 1``.
    layout : LabelLayout
        The tree, its label sets and numbers of inputs.
    loss : {"hamming", "normalized-hamming", "zero-one"}
        Number of wrong labels, their share, or 1 if any is wrong.
    """

    trusted = True

    def __init__(
        self, rows: Rows, labels: ArrayLike, layout: LabelLayout, *, loss: TreeLoss = "hamming"
    ) -> None:
        if loss not in LOSSES:
            raise ValueError(f"loss must be one of {', '.join(map(repr, LOSSES))}, got {loss!r}")
        self.rows, self.layout, self.loss_name = rows, layout, loss
        self.labels = np.ascontiguousarray(labels, dtype=np.int64)
        V = len(layout.parent)
        if self.labels.shape != (rows.n_rows, V) or rows.n_columns != layout.n_columns:
            raise ValueError(
                f"rows has shape {(rows.n_rows, rows.n_columns)} and labels {self.labels.shape}; "
                f"expected {layout.n_columns} columns and {V} nodes"
            )
        for v in range(V):
            check_codes(self.labels[:, v], int(layout.n_labels[v]), f"labels of node {v}: y")
        self.shape, self.columns, self.n_features = layout.shape_and_columns()
        if self.n_features >= 2**31:
            raise ValueError(f"{self.n_features} weights; at most 2**31 - 1 are supported")
        self.unit = 1.0 / V if loss == "normalized-hamming" else 1.0

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return len(self.labels)

    def oracle(
        self,
        indices: Ints,
        w: Floats,
        rescaling: Rescaling = "margin",
        sqrt_loss: bool = False,
    ) -> Planes:
        """Most violated labelling of each listed example; see `Problem.oracle`."""
        examples = np.ascontiguousarray(indices, dtype=np.int64)
        mode = search_mode(self.loss_name, rescaling, sqrt_loss)
        work = self.layout.work(levels_of(mode, len(self.layout.parent)))
        lengths = self.rows.indptr[examples + 1] - self.rows.indptr[examples]
        capacity = 2 * int(lengths.sum())
        out = Planes(
            np.empty(len(examples) + 1, np.int64),
            np.empty(capacity, np.int32),
            np.empty(capacity),
            np.empty(len(examples)),
        )
        label_oracle(
            self.shape,
            self.rows,
            self.columns,
            self.labels,
            examples,
            w,
            mode,
            self.unit,
            rescaling == "slack",
            sqrt_loss,
            self.loss_name == "zero-one",
            work,
            out,
        )
        filled = out.indptr[-1]
        return Planes(out.indptr, out.indices[:filled], out.values[:filled], out.losses)


def decode_label_trees(rows: Rows, layout: LabelLayout, w: Floats) -> Ints:
    """Best labels of all nodes of every row."""
    shape, columns, _ = layout.shape_and_columns()
    labels = np.empty((rows.n_rows, len(layout.parent)), np.int64)
    decode_labels(shape, rows, columns, w, layout.work(0), labels)
    return labels
