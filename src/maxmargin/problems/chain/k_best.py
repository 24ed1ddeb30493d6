"""The k best labellings of a chain, exactly, by recursive enumeration (Jimenez & Marzal 1999).

The best path to a state at token t is Viterbi's. Its next best one extends, for some state before,
the next best path there that has not been extended yet: each state keeps one such candidate for
each label before it. One more path at the end therefore asks for at most one more path at one state
of each token, so k paths take time O(L K^2 + k L K), and nothing is computed that no path needs.

A state is a label. Where labellings are ranked by a loss that does not add up (slack rescaling,
square roots), it is a label together with the number of wrong labels so far, ``m * K + label``:
at the end the best of all numbers is taken, again and again. That takes time O(L^2 K^2 + k L K).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._jit import kernel
from ...search.limits import MOST_TABLE_BYTES
from ...search.modes import ADDITIVE, ERROR_COUNTS
from ...search.ties import argmax
from ...search.violation import plane_terms, plane_value
from ...types import Floats, Ints32
from .kernels import (
    add_loss,
    best_predecessor,
    chain_scores,
    fill_error_counts,
    forbid_labels,
    loss_of,
    viterbi,
    write_difference,
)

__all__ = ["KBestScratch", "chain_k_best", "decode_k_best", "make_k_best_scratch"]


class KBestScratch(NamedTuple):
    """Work arrays for the longest sequence; path r to (t, state) comes from (t - 1, its before).

    ``next_*[t, state, label]`` is the best path not yet extended to the state among those to the
    state before it that has the label.
    """

    forward: Floats  # (length, state): score of the best path
    scores: Floats  # (length, state, rank)
    before: Ints32
    before_rank: Ints32
    known: Ints32  # (length, state): how many paths
    next_score: Floats  # (length, state, label before)
    next_rank: Ints32
    asked: Ints32  # (length,): states on the way down
    offsets: Floats  # (level,): a path that ends in level m is ranked by
    scales: Floats  # offsets[m] + scales[m] * score, and left out where the scale is 0
    end_value: Floats  # (state,)
    end_rank: Ints32
    labels: Ints32  # (k, length): the answer
    label_scores: Floats


def make_k_best_scratch(longest: int, K: int, k: int, by_error_count: bool = False) -> KBestScratch:
    """Work arrays for k paths through sequences of at most ``longest`` tokens."""
    error_counts = longest + 1 if by_error_count else 1
    states = error_counts * K
    size = longest * states * (12 * K + 16 * k + 12)
    if size > MOST_TABLE_BYTES:
        told_apart = ", told apart by number of errors," if by_error_count else ""
        raise ValueError(
            f"the search for the {k} best labellings of {longest} tokens with {K} labels"
            f"{told_apart} takes {size / 2**30:.1f} GiB; use shorter sequences or a smaller k"
            + (", or rescaling='margin' with sqrt_loss=False" if by_error_count else "")
        )
    return KBestScratch(
        np.empty((longest, states)),
        np.empty((longest, states, k)),
        np.empty((longest, states, k), np.int32),
        np.empty((longest, states, k), np.int32),
        np.empty((longest, states), np.int32),
        np.empty((longest, states, K)),
        np.empty((longest, states, K), np.int32),
        np.empty(longest, np.int32),
        np.zeros(error_counts),
        np.ones(error_counts),
        np.empty(states),
        np.empty(states, np.int32),
        np.empty((k, longest), np.int32),
        np.empty(k),
    )


@kernel
def _first_before(transition, t, state, gold, K, paths):
    """First of the K states before ``state``, and which of them is on the best path."""
    label = state % K
    base = state - label
    if len(paths.offsets) > 1 and label != gold[t]:
        base -= K
    before = paths.forward[t - 1, base : base + K]
    return base, base + best_predecessor(before, transition, label, K)


@kernel
def _next_path(unary, transition, K, gold, end, state, paths):
    """Find one more path that ends in ``state`` at token ``end``; returns whether there is one."""
    t = end
    while True:  # down to the first token where the path that is needed is known
        paths.asked[t] = state
        if t == 0:
            break
        last = paths.known[t, state] - 1
        if last == 0:
            base, best = _first_before(transition, t, state, gold, K, paths)
            for j in range(K):
                score = paths.forward[t - 1, base + j] + transition[j, state % K]
                paths.next_score[t, state, j] = score
                paths.next_rank[t, state, j] = 0
            paths.before[t, state, 0] = best
            paths.before_rank[t, state, 0] = 0
        needed = paths.before_rank[t, state, last] + 1
        state = paths.before[t, state, last]
        if paths.known[t - 1, state] > needed:
            break
        t -= 1
    found = False
    for s in range(t, end + 1):  # and back up, with one path more at each token
        found = False
        if s == 0:
            continue
        state = paths.asked[s]
        label = state % K
        last = paths.known[s, state] - 1
        used, rank = paths.before[s, state, last], paths.before_rank[s, state, last] + 1
        base = used - used % K
        candidates = paths.next_score[s, state]
        if paths.known[s - 1, used] > rank:
            score = paths.scores[s - 1, used, rank] + transition[used % K, label]
            candidates[used % K] = score
            paths.next_rank[s, state, used % K] = rank
        else:
            candidates[used % K] = -np.inf
        j = argmax(candidates, K)
        if candidates[j] > -np.inf:
            found = True
            paths.scores[s, state, last + 1] = candidates[j] + unary[s, label]
            paths.before[s, state, last + 1] = base + j
            paths.before_rank[s, state, last + 1] = paths.next_rank[s, state, j]
            paths.known[s, state] += 1
    return found


@kernel
def _end_value(paths, state, score, K):
    """What a path to a last state is ranked by."""
    scale = paths.scales[state // K]
    return plane_value(paths.offsets[state // K], scale, score) if scale > 0.0 else -np.inf


@kernel
def k_best_labellings(unary, length, transition, K, k, gold, path, paths):
    """The k best labellings, best first, into paths.labels and paths.label_scores.

    Returns how many there are, k at most. ``path`` is scratch. ``gold``, ``paths.offsets`` and
    ``paths.scales`` matter where these have more than one level.
    """
    n_states = K
    if len(paths.offsets) > 1:
        n_states = (length + 1) * K
        error_counts = paths.forward.reshape(len(paths.forward), len(paths.offsets), K)
        fill_error_counts(unary, length, transition, K, gold, error_counts)
    else:
        viterbi(unary, length, transition, K, paths.forward, path)
    end = length - 1
    for t in range(length):
        for state in range(n_states):
            paths.scores[t, state, 0] = paths.forward[t, state]
            paths.known[t, state] = 1
    for state in range(n_states):
        paths.end_value[state] = _end_value(paths, state, paths.forward[end, state], K)
        paths.end_rank[state] = 0
    for found in range(k):
        state = argmax(paths.end_value, n_states)
        if paths.end_value[state] == -np.inf:
            return found
        rank = paths.end_rank[state]
        paths.label_scores[found] = paths.scores[end, state, rank]
        last, at = state, rank
        for t in range(end, -1, -1):
            paths.labels[found, t] = last % K
            if t > 0:
                if at == 0:
                    _, last = _first_before(transition, t, last, gold, K, paths)
                else:
                    before, before_rank = paths.before[t, last, at], paths.before_rank[t, last, at]
                    last, at = before, before_rank
        if found + 1 < k:
            has_more = paths.known[end, state] > rank + 1
            if has_more or _next_path(unary, transition, K, gold, end, state, paths):
                score = paths.scores[end, state, rank + 1]
                paths.end_value[state] = _end_value(paths, state, score, K)
                paths.end_rank[state] = rank + 1
            else:
                paths.end_value[state] = -np.inf
    return k


@kernel
def decode_k_best(rows, offsets, w, K, transition, allowed, k, work, paths, labels, scores, found):
    """The k best labellings of every sequence; see `kernels.decode_chains` for ``allowed``.

    Out: those of sequence i one after the other from ``labels[k * offsets[i]]`` on, their
    ``scores[i]`` and their number ``found[i]``.
    """
    for i in range(len(offsets) - 1):
        first = offsets[i]
        length = offsets[i + 1] - first
        chain_scores(rows, first, length, w, K, work.start, work.stop, work.unary)
        forbid_labels(allowed, first, length, K, work.unary)
        found[i] = k_best_labellings(
            work.unary, length, transition, K, k, work.path, work.path, paths
        )
        for r in range(found[i]):
            scores[i, r] = paths.label_scores[r]
            start = k * first + r * length
            for t in range(length):
                labels[start + t] = paths.labels[r, t]


@kernel
def chain_k_best(chain, examples, w, transition, k, mode, work, paths, out):
    """The k best labellings but the gold one, as rows of dpsi: k rows for each example, best first.

    See `kernels.chain_oracle` for the arguments and for what labellings are ranked by;
    ``paths`` is made for k + 1 of them, and for levels if the mode is LEVELS. Rows that nothing is
    left for are empty, with loss 0.
    """
    K = chain.n_labels
    unary = work.unary
    filled = 0
    row = 0
    out.indptr[0] = 0
    for r in range(len(examples)):
        i = examples[r]
        first = chain.offsets[i]
        length = chain.offsets[i + 1] - first
        gold = chain.labels[first : first + length]
        loss_unit = 1.0 / length if chain.normalized else 1.0
        chain_scores(chain.rows, first, length, w, K, work.start, work.stop, unary)
        if mode.kind == ADDITIVE:
            add_loss(chain, unary, first, length, gold, loss_unit)
        elif mode.kind == ERROR_COUNTS:
            gold_score = unary[0, gold[0]]
            for t in range(1, length):
                gold_score += transition[gold[t - 1], gold[t]] + unary[t, gold[t]]
            for m in range(length + 1):
                offset, scale = plane_terms(m * loss_unit, mode)
                paths.offsets[m] = plane_value(offset, scale, -gold_score)
                paths.scales[m] = scale
        found = k_best_labellings(unary, length, transition, K, k + 1, gold, work.path, paths)
        end_row = row + k
        for c in range(found):
            labels = paths.labels[c]
            wrong, loss = loss_of(chain, first, length, gold, labels, loss_unit)
            if wrong > 0 and row < end_row:
                filled = write_difference(chain, first, length, gold, labels, False, out, filled)
                out.losses[row] = loss
                row += 1
                out.indptr[row] = filled
        while row < end_row:
            out.losses[row] = 0.0
            row += 1
            out.indptr[row] = filled
