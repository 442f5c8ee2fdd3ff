"""One direction of one proxied connection: it forwards bytes, or keeps them while its link is held.

While held, what was read is kept in order and reading goes on up to a bound, then back-pressure reaches the sender.
The end of the stream is kept behind the bytes: a sender that closes while its link is held has its last words
delivered after the heal, which is how a stale control request arises. A connection attempted while its link
is held is not dialled before the heal, so its caller cannot learn whether the other side lives; when the caller has
given it up by then it is forgotten, because a handshake that nobody answered never carries a byte.

How a stream ends: the caller's end half-closes towards the node (its replies may still come); the node's end
closes the caller's connection, as a killed server's kernel does. Limit: a held caller still sees its connection
accepted, because a listening socket of user space cannot leave a handshake unanswered.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from nemesis.interfaces.links import Link
from nemesis.runtimes.local.link_table import LinkTable
from nemesis.support.frame_collector import FrameCollector
from nemesis.support.frame_scanner import NO_KEYS, FrameScanner

HELD_LIMIT_BYTES = 16 * 1024 * 1024
"""Kept per flow before the sender feels back-pressure."""


class Flow:
    """Bytes from ``link.source`` to ``link.target`` on one connection. ``spring`` is read, ``sink`` written.

    ``has_requests`` says that these are Kafka requests, so that API keys can be held. ``dial`` is called when bytes
    may flow but there is no sink yet; ``finish`` when the stream has ended and all before the end is written.
    """

    def __init__(
        self,
        table: LinkTable,
        link: Link,
        *,
        has_requests: bool,
        dial: Callable[[], None],
        finish: Callable[[], None],
        copy: Callable[[bytes], None] | None = None,
    ) -> None:
        """``copy`` is called with each whole request of a kind that the link copies."""
        self._copy = copy
        self._collector = FrameCollector()
        self._stranded_keys = table.armed_keys(link) if has_requests else NO_KEYS
        self._table = table
        self.link = link
        self._scanner = FrameScanner(self._count_frame) if has_requests else None
        self._dial = dial
        self._finish = finish
        self._spring: asyncio.Transport | None = None
        self._sink: asyncio.Transport | None = None
        self._kept: deque[bytes] = deque()
        self._kept_bytes = 0
        self._stopped_at: int | None = None
        self._is_congested = False
        self._is_reading = True
        self._has_ended = False
        self._is_sink_lost = False
        self._is_finished = False

    @property
    def is_held(self) -> bool:
        """Whether a rule keeps this flow's next byte."""
        if self._table.is_held(self.link):
            return True
        if self._stopped_at is None:
            return False
        return self._stopped_at in self._stranded_keys or self._stopped_at in self._table.held_keys(
            self.link.source, self.link.target
        )

    @property
    def is_stranded(self) -> bool:
        """Whether the flow stops, or has stopped, at a request that passes on later connections."""
        return bool(self._stranded_keys)

    def strand(self, api_key: int) -> None:
        """Stop at the next request with this key, whatever the link does with those of other connections."""
        if self._scanner is not None:
            self._stranded_keys |= {api_key}

    def rejoin(self, api_key: int, *, is_abandoned_lost: bool) -> None:
        """Stop no longer at this key. What the sender has given up is lost, if so wanted."""
        was_stopped = self._stopped_at == api_key and api_key in self._stranded_keys
        self._stranded_keys -= {api_key}
        if not was_stopped:
            return
        if is_abandoned_lost and self._has_ended:
            self._kept.clear()
            self._kept_bytes = 0
        self.release()

    def forget_partial_copy(self) -> None:
        """Begin to collect anew: what passes from now on may not be collected."""
        self._collector.forget()

    def open_spring(self, spring: asyncio.Transport) -> None:
        """The sender's side is connected."""
        self._spring = spring
        self._adjust_reading()

    def open_sink(self, sink: asyncio.Transport) -> None:
        """The receiver's side is connected: what was kept may go."""
        self._sink = sink
        self.release()

    def lose_sink(self) -> None:
        """The receiver is gone: whatever is kept or comes has nowhere to go."""
        self._is_sink_lost = True
        self._kept.clear()
        self._kept_bytes = 0
        self._adjust_reading()
        self._end_if_done()

    def feed(self, data: bytes) -> None:
        """The sender sent these bytes."""
        if self._is_sink_lost:
            return
        if self._kept or self._sink is None or self.is_held:
            self._store(data)
        else:
            self._forward(data)

    def end(self) -> None:
        """The sender will send no more."""
        self._has_ended = True
        if self._sink is None and self.is_held:
            self.lose_sink()
        else:
            self._end_if_done()

    def set_congested(self, *, is_congested: bool) -> None:
        """The receiver's socket is full, or no longer."""
        self._is_congested = is_congested
        self._adjust_reading()

    def release(self) -> None:
        """A rule went away: let go what may go, in order."""
        if self._is_sink_lost or self.is_held:
            return
        if self._sink is None:
            self._dial()
            return
        kept, self._kept, self._kept_bytes = self._kept, deque(), 0
        while kept and not self._kept:
            self._forward(kept.popleft())
        self._kept.extend(kept)
        self._kept_bytes += sum(map(len, kept))
        self._adjust_reading()
        self._end_if_done()

    def _forward(self, data: bytes) -> None:
        """Write what the rules let through and keep the rest. The sink is connected and nothing is kept."""
        assert self._sink is not None
        passing, self._stopped_at = len(data), None
        if self._scanner is not None:
            keys = self._table.held_keys(self.link.source, self.link.target)
            if self._stranded_keys:
                keys |= self._stranded_keys
            copied = self._table.copies_after_s(self.link.source, self.link.target)
            begins_request = bool(copied) and self._scanner.is_between_requests
            passing, self._stopped_at = self._scanner.scan(data, keys)
            if self._stopped_at in self._stranded_keys:
                self._table.disarm(self._narrowed(self._stopped_at))
            if copied and self._copy is not None:
                for request in self._collector.collect(
                    data[:passing], copied, begins_request=begins_request
                ):
                    self._copy(request)
        if passing:
            self._table.count_forwarded(self.link, passing)
            self._sink.write(data if passing == len(data) else data[:passing])
        if passing < len(data):
            self._store(data[passing:])

    def _store(self, data: bytes) -> None:
        if self._table.is_held(self.link):
            self._table.count_held(self.link, len(data))
        if self._stopped_at is not None:
            self._table.count_held(self._narrowed(self._stopped_at), len(data))
        self._kept.append(data)
        self._kept_bytes += len(data)
        self._adjust_reading()

    def _count_frame(self, api_key: int, size: int) -> None:
        self._table.count_forwarded(self._narrowed(api_key), size)

    def _narrowed(self, api_key: int) -> Link:
        return Link(self.link.source, self.link.target, api_key)

    def _adjust_reading(self) -> None:
        """Read on unless the receiver is slow or enough is kept; a lost receiver's bytes are read and dropped."""
        wanted = self._is_sink_lost or not (
            self._is_congested or self._kept_bytes >= HELD_LIMIT_BYTES
        )
        spring = self._spring
        if spring is None or spring.is_closing() or wanted == self._is_reading:
            return
        self._is_reading = wanted
        if wanted:
            spring.resume_reading()
        else:
            spring.pause_reading()

    def _end_if_done(self) -> None:
        if not self._has_ended or self._is_finished:
            return
        if not self._is_sink_lost and (self._kept or self._sink is None or self.is_held):
            return
        self._is_finished = True
        self._finish()
