"""What users give, as what is expected: numbers, lists; errors say what came instead."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .types import Floats

__all__ = ["as_floats", "as_sample_weights", "is_at_least", "is_list", "is_one_of"]


def as_floats(values: Any, name: str) -> Floats:
    """Values as an array of floats; ValueError, with their name, if they are no real numbers."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "cmMV":
            return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):  # ragged lists, words, objects
        pass
    raise ValueError(f"{name} must be numbers, got {values!r:.60}")


def as_sample_weights(sample_weight: ArrayLike | None) -> Floats | None:
    """Weights of examples as floats; None stays None."""
    return None if sample_weight is None else as_floats(sample_weight, "sample_weight")


def is_list(value: Any) -> bool:
    """Whether this is a list of something, of any kind, and no string."""
    if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__len__"):
        return False
    return getattr(value, "ndim", 1) > 0 and hasattr(value, "__getitem__")


def is_at_least(value: Any, least: float) -> bool:
    """Whether it is a finite number that is not smaller."""
    try:
        return isinstance(value, Real) and least <= float(value) < math.inf
    except OverflowError:  # a whole number beyond all others
        return False


def is_one_of(value: Any, choices: Collection[str]) -> bool:
    """Whether it is one of some words; an array, say, is none."""
    return isinstance(value, str) and value in choices
