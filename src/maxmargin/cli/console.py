"""Words to the user; a reader that has gone away does not stop the work."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

__all__ = [
    "drop_output",
    "echo",
    "echo_result",
    "finish_output",
    "standard_output",
    "warn",
    "write_report",
]


def echo(text: str) -> None:
    """Write a line to the standard error."""
    _write_line(sys.stderr, text)


def warn(text: str) -> None:
    """Write a warning to the standard error."""
    echo(f"maxmargin: warning: {' '.join(text.split())}")


def echo_result(text: str) -> None:
    """Write a line to the standard output."""
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
    """Write what a command is called for to the standard output, in the characters it has."""
    with standard_output(getattr(sys.stdout, "encoding", None) or "utf-8") as stream:
        stream.write(_in_characters_of(stream, text) + "\n")


@contextmanager
def standard_output(encoding: str) -> Iterator[TextIO]:
    """The standard output as a text stream of some encoding; errors say that it is meant."""
    if sys.stdout is None:
        raise ValueError("the standard output is closed")
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
