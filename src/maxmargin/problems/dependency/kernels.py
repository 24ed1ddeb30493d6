"""Search for the most violated dependency tree, and trees as sparse rows.

The loss counts tokens with a wrong head (with labels: a wrong head or label). What is searched:

    ADDITIVE       max  Delta(y, z) - <dpsi(z), w>     Delta = loss_unit * wrong tokens
    BEST_NON_GOLD  max  1 - <dpsi(z), w>,  z != y      Delta = 1
    ERROR_COUNTS   max  the rescaled violation         by the number of wrong tokens
    PREDICTION     max  -<dpsi(z), w>, and among equals the largest Delta

ADDITIVE is a search for the best tree with the loss added to the arcs. BEST_NON_GOLD is the best
tree or, where that is the gold one, the best of n trees, each without one of the true arcs.
ERROR_COUNTS is the branch and bound of `search.bounded_search`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.problem import LARGE
from ...jit.decorator import kernel
from ...search.modes import BEST_NON_GOLD, PREDICTION
from ...utils.types import Floats, Hashes, Ints, Ints32
from .features import BETWEEN_HEAD, BETWEEN_MODIFIER, N_BUCKETS, ArcKeys
from .scores import (
    arc_features,
    count_fixed,
    score_arcs,
    score_labels,
    score_labels_alone,
)
from .trees import edmonds, eisner

__all__ = ["DependencyOptions", "DependencyScratch", "FoundTrees", "make_work", "most_arc_features"]


class DependencyOptions(NamedTuple):
    """Which trees are searched, and what is lost by a wrong one."""

    projective: bool
    single_root: bool
    normalized: bool
    zero_one: bool


class FoundTrees(NamedTuple):
    """Heads and labels by node, and a loss or score by sentence."""

    heads: Ints32
    labels: Ints32
    losses: Floats


class DependencyScratch(NamedTuple):
    """Scratch for sentences of up to N nodes; few arrays, for each costs time to compile.

    Attributes
    ----------
    scores, labels : arrays of shape (N, N)
        Scores and best labels of all arcs.
    gold_scores : array of shape (2, N)
        Scores of the true arcs, and of the same arcs under their best wrong labels.
    wrong : array of int of shape (2, N)
        Tokens whose arc is wrong; those whose true head goes with a wrong label.
    alone, passed : arrays
        For `score_arcs`.
    label_alone, label_scores : arrays
        For `score_labels`.
    features : array of shape (2, ...)
        Features of a true arc and of another.
    chart, stack : arrays of shape (4, N, N) and (2 N + 4, 3)
        For `eisner`.
    gain, target, cycles : arrays of shape (2 N, N), (2 N, N) and (6, 2 N)
        For `edmonds`.
    """

    scores: Floats
    labels: Ints32
    gold_scores: Floats
    wrong: Ints32
    alone: Floats
    passed: Hashes
    label_alone: Floats
    label_scores: Floats
    features: Ints32
    chart: Floats
    stack: Ints
    gain: Floats
    target: Ints32
    cycles: Ints32


def make_work(arcs: ArcKeys, longest: int, projective: bool) -> DependencyScratch:
    """Scratch for sentences of at most ``longest`` nodes, the root included."""
    N, K = longest, arcs.n_labels
    E, V = (N, 0) if projective else (0, 2 * N)
    L = N if K else 0
    return DependencyScratch(
        np.zeros((N, N)),  # the diagonal stands for no arc: never set, but added to
        _ints(L, L),
        np.empty((2, N)),
        _ints(2, N),
        np.empty((2, N, 2, N_BUCKETS)),
        np.empty(N, np.uint64),
        np.empty((2, L, 2, K)),
        np.empty(K),
        _ints(2, most_arc_features(arcs, N)),
        np.empty((4, E, E)),
        np.empty((2 * E + 4, 3), np.int64),
        np.empty((V, N)),
        _ints(V, N),
        _ints(6, V),
    )


def most_arc_features(arcs: ArcKeys, n_nodes: int) -> int:
    """Upper bound on the features of an arc in a sentence of so many nodes."""
    n_between = int(arcs.starts[BETWEEN_MODIFIER] - arcs.starts[BETWEEN_HEAD])
    return int(count_fixed(arcs)) + n_between * n_nodes


def _ints(*shape: int) -> Ints32:
    """An empty array of int32."""
    return np.empty(shape, dtype=np.int32)


TIE_BREAKER = 1.0 / LARGE  # times the loss, decides between predictions of the same score
# Rows of ``work.gold_scores`` and ``work.wrong``; see `work`.
RIGHT_LABEL, WRONG_LABEL = 0, 1
ANY_ERROR, ONLY_LABEL = 0, 1


@kernel
def _best_tree(scores, n, options, work, heads):
    """Best tree into heads[1 : n + 1]; returns its score, -inf if there is none."""
    if options.projective:
        return eisner(scores, n, options.single_root, work.chart, work.stack, heads)
    return edmonds(scores, n, options.single_root, work.gain, work.target, work.cycles, heads)


@kernel
def score_sentence(arcs, first, n, w, scale, gold, gold_labels, work):
    """Scores of all arcs under their best labels, and apart from them those of the true arcs.

    All are at the weights ``scale * w``.

    Fills ``work.scores[h, m]`` and ``work.labels[h, m]``, and for tokens with ``gold[m] >= 0``
    ``work.gold_scores[0, m]``, the score of the gold arc; ``work.scores[gold[m], m]`` is then that
    of the arc under its best wrong label, -inf without labels. Returns the score of the gold tree.
    """
    scores, gold_scores = work.scores, work.gold_scores[RIGHT_LABEL]
    score_arcs(arcs, first, n, w, work.alone, work.passed, scores)
    if arcs.n_labels > 0:
        score_labels_alone(arcs, first, n, w, work.label_alone)
    total = 0.0
    for m in range(1, n + 1):
        g = gold[m]
        if g >= 0:
            gold_scores[m] = scores[g, m]
        if arcs.n_labels > 0:
            _choose_labels(arcs, first, n, m, w, g, gold_labels[m], work)
        elif g >= 0:
            scores[g, m] = -np.inf
        for h in range(n + 1):
            scores[h, m] *= scale
        if g >= 0:
            gold_scores[m] *= scale
            total += gold_scores[m]
    return total


@kernel
def _choose_labels(arcs, first, n, m, w, g, gold_label, work):
    """Add the scores of the best labels to the arcs into m, that of the true arc's apart."""
    label_scores = work.label_scores
    for h in range(n + 1):
        if h == m:
            continue
        score_labels(arcs, first, h, m, w, work.label_alone, label_scores)
        skipped = gold_label if h == g else -1
        best, label = -np.inf, 0
        for k in range(arcs.n_labels):
            if label_scores[k] > best and k != skipped:
                best, label = label_scores[k], k
        if h == g:
            work.gold_scores[RIGHT_LABEL, m] += label_scores[gold_label]
        work.scores[h, m] += best
        work.labels[h, m] = label


@kernel
def _search(n, gold, gold_score, options, mode, loss_unit, work, heads):
    """Most violated tree into heads and work.wrong; returns whether it beats the gold tree."""
    if mode.kind == BEST_NON_GOLD:
        return _search_non_gold(n, gold, gold_score, options, work, heads)
    if mode.kind == PREDICTION:
        loss_unit *= TIE_BREAKER
    return search_sum(n, gold, gold_score, options, loss_unit, work, heads)


@kernel
def search_sum(n, gold, gold_score, options, loss_unit, work, heads):
    """The best tree where ``loss_unit`` is added to the scores of wrong arcs; else as `_search`."""
    _join_gold_arcs(n, gold, loss_unit, work)
    total = _best_tree(work.scores, n, options, work, heads)
    _mark_wrong(n, gold, 0, work.wrong, heads)
    return total > gold_score


@kernel
def _join_gold_arcs(n, gold, loss_unit, work):
    """Add the loss to wrong arcs, and let the true ones compete with their wrong labels."""
    scores, gold_scores, only_label = work.scores, work.gold_scores, work.wrong[ONLY_LABEL]
    for m in range(1, n + 1):
        for h in range(n + 1):
            scores[h, m] += loss_unit
        g = gold[m]
        gold_scores[WRONG_LABEL, m] = scores[g, m]
        only_label[m] = int(scores[g, m] > gold_scores[RIGHT_LABEL, m])
        scores[g, m] = max(scores[g, m], gold_scores[RIGHT_LABEL, m])


@kernel
def _mark_wrong(n, gold, left_out, wrong, heads):
    """Set wrong[0] for the tokens whose arc is not the true one; returns their number."""
    n_wrong = 0
    for m in range(1, n + 1):
        is_wrong = heads[m] != gold[m] or wrong[ONLY_LABEL, m] or m == left_out
        wrong[ANY_ERROR, m] = int(is_wrong)
        n_wrong += int(is_wrong)
    return n_wrong


@kernel
def best_between(n, gold, lower, upper, unit, multiplier, options, work, scores, heads, losses):
    """Best tree with ``multiplier`` times the loss added, some tokens held right or wrong.

    Maximises over the trees with ``lower < losses <= upper``, where a wrong token loses ``unit``;
    after `score_sentence`. Returns its score less that of the gold tree, and its loss.
    """
    right = work.gold_scores[RIGHT_LABEL]
    for m in range(1, n + 1):
        g, added = gold[m], multiplier * unit if upper[m - 1] >= unit else -np.inf
        for h in range(n + 1):
            scores[h, m] = work.scores[h, m] + added
        losses[m - 1] = scores[g, m]
        if lower[m - 1] < 0.0:
            scores[g, m] = max(scores[g, m], right[m])
    heads[0] = -1
    _best_tree(scores, n, options, work, heads)
    gain, loss = 0.0, 0.0
    for m in range(1, n + 1):
        is_right = heads[m] == gold[m] and lower[m - 1] < 0.0 and right[m] >= losses[m - 1]
        losses[m - 1] = 0.0 if is_right else unit
        if not is_right:
            gain += work.scores[heads[m], m] - right[m]
            loss += unit
    return gain, loss


@kernel
def _search_non_gold(n, gold, gold_score, options, work, heads):
    """The best tree with a gain above -1 that lacks at least one of the true arcs."""
    scores = work.scores
    _join_gold_arcs(n, gold, 0.0, work)
    total = _best_tree(scores, n, options, work, heads)
    if _mark_wrong(n, gold, 0, work.wrong, heads) > 0:
        return total > gold_score - 1.0
    best, left_out = gold_score - 1.0, 0
    for m in range(1, n + 1):
        kept = scores[gold[m], m]
        scores[gold[m], m] = work.gold_scores[WRONG_LABEL, m]
        total = _best_tree(scores, n, options, work, heads)
        scores[gold[m], m] = kept
        if total > best:
            best, left_out = total, m
    if left_out > 0:
        scores[gold[left_out], left_out] = work.gold_scores[WRONG_LABEL, left_out]
        _best_tree(scores, n, options, work, heads)
        _mark_wrong(n, gold, left_out, work.wrong, heads)
    return left_out > 0


@kernel
def dependency_oracle(
    arcs,
    gold,
    gold_labels,
    examples,
    starts,
    w,
    scale,
    options,
    mode,
    work,
    found,
):
    """Most violated tree of each example at ``scale * w``, into ``found`` with its loss.

    The nodes of example r are there from ``starts[r]`` on; the gold tree, where nothing beats it.
    """
    wrong = work.wrong[ANY_ERROR]
    for r in range(len(examples)):
        first = arcs.bounds[examples[r]]
        n = arcs.bounds[examples[r] + 1] - first - 1
        gold_heads, true_labels = gold[first : first + n + 1], gold_labels[first : first + n + 1]
        heads = found.heads[starts[r] : starts[r] + n + 1]
        labels = found.labels[starts[r] : starts[r] + n + 1]
        gold_score = score_sentence(arcs, first, n, w, scale, gold_heads, true_labels, work)
        unit = 1.0 / n if options.normalized else 1.0
        violated = _search(n, gold_heads, gold_score, options, mode, unit, work, heads)
        n_wrong = 0
        for m in range(1, n + 1):
            if not violated or wrong[m] == 0:
                heads[m], labels[m] = gold_heads[m], true_labels[m]
                continue
            labels[m] = work.labels[heads[m], m] if arcs.n_labels > 0 else -1
            n_wrong += 1
        found.losses[r] = n_wrong * unit
        if options.zero_one and n_wrong > 0:
            found.losses[r] = 1.0


@kernel
def count_entries(arcs, gold, gold_labels, examples, starts, found):
    """At most so many entries are written by `write_differences`."""
    n_fixed, n_between = count_fixed(arcs), arcs.same.shape[1]
    total = 0
    for r in range(len(examples)):
        first = arcs.bounds[examples[r]]
        for m in range(1, arcs.bounds[examples[r] + 1] - first):
            g, h = gold[first + m], found.heads[starts[r] + m]
            if g != h or gold_labels[first + m] != found.labels[starts[r] + m]:
                total += 2 * n_fixed + n_between * (abs(h - m) + abs(g - m))
    return total


@kernel
def write_differences(arcs, gold, gold_labels, examples, starts, found, work, out):
    """psi(x, gold) - psi(x, found) of each example as rows of ``out`` (Planes)."""
    n_fixed = count_fixed(arcs)
    good, bad = work.features[0], work.features[1]
    filled = 0
    out.indptr[0] = 0
    for r in range(len(examples)):
        first = arcs.bounds[examples[r]]
        n = arcs.bounds[examples[r] + 1] - first - 1
        for m in range(1, n + 1):
            g, h = gold[first + m], found.heads[starts[r] + m]
            true_label, label = gold_labels[first + m], found.labels[starts[r] + m]
            if g == h and true_label == label:
                continue
            n_good = arc_features(arcs, first, g, m, true_label, good)
            n_bad = arc_features(arcs, first, h, m, label, bad)
            for k in range(n_fixed):
                if good[k] != bad[k]:  # what does not change is left out
                    filled = _write(out, filled, good[k], 1.0)
                    filled = _write(out, filled, bad[k], -1.0)
            if g != h:
                for k in range(n_fixed, n_good):
                    filled = _write(out, filled, good[k], 1.0)
                for k in range(n_fixed, n_bad):
                    filled = _write(out, filled, bad[k], -1.0)
        out.indptr[r + 1] = filled


@kernel
def _write(out, filled, index, value):
    """Append an entry; returns the new position."""
    out.indices[filled] = index
    out.values[filled] = value
    return filled + 1


@kernel
def decode_trees(arcs, w, options, unknown, work, found):
    """Best tree of every sentence into found.heads and found.labels, its score into found.losses.

    ``unknown`` has a -1 for each node of the longest sentence.
    """
    for i in range(len(arcs.bounds) - 1):
        first = arcs.bounds[i]
        n = arcs.bounds[i + 1] - first - 1
        score_sentence(arcs, first, n, w, 1.0, unknown, unknown, work)
        heads = found.heads[first : first + n + 1]
        found.losses[i] = _best_tree(work.scores, n, options, work, heads)
        for m in range(1, n + 1):
            found.labels[first + m] = work.labels[heads[m], m] if arcs.n_labels > 0 else -1


@kernel
def all_scores(arcs, i, w, work, scores, labels):
    """Scores of all arcs of sentence i, and of all their labels if there are any."""
    first = arcs.bounds[i]
    n = arcs.bounds[i + 1] - first - 1
    score_arcs(arcs, first, n, w, work.alone, work.passed, scores)
    if arcs.n_labels > 0:
        score_labels_alone(arcs, first, n, w, work.label_alone)
        for m in range(1, n + 1):
            for h in range(n + 1):
                if h != m:
                    score_labels(arcs, first, h, m, w, work.label_alone, labels[h, m])


@kernel
def best_tree(scores, options, work, heads):
    """Best tree by given scores, (n + 1, n + 1); returns its score, -inf if there is none."""
    return _best_tree(scores, len(scores) - 1, options, work, heads)
