"""Brute-force twin of classes with features of their own."""

import numpy as np

from brute import Twin, _raw


class ClassFeatureTwin(Twin):
    """Joint features ``x_f * Lambda(y)_r`` at ``f * m + r``; only allowed classes compete."""

    def __init__(self, X, y, features, *, costs=None, allowed=None, fit_intercept=False):
        self.X = _raw(X, fit_intercept)
        self.y = [int(label) for label in y]
        self.features = _raw(features, False)
        self.costs = costs
        self.allowed = set(self.y) if allowed is None else set(np.flatnonzero(allowed).tolist())
        self.n_examples = len(self.y)
        self.n_features = self.X.shape[1] * self.features.shape[1]

    def truth(self, i):
        return self.y[i]

    def outputs(self, i):
        return sorted(self.allowed | {self.y[i]})

    def psi(self, i, y):
        return np.outer(self.X[i], self.features[y]).ravel()

    def loss(self, i, y):
        if y == self.y[i]:
            return 0.0
        return 1.0 if self.costs is None else float(self.costs[self.y[i]][y])
