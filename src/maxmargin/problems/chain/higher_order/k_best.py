"""The k best labellings of chains that remember several labels, exactly.

Every state of every token keeps its k best paths, in the search of `kernels`; the last ones are
merged over states and levels by what labellings are ranked by. A path that does not beat the
k-th of its state ends the list it comes from, so most moves cost little more than in the search
for the best one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...._jit import kernel
from ....search.modes import ADDITIVE, BEST_NON_GOLD, ERROR_COUNTS
from ....search.violation import plane_terms, plane_value
from ....types import Floats, Ints32
from .kernels import (
    add_costs,
    mark_wrong,
    path_loss,
    path_score,
    score_moves,
    score_tokens,
    write_difference,
)

__all__ = ["KBestLists", "decode_k_best", "higher_order_k_best"]


class KBestLists(NamedTuple):
    """Paths of every token, level and state, best first: their scores and where they come from."""

    scores: Floats  # (length, level, state, rank)
    before: Ints32  # level * n_states + state
    before_rank: Ints32
    known: Ints32  # (length, level, state): how many
    offsets: Floats  # (level,): a path that ends in level m is ranked by
    scales: Floats  # offsets[m] + scales[m] * score, and left out where the scale is 0
    end_rank: Ints32  # (level, state)
    labels: Ints32  # (k, length): the answer
    label_scores: Floats  # (k,)


@kernel(allocates=False)
def _add_path(lists, t, m, s, k, score, before, rank):
    """Put a path into a list of at most k; False if it is not good enough."""
    scores, n = lists.scores[t, m, s], lists.known[t, m, s]
    if n == k:
        if not score > scores[k - 1]:
            return False
        n -= 1
    place = n
    while place > 0 and score > scores[place - 1]:
        scores[place] = scores[place - 1]
        lists.before[t, m, s, place] = lists.before[t, m, s, place - 1]
        lists.before_rank[t, m, s, place] = lists.before_rank[t, m, s, place - 1]
        place -= 1
    scores[place] = score
    lists.before[t, m, s, place] = before
    lists.before_rank[t, m, s, place] = rank
    lists.known[t, m, s] = n + 1
    return True


@kernel(allocates=False)
def _fill_lists(model, length, n_error_counts, k, work, lists):
    """The k best paths to every state."""
    K, states, top = model.n_labels, model.states, n_error_counts - 1
    S = len(states.last)
    for t in range(length):
        for m in range(n_error_counts):
            for s in range(S):
                lists.known[t, m, s] = 0
    for label in range(K):
        m, s = 1 if top > 0 and work.wrong[0, label] else 0, states.alone[label]
        if work.unary[0, label] > -np.inf:
            _add_path(lists, 0, m, s, k, work.unary[0, label], 0, 0)
    for t in range(1, length):
        for m in range(min(t, top) + 1):
            for s in range(S):
                n = lists.known[t - 1, m, s]
                if n == 0:
                    continue
                for label in range(K):
                    added = work.scores[s, label] + work.unary[t, label]
                    if model.has_pairs:
                        added += work.pairs[t, states.last[s] * K + label]
                    if added == -np.inf:
                        continue
                    to = states.after[states.core[s], label]
                    error_count = min(m + int(work.wrong[t, label]), top) if top > 0 else 0
                    for r in range(n):
                        score = lists.scores[t - 1, m, s, r] + added
                        if not _add_path(lists, t, error_count, to, k, score, m * S + s, r):
                            break


@kernel(allocates=False)
def k_best_paths(model, length, n_error_counts, k, work, lists):
    """The k best labellings, best first, into lists.labels; returns how many there are."""
    S, end = len(model.states.last), length - 1
    _fill_lists(model, length, n_error_counts, k, work, lists)
    for m in range(n_error_counts):
        for s in range(S):
            lists.end_rank[m, s] = 0
    for found in range(k):
        best, error_count, state = -np.inf, 0, 0
        for m in range(n_error_counts):
            if not lists.scales[m] > 0.0:
                continue
            for s in range(S):
                r = lists.end_rank[m, s]
                if r < lists.known[end, m, s]:
                    score = lists.scores[end, m, s, r]
                    value = plane_value(lists.offsets[m], lists.scales[m], score)
                    if value > best:
                        best, error_count, state = value, m, s
        if best == -np.inf:
            return found
        rank = lists.end_rank[error_count, state]
        lists.end_rank[error_count, state] += 1
        lists.label_scores[found] = lists.scores[end, error_count, state, rank]
        m, s = error_count, state
        for t in range(end, -1, -1):
            lists.labels[found, t] = model.states.last[s]
            if t > 0:
                before, before_rank = lists.before[t, m, s, rank], lists.before_rank[t, m, s, rank]
                m, s, rank = before // S, before % S, before_rank
    return k


@kernel(allocates=False)
def decode_k_best(model, inputs, offsets, w, forbidden, allowed, k, work, lists, out):
    """The k best labellings of every sequence.

    Out: those of sequence i one after the other from ``labels[k * offsets[i]]`` on, their
    ``scores[i]`` and their number ``found[i]``.
    """
    labels, scores, found = out
    score_moves(model, w, forbidden, work.scores)
    for i in range(len(offsets) - 1):
        first = offsets[i]
        length = offsets[i + 1] - first
        score_tokens(model, inputs, first, length, w, forbidden, allowed, work)
        found[i] = k_best_paths(model, length, 1, k, work, lists)
        for r in range(found[i]):
            scores[i, r] = lists.label_scores[r]
            start = k * first + r * length
            for t in range(length):
                labels[start + t] = lists.labels[r, t]


@kernel(allocates=False)
def higher_order_k_best(model, data, examples, w, k, mode, forbidden, work, lists, out):
    """The k best labellings but the gold one, as rows of dpsi: k rows for each example, best first.

    See `kernels.higher_order_oracle` for the arguments and for what ranks labellings; ``lists``
    is made for k + 1 of them and for the levels of the mode. Rows that nothing is left for are
    empty, with loss 0.
    """
    score_moves(model, w, forbidden, work.scores)
    filled, row = 0, 0
    out.indptr[0] = 0
    for e in range(len(examples)):
        i = examples[e]
        first = data.offsets[i]
        length = data.offsets[i + 1] - first
        gold = data.labels[first : first + length]
        unit = 1.0 / length if data.normalized else 1.0
        score_tokens(model, data.inputs, first, length, w, forbidden, work.all_allowed, work)
        n_error_counts = 1
        if mode.kind == ADDITIVE:
            K = model.n_labels
            add_costs(data.costs, data.cost_rows, first, length, K, unit, work.unary)
        elif mode.kind == ERROR_COUNTS or mode.kind == BEST_NON_GOLD:
            n_error_counts = 2 if mode.kind == BEST_NON_GOLD else length + 1
            mark_wrong(data.costs, data.cost_rows, first, length, model.n_labels, work.wrong)
            gold_score = path_score(model, gold, length, work)
            for m in range(n_error_counts):
                loss = float(m) if mode.kind == BEST_NON_GOLD else m * unit
                offset, scale = plane_terms(loss, mode)
                lists.offsets[m] = plane_value(offset, scale, -gold_score)
                lists.scales[m] = 0.0 if mode.kind == BEST_NON_GOLD and m == 0 else scale
        found = k_best_paths(model, length, n_error_counts, k + 1, work, lists)
        end_row = row + k
        for c in range(found):
            labels = lists.labels[c]
            is_gold = True
            for t in range(length):
                is_gold = is_gold and labels[t] == gold[t]
            if is_gold or row == end_row:
                continue
            filled = write_difference(
                model,
                data.inputs,
                len(data.labels),
                first,
                length,
                gold,
                labels,
                False,
                out,
                filled,
            )
            out.losses[row] = path_loss(data, first, length, labels)
            row += 1
            out.indptr[row] = filled
        while row < end_row:
            out.losses[row] = 0.0
            row += 1
            out.indptr[row] = filled
