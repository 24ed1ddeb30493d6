"""Features of derivations: rules, and what is at the ends of the spans of their nodes."""

from __future__ import annotations

from ...jit.decorator import kernel

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
