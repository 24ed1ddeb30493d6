"""Shows the progress of training: compilation, passes, duality gap, target, time and time left."""

from __future__ import annotations

import logging
import math
import sys
import time
from types import TracebackType
from typing import Any, TextIO

from ._compiling import tell_of_compiling
from .result import Progress
from .time_left import Limits, known_gap, seconds_left, seconds_to_limit

__all__ = ["ProgressDisplay"]

logger = logging.getLogger("maxmargin.progress")


class ProgressDisplay:
    """A callback that shows training as it goes, used as a context manager around it.

    Uses one line that is redrawn in place in a notebook, and if rich is installed and the stream is
    a terminal; and log lines of the logger "maxmargin.progress", at most one a second, otherwise. A
    gap marked with ``~`` is an estimate; the others are certified.

    Parameters
    ----------
    n_examples : int
        Number of training examples, to show passes.
    verbose : int, default=1
        2 shows every iteration.
    label : str, default="training"
        What the line begins with.
    stream : text file, optional
        Where to write; by default the standard error.
    limits : Limits, optional
        When training ends whatever the gap.
    """

    def __init__(
        self,
        n_examples: int,
        verbose: int = 1,
        label: str = "training",
        stream: TextIO | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.n_examples = n_examples
        self.verbose = verbose
        self.label = label
        self.stream = stream
        self.limits = limits if limits is not None else Limits()
        self.history: list[Progress] = []
        self._shown_at = -math.inf
        self._live: _TerminalLine | _NotebookLine | None = None
        self._handler: logging.Handler | None = None
        self._logger_before = (logger.level, logger.propagate)
        self._compiling = tell_of_compiling(self._show_compiling)
        self._told_at = -math.inf  # of compilation

    def __enter__(self) -> ProgressDisplay:
        self._live = _start_live(self.stream)
        if self._live is None:
            self._handler = logging.StreamHandler(self.stream)  # None: the standard error
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
        if self.history and self._shown_at < self.history[-1].seconds:
            self._show()
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self._handler is not None:
            logger.removeHandler(self._handler)
            logger.setLevel(self._logger_before[0])
            logger.propagate = self._logger_before[1]
            self._handler = None

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
            parts.append(f"gap {certainty}{gap:<8.3g}")
        if now.loss is not None:
            parts.append(f"mean loss {now.loss:<8.3g}")
        if now.held_out_loss is not None:
            parts.append(f"held out {now.held_out_loss:<8.3g}")
        if now.target is not None:
            parts.append(f"target {now.target:<8.3g}")
        parts.append(f"{now.seconds:5.1f} s")
        parts.append(self._time_left())
        return "  ".join(parts).rstrip()

    def _time_left(self) -> str:
        """How much longer it will take, if something is known of that."""
        now = self.history[-1]
        if now.gap is not None and now.target is not None and now.gap <= now.target:
            return ""
        limit = seconds_to_limit(self.history, self.limits)
        left = limit if self.limits.records is not None else seconds_left(self.history)
        if left is None:
            return f"at most {_duration(limit)} left" if limit is not None else ""
        return f"~{_duration(left if limit is None else min(left, limit))} left"

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
        self._live = Live("", console=console, auto_refresh=False)
        self._live.start()

    def update(self, text: str) -> None:
        """Show another text."""
        from rich.text import Text

        self._live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)

    def stop(self) -> None:
        """Leave the last text there."""
        self._live.stop()


class _NotebookLine:
    """A line of text in the output of a notebook's cell that is replaced in place."""

    def __init__(self, display: Any) -> None:
        self._handle = display({"text/plain": ""}, raw=True, display_id=True)

    def update(self, text: str) -> None:
        """Show another text."""
        self._handle.update({"text/plain": text}, raw=True)

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
