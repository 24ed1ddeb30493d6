"""Kernels of the plane store: score a block, add a plane, improve the block, drop dead planes.

All work on the arrays of `arena.Arena` and `arena.Blocks`. A block is handled in its own small
coordinate system: the weights of its parts are gathered once, its planes are dotted with that short
vector, the steps happen in Gram space, and the change is scattered back to ``w`` once. No kernel
grows an array: `absorb_planes` returns the position it reached when space runs out, and is called
again.

``used`` counts what is filled: planes, entries, dictionary entries, Gram entries.
"""

from __future__ import annotations

import numpy as np

from .._jit import kernel
from .block_steps import COORDINATES, block_gap, improve_block, sweep_block, unused
from .parts import clear_parts, gather_parts, scatter_parts

PLANES, ENTRIES, FEATURES, GRAM = 0, 1, 2, 3


# ----- one plane --------------------------------------------------------------------------------


@kernel(inline=True)
def _dot(arena, p, vector):
    """Product of plane p with a local vector."""
    values, ids = arena.values, arena.ids
    product = 0.0
    for e in range(np.uint64(arena.entry_start[p]), np.uint64(arena.entry_start[p + 1])):
        product += values[e] * vector[np.uint64(ids[e])]
    return product


@kernel(inline=True)
def _add(arena, p, weight, vector):
    """Add weight times plane p to a local vector."""
    values, ids = arena.values, arena.ids
    for e in range(np.uint64(arena.entry_start[p]), np.uint64(arena.entry_start[p + 1])):
        vector[np.uint64(ids[e])] += weight * values[e]


@kernel(inline=True)
def _open(arena, blocks, used, i, offset, alpha, before, idle):
    """Open a new plane at the end of block i's list; returns its id. `_close` ends it."""
    p = used[PLANES]
    used[PLANES] += 1
    position = 0
    if blocks.last[i] < 0:
        blocks.first[i] = p
    else:
        arena.next_plane[blocks.last[i]] = p
        position = arena.position[blocks.last[i]] + 1
    blocks.last[i] = p
    blocks.count[i] += 1
    arena.block[p] = i
    arena.next_plane[p] = -1
    arena.position[p] = position
    arena.alive[p] = True
    arena.offset[p] = offset
    arena.alpha[p] = alpha
    arena.before[p] = before
    arena.idle[p] = idle
    return p


@kernel(inline=True)
def _close(arena, blocks, used, i, p, vector, n_local):
    """End plane p of block i with the values of the local vector."""
    filled = used[ENTRIES]
    for f in range(n_local):
        value = vector[f]
        if value != 0.0:
            arena.ids[filled] = f
            arena.values[filled] = value
            filled += 1
    used[ENTRIES] = filled
    arena.entry_start[p + 1] = filled
    arena.new_start[p + 1] = used[FEATURES]
    blocks.n_features[i] = n_local


# ----- one block --------------------------------------------------------------------------------


@kernel(inline=True)
def list_block(arena, blocks, i, scratch):
    """List block i's live planes and local parts; returns how many of each."""
    n_live = 0
    n_local = 0
    p = blocks.first[i]
    while p >= 0:
        for e in range(arena.new_start[p], arena.new_start[p + 1]):
            scratch.features[n_local] = arena.new_features[e]
            n_local += 1
        if arena.alive[p]:
            scratch.planes[n_live] = p
            n_live += 1
        p = arena.next_plane[p]
    return n_live, n_local


@kernel(inline=True)
def score_block(arena, parts, scratch, n_live, n_local, w, cap, ridge):
    """Scores and multipliers of the given output (position 0) and the live planes (1..n_live).

    With squared slack (ridge > 0; see `block_steps`) scores are lowered; returns by how much.
    """
    gather_parts(parts, scratch.features, 0, n_local, w, scratch.weights)
    return score_planes(arena, scratch, n_live, cap, ridge)


@kernel(inline=True)
def score_planes(arena, scratch, n_live, cap, ridge):
    """`score_block` where the weights of the parts are known."""
    # The product is `_dot`, written out: a call with all arrays of the arena costs more than it.
    values, ids, entry_start = arena.values, arena.ids, arena.entry_start
    planes, weights = scratch.planes, scratch.weights
    scratch.scores[0] = 0.0
    rest = cap
    for j in range(n_live):
        p = np.uint64(planes[j])
        product = 0.0
        for e in range(np.uint64(entry_start[p]), np.uint64(entry_start[p + np.uint64(1)])):
            product += values[e] * weights[np.uint64(ids[e])]
        scratch.scores[j + 1] = arena.offset[p] - product
        scratch.alpha[j + 1] = arena.alpha[p]
        rest -= arena.alpha[p]
    scratch.alpha[0] = unused(rest, cap)
    if ridge > 0.0:
        shift = ridge * (cap - rest)
        for j in range(n_live):
            scratch.scores[j + 1] -= shift
        scratch.alpha[0] = np.inf
        return shift
    return 0.0


@kernel(inline=True)
def improve_and_write(arena, parts, scratch, n_live, n_local, w, cap, ridge, rule, gap):
    """Take the rule's steps on a scored block and write w; returns the dual's increase."""
    gram = scratch.gram
    for j in range(n_live + 1):
        gram[0, j] = 0.0
        gram[j, 0] = 0.0
    for j in range(n_live):
        p = scratch.planes[j]
        row = arena.gram_start[p]
        for k in range(j + 1):
            product = arena.gram[row + arena.position[scratch.planes[k]]] + ridge
            gram[j + 1, k + 1] = product
            gram[k + 1, j + 1] = product
    if rule.kind == COORDINATES:
        gain = sweep_block(
            rule.max_steps,
            rule.precision * gap,
            scratch.scores,
            scratch.alpha,
            gram,
            n_live + 1,
            cap,
            ridge,
            n_live,
            rule.seed + scratch.planes[0],
            scratch.order,
        )
    else:
        gain = improve_block(
            rule.kind,
            rule.max_steps,
            rule.precision * gap,
            scratch.scores,
            scratch.alpha,
            gram,
            n_live + 1,
            cap,
            ridge,
        )
    changed = False
    for j in range(n_live):
        p = scratch.planes[j]
        step = scratch.alpha[j + 1] - arena.alpha[p]
        arena.alpha[p] = scratch.alpha[j + 1]
        arena.idle[p] = 0 if scratch.alpha[j + 1] > 0.0 else arena.idle[p] + 1
        if step != 0.0:
            changed = True
            _add(arena, p, step, scratch.dense)
    if changed:
        _scatter(parts, scratch, n_local, w)
    return gain


@kernel(inline=True)
def _scatter(parts, scratch, n_local, w):
    """Add the local vector to w and clear it."""
    scatter_parts(parts, scratch.features, n_local, scratch.dense, w)
    for f in range(n_local):
        scratch.dense[f] = 0.0


@kernel(inline=True)
def load_new_plane(parts, scratch, rows, r, scale, n_known, w):
    """Put row r into the local vector, extending the list of parts and their weights.

    Returns the number of parts and the row's product with w.
    """
    n_local = load_row(scratch, rows, r, scale, n_known)
    gather_parts(parts, scratch.features, n_known, n_local, w, scratch.weights)
    product = 0.0
    for f in range(n_local):
        product += scratch.dense[f] * scratch.weights[f]
    return n_local, product


@kernel(inline=True)
def load_row(scratch, rows, r, scale, n_known):
    """Put row r into the local vector, extending the list of parts; returns their number."""
    place = scratch.place
    for f in range(n_known):
        place[scratch.features[f]] = f + 1
    n_local = n_known
    for e in range(rows.indptr[r], rows.indptr[r + 1]):
        feature = rows.indices[e]
        local = place[feature]
        if local == 0:
            scratch.features[n_local] = feature
            n_local += 1
            local = n_local
            place[feature] = local
        scratch.dense[local - 1] += scale * rows.values[e]
    for f in range(n_local):
        place[scratch.features[f]] = 0
    return n_local


@kernel(inline=True)
def _part_products(parts, scratch, n_local):
    """Products of all local parts with the plane in the local vector, into scratch.products.

    Single weights are orthogonal. Rows are not: the plane is written out in a vector of all
    weights, which is zero before and after.
    """
    if parts.n_row_parts == 0:
        for f in range(n_local):
            scratch.products[f] = scratch.dense[f]
        return
    scatter_parts(parts, scratch.features, n_local, scratch.dense, scratch.expanded)
    gather_parts(parts, scratch.features, 0, n_local, scratch.expanded, scratch.products)
    clear_parts(parts, scratch.features, n_local, scratch.expanded)


@kernel(inline=True)
def _add_plane(arena, parts, blocks, used, scratch, i, offset, n_live, n_known, n_local):
    """Append the plane in the local vector to block i, with its Gram row; returns its id."""
    p = _open(arena, blocks, used, i, offset, 0.0, 0.0, 0)
    for f in range(n_known, n_local):
        arena.new_features[used[FEATURES]] = scratch.features[f]
        used[FEATURES] += 1
    _part_products(parts, scratch, n_local)
    row, position = used[GRAM], arena.position[p]
    for j in range(position):
        arena.gram[row + j] = 0.0
    for j in range(n_live):
        q = scratch.planes[j]
        arena.gram[row + arena.position[q]] = _dot(arena, q, scratch.products)
    square = 0.0
    for f in range(n_local):
        square += scratch.dense[f] * scratch.products[f]
    arena.gram[row + position] = square
    used[GRAM] = row + position + 1
    arena.gram_start[p + 1] = used[GRAM]
    _close(arena, blocks, used, i, p, scratch.dense, n_local)
    return p


@kernel(inline=True)
def append_plane(arena, parts, blocks, used, scratch, i, offset, value, n_live, n_known, n_local):
    """Store the plane in the local vector as the block's last, and clear the vector."""
    scratch.planes[n_live] = _add_plane(
        arena, parts, blocks, used, scratch, i, offset, n_live, n_known, n_local
    )
    scratch.scores[n_live + 1] = value
    scratch.alpha[n_live + 1] = 0.0
    for f in range(n_local):
        scratch.dense[f] = 0.0


@kernel(inline=True)
def gap_with_plane(scratch, n_live, cap, ridge, gap, best, value):
    """The block's gap, known as ``gap``, if a plane of this value joins those of at most best."""
    if ridge > 0.0:
        scratch.scores[n_live + 1] = value
        scratch.alpha[n_live + 1] = 0.0
        gap, _ = block_gap(scratch.scores, scratch.alpha, n_live + 2, cap, ridge)
        return gap
    return gap + cap * max(value - best, 0.0)


@kernel(inline=True)
def is_new(value, best):
    """Whether a plane beats the best stored one by more than rounding: else it is as good."""
    return value > best + 1e-10 * (1.0 + abs(best))


@kernel(inline=True)
def has_capacity(arena, blocks, used, scratch, i, longest):
    """Whether one more plane of ``longest`` entries fits block i."""
    entries = blocks.n_features[i] + longest
    return (
        used[PLANES] + 1 < len(arena.block)
        and used[ENTRIES] + entries <= len(arena.values)
        and used[FEATURES] + entries <= len(arena.new_features)
        and used[GRAM] + blocks.count[i] + 1 <= len(arena.gram)
        and entries <= len(scratch.features)
        and blocks.count[i] + 2 <= len(scratch.scores)
    )


# ----- passes -----------------------------------------------------------------------------------


@kernel(allocates=False)
def absorb_planes(store, examples, answer, rule, done, report):
    """Absorb an answer's planes from ``done`` on, improve their blocks (Franc 2014, Alg. 1 to 3).

    For each example: score its planes and the new one at w; report the block's gap and the new
    plane's value; store the new plane if it is the most violated, its score is ``rule.delta`` or
    more and the gap exceeds ``rule.threshold * cap``; take steps; write w. Returns how many
    examples are done: fewer than all where the arrays are too small for the next.
    """
    arena, parts, blocks, used, scratch, w, dual = store
    rows, offsets, scales = answer
    gaps, hinges = report
    for r in range(done, len(examples)):
        i = examples[r]
        cap, ridge = blocks.cap[i], blocks.ridge[i]
        if not has_capacity(arena, blocks, used, scratch, i, rows.indptr[r + 1] - rows.indptr[r]):
            return r
        n_live, n_known = list_block(arena, blocks, i, scratch)
        shift = score_block(arena, parts, scratch, n_live, n_known, w, cap, ridge)
        gap, u = block_gap(scratch.scores, scratch.alpha, n_live + 1, cap, ridge)
        n_local, product = load_new_plane(parts, scratch, rows, r, scales[r], n_known, w)
        value = offsets[r] - product
        hinges[r] = value
        value -= shift
        best = scratch.scores[u]
        new = is_new(value, best)
        gap = gap_with_plane(scratch, n_live, cap, ridge, gap, best, value)
        gaps[r] = gap
        if gap <= rule.threshold * cap or value < rule.delta:
            new = False
        if new:
            append_plane(
                arena,
                parts,
                blocks,
                used,
                scratch,
                i,
                offsets[r],
                value,
                n_live,
                n_known,
                n_local,
            )
            n_live += 1
            n_known = n_local
        else:
            for f in range(n_local):
                scratch.dense[f] = 0.0
        if gap > rule.threshold * cap and rule.max_steps > 0:
            dual[0] += improve_and_write(
                arena, parts, scratch, n_live, n_known, w, cap, ridge, rule, gap
            )
    return len(examples)


@kernel(allocates=False)
def revisit_blocks(store, examples, rule, gaps):
    """Improve the blocks of ``examples`` from their stored planes; reports gaps before that."""
    arena, parts, blocks, _, scratch, w, dual = store
    for r in range(len(examples)):
        i = examples[r]
        gaps[r] = 0.0
        if blocks.count[i] == 0:
            continue
        cap, ridge = blocks.cap[i], blocks.ridge[i]
        n_live, n_local = list_block(arena, blocks, i, scratch)
        score_block(arena, parts, scratch, n_live, n_local, w, cap, ridge)
        gap, _ = block_gap(scratch.scores, scratch.alpha, n_live + 1, cap, ridge)
        gaps[r] = gap
        if gap > rule.threshold * cap and rule.max_steps > 0:
            dual[0] += improve_and_write(
                arena, parts, scratch, n_live, n_local, w, cap, ridge, rule, gap
            )


@kernel(allocates=False)
def add_weighted_planes(arena, parts, blocks, weights, scratch, direction):
    """Add sum_p weights[p] a_p to ``direction``."""
    for i in range(len(blocks.first)):
        changed = False
        p = blocks.first[i]
        while p >= 0:
            if weights[p] != 0.0:
                changed = True
                _add(arena, p, weights[p], scratch.dense)
            p = arena.next_plane[p]
        if changed:
            _, n_local = list_block(arena, blocks, i, scratch)
            _scatter(parts, scratch, n_local, direction)


# ----- memory -----------------------------------------------------------------------------------


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
def compact_planes(source, target, blocks, order, used, scratch, merge):
    """Copy live planes to ``target``, block by block in ``order``, with fresh dictionaries.

    With ``merge``, the planes of a block become one, their mean weighted by the multipliers: its
    multiplier, its part of w and its part of the dual stay the same. Planes that no step has tried
    yet are kept beside it.
    """
    for i in order:
        n_live, n_old = list_block(source, blocks, i, scratch)
        blocks.first[i] = -1
        blocks.last[i] = -1
        blocks.count[i] = 0
        blocks.n_features[i] = 0
        n_merged = 0  # the planes to merge come first in the list
        if merge:
            for j in range(n_live):
                p = scratch.planes[j]
                if source.alpha[p] > 0.0 or source.idle[p] > 0:
                    for k in range(j, n_merged, -1):
                        scratch.planes[k] = scratch.planes[k - 1]
                    scratch.planes[n_merged] = p
                    n_merged += 1
            if n_merged == 1:
                n_merged = 0
        # scratch.place: feature of the old dictionary -> of the new one, plus one
        n_local, total = 0, 0.0
        if n_merged > 0:
            n_local, total = _copy_mean(source, target, blocks, used, scratch, i, n_merged, n_old)
        for j in range(n_merged, n_live):
            p = scratch.planes[j]
            q = _open(
                target,
                blocks,
                used,
                i,
                source.offset[p],
                source.alpha[p],
                source.before[p],
                source.idle[p],
            )
            for e in range(source.entry_start[p], source.entry_start[p + 1]):
                old = source.ids[e]
                if scratch.place[old] == 0:
                    target.new_features[used[FEATURES]] = scratch.features[old]
                    used[FEATURES] += 1
                    n_local += 1
                    scratch.place[old] = n_local
                scratch.dense[scratch.place[old] - 1] = source.values[e]
            _close(target, blocks, used, i, q, scratch.dense, n_local)
            for f in range(n_local):
                scratch.dense[f] = 0.0
            if total > 0.0:
                product = 0.0
                for k in range(n_merged):
                    other = scratch.planes[k]
                    product += source.alpha[other] * _stored_product(source, p, other)
                target.gram[used[GRAM]] = product / total
                used[GRAM] += 1
            for k in range(n_merged, j + 1):
                target.gram[used[GRAM]] = _stored_product(source, p, scratch.planes[k])
                used[GRAM] += 1
            target.gram_start[q + 1] = used[GRAM]
        for old in range(n_old):
            scratch.place[old] = 0


@kernel(inline=True)
def _stored_product(arena, p, q):
    """Entry of the Gram matrix for two live planes of a block."""
    if arena.position[p] < arena.position[q]:
        return arena.gram[arena.gram_start[q] + arena.position[p]]
    return arena.gram[arena.gram_start[p] + arena.position[q]]


@kernel(allocates=False)
def _copy_mean(source, target, blocks, used, scratch, i, n_merged, n_old):
    """Write the mean of the first planes listed, weighted by their multipliers, to ``target``.

    Returns the number of its features and the sum of the multipliers: 0 where there is no mean.
    """
    total = 0.0
    offset = 0.0
    square = 0.0
    for j in range(n_merged):
        p = scratch.planes[j]
        total += source.alpha[p]
        offset += source.alpha[p] * source.offset[p]
        for k in range(n_merged):
            q = scratch.planes[k]
            square += source.alpha[p] * source.alpha[q] * _stored_product(source, p, q)
        _add(source, p, source.alpha[p], scratch.dense)
    n_local = 0
    if total > 0.0:
        q = _open(target, blocks, used, i, offset / total, total, total, 0)
        for f in range(n_old):
            value = scratch.dense[f] / total
            if value != 0.0:
                target.new_features[used[FEATURES]] = scratch.features[f]
                used[FEATURES] += 1
                scratch.products[n_local] = value
                n_local += 1
                scratch.place[f] = n_local
        target.gram[used[GRAM]] = square / (total * total)
        used[GRAM] += 1
        target.gram_start[q + 1] = used[GRAM]
        _close(target, blocks, used, i, q, scratch.products, n_local)
    for f in range(n_old):
        scratch.dense[f] = 0.0
    return n_local, total
