"""Brute-force twin of grades by thresholds: all decisions, whether the score is above each."""

import itertools

import numpy as np

from brute import Twin, _raw
from cases import Case, random_inputs
from maxmargin.problems.ranking.thresholds import ThresholdProblem


class ThresholdTwin(Twin):
    """Outputs are tuples of 1 and -1; weights are those of the inputs, then the thresholds."""

    def __init__(self, X, grades, n_grades):
        self.X, self.grades, self.R = _raw(X, False), [int(g) for g in grades], n_grades
        self.n_examples = len(self.grades)
        self.n_features = self.X.shape[1] + n_grades - 1

    def truth(self, i):
        return tuple(1 if self.grades[i] > k else -1 for k in range(self.R - 1))

    def outputs(self, i):
        return list(itertools.product((1, -1), repeat=self.R - 1))

    def psi(self, i, y):
        return np.concatenate([self.X[i] * sum(y), [-sign for sign in y]]) / 2

    def loss(self, i, y):
        return float(sum(a != b for a, b in zip(self.truth(i), y, strict=True)))


def threshold_case(rng, *, loss="absolute", n=6, n_inputs=3, n_grades=4, layout="dense"):
    X = random_inputs(rng, n, n_inputs, layout)
    grades = rng.integers(0, n_grades, n)
    return Case(ThresholdProblem(X, grades, n_grades), ThresholdTwin(X, grades, n_grades))
