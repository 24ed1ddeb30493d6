"""Checks of what users hand to `TreeLabeler`: features of nodes and edges, labels, images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..engine.rows import Rows
from ..features.containers import is_frame
from ..problems.tree.labels import LabelLayout
from ..sparse_format import check_sparse
from ..types import Bools, Floats, Ints
from ..validation import as_floats, as_real_numbers, first_unusable, is_list, unusable
from .examples import examples_at
from .explanation import Evidence

__all__ = [
    "as_images",
    "as_label_rows",
    "as_positions",
    "count_examples",
    "edge_array",
    "edge_ranks",
    "known_positions",
    "label_tree_evidence",
    "node_matrices",
    "split_inputs",
    "tree_inputs_at",
]


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


def as_images(X: Any, channels: int | None) -> list[NDArray[Any]]:
    """Images of shape (height, width, channels), all finite."""
    check_sparse(X, "X")
    images = []
    for i, image in enumerate(X):
        array = as_real_numbers(image, f"image {i}")
        array = array[:, :, None] if array.ndim == 2 else array
        channels = array.shape[-1] if channels is None and array.ndim else channels
        if array.ndim != 3 or 0 in array.shape or array.shape[2] != channels:
            raise ValueError(
                f"image {i} has shape {np.shape(image)}; expected (height, width) or "
                f"(height, width, channels), with {channels} channels"
            )
        bad = first_unusable(array)
        if bad is not None:
            raise ValueError(f"image {i} has {unusable(array.ravel()[bad])}")
        images.append(array)
    if not images:
        raise ValueError("expected at least one image, found none")
    return images


def known_positions(y: Any, n: int) -> tuple[Ints, Bools]:
    """Positions as `as_positions` gives them, and which of them are known: others are None.

    In their place stands the mean of those known of the same part.
    """
    if isinstance(y, np.ndarray) and y.dtype != object:
        positions = as_positions(y, n)
        return positions, np.ones(positions.shape[:2], dtype=bool)
    rows = [list(row) for row in y]
    given = [[place is not None for place in row] for row in rows]
    if all(map(all, given)):
        positions = as_positions(rows, n)
        return positions, np.ones(positions.shape[:2], dtype=bool)
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise ValueError(f"y[{i}] has {len(row)} positions, but y[0] has {len(rows[0])}")
    known = np.array(given, dtype=bool)
    never = np.flatnonzero(~known.any(axis=0))
    if len(never):
        raise ValueError(f"part {never[0]} has no known position: in all images it is None")
    filled = [[(0, 0) if place is None else place for place in row] for row in rows]
    positions = as_positions(filled, n)
    for v in range(known.shape[1]):
        mean = positions[known[:, v], v].mean(axis=0)
        positions[~known[:, v], v] = np.rint(mean).astype(np.int64)
    return positions, known


def as_positions(y: Any, n: int) -> Ints:
    """Whole rows and columns, shape (n_examples, n_nodes, 2)."""
    array = as_floats(y, "positions")
    if array.ndim != 3 or array.shape[0] != n or array.shape[2] != 2 or array.shape[1] == 0:
        raise ValueError(f"y has shape {array.shape}; expected ({n}, n_nodes, 2)")
    if not np.isfinite(array).all():
        raise ValueError(f"y[{int(np.argwhere(~np.isfinite(array))[0][0])}] is not finite")
    return np.rint(array).astype(np.int64)


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
