"""What all solvers share: parameters, checks, and the record of a run."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from .._compiling import compile_seconds, interrupted_compiling
from .._warn import warn_user
from ..defaults import TOL
from ..formulation import Formulation
from ..objective import Certificate
from ..problem import Problem
from ..result import Callback, Progress, Result
from ..time_left import Limits
from ..types import Floats
from .interrupts import InterruptWatch
from .stalling import ROUNDING, Stalling

__all__ = ["Run", "Solver", "StopTraining"]

logger = logging.getLogger("maxmargin")


LARGEST_C = 1e100


class StopTraining(Exception):
    """Raised inside a solver to end training; the argument is the result's status."""


@dataclass(frozen=True)
class Solver:
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
    """

    tol: float | None = TOL
    epsilon: float | None = None
    max_passes: float | None = None
    max_time: float | None = None
    random_state: int | np.random.Generator | None = 0

    name: ClassVar[str] = ""
    #: Slacks the solver can handle.
    slacks: ClassVar[tuple[str, ...]] = ("l1",)
    #: Whether results are certified, and training ends by the gap.
    certified: ClassVar[bool] = True

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
        raise NotImplementedError

    def limits(self, n_examples: int) -> Limits:
        """When training ends, whatever the gap."""
        calls = None if self.max_passes is None else self.max_passes * n_examples
        return Limits(oracle_calls=calls, seconds=self.max_time)

    def check(self, problem: Problem, formulation: Formulation, C: float) -> None:
        """Raise ValueError if this solver cannot do what is asked."""
        if formulation.slack not in self.slacks:
            from . import solvers_for

            able = ", ".join(repr(name) for name in solvers_for(formulation)) or "none yet"
            raise ValueError(
                f"solver {self.name!r} needs slack in {self.slacks}, got {formulation}; "
                f"solvers that can: {able}"
            )
        if not (np.isfinite(C) and C > 0):
            raise ValueError(f"C must be positive and finite, got {C}")
        if C > LARGEST_C:
            raise ValueError(
                f"C must be at most {LARGEST_C:g}, got {C}: the objective would overflow; for a "
                "hard margin there is slack='none'"
            )
        for name in ("tol", "epsilon", "max_passes", "max_time"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise ValueError(f"{name} must be >= 0, got {value}")
        if self.certified and all(
            getattr(self, name) is None for name in ("tol", "epsilon", "max_passes", "max_time")
        ):
            raise ValueError("give at least one of tol, epsilon, max_passes and max_time")
        if problem.n_examples == 0:
            raise ValueError("the problem has no examples")


def checked_weights(sample_weight: ArrayLike | None, n_examples: int) -> Floats:
    """Sample weights as an array, ones by default."""
    if sample_weight is None:
        return np.ones(n_examples)
    weights = np.asarray(sample_weight, dtype=np.float64)
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


class CertifiedSearch(Protocol):
    """What the end of a run needs of a solver's search."""

    @property
    def certificate(self) -> Certificate | None:
        """The best certificate so far."""

    def record(self) -> None:
        """End an outer iteration."""


class Run:
    """Clock, counters, history and best certified weights of one call of `solve`.

    Used as a context manager, in which no Ctrl-C is lost.
    """

    def __init__(self, solver: Solver, n_examples: int, callbacks: Iterable[Callback]) -> None:
        self.solver = solver
        self.n_examples = n_examples
        self.callbacks = tuple(callbacks)
        self._interrupts = InterruptWatch()
        self._started = time.perf_counter()
        self._compiled_before = compile_seconds()
        self.oracle_calls = 0
        self.cache_hits = 0
        self.history: list[Progress] = []
        self.best: tuple[float, Floats] | None = None
        self.stalling = Stalling()

    def __enter__(self) -> Run:
        self._interrupts.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._interrupts.__exit__(kind, error, traceback)

    @property
    def compile_seconds(self) -> float:
        """Time since the start that went into compiling kernels."""
        return compile_seconds() - self._compiled_before

    @property
    def seconds(self) -> float:
        """Time since the start, without that of compiling kernels."""
        return time.perf_counter() - self._started - self.compile_seconds

    def train(self, iterate: Callable[[], str | None]) -> str:
        """Run a solver's outer loop; returns why it ended, "converged" unless it says otherwise."""
        try:
            return iterate() or "converged"
        except StopTraining as stop:
            return str(stop)
        except KeyboardInterrupt as interrupt:
            # Nothing worth keeping, and to certify it the kernels would be needed.
            if interrupted_compiling(interrupt) and not self.history:
                raise
        self._interrupts.note_arrival()
        return "interrupted"

    def count(self, oracle_calls: int = 0, cache_hits: int = 0) -> None:
        """Count work, and end training where a limit is reached."""
        self.oracle_calls += oracle_calls
        self.cache_hits += cache_hits
        self._interrupts.check()
        if self.solver.max_time is not None and self.seconds >= self.solver.max_time:
            raise StopTraining("max_time")

    def check_passes(self, stuck: bool = False) -> None:
        """End training after ``max_passes``, or where it is stuck (see `Stalling`)."""
        if stuck:
            raise StopTraining("stalled")
        limit = self.solver.max_passes
        if limit is not None and self.oracle_calls >= limit * self.n_examples:
            raise StopTraining("max_passes")

    def offer(self, primal: float, w: Floats) -> None:
        """Keep the weights if their certified primal value is the best so far."""
        if self.best is None or primal < self.best[0]:
            self.best = (primal, w.copy())

    def record(
        self,
        *,
        dual: float | None,
        planes: int,
        certificate: Certificate | None = None,
        gap_estimate: float | None = None,
        target: float | None = None,
        loss: float | None = None,
        held_out_loss: float | None = None,
    ) -> None:
        """Append to the history, log, and call back."""
        progress = Progress(
            seconds=self.seconds,
            oracle_calls=self.oracle_calls,
            primal=certificate.primal if certificate else None,
            dual=certificate.dual if certificate else dual,
            gap=certificate.gap if certificate else None,
            planes=planes,
            gap_estimate=gap_estimate,
            target=target,
            loss=loss,
            held_out_loss=held_out_loss,
        )
        self.history.append(progress)
        if loss is not None:
            passes = self.oracle_calls / self.n_examples
            logger.info("%7.2fs  %6.2f passes  mean loss met %.6g", self.seconds, passes, loss)
        else:
            self._log(progress)
        if any([callback(progress) for callback in self.callbacks]):
            raise StopTraining("callback")
        self._interrupts.check()

    def _log(self, progress: Progress) -> None:
        """Log a record of a solver with a dual."""
        logger.info(
            "%7.2fs  %6.2f passes  dual %.6g  %s  %d planes",
            progress.seconds,
            self.oracle_calls / self.n_examples,
            progress.dual if progress.dual is not None else float("nan"),
            f"gap {progress.gap:.4g}"
            if progress.gap is not None
            else f"gap ~{progress.gap_estimate:.4g}"
            if progress.gap_estimate is not None
            else "gap unknown",
            progress.planes,
        )

    def certify_at_the_end(
        self, search: CertifiedSearch, certify: Callable[[], object], status: str
    ) -> str:
        """Certify the last weights once training is over; returns the status.

        A second Ctrl-C ends even that: what was certified before must do.
        """
        try:
            certify()
        except KeyboardInterrupt:
            if search.certificate is None:
                raise
            self._interrupts.note_arrival()
            return "interrupted"
        try:
            search.record()
        except (StopTraining, KeyboardInterrupt):  # training is over already
            pass
        return status

    def result(
        self,
        w: Floats,
        certificate: Certificate,
        *,
        converged: bool,
        status: str,
        planes: int,
        state: Any,
    ) -> Result:
        """Gather what `solve` returns; warn of a certificate that is none."""
        status = self.final_status(status)
        if status == "stalled" and certificate.relative_gap <= ROUNDING:
            status = "rounding"
        if certificate.contradicts_itself:
            converged, status = False, "inexact oracle"
            warn_user(
                f"the dual value {certificate.dual:.6g} exceeds the primal value "
                f"{certificate.primal:.6g}: the oracle does not find the most violated output, and "
                "the gap is no certificate; check_problem(problem, rescalings=[...]) says where, "
                "with the rescaling that is trained with"
            )
        return Result(
            w=w,
            primal=certificate.primal,
            dual=certificate.dual,
            converged=converged,
            status="converged" if converged and status != "interrupted" else status,
            n_passes=self.oracle_calls / self.n_examples,
            n_oracle_calls=self.oracle_calls,
            n_cache_hits=self.cache_hits,
            n_planes=planes,
            seconds=self.seconds,
            compile_seconds=self.compile_seconds,
            history=self.history,
            state=state,
        )

    def final_status(self, status: str) -> str:
        """The status, or "interrupted" where a Ctrl-C came too late to end the training."""
        return "interrupted" if self._interrupts.pending else status
