"""Labels of chains and of trees, and parts at positions of images."""

from functools import partial
from itertools import pairwise, product

import numpy as np
import scipy.sparse as sp

import maxmargin as mm

from .class_tasks import random_inputs, with_constant
from .listing import Example, Task

LOSSES = ("hamming", "normalized_hamming", "zero_one")


def count_loss(name, wrong, length):
    if name == "zero_one":
        return float(wrong > 0)
    return wrong / length if name == "normalized_hamming" else float(wrong)


def n_different(a, b):
    return sum(x != y for x, y in zip(a, b, strict=True))


def random_rule(rng, labels):
    """What may follow what: the parameter, and a function of whole labellings."""
    kind = str(rng.choice(["free", "free", "bio", "pairs", "mask"]))
    if kind == "bio":
        return "bio", lambda ys: all(
            y != "I-X" or (t > 0 and ys[t - 1] in ("B-X", "I-X")) for t, y in enumerate(ys)
        )
    barred = {pair for pair in product(labels, repeat=2) if rng.random() < 0.25}
    if kind == "free" or not barred:
        return None, lambda ys: True
    allowed = np.array([[(a, b) not in barred for b in labels] for a in labels])
    rule = sorted(barred) if kind == "pairs" else allowed
    return rule, lambda ys: not any(pair in barred for pair in pairwise(ys))


def chains(rng):
    """Sequences with constraints or without, of dense or sparse tokens."""
    labels = ["B-X", "I-X", "O"][: int(rng.integers(2, 4))]
    rule, is_allowed = random_rule(rng, labels)
    lengths = rng.integers(1, 5, int(rng.integers(1, 7)))
    listed = [[ys for ys in product(labels, repeat=n) if is_allowed(ys)] for n in lengths]
    if not all(listed):
        return chains(rng)
    Y = [options[int(rng.integers(len(options)))] for options in listed]
    if {y for ys in Y for y in ys} != set(labels):
        return chains(rng)
    K, d = len(labels), int(rng.integers(1, 4))
    loss = str(rng.choice(LOSSES))
    intercept, boundary = rng.random() < 0.4, rng.random() < 0.4
    tokens = [random_inputs(rng, n, d) for n in lengths]

    def psi(inputs, ys):
        codes = [labels.index(y) for y in ys]
        emissions, transitions = np.zeros((inputs.shape[1], K)), np.zeros((K, K))
        ends = np.zeros((2, K))
        for x, k in zip(inputs, codes, strict=True):
            emissions[:, k] += x
        for a, b in pairwise(codes):
            transitions[a, b] += 1.0
        ends[0, codes[0]] = ends[1, codes[-1]] = 1.0
        parts = [emissions, transitions] + ([ends] if boundary else [])
        return np.concatenate([part.ravel() for part in parts])

    def examples(model):
        assert model.classes_.tolist() == labels
        return [
            Example.of(
                y,
                partial(psi, with_constant(x, intercept)),
                lambda ys, y=y: count_loss(loss, n_different(ys, y), len(y)),
                options,
            )
            for x, y, options in zip(tokens, Y, listed, strict=True)
        ]

    X = [sp.csr_matrix(x) for x in tokens] if rng.random() < 0.4 else tokens
    options = {"fit_intercept": bool(intercept), "boundary_weights": bool(boundary)}
    return Task(
        "chains",
        partial(mm.SequenceTagger, loss=loss, constraints=rule, **options),
        X,
        [list(ys) for ys in Y],
        examples,
        lambda ys: tuple(np.asarray(ys).tolist()),
        len(Y),
        refusals=[(X[:-1], Y), (X, [ys[:-1] for ys in Y]), (X, [["O"] * len(ys) for ys in Y])],
    )


def random_tree(rng, V):
    """Undirected edges of a random tree, in any order and direction."""
    edges = [(v, int(rng.integers(v))) for v in range(1, V)]
    return [edges[k] if rng.random() < 0.5 else edges[k][::-1] for k in rng.permutation(V - 1)]


def label_trees(rng):
    """Trees of labels: own label sets and numbers of features for each node, features of edges."""
    V, n = int(rng.integers(2, 5)), int(rng.integers(2, 7))
    codes = np.stack([rng.integers(0, rng.integers(1, 4), n) for _ in range(V)], axis=1)
    codes[:2, 0] = 0, 1
    sets = [sorted(set(codes[:, v].tolist())) for v in range(V)]
    edges = random_tree(rng, V)
    has_edge_features = rng.random() < 0.4
    edge_features = rng.normal(size=(n, V - 1, int(rng.integers(1, 3))))
    intercept = bool(rng.random() < 0.5)
    loss = str(rng.choice(LOSSES))
    matrices = [random_inputs(rng, n, int(rng.integers(1, 4))) for _ in range(V)]
    learned = not has_edge_features and rng.random() < 0.3

    def psi(model, i, ys):
        nodes, tables = [], []
        places = [labels.index(y) for labels, y in zip(sets, ys, strict=True)]
        for v, matrix in enumerate(matrices):
            table = np.zeros((matrix.shape[1] + intercept, len(sets[v])))
            table[:, places[v]] = with_constant(matrix, intercept)[i]
            nodes.append(table.ravel())
        for parent, v in sorted(model.tree_, key=lambda edge: edge[1]):
            rank = [set(edge) for edge in edges].index({parent, v}) if has_edge_features else 0
            inputs = np.append(1.0, edge_features[i, rank] if has_edge_features else [])
            table = np.zeros((len(inputs), len(sets[parent]), len(sets[v])))
            table[:, places[parent], places[v]] = inputs
            tables.append(table.ravel())
        return np.concatenate(nodes + tables)

    def examples(model):
        assert [labels.tolist() for labels in model.classes_] == sets
        return [
            Example.of(
                tuple(y),
                partial(psi, model, i),
                lambda ys, y=y: count_loss(loss, n_different(ys, y), V),
                list(product(*sets)),
            )
            for i, y in enumerate(codes.tolist())
        ]

    X = [sp.csr_matrix(matrix) if rng.random() < 0.3 else matrix for matrix in matrices]
    X = {"nodes": X, "edges": edge_features} if has_edge_features else X
    options = {"loss": loss, "fit_intercept": intercept, "tree": None if learned else edges}
    return Task(
        "label trees",
        partial(mm.TreeLabeler, **options),
        X,
        codes,
        examples,
        lambda ys: tuple(np.asarray(ys).tolist()),
        n,
        refusals=[(X, codes[:-1]), (X, np.zeros_like(codes))],
    )


def parts(rng):
    """Parts in small images of several sizes."""
    V, n = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    patch, channels = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    most = 9 if V < 3 else 6
    grids = []
    while len(grids) < n:
        grid = (int(rng.integers(1, 4)), int(rng.integers(1, 5)))
        if 1 < grid[0] * grid[1] <= most:
            grids.append(grid)
    images = [np.round(rng.normal(size=(*grid, channels)), 1) for grid in grids]
    Y = np.array([[[rng.integers(a), rng.integers(b)] for _ in range(V)] for a, b in grids])
    edges = random_tree(rng, V)
    loss = str(rng.choice(["deviation", *LOSSES]))
    size = float(rng.choice([5.0, 50.0]))

    def psi(model, i, ys):
        before, after = patch // 2, patch - 1 - patch // 2
        margins = ((before, after), (before, after), (0, 0))
        padded = np.pad(images[i], margins, mode="edge")
        pieces = [
            padded[row : row + patch, column : column + patch].transpose(2, 0, 1).ravel()
            for row, column in ys
        ]
        for parent, v in sorted(model.tree_, key=lambda edge: edge[1]):
            offsets = Y[:, v] - Y[:, parent]
            u = np.subtract(ys[v], ys[parent]) - offsets.mean(axis=0)
            u = u / np.maximum(1.0, offsets.std(axis=0))
            pieces.append(np.stack([u, u**2], axis=1).ravel())
        return np.concatenate(pieces)

    def distance(ys, y):
        far = np.sqrt(np.sum((np.array(ys) - np.array(y)) ** 2, axis=1))
        return 100.0 * far.mean() / size

    def loss_of(y, ys):
        return distance(ys, y) if loss == "deviation" else count_loss(loss, n_different(ys, y), V)

    def examples(model):
        listed = []
        for i, y in enumerate(Y.tolist()):
            truth = tuple(map(tuple, y))
            pixels = list(product(*map(range, grids[i])))
            every = list(product(pixels, repeat=V))
            listed.append(Example.of(truth, partial(psi, model, i), partial(loss_of, truth), every))
        return listed

    options = {"patch": patch, "loss": loss, "size": size, "tree": edges}
    if rng.random() < 0.3:
        options["tree"] = None
    return Task(
        "parts",
        partial(mm.PartLocator, **options),
        images,
        Y,
        examples,
        lambda ys: tuple(map(tuple, np.asarray(ys).tolist())),
        n,
        refusals=[(images, Y[:-1]), (images, Y + 9), (images, Y * np.nan)],
    )
