"""One call of `solve`: clock, limits, history, interrupts, certificate and result."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import astuple, fields, replace
from types import NoneType, TracebackType
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np

from .._compiling import compile_seconds, interrupted_compiling
from .._warn import warn_user
from ..objective import Certificate, Stopping, primal_value
from ..result import Callback, Progress, Result, WeightsCallback
from ..schema import Amount, Count, Number, checked_arrays, from_values, numbers
from ..types import Floats
from ..validation import LARGEST
from .blas_threads import single_blas_thread
from .convergence import ROUNDING, BoundGap, StallDetector
from .interrupts import InterruptWatch
from .oracle import Oracle
from .state import (
    OWN,
    Arrays,
    Checkpointable,
    SolverState,
    add_prefix,
    copied,
    feature_arrays,
    from_file,
    from_text,
    restore_features,
    strip_prefix,
    to_text,
)
from .threads import count_threads
from .verifying import (
    check_dual,
    check_oracle,
    check_planes,
    check_primal,
    check_value,
    passive_oracle,
    probes,
)

__all__ = ["CertifiedRun", "Run", "Saver", "StopTraining", "progress_of"]

Loop = TypeVar("Loop", bound=Checkpointable)

logger = logging.getLogger("maxmargin")

#: Fraction of the time that copies of the state may take; see `Run.save_point`.
COPYING = 0.01


class StopTraining(Exception):
    """Raised inside a solver to end training; the argument is the result's status."""


class Limits(Protocol):
    """What a run needs of a solver."""

    @property
    def tol(self) -> float | None:
        """Relative gap to stop at."""

    @property
    def epsilon(self) -> float | None:
        """Absolute gap to stop at, in units of mean loss."""

    @property
    def max_passes(self) -> float | None:
        """Oracle calls for each example to stop after."""

    @property
    def max_time(self) -> float | None:
        """Seconds to stop after."""

    @property
    def n_jobs(self) -> int | None:
        """Threads that search, as joblib counts them."""


def progress_of(records: list[list[Any]]) -> list[Progress]:
    """A history out of a file; ValueError where a record is none."""
    n, kinds = len(fields(Progress)), {int, float, NoneType}
    if not all(len(own) == n and set(map(type, own)) <= kinds for own in records):
        raise ValueError(f"history: expected records of {n} numbers")
    return [Progress(*own) for own in records]


class _Past(NamedTuple):
    """What a run was before it was resumed."""

    calls: Count
    seconds: Amount
    compile_seconds: Amount
    history: list[list[Any]]


class Saver(Protocol):
    """What keeps a run on disk; see `checkpoints.Checkpoint`."""

    @property
    def path(self) -> str:
        """The file."""

    @property
    def may_go_on(self) -> Collection[str]:
        """Why training may end that can be gone on with."""

    @property
    def holds_more(self) -> bool:
        """Whether there is something to keep beside the run, even before its first iteration."""

    @property
    def is_due(self) -> bool:
        """Whether it is time to write."""

    def load(self) -> tuple[Arrays, str | None] | None:
        """What was written last, and how the training ended if it did; None if there is nothing."""

    def write(self, arrays: Arrays, finished: str | None = None) -> None:
        """Write; a failure is warned of."""


class Run(Checkpointable, ABC):
    """Clock, counters, history and best weights of one call of `solve`.

    Used as a context manager, in which no Ctrl-C is lost and no more cores are used than were
    asked for. What it has for arrays is all that the rest of the training depends on: taken at a
    `save_point`, it goes on from there in another process, to the same bits.
    """

    state_fields: ClassVar[Mapping[str, Any]] = {"cache_hits": Count}

    def __init__(self, solver: Limits, oracle: Oracle, callbacks: Iterable[Callback]) -> None:
        self.limits = solver
        self.oracle = oracle
        self.formulation = oracle.formulation
        self.n = oracle.n_examples
        self.callbacks = tuple(callbacks)
        self._interrupts = InterruptWatch()
        self._guards = ExitStack()
        self._started = time.perf_counter()
        self._compiled_before = compile_seconds()
        self._calls_before = oracle.calls
        self.cache_hits = 0
        self.history: list[Progress] = []
        self._saver: Saver | None = None
        self._n_saved = 0  # records of the history that are on disk
        self._copy: Arrays | None = None  # the state at the last save point that is not
        self._next_copy = 0.0
        self._loop: Checkpointable | None = None
        self._loop_before: Arrays = {}
        self._finished: str | None = None  # how the training ended that is gone on from

    def __enter__(self) -> Run:
        try:
            self._guards.enter_context(single_blas_thread())
            threads = count_threads(self.limits.n_jobs)
            self._guards.enter_context(self.oracle.in_threads(threads))
            self._guards.enter_context(self._interrupts)
        except BaseException:  # a Ctrl-C on the way: what was entered has to be left
            self._guards.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._guards.__exit__(kind, error, traceback)

    @property
    def oracle_calls(self) -> int:
        """True oracle calls of this run."""
        return self.oracle.calls - self._calls_before

    @property
    def compile_seconds(self) -> float:
        """Time since the start that went into compiling kernels."""
        return compile_seconds() - self._compiled_before

    @property
    def seconds(self) -> float:
        """Time since the start, without that of compiling kernels."""
        return time.perf_counter() - self._started - self.compile_seconds

    # ----- checkpoints ----------------------------------------------------------------------------

    def arrays(self) -> Arrays:
        """See `Checkpointable`."""
        numbers = {
            "calls": self.oracle_calls,
            "seconds": self.seconds,
            "compile_seconds": self.compile_seconds,
            "history": [astuple(progress) for progress in self.history],
        }
        loop = {} if self._loop is None else add_prefix("loop", self._loop.arrays())
        seen = [add_prefix(name, callback.arrays()) for name, callback in self._watching()]
        beside = {**loop, **dict(ChainMap(*seen)), **feature_arrays(self.oracle.problem)}
        return {**super().arrays(), "run": to_text(numbers), **beside}

    def _watching(self) -> list[tuple[str, WeightsCallback]]:
        """Callbacks that choose by what they have seen, and their names in checkpoints."""
        chosen = [c for c in self.callbacks if isinstance(c, WeightsCallback)]
        return [(f"callback {k}", callback) for k, callback in enumerate(chosen)]

    def restore(self, arrays: Arrays) -> None:
        """See `Checkpointable`; what a loop has kept waits for `looping`."""
        restore_features(self.oracle.problem, arrays)
        super().restore(arrays)
        past = from_values(_Past, from_text(arrays["run"]), "run")
        self._calls_before = self.oracle.calls - past.calls
        self._started -= past.seconds + past.compile_seconds
        self._compiled_before -= past.compile_seconds
        self.history = progress_of(past.history)
        self._loop_before = strip_prefix("loop", arrays)
        for name, callback in self._watching():
            callback.restore(strip_prefix(name, arrays))

    def keep_by(self, saver: Saver, resume: bool) -> None:
        """Keep the run by a saver, and go on from what that has if wanted."""
        self._saver = saver
        self._n_saved = -1 if saver.holds_more else 0
        found = saver.load() if resume else None
        if found is not None:
            arrays, self._finished = found
            with from_file(saver.path):
                self.restore(arrays)
            self.verify()
            self._n_saved = len(self.history)

    def verify(self) -> None:
        """Compute again what was restored and a certificate depends on; ValueError if it differs.

        A file may come from a stranger. See `SECURITY.md`.
        """

    def looping(self, loop: Loop) -> Loop:
        """What a solver's loop keeps from one iteration to the next, here as it was left."""
        if self._loop_before and self._saver is not None:
            with from_file(self._saver.path):
                loop.restore(self._loop_before)
        self._loop = loop
        return loop

    def save_point(self, at_once: bool = False) -> None:
        """Called between iterations, where `arrays` has all; the clock says when it is written.

        In the middle of an iteration, where a limit or an interrupt ends it, there is nothing to
        go on from. So a copy is taken here, as often as that costs next to nothing, for that end.
        """
        if self._saver is None or len(self.history) == self._n_saved:
            return
        if at_once or self._saver.is_due:
            self._write()
        elif (now := time.perf_counter()) >= self._next_copy:
            self._copy = None  # two of them would take more memory
            try:
                self._copy = copied(self.arrays())
            except KeyboardInterrupt:
                self._write()
                raise
            self._next_copy = now + (time.perf_counter() - now) / COPYING

    def _write(self) -> None:
        """Write the state as it is."""
        assert self._saver is not None
        self._copy = None
        self._saver.write(self.arrays())
        self._n_saved = len(self.history)

    def _save_unfinished(self, status: str) -> str:
        """Write what training can go on from, unless it is there; returns why training ended."""
        copy, self._copy = self._copy, None
        if self._saver is None or copy is None or status not in self._saver.may_go_on:
            return status
        try:
            self._saver.write(copy)
        except KeyboardInterrupt:
            if status == "interrupted":  # the second one
                raise
            self._interrupts.note_arrival()
            return "interrupted"
        return status

    def save_the_end(self, status: str, result: Result) -> Result:
        """Write that training is over, unless it may go on."""
        if self._saver is None or self._finished is not None:
            return result
        if status in self._saver.may_go_on or result.status in self._saver.may_go_on:
            return result
        try:
            self._saver.write(self.arrays(), finished=status)
        except KeyboardInterrupt:  # the result is not to be lost
            return replace(result, status="interrupted")
        return result

    # ----- training -------------------------------------------------------------------------------

    def train(self, iterate: Callable[[], str | None]) -> str:
        """Run a solver's outer loop; returns why it ended, "converged" unless it says otherwise."""
        if self._finished is not None:
            return self._finished
        try:
            return iterate() or "converged"
        except StopTraining as stop:
            return self._save_unfinished(str(stop))
        except KeyboardInterrupt as interrupt:
            # Nothing worth keeping, and to certify it the kernels would be needed.
            if interrupted_compiling(interrupt) and not self.history:
                raise
        self._interrupts.note_arrival()
        return self._save_unfinished("interrupted")

    def check(self) -> None:
        """End training where an interrupt has come, or the time is over."""
        self._interrupts.check()
        if self.limits.max_time is not None and self.seconds >= self.limits.max_time:
            raise StopTraining("max_time")

    def count_hits(self, visits: int) -> None:
        """Count visits that were served from stored planes, and `check`."""
        self.cache_hits += visits
        self.check()

    def check_passes(self, stuck: bool = False) -> None:
        """End training after ``max_passes``, or where it is stuck (see `StallDetector`)."""
        if stuck:
            raise StopTraining("stalled")
        limit = self.limits.max_passes
        if limit is not None and self.oracle_calls >= limit * self.n:
            raise StopTraining("max_passes")

    def note(self, progress: Progress) -> None:
        """Append to the history, log, and call back."""
        self.history.append(progress)
        if progress.loss is not None:
            passes = self.oracle_calls / self.n
            logger.info(
                "%7.2fs  %6.2f passes  mean loss %.6g", progress.seconds, passes, progress.loss
            )
        else:
            self._log(progress)
        if any([self._call(callback, progress) for callback in self.callbacks]):
            raise StopTraining("callback")
        self._interrupts.check()

    def _call(self, callback: Callback, progress: Progress) -> bool | None:
        """Call back, with the weights if they are wanted."""
        if isinstance(callback, WeightsCallback):
            return callback(progress, lambda: self.oracle.weights(self.current_weights))
        return callback(progress)

    def _log(self, progress: Progress) -> None:
        """Log a record of a solver with a dual."""
        logger.info(
            "%7.2fs  %6.2f passes  dual %.6g  %s  %d planes",
            progress.seconds,
            self.oracle_calls / self.n,
            progress.dual if progress.dual is not None else float("nan"),
            f"gap {progress.gap:.4g}"
            if progress.gap is not None
            else f"gap ~{progress.gap_estimate:.4g}"
            if progress.gap_estimate is not None
            else "gap unknown",
            progress.planes,
        )

    @property
    def rounding(self) -> float:
        """A gap that is no more than rounding."""
        return 0.0

    @property
    def bound_gap(self) -> float | None:
        """How much of the certified gap is due to bounds of the oracle; None without any."""
        return None

    def final_status(self, status: str) -> str:
        """The status, or "interrupted" where a Ctrl-C came too late to end the training."""
        return "interrupted" if self._interrupts.pending else status

    @property
    @abstractmethod
    def current_weights(self) -> Floats:
        """The weights as they are now, certified or not, of all features."""

    @abstractmethod
    def finish(self, status: str) -> Result:
        """Gather what `solve` returns."""

    def result(
        self,
        w: Floats,
        certificate: Certificate | None,
        *,
        stopping: Stopping | None,
        status: str,
        planes: int,
        state: SolverState | None,
    ) -> Result:
        """What `solve` returns, with the problem's weights; warns of a certificate that is none.

        Here alone is decided what has converged: where there is a certificate, it meets the
        ``stopping`` criterion, unless that is None.
        """
        status = self.final_status(status)
        converged = status == "converged"
        if certificate is not None and stopping is not None:
            converged = stopping.is_satisfied(certificate)
            if status == "converged" and not converged:
                status = "stalled"  # by rounding, or an online solver whose steps are over
        relative = certificate is not None and not self.oracle.certifies
        if relative:
            warn_user(
                "the problem's search is not exact and gives no bounds: the result is relative to "
                "the oracle, and its gap is unknown"
            )
        elif certificate is not None:
            left = max(ROUNDING * certificate.primal, self.rounding)
            if status == "stalled" and certificate.gap <= left:
                status = "rounding"
            if certificate.is_contradictory and certificate.gap < -self.rounding:
                converged, status = False, "inexact oracle"
                warn_user(
                    f"the dual value {certificate.dual:.6g} exceeds the primal value "
                    f"{certificate.primal:.6g}: the oracle does not find the most violated output, "
                    "or gives bounds that are none, and the gap is no certificate; "
                    "check_problem(problem, rescalings=[...]) says where, with the rescaling that "
                    "is trained with"
                )
        return Result(
            w=self.oracle.weights(w),
            primal=None if certificate is None else certificate.primal,
            dual=None if certificate is None else certificate.dual,
            converged=converged,
            status="converged" if converged and status != "interrupted" else status,
            n_passes=self.oracle_calls / self.n,
            n_oracle_calls=self.oracle_calls,
            n_cache_hits=self.cache_hits,
            n_planes=planes,
            seconds=self.seconds,
            compile_seconds=self.compile_seconds,
            relative_to_oracle=relative,
            bound_gap=self.bound_gap,
            history=self.history,
            state=state,
        )


class _Known(NamedTuple):
    """What is known of a certificate, beside the weights."""

    best: Number | None
    rounding: Number


class CertifiedRun(Run):
    """A run that ends by a certificate.

    Its primal value is the best that a full pass of true oracle calls has measured; its dual value
    is `proven_dual`, which each family keeps true.

    Parameters
    ----------
    solver : Solver
        Precision and limits.
    oracle : Oracle
        What is asked.
    C : float
        Multiplies the sum of the slacks.
    weights : array of shape (n_examples,)
        Multiplies each example's slack.
    callbacks : iterable of callable
        Called with a `Progress` after every outer iteration.
    """

    state_fields: ClassVar[Mapping[str, Any]] = {
        **Run.state_fields,
        "proven_dual": Number,
        "found_primal": Number,
        "certified": bool,
        "stalling": OWN,
        "looseness": OWN,
    }

    #: A dual value that was computed afresh, not carried along.
    proven_dual: float
    state: SolverState
    _is_resumed = False

    def __init__(
        self,
        solver: Limits,
        oracle: Oracle,
        C: float,
        weights: Floats,
        callbacks: Iterable[Callback],
    ) -> None:
        super().__init__(solver, oracle, callbacks)
        self.C = C
        self.weights = weights
        self.stopping = Stopping(solver.tol, solver.epsilon, C * float(weights.sum()))
        self.best: tuple[float, Floats] | None = None  # primal value and weights
        self.found_primal = np.inf  # the last one measured, by the candidates without bounds
        self.certified = False  # whether the primal value of the current weights is known
        self.stalling = StallDetector()
        self.bound_gap_monitor = BoundGap()

    def arrays(self) -> Arrays:
        """See `Checkpointable`."""
        best = {} if self.best is None else {"best_w": self.best[1]}
        bounds = {} if self.oracle.bounds is None else {"bounds": self.oracle.bounds}
        numbers = {"best": self.best and self.best[0], "rounding": self.oracle.rounding}
        return {**super().arrays(), **best, **bounds, "certificate": to_text(numbers)}

    def restore(self, arrays: Arrays) -> None:
        """See `Checkpointable`."""
        super().restore(arrays)
        known = from_values(_Known, from_text(arrays["certificate"]), "certificate")
        own = checked_arrays(
            arrays,
            {
                name: numbers(size, low=-high, high=high)
                for name, size, high in (("best_w", None, LARGEST), ("bounds", self.n, np.inf))
                if name in arrays
            },
        )
        if ("best_w" in own) != (known.best is not None):
            raise ValueError("certificate: expected the best weights with their primal value")
        if "best_w" in own and not self.are_weights(own["best_w"]):
            raise ValueError(f"best_w: expected {self.oracle.n_features} weights")
        if known.best is not None:
            self.best = known.best, own["best_w"]
        self.oracle.bounds, self.oracle.rounding = own.get("bounds"), known.rounding

    def verify(self) -> None:
        """See `Run`: the primal value by true oracle calls, the dual value from multipliers."""
        assert self._saver is not None
        self._is_resumed, path = True, self._saver.path
        with from_file(path):
            check_dual(self.proven_dual, self.state.proven_dual())
        if not self.oracle.certifies:
            return
        w, own = self.current_weights, self.own_weights
        if self.best is not None:
            w, own = self.best_weights, self.best[1]
        oracle = passive_oracle(self.oracle)
        hinges = oracle.bounded(oracle.violations(w).hinges)
        with from_file(path):
            check_oracle(self.oracle, oracle)
            if self.best is not None:
                check_primal(self.best[0], self.objective(w, hinges))
            if self._finished == "converged" and not self.converged():
                raise ValueError("training has not converged, but is said to be over")
        for planes in self.state.planes_at(own):
            with from_file(path):
                check_planes(planes, hinges)
            for value, most in probes(planes, oracle, own, hinges, self.expanded):
                with from_file(path):
                    check_value(value, most)

    # ----- what each family has -----------------------------------------------------------------

    @property
    def dual(self) -> float:
        """The dual value as it is now."""
        return self.proven_dual

    @property
    @abstractmethod
    def n_planes(self) -> int:
        """Planes stored."""

    @abstractmethod
    def settle(self) -> Certificate:
        """A certificate of the current weights, by a pass of true oracle calls without limits."""

    def settle_at_the_end(self, interrupted: bool) -> None:
        """The same once training is over, maybe in the middle of a change."""
        self.settle()

    @property
    def own_weights(self) -> Floats:
        """The weights as they are now, as the state has them."""
        return self.current_weights

    def expanded(self, w: Floats) -> Floats:
        """Weights of all features for those of the state."""
        return w

    def are_weights(self, w: Floats) -> bool:
        """Whether there are as many of them as the state has."""
        return len(w) == self.oracle.n_features

    @property
    def best_weights(self) -> Floats:
        """The weights of the best certified primal value, of all features."""
        assert self.best is not None
        return self.best[1]

    @abstractmethod
    def final_state(self, interrupted: bool) -> SolverState | None:
        """What a warm start may go on from."""

    # ----- bounds ---------------------------------------------------------------------------------

    @property
    def rounding(self) -> float:
        """See `Run`."""
        return self.oracle.rounding * self.stopping.total_C

    @property
    def criterion(self) -> Stopping | None:
        """What a certificate has to meet; None where a solver's own rule ended training."""
        return self.stopping

    @property
    def certificate(self) -> Certificate | None:
        """The best certified primal value and the dual value."""
        return Certificate(self.best[0], self.proven_dual) if self.best is not None else None

    @property
    def target(self) -> float:
        """Gap to reach."""
        return self.stopping.target(self.dual)

    @property
    def bound_gap(self) -> float | None:
        """See `Run`: the primal value less the lowest one by the candidates found alone."""
        return (
            None if self.certificate is None else self.bound_gap_monitor.part_of(self.certificate)
        )

    def converged(self) -> bool:
        """Whether the certificate meets the stopping criterion."""
        return self.certificate is not None and self.stopping.is_satisfied(self.certificate)

    def objective(self, w: Floats, slacks: Floats) -> float:
        """Objective at w with these slacks."""
        return primal_value(w, slacks, self.formulation, self.C, self.weights)

    def primal(self, w: Floats, slacks: Floats) -> float:
        """Primal value at w, given the slacks that a full pass has just found there.

        Where the oracle's answers have bounds, it is the bound on it that follows from them.
        """
        self.found_primal = self.objective(w, slacks)
        bounded = self.oracle.bounded(slacks)
        if self._is_resumed and self._saver is not None and self.oracle.certifies:
            with from_file(self._saver.path):
                for planes in self.state.planes_at(w):
                    check_planes(planes, bounded)
        return self.found_primal if self.oracle.bounds is None else self.objective(w, bounded)

    def offer(self, primal: float, w: Floats, *, copy: bool = True) -> None:
        """Keep the weights, or a copy, if their certified primal value is the best so far."""
        if self.best is None or primal < self.best[0]:
            self.best = (primal, w.copy() if copy else w)
        self.certified = True
        if self.oracle.bounds is not None:
            best = Certificate(self.best[0], self.proven_dual)
            self.bound_gap_monitor.note(primal, self.found_primal, best, self.stopping)

    # ----- iterations -----------------------------------------------------------------------------

    def train(self, iterate: Callable[[], str | None]) -> str:
        """See `Run`; what is gone on from may have met the limit on passes already."""

        def go_on() -> str | None:
            if self._n_saved > 0:
                self.check_passes()
            return iterate()

        return super().train(go_on)

    def is_stuck(self, gap_estimate: float) -> bool:
        """Whether neither bound moves any more."""
        negligible = gap_estimate <= self.rounding
        return self.stalling.seen(gap_estimate, self.dual, self.settle, negligible)

    def record(self, gap_estimate: float | None = None) -> None:
        """End an outer iteration: history, callbacks, limits."""
        stuck = gap_estimate is not None and self.is_stuck(gap_estimate)
        certificate = self.certificate if self.certified else None
        is_true = self.oracle.certifies
        if certificate is not None and not is_true:
            gap_estimate = certificate.gap
        self.note(
            Progress(
                seconds=self.seconds,
                oracle_calls=self.oracle_calls,
                primal=certificate.primal if certificate else None,
                dual=certificate.dual if certificate else self.dual,
                gap=certificate.gap if certificate and is_true else None,
                planes=self.n_planes,
                gap_estimate=gap_estimate,
                target=self.target,
                bound_gap=self.bound_gap if certificate else None,
            )
        )
        if self.bound_gap_monitor.lasts and not self.converged():
            raise StopTraining("loose bounds")
        self.check_passes(stuck)

    def end_iteration(self, gap_estimate: float | None = None) -> None:
        """`record`, where nothing is left to do before the next save point.

        The limit on passes, if it is met here, leaves what training goes on from.
        """
        try:
            self.record(gap_estimate)
        except StopTraining as stop:
            if self._saver is not None and str(stop) == "max_passes" in self._saver.may_go_on:
                self.save_point(at_once=True)
            raise

    def finish(self, status: str) -> Result:
        """Certify the last weights if need be, and gather the result."""
        if not self.certified or self.best is None:
            status = self._certify_at_the_end(status)
        assert self.certificate is not None
        if status == "stalled" and self.bound_gap_monitor.explains(self.certificate, self.stopping):
            status = "loose bounds"
        return self.result(
            self.best_weights,
            self.certificate,
            stopping=self.criterion,
            status=status,
            planes=self.n_planes,
            state=self.final_state(status == "interrupted"),
        )

    def _certify_at_the_end(self, status: str) -> str:
        """Certify the last weights once training is over; returns the status.

        A second Ctrl-C ends even that: what was certified before must do.
        """
        try:
            self.settle_at_the_end(status == "interrupted")
        except KeyboardInterrupt:
            if self.certificate is None:
                raise
            self._interrupts.note_arrival()
            return "interrupted"
        except StopTraining as stop:  # those who would answer are gone
            if self.certificate is None:
                raise
            return str(stop)
        try:
            self.record()
        except (StopTraining, KeyboardInterrupt):  # training is over already
            pass
        return status
