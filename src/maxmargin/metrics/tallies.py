"""Scores of predictions unit by unit, with bootstrap intervals and paired tests of two models.

Scores are ratios of sums over units (sentences, examples, queries) that are drawn as a whole: the
accuracy of tokens, F1, the mean of what each unit has. A resample is then a matrix product.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..utils.types import Bools, Floats, Ints
from ..utils.validation import as_floats
from .chunks import are_chunk_tags, chunk_counts
from .labels import hamming
from .rankings import average_precision, ndcg, swapped_pairs
from .scoring import sums_of
from .sets import pair_counts
from .trees import bracket_counts, read_arcs

__all__ = [
    "Comparison",
    "Interval",
    "Ratio",
    "Tally",
    "bootstrap_intervals",
    "mean_of",
    "paired_comparison",
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

MOST_DRAWS = 2**22  # numbers that are drawn at a time


class Ratio(NamedTuple):
    """A score that is a ratio of two sums over units; 0 where there is nothing to divide by.

    Attributes
    ----------
    tops, bottoms : array of shape (n_units,)
        What each unit adds to both sums. Of an accuracy: right labels and labels; of an F1: twice
        the right chunks, and true and predicted ones; of a mean over units: values and ones.
    smaller_is_better : bool
        Whether it counts errors.
    """

    tops: Floats
    bottoms: Floats
    smaller_is_better: bool = False

    @property
    def score(self) -> float:
        """The score over all units."""
        return float(_ratios(_table({"": self}).sum(axis=0)[None, :])[0, 0])


class Interval(NamedTuple):
    """A score, and where it could as well have been."""

    score: float
    low: float
    high: float


class Comparison(NamedTuple):
    """Scores of two models on the same units.

    Attributes
    ----------
    score, other, difference : float
        Those of both, and the first less the other.
    low, high : float
        Interval of the difference.
    p : float
        How likely a difference of this size at least would be, in either direction, if the two
        models were one.
    """

    score: float
    other: float
    difference: float
    low: float
    high: float
    p: float


def bootstrap_intervals(
    scores: Mapping[str, Ratio],
    *,
    level: float = 0.95,
    resamples: int = 1000,
    random_state: int | None = 0,
) -> dict[str, Interval]:
    """Percentile intervals of scores, by the bootstrap over units.

    Parameters
    ----------
    scores : mapping of str to Ratio
        Over the same units, which are drawn for all scores together.
    level : float, default=0.95
        Share of the resamples inside an interval.
    resamples : int, default=1000
        How often as many units as there are are drawn, with replacement.
    random_state : int, optional
        Seed.

    Returns
    -------
    dict of str to Interval

    Examples
    --------
    >>> right = np.array([1.0, 1.0, 0.0, 1.0] * 25)
    >>> bootstrap_intervals({"accuracy": Ratio(right, np.ones(100))})["accuracy"].score
    0.75
    """
    table = _table(scores)
    drawn = np.concatenate([_ratios(sums) for sums in _resampled(table, resamples, random_state)])
    low, high = _percentiles(drawn, level)
    return {
        name: Interval(ratio.score, float(low[k]), float(high[k]))
        for k, (name, ratio) in enumerate(scores.items())
    }


def paired_comparison(
    scores: Mapping[str, Ratio],
    others: Mapping[str, Ratio],
    *,
    level: float = 0.95,
    resamples: int = 1000,
    random_state: int | None = 0,
) -> dict[str, Comparison]:
    """Compare two models by their scores on the same units.

    The interval of the difference is that of a paired bootstrap: the same units are drawn for
    both. The p value is that of approximate randomisation: the two models' results for a unit
    change places at random (Yeh 2000), which needs no further assumption for F1 either.

    Parameters
    ----------
    scores, others : mapping of str to Ratio
        Of both models; scores that only one has are left out.
    level : float, default=0.95
        Share of the resamples inside an interval.
    resamples : int, default=1000
        For the interval, and for the test: no p value is below ``1 / (resamples + 1)``.
    random_state : int, optional
        Seed.

    Returns
    -------
    dict of str to Comparison

    Raises
    ------
    ValueError
        The units are not as many.
    """
    names = [name for name in scores if name in others]
    if not names:
        raise ValueError(f"expected a score of both, found {[*scores]} and {[*others]}")
    ours, theirs = (_table({name: m[name] for name in names}) for m in (scores, others))
    if len(ours) != len(theirs):
        raise ValueError(f"scores are of {len(ours)} units, the others of {len(theirs)}")
    both = np.hstack([ours, theirs])
    width = ours.shape[1]

    def differences(sums: Floats) -> Floats:
        return _ratios(sums[:, :width]) - _ratios(sums[:, width:])

    blocks = _resampled(both, resamples, random_state)
    low, high = _percentiles(np.concatenate([differences(sums) for sums in blocks]), level)
    found = differences(both.sum(axis=0)[None, :])[0]
    # Sums that are equal but for rounding must not count as smaller than what was found.
    threshold = np.abs(found) * (1.0 - 1e-9) - 1e-12
    as_large = np.zeros(len(names))
    for sums in _swapped(ours, theirs, resamples, random_state):
        as_large += (np.abs(differences(sums)) >= threshold).sum(axis=0)
    p = (1.0 + as_large) / (1.0 + resamples)
    return {
        name: Comparison(
            scores[name].score,
            others[name].score,
            float(found[k]),
            float(low[k]),
            float(high[k]),
            float(p[k]),
        )
        for k, name in enumerate(names)
    }


def _table(scores: Mapping[str, Ratio]) -> Floats:
    """Units in rows; tops and bottoms of all scores, one after the other, in columns."""
    columns = []
    for name, ratio in scores.items():
        for part in ratio[:2]:
            column = as_floats(part, f"the score {name!r}")
            if column.ndim != 1 or len(column) == 0 or not np.isfinite(column).all():
                raise ValueError(
                    f"the score {name!r}: expected a finite number for each unit, at least one, "
                    f"got {part!r:.60}"
                )
            columns.append(column)
    if not columns:
        raise ValueError("expected at least one score, found none")
    lengths = sorted({len(column) for column in columns})
    if len(lengths) > 1:
        raise ValueError(f"scores are of different numbers of units: {lengths}")
    return np.column_stack(columns)


def _ratios(sums: Floats) -> Floats:
    """Scores of sums of the columns of a table."""
    return _divide(sums[:, 0::2], sums[:, 1::2])


def _divide(tops: Floats, bottoms: Floats) -> Floats:
    """Ratios, 0 for those of nothing."""
    return np.divide(tops, bottoms, out=np.zeros_like(bottoms), where=bottoms != 0.0)


def _percentiles(drawn: Floats, level: float) -> Floats:
    """Ends of the interval that has this share of the values drawn in it."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be between 0 and 1, got {level!r}")
    tail = 0.5 * (1.0 - level)
    ends: Floats = np.quantile(drawn, [tail, 1.0 - tail], axis=0)
    return ends


def _distinct(rows: Floats) -> tuple[Floats, Ints]:
    """Rows that differ, and how often there is each: equal ones are drawn together."""
    found, counts = np.unique(rows, axis=0, return_counts=True)
    return found, counts.astype(np.int64)


def _blocks(resamples: int, width: int) -> Iterator[int]:
    """Numbers of resamples that are drawn at a time."""
    if resamples < 1:
        raise ValueError(f"resamples must be 1 or more, got {resamples!r}")
    size = max(1, MOST_DRAWS // max(width, 1))
    for start in range(0, resamples, size):
        yield min(size, resamples - start)


def _resampled(table: Floats, resamples: int, seed: int | None) -> Iterator[Floats]:
    """Sums of the columns over units drawn with replacement, in rows."""
    rng = np.random.default_rng(seed)
    rows, counts = _distinct(table)
    shares = counts / counts.sum()
    for size in _blocks(resamples, len(rows)):
        yield rng.multinomial(len(table), shares, size=size) @ rows


def _swapped(ours: Floats, theirs: Floats, resamples: int, seed: int | None) -> Iterator[Floats]:
    """Sums of both tables after units of the one and the other have changed places at random."""
    rng = np.random.default_rng(seed)
    rows, counts = _distinct(theirs - ours)
    for size in _blocks(resamples, len(rows)):
        moved = rng.binomial(counts, 0.5, size=(size, len(rows))) @ rows
        yield np.hstack([ours.sum(axis=0) + moved, theirs.sum(axis=0) - moved])


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
                f"example {i}: {grade!r:.40} is not one of the grades {list(grades)!r:.80}, so the "
                "error of its prediction is not defined"
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
