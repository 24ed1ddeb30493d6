"""Rankings of the documents of queries."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...metrics import swapped_pairs
from ...metrics.tallies import tally_of_rankings
from ...types import Floats
from ..drawings import ranking
from .subject import Errors, Subject

__all__ = ["describe"]


def describe(estimator: Any, X: Any, y: Any, qid: Any = None) -> Subject:
    """Places of the documents of each query."""
    relevance, scores = np.asarray(y, np.float64), estimator.predict(X)
    rows = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    queries = estimator._judged_queries(qid, len(relevance))
    names, codes = np.unique(queries, return_inverse=True)
    documents = [np.flatnonzero(codes == k) for k in range(len(names))]
    swapped = [swapped_pairs(relevance[rows], scores[rows]) for rows in documents]

    n_pairs = np.array([_n_pairs(relevance[rows]) for rows in documents])
    wrong = np.nan_to_num(swapped) * n_pairs

    def margins() -> Floats:
        found = np.zeros(len(documents))
        for i, own in enumerate(documents):
            if n_pairs[i]:
                a, b = _worst_pair(relevance[own], scores[own])
                found[i] = scores[own[a]] - scores[own[b]]
        return found

    def draw(i: int) -> tuple[str, str]:
        title = f"query {names[i]}: {wrong[i]:g} of {n_pairs[i]} pairs in the wrong order"
        worth, own = relevance[documents[i]], scores[documents[i]]
        a, b = (int(k) for k in _worst_pair(worth, own))
        pair = f"worst: row {documents[i][a]} above row {documents[i][b]}"
        return title, f'{ranking(worth, own)}<p class="muted">{pair}</p>'

    def asked(i: int) -> tuple[Any, Any]:
        a, b = _worst_pair(relevance[documents[i]], scores[documents[i]])
        return rows[[documents[i][a]]], rows[[documents[i][b]]]

    return Subject(
        tally_of_rankings(relevance, scores, queries),
        Errors(wrong, n_pairs, margins),
        draw,
        asked=asked,
    )


def _n_pairs(relevance: Floats) -> int:
    """Pairs of documents of different relevance."""
    _, counts = np.unique(relevance, return_counts=True)
    return int((len(relevance) ** 2 - (counts**2).sum()) // 2)


def _worst_pair(relevance: Floats, scores: Floats) -> tuple[int, int]:
    """A document and one that is worth more, but scores less, by as much as any."""
    found = []
    for worth in np.unique(relevance)[1:]:
        less, own = np.flatnonzero(relevance < worth), np.flatnonzero(relevance == worth)
        a, b = less[np.argmax(scores[less])], own[np.argmin(scores[own])]
        found.append((float(scores[a] - scores[b]), int(a), int(b)))
    return max(found)[1:]
