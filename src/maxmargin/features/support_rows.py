"""Rows near the margins of a first, cheap model: what a classifier with a kernel is made of.

The weights of a kernel machine are sums over its support vectors, the rows within its margins or on
their wrong side, so a basis for its weights is best looked for among these (Keerthi, Chapelle &
DeCoste 2006). Which they are is known roughly from a model of a much lower rank.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..formulation import Formulation
from ..problems.classes.multiclass import MulticlassProblem
from ..solvers.auto import Auto
from ..types import Floats, Ints
from .pivoted_cholesky import pivoted_cholesky

__all__ = ["least_margins"]

#: C of the first model, whose kernel is scaled to values near 1, and its relative gap.
C, TOL = 10.0, 0.05


def least_margins(
    columns: Callable[[Ints], NDArray[Any]],
    diagonal: Floats,
    classes: Ints,
    count: int,
    *,
    rank: int,
    generator: np.random.Generator,
) -> Ints:
    """So many rows of a kernel matrix, those that a model of this rank classifies worst."""
    features = pivoted_cholesky(
        columns, diagonal, max_rank=rank, basis="random", tol=0.0, random_state=generator
    ).features
    features /= np.sqrt(diagonal.mean())
    problem = MulticlassProblem(features, classes, fit_intercept=True)
    solver = Auto(tol=TOL, random_state=int(generator.integers(2**31)))
    w = solver.solve(problem, Formulation(), C).w
    weights = w.reshape(-1, problem.n_classes).astype(features.dtype)
    scores = features @ weights[:-1] + weights[-1]
    rows = np.arange(len(classes))
    own = scores[rows, classes]
    scores[rows, classes] = -np.inf
    return np.argsort(own - scores.max(axis=1), kind="stable")[:count]
