"""What all solvers share: parameters and checks."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from .._version import __version__
from ..core.formulation import Formulation
from ..core.problem import Problem
from ..core.result import Callback, Result, WeightsCallback
from ..engine.accelerators import AdaptiveFeatures
from ..engine.parallel.blas_threads import single_blas_thread
from ..engine.parallel.threads import check_n_jobs
from ..engine.training.run import Run, Saver
from ..engine.training.state import fingerprint
from ..time_left import Limits
from ..utils.defaults import CACHE_MB, CHECKPOINT_EVERY, TOL
from ..utils.types import Floats
from ..utils.validation import LARGEST, ParameterError, as_floats, is_at_least
from .checkpoint_group import CheckpointGroup, open_file

__all__ = [
    "Solver",
    "SolverParameters",
    "TrainingRequest",
    "check_numbers",
    "checked_weights",
]

#: What a training that goes on may have another value of.
MAY_CHANGE = (
    *("max_passes", "max_time", "random_state", "n_jobs"),
    *("checkpoint", "checkpoint_every", "resume"),
)


class TrainingRequest(NamedTuple):
    """What `Solver.solve` was called with, checked: all that a run starts from."""

    problem: Problem
    formulation: Formulation
    C: float
    weights: Floats
    warm_start: Result | None
    callbacks: tuple[Callback, ...]


@dataclass(frozen=True)
class SolverParameters:
    """Parameters every solver has.

    Parameters
    ----------
    tol : float, optional
        Stop at this relative gap, ``(P - D) / P <= tol``.
    epsilon : float, optional
        Stop at this absolute gap in units of mean loss, ``(P - D) / (n C) <= epsilon`` (with
        sample weights, their sum in place of n). Either criterion suffices.
    max_passes : float, optional
        Stop training after this many oracle calls per example; the certifying pass comes on top.
    max_time : float, optional
        Stop training after this many seconds; the certifying pass comes on top.
    random_state : int, Generator or None
        Seed of the order in which examples are visited.
    checkpoint : str or path-like, optional
        File to keep the training in, so that it can go on after a crash. It is written between
        iterations and replaced as a whole; the one before stays as ``checkpoint + ".1"``.
    checkpoint_every : float
        Seconds between two writings.
    resume : bool
        Go on from the file, if there is one, to the same bits as if nothing had happened. Problem,
        formulation, C, sample weights and solver have to be the same, but for the limits
        ``max_passes`` and ``max_time``, which count what was done before. ``random_state`` and a
        warm start have no effect then. A training that was over returns its result at once.
    n_jobs : int, optional
        Threads that search for planes: None is 1, unless joblib's ``parallel_config`` says
        otherwise, and -1 all cores. They are used for the passes over all examples that certify,
        for those of cutting planes, for steps on classes, and where searches take long for those of
        dual ascent, if the problem is one of this package, or says ``in_threads``. Others are
        searched in so many processes of joblib's, if that pays; what methods change in the problem
        is then lost. The same number gives the same bits.
    cache_mb : float
        Budget, in units of 2^20 bytes, for the planes that training keeps; 0 is as little as the
        solver can do with. What is in it is said where a solver says it; online solvers keep none.
    """

    tol: float | None = TOL
    epsilon: float | None = None
    max_passes: float | None = None
    max_time: float | None = None
    random_state: int | np.random.Generator | None = 0
    checkpoint: str | os.PathLike[str] | CheckpointGroup | None = field(default=None, kw_only=True)
    checkpoint_every: float = field(default=CHECKPOINT_EVERY, kw_only=True)
    resume: bool = field(default=False, kw_only=True)
    n_jobs: int | None = field(default=None, kw_only=True)
    cache_mb: float = field(default=CACHE_MB, kw_only=True)

    def limits(self, n_examples: int) -> Limits:
        """When training ends, whatever the gap."""
        calls = None if self.max_passes is None else self.max_passes * n_examples
        return Limits(oracle_calls=calls, seconds=self.max_time)


@dataclass(frozen=True)
class Solver(SolverParameters):
    """Base class of the solvers; `SolverParameters` has the parameters of all of them."""

    name: ClassVar[str] = ""
    #: Slacks the solver can handle.
    slacks: ClassVar[tuple[str, ...]] = ("l1",)
    #: Whether results are certified, and training ends by the gap.
    certified: ClassVar[bool] = True
    #: The paper's own parameters, where they differ from the defaults; None where no paper has it.
    as_published: ClassVar[Mapping[str, Any] | None] = None

    @classmethod
    def published(cls, **changes: Any) -> Self:
        """Return the solver as its paper prints it, which is slower than the default.

        Stopping rules are those of the paper's experiments. docs/solvers.md lists the parameters.

        Parameters
        ----------
        **changes
            Other values of parameters, such as the paper's epsilon in units of your losses.

        Returns
        -------
        Solver
            The published algorithm.

        Raises
        ------
        ValueError
            If no paper has the algorithm.
        """
        if cls.as_published is None:
            raise ValueError(f"no paper has solver {cls.name!r}; FASOLE.published() is the nearest")
        return cls(**{**cls.as_published, **changes})

    @property
    def cache_bytes(self) -> int:
        """``cache_mb`` in bytes; numbers of few bits, which users may give, would overflow."""
        return int(float(self.cache_mb) * 2**20)

    def solve(
        self,
        problem: Problem,
        formulation: Formulation,
        C: float,
        *,
        sample_weight: ArrayLike | None = None,
        warm_start: Result | None = None,
        callbacks: Iterable[Callback] = (),
    ) -> Result:
        """Train on the problem and return the weights with their certificate.

        Parameters
        ----------
        problem : Problem
            Examples and oracle.
        formulation : Formulation
            The kind of structural SVM.
        C : float
            Multiplies the sum of the slacks.
        sample_weight : array of shape (n_examples,), optional
            Multiplies each example's slack.
        warm_start : Result, optional
            An earlier result of the same problem; training goes on from it.
        callbacks : iterable of callable
            Called with a `Progress` after every outer iteration.

        Returns
        -------
        Result
            Weights, certificate and history. After Ctrl-C the best weights so far, with the status
            "interrupted"; a second one, or one before the first iteration is over, raises
            KeyboardInterrupt.
        """
        self.check(problem, formulation, C)
        weights = checked_weights(sample_weight, problem.n_examples)
        if C * weights.max() > LARGEST:
            raise ValueError(
                f"C times sample_weight must be at most {LARGEST:g}, got {C * weights.max():g}: "
                "the objective would overflow"
            )
        request = TrainingRequest(problem, formulation, C, weights, warm_start, tuple(callbacks))
        saver = self._saver(request)
        # Threads woken here would wait, spinning, on a core that the run needs.
        with single_blas_thread():
            run = self.start(request)
        with run:
            if saver is not None:
                run.keep_by(saver, self.resume)
            status = run.train(lambda: self.iterate(run))
            with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is refused
                result = _finite(run.finish(status))
            return run.save_the_end(status, result)

    def _saver(self, request: TrainingRequest) -> Saver | None:
        """What keeps the training, if it is to be kept."""
        if self.checkpoint is None or isinstance(self.checkpoint, CheckpointGroup):
            return self.checkpoint
        identity = self.identity(request.problem, request.formulation, request.C, request.weights)
        for callback in request.callbacks:
            if isinstance(callback, WeightsCallback):
                identity |= callback.identity()
        return open_file(self.checkpoint, self, identity)

    def settings(self, problem: Any, formulation: Formulation, C: float) -> dict[str, str]:
        """What must be the same to resume a training, except for the examples."""
        import joblib

        options = {f.name: repr(getattr(self, f.name)) for f in fields(self)}
        return {
            "version of maxmargin": __version__,
            "solver": type(self).__name__,
            **{name: text for name, text in options.items() if name not in MAY_CHANGE},
            "C": repr(float(C)),
            "rescaling": formulation.rescaling,
            "slack": formulation.slack,
            "square root of the loss": repr(formulation.uses_sqrt_loss),
            "constraints on weights": str(joblib.hash(formulation.constraints)),
            "problem": type(problem).__name__,
            "number of features": repr(getattr(problem, "n_features", None)),
        }

    def identity(
        self, problem: Any, formulation: Formulation, C: float, weights: Floats
    ) -> dict[str, str]:
        """What must be the same to resume a training."""
        import joblib

        given = problem.before_training() if isinstance(problem, AdaptiveFeatures) else problem
        return self.settings(problem, formulation, C) | {
            "number of examples": repr(problem.n_examples),
            "data": str(fingerprint(given)),
            "sample weights": str(joblib.hash(weights)),
        }

    @abstractmethod
    def start(self, request: TrainingRequest) -> Run:
        """What `iterate` works on: a fresh start, or one from an earlier result."""

    @abstractmethod
    def iterate(self, run: Any) -> str | None:
        """Train until done; returns why that ended, "converged" by default."""

    def check(self, problem: Problem, formulation: Formulation, C: float) -> None:
        """Raise ValueError if this solver does not support the formulation or the parameters."""
        if formulation.slack not in self.slacks:
            from . import solvers_for

            *rest, last = map(repr, solvers_for(formulation))
            able = f"{', '.join(rest)} or {last}" if rest else last
            raise ValueError(
                f"solver={self.name!r} does not support slack={formulation.slack!r}; use "
                f"solver={able}"
            )
        check_numbers(self, C)
        rules = ("tol", "epsilon", "max_passes", "max_time", "violation")
        if self.certified and all(getattr(self, name, None) is None for name in rules):
            raise ValueError("nothing stops training: set tol, epsilon, max_passes or max_time")
        if problem.n_examples == 0:
            raise ValueError("the problem has no examples")


def check_numbers(given: Any, C: Any, options: Any = None) -> None:
    """Raise ValueError for numbers that a solver, or an estimator with its options, cannot use."""
    options = given if options is None else options
    if not is_at_least(C, 0) or not C > 0:
        raise ParameterError("C", f"must be a positive, finite number, got {C!r}")
    if float(C) > LARGEST:  # a number of 32 bits would take that for infinite
        raise ParameterError(
            "C",
            f"must be at most {LARGEST:g}, got {C!r}: the objective would overflow; for a hard "
            "margin, use slack='none'",
        )
    for name in ("tol", "epsilon", "max_passes", "max_time"):
        value = getattr(given, name)
        if value is not None and not is_at_least(value, 0, finite=False):
            raise ParameterError(name, f"must be None or a number >= 0, got {value!r}")
    if not is_at_least(options.checkpoint_every, 0, finite=False):
        raise ParameterError(
            "checkpoint_every", f"must be a number >= 0, got {options.checkpoint_every!r}"
        )
    if not is_at_least(options.cache_mb, 0):
        raise ParameterError("cache_mb", f"must be a finite number >= 0, got {options.cache_mb!r}")
    if options.resume and options.checkpoint is None:
        raise ValueError("resume needs checkpoint, the file to resume from")
    check_n_jobs(given.n_jobs)


def _finite(result: Result) -> Result:
    """The result, if it is of numbers; ValueError otherwise.

    Of a hard margin that is not met the primal value is infinite, and so it may be where the
    oracle's bounds tell nothing.
    """
    certified = [value for value in (result.primal, result.dual) if value is not None]
    if not np.isfinite(result.w).all() or np.isnan(certified).any() or -np.inf in certified:
        raise ValueError(
            "the weights have overflowed, for features, losses or C are too large: scale the "
            "features, or use a smaller C"
        )
    return result


def checked_weights(sample_weight: ArrayLike | None, n_examples: int) -> Floats:
    """Sample weights as an array, ones by default."""
    if sample_weight is None:
        return np.ones(n_examples)
    weights = as_floats(sample_weight, "sample_weight")
    if weights.shape != (n_examples,):
        raise ValueError(
            f"sample_weight must have shape ({n_examples},), got shape {weights.shape}"
        )
    bad = np.flatnonzero(~(weights >= 0) | ~np.isfinite(weights))
    if len(bad):
        raise ValueError(
            f"sample_weight[{bad[0]}] is {weights[bad[0]]}; weights must be finite and >= 0"
        )
    return weights
