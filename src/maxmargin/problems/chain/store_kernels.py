"""Dual ascent on chains in one kernel: search, new planes and steps, example by example.

Two searches for a plane of an example's block. The true one scores every label of every token at
the weights of the moment (`search_chain`). The other knows only the labels that the block's stored
planes use, whose scores the block has at hand (`search_lattice`): it finds the best *recombination*
of stored planes, which together span far more labellings than there are planes.
"""

from __future__ import annotations

import numpy as np

from ...engine.rows import write_pair
from ...engine.steps.block_steps import block_gap
from ...engine.store.plane_kernels import (
    append_plane,
    enter_plane,
    gap_with_plane,
    has_capacity,
    improve_and_write,
    is_new,
    list_block,
    prefetch_blocks,
    score_block,
    score_planes,
)
from ...jit.decorator import kernel
from .kernels import (
    add_ends,
    add_loss,
    fill_potentials,
    loss_of,
    token_scores,
    viterbi,
    write_difference,
    write_moves,
)

# A recombination is stored if it makes this much of its block's gap: more planes cost time too.
WORTHWHILE = 0.3
NOTHING = -1  # in the place of labels, where no new plane was found


@kernel(allocates=False)
def number_features(indptr, indices, offsets, last_seen, number, numbered):
    """Number the features of each example from 0 on; returns the largest number of any.

    ``last_seen`` is -1 for all features, ``number`` is scratch.
    """
    most = 0
    for i in range(len(offsets) - 1):
        count = 0
        for e in range(indptr[offsets[i]], indptr[offsets[i + 1]]):
            f = indices[e]
            new = last_seen[f] != i
            last_seen[f] = i
            number[f] = count if new else number[f]
            count += new
            numbered[e] = number[f]
        most = max(most, count)
    return most


@kernel(inline=True)
def path_score(unary, length, transition, path):
    """Score of a labelling."""
    score = unary[0, path[0]]
    for t in range(1, length):
        score += unary[t, path[t]] + transition[path[t - 1], path[t]]
    return score


@kernel(inline=True)
def take_weights(feature_blocks, first, unary, chosen, n, w, out):
    """`gather_blocks` where the scores of all labels are known: out[f] = the weight of a part."""
    K = np.uint64(feature_blocks.n_labels)
    n_row_blocks = np.uint64(feature_blocks.n_row_blocks)
    for f in range(n):
        feature_block = np.uint64(chosen[f])
        if feature_block >= n_row_blocks:
            out[f] = w[np.uint64(feature_blocks.first_single) + feature_block - n_row_blocks]
        else:
            row = feature_block // K
            out[f] = unary[row - np.uint64(first), feature_block - row * K]


@kernel(inline=True)
def search_chain(chain, first, length, gold, loss_unit, w, work):
    """Most violated labelling, by the tokens' scores, into work.path; returns its hinge value."""
    K, unary = chain.n_labels, work.unary
    fill_potentials(chain, w, work.forbidden, work.transition, work.start, work.stop)
    add_ends(length, K, work.start, work.stop, unary)
    add_loss(chain, unary, first, length, gold, loss_unit)
    best = viterbi(unary, length, work.transition, K, work.forward, work.path)
    return best - path_score(unary, length, work.transition, gold)


@kernel(inline=True)
def search_lattice(
    chain, first, length, gold, loss_unit, scratch, n_local, n_row_blocks, originals, w, work
):
    """The same over the labels that the block's parts use; returns the hinge value.

    Column 0 of ``labels`` is the gold labelling. Where no part names a token, all stored planes
    agree with it there, and its score does not matter. ``originals`` are the numbers that parts
    have in the problem, if they have others here.
    """
    K = chain.n_labels
    labels, n_labels, unary, forward = work.labels, work.n_labels, work.unary, work.forward
    transitions = chain.at.transitions
    for t in range(length):
        n_labels[t] = 1
        labels[t, 0] = gold[t]
        unary[t, 0] = 0.0
    for f in range(n_local):
        feature_block = scratch.features[f]
        if feature_block >= n_row_blocks:
            continue
        named = originals[feature_block] if len(originals) > 0 else feature_block
        row = named // K
        label = named - row * K
        t = row - first
        if label == gold[t]:
            unary[t, 0] = scratch.weights[f]
            work.feature_blocks[t, 0] = feature_block
        else:
            a = n_labels[t]
            labels[t, a] = label
            work.feature_blocks[t, a] = feature_block
            unary[t, a] = scratch.weights[f]
            if len(chain.cost_rows) > 0:
                unary[t, a] += loss_unit * chain.costs[chain.cost_rows[row], label]
            else:
                unary[t, a] += loss_unit
            n_labels[t] = a + 1
    if chain.boundary:
        for a in range(n_labels[0]):
            unary[0, a] += w[chain.at.starts + labels[0, a]]
        for a in range(n_labels[length - 1]):
            unary[length - 1, a] += w[chain.at.stops + labels[length - 1, a]]
    for a in range(n_labels[0]):
        forward[0, a] = unary[0, a] + work.forbidden[K, labels[0, a]]
    of_gold = unary[0, 0]
    for t in range(1, length):
        of_gold += unary[t, 0] + w[transitions + gold[t - 1] * K + gold[t]]
        for a in range(n_labels[t]):
            k = labels[t, a]
            best = -np.inf
            for b in range(n_labels[t - 1]):
                j = labels[t - 1, b]
                score = forward[t - 1, b] + w[transitions + j * K + k] + work.forbidden[j, k]
                if score > best:
                    best = score
                    work.back[t, a] = b
            forward[t, a] = best + unary[t, a]
    chosen = 0
    best = -np.inf
    for a in range(n_labels[length - 1]):
        score = forward[length - 1, a] + work.forbidden[K + 1, labels[length - 1, a]]
        if score > best:
            best, chosen = score, a
    for t in range(length - 1, -1, -1):
        work.path[t] = labels[t, chosen]
        work.columns[t] = chosen
        if t > 0:
            chosen = work.back[t, chosen]
    return best - of_gold


@kernel(inline=True)
def write_recombination(chain, length, gold, n_row_blocks, work, out):
    """Write what `search_lattice` has found as a plane in parts; returns its length."""
    filled = 0
    for t in range(length):
        a = work.columns[t]
        if a > 0:
            filled = write_pair(
                out, filled, work.feature_blocks[t, 0], work.feature_blocks[t, a], 1.0
            )
    shift = n_row_blocks - chain.at.transitions
    return write_moves(chain, length, gold, work.path, shift, out, filled)


@kernel(inline=True)
def search_block(arena, feature_blocks, blocks, scratch, w, rule, chain, work, i):
    """Score the planes of block i, and find its most violated labelling, into ``work.path``.

    Returns the block's gap, the hinge value found, the plane's value in the dual, whether it is
    worth storing, and how many planes and parts the block has.
    """
    upper_bound, ridge = blocks.upper_bound[i], blocks.ridge[i]
    first = chain.offsets[i]
    length = chain.offsets[i + 1] - first
    gold = chain.labels[first : first + length]
    n_live, n_known = list_block(arena, blocks, i, scratch)
    token_scores(chain.rows, first, length, w, chain.n_labels, work.unary)
    take_weights(feature_blocks, first, work.unary, scratch.features, n_known, w, scratch.weights)
    shift = score_planes(arena, scratch, n_live, upper_bound, ridge)
    gap, u = block_gap(scratch.scores, scratch.alpha, n_live + 1, upper_bound, ridge)
    best = scratch.scores[u]
    hinge = search_chain(chain, first, length, gold, loss_unit(chain, length), w, work)
    value = hinge - shift
    gap = gap_with_plane(scratch, n_live, upper_bound, ridge, gap, best, value)
    new = is_new(value, best) and value >= rule.delta
    return gap, hinge, value, new, n_live, n_known


@kernel(inline=True)
def recombine_block(arena, feature_blocks, blocks, scratch, w, rule, chain, originals, work, i):
    """The same for the best recombination of the block's planes, if it makes much of the gap."""
    upper_bound, ridge = blocks.upper_bound[i], blocks.ridge[i]
    first = chain.offsets[i]
    length = chain.offsets[i + 1] - first
    gold = chain.labels[first : first + length]
    n_live, n_known = list_block(arena, blocks, i, scratch)
    shift = score_block(arena, feature_blocks, scratch, n_live, n_known, w, upper_bound, ridge)
    gap, u = block_gap(scratch.scores, scratch.alpha, n_live + 1, upper_bound, ridge)
    best = scratch.scores[u]
    hinge = search_lattice(
        chain,
        first,
        length,
        gold,
        loss_unit(chain, length),
        scratch,
        n_known,
        feature_blocks.n_row_blocks,
        originals,
        w,
        work,
    )
    value = hinge - shift
    found = gap_with_plane(scratch, n_live, upper_bound, ridge, gap, best, value)
    if found - gap < WORTHWHILE * found:
        return gap, hinge, value, False, n_live, n_known
    new = is_new(value, best) and value >= rule.delta
    return found, hinge, value, new, n_live, n_known


@kernel(inline=True)
def loss_unit(chain, length):
    """Loss of a wrong label."""
    return 1.0 / length if chain.normalized else 1.0


@kernel(inline=True)
def enter_found(feature_blocks, scratch, chain, work, row, i, n_known, cached):
    """Put the plane that was found into the local vector; returns its offset and all parts' number.

    ``row`` is scratch for one sparse row.
    """
    first = chain.offsets[i]
    length = chain.offsets[i + 1] - first
    gold = chain.labels[first : first + length]
    _, offset = loss_of(chain, first, length, gold, work.path, loss_unit(chain, length))
    if cached:
        filled = write_recombination(chain, length, gold, feature_blocks.n_row_blocks, work, row)
    else:
        filled = write_difference(chain, first, length, gold, work.path, True, row, 0)
    row.indptr[1] = filled
    return offset, enter_plane(scratch, row, 0, 1.0, n_known)


@kernel(inline=True)
def most_entries(chain, i):
    """Entries of a plane of example i, at most: two parts and two moves for each token."""
    return 4 * (chain.offsets[i + 1] - chain.offsets[i]) + 4


@kernel(allocates=False)
def oracle_pass_chains(
    store, near, examples, rule, done, report, chain, originals, work, row, cached, found
):
    """Visit the blocks of examples[done:], by true oracle calls or (``cached``) recombination.

    Like `plane_kernels.absorb_planes`, with the plane found here, at the weights of the moment.
    ``near`` are the parts by weights that are numbered within an example: products of its parts
    take place there. ``row`` is scratch for one sparse row. Returns how many examples are done.
    With a negative number of steps nothing is changed: labels of new planes are in ``found`` then,
    for `store_found`.
    """
    arena, feature_blocks, blocks, used, scratch, w, dual = store
    gaps, hinges = report
    for r in range(done, len(examples)):
        prefetch_blocks(arena, blocks, used, examples, r)
        i = examples[r]
        upper_bound, ridge = blocks.upper_bound[i], blocks.ridge[i]
        if cached and blocks.count[i] == 0:
            gaps[r] = 0.0
            continue
        if cached:
            gap, hinge, value, new, n_live, n_known = recombine_block(
                arena, feature_blocks, blocks, scratch, w, rule, chain, originals, work, i
            )
        else:
            gap, hinge, value, new, n_live, n_known = search_block(
                arena, feature_blocks, blocks, scratch, w, rule, chain, work, i
            )
        gaps[r] = gap
        hinges[r] = max(hinge, 0.0)
        new = new and gap > rule.threshold * upper_bound
        if rule.max_steps < 0:
            for t in range(chain.offsets[i + 1] - chain.offsets[i]):
                found.labels[found.starts[r] + t] = work.path[t] if new else NOTHING
            continue
        if gap <= rule.threshold * upper_bound:
            continue
        if new:
            if not has_capacity(arena, blocks, used, scratch, i, most_entries(chain, i)):
                return r
            offset, n_local = enter_found(
                feature_blocks, scratch, chain, work, row, i, n_known, cached
            )
            append_plane(
                arena, near, blocks, used, scratch, i, offset, value, n_live, n_known, n_local
            )
            n_live += 1
            n_known = n_local
        if rule.max_steps > 0:
            dual[0] += improve_and_write(
                arena, feature_blocks, scratch, n_live, n_known, w, upper_bound, ridge, rule, gap
            )
    return len(examples)


@kernel(allocates=False)
def store_found(store, near, examples, done, found, chain, work, row):
    """Store new planes of examples[done:] that were found by `oracle_pass_chains`.

    Returns how many examples are done: fewer than all where the arrays are too small.
    """
    arena, feature_blocks, blocks, used, scratch, _, _ = store
    for r in range(done, len(examples)):
        if found.labels[found.starts[r]] == NOTHING:
            continue
        i = examples[r]
        if not has_capacity(arena, blocks, used, scratch, i, most_entries(chain, i)):
            return r
        for t in range(chain.offsets[i + 1] - chain.offsets[i]):
            work.path[t] = found.labels[found.starts[r] + t]
        n_live, n_known = list_block(arena, blocks, i, scratch)
        offset, n_local = enter_found(feature_blocks, scratch, chain, work, row, i, n_known, False)
        append_plane(arena, near, blocks, used, scratch, i, offset, 0.0, n_live, n_known, n_local)
    return len(examples)
