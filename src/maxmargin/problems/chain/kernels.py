"""The fast path of first-order chains: exact decoding, and candidates as sparse rows.

A chain of L tokens with K labels scores a labelling y by

    sum_t unary[t, y_t] + sum_{t>0} transition[y_{t-1}, y_t],

start and stop weights folded into the first and last row of ``unary``; a forbidden transition is
-inf. `viterbi` finds the best of all K^L labellings in time O(L K^2). It stores no back-pointers:
scores are kept and the maximiser is found again on the way back. What the loss does not add up for,
and chains of higher orders, `state_kernels` search.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...engine.rows import add_scores, add_sparse_scores, write_pair, write_row
from ...engine.steps.online_steps import SCALE, single_step
from ...jit.decorator import kernel
from ...jit.numba_patches import prefetch
from ...search.semiring import argmax
from ...utils.types import Floats, Ints32

# Weights that caches near the core hold: of more, those of the next token are prefetched.
NEAR = 2**17
SEVERAL = 8  # labels from which on the plain loop over them is the fastest, if memory is the limit
LINE = np.uint64(8)  # weights in a line of the cache


class ChainScratch(NamedTuple):
    """Work arrays of the kernels, for the longest sequence."""

    unary: Floats
    forward: Floats
    path: Ints32
    start: Floats
    stop: Floats


@kernel(allocates=False)
def chain_scores(rows, first, length, w, K, start, stop, unary):
    """Fill unary[:length, :K] with the label scores of the tokens first..first+length-1."""
    token_scores(rows, first, length, w, K, unary)
    add_ends(length, K, start, stop, unary)


@kernel(inline=True)
def add_ends(length, K, start, stop, unary):
    """Add the scores of first and last labels."""
    for k in range(K):
        unary[0, k] += start[k]
        unary[length - 1, k] += stop[k]


@kernel(allocates=False)
def token_scores(rows, first, length, w, K, unary):
    """`chain_scores` without those of first and last labels."""
    indptr, indices = rows.indptr, rows.indices
    ahead = rows.dense.shape[0] == 0 and rows.bias == 0.0 and K >= SEVERAL and len(w) > NEAR
    stride = np.uint64(K)
    for t in range(length):
        row = first + t
        if ahead and t + 1 < length:
            for e in range(np.uint64(indptr[row + 1]), np.uint64(indptr[row + 2])):
                at = np.uint64(indices[e]) * stride
                for k in range(np.uint64(0), stride, LINE):
                    prefetch(w, at + k)
        scores = unary[t]
        for k in range(K):
            scores[k] = 0.0
        if ahead:
            add_sparse_scores(rows, row, w, K, scores)
        else:
            add_scores(rows, row, w, K, scores)


@kernel(inline=True)
def add_loss(chain, unary, first, length, gold, loss_unit):
    """Add the losses of all labels, in multiples of ``loss_unit``, to their scores."""
    K = chain.n_labels
    if len(chain.cost_rows) > 0:
        for t in range(length):
            row = chain.cost_rows[first + t]
            for k in range(K):
                unary[t, k] += loss_unit * chain.costs[row, k]
    else:
        for t in range(length):
            for k in range(K):
                unary[t, k] += loss_unit
            unary[t, gold[t]] -= loss_unit


@kernel(inline=True)
def loss_of(chain, first, length, gold, path, loss_unit):
    """Number of wrong labels of a labelling, and its loss."""
    wrong = 0
    for t in range(length):
        wrong += path[t] != gold[t]
    loss = wrong * loss_unit
    if len(chain.cost_rows) > 0:
        loss = 0.0
        for t in range(length):
            loss += loss_unit * chain.costs[chain.cost_rows[first + t], path[t]]
    if chain.zero_one and loss > 0.0:
        loss = 1.0
    return wrong, loss


@kernel(inline=True)
def fill_potentials(chain, w, forbidden, transition, start, stop):
    """Transition, start and stop scores at w; ``forbidden`` adds 0 or, where forbidden, -inf.

    Its rows 0..K-1 are those of transitions, row K is for starts and row K + 1 for stops.
    """
    K, at = chain.n_labels, chain.at
    for j in range(K):
        base = at.transitions + j * K
        for k in range(K):
            transition[j, k] = w[base + k] + forbidden[j, k]
    for k in range(K):
        start[k] = forbidden[K, k]
        stop[k] = forbidden[K + 1, k]
        if chain.boundary:
            start[k] += w[at.starts + k]
            stop[k] += w[at.stops + k]


@kernel(allocates=False)
def advance(previous, transition, n, K, reached):
    """reached[k] = max_j previous[j] + transition[j, k], j < n; two a round, for fewer loads."""
    for k in range(K):
        reached[k] = previous[0] + transition[0, k]
    j = 1
    while j + 1 < n:
        score0, score1 = previous[j], previous[j + 1]
        row0, row1 = transition[j], transition[j + 1]
        for k in range(K):
            reached[k] = max(reached[k], max(score0 + row0[k], score1 + row1[k]))
        j += 2
    if j < n:
        for k in range(K):
            reached[k] = max(reached[k], previous[j] + transition[j, k])


@kernel(allocates=False)
def best_predecessor(previous, transition, label, K):
    """The j that maximises previous[j] + transition[j, label]."""
    best, best_score = 0, -np.inf
    for j in range(K):
        score = previous[j] + transition[j, label]
        if score > best_score:
            best, best_score = j, score
    return best


@kernel(allocates=False)
def viterbi(unary, length, transition, K, forward, path):
    """Best labelling into path[:length]; returns its score. ``forward`` is scratch."""
    for k in range(K):
        forward[0, k] = unary[0, k]
    for t in range(1, length):
        advance(forward[t - 1], transition, K, K, forward[t])
        for k in range(K):
            forward[t, k] += unary[t, k]
    label = argmax(forward[length - 1], K)
    score = forward[length - 1, label]
    path[length - 1] = label
    for t in range(length - 2, -1, -1):
        label = best_predecessor(forward[t], transition, label, K)
        path[t] = label
    return score


@kernel(allocates=False)
def chain_oracle(chain, examples, w, scale, plain, transition, as_blocks, work, out):
    """A labelling of each example as a sparse row of dpsi, in features or in blocks.

    Problem solved for example i, gold labelling y, over all labellings z, at ``scale * w``:

        max  Delta(y, z) - <dpsi(z), w>     Delta = loss_unit * wrong labels, or costs

    or, with ``plain``, without Delta. In: ``chain`` (ChainData), ``transition`` (K, K) with -inf
    where forbidden, ``work`` (ChainScratch). Out: ``out.indptr, out.indices, out.values,
    out.losses``, large enough for the longest rows possible.
    """
    K = chain.n_labels
    filled = 0
    out.indptr[0] = 0
    for r in range(len(examples)):
        i = examples[r]
        first = chain.offsets[i]
        length = chain.offsets[i + 1] - first
        gold = chain.labels[first : first + length]
        loss_unit = 1.0 / length if chain.normalized else 1.0
        chain_scores(chain.rows, first, length, w, K, work.start, work.stop, work.unary)
        if not plain:
            add_loss(chain, work.unary, first, length, gold, loss_unit / scale)
        viterbi(work.unary, length, transition, K, work.forward, work.path)
        wrong, out.losses[r] = loss_of(chain, first, length, gold, work.path, loss_unit)
        if wrong > 0:
            filled = write_difference(chain, first, length, gold, work.path, as_blocks, out, filled)
        out.indptr[r + 1] = filled


@kernel
def chain_online(chain, examples, weights, forbidden, rule, state, work, row):
    """A step of an online solver for each sequence, at the weights the one before has left.

    The candidate of a sequence is its best labelling (``rule.plain``), or maximises
    ``Delta - <dpsi, w>``; its plane is (Delta, dpsi). With w = scale * v the latter is found at v
    with Delta / scale, so w itself is never made.

    In: ``chain`` (ChainData), ``weights`` of all examples, ``forbidden`` (K + 2, K) with -inf for
    forbidden transitions, first and last labels and 0 elsewhere. ``work`` (ChainScratch) and
    ``row`` (Planes for the longest row) are scratch. ``state`` is changed.
    """
    K = chain.n_labels
    v = state.v
    transition = np.empty((K, K))
    for r in range(len(examples)):
        i = examples[r]
        first = chain.offsets[i]
        length = chain.offsets[i + 1] - first
        gold = chain.labels[first : first + length]
        fill_potentials(chain, v, forbidden, transition, work.start, work.stop)
        chain_scores(chain.rows, first, length, v, K, work.start, work.stop, work.unary)
        loss_unit = 1.0 / length if chain.normalized else 1.0
        if not rule.plain:
            unit_at_v = loss_unit / state.numbers[SCALE]
            add_loss(chain, work.unary, first, length, gold, unit_at_v)
        viterbi(work.unary, length, transition, K, work.forward, work.path)
        row.indptr[1] = 0
        wrong, loss = loss_of(chain, first, length, gold, work.path, loss_unit)
        if wrong > 0:
            row.indptr[1] = write_difference(chain, first, length, gold, work.path, False, row, 0)
        single_step(row, 0, i, loss, loss, 1.0, weights[i], rule, state)


@kernel(allocates=False)
def write_difference(chain, first, length, gold, path, as_blocks, out, filled):
    """Append psi(x, gold) - psi(x, path) at position ``filled``; returns the new position."""
    rows, K = chain.rows, chain.n_labels
    # In blocks, what is behind the token features keeps its order and moves.
    shift = len(chain.labels) * K - chain.at.transitions if as_blocks else 0
    for t in range(length):
        good, bad = gold[t], path[t]
        if good == bad:
            continue
        row = first + t
        if as_blocks:
            filled = write_pair(out, filled, row * K + good, row * K + bad, 1.0)
        else:
            filled = write_row(rows, row, K, good, bad, out, filled)
    return write_moves(chain, length, gold, path, shift, out, filled)


@kernel(allocates=False)
def write_moves(chain, length, gold, path, shift, out, filled):
    """Append the transitions, first and last labels of the difference, moved by ``shift``."""
    K, at = chain.n_labels, chain.at
    for t in range(1, length):
        good = gold[t - 1] * K + gold[t]
        bad = path[t - 1] * K + path[t]
        if good != bad:
            first_transition = shift + at.transitions
            filled = write_pair(out, filled, first_transition + good, first_transition + bad, 1.0)
    if chain.boundary:
        for t, begin in ((0, at.starts), (length - 1, at.stops)):
            if gold[t] != path[t]:
                good, bad = shift + begin + gold[t], shift + begin + path[t]
                filled = write_pair(out, filled, good, bad, 1.0)
    return filled


@kernel(allocates=False)
def decode_chains(rows, offsets, w, K, transition, allowed, work, paths):
    """Best labelling of every sequence into ``paths`` (one label per token).

    ``allowed`` (n_tokens, K) marks the labels that tokens may have; it is empty where all are
    allowed. Where no labelling is, the path is -1 throughout.
    """
    for i in range(len(offsets) - 1):
        first = offsets[i]
        length = offsets[i + 1] - first
        chain_scores(rows, first, length, w, K, work.start, work.stop, work.unary)
        forbid_labels(allowed, first, length, K, work.unary)
        path = paths[first : first + length]
        if viterbi(work.unary, length, transition, K, work.forward, path) == -np.inf:
            for t in range(length):
                path[t] = -1


@kernel(allocates=False)
def forbid_labels(allowed, first, length, K, unary):
    """Give labels that tokens may not have a score of -inf; see `decode_chains`."""
    if len(allowed) > 0:
        for t in range(length):
            for k in range(K):
                if not allowed[first + t, k]:
                    unary[t, k] = -np.inf
