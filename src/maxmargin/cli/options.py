"""Options that several commands share; light, for every call of the command line reads them."""

from __future__ import annotations

import argparse
import math
import textwrap
from typing import Any

__all__ = [
    "SEPARATORS",
    "add_jobs_option",
    "add_reading_options",
    "folds",
    "list_tasks",
    "non_negative",
    "per_cent",
    "positive",
    "seconds",
    "values_of_C",
]

SEPARATORS = {"auto": None, "tab": "\t", "space": " "}
_ENCODING = "utf-8"


def add_reading_options(group: Any, default_separator: str) -> None:
    """Describe the options for text files; the default of the separator is put into words."""
    group.add_argument(
        "--encoding",
        default=_ENCODING,
        type=_encoding,
        help=f"text encoding of the files (default {_ENCODING})",
    )
    group.add_argument(
        "--separator",
        choices=list(SEPARATORS),
        help="what separates the fields of a column file: auto (any spaces and tabs), tab (fields "
        f"may hold spaces) or space (default {default_separator})",
    )


def add_jobs_option(group: Any) -> None:
    """Describe the number of threads."""
    group.add_argument(
        "--n-jobs", type=jobs, metavar="N", help="number of threads; -1 for all cores (default 1)"
    )


def list_tasks(texts: dict[str, str]) -> str:
    """Lines of help on each task."""
    width = 2 + max(map(len, texts))
    return "\n".join(
        textwrap.fill(
            text,
            width=96,
            initial_indent=f"  {name:<{width}}",
            subsequent_indent=" " * (2 + width),
            break_on_hyphens=False,
        )
        for name, text in texts.items()
    )


def non_negative(text: str) -> int:
    """A whole number from 0."""
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise argparse.ArgumentTypeError(f"expected a whole number >= 0, got {text!r:.40}")
    return int(text)


def positive(text: str) -> int:
    """A whole number from 1."""
    if non_negative(text) == 0:
        raise argparse.ArgumentTypeError("expected a whole number >= 1, got '0'")
    return int(text)


def jobs(text: str) -> int:
    """A number of threads, or -1."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1 and value != -1:
        raise argparse.ArgumentTypeError(
            f"expected a whole number >= 1, or -1 for all cores, got {text!r:.40}"
        )
    return value


def folds(text: str) -> int:
    """A number of folds."""
    if (value := non_negative(text)) < 2:
        raise argparse.ArgumentTypeError(f"expected a whole number >= 2, got {text!r:.40}")
    return value


def values_of_C(text: str) -> list[float]:
    """Values between commas, or FROM:TO:N for N of them in equal ratios."""
    ends, colon, number = text.rpartition(":")
    try:
        if colon:
            low, high = map(float, ends.split(":"))
            n = positive(number)
            ratio = (high / low) ** (1.0 / max(n - 1, 1))
            values = [low * ratio**k for k in range(n)]
        else:
            values = [float(value) for value in text.split(",")]
        if all(0.0 < value < math.inf for value in values):
            return sorted(set(values))
    except (ValueError, ZeroDivisionError, OverflowError, argparse.ArgumentTypeError):
        pass
    raise argparse.ArgumentTypeError(
        f"expected positive numbers between commas, or FROM:TO:N, got {text!r:.40}"
    )


def per_cent(text: str) -> float:
    """A number between 0 and 100."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < 100.0:
        raise argparse.ArgumentTypeError(f"expected a number between 0 and 100, got {text!r:.40}")
    return value


def seconds(text: str) -> float:
    """A time, of 0 seconds or more."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number >= 0, got {text!r:.40}")
    return value


def _encoding(name: str) -> str:
    """An encoding named on the command line."""
    if name == _ENCODING:  # the default needs no import
        return name
    from ..formats.opening import check_encoding

    try:
        check_encoding(name)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return name
