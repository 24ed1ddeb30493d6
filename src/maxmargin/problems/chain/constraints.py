"""Which labels may stand where: constraints of chains."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...utils.types import Bools, Floats, Ints, Ints32

__all__ = ["ChainConstraints", "bio_constraints", "check_possible", "forbidden_moves"]


class ChainConstraints(NamedTuple):
    """Which labels may follow each other, open and close a sequence (True: allowed)."""

    transitions: Bools
    start: Bools
    stop: Bools

    def broken_by(self, labels: Ints32, offsets: Ints) -> Bools:
        """Tokens whose label may not stand where it does."""
        broken = np.zeros(len(labels), dtype=bool)
        broken[1:] = ~self.transitions[labels[:-1], labels[1:]]
        first, last = offsets[:-1], offsets[1:] - 1
        broken[first] = ~self.start[labels[first]]
        broken[last] |= ~self.stop[labels[last]]
        return broken

    def check_gold(self, labels: Ints32, offsets: Ints) -> None:
        """Raise ValueError if a training sequence breaks the constraints."""
        bad = self.broken_by(labels, offsets)
        if bad.any():
            token = int(np.argmax(bad))
            i = int(np.searchsorted(offsets, token, side="right")) - 1
            raise ValueError(
                f"the labels of sequence {i} break the constraints at token {token - offsets[i]}"
            )


def bio_constraints(labels: list[str]) -> ChainConstraints:
    """Allowed transitions of BIO (IOB2) tags: I-X only after B-X or I-X, and never first."""
    K = len(labels)
    names = [str(label) for label in labels]
    allowed = np.ones((K, K), dtype=bool)
    start = np.ones(K, dtype=bool)
    for k, name in enumerate(names):
        if name.startswith("I-"):
            kind = name[2:]
            allowed[:, k] = [other in (f"B-{kind}", f"I-{kind}") for other in names]
            start[k] = False
    return ChainConstraints(allowed, start, np.ones(K, dtype=bool))


def forbidden_moves(constraints: ChainConstraints | None, K: int) -> Floats:
    """0 or, where forbidden, -inf: for transitions, then one row for starts, one for stops."""
    if constraints is None:
        return np.zeros((K + 2, K))
    for mask, shape in zip(constraints, ((K, K), (K,), (K,)), strict=True):
        if mask.shape != shape:
            raise ValueError(f"constraints of shape {mask.shape}, expected {shape}")
    return np.where(np.vstack(constraints), 0.0, -np.inf)


def check_possible(impossible: Bools, before: int = 0) -> None:
    """Raise ValueError for the first sequence, behind others, that no labelling is allowed for."""
    if impossible.any():
        raise ValueError(
            f"sequence {before + int(np.argmax(impossible))}: no labelling has allowed labels and "
            "allowed transitions only"
        )
