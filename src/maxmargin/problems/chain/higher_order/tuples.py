"""Which tuples of labels have weights of their own: those seen in training, or all allowed ones."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....types import Bools, Ints, Ints32

__all__ = ["LabelTuples", "WhichTuples", "check_size", "label_tuples"]

WhichTuples = Literal["seen", "allowed"]
#: Of the search: a move is a state with a label to come. A token then takes milliseconds.
MOST_MOVES = 2**22


class LabelTuples(NamedTuple):
    """Tuples of consecutive labels, one in a row, without repetition and in order.

    All pairs have a weight as transitions; ``pairs`` are those that features of the input have
    weights for. All other labellings are possible, too, with the weights of shorter tuples alone.
    """

    pairs: NDArray[np.integer]
    triples: NDArray[np.integer]
    quadruples: NDArray[np.integer]


def label_tuples(
    labels: Ints32,
    offsets: Ints,
    n_labels: int,
    *,
    order: int,
    pairs: bool,
    which: WhichTuples = "seen",
    may_follow: Bools | None = None,
) -> LabelTuples:
    """The tuples for transitions of an order; ``pairs``: whether inputs have features on pairs.

    ``may_follow[j, k]`` tells whether label k may follow label j.
    """
    if which == "allowed":
        follows = np.ones((n_labels, n_labels), bool) if may_follow is None else may_follow
        _check_walks(follows, order)

    def found(length: int, wanted: bool) -> Ints32:
        if not wanted:
            return np.empty((0, length), np.int32)
        return _walks(follows, length) if which == "allowed" else _seen(labels, offsets, length)

    return LabelTuples(found(2, pairs), found(3, order >= 2), found(4, order >= 3))


def _seen(labels: Ints32, offsets: Ints, length: int) -> Ints32:
    """Tuples of consecutive labels that occur within sequences."""
    lengths = np.diff(offsets)
    place = np.arange(len(labels)) - np.repeat(offsets[:-1], lengths)
    starts = np.flatnonzero(place + length <= np.repeat(lengths, lengths))
    windows = labels[starts[:, None] + np.arange(length)]
    return np.unique(windows, axis=0).astype(np.int32).reshape(-1, length)


def _walks(follows: Bools, length: int) -> Ints32:
    """All tuples in which each label may follow the one before."""
    found = np.arange(len(follows), dtype=np.int32)[:, None]
    for _ in range(length - 1):
        row, label = np.nonzero(follows[found[:, -1]])
        found = np.column_stack([found[row], label.astype(np.int32)])
    return found


def _check_walks(follows: Bools, order: int) -> None:
    """Refuse to list too many."""
    steps = follows.astype(np.float64)
    ends, n_states = np.ones(len(follows)), float(len(follows))
    for _ in range(order - 1):
        ends = ends @ steps
        n_states += float(ends.sum())
    check_size(round(n_states), len(follows))


def check_size(n_states: int, n_labels: int) -> None:
    """Raise ValueError for more states than can be searched."""
    if n_states * n_labels > MOST_MOVES:
        raise ValueError(
            f"{n_states} states (tuples of labels to remember) with {n_labels} labels to come "
            f"make {n_states * n_labels} moves of the search; at most {MOST_MOVES} are supported: "
            "use label_tuples='seen', constraints or a lower order"
        )
