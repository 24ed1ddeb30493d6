"""Passes over the blocks of a multiclass dual in threads: shares, each with weights of its own.

K threads begin at the same w, and each visits examples of its own, one after the other. In its
weights a step counts K times, and so does the square of x in a block's curvature: thread k solves

    max  <b, alpha> - <w, d_k> - K/2 |d_k|^2,   d_k = the change of w by its own multipliers.

Since ``|d_1 + ... + d_K|^2 <= K (|d_1|^2 + ... + |d_K|^2)``, all steps together gain at least what
the threads have gained by themselves, however alike their examples are (CoCoA+ with sigma' = K and
gamma = 1, Ma et al. 2015): nothing has to be taken back. The weights of thread k end at
``w + K d_k``, so the new w is their mean; half their mean squared distance from it is gained in
addition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from ...engine.parallel.threads import Threads
from ...engine.rows import Rows
from ...utils.types import Floats
from .class_passes import ClassBlocks, ClassLists, Scratch

__all__ = [
    "CERTIFIED",
    "Shard",
    "average",
    "blocks_of",
    "in_threads",
    "least_shard",
    "lists_of",
    "rows_of",
    "shards_that_pay",
    "stepping_shards",
]

Value = TypeVar("Value")

# In nanoseconds; see `shards_that_pay`.
SYNCHRONIZATION = 1e5  # to give work to a thread and to wait for it
AVERAGED = 3.0  # a weight of a share, which is copied, averaged and compared
PAYS = 4.0  # times what sharing costs that a thread has to do, at least
# Steps in shares take more passes, by a fifth or two: shares have to be longer by this factor. Of
# cheap visits the time goes to choosing and ordering examples, which one thread does.
STEPS_PAY, CHEAP_VISIT = 3.0, 400.0
LEAST_SHARD = 16384  # examples of a share, where there are as many
LEAST_TIME = 4e6  # and the time for them
LONG = 50_000  # weights from which on they are averaged in threads
CERTIFIED = 2  # times the batch of one thread that each has where weights stand still


class Shard(NamedTuple):
    """What a thread has for itself."""

    weights: Floats
    dual: Floats
    scratch: Scratch


def shards_that_pay(threads: Threads | None, work: float, n_weights: int = 0) -> int:
    """Into how many shares some work is cut, where so many weights are averaged afterwards."""
    if threads is None:
        return 1
    cost = SYNCHRONIZATION + AVERAGED * n_weights
    return max(1, min(threads.count, int(work / (PAYS * cost))))


def stepping_shards(
    threads: Threads | None, n_visits: int, visit_time: float, n_weights: int
) -> int:
    """The same for visits with steps, after which so many weights are averaged."""
    if visit_time < CHEAP_VISIT:
        return 1
    return shards_that_pay(threads, n_visits * visit_time / STEPS_PAY, n_weights)


def least_shard(visit_time: float) -> int:
    """Examples that a share should have, if there are as many."""
    return max(LEAST_SHARD, int(LEAST_TIME / visit_time))


def in_threads(
    threads: Threads | None, n: int, count: int, work: Callable[[int, int, int], Value]
) -> list[Value]:
    """What ``work(k, first, end)`` gives for each of ``count`` ranges that make up n."""
    if count == 1 or threads is None:
        return [work(0, 0, n)]
    ranges = [(k, n * k // count, n * (k + 1) // count) for k in range(count)]
    return threads.each(lambda own: work(*own), ranges, work.__code__)


def average(threads: Threads | None, shards: list[Shard], w: Floats) -> float:
    """Make w the mean of the shares' weights; returns the sum of their squared distances from it.

    The weights of the shares are used up.
    """

    def of_range(_: int, first: int, end: int) -> float:
        mean = w[first:end]
        rows = [shard.weights[first:end] for shard in shards]
        np.add(rows[0], rows[1], out=mean)
        for row in rows[2:]:
            mean += row
        mean *= 1.0 / len(rows)
        distance = 0.0
        for row in rows:
            row -= mean
            distance += float(row @ row)
        return distance

    return sum(in_threads(threads, len(w), len(shards) if len(w) >= LONG else 1, of_range))


def rows_of(rows: Rows, first: int, end: int) -> Rows:
    """Rows ``first`` to ``end - 1``."""
    if rows.dense.shape[0]:
        return rows._replace(dense=rows.dense[first:end])
    return rows._replace(indptr=rows.indptr[first : end + 1])


def lists_of(lists: ClassLists, first: int, end: int) -> ClassLists:
    """The lists of examples ``first`` to ``end - 1``."""
    classes, alpha, before, counts, moved = lists
    own = slice(first, end)
    return ClassLists(classes[own], alpha[own], before[own], counts[own], moved[own])


def blocks_of(blocks: ClassBlocks, first: int, end: int) -> ClassBlocks:
    """The blocks of examples ``first`` to ``end - 1``, which get numbers from 0 on."""
    terms = blocks.terms
    return blocks._replace(
        rows=rows_of(blocks.rows, first, end),
        labels=blocks.labels[first:end],
        squares=blocks.squares[first:end],
        terms=terms._replace(rows=terms.rows[first:end]),
        lists=lists_of(blocks.lists, first, end),
        upper_bounds=blocks.upper_bounds[first:end],
        ridges=blocks.ridges[first:end],
    )
