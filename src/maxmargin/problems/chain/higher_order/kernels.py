"""Exact decoding of chains that remember several labels, and their candidates as sparse rows.

A labelling y of L tokens scores

    sum_t unary[t, y_t] + sum_{t>0} pairs[t, y_{t-1}, y_t] + eta * weights of its transitions,

where ``pairs`` comes from features of the input and transitions are the pairs, triples and
quadruples of labels. The search goes over the states of `automaton` and *levels*, the number of
wrong labels so far (those that cost something), counted up to ``n_error_counts - 1``:

    1 level         the best labelling
    2 levels        in the last one the best labelling but those without loss
    L + 1 levels    the best labelling for each number of wrong labels

It takes O(L (S K + C K)) per level, for S states, C cores and K labels, and stores no back-
pointers: scores are kept and the maximiser is found again on the way back.
"""

from __future__ import annotations

import numpy as np

from ...._jit import kernel
from ....engine.feature_blocks import write_block
from ....engine.rows import add_scores, write_pair
from ....search.modes import ADDITIVE, BEST_NON_GOLD, ERROR_COUNTS
from ....search.violation import violation

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
def score_tokens(model, inputs, first, length, w, forbidden, allowed, work):
    """Fill work.unary and work.pairs for the tokens from ``first`` on, boundaries included.

    ``allowed``, if it is not empty, tells the labels that each token may have.
    """
    K, W, P, at = model.n_labels, model.n_columns, model.n_pairs, model.at
    for t in range(length):
        own = work.unary[t]
        for c in range(W):
            own[c] = 0.0
        add_scores(inputs.rows, first + t, w, W, own)
        if len(allowed) > 0:
            for k in range(K):
                if not allowed[first + t, k]:
                    own[k] = -np.inf
        if not model.has_pairs:
            continue
        sums, of_pairs = work.pair_sums, work.pairs[t]
        for p in range(P):
            sums[p] = 0.0
        if inputs.pair_rows.n_columns > 0:
            add_scores(inputs.pair_rows, first + t, w[at.pair_features :], P, sums)
        for q in range(K * K):
            of_pairs[q] = 0.0
        for p in range(P):
            of_pairs[model.pair_place[p]] = model.eta * sums[p]
            if W > K:
                of_pairs[model.pair_place[p]] += own[K + p]
    for k in range(K):
        work.unary[0, k] += forbidden[K, k]
        work.unary[length - 1, k] += forbidden[K + 1, k]
        if model.boundary:
            work.unary[0, k] += w[at.starts + k]
            work.unary[length - 1, k] += w[at.stops + k]


@kernel(allocates=False)
def add_costs(costs, cost_rows, first, length, K, factor, unary):
    """Add what labels cost, ``factor`` times."""
    for t in range(length):
        own = costs[cost_rows[first + t]]
        for k in range(K):
            unary[t, k] += factor * own[k]


@kernel(allocates=False)
def mark_wrong(costs, cost_rows, first, length, K, wrong):
    """Which labels cost something."""
    for t in range(length):
        own = costs[cost_rows[first + t]]
        for k in range(K):
            wrong[t, k] = own[k] > 0.0


@kernel(allocates=False)
def path_score(model, path, length, work):
    """The score of a labelling by work.scores, work.unary and work.pairs."""
    K, states = model.n_labels, model.states
    s = states.alone[path[0]]
    total = work.unary[0, path[0]]
    for t in range(1, length):
        k = path[t]
        total += work.scores[s, k] + work.unary[t, k]
        if model.has_pairs:
            total += work.pairs[t, states.last[s] * K + k]
        s = states.after[states.core[s], k]
    return total


# ----- the search -------------------------------------------------------------------------------


@kernel(allocates=False)
def advance(model, previous, scores, pairs, best, reached):
    """reached[state] = the best score of a path that goes on to it, without the token's own."""
    K, states = model.n_labels, model.states
    for s in range(len(states.last)):
        reached[s] = -np.inf
    for c in range(len(states.core_last)):
        s, end = states.core_states[c], states.core_states[c + 1]
        score, row = previous[s], scores[s]
        for k in range(K):
            best[k] = score + row[k]
        s += 1
        while s + 1 < end:
            score0, score1 = previous[s], previous[s + 1]
            row0, row1 = scores[s], scores[s + 1]
            for k in range(K):
                best[k] = max(best[k], max(score0 + row0[k], score1 + row1[k]))
            s += 2
        if s < end:
            score, row = previous[s], scores[s]
            for k in range(K):
                best[k] = max(best[k], score + row[k])
        if model.has_pairs:
            own = pairs[states.core_last[c] * K :]
            for k in range(K):
                best[k] += own[k]
        after = states.after[c]
        for k in range(K):
            if best[k] > reached[after[k]]:
                reached[after[k]] = best[k]


@kernel(allocates=False)
def fill(model, length, n_error_counts, work):
    """work.forward[t, m, s] = best score of a prefix that ends in state s at t, in level m."""
    forward, reached, states = work.forward, work.reached, model.states
    S, top = len(states.last), n_error_counts - 1
    for t in range(length):
        for m in range(n_error_counts):
            for s in range(S):
                forward[t, m, s] = -np.inf
    for k in range(model.n_labels):
        error_count = 1 if top > 0 and work.wrong[0, k] else 0
        forward[0, error_count, states.alone[k]] = work.unary[0, k]
    for t in range(1, length):
        unary = work.unary[t]
        for m in range(min(t, top) + 1):
            advance(model, forward[t - 1, m], work.scores, work.pairs[t], work.best, reached)
            if top == 0:
                for s in range(S):
                    forward[t, 0, s] = reached[s] + unary[states.last[s]]
                continue
            for s in range(S):
                k = states.last[s]
                to = min(m + int(work.wrong[t, k]), top)
                forward[t, to, s] = max(forward[t, to, s], reached[s] + unary[k])


@kernel(allocates=False)
def best_before(model, t, m, state, n_error_counts, work):
    """The level and the state before one, on the best path to it."""
    K, states, top = model.n_labels, model.states, n_error_counts - 1
    k = states.last[state]
    wrong = int(top > 0 and work.wrong[t, k])
    best, best_error_count, best_state = -np.inf, 0, 0
    for option in range(2):
        # Wrong labels are counted up to the last level: it is reached from itself, too.
        error_count = m - wrong if option == 0 else top
        if option == 1 and (m < top or wrong == 0):
            continue
        previous = work.forward[t - 1, error_count]
        for e in range(states.before[state], states.before[state + 1]):
            c = states.cores_before[e]
            of_pair = 0.0
            if model.has_pairs:
                of_pair = work.pairs[t, states.core_last[c] * K + k]
            for s in range(states.core_states[c], states.core_states[c + 1]):
                score = previous[s] + work.scores[s, k] + of_pair
                if score > best:
                    best, best_error_count, best_state = score, error_count, s
    return best_error_count, best_state


@kernel(allocates=False)
def trace(model, length, error_count, state, n_error_counts, work, path):
    """The labels of the best path to a state in a level at the end."""
    m, s = error_count, state
    path[length - 1] = model.states.last[s]
    for t in range(length - 1, 0, -1):
        m, s = best_before(model, t, m, s, n_error_counts, work)
        path[t - 1] = model.states.last[s]


@kernel(allocates=False)
def best_end(forward, length, error_count, n_states):
    """The best last state in a level."""
    best = 0
    for s in range(1, n_states):
        if forward[length - 1, error_count, s] > forward[length - 1, error_count, best]:
            best = s
    return best


@kernel(allocates=False)
def best_path(model, length, work, path):
    """Best labelling by work.scores, work.unary and work.pairs."""
    fill(model, length, 1, work)
    end = best_end(work.forward, length, 0, len(model.states.last))
    trace(model, length, 0, end, 1, work, path)


@kernel(allocates=False)
def most_violated_path(model, length, gold, loss_unit, scale, mode, work, path):
    """The path of the largest violation over all levels; returns whether it is positive.

    Scores are ``scale`` times those in ``work``.
    """
    n_error_counts = 2 if mode.kind == BEST_NON_GOLD else length + 1
    S = len(model.states.last)
    fill(model, length, n_error_counts, work)
    gold_score = path_score(model, gold, length, work)
    best_value, best_error_count, best_state = 0.0, 0, 0
    for m in range(1, n_error_counts):
        s = best_end(work.forward, length, m, S)
        gain = work.forward[length - 1, m, s] - gold_score
        if gain == -np.inf:
            continue
        value = violation(1.0 if mode.kind == BEST_NON_GOLD else m * loss_unit, scale * gain, mode)
        if value > best_value:
            best_value, best_error_count, best_state = value, m, s
    if best_value > 0.0:
        trace(model, length, best_error_count, best_state, n_error_counts, work, path)
    return best_value > 0.0


# ----- rows -------------------------------------------------------------------------------------


@kernel(allocates=False)
def write_single(out, filled, position, value):
    """Append one entry; returns the new position."""
    out.indices[filled] = position
    out.values[filled] = value
    return filled + 1


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


@kernel(allocates=False)
def write_move(model, inputs, row, good, k, bad, q, as_blocks, shift, out, filled):
    """Append what label k adds behind state ``good`` less what label q adds behind ``bad``."""
    K, at, states, eta = model.n_labels, model.at, model.states, model.eta
    pair, other = states.last[good] * K + k, states.last[bad] * K + q
    if pair != other:
        begin = shift + at.transitions
        filled = write_pair(out, filled, begin + pair, begin + other, eta)
        if model.has_pairs:
            filled = write_pair_features(
                model, inputs, row, pair, 1.0, as_blocks, shift, out, filled
            )
            filled = write_pair_features(
                model, inputs, row, other, -1.0, as_blocks, shift, out, filled
            )
    for longer in range(2):
        numbers = states.triple if longer == 0 else states.quadruple
        begin = shift + (at.triples if longer == 0 else at.quadruples)
        number, wrong = numbers[good, k], numbers[bad, q]
        if number != wrong:
            if number >= 0:
                filled = write_single(out, filled, begin + number, eta)
            if wrong >= 0:
                filled = write_single(out, filled, begin + wrong, -eta)
    return filled


@kernel(allocates=False)
def write_difference(model, inputs, n_rows, first, length, gold, path, as_blocks, out, filled):
    """Append psi(x, gold) - psi(x, path) at position ``filled``; returns the new position."""
    W, at, states = model.n_columns, model.at, model.states
    # In parts, what is behind the token features keeps its order and moves.
    shift = n_rows * W - at.transitions if as_blocks else 0
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
def path_loss(data, first, length, path):
    """The loss of a labelling."""
    wrong, total = 0, 0.0
    for t in range(length):
        wrong += int(path[t] != data.labels[first + t])
        total += data.costs[data.cost_rows[first + t], path[t]]
    if data.zero_one:
        return 1.0 if wrong > 0 else 0.0
    return total / length if data.normalized else total


@kernel(allocates=False)
def higher_order_oracle(model, data, examples, w, scale, mode, as_blocks, forbidden, work, out):
    """Most violated labelling of each example as a sparse row of dpsi, in features or in parts.

    Problem solved for example i, gold labelling y, over all labellings z that constraints allow,
    at the weights ``scale * w``:

        ADDITIVE    max  Delta(y, z) - <dpsi(z), w>     Delta = sum of costs, or its mean
        DEVIATION   max  1 - <dpsi(z), w>,  Delta(y, z) > 0
        LEVELS      max  the rescaled violation, costs being those of wrong labels, 1 each
        PREDICTION  max  -<dpsi(z), w>

    In: ``model`` (HigherOrderModel), ``data`` (HigherOrderData), ``work`` (HigherOrderScratch).
    Out: ``out.indptr, out.indices, out.values, out.losses``, large enough for the longest rows.
    A row is empty, with loss 0, where nothing beats the gold labelling.
    """
    path, n_rows = work.path, len(data.labels)
    score_moves(model, w, forbidden, work.scores)
    filled = 0
    out.indptr[0] = 0
    for r in range(len(examples)):
        i = examples[r]
        first = data.offsets[i]
        length = data.offsets[i + 1] - first
        gold = data.labels[first : first + length]
        unit = 1.0 / length if data.normalized else 1.0
        score_tokens(model, data.inputs, first, length, w, forbidden, work.all_allowed, work)
        violated = True
        if mode.kind == BEST_NON_GOLD or mode.kind == ERROR_COUNTS:
            mark_wrong(data.costs, data.cost_rows, first, length, model.n_labels, work.wrong)
            violated = most_violated_path(model, length, gold, unit, scale, mode, work, path)
        else:
            if mode.kind == ADDITIVE:
                factor = unit / scale
                K = model.n_labels
                add_costs(data.costs, data.cost_rows, first, length, K, factor, work.unary)
            best_path(model, length, work, path)
        out.losses[r] = 0.0
        if violated:
            out.losses[r] = path_loss(data, first, length, path)
            filled = write_difference(
                model, data.inputs, n_rows, first, length, gold, path, as_blocks, out, filled
            )
        out.indptr[r + 1] = filled


@kernel(allocates=False)
def write_candidates(model, data, examples, paths, losses, as_blocks, out):
    """Rows of labellings that are known, one behind the other in ``paths``; see the oracle."""
    filled, at = 0, 0
    out.indptr[0] = 0
    for r in range(len(examples)):
        first = data.offsets[examples[r]]
        length = data.offsets[examples[r] + 1] - first
        gold, path = data.labels[first : first + length], paths[at : at + length]
        filled = write_difference(
            model,
            data.inputs,
            len(data.labels),
            first,
            length,
            gold,
            path,
            as_blocks,
            out,
            filled,
        )
        out.losses[r] = losses[r]
        out.indptr[r + 1] = filled
        at += length


@kernel(allocates=False)
def decode_higher_order(model, inputs, offsets, w, forbidden, allowed, work, paths):
    """Best labelling of every sequence into ``paths`` (one label per token)."""
    score_moves(model, w, forbidden, work.scores)
    for i in range(len(offsets) - 1):
        first = offsets[i]
        length = offsets[i + 1] - first
        score_tokens(model, inputs, first, length, w, forbidden, allowed, work)
        path = paths[first : first + length]
        best_path(model, length, work, path)


@kernel(allocates=False)
def score_higher_order(model, inputs, offsets, labels, w, forbidden, work, scores):
    """Score of given labels of every sequence."""
    score_moves(model, w, forbidden, work.scores)
    for i in range(len(offsets) - 1):
        first = offsets[i]
        length = offsets[i + 1] - first
        score_tokens(model, inputs, first, length, w, forbidden, work.all_allowed, work)
        scores[i] = path_score(model, labels[first : first + length], length, work)
