"""Pairs of lists of sequences, checked and laid out flat."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from ..types import Ints

__all__ = ["flat_pair", "flatten", "sums_of"]


def flat_pair(y_true: Sequence[Any], y_pred: Sequence[Any]) -> tuple[list[Any], list[Any], Ints]:
    """Check that two lists of sequences have the same lengths and flatten both."""
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} sequences, y_pred has {len(y_pred)}")
    if len(y_true) == 0:
        raise ValueError("expected at least one sequence, found none")
    for i, (true, predicted) in enumerate(zip(y_true, y_pred, strict=True)):
        for name, sequence in (("y_true", true), ("y_pred", predicted)):
            if isinstance(sequence, (str, bytes)) or not hasattr(sequence, "__len__"):
                raise ValueError(
                    f"sequence {i} of {name} is {sequence!r:.40}, expected a sequence of labels"
                )
        if len(true) != len(predicted):
            raise ValueError(
                f"sequence {i} has {len(true)} labels in y_true, {len(predicted)} in y_pred"
            )
    offsets = np.zeros(len(y_true) + 1, dtype=np.int64)
    np.cumsum([len(sequence) for sequence in y_true], out=offsets[1:])
    if offsets[-1] == 0:
        raise ValueError("all sequences are empty, expected at least one label")
    return flatten(y_true), flatten(y_pred), offsets


def sums_of(values: Ints, offsets: Ints) -> Ints:
    """Sum over each sequence; 0 of an empty one."""
    totals = np.zeros(len(values) + 1, values.dtype)
    np.cumsum(values, out=totals[1:])
    sums: Ints = np.diff(totals[offsets])
    return sums


def flatten(sequences: Sequence[Any]) -> list[Any]:
    """Labels of all sequences in one list, as Python values."""
    plain = (s.tolist() if isinstance(s, np.ndarray) else s for s in sequences)
    return list(chain.from_iterable(plain))
