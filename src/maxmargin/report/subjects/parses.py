"""Parse trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...formats import Tree, Treebank, as_tree
from ...metrics.brackets import bracket_counts
from ...metrics.tallies import tally_of_trees
from ...types import Floats
from ..drawings import parse_tree
from .subject import Errors, Subject, score_gaps

__all__ = ["describe"]


def describe(estimator: Any, X: Any, y: Any = None) -> Subject:
    """Constituents of sentences; X may be the true trees themselves."""
    given = X if y is None else y
    true = [as_tree(tree) for tree in (given.trees if isinstance(given, Treebank) else given)]
    inputs = true if y is None else X
    found = estimator.predict(inputs)
    counts, _ = bracket_counts(true, found)
    sizes = counts[:, 0] + counts[:, 1]
    errors = sizes - 2 * counts[:, 2]

    def draw(i: int) -> tuple[str, str]:
        missed, extra = counts[i, 0] - counts[i, 2], counts[i, 1] - counts[i, 2]
        title = f"sentence {i}: {missed} constituents missed, {extra} false"
        return title, parse_tree(found[i], true[i])

    return Subject(
        tally_of_trees(true, found),
        Errors(errors, sizes, lambda: score_gaps(estimator, inputs, true, found)),
        draw,
        confidences=_confidences(estimator, inputs, true, found),
        asked=lambda i: (inputs[i], true[i]),
    )


def _confidences(
    estimator: Any, X: Any, true: list[Tree], found: list[Any]
) -> tuple[Floats, Floats] | None:
    """Probabilities of the constituents found, and whether they are right."""
    if not hasattr(estimator, "calibration_"):
        return None
    pairs = [
        (probabilities.get(span, 0.0), span in set(tree.spans()))
        for probabilities, tree, own in zip(estimator.predict_proba(X), true, found, strict=True)
        for span in dict.fromkeys(own.spans())
        if probabilities  # none of a sentence that the grammar does not derive
    ]
    if not pairs:
        return None
    sure, right = np.array(pairs, np.float64).T
    return sure, right
