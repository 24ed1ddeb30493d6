"""Ctrl-C that is never lost."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType

__all__ = ["InterruptWatch"]


class InterruptWatch:
    """Remembers every SIGINT that arrives inside it; a context manager.

    Python raises KeyboardInterrupt wherever the program happens to be. That may be a destructor, or
    a function called by compiled code, where exceptions are dropped, and training would go on as if
    nothing had happened. Inside the watch it is raised as always; `check` raises it again where it
    has not arrived.

    Only Python's own handler is replaced: a handler that the program has set stays in charge.
    """

    def __init__(self) -> None:
        self._received = 0
        self._arrived = 0
        self._watching = False

    def __enter__(self) -> InterruptWatch:
        in_main_thread = threading.current_thread() is threading.main_thread()
        if in_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._handle)
            self._watching = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._watching and signal.getsignal(signal.SIGINT) == self._handle:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        self._watching = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._received += 1
        signal.default_int_handler(number, frame)

    @property
    def pending(self) -> bool:
        """Whether an interrupt has not arrived where it is answered."""
        return self._received > self._arrived

    def note_arrival(self) -> None:
        """All interrupts so far have been seen."""
        self._arrived = self._received

    def check(self) -> None:
        """Raise KeyboardInterrupt if one is pending."""
        if self.pending:
            raise KeyboardInterrupt
