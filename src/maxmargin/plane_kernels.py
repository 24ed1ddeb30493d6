"""Kernels of the plane store: score a block, add a plane, improve the block, drop dead planes.

All work on the arrays of `planes.Arena` and `planes.Blocks`. A block is handled in its own small
coordinate system: its weights are gathered once, its planes are dotted with that short vector, the
steps happen in Gram space, and the change is scattered back to ``w`` once. No kernel grows an array:
`absorb_planes` returns the position it reached when room runs out, and is called again.
"""

from __future__ import annotations

import numpy as np

from ._jit import kernel
from .block_steps import block_gap, improve_block


@kernel
def _gather(arena, blocks, i, scratch, w):
    """Collect block i's live planes and local weights; returns (live planes, local features)."""
    n_live = 0
    n_local = 0
    p = blocks.first[i]
    while p >= 0:
        for e in range(arena.new_start[p], arena.new_start[p + 1]):
            f = arena.new_features[e]
            scratch.features[n_local] = f
            scratch.weights[n_local] = w[f]
            n_local += 1
        if arena.alive[p]:
            scratch.planes[n_live] = p
            n_live += 1
        p = arena.next_plane[p]
    return n_live, n_local


@kernel
def _score(arena, scratch, n_live, cap):
    """Scores and multipliers of the truth (position 0) and the live planes (1..n_live)."""
    scratch.scores[0] = 0.0
    rest = cap
    for j in range(n_live):
        p = scratch.planes[j]
        product = 0.0
        for e in range(arena.entry_start[p], arena.entry_start[p + 1]):
            product += arena.values[e] * scratch.weights[arena.entries[e]]
        scratch.scores[j + 1] = arena.offset[p] - product
        scratch.alpha[j + 1] = arena.alpha[p]
        rest -= arena.alpha[p]
    scratch.alpha[0] = rest if rest > 0.0 else 0.0


@kernel
def _load_gram(arena, scratch, n_live):
    """Copy the Gram matrix of the live planes, with a zero row for the truth."""
    gram = scratch.gram
    for j in range(n_live + 1):
        gram[0, j] = 0.0
        gram[j, 0] = 0.0
    for j in range(n_live):
        p = scratch.planes[j]
        row = arena.gram_start[p]
        for k in range(j + 1):
            product = arena.gram[row + arena.position[scratch.planes[k]]]
            gram[j + 1, k + 1] = product
            gram[k + 1, j + 1] = product


@kernel
def _write_back(arena, scratch, n_live, n_local, w):
    """Store the multipliers and add their change to ``w``."""
    changed = False
    for j in range(n_live):
        p = scratch.planes[j]
        step = scratch.alpha[j + 1] - arena.alpha[p]
        arena.alpha[p] = scratch.alpha[j + 1]
        arena.idle[p] = 0 if scratch.alpha[j + 1] > 0.0 else arena.idle[p] + 1
        if step != 0.0:
            changed = True
            for e in range(arena.entry_start[p], arena.entry_start[p + 1]):
                scratch.dense[arena.entries[e]] += step * arena.values[e]
    if changed:
        for f in range(n_local):
            w[scratch.features[f]] += scratch.dense[f]
            scratch.dense[f] = 0.0


@kernel
def _append(arena, blocks, used, i, offset, alpha, idle):
    """Open a new plane at the end of block i's list; returns its id. `_close` ends it."""
    p = used[0]
    used[0] += 1
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
    arena.idle[p] = idle
    return p


@kernel
def _close(arena, used, p):
    """End plane p: what was appended since `_append` is its own."""
    arena.entry_start[p + 1] = used[1]
    arena.new_start[p + 1] = used[2]
    arena.gram_start[p + 1] = used[3]


@kernel
def _add_plane(arena, blocks, used, scratch, i, offset, n_live, n_known, n_local):
    """Append the plane in scratch.dense to block i, with its Gram row; returns its id."""
    p = _append(arena, blocks, used, i, offset, 0.0, 0)
    position = arena.position[p]
    for f in range(n_known, n_local):
        arena.new_features[used[2]] = scratch.features[f]
        used[2] += 1
    square = 0.0
    for f in range(n_local):
        value = scratch.dense[f]
        if value != 0.0:
            arena.entries[used[1]] = f
            arena.values[used[1]] = value
            used[1] += 1
            square += value * value
    row = used[3]
    for j in range(position):
        arena.gram[row + j] = 0.0
    for j in range(n_live):
        q = scratch.planes[j]
        product = 0.0
        for e in range(arena.entry_start[q], arena.entry_start[q + 1]):
            product += arena.values[e] * scratch.dense[arena.entries[e]]
        arena.gram[row + arena.position[q]] = product
    arena.gram[row + position] = square
    used[3] = row + position + 1
    _close(arena, used, p)
    blocks.n_features[i] = n_local
    return p


@kernel
def absorb_planes(
    arena, blocks, used, scratch, w, dual, examples, rows, offsets, scales, rule, done, gaps, hinges
):
    """Absorb rows[done:] of new planes and improve their blocks (Franc 2014, Alg. 1 to 3).

    For each example: score its planes and the new one at w; report the block's gap and the new
    plane's value; store the new plane if it is the most violated and the gap exceeds
    ``rule.threshold * cap``; take steps; write w. Returns how many examples are done: fewer than
    all where the arrays are too small for the next.
    """
    place = scratch.place
    for r in range(done, len(examples)):
        i = examples[r]
        cap = blocks.cap[i]
        longest = rows.indptr[r + 1] - rows.indptr[r]
        if (
            used[0] + 1 >= len(arena.block)
            or used[1] + blocks.n_features[i] + longest > len(arena.entries)
            or used[2] + longest > len(arena.new_features)
            or used[3] + blocks.count[i] + 1 > len(arena.gram)
            or blocks.count[i] + 2 > len(scratch.scores)
        ):
            return r
        n_live, n_known = _gather(arena, blocks, i, scratch, w)
        _score(arena, scratch, n_live, cap)
        gap, u = block_gap(scratch.scores, scratch.alpha, n_live + 1, cap)

        n_local = n_known
        for f in range(n_known):
            place[scratch.features[f]] = f + 1
        product = 0.0
        scale = scales[r]
        for e in range(rows.indptr[r], rows.indptr[r + 1]):
            f = rows.indices[e]
            value = scale * rows.values[e]
            product += value * w[f]
            local = place[f]
            if local == 0:
                scratch.features[n_local] = f
                scratch.weights[n_local] = w[f]
                n_local += 1
                local = n_local
                place[f] = local
            scratch.dense[local - 1] += value
        for f in range(n_local):
            place[scratch.features[f]] = 0
        value = offsets[r] - product
        hinges[r] = value
        # Equal up to rounding to a stored plane: that plane again, or one as good.
        best = scratch.scores[u]
        if value > best + 1e-10 * (1.0 + abs(best)):
            gap += cap * (value - best)
        new = value > best + 1e-10 * (1.0 + abs(best)) and gap > rule.threshold * cap
        gaps[r] = gap
        if new:
            p = _add_plane(arena, blocks, used, scratch, i, offsets[r], n_live, n_known, n_local)
            scratch.planes[n_live] = p
            n_live += 1
            scratch.scores[n_live] = value
            scratch.alpha[n_live] = 0.0
        for f in range(n_local):
            scratch.dense[f] = 0.0
        if gap > rule.threshold * cap and rule.max_steps > 0:
            _load_gram(arena, scratch, n_live)
            dual[0] += improve_block(
                rule.kind,
                rule.max_steps,
                rule.precision * gap,
                scratch.scores,
                scratch.alpha,
                scratch.gram,
                n_live + 1,
                cap,
            )
            _write_back(arena, scratch, n_live, n_local if new else n_known, w)
    return len(examples)


@kernel
def revisit_blocks(arena, blocks, scratch, w, dual, examples, rule, gaps):
    """Improve the blocks of ``examples`` from their stored planes; reports gaps before the steps."""
    for r in range(len(examples)):
        i = examples[r]
        gaps[r] = 0.0
        if blocks.count[i] == 0:
            continue
        cap = blocks.cap[i]
        n_live, n_local = _gather(arena, blocks, i, scratch, w)
        _score(arena, scratch, n_live, cap)
        gap, u = block_gap(scratch.scores, scratch.alpha, n_live + 1, cap)
        gaps[r] = gap
        if gap > rule.threshold * cap and rule.max_steps > 0:
            _load_gram(arena, scratch, n_live)
            dual[0] += improve_block(
                rule.kind,
                rule.max_steps,
                rule.precision * gap,
                scratch.scores,
                scratch.alpha,
                scratch.gram,
                n_live + 1,
                cap,
            )
            _write_back(arena, scratch, n_live, n_local, w)


@kernel
def add_weighted_planes(arena, blocks, weights, scratch, direction):
    """direction += sum_p weights[p] a_p."""
    for i in range(len(blocks.first)):
        n_local = 0
        changed = False
        p = blocks.first[i]
        while p >= 0:
            for e in range(arena.new_start[p], arena.new_start[p + 1]):
                scratch.features[n_local] = arena.new_features[e]
                n_local += 1
            if weights[p] != 0.0:
                changed = True
                for e in range(arena.entry_start[p], arena.entry_start[p + 1]):
                    scratch.dense[arena.entries[e]] += weights[p] * arena.values[e]
            p = arena.next_plane[p]
        if changed:
            for f in range(n_local):
                direction[scratch.features[f]] += scratch.dense[f]
                scratch.dense[f] = 0.0


@kernel
def mark_dead_planes(arena, n_planes, idle_limit):
    """Mark planes dead that carry no weight and were idle for ``idle_limit`` visits in a row."""
    dead = 0
    for p in range(n_planes):
        if arena.alive[p] and arena.alpha[p] <= 0.0 and arena.idle[p] >= idle_limit:
            arena.alive[p] = False
            dead += 1
    return dead


@kernel
def compact_planes(source, target, blocks, used, scratch, merge):
    """Copy live planes to ``target``, block by block, with fresh dictionaries.

    With ``merge``, the planes of a block become one, their mean weighted by the multipliers: its
    multiplier, its part of w and its part of the dual stay the same.
    """
    for i in range(len(blocks.first)):
        n_live = 0
        n_old = 0
        p = blocks.first[i]
        while p >= 0:
            for e in range(source.new_start[p], source.new_start[p + 1]):
                scratch.features[n_old] = source.new_features[e]
                n_old += 1
            if source.alive[p]:
                scratch.planes[n_live] = p
                n_live += 1
            p = source.next_plane[p]
        blocks.first[i] = -1
        blocks.last[i] = -1
        blocks.count[i] = 0
        for f in range(n_old):
            scratch.place[f] = 0  # here: local feature of the old dictionary -> new, plus one
        n_local = 0
        if merge and n_live > 1:
            _copy_mean(source, target, blocks, used, scratch, i, n_live, n_old)
            continue
        for j in range(n_live):
            p = scratch.planes[j]
            q = _append(target, blocks, used, i, source.offset[p], source.alpha[p], source.idle[p])
            for e in range(source.entry_start[p], source.entry_start[p + 1]):
                old = source.entries[e]
                if scratch.place[old] == 0:
                    target.new_features[used[2]] = scratch.features[old]
                    used[2] += 1
                    n_local += 1
                    scratch.place[old] = n_local
                target.entries[used[1]] = scratch.place[old] - 1
                target.values[used[1]] = source.values[e]
                used[1] += 1
            for k in range(j + 1):
                target.gram[used[3]] = source.gram[
                    source.gram_start[p] + source.position[scratch.planes[k]]
                ]
                used[3] += 1
            _close(target, used, q)
        blocks.n_features[i] = n_local
        for f in range(n_old):
            scratch.place[f] = 0


@kernel
def _copy_mean(source, target, blocks, used, scratch, i, n_live, n_old):
    """Write the mean of block i's planes, weighted by their multipliers, to ``target``."""
    total = 0.0
    for j in range(n_live):
        total += source.alpha[scratch.planes[j]]
    offset = 0.0
    for j in range(n_live):
        p = scratch.planes[j]
        share = source.alpha[p] / total
        offset += share * source.offset[p]
        for e in range(source.entry_start[p], source.entry_start[p + 1]):
            scratch.dense[source.entries[e]] += share * source.values[e]
    q = _append(target, blocks, used, i, offset, total, 0)
    n_local = 0
    square = 0.0
    for f in range(n_old):
        value = scratch.dense[f]
        scratch.dense[f] = 0.0
        if value != 0.0:
            target.new_features[used[2]] = scratch.features[f]
            target.entries[used[1]] = n_local
            target.values[used[1]] = value
            used[1] += 1
            used[2] += 1
            n_local += 1
            square += value * value
    target.gram[used[3]] = square
    used[3] += 1
    _close(target, used, q)
    blocks.n_features[i] = n_local
