"""Parse trees."""

from __future__ import annotations

from typing import Any

from ...formats import Treebank, as_tree
from ...metrics.brackets import bracket_counts
from ...metrics.tallies import tally_of_trees
from ..drawings import parse_tree
from .subject import Subject, worst_first

__all__ = ["describe"]


def describe(estimator: Any, X: Any, y: Any = None) -> Subject:
    """Constituents of sentences; X may be the true trees themselves."""
    given = X if y is None else y
    true = [as_tree(tree) for tree in (given.trees if isinstance(given, Treebank) else given)]
    found = estimator.predict(true if y is None else X)
    counts, _ = bracket_counts(true, found)
    errors = counts[:, 0] + counts[:, 1] - 2 * counts[:, 2]

    def draw(i: int) -> tuple[str, str]:
        missed, extra = counts[i, 0] - counts[i, 2], counts[i, 1] - counts[i, 2]
        title = f"sentence {i}: {missed} constituents missed, {extra} false"
        return title, parse_tree(found[i], true[i])

    return Subject(tally_of_trees(true, found), worst_first(errors, draw))
