"""Fitted models that others are to differ from as little as they can."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..sparse_format import check_sparse
from ..types import Floats
from ..weight_constraints import WeightConstraints
from .base import MaxMarginEstimator

__all__ = ["all_classes", "check_prior", "prior_mean"]


def check_prior(prior: Any, estimator: MaxMarginEstimator, same: tuple[str, ...]) -> None:
    """Raise ValueError unless a prior is a fitted model of the kind that these parameters make."""
    check_sparse(prior, "prior")
    kind = type(estimator).__name__
    if not isinstance(prior, type(estimator)):
        raise ValueError(f"prior must be a fitted {kind}, got {prior!r:.60}")
    prior._check_fitted()
    for name in same:
        own, other = getattr(estimator, name), getattr(prior, name)
        if own is not other and own != other:
            raise ValueError(
                f"prior must have been fitted with the same {name}: {own!r:.40}, got {other!r:.40}"
            )


def all_classes(seen: NDArray[Any], known: NDArray[Any]) -> NDArray[Any]:
    """The classes of some data and those that a prior knows; ValueError if they cannot be mixed."""
    try:
        together = np.union1d(seen, known)
        texts = [classes.dtype.kind in "US" for classes in (seen, known, together)]
        lost = texts[2] and not (texts[0] and texts[1])
    except TypeError:  # of objects that have no order
        lost = True
    if lost:  # numbers would have become strings
        raise ValueError(
            f"y has classes such as {seen.tolist()[0]!r:.40}, but those of the prior are of "
            f"another type, such as {known.tolist()[0]!r:.40}"
        )
    return together


def prior_mean(mean: Floats | None) -> WeightConstraints | None:
    """Constraints with this mean, if there is one."""
    if mean is None:
        return None
    return WeightConstraints(mean=np.ascontiguousarray(mean, dtype=np.float64))
