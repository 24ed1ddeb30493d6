"""Exact segmentation of sequences (semi-Markov), and segmentations as sparse rows.

A segment of label k over the tokens s..t-1 scores

    sum_{s <= u < t} inside[u, k] + first[s, k] + last[t - 1, k] + length[k, t - s]
    + transition[label of the piece before, k],

a token outside of all segments scores its own entry and its transition. Sums over tokens are
differences of prefix sums, so that the best segmentation of T tokens with K labels and segments of
at most L tokens takes time O(T K (L + K)).

Where the loss does not add up, the best segmentation is found for each level of loss. A level is
two numbers (a, b): right and predicted segments for losses that count segments, nothing and wrong
tokens for those of tokens. States of the search are a place, the label of the piece that ends there
and a level, so that it would take time O(levels T K (L + K)). For the best segmentation but the
gold one, wrong tokens are counted up to 1. Otherwise bounds come first, see `bounds`: they often
tell the best segmentation by themselves, and leave few states where they do not.
"""

from __future__ import annotations

import numpy as np

from ...engine.feature_blocks import write_block
from ...engine.rows import add_scores
from ...jit.decorator import kernel
from ...search.modes import ADDITIVE, BEST_NON_GOLD
from ...search.semiring import argmax
from ...search.violation import violation
from .bounds import (
    F1,
    HAMMING,
    ROUNDS,
    SEGMENTS,
    ZERO_ONE,
    ErrorCounts,
    bound_error_counts,
    error_count_loss,
    gold_score,
    piece_terms,
    prepare,
)

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


FIRST_A, LAST_A, FIRST_B, LAST_B = 0, 1, 2, 3  # ends of a box of levels


@kernel(allocates=False)
def clear(table, box):
    """No state is reached yet at the levels of a box."""
    for a in range(box[FIRST_A], box[LAST_A] + 1):
        for b in range(box[FIRST_B], box[LAST_B] + 1):
            table[a, b] = -np.inf


@kernel(allocates=False)
def widen(box, other, more_a, more_b, most_a, cap):
    """Widen a box by another one that is moved."""
    if other[FIRST_A] > other[LAST_A]:
        return
    box[FIRST_A] = min(box[FIRST_A], other[FIRST_A] + more_a)
    box[LAST_A] = max(box[LAST_A], min(other[LAST_A] + more_a, most_a))
    box[FIRST_B] = min(box[FIRST_B], other[FIRST_B] + more_b, cap)
    box[LAST_B] = max(box[LAST_B], min(other[LAST_B] + more_b, cap))


@kernel(allocates=False)
def empty(box):
    """Make a box one without levels."""
    box[FIRST_A], box[LAST_A], box[FIRST_B], box[LAST_B] = 2**30, -1, 2**30, -1


@kernel(allocates=False)
def raise_error_counts(source, box, target, score, more_a, more_b):
    """target[a + more_a, b + more_b] = max(.., source[a, b] + score), b no more than there is."""
    cap = target.shape[1] - 1
    for a in range(box[FIRST_A], box[LAST_A] + 1):
        given, reached = source[a], target[a + more_a]
        for b in range(box[FIRST_B], min(box[LAST_B], cap - more_b) + 1):
            reached[b + more_b] = max(reached[b + more_b], given[b] + score)
        for b in range(max(cap - more_b + 1, box[FIRST_B]), box[LAST_B] + 1):
            reached[cap] = max(reached[cap], given[b] + score)


@kernel(allocates=False)
def shrink(table, box, rest, price_a, price_b, limit):
    """Leave the states that reach a limit, with what may follow; the box becomes theirs."""
    first_a, last_a, first_b, last_b = 2**30, -1, 2**30, -1
    for a in range(box[FIRST_A], box[LAST_A] + 1):
        for b in range(box[FIRST_B], box[LAST_B] + 1):
            # Not "less than": without a limit all that is reached stays.
            if table[a, b] + price_a * a + price_b * b + rest >= limit and table[a, b] > -np.inf:
                first_a, last_a = min(first_a, a), max(last_a, a)
                first_b, last_b = min(first_b, b), max(last_b, b)
            else:
                table[a, b] = -np.inf
    box[FIRST_A], box[LAST_A], box[FIRST_B], box[LAST_B] = first_a, last_a, first_b, last_b


@kernel(inline=True)
def is_in(box, a, b):
    """Whether a level is one of a box."""
    return box[FIRST_A] <= a <= box[LAST_A] and box[FIRST_B] <= b <= box[LAST_B]


@kernel
def best_by_error_count(model, w, length, loss, mode, gold_labels, gold_lengths, n_gold, work):
    """Segmentation that maximises the rescaled violation, into work; returns if it is above 0."""
    K = model.n_labels
    by_segments = mode.kind != BEST_NON_GOLD and (loss == SEGMENTS or loss == F1)
    most_right = n_gold if by_segments else 0
    cap = 1 if mode.kind == BEST_NON_GOLD else length
    error_counts = ErrorCounts(
        np.empty((K, length + 1), np.int64),
        np.zeros((length + 1, K + 1)),
        np.zeros((length + 1, K + 1)),
        np.empty((length + 1, K + 1), np.int64),
        np.empty((length + 1, K + 1), np.int64),
        np.zeros((ROUNDS, 3)),
        np.array([0.0, -np.inf]),
    )
    wrong = error_counts.wrong
    prepare(model, length, gold_labels, gold_lengths, wrong, work)
    of_gold = gold_score(model, w, length, gold_labels, gold_lengths, wrong, work)
    rounds = 1
    if mode.kind != BEST_NON_GOLD:
        rounds = bound_error_counts(
            model, w, length, loss, mode, by_segments, gold_labels, gold_lengths, n_gold, of_gold,
            error_counts, work,
        )  # fmt: skip
        if rounds == 0:
            return error_counts.limits[0] > 0.0
    price_a, price_b = (
        error_counts.multipliers[rounds - 1, 1],
        error_counts.multipliers[rounds - 1, 2],
    )
    limit = error_counts.limits[1]
    # entered[t, c]: before a piece of label c that begins at t; left[t, c]: after one that ends.
    # They have levels within boxes only.
    entered = np.empty((length + 1, K + 1, most_right + 1, cap + 1))
    left = np.empty((length + 1, K + 1, most_right + 1, cap + 1))
    before_piece = np.empty((length + 1, K + 1, 4), np.int64)
    after_piece = np.empty((length + 1, K + 1, 4), np.int64)
    for c in range(K + 1):
        before_piece[0, c] = 0
        entered[0, c, 0, 0] = 0.0
    for t in range(1, length + 1):
        for c in range(K + 1):
            box = after_piece[t, c]
            empty(box)
            longest = model.longest[c] if c < K else np.int64(1)
            for again in range(2):  # first its box, then its states
                for n in range(1, min(longest, t) + 1):
                    s = t - n
                    source = before_piece[s, c]
                    if source[FIRST_A] > source[LAST_A]:
                        continue
                    score, more_a, more_b = piece_terms(
                        model, w, by_segments, s, t, c, gold_labels, gold_lengths, wrong, work
                    )
                    if again == 0:
                        widen(box, source, more_a, more_b, most_right, cap)
                    else:
                        raise_error_counts(entered[s, c], source, left[t, c], score, more_a, more_b)
                if again == 0:
                    clear(left[t, c], box)
            shrink(left[t, c], box, error_counts.after[t, c], price_a, price_b, limit)
        if t == length:
            break
        for c in range(K + 1):
            box = before_piece[t, c]
            empty(box)
            for j in range(K + 1):
                widen(box, after_piece[t, j], 0, 0, most_right, cap)
            clear(entered[t, c], box)
            for j in range(K + 1):
                move = w[model.transitions + j * (K + 1) + c]
                raise_error_counts(left[t, j], after_piece[t, j], entered[t, c], move, 0, 0)
            shrink(entered[t, c], box, error_counts.open[t, c], price_a, price_b, limit)
    best, label, a, b = error_counts.limits[0], -1, 0, 0
    for c in range(K + 1):
        box = after_piece[length, c]
        for right in range(box[FIRST_A], box[LAST_A] + 1):
            for count in range(box[FIRST_B], box[LAST_B] + 1):
                delta = float(count) if mode.kind == BEST_NON_GOLD else 0.0
                if mode.kind != BEST_NON_GOLD:
                    delta = error_count_loss(loss, right, count, n_gold)
                gain = left[length, c, right, count] - of_gold
                if delta <= 0.0 or gain == -np.inf:
                    continue
                value = violation(delta, gain, mode)
                if value > best:
                    best, label, a, b = value, c, right, count
    if label < 0:
        return best > 0.0
    t = length
    while t > 0:
        # The piece that ends here: its length, and the level before it.
        top, chosen, before_a, before_b = -np.inf, 1, 0, 0
        longest = model.longest[label] if label < K else np.int64(1)
        for n in range(1, min(longest, t) + 1):
            s = t - n
            score, more_a, more_b = piece_terms(
                model, w, by_segments, s, t, label, gold_labels, gold_lengths, wrong, work
            )
            if more_a > a or (more_b > b and b < cap):
                continue
            lowest = max(b - more_b, 0)
            for other in range(lowest, (cap if b == cap else lowest) + 1):
                if not is_in(before_piece[s, label], a - more_a, other):
                    continue
                value = entered[s, label, a - more_a, other] + score
                if value > top:
                    top, chosen, before_a, before_b = value, n, a - more_a, other
        t -= chosen
        a, b = before_a, before_b
        for u in range(t, t + chosen):
            work.labels[u] = label
            work.lengths[u] = 0
        work.lengths[t] = chosen
        if t > 0:
            top, previous = -np.inf, 0
            for j in range(K + 1):
                if not is_in(after_piece[t, j], a, b):
                    continue
                value = left[t, j, a, b] + w[model.transitions + j * (K + 1) + label]
                if value > top:
                    top, previous = value, j
            label = previous
    return True
