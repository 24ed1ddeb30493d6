"""Exact alignment of two strings, the most violated alignments, and counts of operations.

An alignment of x and y is a set of pairs (i, j) that rise in both positions. Letters between two
neighbouring pairs are a gap in the other string; letters before the first and after the last pair
are its ends. Where both strings have unpaired letters between two pairs there is one gap in each,
so that the pairs alone say all there is to say. An alignment scores

    sum over pairs   substitution[x_i, y_j]
    + open + length * extend          for each gap between pairs
    + end_open + length * end_extend  for each end that is not empty.

Ends that score nothing make this local alignment (Smith & Waterman 1981), ends that score like gaps
global alignment (Needleman & Wunsch 1970); gaps of two weights are those of Gotoh (1982). Three
states: `pair` (x_i with y_j), `skip_x` (x_i in a gap), `skip_y` (y_j in a gap, after any skip_x).

An alignment is kept as ``partner``: for each letter of x the position of its partner in y, or -1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...jit.decorator import kernel
from ...utils.types import Floats, Ints, Ints32

# Where the best way into a state came from; START: the pair is the first one.
START, PAIR, SKIP_X, SKIP_Y = 0, 1, 2, 3


class Strings(NamedTuple):
    """Coded strings, one after the other."""

    letters: NDArray[np.uint8]
    offsets: Ints


class Scoring(NamedTuple):
    """Scores of the operations, and the feature that counts each (-1: none)."""

    substitution: Floats
    gaps: Floats  # open, extend, end_open, end_extend
    pair_feature: Ints32
    gap_feature: Ints32


class AlignmentScratch(NamedTuple):
    """Work arrays for the longest strings: of the search, errors of letters, scores of ends.

    ``right_x`` is what a letter of x scores beside its true partner: 0, or -inf if it must not.
    """

    back: NDArray[np.uint8]
    rows: Floats
    right_x: Floats
    wrong_x: Floats
    wrong_y: Floats
    left_x: Floats
    left_y: Floats
    begin_x: Floats
    begin_y: Floats
    end_x: Floats
    end_y: Floats
    partner: Ints32
    counts: Floats


@kernel
def errors_of_letters(gold, m, n, residues, work):
    """Errors that a letter causes in a wrong pair (wrong_*), and where it is unpaired (left_*).

    With ``residues`` every letter of either string whose partner is not the true one is an error;
    without, only letters of x that have a true partner count: the true pairs that are missed.
    """
    for j in range(n):
        work.wrong_y[j] = 1.0 if residues else 0.0
        work.left_y[j] = 0.0
    for i in range(m):
        paired = gold[i] >= 0
        work.right_x[i] = 0.0
        work.wrong_x[i] = 1.0 if residues or paired else 0.0
        work.left_x[i] = 1.0 if paired else 0.0
        if residues and paired:
            work.left_y[gold[i]] = 1.0


@kernel
def hold_letters(gold, m, n, residues, lower, upper, work):
    """Letters with ``upper`` below 1 must be right, others with ``lower`` from 0 on wrong.

    After `errors_of_letters`. The letters of x come first, then those of y.
    """
    for i in range(m):
        if upper[i] < 1.0 and (residues or gold[i] >= 0):
            work.wrong_x[i] = -np.inf
            if gold[i] >= 0:
                work.left_x[i] = -np.inf
        elif lower[i] >= 0.0 and gold[i] >= 0:
            work.right_x[i] = -np.inf
        elif lower[i] >= 0.0:
            work.left_x[i] = -np.inf
        if residues and gold[i] >= 0 and lower[m + gold[i]] >= 0.0:
            work.right_x[i] = -np.inf
    if residues:
        for j in range(n):
            if upper[m + j] < 1.0:
                work.wrong_y[j] = -np.inf
                if work.left_y[j] > 0.0:
                    work.left_y[j] = -np.inf
            elif lower[m + j] >= 0.0 and work.left_y[j] == 0.0:
                work.left_y[j] = -np.inf


@kernel
def score_ends(length, left, unit, end_open, end_extend, begin, end):
    """begin[p], end[p]: score of an end with the letters before p, from p on, with its errors."""
    begin[0] = 0.0
    end[length] = 0.0
    errors = 0.0
    for p in range(1, length + 1):
        errors += unit * left[p - 1]
        begin[p] = end_open + p * end_extend + errors
    errors = 0.0
    for p in range(length - 1, -1, -1):
        errors += unit * left[p]
        end[p] = end_open + (length - p) * end_extend + errors


@kernel
def sum_errors(left, length, before):
    """before[p] = errors of unpaired letters before p."""
    before[0] = 0
    for p in range(length):
        before[p + 1] = before[p] + np.int64(left[p])


@kernel
def best_alignment(x, y, scoring, gold, unit, work):
    """Best alignment of x and y into work.partner, each error worth ``unit``; returns its value.

    In: ``gold`` and the errors of letters, in ``work``; none of them matters where unit is 0.
    A cell of ``back`` holds where pair (2 bits), skip_x (2 bits) and skip_y (2 bits) came from.
    """
    m, n = len(x), len(y)
    gap_open, extend = scoring.gaps[0], scoring.gaps[1]
    end_open, end_extend = scoring.gaps[2], scoring.gaps[3]
    score_ends(m, work.left_x, unit, end_open, end_extend, work.begin_x, work.end_x)
    score_ends(n, work.left_y, unit, end_open, end_extend, work.begin_y, work.end_y)
    pair, skip_x, skip_y = work.rows[0], work.rows[1], work.rows[2]
    for j in range(n + 1):
        pair[j] = skip_x[j] = skip_y[j] = -np.inf
    best = work.begin_x[m] + work.begin_y[n]  # nothing is paired
    best_i, best_j = -1, -1
    for i in range(m):
        scores = scoring.substitution[x[i]]
        begin, end = work.begin_x[i], work.end_x[i + 1]
        wrong, left = unit * work.wrong_x[i], unit * work.left_x[i] + extend
        partner, right = gold[i], work.right_x[i]
        # (i, j) is the cell up and left of the one that is filled; `old_*` are the row above.
        old_pair, old_x, old_y = pair[0], skip_x[0], skip_y[0]
        pair[0] = skip_x[0] = skip_y[0] = -np.inf
        back = work.back[i]
        for j in range(n):
            here, source = begin + work.begin_y[j], START
            if old_pair > here:
                here, source = old_pair, PAIR
            if old_x > here:
                here, source = old_x, SKIP_X
            if old_y > here:
                here, source = old_y, SKIP_Y
            here += scores[y[j]]
            if partner != j:
                here += wrong + unit * work.wrong_y[j]
            else:
                here += right
            old_pair, old_x, old_y = pair[j + 1], skip_x[j + 1], skip_y[j + 1]
            opened, stayed = old_pair + gap_open, old_x
            if opened >= stayed:
                skip_x[j + 1] = opened + left
                source |= PAIR << 2
            else:
                skip_x[j + 1] = stayed + left
                source |= SKIP_X << 2
            reached, way = pair[j] + gap_open, PAIR
            if skip_x[j] + gap_open > reached:
                reached, way = skip_x[j] + gap_open, SKIP_X
            if skip_y[j] > reached:
                reached, way = skip_y[j], SKIP_Y
            skip_y[j + 1] = reached + extend + unit * work.left_y[j]
            pair[j + 1] = here
            back[j] = source | way << 4
            total = here + end + work.end_y[j + 1]
            if total > best:
                best, best_i, best_j = total, i, j
    _trace(work.back, best_i, best_j, m, work.partner)
    return best


@kernel
def _trace(back, i, j, m, partner):
    """Follow the sources back from the last pair (i, j)."""
    for k in range(m):
        partner[k] = -1
    state = PAIR
    while i >= 0:
        cell = back[i, j]
        if state == PAIR:
            partner[i] = j
            state = cell & 3
            if state == START:
                return
            i -= 1
            j -= 1
        elif state == SKIP_X:
            state = cell >> 2 & 3
            i -= 1
        else:
            state = cell >> 4 & 3
            j -= 1


@kernel
def _add_gap(length, first, gap_feature, sign, counts):
    """Count one gap, by features first (opened) and first + 1 (letters)."""
    if length > 0:
        if gap_feature[first] >= 0:
            counts[gap_feature[first]] += sign
        if gap_feature[first + 1] >= 0:
            counts[gap_feature[first + 1]] += sign * length


@kernel
def add_counts(x, y, partner, scoring, sign, counts):
    """Add sign * psi(x, y, alignment) to the counts."""
    last_i, last_j = -1, -1
    gaps = 2  # the first one is an end
    for i in range(len(x)):
        j = partner[i]
        if j < 0:
            continue
        feature = scoring.pair_feature[x[i], y[j]]
        if feature >= 0:
            counts[feature] += sign
        _add_gap(i - last_i - 1, gaps, scoring.gap_feature, sign, counts)
        _add_gap(j - last_j - 1, gaps, scoring.gap_feature, sign, counts)
        last_i, last_j, gaps = i, j, 0
    _add_gap(len(x) - last_i - 1, 2, scoring.gap_feature, sign, counts)
    _add_gap(len(y) - last_j - 1, 2, scoring.gap_feature, sign, counts)


@kernel
def count_errors(x, y, gold, partner, residues):
    """Number of errors of an alignment; see `errors_of_letters`."""
    missed, wrong_x, true_pairs, pairs = 0, 0, 0, 0
    for i in range(len(x)):
        wrong_x += partner[i] != gold[i]
        pairs += partner[i] >= 0
        if gold[i] >= 0:
            true_pairs += 1
            missed += partner[i] != gold[i]
    if not residues:
        return missed
    # Letters of y that either alignment pairs, without those that both pair alike.
    hits = true_pairs - missed
    wrong_y = true_pairs + pairs - 2 * hits - _differently_paired(gold, partner, len(x))
    return wrong_x + wrong_y


@kernel
def _differently_paired(gold, partner, m):
    """Letters of y that both alignments pair, with different letters of x."""
    shared = 0
    i, k = 0, 0
    while i < m and k < m:  # both rise, so one walk finds all
        if gold[i] < 0:
            i += 1
        elif partner[k] < 0:
            k += 1
        elif gold[i] < partner[k]:
            i += 1
        elif gold[i] > partner[k]:
            k += 1
        else:
            shared += i != k
            i += 1
            k += 1
    return shared


@kernel
def write_row(counts, out, row, filled):
    """Move the non-zero counts to the end of row ``row``; returns the new position."""
    for f in range(len(counts)):
        if counts[f] != 0.0:
            out.indices[filled] = f
            out.values[filled] = counts[f]
            filled += 1
            counts[f] = 0.0
    out.indptr[row + 1] = filled
    return filled


@kernel
def psi_rows(xs, ys, partners, scoring, work, out):
    """Joint features of given alignments as sparse rows; ``partners`` are flat like xs.letters."""
    filled = 0
    out.indptr[0] = 0
    for i in range(len(xs.offsets) - 1):
        x = xs.letters[xs.offsets[i] : xs.offsets[i + 1]]
        y = ys.letters[ys.offsets[i] : ys.offsets[i + 1]]
        partner = partners[xs.offsets[i] : xs.offsets[i + 1]]
        add_counts(x, y, partner, scoring, 1.0, work.counts)
        filled = write_row(work.counts, out, i, filled)


@kernel
def align_pairs(xs, ys, scoring, work, partners, scores):
    """Best alignment and score of every pair of strings, flat like xs.letters."""
    for i in range(len(scores)):
        x = xs.letters[xs.offsets[i] : xs.offsets[i + 1]]
        y = ys.letters[ys.offsets[i] : ys.offsets[i + 1]]
        partner = partners[xs.offsets[i] : xs.offsets[i + 1]]
        partner[:] = -1
        errors_of_letters(partner, len(x), len(y), False, work)
        scores[i] = best_alignment(x, y, scoring, partner, 0.0, work)
        partner[:] = work.partner[: len(x)]


# ----- most violated alignments: errors added to the score, letters held or not, and decoys -------


class TruePairs(NamedTuple):
    """The true alignments, their joint features as CSR rows, and how errors make a loss.

    The loss is ``units`` times the number of errors, or 1 if there are any (``zero_one``);
    ``most_errors`` is the largest number that an alignment of the example can have.
    """

    partners: Ints32
    indptr: Ints
    indices: Ints32
    values: Floats
    units: Floats
    most_errors: Ints
    residues: bool
    zero_one: bool


@kernel
def alignment_oracle(xs, ys, true_pairs, examples, w, scoring, work, out):
    """Most violated alignment of each listed pair of strings, as a sparse row of dpsi.

    Problem solved for strings x, y with the true alignment t, over all alignments a:

        max  Delta(t, a) - <dpsi(a), w>     Delta = unit * errors

    Out: ``out``, made for rows of n_features entries.
    """
    counts, partner = work.counts, work.partner
    filled = 0
    out.indptr[0] = 0
    for r in range(len(examples)):
        i = examples[r]
        x = xs.letters[xs.offsets[i] : xs.offsets[i + 1]]
        y = ys.letters[ys.offsets[i] : ys.offsets[i + 1]]
        gold = true_pairs.partners[xs.offsets[i] : xs.offsets[i + 1]]
        unit = true_pairs.units[i]
        errors_of_letters(gold, len(x), len(y), true_pairs.residues, work)
        _load_gold(true_pairs, i, w, counts)
        best_alignment(x, y, scoring, gold, unit, work)
        add_counts(x, y, partner, scoring, -1.0, counts)
        out.losses[r] = unit * count_errors(x, y, gold, partner, true_pairs.residues)
        filled = write_row(counts, out, r, filled)


@kernel
def best_between(x, y, gold, residues, scoring, unit, lower, upper, work, losses):
    """Best alignment with ``unit`` added for each error, some letters held right or wrong.

    See `hold_letters`. Out: ``work.partner``, and which letters are wrong, in ``losses``.
    """
    m, n = len(x), len(y)
    errors_of_letters(gold, m, n, residues, work)
    hold_letters(gold, m, n, residues, lower, upper, work)
    best_alignment(x, y, scoring, gold, unit, work)
    for i in range(m):
        is_wrong = work.partner[i] != gold[i] and (residues or gold[i] >= 0)
        losses[i] = 1.0 if is_wrong else 0.0
    if residues:
        for j in range(n):
            losses[m + j] = 0.0
        for i in range(m):
            if work.partner[i] != gold[i]:
                if gold[i] >= 0:
                    losses[m + gold[i]] = 1.0
                if work.partner[i] >= 0:
                    losses[m + work.partner[i]] = 1.0


@kernel
def _load_gold(true_pairs, i, w, counts):
    """Put psi of the gold alignment of example i into counts, which are zero; returns its score."""
    score = 0.0
    for e in range(true_pairs.indptr[i], true_pairs.indptr[i + 1]):
        f = true_pairs.indices[e]
        counts[f] = true_pairs.values[e]
        score += w[f] * true_pairs.values[e]
    return score


@kernel
def homologue_oracle(
    natives, decoys, groups, true_pairs, examples, w, scoring, work, best_partner, out
):
    """Decoy, with its best alignment, that scores highest for each listed native string.

    Tsochantaridis et al. (2005), section 4.4: the homologue, in its true alignment, has to score
    more than every decoy in every alignment, by a margin of 1; the loss is 1 for all of them.
    Decoys ``groups[i]`` to ``groups[i + 1] - 1`` are those of example i. A row is empty, with
    loss 0, where no decoy comes within the margin.
    """
    counts = work.counts
    filled = 0
    out.indptr[0] = 0
    for r in range(len(examples)):
        i = examples[r]
        x = natives.letters[natives.offsets[i] : natives.offsets[i + 1]]
        gold = true_pairs.partners[natives.offsets[i] : natives.offsets[i + 1]]
        gold_score = _load_gold(true_pairs, i, w, counts)
        best, best_decoy = gold_score - 1.0, -1
        for d in range(groups[i], groups[i + 1]):
            y = decoys.letters[decoys.offsets[d] : decoys.offsets[d + 1]]
            errors_of_letters(gold, len(x), len(y), False, work)
            score = best_alignment(x, y, scoring, gold, 0.0, work)
            if score > best:
                best, best_decoy = score, d
                best_partner[: len(x)] = work.partner[: len(x)]
        if best_decoy >= 0:
            y = decoys.letters[decoys.offsets[best_decoy] : decoys.offsets[best_decoy + 1]]
            add_counts(x, y, best_partner, scoring, -1.0, counts)
        else:
            counts[:] = 0.0
        out.losses[r] = 1.0 if best_decoy >= 0 else 0.0
        filled = write_row(counts, out, r, filled)
