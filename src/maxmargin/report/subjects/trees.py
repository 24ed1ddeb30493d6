"""Labelled trees, and parts of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...metrics import hamming
from ...metrics.tallies import tally_of_losses, tally_of_tags
from ...types import Floats
from ..drawings import parts_of_image, tagged_sentence
from .subject import Labels, Subject, known_labels, worst_first

__all__ = ["describe"]


def describe(estimator: Any, X: Any, y: Any) -> Subject:
    """Labels of nodes, or places of parts."""
    found = estimator.predict(X)
    if estimator.outputs == "positions":
        return _of_places(estimator, X, np.asarray(y), found)
    true, guesses = known_labels(y, "node"), found.tolist()
    wrong = hamming(true, guesses)

    def draw(i: int) -> tuple[str, str]:
        nodes = [f"node {v}" for v in range(len(true[i]))]
        return f"tree {i}: {int(wrong[i])} labels wrong", tagged_sentence(
            nodes, true[i], guesses[i]
        )

    flat_true, flat_found = (
        [f"{v}: {label}" for own in ys for v, label in enumerate(own)] for ys in (true, guesses)
    )
    units = np.repeat(np.arange(len(true)), [len(own) for own in true])
    scores = tally_of_tags(true, guesses, set())
    return Subject(
        scores._replace(unit="trees"),
        worst_first(wrong, draw),
        Labels(flat_true, flat_found, units),
        _confidences(estimator, X, true, found),
        asked=lambda i: (estimator._inputs_at(X, np.array([i])), true[i]),
    )


def _confidences(
    estimator: Any, X: Any, true: list[Any], found: Any
) -> tuple[Floats, Floats] | None:
    """Probabilities of the labels found, and whether they are right."""
    if not hasattr(estimator, "calibration_"):
        return None
    sure, right = [], []
    for v, table in enumerate(estimator.predict_proba(X)):
        labels = estimator.classes_[v].tolist()
        for i, label in enumerate(found[:, v].tolist()):
            sure.append(table[i, labels.index(label)])
            right.append(label == true[i][v])
    return np.array(sure), np.array(right, np.float64)


def _of_places(estimator: Any, X: Any, true: Any, found: Any) -> Subject:
    """Parts that are far from where they should be."""
    far = np.sqrt(((true - found) ** 2).sum(axis=2)).mean(axis=1)

    def draw(i: int) -> tuple[str, str]:
        return f"image {i}: parts {far[i]:.2f} pixels off, on average", parts_of_image(
            X[i], true[i], found[i]
        )

    tally = tally_of_losses(far)
    scores = {"mean_distance": tally.scores["mean_loss"]}
    return Subject(tally._replace(unit="images", scores=scores), worst_first(far, draw))
