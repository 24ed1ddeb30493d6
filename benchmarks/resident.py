"""Anonymous memory of this process, and its peak: what the page cache holds is not counted."""

from __future__ import annotations

import threading
from types import TracebackType

EVERY = 0.02  # seconds between two looks


def resident(name: str = "RssAnon") -> float:
    """Memory of this process in MB (2^20 bytes), as Linux tells it: RssAnon, RssFile or VmRSS."""
    with open("/proc/self/status", encoding="ascii") as stream:
        found = next(line for line in stream if line.startswith(name))
    return int(found.split()[1]) / 1024


class Peak:
    """Within it, the largest anonymous memory is noted, by a thread that looks again and again."""

    def __enter__(self) -> Peak:
        self.before = self.most = resident()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        self.most = max(self.most, resident())

    def _look(self) -> None:
        while not self._over.wait(EVERY):
            self.most = max(self.most, resident())
