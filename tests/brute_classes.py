"""Brute-force twins of classes with features of their own, and of classes in plain Python."""

import numpy as np
import scipy.sparse as sp

from brute import MulticlassTwin, Twin, _raw
from cases import Case, random_costs, random_inputs
from maxmargin.core.cutting_planes import Planes
from maxmargin.core.problem import Problem
from maxmargin.problems.classes.class_features import ClassFeatureProblem


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


def class_feature_case(
    rng,
    *,
    loss="zero_one",
    n=6,
    n_inputs=3,
    K=4,
    m=3,
    layout="dense",
    fit_intercept=False,
):
    """Random sparse class features; two classes may have the same, and one may not compete."""
    X = random_inputs(rng, n, n_inputs, layout)
    y = rng.integers(0, K, n)
    features = rng.normal(size=(K, m)) * (rng.random((K, m)) < 0.6)
    options = {
        "costs": random_costs(rng, K) if loss == "costs" else None,
        "allowed": None if rng.random() < 0.5 else rng.random(K) < 0.8,
        "fit_intercept": fit_intercept,
    }
    problem = ClassFeatureProblem(X, y, sp.csr_matrix(features), **options)
    return Case(problem, ClassFeatureTwin(X, y, features, **options))


# ----- classes in plain Python -------------------------------------------------------------------


FORMS = ("dense", "sparse", "dict", "rows")


class PythonClasses(Problem):
    """Classes as a user would write them, with joint features in any form.

    All outputs share one feature, the last. The form "rows" has its own oracle, whose rows
    are all entries of both psi: those of the truth cancel only when added up.
    """

    rescalings = ("margin", "slack", "none")

    def __init__(self, costs, n_inputs, form="dict"):
        self.costs, self.form = np.asarray(costs, float), form
        self.n_features = n_inputs * len(costs) + 1

    def psi(self, x, y):
        features = np.zeros(self.n_features)
        features[np.arange(len(x)) * len(self.costs) + y] = x
        features[-1] = 1.0
        return features

    def joint_feature(self, x, y):
        features = self.psi(x, y)
        if self.form == "sparse":
            return sp.csr_matrix(features)
        if self.form == "dict":
            return {k: features[k] for k in np.flatnonzero(features)}
        return features

    def loss(self, y, y_hat):
        return float(self.costs[y][y_hat])

    def scores(self, x, w):
        return np.asarray(x) @ w[:-1].reshape(len(x), len(self.costs))

    def most_violated(self, x, y, w, rescaling):
        scores, losses = self.scores(x, w), self.costs[y]
        margins = scores[y] - scores
        values = {"none": 1 - margins, "margin": losses - margins, "slack": losses * (1 - margins)}
        values[rescaling][y] = 0.0
        return int(np.argmax(values[rescaling]))

    def predict(self, x, w):
        return int(np.argmax(self.scores(x, w)))

    def oracle(self, indices, w, rescaling="margin", sqrt_loss=False):
        if self.form != "rows" or sqrt_loss:
            return super().oracle(indices, w, rescaling, sqrt_loss)
        values, losses = [], []
        for i in indices:
            x, y = self.X[i], self.Y[i]
            z = self.most_violated(x, y, w, rescaling)
            values += [self.psi(x, y), -self.psi(x, z)]
            losses.append(self.loss(y, z))
        columns = np.tile(np.arange(self.n_features, dtype=np.int32), 2 * len(indices))
        indptr = 2 * self.n_features * np.arange(len(indices) + 1)
        return Planes(indptr, columns, np.concatenate([*values, []]), np.array(losses))


class PythonClassTwin(MulticlassTwin):
    """Classes with one feature more, which all outputs share."""

    def __init__(self, X, y, costs):
        super().__init__(X, y, len(costs), costs=costs)
        self.n_features += 1

    def psi(self, i, y):
        psi = np.zeros(self.n_features)
        psi[:-1].reshape(-1, self.K)[:, y] = self.X[i]
        psi[-1] = 1.0
        return psi


def python_case(rng, *, loss="costs", form="dict", n=5, n_inputs=3, K=3):
    X, y = random_inputs(rng, n, n_inputs), rng.integers(0, K, n).tolist()
    costs = random_costs(rng, K) if loss == "costs" else 1.0 - np.eye(K)
    problem = PythonClasses(costs, n_inputs, form).bind(list(X), y)
    return Case(problem, PythonClassTwin(X, y, costs))
