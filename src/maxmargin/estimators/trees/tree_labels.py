"""Trees whose nodes have labels: their inputs, their training, their predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...core.problem import Problem
from ...engine.cost_model import scoring_work
from ...engine.parallel.threads import each_range
from ...engine.rows import Rows
from ...features.containers import is_frame
from ...problems.tree.labels import (
    LabelLayout,
    LabelTreeDistribution,
    LabelTreeProblem,
    decode_label_trees,
    pack_columns,
    rank_label_trees,
    root_tree,
)
from ...problems.tree.partial import PartialLabelTrees, costs_of_node_choices
from ...problems.tree.problem import tree_of_labels
from ...solvers.base import checked_weights
from ...utils.sparse_format import check_sparse
from ...utils.types import Bools, Floats, Ints
from ...utils.validation import as_floats, as_real_numbers, first_unusable, is_list, unusable
from ..abilities.explanation import Evidence, Explanation, Places, best_other
from ..abilities.partial_labels import (
    allowed_node_labels,
    flatten_fixed,
    has_unknown,
    listed_labels,
)
from ..costs import check_loss, costs_of_nodes, used_class_weight
from ..examples import FlatLabels, LabelEncoder, Wording, examples_at, warn_of_unknown

__all__ = ["NODES", "NodeLabels", "Prepared", "given_edges", "prepare_labels", "tree_inputs_at"]

LABEL_LOSSES = ("hamming", "normalized_hamming", "zero_one")
NODES = Wording("example", "node", "label")


class Prepared(NamedTuple):
    """What makes the problem, what it is made of, and the same for labels known in part."""

    make_problem: Callable[[], Problem]
    data: tuple[Any, ...]
    make_partial: Callable[[], Any] | None


class NodeLabels(NamedTuple):
    """What a model of labels knows but its weights."""

    layout: LabelLayout
    classes: list[NDArray[Any]]
    n_features: list[int]
    has_intercept: bool
    edge_rank: list[int]

    def check(self) -> None:
        """Raise ValueError where these do not belong together."""
        layout = self.layout
        inputs = [n + self.has_intercept for n in self.n_features]
        ranks = list(range(len(layout.parent) - 1))
        if (
            [len(classes) for classes in self.classes] != layout.n_labels.tolist()
            or inputs != layout.n_inputs.tolist()
            or sorted(self.edge_rank) != ranks
        ):
            raise ValueError("labels, features or edges are not those of the tree")

    # ----- predictions --------------------------------------------------------------------------

    def predict(self, X: Any, w: Floats, fixed: Any, n_jobs: int | None) -> NDArray[Any]:
        """Best labels of all nodes."""
        nodes, edges = self.columns(X)
        n = int(nodes[0].shape[0])
        allowed = self._allowed(fixed, n)

        def decode(first: int, end: int) -> Ints:
            own = ([matrix[first:end] for matrix in matrices] for matrices in (nodes, edges))
            mask = None if allowed is None else allowed[first:end]
            return decode_label_trees(pack_columns(*own), self.layout, w, mask)

        entries = float(sum(matrix.nnz if sp.issparse(matrix) else matrix.size for matrix in nodes))
        work = scoring_work(entries / max(n, 1), int(self.layout.n_labels.max()))
        return self._decoded(np.concatenate(each_range(n_jobs, n, work, decode)))

    def rank(self, X: Any, w: Floats, k: int, fixed: Any) -> list[tuple[NDArray[Any], Floats]]:
        """The k best labellings of each example, with their scores."""
        rows = self.rows(X)
        found = rank_label_trees(rows, self.layout, w, k, self._allowed(fixed, rows.n_rows))
        return [(self._decoded(codes), scores) for codes, scores in found]

    def losses(self, found: NDArray[Any], y: Any) -> Floats:
        """Share of wrong nodes of each example."""
        labels = as_label_rows(y)
        if labels.shape != found.shape:
            raise ValueError(f"y has shape {labels.shape}; expected {found.shape}")
        return np.mean(found.astype(object) != labels, axis=1)

    def warn_of_unknown(self, y: Any) -> None:
        """Warn of labels that the model does not know."""
        rows = as_label_rows(y)
        offsets = len(self.classes) * np.arange(len(rows) + 1)
        flat = FlatLabels(rows.ravel().tolist(), offsets, NODES)
        warn_of_unknown(np.array(self._codes(rows)).ravel(), flat)

    def distribution(self, X: Any, w: Floats, fixed: Any = None) -> LabelTreeDistribution:
        """All labellings with their scores."""
        rows = self.rows(X)
        return LabelTreeDistribution(rows, self.layout, w, self._allowed(fixed, rows.n_rows))

    def with_gold(self, X: Any, y: Any, w: Floats) -> tuple[LabelTreeDistribution, Ints]:
        """The same, and numbers of the right labels, -1 for unknown ones."""
        labellings, labels = self.distribution(X, w), as_label_rows(y)
        expected = labellings.rows.n_rows, len(self.classes)
        if labels.shape != expected:
            raise ValueError(f"y has shape {labels.shape}; expected {expected}")
        return labellings, np.array(self._codes(labels), np.int64).ravel()

    def explain(self, x: Any, y_hat: Any, w: Floats, n: int) -> Explanation:
        """Why these labels; see `TreeLabeler.explain`."""
        X = np.asarray(x)[None] if not isinstance(x, (Mapping, list)) and np.ndim(x) == 2 else x
        rows, layout = self.rows(X), self.layout
        if rows.n_rows != 1:
            raise ValueError(f"x must be one example, got {rows.n_rows}")
        (own,) = decode_label_trees(rows, layout, w)
        labels = [classes.tolist() for classes in self.classes]
        shown = [own_labels[k] for own_labels, k in zip(labels, own, strict=True)]

        def evidence(rival: Any) -> list[Evidence]:
            return label_tree_evidence(layout, w, rows, labels, own, rival)

        places = Places(shown, shown, lambda v: f"node {v}", evidence)
        if y_hat is not None:
            given = as_label_rows([list(y_hat)])
            if given.shape[1] != len(labels):
                raise ValueError(
                    f"y_hat has {given.shape[1]} labels; there are {len(labels)} nodes"
                )
            (other,), (rival,) = self._codes(given), given.tolist()
            if -1 in other:
                v = other.index(-1)
                raise ValueError(f"y_hat: label {rival[v]!r:.40} of node {v} is not known")
            return places.against(other, rival, rival, n)

        def rival_at(v: int, margins: Floats) -> tuple[Any, Ints] | None:
            best = best_other(margins[0], own[v])
            if best is None:
                return None
            fixed = [labels[v][best] if u == v else None for u in range(len(labels))]
            (rival,) = decode_label_trees(rows, layout, w, self._allowed([fixed], 1))
            return labels[v][best], rival

        outputs = self.distribution(X, w)
        tables = outputs.shown(outputs.margins())
        return places.one_by_one((rival_at(v, table) for v, table in enumerate(tables)), n)

    # ----- inputs and outputs -------------------------------------------------------------------

    def rows(self, X: Any) -> Rows:
        """Inputs of all nodes and edges, packed."""
        return pack_columns(*self.columns(X))

    def columns(self, X: Any) -> tuple[list[Any], list[Any]]:
        """Matrices of all nodes, with constants if the model has them, and of all edges."""
        V = len(self.layout.parent)
        nodes, edge_inputs = split_inputs(X)
        n = count_examples(nodes)
        matrices = node_matrices(nodes, n, V, self.n_features)
        one = np.ones((n, 1))
        if self.has_intercept:
            matrices = [part for matrix in matrices for part in (matrix, one)]
        extra = self.layout.n_edge_inputs - 1
        edges: list[Any] = [one] * (V - 1)
        if (edge_inputs is None) != (extra == 0):
            raise ValueError(
                f"expected {extra} features of each edge, found "
                f"{'none' if edge_inputs is None else 'some'}"
            )
        if edge_inputs is not None:
            given = edge_array(edge_inputs, n, V - 1)
            if given.shape[2] != extra:
                raise ValueError(f"expected {extra} features of each edge, found {given.shape[2]}")
            edges = [np.hstack([one, given[:, rank]]) for rank in self.edge_rank]
        return matrices, edges

    def _numbers(self) -> list[Mapping[Any, int]]:
        """Numbers of the labels of each node."""
        return [LabelEncoder(classes).numbers for classes in self.classes]

    def _codes(self, labels: NDArray[Any]) -> list[list[int]]:
        """Numbers of labels, -1 for those that the model does not know."""
        numbers = self._numbers()
        return [
            [own.get(label, -1) for own, label in zip(numbers, row, strict=True)]
            for row in labels.tolist()
        ]

    def _allowed(self, fixed: Any, n: int) -> Bools | None:
        """Which labels nodes may have, if anything is known of them."""
        if fixed is None:
            return None
        offsets = len(self.classes) * np.arange(n + 1)
        return allowed_node_labels(flatten_fixed(fixed, offsets, NODES), self._numbers())

    def _decoded(self, codes: Ints) -> NDArray[Any]:
        """Labels of codes, shape (n, n_nodes)."""
        columns = [labels[codes[:, v]] for v, labels in enumerate(self.classes)]
        kinds = {column.dtype.kind for column in columns}
        if len(kinds) > 1:
            columns = [column.astype(object) for column in columns]
        return np.stack(columns, axis=1)


# ----- training ---------------------------------------------------------------------------------


def prepare_labels(
    estimator: Any, X: Any, y: Any, weights: Floats | None
) -> tuple[NodeLabels, Prepared]:
    """The model, and what it is trained on."""
    labels = as_label_rows(y)
    n, V = labels.shape
    known = FlatLabels(labels.ravel().tolist(), V * np.arange(n + 1), NODES)
    is_partial = has_unknown(known)
    encoders = [LabelEncoder.of(listed_labels(known, v, V)) for v in range(V)]
    classes = [encoder.classes for encoder in encoders]
    if max(map(len, classes)) < 2:
        raise ValueError("every node has a single label; some node needs at least 2")
    if is_partial:
        allowed = allowed_node_labels(known, [encoder.numbers for encoder in encoders])
        codes = np.where(allowed.sum(axis=2) == 1, allowed.argmax(axis=2), -1)
    else:
        codes = np.stack(
            [
                encoder.encode(FlatLabels(list(labels[:, v]), np.arange(n + 1)))
                for v, encoder in enumerate(encoders)
            ],
            axis=1,
        ).astype(np.int64)
    n_labels = np.array(list(map(len, classes)), np.int64)
    tree = estimator.tree
    edges = tree_of_labels(codes, n_labels) if tree is None else given_edges(tree)
    parent, order = root_tree(V, edges)
    nodes, edge_inputs = split_inputs(X)
    if edge_inputs is not None and tree is None:
        raise ValueError("X has features of edges, so tree must say which edges there are")
    edge_rank = edge_ranks(edges, parent)
    n_features = [int(matrix.shape[1]) for matrix in node_matrices(nodes, n, V, None)]
    has_intercept = bool(estimator.fit_intercept)
    inputs = np.array(n_features, np.int64) + int(has_intercept)
    F_e = 1 + (0 if edge_inputs is None else edge_array(edge_inputs, n, V - 1).shape[2])
    layout = LabelLayout(parent, order, n_labels, inputs, F_e)
    model = NodeLabels(layout, classes, n_features, has_intercept, edge_rank)
    rows = model.rows(X)
    costs = _costs(estimator, classes, codes, weights)
    loss: Any = estimator.loss if isinstance(estimator.loss, str) else "hamming"

    def make_problem() -> Problem:
        return LabelTreeProblem(rows, codes, layout, loss=loss, costs=costs)

    def make_partial() -> PartialLabelTrees:
        table, cost_rows = costs_of_node_choices(allowed, n_labels, costs)
        some = allowed.argmax(axis=2)
        problem = LabelTreeProblem(rows, some, layout, loss=loss, costs=table, cost_rows=cost_rows)
        return PartialLabelTrees(problem, allowed)

    data = (rows.indptr, rows.indices, rows.values, codes, parent, n_labels, F_e, loss, costs)
    return model, Prepared(make_problem, data, make_partial if is_partial else None)


def _costs(
    estimator: Any, classes: list[NDArray[Any]], codes: Ints, weights: Floats | None
) -> Floats | None:
    """Costs of the labels of all nodes, if they are not all the same."""
    loss = estimator.loss
    check_loss(loss, LABEL_LOSSES)
    class_weight = used_class_weight(
        estimator.class_weight,
        not (isinstance(loss, str) and loss == "zero_one"),
        "it weighs nodes, and loss='zero_one' counts examples; use another loss, or sample_weight",
    )
    if weights is not None:
        weights = checked_weights(weights, len(codes))
    return costs_of_nodes(loss, class_weight, classes, codes, weights)


def edges_of(parent: Ints) -> list[tuple[int, int]]:
    """Edges of a tree, the parent first."""
    return [(p, v) for v, p in enumerate(parent.tolist()) if p >= 0]


def given_edges(tree: Any) -> list[Any]:
    """The tree that is given."""
    try:
        return list(tree)
    except TypeError:
        raise ValueError(
            f"tree must be a list of edges (parent, child), got {tree!r:.60}"
        ) from None


# ----- checks of what users give ----------------------------------------------------------------


def split_inputs(X: Any) -> tuple[Any, Any]:
    """Features of nodes, and of edges or None."""
    if not isinstance(X, Mapping):
        return X, None
    if "nodes" not in X or set(X) - {"nodes", "edges"}:
        raise ValueError(f"X must have keys 'nodes' and 'edges', found {sorted(map(str, X))}")
    return X["nodes"], X.get("edges")


def tree_inputs_at(X: Any, indices: Ints) -> Any:
    """The inputs of some examples: a list has a matrix for each node."""
    if isinstance(X, Mapping):
        return {name: tree_inputs_at(value, indices) for name, value in X.items()}
    return [matrix[indices] for matrix in X] if isinstance(X, list) else examples_at(X, indices)


def count_examples(nodes: Any) -> int:
    """Number of examples of node features in either form."""
    in_list = isinstance(nodes, (list, tuple))
    if not is_list(nodes) or (in_list and (not nodes or not getattr(nodes[0], "shape", ()))):
        raise ValueError(
            "X must be an array of shape (n_examples, n_nodes, n_features), or a list of one "
            "matrix for each node"
        )
    return int(nodes[0].shape[0]) if in_list else len(nodes)


def node_matrices(nodes: Any, n: int, V: int, n_features: list[int] | None) -> list[Any]:
    """One matrix of finite numbers for each node."""
    if isinstance(nodes, (list, tuple)):
        count_examples(nodes)
        matrices = list(nodes)
    else:
        array = as_real_numbers(nodes, "features of nodes")
        if array.ndim != 3:
            raise ValueError(
                f"X has shape {array.shape}; expected (n_examples, n_nodes, n_features)"
            )
        matrices = [array[:, v] for v in range(array.shape[1])]
    if len(matrices) != V:
        raise ValueError(f"X has {len(matrices)} nodes; expected {V}")
    for v, matrix in enumerate(matrices):
        is_sparse = sp.issparse(matrix)
        check_sparse(matrix, f"X at node {v}")
        matrix = matrix.tocsr() if is_sparse else as_real_numbers(matrix, f"features of node {v}")
        matrices[v] = matrix
        if matrix.ndim != 2:
            raise ValueError(f"node {v} has features of shape {matrix.shape}; expected two axes")
        if matrix.shape[0] != n:
            raise ValueError(
                f"X has {matrix.shape[0]} examples at node {v}, but {n} are expected (as in y)"
            )
        expected = (n, matrix.shape[1] if n_features is None else n_features[v])
        if matrix.shape != expected:
            raise ValueError(f"node {v} has features of shape {matrix.shape}; expected {expected}")
        values: Any = matrix.data if is_sparse else matrix
        bad = first_unusable(values)
        if bad is not None:
            raise ValueError(f"the features of node {v} have {unusable(values.ravel()[bad])}")
    return matrices


def edge_array(edges: Any, n: int, E: int) -> Floats:
    """Features of edges, shape (n, E, F)."""
    array = as_floats(edges, "features of edges")
    if array.ndim != 3 or array.shape[:2] != (n, E):
        raise ValueError(
            f"features of edges have shape {array.shape}; expected ({n}, {E}, n_edge_features)"
        )
    bad = first_unusable(array)
    if bad is not None:
        example, edge, _ = np.unravel_index(bad, array.shape)
        raise ValueError(
            f"the features of edge {edge} of example {example} have {unusable(array.ravel()[bad])}"
        )
    return array


def edge_ranks(edges: Sequence[tuple[int, int]], parent: Ints) -> list[int]:
    """For each node with a parent, the place of its edge in the list the user gave."""
    place = {frozenset(map(int, edge)): rank for rank, edge in enumerate(edges)}
    return [place[frozenset((v, p))] for v, p in enumerate(parent.tolist()) if p >= 0]


def as_label_rows(y: Any) -> NDArray[Any]:
    """Labels as an array of objects of shape (n_examples, n_nodes)."""
    y = y.to_numpy() if is_frame(y) else y
    for i, row in enumerate(y):
        if not is_list(row):
            raise ValueError(f"y[{i}] is {row!r:.60}, expected a list of labels")
    rows = [list(row.tolist() if isinstance(row, np.ndarray) else row) for row in y]
    if not rows or not rows[0]:
        raise ValueError("y must hold at least one example with at least one node")
    labels = np.empty((len(rows), len(rows[0])), dtype=object)
    for i, row in enumerate(rows):
        if len(row) != labels.shape[1]:
            raise ValueError(f"y[{i}] has {len(row)} labels, but y[0] has {labels.shape[1]}")
        labels[i] = row
    return labels


def label_tree_evidence(
    layout: LabelLayout,
    w: Floats,
    rows: Rows,
    labels: Sequence[Sequence[Any]],
    chosen: Sequence[int],
    rival: Sequence[int],
) -> list[Evidence]:
    """Features of nodes and edges whose labels differ, of the only row there is."""
    columns, parent = layout.shape_and_columns()[1], layout.parent.tolist()
    names, found = _names(layout), []
    for c, value in zip(rows.indices.tolist(), rows.values.tolist(), strict=True):
        v, start = int(columns.node[c]), int(columns.weight_start[c])
        nodes = [parent[v], v] if columns.table_start[c] >= 0 else [v]
        a, b = ([int(codes[u]) for u in nodes] for codes in (chosen, rival))
        if a == b:
            continue
        places = [start + codes[-1] for codes in (a, b)]
        name = names[c]
        if len(nodes) == 2:
            places = [
                p + codes[0] * int(layout.n_labels[v])
                for p, codes in zip(places, (a, b), strict=True)
            ]
            pairs = (
                " - ".join(str(labels[u][k]) for u, k in zip(nodes, codes, strict=True))
                for codes in (a, b)
            )
            name = f"{name} {', not '.join(pairs)}"
        found.append(Evidence(name, v, value, float(w[places[0]] - w[places[1]])))
    return found


def _names(layout: LabelLayout) -> list[str]:
    """Names of all input columns: of features of nodes, then of edges."""
    names = [f"x{f}" for count in layout.n_inputs.tolist() for f in range(count)]
    for v, p in enumerate(layout.parent.tolist()):
        edge = f"edge {p}-{v}"
        names += [
            edge if f == 0 else f"{edge} x{f - 1}" for f in range(layout.n_edge_inputs) if p >= 0
        ]
    return names
