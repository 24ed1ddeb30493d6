"""``python -m maxmargin`` is the command line, as is the command ``maxmargin``."""

from __future__ import annotations

import os
import sys

try:
    import signal
except KeyboardInterrupt:  # from then on `run` listens
    os._exit(130)

TYPE_CHECKING = False  # typing takes a while to import, in which nobody listens to Ctrl-C
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn

__all__ = ["run"]


def run() -> int:
    """Run the command line; Ctrl-C ends it without a traceback at any time."""
    listens = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if listens:  # what is imported may drop an exception, or make another one of it
        signal.signal(signal.SIGINT, _end)
    from .cli import main

    try:
        if listens:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return main()
    except KeyboardInterrupt:  # before a command begins; it has its own words
        _end(signal.SIGINT)
    finally:
        if listens:
            signal.signal(signal.SIGINT, _end)


def _end(number: int, _: FrameType | None = None) -> NoReturn:
    """End the process at once: there is nothing to save before a command begins, or after it."""
    os.write(2, b"maxmargin: interrupted\n")
    os._exit(128 + number)


if __name__ == "__main__":
    sys.exit(run())
