"""How good predicted grades are: classes in an order."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..tables import named_values, percent
from .sequences import listed, paired

__all__ = ["GradeScores", "grade_scores"]


class GradeScores(NamedTuple):
    """Scores of predicted grades.

    Attributes
    ----------
    mean_absolute_error : float
        Mean distance, counted in grades.
    accuracy : float
        Share of right grades.
    within_one : float
        Share of grades that are right or next to it.
    kappa : float
        Cohen's kappa with quadratic weights: 1 minus the mean squared distance over that of grades
        drawn at random from what was given and what was predicted. NaN where that is 0.
    """

    mean_absolute_error: float
    accuracy: float
    within_one: float
    kappa: float

    def __str__(self) -> str:
        return named_values(
            [
                ("mean absolute error", f"{self.mean_absolute_error:.4f} grades"),
                ("accuracy", f"{percent(self.accuracy)} %"),
                ("right or next to it", f"{percent(self.within_one)} %"),
                ("kappa, quadratic weights", f"{self.kappa:.4f}"),
            ]
        )


def grade_scores(
    y_true: Sequence[Any], y_pred: Sequence[Any], grades: Sequence[Any]
) -> GradeScores:
    """Compare predicted grades with the true ones.

    Parameters
    ----------
    y_true, y_pred : sequence
        Grades of the examples.
    grades : sequence
        All grades, from the lowest to the highest.

    Returns
    -------
    GradeScores

    Raises
    ------
    ValueError
        The lists differ in length or are empty, or have something that is no grade.

    Examples
    --------
    >>> grade_scores(["low", "high"], ["low", "medium"], ["low", "medium", "high"])[:2]
    (0.5, 0.5)
    """
    y_true, y_pred = paired(y_true, y_pred, "grades")
    order = list(listed(grades, "grades", "all grades, from the lowest to the highest"))
    place = {grade: k for k, grade in enumerate(order)}
    if len(place) < len(order):
        raise ValueError(f"grades has a grade twice: {order!r:.80}")
    for i, grade in enumerate([*y_true, *y_pred]):
        if not isinstance(grade, Hashable) or grade not in place:
            name = "y_true" if i < len(y_true) else "y_pred"
            raise ValueError(
                f"{name}[{i % len(y_true)}] is {grade!r:.40} ({type(grade).__name__}), which is "
                f"none of the grades {order!r:.80}"
            )
    true, found = (np.array([place[grade] for grade in y]) for y in (y_true, y_pred))
    far = np.abs(true - found)
    by_chance = float(np.mean((true[:, None] - np.arange(len(place))) ** 2 @ _shares(found, place)))
    kappa = 1.0 - float(np.mean(far**2)) / by_chance if by_chance else float("nan")
    return GradeScores(float(far.mean()), float(np.mean(far == 0)), float(np.mean(far <= 1)), kappa)


def _shares(found: Any, place: dict[Any, int]) -> Any:
    """How often each grade is found."""
    return np.bincount(found, minlength=len(place)) / len(found)
