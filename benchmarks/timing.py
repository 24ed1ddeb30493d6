"""How things are timed: CPU and wall seconds, without compilation, contestants taking turns.

The machine's speed drifts, so contestants run one after the other in every repeat, and a ratio is
taken within a repeat before the median is taken over repeats.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from statistics import median
from typing import NamedTuple, TypeVar

from numba.core.event import install_timer

T = TypeVar("T")
Measures = dict[str, float]


class Timing(NamedTuple):
    """Seconds of one call; ``jit`` is the part that went into compiling or loading kernels."""

    cpu: float
    wall: float
    jit: float


def timed(call: Callable[[], T]) -> tuple[T, Timing]:
    """Call and time."""
    spent: list[float] = []
    with install_timer("numba:compiler_lock", spent.append):
        wall, cpu = time.perf_counter(), time.process_time()
        value = call()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return value, Timing(cpu, wall, sum(spent))


def timed_without_jit(call: Callable[[], T], tolerance: float = 0.01) -> tuple[T, Timing]:
    """Call and time; once more if kernels were compiled or loaded in the first call."""
    value, timing = timed(call)
    return (value, timing) if timing.jit <= tolerance else timed(call)


def medians(runs: Iterable[Measures]) -> Measures:
    """Median of each measure over the runs that have it."""
    columns: dict[str, list[float]] = {}
    for run in runs:
        for name, value in run.items():
            columns.setdefault(name, []).append(value)
    return {name: float(median(values)) for name, values in columns.items()}


def median_ratio(own: list[Measures], measure: str, other: list[Measures], by: str) -> float:
    """Median over the repeats of one contestant's measure divided by another's."""
    return float(median(a[measure] / b[by] for a, b in zip(own, other, strict=False)))
