"""Errors of estimators, which count examples, told by file and line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = ["at_lines"]


@contextmanager
def at_lines(noun: str, source: Any, lines: Sequence[int]) -> Iterator[None]:
    """Let errors that begin as "sentence 3, word 2: ..." begin as "file:line, word 2: ..."."""
    try:
        yield
    except ValueError as error:
        found = re.match(rf"{noun} (\d+)(?=[:,])", str(error))
        if found is None or int(found[1]) >= len(lines):
            raise
        text = str(error)[found.end() :].lstrip(", ")
        spaced = text if text.startswith(":") else f": {text}"
        raise ValueError(f"{source}:{lines[int(found[1])]}{spaced}") from error
