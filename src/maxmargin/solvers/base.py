"""What all solvers share: parameters, checks, and the record of a run."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..formulation import Formulation
from ..objective import Certificate
from ..problem import Problem
from ..result import Callback, Progress, Result

__all__ = ["Run", "Solver", "StopTraining"]

logger = logging.getLogger("maxmargin")
Floats = NDArray[np.float64]


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

    tol: float | None = 1e-3
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
            Weights, certificate and history.
        """
        raise NotImplementedError

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
    """Clock, counters, history and best certified weights of one call of `solve`."""

    def __init__(self, solver: Solver, n_examples: int, callbacks: Iterable[Callback]) -> None:
        self.solver = solver
        self.n_examples = n_examples
        self.callbacks = tuple(callbacks)
        self.started = time.perf_counter()
        self.oracle_calls = 0
        self.cache_hits = 0
        self.history: list[Progress] = []
        self.best: tuple[float, Floats] | None = None

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.perf_counter() - self.started

    def count(self, oracle_calls: int = 0, cache_hits: int = 0) -> None:
        """Count work, and end training where a limit is reached."""
        self.oracle_calls += oracle_calls
        self.cache_hits += cache_hits
        if self.solver.max_time is not None and self.seconds >= self.solver.max_time:
            raise StopTraining("max_time")

    def check_passes(self) -> None:
        """End training after ``max_passes``."""
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
        """Gather what `solve` returns; warn of an interrupt, or of a certificate that is none."""
        self.warn_if_cut_short(status, certificate.gap)
        if certificate.contradicts_itself:
            converged, status = False, "inexact oracle"
            warnings.warn(
                f"the dual value {certificate.dual:.6g} exceeds the primal value "
                f"{certificate.primal:.6g}: the oracle does not find the most violated output, and "
                "the gap is no certificate; check_problem(problem, rescalings=[...]) says where, "
                "with the rescaling that is trained with",
                UserWarning,
                stacklevel=3,
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
            history=self.history,
            state=state,
        )

    def warn_if_cut_short(self, status: str, gap: float | None) -> None:
        """Tell the user when training ended before it was done."""
        if status == "interrupted":
            warnings.warn(
                "training was interrupted; returning the best weights so far"
                + (f", certified gap {gap:.4g}" if gap is not None else ""),
                UserWarning,
                stacklevel=3,
            )
