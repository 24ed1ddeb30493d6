"""Brute-force twins of rankings: all sets of swapped pairs, or all orders of the documents."""

import functools
import itertools
import math

import numpy as np

from brute import Twin, _raw
from cases import Case, random_inputs
from maxmargin.problems.ranking.problem import RankingProblem


class RankingTwin(Twin):
    """What all losses share: pairs (better, worse) of documents, and which of them are swapped."""

    def __init__(self, X, relevance, sizes, loss, k=None, weights=None):
        X = _raw(X, False)
        ends = list(itertools.accumulate(sizes))
        self.X = [X[end - size : end] for end, size in zip(ends, sizes, strict=True)]
        self.relevance = [
            [float(r) for r in relevance[end - size : end]]
            for end, size in zip(ends, sizes, strict=True)
        ]
        self.loss_name, self.k = loss, k
        self.weights = np.ones(len(X)) if weights is None else weights  # of the one query's
        self.n_examples, self.n_features = len(sizes), X.shape[1]

    @functools.cached_property
    def pairs(self):
        grades = self.relevance
        if self.loss_name == "average_precision":
            grades = [[r > 0 for r in relevance] for relevance in grades]
        return [
            [(a, b) for a, b in itertools.permutations(range(len(r)), 2) if r[a] > r[b]]
            for r in grades
        ]

    def swapped(self, i, y):
        raise NotImplementedError

    def parts(self, i):
        """What each pair counts: the product of weights, over their sum if normalised."""
        weights = [self.weights[a] * self.weights[b] for a, b in self.pairs[i]]
        total = 1.0 if self.loss_name == "swaps" else sum(weights) or 1.0
        return [weight / total for weight in weights]

    def psi(self, i, y):
        total = np.zeros(self.n_features)
        swapped = self.swapped(i, y)
        for pair, is_swapped, part in zip(self.pairs[i], swapped, self.parts(i), strict=True):
            difference = part * (self.X[i][pair[0]] - self.X[i][pair[1]])
            total += -difference / 2 if is_swapped else difference / 2
        return total


class SwapTwin(RankingTwin):
    """Every pair is swapped or not, whatever the others are."""

    def truth(self, i):
        return (False,) * len(self.pairs[i])

    def outputs(self, i):
        return list(itertools.product((False, True), repeat=len(self.pairs[i])))

    def swapped(self, i, y):
        return y

    def loss(self, i, y):
        return float(np.dot(self.parts(i), y))


class OrderTwin(RankingTwin):
    """Outputs are orders of the documents, first to last."""

    def truth(self, i):
        r = self.relevance[i]
        return tuple(sorted(range(len(r)), key=lambda d: -r[d]))

    def outputs(self, i):
        return list(itertools.permutations(range(len(self.relevance[i]))))

    def swapped(self, i, y):
        return [y.index(better) > y.index(worse) for better, worse in self.pairs[i]]

    def loss(self, i, y):
        if self.loss_name == "ndcg":
            best = self.dcg(i, self.truth(i))
            return 1.0 - self.dcg(i, y) / best if best else 0.0
        places = [place for place, d in enumerate(y, 1) if self.relevance[i][d] > 0]
        shares = [found / place for found, place in enumerate(places, 1)]
        return 1.0 - sum(shares) / len(shares) if shares else 0.0

    def dcg(self, i, y):
        return sum(
            (2 ** self.relevance[i][d] - 1) / math.log2(place + 1)
            for place, d in enumerate(y[: self.k], 1)
        )


def ranking_case(
    rng,
    *,
    loss="swaps",
    sizes=(4, 3, 1, 2),
    n_inputs=3,
    k=None,
    kind="grades",
    layout="dense",
    weighted=False,
):
    n = sum(sizes)
    X = random_inputs(rng, n, n_inputs, layout)
    if kind == "repeated":  # documents that are the same: many ties
        X = X[rng.integers(0, max(n // 2, 1), n)]
    relevance = rng.normal(size=n) if kind == "real" else rng.integers(0, 3, n)
    relevance = np.abs(relevance) if loss == "ndcg" else relevance
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    k = k if loss == "ndcg" else None
    twin = SwapTwin if "swaps" in loss else OrderTwin
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], n) if weighted else None
    return Case(
        RankingProblem(X, relevance, offsets, loss, k, weights),
        twin(X, relevance, sizes, loss, k, weights),
    )
