"""Several trainings, one after the other, that are kept in one file.

It has the results of those that are over, and the run of the one that is not. What leads from one
to the next, a value of C or completed labels, follows from the results and is done again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import astuple, fields, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.objective import DualTerms
from ..core.problem import Problem
from ..core.result import Result
from ..engine.training.run import Saver, progress_of
from ..engine.training.state import (
    DRIFT,
    Arrays,
    SolverState,
    add_prefix,
    feature_arrays,
    from_file,
    from_text,
    restore_features,
    strip_prefix,
    to_text,
)
from ..registry import import_name
from ..utils.schema import Count, as_annotated, checked_arrays, from_values, numbers

if TYPE_CHECKING:
    from .base import Solver

__all__ = ["CheckpointGroup", "open_file", "result_arrays", "result_of"]

#: What a result says in numbers: all but weights, history and state.
NUMBERS = [f.name for f in fields(Result) if f.name not in ("w", "history", "state")]


def open_file(path: str | os.PathLike[str], solver: Solver, identity: Mapping[str, str]) -> Saver:
    """The file that a training, or several, are kept in; what writes files is above the solvers."""
    make = import_name("checkpoints", "Checkpoint")
    file: Saver = make(path, solver.checkpoint_every, identity)
    return file


class _Done(NamedTuple):
    """How many trainings are over, and the seed of all."""

    n_done: Count
    seed: Count | None


class CheckpointGroup:
    """Trainings one after the other; for each of their solvers, it is the ``checkpoint``.

    Parameters
    ----------
    solver : Solver
        Says whether they are kept, where and how often, and whether to go on.
    identity : callable
        Gives whose trainings they are, if they are kept.
    may_go_on : collection of str
        Why a training may end that ends the series, but can be gone on with.
    problem : Problem, optional
        What all of them train, if that is one; what it has found is kept to the end.
    """

    def __init__(
        self,
        solver: Solver,
        identity: Callable[[], Mapping[str, str]],
        may_go_on: Collection[str],
        problem: Problem | None = None,
    ) -> None:
        self.may_go_on = may_go_on
        self._problem = problem
        self.results: list[Result] = []  # of the trainings that are over
        self._n_asked = 0  # of these, how many were asked for
        self._run: Arrays | None = None  # of the training that is not
        self._finished: str | None = None
        seed = getattr(solver, "random_state", None)
        self._seed = int(seed) if isinstance(seed, Integral) else None  # of all trainings
        path = getattr(solver, "checkpoint", None)  # solvers may be duck-typed
        self._file = None if path is None else open_file(path, solver, identity())
        found = self._file.load() if self._file is not None and solver.resume else None
        if found is not None:
            arrays, self._finished = found
            with from_file(self.path):
                done = from_values(_Done, from_text(arrays["series"]), "series")
                self._seed = done.seed
                for k in range(done.n_done):
                    self.results.append(result_of(strip_prefix(f"result {k}", arrays)))
                self._run = strip_prefix("run", arrays) or None
                if self._run is None:
                    restore_features(problem, arrays)

    def train(self, solver: Solver, solve: Callable[[Solver], Result]) -> Result:
        """The result of the next training, from the file if it was over."""
        if self._file is None:
            is_kept = getattr(solver, "checkpoint", None) is not None
            return solve(replace(solver, checkpoint=None, resume=False) if is_kept else solver)
        self._n_asked += 1
        if self._n_asked <= len(self.results):
            return self.results[self._n_asked - 1]
        seed: dict[str, Any] = {} if self._seed is None else {"random_state": self._seed}
        result = solve(replace(solver, checkpoint=self, resume=True, **seed))
        if result.status in self.may_go_on:
            self._file = None  # nothing that comes after would be found again
        else:
            self.results.append(replace(result, state=_Terms.of(result)))
        return result

    def finish(self) -> None:
        """Write that all trainings are over, unless one of them can be gone on with."""
        if self._file is not None and self._finished is None:
            self._file.write({**self._arrays(), **feature_arrays(self._problem)}, finished="all")

    def _arrays(self) -> Arrays:
        """What there is beside the run."""
        arrays = {"series": to_text({"n_done": len(self.results), "seed": self._seed})}
        for k, result in enumerate(self.results):
            arrays |= add_prefix(f"result {k}", result_arrays(result))
        return arrays

    # ----- for the run, a `Saver` -----------------------------------------------------------------

    @property
    def is_due(self) -> bool:
        """See `Saver`."""
        return self._file is not None and self._file.is_due

    @property
    def path(self) -> str:
        """See `Saver`."""
        return "" if self._file is None else self._file.path

    @property
    def holds_more(self) -> bool:
        """See `Saver`."""
        return bool(self.results)

    def load(self) -> tuple[Arrays, str | None] | None:
        """See `Saver`; only the training that was not over has something to go on from."""
        run, self._run = self._run, None
        return None if run is None else (run, None)

    def write(self, arrays: Arrays, finished: str | None = None) -> None:
        """See `Saver`; that a single training is over is seen by the next one, or by the end."""
        if self._file is not None and finished is None:
            self._file.write({**self._arrays(), **add_prefix("run", arrays)})


class _Terms(SolverState):
    """What is left of the state of a training that is over: its dual value, for other C."""

    kind = "terms"

    def __init__(self, terms: DualTerms | None) -> None:
        self.terms = terms

    @classmethod
    def of(cls, result: Result) -> _Terms:
        """Those of a result whose state is still its own."""
        state = result.state
        return cls(state.dual_terms() if isinstance(state, SolverState) else None)

    def matches(self, problem: object, formulation: object) -> bool:
        """Nothing can go on from it."""
        return False

    def dual_terms(self) -> DualTerms | None:
        """See `SolverState`."""
        return self.terms

    def arrays(self) -> Arrays:
        """See `SolverState`."""
        return {"terms": to_text({"terms": self.terms})}

    def restore(self, arrays: Arrays) -> None:
        """See `SolverState`."""
        terms = from_text(arrays["terms"])["terms"]
        self.terms = as_annotated(terms, DualTerms | None, "terms")


def result_arrays(result: Result) -> Arrays:
    """A result that is over, as arrays by name; of its state the dual value alone."""
    terms = result.state if isinstance(result.state, _Terms) else _Terms.of(result)
    numbers = {name: getattr(result, name) for name in NUMBERS}
    history = [astuple(progress) for progress in result.history]
    told = to_text({**numbers, "history": history})
    return {"w": result.w, "told": told, **terms.arrays()}


def result_of(arrays: Arrays) -> Result:
    """What `result_arrays` was given."""
    told, state = from_text(arrays["told"]), _Terms(None)
    history = progress_of(as_annotated(told.pop("history"), list[list[Any]], "history"))
    w = checked_arrays(arrays, {"w": numbers(None)})["w"]
    state.restore(arrays)
    result = from_values(Result, {"w": w, "history": history, **told}, "result")
    primal, dual, status = result.primal, result.dual, result.status
    if primal is not None and dual is not None and status != "inexact oracle":
        if not (result.relative_to_oracle or dual <= primal + DRIFT * max(1.0, abs(primal))):
            raise ValueError("result: the dual value is above the primal value")
    return replace(result, state=state)
