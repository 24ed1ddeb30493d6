"""Labelled sequences, checked: what chains of all orders are given."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ...types import Ints, Ints32
from ...validation import is_one_of

__all__ = ["ChainLoss", "check_loss", "labelled_tokens"]

ChainLoss = Literal["hamming", "normalized-hamming", "zero-one"]


def check_loss(loss: str) -> None:
    """Raise ValueError unless a loss is one of chains."""
    if not is_one_of(loss, ("hamming", "normalized-hamming", "zero-one")):
        raise ValueError(
            f"loss must be 'hamming', 'normalized-hamming' or 'zero-one', got {loss!r}"
        )


def labelled_tokens(n_tokens: int, offsets: ArrayLike, labels: ArrayLike) -> tuple[Ints, Ints32]:
    """Offsets and labels for kernels; ValueError unless they are those of so many tokens."""
    codes = np.ascontiguousarray(labels, dtype=np.int32)
    bounds = np.ascontiguousarray(offsets, dtype=np.int64)
    if not len(codes) == n_tokens == bounds[-1] or bounds[0] != 0:
        raise ValueError(
            f"tokens has {n_tokens} rows, labels has {len(codes)} entries and offsets runs "
            f"from {bounds[0]} to {bounds[-1]}; the first two and the last must be equal"
        )
    lengths = np.diff(bounds)
    if len(lengths) and lengths.min() < 1:
        raise ValueError(f"sequence {int(np.argmin(lengths))} is empty")
    return bounds, codes
