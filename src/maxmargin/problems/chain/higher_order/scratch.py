"""Inputs and work arrays of the kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....engine.rows import Rows
from ....search.limits import MOST_TABLE_BYTES
from ....types import Bools, Floats, Ints32
from .k_best import KBestLists
from .layout import HigherOrderModel

__all__ = ["HigherOrderInputs", "HigherOrderScratch", "make_lists", "make_scratch"]


class HigherOrderInputs(NamedTuple):
    """Token features, and those on pairs of labels (of no columns: there are none)."""

    rows: Rows
    pair_rows: Rows


class HigherOrderScratch(NamedTuple):
    """Work arrays of the kernels, for the longest sequence."""

    scores: Floats  # (state, label): of moves
    unary: Floats  # (length, column)
    pair_sums: Floats  # (pair,)
    pairs: Floats  # (length, label * label)
    forward: Floats  # (length, level, state)
    reached: Floats  # (state,)
    best: Floats  # (label,)
    path: Ints32  # (length,)
    wrong: Bools  # (length, label): whether it costs something; for levels only
    all_allowed: Bools  # empty


def make_scratch(
    model: HigherOrderModel, longest: int, n_error_counts: int = 1
) -> HigherOrderScratch:
    """Work arrays for sequences of at most ``longest`` tokens."""
    K, S = model.n_labels, model.states.n_states
    _check_table(8 * longest * n_error_counts * S, "", longest, n_error_counts, S)
    return HigherOrderScratch(
        np.empty((S, K)),
        np.empty((longest, model.n_columns)),
        np.empty(model.n_pairs),
        np.empty((longest, K * K if model.has_pairs else 0)),
        np.empty((longest, n_error_counts, S)),
        np.empty(S),
        np.empty(K),
        np.empty(longest, np.int32),
        np.empty((longest, K), np.bool_),
        np.empty((0, 0), np.bool_),
    )


def make_lists(
    model: HigherOrderModel, longest: int, k: int, n_error_counts: int = 1
) -> KBestLists:
    """Lists of the k best paths through sequences of at most ``longest`` tokens."""
    S = model.states.n_states
    size = longest * n_error_counts * S * (16 * k + 4)
    _check_table(size, f" for the {k} best labellings", longest, n_error_counts, S)
    shape = (longest, n_error_counts, S, k)
    return KBestLists(
        np.empty(shape),
        np.empty(shape, np.int32),
        np.empty(shape, np.int32),
        np.empty(shape[:3], np.int32),
        np.zeros(n_error_counts),
        np.ones(n_error_counts),
        np.empty((n_error_counts, S), np.int32),
        np.empty((k, longest), np.int32),
        np.empty(k),
    )


def _check_table(size: int, what: str, longest: int, n_error_counts: int, n_states: int) -> None:
    """Raise ValueError for a table that takes too much memory."""
    if size > MOST_TABLE_BYTES:
        error_counts = f" and {n_error_counts} numbers of errors" if n_error_counts > 1 else ""
        raise ValueError(
            f"the search{what} in {longest} tokens with {n_states} states{error_counts} takes "
            f"{size / 2**30:.1f} GiB, more than {MOST_TABLE_BYTES / 2**30:.0f}; use "
            f"{'a smaller k, ' if what else ''}shorter sequences or a lower order"
            + (", or rescaling='margin' with sqrt_loss=False" if n_error_counts > 2 else "")
        )
