"""Kernels of the n-slack working sets: find violated constraints, improve blocks, move them.

Block i owns the slots ``start[i]..start[i] + count[i] - 1`` and a square of ``capacity[i]^2``
entries of the Gram arena from ``gram_start[i]`` on. A block that outgrows its capacity moves to the
end of the arrays. ``used`` counts what is filled: slots, Gram entries, entries of planes.
"""

from __future__ import annotations

import numpy as np

from ...jit.decorator import kernel
from ..feature_blocks import clear_blocks, gather_blocks, scatter_blocks
from ..steps.block_steps import WSS2, block_gap, improve_block
from ..store.compaction import keep_products
from .master import fsmo, smo

SLOTS, GRAM, ENTRIES = 0, 1, 2
FSMO, BLOCK, SMO = 0, 1, 2
UNLIMITED = 1e300  # multiplier of the given output where nothing bounds the others


@kernel
def _dot(sets, feature_blocks, slot, w, products):
    """Product of the plane in a slot with w."""
    first, last = sets.first[slot], sets.last[slot]
    ids, values = sets.ids[first:last], sets.values[first:last]
    gather_blocks(feature_blocks, ids, 0, last - first, w, products)
    product = 0.0
    for e in range(last - first):
        product += values[e] * products[e]
    return product


@kernel
def _add(sets, feature_blocks, slot, step, w, products):
    """Add step times the plane in a slot to w."""
    first, last = sets.first[slot], sets.last[slot]
    for e in range(last - first):
        products[e] = step * sets.values[first + e]
    scatter_blocks(feature_blocks, sets.ids[first:last], last - first, products, w)


@kernel
def examine_rows(
    sets,
    feature_blocks,
    used,
    scratch,
    w,
    examples,
    rows,
    offsets,
    scales,
    epsilon,
    done,
    values,
    slacks,
):
    """Add the constraints of rows[done:] that are violated by more than epsilon.

    Line 8 of Algorithm 1 of Tsochantaridis et al. (2005): a row's value at w is compared with the
    slack that the example's working set implies. Both are reported. Returns how many examples are
    done, fewer than all where there is no space for the next row, and how many constraints were
    added.
    """
    added = 0
    for r in range(done, len(examples)):
        i = examples[r]
        first, end = rows.indptr[r], rows.indptr[r + 1]
        length = end - first
        if sets.count[i] == sets.capacity[i] or used[ENTRIES] + length > len(sets.ids):
            return r, added
        ids = rows.indices[first:end]
        gather_blocks(feature_blocks, ids, 0, length, w, scratch.products)
        product = 0.0
        for e in range(length):
            product += rows.values[first + e] * scratch.products[e]
        values[r] = offsets[r] - scales[r] * product
        slack = 0.0
        base = sets.start[i]
        for slot in range(base, base + sets.count[i]):
            slack = max(
                slack, sets.offset[slot] - _dot(sets, feature_blocks, slot, w, scratch.products)
            )
        slacks[r] = slack
        if values[r] <= slack + epsilon or sets.upper_bound[i] <= 0.0:
            continue
        at, slot, k = used[ENTRIES], base + sets.count[i], sets.count[i]
        for e in range(length):
            sets.ids[at + e] = ids[e]
            sets.values[at + e] = scales[r] * rows.values[first + e]
        sets.first[slot], sets.last[slot] = at, at + length
        sets.offset[slot] = offsets[r]
        sets.alpha[slot] = 0.0
        sets.idle[slot] = 0
        _add(sets, feature_blocks, slot, 1.0, scratch.expanded, scratch.products)
        for q in range(k + 1):
            product = _dot(sets, feature_blocks, base + q, scratch.expanded, scratch.products)
            sets.gram[sets.gram_start[i] + k * sets.capacity[i] + q] = product
            sets.gram[sets.gram_start[i] + q * sets.capacity[i] + k] = product
        clear_blocks(feature_blocks, sets.ids[at : at + length], length, scratch.expanded)
        if product <= 0.0 and offsets[r] <= 0.0:
            continue  # the given output, as entries that cancel: its value is rounding
        used[ENTRIES] = at + length
        sets.count[i] += 1
        added += 1
    return len(examples), added


@kernel
def improve_sets(sets, feature_blocks, scratch, w, examples, kind, effort, threshold, gaps):
    """Improve the blocks of ``examples``, one after the other; reports their gaps before.

    A block's planes are scored once, steps happen in Gram space, and w is written once. FSMO: as
    many rounds of fixed-threshold SMO as ``effort`` says; BLOCK: as many pair steps (WSS2), until
    little of the gap is left; SMO: that many steps of maximal violating pairs. For hard margins,
    which have no gap, the largest violation of the optimality conditions is reported. So it is with
    a positive ``threshold``: blocks where no pair of scores is off by more are left as they are.
    """
    scores, alpha, gram = scratch.scores, scratch.alpha, scratch.gram
    for r in range(len(examples)):
        i = examples[r]
        m, base = sets.count[i], sets.start[i]
        upper_bound, ridge = sets.upper_bound[i], sets.ridge[i]
        gaps[r] = 0.0
        if m == 0 or upper_bound <= 0.0:
            continue
        total = 0.0
        for k in range(m):
            total += sets.alpha[base + k]
        scores[0] = 0.0
        alpha[0] = (
            max(0.0, upper_bound - total) if ridge == 0.0 and upper_bound < UNLIMITED else UNLIMITED
        )
        for k in range(m + 1):
            gram[0, k] = 0.0
            gram[k, 0] = 0.0
        for k in range(m):
            slot = base + k
            product = _dot(sets, feature_blocks, slot, w, scratch.products)
            scores[k + 1] = sets.offset[slot] - product - ridge * total
            alpha[k + 1] = sets.alpha[slot]
            for q in range(m):
                product = sets.gram[sets.gram_start[i] + k * sets.capacity[i] + q]
                gram[k + 1, q + 1] = product + ridge
        if upper_bound < UNLIMITED:
            gaps[r], _ = block_gap(scores, alpha, m + 1, upper_bound, ridge)
        else:
            for k in range(1, m + 1):
                off = abs(scores[k]) if alpha[k] > 0.0 else max(0.0, scores[k])
                gaps[r] = max(gaps[r], off)
        stop = 0.05 * gaps[r]
        if threshold > 0.0:
            low = 1e300
            top = 0.0
            for k in range(m + 1):
                top = max(top, scores[k])
                if alpha[k] > 1e-14 * upper_bound:
                    low = min(low, scores[k])
            stop = 0.0
            gaps[r] = top - low if top - low > threshold else 0.0
        if gaps[r] <= 0.0:
            continue
        if kind == FSMO or kind == SMO:
            bound = upper_bound if ridge == 0.0 and upper_bound < UNLIMITED else np.inf
            own = gram[1:, 1:], scores[1:], alpha[1:]
            if kind == SMO:
                smo(own[0], own[1], own[2], m, bound, stop, threshold, effort)
            else:
                fsmo(own[0], own[1], own[2], m, bound, stop, 0.5 * threshold, effort)
        else:
            stop = stop if upper_bound < UNLIMITED else 0.0
            improve_block(WSS2, effort, stop, scores, alpha, gram, m + 1, upper_bound, ridge)
        for k in range(m):
            step = alpha[k + 1] - sets.alpha[base + k]
            if step != 0.0:
                sets.alpha[base + k] = alpha[k + 1]
                _add(sets, feature_blocks, base + k, step, w, scratch.products)


@kernel
def add_weighted(sets, feature_blocks, weights, products, w):
    """Add the sum of all planes, weighted by slot, to w."""
    for i in range(len(sets.start)):
        for slot in range(sets.start[i], sets.start[i] + sets.count[i]):
            if weights[slot] != 0.0:
                _add(sets, feature_blocks, slot, weights[slot], w, products)


@kernel
def _move_slot(sets, old, new):
    """Copy what belongs to a slot."""
    sets.first[new] = sets.first[old]
    sets.last[new] = sets.last[old]
    sets.offset[new] = sets.offset[old]
    sets.alpha[new] = sets.alpha[old]
    sets.idle[new] = sets.idle[old]


@kernel
def relocate(sets, used, i, capacity):
    """Move block i to the end of the arrays, with a larger capacity."""
    base, at, start, old = sets.start[i], used[SLOTS], sets.gram_start[i], sets.capacity[i]
    for k in range(sets.count[i]):
        _move_slot(sets, base + k, at + k)
        for q in range(sets.count[i]):
            sets.gram[used[GRAM] + k * capacity + q] = sets.gram[start + k * old + q]
    sets.start[i] = at
    sets.gram_start[i] = used[GRAM]
    sets.capacity[i] = capacity
    used[SLOTS] += capacity
    used[GRAM] += capacity * capacity


@kernel
def keep_squares(sets, capacity, gram_start, gram):
    """Copy the products of all blocks to another array, with other capacities."""
    for i in range(len(sets.start)):
        old, new = sets.gram_start[i], gram_start[i]
        for k in range(sets.count[i]):
            for q in range(sets.count[i]):
                gram[new + k * capacity[i] + q] = sets.gram[old + k * sets.capacity[i] + q]


@kernel
def count_idle(sets, examples):
    """Count another solution for the planes of these examples that have no weight in it."""
    for i in examples:
        for slot in range(sets.start[i], sets.start[i] + sets.count[i]):
            sets.idle[slot] = 0 if sets.alpha[slot] > 0.0 else sets.idle[slot] + 1


@kernel
def drop_idle(sets, limit, rows, columns):
    """Drop planes without weight in the last ``limit`` solutions; the order of the others stays.

    ``rows`` and ``columns`` are scratch, for the planes of one block.
    """
    for i in range(len(sets.start)):
        base, start, capacity = sets.start[i], sets.gram_start[i], sets.capacity[i]
        n_kept = 0
        for k in range(sets.count[i]):
            if sets.idle[base + k] < limit:
                _move_slot(sets, base + k, base + n_kept)
                rows[n_kept] = start + k * capacity
                columns[n_kept] = k
                n_kept += 1
        if n_kept < sets.count[i]:
            keep_products(sets.gram, rows, columns, n_kept, sets.gram, start, capacity)
            sets.count[i] = n_kept
