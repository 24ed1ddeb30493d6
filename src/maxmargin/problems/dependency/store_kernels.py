"""Dual ascent on dependency trees in one kernel: search, new planes and steps, by sentence.

Planes are lists of arcs, a gold arc with 1 and a wrong one with -1: an arc has some eighty
features, which are found by its keys whenever they are needed. Arcs are numbered within their
sentence of n tokens: ``(h (n + 1) + m) max(n_labels, 1) + label``. The search has the scores of all
arcs, so that a visit gathers no weights for the arcs of stored planes, unless these have labels.
"""

from __future__ import annotations

from ..._jit import kernel
from ...engine.block_steps import block_gap
from ...engine.plane_kernels import (
    append_multiplied,
    enter_plane,
    has_capacity,
    improve_planes,
    list_block,
    local_product,
    rate_plane,
    score_planes,
    sum_block,
)
from .kernels import ANY_ERROR, RIGHT_LABEL, score_sentence, search_sum
from .scores import arc_features

# ----- lists of arcs ------------------------------------------------------------------------------


@kernel(inline=True)
def list_features(arcs, i, arc, features):
    """Write the features of an arc of sentence i, given by its number; returns how many."""
    first = arcs.bounds[i]
    label = -1
    if arcs.n_labels > 0:
        label = arc % arcs.n_labels
        arc //= arcs.n_labels
    nodes = arcs.bounds[i + 1] - first
    return arc_features(arcs, first, arc // nodes, arc % nodes, label, features)


@kernel(allocates=False)
def gather_arcs(arcs, i, chosen, start, end, w, features, out):
    """out[k] = the score of arc chosen[k] of sentence i, by its features."""
    for k in range(start, end):
        total = 0.0
        for e in range(list_features(arcs, i, chosen[k], features)):
            total += w[features[e]]
        out[k] = total


@kernel(allocates=False)
def scatter_arcs(arcs, i, chosen, n_chosen, steps, w, features):
    """Add steps[k] times arc chosen[k] of sentence i to w."""
    for k in range(n_chosen):
        if steps[k] != 0.0:
            for e in range(list_features(arcs, i, chosen[k], features)):
                w[features[e]] += steps[k]


@kernel(allocates=False)
def _write_change(arcs, i, scratch, n_local, w, features):
    """Add the local vector to w and clear it."""
    scatter_arcs(arcs, i, scratch.features, n_local, scratch.dense, w, features)
    for f in range(n_local):
        scratch.dense[f] = 0.0


@kernel(allocates=False)
def _arc_products(arcs, i, scratch, n_local, features):
    """Products of all local arcs with the plane in the local vector, into scratch.products."""
    expanded = scratch.expanded  # zero before and after
    scatter_arcs(arcs, i, scratch.features, n_local, scratch.dense, expanded, features)
    gather_arcs(arcs, i, scratch.features, 0, n_local, expanded, features, scratch.products)
    for f in range(n_local):
        if scratch.dense[f] != 0.0:
            for e in range(list_features(arcs, i, scratch.features[f], features)):
                expanded[features[e]] = 0.0


# ----- one sentence -------------------------------------------------------------------------------


@kernel(allocates=False)
def _keep_scores(n, gold, work, kept):
    """Copy the scores of all arcs before the search changes them."""
    for h in range(n + 1):
        for m in range(1, n + 1):
            kept[h * (n + 1) + m] = work.scores[h, m]
    for m in range(1, n + 1):
        kept[gold[m] * (n + 1) + m] = work.gold_scores[RIGHT_LABEL, m]


@kernel(allocates=False)
def _weigh(arcs, i, scratch, start, end, w, kept, features):
    """Scores of the local arcs from ``start`` on, into scratch.weights."""
    if arcs.n_labels > 0:
        gather_arcs(arcs, i, scratch.features, start, end, w, features, scratch.weights)
        return
    for f in range(start, end):
        scratch.weights[f] = kept[scratch.features[f]]


@kernel(allocates=False)
def _write_row(n, n_labels, gold, gold_labels, heads, work, row):
    """psi(gold) - psi(found) in arcs as the only row of ``row``; returns the number of errors."""
    filled = 0
    for m in range(1, n + 1):
        if work.wrong[ANY_ERROR, m] == 0:
            continue
        right, found = gold[m] * (n + 1) + m, heads[m] * (n + 1) + m
        if n_labels > 0:
            right = right * n_labels + gold_labels[m]
            found = found * n_labels + work.labels[heads[m], m]
        row.indices[filled] = right
        row.indices[filled + 1] = found
        row.values[filled] = 1.0
        row.values[filled + 1] = -1.0
        filled += 2
    row.indptr[1] = filled
    return filled // 2


# ----- passes -------------------------------------------------------------------------------------


@kernel(allocates=False)
def oracle_pass_trees(store, examples, rule, done, report, trees, work, kept, heads, row):
    """Visit the blocks of examples[done:] by true oracle calls.

    Like `plane_kernels.absorb_planes`, with the plane found here, at the weights of the moment.
    ``work`` is scratch of the search, ``kept`` for the scores of all arcs, ``heads`` for a tree,
    ``row`` for one sparse row. Returns how many examples are done.
    """
    arena, _, blocks, used, scratch, w, dual = store
    arcs, features = trees.arcs, work.features[0]
    gaps, hinges = report
    for r in range(done, len(examples)):
        i = examples[r]
        upper_bound, ridge = blocks.upper_bound[i], blocks.ridge[i]
        first = arcs.bounds[i]
        n = arcs.bounds[i + 1] - first - 1
        if not has_capacity(arena, blocks, used, scratch, i, 2 * n):
            return r
        gold = trees.gold[first : first + n + 1]
        labels = trees.labels[first : first + n + 1]
        unit = 1.0 / n if trees.options.normalized else 1.0
        gold_score = score_sentence(arcs, first, n, w, 1.0, gold, labels, work)
        if arcs.n_labels == 0:
            _keep_scores(n, gold, work, kept)
        n_wrong = 0
        row.indptr[1] = 0
        if search_sum(n, gold, gold_score, trees.options, unit, work, heads):
            n_wrong = _write_row(n, arcs.n_labels, gold, labels, heads, work, row)
        n_live, n_known = list_block(arena, blocks, i, scratch)
        n_local = enter_plane(scratch, row, 0, 1.0, n_known)
        _weigh(arcs, i, scratch, 0, n_local, w, kept, features)
        shift = score_planes(arena, scratch, n_live, upper_bound, ridge)
        hinges[r] = n_wrong * unit - local_product(scratch, n_local)
        value = hinges[r] - shift
        gap, steps, new = rate_plane(scratch, n_live, upper_bound, ridge, rule, value)
        gaps[r] = gap
        if new:
            _arc_products(arcs, i, scratch, n_local, features)
            append_multiplied(
                arena,
                blocks,
                used,
                scratch,
                i,
                n_wrong * unit,
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
            gain, changed = improve_planes(arena, scratch, n_live, upper_bound, ridge, rule, gap)
            dual[0] += gain
            if changed:
                _write_change(arcs, i, scratch, n_known, w, features)
    return len(examples)


@kernel(allocates=False)
def cached_pass_trees(store, examples, rule, gaps, arcs, features):
    """Improve the blocks of ``examples`` from their stored planes; reports gaps before that."""
    arena, _, blocks, _, scratch, w, dual = store
    for r in range(len(examples)):
        i = examples[r]
        gaps[r] = 0.0
        if blocks.count[i] == 0:
            continue
        upper_bound, ridge = blocks.upper_bound[i], blocks.ridge[i]
        n_live, n_local = list_block(arena, blocks, i, scratch)
        gather_arcs(arcs, i, scratch.features, 0, n_local, w, features, scratch.weights)
        score_planes(arena, scratch, n_live, upper_bound, ridge)
        gap, _ = block_gap(scratch.scores, scratch.alpha, n_live + 1, upper_bound, ridge)
        gaps[r] = gap
        if gap > rule.threshold * upper_bound and rule.max_steps > 0:
            gain, changed = improve_planes(arena, scratch, n_live, upper_bound, ridge, rule, gap)
            dual[0] += gain
            if changed:
                _write_change(arcs, i, scratch, n_local, w, features)


@kernel(allocates=False)
def add_weighted_trees(arena, blocks, weights, scratch, arcs, features, direction):
    """Add sum_p weights[p] a_p to ``direction``."""
    for i in range(len(blocks.first)):
        if sum_block(arena, blocks, i, weights, scratch.dense):
            _, n_local = list_block(arena, blocks, i, scratch)
            _write_change(arcs, i, scratch, n_local, direction, features)


@kernel(allocates=False)
def count_row_features(arcs, block, rows, features, sizes):
    """sizes[k] = features of all arcs of row k, a plane of sentence block[k]."""
    for k in range(len(rows.first)):
        sizes[k] = 0
        for e in range(rows.first[k], rows.last[k]):
            sizes[k] += list_features(arcs, block[k], rows.ids[e], features)


@kernel(allocates=False)
def write_row_features(arcs, block, rows, features, out):
    """Rows of arcs as rows of features."""
    for k in range(len(rows.first)):
        filled = out.first[k]
        for e in range(rows.first[k], rows.last[k]):
            for f in range(list_features(arcs, block[k], rows.ids[e], features)):
                out.ids[filled] = features[f]
                out.values[filled] = rows.values[e]
                filled += 1
