"""Twins of declared searches: candidates, matchings, 0/1 programs, trees of factors, kernels."""

import itertools

import numpy as np
import scipy.sparse as sp
from scipy.optimize import LinearConstraint

from brute import Twin
from cases import Case
from maxmargin.problems.general.assignment import AssignmentProblem
from maxmargin.problems.general.candidates import CandidateProblem
from maxmargin.problems.general.factor_tree import Factors, FactorTree
from maxmargin.problems.general.joint_kernel import JointKernelProblem
from maxmargin.problems.general.linear_program import LinearProgramProblem


class ListedTwin(Twin):
    """Outputs that are tuples, listed with their features; losses count wrong places."""

    def __init__(self, truths, listed_outputs, features, loss):
        self.truths = [tuple(int(k) for k in y) for y in truths]
        self.all_outputs, self.features, self.loss_name = listed_outputs, features, loss
        self.n_examples = len(truths)
        self.n_features = len(features(0, self.truths[0]))

    def truth(self, i):
        return self.truths[i]

    def outputs(self, i):
        return self.all_outputs[i]

    def psi(self, i, y):
        return self.features(i, y)

    def loss(self, i, y):
        wrong = sum(a != b for a, b in zip(self.truths[i], y, strict=True))
        if self.loss_name == "zero_one":
            return float(wrong > 0)
        return wrong / len(y) if self.loss_name == "normalized_hamming" else float(wrong)


class CandidateTwin(Twin):
    def __init__(self, X, Y):
        self.X, self.Y = X, Y
        self.n_examples, self.n_features = len(X), X[0].shape[1]

    def truth(self, i):
        y = self.Y[i]
        return y if isinstance(y, int) else min(range(len(y)), key=lambda k: y[k])

    def outputs(self, i):
        return list(range(len(self.X[i])))

    def psi(self, i, y):
        return self.X[i][y]

    def loss(self, i, y):
        truth = self.Y[i]
        return float(y != truth) if isinstance(truth, int) else truth[y] - min(truth)


def candidate_case(rng, *, loss="zero_one", n=4, most=4, n_inputs=3, sparse=False):
    X = [rng.normal(size=(rng.integers(1, most + 1), n_inputs)) for _ in range(n)]
    X = [x * (rng.random(x.shape) < 0.6) if sparse else x for x in X]
    Y = [int(rng.integers(len(x))) for x in X]
    if loss == "costs":  # whole numbers: some candidates cost the same
        Y = [rng.integers(0, 4, len(x)).astype(float).tolist() for x in X]
    given = [sp.csr_matrix(x) if sparse else x for x in X]
    return Case(CandidateProblem().bind(given, Y), CandidateTwin(X, Y))


def decode_candidates(case, w):
    return [case.problem.predict(x, w) for x in case.problem.X]


def matchings(n_left, n_right, partial):
    """Every matching: the partner of each left item, -1 for none."""
    every = itertools.product(range(-1, n_right), repeat=n_left)
    for y in every:
        used = [j for j in y if j >= 0]
        if len(set(used)) == len(used) and (partial or len(used) == min(n_left, n_right)):
            yield y


def matching_case(
    rng, *, loss="hamming", sizes=((2, 3), (3, 2), (1, 1), (3, 3)), n_inputs=2, **options
):
    partial = options.get("allow_unmatched", False)
    X = [rng.normal(size=(a, b, n_inputs)) for a, b in sizes]
    listed = [list(matchings(a, b, partial)) for a, b in sizes]
    Y = [np.array(ys[rng.integers(len(ys))]) for ys in listed]

    def features(i, y):
        psi = sum((X[i][a, b] for a, b in enumerate(y) if b >= 0), np.zeros(n_inputs))
        n_pairs = sum(b >= 0 for b in y)
        return np.append(psi, n_pairs) if options.get("fit_intercept") else psi

    problem = AssignmentProblem(loss, **options).bind(X, Y)
    return Case(problem, ListedTwin(Y, listed, features, loss))


def program_case(rng, *, loss="hamming", n=3, n_variables=4, n_inputs=2, sparse=False):
    X, Y, listed = [], [], []
    for _ in range(n):
        features = rng.normal(size=(n_variables, n_inputs))
        A = rng.integers(-1, 3, (2, n_variables)).astype(float)
        upper = rng.integers(0, 3, 2).astype(float)  # 0 for all variables is always allowed
        every = itertools.product((0, 1), repeat=n_variables)
        listed.append([y for y in every if (A @ np.array(y) <= upper).all()])
        Y.append(np.array(listed[-1][rng.integers(len(listed[-1]))]))
        given = sp.csr_matrix(features) if sparse else features
        X.append((given, LinearConstraint(A, -np.inf, upper)))

    def features_of(i, y):
        features = X[i][0].toarray() if sparse else X[i][0]
        return sum((row for row, on in zip(features, y, strict=True) if on), np.zeros(n_inputs))

    return Case(LinearProgramProblem(loss).bind(X, Y), ListedTwin(Y, listed, features_of, loss))


def factor_case(rng, *, loss="hamming", n=3, n_variables=3, most=3, n_inputs=2, forest=False):
    X, Y, listed = [], [], []
    for _ in range(n):
        sizes = rng.integers(1, most + 1, n_variables)
        pairs = [
            (int(rng.integers(v)), v) if rng.random() < 0.5 else (v, int(rng.integers(v)))
            for v in range(1, n_variables)
            if not forest or rng.random() < 0.5
        ]
        X.append(
            Factors(
                [rng.normal(size=(K, n_inputs)) for K in sizes],
                pairs,
                [rng.normal(size=(sizes[u], sizes[v], n_inputs)) for u, v in pairs],
            )
        )
        listed.append(list(itertools.product(*(range(K) for K in sizes))))
        Y.append(np.array(listed[-1][rng.integers(len(listed[-1]))]))

    def features(i, y):
        singles = sum(X[i].variables[v][k] for v, k in enumerate(y))
        ties = zip(X[i].pairs, X[i].tables, strict=True)
        return singles + sum((table[y[u], y[v]] for (u, v), table in ties), np.zeros(n_inputs))

    return Case(FactorTree(loss).bind(X, Y), ListedTwin(Y, listed, features, loss))


def decode_slots(case, w):
    return [tuple(case.problem.predict(x, w).tolist()) for x in case.problem.X]


class KernelLabels(JointKernelProblem):
    """Labels of the rows of x, by a kernel of Gaussians of the rows with equal labels."""

    n_labels = 2
    loss_name = "hamming"

    def outputs(self, x):
        return list(itertools.product(range(self.n_labels), repeat=len(x)))

    def joint_kernel(self, x, y, x2, y2):
        pairs = itertools.product(range(len(x)), range(len(x2)))
        return sum(np.exp(-np.sum((x[s] - x2[t]) ** 2)) for s, t in pairs if y[s] == y2[t])

    def loss(self, y, y_hat):
        wrong = sum(a != b for a, b in zip(y, y_hat, strict=True))
        return float(wrong > 0) if self.loss_name == "zero_one" else float(wrong)


class FlatKernelLabels(KernelLabels):
    """The same with a kernel that has a feature for every point besides, so that all of them count.

    A factor is then unique, and the features of a twin are those of the problem.
    """

    def joint_kernel(self, x, y, x2, y2):
        same = x is x2 and y == y2
        return super().joint_kernel(x, y, x2, y2) + 0.1 * float(same)


def joint_kernel_case(rng, *, loss="hamming", lengths=(1, 2, 2), n_labels=2, n_inputs=2):
    X = [rng.normal(size=(length, n_inputs)) for length in lengths]
    problem = FlatKernelLabels()
    problem.n_labels, problem.loss_name = n_labels, loss
    listed = [problem.outputs(x) for x in X]
    Y = [ys[rng.integers(len(ys))] for ys in listed]
    points = [(i, y) for i, ys in enumerate(listed) for y in ys]
    problem.max_points = len(points)
    bound = problem.bind(X, Y)
    for i, y in points:  # all at once, so that any weights have a meaning
        bound._space.place(bound.joint_kernels, i, y)
    gram = [[bound.joint_kernel(X[i], y, X[j], z) for j, z in points] for i, y in points]
    rows = dict(zip(points, np.linalg.cholesky(np.array(gram)), strict=True))
    return Case(bound, ListedTwin(Y, listed, lambda i, y: rows[i, tuple(y)], loss))


def decode_joint_kernel(case, w):
    return [case.problem.predict(x, w) for x in case.problem.X]
