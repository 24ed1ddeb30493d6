"""The k best labellings of a chain, exactly, by recursive enumeration (Jimenez & Marzal 1999).

The best path to a state at token t is Viterbi's. Its next best one extends, for some move into the
state, the next best path to where that comes from that has not been extended yet: each state keeps
one such candidate for each move. One more path at the end therefore asks for at most one more path
at one state of each token, so k paths take little longer than the best one, and nothing is computed
that no path needs.

States are those of `layout.Automaton`, of a first-order chain the labels. Where labellings are
ranked by a loss that does not add up (slack rescaling, square roots), the number of wrong labels so
far, m, belongs to the state, ``m * S + state``: at the end the best of all numbers is taken, again
and again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...jit.decorator import kernel
from ...search.limits import MOST_TABLE_BYTES
from ...search.modes import ADDITIVE, ERROR_COUNTS
from ...search.semiring import argmax
from ...search.violation import plane_terms, plane_value
from ...utils.types import Floats, Ints32
from .kernels import add_loss, loss_of
from .layout import ChainModel
from .state_kernels import (
    ChainInputs,
    best_before,
    fill,
    mark_wrong,
    path_score,
    score_move,
    score_moves,
    score_sequence,
    write_labelling,
)

__all__ = ["KBestScratch", "check_table", "decode_k_best", "k_best_rows", "make_k_best_scratch"]


class KBestScratch(NamedTuple):
    """Work arrays for the longest sequence; path r to (t, state) arrives by the move ``before``.

    ``next_*[t, m * S * K + move]`` is the best path not yet extended by a move.
    """

    scores: Floats  # (length, m * S + state, rank)
    before: Ints32
    before_rank: Ints32
    known: Ints32  # (length, m * S + state): how many paths
    next_score: Floats
    next_rank: Ints32
    asked: Ints32  # (length,): states on the way down
    offsets: Floats  # (m,): a path with m errors is ranked by
    scales: Floats  # offsets[m] + scales[m] * score, and left out where the scale is 0
    end_value: Floats  # (m * S + state,)
    end_rank: Ints32
    labels: Ints32  # (k, length): the answer
    label_scores: Floats


def make_k_best_scratch(
    model: ChainModel, longest: int, k: int, n_error_counts: int = 1
) -> KBestScratch:
    """Work arrays for k paths through sequences of at most ``longest`` tokens."""
    S, K = model.states.n_states, model.n_labels
    size, states = longest * n_error_counts * S * (12 * K + 16 * k + 4), n_error_counts * S
    check_table(size, longest, S, n_error_counts, k)
    return KBestScratch(
        np.empty((longest, states, k)),
        np.empty((longest, states, k), np.int32),
        np.empty((longest, states, k), np.int32),
        np.empty((longest, states), np.int32),
        np.empty((longest, states * K)),
        np.empty((longest, states * K), np.int32),
        np.empty(longest, np.int32),
        np.zeros(n_error_counts),
        np.ones(n_error_counts),
        np.empty(states),
        np.empty(states, np.int32),
        np.empty((k, longest), np.int32),
        np.empty(k),
    )


def check_table(size: int, longest: int, n_states: int, n_error_counts: int, k: int = 1) -> None:
    """Raise ValueError for a table that takes too much memory."""
    if size > MOST_TABLE_BYTES:
        what = f" for the {k} best labellings" if k > 1 else ""
        error_counts = f" and {n_error_counts} numbers of errors" if n_error_counts > 1 else ""
        raise ValueError(
            f"the search{what} in {longest} tokens with {n_states} states{error_counts} takes "
            f"{size / 2**30:.1f} GiB, more than {MOST_TABLE_BYTES / 2**30:.0f}; use "
            f"{'a smaller k, ' if k > 1 else ''}shorter sequences or a lower order"
            + (", or rescaling='margin' with sqrt_loss=False" if n_error_counts > 2 else "")
        )


@kernel(inline=True)
def _errors_before(model, t, q, n_error_counts, work):
    """Errors of a path before it comes to (t, q)."""
    S = len(model.states.last)
    m, label = q // S, model.states.last[q % S]
    return m - int(n_error_counts > 1 and work.wrong[t, label])


@kernel(allocates=False)
def _next_path(model, end, q, n_error_counts, work, paths):
    """Find one more path that ends in q at token ``end``; returns whether there is one."""
    states = model.states
    S, n_moves = len(states.last), len(states.came_from)
    t = end
    while True:  # down to the first token where the path that is needed is known
        paths.asked[t] = q
        if t == 0:
            break
        last, m, s = paths.known[t, q] - 1, q // S, q % S
        before = _errors_before(model, t, q, n_error_counts, work)
        if last == 0:
            previous = work.forward[t - 1, before]
            for move in range(states.moves_into[s], states.moves_into[s + 1]):
                j = states.came_from[move]
                score = previous[j] + score_move(model, work, t, j, states.last[s])
                paths.next_score[t, m * n_moves + move] = score
                paths.next_rank[t, m * n_moves + move] = 0
            _, best = best_before(model, t, m, s, n_error_counts, work)
            paths.before[t, q, 0] = best
            paths.before_rank[t, q, 0] = 0
        needed = paths.before_rank[t, q, last] + 1
        q = before * S + states.came_from[paths.before[t, q, last]]
        if paths.known[t - 1, q] > needed:
            break
        t -= 1
    found = False
    for r in range(t, end + 1):  # and back up, with one path more at each token
        found = False
        if r == 0:
            continue
        q = paths.asked[r]
        last, m, s = paths.known[r, q] - 1, q // S, q % S
        used, rank = paths.before[r, q, last], paths.before_rank[r, q, last] + 1
        j = states.came_from[used]
        origin = _errors_before(model, r, q, n_error_counts, work) * S + j
        candidates = paths.next_score[r, m * n_moves : (m + 1) * n_moves]
        if paths.known[r - 1, origin] > rank:
            score = paths.scores[r - 1, origin, rank]
            candidates[used] = score + score_move(model, work, r, j, states.last[s])
            paths.next_rank[r, m * n_moves + used] = rank
        else:
            candidates[used] = -np.inf
        first = states.moves_into[s]
        move = first + argmax(candidates[first:], states.moves_into[s + 1] - first)
        if candidates[move] > -np.inf:
            found = True
            paths.scores[r, q, last + 1] = candidates[move] + work.unary[r, states.last[s]]
            paths.before[r, q, last + 1] = move
            paths.before_rank[r, q, last + 1] = paths.next_rank[r, m * n_moves + move]
            paths.known[r, q] += 1
    return found


@kernel(inline=True)
def _end_value(paths, m, score):
    """What a path with m errors is ranked by."""
    scale = paths.scales[m]
    return plane_value(paths.offsets[m], scale, score) if scale > 0.0 else -np.inf


@kernel(allocates=False)
def k_best_paths(model, length, n_error_counts, k, work, paths):
    """The k best labellings, best first, into paths.labels and paths.label_scores.

    Returns how many there are, k at most. The scores are in ``work``, and so is what is wrong, if
    there are several error counts: ``length + 1``.
    """
    states, end = model.states, length - 1
    S = len(states.last)
    n_states = n_error_counts * S
    fill(model, length, n_error_counts, work)
    for t in range(length):
        for q in range(n_states):
            paths.scores[t, q, 0] = work.forward[t, q // S, q % S]
            paths.known[t, q] = 1
    for q in range(n_states):
        paths.end_value[q] = _end_value(paths, q // S, paths.scores[end, q, 0])
        paths.end_rank[q] = 0
    for found in range(k):
        chosen = argmax(paths.end_value, n_states)
        if paths.end_value[chosen] == -np.inf:
            return found
        rank = paths.end_rank[chosen]
        paths.label_scores[found] = paths.scores[end, chosen, rank]
        q, at = chosen, rank
        for t in range(end, -1, -1):
            paths.labels[found, t] = states.last[q % S]
            if t > 0:
                before = _errors_before(model, t, q, n_error_counts, work)
                if at == 0:
                    _, move = best_before(model, t, q // S, q % S, n_error_counts, work)
                    q = before * S + states.came_from[move]
                else:
                    came_by, at_before = paths.before[t, q, at], paths.before_rank[t, q, at]
                    q, at = before * S + states.came_from[came_by], at_before
        if found + 1 < k:
            has_more = paths.known[end, chosen] > rank + 1
            if has_more or _next_path(model, end, chosen, n_error_counts, work, paths):
                score = paths.scores[end, chosen, rank + 1]
                paths.end_value[chosen] = _end_value(paths, chosen // S, score)
                paths.end_rank[chosen] = rank + 1
            else:
                paths.end_value[chosen] = -np.inf
    return k


@kernel(allocates=False)
def decode_k_best(model, inputs, offsets, w, forbidden, allowed, k, work, paths, out):
    """The k best labellings of every sequence; see `kernels.decode_chains` for ``allowed``.

    Out: those of sequence i one after the other from ``labels[k * offsets[i]]`` on, their
    ``scores[i]`` and their number ``found[i]``.
    """
    labels, scores, found = out
    score_moves(model, w, forbidden, work.scores)
    for i in range(len(offsets) - 1):
        first = offsets[i]
        length = offsets[i + 1] - first
        score_sequence(model, inputs, first, length, w, forbidden, allowed, work)
        found[i] = k_best_paths(model, length, 1, k, work, paths)
        for r in range(found[i]):
            scores[i, r] = paths.label_scores[r]
            start = k * first + r * length
            for t in range(length):
                labels[start + t] = paths.labels[r, t]


@kernel(allocates=False)
def k_best_rows(model, chain, examples, w, k, mode, forbidden, work, paths, out):
    """The k best labellings but the gold one, as rows of dpsi: k rows for each example, best first.

    See `state_kernels.state_oracle` for the arguments and for what labellings are ranked by;
    ``paths`` is made for k + 1 of them, and for error counts if the mode is ERROR_COUNTS, or if
    some wrong labels cost nothing. Rows that nothing is left for are empty, with loss 0.
    """
    inputs = ChainInputs(chain.rows, chain.pair_rows)
    score_moves(model, w, forbidden, work.scores)
    filled, row = 0, 0
    out.indptr[0] = 0
    for r in range(len(examples)):
        i = examples[r]
        first = chain.offsets[i]
        length = chain.offsets[i + 1] - first
        gold = chain.labels[first : first + length]
        unit = 1.0 / length if chain.normalized else 1.0
        score_sequence(model, inputs, first, length, w, forbidden, work.wrong[:0], work)
        n_error_counts = 1
        if mode.kind == ADDITIVE:
            add_loss(chain, work.unary, first, length, gold, unit)
        elif len(paths.offsets) > 1:
            n_error_counts = length + 1
            mark_wrong(chain, first, length, gold, work.wrong)
            gold_score = path_score(model, gold, length, work)
            for m in range(n_error_counts):
                loss = m * unit if mode.kind == ERROR_COUNTS else float(min(m, 1))
                offset, scale = plane_terms(loss, mode)
                paths.offsets[m] = plane_value(offset, scale, -gold_score)
                paths.scales[m] = scale
        found = k_best_paths(model, length, n_error_counts, k + 1, work, paths)
        end_row = row + k
        for c in range(found):
            labels = paths.labels[c]
            wrong, loss = loss_of(chain, first, length, gold, labels, unit)
            if wrong > 0 and row < end_row:
                filled = write_labelling(
                    model, chain, first, length, gold, labels, False, out, filled
                )
                out.losses[row] = loss
                row += 1
                out.indptr[row] = filled
        while row < end_row:
            out.losses[row] = 0.0
            row += 1
            out.indptr[row] = filled
