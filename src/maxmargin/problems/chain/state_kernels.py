"""Exact searches over the states of chains of all orders, and their candidates as sparse rows.

A labelling y of L tokens scores

    sum_t unary[t, y_t] + sum_{t>0} pairs[t, y_{t-1}, y_t] + eta * weights of its transitions,

where ``pairs`` comes from features of the input and transitions are the pairs, triples and
quadruples of labels. The search is over the states of `layout.Automaton` and *error counts*, the
number of wrong labels so far (those that cost something), up to ``n_error_counts - 1``:

    1 count         the best labelling
    2 counts        in the last one the best labelling but those without loss
    L + 1 counts    the best labelling for each number of wrong labels (slack rescaling and
                    square-root losses; Tsochantaridis et al. 2005, sec. 3.2)

It takes O(L (S K + C K)) per count, for S states, C cores and K labels, and stores no back-
pointers: scores are kept and the maximiser is found again on the way back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...engine.feature_blocks import write_block
from ...engine.rows import Rows, add_scores, write_pair
from ...jit.decorator import kernel
from ...search.modes import ADDITIVE, BEST_NON_GOLD, ERROR_COUNTS
from ...search.violation import violation
from ...utils.types import Bools, Floats, Ints32
from .kernels import add_loss, forbid_labels, loss_of, token_scores
from .kernels import advance as advance_labels


class ChainInputs(NamedTuple):
    """Token features, and those on pairs of labels (of no columns: there are none)."""

    rows: Rows
    pair_rows: Rows


class StateScratch(NamedTuple):
    """Work arrays of the kernels, for the longest sequence."""

    scores: Floats  # (state, label): of moves
    unary: Floats  # (length, column)
    pair_sums: Floats  # (pair,)
    pairs: Floats  # (length, label * label)
    forward: Floats  # (length, error count, state)
    reached: Floats  # (state,)
    best: Floats  # (label,)
    path: Ints32  # (length,)
    wrong: Bools  # (length, label): whether it costs something; for error counts only


# ----- scores -----------------------------------------------------------------------------------


@kernel(allocates=False)
def score_moves(model, w, forbidden, scores):
    """scores[state, label] of the transitions that a label makes; ``forbidden`` adds 0 or -inf.

    Its rows 0..K-1 are those of transitions, row K is for starts and row K + 1 for stops.
    """
    K, at, states = model.n_labels, model.at, model.states
    for s in range(len(states.last)):
        j = states.last[s]
        for k in range(K):
            total = w[at.transitions + j * K + k]
            if states.triple[s, k] >= 0:
                total += w[at.triples + states.triple[s, k]]
            if states.quadruple[s, k] >= 0:
                total += w[at.quadruples + states.quadruple[s, k]]
            scores[s, k] = model.eta * total + forbidden[j, k]


@kernel(allocates=False)
def score_tokens(model, inputs, first, length, w, forbidden, allowed, unary, pair_sums, pairs):
    """Fill ``unary`` and ``pairs`` for the tokens from ``first`` on, boundaries included.

    ``allowed``, if it is not empty, marks the labels that each token may have. ``pair_sums``, of
    one token, is scratch.
    """
    K, W, P, at = model.n_labels, model.n_columns, model.n_pairs, model.at
    token_scores(inputs.rows, first, length, w, W, unary)
    if model.has_pairs:
        for t in range(length):
            of_pairs = pairs[t]
            for p in range(P):
                pair_sums[p] = 0.0
            if inputs.pair_rows.n_columns > 0:
                add_scores(inputs.pair_rows, first + t, w[at.pair_features :], P, pair_sums)
            for q in range(K * K):
                of_pairs[q] = 0.0
            for p in range(P):
                of_pairs[model.pair_place[p]] = model.eta * pair_sums[p]
                if W > K:
                    of_pairs[model.pair_place[p]] += unary[t, K + p]
    forbid_labels(allowed, first, length, K, unary)
    for k in range(K):
        unary[0, k] += forbidden[K, k]
        unary[length - 1, k] += forbidden[K + 1, k]
        if model.boundary:
            unary[0, k] += w[at.starts + k]
            unary[length - 1, k] += w[at.stops + k]


@kernel(inline=True)
def score_sequence(model, inputs, first, length, w, forbidden, allowed, work):
    """The same into ``work``."""
    score_tokens(
        model,
        inputs,
        first,
        length,
        w,
        forbidden,
        allowed,
        work.unary,
        work.pair_sums,
        work.pairs,
    )


@kernel(inline=True)
def score_move(model, work, t, state, k):
    """Score of label k at token t behind a state, without the token's own."""
    score = work.scores[state, k]
    if model.has_pairs:
        score += work.pairs[t, model.states.last[state] * model.n_labels + k]
    return score


@kernel(allocates=False)
def mark_wrong(chain, first, length, gold, wrong):
    """Which labels cost something."""
    for t in range(length):
        for k in range(chain.n_labels):
            if len(chain.cost_rows) > 0:
                wrong[t, k] = chain.costs[chain.cost_rows[first + t], k] > 0.0
            else:
                wrong[t, k] = k != gold[t]


@kernel(allocates=False)
def path_score(model, path, length, work):
    """The score of a labelling by work.scores, work.unary and work.pairs."""
    states = model.states
    s = states.alone[path[0]]
    total = work.unary[0, path[0]]
    for t in range(1, length):
        k = path[t]
        total += score_move(model, work, t, s, k) + work.unary[t, k]
        s = states.after[states.core[s], k]
    return total


# ----- the search -------------------------------------------------------------------------------


@kernel(inline=True)
def advance(model, previous, scores, pairs, best, reached):
    """reached[state] = the best score of a path that leads to it, without the token's own."""
    K, states = model.n_labels, model.states
    if len(states.core_last) == 1 and len(states.last) == K:  # states are labels
        advance_labels(previous, scores, K, K, reached)
        if model.has_pairs:
            for k in range(K):
                reached[k] += pairs[states.core_last[0] * K + k]
        return
    for s in range(len(states.last)):
        reached[s] = -np.inf
    for c in range(len(states.core_last)):
        s, end = states.core_states[c], states.core_states[c + 1]
        advance_labels(previous[s:end], scores[s:end], end - s, K, best)
        if model.has_pairs:
            own = pairs[states.core_last[c] * K :]
            for k in range(K):
                best[k] += own[k]
        after = states.after[c]
        for k in range(K):
            if best[k] > reached[after[k]]:
                reached[after[k]] = best[k]


@kernel(inline=True)
def advance_few(model, t, previous, work):
    """`advance` into work.reached from few states, those that have a score."""
    states, reached = model.states, work.reached
    for s in range(len(states.last)):
        reached[s] = -np.inf
    for s in range(len(states.last)):
        if previous[s] > -np.inf:
            for k in range(model.n_labels):
                to = states.after[states.core[s], k]
                reached[to] = max(reached[to], previous[s] + score_move(model, work, t, s, k))


@kernel(inline=True)
def add_token(states, unary, m, top, wrong, t, reached, forward):
    """Add the token's scores to those of paths with m errors before it, by errors behind it."""
    last, stay, rise = states.last, forward[m], forward[min(m + 1, top)]
    if m < top:  # a state with so many errors is reached from here only
        for s in range(len(last)):
            score = reached[s] + unary[last[s]]
            if wrong[t, last[s]]:
                rise[s] = score
            else:
                stay[s] = score
    elif top == 0:
        for s in range(len(last)):
            stay[s] = reached[s] + unary[last[s]]
    else:
        for s in range(len(last)):
            stay[s] = max(stay[s], reached[s] + unary[last[s]])


@kernel(allocates=False)
def fill(model, length, n_error_counts, work):
    """work.forward[t, m, s] = best score of a prefix with m errors that ends in state s at t."""
    forward, reached, states = work.forward, work.reached, model.states
    S, top = len(states.last), n_error_counts - 1
    for t in range(length if top > 0 else 1):
        for m in range(n_error_counts):
            for s in range(S):
                forward[t, m, s] = -np.inf
    for k in range(model.n_labels):
        error_count = 1 if top > 0 and work.wrong[0, k] else 0
        forward[0, error_count, states.alone[k]] = work.unary[0, k]
    for t in range(1, length):
        unary = work.unary[t]
        for m in range(min(t, top) + 1):
            if top > 0 and m == 0:  # the gold labelling, and those that cost as little
                advance_few(model, t, forward[t - 1, m], work)
            else:
                advance(model, forward[t - 1, m], work.scores, work.pairs[t], work.best, reached)
            add_token(states, unary, m, top, work.wrong, t, reached, forward[t])


@kernel(inline=True)
def best_before(model, t, m, state, n_error_counts, work):
    """The error count before, and the move, on the best path to a state with m errors."""
    states, top = model.states, n_error_counts - 1
    k = states.last[state]
    wrong = int(top > 0 and work.wrong[t, k])
    best, best_error_count, best_move = -np.inf, 0, states.moves_into[state]
    for option in range(2):
        # Errors are counted up to the last number: it is reached from itself, too.
        error_count = m - wrong if option == 0 else top
        if option == 1 and (m < top or wrong == 0):
            continue
        previous = work.forward[t - 1, error_count]
        for move in range(states.moves_into[state], states.moves_into[state + 1]):
            s = states.came_from[move]
            score = previous[s] + score_move(model, work, t, s, k)
            if score > best:
                best, best_error_count, best_move = score, error_count, move
    return best_error_count, best_move


@kernel(allocates=False)
def trace(model, length, error_count, state, n_error_counts, work, path):
    """The labels of the best path to a state with so many errors at the end."""
    m, s = error_count, state
    path[length - 1] = model.states.last[s]
    for t in range(length - 1, 0, -1):
        m, move = best_before(model, t, m, s, n_error_counts, work)
        s = model.states.came_from[move]
        path[t - 1] = model.states.last[s]


@kernel(allocates=False)
def best_end(forward, length, error_count, n_states):
    """The best last state with so many errors."""
    best = 0
    for s in range(1, n_states):
        if forward[length - 1, error_count, s] > forward[length - 1, error_count, best]:
            best = s
    return best


@kernel(allocates=False)
def best_path(model, length, work, path):
    """Best labelling by work.scores, work.unary and work.pairs; returns its score."""
    fill(model, length, 1, work)
    end = best_end(work.forward, length, 0, len(model.states.last))
    trace(model, length, 0, end, 1, work, path)
    return work.forward[length - 1, 0, end]


@kernel(inline=True)
def most_violated_path(model, length, gold, loss_unit, scale, mode, work, path):
    """The path of the largest violation over all error counts; returns whether it is positive.

    Scores are ``scale`` times those in ``work``.
    """
    n_error_counts = 2 if mode.kind == BEST_NON_GOLD else length + 1
    fill(model, length, n_error_counts, work)
    gold_score = path_score(model, gold, length, work)
    best_value, best_error_count, best_state = 0.0, 0, 0
    for m in range(n_error_counts):
        if m == 0 and (mode.slack or mode.kind != BEST_NON_GOLD):
            continue
        s = best_end(work.forward, length, m, len(model.states.last))
        gain = work.forward[length - 1, m, s] - gold_score
        if gain == -np.inf:
            continue
        loss = float(m) if mode.kind == BEST_NON_GOLD else m * loss_unit
        value = violation(loss, scale * gain, mode)
        if value > best_value:
            best_value, best_error_count, best_state = value, m, s
    if best_value > 0.0:
        trace(model, length, best_error_count, best_state, n_error_counts, work, path)
    return best_value > 0.0


# ----- rows -------------------------------------------------------------------------------------


@kernel(allocates=False)
def write_pair_features(model, inputs, row, pair, sign, as_blocks, shift, out, filled):
    """Append the features of the input on a pair of labels, if the pair has weights for them."""
    K, W, number = model.n_labels, model.n_columns, model.pair_number[pair]
    if number < 0:
        return filled
    if W > K:
        filled = write_block(inputs.rows, row, W, K + number, sign, as_blocks, out, filled)
    if inputs.pair_rows.n_columns > 0:
        place, value = shift + model.at.pair_features + number, sign * model.eta
        filled = write_block(inputs.pair_rows, row, model.n_pairs, place, value, False, out, filled)
    return filled


@kernel(inline=True)
def write_move(model, inputs, row, good, k, bad, q, as_blocks, shift, out, filled):
    """Append what label k adds behind state ``good`` less what label q adds behind ``bad``."""
    K, at, states, eta = model.n_labels, model.at, model.states, model.eta
    pair, other = states.last[good] * K + k, states.last[bad] * K + q
    if pair != other:
        begin = shift + at.transitions
        filled = write_pair(out, filled, begin + pair, begin + other, eta)
        if model.has_pairs:
            for chosen, sign in ((pair, 1.0), (other, -1.0)):
                filled = write_pair_features(
                    model, inputs, row, chosen, sign, as_blocks, shift, out, filled
                )
    for longer in range(2):
        numbers = states.triple if longer == 0 else states.quadruple
        begin = shift + (at.triples if longer == 0 else at.quadruples)
        number, wrong = numbers[good, k], numbers[bad, q]
        if number != wrong:
            for n, value in ((number, eta), (wrong, -eta)):
                if n >= 0:
                    out.indices[filled] = begin + n
                    out.values[filled] = value
                    filled += 1
    return filled


@kernel(allocates=False)
def write_labelling(model, chain, first, length, gold, path, as_blocks, out, filled):
    """Append psi(x, gold) - psi(x, path) at position ``filled``; returns the new position."""
    W, at, states = model.n_columns, model.at, model.states
    inputs = ChainInputs(chain.rows, chain.pair_rows)
    # In blocks, what is behind the token features keeps its order and moves.
    shift = len(chain.labels) * W - at.transitions if as_blocks else 0
    good, bad = states.alone[gold[0]], states.alone[path[0]]
    for t in range(length):
        row, k, q = first + t, gold[t], path[t]
        if k != q:
            filled = write_block(inputs.rows, row, W, k, 1.0, as_blocks, out, filled)
            filled = write_block(inputs.rows, row, W, q, -1.0, as_blocks, out, filled)
        if t > 0:
            if good != bad or k != q:
                filled = write_move(
                    model, inputs, row, good, k, bad, q, as_blocks, shift, out, filled
                )
            good = states.after[states.core[good], k]
            bad = states.after[states.core[bad], q]
    if model.boundary:
        for t, begin in ((0, at.starts), (length - 1, at.stops)):
            if gold[t] != path[t]:
                begin += shift
                filled = write_pair(out, filled, begin + gold[t], begin + path[t], 1.0)
    return filled


@kernel(allocates=False)
def state_oracle(model, chain, examples, w, scale, mode, as_blocks, forbidden, work, out):
    """Most violated labelling of each example as a sparse row of dpsi, in features or in blocks.

    Problem solved for example i, gold labelling y, over all labellings z that constraints allow,
    at the weights ``scale * w``:

        ADDITIVE       max  Delta(y, z) - <dpsi(z), w>    Delta = sum of costs, or its mean
        BEST_NON_GOLD  max  1 - <dpsi(z), w>,  Delta(y, z) > 0; unless ``mode.slack`` also
                            -<dpsi(z), w>,  Delta(y, z) = 0
        ERROR_COUNTS   max  the rescaled violation, costs being those of wrong labels, 1 each
        PREDICTION     max  -<dpsi(z), w>

    In: ``model`` (ChainModel), ``chain`` (ChainData), ``work`` (StateScratch). Out: ``out.indptr,
    out.indices, out.values, out.losses``, large enough for the longest rows possible. A row is
    empty, with loss 0, where nothing beats the gold labelling.
    """
    path, inputs = work.path, ChainInputs(chain.rows, chain.pair_rows)
    allowed = work.wrong[:0]
    score_moves(model, w, forbidden, work.scores)
    filled = 0
    out.indptr[0] = 0
    for r in range(len(examples)):
        i = examples[r]
        first = chain.offsets[i]
        length = chain.offsets[i + 1] - first
        gold = chain.labels[first : first + length]
        unit = 1.0 / length if chain.normalized else 1.0
        score_sequence(model, inputs, first, length, w, forbidden, allowed, work)
        violated = True
        if mode.kind == BEST_NON_GOLD or mode.kind == ERROR_COUNTS:
            mark_wrong(chain, first, length, gold, work.wrong)
            violated = most_violated_path(model, length, gold, unit, scale, mode, work, path)
        else:
            if mode.kind == ADDITIVE:
                add_loss(chain, work.unary, first, length, gold, unit / scale)
            best_path(model, length, work, path)
        out.losses[r] = 0.0
        if violated:
            _, out.losses[r] = loss_of(chain, first, length, gold, path, unit)
            filled = write_labelling(
                model, chain, first, length, gold, path, as_blocks, out, filled
            )
        out.indptr[r + 1] = filled


@kernel(allocates=False)
def write_labellings(model, chain, examples, paths, as_blocks, out):
    """Rows of labellings that are known, one behind the other in ``paths``; see the oracle."""
    filled, begin = 0, 0
    out.indptr[0] = 0
    for r in range(len(examples)):
        first = chain.offsets[examples[r]]
        length = chain.offsets[examples[r] + 1] - first
        gold, path = chain.labels[first : first + length], paths[begin : begin + length]
        unit = 1.0 / length if chain.normalized else 1.0
        _, out.losses[r] = loss_of(chain, first, length, gold, path, unit)
        filled = write_labelling(model, chain, first, length, gold, path, as_blocks, out, filled)
        out.indptr[r + 1] = filled
        begin += length


# ----- new sequences ------------------------------------------------------------------------------


@kernel(allocates=False)
def decode_states(model, inputs, offsets, w, forbidden, allowed, work, paths):
    """Best labelling of every sequence into ``paths``; see `kernels.decode_chains`."""
    score_moves(model, w, forbidden, work.scores)
    for i in range(len(offsets) - 1):
        first = offsets[i]
        length = offsets[i + 1] - first
        score_sequence(model, inputs, first, length, w, forbidden, allowed, work)
        path = paths[first : first + length]
        if best_path(model, length, work, path) == -np.inf:
            for t in range(length):
                path[t] = -1


@kernel(allocates=False)
def score_labellings(model, inputs, offsets, labels, w, forbidden, work, scores):
    """Score of given labels of every sequence."""
    score_moves(model, w, forbidden, work.scores)
    for i in range(len(offsets) - 1):
        first = offsets[i]
        length = offsets[i + 1] - first
        score_sequence(model, inputs, first, length, w, forbidden, work.wrong[:0], work)
        scores[i] = path_score(model, labels[first : first + length], length, work)
