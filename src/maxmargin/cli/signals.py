"""Ctrl-C and its kin: the first signal ends what is going on in good order, the second at once."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from .codes import of_signal

__all__ = ["NO_MODEL", "Signals", "announcing_interrupts"]

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
def announcing_interrupts(text: str) -> Iterator[None]:
    """Let an interrupt of the block say what became of the work."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(text) from None


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
