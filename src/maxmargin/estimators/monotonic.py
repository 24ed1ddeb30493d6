"""Signs of weights, as scikit-learn writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..types import Ints

__all__ = ["monotonic_signs"]


def monotonic_signs(given: Any, n_features: int, names: Any) -> Ints:
    """The sign -1, 0 or 1 for each feature, from an array or a dict by name."""
    if isinstance(given, Mapping):
        given = _by_name(given, n_features, names)
    try:
        signs = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"monotonic_cst must be numbers, got {given!r:.60}") from None
    if signs.shape != (n_features,):
        raise ValueError(
            f"monotonic_cst has shape {signs.shape}, but there are {n_features} features"
        )
    bad = np.flatnonzero(~np.isin(signs, (-1.0, 0.0, 1.0)))
    if len(bad):
        raise ValueError(
            f"monotonic_cst must be -1, 0 or 1 for each feature, got {signs[bad[0]]:g} for "
            f"feature {bad[0]}"
        )
    return signs.astype(np.int64)


def _by_name(given: Mapping[Any, Any], n_features: int, names: Any) -> list[Any]:
    """The same in the order of the features."""
    if names is None:
        raise ValueError(
            "monotonic_cst has names of features, but X has none: give a DataFrame, or an array"
        )
    unknown = [name for name in given if name not in set(names)]
    if unknown:
        raise ValueError(f"monotonic_cst has {unknown[0]!r}, which is no column of X")
    return [given.get(name, 0) for name in names]
