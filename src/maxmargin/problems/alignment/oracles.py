"""Most violated alignments: with errors added to the score, by number of errors, and of decoys."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._jit import kernel
from ...search.modes import ADDITIVE, BEST_NON_GOLD
from ...search.violation import violation
from ...types import Floats, Ints, Ints32
from .kernels import (
    PAIR,
    SKIP_X,
    SKIP_Y,
    START,
    add_counts,
    best_alignment,
    count_errors,
    errors_of_letters,
    score_ends,
    sum_errors,
    write_row,
)


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


class ErrorCountScratch(NamedTuple):
    """Work arrays of `best_by_error_count`, with the number of errors as last axis."""

    back: NDArray[np.uint16]
    rows: Floats  # states, columns, errors
    above: Floats  # the cell above (0) and the one left of it (1)
    score: Floats  # of the best alignment by errors, and its last pair:
    last: Ints  # position in x, in y, errors there
    before_x: Ints  # errors of the letters before a position, if unpaired
    before_y: Ints


@kernel
def _enter(values, errors, cap, value, source, from_errors, shift, back):
    """Offer a way into a state at ``errors``, or at the cap, with what leads back from there."""
    error_count = min(errors, cap)
    if value > values[error_count]:
        values[error_count] = value
        kept = back[error_count] & ~np.uint16(15 << shift)
        back[error_count] = kept | np.uint16((source | (error_count - from_errors) << 2) << shift)


@kernel
def best_by_error_count(x, y, scoring, gold, cap, work, error_counts):
    """Score of the best alignment for each number of errors; ``cap`` stands for cap or more.

    As `best_alignment`, with the number of errors so far in every state: time and memory
    O(|x| |y| cap). A cell of ``back`` holds, for each of the three states, the source (2 bits) and
    the errors made by the step (2 bits).
    """
    m, n = len(x), len(y)
    gap_open, extend = scoring.gaps[0], scoring.gaps[1]
    end_open, end_extend = scoring.gaps[2], scoring.gaps[3]
    score_ends(m, work.left_x, 0.0, end_open, end_extend, work.begin_x, work.end_x)
    score_ends(n, work.left_y, 0.0, end_open, end_extend, work.begin_y, work.end_y)
    before_x, before_y = error_counts.before_x, error_counts.before_y
    sum_errors(work.left_x, m, before_x)
    sum_errors(work.left_y, n, before_y)
    for e in range(cap + 1):
        error_counts.score[e] = -np.inf
        for j in range(n + 1):
            error_counts.rows[0, j, e] = error_counts.rows[1, j, e] = error_counts.rows[
                2, j, e
            ] = -np.inf
    nothing = min(before_x[m] + before_y[n], cap)
    error_counts.score[nothing] = work.begin_x[m] + work.begin_y[n]
    error_counts.last[nothing, 0] = -1
    for i in range(m):
        missed = np.int64(work.left_x[i])
        for e in range(cap + 1):
            for state in range(3):
                error_counts.above[0, state, e] = -np.inf
        for j in range(n):
            pair, skip_x, skip_y = (
                error_counts.rows[0, j + 1],
                error_counts.rows[1, j + 1],
                error_counts.rows[2, j + 1],
            )
            left_pair, left_x, left_y = (
                error_counts.rows[0, j],
                error_counts.rows[1, j],
                error_counts.rows[2, j],
            )
            above, diagonal = error_counts.above[0], error_counts.above[1]
            back = error_counts.back[i, j]
            for e in range(cap + 1):
                for state in range(3):
                    diagonal[state, e] = above[state, e]
                above[0, e], above[1, e], above[2, e] = pair[e], skip_x[e], skip_y[e]
                pair[e] = skip_x[e] = skip_y[e] = -np.inf
                back[e] = 0
            first = min(before_x[i] + before_y[j], cap)
            begin = work.begin_x[i] + work.begin_y[j]
            score = scoring.substitution[x[i], y[j]]
            wrong = 0 if gold[i] == j else np.int64(work.wrong_x[i] + work.wrong_y[j])
            lost = np.int64(work.left_y[j])
            for e in range(cap + 1):
                if e == first:
                    _enter(pair, e + wrong, cap, begin + score, START, e, 0, back)
                for state in range(3):
                    value = diagonal[state, e] + score
                    _enter(pair, e + wrong, cap, value, PAIR + state, e, 0, back)
                value = above[0, e] + gap_open + extend
                _enter(skip_x, e + missed, cap, value, PAIR, e, 4, back)
                _enter(skip_x, e + missed, cap, above[1, e] + extend, SKIP_X, e, 4, back)
                if j > 0:
                    value = left_pair[e] + gap_open + extend
                    _enter(skip_y, e + lost, cap, value, PAIR, e, 8, back)
                    value = left_x[e] + gap_open + extend
                    _enter(skip_y, e + lost, cap, value, SKIP_X, e, 8, back)
                    _enter(skip_y, e + lost, cap, left_y[e] + extend, SKIP_Y, e, 8, back)
            behind = before_x[m] - before_x[i + 1] + before_y[n] - before_y[j + 1]
            end = work.end_x[i + 1] + work.end_y[j + 1]
            for e in range(cap + 1):
                error_count = min(e + behind, cap)
                if pair[e] + end > error_counts.score[error_count]:
                    error_counts.score[error_count] = pair[e] + end
                    error_counts.last[error_count, 0] = i
                    error_counts.last[error_count, 1] = j
                    error_counts.last[error_count, 2] = e


@kernel
def _trace_error_count(error_counts, error_count, m, partner):
    """Follow the sources back from the last pair of the best alignment of a level."""
    for k in range(m):
        partner[k] = -1
    i, j, e = (
        error_counts.last[error_count, 0],
        error_counts.last[error_count, 1],
        error_counts.last[error_count, 2],
    )
    state = PAIR
    while i >= 0:
        way = error_counts.back[i, j, e] >> (4 * (state - PAIR)) & 15
        e -= way >> 2
        if state == PAIR:
            partner[i] = j
        if state != SKIP_Y:
            i -= 1
        if state != SKIP_X:
            j -= 1
        state = way & 3
        if state == START:
            return


@kernel
def _worst_error_count(error_counts, cap, gold_score, unit, mode):
    """The level with the largest rescaled violation, and that violation."""
    best_error_count, best = 0, -np.inf
    for e in range(cap + 1):
        gain = error_counts.score[e] - gold_score
        if gain == -np.inf or (mode.kind == BEST_NON_GOLD and e < cap):
            continue
        value = violation(1.0 if mode.kind == BEST_NON_GOLD else e * unit, gain, mode)
        if value > best:
            best_error_count, best = e, value
    return best_error_count, best


@kernel
def alignment_oracle(xs, ys, true_pairs, examples, w, scoring, mode, work, error_counts, out):
    """Most violated alignment of each listed pair of strings, as a sparse row of dpsi.

    Problem solved for strings x, y with the true alignment t, over all alignments a:

        ADDITIVE    max  Delta(t, a) - <dpsi(a), w>     Delta = unit * errors
        DEVIATION   max  1 - <dpsi(a), w>               over a with errors
        LEVELS      max  the rescaled violation         by the number of errors

    Out: ``out``, made for rows of n_features entries. A row is empty, with loss 0, where nothing
    beats the gold alignment.
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
        gold_score = _load_gold(true_pairs, i, w, counts)
        violated = True
        if mode.kind == ADDITIVE:
            best_alignment(x, y, scoring, gold, unit, work)
        else:
            cap = 1 if mode.kind == BEST_NON_GOLD else true_pairs.most_errors[i]
            best_by_error_count(x, y, scoring, gold, cap, work, error_counts)
            error_count, value = _worst_error_count(error_counts, cap, gold_score, unit, mode)
            violated = value > 0.0
            if violated:
                _trace_error_count(error_counts, error_count, len(x), partner)
        errors = 0
        if violated:
            errors = count_errors(x, y, gold, partner, true_pairs.residues)
            add_counts(x, y, partner, scoring, -1.0, counts)
        else:
            counts[:] = 0.0
        out.losses[r] = errors * unit
        if true_pairs.zero_one and errors > 0:
            out.losses[r] = 1.0
        filled = write_row(counts, out, r, filled)


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
