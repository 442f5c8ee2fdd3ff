"""The state of all links: which are held, and what each has carried.

A link is a direction of bytes between two named nodes. It is held as a whole, or only for requests of certain API
keys (``Link.api_key``). The table is asked by every flow of the proxy before it forwards; it does no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from nemesis.interfaces.links import Link, LinkCounters
from nemesis.support.frame_scanner import NO_KEYS

NO_COPIES: Final[Mapping[int, float]] = MappingProxyType({})


class LinkTable:
    """Which links are held, and how many bytes went and stayed. Links never seen count zero."""

    def __init__(self) -> None:
        self._held: set[Link] = set()
        self._keys: dict[tuple[str, str], frozenset[int]] = {}
        self._armed_keys: dict[tuple[str, str], frozenset[int]] = {}
        self._copies_after_s: dict[tuple[str, str], dict[int, float]] = {}
        self._copies: dict[Link, int] = {}
        self.copies_under_way: dict[tuple[str, str], int] = {}
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

    def arm(self, link: Link) -> None:
        """Let new flows stop at requests with the link's API key."""
        assert link.api_key is not None
        pair = (link.source, link.target)
        self._armed_keys[pair] = self._armed_keys.get(pair, NO_KEYS) | {link.api_key}

    def disarm(self, link: Link) -> None:
        """Let new flows be free of the link's API key."""
        pair = (link.source, link.target)
        self._armed_keys[pair] = self._armed_keys.get(pair, NO_KEYS) - {link.api_key}

    def armed_keys(self, link: Link) -> frozenset[int]:
        """Return the API keys at which a new flow of the link stops."""
        return self._armed_keys.get((link.source, link.target), NO_KEYS)

    def copy(self, links: Iterable[Link], after_s: float) -> None:
        """Let a copy of each request with the link's API key arrive so many seconds later; 0 ends it."""
        for link in links:
            assert link.api_key is not None
            pair = (link.source, link.target)
            copied = {**self._copies_after_s.pop(pair, {}), link.api_key: after_s}
            if remaining := {key: seconds for key, seconds in copied.items() if seconds}:
                self._copies_after_s[pair] = remaining

    def copies_after_s(self, source: str, target: str) -> Mapping[int, float]:
        """Return how much later requests from source to target arrive once more, by API key."""
        return self._copies_after_s.get((source, target), NO_COPIES)

    def count_copy(self, link: Link) -> None:
        self._copies[link] = self._copies.get(link, 0) + 1

    def count_under_way(self, link: Link, change: int) -> None:
        pair = (link.source, link.target)
        self.copies_under_way[pair] = self.copies_under_way.get(pair, 0) + change

    def count_forwarded(self, link: Link, size: int) -> None:
        self._forwarded_bytes[link] = self._forwarded_bytes.get(link, 0) + size

    def count_held(self, link: Link, size: int) -> None:
        self._held_bytes[link] = self._held_bytes.get(link, 0) + size

    def counters(self, link: Link) -> LinkCounters:
        """Return what this link did since the start, in bytes. A byte held and let go later counts in both."""
        return LinkCounters(
            forwarded_bytes=self._forwarded_bytes.get(link, 0),
            held_bytes=self._held_bytes.get(link, 0),
            copies=self._copies.get(link, 0),
        )

    def _index_keys(self) -> None:
        keys: dict[tuple[str, str], frozenset[int]] = {}
        for link in self._held:
            if link.api_key is not None:
                pair = (link.source, link.target)
                keys[pair] = keys.get(pair, NO_KEYS) | {link.api_key}
        self._keys = keys
