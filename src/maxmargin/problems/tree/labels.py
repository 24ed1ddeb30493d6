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
from numpy.typing import ArrayLike

from ...core.cutting_planes import Planes, empty_planes
from ...engine.cost_model import scoring_work
from ...engine.packed_problem import (
    counted_loss,
    entries_per_row,
    matrix_of,
    rows_at,
    rows_of,
    sparse_row,
    sparse_rows,
)
from ...engine.parallel.threads import each_range
from ...engine.rows import Rows, check_codes, rows_side_by_side
from ...search.bounded_search import common_unit
from ...search.distribution import Distribution, Tables
from ...search.limits import as_weights, check_number_of_weights
from ...search.modes import SearchMode
from ...utils.sparse_format import check_sparse
from ...utils.types import Bools, Floats, Ints
from ...utils.validation import check_choice
from .kernels import LabellingScratch, TreeShape, rank_labellings
from .label_kernels import (
    decode_labels,
    label_oracle,
    label_potentials,
    label_tree_sums,
    write_label_rows,
)
from .problem import TreeProblem, make_work

__all__ = [
    "LabelLayout",
    "LabelTreeDistribution",
    "LabelTreeProblem",
    "decode_label_trees",
    "pack_columns",
    "rank_label_trees",
    "root_tree",
]

LabelLoss = Literal["hamming", "normalized_hamming", "zero_one"]
LOSSES = ("hamming", "normalized_hamming", "zero_one")


def root_tree(n_nodes: int, edges: Sequence[tuple[int, int]]) -> tuple[Ints, Ints]:
    """Parents (-1 at node 0, the root) and an order with parents first, of undirected edges."""
    neighbours: list[list[int]] = [[] for _ in range(n_nodes)]
    for number, edge in enumerate(edges):
        try:
            a, b = (int(node) for node in edge)
        except (TypeError, ValueError):
            raise ValueError(
                f"edge {number} of the tree is {edge!r:.40}; expected a pair of nodes"
            ) from None
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


def check_tree(parent: Ints, order: Ints) -> None:
    """Raise ValueError unless these are parents and an order as `root_tree` gives them."""
    reached = np.zeros(len(parent), dtype=bool)
    if parent.ndim != 1 or not np.array_equal(np.sort(order), np.arange(len(parent))):
        raise ValueError(f"an order {order.tolist()} of {len(parent)} nodes")
    for node in order.tolist():
        above = int(parent[node])
        is_root = node == order[0]
        if above != -1 if is_root else not (0 <= above < len(parent) and reached[above]):
            raise ValueError(f"node {node} of a tree has the parent {above}")
        reached[node] = True


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

    def check(self) -> None:
        """Raise ValueError for what is no tree, or has nodes without labels."""
        check_tree(self.parent, self.order)
        for counts, least in ((self.n_labels, 1), (self.n_inputs, 0)):
            if counts.shape != self.parent.shape or counts.min(initial=least) < least:
                raise ValueError(f"{counts.tolist()} labels or inputs of the nodes of a tree")
        if self.n_edge_inputs < 0:
            raise ValueError(f"{self.n_edge_inputs} inputs of the edges of a tree")

    @property
    def n_columns(self) -> int:
        """Input columns: those of all nodes, then those of all edges."""
        return int(self.n_inputs.sum()) + self.n_edge_inputs * (len(self.parent) - 1)

    @property
    def size(self) -> int:
        """Number of weights."""
        labels, inner = self.n_labels.tolist(), self.parent >= 0
        of_nodes = sum(K * n for K, n in zip(labels, self.n_inputs.tolist(), strict=True))
        of_edges = (labels[v] * labels[self.parent[v]] for v in np.flatnonzero(inner))
        return of_nodes + self.n_edge_inputs * sum(of_edges)

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

    def work(self, n_error_counts: int) -> LabellingScratch:
        """Work arrays; ``n_error_counts`` is 0 where no search by levels is made."""
        inner = self.parent >= 0
        size = int((self.n_labels[inner] * self.n_labels[self.parent[inner]]).sum())
        return make_work(self.n_labels.copy(), int(self.n_labels.max()), size, 0, n_error_counts)


def pack_columns(nodes: Sequence[Any], edges: Sequence[Any] = ()) -> Rows:
    """Rows of all examples, the columns of all nodes and then of all edges side by side."""
    given = (*nodes, *edges)
    if not any(map(sp.issparse, given)):  # several times as fast as to make each of them sparse
        return rows_side_by_side(given, 0.0, np.float64)
    for k, matrix in enumerate(given):
        check_sparse(matrix, f"features {k}")
    matrices = [sp.csr_matrix(matrix, dtype=np.float64) for matrix in given]
    return sparse_rows(sp.hstack(matrices, format="csr"))


class TrueLabels(NamedTuple):
    """True labels; a wrong one costs ``unit``, or any number of them 1 if ``zero_one``.

    Where nodes have ``cost_rows``, label k of node v costs ``unit * costs[cost_rows[i, v], k]``.
    """

    labels: Ints
    unit: float
    zero_one: bool
    costs: Floats
    cost_rows: Ints


class LabelScores:
    """Potentials of rows of inputs; see `TreeScores`."""

    def __init__(self, rows: Rows, columns: LabelColumns, layout: LabelLayout, w: Floats) -> None:
        self.rows, self.columns, self.w = rows, columns, w
        self.work = layout.work(0)

    def fill(self, i: int) -> LabellingScratch:
        """See `TreeScores`."""
        label_potentials(self.rows, self.columns, i, self.w, self.work)
        return self.work


class LabelTreeProblem(TreeProblem):
    """A tree of labels with exact oracles for every rescaling.

    Parameters
    ----------
    rows : Rows
        Inputs of all examples; see `pack_columns`.
    labels : array of int, shape (n_examples, n_nodes)
        True labels, those of node v in ``0..n_labels[v] - 1``.
    layout : LabelLayout
        The tree, its label sets and numbers of inputs.
    loss : {"hamming", "normalized_hamming", "zero_one"}
        Number of wrong labels, their share, or 1 if any is wrong. With ``costs``: their sum, their
        mean, or 1 if there are any.
    costs : array of shape (n_rows, most labels of a node), optional
        What labels cost, none of it negative. By default 1, and nothing for the true label.
    cost_rows : array of int, shape (n_examples, n_nodes), optional
        Label k costs ``costs[cost_rows[i, v], k]`` at node v, and the true label nothing. By
        default there is a row for each true label of node 0, then for each of node 1, and so on.
    """

    loss_name: LabelLoss

    def __init__(
        self,
        rows: Rows,
        labels: ArrayLike,
        layout: LabelLayout,
        *,
        loss: LabelLoss = "hamming",
        costs: ArrayLike | None = None,
        cost_rows: ArrayLike | None = None,
    ) -> None:
        check_choice(loss, LOSSES, "loss")
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
        check_number_of_weights(self.n_features)
        unit = 1.0 / V if loss == "normalized_hamming" else 1.0
        self._own_rows = cost_rows is not None
        table, rows_of_costs = self._checked_costs(costs, cost_rows)
        self.true_labels = TrueLabels(self.labels, unit, loss == "zero_one", table, rows_of_costs)
        self.counts_errors = costs is None
        self.has_free_labels = self._costs_lack_some()
        self.loss_unit = unit * (common_unit(table) if costs is not None else 1.0)

    @property
    def search_work(self) -> float:
        """Counted work of a search, by which it is cut into shares or not."""
        widest, V = int(self.layout.n_labels.max()), len(self.layout.parent)
        return 1e4 + scoring_work(entries_per_row(self.rows), widest) + 2.0 * V * widest**2

    def subset(self, indices: Ints) -> LabelTreeProblem:
        """See `Problem.subset`."""
        truth, options = self.true_labels, {}
        if not self.counts_errors:
            own = truth.cost_rows[indices] if self._own_rows else None
            options = {"costs": truth.costs, "cost_rows": own}
        rows, labels = rows_at(self.rows, indices), self.labels[indices]
        return LabelTreeProblem(rows, labels, self.layout, loss=self.loss_name, **options)

    def _checked_costs(
        self, costs: ArrayLike | None, cost_rows: ArrayLike | None
    ) -> tuple[Floats, Ints]:
        """Costs and the rows of all nodes, both empty if there are none; ValueError if wrong."""
        n_labels = self.layout.n_labels
        if costs is None:
            if cost_rows is not None:
                raise ValueError("cost_rows needs costs, whose rows it names")
            return np.empty((0, 0)), np.empty((0, 0), np.int64)
        table = np.ascontiguousarray(costs, dtype=np.float64)
        rows = self.labels + np.concatenate([[0], np.cumsum(n_labels)[:-1]])
        if cost_rows is not None:
            rows = np.ascontiguousarray(cost_rows, dtype=np.int64)
        if rows.shape != self.labels.shape or table.ndim != 2 or table.shape[1] != n_labels.max():
            raise ValueError(
                f"costs must have rows of {n_labels.max()} labels, and cost_rows the shape "
                f"{self.labels.shape}; got shapes {table.shape} and {rows.shape}"
            )
        if rows.size and not 0 <= rows.min() <= rows.max() < len(table):
            raise ValueError(f"costs has {len(table)} rows, and nodes need others")
        if not np.all(np.isfinite(table) & (table >= 0.0)):
            raise ValueError("costs must be finite numbers >= 0")
        if table[rows, self.labels].any():
            i, v = np.argwhere(table[rows, self.labels])[0]
            raise ValueError(f"the true label of node {v} of example {i} must cost nothing")
        return table, rows

    def _costs_lack_some(self) -> bool:
        """Whether some wrong label of some node costs nothing."""
        if self.counts_errors:
            return False
        truth = self.true_labels
        return any(
            bool((truth.costs[np.unique(truth.cost_rows[:, v]), :K] == 0.0).sum(axis=1).max() > 1)
            for v, K in enumerate(self.layout.n_labels.tolist())
            if self.n_examples
        )

    def input_of(self, i: int) -> Any:
        """Inputs of all nodes and edges of example i, a CSR matrix of one row."""
        return matrix_of(self.rows, i, i + 1)

    def output_of(self, i: int) -> Ints:
        """Gold labels of the nodes of example i."""
        return self.labels[i].copy()

    def joint_feature(self, x: Any, y: Any) -> Any:
        """See `Problem.joint_feature`, and the module for the order of the features."""
        labels = np.asarray(y, dtype=np.int64)
        nodes = self.columns.node[x.indices]
        above = np.where(self.shape.parent < 0, 0, labels[self.shape.parent])
        pairs = above * self.layout.n_labels + labels
        on_edges = self.columns.table_start[x.indices] >= 0
        places = np.where(on_edges, pairs[nodes], labels[nodes])
        return sparse_row(self.columns.weight_start[x.indices] + places, x.data, self.n_features)

    def loss(self, y: Any, y_hat: Any) -> float:
        """Wrong labels, their share, or whether there are any, or costs; see `Problem.loss`."""
        normalized, truth = self.loss_name == "normalized_hamming", self.true_labels
        if self.counts_errors:
            return counted_loss(np.not_equal(y, y_hat), normalized, truth.zero_one)
        if self._own_rows:
            raise ValueError("the costs of labels depend on their nodes, not on the true labels")
        rows = np.asarray(y) + np.concatenate([[0], np.cumsum(self.layout.n_labels)[:-1]])
        costs = truth.costs[rows, np.asarray(y_hat)]
        return float(costs.any() if truth.zero_one else truth.unit * costs.sum())

    def predict(self, x: Any, w: Floats) -> Ints:
        """Best labels of all nodes; see `Problem.predict`."""
        return decode_label_trees(rows_of(x, self.rows), self.layout, w)[0]

    def scores(self, examples: Ints, w: Floats) -> LabelScores:
        """See `TreeProblem`."""
        return LabelScores(self.rows, self.columns, self.layout, w)

    def node_losses(self, i: int) -> Floats:
        """See `TreeProblem`."""
        truth, every = self.true_labels, np.arange(self.layout.n_labels.max())
        if self.counts_errors:
            return np.where(every == self.labels[i, :, None], 0.0, truth.unit)
        losses = truth.unit * truth.costs[truth.cost_rows[i]]
        return np.where(every < self.layout.n_labels[:, None], losses, 0.0)

    def search(self, examples: Ints, w: Floats, mode: SearchMode, n_error_counts: int) -> Planes:
        """See `TreeProblem`."""
        out = self.allocate(examples)
        data = (self.shape, self.rows, self.columns, self.true_labels)
        found = np.empty((len(examples), len(self.layout.parent)), np.int64)
        work = self.layout.work(n_error_counts)
        label_oracle(*data, examples, w, mode, work, found, out)
        return out

    def write(self, examples: Ints, found: Ints) -> Planes:
        """See `TreeProblem`."""
        out = self.allocate(examples)
        data = (self.shape, self.rows, self.columns, self.layout.n_labels, self.true_labels)
        write_label_rows(*data, examples, found, out)
        return out

    def allocate(self, examples: Ints) -> Planes:
        """Arrays for a row of each of these examples."""
        lengths = self.rows.indptr[examples + 1] - self.rows.indptr[examples]
        return empty_planes(len(examples), 2 * int(lengths.sum()))


def decode_label_trees(
    rows: Rows, layout: LabelLayout, w: Floats, allowed: Bools | None = None
) -> Ints:
    """Best labels of all nodes of every row, of those that ``allowed`` marks.

    That is an array of shape (n_examples, n_nodes, most labels of a node), with at least one label
    for every node.
    """
    shape, columns, size = layout.shape_and_columns()
    w = as_weights(w, size)
    labels = np.empty((rows.n_rows, len(layout.parent)), np.int64)
    mask = np.empty((0, 0, 0), bool) if allowed is None else np.ascontiguousarray(allowed, bool)
    decode_labels(shape, rows, columns, w, mask, layout.work(0), labels)
    return labels


def rank_label_trees(
    rows: Rows, layout: LabelLayout, w: Floats, k: int, allowed: Bools | None = None
) -> list[tuple[Ints, Floats]]:
    """The k best labellings of every row, best first, with their scores."""
    shape, columns, size = layout.shape_and_columns()
    scores = LabelScores(rows, columns, layout, as_weights(w, size))
    ranked = []
    for i in range(rows.n_rows):
        work = scores.fill(i)
        if allowed is not None:
            work.unary[~allowed[i]] = -np.inf
        ranked.append(rank_labellings(shape, work, k))
    return ranked


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
