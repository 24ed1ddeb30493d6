"""Kernels of the multiclass problem: oracle, and dual ascent without storing planes.

The plane of class y for example i is ``a = s (x at class y_i minus x at class y)``, with offset
``b`` and scale ``s`` (1, or the loss with slack rescaling). Two planes of one example have the
product ``s_y s_y' |x|^2 (1 + [y = y'])``, so a block is its K multipliers and |x|^2, and no plane
is stored. For squared slack (``ridge > 0``) see `block_steps`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._jit import kernel
from ...engine.block_steps import ALL_PLANES, COORDINATES, improve_block, sweep_block, unused
from ...engine.rows import Rows, add_row, add_scores
from ...search.violation import plane_value
from ...types import Bools, Floats, Ints


class ClassTerms(NamedTuple):
    """Offset and scale of the plane of each (true class, other class)."""

    offsets: Floats
    scales: Floats
    unit_scales: bool


class ClassBlocks(NamedTuple):
    """The blocks of a multiclass dual, and what their planes are made of."""

    rows: Rows
    labels: Ints
    squares: Floats
    w: Floats
    dual: Floats
    terms: ClassTerms
    alpha: Floats
    seen: Bools
    caps: Floats
    ridges: Floats


class ClassBlock(NamedTuple):
    """The block of an example: its class, |x|^2, the bound on its multipliers, and its ridge."""

    gold: int
    square: float
    cap: float
    ridge: float


class BlockScratch(NamedTuple):
    """Work arrays of a block: an order of the classes; members, values and products of planes."""

    order: Ints
    members: Ints
    scores: Floats
    alpha: Floats
    gram: Floats


@kernel(inline=True)
def class_row_scores(rows, i, weights, K, scores):
    """Scores of all classes for row i at weights in the store's layout.

    Sparse rows want the weights of a feature next to each other (``weights[f * K + y]``), dense
    rows those of a class (``weights[y * stride + f]``): then few long products replace many short
    ones.
    """
    scores[:] = 0.0
    if rows.dense.shape[0] == 0:
        add_scores(rows, i, weights, K, scores)
        return
    dense, n_columns = rows.dense, np.uint64(rows.n_columns)
    stride, row = np.uint64(len(weights) // K), np.uint64(i)
    for y in range(0, K - 1, 2):  # two classes a round, for fewer loads of x
        own, other = np.uint64(y) * stride, np.uint64(y + 1) * stride
        product, other_product = 0.0, 0.0
        for f in range(n_columns):
            product += dense[row, f] * weights[own + f]
            other_product += dense[row, f] * weights[other + f]
        scores[y] = product
        scores[y + 1] = other_product
    if K % 2 == 1:
        own = np.uint64(K - 1) * stride
        product = 0.0
        for f in range(n_columns):
            product += dense[row, f] * weights[own + f]
        scores[K - 1] = product
    if rows.bias != 0.0:
        for y in range(K):
            scores[y] += rows.bias * weights[np.uint64(y) * stride + n_columns]


@kernel(inline=True)
def class_add_row(rows, i, steps, weights, K):
    """Add steps[y] x to the weights of each class y, in the store's layout."""
    if rows.dense.shape[0] == 0:
        add_row(rows, i, steps, weights, K)
        return
    dense, n_columns = rows.dense, np.uint64(rows.n_columns)
    stride, row = np.uint64(len(weights) // K), np.uint64(i)
    for y in range(K):
        step = steps[y]
        if step != 0.0:
            own = np.uint64(y) * stride
            for f in range(n_columns):
                weights[own + f] += step * dense[row, f]
            if rows.bias != 0.0:
                weights[own + n_columns] += step * rows.bias


@kernel
def class_oracle(rows, labels, examples, w, offsets, scales, K, best):
    """Class with the largest ``b - <a, w>`` for each example; ties: the gold class."""
    scores = np.empty(K)
    for r in range(len(examples)):
        i = examples[r]
        gold = labels[i]
        scores[:] = 0.0
        add_scores(rows, i, w, K, scores)
        best[r] = gold
        largest = 0.0
        for y in range(K):
            value = plane_value(offsets[gold, y], scales[gold, y], scores[y] - scores[gold])
            if y != gold and value > largest:
                best[r] = y
                largest = value


@kernel
def keep_best(values, y, best, found, k):
    """Put y into its place among the ``found`` in ``best``, k at most; returns their number."""
    position = found  # insertion sort into a list of k
    while position > 0 and values[best[position - 1]] < values[y]:
        if position < k:
            best[position] = best[position - 1]
        position -= 1
    if position == k:
        return found
    best[position] = y
    return min(found + 1, k)


@kernel
def class_k_best(rows, labels, examples, w, offsets, scales, K, k, best):
    """The k classes but gold with the largest ``b - <a, w>``, best first; gold ones behind."""
    scores = np.empty(K)
    values = np.empty(K)
    for r in range(len(examples)):
        i = examples[r]
        gold = labels[i]
        scores[:] = 0.0
        add_scores(rows, i, w, K, scores)
        for y in range(K):
            gain = scores[y] - scores[gold]
            values[y] = plane_value(offsets[gold, y], scales[gold, y], gain)
        found = 0
        for y in range(K):
            if y != gold:
                found = keep_best(values, y, best[r], found, k)
        for c in range(found, k):
            best[r, c] = gold


@kernel(inline=True)
def _solve_exactly(hinges, alpha, square, cap, ridge, usable, gold, K, order):
    """Best multipliers of a block whose scales are all 1 (Crammer & Singer's subproblem).

    With v_y = hinge_y / |x|^2 + alpha_y + sum(alpha) the optimum is alpha_y = max(0, v_y - t),
    where t solves sum(alpha) = t, or sum(alpha) = cap if that t exceeds cap. Classes enter in the
    order of v, largest first, until the next would get nothing. With squared slack there is no cap,
    and t solves sum(alpha) = t |x|^2 / (|x|^2 + ridge). ``hinges`` is overwritten by v. Returns the
    largest change.
    """
    share = square / (square + ridge)
    capped = ridge == 0.0
    held = 0.0
    for y in range(K):
        held += alpha[y]
    n = 0
    for y in range(K):
        if y != gold and usable[y]:
            v = hinges[y] / square + alpha[y] + held
            hinges[y] = v
            if v > 0.0:
                position = n  # insertion sort: few classes compete
                while position > 0 and hinges[order[position - 1]] < v:
                    order[position] = order[position - 1]
                    position -= 1
                order[position] = y
                n += 1
    total = 0.0
    level = 0.0
    for free in range(2):  # first without the bound on the sum, then with it
        total = 0.0
        level = 0.0
        for r in range(n):
            if hinges[order[r]] <= level:
                break
            total += hinges[order[r]]
            if free == 0:
                level = total / (r + 1.0 + share)
            else:
                level = max(0.0, (total - cap) / (r + 1.0))
        if not capped or level <= cap:
            break
    largest = 0.0
    for y in range(K):
        new = 0.0
        if y != gold and usable[y] and hinges[y] > level:
            new = hinges[y] - level
        largest = max(largest, abs(new - alpha[y]))
        hinges[y] = new
    return largest


@kernel
def visit_classes(blocks, examples, rule, cached, report):
    """Dual ascent on the blocks of ``examples`` (Franc 2014, Alg. 1 and 2, for classes).

    Scores all classes at w. A true visit (``cached`` False) finds the most violated class, reports
    its hinge value and marks it seen; with rule.kind ALL_PLANES every class may then get weight,
    else only seen ones. A cached visit knows seen classes only. ``terms`` holds the offsets and
    scales of all pairs of classes.
    """
    rows, labels, squares, w, dual, terms, alpha, seen, caps, ridges = blocks
    gaps, hinges = report
    K = terms.offsets.shape[0]
    scores = np.empty(K)
    values = np.empty(K)
    steps = np.empty(K)
    usable = np.empty(K, np.bool_)
    work = BlockScratch(
        np.empty(K, np.int64),
        np.empty(K + 1, np.int64),
        np.empty(K + 1),
        np.empty(K + 1),
        np.zeros((K + 1, K + 1)),
    )
    exact = rule.kind == ALL_PLANES and terms.unit_scales
    for r in range(len(examples)):
        i = examples[r]
        gold = labels[i]
        cap = caps[i]
        ridge = ridges[i]
        square = squares[i]
        block = ClassBlock(gold, square, cap, ridge)
        class_row_scores(rows, i, w, K, scores)
        best = gold
        top = 0.0
        held = 0.0
        total = 0.0
        for y in range(K):
            if y == gold:
                values[y] = 0.0
                usable[y] = False
                continue
            offset, scale = terms.offsets[gold, y], terms.scales[gold, y]
            value = plane_value(offset, scale, scores[y] - scores[gold])
            values[y] = value
            usable[y] = seen[i, y] or (not cached and rule.kind == ALL_PLANES)
            held += alpha[i, y] * value
            total += alpha[i, y]
            if value > top and (usable[y] or not cached):
                best = y
                top = value
        if ridge > 0.0:
            gap = cap * top * top - held + 0.5 * ridge * total * total
        else:
            gap = cap * top - held
        gaps[r] = gap
        if not cached:
            hinges[r] = top
            worthwhile = gap > rule.threshold * cap and top - ridge * total >= rule.delta
            if best != gold and worthwhile:
                seen[i, best] = True
                usable[best] = True
        if gap <= rule.threshold * cap or rule.max_steps == 0:
            continue
        if square <= 0.0:  # x = 0: the values are constant, and the largest takes it all
            largest = top / ridge if ridge > 0.0 else cap
            for y in range(K):
                scores[y] = largest if y == best and y != gold else 0.0
        elif exact:
            for y in range(K):
                scores[y] = values[y]
            order = work.order
            largest = _solve_exactly(scores, alpha[i], square, cap, ridge, usable, gold, K, order)
            if largest <= 0.0:
                continue
        else:
            seed, scales = rule.seed + i, terms.scales[gold]
            _solve_by_steps(
                values, alpha[i], block, total, usable, scales, rule, gap, best, seed, work, scores
            )
        # scores now holds the new multipliers
        moved = 0.0
        gain = 0.0
        spread = 0.0
        rise = 0.0  # of the sum of the multipliers
        for y in range(K):
            step = 0.0
            if y != gold:
                step = scores[y] - alpha[i, y]
                gain += step * values[y]
                rise += step
                alpha[i, y] = scores[y]
                if scores[y] > 0.0:
                    seen[i, y] = True
                step *= terms.scales[gold, y]
            steps[y] = -step
            moved += step
            spread += step * step
        steps[gold] = moved
        gain -= 0.5 * square * (spread + moved * moved)
        dual[0] += gain - ridge * rise * (total + 0.5 * rise)
        class_add_row(rows, i, steps, w, K)


@kernel(allocates=False)
def _solve_by_steps(
    values, alpha, block, total, usable, scales, rule, gap, newest, seed, work, result
):
    """Improve a block by the steps of `block_steps`; writes the new multipliers to ``result``."""
    square, cap, ridge = block.square, block.cap, block.ridge
    members, block_scores, block_alpha, gram = work.members, work.scores, work.alpha, work.gram
    m = 1
    first = 0
    for y in range(len(values)):
        result[y] = alpha[y]
        if y != block.gold and usable[y]:
            if y == newest:
                first = m
            members[m] = y
            block_scores[m] = values[y] - ridge * total
            block_alpha[m] = alpha[y]
            m += 1
    block_scores[0] = 0.0
    block_alpha[0] = np.inf if ridge > 0.0 else unused(cap - total, cap)
    for j in range(1, m):
        for k in range(1, m):
            product = square * scales[members[j]] * scales[members[k]]
            gram[j, k] = ridge + (2.0 * product if j == k else product)
    if rule.kind == COORDINATES:
        sweep_block(
            rule.max_steps,
            rule.precision * gap,
            block_scores,
            block_alpha,
            gram,
            m,
            cap,
            ridge,
            first,
            seed,
            work.order,
        )
    else:
        improve_block(
            rule.kind,
            rule.max_steps,
            rule.precision * gap,
            block_scores,
            block_alpha,
            gram,
            m,
            cap,
            ridge,
        )
    for j in range(1, m):
        result[members[j]] = block_alpha[j]


@kernel
def extrapolated_change(alpha, before, limits, factor, change):
    """Feasible change of the multipliers by ``factor`` times their last change, into ``change``."""
    n, K = alpha.shape
    for i in range(n):
        moving = False
        total = 0.0
        for y in range(K):
            if alpha[i, y] != before[i, y]:
                moving = True
            goal = alpha[i, y] + factor * (alpha[i, y] - before[i, y])
            change[i, y] = goal if goal > 0.0 else 0.0
            total += change[i, y]
        shrink = limits[i] / total if total > limits[i] else 1.0
        for y in range(K):
            change[i, y] = change[i, y] * shrink - alpha[i, y] if moving else 0.0


@kernel
def add_weighted_classes(rows, labels, terms, weights, direction):
    """Add the sum of weights times planes to ``direction``; returns the sum times offsets."""
    n, K = weights.shape
    steps = np.empty(K)
    linear = 0.0
    for i in range(n):
        gold = labels[i]
        used = False
        moved = 0.0
        for y in range(K):
            if weights[i, y] != 0.0:
                used = True
            linear += weights[i, y] * terms.offsets[gold, y]
            steps[y] = -weights[i, y] * terms.scales[gold, y]
            moved -= steps[y]
        if used:
            steps[gold] += moved
            class_add_row(rows, i, steps, direction, K)
    return linear
