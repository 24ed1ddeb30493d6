"""How good rankings are. Published figures mix definitions, so each has a name of its own here."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..features.containers import as_list
from ..problems.ranking.queries import grades_of, pairs_of
from ..problems.ranking.swaps import count_pairs
from ..utils.tables import named_values, percent
from ..utils.types import Floats, Ints
from ..utils.validation import as_floats, is_at_least

__all__ = [
    "RankingScores",
    "average_precision",
    "letor_ndcg",
    "mean_swapped_pairs",
    "ndcg",
    "ranking_scores",
    "swapped_pairs",
]

NAN = float("nan")
ABOVE_ZERO = float(np.nextafter(0.0, 1.0))


class Evaluated(NamedTuple):
    """Documents by query and falling score: their relevances, and where each query begins.

    Each query has a weight.
    """

    relevance: Floats
    scores: Floats
    offsets: Ints
    weights: Floats

    @property
    def query(self) -> Ints:
        """Query of each document."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @property
    def place(self) -> Ints:
        """Place of each document in its query, from 0."""
        return np.arange(len(self.scores)) - np.repeat(self.offsets[:-1], np.diff(self.offsets))

    def total(self, values: ArrayLike) -> Floats:
        """Sum of each query's values."""
        return np.bincount(self.query, values, len(self.offsets) - 1).astype(np.float64)

    def mean(self, values: Floats, defined: Any, empty: float | None) -> float:
        """Mean over queries; those where nothing is defined count ``empty``, or not at all."""
        if empty is None:
            kept = defined & (self.weights > 0)
            return (
                float(np.average(values[kept], weights=self.weights[kept])) if kept.any() else NAN
            )
        return float(np.average(np.where(defined, values, empty), weights=self.weights))


def _evaluated(
    y_true: ArrayLike,
    y_score: ArrayLike,
    qid: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> Evaluated:
    """Sort documents; those of equal scores stay in the order of the data."""
    relevance, scores = (
        as_floats(as_list(y, name), name) for y, name in ((y_true, "y_true"), (y_score, "y_score"))
    )
    if relevance.ndim != 1 or relevance.shape != scores.shape:
        raise ValueError(
            f"expected a relevance and a score for each document, got arrays of shapes "
            f"{relevance.shape} and {scores.shape}"
        )
    if len(relevance) == 0:
        raise ValueError("expected at least one document, found none")
    query = as_queries(qid, len(relevance))
    for name, values in (("y_true", relevance), ("y_score", scores)):
        if not np.isfinite(values).all():
            bad = int(np.argmin(np.isfinite(values)))
            raise ValueError(f"{name}[{bad}] is {values[bad]}; it must be finite")
    _, codes, counts = np.unique(query, return_inverse=True, return_counts=True)
    order = np.lexsort((-scores, codes))
    offsets = np.concatenate([[0], np.cumsum(counts)])
    weights = np.ones(len(counts))
    if sample_weight is not None:
        given = as_floats(sample_weight, "sample_weight")
        if given.shape not in ((), relevance.shape):
            raise ValueError(
                f"sample_weight must have shape {relevance.shape}, got shape {given.shape}"
            )
        weights = weights_of_queries(np.broadcast_to(given, relevance.shape), order, offsets)
    return Evaluated(relevance[order], scores[order], offsets, weights)


def as_queries(qid: ArrayLike | None, n_documents: int) -> Any:
    """Queries of documents as an array; ValueError unless there is one for each."""
    query = np.zeros(n_documents, np.int64) if qid is None else np.asarray(qid)
    if query.shape != (n_documents,):
        raise ValueError(
            f"expected the query of each of {n_documents} documents, got qid of shape {query.shape}"
        )
    is_none = [q is None for q in query.tolist()] if query.dtype == object else False
    missing = np.flatnonzero((query != query) | is_none)  # NaN is no query
    if len(missing):
        raise ValueError(f"qid[{missing[0]}] is {query[missing[0]]}; every document has a query")
    if query.dtype == object:  # of types that cannot be sorted together: numbered as they come
        numbers: dict[Any, int] = {}
        return np.array([numbers.setdefault(q, len(numbers)) for q in query.tolist()], np.int64)
    return query


def weights_of_queries(sample_weight: Floats, order: Ints, offsets: Ints) -> Floats:
    """Weights of queries from those of documents; ValueError unless they agree.

    Documents come in ``order``, those of query q from ``offsets[q]`` on.
    """
    bad = np.flatnonzero(~(sample_weight >= 0.0) | ~np.isfinite(sample_weight))
    if len(bad):
        raise ValueError(
            f"sample_weight[{bad[0]}] is {sample_weight[bad[0]]}; weights must be finite and >= 0"
        )
    by_query = sample_weight[order]
    weights: Floats = by_query[offsets[:-1]]
    other = np.flatnonzero(by_query != np.repeat(weights, np.diff(offsets)))
    if len(other):
        d = int(other[0])
        q = int(np.searchsorted(offsets, d, side="right")) - 1
        raise ValueError(
            f"sample_weight[{order[d]}] is {by_query[d]}, but {weights[q]} for another document of "
            "the same query; a query has one weight"
        )
    return weights


def _mean_ndcg(
    evaluated: Evaluated, discounts: Floats, k: int | None, empty: float | None, shortest: int = 1
) -> float:
    """Mean of DCG / largest DCG; queries of fewer documents than ``shortest`` count ``empty``."""
    if k is not None and (not is_at_least(k, 1) or isinstance(k, bool) or k != int(k)):
        raise ValueError(f"k must be a whole number of places >= 1, got {k!r}")
    if evaluated.relevance.min() < 0:
        raise ValueError(f"NDCG needs relevances >= 0, got {evaluated.relevance.min():g}")
    with np.errstate(over="ignore"):
        gains = np.exp2(evaluated.relevance) - 1.0
    if not np.isfinite(gains).all():
        raise ValueError(
            f"NDCG has gains of 2**relevance - 1, which is too large for the relevance "
            f"{evaluated.relevance.max():g}; expected grades, such as 0 to 4"
        )
    weights = np.where(evaluated.place < (k or len(gains)), discounts[evaluated.place], 0.0)
    best = gains[np.lexsort((-gains, evaluated.query))]
    ideals = evaluated.total(best * weights)
    reached = evaluated.total(gains * weights) / np.maximum(ideals, 1e-300)
    return evaluated.mean(reached, (ideals > 0) & (np.diff(evaluated.offsets) >= shortest), empty)


def ndcg(
    y_true: ArrayLike,
    y_score: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    k: int | None = None,
    empty: float | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """NDCG in the usual definition: gains ``2**relevance - 1``, discounts ``1 / log2(1 + place)``.

    Parameters
    ----------
    y_true, y_score : array of shape (n_documents,)
        Relevances, not negative, and scores, larger ones first. Documents of equal scores count in
        the order in which they come.
    qid : array of shape (n_documents,), optional
        Query of each document, in any order; by default all are of one query.
    k : int, optional
        Places that count; by default all.
    empty : float, optional
        What a query without relevant documents counts. By default such queries are left out;
        LightGBM has 1, LETOR and scikit-learn 0.
    sample_weight : array of shape (n_documents,), optional
        Weight of each document's query.

    Returns
    -------
    float
        Mean over the queries; NaN if all are left out.

    Examples
    --------
    >>> round(ndcg([0, 2, 1], [3.0, 2.0, 1.0]), 4)
    0.659
    """
    evaluated = _evaluated(y_true, y_score, qid, sample_weight)
    discounts = 1.0 / np.log2(np.arange(evaluated.place.max() + 1) + 2.0)
    return _mean_ndcg(evaluated, discounts, k, empty)


def letor_ndcg(
    y_true: ArrayLike,
    y_score: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    k: int | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """NDCG as the evaluation script of LETOR 4.0 has it.

    Gains are ``2**relevance - 1``. Neither of the first two places is discounted, place p from
    the second on by ``1 / log2(p)``. Queries without relevant documents count 0, and so do those
    with fewer than k documents: on MQ2008, where half of the queries have 8 at most, NDCG@10 is
    half of NDCG@7.

    Parameters
    ----------
    y_true, y_score, qid, k, sample_weight
        As for `ndcg`.

    Returns
    -------
    float
        Mean over the queries.
    """
    evaluated = _evaluated(y_true, y_score, qid, sample_weight)
    discounts = 1.0 / np.log2(np.maximum(np.arange(evaluated.place.max() + 1) + 1.0, 2.0))
    return _mean_ndcg(evaluated, discounts, k, 0.0, shortest=k or 1)


def average_precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    empty: float | None = 0.0,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean average precision (MAP); documents of a relevance above 0 are relevant.

    Parameters
    ----------
    y_true, y_score, qid
        As for `ndcg`.
    empty : float or None, default=0.0
        What a query without relevant documents counts: 0, as in LETOR; with None such queries are
        left out.
    sample_weight : array of shape (n_documents,), optional
        Weight of each document's query.

    Returns
    -------
    float
        Mean over the queries of the mean precision at the places of relevant documents.
    """
    evaluated = _evaluated(y_true, y_score, qid, sample_weight)
    relevant = (evaluated.relevance > 0).astype(np.float64)
    so_far = np.cumsum(relevant)
    before = np.repeat(
        so_far[evaluated.offsets[:-1]] - relevant[evaluated.offsets[:-1]],
        np.diff(evaluated.offsets),
    )
    precisions = (so_far - before) / (evaluated.place + 1.0)
    n_relevant = evaluated.total(relevant)
    means = evaluated.total(precisions * relevant) / np.maximum(n_relevant, 1.0)
    return evaluated.mean(means, n_relevant > 0, empty)


def _swaps(evaluated: Evaluated, ties: str) -> tuple[Floats, Floats]:
    """Swapped pairs and all pairs of different relevance of each query."""
    weights = {"half": 0.5, "wrong": 1.0}
    if ties not in weights:
        raise ValueError(f"ties must be 'half' or 'wrong', got {ties!r}")
    grades, n_grades = grades_of(evaluated.relevance, evaluated.offsets)
    swapped, with_ties = (
        count_pairs(evaluated.scores, grades, n_grades, evaluated.offsets, threshold)
        for threshold in (0.0, ABOVE_ZERO)
    )
    return swapped + weights[ties] * (with_ties - swapped), pairs_of(grades, evaluated.offsets)


def swapped_pairs(
    y_true: ArrayLike,
    y_score: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    ties: Literal["half", "wrong"] = "half",
) -> float:
    """Share of swapped pairs among the pairs of different relevance of all queries together.

    Parameters
    ----------
    y_true, y_score, qid
        As for `ndcg`; relevances may be any numbers.
    ties : {"half", "wrong"}, default="half"
        Whether a pair of equal scores counts as half a swapped pair, or as one.

    Returns
    -------
    float
        NaN where there are no such pairs.
    """
    swapped, n_pairs = _swaps(_evaluated(y_true, y_score, qid, None), ties)
    return float(swapped.sum() / n_pairs.sum()) if n_pairs.any() else NAN


def mean_swapped_pairs(
    y_true: ArrayLike,
    y_score: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    ties: Literal["half", "wrong"] = "half",
    empty: float | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Share of swapped pairs among the pairs of different relevance of a query, mean over queries.

    Parameters
    ----------
    y_true, y_score, qid, ties
        As for `swapped_pairs`.
    empty : float, optional
        What a query without such pairs counts: 0 in the average loss that SVM-rank reports. By
        default such queries are left out.
    sample_weight : array of shape (n_documents,), optional
        Weight of each document's query.

    Returns
    -------
    float
        NaN if all queries are left out.
    """
    evaluated = _evaluated(y_true, y_score, qid, sample_weight)
    swapped, n_pairs = _swaps(evaluated, ties)
    return evaluated.mean(swapped / np.maximum(n_pairs, 1.0), n_pairs > 0, empty)


class RankingScores(NamedTuple):
    """Scores of a ranking, between 0 and 1; the functions of these names say what they are.

    Attributes
    ----------
    ndcg, letor_ndcg : float
        NDCG at k, queries without relevant documents left out, and as LETOR 4.0 has it.
    average_precision : float
        MAP; queries without relevant documents count 0, as in LETOR.
    swapped_pairs : float
        Of all pairs.
    mean_swapped_pairs : float
        Of those of a query, mean over the queries that have any.
    svm_rank_loss : float
        The same, but queries without pairs count 0, as SVM-rank has it.
    k : int or None
        Places that NDCG counts.
    """

    ndcg: float
    letor_ndcg: float
    average_precision: float
    swapped_pairs: float
    mean_swapped_pairs: float
    svm_rank_loss: float
    k: int | None

    def __str__(self) -> str:
        at = "" if self.k is None else f"@{self.k}"
        names = (
            f"NDCG{at}",
            f"NDCG{at} of LETOR 4.0",
            "MAP of LETOR",
            "swapped pairs, of all",
            "swapped pairs, mean of queries",
            "swapped pairs, as of SVM-rank",
        )
        return named_values(
            (name, f"{percent(share)} %") for name, share in zip(names, self[:-1], strict=True)
        )


def ranking_scores(
    y_true: ArrayLike, y_score: ArrayLike, qid: ArrayLike | None = None, *, k: int | None = 10
) -> RankingScores:
    """All scores of a ranking; they print as a table.

    Parameters
    ----------
    y_true, y_score, qid
        As for `ndcg`.
    k : int or None, default=10
        Places that NDCG counts; None: all.

    Returns
    -------
    RankingScores
    """
    given = (y_true, y_score, qid)
    return RankingScores(
        ndcg(*given, k=k),
        letor_ndcg(*given, k=k),
        average_precision(*given),
        swapped_pairs(*given),
        mean_swapped_pairs(*given),
        mean_swapped_pairs(*given, empty=0.0),
        k,
    )
