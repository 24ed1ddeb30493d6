"""How good predicted alignments are: by pairs of letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..utils.tables import named_values, percent
from ..utils.types import Floats
from ..utils.validation import as_floats
from .scoring import paired

__all__ = ["AlignmentScores", "alignment_scores", "pair_accuracies"]


class AlignmentScores(NamedTuple):
    """Scores of predicted alignments.

    Attributes
    ----------
    pair_accuracy : float
        Share of the true pairs that were found, mean over the examples (the developer score or
        Q-score of the alignment literature).
    precision, recall, f1 : float
        Over the pairs of all examples together; 0 where there is nothing to divide by.
    exact : float
        Share of alignments that are right as a whole.
    """

    pair_accuracy: float
    precision: float
    recall: float
    f1: float
    exact: float

    def __str__(self) -> str:
        names = ("pairs found, mean", "precision of pairs", "recall of pairs", "F1 of pairs")
        fractions = zip((*names, "alignments right"), self, strict=True)
        return named_values((name, f"{percent(fraction)} %") for name, fraction in fractions)


def pair_counts(truths: Sequence[ArrayLike], predictions: Sequence[ArrayLike]) -> Floats:
    """True pairs, predicted pairs, and those that are both, of each example."""
    both = paired(truths, predictions, "alignments", ("truths", "predictions"))
    counts = np.zeros((len(both[0]), 3))
    for i, (row, truth, prediction) in enumerate(zip(counts, *both, strict=True)):
        true_pairs, found = _pairs(truth, f"truths[{i}]"), _pairs(prediction, f"predictions[{i}]")
        row[:] = len(true_pairs), len(found), len(true_pairs & found)
    return counts


def _pairs(given: ArrayLike, name: str) -> set[tuple[int, ...]]:
    """Pairs of positions; ValueError unless they are those of an alignment, from left to right."""
    found = as_floats(given, name)
    if found.size and (found.ndim != 2 or found.shape[1] != 2):
        raise ValueError(f"{name} must be pairs of positions, got {given!r:.60}")
    pairs = found.reshape(-1, 2)
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    is_whole = np.isfinite(pairs) & (pairs >= 0) & (pairs == np.floor(pairs))
    if not is_whole.all() or (np.diff(pairs, axis=0) <= 0).any():
        raise ValueError(
            f"{name} must be pairs of positions (whole numbers from 0), none of them twice, and no "
            f"two pairs that cross; got {given!r:.60}"
        )
    return set(map(tuple, pairs.astype(np.int64).tolist()))


def pair_accuracies(truths: Sequence[ArrayLike], predictions: Sequence[ArrayLike]) -> Floats:
    """Share of the true pairs of each example that were found; 1 where there are none.

    Parameters
    ----------
    truths, predictions : sequence of array of int, shape (n_pairs, 2)
        Paired positions.

    Returns
    -------
    ndarray of shape (n_examples,)
    """
    return _fractions_found(pair_counts(truths, predictions))


def _fractions_found(counts: Floats) -> Floats:
    """Share of the true pairs that were found, of the counts of each example."""
    n_true, _, n_right = counts.T
    fractions: Floats = np.where(n_true > 0, n_right / np.maximum(n_true, 1.0), 1.0)
    return fractions


def alignment_scores(
    truths: Sequence[ArrayLike], predictions: Sequence[ArrayLike]
) -> AlignmentScores:
    """Compare predicted alignments with the true ones.

    Parameters
    ----------
    truths, predictions : sequence of array of int, shape (n_pairs, 2)
        Paired positions.

    Returns
    -------
    AlignmentScores

    Examples
    --------
    >>> alignment_scores([[[0, 0], [1, 1]]], [[[0, 0], [1, 2]]]).recall
    0.5
    """
    counts = pair_counts(truths, predictions)
    n_true, n_found, n_right = counts.sum(axis=0)
    precision = float(n_right / n_found) if n_found else 0.0
    recall = float(n_right / n_true) if n_true else 0.0
    both = precision + recall
    return AlignmentScores(
        pair_accuracy=float(_fractions_found(counts).mean()),
        precision=precision,
        recall=recall,
        f1=2.0 * precision * recall / both if both else 0.0,
        exact=float((counts == counts[:, :1]).all(axis=1).mean()),
    )
