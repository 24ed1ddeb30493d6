"""How much the examples of a classifier count: by themselves, and by their classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._warn import warn_user
from ..solvers.base import checked_weights
from ..types import Floats, Ints
from .examples import n_examples_of

__all__ = ["class_factors", "example_weights", "score_weights", "used_class_weight"]


def used_class_weight(class_weight: Any, has_effect: bool, otherwise: str) -> Any:
    """The parameter ``class_weight``; None, with a warning, where the loss has no use for it.

    A search over losses may set it for those that have.
    """
    if class_weight is None or has_effect:
        return class_weight
    warn_user(f"class_weight has no effect: {otherwise}")
    return None


def example_weights(
    sample_weight: ArrayLike | None, class_weight: Any, X: Any, y: NDArray[Any]
) -> Floats | None:
    """What the examples' slacks are multiplied by; None where that is 1 for all."""
    weights = _checked_weights(sample_weight, X)
    if class_weight is None:
        return weights
    classes, codes = np.unique(y, return_inverse=True)
    factors = class_factors(class_weight, classes.tolist(), codes, weights)
    return factors[codes] if weights is None else weights * factors[codes]


def class_factors(
    class_weight: Any, classes: list[Any], codes: Ints, weights: Floats | None
) -> Floats:
    """Weights of the classes by the parameter ``class_weight``.

    "balanced" counts the ``codes``, numbers of classes, by their ``weights``.
    """
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals: Floats = np.bincount(codes, weights, len(classes)).astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = totals.sum() / (len(classes) * totals)
        factors[totals == 0.0] = 0.0  # no example of weight is there to be multiplied
        return factors
    if isinstance(class_weight, Mapping):
        return _listed_factors(class_weight, classes)
    raise ValueError(
        f"class_weight must be None, 'balanced' or a mapping of class to weight, got "
        f"{class_weight!r:.60}"
    )


def _listed_factors(class_weight: Mapping[Any, Any], classes: list[Any]) -> Floats:
    """Weights of the classes by a mapping, 1 where it has none."""
    missing = [label for label in classes if label not in class_weight]
    extra = [label for label in class_weight if label not in set(classes)]
    texts = {str(label): label for label in missing}
    alike = [(label, texts[str(label)]) for label in extra if str(label) in texts]
    if alike:
        given, label = alike[0]
        raise ValueError(
            f"class_weight has {given!r:.40}, of type {type(given).__name__}; the class of y is "
            f"{label!r:.40}, of type {type(label).__name__}"
        )
    if missing and extra:  # as scikit-learn has it: a fold may lack a class
        raise ValueError(
            f"class_weight has {extra[0]!r:.40}, which is no class of y (a misspelling? there is "
            f"nothing for {missing[0]!r:.40})"
        )
    factors = np.array([_number(class_weight, label) for label in classes])
    bad = np.flatnonzero(~(factors >= 0.0) | ~np.isfinite(factors))
    if len(bad):
        raise ValueError(
            f"class_weight[{classes[bad[0]]!r:.40}] is {factors[bad[0]]}; weights must be finite "
            "and >= 0"
        )
    return factors


def _number(class_weight: Mapping[Any, Any], label: Any) -> float:
    """The weight of a class; ValueError unless it is a number."""
    weight = class_weight.get(label, 1.0)
    try:
        return float(weight)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"class_weight[{label!r:.40}] is {weight!r:.40}; weights must be finite and >= 0"
        ) from None


def score_weights(sample_weight: ArrayLike | None, n_examples: int) -> Floats:
    """Weights of examples in a score, ones by default; ValueError if none counts."""
    weights = checked_weights(sample_weight, n_examples)
    if not weights.any():
        raise ValueError(
            "sample_weight is 0 for all examples, expected at least one non-zero weight"
        )
    return weights


def _checked_weights(sample_weight: ArrayLike | None, X: Any) -> Floats | None:
    """Sample weights as floats; None stays None."""
    if sample_weight is None:
        return None
    n = n_examples_of(X)
    return score_weights(sample_weight, n) if n else checked_weights(sample_weight, n)
