"""Dependency trees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...formats import ConlluTreebank
from ...metrics.tallies import tally_of_heads
from ...types import Floats
from ...validation import is_list
from ..drawings import dependency_tree
from .inputs import sequence_at, words_of
from .subject import Errors, Labels, Subject, count_labels, known_labels, score_gaps

__all__ = ["describe"]

FORM = 1
RIGHT = "An arc is right if its head and its relation are."


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

    labels, by_label = None, []
    if is_labeled:
        of_true, of_found = (
            [str(label) for tree in trees for _, label in tree] for trees in (true, found)
        )
        labels = Labels(of_true, of_found, "Labels of words, whether their heads are right or not.")
        by_label = [count_labels("Arcs by relation", true, found, _arcs, RIGHT)]

    def margins() -> Floats:
        known = set() if labels is None else set(estimator.labels_.tolist())

        def is_known(tree: Any) -> bool:
            return labels is None or {label for _, label in tree} <= known

        return score_gaps(estimator, X, true, found, is_known)

    return Subject(
        tally_of_heads(true, found),
        Errors(errors, [len(tree) for tree in true], margins),
        draw,
        by_label,
        labels,
        confidences=_confidences(estimator, X, true, found),
        asked=lambda i: (sequence_at(X, i), true[i]),
    )


def _arcs(tree: Any) -> Iterator[tuple[int, Any, str]]:
    """Words with their heads and relations."""
    return ((t, head, str(label)) for t, (head, label) in enumerate(tree))


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
