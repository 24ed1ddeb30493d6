"""Whole samples by brute force: all labels of all rows, or all rankings, are listed."""

import functools
import itertools

import numpy as np

from brute import Twin, _raw
from cases import Case, random_inputs
from maxmargin.problems.measures.measure import Measure
from maxmargin.problems.measures.problem import MeasureProblem

LABEL_MEASURES = (
    "error",
    "f1",
    "fbeta",
    "prbep",
    "precision_at_k",
    "recall_at_k",
    "recall_at_precision",
)
RANKING_MEASURES = ("roc_auc", "average_precision", "precision_at_recall")


def measure_of_labels(y, z, name, beta=1.0, k=None, floor=None):
    """The measure of labels z, None where they are no output; by the words of its definition."""
    found = sum(label > 0 and other > 0 for label, other in zip(y, z, strict=True))
    chosen = sum(other > 0 for other in z)
    there = sum(label > 0 for label in y)
    recall = found / there
    precision = found / chosen if chosen else 0.0
    if name == "error":
        return sum(label == other for label, other in zip(y, z, strict=True)) / len(y)
    if name in ("f1", "fbeta"):
        square = 1.0 if name == "f1" else beta**2
        if found == 0:
            return 0.0
        return (1.0 + square) * precision * recall / (square * precision + recall)
    if name == "recall_at_precision":
        return recall if precision >= floor - 1e-9 or chosen == 0 else None
    if name == "prbep":
        return precision if chosen == there else None
    highest = min(k, there) / (there if name == "recall_at_k" else k)  # of the k best rows
    if k <= there:
        return highest * precision if chosen >= k else None
    return highest * recall if chosen <= k else None


class LabelTwin(Twin):
    n_examples = 1

    def __init__(self, X, y, measure, *, sample_weight=None, fit_intercept=False):
        self.X = _raw(X, fit_intercept)
        self.y = tuple(int(label) for label in y)
        self.n_features = self.X.shape[1]
        weights = np.ones(len(self.y)) if sample_weight is None else np.asarray(sample_weight)
        self.shares = weights / weights.sum()
        self.weighted = sample_weight is not None
        self.measure = functools.partial(
            measure_of_labels, self.y, name=measure.name, beta=measure.beta, k=measure.k,
            floor=measure.floor,
        )  # fmt: skip

    def truth(self, i):
        return self.y

    def outputs(self, i):
        labels = itertools.product((-1, 1), repeat=len(self.y))
        return [z for z in labels if self.measure(z) is not None]

    def psi(self, i, z):
        return 0.5 * sum(s * c * x for s, c, x in zip(self.shares, z, self.X, strict=True))

    def loss(self, i, z):
        if self.weighted:
            return float(self.shares[np.array(z) != self.y].sum())
        return self.measure(self.y) - self.measure(z)


class RankingTwin(Twin):
    """Outputs tell which pairs of a positive and a negative row are swapped."""

    n_examples = 1

    def __init__(self, X, y, measure, *, sample_weight=None):
        self.X = _raw(X, False)
        self.y = [int(label) for label in y]
        self.name, self.floor = measure.name, measure.floor
        self.n_features = self.X.shape[1]
        weights = np.ones(len(self.y)) if sample_weight is None else np.asarray(sample_weight)
        rows = range(len(self.y))
        self.pairs = [(i, j) for i in rows for j in rows if self.y[i] > self.y[j]]
        shares = np.array([weights[i] * weights[j] for i, j in self.pairs])
        self.shares = shares / shares.sum()

    @functools.cached_property
    def orders(self):
        """An order of the rows for each output, best row first."""
        found = {}
        for order in itertools.permutations(range(len(self.y))):
            place = {row: k for k, row in enumerate(order)}
            found.setdefault(tuple(place[i] > place[j] for i, j in self.pairs), order)
        return found

    def truth(self, i):
        return (False,) * len(self.pairs)

    def outputs(self, i):
        return list(self.orders)

    def psi(self, _, swapped):
        terms = zip(self.pairs, swapped, self.shares, strict=True)
        return sum(
            0.5 * share * (-1.0 if swap else 1.0) * (self.X[i] - self.X[j])
            for (i, j), swap, share in terms
        )

    def loss(self, i, swapped):
        if self.name == "roc_auc":
            return float(self.shares[np.array(swapped)].sum())
        order = self.orders[swapped]
        if self.name == "precision_at_recall":
            hits = itertools.accumulate(self.y[row] > 0 for row in order)
            wanted = self.floor * sum(label > 0 for label in self.y) - 1e-9
            shown, found = next((k, n) for k, n in enumerate(hits, 1) if n >= wanted)
            return 1.0 - found / shown
        hits = [k for k, row in enumerate(order) if self.y[row] > 0]
        return 1.0 - float(np.mean([(n + 1) / (k + 1) for n, k in enumerate(hits)]))


def measure_case(
    rng, *, loss, n=6, n_inputs=2, n_positive=3, layout="dense", fit_intercept=False,
    weighted=False, beta=0.5, k=2, floor=0.6,
):  # fmt: skip
    """A sample of n rows; parameters that the measure has no use for are left out."""
    X = random_inputs(rng, n, n_inputs, layout)
    y = np.full(n, -1)
    y[rng.permutation(n)[: min(n_positive, n - 1)]] = 1
    measure = Measure(
        loss,
        beta=beta if loss == "fbeta" else 1.0,
        k=min(k, n) if loss.endswith("_at_k") else None,
        floor=floor if loss in ("recall_at_precision", "precision_at_recall") else None,
    )
    options = {"sample_weight": rng.integers(1, 4, n) / 2.0} if weighted else {}
    if measure.ranks:
        return Case(MeasureProblem(X, y, measure, **options), RankingTwin(X, y, measure, **options))
    options["fit_intercept"] = fit_intercept
    return Case(MeasureProblem(X, y, measure, **options), LabelTwin(X, y, measure, **options))


def decode_labels_of_sample(case, w):
    problem = case.problem
    return [tuple(problem.predict(problem.X[0], w).tolist())]


def decode_ranking_of_sample(case, w):
    problem, twin = case
    place = {row: k for k, row in enumerate(problem.predict(problem.X[0], w).tolist())}
    return [tuple(place[i] > place[j] for i, j in twin.pairs)]
