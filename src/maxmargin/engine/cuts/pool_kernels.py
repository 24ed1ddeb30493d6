"""Kernels of the candidate pool: score all candidates, admit new ones, add up chosen ones."""

from __future__ import annotations

import numpy as np

from ...jit.decorator import kernel
from ..feature_blocks import gather_blocks, scatter_blocks

ENTRIES, LOCALS = 0, 1
EMPTY = -1e30  # value of a slot without a candidate: never the best, and finite in any average


@kernel
def _position(feature_block, features, table):
    """Where the table has the number of a listed part, plus 1, or a 0 where it is to be put.

    The table is at least twice as long as the list, and a power of two.
    """
    mask = len(table) - 1
    at = ((np.int64(feature_block) * 2654435761) >> 15) & mask
    while table[at] != 0 and features[table[at] - 1] != feature_block:
        at = (at + 1) & mask
    return at


@kernel
def number_blocks(features, n_listed, table):
    """Enter the listed parts into an empty table."""
    for k in range(n_listed):
        table[_position(features[k], features, table)] = k + 1


@kernel
def admit_candidates(
    slots,
    table,
    used,
    examples,
    rows,
    offsets,
    scales,
    products,
    clock,
    done,
    values,
    chosen,
):
    """Admit rows[done:] as candidates of their examples; returns how many are done.

    ``products`` are those of the rows and w. A row that does not beat the given output is left out
    (``chosen`` -1). One that is in the pool already only becomes its example's most recent; a new
    one takes the slot of the least recently used. ``values`` gets the value of each row, by
    example. Fewer than all are done where the arrays have no space for the next row.
    """
    f = slots.start.shape[1]
    for r in range(done, len(examples)):
        i = examples[r]
        first, end = rows.indptr[r], rows.indptr[r + 1]
        length = end - first
        if used[ENTRIES] + length > len(slots.ids) or used[LOCALS] + length > len(slots.features):
            return r
        values[i] = offsets[r] - scales[r] * products[r]
        chosen[i] = -1
        if values[i] <= 0.0:
            continue
        at = used[ENTRIES]
        for e in range(first, end):
            feature_block = rows.indices[e]
            position = _position(feature_block, slots.features, table)
            local = np.int64(table[position])
            if local == 0:
                slots.features[used[LOCALS]] = feature_block
                used[LOCALS] += 1
                local = used[LOCALS]
                table[position] = local
            slots.ids[at + e - first] = local - 1
            slots.values[at + e - first] = scales[r] * rows.values[e]
        slot = 0
        for s in range(f):
            if slots.last_used[i, s] < slots.last_used[i, slot]:
                slot = s
            if slots.last_used[i, s] >= 0 and _same(slots, i, s, offsets[r], at, length):
                slot = -1 - s
                break
        if slot < 0:
            slot = -1 - slot
        else:
            slots.start[i, slot] = at
            slots.length[i, slot] = length
            slots.offset[i, slot] = offsets[r]
            used[ENTRIES] += length
        slots.last_used[i, slot] = clock
        chosen[i] = slot
    return len(examples)


@kernel
def _same(slots, i, s, offset, at, length):
    """Whether the candidate in slot s of example i has this offset and the entries from ``at``."""
    if slots.offset[i, s] != offset or slots.length[i, s] != length:
        return False
    start = slots.start[i, s]
    for e in range(length):
        if slots.ids[start + e] != slots.ids[at + e]:
            return False
        if slots.values[start + e] != slots.values[at + e]:
            return False
    return True


@kernel
def score_parts(feature_blocks, listed, first, end, w, weights):
    """``weights`` of the listed parts from ``first`` to ``end - 1``, at w."""
    gather_blocks(feature_blocks, listed, first, end, w, weights)


@kernel
def score_candidates(slots, first, end, weights, table):
    """Values ``b - <a, w>`` of the candidates of examples, from the weights of listed parts."""
    ids, values = slots.ids, slots.values
    f = slots.start.shape[1]
    for i in range(first, end):
        for s in range(f):
            if slots.last_used[i, s] < 0:
                table[i, s] = EMPTY
                continue
            product = 0.0
            start = slots.start[i, s]
            for e in range(np.uint64(start), np.uint64(start + slots.length[i, s])):
                product += values[e] * weights[np.uint64(ids[e])]
            table[i, s] = slots.offset[i, s] - product


@kernel
def add_chosen(slots, used, feature_blocks, listed, chosen, weights, clock, sums, plane):
    """Add the chosen candidates, weighted, to ``plane``; returns their weighted offsets.

    ``sums`` is scratch, one number per part. The candidates are marked as used at ``clock``.
    """
    n_local = used[LOCALS]
    for k in range(n_local):
        sums[k] = 0.0
    offset = 0.0
    for i in range(len(chosen)):
        s = chosen[i]
        if s < 0 or weights[i] == 0.0:
            continue
        slots.last_used[i, s] = clock
        offset += weights[i] * slots.offset[i, s]
        start = slots.start[i, s]
        for e in range(start, start + slots.length[i, s]):
            sums[slots.ids[e]] += weights[i] * slots.values[e]
    scatter_blocks(feature_blocks, listed, n_local, sums, plane)
    return offset


@kernel
def sparse_products(starts, ids, values, first, end, plane, out):
    """out[k] = <plane k, plane> for sparse planes k from ``first`` to ``end - 1``, a dense one."""
    for k in range(first, end):
        product = 0.0
        for e in range(np.uint64(starts[k]), np.uint64(starts[k + 1])):
            product += values[e] * plane[np.uint64(ids[e])]
        out[k] = product


@kernel
def sparse_combination(starts, ids, values, m, alpha, first, w):
    """Add sum_k alpha[k] plane k, over the sparse planes k < m, to w: entries from ``first`` on."""
    end = first + len(w)
    for k in range(m):
        shard = alpha[k]
        if shard != 0.0:
            begin = starts[k] + np.searchsorted(ids[starts[k] : starts[k + 1]], first)
            for e in range(np.uint64(begin), np.uint64(starts[k + 1])):
                if ids[e] >= end:
                    break
                w[np.uint64(ids[e] - first)] += shard * values[e]


@kernel
def write_non_zeros(plane, ids, values, at):
    """Write the non-zero entries of ``plane`` to ids[at:], values[at:]; returns how many there are.

    Where there is no space for them nothing is written.
    """
    count = 0
    for k in range(len(plane)):
        count += plane[k] != 0.0
    if at + count <= len(ids):
        for k in range(len(plane)):
            if plane[k] != 0.0:
                ids[at] = k
                values[at] = plane[k]
                at += 1
    return count
