"""Exact segmentation of sequences (semi-Markov), and segmentations as sparse rows.

A segment of label k over the tokens s..t-1 scores

    sum_{s <= u < t} inside[u, k] + first[s, k] + last[t - 1, k] + length[k, t - s]
    + transition[label of the piece before, k],

a token outside of all segments scores its own entry and its transition. Sums over tokens are
differences of prefix sums, so that the best segmentation of T tokens with K labels and segments of
at most L tokens takes time O(T K (L + K)).
"""

from __future__ import annotations

import numpy as np

from ...engine.feature_blocks import write_block
from ...engine.rows import add_scores
from ...jit.decorator import kernel
from ...search.modes import ADDITIVE
from ...search.ties import argmax
from .bounds import HAMMING, SEGMENTS, ZERO_ONE, error_count_loss
from .error_counts import best_by_error_count

NOTHING = -1  # a feature that a token has not
SLOTS = 5  # kinds of features that a token may bring; the first three are rows of its own


@kernel(allocates=False)
def score_tokens(rows, first, length, w, n_columns, scores):
    """Fill scores[:length, :n_columns] with the scores of the tokens from ``first`` on."""
    for t in range(length):
        own = scores[t]
        for c in range(n_columns):
            own[c] = 0.0
        add_scores(rows, first + t, w, n_columns, own)


@kernel(allocates=False)
def add_loss(scores, length, K, loss, gold_labels, gold_lengths):
    """Add what tokens cost, or segments, but for what right segments are spared."""
    for t in range(length):
        if loss == SEGMENTS:
            for k in range(K):
                scores[t, K + 1 + k] += 1.0
            continue
        for c in range(K + 1):
            scores[t, c] += 1.0
        label = gold_labels[t]
        if label == K:
            scores[t, K] -= 1.0
        elif gold_lengths[t] > 0:
            scores[t, K + 1 + label] -= 1.0
        else:
            scores[t, label] -= 1.0
            scores[t, K + 1 + label] += 1.0


@kernel(allocates=False)
def mark_stops(length, K, gold_labels, gold_lengths, gold_starts):
    """gold_starts[t] = where the segment that stops at t begins, or -1; returns their number."""
    n_segments = 0
    for t in range(length + 1):
        gold_starts[t] = -1
    for t in range(length):
        if gold_lengths[t] > 0 and gold_labels[t] < K:
            gold_starts[t + gold_lengths[t]] = t
            n_segments += 1
    return n_segments


@kernel(allocates=False)
def best_segments(model, w, length, right, gold_labels, work):
    """Best segmentation by work.scores, into work.labels and work.lengths.

    ``right`` is added to the scores of the segments that work.gold_starts tells.
    """
    K, scores, forward = model.n_labels, work.scores, work.forward
    prefix, opened = work.prefix, work.opened
    before = 0.0  # the best score with which a piece outside may begin
    for k in range(K):
        prefix[k, 0] = 0.0
        opened[k, 0] = scores[0, K + 1 + k]
    for t in range(1, length + 1):
        for k in range(K):
            prefix[k, t] = prefix[k, t - 1] + scores[t - 1, k]
            gold = np.int64(0)
            if work.gold_starts[t] >= 0 and gold_labels[t - 1] == k:
                gold = t - work.gold_starts[t]
            best, chosen = -np.inf, np.int64(0)
            of_length = model.lengths[k] - 1
            for n in range(1, min(model.longest[k], t) + 1):
                value = opened[k, t - n] + w[of_length + n]
                if n == gold:
                    value += right
                if value > best:
                    best, chosen = value, n
            forward[t, k] = best + prefix[k, t] + scores[t - 1, 2 * K + 1 + k]
            work.chosen[t, k] = chosen
        forward[t, K] = before + scores[t - 1, K]
        work.chosen[t, K] = 1
        if t == length:
            break
        for c in range(K + 1):
            best, previous = -np.inf, 0
            for j in range(K + 1):
                value = forward[t, j] + w[model.transitions + j * (K + 1) + c]
                if value > best:
                    best, previous = value, j
            work.previous[t, c] = previous
            if c < K:
                opened[c, t] = best + scores[t, K + 1 + c] - prefix[c, t]
            else:
                before = best
    t, label = length, argmax(forward[length], K + 1)
    while t > 0:
        n = work.chosen[t, label]
        t -= n
        for u in range(t, t + n):
            work.labels[u] = label
            work.lengths[u] = 0
        work.lengths[t] = n
        if t > 0:
            label = work.previous[t, label]


@kernel(allocates=False)
def count_errors(length, K, by_segments, gold_labels, gold_lengths, labels, lengths):
    """Right segments and predicted ones, or 0 and the number of wrong tokens."""
    right, count = 0, 0
    for t in range(length):
        same = labels[t] == gold_labels[t]
        if by_segments:
            if labels[t] < K and lengths[t] > 0:
                count += 1
                right += same and lengths[t] == gold_lengths[t]
        else:
            count += not same or (lengths[t] > 0) != (gold_lengths[t] > 0)
    return right, count


@kernel(allocates=False)
def feature_at(model, labels, lengths, t, end, slot):
    """Which feature of a kind a segmentation has at a token: a column, or a single weight."""
    K, label = model.n_labels, np.int64(labels[t])
    if slot == 0:
        return label
    begins = lengths[t] > 0
    if slot == 4:
        if t == 0 or not begins:
            return NOTHING
        return model.transitions + labels[t - 1] * (K + 1) + label
    if label == K or (slot == 2 and model.n_columns <= 2 * K + 1):
        return NOTHING
    if slot == 1:
        return K + 1 + label if begins else NOTHING
    if slot == 2:
        return 2 * K + 1 + label if t + 1 == end or lengths[t + 1] > 0 else NOTHING
    return model.lengths[label] + lengths[t] - 1 if begins else NOTHING


@kernel(allocates=False)
def write_feature(rows, row, n_columns, feature, slot, sign, as_blocks, shift, out, filled):
    """Append a feature of `feature_at`, single ones moved by shift; returns the new position."""
    if slot > 2:
        out.indices[filled] = feature + shift
        out.values[filled] = sign
        return filled + 1
    return write_block(rows, row, n_columns, feature, sign, as_blocks, out, filled)


@kernel(allocates=False)
def write_difference(model, data, first, length, gold, work, as_blocks, out, at):
    """Append psi(x, gold) - psi(x, found) at position ``at``; returns the new position."""
    rows, n_columns = data.rows, model.n_columns
    gold_labels, gold_lengths = gold
    # In parts, what is behind the token features keeps its order and moves.
    shift = len(data.labels) * n_columns - model.transitions if as_blocks else 0
    for t in range(length):
        for slot in range(SLOTS):
            good = feature_at(model, gold_labels, gold_lengths, t, length, slot)
            bad = feature_at(model, work.labels, work.lengths, t, length, slot)
            if good == bad:
                continue
            row = first + t
            if good != NOTHING:
                at = write_feature(rows, row, n_columns, good, slot, 1.0, as_blocks, shift, out, at)
            if bad != NOTHING:
                at = write_feature(rows, row, n_columns, bad, slot, -1.0, as_blocks, shift, out, at)
    return at


@kernel(allocates=False)
def take_up(model, data, i, w, work):
    """Scores of the tokens of example i, and where its true segments stop; returns their number."""
    first, end = data.offsets[i], data.offsets[i + 1]
    score_tokens(data.rows, first, end - first, w, model.n_columns, work.scores)
    gold_labels, gold_lengths = data.labels[first:end], data.lengths[first:end]
    return mark_stops(end - first, model.n_labels, gold_labels, gold_lengths, work.gold_starts)


@kernel(allocates=False)
def write_found(model, data, i, r, n_gold, as_blocks, work, out, filled):
    """Append the segmentation in work as row r; returns the new position."""
    first, end = data.offsets[i], data.offsets[i + 1]
    gold_labels, gold_lengths = data.labels[first:end], data.lengths[first:end]
    by_segments = data.loss != HAMMING and data.loss != ZERO_ONE
    right, count = count_errors(
        end - first, model.n_labels, by_segments, gold_labels, gold_lengths, work.labels,
        work.lengths,
    )  # fmt: skip
    out.losses[r] = error_count_loss(data.loss, right, count, n_gold)
    gold = (gold_labels, gold_lengths)
    return write_difference(model, data, first, end - first, gold, work, as_blocks, out, filled)


@kernel(allocates=False)
def segment_oracle(model, data, examples, w, mode, as_blocks, work, out):
    """Most violated segmentation of each example as a sparse row of dpsi, in features or in parts.

    Problem solved for example i, gold segmentation y, over all segmentations z:

        ADDITIVE       max  Delta(y, z) - <dpsi(z), w>     (wrong tokens; missed and false segments)
        PREDICTION     max  -<dpsi(z), w>

    In: ``model`` (SegmentModel), ``data`` (SegmentData), ``work`` (SegmentScratch). Out:
    ``out.indptr, out.indices, out.values, out.losses``, large enough for the longest rows possible.
    """
    filled = 0
    out.indptr[0] = 0
    for r in range(len(examples)):
        i = examples[r]
        first, end = data.offsets[i], data.offsets[i + 1]
        gold_labels, gold_lengths = data.labels[first:end], data.lengths[first:end]
        n_gold = take_up(model, data, i, w, work)
        right = 0.0
        if mode.kind == ADDITIVE:
            add_loss(work.scores, end - first, model.n_labels, data.loss, gold_labels, gold_lengths)
            right = -2.0 if data.loss == SEGMENTS else 0.0
        best_segments(model, w, end - first, right, gold_labels, work)
        filled = write_found(model, data, i, r, n_gold, as_blocks, work, out, filled)
        out.indptr[r + 1] = filled


@kernel
def error_count_oracle(model, data, examples, w, mode, as_blocks, work, out):
    """Do the same as `segment_oracle`, where levels tell; compiled for those alone who need it.

        BEST_NON_GOLD  max  1 - <dpsi(z), w>,  z != y
        ERROR_COUNTS   max  the rescaled violation of `best_by_error_count`

    A row is empty, with loss 0, where nothing beats the gold segmentation.
    """
    filled = 0
    out.indptr[0] = 0
    for r in range(len(examples)):
        i = examples[r]
        first, end = data.offsets[i], data.offsets[i + 1]
        gold_labels, gold_lengths = data.labels[first:end], data.lengths[first:end]
        n_gold = take_up(model, data, i, w, work)
        out.losses[r] = 0.0
        if best_by_error_count(
            model, w, end - first, data.loss, mode, gold_labels, gold_lengths, n_gold, work
        ):
            filled = write_found(model, data, i, r, n_gold, as_blocks, work, out, filled)
        out.indptr[r + 1] = filled


@kernel(allocates=False)
def decode_segments(model, rows, offsets, w, work, labels, lengths):
    """Best segmentation of every sequence, by token."""
    for i in range(len(offsets) - 1):
        first = offsets[i]
        length = offsets[i + 1] - first
        for t in range(length + 1):
            work.gold_starts[t] = -1
        score_tokens(rows, first, length, w, model.n_columns, work.scores)
        best_segments(model, w, length, 0.0, work.labels, work)
        for t in range(length):
            labels[first + t] = work.labels[t]
            lengths[first + t] = work.lengths[t]
