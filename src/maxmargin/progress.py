"""Shows the progress of a command or a fit: phases, passes, relative gap, time and time left."""

from __future__ import annotations

import contextlib
import logging
import math
import sys
import time
from collections.abc import Iterator
from contextvars import ContextVar
from types import TracebackType
from typing import Any, TextIO

from .core.result import Progress
from .jit.compiling import announce_compiling, compile_seconds, compiled_kernels
from .time_left import Limits, known_gap, seconds_left, seconds_to_limit

__all__ = ["Clock", "Loop", "ProgressDisplay", "running_clock"]

logger = logging.getLogger("maxmargin.progress")

_RUNNING: ContextVar[Clock | None] = ContextVar("maxmargin clock", default=None)


class Loop:
    """Several trainings, one after another, such as those of folds or of values of C.

    Parameters
    ----------
    n : int, optional
        How many there are, if that is known.
    """

    def __init__(self, clock: Clock, n: int | None) -> None:
        self.clock = clock
        self.n = n
        self.k = 0
        self.text = ""
        self.began = 0.0
        self.last: float | None = None  # seconds that the last one took

    def begin(self, text: str, k: int | None = None) -> None:
        """Begin the next one, or number ``k`` from 1, which progress lines name so."""
        now = self.clock.seconds
        self.last = now - self.began if self.text else None
        self.began, self.k, self.text = now, self.k + 1 if k is None else k, text


class Clock:
    """Time since a command or a fit began, by phases, and where among its trainings it is.

    Parameters
    ----------
    phase : str
        What it begins with.
    """

    def __init__(self, phase: str) -> None:
        self.display: ProgressDisplay | None = None
        self.loops: list[Loop] = []
        self._seconds: dict[str, float] = {}
        self._phase = phase
        self._started = self._marked = time.perf_counter()
        self._compiled, self._kernels = compile_seconds(), compiled_kernels()
        self._compiling = 0.0

    @property
    def seconds(self) -> float:
        """Time since the start, all of it."""
        return time.perf_counter() - self._started

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time of the block for a phase, and not for the one around it."""
        before = self._switch(name)
        if self.display is not None:
            self.display.show_phase(name)
        try:
            yield
        finally:
            self._switch(before)

    @contextlib.contextmanager
    def loop(self, n: int | None) -> Iterator[Loop]:
        """Several trainings in the block."""
        self.loops.append(Loop(self, n))
        try:
            yield self.loops[-1]
        finally:
            self.loops.pop()

    @contextlib.contextmanager
    def shown(self, verbose: int) -> Iterator[None]:
        """Show progress in the block, unless a block around it does; not at all for 0."""
        if not verbose or self.display is not None:
            yield
            return
        with ProgressDisplay(0, verbose, self.where(self._phase), clock=self) as self.display:
            try:
                yield
            finally:
                self.display = None

    def where(self, name: str = "") -> str:
        """Which of the trainings is under way, and a phase of it."""
        return ", ".join([*(loop.text for loop in self.loops), *([name] if name else [])])

    def say(self, text: str) -> None:
        """Say what came of a phase, if progress is shown."""
        if self.display is not None:
            self.display.leave(f"{self.where(self._phase)}  {text}  {self.seconds:5.1f} s")

    def left(self, training: float | None) -> float | None:
        """Time left of all trainings, given that of the one under way; None if not known."""
        left = training
        for loop in reversed(self.loops):
            so_far = self.seconds - loop.began
            if left is None and loop.last is not None:
                left = max(loop.last - so_far, 0.0)
            if left is None or loop.n is None:
                return None
            left += (loop.n - loop.k) * (so_far + left if loop.last is None else loop.last)
        return left

    def summary(self) -> str:
        """All the time so far, and its phases."""
        self._switch(self._phase)
        kernels = "compiling" if compiled_kernels() > self._kernels else "loading kernels"
        parts = [
            f"{name} {seconds:.1f} s"
            for name, seconds in [*self._seconds.items(), (kernels, self._compiling)]
            if seconds >= 0.05
        ]
        total = f"{self.seconds:.1f} s"
        return f"{total} ({', '.join(parts)})" if len(parts) > 1 else total

    def _switch(self, phase: str) -> str:
        """Begin another phase; returns the one before."""
        now, compiled = time.perf_counter(), compile_seconds()
        # Threads may compile at the same time.
        compiling = min(compiled - self._compiled, now - self._marked)
        self._compiling += compiling
        spent = now - self._marked - compiling
        self._seconds[self._phase] = self._seconds.get(self._phase, 0.0) + spent
        self._marked, self._compiled = now, compiled
        before, self._phase = self._phase, phase
        return before


@contextlib.contextmanager
def running_clock(phase: str, verbose: int = 0) -> Iterator[Clock]:
    """The clock that runs already, or a new one, in a phase; progress is shown if that is wanted.

    A clock that was started here, and is shown, ends with a summary.
    """
    outer = _RUNNING.get()
    clock = Clock(phase) if outer is None else outer
    token = _RUNNING.set(clock)
    try:
        with clock.phase(phase), clock.shown(verbose):
            yield clock
            if outer is None and clock.display is not None:
                clock.display.leave(f"done in {clock.summary()}")
    finally:
        _RUNNING.reset(token)


class ProgressDisplay:
    """A callback that shows training as it goes, used as a context manager around it.

    Uses one line that is redrawn in place in a notebook, and if rich is installed and the stream is
    a terminal; and log lines of the logger "maxmargin.progress", at most one a second, otherwise.
    Gaps are relative to the objective. One marked with ``~`` is an estimate; the others are
    certified.

    Parameters
    ----------
    n_examples : int
        Number of training examples, to show passes.
    verbose : int, default=1
        2 shows every iteration.
    label : str, default="training"
        What the line begins with.
    stream : text file, optional
        Where to write; by default standard error.
    limits : Limits, optional
        When training ends whatever the gap.
    clock : Clock, optional
        Whose time is shown; by default that of the training.
    """

    def __init__(
        self,
        n_examples: int,
        verbose: int = 1,
        label: str = "training",
        stream: TextIO | None = None,
        limits: Limits | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.n_examples = n_examples
        self.verbose = verbose
        self.label = label
        self.stream = stream
        self.limits = limits if limits is not None else Limits()
        self.clock = clock
        self.loss_scale: float | None = None
        self.history: list[Progress] = []
        self._shown_at = -math.inf
        self._live: _TerminalLine | _NotebookLine | None = None
        self._handler: logging.Handler | None = None
        self._logger_before = (logger.level, logger.propagate)
        self._compiling = announce_compiling(self._show_compiling)
        self._told_at = -math.inf  # of compilation

    def __enter__(self) -> ProgressDisplay:
        self._live = _start_live(self.stream)
        if self._live is None:
            self._handler = logging.StreamHandler(self.stream)  # None: standard error
            self._handler.setFormatter(logging.Formatter("%(message)s"))
            self._logger_before = (logger.level, logger.propagate)
            logger.addHandler(self._handler)
            logger.setLevel(logging.INFO)
            logger.propagate = False  # a handler of the root logger would show lines twice
        else:
            self._live.update(self.label)
        self._compiling.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._compiling.__exit__(None, None, None)
        self._leave_last()
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self._handler is not None:
            logger.removeHandler(self._handler)
            logger.setLevel(self._logger_before[0])
            logger.propagate = self._logger_before[1]
            self._handler = None

    @contextlib.contextmanager
    def training(
        self, n_examples: int, limits: Limits | None, loss_scale: float | None = None
    ) -> Iterator[None]:
        """Show one training in the block.

        With ``loss_scale``, ``C`` times the sum of the examples' weights, gaps are shown in units
        of mean loss, as where training stops by ``epsilon`` alone.
        """
        label = self.label
        loops = [] if self.clock is None else self.clock.loops
        self.label = (self.clock.where() if self.clock is not None else "") or "training"
        self.n_examples, self.loss_scale = n_examples, loss_scale
        self.limits = limits if limits is not None else Limits()
        # Of many trainings, short ones are shown at their end only.
        self._shown_at = 0.0 if loops else -math.inf
        try:
            yield
        finally:
            if len(loops) < 2:
                self._leave_last()
            self.history, self.label = [], label

    def show_phase(self, name: str) -> None:
        """Show what begins now, where a line is redrawn."""
        if self._live is not None and self.clock is not None:
            self._live.update(f"{self.clock.where(name)}  {self.clock.seconds:5.1f} s")

    def leave(self, text: str) -> None:
        """Show a line that stays."""
        if self._live is not None:
            self._live.leave(text)
        else:
            logger.info(text)

    def _leave_last(self) -> None:
        """Let the line of the last record stay; in a log, if it is not there."""
        if self.history and (self._live is not None or self._shown_at < self.history[-1].seconds):
            self.leave(self.line())
        self.history = []

    def __call__(self, progress: Progress) -> None:
        """Take note of an iteration, and show it unless the last one was a moment ago."""
        self.history.append(progress)
        interval = 0.1 if self._live is not None else 1.0
        if self.verbose > 1 or progress.seconds - self._shown_at >= interval:
            self._show()

    def _show_compiling(self, text: str) -> None:
        """Show how far compilation is; as lines of a log, now and then."""
        if self._live is not None:
            self._live.update(f"{self.label}  {text}")
        elif time.perf_counter() - self._told_at >= 5.0:
            self._told_at = time.perf_counter()
            logger.info("%s  %s", self.label, text)

    def line(self) -> str:
        """The text for the last record."""
        now = self.history[-1]
        gap = known_gap(now)
        parts = [self.label, f"{now.oracle_calls / max(self.n_examples, 1):5.1f} passes"]
        if gap is not None:
            certainty = " " if now.gap is not None else "~"
            parts.append(f"gap {certainty}{self._in_words(gap, now):<8}")
        if now.bound_gap is not None:
            parts.append(f"{self._in_words(now.bound_gap, now)} of it by inference")
        if now.loss is not None:
            parts.append(f"mean loss {now.loss:<8.3g}")
        if now.held_out_loss is not None:
            parts.append(f"held out {now.held_out_loss:<8.3g}")
        if now.target:
            parts.append(f"target {self._in_words(now.target, now):<8}")
        parts.append(f"{now.seconds if self.clock is None else self.clock.seconds:5.1f} s")
        parts.append(self._time_left())
        return "  ".join(parts).rstrip()

    def _in_words(self, gap: float, now: Progress) -> str:
        """A gap as users give it: relative to the objective, or in units of mean loss."""
        if self.loss_scale is not None:
            return f"{gap / self.loss_scale:.3g}"
        objective = gap + max(now.dual or 0.0, 0.0)
        return f"{100.0 * gap / objective if 0.0 < gap < math.inf else 100.0 * (gap > 0.0):.3g} %"

    def _time_left(self) -> str:
        """How much longer it will take, if something is known of that."""
        now = self.history[-1]
        is_over = now.gap is not None and now.target is not None and now.gap <= now.target
        limit = seconds_to_limit(self.history, self.limits)
        left = limit if self.limits.records is not None else seconds_left(self.history)
        if left is not None and limit is not None:
            left = min(left, limit)
        if self.clock is not None and self.clock.loops:
            all_left = self.clock.left(0.0 if is_over else left)
            return f"~{_duration(all_left)} left" if all_left else ""
        if is_over:
            return ""
        if left is None:
            return f"at most {_duration(limit)} left" if limit is not None else ""
        return f"~{_duration(left)} left"

    def _show(self) -> None:
        """Show the last record."""
        self._shown_at = self.history[-1].seconds
        if self._live is not None:
            self._live.update(self.line())
        else:
            logger.info(self.line())


def _duration(seconds: float) -> str:
    """A rough duration for people."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 360000 else "days"


class _TerminalLine:
    """A line of rich that is redrawn in place, and cut, not wrapped, where it is too long."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(file=stream, highlight=False, force_jupyter=False)
        self._live = Live("", console=console, auto_refresh=False, transient=True)
        self._live.start()

    def update(self, text: str) -> None:
        """Show another text."""
        self._live.update(_cut(text), refresh=True)

    def leave(self, text: str) -> None:
        """Show a text that stays, above the line."""
        self._live.update("", refresh=True)
        self._live.console.print(_cut(text))

    def stop(self) -> None:
        """Take the line away."""
        self._live.stop()


def _cut(text: str) -> Any:
    """A text of rich that takes one line."""
    from rich.text import Text

    return Text(text, no_wrap=True, overflow="ellipsis")


class _NotebookLine:
    """A line of text in the output of a notebook's cell that is replaced in place."""

    def __init__(self, display: Any) -> None:
        self._display = display
        self._handle: Any = None

    def update(self, text: str) -> None:
        """Show another text."""
        if self._handle is None:
            self._handle = self._display({"text/plain": text}, raw=True, display_id=True)
        else:
            self._handle.update({"text/plain": text}, raw=True)

    def leave(self, text: str) -> None:
        """Show a text that stays; the next one gets a line below."""
        self.update(text)
        self._handle = None

    def stop(self) -> None:
        """Leave the last text there."""


def _start_live(stream: TextIO | None) -> _TerminalLine | _NotebookLine | None:
    """What shows one line in place: a notebook, or a terminal with rich; None without them."""
    if stream is None:
        # A notebook has IPython loaded, and a shell that talks to a kernel.
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        if getattr(shell, "kernel", None) is not None:
            from IPython.display import display

            return _NotebookLine(display)
        stream = sys.stderr
    if not getattr(stream, "isatty", lambda: False)():
        return None
    try:
        return _TerminalLine(stream)
    except ImportError:
        return None
