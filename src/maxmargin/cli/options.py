"""Options that several commands share; light, for every call of the command line reads them."""

from __future__ import annotations

import argparse
import textwrap
from typing import Any

__all__ = ["SEPARATORS", "add_reading_options", "list_tasks", "non_negative", "positive"]

SEPARATORS = {"auto": None, "tab": "\t", "space": " "}
_ENCODING = "utf-8"


def add_reading_options(group: Any, default_separator: str) -> None:
    """Describe the options for text files; the default of the separator is put into words."""
    group.add_argument(
        "--encoding", default=_ENCODING, type=_encoding, help=f"of the text (default {_ENCODING})"
    )
    group.add_argument(
        "--separator",
        choices=list(SEPARATORS),
        help="between the fields of a column file: auto (any spaces and tabs), tab (fields may "
        f"hold spaces) or space; default {default_separator}",
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
