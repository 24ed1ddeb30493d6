"""What users give, as what is expected: numbers, lists; errors say what came instead."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from .sparse_format import check_sparse
from .types import Floats

__all__ = [
    "LARGEST",
    "ParameterError",
    "as_floats",
    "as_real_numbers",
    "as_sample_weights",
    "check_choice",
    "check_same_length",
    "first_unusable",
    "is_at_least",
    "is_list",
    "is_one_of",
    "spelling_hint",
    "unusable",
]

#: Of C and of features, in size: objectives of larger ones would overflow.
LARGEST = 1e100


class ParameterError(ValueError):
    """A parameter has a value that it cannot have.

    The text is the name and the problem: ``C`` and ``must be positive, got -1.0``. The command line
    puts the name of its option there instead.

    Parameters
    ----------
    name : str
        The parameter.
    problem : str
        What is wrong, and what was expected.
    """

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(name, problem)
        self.name = name
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.name} {self.problem}"


def as_floats(values: Any, name: str) -> Floats:
    """Values as an array of floats; ValueError, with their name, if they are no real numbers."""
    return as_real_numbers(values, name).astype(np.float64, copy=False)


def as_real_numbers(values: Any, name: str) -> NDArray[Any]:
    """The same, but single precision stays."""
    check_sparse(values, name)
    try:
        array = np.asarray(values)
        if array.dtype == np.float32:
            return array
        if array.dtype.kind not in "cmMV":
            return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):  # ragged lists, words, objects
        pass
    try:
        shown = f"{values!r:.60}"
    except Exception:  # a list with a damaged matrix, say
        shown = type(values).__name__
    raise ValueError(f"{name} must be numbers, got {shown}")


def as_sample_weights(sample_weight: ArrayLike | None) -> Floats | None:
    """Weights of examples as floats; None stays None."""
    return None if sample_weight is None else as_floats(sample_weight, "sample_weight")


def check_same_length(
    n_inputs: int, n_outputs: int, example: str = "example", y: str = "y"
) -> None:
    """Raise ValueError where there are not as many outputs as inputs."""
    if n_inputs != n_outputs:
        raise ValueError(
            f"X has {n_inputs} {example}s but {y} has {n_outputs}; first without a partner: "
            f"{min(n_inputs, n_outputs)}"
        )


def first_unusable(values: NDArray[Any]) -> int | None:
    """Place, counted in C order, of the first number that is NaN, infinite or beyond `LARGEST`."""
    # Neither needs a temporary array, and NaN is the result of both.
    if not values.size or max(float(values.max()), -float(values.min())) <= LARGEST:
        return None
    return int(np.argmax(~(np.abs(values) <= LARGEST)))


def unusable(value: float) -> str:
    """What is wrong with such a number."""
    if math.isfinite(value):
        return f"the value {value:g}, which is too large to compute with: scale the features"
    return "a NaN or infinite value"


def is_list(value: Any) -> bool:
    """Whether this is a list of something, of any kind, and no string."""
    if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__len__"):
        return False
    if issparse(value):  # has no length
        return False
    return getattr(value, "ndim", 1) > 0 and hasattr(value, "__getitem__")


def is_at_least(value: Any, least: float, *, finite: bool = True) -> bool:
    """Whether it is a number that is not smaller; a limit may also be infinite."""
    try:
        number = float(value) if isinstance(value, Real) else math.nan
    except OverflowError:  # a whole number beyond all others
        return False
    return least <= number and (number < math.inf or not finite)


def is_one_of(value: Any, choices: Collection[str]) -> bool:
    """Whether it is one of some words; an array, say, is none."""
    return isinstance(value, str) and value in choices


def check_choice(value: Any, choices: Collection[str], name: str) -> None:
    """Raise ParameterError, with the choices, unless a value is one of them."""
    if is_one_of(value, choices):
        return
    *rest, last = map(repr, choices)
    listed = f"{', '.join(rest)} or {last}" if rest else last
    raise ParameterError(
        name, f"must be {listed}, got {value!r:.60}{spelling_hint(value, choices)}"
    )


def spelling_hint(value: Any, choices: Collection[str]) -> str:
    """Which choice is meant by a value with hyphens or `@` instead of underscores; else nothing."""
    meant = value.replace("-", "_").replace("@", "_at_") if isinstance(value, str) else value
    return f" (did you mean {meant!r}?)" if is_one_of(meant, choices) else ""
