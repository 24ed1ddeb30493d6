"""Who asks: the only place where solvers put questions to a problem.

It chooses between parts and features, cuts batches, checks what a user's oracle returns, compares
it with the given output, counts the calls, and turns answers into planes and their violations.
Kernels that have a search of their own inside count their calls here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._warn import warn_user
from ..formulation import Formulation
from ..plane_rows import Planes, concatenate, validate_planes
from ..problem import Problem
from ..types import Floats, Ints
from .accelerators import accelerators_of
from .parts import Parts, single_weights

__all__ = ["Answer", "Executor", "Oracle", "batches", "hinge_values", "violations"]

BATCH = 512  # examples per call in a full pass: bounds the memory of the planes
WORSE = -1e-6  # value of a candidate below which it is worse than the given output


class Executor(Protocol):
    """Runs pieces of a batch, as those of `concurrent.futures` do; answers come in their order."""

    def map(self, function: Callable[[Ints], Planes], pieces: Iterable[Ints]) -> Iterable[Planes]:
        """The function's value for each piece."""


class Answer(NamedTuple):
    """Candidates, and their planes' terms: ``b = offsets`` and ``a = scales * dpsi``."""

    planes: Planes
    offsets: Floats
    scales: Floats


class Oracle:
    """A problem's oracle under one formulation.

    Parameters
    ----------
    problem : Problem
        What is asked; it may be duck-typed.
    formulation : Formulation
        What is asked for, and how candidates become planes.
    executor : Executor, optional
        Runs batches of more than `BATCH` examples in pieces; by default one after the other.

    Attributes
    ----------
    parts : Parts
        What the rows of `ask` are counted in: the problem's parts, or single weights.
    calls : int
        Examples that were asked for so far.
    work : float
        Counted work of one call, on average.
    """

    def __init__(
        self, problem: Problem, formulation: Formulation, executor: Executor | None = None
    ) -> None:
        self.problem = problem
        self.formulation = formulation
        self.executor = executor
        self.n_examples = problem.n_examples
        self.n_features = int(problem.n_features or 0)
        self.accelerators = accelerators_of(problem, formulation)
        parts = self.accelerators.parts
        self.in_parts = parts is not None
        self.parts: Parts = parts if parts is not None else single_weights(self.n_features)
        self.work = float(self.accelerators.oracle_work)
        self.calls = 0
        # Native problems build valid planes by construction; those of a user are checked.
        self.trusted = bool(getattr(problem, "trusted", False))
        # Without rescaling the given output is no candidate, and negative values are right.
        self._compares = not self.trusted and formulation.rescaling != "none"
        self._kind = (formulation.rescaling, formulation.uses_sqrt_loss)

    # ----- questions ----------------------------------------------------------------------------

    def ask(self, examples: Ints, w: Floats) -> Answer:
        """The most violated candidate of each example at ``w``, in parts."""
        search = self.accelerators.part_oracle if self.in_parts else self._search
        return self._answer(search, examples, w, size=self.parts.n_parts)

    def ask_features(self, examples: Ints, w: Floats, scale: float = 1.0) -> Answer:
        """The most violated candidate of each example at ``scale * w``, in features."""
        search: Callable[[Ints, Floats], Planes] = self._search
        if scale != 1.0:
            search = partial(self._search_at_scale, scale=scale)
        return self._answer(search, examples, w)

    def ask_k_best(self, examples: Ints, w: Floats, k: int, *, by_score: bool = False) -> Answer:
        """The k best candidates of each example at ``w``, in features; see `Problem.k_best`.

        They are ranked by their violations, or else by plain scores.
        """
        kind = ("none", False) if by_score else self._kind
        found = self._method("k_best")
        return self._answer(lambda i, w: found(i, w, k, *kind), examples, w, rows=k)

    def predictions(self, examples: Ints, w: Floats, *, count: bool = True) -> Answer:
        """The predicted outputs, in features; not counted where they only measure the weights."""
        return self._answer(self._method("predictions"), examples, w, count=count)

    def violations(self, w: Floats, check: Callable[[], None] | None = None) -> Violations:
        """Values and offsets of all examples' most violated planes, by a full pass at ``w``.

        ``check`` is called after every batch, to end the pass.
        """
        found = Violations(np.empty(self.n_examples), np.empty(self.n_examples))
        for examples in batches(np.arange(self.n_examples), BATCH):
            answer = self.ask_features(examples, w)
            found.values[examples] = violations(answer, w)
            found.offsets[examples] = answer.offsets
            self.compare(examples, found.values[examples])
            if check is not None:
                check()
        return found

    def count(self, calls: int) -> None:
        """Count calls that a kernel made by itself."""
        self.calls += calls

    def compare(self, examples: Ints, values: Floats) -> None:
        """Warn, once, of candidates that are worse than the given output, whose value is 0.

        ``values`` are those of the candidates at the weights they were found at.
        """
        if not self._compares or len(values) == 0:
            return
        worst = int(np.argmin(values))
        if values[worst] < WORSE:
            self._compares = False
            warn_user(
                f"the oracle's candidate for example {examples[worst]} has value "
                f"{values[worst]:.4g}, worse than the truth (0): the oracle is not exact and "
                "gaps are not certificates; check_problem() may say why"
            )

    # ----- searches -----------------------------------------------------------------------------

    def _search(self, examples: Ints, w: Floats) -> Planes:
        return self.problem.oracle(examples, w, *self._kind)

    def _search_at_scale(self, examples: Ints, v: Floats, scale: float) -> Planes:
        found = self.accelerators.oracle_at_scale(examples, v, scale)
        return self._search(examples, scale * v) if found is None else found

    def _method(self, name: str) -> Any:
        """A method of the problem; what a duck-typed one lacks is taken from the base class."""
        return getattr(self.problem, name, None) or partial(getattr(Problem, name), self.problem)

    def _answer(
        self,
        search: Callable[[Ints, Floats], Planes],
        examples: Ints,
        w: Floats,
        *,
        size: int | None = None,
        rows: int = 1,
        count: bool = True,
    ) -> Answer:
        """Search for candidates, ``rows`` of each example, with entries among ``size`` numbers."""
        if self.executor is None or len(examples) <= BATCH:
            planes = search(examples, w)
        else:
            pieces = batches(examples, BATCH)
            planes = concatenate(list(self.executor.map(lambda piece: search(piece, w), pieces)))
        if count:
            self.calls += len(examples)
        if not self.trusted:
            asked = examples if rows == 1 else examples.repeat(rows)
            validate_planes(planes, asked, self.n_features if size is None else size)
            planes = Planes(
                np.asarray(planes.indptr, np.int64),
                np.asarray(planes.indices, np.int32),
                np.asarray(planes.values, np.float64),
                np.asarray(planes.losses, np.float64),
            )
        return Answer(planes, *self.formulation.plane_terms(planes.losses))


class Violations(NamedTuple):
    """Values ``b - <a, w>`` of planes at some weights, and their offsets b."""

    values: Floats
    offsets: Floats

    @property
    def hinges(self) -> Floats:
        """The slacks: values, or 0 where those are negative."""
        return np.maximum(self.values, 0.0)


def violations(answer: Answer, w: Floats) -> Floats:
    """Values ``b - <a, w>`` of an answer's planes, which are in features, at ``w``."""
    planes, offsets, scales = answer
    products = planes.values * w[planes.indices]
    row_of = np.repeat(np.arange(len(planes.losses)), np.diff(planes.indptr))
    return offsets - scales * np.bincount(row_of, products, minlength=len(planes.losses))


def hinge_values(problem: Problem, formulation: Formulation, w: Floats) -> Floats:
    """Slacks ``xi_i`` at ``w``, by one true oracle call for each example."""
    return Oracle(problem, formulation).violations(w).hinges


def batches(examples: Ints, size: int) -> Iterator[Ints]:
    """Consecutive pieces of ``examples``."""
    for start in range(0, len(examples), size):
        yield examples[start : start + size]
