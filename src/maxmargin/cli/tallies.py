"""Scores of predictions, unit by unit."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..metrics import Ratio, are_chunk_tags, chunk_counts, hamming
from .judging import Tally

__all__ = ["mean_of", "tally_of_labels", "tally_of_tags"]


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


def mean_of(values: Any) -> Ratio:
    """The mean of a value that every unit has."""
    tops = np.asarray(values, np.float64)
    return Ratio(tops, np.ones(len(tops)))
