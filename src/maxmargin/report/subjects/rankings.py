"""Rankings of the documents of queries."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...metrics import swapped_pairs
from ...metrics.tallies import tally_of_rankings
from ..drawings import ranking
from .subject import Subject, worst_first

__all__ = ["describe"]


def describe(estimator: Any, X: Any, y: Any, qid: Any = None) -> Subject:
    """Places of the documents of each query."""
    relevance, scores = np.asarray(y, np.float64), estimator.predict(X)
    queries = np.zeros(len(relevance), np.int64) if qid is None else np.asarray(qid)
    names, codes = np.unique(queries, return_inverse=True)
    documents = [np.flatnonzero(codes == k) for k in range(len(names))]
    swapped = [swapped_pairs(relevance[rows], scores[rows]) for rows in documents]

    def draw(i: int) -> tuple[str, str]:
        title = f"query {names[i]}: {swapped[i]:.1%} of pairs in the wrong order"
        return title, ranking(relevance[documents[i]], scores[documents[i]])

    return Subject(
        tally_of_rankings(relevance, scores, queries),
        worst_first(np.nan_to_num(swapped), draw),
    )
