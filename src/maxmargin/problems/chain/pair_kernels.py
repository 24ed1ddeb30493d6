"""Visits of chains by two threads, which search at the same w and write it in turn.

Blocks are visited in groups. Each thread searches, scores and steps on its own ones, all at the w
that the last group has left. Then the changes are added to w, one block's after the other; nobody
searches while another writes. Each change but the first was found without those before it, so it is
cut where the dual along it is the largest: the dual never falls.

Where there are few weights each thread has a copy of them, and adds all changes to it: to fetch
what another core has written takes longer than to write it again. Of many weights there is one
copy, to which the threads add their changes in turn.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..._jit import kernel
from ...engine.arena import Scratch
from ...engine.pairs import meet, post
from ...engine.parts import product_with_parts, scatter_parts
from ...engine.plane_kernels import (
    append_multiplied,
    ask_ahead,
    has_capacity_for,
    improve_planes,
    part_products,
)
from ...plane_rows import Planes
from ...types import Floats, Ints, Ints32
from .store_kernels import enter_found, most_entries, search_block

__all__ = ["Changes", "Role", "fits_group", "visit_groups"]

# What threads tell each other: the new plane is stored, w is not read any more, w is written.
STORED, READ, WRITTEN = 0, 1, 2
# Numbers of a change: planes of its block, parts, and whether it is one at all.
N_LIVE, N_LOCAL, CHANGED = 0, 1, 2
# And what the dual gains by a step s of it: s * (LINEAR - <change, w>) - s^2 / 2 * CURVATURE.
LINEAR, CURVATURE = 0, 1


class Changes(NamedTuple):
    """What a thread's steps on its blocks of a group have come to, a row for each block.

    The first ones are those of `Scratch` of the same names.
    """

    features: Ints32
    weights: Floats
    dense: Floats
    planes: Ints
    scores: Floats
    alpha: Floats
    before: Floats  # multipliers before the steps
    numbers: Ints
    terms: Floats


class Role(NamedTuple):
    """What a thread has for itself, beside its `Changes`, which the other reads."""

    w: Floats
    copies: bool  # whether each thread has all weights
    scratch: Scratch
    work: Any
    row: Planes
    dual: Floats  # what its steps have gained


@kernel(allocates=False)
def fits_group(store, scratch, examples, first, size, chain):
    """Whether new planes of all examples of a group of this size fit."""
    arena, _, blocks, used, _, _, _ = store
    entries, n_planes = 0, 0
    end = min(first + size, len(examples))
    for r in range(first, end):
        i = examples[r]
        entries = max(entries, blocks.n_features[i] + most_entries(chain, i))
        n_planes = max(n_planes, blocks.count[i] + 1)
    return has_capacity_for(arena, used, scratch, end - first, entries, n_planes)


@kernel(inline=True)
def note_change(arena, scratch, before, n_live, shift, gain, terms):
    """Note what the steps on a block would gain at other weights.

    ``gain`` is what they gain at the present ones. With the change d of the multipliers of planes
    (b, a) of a Gram matrix G, the slope is <d, b> - <sum d a, w>, and the curvature d' G d follows
    from the gain and the scores after the steps.
    """
    linear, held = 0.0, 0.0
    for j in range(n_live):
        step = scratch.alpha[j + 1] - before[j]
        linear += step * (arena.offset[scratch.planes[j]] - shift)
        held += step * scratch.scores[j + 1]
    terms[LINEAR] = linear
    terms[CURVATURE] = 2.0 * (gain - held)


@kernel(inline=True)
def write_change(arena, parts, changes, k, is_own, space, w):
    """Add the change of block k to w, as far as pays; returns what the dual gains.

    Its multipliers follow, and the gain counts, if it is the thread's own.
    """
    if changes.numbers[k, CHANGED] == 0:
        return 0.0
    n, features, dense = changes.numbers[k, N_LOCAL], changes.features[k], changes.dense[k]
    slope, curvature = changes.terms[k, LINEAR], changes.terms[k, CURVATURE]
    slope -= product_with_parts(parts, features, n, dense, w)
    # Where hardly anything is to gain, rounding may make the curvature negative.
    share = 0.0
    if slope > 0.0:
        share = slope / curvature if slope < curvature else 1.0
    for f in range(n):
        space[f] = share * dense[f]
    scatter_parts(parts, features, n, space, w)
    if not is_own:
        return 0.0
    if share < 1.0:
        for j in range(changes.numbers[k, N_LIVE]):
            p, before = changes.planes[k, j], changes.before[k, j]
            arena.alpha[p] = before + share * (arena.alpha[p] - before)
    return share * (slope - 0.5 * share * curvature)


@kernel(allocates=False)
def visit_groups(
    me, events, store, near, role, own, others, size, examples, rule, done, report, chain
):
    """Visit the blocks examples[done + me :: 2] while the other thread visits the rest.

    ``own`` and ``others`` are what the two threads keep of a group, which has ``size`` blocks of
    each; more than are kept only where there are no steps. Returns how many examples both have
    done, fewer than all where the arrays are too small for the next group; or -1 if the other
    thread has given up.
    """
    arena, parts, blocks, used, _, _, _ = store
    w, copies, base, work, row, dual = role
    gaps, hinges = report
    other = 1 - me
    n_kept = own.features.shape[0]
    ticket, group = 0, 0
    for first in range(done, len(examples), 2 * size):
        group += 1
        for number in range(size):
            ticket += 1
            r = first + 2 * number + me
            k = number % n_kept
            for f in range(own.numbers[k, N_LOCAL]):
                own.dense[k, f] = 0.0
            own.numbers[k, N_LOCAL] = 0
            own.numbers[k, CHANGED] = 0
            if r >= len(examples):
                post(events, me, STORED, ticket)
                continue
            i = examples[r]
            ask_ahead(arena, blocks, used, examples, r)
            scratch = Scratch(
                base.places,
                base.expanded,
                own.features[k],
                own.weights[k],
                own.dense[k],
                base.products,
                own.planes[k],
                own.scores[k],
                own.alpha[k],
                base.gram,
                base.order,
            )
            cap, ridge = blocks.cap[i], blocks.ridge[i]
            gap, hinge, value, new, n_live, n_local = search_block(
                arena, parts, blocks, scratch, w, rule, chain, work, i
            )
            gaps[r] = gap
            hinges[r] = max(hinge, 0.0)
            steps = gap > rule.threshold * cap
            if new and steps:
                n_known = n_local
                offset, n_local = enter_found(parts, scratch, chain, work, row, i, n_known, False)
                part_products(near, scratch, n_local)
                # Planes are stored in the order of the examples: first, second, first...
                if not meet(events, other, STORED, ticket + me - 1):
                    return -1
                append_multiplied(
                    arena, blocks, used, scratch, i, offset, value, n_live, n_known, n_local
                )
                n_live += 1
            post(events, me, STORED, ticket)
            if steps and rule.max_steps > 0:
                for j in range(n_live):
                    own.before[k, j] = scratch.alpha[j + 1]
                gain, changed = improve_planes(arena, scratch, n_live, cap, ridge, rule, gap)
                own.numbers[k, CHANGED] = changed
                own.numbers[k, N_LIVE] = n_live
                own.numbers[k, N_LOCAL] = n_local
                shift = hinge - value
                note_change(arena, scratch, own.before[k], n_live, shift, gain, own.terms[k])
        post(events, me, READ, group)
        if not meet(events, other, READ if copies or me == 0 else WRITTEN, group):
            return -1
        for k in range(n_kept):
            if copies and me == 1:
                write_change(arena, parts, others, k, False, base.weights, w)
            dual[0] += write_change(arena, parts, own, k, True, base.weights, w)
            if copies and me == 0:
                write_change(arena, parts, others, k, False, base.weights, w)
        fits = fits_group(store, base, examples, first + 2 * size, 2 * size, chain)
        post(events, me, WRITTEN, group)
        if (copies or me == 0) and not meet(events, other, WRITTEN, group):
            return -1
        if not fits:
            return first + 2 * size
    return len(examples)
