"""Scores of predictions, unit by unit: what intervals, paired tests and reports are made of."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..types import Bools, Floats
from .alignments import pair_counts
from .attachments import read_arcs
from .brackets import bracket_counts
from .chunks import are_chunk_tags, chunk_counts
from .labels import hamming
from .rankings import average_precision, ndcg, swapped_pairs
from .resampling import Ratio
from .sequences import sums_of

__all__ = [
    "Tally",
    "mean_of",
    "tally_of_alignments",
    "tally_of_grades",
    "tally_of_heads",
    "tally_of_labels",
    "tally_of_losses",
    "tally_of_positives",
    "tally_of_rankings",
    "tally_of_segments",
    "tally_of_sets",
    "tally_of_tags",
    "tally_of_trees",
]


class Tally(NamedTuple):
    """Scores as ratios of sums over units, by name: that by which models are chosen comes first."""

    unit: str  # what the examples are called, such as sequences
    scores: dict[str, Ratio]

    @property
    def n_units(self) -> int:
        """Number of units."""
        return len(next(iter(self.scores.values())).tops)


def tally_of_tags(gold: list[list[str]], predicted: list[list[str]], labels: set[str]) -> Tally:
    """Right labels of each sequence, and its chunks if the labels are those of chunks."""
    wrong = hamming(gold, predicted)
    lengths = np.array([len(ys) for ys in gold], np.float64)
    scores = {
        "accuracy": Ratio(lengths - wrong, lengths),
        "sequence_accuracy": mean_of(wrong == 0.0),
    }
    if are_chunk_tags(labels):
        scores = _of_counts(chunk_counts(gold, predicted)) | scores
    return Tally("sequences", scores)


def tally_of_labels(gold: list[Any], predicted: list[Any]) -> Tally:
    """Which examples are right; one by one, for numpy mixes up labels of different types."""
    right = [a == b for a, b in zip(gold, predicted, strict=True)]
    return Tally("examples", {"accuracy": mean_of(right)})


def tally_of_segments(gold: Sequence[Any], predicted: Sequence[Any]) -> Tally:
    """Segments (start, stop, label) of each sequence, and how many of them are right."""
    pairs = [(set(a), set(b)) for a, b in zip(gold, predicted, strict=True)]
    counts = np.array([(len(a), len(b), len(a & b)) for a, b in pairs])
    all_right = {"sequence_accuracy": mean_of([a == b for a, b in pairs])}
    return Tally("sequences", _of_counts(counts) | all_right)


def tally_of_sets(
    gold: Sequence[Collection[Hashable]], predicted: Sequence[Collection[Hashable]], n_labels: int
) -> Tally:
    """Sets of labels: F1 over all of them, sets all right, wrong decisions."""
    pairs = [(set(a), set(b)) for a, b in zip(gold, predicted, strict=True)]
    counts = np.array([(len(a), len(b), len(a & b)) for a, b in pairs])
    wrong = np.array([len(a ^ b) for a, b in pairs], np.float64)
    others = {
        "subset_accuracy": mean_of(wrong == 0.0),
        "hamming_loss": Ratio(wrong, np.full(len(wrong), float(max(n_labels, 1))), True),
    }
    return Tally("examples", _of_counts(counts) | others)


def tally_of_grades(gold: Sequence[Any], predicted: Sequence[Any], grades: Sequence[Any]) -> Tally:
    """How many grades off each example is; grades are given from the lowest to the highest."""
    place = {grade: k for k, grade in enumerate(grades)}
    for i, grade in enumerate(gold):
        if grade not in place:
            raise ValueError(
                f"example {i}: {grade!r:.40} is none of the grades {list(grades)!r:.80}, so there "
                "is no telling how far off a prediction is"
            )
    true, found = (np.array([place[grade] for grade in ys]) for ys in (gold, predicted))
    far = np.abs(true - found)
    error = mean_of(far)._replace(smaller_is_better=True)
    return Tally("examples", {"mean_absolute_error": error, "accuracy": mean_of(far == 0)})


def tally_of_positives(gold: Any, predicted: Any) -> Tally:
    """Rows of two classes, given by whether they are positive."""
    true, found = np.asarray(gold, bool), np.asarray(predicted, bool)
    counts = np.column_stack([true, found, true & found])
    return Tally("rows", {"accuracy": mean_of(true == found)} | _of_counts(counts))


def tally_of_rankings(relevance: Any, scores: Any, qid: Any, k: int | None = 10) -> Tally:
    """NDCG@k, average precision and ordered pairs of each query.

    Queries without relevant documents have none of the first two, those of one grade none of the
    last; NDCG is left out if there are negative relevances.
    """
    y, s, queries = np.asarray(relevance, np.float64), np.asarray(scores), np.asarray(qid)
    order = np.argsort(queries, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(np.unique(queries[order], return_inverse=True)[1])])
    parts = np.split(order, starts[1:])
    measures: dict[str, Any] = {
        f"ndcg@{k}": lambda rows: ndcg(y[rows], s[rows], k=k),
        "map": lambda rows: average_precision(y[rows], s[rows]),
        "pair_accuracy": lambda rows: 1.0 - swapped_pairs(y[rows], s[rows]),
    }
    if y.min() < 0.0:
        del measures[f"ndcg@{k}"]
    return Tally(
        "queries",
        {
            name: _mean_of_known(np.array([measure(rows) for rows in parts]))
            for name, measure in measures.items()
        },
    )


def tally_of_trees(gold: Sequence[Any], predicted: Sequence[Any]) -> Tally:
    """Labelled constituents of each sentence, as EVALB counts them."""
    counts, exact = bracket_counts(gold, predicted)
    return Tally("sentences", _of_counts(counts) | {"exact_match": mean_of(exact)})


def tally_of_heads(gold: Sequence[Any], predicted: Sequence[Any]) -> Tally:
    """Right heads of each sentence, and right arcs if these have labels."""
    arcs = read_arcs(gold, predicted)
    lengths = np.diff(arcs.offsets).astype(np.float64)

    def of_sentences(values: Bools) -> Floats:
        return sums_of(values.astype(np.int64), arcs.offsets).astype(np.float64)

    right = of_sentences(arcs.right)
    scores = {"uas": Ratio(of_sentences(arcs.right_heads), lengths)}
    if arcs.true is not None:
        scores = {"las": Ratio(right, lengths)} | scores
    return Tally("sentences", scores | {"exact": mean_of(right == lengths)})


def tally_of_alignments(gold: Sequence[Any], predicted: Sequence[Any]) -> Tally:
    """Pairs of letters of each alignment."""
    return Tally("alignments", _of_counts(pair_counts(gold, predicted)))


def tally_of_losses(losses: Any) -> Tally:
    """Where nothing is known of outputs but their losses."""
    return Tally("examples", {"mean_loss": mean_of(losses)._replace(smaller_is_better=True)})


def mean_of(values: Any) -> Ratio:
    """The mean of a value that every unit has."""
    tops = np.asarray(values, np.float64)
    return Ratio(tops, np.ones(len(tops)))


def _mean_of_known(values: Floats) -> Ratio:
    """The mean of a value that some units have; the others have NaN."""
    known = ~np.isnan(values)
    return Ratio(np.where(known, values, 0.0), known.astype(np.float64))


def _of_counts(counts: Any) -> dict[str, Ratio]:
    """F1, precision and recall of what is there, what was found, and what of it is right."""
    true, found, right = np.asarray(counts, np.float64).reshape(-1, 3).T
    return {
        "f1": Ratio(2.0 * right, true + found),
        "precision": Ratio(right, found),
        "recall": Ratio(right, true),
    }
