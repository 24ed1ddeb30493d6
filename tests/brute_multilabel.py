"""Brute-force twin of sets of labels: every set is listed."""

import itertools

import numpy as np

from brute import Twin, _raw
from cases import Case, random_inputs
from maxmargin.engine.rows import make_rows
from maxmargin.problems.multilabel.problem import MultilabelProblem, predict_labels


class MultilabelTwin(Twin):
    """Outputs are tuples of 0 and 1; weights ``w[f * L + l]``, then one for each edge."""

    def __init__(self, X, Y, edges, *, loss, fit_intercept, costs=None):
        self.X = _raw(X, fit_intercept)
        self.Y = [tuple(int(on) for on in y) for y in Y]
        self.L, self.edges, self.loss_name = len(self.Y[0]), list(edges), loss
        self.costs = costs  # of a label that is missed, and of one that is added
        self.n_examples = len(self.Y)
        self.n_features = self.X.shape[1] * self.L + len(self.edges)

    def truth(self, i):
        return self.Y[i]

    def outputs(self, i):
        return list(itertools.product((0, 1), repeat=self.L))

    def psi(self, i, y):
        of_labels = np.outer(self.X[i], y).ravel()
        return np.concatenate([of_labels, [y[a] * y[b] for a, b in self.edges]])

    def loss(self, i, y):
        wrong = sum(a != b for a, b in zip(self.Y[i], y, strict=True))
        if self.costs is not None:
            pairs = enumerate(zip(self.Y[i], y, strict=True))
            return float(sum(self.costs[label][b] for label, (a, b) in pairs if a != b))
        if self.loss_name == "zero_one":
            return float(wrong > 0)
        if self.loss_name == "f1":
            both = sum(a and b for a, b in zip(self.Y[i], y, strict=True))
            total = sum(self.Y[i]) + sum(y)
            return 1.0 - 2.0 * both / total if total else 0.0
        return float(wrong)


def random_edges(rng, kind, L):
    """Edges of a kind, numbers of labels in any order; a forest lacks some edges of a tree."""
    labels = rng.permutation(L).tolist()
    if kind == "cycle":
        return [tuple(sorted(pair)) for pair in itertools.combinations(labels, 2)]
    tree = [(labels[rng.integers(k)], labels[k]) for k in range(1, L)]
    tree = [tuple(sorted(edge)) for edge in tree]
    return {"none": [], "tree": tree, "forest": tree[::2]}[kind]


def multilabel_case(
    rng,
    *,
    n=5,
    n_inputs=2,
    n_labels=4,
    kind="tree",
    loss="hamming",
    fit_intercept=False,
    layout="dense",
    costs=None,
):
    X = random_inputs(rng, n, n_inputs, layout)
    Y = rng.random((n, n_labels)) < rng.choice([0.2, 0.5, 0.8], (n, 1))
    edges = random_edges(rng, kind, n_labels)
    options = {"loss": loss, "fit_intercept": fit_intercept}
    if costs is not None:
        options["costs"] = rng.uniform(0.2, 3.0, (n_labels, 2))
    if costs == "whole":
        options["costs"] = np.ceil(options["costs"])
    if costs == "free":
        options["costs"] *= rng.random((n_labels, 2)) < 0.7
    return Case(MultilabelProblem(X, Y, edges, **options), MultilabelTwin(X, Y, edges, **options))


def decode_label_sets(case, w):
    problem, twin = case
    rows = make_rows(twin.X)  # with the constant feature as one of its own
    found = predict_labels(rows, problem.graph, w)
    return [tuple(int(on) for on in y) for y in found]
