"""Labelled trees, and parts of images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...metrics import hamming
from ...metrics.tallies import tally_of_losses, tally_of_tags
from ...types import Floats
from ..drawings import parts_of_image, tagged_sentence
from .subject import Errors, Labels, Subject, count_labels, known_labels

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
        title = f"tree {i}: {int(wrong[i])} of {len(nodes)} labels wrong"
        return title, tagged_sentence(nodes, true[i], guesses[i])

    flat_true, flat_found = (
        [name for own in ys for (name,) in _of_nodes(own)] for ys in (true, guesses)
    )
    scores = tally_of_tags(true, guesses, set())
    return Subject(
        scores._replace(unit="trees"),
        Errors(wrong, [len(own) for own in true]),
        draw,
        [count_labels("Labels", true, guesses, _of_nodes)],
        Labels(flat_true, flat_found),
        _confidences(estimator, X, true, found),
        asked=lambda i: (estimator._inputs_at(X, np.array([i])), true[i]),
    )


def _of_nodes(labels: list[Any]) -> Iterator[tuple[str]]:
    """Labels with the numbers of their nodes."""
    return ((f"{v}: {label}",) for v, label in enumerate(labels))


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
    return Subject(tally._replace(unit="images", scores=scores), Errors(far), draw)
