"""Brute-force twin of graphs of labels, by the documented layout."""

import itertools

import numpy as np

from brute import Twin
from cases import Case
from maxmargin.engine.packed_problem import sparse_rows
from maxmargin.problems.graph.data import pack_graphs
from maxmargin.problems.graph.problem import GraphModel, GraphProblem


class GraphTwin(Twin):
    """Graphs as (node features, edges, edge features), constants included; labels 0..K - 1."""

    def __init__(self, graphs, Y, K, pairwise, loss, costs):
        self.graphs, self.Y, self.K = graphs, [tuple(map(int, y)) for y in Y], K
        self.pairwise, self.loss_name = pairwise, loss
        self.costs = 1.0 - np.eye(K) if costs is None else costs
        self.n_examples = len(graphs)
        self.n_features = len(self.psi(0, self.truth(0)))

    def truth(self, i):
        return self.Y[i]

    def outputs(self, i):
        return list(itertools.product(range(self.K), repeat=len(self.Y[i])))

    def psi(self, i, y):
        nodes, edges, edge_features = self.graphs[i]
        K = self.K
        of_nodes = np.zeros((nodes.shape[1], K))
        for x, k in zip(nodes, y, strict=True):
            of_nodes[:, k] += x
        numbers = self.numbers()
        of_edges = np.zeros((edge_features.shape[1], max(numbers.values()) + 1))
        for x, (u, v) in zip(edge_features, edges, strict=True):
            if (y[u], y[v]) in numbers:
                of_edges[:, numbers[y[u], y[v]]] += x
        return np.concatenate([of_nodes.ravel(), of_edges.ravel()])

    def numbers(self):
        """Which weight a pair of labels has."""
        pairs = itertools.product(range(self.K), repeat=2)
        if self.pairwise == "potts":
            return {(k, k): 0 for k in range(self.K)}
        if self.pairwise == "symmetric":
            upper = {pair: n for n, pair in enumerate(p for p in pairs if p[0] <= p[1])}
            return upper | {(b, a): n for (a, b), n in upper.items()}
        return {pair: n for n, pair in enumerate(pairs)}

    def loss(self, i, y):
        total = sum(float(self.costs[a][b]) for a, b in zip(self.truth(i), y, strict=True))
        return total / len(y) if self.loss_name == "normalized_hamming" else total


def random_edges(rng, n, kind):
    """Edges of a forest, a ring or any graph, in any direction."""
    pairs = list(itertools.combinations(range(n), 2))
    if kind == "forest":
        pairs = [(int(rng.integers(v)), v) for v in range(1, n) if rng.random() < 0.8]
    elif kind == "ring":
        pairs = [(v, (v + 1) % n) for v in range(n)] if n > 2 else pairs
    else:
        pairs = [pair for pair in pairs if rng.random() < 0.7]
    edges = [pair if rng.random() < 0.5 else pair[::-1] for pair in pairs]
    return np.array(edges, np.int64).reshape(-1, 2)[rng.permutation(len(edges))]


def graph_case(
    rng, *, sizes=(3, 1, 4), K=2, n_inputs=2, n_edge_inputs=1, pairwise="full", kind="any",
    loss="hamming", costs=False, inference="exact",
):  # fmt: skip
    graphs = []
    for n in sizes:
        nodes = rng.normal(size=(n, n_inputs)) * (rng.random((n, n_inputs)) < 0.8)
        edges = random_edges(rng, n, kind)
        edge_features = rng.normal(size=(len(edges), n_edge_inputs))
        ones = np.ones((n, 1)), np.ones((len(edges), 1))
        graphs.append((np.hstack([nodes, ones[0]]), edges, np.hstack([edge_features, ones[1]])))
    Y = [rng.integers(0, K, n) for n in sizes]
    table = None
    if costs:
        table = rng.uniform(0.2, 3.0, (K, K))
        np.fill_diagonal(table, 0.0)
    problem = GraphProblem(
        packed(graphs), np.concatenate(Y), GraphModel(K, pairwise, inference, 100),
        loss=loss, costs=table,
    )  # fmt: skip
    return Case(problem, GraphTwin(graphs, Y, K, pairwise, loss, table))


def packed(graphs):
    """Graphs with constants among their features, for the package."""
    nodes, edges, edge_features = zip(*graphs, strict=True)
    node_offsets = np.cumsum([0, *map(len, nodes)])
    edge_offsets = np.cumsum([0, *map(len, edges)])
    pairs = np.concatenate(edges)
    return pack_graphs(
        sparse_rows(np.concatenate(nodes)), node_offsets,
        sparse_rows(np.concatenate(edge_features)), edge_offsets,
        np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1]),
    )  # fmt: skip


def decode_graphs(case, w):
    problem = case.problem
    return [
        tuple(problem.model.predict(problem.data, i, w).labels.tolist())
        for i in range(problem.n_examples)
    ]
