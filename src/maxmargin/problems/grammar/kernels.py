"""Exact parsing with weighted grammars (CKY), and derivations as sparse rows.

A chart has a row of symbol scores for each span of words, in two layers. ``low`` holds the best
derivations whose last step is a binary or lexical rule, ``top`` those that end with at most one
unary rule above; children of binary rules are taken from ``top``. Scores of what cannot be derived
are -inf. No back-pointers are stored: the best step is found again on the way back.

A node that is wrong may add to the score (``unit``): the label of its span, unary rule included,
is not that of the true derivation's node with the same span. Every derivation of n words has 2n - 1
nodes, so that with m right ones precision, recall and F1 are all m / (2n - 1), and the loss 1 - F1
adds up over the nodes.

Two searches here, each over all derivations: `fill_chart` with `recover` finds the best one, and
with `fill_non_gold` the best but the gold one (what a list of the two best is needed for). Where
the loss does not add up, `oracle.best_by_error_count` searches.

Features of derivations are rules, and what is at the ends of the spans of their nodes.
"""

from __future__ import annotations

import numpy as np

from ...jit.decorator import kernel
from ...search.semiring import plus

N_BUCKETS = 8  # of span lengths: 1, 2, 3, 4-5, 6-8, 9-14, 15-24, more


@kernel
def length_bucket(length):
    """Number of the group of lengths that a span belongs to."""
    if length <= 3:
        return length - 1
    if length <= 5:
        return 3
    if length <= 8:
        return 4
    if length <= 14:
        return 5
    return 6 if length <= 24 else 7


@kernel
def span_features(views, view_sizes, first, n, start, end, features):
    """Numbers of the features of a span into ``features``; returns how many there are.

    For each view of the words (their codes, last two: boundary, unknown): first, last, before
    and after; then the group of the span's length.
    """
    base, count = 0, 0
    for v in range(len(view_sizes)):
        size = view_sizes[v]
        boundary = size - 2
        codes = views[v]
        features[count] = base + codes[first + start]
        features[count + 1] = base + size + codes[first + end - 1]
        before = codes[first + start - 1] if start > 0 else boundary
        after = codes[first + end] if end < n else boundary
        features[count + 2] = base + 2 * size + before
        features[count + 3] = base + 3 * size + after
        count += 4
        base += 4 * size
    if len(view_sizes) > 0:
        features[count] = base + length_bucket(end - start)
        count += 1
    return count


@kernel
def add_span_scores(grammar, sentences, first, n, start, end, w, features, scores):
    """Add the weights of a span's features to the symbols that can be derived there."""
    K = len(scores)
    count = span_features(sentences.views, sentences.view_sizes, first, n, start, end, features)
    for f in range(count):
        weights = w[grammar.first_span + features[f] * K :]
        for k in range(K):
            scores[k] += weights[k]


@kernel
def span_score(grammar, sentences, first, n, start, end, symbol, w, features):
    """Sum of the weights of a span's features for one symbol."""
    count = span_features(sentences.views, sentences.view_sizes, first, n, start, end, features)
    score = 0.0
    for f in range(count):
        score += w[grammar.first_span + features[f] * len(grammar.start) + symbol]
    return score


@kernel
def list_features(grammar, sentences, first, n, nodes, base, features, listed):
    """Numbers of all features of a derivation into ``listed``; returns how many there are."""
    K = len(grammar.start)
    listed[0] = grammar.start[nodes.top[base]]
    count = 1
    for t in range(base, base + 2 * n - 1):
        listed[count] = nodes.rule[t]
        count += 1
        if nodes.unary[t] >= 0:
            listed[count] = grammar.first_unary + nodes.unary[t]
            count += 1
        n_span = span_features(
            sentences.views,
            sentences.view_sizes,
            first,
            n,
            nodes.start[t],
            nodes.end[t],
            features,
        )
        for f in range(n_span):
            listed[count] = grammar.first_span + features[f] * K + nodes.symbol[t]
            count += 1
    return count


@kernel
def score_nodes(grammar, sentences, first, n, nodes, base, w, work):
    """Score of a given derivation."""
    count = list_features(grammar, sentences, first, n, nodes, base, work.features, work.listed)
    score = 0.0
    for f in range(count):
        score += w[work.listed[f]]
    return score


ANY_LABEL = -2  # as the true label of a span: none is wrong there


# ----- charts -----------------------------------------------------------------------------------


@kernel
def cell_of(start, end, n):
    """Row of a span in the chart of a sentence of n words."""
    return start * (2 * n - start + 1) // 2 + end - start - 1


@kernel
def fill_chart(grammar, sentences, first, n, w, gold_label, unit, soft, work):
    """Best scores of all symbols over all spans, into ``work.low`` and ``work.top``.

    With ``soft`` logarithms of sums over all derivations instead of maxima. ``gold_label[cell]`` is
    the label of the true node of that span, -1 if there is none; every node with another label adds
    ``unit``, except where it is ANY_LABEL. ``work.live`` lists, for each span, the symbols that can
    be derived and that begin a binary rule.
    """
    K = len(grammar.start)
    low, top, live, n_live = work.low, work.top, work.live, work.n_live
    for width in range(1, n + 1):
        for start in range(n - width + 1):
            end = start + width
            cell = cell_of(start, end, n)
            scores = low[cell]
            for k in range(K):
                scores[k] = -np.inf
            if width == 1:
                terminal = sentences.terminals[first + start]
                if terminal >= 0:
                    for x in range(
                        grammar.lexical_ptr[terminal], grammar.lexical_ptr[terminal + 1]
                    ):
                        scores[grammar.lexical_symbol[x]] = w[grammar.first_lexical + x]
            for split in range(start + 1, end):
                left_cell = cell_of(start, split, n)
                right_scores = top[cell_of(split, end, n)]
                for b in range(n_live[left_cell]):
                    B = live[left_cell, b]
                    left_score = top[left_cell, B]
                    for r in range(grammar.left_ptr[B], grammar.left_ptr[B + 1]):
                        score = left_score + right_scores[grammar.right[r]] + w[r]
                        A = grammar.parent[r]
                        if soft:
                            scores[A] = plus(scores[A], score, True)
                        elif score > scores[A]:
                            scores[A] = score
            if len(sentences.view_sizes) > 0:
                add_span_scores(grammar, sentences, first, n, start, end, w, work.features, scores)
            _fill_top(grammar, w, gold_label[cell], unit, soft, scores, top[cell])
            list_live(grammar, top[cell], cell, work)


@kernel
def list_live(grammar, top, cell, work):
    """List the symbols over a span that can be derived and that begin a binary rule."""
    count = 0
    for k in range(len(top)):
        if top[k] > -np.inf and grammar.left_ptr[k + 1] > grammar.left_ptr[k]:
            work.live[cell, count] = k
            count += 1
    work.n_live[cell] = count


@kernel
def _fill_top(grammar, w, gold, unit, soft, low, top):
    """Scores with at most one unary rule, from those without."""
    if gold == ANY_LABEL:
        unit = 0.0
    for A in range(len(top)):
        best = low[A]
        if grammar.symbol_label[A] != gold:
            best += unit
        for u in range(grammar.unary_ptr[A], grammar.unary_ptr[A + 1]):
            score = low[grammar.unary_bottom[u]] + w[grammar.first_unary + u]
            if grammar.unary_label[u] != gold:
                score += unit
            best = plus(best, score, soft)
        top[A] = best


@kernel
def fill_outside(grammar, n, w, spans, soft, work):
    """Best scores of what is around a symbol over a span, after `fill_chart` without loss.

    With ``soft`` logarithms of sums instead of maxima, as `fill_chart` was called.
    ``spans[cell, A]`` is the span score of A there, an array without rows where there are none.
    """
    K = len(grammar.start)
    top, around_low, around_top = work.top, work.around_low, work.around_top
    around_top[: n * (n + 1) // 2] = -np.inf
    whole = cell_of(0, n, n)
    for A in range(K):
        if grammar.start[A] >= 0:
            around_top[whole, A] = w[grammar.start[A]]
    for width in range(n, 0, -1):
        for start in range(n - width + 1):
            end = start + width
            cell = cell_of(start, end, n)
            outer, inner = around_top[cell], around_low[cell]
            for A in range(K):
                inner[A] = outer[A]
            for A in range(K):
                for u in range(grammar.unary_ptr[A], grammar.unary_ptr[A + 1]):
                    B, score = grammar.unary_bottom[u], outer[A] + w[grammar.first_unary + u]
                    inner[B] = plus(inner[B], score, soft)
            if len(spans) > 0:
                for A in range(K):
                    inner[A] += spans[cell, A]
            for split in range(start + 1, end):
                left_cell, right_cell = cell_of(start, split, n), cell_of(split, end, n)
                right_scores = top[right_cell]
                left_around, right_around = around_top[left_cell], around_top[right_cell]
                for b in range(work.n_live[left_cell]):
                    B = work.live[left_cell, b]
                    left_score = top[left_cell, B]
                    for r in range(grammar.left_ptr[B], grammar.left_ptr[B + 1]):
                        C = grammar.right[r]
                        above = inner[grammar.parent[r]] + w[r]
                        left_around[B] = plus(left_around[B], above + right_scores[C], soft)
                        right_around[C] = plus(right_around[C], above + left_score, soft)
            if len(spans) > 0:  # so that low + around_low counts the span's own score once
                for A in range(K):
                    inner[A] -= spans[cell, A]


@kernel
def span_scores(grammar, sentences, first, n, w, features):
    """Span scores of all symbols over all spans; no rows if there are no span features."""
    K = len(grammar.start)
    if len(sentences.view_sizes) == 0:
        return np.empty((0, K))
    spans = np.zeros((n * (n + 1) // 2, K))
    for start in range(n):
        for end in range(start + 1, n + 1):
            scores = spans[cell_of(start, end, n)]
            add_span_scores(grammar, sentences, first, n, start, end, w, features, scores)
    return spans


@kernel
def best_root(grammar, w, top, n):
    """Best start symbol and its score; (-1, -inf) if there is no derivation."""
    best, best_score = -1, -np.inf
    scores = top[cell_of(0, n, n)]
    for A in range(len(scores)):
        if grammar.start[A] >= 0:
            score = scores[A] + w[grammar.start[A]]
            if score > best_score:
                best, best_score = A, score
    return best, best_score


@kernel
def fill_non_gold(grammar, sentences, first, gold, base, n, w, work):
    """Best scores of derivations that differ from the gold derivation's, for each of its nodes.

    ``work.low_other[t]``: of node t's symbol over its span, by other steps than the gold ones;
    ``work.top_other[t]``: the same, of the symbol above its unary rule. All other symbols and
    spans differ anyway. Returns the best root symbol of a whole derivation that differs, and its
    score, (-1, -inf) if there is none.
    """
    low, top = work.low, work.top
    low_other, top_other = work.low_other, work.top_other
    for t in range(2 * n - 2, -1, -1):
        start, split, end = gold.start[base + t], gold.split[base + t], gold.end[base + t]
        B, unary = gold.symbol[base + t], gold.unary[base + t]
        cell = cell_of(start, end, n)
        best = -np.inf
        if split >= 0:
            rule, right = gold.rule[base + t], t + 2 * (split - start)
            by_left = top_other[t + 1] + top[cell_of(split, end, n), gold.top[base + right]]
            by_right = top[cell_of(start, split, n), gold.top[base + t + 1]] + top_other[right]
            own = w[rule] + max(by_left, by_right)
            _, _, best = best_step(grammar, w, top, n, start, end, B, rule, split, own)
            best += span_score(grammar, sentences, first, n, start, end, B, w, work.features)
        low_other[t] = best
        A = gold.top[base + t]
        _, top_other[t] = best_top(grammar, w, low[cell], -1, 0.0, A, unary, best)
    best_score, root = -np.inf, -1
    true_root = gold.top[base]
    whole = cell_of(0, n, n)
    for A in range(len(grammar.start)):
        if grammar.start[A] >= 0:
            score = top_other[0] if A == true_root else top[whole, A]
            score += w[grammar.start[A]]
            if score > best_score:
                best_score, root = score, A
    return root, best_score


@kernel
def best_step(grammar, w, top, n, start, end, A, own_rule, own_split, own_score):
    """Best binary rule and split for A over a span, and the score without span features.

    The step (own_rule, own_split) counts with own_score instead of its own.
    """
    best_rule, best_split, best = -1, -1, -np.inf
    for split in range(start + 1, end):
        left_scores = top[cell_of(start, split, n)]
        right_scores = top[cell_of(split, end, n)]
        for p in range(grammar.by_parent_ptr[A], grammar.by_parent_ptr[A + 1]):
            r = grammar.by_parent[p]
            score = left_scores[grammar.left[r]] + right_scores[grammar.right[r]] + w[r]
            if r == own_rule and split == own_split:
                score = own_score
            if score > best:
                best_rule, best_split, best = r, split, score
    return best_rule, best_split, best


@kernel
def best_top(grammar, w, low, gold, unit, A, own_unary, own_score):
    """Best unary rule for A (-1: none), and the score; own_unary's symbol scores own_score below.

    own_unary = -2: no rule is special.
    """
    best_unary = -1
    best = own_score if own_unary == -1 else low[A]
    if grammar.symbol_label[A] != gold:
        best += unit
    for u in range(grammar.unary_ptr[A], grammar.unary_ptr[A + 1]):
        below = own_score if u == own_unary else low[grammar.unary_bottom[u]]
        score = below + w[grammar.first_unary + u]
        if grammar.unary_label[u] != gold:
            score += unit
        if score > best:
            best_unary, best = u, score
    return best_unary, best


@kernel
def put_node(found, t, start, split, end, symbol, rule, unary, top):
    """Write one node of a derivation."""
    found.start[t] = start
    found.split[t] = split
    found.end[t] = end
    found.symbol[t] = symbol
    found.rule[t] = rule
    found.unary[t] = unary
    found.top[t] = top


@kernel
def lexical_rule(grammar, terminal, symbol):
    """Number of the rule of a symbol and a terminal."""
    for x in range(grammar.lexical_ptr[terminal], grammar.lexical_ptr[terminal + 1]):
        if grammar.lexical_symbol[x] == symbol:
            return grammar.first_lexical + x
    return -1


@kernel
def recover(grammar, sentences, first, n, w, gold_label, unit, root, gold, base, work, found):
    """Nodes of the best derivation from ``root`` into ``found``, in preorder.

    With ``base >= 0`` the best derivation but the gold one, whose nodes begin at ``base`` of
    ``gold``: an entry of the stack that is marked with a node must differ from it.
    """
    low, top, stack = work.low, work.top, work.stack
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, n, root
    stack[0, 3] = 0 if base >= 0 and root == gold.top[base] else -1
    depth, t = 1, 0
    while depth > 0:
        depth -= 1
        start, end, A, node = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
        cell = cell_of(start, end, n)
        own_unary, other = -2, -np.inf
        if node >= 0:
            own_unary, other = gold.unary[base + node], work.low_other[node]
        unary, _ = best_top(grammar, w, low[cell], gold_label[cell], unit, A, own_unary, other)
        symbol = A if unary < 0 else grammar.unary_bottom[unary]
        if node >= 0 and unary != own_unary:
            node = -1
        if end == start + 1:
            rule = lexical_rule(grammar, sentences.terminals[first + start], symbol)
            put_node(found, t, start, -1, end, symbol, rule, unary, A)
            t += 1
            continue
        own_rule, own_split, own_score, left_differs = -1, -1, -np.inf, False
        if node >= 0:
            own_rule, own_split = gold.rule[base + node], gold.split[base + node]
            right = node + 2 * (own_split - start)
            by_left = (
                work.top_other[node + 1] + top[cell_of(own_split, end, n), gold.top[base + right]]
            )
            by_right = (
                top[cell_of(start, own_split, n), gold.top[base + node + 1]] + work.top_other[right]
            )
            left_differs = by_left >= by_right
            own_score = w[own_rule] + max(by_left, by_right)
        rule, split, _ = best_step(
            grammar, w, top, n, start, end, symbol, own_rule, own_split, own_score
        )
        put_node(found, t, start, split, end, symbol, rule, unary, A)
        t += 1
        left_node, right_node = -1, -1
        if node >= 0 and rule == own_rule and split == own_split:
            if left_differs:
                left_node = node + 1
            else:
                right_node = node + 2 * (split - start)
        push(stack, depth, split, end, grammar.right[rule], right_node)
        push(stack, depth + 1, start, split, grammar.left[rule], left_node)
        depth += 2


@kernel
def push(stack, depth, start, end, symbol, mark):
    """Put a span to be explained on the stack."""
    stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = start, end, symbol, mark


@kernel
def mark_gold(grammar, gold, base, n, gold_label):
    """gold_label[cell] = label of the true node of the span, or -1."""
    for cell in range(n * (n + 1) // 2):
        gold_label[cell] = -1
    for t in range(base, base + 2 * n - 1):
        label = grammar.symbol_label[gold.symbol[t]]
        if gold.unary[t] >= 0:
            label = grammar.unary_label[gold.unary[t]]
        gold_label[cell_of(gold.start[t], gold.end[t], n)] = label


@kernel
def count_right(grammar, nodes, n, gold_label):
    """Nodes of a derivation that the true one has too."""
    right = 0
    for t in range(2 * n - 1):
        label = grammar.symbol_label[nodes.symbol[t]]
        if nodes.unary[t] >= 0:
            label = grammar.unary_label[nodes.unary[t]]
        right += label == gold_label[cell_of(nodes.start[t], nodes.end[t], n)]
    return right


@kernel
def is_same(nodes, gold, base, n):
    """Whether a derivation is the true one."""
    for t in range(2 * n - 1):
        if (
            nodes.rule[t] != gold.rule[base + t]
            or nodes.unary[t] != gold.unary[base + t]
            or nodes.split[t] != gold.split[base + t]
            or nodes.top[t] != gold.top[base + t]
        ):
            return False
    return True


@kernel
def parse_sentences(grammar, sentences, begin, end, w, work, found, kept, scores):
    """Best derivations of the sentences begin..end-1 into ``kept``, one behind the other.

    ``scores`` are -inf where there is none. ``found`` has room for the nodes of one.
    """
    base = 0
    for i in range(begin, end):
        first = sentences.offsets[i]
        n = sentences.offsets[i + 1] - first
        fill_chart(grammar, sentences, first, n, w, work.gold_label, 0.0, False, work)
        root, scores[i - begin] = best_root(grammar, w, work.top, n)
        if root >= 0:
            label = work.gold_label
            recover(grammar, sentences, first, n, w, label, 0.0, root, found, -1, work, found)
            for t in range(2 * n - 1):
                kept.start[base + t] = found.start[t]
                kept.split[base + t] = found.split[t]
                kept.end[base + t] = found.end[t]
                kept.symbol[base + t] = found.symbol[t]
                kept.rule[base + t] = found.rule[t]
                kept.unary[base + t] = found.unary[t]
                kept.top[base + t] = found.top[t]
        base += 2 * n - 1
