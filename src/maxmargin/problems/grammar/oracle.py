"""Most violated derivations as sparse rows, and the search where the loss does not add up.

Slack rescaling and square roots of the loss do not add up over nodes, so derivations are told
apart by their number m of right nodes (Tsochantaridis et al. 2005, sec. 4.5.2): a table holds the
best score of every symbol over every span for every m, and the best m is chosen last. Two facts
keep this short without loss of exactness:

* Among derivations of the same symbol and span, one with fewer right nodes and no smaller score is
  at least as good in any context, so that lists of (m, score) rise in both. (Not for the k best,
  whose lists have every m.)
* A derivation beats a known value v only if its score exceeds the gold derivation's by more than
  v - 1, for the loss is at most 1. Symbols over spans through which no derivation scores as much
  are left out; the best score through each comes from an inside and an outside pass.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...jit.decorator import kernel
from ...search.modes import BEST_NON_GOLD, ERROR_COUNTS
from ...search.violation import violation
from ...utils.types import Floats, Ints, Ints32
from .kernels import (
    best_root,
    cell_of,
    count_right,
    fill_chart,
    fill_non_gold,
    fill_outside,
    is_same,
    lexical_rule,
    list_features,
    mark_gold,
    push,
    put_node,
    recover,
    score_nodes,
    span_scores,
)

ROUNDING = 1e-9


@kernel
def _gold_inside(gold, base, n, count):
    """count[cell] = number of true nodes inside the span."""
    for start in range(n):
        for end in range(start + 1, n + 1):
            inside = 0
            for t in range(base, base + 2 * n - 1):
                inside += gold.start[t] >= start and gold.end[t] <= end
            count[cell_of(start, end, n)] = inside


class Lists(NamedTuple):
    """Rising lists of (level, score) of a layer: those of symbol A over a span begin at ptr."""

    ptr: Ints  # (cells, symbols)
    size: Ints32
    error_counts: Ints32
    scores: Floats


@kernel
def _make_lists(inner, around, needed, inside, n_cells):
    """Arrays for the lists of all symbols over spans that are kept, and of no others."""
    K = inner.shape[1]
    capacity = 0
    for cell in range(n_cells):
        for A in range(K):
            if inner[cell, A] + around[cell, A] > needed:
                capacity += inside[cell] + 1
    return Lists(
        np.zeros((n_cells, K), np.int64),
        np.zeros((n_cells, K), np.int32),
        np.empty(capacity, np.int32),
        np.empty(capacity),
    )


@kernel
def _append(lists, cell, A, row, size, every, filled):
    """Store the entries (m, row[m]), or those that none with a smaller m beats; empty the row."""
    lists.ptr[cell, A] = filled
    best = -np.inf
    for m in range(size):
        if row[m] > (-np.inf if every else best):
            best = row[m]
            lists.error_counts[filled] = m
            lists.scores[filled] = best
            filled += 1
        row[m] = -np.inf
    lists.size[cell, A] = filled - lists.ptr[cell, A]
    return filled


@kernel
def _combine(grammar, w, r, tops, left_cell, right_cell, row):
    """row[m] = best score of m right nodes below a binary rule, if better than what it was."""
    B, C = grammar.left[r], grammar.right[r]
    left, right = tops.ptr[left_cell, B], tops.ptr[right_cell, C]
    for x in range(left, left + tops.size[left_cell, B]):
        m, score = tops.error_counts[x], tops.scores[x] + w[r]
        for y in range(right, right + tops.size[right_cell, C]):
            total = score + tops.scores[y]
            if total > row[m + tops.error_counts[y]]:
                row[m + tops.error_counts[y]] = total


@kernel
def _fill_lists(grammar, n, w, spans, needed, every, inside, work, lows, tops):
    """Fill the lists of both layers, from short spans to long ones."""
    K = len(grammar.start)
    table = np.full((K, 2 * n), -np.inf)
    row = np.full(2 * n, -np.inf)
    low_filled, top_filled = 0, 0
    for width in range(1, n + 1):
        for start in range(n - width + 1):
            end = start + width
            cell = cell_of(start, end, n)
            size = inside[cell] + 1
            low, around = work.low[cell], work.around_low[cell]
            gold = work.gold_label[cell]
            for split in range(start + 1, end):
                left_cell, right_cell = cell_of(start, split, n), cell_of(split, end, n)
                for b in range(work.n_live[left_cell]):
                    B = work.live[left_cell, b]
                    if tops.size[left_cell, B] == 0:
                        continue
                    for r in range(grammar.left_ptr[B], grammar.left_ptr[B + 1]):
                        A = grammar.parent[r]
                        if tops.size[right_cell, grammar.right[r]] > 0 and (
                            low[A] + around[A] > needed
                        ):
                            _combine(grammar, w, r, tops, left_cell, right_cell, table[A])
            for A in range(K):
                if low[A] + around[A] > needed:
                    if width == 1:
                        table[A, 0] = low[A]
                    elif len(spans) > 0:
                        for m in range(size):
                            table[A, m] += spans[cell, A]
                    low_filled = _append(lows, cell, A, table[A], size, every, low_filled)
            for A in range(K):
                if not work.top[cell, A] + work.around_top[cell, A] > needed:
                    continue
                shift = int(grammar.symbol_label[A] == gold)
                for x in range(lows.ptr[cell, A], lows.ptr[cell, A] + lows.size[cell, A]):
                    row[lows.error_counts[x] + shift] = lows.scores[x]
                for u in range(grammar.unary_ptr[A], grammar.unary_ptr[A + 1]):
                    B = grammar.unary_bottom[u]
                    shift = int(grammar.unary_label[u] == gold)
                    for x in range(lows.ptr[cell, B], lows.ptr[cell, B] + lows.size[cell, B]):
                        score = lows.scores[x] + w[grammar.first_unary + u]
                        if score > row[lows.error_counts[x] + shift]:
                            row[lows.error_counts[x] + shift] = score
                top_filled = _append(tops, cell, A, row, size, every, top_filled)


@kernel
def _top_step(grammar, w, lows, cell, gold, A, error_count):
    """Unary rule (-1: none), symbol and level below of the best way to A with so many right."""
    unary, symbol, below, best = -1, -1, -1, -np.inf
    wanted = error_count - int(grammar.symbol_label[A] == gold)
    for x in range(lows.ptr[cell, A], lows.ptr[cell, A] + lows.size[cell, A]):
        if lows.error_counts[x] == wanted:
            symbol, below, best = A, wanted, lows.scores[x]
    for u in range(grammar.unary_ptr[A], grammar.unary_ptr[A + 1]):
        B = grammar.unary_bottom[u]
        wanted = error_count - int(grammar.unary_label[u] == gold)
        for x in range(lows.ptr[cell, B], lows.ptr[cell, B] + lows.size[cell, B]):
            score = lows.scores[x] + w[grammar.first_unary + u]
            if lows.error_counts[x] == wanted and score > best:
                unary, symbol, below, best = u, B, wanted, score
    return unary, symbol, below


@kernel
def _low_step(grammar, w, tops, n, start, end, A, error_count):
    """Rule, split and level on the left of the best way to A with so many right nodes."""
    rule, split, left_error_count, best = -1, -1, -1, -np.inf
    for middle in range(start + 1, end):
        left_cell, right_cell = cell_of(start, middle, n), cell_of(middle, end, n)
        for p in range(grammar.by_parent_ptr[A], grammar.by_parent_ptr[A + 1]):
            r = grammar.by_parent[p]
            B, C = grammar.left[r], grammar.right[r]
            left, right = tops.ptr[left_cell, B], tops.ptr[right_cell, C]
            for x in range(left, left + tops.size[left_cell, B]):
                for y in range(right, right + tops.size[right_cell, C]):
                    score = tops.scores[x] + tops.scores[y] + w[r]
                    if tops.error_counts[x] + tops.error_counts[y] == error_count and score > best:
                        rule, split, left_error_count, best = r, middle, tops.error_counts[x], score
    return rule, split, left_error_count


@kernel
def _recover_error_count(
    grammar, sentences, first, n, w, root, error_count, lows, tops, work, found
):
    """Nodes of the best derivation with so many right nodes, in preorder."""
    stack = work.stack
    push(stack, 0, 0, n, root, error_count)
    depth, t = 1, 0
    while depth > 0:
        depth -= 1
        start, end, A, error_count = (
            stack[depth, 0],
            stack[depth, 1],
            stack[depth, 2],
            stack[depth, 3],
        )
        cell = cell_of(start, end, n)
        unary, symbol, below = _top_step(
            grammar, w, lows, cell, work.gold_label[cell], A, error_count
        )
        if end == start + 1:
            rule = lexical_rule(grammar, sentences.terminals[first + start], symbol)
            put_node(found, t, start, -1, end, symbol, rule, unary, A)
        else:
            rule, split, left_error_count = _low_step(
                grammar, w, tops, n, start, end, symbol, below
            )
            put_node(found, t, start, split, end, symbol, rule, unary, A)
            push(stack, depth, split, end, grammar.right[rule], below - left_error_count)
            push(stack, depth + 1, start, split, grammar.left[rule], left_error_count)
            depth += 2
        t += 1


@kernel
def list_error_counts(grammar, sentences, first, n, gold, base, w, needed, every, work):
    """Lists of both layers, low and top, for derivations with scores above ``needed``.

    They have ``every`` number of right nodes, or those that may matter to the best derivation.
    """
    n_cells = n * (n + 1) // 2
    fill_chart(grammar, sentences, first, n, w, work.gold_label, 0.0, False, work)
    spans = span_scores(grammar, sentences, first, n, w, work.features)
    fill_outside(grammar, n, w, spans, False, work)
    inside = np.empty(n_cells, np.int64)
    _gold_inside(gold, base, n, inside)
    lows = _make_lists(work.low, work.around_low, needed, inside, n_cells)
    tops = _make_lists(work.top, work.around_top, needed, inside, n_cells)
    _fill_lists(grammar, n, w, spans, needed, every, inside, work, lows, tops)
    return lows, tops


@kernel
def best_by_error_count(
    grammar, sentences, first, n, gold, base, w, gold_score, known, mode, work, found
):
    """Derivation whose rescaled violation is the largest, if it exceeds ``known``; see the module.

    Returns that violation, and ``known`` if there is none; ``found`` is then left as it was.
    """
    needed = gold_score + known - 1.0
    needed -= ROUNDING * (1.0 + abs(needed))
    lows, tops = list_error_counts(grammar, sentences, first, n, gold, base, w, needed, False, work)
    whole = cell_of(0, n, n)
    best, root, error_count = known, -1, -1
    for A in range(len(grammar.start)):
        if grammar.start[A] < 0:
            continue
        for x in range(tops.ptr[whole, A], tops.ptr[whole, A] + tops.size[whole, A]):
            if (
                tops.error_counts[x] < 2 * n - 1
            ):  # all others are right: that is the gold derivation
                loss = 1.0 - tops.error_counts[x] / (2.0 * n - 1.0)
                gain = tops.scores[x] + w[grammar.start[A]] - gold_score
                value = violation(loss, gain, mode)
                if value > best:
                    best, root, error_count = value, A, tops.error_counts[x]
    if root >= 0:
        _recover_error_count(
            grammar, sentences, first, n, w, root, error_count, lows, tops, work, found
        )
    return best


@kernel
def grammar_oracle(grammar, sentences, gold, examples, w, mode, zero_one, work, found, out):
    """Most violated derivation of each example as a sparse row of dpsi.

    Problem solved for example i with n words, gold derivation y, over all derivations z, of which m
    nodes are right and Delta = 1 - m / (2n - 1):

        ADDITIVE       max  Delta(y, z) - <dpsi(z), w>
        BEST_NON_GOLD  max  1 - <dpsi(z), w>,  z != y      Delta = 1 with ``zero_one``
        ERROR_COUNTS   max  the rescaled violation (`best_by_error_count`)

    In: ``grammar`` (GrammarArrays), ``sentences`` (Sentences), ``gold`` (Nodes of all examples),
    ``work`` (GrammarScratch), ``found`` (Nodes of one derivation). Out: CSR rows, large enough
    for the longest rows possible. A row is empty, with loss 0, where nothing beats ``gold``.
    """
    filled = 0
    out.indptr[0] = 0
    for row in range(len(examples)):
        i = examples[row]
        first = sentences.offsets[i]
        n = sentences.offsets[i + 1] - first
        base = 2 * first - i
        gold_label = work.gold_label
        mark_gold(grammar, gold, base, n, gold_label)
        gold_score = score_nodes(grammar, sentences, first, n, gold, base, w, work)
        violated = False
        if mode.kind == BEST_NON_GOLD:
            fill_chart(grammar, sentences, first, n, w, gold_label, 0.0, False, work)
            root, score = fill_non_gold(grammar, sentences, first, gold, base, n, w, work)
            violated = violation(1.0, score - gold_score, mode) > 0.0
            if violated:
                recover(
                    grammar, sentences, first, n, w, gold_label, 0.0, root, gold, base, work, found
                )
        else:
            unit = 1.0 / (2 * n - 1)
            fill_chart(grammar, sentences, first, n, w, gold_label, unit, False, work)
            root, score = best_root(grammar, w, work.top, n)
            recover(grammar, sentences, first, n, w, gold_label, unit, root, gold, -1, work, found)
            violated = not is_same(found, gold, base, n)
        if mode.kind == ERROR_COUNTS:
            known = 0.0
            if violated:
                loss = 1.0 - count_right(grammar, found, n, gold_label) / (2.0 * n - 1.0)
                score = score_nodes(grammar, sentences, first, n, found, 0, w, work)
                known = violation(loss, score - gold_score, mode)
                if known <= 0.0:
                    violated, known = False, 0.0
            value = best_by_error_count(
                grammar,
                sentences,
                first,
                n,
                gold,
                base,
                w,
                gold_score,
                known,
                mode,
                work,
                found,
            )
            violated = violated or value > known
        out.losses[row] = 0.0
        if violated:
            wrong = 2 * n - 1 - count_right(grammar, found, n, gold_label)
            out.losses[row] = 1.0 if zero_one else wrong / (2.0 * n - 1.0)
            filled = _write_difference(
                grammar, sentences, first, n, gold, base, found, work, out, filled
            )
        out.indptr[row + 1] = filled


@kernel
def _write_difference(grammar, sentences, first, n, gold, base, found, work, out, filled):
    """Append psi(x, gold) - psi(x, found) at position ``filled``; returns the new position."""
    counts, listed = work.counts, work.listed
    n_true = list_features(grammar, sentences, first, n, gold, base, work.features, listed)
    for f in range(n_true):
        counts[listed[f]] += 1.0
    rest = listed[n_true:]
    n_found = list_features(grammar, sentences, first, n, found, 0, work.features, rest)
    for f in range(n_found):
        counts[rest[f]] -= 1.0
    for f in range(n_true + n_found):
        if counts[listed[f]] != 0.0:
            out.indices[filled] = listed[f]
            out.values[filled] = counts[listed[f]]
            counts[listed[f]] = 0.0
            filled += 1
    return filled
