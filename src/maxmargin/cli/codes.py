"""Exit codes, and what the help says of them."""

from __future__ import annotations

__all__ = ["DONE", "ERROR", "EXIT_CODES", "STOPPED_EARLY", "of_signal"]

DONE, ERROR, STOPPED_EARLY = 0, 1, 3  # argparse ends with 2 for a wrong use

EXIT_CODES = """\
exit codes:
  0    done
  1    error: one line on the standard error says what is wrong
  2    wrong use of the command line
  3    training stopped before the precision asked for; the model was saved all the same
  130  interrupted by Ctrl-C (143: by SIGTERM, 129: by SIGHUP); what was learned was saved if
       training had begun
"""


def of_signal(number: int) -> int:
    """The exit code of a program that a signal ended."""
    return 128 + number
