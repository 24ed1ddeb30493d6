"""Exit codes, and what the help says of them."""

from __future__ import annotations

__all__ = ["DONE", "ERROR", "EXIT_CODES", "STOPPED_EARLY", "WRONG_USE", "UsageError", "of_signal"]

DONE, ERROR, WRONG_USE, STOPPED_EARLY = 0, 1, 2, 3  # argparse too ends with 2 for a wrong use

EXIT_CODES = """\
exit codes:
  0    done
  1    error: one line on the standard error says what is wrong
  2    wrong use of the command line
  3    training stopped before the precision asked for; the model was saved all the same
  130  interrupted by Ctrl-C (143: by SIGTERM, 129: by SIGHUP); what was learned was saved if
       training had begun
"""


class UsageError(ValueError):
    """Arguments that are wrong whatever the files hold, as argparse finds most of them."""


def of_signal(number: int) -> int:
    """The exit code of a program that a signal ended."""
    return 128 + number
