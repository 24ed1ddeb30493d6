"""Graphs of different sizes in flat arrays, and how the weights of their labels are laid out.

Weights of node features come first, ``w[f * K + k]``, the constant last. Those of edge features
follow, ``w[F * K + g * S + pair]`` with S weights of pairs of labels: "full" and "directed" have
``pair = a * K + b`` for the labels a and b of the first and the second node of the edge,
"symmetric" has one number for (a, b) and (b, a), row by row of the upper triangle, and "potts" has
one weight, for equal labels.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...engine.packed_problem import chunks_of, rows_at
from ...engine.rows import Rows
from ...utils.types import Bools, Floats, Ints
from ...utils.validation import check_choice
from .kernels import Shape, forest_order

__all__ = ["PAIRWISE", "GraphData", "PairLayout", "Pairwise", "pack_graphs", "pair_layout"]

Pairwise = Literal["full", "symmetric", "potts", "directed"]
PAIRWISE = ("full", "symmetric", "potts", "directed")


class PairLayout(NamedTuple):
    """Which weight of an edge feature belongs to a pair of labels; -1 for none."""

    n_labels: int
    n_pairs: int
    pairs: Ints  # (K, K)
    is_potts: bool


def pair_layout(pairwise: Pairwise, n_labels: int) -> PairLayout:
    """The layout of one kind of pairwise weights."""
    check_choice(pairwise, PAIRWISE, "pairwise")
    K = n_labels
    if pairwise == "potts":
        return PairLayout(K, 1, np.where(np.eye(K, dtype=bool), 0, -1).astype(np.int64), True)
    if pairwise == "symmetric":
        pairs = np.zeros((K, K), np.int64)
        upper = np.triu_indices(K)
        pairs[upper] = np.arange(len(upper[0]))
        return PairLayout(K, len(upper[0]), np.maximum(pairs, pairs.T), False)
    return PairLayout(K, K * K, np.arange(K * K, dtype=np.int64).reshape(K, K), False)


class GraphData(NamedTuple):
    """Graphs packed one behind the other; see `pack_graphs`."""

    nodes: Rows
    node_offsets: Ints
    edges: Rows
    edge_offsets: Ints
    first: Ints  # nodes of the edges, counted within their graph
    second: Ints
    shapes: tuple[Shape, ...]

    @property
    def n_graphs(self) -> int:
        """Number of graphs."""
        return len(self.node_offsets) - 1

    def at(self, indices: Ints) -> GraphData:
        """The listed graphs alone."""
        nodes, node_offsets = chunks_of(self.node_offsets, indices)
        edges, edge_offsets = chunks_of(self.edge_offsets, indices)
        return GraphData(
            rows_at(self.nodes, nodes),
            node_offsets,
            rows_at(self.edges, edges),
            edge_offsets,
            self.first[edges],
            self.second[edges],
            tuple(self.shapes[i] for i in indices),
        )


def pack_graphs(
    nodes: Rows, node_offsets: Ints, edges: Rows, edge_offsets: Ints, first: Ints, second: Ints
) -> GraphData:
    """Pack graphs whose edges lead from ``first`` to ``second``, two different nodes of a graph.

    ``nodes`` and ``edges`` are the features of all nodes and edges. Nodes are counted from 0 in
    every graph.
    """
    if len(first) != edge_offsets[-1] or len(second) != edge_offsets[-1]:
        raise ValueError(f"expected {edge_offsets[-1]} edges, found {len(first)}, {len(second)}")
    sizes = np.repeat(np.diff(node_offsets), np.diff(edge_offsets))
    wrong = (first == second) | (np.minimum(first, second) < 0)
    wrong |= np.maximum(first, second) >= sizes
    if wrong.any():
        edge = int(np.argmax(wrong))
        i = int(np.searchsorted(edge_offsets, edge, side="right")) - 1
        raise ValueError(
            f"graph {i}: edge {edge - edge_offsets[i]} is {(int(first[edge]), int(second[edge]))}; "
            f"expected two different nodes of 0..{sizes[edge] - 1}"
        )
    shapes = []
    for i, n in enumerate(np.diff(node_offsets).tolist()):
        own = slice(edge_offsets[i], edge_offsets[i + 1])
        shapes.append(_shape_of(n, first[own], second[own]))
    return GraphData(nodes, node_offsets, edges, edge_offsets, first, second, tuple(shapes))


def _shape_of(n: int, first: Ints, second: Ints) -> Shape:
    """Neighbours of all nodes of a graph, and an order of its nodes if it is a forest."""
    low, high = np.minimum(first, second), np.maximum(first, second)
    after, before = np.argsort(low, kind="stable"), np.argsort(high, kind="stable")
    nodes = np.arange(n + 1)
    after_ends, before_ends = (
        np.searchsorted(ends, nodes).astype(np.int64) for ends in (low[after], high[before])
    )
    shape = Shape(low, high, before_ends, before, after_ends, after, nodes[:0], nodes[:0])
    order, parent = np.empty(n, np.int64), np.empty(n, np.int64)
    is_forest = len(low) < max(n, 1) and forest_order(shape, order, parent)
    return shape._replace(order=order, parent=parent) if is_forest else shape


def sparse_features(
    data: GraphData, i: int, labels: Ints, layout: PairLayout, n_features: int
) -> sp.csr_matrix:
    """Joint features of graph i with these labels."""
    K = layout.n_labels
    entries, rows = _entries(data.nodes, data.node_offsets[i], data.node_offsets[i + 1])
    columns, values = entries
    own = slice(data.edge_offsets[i], data.edge_offsets[i + 1])
    (edge_columns, edge_values), edge_rows = _entries(data.edges, own.start, own.stop)
    pairs = layout.pairs[labels[data.first[own]], labels[data.second[own]]][edge_rows]
    used = pairs >= 0
    start = data.nodes.n_inputs * K
    places = np.concatenate(
        [columns * K + labels[rows], start + edge_columns[used] * layout.n_pairs + pairs[used]]
    )
    data_values = np.concatenate([values, edge_values[used]])
    matrix = sp.csr_matrix((data_values, places, [0, len(places)]), shape=(1, n_features))
    return matrix


def _entries(rows: Rows, start: int, end: int) -> tuple[tuple[Ints, Floats], Ints]:
    """Columns and values of the entries of some rows with the constant, and their rows from 0."""
    ends = rows.indptr[start : end + 1]
    own = slice(int(ends[0]), int(ends[-1]))
    row_of = np.repeat(np.arange(end - start), np.diff(ends))
    columns, values = rows.indices[own].astype(np.int64), rows.values[own]
    if rows.bias:
        n = end - start
        columns = np.concatenate([columns, np.full(n, rows.n_columns)])
        values = np.concatenate([values, np.full(n, rows.bias)])
        row_of = np.concatenate([row_of, np.arange(n)])
    return (columns, values), row_of


def flipped(data: GraphData, i: int) -> Bools:
    """Which edges of graph i lead from the node of the larger number to that of the smaller."""
    own = slice(data.edge_offsets[i], data.edge_offsets[i + 1])
    return data.first[own] > data.second[own]
