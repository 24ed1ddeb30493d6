"""Exit codes, words to the user, and signals: what a command is to the process it runs in.

A reader that has gone away does not stop the work; the first Ctrl-C ends it in good order.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TextIO

__all__ = [
    "DONE",
    "ERROR",
    "EXIT_CODES",
    "KEPT",
    "NO_MODEL",
    "STOPPED_EARLY",
    "WRONG_USE",
    "Signals",
    "UsageError",
    "announcing_interrupts",
    "drop_output",
    "echo",
    "echo_result",
    "finish_output",
    "of_signal",
    "standard_output",
    "warn",
    "write_report",
]

DONE, ERROR, WRONG_USE, STOPPED_EARLY, KEPT = (
    0,
    1,
    2,
    3,
    4,
)  # argparse too ends with 2 for a wrong use

EXIT_CODES = """\
exit codes:
  0    done
  1    error: one line on standard error says what is wrong
  2    wrong use of the command line
  3    training stopped before it converged; the model was saved all the same
  4    training finished, but a better model, or one of another kind, was kept under the name
       wanted; the new one is beside it, in a file that ends with .partial
  130  interrupted by Ctrl-C (143: by SIGTERM, 129: by SIGHUP); if training had begun, the model
       so far was saved
"""


class UsageError(ValueError):
    """Arguments that are wrong whatever the files hold, as argparse finds most of them."""


def of_signal(number: int) -> int:
    """The exit code of a program that a signal ended."""
    return 128 + number


def echo(text: str) -> None:
    """Write a line to standard error."""
    _write_line(sys.stderr, text)


def warn(text: str) -> None:
    """Write a warning to standard error."""
    echo(f"maxmargin: warning: {' '.join(text.split())}")


def echo_result(text: str) -> None:
    """Write a line to standard output."""
    _write_line(sys.stdout, text)


def _write_line(stream: TextIO | None, text: str) -> None:
    """Write a line, in what characters the stream has; not at all if nobody listens."""
    if stream is None:
        return
    try:
        print(_in_characters_of(stream, text), file=stream, flush=True)
    except (OSError, ValueError):
        _silence(stream)


def _in_characters_of(stream: TextIO, text: str) -> str:
    """The text, with escapes for what a stream cannot show."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, errors="backslashreplace").decode(encoding)


def write_report(text: str) -> None:
    """Write what a command is called for to standard output, in the characters it has."""
    with standard_output(getattr(sys.stdout, "encoding", None) or "utf-8") as stream:
        stream.write(_in_characters_of(stream, text) + "\n")


@contextmanager
def standard_output(encoding: str) -> Iterator[TextIO]:
    """Standard output as a text stream of some encoding; errors say that it is meant."""
    if sys.stdout is None:
        raise ValueError("standard output is closed")
    binary = getattr(sys.stdout, "buffer", None)
    try:
        if binary is None:  # replaced by something that takes text only
            yield sys.stdout
            return
        sys.stdout.flush()
        stream = io.TextIOWrapper(binary, encoding=encoding, newline="\n")
        try:
            yield stream
            stream.flush()
        finally:
            with suppress(OSError):
                stream.detach()
    except UnicodeEncodeError as error:
        bad = error.object[error.start : error.end][:20]
        raise ValueError(f"standard output: {bad!r} cannot be written in {encoding}") from error
    except OSError as error:
        error.filename = error.filename or "standard output"
        raise


def finish_output() -> None:
    """Write out what is waiting, while errors can still be reported."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError as error:
        error.filename = "standard output"
        _silence(sys.stdout)
        raise


def drop_output() -> None:
    """Forget what is waiting: nobody reads on."""
    if sys.stdout is not None:
        _silence(sys.stdout)


def _silence(stream: TextIO) -> None:
    """Send what a stream still holds, and all that follows, to nowhere."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, stream.fileno())
        finally:
            os.close(nowhere)


NO_MODEL = "before the first pass was over; no model was saved"

# SIGHUP, of a terminal that is closed, does not exist everywhere.
_NUMBERS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
_SHOW_CURSOR = "\033[?25h"


class Interrupted(KeyboardInterrupt):
    """A signal came.

    A class of its own, for Python remembers a plain KeyboardInterrupt that passes through ``exec``,
    as of a dataclass that is made, and ends the process by SIGINT even if it was caught.
    """


@contextmanager
def announcing_interrupts(text: str | Callable[[], str]) -> Iterator[None]:
    """Let an interrupt of the block say what became of the work; a function says it then."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(text if isinstance(text, str) else text()) from None


class Signals:
    """Turns signals into KeyboardInterrupt while the block runs.

    Attributes
    ----------
    received : int or None
        The first signal that came.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._saving = False
        self._has_saved = False
        self._before: dict[int, Any] = {}
        self._unraisable = sys.unraisablehook

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():  # others may not set handlers
            for number in _NUMBERS:
                # What is ignored, as by nohup or in the background of a shell, stays so.
                if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                    self._before[number] = signal.signal(number, self._handle)
        self._unraisable = sys.unraisablehook
        sys.unraisablehook = self._hide_lost
        return self

    def __exit__(self, *_: Any) -> None:
        sys.unraisablehook = self._unraisable
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def code(self) -> int:
        """The exit code for the signal received."""
        return of_signal(signal.SIGINT if self.received is None else self.received)

    @property
    def explain_errors(self) -> bool:
        """Whether an error is what others made of an interrupt.

        A module that is being imported may turn it into an ImportError of its own, or worse.
        Where a model is saved after an interrupt, an error is an error.
        """
        return self.received is not None and not self._has_saved

    def check(self, _: Any = None) -> None:
        """Raise again what was raised where exceptions get lost; a callback of the training."""
        if self.received is not None:
            raise Interrupted

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Let the block finish: a first signal is noted, only a second one ends it."""
        self._saving = self._has_saved = True
        self._set_all(self._handle)
        try:
            yield
        finally:
            self._saving = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        """Receive a signal."""
        if self.received is not None:  # while saving; the file that is being written is removed
            raise SystemExit(of_signal(number))
        self.received = number
        if self._saving:
            return
        # From now on the system itself ends the process, even inside a long computation. Then
        # nobody would bring back the cursor that the display of the progress hides.
        self._set_all(signal.SIG_DFL)
        if sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write(_SHOW_CURSOR)
        raise Interrupted

    def _hide_lost(self, unraisable: Any) -> None:
        """Say nothing of an interrupt that a destructor dropped: `check` finds it later."""
        if not issubclass(unraisable.exc_type, Interrupted):
            self._unraisable(unraisable)

    def _set_all(self, handler: Any) -> None:
        """Set the handlers of all signals listened to."""
        for number in self._before:
            signal.signal(number, handler)
