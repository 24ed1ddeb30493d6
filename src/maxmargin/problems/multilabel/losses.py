"""Losses of sets of labels; all are functions of how many labels are missed and how many added."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ...jit.decorator import kernel
from ...search.modes import BEST_NON_GOLD, PREDICTION
from ...search.violation import violation
from ...utils.types import Bools

__all__ = ["LOSSES", "LabelLoss", "label_loss", "loss_of", "value_of_counts"]

LabelLoss = Literal["hamming", "f1", "zero_one"]
LOSSES = ("hamming", "f1", "zero_one")
HAMMING, F1, ZERO_ONE = range(3)  # their numbers in LOSSES


@kernel(allocates=False)
def label_loss(loss, n_on, missed, added):
    """The loss of a set that misses some of ``n_on`` labels and has others added."""
    wrong = missed + added
    if wrong == 0:
        return 0.0
    if loss == HAMMING:
        return float(wrong)
    if loss == F1:  # 1 - 2 right / (labels + found labels)
        return wrong / (2.0 * n_on - missed + added)
    return 1.0


@kernel(allocates=False)
def value_of_counts(loss, mode, n_on, missed, added, gain):
    """Violation of a set of labels by its counts and its gain."""
    if mode.kind == PREDICTION:
        return gain
    if mode.kind == BEST_NON_GOLD:
        return 1.0 + gain
    return violation(label_loss(loss, n_on, missed, added), gain, mode)


def loss_of(loss: LabelLoss, gold: Bools, found: Bools) -> float:
    """The loss of one set of labels."""
    missed, added = np.count_nonzero(gold & ~found), np.count_nonzero(found & ~gold)
    number = LOSSES.index(loss)
    return float(label_loss(number, np.count_nonzero(gold), missed, added))
