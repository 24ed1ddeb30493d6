"""Graphs as users have them, as packed arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..engine.packed_problem import sparse_rows
from ..features.graphs import Graph
from ..features.packing import offsets_of
from ..problems.graph.data import GraphData, pack_graphs
from ..utils.sparse_format import check_sparse
from ..utils.validation import as_floats, first_unusable, is_list, unusable

__all__ = ["GraphSizes", "read_graphs"]


class GraphSizes(NamedTuple):
    """Numbers of features of nodes and of edges, and whether a constant is added to both."""

    n_features: int
    n_edge_features: int
    fit_intercept: bool

    @property
    def n_node_inputs(self) -> int:
        """Columns of nodes, the constant included."""
        return self.n_features + int(self.fit_intercept)

    @property
    def edge_constant(self) -> bool:
        """Whether edges have a constant: those without features have nothing else."""
        return self.fit_intercept or self.n_edge_features == 0

    @property
    def n_edge_inputs(self) -> int:
        """Columns of edges, the constant included."""
        return self.n_edge_features + int(self.edge_constant)


def read_graphs(
    X: Any, directed: bool, fit_intercept: bool, sizes: GraphSizes | None = None
) -> tuple[GraphData, GraphSizes]:
    """Pack graphs; ``sizes`` are those of the training, if there was one.

    Without directions, an edge that is listed both ways counts once, and leads to the node of the
    larger number.
    """
    if not is_list(X) or len(X) == 0:
        raise ValueError(
            "X must be a list of graphs, (node_features, edges) or (node_features, edges, "
            f"edge_features); got {type(X).__name__} {'without graphs' if is_list(X) else ''}"
        )
    graphs = [_read_graph(x, f"graph {i}") for i, x in enumerate(X)]
    if not directed:
        graphs = [_without_directions(graph, f"graph {i}") for i, graph in enumerate(graphs)]
    if sizes is None:
        given = (g.edge_features.shape[1] for g in graphs if g.edge_features is not None)
        sizes = GraphSizes(graphs[0].node_features.shape[1], next(given, 0), fit_intercept)
    for i, graph in enumerate(graphs):
        graphs[i] = _of_these_sizes(graph, sizes, f"graph {i}")
    nodes = _stack([graph.node_features for graph in graphs])
    edges = _stack([graph.edge_features for graph in graphs])
    pairs = np.concatenate([graph.edges for graph in graphs])
    data = pack_graphs(
        sparse_rows(nodes, sizes.fit_intercept),
        offsets_of([graph.node_features.shape[0] for graph in graphs]),
        sparse_rows(edges, sizes.edge_constant),
        offsets_of([len(graph.edges) for graph in graphs]),
        np.ascontiguousarray(pairs[:, 0]),
        np.ascontiguousarray(pairs[:, 1]),
    )
    return data, sizes


def _read_graph(x: Any, place: str) -> Graph:
    """A graph in any of its forms, with checked arrays."""
    graph = _taken_apart(x, place)
    nodes = _matrix(graph.node_features, f"{place}: node features")
    edges = np.asarray(graph.edges)
    if edges.size == 0:
        edges = np.empty((0, 2), np.int64)
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise ValueError(
            f"{place}: edges have shape {edges.shape} and type {edges.dtype}; expected pairs of "
            "whole numbers, shape (n_edges, 2)"
        )
    features = graph.edge_features
    if features is not None:
        features = _matrix(features, f"{place}: edge features")
        if features.shape[0] != len(edges):
            raise ValueError(
                f"{place} has {len(edges)} edges, but features of {features.shape[0]} edges"
            )
    return Graph(nodes, edges.astype(np.int64), features)


def _taken_apart(x: Any, place: str) -> Graph:
    """Arrays of a tuple, of a graph of networkx, or of an object like those of PyTorch Geometric.

    Nodes and edges of networkx have their features in the attribute "x".
    """
    if isinstance(x, (tuple, list)) and len(x) in (2, 3):
        return Graph(*x)
    if hasattr(x, "edge_index") and hasattr(x, "x"):
        features = getattr(x, "edge_attr", None)
        return Graph(
            np.asarray(x.x),
            np.asarray(x.edge_index).T,
            None if features is None else np.asarray(features),
        )
    if hasattr(x, "nodes") and hasattr(x, "edges") and hasattr(x, "adj"):
        numbers = {node: number for number, node in enumerate(x.nodes)}
        nodes = [features for _, features in x.nodes(data="x")]
        listed = list(x.edges(data="x"))
        if any(features is None for features in nodes):
            raise ValueError(f"{place}: every node needs its features in the attribute 'x'")
        own = [features for _, _, features in listed if features is not None]
        if own and len(own) < len(listed):
            raise ValueError(f"{place}: some edges have features in the attribute 'x', others not")
        edges = [(numbers[u], numbers[v]) for u, v, _ in listed]
        return Graph(np.array(nodes), edges, np.array(own) if own else None)
    raise ValueError(
        f"{place} is of type {type(x).__name__}; expected (node_features, edges) or "
        "(node_features, edges, edge_features), a networkx graph, or an object with x, edge_index "
        "and edge_attr"
    )


def _matrix(features: Any, name: str) -> Any:
    """A dense or CSR matrix of finite numbers."""
    if sp.issparse(features):
        check_sparse(features, name)
        matrix = sp.csr_matrix(features, dtype=np.float64)
        matrix.sum_duplicates()
        values = matrix.data
    else:
        matrix = as_floats(features, name)
        values = matrix
    if matrix.ndim != 2:
        raise ValueError(f"{name} have shape {matrix.shape}; expected two dimensions")
    at = first_unusable(values)
    if at is not None:
        raise ValueError(f"{name} have {unusable(float(values.ravel()[at]))}")
    return matrix


def _without_directions(graph: Graph, place: str) -> Graph:
    """The graph with every edge once, from the smaller to the larger number."""
    edges = np.sort(graph.edges, axis=1)
    _, first, inverse = np.unique(edges, axis=0, return_index=True, return_inverse=True)
    if len(first) == len(edges):
        return graph._replace(edges=edges)
    inverse = inverse.ravel()
    original = first[inverse]
    repeated = np.flatnonzero(original != np.arange(len(edges)))
    same = (graph.edges[repeated] == graph.edges[original[repeated]]).all(axis=1)
    same |= np.bincount(inverse)[inverse[repeated]] > 2
    if graph.edge_features is not None:
        features = graph.edge_features
        change = abs(features[repeated] - features[original[repeated]])
        same |= np.asarray(change.sum(axis=1)).ravel() > 0.0
    if same.any():
        edge = int(repeated[np.argmax(same)])
        raise ValueError(
            f"{place}: edge {edge} joins nodes {tuple(graph.edges[edge].tolist())} again; an edge "
            "may be listed once in each direction, with the same features (pairwise='directed' "
            "takes different ones)"
        )
    kept = np.sort(first)
    features = None if graph.edge_features is None else graph.edge_features[kept]
    return Graph(graph.node_features, edges[kept], features)


def _of_these_sizes(graph: Graph, sizes: GraphSizes, place: str) -> Graph:
    """The graph, with features of edges; ValueError where it has others than expected."""
    found = graph.node_features.shape[1]
    if found != sizes.n_features:
        raise ValueError(f"{place} has {found} features per node, expected {sizes.n_features}")
    features = graph.edge_features
    if features is None and (sizes.n_edge_features == 0 or len(graph.edges) == 0):
        features = np.empty((len(graph.edges), sizes.n_edge_features))
    found = 0 if features is None else features.shape[1]
    if found != sizes.n_edge_features:
        raise ValueError(f"{place} has {found} features per edge, expected {sizes.n_edge_features}")
    return graph._replace(edge_features=features)


def _stack(matrices: list[Any]) -> Any:
    """The rows of all matrices, sparse if one is."""
    if any(map(sp.issparse, matrices)):
        return sp.vstack([sp.csr_matrix(matrix) for matrix in matrices], format="csr")
    return np.concatenate(matrices)
