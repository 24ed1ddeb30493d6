"""Brute-force twins of trees of labels and of parts in images, by the documented layouts."""

import itertools

import numpy as np

from brute import Twin
from cases import Case
from maxmargin.problems.tree.grid_parts import (
    GridLayout,
    GridPartsProblem,
    find_parts,
    pack_maps,
    rank_parts,
)
from maxmargin.problems.tree.labels import (
    LabelLayout,
    LabelTreeProblem,
    decode_label_trees,
    pack_columns,
    rank_label_trees,
    root_tree,
)


class _TreeTwin(Twin):
    #: Nodes whose label is known, (n_examples, n_nodes); all where it is None.
    known = None

    def truth(self, i):
        return tuple(int(k) for k in self.Y[i])

    def loss(self, i, y):
        known = [True] * len(y) if self.known is None else self.known[i]
        wrong = sum(a != b for a, b, k in zip(self.truth(i), y, known, strict=True) if k)
        if self.loss_name == "deviation":
            width = self.images[i].shape[1]
            ends = zip(self.truth(i), y, strict=True)
            far = [np.hypot(a // width - b // width, a % width - b % width) for a, b in ends]
            far = [d if k else 0.0 for d, k in zip(far, known, strict=True)]
            return 100.0 * float(np.mean(far)) / self.sizes[i]
        if self.loss_name == "zero_one":
            return float(wrong > 0)
        return wrong / len(y) if self.loss_name == "normalized_hamming" else float(wrong)


class LabelTreeTwin(_TreeTwin):
    """``nodes[v]`` (n, F_v), ``edges[v]`` (n, F_e) for v with a parent; labels 0..K_v - 1."""

    def __init__(self, nodes, edges, Y, parent, n_labels, loss, costs=None):
        self.nodes, self.edges, self.Y = nodes, edges, Y
        self.parent, self.n_labels, self.loss_name = parent, n_labels, loss
        self.costs = costs  # of example i, node v and label k, if they are not 1
        self.n_examples = len(Y)
        self.n_features = len(self.psi(0, self.truth(0)))

    def loss(self, i, y):
        if self.costs is None:
            return super().loss(i, y)
        total = float(sum(self.costs[i][v][k] for v, k in enumerate(y)))
        if self.loss_name == "zero_one":
            return float(total > 0.0)
        return total / len(y) if self.loss_name == "normalized_hamming" else total

    def outputs(self, i):
        return list(itertools.product(*(range(K) for K in self.n_labels)))

    def psi(self, i, y):
        blocks = []
        for v, K in enumerate(self.n_labels):
            table = np.zeros((self.nodes[v].shape[1], K))
            table[:, y[v]] = self.nodes[v][i]
            blocks.append(table.ravel())
        for v, p in enumerate(self.parent):
            if p >= 0:
                table = np.zeros((self.edges[v].shape[1], self.n_labels[p], self.n_labels[v]))
                table[:, y[p], y[v]] = self.edges[v][i]
                blocks.append(table.ravel())
        return np.concatenate(blocks)


class GridPartsTwin(_TreeTwin):
    """Images (height, width, channels); positions are pixel numbers, row by row."""

    def __init__(self, images, Y, parent, patch, anchors, spreads, sizes, loss):
        self.images, self.Y, self.parent, self.patch = images, Y, parent, patch
        self.anchors, self.spreads, self.sizes, self.loss_name = anchors, spreads, sizes, loss
        self.n_examples = len(Y)
        self.n_features = len(self.psi(0, self.truth(0)))

    def outputs(self, i):
        height, width, _ = self.images[i].shape
        return list(itertools.product(range(height * width), repeat=len(self.parent)))

    def psi(self, i, y):
        image, patch = self.images[i], self.patch
        height, width, channels = image.shape
        blocks = []
        for label in y:
            template = np.zeros((channels, patch, patch))
            for dy in range(patch):
                for dx in range(patch):
                    row = np.clip(label // width + dy - patch // 2, 0, height - 1)
                    column = np.clip(label % width + dx - patch // 2, 0, width - 1)
                    template[:, dy, dx] = image[row, column]
            blocks.append(template.ravel())
        for v, p in enumerate(self.parent):
            if p >= 0:
                offset = np.array([y[v] // width - y[p] // width, y[v] % width - y[p] % width])
                u = (offset - self.anchors[v]) / self.spreads[v]
                blocks.append(np.array([u[0], u[0] ** 2, u[1], u[1] ** 2]))
        return np.concatenate(blocks)


# ----- random problems ---------------------------------------------------------------------------


def random_tree(rng, V):
    """Parents and order of a random tree whose nodes come in any order; the root is node 0."""
    names = np.concatenate([[0], 1 + rng.permutation(V - 1)])
    edges = [(int(names[rng.integers(0, v)]), int(names[v])) for v in range(1, V)]
    return root_tree(V, [edges[k] for k in rng.permutation(V - 1)])


def node_costs(rng, Y, n_labels, kind, own_rows):
    """Options with costs by true label, or with rows of every node, and the twin's own."""
    n, V = Y.shape
    if own_rows:
        truths = Y.ravel()
        rows = np.arange(n * V).reshape(n, V)
    else:
        truths = np.concatenate([np.arange(K) for K in n_labels])
        rows = Y + np.cumsum(n_labels) - n_labels
    costs = rng.uniform(0.2, 3.0, (len(truths), n_labels.max()))
    if kind == "free":
        costs *= rng.random(costs.shape) < 0.6
        costs[rows[0, np.argmax(n_labels)]] = 0.0  # whatever was drawn
    costs[np.arange(len(truths)), truths] = 0.0
    options = {"costs": costs, "cost_rows": rows if own_rows else None}
    return options, [[costs[rows[i, v]] for v in range(V)] for i in range(n)]


def label_case(rng, *, V=3, n=3, loss="hamming", extra_edge_inputs=0, costs=None, own_rows=False):
    parent, order = random_tree(rng, V)
    n_labels = rng.integers(1, 4, V)
    n_labels[rng.integers(V)] = 3
    n_inputs = rng.integers(1, 3, V)
    nodes = [rng.normal(size=(n, F)) * (rng.random((n, F)) < 0.8) for F in n_inputs]
    F_e = 1 + extra_edge_inputs
    edges = [
        np.hstack([np.ones((n, 1)), rng.normal(size=(n, extra_edge_inputs))]) for _ in range(V)
    ]
    Y = np.stack([rng.integers(0, K, n) for K in n_labels], axis=1)
    layout = LabelLayout(parent, order, n_labels, n_inputs, F_e)
    rows = pack_columns(nodes, [edges[v] for v in range(V) if parent[v] >= 0])
    options, of_nodes = {}, None
    if costs is not None:
        options, of_nodes = node_costs(rng, Y, n_labels, costs, own_rows)
    problem = LabelTreeProblem(rows, Y, layout, loss=loss, **options)
    return Case(problem, LabelTreeTwin(nodes, edges, Y, parent, n_labels, loss, of_nodes))


def grid_case(rng, *, V=2, loss="deviation", channels=1, patch=3, n=3, in_part=False):
    parent, order = random_tree(rng, V)
    largest = {1: 5, 2: 4, 3: 3}[V]
    images = [
        rng.normal(size=(*rng.integers(1, largest, 2), channels)).astype(np.float64)
        for _ in range(n)
    ]
    positions = np.array(
        [
            [[rng.integers(0, side) for side in image.shape[:2]] for _ in range(V)]
            for image in images
        ]
    )
    anchors, spreads = rng.normal(size=(V, 2)), rng.uniform(0.5, 2.0, (V, 2))
    sizes = rng.uniform(2.0, 30.0, n)
    layout = GridLayout(parent, order, patch, channels, anchors, spreads)
    known = rng.random((n, V)) < 0.6 if in_part else None
    problem = GridPartsProblem(
        pack_maps(images, patch), positions, layout, sizes=sizes, loss=loss, known=known
    )
    labels = [
        [y * im.shape[1] + x for y, x in spot] for im, spot in zip(images, positions, strict=True)
    ]
    twin = GridPartsTwin(images, labels, parent, patch, anchors, spreads, sizes, loss)
    twin.known = known
    return Case(problem, twin)


def decode_labels(case, w):
    found = decode_label_trees(case.problem.rows, case.problem.layout, w)
    return [tuple(y.tolist()) for y in found]


def rank_labels(case, w, k):
    ranked = rank_label_trees(case.problem.rows, case.problem.layout, w, k)
    return [list(zip(map(tuple, ys.tolist()), scores, strict=True)) for ys, scores in ranked]


def as_pixels(case, i, positions):
    """Pixel numbers of (row, column) positions."""
    width = case.problem.maps.grids[i, 1]
    return tuple((positions[:, 0] * width + positions[:, 1]).tolist())


def decode_positions(case, w):
    found = find_parts(case.problem.maps, case.problem.layout, w)
    return [as_pixels(case, i, positions) for i, positions in enumerate(found)]


def rank_positions(case, w, k):
    ranked = rank_parts(case.problem.maps, case.problem.layout, w, k)
    return [
        [(as_pixels(case, i, spots), score) for spots, score in zip(*answers, strict=True)]
        for i, answers in enumerate(ranked)
    ]
