"""Rankings: an example is a query with its documents, weights belong to features of documents."""

from __future__ import annotations

import copy
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...core.cutting_planes import Planes, empty_planes, trim
from ...core.formulation import Formulation, Rescaling
from ...engine.accelerators import Accelerators
from ...engine.cuts.sample_pool import Candidate, SamplePool
from ...engine.oracle import Oracle
from ...engine.packed_problem import PackedProblem, chunks_of, matrix_of, rows_at
from ...engine.rows import add_rows, make_rows, row_scores, score_rows
from ...search.limits import as_weights, check_number_of_weights
from ...search.modes import ADDITIVE, search_mode
from ...utils.types import Floats, Ints
from ...utils.validation import check_choice
from .listwise import find_by_average_precision, find_by_ndcg, gain_tables, gains_of
from .queries import (
    Queries,
    Ranked,
    grades_of,
    make_ranked,
    pairs_of,
    score_documents,
    sort_documents,
    weight_of_pairs,
    write_planes,
)
from .swaps import find_swaps

__all__ = ["LOSSES", "RankingLoss", "RankingProblem"]

RankingLoss = Literal["swaps", "normalized_swaps", "ndcg", "average_precision"]
LARGEST_RELEVANCE = 1000  # whose gain 2**relevance is a number
LOSSES = ("swaps", "normalized_swaps", "ndcg", "average_precision")


class Query(NamedTuple):
    """An input: documents in rows, the relevance that says which pairs are compared, weights."""

    documents: Any
    relevance: Floats
    weights: Floats


class RankingProblem(PackedProblem):
    """Rank the documents of each query by a linear score.

    An output is a number for each document; larger ones stand first. That of the training data is
    the relevance. Joint features are ``unit / 2`` times the sum of ``sign(y_i - y_j) (x_i - x_j)``
    over the pairs of documents of different relevance, so that the order of documents of the same
    relevance does not matter; see `queries`. The unit is 1 for "swaps" and 1 / (number of pairs)
    for the others.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_documents, n_features)
        Documents, those of a query one after the other.
    relevance : array of shape (n_documents,)
        Relevances, finite; for "ndcg" from 0 to 1000.
    offsets : array of int
        Where the documents of each query begin, and their number last.
    loss : {"swaps", "normalized_swaps", "ndcg", "average_precision"}
        Number of pairs in the wrong order (each pair is an output of its own, as in SVM-rank); its
        share of all pairs; 1 - NDCG; or 1 - average precision, where documents of a relevance
        above 0 are relevant. The last two are found for margin rescaling only.
    k : int, optional
        Places that NDCG counts; by default all. Other losses ignore it.
    document_weights : array of shape (n_documents,), optional
        What documents count, where there is one query only: a pair counts the product of its two.
        For "swaps" of either kind, with margin rescaling.
    """

    in_threads = True

    def __init__(
        self,
        X: Any,
        relevance: ArrayLike,
        offsets: ArrayLike,
        loss: RankingLoss = "swaps",
        k: int | None = None,
        document_weights: ArrayLike | None = None,
    ) -> None:
        check_choice(loss, LOSSES, "loss")
        if k is not None and (not isinstance(k, Integral) or k < 1):
            raise ValueError(f"k must be None or a whole number of places >= 1, got {k!r}")
        rows = make_rows(X)
        self.relevance = np.ascontiguousarray(relevance, dtype=np.float64)
        bounds = np.ascontiguousarray(offsets, dtype=np.int64)
        self.loss_name, self.k = loss, k
        self.n_features = rows.n_inputs
        check_number_of_weights(self.n_features)
        _check_queries(rows.n_rows, self.relevance, bounds, loss)
        self.gains = gain_tables(self.relevance, bounds, k) if loss == "ndcg" else None
        grades, n_grades = grades_of(self._evaluated(self.relevance), bounds)
        n_pairs = pairs_of(grades, bounds)
        weights: Floats = np.empty(0)
        if document_weights is not None:
            weights = _checked_weights(document_weights, bounds, loss)
            n_pairs[0] = weight_of_pairs(grades, weights)
        units = np.zeros(len(n_pairs))
        np.divide(1.0, 1.0 if loss == "swaps" else n_pairs, out=units, where=n_pairs > 0.0)
        self.queries = Queries(rows, bounds, grades, n_grades, units, weights)

    @property
    def n_examples(self) -> int:
        """Number of queries."""
        return len(self.queries.offsets) - 1

    def subset(self, indices: Ints) -> RankingProblem:
        """See `Problem.subset`."""
        documents, offsets = chunks_of(self.queries.offsets, indices)
        feature_block = copy.copy(self)
        feature_block.relevance = self.relevance[documents]
        feature_block.queries = Queries(
            rows_at(self.queries.rows, documents),
            offsets,
            self.queries.grades[documents],
            self.queries.n_grades[indices],
            self.queries.units[indices],
            self.queries.weights[documents] if len(self.queries.weights) else self.queries.weights,
        )
        if self.gains is not None:
            feature_block.gains = gain_tables(feature_block.relevance, offsets, self.k)
        return feature_block

    # ----- one query at a time ------------------------------------------------------------------

    def input_of(self, i: int) -> Query:
        """Documents of query i, with what says which pairs are compared."""
        first, end = self.queries.offsets[i], self.queries.offsets[i + 1]
        documents = matrix_of(self.queries.rows, int(first), int(end))
        weights = self.queries.weights if len(self.queries.weights) else np.ones(end - first)
        return Query(documents, self.relevance[first:end].copy(), weights)

    def output_of(self, i: int) -> Floats:
        """Relevances of the documents of query i."""
        return self.relevance[self.queries.offsets[i] : self.queries.offsets[i + 1]].copy()

    def joint_feature(self, x: Any, y: Any) -> Floats:
        """See `Problem.joint_feature`: the documents, by how many others they stand before."""
        pairs = np.outer(x.weights, x.weights) * (self._compared(x.relevance) != 0.0)
        ahead = (pairs * _signs(np.asarray(y))).sum(axis=1)
        unit = 1.0 if self.loss_name == "swaps" else 2.0 / (pairs.sum() or 1.0)
        psi: Floats = np.asarray(x.documents.T @ ahead, dtype=np.float64) * (unit / 2.0)
        return psi

    def loss(self, y: Any, y_hat: Any) -> float:
        """The loss of the order by ``y_hat``, where ``y`` has the relevances."""
        relevance, order = np.asarray(y), np.argsort(-np.asarray(y_hat), kind="stable")
        if self.loss_name == "ndcg":
            tables = gain_tables(relevance, np.array([0, len(relevance)]), self.k)
            missed = (tables.best - tables.gains[order]) @ tables.discounts
            return float(missed / tables.ideals[0]) if tables.ideals[0] else 0.0
        if self.loss_name == "average_precision":
            places = np.flatnonzero(relevance[order] > 0.0) + 1.0
            found = np.arange(1.0, len(places) + 1.0) / places
            return float(1.0 - found.mean()) if len(places) else 0.0
        compared = self._compared(relevance)
        weights = self.queries.weights if len(self.queries.weights) else np.ones(len(relevance))
        pairs = np.outer(weights, weights) * (compared != 0.0)
        swaps = (pairs * np.abs(compared - _signs(np.asarray(y_hat)))).sum() / 4.0
        n_pairs = 1.0 if self.loss_name == "swaps" else pairs.sum() / 2.0
        return float(swaps / (n_pairs or 1.0))

    def predict(self, x: Any, w: Floats) -> Floats:
        """The scores; see `Problem.predict`."""
        return row_scores(make_rows(x.documents), as_weights(w, self.n_features))

    def _evaluated(self, relevance: Floats) -> Floats:
        """What the loss makes of relevances; documents in which it is the same are not compared."""
        if self.loss_name == "average_precision":
            return (relevance > 0.0).astype(np.float64)
        return gains_of(relevance) if self.loss_name == "ndcg" else relevance

    def _compared(self, relevance: Floats) -> Floats:
        """1 or -1 for the pairs of documents that are compared, 0 for others."""
        return _signs(self._evaluated(relevance))

    # ----- the search ---------------------------------------------------------------------------

    def _most_violated(
        self, examples: Ints, w: Floats, rescaling: Rescaling, sqrt_loss: bool
    ) -> Planes:
        """Most violated ranking (or set of swaps) of each listed query."""
        queries, ranked = self.queries, make_ranked(self.queries, examples)
        score_documents(queries, examples, w, ranked)
        entries, most_entries = self._n_entries(examples)
        out = empty_planes(len(examples), entries)
        self._find(examples, ranked, rescaling, sqrt_loss, out.losses)
        touched = np.empty(most_entries, np.int32)
        write_planes(queries, examples, ranked, np.zeros(self.n_features), touched, out)
        return trim(out)

    def _find(
        self, examples: Ints, ranked: Ranked, rescaling: Rescaling, sqrt_loss: bool, losses: Floats
    ) -> None:
        """Losses and counts of the most violated rankings of documents whose scores are known."""
        mode, queries = search_mode(rescaling, sqrt_loss), self.queries
        sort_documents(ranked)
        if self.loss_name in ("swaps", "normalized_swaps"):
            edge, weighted = np.empty(1), len(queries.weights) > 0
            if weighted and mode.kind != ADDITIVE:
                raise ValueError(
                    "weights of documents need rescaling='margin' and sqrt_loss=False, got "
                    f"rescaling={rescaling!r} and sqrt_loss={sqrt_loss}"
                )
            more = np.empty(len(ranked.spare) + 1 if weighted or mode.kind != ADDITIVE else 0)
            find_swaps(queries, examples, mode, ranked, more, edge, edge.view(np.int64), losses)
        elif mode.kind != ADDITIVE:
            raise ValueError(
                f"loss={self.loss_name!r} needs rescaling='margin' with slack='l1' (or "
                f"sqrt_loss=False), got rescaling={rescaling!r} and sqrt_loss={sqrt_loss}; "
                "loss='swaps' or 'normalized_swaps' support all of them"
            )
        elif self.gains is not None:
            find_by_ndcg(queries, self.gains, examples, ranked, losses)
        else:
            find_by_average_precision(queries, examples, ranked, losses)

    def _n_entries(self, examples: Ints) -> tuple[int, int]:
        """Entries that planes of these queries have at most; entries of the longest query."""
        rows, offsets = self.queries.rows, self.queries.offsets
        if rows.dense.shape[0]:
            return len(examples) * rows.n_columns, 0
        sizes = rows.indptr[offsets[examples + 1]] - rows.indptr[offsets[examples]]
        return int(np.minimum(sizes, rows.n_columns).sum()), int(sizes.max(initial=0))

    # ----- one query by itself: see `engine.cuts.sample_pool` -----------------------------------

    def scores(self, w: Floats) -> Floats:
        """Scores of all documents."""
        scores = np.empty(self.queries.rows.n_rows)
        score_rows(self.queries.rows, w, scores)
        return scores

    def best(self, scores: Floats, formulation: Formulation) -> Candidate:
        """The most violated ranking of the only query, whose documents have these scores."""
        ranked = make_ranked(self.queries, np.zeros(1, np.int64))._replace(scores=scores)
        losses, kind = np.empty(1), formulation
        self._find(np.zeros(1, np.int64), ranked, kind.rescaling, kind.uses_sqrt_loss, losses)
        return Candidate(float(losses[0]), self.queries.units[0] * ranked.counts)

    def add_difference(self, candidate: Candidate, factor: float, total: Floats) -> None:
        """Add ``factor * dpsi`` of a candidate to ``total``."""
        add_rows(self.queries.rows, candidate.coefficients, factor, total)

    def accelerators(self, formulation: Formulation) -> RankingAccelerators:
        """A pool for a single query."""
        return RankingAccelerators(self)


class RankingAccelerators(Accelerators):
    """Lines are searched with scores of documents where there is one query."""

    def __init__(self, problem: RankingProblem) -> None:
        self.problem = problem
        rows, n_queries = problem.queries.rows, max(problem.n_examples, 1)
        entries = rows.dense.size if rows.dense.shape[0] else len(rows.values)
        self.oracle_work = 2000.0 + (entries + 40.0 * rows.n_rows) / n_queries

    def pool(self, oracle: Oracle) -> SamplePool | None:
        """One candidate at a time, any of all that there are."""
        return SamplePool(oracle, self.problem) if self.problem.n_examples == 1 else None


def _signs(values: Any) -> Floats:
    """Sign of the difference of every two values."""
    numbers = np.asarray(values, dtype=np.float64)
    return np.sign(numbers[:, None] - numbers)


def _checked_weights(given: ArrayLike, offsets: Ints, loss: str) -> Floats:
    """Weights of documents as floats; ValueError unless they are good ones, and of one query."""
    weights = np.ascontiguousarray(given, dtype=np.float64)
    if len(offsets) != 2 or loss not in ("swaps", "normalized_swaps"):
        raise ValueError(
            "document_weights are for swapped pairs of one query, got "
            f"{len(offsets) - 1} queries and loss={loss!r}"
        )
    if weights.shape != (offsets[-1],):
        raise ValueError(f"there are {offsets[-1]} documents, but weights of {weights.shape}")
    bad = np.flatnonzero(~(weights >= 0.0) | ~np.isfinite(weights))
    if len(bad):
        raise ValueError(f"the weight of document {bad[0]} is {weights[bad[0]]}; it must be >= 0")
    return weights


def _check_queries(n_documents: int, relevance: Floats, offsets: Ints, loss: str) -> None:
    """Raise ValueError unless the arrays fit each other."""
    if len(relevance) != n_documents:
        raise ValueError(
            f"X has {n_documents} documents, but there are {len(relevance)} relevances"
        )
    if offsets[0] != 0 or offsets[-1] != n_documents or (np.diff(offsets) < 0).any():
        raise ValueError(f"offsets must rise from 0 to the number of documents, {n_documents}")
    bad = ~np.isfinite(relevance)
    if loss == "ndcg":
        bad |= (relevance < 0.0) | (relevance > LARGEST_RELEVANCE)
    if bad.any():
        d = int(np.argmax(bad))
        must = f"in 0..{LARGEST_RELEVANCE} for loss='ndcg'" if loss == "ndcg" else "finite"
        raise ValueError(f"the relevance of document {d} is {relevance[d]}; it must be {must}")
