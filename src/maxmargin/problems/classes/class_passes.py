"""Dual ascent on the blocks of a multiclass problem, without storing planes.

The plane of class y for example i is ``a = s (x at class y_i minus x at class y)``, with offset
``b`` and scale ``s`` (1, or the loss with slack rescaling). Two planes of one example have the
product ``s_y s_y' |x|^2 (1 + [y = y'])``, so a block is a short list of classes with their
multipliers and |x|^2. For squared slack (``ridge > 0``) see `block_steps`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...engine.rows import Rows
from ...engine.steps.block_steps import ALL_PLANES, COORDINATES, improve_block, sweep_block, unused
from ...jit.decorator import kernel
from ...jit.numba_patches import prefetch
from ...search.violation import plane_value
from ...utils.types import Bools, Floats, Ints, Ints32
from .class_rows import (
    add_input,
    add_to_classes,
    score_all_classes,
    score_classes,
    score_input,
)
from .multiclass_kernels import ClassTerms


class ClassLists(NamedTuple):
    """The classes of each example that may get weight: the first ``counts[i]`` places of row i.

    ``alpha`` are their multipliers, ``before`` those at the last extrapolation; where an example is
    not marked as ``moved`` they are the same.
    """

    classes: Ints32
    alpha: Floats
    before: Floats
    counts: Ints
    moved: Bools


class ClassBlocks(NamedTuple):
    """The blocks of a multiclass dual, and what their planes are made of."""

    rows: Rows
    labels: Ints
    squares: Floats
    weights: Floats
    stride: int  # of the weights, see `class_rows`
    dual: Floats
    terms: ClassTerms
    lists: ClassLists
    upper_bounds: Floats
    ridges: Floats
    shards: float  # that step at the same time, each with weights of its own; see `class_shares`


class Scratch(NamedTuple):
    """Work arrays of a visit: by class (``values_of``, ``mark``) or by place in the list."""

    scores: Floats
    values_of: Floats
    mark: Ints
    values: Floats
    new: Floats
    steps: Floats
    changed: Ints32
    order: Ints


def new_scratch(K: int, stride: int) -> Scratch:
    """For K classes."""
    width = max(stride, K) + 1
    return Scratch(
        scores=np.zeros(width),
        values_of=np.zeros(width),
        mark=np.zeros(width, np.int64),
        values=np.zeros(width),
        new=np.zeros(width),
        steps=np.zeros(width),
        changed=np.zeros(width, np.int32),
        order=np.zeros(width, np.int64),
    )


class BlockScratch(NamedTuple):
    """Work arrays of a block that is improved by steps: values and products of its planes."""

    scores: Floats
    alpha: Floats
    gram: Floats


def block_scratch(K: int) -> BlockScratch:
    """For blocks of at most K planes, the gold output's included."""
    return BlockScratch(np.empty(K + 1), np.empty(K + 1), np.zeros((K + 1, K + 1)))


@kernel(inline=True)
def _solve_exactly(values, alpha, m, square, upper_bound, ridge, order, new):
    """Best multipliers of a block whose scales are all 1 (Crammer & Singer's subproblem).

    With v_j = value_j / |x|^2 + alpha_j + sum(alpha) the optimum is alpha_j = max(0, v_j - t),
    where t solves sum(alpha) = t, or sum(alpha) = cap if that t exceeds cap. Classes enter in the
    order of v, largest first, until the next would get nothing. With squared slack there is no cap,
    and t solves sum(alpha) = t |x|^2 / (|x|^2 + ridge). Returns the largest change.
    """
    shard = square / (square + ridge)
    capped = ridge == 0.0
    held = 0.0
    for j in range(m):
        held += alpha[j]
    n = 0
    for j in range(m):
        v = values[j] / square + alpha[j] + held
        new[j] = v
        if v > 0.0:
            position = n  # insertion sort: few classes compete
            while position > 0 and new[order[position - 1]] < v:
                order[position] = order[position - 1]
                position -= 1
            order[position] = j
            n += 1
    total = 0.0
    level = 0.0
    for free in range(2):  # first without the bound on the sum, then with it
        total = 0.0
        level = 0.0
        for r in range(n):
            if new[order[r]] <= level:
                break
            total += new[order[r]]
            if free == 0:
                level = total / (r + 1.0 + shard)
            else:
                level = max(0.0, (total - upper_bound) / (r + 1.0))
        if not capped or level <= upper_bound:
            break
    largest = 0.0
    for j in range(m):
        new[j] = max(0.0, new[j] - level)
        largest = max(largest, abs(new[j] - alpha[j]))
    return largest


@kernel(inline=True)
def _list_rivals(
    i,
    n_classes,
    gold,
    values_of,
    values,
    top,
    best,
    square,
    upper_bound,
    ridge,
    total,
    lists,
    mark,
    r,
):
    """List the classes that may get weight in the optimum of the block; returns their number.

    The level t of `_solve_exactly` over some of the classes is at most that over all. The best of
    those listed, alone, gives one, and a class whose v is below it gets nothing.
    """
    classes, alpha, _, counts, _ = lists
    m = counts[i]
    if square <= 0.0:
        return m
    largest = top / square + total if best != gold else -np.inf
    for j in range(m):
        largest = max(largest, values[j] / square + alpha[i, j] + total)
    level = largest / (1.0 + square / (square + ridge))
    if ridge == 0.0:
        level = max(level, largest - upper_bound)
    least = (level - total) * square
    if best != gold and top <= least:
        return m
    for j in range(m):
        mark[classes[i, j]] = r
    for y in range(n_classes):
        if values_of[y] > least and y != gold and mark[y] != r:
            m = _append(i, y, values_of[y], values, lists, m)
    return m


@kernel(inline=True)
def _list_all(i, n_classes, gold, values_of, values, lists, mark, r):
    """List all classes but the gold one; returns their number."""
    m = lists.counts[i]
    for j in range(m):
        mark[lists.classes[i, j]] = r
    for y in range(n_classes):
        if y != gold and mark[y] != r:
            m = _append(i, y, values_of[y], values, lists, m)
    return m


@kernel(inline=True)
def _append(i, y, value, values, lists, m):
    """Put class y behind the first m classes of example i; returns their number."""
    lists.classes[i, m] = y
    lists.alpha[i, m] = 0.0
    lists.before[i, m] = 0.0
    values[m] = value
    return m + 1


WORTH = 4  # classes of a sparse row that are scored as fast, all together, as one by itself
AHEAD = 8  # visits from asking for an example's memory to its use
MOST_AHEAD = 64  # entries of a row that are asked for: of a longer one the processor finds the rest


@kernel(inline=True)
def _fetch_ahead(blocks, examples, r):
    """Ask for what later visits read: passes leave most examples out, so it is all over memory."""
    rows, lists = blocks.rows, blocks.lists
    sparse = rows.dense.shape[0] == 0
    if sparse and r + 2 * AHEAD < len(examples):
        prefetch(rows.indptr, examples[r + 2 * AHEAD])
    if r + AHEAD < len(examples):
        i = examples[r + AHEAD]
        if sparse:
            first = rows.indptr[i]
            last = min(rows.indptr[i + 1], first + MOST_AHEAD)
            for e in range(first, last, 16):
                prefetch(rows.indices, e)
                prefetch(rows.values, e)
                prefetch(rows.values, e + 8)
        place = i * lists.alpha.shape[1]
        prefetch(lists.classes, place)
        prefetch(lists.alpha, place)
        prefetch(lists.counts, i)
        prefetch(blocks.labels, i)
        prefetch(blocks.squares, i)
        prefetch(blocks.upper_bounds, i)
        prefetch(blocks.ridges, i)


@kernel(allocates=False)
def oracle_pass_classes(blocks, examples, rule, cached, report, work, scratch):
    """Dual ascent on the blocks of ``examples`` (Franc 2014, Alg. 1 and 2, for classes).

    A true visit (``cached`` False) scores all classes at w, finds the most violated one, reports
    its hinge value and lists it; with rule.kind ALL_PLANES every class may then get weight, else
    only listed ones. A cached visit scores the gold class and listed ones only. Without ``scratch``
    blocks are solved in closed form, which needs scales of 1 and rule.kind ALL_PLANES.
    """
    rows, labels, squares, weights, stride, dual, terms, lists, upper_bounds, ridges, shards = (
        blocks
    )
    classes, alpha, _, counts, moved = lists
    gaps, hinges = report
    scores, values_of, mark, values, new, steps, changed, order = work
    K = terms.offsets.shape[1]
    mark[:] = -1
    sparse = rows.dense.shape[0] == 0
    every = rule.kind == ALL_PLANES
    for r in range(len(examples)):
        _fetch_ahead(blocks, examples, r)
        i = examples[r]
        gold, row = labels[i], terms.rows[i]
        upper_bound, ridge, square = upper_bounds[i], ridges[i], shards * squares[i]
        m = counts[i]
        best = gold
        top = 0.0
        together = not cached or (sparse and (m + 1) * WORTH > stride)
        if together:
            score_all_classes(rows, i, weights, stride, K, scores)
        else:
            for j in range(m):
                changed[j] = classes[i, j]
            changed[m] = gold
            score_classes(rows, i, weights, stride, changed, m + 1, scores)
        own = scores[gold] if together else scores[m]
        if not cached:
            for y in range(K):
                offset, scale = terms.offsets[row, y], terms.scales[row, y]
                values_of[y] = plane_value(offset, scale, scores[y] - own)
            for y in range(K):
                if values_of[y] > top:
                    best, top = y, values_of[y]
        for j in range(m):
            y = np.int64(classes[i, j])
            if cached:
                offset, scale = terms.offsets[row, y], terms.scales[row, y]
                values[j] = plane_value(offset, scale, scores[y if together else j] - own)
                if values[j] > top:
                    best, top = y, values[j]
            else:
                values[j] = values_of[y]
        held = 0.0
        total = 0.0
        for j in range(m):
            held += alpha[i, j] * values[j]
            total += alpha[i, j]
        if ridge > 0.0:
            gap = upper_bound * top * top - held + 0.5 * ridge * total * total
        else:
            gap = upper_bound * top - held
        gaps[r] = gap
        small = gap <= rule.threshold * upper_bound
        newest = -1
        for j in range(m):
            if classes[i, j] == best:
                newest = j
        if not cached:
            hinges[r] = top
            worthwhile = not small and top - ridge * total >= rule.delta
            if best != gold and worthwhile and newest < 0:
                newest = m
                m = _append(i, best, top, values, lists, m)
                counts[i] = m
        if small or rule.max_steps == 0:
            continue
        if every and not cached:
            if scratch is None:
                m = _list_rivals(
                    i,
                    K,
                    gold,
                    values_of,
                    values,
                    top,
                    best,
                    square,
                    upper_bound,
                    ridge,
                    total,
                    lists,
                    mark,
                    r,
                )
            else:
                m = _list_all(i, K, gold, values_of, values, lists, mark, r)
        if square <= 0.0:  # x = 0: the values are constant, and the largest takes it all
            largest = top / ridge if ridge > 0.0 else upper_bound
            for j in range(m):
                new[j] = largest if j == newest else 0.0
        elif scratch is None:
            if _solve_exactly(values, alpha[i], m, square, upper_bound, ridge, order, new) <= 0.0:
                continue
        else:
            for j in range(m):
                steps[j] = terms.scales[row, classes[i, j]]
            seed = rule.seed + i
            _solve_by_steps(
                values,
                alpha[i],
                m,
                square,
                upper_bound,
                ridge,
                total,
                steps,
                rule,
                gap,
                newest,
                seed,
                order,
                scratch,
                new,
            )
        n = 0
        lost = 0.0  # by the gold class's rivals, all in all
        gain = 0.0
        spread = 0.0
        rise = 0.0  # of the sum of the multipliers
        for j in range(m):
            step = new[j] - alpha[i, j]
            if step != 0.0:
                y = classes[i, j]
                alpha[i, j] = new[j]
                gain += step * values[j]
                rise += step
                step *= terms.scales[row, y]
                changed[n] = y
                steps[n] = -step * shards
                lost += step
                spread += step * step
                n += 1
        counts[i] = m
        if every and not cached:
            _forget_idle(i, lists)
        if n == 0:
            continue
        if not moved[i]:  # a line that other threads read is not to be written to for nothing
            moved[i] = True
        changed[n] = gold
        steps[n] = lost * shards
        gain -= 0.5 * square * (spread + lost * lost)
        dual[0] += gain - ridge * rise * (total + 0.5 * rise)
        add_to_classes(rows, i, changed, steps, n + 1, weights, stride, scores)


@kernel(allocates=False)
def oracle_pass_two_classes(blocks, examples, rule, cached, report):
    """`oracle_pass_classes` where there are two: one multiplier, whose best value every rule finds.

    ``weights`` are those of class 1, half the difference of both classes'.
    """
    rows, labels, squares, weights, _, dual, terms, lists, upper_bounds, ridges, shards = blocks
    classes, alpha, _, counts, moved = lists
    gaps, hinges = report
    for r in range(len(examples)):
        _fetch_ahead(blocks, examples, r)
        i = examples[r]
        gold, row = labels[i], terms.rows[i]
        upper_bound, ridge = upper_bounds[i], ridges[i]
        scale = terms.scales[row, 1 - gold] * (2.0 * gold - 1.0)
        known = counts[i] > 0
        old = alpha[i, 0]  # 0 where the class is not listed
        value = 0.0
        if known or not cached:
            score = score_input(rows, i, weights)
            value = plane_value(terms.offsets[row, 1 - gold], -2.0 * scale, score)
        top = max(value, 0.0)
        if ridge > 0.0:
            gap = upper_bound * top * top - old * value + 0.5 * ridge * old * old
        else:
            gap = upper_bound * top - old * value
        gaps[r] = gap
        small = gap <= rule.threshold * upper_bound
        if not cached:
            hinges[r] = top
            if not known and value > 0.0 and not small and value >= rule.delta:
                classes[i, 0] = 1 - gold
                counts[i] = 1
                known = True
        if small or rule.max_steps == 0 or not known:
            continue
        curvature = 2.0 * scale * scale * (shards * squares[i]) + ridge
        slope = value - ridge * old
        new = old
        if curvature > 0.0:
            new = max(0.0, old + slope / curvature)
        elif slope != 0.0:  # x = 0: the value is constant
            new = upper_bound if slope > 0.0 else 0.0
        if ridge == 0.0:
            new = min(new, upper_bound)
        step = new - old
        if step != 0.0:
            alpha[i, 0] = new
            moved[i] = True
            dual[0] += step * (slope - 0.5 * step * curvature)
            add_input(rows, i, step * scale * shards, weights)


@kernel(inline=True)
def _forget_idle(i, lists):
    """Take classes without weight, now and at the last extrapolation, off the list of example i."""
    classes, alpha, before, counts, _ = lists
    m = counts[i]
    j = 0
    while j < m:
        if alpha[i, j] == 0.0 and before[i, j] == 0.0:
            m -= 1
            classes[i, j] = classes[i, m]
            alpha[i, j] = alpha[i, m]
            before[i, j] = before[i, m]
            alpha[i, m] = 0.0  # beyond the list there is no weight
        else:
            j += 1
    counts[i] = m


@kernel(allocates=False)
def forget_idle_classes(lists):
    """Take classes without weight off all lists."""
    for i in range(len(lists.counts)):
        _forget_idle(i, lists)


@kernel(allocates=False)
def _solve_by_steps(
    values,
    alpha,
    m,
    square,
    upper_bound,
    ridge,
    total,
    scales,
    rule,
    gap,
    newest,
    seed,
    order,
    scratch,
    new,
):
    """Improve a block by the steps of `block_steps`; writes the new multipliers to ``new``."""
    block_scores, block_alpha, gram = scratch
    block_scores[0] = 0.0
    block_alpha[0] = np.inf if ridge > 0.0 else unused(upper_bound - total, upper_bound)
    for j in range(m):
        block_scores[j + 1] = values[j] - ridge * total
        block_alpha[j + 1] = alpha[j]
        for k in range(m):
            product = square * scales[j] * scales[k]
            gram[j + 1, k + 1] = ridge + (2.0 * product if j == k else product)
    precision = rule.precision * gap
    if rule.kind == COORDINATES:
        sweep_block(
            rule.max_steps,
            precision,
            block_scores,
            block_alpha,
            gram,
            m + 1,
            upper_bound,
            ridge,
            newest + 1,
            seed,
            order,
        )
    else:
        improve_block(
            rule.kind,
            rule.max_steps,
            precision,
            block_scores,
            block_alpha,
            gram,
            m + 1,
            upper_bound,
            ridge,
        )
    for j in range(m):
        new[j] = block_alpha[j + 1]
