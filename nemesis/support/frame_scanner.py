"""Where Kafka's requests begin in a stream of bytes, so that those of one API key can be held or counted."""

from __future__ import annotations

from collections.abc import Callable

FRAME_HEADER_SIZE = 6
"""A Kafka request begins with its size (4 bytes, not counting themselves) and its API key (2 bytes)."""

NO_KEYS: frozenset[int] = frozenset()


class FrameScanner:
    """Finds the requests in one connection's bytes towards a broker.

    It reads six bytes of each frame and skips the rest. Bytes that cannot be Kafka's (a negative size) switch it
    off for good: the connection is then forwarded without looking, and the broker says what it thinks of it.
    """

    def __init__(self, on_frame: Callable[[int, int], None]) -> None:
        """``on_frame(api_key, size in bytes)`` is told of every request that is let through."""
        self._on_frame = on_frame
        self._header = b""
        self._rest = 0
        self._is_foreign = False

    @property
    def is_between_requests(self) -> bool:
        """Whether the next byte begins a request."""
        return not self._rest and not self._header and not self._is_foreign

    def scan(self, data: bytes, keys: frozenset[int]) -> tuple[int, int | None]:
        """Return how many bytes may pass, and the API key at which it stopped (None: all may pass).

        The bytes that may pass are consumed. The others must be given again, as the start of the next data; of a
        request that is stopped, up to five bytes may have passed before its key was known: the receiver waits.
        """
        position, size = 0, len(data)
        if not self._rest and not self._header and self._is_one_frame(data, keys):
            return size, None
        while position < size and not self._is_foreign:
            if self._rest:
                step = min(self._rest, size - position)
                self._rest -= step
                position += step
                continue
            wanted = data[position : position + FRAME_HEADER_SIZE - len(self._header)]
            header = self._header + wanted
            if len(header) < FRAME_HEADER_SIZE:
                self._header = header
                return size, None
            frame_size = int.from_bytes(header[:4], signed=True)
            api_key = int.from_bytes(header[4:], signed=True)
            if api_key in keys:
                return position, api_key
            position += len(wanted)
            self._header = b""
            if frame_size < 2:
                self._is_foreign = True
            else:
                self._rest = frame_size - 2
                self._on_frame(api_key, frame_size + 4)
        return size, None

    def _is_one_frame(self, data: bytes, keys: frozenset[int]) -> bool:
        """Whether the data, which begin a frame, are just one that may pass: the common case, made cheap."""
        size = len(data)
        if size < FRAME_HEADER_SIZE or int.from_bytes(data[:4]) != size - 4 or self._is_foreign:
            return False
        api_key = int.from_bytes(data[4:FRAME_HEADER_SIZE], signed=True)
        if api_key in keys:
            return False
        self._on_frame(api_key, size)
        return True
