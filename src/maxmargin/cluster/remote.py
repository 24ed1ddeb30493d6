"""What runs on a worker: parts that stay in its memory from one question to the next."""

from __future__ import annotations

import pickle
import threading
from typing import Any, NamedTuple

from ..types import Floats
from .part import Part
from .team import Facts, Recipe, Terms, build_part

__all__ = ["Missing", "drop", "work"]

_PARTS: dict[tuple[str, int], tuple[Part, Facts, threading.Lock]] = {}
_OVER: set[str] = set()
_GUARD = threading.Lock()


class Missing(NamedTuple):
    """The answer of a worker that does not have the part, and was not told how it is made."""

    part: int


def work(
    job: str,
    part: int,
    making: tuple[Recipe, Terms] | bytes | None,
    method: str,
    w: Floats | None,
    message: tuple[Any, ...],
) -> Any:
    """Let a part answer a question; it is made, if it is not there.

    ``making``, or its pickle, may be None where it is known to be there. The method "facts" asks
    for `Facts`.
    """
    if job in _OVER:  # nobody waits for the answer
        return Missing(part)
    known = _PARTS.get((job, part))
    if known is None:
        if making is None:
            return Missing(part)
        if isinstance(making, bytes):
            making = pickle.loads(making)
        built, facts = build_part(*making)
        with _GUARD:
            if job in _OVER:
                return Missing(part)
            known = _PARTS.setdefault((job, part), (built, facts, threading.Lock()))
    trained, facts, lock = known
    if method == "facts":
        return facts
    with lock:  # a worker may have several threads, and a question may be asked again
        return getattr(trained, method)(w, *message)


def drop(job: str) -> None:
    """Forget the parts of a training that is over."""
    with _GUARD:
        _OVER.add(job)  # a part that is still being made is not kept
        for key in [key for key in _PARTS if key[0] == job]:
            del _PARTS[key]
