"""Numbers on the command line, as types of options: errors say what was expected."""

from __future__ import annotations

import argparse
import math

__all__ = [
    "folds",
    "jobs",
    "non_negative",
    "non_negative_number",
    "number",
    "per_cent",
    "positive",
    "positive_number",
    "values_of_C",
    "whole_number",
]


def number(text: str) -> float:
    """A number; others check what numbers it may be."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number, got {text!r:.40}") from None


def whole_number(text: str) -> int:
    """A whole number, which may be negative."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r:.40}") from None


def non_negative(text: str) -> int:
    """A whole number from 0."""
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise argparse.ArgumentTypeError(f"expected a whole number >= 0, got {text!r:.40}")
    return int(text)


def positive(text: str) -> int:
    """A whole number from 1."""
    if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text)):
        raise argparse.ArgumentTypeError(f"expected a whole number >= 1, got {text!r:.40}")
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
        f"expected positive numbers separated by commas, or FROM:TO:N, got {text!r:.40}"
    )


def per_cent(text: str) -> float:
    """A number between 0 and 100."""
    if not 0.0 < (value := _float(text)) < 100.0:
        raise argparse.ArgumentTypeError(f"expected a number between 0 and 100, got {text!r:.40}")
    return value


def positive_number(text: str) -> float:
    """A finite number above 0."""
    if not 0.0 < (value := _float(text)) < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r:.40}")
    return value


def non_negative_number(text: str) -> float:
    """A finite number from 0."""
    if not 0.0 <= (value := _float(text)) < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number >= 0, got {text!r:.40}")
    return value


def _float(text: str) -> float:
    """A number; NaN for what is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan
