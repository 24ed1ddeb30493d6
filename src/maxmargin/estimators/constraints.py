"""Forbidden transitions between labels, in the forms a user may give them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..problems.chain.problem import ChainConstraints, bio_constraints

__all__ = ["make_constraints"]

logger = logging.getLogger("maxmargin")


def make_constraints(constraints: Any, classes: NDArray[Any]) -> ChainConstraints | None:
    """Turn the parameter ``constraints`` of a tagger into masks over the labels."""
    if constraints is None or isinstance(constraints, ChainConstraints):
        return constraints
    labels = classes.tolist()
    if isinstance(constraints, str):
        if constraints != "bio":
            raise ValueError(
                "constraints must be 'bio', a boolean mask or forbidden (from, to) pairs, "
                f"got {constraints!r}"
            )
        names = [str(label) for label in labels]
        if not any(name.startswith(("B-", "I-")) for name in names):
            raise ValueError(
                f"constraints='bio' needs labels such as 'B-X', 'I-X' and 'O', got {labels[:6]}"
            )
        return bio_constraints(names)
    K = len(labels)
    if isinstance(constraints, np.ndarray) and constraints.dtype == bool:
        if constraints.shape != (K, K):
            raise ValueError(
                f"constraints has shape {constraints.shape}, but Y has {K} labels: expected "
                f"{(K, K)}, True where the second label may follow the first"
            )
        allowed = constraints.copy()
    else:
        allowed = np.ones((K, K), dtype=bool)
        numbers = {label: k for k, label in enumerate(labels)}
        for before, after in _pairs(constraints):
            if before in numbers and after in numbers:
                allowed[numbers[before], numbers[after]] = False
            else:  # as in a fold that lacks a label
                logger.debug("constraint %r -> %r names a label not in Y", before, after)
    everywhere = np.ones(K, dtype=bool)
    return ChainConstraints(allowed, everywhere, everywhere.copy())


def _pairs(constraints: Any) -> Iterable[tuple[Any, Any]]:
    """Forbidden pairs out of a list of them, or a mapping from a label to those after it."""
    if isinstance(constraints, Mapping):
        for before, followers in constraints.items():
            one = isinstance(followers, str) or not isinstance(followers, Iterable)
            yield from ((before, after) for after in ([followers] if one else followers))
        return
    if not isinstance(constraints, Iterable):
        raise ValueError(
            "constraints must be 'bio', a boolean mask or forbidden (from, to) pairs, "
            f"got {constraints!r:.60}"
        )
    for k, pair in enumerate(constraints):
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise ValueError(f"constraints[{k}] is {pair!r:.40}, expected a pair (from, to)")
        before, after = pair
        yield before, after
