"""Changes of all blocks of a multiclass dual at once: extrapolations, and weights made afresh.

Lists, blocks and scratch are those of `class_visits`.
"""

from __future__ import annotations

from ..._jit import kernel
from .class_rows import add_to_classes


@kernel(inline=True)
def _goals(i, lists, limit, factor, goals):
    """Feasible multipliers of example i, ``factor`` times their last change further."""
    alpha, before = lists.alpha, lists.before
    total = 0.0
    for j in range(lists.counts[i]):
        goals[j] = max(0.0, alpha[i, j] + factor * (alpha[i, j] - before[i, j]))
        total += goals[j]
    if total > limit:
        for j in range(lists.counts[i]):
            goals[j] *= limit / total


@kernel(allocates=False)
def extrapolated_change(blocks, limits, factor, carried, work):
    """What an extrapolation adds to the dual, but for the weights; the planes that are clipped.

    Without clipping, the weights change by ``factor`` times their last change; what clipping alters
    is added to ``carried``. Returns the changes' sum times offsets, and for squared slacks what
    ridges make of slope and curvature.
    """
    labels, terms, lists = blocks.labels, blocks.terms, blocks.lists
    classes, alpha, before, counts, moved = lists
    goals, changed, steps, wide = work.new, work.changed, work.steps, work.scores
    linear = 0.0
    slope = 0.0
    curvature = 0.0
    for i in range(len(counts)):
        if not moved[i]:
            continue
        _goals(i, lists, limits[i], factor, goals)
        gold, row = labels[i], terms.rows[i]
        held = 0.0
        rise = 0.0
        lost = 0.0
        n = 0
        for j in range(counts[i]):
            y = classes[i, j]
            change = goals[j] - alpha[i, j]
            linear += change * terms.offsets[row, y]
            held += alpha[i, j]
            rise += change
            clipped = (change - factor * (alpha[i, j] - before[i, j])) * terms.scales[row, y]
            if clipped != 0.0:
                changed[n] = y
                steps[n] = -clipped
                lost += clipped
                n += 1
        slope -= blocks.ridges[i] * held * rise
        curvature += blocks.ridges[i] * rise * rise
        if n > 0:
            changed[n] = gold
            steps[n] = lost
            add_to_classes(blocks.rows, i, changed, steps, n + 1, carried, blocks.stride, wide)
    return linear, slope, curvature


@kernel(allocates=False)
def extrapolate_lists(lists, limits, factor, step, goals):
    """Go ``step`` of the way to the goals of an extrapolation, and remember where from."""
    _, alpha, before, counts, moved = lists
    for i in range(len(counts)):
        if not moved[i]:
            continue
        _goals(i, lists, limits[i], factor, goals)
        moved[i] = False
        for j in range(counts[i]):
            before[i, j] = alpha[i, j]
            alpha[i, j] += step * (goals[j] - alpha[i, j])
            moved[i] |= alpha[i, j] != before[i, j]


@kernel(allocates=False)
def add_listed_classes(blocks, weights, work):
    """Add the sum of multipliers times planes to ``weights``."""
    labels, terms = blocks.labels, blocks.terms
    classes, alpha, _, counts, _ = blocks.lists
    changed, steps, wide = work.changed, work.steps, work.scores
    for i in range(len(counts)):
        gold, row = labels[i], terms.rows[i]
        moved = 0.0
        n = 0
        for j in range(counts[i]):
            y = classes[i, j]
            if alpha[i, j] != 0.0:
                changed[n] = y
                steps[n] = -alpha[i, j] * terms.scales[row, y]
                moved -= steps[n]
                n += 1
        if n > 0:
            changed[n] = gold
            steps[n] = moved
            add_to_classes(blocks.rows, i, changed, steps, n + 1, weights, blocks.stride, wide)
