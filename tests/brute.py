"""Brute-force twins of the native problems: every output is listed, every definition spelled out.

A twin is built from the raw data and shares no code with the package: joint features follow the
documented layout of the weights (feature-major emissions ``w[f * K + k]`` with the constant feature
last, then K x K transitions, from-label first, then K start and K stop weights), and planes follow
the table of formulations.
"""

import functools
import itertools
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp


class Candidates(NamedTuple):
    """Every output of an example but the true one: losses and rows of dpsi."""

    losses: np.ndarray
    dpsi: np.ndarray


class Twin:
    """All outputs of all examples; a subclass says what they are."""

    n_examples: int
    n_features: int

    def truth(self, i):
        raise NotImplementedError

    def outputs(self, i):
        """Every output of example i, the truth included."""
        raise NotImplementedError

    def psi(self, i, y):
        raise NotImplementedError

    def loss(self, i, y):
        raise NotImplementedError

    def candidates(self, i):
        """Every output but the truth."""
        return [y for y in self.outputs(i) if y != self.truth(i)]

    def dpsi(self, i, y):
        return self.psi(i, self.truth(i)) - self.psi(i, y)

    @functools.cached_property
    def listed(self):
        """The `Candidates` of each example."""
        return [
            Candidates(
                np.array([self.loss(i, y) for y in self.candidates(i)]),
                np.array([self.dpsi(i, y) for y in self.candidates(i)]).reshape(
                    -1, self.n_features
                ),
            )
            for i in range(self.n_examples)
        ]

    def best_score(self, i, w):
        return max(float(w @ self.psi(i, y)) for y in self.outputs(i))


def _raw(X, fit_intercept):
    """Inputs as a dense float64 matrix, the constant feature last."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X)
    X = X.astype(np.float64)
    return np.hstack([X, np.ones((len(X), 1))]) if fit_intercept else X


class MulticlassTwin(Twin):
    def __init__(self, X, y, n_classes, *, costs=None, cost_rows=None, fit_intercept=False):
        self.X = _raw(X, fit_intercept)
        self.y = [int(label) for label in y]
        self.K = n_classes
        self.costs = costs
        self.cost_rows = self.y if cost_rows is None else cost_rows
        self.n_examples = len(self.y)
        self.n_features = self.X.shape[1] * n_classes

    def truth(self, i):
        return self.y[i]

    def outputs(self, i):
        return list(range(self.K))

    def psi(self, i, y):
        psi = np.zeros(self.n_features)
        for f, x in enumerate(self.X[i]):
            psi[f * self.K + y] = x
        return psi

    def loss(self, i, y):
        if y == self.y[i]:
            return 0.0
        return 1.0 if self.costs is None else float(self.costs[self.cost_rows[i]][y])


class ChainTwin(Twin):
    def __init__(
        self,
        tokens,
        offsets,
        labels,
        n_labels,
        *,
        loss="hamming",
        costs=None,
        cost_rows=None,
        fit_intercept=False,
        boundary_weights=False,
        constraints=None,
    ):
        X = _raw(tokens, fit_intercept)
        bounds = list(itertools.pairwise(offsets))
        self.X = [X[first:end] for first, end in bounds]
        self.Y = [tuple(int(k) for k in labels[first:end]) for first, end in bounds]
        self.K = n_labels
        self.n_inputs = X.shape[1]
        self.loss_name = loss
        self.boundary = boundary_weights
        self.constraints = constraints
        # Costs of every label at every token.
        if costs is None:
            costs = [[float(k != z) for z in range(n_labels)] for k in range(n_labels)]
        rows = labels if cost_rows is None else cost_rows
        self.costs = [[costs[row] for row in rows[first:end]] for first, end in bounds]
        self.n_examples = len(bounds)
        self.n_features = (self.n_inputs + n_labels + 2 * boundary_weights) * n_labels

    def truth(self, i):
        return self.Y[i]

    def outputs(self, i):
        labellings = itertools.product(range(self.K), repeat=len(self.Y[i]))
        return [y for y in labellings if self.allowed(y)]

    def allowed(self, y):
        if self.constraints is None:
            return True
        transitions, start, stop = self.constraints
        if not (start[y[0]] and stop[y[-1]]):
            return False
        return all(transitions[a][b] for a, b in itertools.pairwise(y))

    def psi(self, i, y):
        emissions = np.zeros((self.n_inputs, self.K))
        transitions = np.zeros((self.K, self.K))
        start, stop = np.zeros(self.K), np.zeros(self.K)
        for x, k in zip(self.X[i], y, strict=True):
            emissions[:, k] += x
        for a, b in itertools.pairwise(y):
            transitions[a, b] += 1
        start[y[0]] += 1
        stop[y[-1]] += 1
        parts = [emissions.ravel(), transitions.ravel()]
        return np.concatenate([*parts, start, stop] if self.boundary else parts)

    def loss(self, i, y):
        total = float(sum(costs[k] for costs, k in zip(self.costs[i], y, strict=True)))
        if self.loss_name == "zero_one":
            return float(total > 0)
        return total / len(y) if self.loss_name == "normalized_hamming" else total


# ----- planes -----------------------------------------------------------------------------------


def plane_terms(losses, rescaling, sqrt_loss):
    """``(b, scale)`` of candidates with these losses; their planes are ``(b, scale * dpsi)``."""
    losses = np.asarray(losses, np.float64)
    if rescaling == "none":  # an output without loss counts as the truth
        wrong = (losses > 0).astype(np.float64)
        return wrong, wrong
    delta = np.sqrt(losses) if sqrt_loss else losses
    return (delta, np.ones_like(delta)) if rescaling == "margin" else (delta, delta)


def all_planes(twin, formulation):
    """``(b, A)`` of each example: every plane but that of the truth, one per row."""
    sqrt_loss = formulation.sqrt_loss
    if sqrt_loss is None:
        sqrt_loss = formulation.slack == "l2"
    blocks = []
    for losses, dpsi in twin.listed:
        b, scales = plane_terms(losses, formulation.rescaling, sqrt_loss)
        blocks.append((b, scales[:, None] * dpsi))
    return blocks


def slacks(blocks, w):
    """``xi_i = max(0, max_y b - <a, w>)`` of each example."""
    return np.array([max(0.0, float((b - A @ w).max(initial=0.0))) for b, A in blocks])
