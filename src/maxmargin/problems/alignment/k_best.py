"""The k best alignments of two strings, exactly, by turning off from those already found.

Every alignment is one path through the states of `kernels`, because a gap in x always
comes before one in y, so different paths are different sets of pairs. A table holds the score of
the best path to every state. The best path is found from its end; at each of its states, every way
in that it did not take is the best path of a set that holds none found so far (Lawler 1972). The
next path is the best of all these, and only those from its turning point on are added for it. So k
paths take time O(k (|x| + |y|)) after the table.

Where alignments are ranked by a loss that does not add up, states also have the number of errors,
counted up to a cap that stands for so many or more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...jit.decorator import kernel
from ...search.limits import MOST_TABLE_BYTES
from ...search.violation import plane_value
from ...utils.types import Floats, Ints, Ints32
from .kernels import AlignmentScratch, Scoring, errors_of_letters, score_ends, sum_errors

__all__ = ["PLAIN", "Ranked", "Ranking", "rank_alignments"]


MOST_WAYS = 10  # into a state: the start, and three states before with up to three numbers each
NOWHERE = -1  # what comes before the first pair


class Ranking(NamedTuple):
    """Alignments with e errors are ranked by ``offsets[e] + scales[e] * score``.

    The last e stands for all numbers from there on. Those with a scale of 0 are left out. An error
    adds ``unit`` to the score. ``residues``: see `errors_of_letters`.
    """

    unit: float
    offsets: Floats
    scales: Floats
    residues: bool


#: By the score alone.
PLAIN = Ranking(0.0, np.zeros(1), np.ones(1), False)


class Ranked(NamedTuple):
    """An alignment and its score."""

    partner: Ints32
    score: float


class Ways(NamedTuple):
    """Ways into a state: values, and the states they come from."""

    value: Floats
    source: Ints


class Turns(NamedTuple):
    """Paths not taken yet: that of ``parent`` up to its state number ``step``, then ``source``."""

    value: Floats  # what they are ranked by
    score: Floats
    error_count: Ints
    parent: Ints
    step: Ints
    source: Ints
    counts: Ints  # how many there are, and which is the last in rank


def _no_turns(k: int) -> Turns:
    """An empty list, made for k at most."""
    error_count, parent, step, source = np.empty((4, k), np.int64)
    counts = np.zeros(2, np.int64)
    return Turns(np.empty(k), np.empty(k), error_count, parent, step, source, counts)


class Table(NamedTuple):
    """Scores of the best paths to all states (x, y, kind, errors), flat, and what they rest on."""

    best: Floats
    before_x: Ints
    before_y: Ints
    cap: int


def rank_alignments(
    x: NDArray[np.uint8],
    y: NDArray[np.uint8],
    scoring: Scoring,
    k: int,
    work: AlignmentScratch,
    gold: Ints32 | None = None,
    ranking: Ranking = PLAIN,
) -> list[Ranked]:
    """The k best alignments, best first; fewer if there are not so many."""
    m, n, error_counts = len(x), len(y), len(ranking.offsets)
    n_states = 3 * m * n * error_counts
    if 8 * n_states > MOST_TABLE_BYTES:
        told_apart = ", told apart by number of errors," if error_counts > 1 else ""
        raise ValueError(
            f"the search for the k best alignments of strings of {m} and {n} letters{told_apart} "
            f"takes {8 * n_states / 2**30:.1f} GiB; use shorter strings"
            + (", or rescaling='margin' with sqrt_loss=False" if error_counts > 1 else "")
        )
    table = Table(
        np.empty(n_states), np.empty(m + 1, np.int64), np.empty(n + 1, np.int64), error_counts - 1
    )
    partners, scores = np.empty((k, m), np.int32), np.empty(k)
    if gold is None:
        gold = np.full(m, -1, np.int32)
    found = k_best_alignments(
        x,
        y,
        scoring,
        gold,
        ranking,
        work,
        table,
        Ways(np.empty(MOST_WAYS), np.empty(MOST_WAYS, np.int64)),
        _no_turns(k),
        np.empty((k, m + n), np.int64),
        partners,
        scores,
    )
    return [Ranked(partners[r], float(scores[r])) for r in range(found)]


@kernel
def _extend(before, value, errors, here):
    """Offer all paths to a state, by number of errors, a step of this value and errors more."""
    cap = len(here) - 1
    for e in range(cap + 1):
        error_count = min(e + errors, cap)
        here[error_count] = max(here[error_count], before[e] + value)


@kernel
def _fill_table(x, y, scoring, gold, unit, work, table):
    """Scores of the best paths to all states, as in `kernels.best_alignment`."""
    m, n, cap = len(x), len(y), table.cap
    best = table.best.reshape(m, n, 3, cap + 1)
    best[:] = -np.inf
    before_x, before_y = table.before_x, table.before_y
    begin_x, begin_y = work.begin_x, work.begin_y
    wrong_x, wrong_y, left_x, left_y = work.wrong_x, work.wrong_y, work.left_x, work.left_y
    gap_open, extend = scoring.gaps[0], scoring.gaps[1]
    for i in range(m):
        scores = scoring.substitution[x[i]]
        for j in range(n):
            pair, skip_x, skip_y = best[i, j, 0], best[i, j, 1], best[i, j, 2]
            made = 0.0 if gold[i] == j else wrong_x[i] + wrong_y[j]
            value = scores[y[j]] + unit * made
            first = min(before_x[i] + before_y[j] + np.int64(made), cap)
            pair[first] = begin_x[i] + begin_y[j] + value
            if i > 0 and j > 0:
                for kind in range(3):
                    _extend(best[i - 1, j - 1, kind], value, np.int64(made), pair)
            if i > 0:
                made, value = left_x[i], extend + unit * left_x[i]
                _extend(best[i - 1, j, 0], gap_open + value, np.int64(made), skip_x)
                _extend(best[i - 1, j, 1], value, np.int64(made), skip_x)
            if j > 0:
                made, value = left_y[j], extend + unit * left_y[j]
                _extend(best[i, j - 1, 0], gap_open + value, np.int64(made), skip_y)
                _extend(best[i, j - 1, 1], gap_open + value, np.int64(made), skip_y)
                _extend(best[i, j - 1, 2], value, np.int64(made), skip_y)


@kernel
def _list_ways(x, y, i, j, kind, errors, scoring, gold, unit, work, table, ways):
    """List the ways into a state (kind 0: pair, 1: skip_x, 2: skip_y); returns their number."""
    n, cap = len(y), table.cap
    if kind == 0:
        made = 0.0 if gold[i] == j else work.wrong_x[i] + work.wrong_y[j]
        score = scoring.substitution[x[i], y[j]] + unit * made
        before_i, before_j = i - 1, j - 1
    elif kind == 1:
        made = work.left_x[i]
        score = scoring.gaps[1] + unit * made
        before_i, before_j = i - 1, j
    else:
        made = work.left_y[j]
        score = scoring.gaps[1] + unit * made
        before_i, before_j = i, j - 1
    new_errors = np.int64(made)
    count = 0
    if kind == 0 and min(table.before_x[i] + table.before_y[j] + new_errors, cap) == errors:
        ways.value[0] = work.begin_x[i] + work.begin_y[j] + score
        ways.source[0] = NOWHERE
        count = 1
    if before_i < 0 or before_j < 0:
        return count
    last = errors - new_errors
    first = max(last, 0)
    if errors == cap:
        last = cap
    cell = (before_i * n + before_j) * 3
    for before in range(2 if kind == 1 else 3):  # skip_x never follows skip_y
        opened = scoring.gaps[0] if before < kind else 0.0
        for error_count in range(first, last + 1):
            source = (cell + before) * (cap + 1) + error_count
            if table.best[source] > -np.inf:
                ways.value[count] = table.best[source] + (opened + score)
                ways.source[count] = source
                count += 1
    return count


@kernel
def _offer(turns, value, score, error_count, parent, step, source):
    """Put a path on the list unless it is full of better ones."""
    k = len(turns.value)
    place = turns.counts[0]
    if place == k:
        place = turns.counts[1]
        if value <= turns.value[place]:
            return
    else:
        turns.counts[0] += 1
    turns.value[place], turns.score[place], turns.error_count[place] = value, score, error_count
    turns.parent[place], turns.step[place], turns.source[place] = parent, step, source
    if turns.counts[0] == k:
        last = 0
        for p in range(k):
            if turns.value[p] < turns.value[last]:
                last = p
        turns.counts[1] = last


@kernel
def _take(turns):
    """Move the best path to the end of the list and take it off; returns its place."""
    best, end = 0, turns.counts[0] - 1
    for p in range(end + 1):
        if turns.value[p] > turns.value[best]:
            best = p
    for numbers in (turns.value, turns.score):
        numbers[best], numbers[end] = numbers[end], numbers[best]
    for codes in (turns.error_count, turns.parent, turns.step, turns.source):
        codes[best], codes[end] = codes[end], codes[best]
    turns.counts[0] = end
    return end


@kernel
def _offer_last_pairs(m, n, ranking, work, table, turns):
    """Put the best paths to the end on the list, one for each last pair and number of errors."""
    best, cap, offsets, scales = table.best, table.cap, ranking.offsets, ranking.scales
    before_x, before_y, end_x, end_y = table.before_x, table.before_y, work.end_x, work.end_y
    k, counts, values = len(turns.value), turns.counts, turns.value
    for i in range(m):
        for j in range(n):
            behind = before_x[m] - before_x[i + 1] + before_y[n] - before_y[j + 1]
            end = end_x[i + 1] + end_y[j + 1]
            for e in range(cap + 1):
                state = (i * n + j) * 3 * (cap + 1) + e
                error_count = min(e + behind, cap)
                score = best[state] + end
                scale = scales[error_count]
                value = plane_value(offsets[error_count], scale, score) if scale > 0.0 else -np.inf
                if value > -np.inf and (counts[0] < k or value > values[counts[1]]):
                    _offer(turns, value, score, error_count, -1, -1, state)


@kernel
def k_best_alignments(
    x, y, scoring, gold, ranking, work, table, ways, turns, paths, partners, scores
):
    """The k best alignments into ``partners``, a row each, and their scores; returns their number.

    In: ``gold`` matters where errors do; ``ways``, ``turns``, ``paths`` (k, |x| + |y|) and
    ``work`` are scratch, and so is ``table`` but for the cap.
    """
    m, n, k, cap = len(x), len(y), len(scores), table.cap
    unit = ranking.unit
    errors_of_letters(gold, m, n, ranking.residues, work)
    end_open, end_extend = scoring.gaps[2], scoring.gaps[3]
    score_ends(m, work.left_x, unit, end_open, end_extend, work.begin_x, work.end_x)
    score_ends(n, work.left_y, unit, end_open, end_extend, work.begin_y, work.end_y)
    sum_errors(work.left_x, m, table.before_x)
    sum_errors(work.left_y, n, table.before_y)
    turns.counts[0] = 0
    score = work.begin_x[m] + work.begin_y[n]  # nothing is paired
    error_count = min(table.before_x[m] + table.before_y[n], cap)
    if ranking.scales[error_count] > 0.0:
        value = plane_value(ranking.offsets[error_count], ranking.scales[error_count], score)
        _offer(turns, value, score, error_count, -1, -1, NOWHERE)
    _fill_table(x, y, scoring, gold, unit, work, table)
    _offer_last_pairs(m, n, ranking, work, table, turns)
    for found in range(k):
        if turns.counts[0] == 0:
            return found
        turn = _take(turns)
        score, error_count, state = turns.score[turn], turns.error_count[turn], turns.source[turn]
        scores[found] = score
        length = turns.step[turn] + 1
        for p in range(length):
            paths[found, p] = paths[turns.parent[turn], p]
        while state >= 0:
            paths[found, length] = state
            cell = state // (cap + 1)
            i, j = cell // 3 // n, cell // 3 % n
            errors = state % (cap + 1)
            count = _list_ways(x, y, i, j, cell % 3, errors, scoring, gold, unit, work, table, ways)
            way = 0
            for c in range(1, count):
                if ways.value[c] > ways.value[way]:
                    way = c
            for c in range(count):
                if c != way:
                    other = score - (ways.value[way] - ways.value[c])
                    value = plane_value(
                        ranking.offsets[error_count], ranking.scales[error_count], other
                    )
                    _offer(turns, value, other, error_count, found, length, ways.source[c])
            state = ways.source[way]
            length += 1
        partner = partners[found]
        partner[:] = -1
        for p in range(length):
            cell = paths[found, p] // (cap + 1)
            if cell % 3 == 0:
                partner[cell // 3 // n] = cell // 3 % n
    return k
