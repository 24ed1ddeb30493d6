"""What runs on a worker: parts that stay in its memory from one question to the next."""

from __future__ import annotations

import pickle
import threading
from typing import Any, NamedTuple

from ..types import Floats
from .executor import Loader, ShardConfig, ShardInfo, build_shard
from .shard import Shard

__all__ = ["Missing", "drop", "work"]

_PARTS: dict[tuple[str, int], tuple[Shard, ShardInfo, threading.Lock]] = {}
_OVER: set[str] = set()
_GUARD = threading.Lock()


class Missing(NamedTuple):
    """The answer of a worker that does not have the part, and was not told how it is made."""

    shard: int


def work(
    job: str,
    shard: int,
    making: tuple[Loader, ShardConfig] | bytes | None,
    method: str,
    w: Floats | None,
    message: tuple[Any, ...],
) -> Any:
    """Let a part answer a question; it is made, if it is not there.

    ``making``, or its pickle, may be None where it is known to be there. The method "info" asks
    for `ShardInfo`.
    """
    if job in _OVER:  # nobody waits for the answer
        return Missing(shard)
    known = _PARTS.get((job, shard))
    if known is None:
        if making is None:
            return Missing(shard)
        if isinstance(making, bytes):
            making = pickle.loads(making)
        built, info = build_shard(*making)
        with _GUARD:
            if job in _OVER:
                return Missing(shard)
            known = _PARTS.setdefault((job, shard), (built, info, threading.Lock()))
    trained, info, lock = known
    if method == "info":
        return info
    with lock:  # a worker may have several threads, and a question may be asked again
        return getattr(trained, method)(w, *message)


def drop(job: str) -> None:
    """Forget the parts of a training that is over."""
    with _GUARD:
        _OVER.add(job)  # a part that is still being made is not kept
        for key in [key for key in _PARTS if key[0] == job]:
            del _PARTS[key]
