"""The most violated ranking for losses of whole lists: 1 - NDCG@k, and 1 - average precision.

Average precision, as in SVM-map, is searched by `search.average_precision`. For NDCG the problem
solved, for one query, is the ranking that maximises

    1 - (sum over the first k places p of discount_p gain(document there)) / ideal
      + unit (sum over swapped pairs of s_worse - s_better).

Documents of a grade stand in the order of their scores, for their gains are equal. Behind place k
all stand so. So a ranking is known by how many documents of each grade its first places hold, one
after the other, and a dynamic programme over these numbers finds the best: from one state to the
next the first document i of a grade is placed, which costs, beside the sort by score,

    discount_p gain_i / ideal + unit (sum of s_j - s_i over the documents j of other grades, not
                                      placed yet, with s_j > s_i).

With few grades that is short, with many it is not: then the same is solved as an assignment of
documents to places, by value ``unit (m + 1 - 2 p) s_i / 2 - discount_p gain_i / ideal``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...jit.decorator import kernel
from ...search.average_precision import harmonic_numbers, place_negatives, write_swaps
from ...utils.types import Floats, Ints
from .queries import Queries, Ranked, count_swaps

__all__ = ["GainTables", "find_by_average_precision", "find_by_ndcg", "gain_tables", "gains_of"]

MOST_STATES = 2**21  # of the dynamic programme
MOST_ASSIGNED = 2000  # documents: their assignment may take a minute
ASSIGNMENT_CALL = 10_000  # in units of a state and two of its grades


class GainTables(NamedTuple):
    """What NDCG knows of the queries.

    Attributes
    ----------
    gains : array
        ``2**relevance - 1`` of each document.
    best : array
        The same, but in each query from the largest to the smallest.
    ideals : array
        The largest DCG of each query.
    discounts : array
        Of each place, 0 from place k on.
    n_places : int
        k, or the number of documents of the longest query.
    n_states : array of int
        States of each query's dynamic programme, or 2**62 where there are more.
    """

    gains: Floats
    best: Floats
    ideals: Floats
    discounts: Floats
    n_places: int
    n_states: Ints


def gains_of(relevance: Floats) -> Floats:
    """``2**relevance - 1``."""
    gains: Floats = np.exp2(relevance) - 1.0
    return gains


def gain_tables(relevance: Floats, offsets: Ints, k: int | None) -> GainTables:
    """Gains, discounts ``1 / log2(1 + place)`` of the first k places, and ideal values."""
    longest = int(np.diff(offsets).max(initial=0))
    n_places = longest if k is None else min(k, longest)
    discounts = np.zeros(longest)
    discounts[:n_places] = 1.0 / np.log2(np.arange(n_places) + 2.0)
    gains = gains_of(relevance)
    n_queries = len(offsets) - 1
    query = np.repeat(np.arange(n_queries), np.diff(offsets))
    best = gains[np.lexsort((-gains, query))]
    place = np.arange(len(gains)) - np.repeat(offsets[:-1], np.diff(offsets))
    ideals = np.bincount(query, best * discounts[place], n_queries)
    # Documents of a query with the same gain are one grade.
    starts = np.flatnonzero((np.diff(query, prepend=-1) != 0) | (np.diff(best, prepend=-1) != 0))
    sizes = np.minimum(np.diff(starts, append=len(best)), n_places)
    logarithms = np.bincount(query[starts], np.log2(sizes + 1.0), n_queries)
    n_states = np.rint(np.exp2(np.minimum(logarithms, 62.0))).astype(np.int64)
    return GainTables(gains, best, ideals.astype(np.float64), discounts, n_places, n_states)


class CountTables(NamedTuple):
    """Work arrays of the dynamic programme, for one query.

    Attributes
    ----------
    value, last : arrays
        Of each state: its value, and the grade of the document that was placed last.
    by_grade : array of int
        Documents by grade, and by falling score.
    sums : array
        Sums of the scores of the first documents of each grade, from 0 on; a 0 more for each.
    bounds, strides, n_placed, capacity : arrays of int
        By grade: where it begins among the documents, what one more document of it adds to the
        number of a state, how many are placed, and how many can be.
    """

    value: Floats
    last: Ints
    by_grade: Ints
    sums: Floats
    bounds: Ints
    strides: Ints
    n_placed: Ints
    capacity: Ints


def find_by_ndcg(
    queries: Queries, tables: GainTables, examples: Ints, ranked: Ranked, losses: Floats
) -> None:
    """Order, counts and losses of the most violated ranking of each listed query."""
    n_states = tables.n_states[examples]
    sizes = np.diff(ranked.starts)
    by_counts = n_states <= MOST_STATES
    # About what either takes; an assignment is one more call.
    longer = n_states * queries.n_grades[examples] ** 2 > sizes**3 + ASSIGNMENT_CALL
    by_counts &= ~longer | (sizes > MOST_ASSIGNED)
    most_states = int(n_states[by_counts].max(initial=1))
    longest = int(sizes.max(initial=0))
    work = CountTables(
        np.empty(most_states),
        np.empty(most_states, np.int64),
        np.empty(longest, np.int64),
        np.empty(2 * longest + 1),
        *np.empty((4, longest + 1), np.int64),
    )
    for r in np.flatnonzero(~by_counts).tolist():
        _assign_places(queries, tables, int(examples[r]), ranked, r)
    _rank_by_ndcg(queries, tables, examples, by_counts, ranked, work, losses)


def _assign_places(queries: Queries, tables: GainTables, q: int, ranked: Ranked, r: int) -> None:
    """Order of the most violated ranking of query q, the r-th asked for, as an assignment."""
    start, end = ranked.starts[r], ranked.starts[r + 1]
    m, first = int(end - start), queries.offsets[q]
    if m > MOST_ASSIGNED:
        raise ValueError(
            f"query {q} has {m} documents of {queries.n_grades[q]} grades, too many to find the "
            "most violated ranking by NDCG exactly; use a smaller k, fewer grades or loss='swaps'"
        )
    places = np.arange(m)
    slopes = queries.units[q] * (m - 1 - 2 * places) / 2.0
    shares = tables.gains[first : first + m] / tables.ideals[q]
    values = np.outer(ranked.scores[start:end], slopes) - np.outer(shares, tables.discounts[:m])
    from scipy.optimize import linear_sum_assignment

    documents, chosen = linear_sum_assignment(values, maximize=True)
    ranked.order[start:end][chosen] = documents


@kernel(allocates=False)
def _rank_by_ndcg(queries, tables, examples, by_counts, ranked, work, losses):
    """See `find_by_ndcg`; queries with ``by_counts`` are searched here, others have their order."""
    for r in range(len(examples)):
        q, start = examples[r], ranked.starts[r]
        first, m = queries.offsets[q], ranked.starts[r + 1] - start
        losses[r] = 0.0
        if queries.units[q] == 0.0:
            ranked.counts[start : start + m] = 0.0
            continue
        scores, order = ranked.scores[start : start + m], ranked.order[start : start + m]
        grades, gains = queries.grades[first : first + m], tables.gains[first : first + m]
        n_grades = queries.n_grades[q]
        if by_counts[r]:
            _place_by_counts(
                scores, order, grades, gains, n_grades, queries.units[q], tables.ideals[q],
                tables.discounts, tables.n_places, work, ranked.spare,
            )  # fmt: skip
        missed = 0.0
        for place in range(m):
            missed += tables.discounts[place] * (tables.best[first + place] - gains[order[place]])
        losses[r] = missed / tables.ideals[q]
        count_swaps(order, grades, n_grades, ranked.tree, ranked.counts[start : start + m])


@kernel(allocates=False)
def _place_by_counts(
    scores, order, grades, gains, n_grades, unit, ideal, discounts, n_places, work, spare
):
    """Put the best ranking of one query in the place of its order by score."""
    m = len(order)
    n_places = min(n_places, m)
    n_states = _list_by_grade(scores, order, grades, n_grades, n_places, work)
    work.value[:n_states] = -np.inf
    work.value[0] = 0.0
    n_placed, place, best = work.n_placed, 0, -1
    for state in range(n_states):
        if place < n_places and work.value[state] > -np.inf:
            for g in range(n_grades):
                if n_placed[g] == work.capacity[g]:
                    continue
                i = work.by_grade[work.bounds[g] + n_placed[g]]
                value = work.value[state] - discounts[place] * gains[i] / ideal
                value -= unit * _higher_scores(scores[i], g, n_grades, scores, work)
                after = state + work.strides[g]
                if value > work.value[after]:
                    work.value[after], work.last[after] = value, g
        elif place == n_places and (best < 0 or work.value[state] > work.value[best]):
            best = state
        g = 0  # the numbers of the next state
        while g < n_grades:
            if n_placed[g] < work.capacity[g]:
                n_placed[g] += 1
                place += 1
                break
            place -= n_placed[g]
            n_placed[g] = 0
            g += 1
    _write_order(order, best, n_places, grades, n_grades, work, spare)


@kernel(allocates=False)
def _list_by_grade(scores, order, grades, n_grades, n_places, work):
    """Fill what `CountTables` has by document and by grade; returns the number of states."""
    bounds, capacity = work.bounds, work.capacity
    bounds[: n_grades + 1] = 0
    for d in range(len(order)):
        bounds[grades[d] + 1] += 1
    n_states = 1
    for g in range(n_grades):
        capacity[g] = min(bounds[g + 1], n_places)
        bounds[g + 1] += bounds[g]
        work.strides[g] = n_states
        work.n_placed[g] = 0
        n_states *= capacity[g] + 1
    for d in order:
        g = grades[d]
        work.by_grade[bounds[g] + work.n_placed[g]] = d
        work.n_placed[g] += 1
    for g in range(n_grades):
        work.n_placed[g] = 0
        total = 0.0
        for k in range(bounds[g], bounds[g + 1]):
            work.sums[k + g] = total
            total += scores[work.by_grade[k]]
        work.sums[bounds[g + 1] + g] = total
    return n_states


@kernel(allocates=False)
def _higher_scores(score, grade, n_grades, scores, work):
    """Sum of s_j - score over the documents j of other grades, not placed yet, with s_j > score."""
    total = 0.0
    for g in range(n_grades):
        if g == grade:
            continue
        low, high = work.bounds[g] + work.n_placed[g], work.bounds[g + 1]
        begin = low
        while low < high:  # the first with a score that is not higher
            middle = (low + high) // 2
            if scores[work.by_grade[middle]] > score:
                low = middle + 1
            else:
                high = middle
        total += work.sums[low + g] - work.sums[begin + g] - (low - begin) * score
    return total


@kernel(allocates=False)
def _write_order(order, state, n_places, grades, n_grades, work, spare):
    """The ranking that leads to a state: its documents, and behind them the others by score."""
    for g in range(n_grades):
        work.n_placed[g] = (state // work.strides[g]) % (work.capacity[g] + 1)
    left = work.capacity  # of the first of each grade, which are the ones placed
    for g in range(n_grades):
        left[g] = work.n_placed[g]
    for k in range(len(order)):
        spare[k] = order[k]
    filled = n_places
    for k in range(len(order)):
        g = grades[spare[k]]
        if left[g] > 0:
            left[g] -= 1
        else:
            order[filled] = spare[k]
            filled += 1
    for place in range(n_places - 1, -1, -1):
        g = work.last[state]
        work.n_placed[g] -= 1
        order[place] = work.by_grade[work.bounds[g] + work.n_placed[g]]
        state -= work.strides[g]


def find_by_average_precision(
    queries: Queries, examples: Ints, ranked: Ranked, losses: Floats
) -> None:
    """Counts and losses of the most violated ranking of each listed query."""
    longest = int(np.diff(ranked.starts).max(initial=0))
    documents, places = np.empty(longest, np.int64), np.empty(longest + 2, np.int64)
    sums, harmonic = np.empty(longest + 1), harmonic_numbers(longest)
    _rank_by_precision(queries, examples, ranked, harmonic, documents, sums, places, losses)


@kernel(allocates=False)
def _rank_by_precision(queries, examples, ranked, harmonic, documents, sums, places, losses):
    """See `find_by_average_precision`; ``documents``, ``sums`` and ``places`` are scratch."""
    for r in range(len(examples)):
        q, start = examples[r], ranked.starts[r]
        first, m = queries.offsets[q], ranked.starts[r + 1] - start
        losses[r] = 0.0
        counts = ranked.counts[start : start + m]
        if queries.units[q] == 0.0:
            counts[:] = 0.0
            continue
        scores, order = ranked.scores[start : start + m], ranked.order[start : start + m]
        grades = queries.grades[first : first + m]
        n_relevant = 0
        for d in range(m):
            n_relevant += grades[d]
        relevant, others = documents[:n_relevant], documents[n_relevant:m]
        k, j = 0, 0
        sums[0] = 0.0
        for d in order:
            if grades[d] == 1:
                relevant[k] = d
                sums[k + 1] = sums[k] + scores[d]
                k += 1
            else:
                others[j] = d
                j += 1
        losses[r] = place_negatives(scores, relevant, others, harmonic, sums, places)
        write_swaps(relevant, others, places, 1.0, counts)
