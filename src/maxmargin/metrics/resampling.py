"""How far scores can be trusted: bootstrap intervals, and paired tests of two models.

Scores are ratios of sums over units (sentences, examples, queries) that are drawn as a whole: the
accuracy of tokens, F1, the mean of what each unit has. A resample is then a matrix product.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from ..types import Floats, Ints
from ..validation import as_floats

__all__ = ["Comparison", "Interval", "Ratio", "bootstrap_intervals", "paired_comparison"]

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
    """Rows that differ, and how often there is each: what is drawn need not tell equal ones."""
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
