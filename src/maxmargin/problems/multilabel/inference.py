"""The most violated sets of labels, by the search that the edges allow.

Problem solved, for one example with the labels g (0 or 1): the set y that maximises its violation,
which is a function of how many labels of g it misses, how many it adds, and the gain

    sum over labels of (y_l - g_l) s_l  +  sum over edges (a, b) of (y_a y_b - g_a g_b) v_ab.

Without edges the best set for given numbers flips the labels of largest gain among those that are
on, and among those that are off: O(L log L + on * off). With edges that make cycles all sets are
listed.

In a forest it is max-product with counts of errors as a state. Every subtree has a table of its
best gains, by whether its root is on and by up to two counts of wrong labels below, as far as the
loss asks for them:

    losses that add up, no loss   no count: they are in the gains
    zero-one, no rescaling        whether any label is wrong
    Hamming, by levels            how many are wrong
    1 - F1                        how many are missed, and how many added

A child is merged into its parent by trying all of its counts with all of the parent's so far. All
tables of an example lie in one array, where every entry says which two it comes from, so that the
best set is read from the last one.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from ...jit.decorator import kernel
from ...search.limits import MOST_TABLE_BYTES
from ...search.modes import ADDITIVE, BEST_NON_GOLD, PREDICTION, SearchMode
from ...search.violation import violation
from ...utils.types import Bools, Floats, Ints
from .graph import Forest, LabelGraph

__all__ = [
    "LOSSES",
    "LabelLoss",
    "find_among_all",
    "find_in_forest",
    "find_independent",
    "find_labels",
    "label_loss",
    "loss_of",
    "value_of_counts",
]

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


def find_independent(scores: Floats, gold: Bools, loss: int, mode: SearchMode) -> Bools:
    """Labels without edges: the most violated set in each row."""
    gains = np.where(gold, -scores, scores)
    order = np.argsort(-gains, axis=1, kind="stable")
    found = gold.copy()
    _flip_by_counts(gains, order, gold, loss, mode, np.empty((2, scores.shape[1] + 1)), found)
    return found


def find_among_all(
    scores: Floats, pairs: Floats, gold: Bools, loss: int, mode: SearchMode
) -> Bools:
    """Few labels: the most violated set in each row; ``pairs[b, a]`` weighs labels a < b."""
    n_sets = 1 << scores.shape[1]
    n_on = np.zeros(n_sets, np.int64)
    for bit in range(scores.shape[1]):
        n_on[1 << bit : 2 << bit] = n_on[: 1 << bit] + 1
    found = gold.copy()
    _try_all(scores, pairs, gold, loss, mode, n_on, np.empty((2, n_sets)), found)
    return found


@kernel(allocates=False)
def _flip_by_counts(gains, order, gold, loss, mode, sums, found):
    """See `find_independent`; ``order`` has labels by falling gain of a flip, ``sums`` is work."""
    L = gains.shape[1]
    for r in range(len(gains)):
        n_on, n_off = 0, 0
        sums[0, 0] = sums[1, 0] = 0.0
        for place in range(L):
            label = order[r, place]
            if gold[r, label]:
                n_on += 1
                sums[0, n_on] = sums[0, n_on - 1] + gains[r, label]
            else:
                n_off += 1
                sums[1, n_off] = sums[1, n_off - 1] + gains[r, label]
        best, missed, added = 0.0, 0, 0
        for a in range(n_on + 1):
            for b in range(n_off + 1):
                if a + b > 0:
                    gain = sums[0, a] + sums[1, b]
                    value = value_of_counts(loss, mode, n_on, a, b, gain)
                    if value > best:
                        best, missed, added = value, a, b
        for place in range(L):
            label = order[r, place]
            if gold[r, label] and missed > 0:
                missed -= 1
                found[r, label] = False
            elif not gold[r, label] and added > 0:
                added -= 1
                found[r, label] = True


@kernel(allocates=False)
def _try_all(scores, pairs, gold, loss, mode, n_on, tables, found):
    """See `find_among_all`: bit l of a set's number is label l; ``n_on`` counts its bits.

    The sets that have l as their last label are those of the labels before it, with the score of l
    and its pairs with them added: tables[0] has the scores, tables[1] these pairs, one l at a time.
    """
    L = scores.shape[1]
    value_of, with_last = tables[0], tables[1]
    for r in range(len(scores)):
        truth = 0
        value_of[0] = 0.0
        for last in range(L):
            first = 1 << last
            with_last[0] = scores[r, last]
            for label in range(last):
                half = 1 << label
                for y in range(half):
                    with_last[half + y] = with_last[y] + pairs[last, label]
            for y in range(first):
                value_of[first + y] = value_of[y] + with_last[y]
            if gold[r, last]:
                truth += first
        best, chosen = 0.0, truth
        for y in range(1 << L):
            if y != truth:
                right = n_on[y & truth]
                missed, added = n_on[truth] - right, n_on[y] - right
                gain = value_of[y] - value_of[truth]
                value = value_of_counts(loss, mode, n_on[truth], missed, added, gain)
                if value > best:
                    best, chosen = value, y
        for label in range(L):
            found[r, label] = (chosen >> label) & 1 == 1


def find_labels(
    scores: Floats, graph: LabelGraph, pairs: Floats, gold: Bools, loss: int, mode: SearchMode
) -> Bools:
    """The most violated set of each row; ``pairs`` are the weights of the edges."""
    if not len(graph.edges):
        return find_independent(scores, gold, loss, mode)
    if graph.forest is not None:
        return find_in_forest(scores, pairs, graph.forest, gold, loss, mode)
    matrix = np.zeros((graph.n_labels, graph.n_labels))
    matrix[graph.edges[:, 1], graph.edges[:, 0]] = pairs
    return find_among_all(scores, matrix, gold, loss, mode)
