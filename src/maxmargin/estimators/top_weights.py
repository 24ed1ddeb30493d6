"""Which weights of a fitted model are the strongest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from ..types import Floats, Ints

__all__ = ["strongest", "strongest_by_label"]


def strongest(weights: Floats, n: int, against: bool) -> list[int]:
    """Places of the largest positive weights, or of the smallest negative ones; at most n."""
    if not isinstance(n, Integral) or n < 1:
        raise ValueError(f"n must be a whole number >= 1, got {n!r}")
    merits = -weights if against else weights
    order = np.argsort(-merits, kind="stable")[:n]
    return order[merits[order] > 0.0].tolist()


def strongest_by_label(
    weights: Floats,
    labels: Sequence[Any],
    n: int,
    against: bool,
    names: Callable[[Ints], dict[int, str]],
) -> dict[Any, list[tuple[str, float]]]:
    """Names and weights of the features, in rows, that speak for or against labels, in columns."""
    chosen = [strongest(column, n, against) for column in weights.T]
    name_of = names(np.unique(np.concatenate(chosen)).astype(np.int64))
    return {
        label: [(name_of[f], float(weights[f, k])) for f in chosen[k]]
        for k, label in enumerate(labels)
    }
