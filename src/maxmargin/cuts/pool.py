"""Candidate pools: the planes that are known of each example, and their values at any weights.

The one-slack solver builds its aggregated planes from a pool. `CandidatePool` serves any problem:
it keeps the f most recently used candidates of each example (Joachims et al. 2009, sec. 4). A
problem whose outputs can all be listed may bring a pool of its own that knows them all
(`Problem.complete_pool`); its values are then those of the oracle.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..formulation import Formulation
from ..parts import single_weights
from ..planes import same_definer
from ..problem import Problem, validate_planes
from .pool_kernels import (
    EMPTY,
    add_chosen,
    admit_candidates,
    compact_candidates,
    score_candidates,
)

__all__ = ["CandidatePool", "Pool", "make_pool"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BATCH = 512  # examples per oracle call


class Pool(Protocol):
    """Candidates of all examples, in a table of one row per example.

    A table holds hinge values ``b - <a, w>`` at some weights; a column is a slot for a candidate.
    """

    problem: Any
    formulation: Formulation
    #: Whether the pool knows every candidate, so that `values` is a pass of true oracle calls.
    complete: bool

    def values(self, w: Floats) -> Floats:
        """Table of the candidates' values at ``w``."""

    def ask(self, w: Floats, count: Callable[[int], None]) -> tuple[Floats, Ints]:
        """One true oracle call for each example at ``w``: the hinge values, and the slots chosen.

        Slots are -1 where nothing beats the truth. ``count`` is told of the calls.
        """

    def add_up(self, chosen: Ints, weights: Floats, plane: Floats) -> float:
        """Add the chosen candidates, weighted, to ``plane``; returns their weighted offsets."""


def make_pool(problem: Problem, formulation: Formulation, size: int, cache_bytes: int) -> Pool:
    """Return the problem's own complete pool, or the general one."""
    complete = getattr(problem, "complete_pool", None)  # problems may be duck-typed
    pool = complete(formulation) if complete is not None else None
    return pool or CandidatePool(problem, formulation, size, cache_bytes)


class Slots(NamedTuple):
    """Candidates by example and slot; their entries name local parts, listed in ``features``."""

    start: Ints
    length: Ints
    offset: Floats
    last_used: Ints
    ids: NDArray[np.int32]
    values: Floats
    features: NDArray[np.int32]


class CandidatePool:
    """The most recently used candidates of each example, in parts; see `Pool` for the methods.

    Parameters
    ----------
    problem : Problem
        Where candidates come from.
    formulation : Formulation
        Turns the oracle's answers into planes.
    size : int
        Candidates kept of each example.
    cache_bytes : int
        Budget for the candidates' entries. Where it is short, those not used for longest go first.
    """

    complete = False

    def __init__(
        self, problem: Problem, formulation: Formulation, size: int, cache_bytes: int
    ) -> None:
        n = problem.n_examples
        self.problem = problem
        self.formulation = formulation
        self.trusted = bool(getattr(problem, "trusted", False))
        self.cache_bytes = cache_bytes
        layout = getattr(problem, "parts", None)
        if layout is not None and not same_definer(problem, "oracle", "part_oracle"):
            layout = None  # a subclass has its own oracle: ask that one
        self.parts = layout if layout is not None else single_weights(int(problem.n_features or 0))
        self._ask = problem.oracle if layout is None else problem.part_oracle
        shape = (n, max(1, size))
        self.slots = Slots(
            np.zeros(shape, np.int64),
            np.zeros(shape, np.int64),
            np.zeros(shape),
            np.full(shape, -1),
            np.empty(16 * n + 1024, np.int32),
            np.empty(16 * n + 1024),
            np.empty(16 * n + 1024, np.int32),
        )
        self.used = np.zeros(2, np.int64)  # entries, local parts
        self.place = np.zeros(self.parts.n_parts, np.int32)
        self.clock = 0
        self._warned = False

    @property
    def nbytes(self) -> int:
        """Bytes of the entries."""
        return self.slots.ids.nbytes + self.slots.values.nbytes + self.slots.features.nbytes

    def values(self, w: Floats) -> Floats:
        """Table of the candidates' values at ``w``."""
        table = np.empty(self.slots.start.shape)
        score_candidates(self.slots, self.used, self.parts, w, np.empty(self.used[1]), table)
        return table

    def ask(self, w: Floats, count: Callable[[int], None]) -> tuple[Floats, Ints]:
        """One true oracle call for each example at ``w``; new candidates enter the pool."""
        self.clock += 1
        n = len(self.slots.start)
        rescaling, sqrt_loss = self.formulation.rescaling, self.formulation.uses_sqrt_loss
        table = np.full(self.slots.start.shape, EMPTY)
        chosen = np.full(n, -1)
        for first in range(0, n, BATCH):
            examples = np.arange(first, min(first + BATCH, n))
            planes = self._ask(examples, w, rescaling, sqrt_loss)
            count(len(examples))
            if not self.trusted:
                validate_planes(planes, examples, self.parts.n_parts)
            offsets, scales = self.formulation.plane_terms(planes.losses)
            products = np.empty(len(planes.indices))
            done = 0
            while True:
                done = admit_candidates(
                    self.slots,
                    self.place,
                    self.used,
                    self.parts,
                    examples,
                    planes,
                    offsets,
                    scales,
                    w,
                    self.clock,
                    products,
                    done,
                    table,
                    chosen,
                )
                if done == len(examples):
                    break
                self._make_room(int(np.diff(planes.indptr).max()))
            if not self.trusted:
                self._check_against_truth(examples, planes, offsets, scales, w)
        hinges = np.where(chosen >= 0, table[np.arange(n), chosen], 0.0)
        return hinges, chosen

    def add_up(self, chosen: Ints, weights: Floats, plane: Floats) -> float:
        """Add the chosen candidates, weighted, to ``plane``; returns their weighted offsets."""
        self.clock += 1
        sums = np.empty(self.used[1])
        return float(
            add_chosen(self.slots, self.used, self.parts, chosen, weights, self.clock, sums, plane)
        )

    def forget(self, age: int) -> None:
        """Drop candidates not used for ``age`` ticks of the clock."""
        self._compact(self.clock - age, 1.2)

    def _make_room(self, longest: int) -> None:
        """Grow the arrays or, beyond the budget, drop the candidates not used for longest."""
        if 2 * self.nbytes <= self.cache_bytes:
            self._compact(-1, 2.0, longest)
            return
        age = 50
        while True:
            self._compact(self.clock - age, 1.0, longest)
            if self.nbytes <= self.cache_bytes or age == 0:
                return
            age //= 4

    def _compact(self, oldest: int, factor: float, extra: int = 0) -> None:
        """Rewrite the entries without those of dropped candidates, with room to grow."""
        entries, locals_ = (int(factor * used) + extra + 64 for used in self.used)
        target = self.slots._replace(
            ids=np.empty(entries, np.int32),
            values=np.empty(entries),
            features=np.empty(locals_, np.int32),
        )
        compact_candidates(self.slots, target, self.place, self.used, oldest)
        self.slots = target

    def _check_against_truth(
        self, examples: Ints, planes: Any, offsets: Floats, scales: Floats, w: Floats
    ) -> None:
        """Warn, once, if the oracle's candidate is worse than the truth."""
        if self.formulation.rescaling == "none" or self._warned or self.parts.n_row_parts:
            return
        row_of = np.repeat(np.arange(len(examples)), np.diff(planes.indptr))
        products = np.bincount(row_of, planes.values * w[planes.indices], minlength=len(examples))
        values = offsets - scales * products
        worst = int(np.argmin(values)) if len(values) else 0
        if len(values) and values[worst] < -1e-6:
            self._warned = True
            warnings.warn(
                f"the oracle's candidate for example {examples[worst]} has value "
                f"{values[worst]:.4g}, worse than the truth (0): the oracle is not exact and gaps "
                "are not certificates; check_problem() may say why",
                UserWarning,
                stacklevel=2,
            )
