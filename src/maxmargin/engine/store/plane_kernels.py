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

from ...jit.decorator import kernel
from ...jit.numba_patches import prefetch
from ..feature_blocks import clear_blocks, gather_blocks, scatter_blocks
from ..steps.block_steps import COORDINATES, block_gap, improve_block, sweep_block, unused

PLANES, ENTRIES, FEATURES, GRAM = 0, 1, 2, 3
LARGEST_SMALL = 2**15 - 1  # value of `arena.SMALL` entries
# Entries of planes that caches near the core hold: of more, those needed soon are asked for ahead.
NEAR_ENTRIES = 2**19
# Blocks from asking for the memory of one to its visit: for where its list of planes begins, for
# what these planes know of themselves, and for their entries, at most so many.
LIST_AHEAD, PLANES_AHEAD, ENTRIES_AHEAD, MOST_ENTRIES = 6, 4, 2, 256
LINE = 64  # bytes in a line of the cache


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
def prefetch_blocks(arena, blocks, used, examples, r):
    """Ask for the memory of blocks that are visited soon after examples[r]: it is all over.

    The first planes of a block are next to each other, as a compaction has left them.
    """
    if used[ENTRIES] < NEAR_ENTRIES:
        return
    if r + LIST_AHEAD < len(examples):
        prefetch(blocks.first, examples[r + LIST_AHEAD])
        prefetch(blocks.count, examples[r + LIST_AHEAD])
    if r + PLANES_AHEAD < len(examples):
        p = blocks.first[examples[r + PLANES_AHEAD]]
        if p >= 0:
            prefetch(arena.entry_start, p)
            prefetch(arena.new_start, p)
            prefetch(arena.gram_start, p)
            prefetch(arena.next_plane, p)
            prefetch(arena.position, p)
            prefetch(arena.alive, p)
            prefetch(arena.offset, p)
            prefetch(arena.alpha, p)
            prefetch(arena.idle, p)
    if r + ENTRIES_AHEAD < len(examples):
        i = examples[r + ENTRIES_AHEAD]
        p = blocks.first[i]
        if p >= 0:
            first = np.uint64(arena.entry_start[p])
            n = min(arena.entry_start[p + blocks.count[i]] - arena.entry_start[p], MOST_ENTRIES)
            end = first + np.uint64(n)
            for e in range(first, end, np.uint64(LINE // arena.values.itemsize)):
                prefetch(arena.values, e)
            for e in range(first, end, np.uint64(LINE // arena.ids.itemsize)):
                prefetch(arena.ids, e)
            at, row = np.uint64(arena.new_start[p]), np.uint64(arena.gram_start[p])
            prefetch(arena.new_features, at)
            prefetch(arena.new_features, at + np.uint64(LINE // 4))
            prefetch(arena.gram, row)
            prefetch(arena.gram, row + np.uint64(LINE // 8))


@kernel(inline=True)
def score_block(arena, feature_blocks, scratch, n_live, n_local, w, upper_bound, ridge):
    """Scores and multipliers of the given output (position 0) and the live planes (1..n_live).

    With squared slack (ridge > 0; see `block_steps`) scores are lowered; returns by how much.
    """
    gather_blocks(feature_blocks, scratch.features, 0, n_local, w, scratch.weights)
    return score_planes(arena, scratch, n_live, upper_bound, ridge)


@kernel(inline=True)
def score_planes(arena, scratch, n_live, upper_bound, ridge):
    """The same, from the weights of the block's parts in ``scratch.weights``."""
    # The product is `_dot`, written out: a call with all arrays of the arena costs more than it.
    values, ids, entry_start = arena.values, arena.ids, arena.entry_start
    planes, weights = scratch.planes, scratch.weights
    scratch.scores[0] = 0.0
    rest = upper_bound
    for j in range(n_live):
        p = np.uint64(planes[j])
        product = 0.0
        for e in range(np.uint64(entry_start[p]), np.uint64(entry_start[p + np.uint64(1)])):
            product += values[e] * weights[np.uint64(ids[e])]
        scratch.scores[j + 1] = arena.offset[p] - product
        scratch.alpha[j + 1] = arena.alpha[p]
        rest -= arena.alpha[p]
    scratch.alpha[0] = unused(rest, upper_bound)
    if ridge > 0.0:
        shift = ridge * (upper_bound - rest)
        for j in range(n_live):
            scratch.scores[j + 1] -= shift
        scratch.alpha[0] = np.inf
        return shift
    return 0.0


@kernel(inline=True)
def improve_and_write(
    arena, feature_blocks, scratch, n_live, n_local, w, upper_bound, ridge, rule, gap
):
    """Take the rule's steps on a scored block and write w; returns the dual's increase."""
    gain, changed = improve_planes(arena, scratch, n_live, upper_bound, ridge, rule, gap)
    if changed:
        scatter_local(feature_blocks, scratch, n_local, w)
    return gain


@kernel(inline=True)
def improve_planes(arena, scratch, n_live, upper_bound, ridge, rule, gap):
    """Take the rule's steps on a scored block; w is left to the caller.

    Returns the dual's increase, and whether there is a change of w, in the local vector.
    """
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
            upper_bound,
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
            upper_bound,
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
    return gain, changed


@kernel(inline=True)
def scatter_local(feature_blocks, scratch, n_local, w):
    """Add the local vector to w and clear it."""
    scatter_blocks(feature_blocks, scratch.features, n_local, scratch.dense, w)
    for f in range(n_local):
        scratch.dense[f] = 0.0


@kernel(inline=True)
def load_new_plane(feature_blocks, scratch, rows, r, scale, n_known, w):
    """Put row r into the local vector, extending the list of parts and their weights.

    Returns the number of parts and the row's product with w.
    """
    n_local = enter_plane(scratch, rows, r, scale, n_known)
    gather_blocks(feature_blocks, scratch.features, n_known, n_local, w, scratch.weights)
    return n_local, local_product(scratch, n_local)


@kernel(inline=True)
def enter_plane(scratch, rows, r, scale, n_known):
    """Put row r into the local vector, extending the list of parts; returns their number."""
    places = scratch.places
    table = places.table
    for f in range(n_known):
        table[_place_of(places, scratch.features[f])] = f + 1
    n_local = n_known
    for e in range(rows.indptr[r], rows.indptr[r + 1]):
        feature = rows.indices[e]
        place = _place_of(places, feature)
        local = table[place]
        if local == 0:
            scratch.features[n_local] = feature
            n_local += 1
            local = n_local
            table[place] = local
        scratch.dense[local - 1] += scale * rows.values[e]
    for f in range(n_local):
        table[_place_of(places, scratch.features[f])] = 0
    return n_local


@kernel(inline=True)
def _place_of(places, feature_block):
    """Where a part's local number is."""
    if feature_block < places.n_row_blocks:
        return feature_block & places.mask
    return feature_block - places.shift


@kernel(inline=True)
def local_product(scratch, n_local):
    """Product of the local vector with the weights of the block's parts."""
    product = 0.0
    for f in range(n_local):
        product += scratch.dense[f] * scratch.weights[f]
    return product


@kernel(inline=True)
def block_products(feature_blocks, scratch, n_local):
    """Products of all local parts with the plane in the local vector, into scratch.products.

    Single weights are orthogonal. Rows are not: the plane is written out in a vector of all
    weights, which is zero before and after.
    """
    if feature_blocks.n_row_blocks == 0:
        for f in range(n_local):
            scratch.products[f] = scratch.dense[f]
        return
    scatter_blocks(feature_blocks, scratch.features, n_local, scratch.dense, scratch.expanded)
    gather_blocks(feature_blocks, scratch.features, 0, n_local, scratch.expanded, scratch.products)
    clear_blocks(feature_blocks, scratch.features, n_local, scratch.expanded)


@kernel(inline=True)
def _add_plane(arena, blocks, used, scratch, i, offset, n_live, n_known, n_local):
    """Append the plane in the local vector to block i, with its Gram row; returns its id."""
    p = _open(arena, blocks, used, i, offset, 0.0, 0.0, 0)
    for f in range(n_known, n_local):
        arena.new_features[used[FEATURES]] = scratch.features[f]
        used[FEATURES] += 1
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
def append_plane(
    arena, feature_blocks, blocks, used, scratch, i, offset, value, n_live, n_known, n_local
):
    """Store the plane in the local vector as the block's last, and clear the vector."""
    block_products(feature_blocks, scratch, n_local)
    append_multiplied(arena, blocks, used, scratch, i, offset, value, n_live, n_known, n_local)


@kernel(inline=True)
def append_multiplied(arena, blocks, used, scratch, i, offset, value, n_live, n_known, n_local):
    """The same, where the products of the block's parts with it are in ``scratch.products``."""
    scratch.planes[n_live] = _add_plane(
        arena, blocks, used, scratch, i, offset, n_live, n_known, n_local
    )
    scratch.scores[n_live + 1] = value
    scratch.alpha[n_live + 1] = 0.0
    for f in range(n_local):
        scratch.dense[f] = 0.0


@kernel(inline=True)
def gap_with_plane(scratch, n_live, upper_bound, ridge, gap, best, value):
    """The block's gap, known as ``gap``, if a plane of this value joins those of at most best."""
    if ridge > 0.0:
        scratch.scores[n_live + 1] = value
        scratch.alpha[n_live + 1] = 0.0
        gap, _ = block_gap(scratch.scores, scratch.alpha, n_live + 2, upper_bound, ridge)
        return gap
    return gap + upper_bound * max(value - best, 0.0)


@kernel(inline=True)
def is_new(value, best):
    """Whether a plane beats the best stored one by more than rounding: else it is as good."""
    return value > best + 1e-10 * (1.0 + abs(best))


@kernel(inline=True)
def rate_plane(scratch, n_live, upper_bound, ridge, rule, value):
    """What a new plane of this value is to a scored block.

    Returns the block's gap with it, whether that calls for steps, and whether to store the plane:
    if it is the most violated, and by ``rule.delta`` or more.
    """
    gap, u = block_gap(scratch.scores, scratch.alpha, n_live + 1, upper_bound, ridge)
    best = scratch.scores[u]
    gap = gap_with_plane(scratch, n_live, upper_bound, ridge, gap, best, value)
    steps = gap > rule.threshold * upper_bound
    return gap, steps, steps and is_new(value, best) and value >= rule.delta


@kernel(inline=True)
def has_capacity(arena, blocks, used, scratch, i, longest):
    """Whether one more plane of ``longest`` entries fits block i."""
    entries, n_planes = blocks.n_features[i] + longest, blocks.count[i] + 1
    return (
        used[PLANES] + 1 < len(arena.block)
        and used[ENTRIES] + entries <= len(arena.values)
        and used[FEATURES] + entries <= len(arena.new_features)
        and used[GRAM] + n_planes <= len(arena.gram)
        and entries <= len(scratch.features)
        and entries <= np.int64(1) << (8 * arena.ids.itemsize)
        and n_planes + 1 <= len(scratch.scores)
    )


@kernel(inline=True)
def fits_small(rows, r, scale):
    """Whether row r, scaled, has small whole numbers only, whatever entries add up."""
    total = 0.0
    for e in range(rows.indptr[r], rows.indptr[r + 1]):
        value = scale * rows.values[e]
        if value != np.floor(value):
            return False
        total += abs(value)
    return total <= LARGEST_SMALL


# ----- passes -----------------------------------------------------------------------------------


@kernel(allocates=False)
def absorb_planes(store, examples, oracle_result, rule, done, report):
    """Absorb an answer's planes from ``done`` on, improve their blocks (Franc 2014, Alg. 1 to 3).

    For each example: score its planes and the new one at w; report the block's gap and the new
    plane's value; store the new plane if it is the most violated, its score is ``rule.delta`` or
    more and the gap exceeds ``rule.threshold * cap``; take steps; write w. Returns how many
    examples are done: fewer than all where the arrays are too small for the next.
    """
    arena, feature_blocks, blocks, used, scratch, w, dual = store
    rows, offsets, scales = oracle_result
    gaps, hinges = report
    for r in range(done, len(examples)):
        i = examples[r]
        upper_bound, ridge = blocks.upper_bound[i], blocks.ridge[i]
        if not has_capacity(arena, blocks, used, scratch, i, rows.indptr[r + 1] - rows.indptr[r]):
            return r
        if arena.values.itemsize < 8 and not fits_small(rows, r, scales[r]):
            return r
        n_live, n_known = list_block(arena, blocks, i, scratch)
        shift = score_block(arena, feature_blocks, scratch, n_live, n_known, w, upper_bound, ridge)
        n_local, product = load_new_plane(feature_blocks, scratch, rows, r, scales[r], n_known, w)
        hinges[r] = offsets[r] - product
        value = hinges[r] - shift
        gap, steps, new = rate_plane(scratch, n_live, upper_bound, ridge, rule, value)
        gaps[r] = gap
        if new:
            append_plane(
                arena,
                feature_blocks,
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
        if steps and rule.max_steps > 0:
            dual[0] += improve_and_write(
                arena, feature_blocks, scratch, n_live, n_known, w, upper_bound, ridge, rule, gap
            )
    return len(examples)


@kernel(allocates=False)
def cached_pass_blocks(store, examples, rule, gaps):
    """Improve the blocks of ``examples`` from their stored planes; reports gaps before that."""
    arena, feature_blocks, blocks, used, scratch, w, dual = store
    for r in range(len(examples)):
        prefetch_blocks(arena, blocks, used, examples, r)
        i = examples[r]
        gaps[r] = 0.0
        if blocks.count[i] == 0:
            continue
        upper_bound, ridge = blocks.upper_bound[i], blocks.ridge[i]
        n_live, n_local = list_block(arena, blocks, i, scratch)
        score_block(arena, feature_blocks, scratch, n_live, n_local, w, upper_bound, ridge)
        gap, _ = block_gap(scratch.scores, scratch.alpha, n_live + 1, upper_bound, ridge)
        gaps[r] = gap
        if gap > rule.threshold * upper_bound and rule.max_steps > 0:
            dual[0] += improve_and_write(
                arena, feature_blocks, scratch, n_live, n_local, w, upper_bound, ridge, rule, gap
            )


@kernel(inline=True)
def sum_block(arena, blocks, i, weights, vector):
    """Add sum_p weights[p] a_p of block i to its local vector; returns whether there is any."""
    changed = False
    p = blocks.first[i]
    while p >= 0:
        if weights[p] != 0.0:
            changed = True
            _add(arena, p, weights[p], vector)
        p = arena.next_plane[p]
    return changed


@kernel(allocates=False)
def add_weighted_planes(arena, feature_blocks, blocks, n_planes, weights, scratch, direction):
    """Add sum_p weights[p] a_p to ``direction``, block by block, as their first planes lie."""
    for p in range(n_planes):
        i = arena.block[p]
        if blocks.first[i] == p and sum_block(arena, blocks, i, weights, scratch.dense):
            _, n_local = list_block(arena, blocks, i, scratch)
            scatter_local(feature_blocks, scratch, n_local, direction)


# ----- memory -----------------------------------------------------------------------------------


@kernel(allocates=False)
def block_sizes(n_features, count, examples):
    """The most and the sum of these blocks' features, and of their planes.

    Asked before every visit, mostly of one block: numpy takes several times as long.
    """
    most_features, features, most_planes, planes = 0, 0, 0, 0
    for i in examples:
        most_features = max(most_features, n_features[i])
        features += n_features[i]
        most_planes = max(most_planes, count[i])
        planes += count[i]
    return most_features, features, most_planes, planes
