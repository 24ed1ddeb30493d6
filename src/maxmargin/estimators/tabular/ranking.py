"""Rankings of documents by a linear score, trained for losses of whole rankings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ...core.weight_constraints import WeightConstraints
from ...features.containers import is_frame
from ...metrics.rankings import (
    as_queries,
    average_precision,
    mean_swapped_pairs,
    ndcg,
    weights_of_queries,
)
from ...problems.ranking.k_best import best_orders
from ...problems.ranking.problem import LOSSES, RankingLoss, RankingProblem
from ...utils.schema import Count, Names
from ...utils.sparse_format import check_sparse
from ...utils.types import Floats, Ints
from ...utils.validation import check_choice
from ..abilities.explanation import Explanation, decision, explain_whole, one_row
from ..base import OnlineMethod, checked_k
from ..costs import example_weights
from ..parameters import with_inherited_parameters
from ..training import Trainer, TrainingSet
from .base import TabularEstimator, canonical, check_examples, check_lengths

__all__ = ["RankSVM"]


@with_inherited_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class RankSVM(TabularEstimator):
    """Rank the documents of queries by a linear score, certified by a duality gap.

    Parameters
    ----------
    loss : {"swaps", "normalized_swaps", "ndcg", "average_precision"}, default="swaps"
        What a wrong ranking of a query costs: the number of pairs of documents of different
        relevance that stand in the wrong order (SVM-rank's loss; the slack is the sum of the hinge
        losses of all pairs); its share of those pairs; 1 - NDCG; or 1 - average precision, for
        which documents of a relevance above 0 are relevant (SVM-map). The last two take
        ``rescaling="margin"`` without square roots of losses.
    k : int, optional
        Places that NDCG counts, for ``loss="ndcg"``; by default all. Other losses ignore it.
    monotonic_cst : array of shape (n_features,) or dict of name to int, optional
        As in scikit-learn: 1 where more of a feature may only raise a document's score, so that its
        weight is not negative; -1 where it may only lower it; 0, or no entry, where it may do
        either. The names are those of the columns of a DataFrame.
    {parameters of MaxMarginEstimator}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights: a document's score is ``x @ coef_``.
    result_ : Result
        Certificate and history of the training; its examples are the queries.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    C multiplies the sum of the slacks of the queries; the ``-c`` of SVM-rank is C times the number
    of queries (``formulation.C_from_paper(c, n_queries, "joachims")``). The order of documents of
    the same relevance never matters. Swapped pairs take O(m log m) for a query of m documents,
    whatever the relevances; NDCG is found by dynamic programming over the grades, which is fast
    where these or the k are few, and otherwise as an assignment, for queries of up to 2000
    documents.

    In searches of scikit-learn both training and scores need the queries. With metadata routing
    enabled, ``RankSVM().set_fit_request(qid=True).set_score_request(qid=True)`` gets them from
    ``GridSearchCV(..., cv=GroupKFold()).fit(X, y, qid=qid, groups=qid)``. Without it `score` gets
    no queries and raises ValueError, so that such a search has no scores to choose C by.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
    >>> model = RankSVM(random_state=0).fit(X, [0, 1, 2, 0, 1], qid=[1, 1, 1, 2, 2])
    >>> model.rank(X, qid=[1, 1, 1, 2, 2]).tolist()
    [3, 2, 1, 2, 1]
    """

    loss: RankingLoss = "swaps"
    k: int | None = None
    monotonic_cst: Any = None

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> RankSVM:
        """Train on judged documents.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_documents, n_features)
            Documents.
        y : array of shape (n_documents,)
            Relevances: any numbers, larger ones are better; not negative for ``loss="ndcg"``.
        qid : array of shape (n_documents,), optional
            Query of each document, in any order; by default all are of one query. Only documents of
            the same query are compared.
        sample_weight : array of shape (n_documents,), optional
            Multiplies each query's slack: the same for all documents of a query.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If there is nothing to learn, for no query has documents of different relevance; a call
            of `partial_fit` may have none.
        """
        return Trainer(self).fit(X, y, qid=qid, sample_weight=sample_weight)

    def _training_set(
        self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None
    ) -> TrainingSet:
        """See `MaxMarginEstimator`."""
        data, weights = self._queries(X, y, qid, sample_weight, reset=True)
        constraints = self._constraints()
        return TrainingSet(lambda: _with_pairs(RankingProblem(*data)), data, weights, constraints)

    @OnlineMethod
    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> RankSVM:
        """Make one pass over more queries, with an online solver.

        {passes}

        A query has to come as a whole: documents of two calls are never compared.

        {C of all queries}

        Parameters
        ----------
        X : array or sparse matrix of shape (n_documents, n_features)
            Documents.
        y : array of shape (n_documents,)
            Relevances.
        qid : array of shape (n_documents,), optional
            Query of each document; by default all are of one query.
        sample_weight : array of shape (n_documents,), optional
            Weight of each document's query.

        Returns
        -------
        self
        """
        return Trainer(self).partial_fit(X, y, qid=qid, sample_weight=sample_weight)

    def _training_batch(self, X: Any, y: Any, qid: Any, sample_weight: Any) -> TrainingSet:
        """See `MaxMarginEstimator`."""
        first = not hasattr(self, "n_features_in_")
        data, weights = self._queries(X, y, qid, sample_weight, reset=first)
        return TrainingSet(lambda: RankingProblem(*data), data, weights, self._constraints())

    def _constraints(self) -> WeightConstraints | None:
        """The signs that ``monotonic_cst`` asks for."""
        if self.monotonic_cst is None:
            return None
        signs = _monotonic_signs(
            self.monotonic_cst, self.n_features_in_, getattr(self, "feature_names_in_", None)
        )
        return WeightConstraints(nonnegative=signs > 0, nonpositive=signs < 0)

    def _queries(
        self,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None,
        sample_weight: ArrayLike | None,
        reset: bool,
    ) -> tuple[tuple[Any, ...], Floats | None]:
        """What a problem is made of, and the weights of its queries."""
        check_choice(self.loss, LOSSES, "loss")
        X, y = check_examples(self, X, y, reset=reset, y_numeric=True)
        relevance = np.asarray(y, dtype=np.float64)
        order, offsets = _by_query(qid, len(relevance))
        weights = _query_weights(sample_weight, X, order, offsets)
        if (np.diff(order) != 1).any():  # or else X need not be copied
            X, relevance = X[order], relevance[order]
        return (canonical(X), relevance, offsets, self.loss, self.k), weights

    def predict(self, X: Any) -> Floats:
        """Scores of documents; those of one query are ranked by them, larger ones first.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_documents, n_features)
            Documents.

        Returns
        -------
        ndarray of shape (n_documents,)
        """
        return self._linear_scores(X)

    def explain(self, x: Any, y_hat: Any = None, *, n: int = 5) -> Explanation:
        """Why a document stands above another: the features that decided.

        Parameters
        ----------
        x : array or sparse matrix of shape (n_documents, n_features)
            The documents of a query, or a single one.
        y_hat : array or sparse matrix of shape (n_features,) or (1, n_features), optional
            Another document, which the single one is compared with. Without it each document of
            the ranking is compared with the next one.
        n : int, default=5
            How many features the explanation shows of each decision; it has all of them.

        Returns
        -------
        Explanation
            Margins are differences of scores, negative where the other document stands above;
            values are differences of features, what the first has more of than the second.
        """
        n, weights = checked_k(n, "n"), self._weights
        check_sparse(x, "x")
        if y_hat is not None:
            pair = one_row(x), one_row(y_hat)
            for row in pair:
                self.predict(row)  # checks it, and the names of its columns
            first, second = map(_as_matrix, pair)
            evidence = self._input_evidence(first - second, weights)
            return explain_whole("this document", "the other one", evidence, n)
        documents = x if sp.issparse(x) or is_frame(x) else np.atleast_2d(np.asarray(x))
        order, rows = np.argsort(-self.predict(documents), kind="stable"), _as_matrix(documents)
        decisions = tuple(
            decision(
                place,
                f"place {place + 1}",
                f"document {a}",
                f"document {b}",
                self._input_evidence(rows[[a]] - rows[[b]], weights, place),
            )
            for place, (a, b) in enumerate(pairwise(order.tolist()))
        )
        return Explanation(order, None, decisions, n)

    def rank(self, X: Any, qid: ArrayLike | None = None) -> Ints:
        """Places of documents among those of their query, from 1.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_documents, n_features)
            Documents.
        qid : array of shape (n_documents,), optional
            Query of each document; by default all are of one query.

        Returns
        -------
        ndarray of int, shape (n_documents,)
            Documents of equal scores are placed in the order in which they come.
        """
        scores = self.predict(X)
        _, query = np.unique(as_queries(qid, len(scores)), return_inverse=True)
        order = np.lexsort((-scores, query))
        first = np.searchsorted(query[order], query[order])
        places = np.empty(len(scores), np.int64)
        places[order] = np.arange(len(scores)) - first + 1
        return places

    def predict_k(
        self, X: Any, k: int, qid: ArrayLike | None = None
    ) -> list[list[tuple[Ints, float]]]:
        """The k best rankings of each query, with their scores.

        The second best ranking swaps the two neighbours whose scores differ least: a ranking's
        score falls by the difference of the two scores for each pair that it swaps.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_documents, n_features)
            Documents.
        k : int
            How many to return for each query.
        qid : array of shape (n_documents,), optional
            Query of each document; by default all are of one query.

        Returns
        -------
        list of list of (documents, score)
            For each query, in the order in which they come, the k rankings of the largest score
            ``<w, psi(x, y)>``, best first: the rows of X, best document first, with the score
            where all pairs of documents are compared. There are fewer of few documents.
        """
        k = checked_k(k)
        scores = self.predict(X)
        order, offsets = _by_query(qid, len(scores))
        return [
            [(documents[places], score) for places, score in self._ranked(scores[documents], k)]
            for documents in (order[a:b] for a, b in pairwise(offsets.tolist()))
        ]

    def _ranked(self, scores: Floats, k: int) -> list[tuple[Ints, float]]:
        """The k best orders of the documents of a query by their scores."""
        n_pairs = len(scores) * (len(scores) - 1) // 2
        unit = 1.0 if self.loss == "swaps" else 1.0 / max(n_pairs, 1)
        return [(places, unit * score) for places, score in best_orders(scores, k)]

    def score(
        self,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """1 - the loss trained for, mean over the queries that have something to rank.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_documents, n_features)
            Documents.
        y : array of shape (n_documents,)
            Relevances.
        qid : array of shape (n_documents,), optional
            Query of each document. It may only be left out if the model was trained on one query.
        sample_weight : array of shape (n_documents,), optional
            Weight of each document's query.

        Returns
        -------
        float
            For swaps of either kind the share of a query's pairs that stand in the right order
            (pairs of equal scores count half), for the others NDCG or average precision. NaN if
            there is no query with something to rank. `maxmargin.metrics` has them and others.

        Raises
        ------
        ValueError
            If ``qid`` is missing and the model was trained on several queries.
        """
        scores = self.predict(X)
        check_lengths(X, y)
        given = (y, scores, self._judged_queries(qid, len(scores)))
        if self.loss == "ndcg":
            return ndcg(*given, k=self.k, sample_weight=sample_weight)
        if self.loss == "average_precision":
            return average_precision(*given, empty=None, sample_weight=sample_weight)
        return 1.0 - mean_swapped_pairs(*given, sample_weight=sample_weight)

    def _judged_queries(self, qid: ArrayLike | None, n_documents: int) -> Any:
        """Queries of documents with relevances; ValueError if they are missing, not one alone."""
        if qid is None and self.result_.n_examples > 1:
            raise ValueError(
                f"qid is missing: the model was trained on {self.result_.n_examples} queries, and "
                "without qid all documents would count as one query; give the query of each "
                "document, qid=..., or qid=np.zeros(len(y)) if they are of one. Searches of "
                "scikit-learn pass it on with sklearn.set_config(enable_metadata_routing=True) and "
                "RankSVM().set_fit_request(qid=True).set_score_request(qid=True)"
            )
        return as_queries(qid, n_documents)

    # ----- persistence --------------------------------------------------------------------------

    def _get_weights(self) -> Floats:
        """See `Savable`."""
        return self.coef_

    def _set_weights(self, w: Floats) -> None:
        """See `Savable`: unlike that of other tabular estimators, ``coef_`` can be set."""
        super()._set_weights(w)
        self.coef_ = w

    def _get_state(self) -> RankState:
        """See `Savable`."""
        return RankState(int(self.n_features_in_), getattr(self, "feature_names_in_", None))

    def _set_state(self, state: RankState) -> None:
        """See `Savable`."""
        self._set_inputs(state)

    def _n_weights(self) -> int:
        """See `Savable`."""
        return self._n_inputs()

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn should know of the estimator."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _with_pairs(problem: RankingProblem) -> RankingProblem:
    """The problem, if there is anything to rank; ValueError otherwise."""
    if problem.queries.units.any():
        return problem
    n_documents, n_queries = len(problem.relevance), problem.n_examples
    if n_documents == 1:
        reason = "there is 1 sample alone"
    elif n_documents == n_queries:
        reason = "every document is a query of its own; those to be compared need the same qid"
    elif problem.loss_name == "average_precision":
        reason = "no query has both documents of a relevance above 0 and others"
    else:
        reason = "no query has documents of different relevance"
    raise ValueError(f"there is nothing to rank: {reason}")


def _as_matrix(x: Any) -> Any:
    """Documents as a CSR matrix."""
    return sp.csr_matrix(x.to_numpy() if is_frame(x) else x)


class RankState(NamedTuple):
    """What a file keeps of a ranker."""

    n_features: Count
    feature_names: Names | None


def _by_query(qid: ArrayLike | None, n_documents: int) -> tuple[Ints, Ints]:
    """Documents by query, and where each query begins; queries in the order in which they come."""
    query = as_queries(qid, n_documents)
    _, first, codes = np.unique(query, return_index=True, return_inverse=True)
    codes = np.argsort(np.argsort(first))[codes]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(codes))])
    return np.argsort(codes, kind="stable"), offsets


def _query_weights(
    sample_weight: ArrayLike | None, X: Any, order: Ints, offsets: Ints
) -> Floats | None:
    """Weights of the queries from those of their documents, which have to be the same."""
    weights = example_weights(sample_weight, None, X, order)
    return None if weights is None else weights_of_queries(weights, order, offsets)


def _monotonic_signs(given: Any, n_features: int, names: Any) -> Ints:
    """The sign -1, 0 or 1 for each feature, from an array or a dict by name."""
    if isinstance(given, Mapping):
        given = _by_name(given, n_features, names)
    try:
        signs = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"monotonic_cst must be numbers, got {given!r:.60}") from None
    if signs.shape != (n_features,):
        raise ValueError(
            f"monotonic_cst has shape {signs.shape}, but there are {n_features} features"
        )
    bad = np.flatnonzero(~np.isin(signs, (-1.0, 0.0, 1.0)))
    if len(bad):
        raise ValueError(
            f"monotonic_cst must be -1, 0 or 1 for each feature, got {signs[bad[0]]:g} for "
            f"feature {bad[0]}"
        )
    return signs.astype(np.int64)


def _by_name(given: Mapping[Any, Any], n_features: int, names: Any) -> list[Any]:
    """The same in the order of the features."""
    if names is None:
        raise ValueError(
            "monotonic_cst has names of features, but X has none: give a DataFrame, or an array"
        )
    unknown = [name for name in given if name not in set(names)]
    if unknown:
        raise ValueError(f"monotonic_cst has {unknown[0]!r}, which is not a column of X")
    return [given.get(name, 0) for name in names]
