"""Dependency trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...formats import ConlluTreebank
from ...given import is_list
from ...metrics.tallies import tally_of_heads
from ...types import Floats
from ..drawings import dependency_tree
from .inputs import sequence_at, words_of
from .subject import Labels, Subject, known_labels, worst_first

__all__ = ["describe"]

FORM = 1


def describe(estimator: Any, X: Any, y: Any = None) -> Subject:
    """Heads of words, and labels of arcs if the parser has them."""
    is_labeled = estimator.labels_ is not None
    if y is None and isinstance(X, ConlluTreebank):
        y = X.labeled_heads() if is_labeled else X.heads()
    true, found = known_labels(y, "word"), [list(tree) for tree in estimator.predict(X)]
    if is_labeled and not all(is_list(arc) for tree in true for arc in tree):
        raise ValueError("the parser has labels; expected a pair (head, label) for each word of y")
    errors = [
        sum(a != b for a, b in zip(s, t, strict=True)) for s, t in zip(true, found, strict=True)
    ]

    def draw(i: int) -> tuple[str, str]:
        if isinstance(X, ConlluTreebank):
            words = [row[FORM] for row in X.rows[i]]
        else:
            words = words_of(X[i])
        title = f"sentence {i}: {errors[i]} of {len(words)} arcs wrong"
        if not is_labeled:
            return title, dependency_tree(words, true[i], found[i])
        (heads, labels), (guesses, guessed) = (
            zip(*tree, strict=True) for tree in (true[i], found[i])
        )
        return title, dependency_tree(words, heads, guesses, labels, guessed)

    labels = None
    if is_labeled:
        of_true, of_found = (
            [str(label) for tree in trees for _, label in tree] for trees in (true, found)
        )
        units = np.repeat(np.arange(len(true)), [len(tree) for tree in true])
        labels = Labels(of_true, of_found, units)
    return Subject(
        tally_of_heads(true, found),
        worst_first(errors, draw),
        labels,
        confidences=_confidences(estimator, X, true, found),
        asked=lambda i: (sequence_at(X, i), true[i]),
    )


def _confidences(
    estimator: Any, X: Any, true: list[Any], found: list[Any]
) -> tuple[Floats, Floats] | None:
    """Probabilities of the arcs found, and whether they are right."""
    if not hasattr(estimator, "calibration_"):
        return None
    labels = [] if estimator.labels_ is None else estimator.labels_.tolist()
    sure = [
        table[(t, arc[0], labels.index(arc[1])) if labels else (t, arc)]
        for table, tree in zip(estimator.predict_proba(X), found, strict=True)
        for t, arc in enumerate(tree)
    ]
    right = [a == b for s, t in zip(true, found, strict=True) for a, b in zip(s, t, strict=True)]
    return np.array(sure), np.array(right, np.float64)
