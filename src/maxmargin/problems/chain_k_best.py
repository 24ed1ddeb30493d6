"""The k best labellings of a chain, exactly, by recursive enumeration (Jimenez & Marzal 1999).

The best path to (t, label) is Viterbi's. Its next best one extends, for some label before, the next
best path there that has not been extended yet: each (t, label) keeps one such candidate for each
label before it. One more path at the end therefore asks for at most one more path at one label of
each token, so k paths take time O(L K^2 + k L K), and nothing is computed that no path needs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._jit import kernel
from .chain_kernels import best_predecessor, chain_scores, first_argmax, viterbi, write_difference

__all__ = ["KBestScratch", "chain_k_best", "decode_k_best", "make_k_best_scratch"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]


class KBestScratch(NamedTuple):
    """Work arrays for the longest sequence; path r to (t, label) comes from (t - 1, its before).

    ``next_*[t, label, before]`` is the best path to (t - 1, before) not yet extended to label.
    """

    scores: Floats  # (length, label, rank)
    before: Codes
    before_rank: Codes
    known: Codes  # (length, label): how many paths
    next_score: Floats  # (length, label, label before)
    next_rank: Codes
    asked: Codes  # (length,): labels on the way down
    end_score: Floats
    end_rank: Codes
    labels: Codes  # (k, length): the answer
    label_scores: Floats


def make_k_best_scratch(longest: int, K: int, k: int) -> KBestScratch:
    """Work arrays for k paths through sequences of at most ``longest`` tokens."""
    return KBestScratch(
        np.empty((longest, K, k)),
        np.empty((longest, K, k), np.int32),
        np.empty((longest, K, k), np.int32),
        np.empty((longest, K), np.int32),
        np.empty((longest, K, K)),
        np.empty((longest, K, K), np.int32),
        np.empty(longest, np.int32),
        np.empty(K),
        np.empty(K, np.int32),
        np.empty((k, longest), np.int32),
        np.empty(k),
    )


@kernel
def _first_before(forward, transition, t, label, K):
    """Label before ``label`` at token t on the best path."""
    return best_predecessor(forward[t - 1], transition, label, K)


@kernel
def _next_path(forward, unary, transition, K, end, label, paths):
    """Find one more path that ends in ``label`` at token ``end``; returns whether there is one."""
    t = end
    while True:  # down to the first token where the path that is needed is known
        paths.asked[t] = label
        if t == 0:
            break
        last = paths.known[t, label] - 1
        if last == 0:
            for j in range(K):
                paths.next_score[t, label, j] = forward[t - 1, j] + transition[j, label]
                paths.next_rank[t, label, j] = 0
            paths.before[t, label, 0] = _first_before(forward, transition, t, label, K)
            paths.before_rank[t, label, 0] = 0
        needed = paths.before_rank[t, label, last] + 1
        label = paths.before[t, label, last]
        if paths.known[t - 1, label] > needed:
            break
        t -= 1
    found = False
    for s in range(t, end + 1):  # and back up, with one path more at each token
        found = False
        if s == 0:
            continue
        label = paths.asked[s]
        last = paths.known[s, label] - 1
        used, rank = paths.before[s, label, last], paths.before_rank[s, label, last] + 1
        candidates = paths.next_score[s, label]
        if paths.known[s - 1, used] > rank:
            candidates[used] = paths.scores[s - 1, used, rank] + transition[used, label]
            paths.next_rank[s, label, used] = rank
        else:
            candidates[used] = -np.inf
        j = first_argmax(candidates, K)
        if candidates[j] > -np.inf:
            found = True
            paths.scores[s, label, last + 1] = candidates[j] + unary[s, label]
            paths.before[s, label, last + 1] = j
            paths.before_rank[s, label, last + 1] = paths.next_rank[s, label, j]
            paths.known[s, label] += 1
    return found


@kernel
def k_best_labellings(unary, length, transition, K, k, forward, path, paths):
    """The k best labellings, best first, into paths.labels and paths.label_scores.

    Returns how many there are, k at most. ``forward`` and ``path`` are scratch.
    """
    viterbi(unary, length, transition, K, forward, path)
    for t in range(length):
        for label in range(K):
            paths.scores[t, label, 0] = forward[t, label]
            paths.known[t, label] = 1
    for label in range(K):
        paths.end_score[label] = forward[length - 1, label]
        paths.end_rank[label] = 0
    for found in range(k):
        label = first_argmax(paths.end_score, K)
        if paths.end_score[label] == -np.inf:
            return found
        rank = paths.end_rank[label]
        paths.label_scores[found] = paths.end_score[label]
        last, at = label, rank
        for t in range(length - 1, -1, -1):
            paths.labels[found, t] = last
            if t > 0:
                if at == 0:
                    last = _first_before(forward, transition, t, last, K)
                else:
                    before, before_rank = paths.before[t, last, at], paths.before_rank[t, last, at]
                    last, at = before, before_rank
        if found + 1 < k:
            end = length - 1
            has_more = paths.known[end, label] > rank + 1
            if has_more or _next_path(forward, unary, transition, K, end, label, paths):
                paths.end_score[label] = paths.scores[end, label, rank + 1]
                paths.end_rank[label] = rank + 1
            else:
                paths.end_score[label] = -np.inf
    return k


@kernel
def decode_k_best(rows, offsets, w, K, transition, k, work, paths, labels, scores, found):
    """The k best labellings of every sequence.

    Out: those of sequence i one after the other from ``labels[k * offsets[i]]`` on, their
    ``scores[i]`` and their number ``found[i]``.
    """
    for i in range(len(offsets) - 1):
        first = offsets[i]
        length = offsets[i + 1] - first
        chain_scores(rows, first, length, w, K, work.start, work.stop, work.unary)
        found[i] = k_best_labellings(
            work.unary, length, transition, K, k, work.forward, work.path, paths
        )
        for r in range(found[i]):
            scores[i, r] = paths.label_scores[r]
            start = k * first + r * length
            for t in range(length):
                labels[start + t] = paths.labels[r, t]


@kernel
def chain_k_best(chain, examples, w, transition, k, augmented, work, paths, out):
    """The k best labellings but the truth, as rows of dpsi: k rows for each example, best first.

    Ranked by ``Delta - <dpsi, w>`` if ``augmented``, with Delta the number of wrong labels (times
    their unit), and by ``-<dpsi, w>`` otherwise. Rows that nothing is left for are empty, with
    loss 0. See `chain_kernels.chain_oracle` for the arguments; ``paths`` has room for k + 1.
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
        truth = chain.labels[first : first + length]
        loss_unit = 1.0 / length if chain.normalized else 1.0
        chain_scores(chain.rows, first, length, w, K, work.start, work.stop, unary)
        if augmented:
            for t in range(length):
                for label in range(K):
                    unary[t, label] += loss_unit
                unary[t, truth[t]] -= loss_unit
        found = k_best_labellings(
            unary, length, transition, K, k + 1, work.forward, work.path, paths
        )
        end_row = row + k
        for c in range(found):
            labels = paths.labels[c]
            wrong = 0
            for t in range(length):
                if labels[t] != truth[t]:
                    wrong += 1
            if wrong > 0 and row < end_row:
                filled = write_difference(chain, first, length, truth, labels, False, out, filled)
                out.losses[row] = 1.0 if chain.zero_one else wrong * loss_unit
                row += 1
                out.indptr[row] = filled
        while row < end_row:
            out.losses[row] = 0.0
            row += 1
            out.indptr[row] = filled
