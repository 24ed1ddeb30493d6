"""What a benchmark is made of: a case, its contestants, what they return, and the targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.core.formulation import Formulation
from maxmargin.core.problem import Problem

Floats = NDArray[np.float64]
#: Makes a problem of the first so many examples, or of all.
ProblemMaker = Callable[[int | None], Problem]
Tags = Sequence[Any]  # one sequence of tags for each sequence of tokens

FORMULATION = Formulation(rescaling="margin", slack="l1")  # of cases that name no other


class Point(NamedTuple):
    """A moment of a training run; the gap is an estimate unless it is certified."""

    cpu: float
    passes: float
    relative_gap: float
    certified: bool


@dataclass
class Outcome:
    """What a contestant returns: numbers it knows itself, and what there is to judge."""

    measures: dict[str, float] = field(default_factory=dict)
    w: Floats | None = None
    tag: Callable[[], Tags] | None = None  # tags of the test part; called outside the timing
    curve: list[Point] = field(default_factory=list)


@dataclass(frozen=True)
class Contestant:
    """Something that is timed. ``prepare`` is called once before, and is not timed."""

    label: str
    run: Callable[[], Outcome]
    prepare: Callable[[], None] = lambda: None
    once: bool = False  # slow, and not to be compared by time: one run is enough


@dataclass(frozen=True)
class Target:
    """A figure to report, next to a reference and, where one is set, a limit.

    With ``relative_to = (contestant, measure)`` the figure is the ratio to that one, the median
    over the repeats.
    """

    what: str
    of: str
    measure: str
    reference: str = ""
    unit: str = ""
    at_most: float | None = None
    at_least: float | None = None
    relative_to: tuple[str, str] | None = None
    note: str = ""

    @property
    def must(self) -> str:
        """The limit as text."""
        if self.at_most is None and self.at_least is None:
            return self.note
        sign, limit = ("<=", self.at_most) if self.at_least is None else (">=", self.at_least)
        return f"{sign} {limit:.4g} {self.unit}".strip() + (f" ({self.note})" if self.note else "")

    def holds(self, value: float) -> bool | None:
        """Whether a figure keeps the limit; None without one."""
        if self.at_most is None and self.at_least is None:
            return None
        return (self.at_most is None or value <= self.at_most) and (
            self.at_least is None or value >= self.at_least
        )


@dataclass(frozen=True)
class Case:
    """One setting of one data set: who runs on it, how results are judged, what is expected."""

    name: str
    contestants: Sequence[Contestant]
    targets: Sequence[Target] = ()
    problem: ProblemMaker | None = None  # judges weights, together with C and the formulation
    C: float | None = None
    decode: Callable[[Floats], Tags] | None = None  # tags of the test part by weights
    truth: Tags | None = None  # true tags of the test part
    formulation: Formulation = FORMULATION


@dataclass(frozen=True)
class Options:
    """What was asked for on the command line."""

    solvers: tuple[str, ...] | None = None
    peers: bool = True
    quick: bool = False
    only: str = ""  # part of the names of the cases to run

    def of_ours(self, usual: Sequence[str]) -> tuple[str, ...]:
        """Our solvers to run: those asked for, or the usual ones of a case."""
        return self.solvers if self.solvers is not None else tuple(usual)

    def size(self, quick: int, full: int | None = None) -> int | None:
        """How many examples to use; None for all."""
        return quick if self.quick else full
