"""The most violated set of labels in a forest, by max-product with counts of errors as a state.

The problem is that of `counting`. Every subtree has a table of its best gains, by whether its root
is on and by up to two counts of wrong labels below, as far as the loss asks for them:

    losses that add up, no loss   no count: they are in the gains
    zero-one, no rescaling        whether any label is wrong
    Hamming, by levels            how many are wrong
    1 - F1                        how many are missed, and how many added

A child is merged into its parent by trying all of its counts with all of the parent's so far. All
tables of an example lie in one array, where every entry says which two it comes from, so that the
best set is read from the last one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...jit.decorator import kernel
from ...search.limits import MOST_TABLE_BYTES
from ...search.modes import ADDITIVE, BEST_NON_GOLD, PREDICTION, SearchMode
from ...utils.types import Bools, Floats, Ints
from .graph import Forest
from .losses import F1, value_of_counts

__all__ = ["find_in_forest"]


class Tables(NamedTuple):
    """Work arrays for one example.

    Attributes
    ----------
    gain : array
        Entries of all tables: [on][missed][added] of each label, and again after each merge.
    before, child : arrays of int
        The two entries that an entry comes from; ``child`` is ``-1 - (2 label + on)`` where the
        label is all there is.
    first, most_missed, most_added : arrays of int
        Where the table of each label begins, and its largest counts.
    folded, folded_from : arrays
        A child's table, the better of on and off for its parent on or off.
    stack : array of int
        Entries left to be read.
    """

    gain: Floats
    before: Ints
    child: Ints
    first: Ints
    most_missed: Ints
    most_added: Ints
    folded: Floats
    folded_from: Ints
    stack: Ints


def find_in_forest(
    scores: Floats, pairs: Floats, forest: Forest, gold: Bools, loss: int, mode: SearchMode
) -> Bools:
    """The most violated set in each row, with the weights of the edges in ``pairs``."""
    L = scores.shape[1]
    first, most_missed, most_added = np.empty((3, L + 1), np.int64)
    capacity = int(_most_entries(forest, gold, loss, mode, most_missed, most_added))
    if 40 * capacity > MOST_TABLE_BYTES:
        raise ValueError(
            f"the search for the most violated of {L} labels in a tree needs tables of {capacity} "
            "entries; use loss='hamming' with rescaling='margin', or no edges"
        )
    tables = Tables(
        np.empty(capacity),
        np.empty(capacity, np.int64),
        np.empty(capacity, np.int64),
        first,
        most_missed,
        most_added,
        np.empty(capacity),
        np.empty(capacity, np.int64),
        np.empty(2 * L + 2, np.int64),
    )
    found = gold.copy()
    _search(scores, pairs, forest, gold, loss, mode, tables, found)
    return found


@kernel(allocates=False)
def _counted(label, r, gold, loss, mode):
    """Counts (missed, added) that a wrong label adds to, as 0 or 1 each."""
    if label == gold.shape[1] or mode.kind == ADDITIVE or mode.kind == PREDICTION:
        return 0, 0
    if loss == F1 and mode.kind != BEST_NON_GOLD and gold[r, label]:
        return 1, 0
    return 0, 1


@kernel(allocates=False)
def _merged_counts(v, p, mode, most_missed, most_added):
    """Largest counts of p with the subtree v; where all that counts is any error, at most 1."""
    missed, added = most_missed[v] + most_missed[p], most_added[v] + most_added[p]
    return missed, min(added, 1) if mode.kind == BEST_NON_GOLD else added


@kernel(allocates=False)
def _most_entries(forest, gold, loss, mode, most_missed, most_added):
    """Entries of all tables of the row that has most of them."""
    L = gold.shape[1]
    most = 0
    for r in range(len(gold)):
        entries = 0
        for label in range(L + 1):
            most_missed[label], most_added[label] = _counted(label, r, gold, loss, mode)
            entries += 2 * (most_missed[label] + 1) * (most_added[label] + 1)
        for v in forest.order:
            p = forest.parent[v]
            missed, added = _merged_counts(v, p, mode, most_missed, most_added)
            most_missed[p], most_added[p] = missed, added
            entries += 2 * (missed + 1) * (added + 1)
        most = max(most, entries)
    return most


@kernel(allocates=False)
def _search(scores, pairs, forest, gold, loss, mode, tables, found):
    """See `find_in_forest`."""
    L = scores.shape[1]
    unit = 1.0 if mode.kind == ADDITIVE else 0.0  # the loss of a wrong label
    for r in range(len(scores)):
        filled, n_on = 0, 0
        for label in range(L + 1):
            filled = _start_table(label, r, scores, gold, loss, mode, unit, tables, filled)
        for v in forest.order:
            filled = _merge(v, r, pairs, forest, gold, mode, tables, filled)
            n_on += gold[r, v]
        # The root is never on.
        best, chosen = 0.0, -1
        start, n_added = tables.first[L], tables.most_added[L] + 1
        for e in range((tables.most_missed[L] + 1) * n_added):
            gain, missed, added = tables.gain[start + e], e // n_added, e % n_added
            value = gain
            if mode.kind != ADDITIVE and mode.kind != PREDICTION:
                if e == 0:
                    continue  # the given labels
                value = value_of_counts(loss, mode, n_on, missed, added, gain)
            if value > best:
                best, chosen = value, start + e
        if chosen >= 0:
            _read_labels(chosen, tables, L, r, found)


@kernel(allocates=False)
def _start_table(label, r, scores, gold, loss, mode, unit, tables, filled):
    """The table of a label alone; returns the new position."""
    L = scores.shape[1]
    missed, added = _counted(label, r, gold, loss, mode)
    tables.first[label], tables.most_missed[label], tables.most_added[label] = filled, missed, added
    for on in range(2):
        wrong = label < L and (on == 1) != gold[r, label]
        gain = 0.0
        if wrong:
            gain = unit + (scores[r, label] if on == 1 else -scores[r, label])
        elif label == L and on == 1:
            gain = -np.inf
        n_entries = (missed + 1) * (added + 1)  # 1 or 2
        for e in range(n_entries):
            counts = n_entries == 1 or (e == 1) == wrong
            tables.gain[filled] = gain if counts else -np.inf
            tables.child[filled] = -1 - (2 * label + on)
            filled += 1
    return filled


@kernel(allocates=False)
def _merge(v, r, pairs, forest, gold, mode, tables, filled):
    """A table of the parent of v with the subtree v; returns the new position."""
    p = forest.parent[v]
    weight, own = 0.0, 0.0
    if forest.edge[v] >= 0:
        weight = pairs[forest.edge[v]]
        if gold[r, v] and gold[r, p]:
            own = weight
    missed, added = _merged_counts(v, p, mode, tables.most_missed, tables.most_added)
    width, width_v, width_p = added + 1, tables.most_added[v] + 1, tables.most_added[p] + 1
    size = (missed + 1) * width
    size_v = (tables.most_missed[v] + 1) * width_v
    size_p = (tables.most_missed[p] + 1) * width_p
    start = filled
    for e in range(start, start + 2 * size):
        tables.gain[e] = -np.inf
    for on in range(2):
        first_v, first_p = tables.first[v], tables.first[p] + on * size_p
        for e in range(size_v):
            off_gain = tables.gain[first_v + e] - own
            on_gain = tables.gain[first_v + size_v + e] + on * weight - own
            tables.folded[e] = max(off_gain, on_gain)
            tables.folded_from[e] = first_v + e + (size_v if on_gain > off_gain else 0)
        for e_p in range(size_p):
            gain_p = tables.gain[first_p + e_p]
            if gain_p == -np.inf:
                continue
            missed_p, added_p = e_p // width_p, e_p % width_p
            for e_v in range(size_v):
                missed_v, added_v = e_v // width_v, e_v % width_v
                e = start + on * size + (missed_p + missed_v) * width
                e += min(added_p + added_v, added)
                gain = gain_p + tables.folded[e_v]
                if gain > tables.gain[e]:
                    tables.gain[e] = gain
                    tables.before[e] = first_p + e_p
                    tables.child[e] = tables.folded_from[e_v]
    tables.first[p], tables.most_missed[p], tables.most_added[p] = start, missed, added
    return start + 2 * size


@kernel(allocates=False)
def _read_labels(entry, tables, L, r, found):
    """Write the labels of an entry and of all that it comes from."""
    stack, n = tables.stack, 1
    stack[0] = entry
    while n > 0:
        n -= 1
        e = stack[n]
        if tables.child[e] < 0:
            code = -1 - tables.child[e]
            if code // 2 < L:
                found[r, code // 2] = code % 2 == 1
        else:
            stack[n] = tables.before[e]
            stack[n + 1] = tables.child[e]
            n += 2
