"""Calls of `partial_fit` that are kept in a file.

After a crash the same calls are made again, from the first one on. Those that the file has are over
at once, with what the last of them has left; from there training goes on to the same bits.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

from ..checkpoints import Checkpoint
from ..core.formulation import Formulation
from ..core.problem import Problem
from ..core.result import Result
from ..engine.training.state import Arrays, add_prefix, from_file, from_text, strip_prefix, to_text
from ..solvers.checkpoint_group import result_arrays, result_of
from ..solvers.online.learner import Learner, Seen
from ..solvers.online.solver import OnlineSolver
from ..utils.schema import as_annotated
from ..utils.types import Floats
from .training_options import training_options
from .warm_start import fingerprint

__all__ = ["PartialFitLog", "one_pass", "open_log"]


@dataclass(frozen=True)
class PartialFitLog:
    """Calls of `partial_fit` so far, and the file that keeps them.

    Attributes
    ----------
    file : Checkpoint
        Where they are kept.
    calls : tuple of str
        What each of them was given, as a hash.
    done : tuple of str
        The same of those that were in the file.
    found : dict of str to array
        What the file has of the last of these, until that is reached.
    ended : bool
        Whether a call was interrupted: what comes after would not be found again.
    """

    file: Checkpoint
    calls: tuple[str, ...]
    done: tuple[str, ...]
    found: Arrays
    ended: bool = False

    @classmethod
    def at(
        cls, path: str | os.PathLike[str], every: float, identity: dict[str, str], resume: bool
    ) -> PartialFitLog:
        """A stream at its beginning, with what the file has if that is to be gone on with."""
        file = Checkpoint(path, every, identity)
        found = file.load() if resume else None
        if found is None:
            return cls(file, (), (), {})
        arrays, _ = found
        with from_file(file.path):
            calls = as_annotated(from_text(arrays["stream"])["calls"], tuple[str, ...], "calls")
        return cls(file, (), calls, arrays)

    def is_at(self, path: str | os.PathLike[str]) -> bool:
        """Whether this is where the stream is kept."""
        return self.file.path == os.path.realpath(path)

    def has(self, call: str) -> bool:
        """Whether the file has the next call, which is this one; ValueError for another one."""
        k = len(self.calls)
        if k >= len(self.done):
            return False
        if call != self.done[k]:
            raise ValueError(
                f"{self.file.path}: the checkpoint has {len(self.done)} calls of partial_fit, and "
                f"number {k + 1} is not this one. To resume, make the same calls from the first "
                "one on, with the same examples and parameters; calls that are already done "
                "return at once. To train on other examples remove the file, or set resume=False"
            )
        return True

    def result(self, solver: OnlineSolver, problem: Problem, formulation: Formulation) -> Result:
        """What the last of the calls in the file has returned, and left for the next one."""
        n_features = int(problem.n_features or 0)
        with from_file(self.file.path):
            result = result_of(strip_prefix("result", self.found))
            if len(result.w) != n_features:
                raise ValueError(f"result.w: expected {n_features} weights, found {len(result.w)}")
            learner = strip_prefix("learner", self.found)
            state = solver.learner_of(learner, n_features, formulation.constraints)
        return replace(result, state=state)

    def followed_by(self, call: str, result: Result, before: Result | None) -> PartialFitLog:
        """The stream after one more call; it is written where it is time to.

        Of a call that was interrupted nothing is kept, but all that was ``before``.
        """
        if self.ended:
            return self
        if len(self.calls) < len(self.done):
            calls = (*self.calls, call)
            return replace(self, calls=calls, found=self.found if calls != self.done else {})
        if result.status == "interrupted":
            if before is not None and self.calls:
                self._write(before)
            return replace(self, ended=True)
        after = replace(self, calls=(*self.calls, call))
        if self.file.is_due:
            after._write(result)
        return after

    def _write(self, last: Result) -> None:
        """Write what the last call has left."""
        assert isinstance(last.state, Learner)
        told = {"stream": to_text({"calls": self.calls})}
        learner = add_prefix("learner", last.state.arrays())
        self.file.write({**told, **add_prefix("result", result_arrays(last)), **learner})


def open_log(
    model: Any, solver: OnlineSolver, problem: Problem, formulation: Formulation
) -> tuple[PartialFitLog | None, dict[str, str]]:
    """What keeps the calls of `partial_fit`, if they are kept, and what they depend on."""
    options = training_options(model.training)
    if options.checkpoint is None:
        return None, {}
    settings = solver.settings(problem, formulation, float(model.C))
    log: PartialFitLog | None = getattr(model, "_stream", None)
    if log is None or not log.is_at(options.checkpoint):
        earlier: Result | None = getattr(model, "_online", None)
        if earlier is not None:
            assert isinstance(earlier.state, Learner)
            before = fingerprint(*earlier.state.arrays().values())
        else:
            before = fingerprint(model._weights) if hasattr(model, "result_") else "none"
        identity = {
            "method": "partial_fit",
            **settings,
            "weights before the first call": before,
        }
        place, every = options.checkpoint, float(options.checkpoint_every)
        log = PartialFitLog.at(place, every, identity, bool(options.resume))
    return log, settings


def one_pass(
    model: Any,
    solver: OnlineSolver,
    problem: Problem,
    formulation: Formulation,
    content: str,
    sample_weight: Floats | None,
    earlier: Result | None,
) -> Result:
    """One more pass over examples, from an earlier result or from the weights there are."""
    if earlier is not None:
        assert isinstance(earlier.state, Learner)
        if content in earlier.state.seen.contents:
            earlier.state.counted = problem
    elif hasattr(model, "result_") and model._n_weights() == problem.n_features:
        n = model.result_.n_examples
        seen = Seen(count=float(n), weight=float(n))
        earlier = replace(model.result_, w=model._weights, state=seen)
    result = solver.solve(
        problem,
        formulation,
        float(model.C),
        sample_weight=sample_weight,
        warm_start=earlier,
        callbacks=tuple(training_options(model.training).callbacks),
    )
    assert isinstance(result.state, Learner)
    result.state.seen.contents.add(content)
    result.state.forget_examples()
    return result
