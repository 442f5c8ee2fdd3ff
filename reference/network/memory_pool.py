"""How many bytes of requests a broker holds at once (``queued.max.request.bytes``).

As in Kafka's SimpleMemoryPool (not strict), a frame is taken while anything is left, however large it is, so the
bound can be exceeded by one frame: no request is too large to be ever served. Who found the pool empty is woken, in
the order of asking, when something is given back. Kafka gives a request's bytes back once it is decoded, except for
Produce; here that is when the request is answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

UNLIMITED: Final = -1


class MemoryPool:
    """Counts bytes; reserves nothing."""

    def __init__(self, size_bytes: int = UNLIMITED) -> None:
        self._size_bytes = size_bytes
        self.used_bytes = 0
        self._waiting: dict[Callable[[], None], None] = {}

    def has_room(self, wakeup: Callable[[], None]) -> bool:
        """Whether a frame may be taken; if not, ``wakeup`` is called once when that may have changed."""
        if self._size_bytes < 0 or self.used_bytes < self._size_bytes:
            return True
        self._waiting[wakeup] = None
        return False

    def allocate(self, size: int) -> None:
        self.used_bytes += size

    def release(self, size: int) -> None:
        """Give back what was allocated for one frame."""
        self.used_bytes -= size
        if self._waiting and self.used_bytes < self._size_bytes:
            waiting, self._waiting = self._waiting, {}
            for wakeup in waiting:
                wakeup()
