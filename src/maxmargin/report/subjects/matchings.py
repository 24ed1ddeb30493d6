"""Matchings of two sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...metrics import hamming
from ...metrics.tallies import tally_of_tags
from ..drawings import tagged_sentence
from .subject import Errors, Subject

__all__ = ["describe"]


def describe(estimator: Any, X: Any, y: Any) -> Subject:
    """Partners of the items of the first set."""
    for i, (x, own) in enumerate(zip(X, y, strict=True)):
        estimator._matcher.check_output(np.asarray(x), own, f"example {i}: ")
    true = [np.asarray(own).tolist() for own in y]
    found = [np.asarray(own).tolist() for own in estimator.predict(X)]
    wrong = hamming(true, found)

    def draw(i: int) -> tuple[str, str]:
        items = [f"item {k}" for k in range(len(true[i]))]
        title = f"example {i}: {int(wrong[i])} of {len(items)} partners wrong"
        return title, tagged_sentence(items, true[i], found[i])

    scores = tally_of_tags(true, found, set())
    return Subject(
        scores._replace(unit="matchings"),
        Errors(wrong, [len(own) for own in true]),
        draw,
        asked=lambda i: (X[i], true[i]),
    )
