"""What training on a cluster takes: a model with measured constants, and its simulation.

A round sends w to K workers, lets each go over its part of the tokens, gathers a plane and a point
of each, and solves a QP over the points. With the constants below, of tokens, bytes and seconds,

    work      tokens / K * seconds_per_token + weights * seconds_per_weight, times a delay
              of the worker's own
    send      w through a tree of workers:   ceil(log2(K + 1)) * bytes_of_w / bandwidth
    gather    all answers to the driver:     K * bytes_of_answer(tokens / K) / bandwidth
    combine   products of new points with all that are kept, and the QP
    ask       a message to each worker and back, through the scheduler

and the number of rounds grows with the number of parts as measured, by a power of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from maxmargin.cluster.ascent import MOST, MOST_OF_ALL

Rng = np.random.Generator


@dataclass(frozen=True)
class Constants:
    """What was measured, and of what the cluster is assumed to be made.

    Parameters
    ----------
    rounds, rounds_power : float
        Rounds with one part, and the power of K by which they grow.
    seconds_per_token, seconds_per_weight : float
        Of a worker's round; the latter for vectors that are as long as w.
    n_weights : int
        Length of w.
    entries, entries_power : float
        Entries of a part's vector: ``entries * tokens ** entries_power``, at most `n_weights`.
    gather_seconds, write_seconds, multiply_seconds : float
        Of the driver's products of vectors: an entry that is gathered, or written out for a product
        of matrices, and a multiplication there (`maxmargin.cluster.shard.products`).
    qp_seconds, qp_power : float
        Of the QP over m points: ``qp_seconds * m ** qp_power``.
    ask_seconds : float
        Of a question to one worker, at the driver and the scheduler.
    bandwidth : float
        Bytes a second of a machine.
    spread : float
        Standard deviation of the logarithm of a worker's delay.
    stalls, stall_seconds : float
        Probability that a worker stalls in a round, and for how long on average.
    timeout : float
        Seconds after which the others go on without the late ones.
    """

    rounds: float
    rounds_power: float
    seconds_per_token: float
    seconds_per_weight: float
    n_weights: int
    entries: float
    entries_power: float
    gather_seconds: float
    write_seconds: float
    multiply_seconds: float
    qp_seconds: float
    qp_power: float
    ask_seconds: float
    bandwidth: float = 1.25e9
    spread: float = 0.2
    stalls: float = 1e-4
    stall_seconds: float = 600.0
    timeout: float = 60.0


@dataclass
class Estimate:
    """A training as the model has it; seconds are those of one round, but for ``hours``."""

    workers: int
    rounds: float
    work: float
    waiting: float
    send: float
    gather: float
    combine: float
    ask: float
    gigabytes: float  # sent and received by the driver, in a round
    memory: float  # of the points that the driver keeps, in gigabytes
    hours: float

    @property
    def efficiency(self) -> float:
        """Share of the workers' time that is work."""
        return self.work * self.rounds / (3600.0 * self.hours)


def estimate(constants: Constants, workers: int, tokens: float, rng: Rng) -> Estimate:
    """Draw the delays of every worker in every round, and add up."""
    c = constants
    rounds = max(1, round(c.rounds * workers**c.rounds_power))
    share = tokens / workers
    entries = min(c.entries * share**c.entries_power, float(c.n_weights))
    answer = 2.0 * min(12.0 * entries, 8.0 * c.n_weights)
    kept = min(MOST, max(2, MOST_OF_ALL // workers)) * workers
    send = math.ceil(math.log2(workers + 1)) * 8.0 * c.n_weights / c.bandwidth
    gather = workers * answer / c.bandwidth
    new = 2 * workers
    one_by_one = new * kept * entries * c.gather_seconds
    by_blocks = (new + kept) * entries * c.write_seconds
    by_blocks += new * kept * c.n_weights * c.multiply_seconds
    combine = min(one_by_one, by_blocks) + c.qp_seconds * kept**c.qp_power
    ask = workers * c.ask_seconds
    work = share * c.seconds_per_token + c.n_weights * c.seconds_per_weight
    waits = [_slowest(c, work, workers, rng) - work for _ in range(rounds)]
    waiting = float(np.mean(waits))
    seconds = rounds * (work + waiting + send + gather + combine + ask)
    gigabytes = (8.0 * c.n_weights + workers * answer) / 1e9
    memory = kept * 0.5 * answer / 1e9
    shards = (work, waiting, send, gather, combine, ask)
    return Estimate(workers, rounds, *shards, gigabytes, memory, seconds / 3600.0)


def _slowest(c: Constants, work: float, workers: int, rng: Rng) -> float:
    """When a round goes on: all answers are there, or the rest is late (`DaskExecutor`)."""
    took = work * np.exp(c.spread * rng.normal(size=workers))
    stalled = rng.random(workers) < c.stalls
    took[stalled] += rng.exponential(c.stall_seconds, int(stalled.sum()))
    took.sort()
    for answered, following in pairwise(took.tolist()):
        patience = max(c.timeout, 3.0 * answered)
        if following > patience:
            return patience
    return float(took[-1])


def power_law(x: list[float], y: list[float]) -> tuple[float, float]:
    """Factor and power of the line through points in logarithms."""
    power, log_factor = np.polyfit(np.log(x), np.log(y), 1)
    return float(np.exp(log_factor)), float(power)
