"""Measures of whole samples: labels or a ranking of all rows are one output."""

import math
from functools import partial
from itertools import permutations, product

import numpy as np
import scipy.sparse as sp

import maxmargin as mm

from .class_tasks import random_inputs, two_classes_or_more, with_constant
from .listing import Example
from .rank_tasks import OfDocuments, order_key, precision_loss, row_weights

OF_LABELS = (
    "error",
    "f1",
    "fbeta",
    "prbep",
    "precision_at_k",
    "recall_at_k",
    "recall_at_precision",
)
OF_RANKINGS = ("roc_auc", "average_precision", "precision_at_recall")


def label_example(measure, X, y, shares, beta, k, floor):
    """All labels that the measure allows: by their number of positive ones, or their precision."""
    n, P = len(y), sum(label > 0 for label in y)

    def psi(labels):
        return (shares * np.asarray(labels)) @ X / 2.0

    def table(labels):
        a = sum(z > 0 and t > 0 for z, t in zip(labels, y, strict=True))
        return a, sum(z > 0 for z in labels) - a

    def loss(labels):
        a, b = table(labels)
        if measure == "error":
            wrong = np.array([z != t for z, t in zip(labels, y, strict=True)])
            return float(shares @ wrong)
        if measure in ("f1", "fbeta"):
            square = 1.0 if measure == "f1" else beta**2
            return 1.0 - (1.0 + square) * a / (a + b + square * P)
        if measure in ("recall_at_precision", "prbep"):
            return 1.0 - a / P
        highest = min(k, P) / (P if measure == "recall_at_k" else k)
        return highest * (1.0 - (a / (a + b) if k <= P else a / P))

    def allowed(labels):
        a, b = table(labels)
        if measure == "prbep":
            return a + b == P
        if measure in ("precision_at_k", "recall_at_k"):
            return a + b >= k if k <= P else a + b <= k
        return measure != "recall_at_precision" or a + b == 0 or a / (a + b) >= floor - 1e-12

    every = list(product((1, -1), repeat=n))
    outputs = [labels for labels in every if allowed(labels)]
    return Example(
        psi(y),
        np.array([psi(labels) for labels in outputs]),
        np.array([max(loss(labels), 0.0) for labels in outputs]),
        {labels: psi(labels)[None, :] for labels in every},
    )


def ranking_example(measure, X, y, weights, floor):
    """All orders of the rows."""
    above = [i for i, label in enumerate(y) if label > 0]
    below = [i for i, label in enumerate(y) if label < 0]
    totals = weights[above].sum(), weights[below].sum()
    parts = {(i, j): weights[i] * weights[j] / totals[0] / totals[1] for i in above for j in below}

    def swapped(order):
        return {pair: order.index(pair[0]) > order.index(pair[1]) for pair in parts}

    def psi(order):
        return sum(
            parts[pair] * (X[pair[0]] - X[pair[1]]) * (-0.5 if is_swapped else 0.5)
            for pair, is_swapped in swapped(order).items()
        )

    def loss(order):
        if measure == "roc_auc":
            return sum(parts[pair] for pair, is_swapped in swapped(order).items() if is_swapped)
        if measure == "average_precision":
            return precision_loss(np.array(y) > 0, order)
        needed = math.ceil(floor * len(above) - 1e-9)
        places = [place for place, i in enumerate(order, 1) if y[i] > 0]
        return 1.0 - needed / places[needed - 1]

    return Example.of((*above, *below), psi, loss, list(permutations(range(len(y)))))


def samples(rng):
    """Every measure."""
    measure = str(rng.choice([*OF_LABELS, *OF_RANKINGS]))
    ranks = measure in OF_RANKINGS
    n = int(rng.integers(2, 6 if ranks else 7))
    X = random_inputs(rng, n, int(rng.integers(1, 4)))
    y = np.where(two_classes_or_more(rng, n, 2) > 0, 1, -1)
    k, beta = int(rng.integers(1, n + 1)), float(rng.choice([0.5, 2.0]))
    floor = float(rng.choice([0.3, 0.5, 0.8, 1.0]))
    intercept = bool(rng.random() < 0.5)
    weights = np.ones(n)
    if is_weighted := bool(measure in ("error", "roc_auc") and rng.random() < 0.5):
        weights = rng.choice([0.5, 1.0, 2.0, 10.0], n)
    has_constant = intercept and measure in (
        "error",
        "f1",
        "fbeta",
        "precision_at_k",
        "recall_at_k",
    )

    def examples(model):
        inputs = with_constant(X, has_constant)
        if ranks:
            return [ranking_example(measure, inputs, y.tolist(), weights, floor)]
        shares = weights / weights.sum()
        return [label_example(measure, inputs, y.tolist(), shares, beta, k, floor)]

    given = sp.csr_matrix(X) if rng.random() < 0.4 else X
    options = {"measure": measure, "beta": beta, "k": k, "floor": floor}
    return Sample(
        f"samples, {measure}",
        partial(mm.PerformanceSVM, **options, fit_intercept=intercept),
        given,
        y,
        examples,
        order_key,
        1,
        has_k_best=False,
        margin_only=is_weighted or measure in ("roc_auc", "average_precision"),
        refusals=[(given[:-1], y), (X * np.nan, y), (given, np.zeros(n))],
        fit_rows=lambda model, weight: model.fit(  # the slack counts as often as rows do: once
            given, y, sample_weight=row_weights(weights / weights.sum(), weight)
        ),
        scores=lambda model: [model.decision_function(given)] if ranks else None,
    )


class Sample(OfDocuments):
    """Predicts an order of the rows or, for measures of labels, these."""

    def predict(self, model):
        return [model.predict(self.X)] if self.scores(model) is None else super().predict(model)
