"""Passes over the blocks of a multiclass dual in threads: shares, each with weights of its own.

K threads begin at the same w, and each visits examples of its own, one after the other. In its
weights a step counts K times, and so does the square of x in a block's curvature: thread k solves

    max  <b, alpha> - <w, d_k> - K/2 |d_k|^2,   d_k = the change of w by its own multipliers.

Since ``|d_1 + ... + d_K|^2 <= K (|d_1|^2 + ... + |d_K|^2)``, all steps together gain at least what
the threads have gained by themselves, however alike their examples are (CoCoA+ with sigma' = K and
gamma = 1, Ma et al. 2015): nothing has to be taken back. A thread's weights end at ``w + K d_k``, so
the new w is their mean, and half their mean squared distance from it is gained in addition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from ...engine.threads import Threads
from ...types import Floats
from .class_visits import ClassBlocks, Scratch

__all__ = ["Share", "average", "blocks_of", "even_cuts", "in_threads", "shares_that_pay"]

Value = TypeVar("Value")

# In nanoseconds; see `shares_that_pay`.
HAND_OVER = 5e4  # to give work to a thread and to wait for it
AVERAGED = 3.0  # a weight of a share, which is copied, averaged and compared
PAYS = 4.0  # times what sharing costs that a thread has to do
LONG = 50_000  # weights from which on they are averaged in threads


class Share(NamedTuple):
    """What a thread has for itself."""

    weights: Floats
    dual: Floats
    scratch: Scratch


def shares_that_pay(threads: Threads | None, work: float, n_weights: int = 0) -> int:
    """Into how many shares some work is cut, where so many weights are averaged afterwards."""
    if threads is None:
        return 1
    cost = HAND_OVER + AVERAGED * n_weights
    return max(1, min(threads.count, int(work / (PAYS * cost))))


def even_cuts(n: int, count: int) -> list[tuple[int, int]]:
    """First and end of ``count`` ranges that make up n, as long as each other."""
    cuts = [n * k // count for k in range(count + 1)]
    return list(zip(cuts[:-1], cuts[1:], strict=True))


def in_threads(
    threads: Threads | None, n: int, count: int, work: Callable[[int, int, int], Value]
) -> list[Value]:
    """What ``work(k, first, end)`` gives for each of ``count`` ranges that make up n."""
    ranges = even_cuts(n, count)
    if count == 1 or threads is None:
        return [work(0, 0, n)]
    return list(threads.map(lambda k: work(k, *ranges[k]), range(count)))


def average(threads: Threads | None, shares: list[Share], w: Floats) -> float:
    """Make w the mean of the shares' weights; returns the sum of their squared distances from it.

    The weights of the shares are used up.
    """

    def of_range(_: int, first: int, end: int) -> float:
        mean = w[first:end]
        rows = [share.weights[first:end] for share in shares]
        np.add(rows[0], rows[1], out=mean)
        for row in rows[2:]:
            mean += row
        mean *= 1.0 / len(rows)
        distance = 0.0
        for row in rows:
            row -= mean
            distance += float(row @ row)
        return distance

    return sum(in_threads(threads, len(w), len(shares) if len(w) >= LONG else 1, of_range))


def blocks_of(blocks: ClassBlocks, first: int, end: int) -> ClassBlocks:
    """The blocks of examples ``first`` to ``end - 1``, which get numbers from 0 on."""
    rows, terms = blocks.rows, blocks.terms
    if rows.dense.shape[0]:
        rows = rows._replace(dense=rows.dense[first:end])
    else:
        rows = rows._replace(indptr=rows.indptr[first : end + 1])
    return blocks._replace(
        rows=rows,
        labels=blocks.labels[first:end],
        squares=blocks.squares[first:end],
        terms=terms._replace(rows=terms.rows[first:end]),
        lists=type(blocks.lists)(*(array[first:end] for array in blocks.lists)),
        caps=blocks.caps[first:end],
        ridges=blocks.ridges[first:end],
    )
