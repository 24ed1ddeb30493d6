"""How much candidates violate: hinge values of answers, and of all examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..core.formulation import Formulation
from ..core.problem import Problem
from ..utils.types import Floats, Ints
from .parallel.threads import count_threads

if TYPE_CHECKING:
    from .oracle import Oracle, OracleResult

__all__ = ["Violations", "batches", "hinge_values", "hinges_of", "violations"]


class Violations(NamedTuple):
    """Values ``b - <a, w>`` of planes at some weights, and their offsets b."""

    values: Floats
    offsets: Floats

    @property
    def hinges(self) -> Floats:
        """The slacks: values, or 0 where those are negative."""
        return np.maximum(self.values, 0.0)


def violations(oracle_result: OracleResult, w: Floats) -> Floats:
    """Values ``b - <a, w>`` of an answer's planes, which are in features, at ``w``."""
    planes, offsets, scales = oracle_result
    products = planes.values * w[planes.indices]
    row_of = np.repeat(np.arange(len(planes.losses)), np.diff(planes.indptr))
    return offsets - scales * np.bincount(row_of, products, minlength=len(planes.losses))


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
    from .oracle import Oracle  # which imports this module

    oracle = Oracle(problem, formulation)
    with oracle.in_threads(count_threads(n_jobs)):
        return oracle.bounded(oracle.violations(oracle.change(w)).hinges)


def batches(examples: Ints, size: int) -> Iterator[Ints]:
    """Consecutive pieces of ``examples``."""
    for start in range(0, len(examples), size):
        yield examples[start : start + size]
