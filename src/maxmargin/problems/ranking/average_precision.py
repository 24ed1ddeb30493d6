"""The most violated ranking for the loss 1 - average precision (Yue et al. 2007, SVM-map).

Problem solved, for one query with a relevant and b other documents, both in the order of their
scores: place the others among the relevant ones. With o_j relevant documents before other j, the
loss and the score are sums over j (Yue et al., Sec. 4.2): other j before relevant l takes

    t_j(l) = (1 / a) (l / (l + j - 1) - l / (l + j)) + unit (s_j - s_l)        l > o_j

of which the sum over all l > o_j, F_j(o_j), is to be largest. Each j can be placed by itself:
t_j(l) falls with j, so F_{j+1}(o) - F_j(o) rises with o, and the best o_j (the first, of equal
ones) never falls from one j to the next. For the same reason the best place of the middle j bounds
those of all others, so they are found by halving in O((a + b) log b). F_j(o) takes one step, by
sums of scores and harmonic numbers H:

    sum of l / (l + j - 1) - l / (l + j) over l = o + 1 .. a
        = j (H_{a+j} - H_{o+j}) - (j - 1) (H_{a+j-1} - H_{o+j-1})
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._jit import kernel
from ...types import Floats, Ints
from .queries import Queries, Ranked, count_swaps

__all__ = ["find_by_average_precision"]


class Placing(NamedTuple):
    """Work arrays for one query.

    Attributes
    ----------
    documents : array of int
        The relevant documents by falling score, then the others.
    sums : array
        Sums of the scores of the first relevant documents, from 0 on.
    harmonic : array
        Harmonic numbers, from 0 on.
    before : array of int
        Relevant documents before each of the others.
    jobs : array of int of shape (n, 4)
        Ranges of others left to be placed, and the ranges of what is before them.
    """

    documents: Ints
    sums: Floats
    harmonic: Floats
    before: Ints
    jobs: Ints


def find_by_average_precision(
    queries: Queries, examples: Ints, ranked: Ranked, losses: Floats
) -> None:
    """Order, counts and losses of the most violated ranking of each listed query."""
    longest = int(np.diff(ranked.starts).max(initial=0))
    harmonic = np.zeros(longest + 1)
    np.cumsum(1.0 / np.arange(1, longest + 1), out=harmonic[1:])
    work = Placing(
        np.empty(longest, np.int64),
        np.empty(longest + 1),
        harmonic,
        np.empty(longest, np.int64),
        np.empty((70, 4), np.int64),  # halves of halves: one is left for each halving
    )
    _rank_by_precision(queries, examples, ranked, work, losses)


@kernel(allocates=False)
def _rank_by_precision(queries, examples, ranked, work, losses):
    """See `find_by_average_precision`."""
    for r in range(len(examples)):
        q, start = examples[r], ranked.starts[r]
        first, m = queries.offsets[q], ranked.starts[r + 1] - start
        losses[r] = 0.0
        if queries.units[q] == 0.0:
            ranked.counts[start : start + m] = 0.0
            continue
        scores, order = ranked.scores[start : start + m], ranked.order[start : start + m]
        grades = queries.grades[first : first + m]
        n_relevant = 0
        for d in range(m):
            n_relevant += grades[d]
        _place_others(scores, order, grades, n_relevant, queries.units[q], work)
        missed, seen = 0.0, 0
        for place in range(m):
            if grades[order[place]] == 1:
                seen += 1
                missed += (place + 1.0 - seen) / (place + 1.0)
        losses[r] = missed / n_relevant
        count_swaps(order, grades, 2, ranked.tree, ranked.counts[start : start + m])


@kernel(allocates=False)
def _place_others(scores, order, grades, a, unit, work):
    """Put the best ranking of one query in the place of its order by score."""
    documents, sums, before, jobs = work.documents, work.sums, work.before, work.jobs
    b = len(order) - a
    n_relevant, n_others = 0, 0
    sums[0] = 0.0
    for d in order:
        if grades[d] == 1:
            documents[n_relevant] = d
            sums[n_relevant + 1] = sums[n_relevant] + scores[d]
            n_relevant += 1
        else:
            documents[a + n_others] = d
            n_others += 1
    n_jobs = _add_job(jobs, 0, 0, b, 0, a)
    while n_jobs > 0:
        n_jobs -= 1
        low, high, least, most = jobs[n_jobs, 0], jobs[n_jobs, 1], jobs[n_jobs, 2], jobs[n_jobs, 3]
        middle = (low + high) // 2
        best = _best_place(middle + 1, scores[documents[a + middle]], least, most, a, unit, work)
        before[middle] = best
        if low < middle:
            n_jobs = _add_job(jobs, n_jobs, low, middle, least, best)
        if middle + 1 < high:
            n_jobs = _add_job(jobs, n_jobs, middle + 1, high, best, most)
    j = 0
    for k in range(a + 1):
        while j < b and before[j] == k:
            order[k + j] = documents[a + j]
            j += 1
        if k < a:
            order[k + j] = documents[k]


@kernel(inline=True)
def _add_job(jobs, n_jobs, low, high, least, most):
    """Others low..high - 1 are to be placed behind least..most relevant documents."""
    jobs[n_jobs, 0], jobs[n_jobs, 1], jobs[n_jobs, 2], jobs[n_jobs, 3] = low, high, least, most
    return n_jobs + 1


@kernel(allocates=False)
def _best_place(j, score, least, most, a, unit, work):
    """The first o in least..most with the largest F_j(o); ``score`` is that of other j."""
    harmonic, sums = work.harmonic, work.sums
    best, largest = least, -np.inf
    for o in range(least, most + 1):
        loss = j * (harmonic[a + j] - harmonic[o + j])
        loss -= (j - 1) * (harmonic[a + j - 1] - harmonic[o + j - 1])
        value = loss / a + unit * ((a - o) * score - (sums[a] - sums[o]))
        if value > largest:
            best, largest = o, value
    return best
