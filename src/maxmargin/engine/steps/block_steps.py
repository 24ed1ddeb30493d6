"""Ascent steps inside one block of the dual, in the space of its planes.

Problem solved. A block has planes j = 0..m-1 with scores ``s_j = b_j - <a_j, w>``, Gram matrix
``G_jk = <a_j, a_k>`` and multipliers alpha >= 0 that sum to ``cap``. Plane 0 is the given output,
whose plane is zero and whose multiplier is the unused part of ``cap``. Maximise over a change d of
alpha

    <d, s> - 1/2 d' G d      subject to  alpha + d >= 0,  sum d = 0.

Steps (Franc 2014): u is always the plane with the largest score, and a step moves weight to u

* FRANK_WOLFE  from all planes in proportion to their multipliers (eq. 13, exact line search);
* MVP          from the active plane with the smallest score (SDM);
* WSS2         from the active plane that promises the largest ascent (eq. 9 and 11).

The scores are kept up to date through G, so any number of steps touches no weights at all. The
block's gap, ``cap * max_j s_j - sum_j alpha_j s_j``, bounds what steps inside it can still gain.

Squared slacks. Their dual has no cap on the sum A of a block's multipliers, but the term
``-ridge/2 A^2`` with ``ridge = 1 / (2 cap)``: as if every plane but the given output's had one more
feature that only its block knows, of value ``sqrt(ridge)``. So the same steps serve, with ``ridge``
added to the products of such planes, ``ridge A`` taken off their scores, and an unlimited
multiplier of the given output. Where m is the largest of these scores, but at least ``-ridge A``
(slacks are not negative), the gap is ``A m + cap m^2 - sum_j alpha_j s_j``. Frank-Wolfe steps need
a cap. A ridge of 0 tells that there is a cap.

Without a cap the multipliers do not depend on each other, and can also be changed one by one:
COORDINATES (Chang & Yih 2013, Alg. 1) is a sweep over all planes of the block.
"""

from __future__ import annotations

from ...jit.decorator import kernel

# ALL_PLANES: WSS2, where a store that knows all outputs may use planes no oracle has returned.
FRANK_WOLFE, MVP, WSS2, ALL_PLANES, COORDINATES = 0, 1, 2, 3, 4


@kernel(inline=True)
def unused(rest, upper_bound):
    """The truth's multiplier: what the others leave of the cap, unless that is mere rounding.

    A trace of it would be the partner of the maximal violating pair, and the step of no effect.
    """
    return rest if rest > 1e-14 * upper_bound else 0.0


@kernel(inline=True)
def block_gap(scores, alpha, m, upper_bound, ridge):
    """Gap of the block and its most violated plane."""
    u = 0
    held = 0.0
    for j in range(1, m):  # the given output's score is 0
        if scores[j] > scores[u]:
            u = j
        held += alpha[j] * scores[j]
    if ridge > 0.0:
        return _uncapped_gap(scores, alpha, m, upper_bound, ridge, held), u
    return upper_bound * scores[u] - held, u


@kernel(allocates=False)
def _uncapped_gap(scores, alpha, m, upper_bound, ridge, held):
    """Gap of a block with squared slack; ``held`` is the sum of multipliers times scores."""
    total = 0.0
    for j in range(1, m):
        total += alpha[j]
    top = -ridge * total
    for j in range(1, m):
        top = max(top, scores[j])
    return total * top + upper_bound * top * top - held


@kernel(inline=True)
def improve_block(kind, max_steps, stop_gap, scores, alpha, gram, m, upper_bound, ridge):
    """Take steps until the block's gap is at most ``stop_gap``; returns the dual's increase."""
    total = 0.0
    for _ in range(max_steps):
        gap, u = block_gap(scores, alpha, m, upper_bound, ridge)
        if gap <= stop_gap or gap <= 0.0:
            break
        if kind == FRANK_WOLFE:
            gain = _frank_wolfe_step(scores, alpha, gram, m, upper_bound, u, gap)
        else:
            gain = _pair_step(scores, alpha, gram, m, u, kind != MVP)
        if gain <= 0.0:
            break
        total += gain
    return total


@kernel(inline=True)
def _pair_step(scores, alpha, gram, m, u, second_order):
    """Move weight from one active plane to u, exactly as far as pays; returns the gain."""
    v = -1
    best = 0.0
    best_move = 0.0
    best_gain = 0.0
    for j in range(m):
        rise = scores[u] - scores[j]
        if alpha[j] <= 0.0 or rise <= 0.0:
            continue
        curvature = gram[u, u] + gram[j, j] - 2.0 * gram[u, j]
        move = alpha[j]
        if curvature > 0.0 and rise < curvature * move:
            move = rise / curvature
        gain = move * (rise - 0.5 * curvature * move)
        merit = gain if second_order else rise
        if merit > best:
            v, best, best_move, best_gain = j, merit, move, gain
    if v < 0:
        return 0.0
    alpha[u] += best_move
    alpha[v] = alpha[v] - best_move if best_move < alpha[v] else 0.0
    for j in range(m):
        scores[j] -= best_move * (gram[j, u] - gram[j, v])
    return best_gain


@kernel(allocates=False)
def _frank_wolfe_step(scores, alpha, gram, m, upper_bound, u, gap):
    """Move all multipliers towards ``cap`` on u by exact line search; returns the gain."""
    curvature = upper_bound * upper_bound * gram[u, u]
    for j in range(m):
        product = 0.0
        for k in range(m):
            product += gram[j, k] * alpha[k]
        curvature += alpha[j] * product
        if j == u:
            curvature -= 2.0 * upper_bound * product
    shard = 1.0
    if gap < curvature:
        shard = gap / curvature
    for j in range(m):
        product = upper_bound * gram[j, u]
        for k in range(m):
            product -= gram[j, k] * alpha[k]
        scores[j] -= shard * product
    for j in range(m):
        alpha[j] *= 1.0 - shard
    alpha[u] += shard * upper_bound
    return shard * (gap - 0.5 * shard * curvature)


@kernel(allocates=False)
def sweep_block(
    max_sweeps, stop_gap, scores, alpha, gram, m, upper_bound, ridge, newest, seed, order
):
    """Set every multiplier of an uncapped block to its best value, one by one, in sweeps.

    The plane ``newest`` (0: none) comes first, the others in random order (Chang & Yih 2013,
    Alg. 1). Sweeps end when the block's gap is at most ``stop_gap``; returns the dual's increase.
    """
    total = 0.0
    for j in range(1, m):
        order[j - 1] = j
    state = 1 + seed % 2147483646
    for _ in range(max_sweeps):
        gap, _ = block_gap(scores, alpha, m, upper_bound, ridge)
        if gap <= stop_gap or gap <= 0.0:
            break
        for j in range(m - 2, 0, -1):
            state = state * 48271 % 2147483647  # Park & Miller's generator: repeatable by the seed
            k = state % (j + 1)
            order[j], order[k] = order[k], order[j]
        if newest > 0:
            total += _coordinate_step(scores, alpha, gram, m, newest)
        for j in range(m - 1):
            if order[j] != newest:
                total += _coordinate_step(scores, alpha, gram, m, order[j])
    return total


@kernel(allocates=False)
def _coordinate_step(scores, alpha, gram, m, j):
    """Best value of the multiplier of plane j; returns the gain."""
    step = scores[j] / gram[j, j]
    if step < -alpha[j]:
        step = -alpha[j]
    if step == 0.0:
        return 0.0
    gain = step * (scores[j] - 0.5 * step * gram[j, j])
    alpha[j] += step
    for k in range(1, m):
        scores[k] -= step * gram[k, j]
    return gain
