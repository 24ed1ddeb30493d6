"""The one compaction: what is kept of rows of entries, of the parts they name, of their products.

The plane store, the working sets of `n_slack`, the candidate pool and the bundle keep planes as
rows of entries in long arrays, drop some, and close the gaps with these kernels. All may work in
place where the kept rows come in the order in which they lie.
"""

from __future__ import annotations

from ...jit.decorator import kernel
from .plane_kernels import FEATURES, GRAM, _add, list_block

__all__ = [
    "compact_blocks",
    "keep_blocks",
    "keep_blocks_by_use",
    "keep_products",
    "keep_rows",
    "mark_dead_planes",
    "merge_planes",
]


@kernel(allocates=False)
def keep_rows(first, last, kept, ids, values, to_ids, to_values, starts):
    """Copy the kept rows, one behind the other; ``starts`` gets where they begin, and the end."""
    at = 0
    for k in range(len(kept)):
        begin, end = first[kept[k]], last[kept[k]]
        starts[k] = at
        for e in range(begin, end):
            to_ids[at] = ids[e]
            to_values[at] = values[e]
            at += 1
    starts[len(kept)] = at


@kernel(allocates=False)
def keep_blocks(ids, first, last, listed, n_listed, place, to_listed, at):
    """Keep the listed parts that entries first..last - 1 name, from ``at`` on; returns how many.

    Entries name parts by their number in the list, and get the new numbers. The order of the parts
    stays. ``place`` has a zero for each listed part, before and after.
    """
    for e in range(first, last):
        place[ids[e]] = 1
    count = 0
    for k in range(n_listed):
        if place[k] != 0:
            to_listed[at + count] = listed[k]
            count += 1
            place[k] = count
    for e in range(first, last):
        ids[e] = place[ids[e]] - 1
    for k in range(n_listed):
        place[k] = 0
    return count


@kernel(allocates=False)
def keep_blocks_by_use(ids, n_entries, listed, place, to_listed):
    """Like `keep_blocks`, with the parts in the order in which entries name them first.

    Rows that are read one after the other then find theirs side by side. ``to_listed`` is another
    array than ``listed``.
    """
    count = 0
    for e in range(n_entries):
        k = ids[e]
        if place[k] == 0:
            to_listed[count] = listed[k]
            count += 1
            place[k] = count
        ids[e] = place[k] - 1
    for k in range(len(listed)):
        place[k] = 0
    return count


@kernel(allocates=False)
def keep_products(gram, rows, columns, n_kept, to, at, stride):
    """Keep the products of n_kept planes with each other, from ``at`` on; returns where they end.

    Plane j's row begins at ``rows[j]``, and ``columns[j]`` is its place in every row. Rows are to
    begin ``stride`` apart; with a stride of 0 they are those of a lower triangle, one behind the
    other. Of the source no more than the lower triangle is read.
    """
    for j in range(n_kept):
        for k in range(n_kept if stride > 0 else j + 1):
            if columns[k] <= columns[j]:
                to[at + k] = gram[rows[j] + columns[k]]
            else:
                to[at + k] = gram[rows[k] + columns[j]]
        at += stride if stride > 0 else j + 1
    return at


@kernel(allocates=False)
def mark_dead_planes(arena, n_planes, idle_limit):
    """Mark planes dead that carry no weight and were idle for ``idle_limit`` visits in a row."""
    dead = 0
    for p in range(n_planes):
        if arena.alive[p] and arena.alpha[p] <= 0.0 and arena.idle[p] >= idle_limit:
            arena.alive[p] = False
            arena.before[p] = 0.0
            dead += 1
    return dead


@kernel(allocates=False)
def compact_blocks(source, old, planes, target, blocks, used, scratch):
    """Give the blocks of ``target``, which has their planes' entries, their parts and products.

    ``planes`` are the sources of its planes, block by block. The first plane of a block brings all
    parts that the block has left.
    """
    p = 0
    while p < len(planes):
        i = target.block[p]
        end = p + blocks.count[i]
        _, n_local = list_block(source, old, i, scratch)
        first, last = target.entry_start[p], target.entry_start[end]
        blocks.n_features[i] = keep_blocks(
            target.ids,
            first,
            last,
            scratch.features,
            n_local,
            scratch.places.table,
            target.new_features,
            used[FEATURES],
        )
        used[FEATURES] += blocks.n_features[i]
        for j in range(end - p):
            scratch.planes[j] = source.gram_start[planes[p + j]]
            scratch.order[j] = source.position[planes[p + j]]
            target.new_start[p + j + 1] = used[FEATURES]
            target.gram_start[p + j + 1] = target.gram_start[p + j] + j + 1
        used[GRAM] = keep_products(
            source.gram, scratch.planes, scratch.order, end - p, target.gram, used[GRAM], 0
        )
        p = end


@kernel(allocates=False)
def merge_planes(arena, blocks, n_planes, scratch, starts, ids, values):
    """Make one plane of each block's first planes that steps have tried; the others are dead.

    It is their mean, weighted by the multipliers: the block's multipliers, its part of w and its
    part of the dual stay the same. The planes of a block are next to each other. Entries of all
    planes go to ``ids`` and ``values``; returns how many there are.
    """
    at = 0
    p = 0
    while p < n_planes:
        i = arena.block[p]
        end = p + blocks.count[i]
        n_merged, total, offset, square = 0, 0.0, 0.0, 0.0
        while p + n_merged < end:
            q = p + n_merged
            if arena.alpha[q] <= 0.0 and arena.idle[q] == 0:
                break
            total += arena.alpha[q]
            n_merged += 1
        if n_merged < 2:
            n_merged = 0
        for j in range(n_merged):
            q = p + j
            offset += arena.alpha[q] * arena.offset[q]
            square += arena.alpha[q] ** 2 * arena.gram[arena.gram_start[q] + j]
            for k in range(j):
                product = arena.gram[arena.gram_start[q] + k]
                square += 2.0 * arena.alpha[q] * arena.alpha[p + k] * product
            _add(arena, q, arena.alpha[q], scratch.dense)
            arena.alive[q] = False
        if n_merged > 0 and total > 0.0:
            arena.alive[p] = True
            arena.offset[p] = offset / total
            arena.gram[arena.gram_start[p]] = square / total**2
            for q in range(p + n_merged, end):
                row, product = arena.gram_start[q], 0.0
                for k in range(n_merged):
                    product += arena.alpha[p + k] * arena.gram[row + k]
                arena.gram[row] = product / total
            for f in range(blocks.n_features[i]):
                if scratch.dense[f] != 0.0:
                    ids[at] = f
                    values[at] = scratch.dense[f] / total
                    at += 1
                scratch.dense[f] = 0.0
        for q in range(p, p + n_merged):
            arena.alpha[q] = total if q == p else 0.0
            arena.before[q] = arena.alpha[q]
            arena.idle[q] = 0
            starts[q + 1] = at
        for q in range(p + n_merged, end):
            for e in range(arena.entry_start[q], arena.entry_start[q + 1]):
                ids[at] = arena.ids[e]
                values[at] = arena.values[e]
                at += 1
            starts[q + 1] = at
        p = end
    return at
