"""Rankings of documents, and grades: by thresholds, and by pairs of examples."""

import math
from dataclasses import dataclass
from functools import partial
from itertools import permutations, product
from typing import Any

import numpy as np
import scipy.sparse as sp

import maxmargin as mm

from .class_tasks import random_inputs, two_classes_or_more
from .listing import Example, Task


@dataclass
class OfDocuments(Task):
    """A task whose examples are made of several rows.

    ``fit_rows(model, weights)`` gets the weight of each example; ``scores(model)`` has the scores
    of each example's rows, by which they are ranked.
    """

    fit_rows: Any = None
    scores: Any = None

    def fit(self, model, sample_weight=None):
        return self.fit_rows(model, sample_weight)

    def predict(self, model):
        return [np.argsort(-own, kind="stable") for own in self.scores(model)]


def order_key(order):
    return tuple(np.asarray(order).tolist())


class Pairs:
    """The pairs (better, worse) of rows, what each counts, and the features of sets of swaps."""

    def __init__(self, X, values, weights, normalized):
        rows = range(len(values))
        self.X = X
        self.pairs = [(a, b) for a in rows for b in rows if values[a] > values[b]]
        self.parts = [weights[a] * weights[b] for a, b in self.pairs]
        if normalized and sum(self.parts) > 0.0:
            self.parts = [part / sum(self.parts) for part in self.parts]

    def psi(self, swaps):
        total = np.zeros(self.X.shape[1])
        for (a, b), part, is_swapped in zip(self.pairs, self.parts, swaps, strict=True):
            total += part * (self.X[a] - self.X[b]) * (-0.5 if is_swapped else 0.5)
        return total

    def swaps_of(self, order):
        places = {row: place for place, row in enumerate(order)}
        return tuple(places[a] > places[b] for a, b in self.pairs)

    def example_of_swaps(self):
        """Every pair is swapped or not; predictions are orders."""
        sets = list(product((False, True), repeat=len(self.pairs)))
        orders = list(permutations(range(len(self.X))))
        return Example(
            self.psi((False,) * len(self.pairs)),
            np.array([self.psi(swaps) for swaps in sets]),
            np.array([np.dot(self.parts, swaps) for swaps in sets], float),
            {order: self.psi(self.swaps_of(order))[None, :] for order in orders},
        )

    def example_of_orders(self, truth, loss_of):
        orders = list(permutations(range(len(self.X))))
        return Example.of(truth, lambda order: self.psi(self.swaps_of(order)), loss_of, orders)


def ndcg_loss(relevance, k, order):
    def gain(places):
        gains = [(2.0 ** relevance[d] - 1.0) / math.log2(p + 2) for p, d in enumerate(places)]
        return sum(gains[:k])

    best = gain(sorted(range(len(relevance)), key=lambda d: -relevance[d]))
    return 1.0 - gain(order) / best if best else 0.0


def precision_loss(is_relevant, order):
    places = [place for place, d in enumerate(order, 1) if is_relevant[d]]
    return 1.0 - np.mean([k / p for k, p in enumerate(places, 1)]) if places else 0.0


def rankings(rng):
    """Documents of queries."""
    sizes = rng.integers(1, 5, int(rng.integers(1, 6))).tolist()
    sizes[0] = max(sizes[0], 2)
    n_documents, n = sum(sizes), len(sizes)
    X = random_inputs(rng, n_documents, int(rng.integers(1, 4)))
    relevance = rng.integers(0, 3, n_documents).astype(float)
    if rng.random() < 0.3:
        relevance = rng.normal(size=n_documents)
    loss = str(rng.choice(["swaps", "normalized_swaps", "ndcg", "average_precision"]))
    relevance = np.abs(relevance) if loss == "ndcg" else relevance
    relevance[:2] = 0.0, 1.0  # of the first query: without any pair there is nothing to rank
    k = int(rng.integers(1, 4)) if loss == "ndcg" and rng.random() < 0.5 else None
    names = rng.permutation(50)[:n]
    qid, bounds = np.repeat(names, sizes), np.cumsum(sizes)[:-1]
    given = sp.csr_matrix(X) if rng.random() < 0.4 else X

    def example(rows, values):
        evaluated = (values > 0).astype(float) if loss == "average_precision" else values
        pairs = Pairs(rows, evaluated, np.ones(len(rows)), loss != "swaps")
        if "swaps" in loss:
            return pairs.example_of_swaps()
        truth = tuple(sorted(range(len(rows)), key=lambda d: -values[d]))
        if loss == "ndcg":
            return pairs.example_of_orders(truth, partial(ndcg_loss, values, k))
        return pairs.example_of_orders(truth, partial(precision_loss, values > 0))

    def examples(model):
        return list(map(example, np.split(X, bounds), np.split(relevance, bounds)))

    def fit(model, weights):
        if weights is not None:
            fits = len(weights) == n
            weights = np.repeat(weights, sizes) if fits else np.ones(n_documents + 1)
        return model.fit(given, relevance, qid=qid, sample_weight=weights)

    return OfDocuments(
        "rankings",
        partial(mm.RankSVM, loss=loss, k=k),
        given,
        relevance,
        examples,
        order_key,
        n,
        has_k_best=False,
        margin_only="swaps" not in loss,
        refusals=[(X[:-1], relevance), (X * np.nan, relevance), (X, relevance + np.inf)],
        fit_rows=fit,
        scores=lambda model: np.split(model.predict(given), bounds),
    )


def grades(rng):
    """Thresholds on a score."""
    n, R = int(rng.integers(2, 9)), int(rng.integers(2, 5))
    X = random_inputs(rng, n, int(rng.integers(1, 4)))
    codes = two_classes_or_more(rng, n, R)
    names = ["low", "medium", "high", "top"] if rng.random() < 0.5 else [0.5, 1.0, 1.5, 7.0]
    decisions = list(product((1, -1), repeat=R - 1))

    def psi(x, signs):
        return np.concatenate([x * sum(signs), [-sign for sign in signs]]) / 2.0

    def example(x, grade):
        truth = tuple(1 if grade > k else -1 for k in range(R - 1))
        rows = np.array([psi(x, signs) for signs in decisions])
        losses = [sum(a != b for a, b in zip(truth, signs, strict=True)) for signs in decisions]
        n_above = np.array([signs.count(1) for signs in decisions])
        answers = {names[g]: rows[n_above == g] for g in range(R)}
        return Example(psi(x, truth), rows, np.array(losses, float), answers)

    given = sp.csr_matrix(X) if rng.random() < 0.4 else X
    y = [names[k] for k in codes]
    return Task(
        "grades",
        partial(mm.OrdinalSVM, grades=names[:R]),
        given,
        y,
        lambda model: [example(x, grade) for x, grade in zip(X, codes, strict=True)],
        lambda grade: grade,
        n,
        has_k_best=False,
        refusals=[(given[:-1], y), (X * np.nan, y), (given, ["none"] * n)],
    )


def pairs_of_grades(rng):
    """All examples are one: the pairs of different grades, which may have weights."""
    n = int(rng.integers(2, 6))
    X = random_inputs(rng, n, int(rng.integers(1, 4)))
    codes = two_classes_or_more(rng, n, 3)
    weights = np.ones(n)
    if is_weighted := bool(rng.random() < 0.5):
        weights = rng.choice([0.5, 1.0, 2.0, 10.0], n)
    given = sp.csr_matrix(X) if rng.random() < 0.4 else X
    return OfDocuments(
        "pairs of grades",
        partial(mm.OrdinalSVM, loss="pairs"),
        given,
        codes,
        lambda model: [Pairs(X, codes, weights, True).example_of_swaps()],
        order_key,
        1,
        has_k_best=False,
        margin_only=is_weighted,
        refusals=[(given[:-1], codes), (X * np.nan, codes), (given, np.zeros(n))],
        fit_rows=lambda model, given_weight: model.fit(
            given, codes, sample_weight=row_weights(weights, given_weight)
        ),
        scores=lambda model: [model.linear_score(given)],
    )


def row_weights(weights, given):
    """Weights of the rows of the only example, from the one that is given; or wrong ones."""
    if given is not None and len(given) != 1:
        return np.ones(len(weights) + 1)
    return weights if given is None else weights * given[0]
