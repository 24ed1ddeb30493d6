"""What reports need to know of predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...features.containers import as_list
from ...metrics.tallies import Tally
from ...types import Floats, Ints

__all__ = ["Labels", "Subject", "Worst", "confidences_of", "known_labels", "worst_first"]

SHOWN = 30  # worst examples


class Labels(NamedTuple):
    """True and found labels of all positions, and which example each belongs to."""

    true: list[Any]
    found: list[Any]
    units: Ints


class Worst(NamedTuple):
    """An example that went wrong: its number, heading, and drawing."""

    example: int
    title: str
    drawing: str


class Subject(NamedTuple):
    """Predictions of a model on examples whose outputs are known.

    Attributes
    ----------
    tally : Tally
        Scores, unit by unit.
    worst : list of Worst
        Examples that went wrong, the worst first.
    labels : Labels or None
        For confusions and scores of each label; None where outputs have no labels.
    confidences : pair of arrays, or None
        How sure the model was of what it found, and whether it was right, position by position.
    order : list or None
        Labels from the lowest to the highest, if they have an order.
    asked : callable or None
        Of the example of this number the input and the true output, for explanations; where there
        is no comparing with the truth, None in place of it.
    """

    tally: Tally
    worst: list[Worst]
    labels: Labels | None = None
    confidences: tuple[Floats, Floats] | None = None
    order: list[Any] | None = None
    asked: Callable[[int], tuple[Any, Any]] | None = None


def worst_first(errors: ArrayLike, draw: Callable[[int], tuple[str, str]]) -> list[Worst]:
    """Draw the examples with the most errors; those without any are left out."""
    numbers = np.asarray(errors, np.float64)
    order = np.argsort(-numbers, kind="stable")[:SHOWN]
    return [Worst(i, *draw(i)) for i in order.tolist() if numbers[i] > 0.0]


def known_labels(y: Any, positions: str = "token") -> list[list[Any]]:
    """Labels of all positions of all examples, of Python's own types; ValueError for unknown ones.

    Labels may be tuples, which numpy would take apart.
    """
    rows = [own.tolist() if isinstance(own, np.ndarray) else list(own) for own in as_list(y, "y")]
    for i, own in enumerate(rows):
        for t, label in enumerate(own):
            parts = label if isinstance(label, (tuple, list)) else (label,)
            if any(part is None or isinstance(part, (set, frozenset)) for part in parts):
                raise ValueError(
                    f"y[{i}], {positions} {t}: {label!r:.40} is not known for sure; a report needs "
                    "outputs that are all known"
                )
    return rows


def confidences_of(
    estimator: Any, X: Any, true: Sequence[Any], found: Sequence[Any]
) -> tuple[Floats, Floats] | None:
    """How sure a calibrated model is of the labels found, position by position, in order."""
    if not hasattr(estimator, "calibration_"):
        return None
    tables = estimator.predict_proba(X)
    flat = np.vstack(tables) if isinstance(tables, list) else np.asarray(tables)
    number = {label: k for k, label in enumerate(np.asarray(estimator.classes_).tolist())}
    columns = np.array([number[label] for label in found])
    right = np.array([a == b for a, b in zip(true, found, strict=True)], np.float64)
    return flat[np.arange(len(columns)), columns], right
