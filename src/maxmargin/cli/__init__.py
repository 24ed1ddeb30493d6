"""The command line: ``maxmargin demo | train | predict | evaluate``.

Each command is a file of this folder with ``add_parser(commands)`` and ``run(arguments)``.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from .. import __version__
from . import demo, evaluate, predict, train

__all__ = ["main"]

BAD_INPUT, INTERRUPTED = 2, 130  # exit codes


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; by default those of the process.

    Returns
    -------
    int
        Exit code: 0, 2 for bad input (one line on the standard error says what is wrong), 130
        after Ctrl-C.
    """
    parser = make_parser()
    arguments = parser.parse_args(argv)
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            return int(arguments.run(arguments) or 0)
        except BrokenPipeError:  # as of `maxmargin predict ... | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except (ValueError, ImportError) as error:
            return _fail(str(error))
        except OSError as error:
            named = error.filename is not None and error.strerror is not None
            return _fail(f"{error.filename}: {error.strerror}" if named else str(error))
        except KeyboardInterrupt:
            print("maxmargin: interrupted", file=sys.stderr)
            return INTERRUPTED


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="maxmargin",
        description="Structural SVMs: train, apply and judge models from the command line.",
    )
    parser.add_argument("--version", action="version", version=f"maxmargin {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (demo, train, predict, evaluate):
        command.add_parser(commands)
    return parser


def _fail(message: str) -> int:
    """Say what is wrong, in one line."""
    print("maxmargin: error:", " ".join(message.split()), file=sys.stderr)
    return BAD_INPUT


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Show a warning without the line of code that gave it."""
    print("maxmargin: warning:", " ".join(str(message).split()), file=sys.stderr)
