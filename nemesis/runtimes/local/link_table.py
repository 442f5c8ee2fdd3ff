"""The state of all links: which are held, what each has carried, and where Kafka's frames begin.

A link is a direction of bytes between two named nodes. It is held as a whole, or only for requests of certain API
keys (``Link.api_key``). The table is asked by every flow of the proxy before it forwards; it does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from nemesis.runtimes.base import Link, LinkCounters

FRAME_HEADER_SIZE = 6
"""A Kafka request begins with its size (4 bytes, not counting themselves) and its API key (2 bytes)."""

NO_KEYS: frozenset[int] = frozenset()


class LinkTable:
    """Which links are held, and how many bytes went and stayed. Links never seen count zero."""

    def __init__(self) -> None:
        self._held: set[Link] = set()
        self._keys: dict[tuple[str, str], frozenset[int]] = {}
        self._forwarded_bytes: dict[Link, int] = {}
        self._held_bytes: dict[Link, int] = {}

    def hold(self, links: Iterable[Link]) -> None:
        """Hold these links from now on. Holding a held link changes nothing."""
        self._held.update(links)
        self._index_keys()

    def release(self, links: Iterable[Link]) -> None:
        """Hold these links no longer. Releasing a free link changes nothing."""
        self._held.difference_update(links)
        self._index_keys()

    def is_held(self, link: Link) -> bool:
        return link in self._held

    def held_keys(self, source: str, target: str) -> frozenset[int]:
        """Return the API keys whose requests from source to target are held."""
        return self._keys.get((source, target), NO_KEYS)

    def count_forwarded(self, link: Link, size: int) -> None:
        self._forwarded_bytes[link] = self._forwarded_bytes.get(link, 0) + size

    def count_held(self, link: Link, size: int) -> None:
        self._held_bytes[link] = self._held_bytes.get(link, 0) + size

    def counters(self, link: Link) -> LinkCounters:
        """Return what this link did since the start, in bytes. A byte held and let go later counts in both."""
        return LinkCounters(
            forwarded_bytes=self._forwarded_bytes.get(link, 0),
            held_bytes=self._held_bytes.get(link, 0),
        )

    def _index_keys(self) -> None:
        keys: dict[tuple[str, str], frozenset[int]] = {}
        for link in self._held:
            if link.api_key is not None:
                pair = (link.source, link.target)
                keys[pair] = keys.get(pair, NO_KEYS) | {link.api_key}
        self._keys = keys


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

    def scan(self, data: bytes, keys: frozenset[int]) -> tuple[int, int | None]:
        """Return how many bytes may pass, and the API key at which it stopped (None: all may pass).

        The bytes that may pass are consumed. The others must be given again, as the start of the next data; of a
        request that is stopped, up to five bytes may have passed before its key was known: the receiver waits.
        """
        position, size = 0, len(data)
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
