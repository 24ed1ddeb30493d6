"""Certificates that come from a file are computed again, as far as they can be.

The primal value follows from the weights by a pass of true oracle calls, the dual value from
multipliers and planes. Whether planes are those of outputs cannot be decided in general, but none
is above what the oracle finds at any weights. So all planes are compared with it at the weights of
the certificate, and some of them where they are highest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy

import numpy as np

from ...core.formulation import Formulation
from ...core.problem import Problem
from ...utils.types import Floats, Ints
from ..accelerators import AdaptiveFeatures
from ..oracle import Oracle
from ..parallel.threads import count_threads
from .state import DRIFT, StoredPlanes, feature_arrays, restore_features

__all__ = [
    "check_dual",
    "check_oracle",
    "check_planes",
    "check_primal",
    "check_value",
    "hinge_values",
    "hinges_of",
    "passive_oracle",
    "probes",
]

ABOVE = 1e-6  # by so much, relatively, rounding may take a plane above the oracle's value
PROBES = 200  # planes that the oracle is asked about one by one, if there are as many examples
MORE = 1e6  # rounding that answers at other weights may have met, as a multiple of the last ones'


def check_dual(claimed: float, dual: float) -> None:
    """Raise ValueError where a dual value is more than that of the multipliers as they are."""
    if not claimed <= dual + DRIFT * max(1.0, abs(dual)):
        raise ValueError(f"the dual value of its multipliers is {dual:.6g}, not {claimed:.6g}")


def check_primal(claimed: float, primal: float) -> None:
    """Raise ValueError where a primal value is not that of the weights."""
    tolerance = DRIFT * max(
        1.0, min(primal, claimed)
    )  # of a missed hard margin, primal is infinite
    if primal != claimed and not abs(primal - claimed) <= tolerance:
        raise ValueError(f"the primal value of its weights is {primal:.6g}, not {claimed:.6g}")


def check_oracle(restored: Oracle, asked: Oracle) -> None:
    """Raise ValueError where an oracle has other bounds, or rounding, than its answers say."""
    if not asked.certifies or not 0.0 <= restored.rounding <= MORE * asked.rounding:
        raise ValueError("bounds: expected those that the oracle gives")


def passive_oracle(oracle: Oracle) -> Oracle:
    """An equal oracle, whose answers leave no trace in this one."""
    problem, passive = oracle.problem, copy(oracle)
    if isinstance(problem, AdaptiveFeatures):  # what it finds would be found earlier than before
        again = problem.before_training()
        restore_features(again, feature_arrays(problem))
        passive = Oracle(again, oracle.formulation)
    passive.bounds, passive.rounding = None, 0.0
    return passive


def check_planes(planes: StoredPlanes, hinges: Floats) -> None:
    """Raise ValueError where a plane is above the oracle's value, at the same weights."""
    example, values, offsets, _, sums = planes
    most = hinges[example] if sums is None else np.full(len(values), float(sums @ hinges))
    excess = values - most - ABOVE * (1.0 + np.abs(offsets) + np.abs(offsets - values))
    if not (excess <= 0.0).all():
        worst = int(np.argmax(excess))
        check_value(float(values[worst]), float(most[worst]))


def check_value(value: float, most: float) -> None:
    """Raise ValueError where the value of a plane is above the oracle's."""
    if not value <= most:
        raise ValueError(
            f"a plane has value {value:.6g} where the oracle finds no more than {most:.6g}"
        )


def probes(
    planes: StoredPlanes,
    oracle: Oracle,
    w: Floats,
    hinges: Floats,
    expanded: Callable[[Floats], Floats],
) -> Iterator[tuple[float, float]]:
    """Values of some planes where they are highest, and what they may be there.

    From w on, each plane rises fastest against its own direction. Planes are drawn by chance; a
    pass has as many calls of the oracle, or more. ``expanded`` makes weights of all features.
    """
    example, values, offsets, vector, sums = planes
    n, feasible_set = len(hinges), oracle.feasible_set
    chosen = np.random.default_rng(0).permutation(len(values))
    for k in chosen[: min(PROBES, n) if sums is None else 1].tolist():
        a = vector(k)
        square = float(a @ a)
        if square == 0.0:
            continue
        asked = example[k : k + 1] if sums is None else np.arange(n)
        weights = np.ones(1) if sums is None else sums
        below = max(float(weights @ hinges[asked]) - float(values[k]), 0.0)
        there = -(1.0 + 2.0 * below) / square * a
        there[: len(w)] += w  # which may be short of the newest features
        if feasible_set is not None:
            there[feasible_set.bounded] = np.clip(
                there[feasible_set.bounded], feasible_set.low, feasible_set.high
            )
        most = float(weights @ hinges_of(oracle, asked, expanded(there)))
        scale = 1.0 + abs(float(offsets[k])) + float(np.abs(a) @ np.abs(there))
        yield float(offsets[k]) - float(a @ there), most + ABOVE * scale


def hinges_of(oracle: Oracle, examples: Ints, w: Floats) -> Floats:
    """Hinge values of some examples at w, or bounds on them where the oracle gives some."""
    values = np.empty(len(examples))
    place = 0
    for some, found, _ in oracle._measured(examples, w):
        values[place : place + len(some)] = found
        place += len(some)
    bounds = -np.inf if oracle.bounds is None else oracle.bounds[examples]
    return np.maximum(np.maximum(values, 0.0), bounds)


def hinge_values(
    problem: Problem, formulation: Formulation, w: Floats, n_jobs: int | None = None
) -> Floats:
    """Slacks ``xi_i`` at ``w``, by one true oracle call for each example, or bounds on them."""
    oracle = Oracle(problem, formulation)
    with oracle.in_threads(count_threads(n_jobs)):
        return oracle.bounded(oracle.violations(oracle.change(w)).hinges)
