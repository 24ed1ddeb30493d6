"""One call of `solve`: clock, limits, history, interrupts, certificate and result."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, fields, replace
from types import NoneType, TracebackType
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

from ...core.objective import Certificate, Stopping
from ...core.result import Callback, HistoryCallback, Progress, Result, WeightsCallback
from ...jit.compiling import compile_seconds, interrupted_compiling, working_clock
from ...utils.schema import Amount, Count, from_values
from ...utils.types import Floats
from ...utils.warn import warn_user
from ..oracle import Oracle
from ..parallel.blas_threads import single_blas_thread
from ..parallel.threads import count_threads
from .convergence import ROUNDING
from .interrupts import InterruptWatch
from .state import (
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

__all__ = ["Run", "Saver", "StopTraining", "progress_of"]

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
    oracle_seconds: Amount
    step_seconds: Amount


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
        self._oracle_before = oracle.seconds
        self.step_seconds = 0.0
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

    @property
    def oracle_seconds(self) -> float:
        """Time that went into oracle calls."""
        return self.oracle.seconds - self._oracle_before

    @property
    def counted_work(self) -> float:
        """Work that was counted, oracle calls included; 0 where steps are not counted."""
        return 0.0

    @contextmanager
    def stepping(self) -> Iterator[None]:
        """Count the time inside as that of steps, but for oracle calls.

        Where a compiled pass made calls, its time is divided by the counted work.
        """
        oracle, began, work = self.oracle, working_clock(), self.counted_work
        asked, inside, before = oracle.seconds, oracle.calls_inside, self.step_seconds
        try:
            yield
        finally:
            spent = working_clock() - began - (oracle.seconds - asked)
            if oracle.calls_inside > inside:
                searched = (oracle.calls_inside - inside) * oracle.work
                share = searched / max(self.counted_work - work, searched)
                oracle.seconds += share * spent
                spent -= share * spent
            self.step_seconds = before + spent  # those inside have added theirs

    # ----- checkpoints ----------------------------------------------------------------------------

    def arrays(self) -> Arrays:
        """See `Checkpointable`."""
        numbers = {
            "calls": self.oracle_calls,
            "seconds": self.seconds,
            "compile_seconds": self.compile_seconds,
            "history": [astuple(progress) for progress in self.history],
            "oracle_seconds": self.oracle_seconds,
            "step_seconds": self.step_seconds,
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
        self._oracle_before = self.oracle.seconds - past.oracle_seconds
        self.step_seconds = past.step_seconds
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
        paused = working_clock()
        for callback in self.callbacks:
            if isinstance(callback, HistoryCallback):
                progress = callback.measure(progress, self._problem_weights)
        self._started += working_clock() - paused
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
            return callback(progress, self._problem_weights)
        return callback(progress)

    def _problem_weights(self) -> Floats:
        """The weights as they are now, as the problem has them."""
        return self.oracle.weights(self.current_weights)

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
        support_vectors: int = 0,
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
        if self.oracle.missed:  # and warned of it
            converged, relative = False, True
            status = status if status == "interrupted" else "inexact oracle"
        elif relative:
            warn_user(
                "the problem's search is not exact and gives no bounds: the result is relative to "
                "the oracle, and its gap is unknown"
            )
        elif certificate is not None:
            left = max(ROUNDING * certificate.primal, self.rounding)
            if status == "stalled" and certificate.gap <= left:
                status = "rounding"
            if certificate.is_contradictory and certificate.gap < -self.rounding:
                converged, relative, status = False, True, "inexact oracle"
                warn_user(
                    f"the dual value {certificate.dual:.6g} exceeds the primal value "
                    f"{certificate.primal:.6g}: the oracle does not find the most violated output, "
                    "or its bounds are wrong, and the gap is not a certificate; "
                    "check_problem() shows where"
                )
        searched = self.oracle_calls * self.oracle.work
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
            n_support_vectors=support_vectors,
            oracle_seconds=self.oracle_seconds,
            step_seconds=self.step_seconds,
            oracle_work=searched,
            step_work=max(0.0, self.counted_work - searched),
            compile_seconds=self.compile_seconds,
            relative_to_oracle=relative,
            bound_gap=self.bound_gap,
            history=self.history,
            state=state,
        )
