"""The most memory that this process and all those that it started held at once, while something ran.

It is the sum of their resident sets, looked at a few times a second. Pages that forked processes share are counted in
each of them: the truth is smaller.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

import psutil

INTERVAL_S = 0.1


class PeakMemory:
    """A context; ``peak_bytes`` afterwards."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
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

    def _watch(self) -> None:
        while True:
            self.peak_bytes = max(self.peak_bytes, resident_bytes())
            if self._over.wait(INTERVAL_S):
                return


def resident_bytes() -> int:
    """What this process and its descendants hold now."""
    this_process = psutil.Process()
    total = 0
    for process in [this_process, *this_process.children(recursive=True)]:
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total
