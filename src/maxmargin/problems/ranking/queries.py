"""Queries as kernels see them: documents in rows, their grades, and the pairs that can be swapped.

Grades are the ranks of a query's relevances, from 0. A pair of documents of different grades is
*swapped* where the worse one stands first. All losses share their features: with the documents'
scores ``s = X w`` and the number of swapped pairs that each document is the better (plus) or the
worse (minus) one of, its *count* n,

    dpsi = unit sum_i n_i x_i,    <dpsi, w> = unit (sum of s_better - s_worse over swapped pairs).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...engine.rows import Rows
from ...jit.decorator import kernel
from ...utils.types import Floats, Ints

__all__ = [
    "Queries",
    "Ranked",
    "count_swaps",
    "grades_of",
    "pairs_of",
    "score_documents",
    "sort_documents",
    "weight_of_pairs",
    "write_planes",
]

RUN = 16  # documents that are sorted by insertion


class Queries(NamedTuple):
    """Documents of query q are ``offsets[q]`` to ``offsets[q + 1] - 1``.

    Attributes
    ----------
    rows : Rows
        Features of all documents.
    offsets : array of int
        Where queries begin and end.
    grades : array of int
        Grade of each document, from 0 in each query.
    n_grades : array of int
        Number of grades of each query.
    units : array
        What a swapped pair counts in each query; 0 where there is no pair.
    weights : array
        What documents count: a pair counts the product of its two. Empty if that is 1 for all.
    """

    rows: Rows
    offsets: Ints
    grades: Ints
    n_grades: Ints
    units: Floats
    weights: Floats


class Ranked(NamedTuple):
    """Work arrays for the documents of the queries asked for, one query after the other.

    Attributes
    ----------
    starts : array of int
        Where the documents of each query asked for begin, and their number in all last.
    scores : array
        Scores of the documents, in the order of the data.
    order : array of int
        Documents by falling score, those of equal scores in the order of the data, counted from
        the beginning of the query; later those of the ranking that was found.
    counts : array
        See above.
    tree, spare : array of int
        For sums over grades, and to sort.
    """

    starts: Ints
    scores: Floats
    order: Ints
    counts: Floats
    tree: Ints
    spare: Ints


def make_ranked(queries: Queries, examples: Ints) -> Ranked:
    """Work arrays for these queries."""
    sizes = queries.offsets[examples + 1] - queries.offsets[examples]
    starts = np.zeros(len(examples) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    n, longest = starts[-1], sizes.max(initial=0)
    return Ranked(
        starts,
        np.empty(n),
        np.empty(n, np.int64),
        np.empty(n),
        np.empty(longest + 1, np.int64),
        np.empty(longest, np.int64),
    )


def grades_of(relevance: Floats, offsets: Ints) -> tuple[Ints, Ints]:
    """Grades of all documents, and the number of grades of each query."""
    grades, n_grades = np.zeros(len(relevance), np.int64), np.zeros(len(offsets) - 1, np.int64)
    if len(relevance):
        query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        order = np.lexsort((relevance, query))
        sorted_query, sorted_relevance = query[order], relevance[order]
        new_query = np.diff(sorted_query, prepend=-1) != 0
        steps = np.diff(sorted_relevance, prepend=sorted_relevance[:1]) != 0.0
        levels = np.cumsum(steps & ~new_query)
        grades[order] = levels - levels[new_query][np.cumsum(new_query) - 1]
        np.maximum.at(n_grades, query, grades + 1)
    return grades, n_grades


def pairs_of(grades: Ints, offsets: Ints) -> Floats:
    """Number of pairs of different grades in each query."""
    sizes = np.diff(offsets)
    query = np.repeat(np.arange(len(sizes)), sizes)
    step = int(grades.max(initial=0)) + 1
    groups, numbers = np.unique(query * step + grades, return_counts=True)
    alike = np.bincount(groups // step, numbers * (numbers - 1.0) / 2.0, len(sizes))
    pairs: Floats = sizes * (sizes - 1.0) / 2.0 - alike
    return pairs


def weight_of_pairs(grades: Ints, weights: Floats) -> float:
    """Sum over the pairs of different grades of one query, which count the product of weights."""
    of_grades = np.bincount(grades, weights)
    return float(of_grades[1:] @ np.cumsum(of_grades)[:-1])


@kernel(allocates=False)
def score_documents(queries, examples, w, ranked):
    """Scores of all documents of the listed queries."""
    rows = queries.rows
    for q in range(len(examples)):
        first, start = queries.offsets[examples[q]], ranked.starts[q]
        m = ranked.starts[q + 1] - start
        scores = ranked.scores[start : start + m]
        if rows.dense.shape[0] > 0:
            for d in range(m):
                x = rows.dense[first + d]
                total = 0.0
                for f in range(rows.n_columns):
                    total += x[f] * w[f]
                scores[d] = total
        else:
            for d in range(m):
                total = 0.0
                for e in range(rows.indptr[first + d], rows.indptr[first + d + 1]):
                    total += rows.values[e] * w[rows.indices[e]]
                scores[d] = total


@kernel(allocates=False)
def sort_documents(ranked):
    """The order of documents whose scores are known; see `Ranked`."""
    for q in range(len(ranked.starts) - 1):
        start, end = ranked.starts[q], ranked.starts[q + 1]
        _sort(ranked.scores[start:end], ranked.order[start:end], ranked.spare)


@kernel(allocates=False)
def _sort(scores, order, spare):
    """Order by falling scores, stably: runs by insertion, which are then merged."""
    m = len(order)
    for d in range(m):
        order[d] = d
    for first in range(0, m, RUN):
        for k in range(first + 1, min(first + RUN, m)):
            d = order[k]
            place = k
            while place > first and scores[order[place - 1]] < scores[d]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = d
    width = RUN
    while width < m:
        for first in range(0, m - width, 2 * width):
            middle, end = first + width, min(first + 2 * width, m)
            if scores[order[middle - 1]] >= scores[order[middle]]:
                continue  # in order already
            for k in range(first, middle):
                spare[k] = order[k]
            left, right = first, middle
            for k in range(first, end):
                if left == middle:
                    break
                if right < end and scores[order[right]] > scores[spare[left]]:
                    order[k] = order[right]
                    right += 1
                else:
                    order[k] = spare[left]
                    left += 1
        width *= 2


# ----- counting over grades: a Fenwick tree, whose node g has grades g - (g & -g) .. g - 1 --------


@kernel(inline=True)
def clear_tree(tree, n_grades):
    """No documents."""
    for g in range(n_grades + 1):
        tree[g] = 0


@kernel(inline=True)
def add_grade(tree, n_grades, grade, amount):
    """One more document of this grade, that counts so much."""
    g = grade + 1
    while g <= n_grades:
        tree[g] += amount
        g += g & -g


@kernel(inline=True)
def count_below(tree, grade):
    """Documents of lower grades."""
    total = tree[0]  # which is zero
    g = grade
    while g > 0:
        total += tree[g]
        g -= g & -g
    return total


@kernel(allocates=False)
def count_swaps(order, grades, n_grades, tree, counts):
    """The counts of a ranking of one query."""
    clear_tree(tree, n_grades)
    m = len(order)
    for place in range(m):  # worse documents before it
        grade = grades[order[place]]
        counts[order[place]] = count_below(tree, grade)
        add_grade(tree, n_grades, grade, np.int64(1))
    clear_tree(tree, n_grades)
    for place in range(m - 1, -1, -1):  # better documents behind it
        grade = grades[order[place]]
        counts[order[place]] -= m - 1 - place - count_below(tree, grade + 1)
        add_grade(tree, n_grades, grade, np.int64(1))


@kernel(allocates=False)
def write_planes(queries, examples, ranked, row, touched, out):
    """Rows of dpsi from the counts of the documents.

    ``row`` has a zero for each feature, and is left so; ``touched`` has space for as many numbers
    as a query has entries.
    """
    rows, dense = queries.rows, queries.rows.dense.shape[0] > 0
    filled = 0
    for q in range(len(examples)):
        first, start = queries.offsets[examples[q]], ranked.starts[q]
        n_touched = 0
        for d in range(ranked.starts[q + 1] - start):
            count = ranked.counts[start + d]
            if count == 0.0:
                continue
            step = queries.units[examples[q]] * count
            if dense:
                x = rows.dense[first + d]
                for f in range(rows.n_columns):
                    row[f] += step * x[f]
                n_touched = rows.n_columns
            else:
                for e in range(rows.indptr[first + d], rows.indptr[first + d + 1]):
                    f = rows.indices[e]
                    if row[f] == 0.0:  # once more, if a sum on the way is zero: written once
                        touched[n_touched] = f
                        n_touched += 1
                    row[f] += step * rows.values[e]
        for k in range(n_touched):
            f = k if dense else np.int64(touched[k])
            if row[f] != 0.0:
                out.indices[filled] = f
                out.values[filled] = row[f]
                filled += 1
                row[f] = 0.0
        out.indptr[q + 1] = filled
