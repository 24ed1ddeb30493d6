"""Scores of predictions, unit by unit."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..metrics import Ratio, are_chunk_tags, average_precision, chunk_counts, hamming, ndcg
from ..types import Floats
from .judging import Tally

__all__ = [
    "mean_of",
    "tally_of_decisions",
    "tally_of_grades",
    "tally_of_heads",
    "tally_of_labels",
    "tally_of_rankings",
    "tally_of_sets",
    "tally_of_tags",
]


def tally_of_tags(gold: list[list[str]], predicted: list[list[str]], labels: set[str]) -> Tally:
    """Right labels of each sequence, and its chunks if the labels are those of chunks."""
    wrong = hamming(gold, predicted)
    lengths = np.array([len(ys) for ys in gold], np.float64)
    scores = {
        "accuracy": Ratio(lengths - wrong, lengths),
        "sequence_accuracy": mean_of(wrong == 0.0),
    }
    if are_chunk_tags(labels):
        true, found, right = chunk_counts(gold, predicted).T.astype(np.float64)
        of_chunks = {
            "f1": Ratio(2.0 * right, true + found),
            "precision": Ratio(right, found),
            "recall": Ratio(right, true),
        }
        scores = of_chunks | scores
    return Tally("sequences", scores)


def tally_of_labels(gold: list[Any], predicted: list[Any]) -> Tally:
    """Which examples are right; one by one, for numpy mixes up labels of different types."""
    right = [a == b for a, b in zip(gold, predicted, strict=True)]
    return Tally("examples", {"accuracy": mean_of(right)})


def tally_of_heads(gold: list[Any], predicted: list[Any]) -> Tally:
    """Right heads of each sentence; and right arcs, if they have relations."""
    is_labeled = any(isinstance(arc, tuple) for arc in gold[0])
    lengths = np.array([len(own) for own in gold], np.float64)
    wrong = hamming(gold, predicted)
    right = lengths - wrong
    scores = {"las": Ratio(right, lengths)} if is_labeled else {}
    if is_labeled:
        bare = [[[arc[0] for arc in own] for own in trees] for trees in (gold, predicted)]
        right = lengths - hamming(*bare)
    scores |= {"uas": Ratio(right, lengths), "exact": mean_of(wrong == 0.0)}
    return Tally("sentences", scores)


def tally_of_sets(gold: list[Any], predicted: list[Any]) -> Tally:
    """Labels that are right, of those that are there and those that were found."""
    both = np.array([len({*a} & {*b}) for a, b in zip(gold, predicted, strict=True)], np.float64)
    sizes = np.array([len(a) + len(b) for a, b in zip(gold, predicted, strict=True)], np.float64)
    scores = {"micro_f1": Ratio(2.0 * both, sizes), "subset_accuracy": mean_of(2.0 * both == sizes)}
    return Tally("examples", scores)


def tally_of_grades(gold: list[Any], predicted: list[Any], grades: list[Any]) -> Tally:
    """How far grades are off."""
    place = {grade: k for k, grade in enumerate(grades)}
    off = np.array([abs(place[a] - place[b]) for a, b in zip(gold, predicted, strict=True)])
    scores = {
        "mean_absolute_error": mean_of(off)._replace(smaller_is_better=True),
        "accuracy": mean_of(off == 0),
        "within_one": mean_of(off <= 1),
    }
    return Tally("examples", scores)


def tally_of_decisions(positive: Any, chosen: Any, *, accuracy_first: bool) -> Tally:
    """Rows of two classes that are right, and F1 of the positive one."""
    both = 2.0 * (positive & chosen)
    scores = {
        "f1": Ratio(both, positive.astype(np.float64) + chosen),
        "accuracy": mean_of(positive == chosen),
    }
    return Tally("rows", dict(reversed(scores.items())) if accuracy_first else scores)


def tally_of_rankings(relevance: Floats, scores: Floats, qid: Any) -> Tally:
    """NDCG at 10 places and average precision of each query."""
    order = np.argsort(qid, kind="stable")
    starts = np.flatnonzero(np.diff(np.asarray(qid)[order], prepend=np.nan))
    queries = [(relevance[own], scores[own], qid[own]) for own in np.split(order, starts[1:])]
    of_queries = {
        "ndcg_at_10": [ndcg(*query, k=10) for query in queries],
        "map": [average_precision(*query) for query in queries],
    }
    # Where a measure is not defined for a query, it does not count.
    return Tally(
        "queries",
        {
            name: Ratio(np.nan_to_num(values), 1.0 - np.isnan(values))
            for name, values in of_queries.items()
        },
    )


def mean_of(values: Any) -> Ratio:
    """The mean of a value that every unit has."""
    tops = np.asarray(values, np.float64)
    return Ratio(tops, np.ones(len(tops)))
