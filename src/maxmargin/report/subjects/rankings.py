"""Rankings of the documents of queries."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...metrics import swapped_pairs
from ...metrics.tallies import tally_of_rankings
from ...types import Floats
from ..drawings import ranking
from .subject import Subject, worst_first

__all__ = ["describe"]


def describe(estimator: Any, X: Any, y: Any, qid: Any = None) -> Subject:
    """Places of the documents of each query."""
    relevance, scores = np.asarray(y, np.float64), estimator.predict(X)
    rows = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    queries = estimator._judged_queries(qid, len(relevance))
    names, codes = np.unique(queries, return_inverse=True)
    documents = [np.flatnonzero(codes == k) for k in range(len(names))]
    swapped = [swapped_pairs(relevance[rows], scores[rows]) for rows in documents]

    def draw(i: int) -> tuple[str, str]:
        title = f"query {names[i]}: {swapped[i]:.1%} of pairs in the wrong order"
        worth, own = relevance[documents[i]], scores[documents[i]]
        a, b = (int(k) for k in _worst_pair(worth, own))
        pair = f"worst: row {documents[i][a]} above row {documents[i][b]}"
        return title, f'{ranking(worth, own)}<p class="muted">{pair}</p>'

    def asked(i: int) -> tuple[Any, Any]:
        a, b = _worst_pair(relevance[documents[i]], scores[documents[i]])
        return rows[[documents[i][a]]], rows[[documents[i][b]]]

    return Subject(
        tally_of_rankings(relevance, scores, queries),
        worst_first(np.nan_to_num(swapped), draw),
        asked=asked,
    )


def _worst_pair(relevance: Floats, scores: Floats) -> tuple[int, int]:
    """A document and one that is worth more, but scores less, by as much as any."""
    found = []
    for worth in np.unique(relevance)[1:]:
        less, own = np.flatnonzero(relevance < worth), np.flatnonzero(relevance == worth)
        a, b = less[np.argmax(scores[less])], own[np.argmin(scores[own])]
        found.append((float(scores[a] - scores[b]), int(a), int(b)))
    return max(found)[1:]
