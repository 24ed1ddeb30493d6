"""Dependency trees."""

from __future__ import annotations

from typing import Any

from ...formats import ConlluTreebank
from ...metrics.tallies import tally_of_heads
from ..drawings import dependency_tree
from .inputs import words_of
from .subject import Subject, worst_first

__all__ = ["describe"]

FORM = 1


def describe(estimator: Any, X: Any, y: Any = None) -> Subject:
    """Heads of words, and labels of arcs if the parser has them."""
    is_labeled = estimator.labels_ is not None
    if y is None and isinstance(X, ConlluTreebank):
        y = X.labeled_heads() if is_labeled else X.heads()
    true, found = [list(tree) for tree in y], [list(tree) for tree in estimator.predict(X)]
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

    return Subject(tally_of_heads(true, found), worst_first(errors, draw))
