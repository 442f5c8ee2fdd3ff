"""Links: directions of bytes between two nodes, and the pipes (directions of one connection) that run over them.

A pipe gives every chunk a latency and delivers in order. While its link is held, it keeps what is written to it, the
end of the stream (or its reset) behind the bytes, and delivers all that at the release, even if the sender has closed
or died since: that is how a stale control request arises. When only an API key is held, the first request with that
key stops the pipe there; all behind it waits, as on a real connection. Held pipes keep any amount of bytes: the sender
feels no back-pressure.

The meaning is that of the proxy of the local runtime (``nemesis.runtimes.local.flow``), which does the same to bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextvars import Context
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from nemesis.interfaces.links import Link, LinkCounters
from nemesis.support.frame_collector import FrameCollector
from nemesis.support.frame_scanner import NO_KEYS, FrameScanner

if TYPE_CHECKING:
    from nemesis.simulation.loop import SimulationLoop


class Ending(Enum):
    """How a direction ends."""

    EOF = "eof"
    RESET = "reset"


Item = bytes | Ending


class Receiver(Protocol):
    """The end of a connection that a pipe delivers to."""

    context: Context
    is_socket_closed: bool

    def receive(self, item: Item) -> None:
        """Called in ``context`` when the item arrives."""

    def bounce(self) -> None:
        """Called for an item that arrives at a closed socket: the kernel answers with a reset."""


@dataclass(frozen=True, slots=True)
class Latency:
    """How long a chunk takes, in seconds: evenly between the bounds, and rarely up to ``spike_s`` more."""

    lowest_s: float = 50e-6
    highest_s: float = 500e-6
    spike_rate: float = 0.002
    spike_s: float = 5e-3

    def sampler(self, rng: Random) -> Callable[[], float]:
        """A function that draws one latency, from one number."""
        draw, spike_rate = rng.random, self.spike_rate
        lowest_s, width_s, spike_s = self.lowest_s, self.highest_s - self.lowest_s, self.spike_s

        def sample() -> float:
            drawn = draw()
            latency_s = lowest_s + width_s * drawn
            return latency_s if drawn >= spike_rate else latency_s + spike_s * drawn / spike_rate

        return sample


LATENCIES: Final[Mapping[str, Latency]] = MappingProxyType(
    {
        "calm": Latency(),
        "slow": Latency(lowest_s=2e-3, highest_s=20e-3, spike_rate=0.002, spike_s=50e-3),
        "spiky": Latency(spike_rate=0.03, spike_s=100e-3),
    }
)
"""Networks that a scenario can ask for: a rack, a pair of regions, a rack with queues that are full now and then."""


@dataclass(slots=True, eq=False)
class LinkState:
    """What is known of one direction between two nodes."""

    source: str
    target: str
    is_held: bool = False
    held_keys: frozenset[int] = NO_KEYS
    delay_s: float = 0.0
    forwarded_bytes: int = 0
    held_bytes: int = 0
    forwarded_by_key: dict[int, int] = field(default_factory=dict)
    held_by_key: dict[int, int] = field(default_factory=dict)
    copies_after_s: dict[int, float] = field(default_factory=dict)
    """How much later, in seconds, requests of an API key arrive once more."""
    copies_by_key: dict[int, int] = field(default_factory=dict)
    copies_under_way: int = 0
    stranded: dict[Pipe, None] = field(default_factory=dict)
    """The pipes that stop at a request, or have stopped at it, while later connections are free."""
    armed_keys: frozenset[int] = NO_KEYS
    """Keys at which new pipes stop, too, because no pipe has stopped there yet."""
    stopped: dict[Pipe, None] = field(default_factory=dict)
    """The pipes that keep something, in the order in which they stopped."""
    waiting: dict[Callable[[], None], None] = field(default_factory=dict)
    """What to call at a release: connections that are attempted over this link."""

    def hold(self, api_key: int | None) -> None:
        if api_key is None:
            self.is_held = True
        else:
            self.held_keys |= {api_key}

    def release(self, api_key: int | None) -> None:
        """Hold no longer, and let go what may go."""
        if api_key is None:
            self.is_held = False
        else:
            self.held_keys -= {api_key}
        if self.is_held:
            return
        waiting, self.waiting = self.waiting, {}
        for attempt in waiting:
            attempt()
        stopped, self.stopped = self.stopped, {}
        for pipe in stopped:
            pipe.release()

    def rejoin(self, api_key: int, *, is_abandoned_lost: bool) -> None:
        """Let the stranded pipes go on."""
        self.armed_keys -= {api_key}
        stranded, self.stranded = self.stranded, {}
        for pipe in stranded:
            if pipe.rejoin(api_key, is_abandoned_lost=is_abandoned_lost):
                self.stranded[pipe] = None

    def counters(self, api_key: int | None) -> LinkCounters:
        """What passed and what was kept. A byte kept and let go later counts in both."""
        if api_key is None:
            return LinkCounters(self.forwarded_bytes, self.held_bytes)
        return LinkCounters(
            self.forwarded_by_key.get(api_key, 0),
            self.held_by_key.get(api_key, 0),
            self.copies_by_key.get(api_key, 0),
        )

    def count_copy(self, api_key: int) -> None:
        self.copies_by_key[api_key] = self.copies_by_key.get(api_key, 0) + 1

    def count_frame(self, api_key: int, size: int) -> None:
        self.forwarded_by_key[api_key] = self.forwarded_by_key.get(api_key, 0) + size

    def link(self) -> Link:
        return Link(self.source, self.target)


class Pipe:
    """One direction of one connection. ``receiver`` is set when the connection is made."""

    __slots__ = (
        "_collector",
        "_copy",
        "_draw_latency",
        "_in_flight",
        "_kept",
        "_last_arrival",
        "_loop",
        "_scanner",
        "_stopped_at",
        "_stranded_keys",
        "link",
        "receiver",
    )

    receiver: Receiver

    def __init__(
        self,
        loop: SimulationLoop,
        link: LinkState,
        draw_latency: Callable[[], float],
        *,
        has_requests: bool,
        copy: Callable[[LinkState, bytes], None] | None = None,
    ) -> None:
        """``copy`` is called with each whole request of a kind that the link copies."""
        self._copy = copy
        self._collector = FrameCollector()
        self._stranded_keys = NO_KEYS
        self._loop = loop
        self.link = link
        self._draw_latency = draw_latency
        self._scanner = FrameScanner(link.count_frame) if has_requests else None
        self._kept: deque[Item] = deque()
        self._stopped_at: int | None = None
        self._in_flight: deque[float] = deque()
        self._last_arrival = 0.0

    def starts_after(self, time_s: float) -> None:
        """Nothing arrives before this moment (virtual seconds)."""
        self._last_arrival = time_s

    def send(self, item: Item) -> None:
        """Put it on its way, or keep it."""
        if self._kept or self.link.is_held:
            self._store(item)
        else:
            self._forward(item)

    @property
    def has_requests(self) -> bool:
        return self._scanner is not None

    def strand(self, api_key: int) -> None:
        """Stop at the next request with this key, whatever the link does with those of other connections."""
        self._stranded_keys |= {api_key}
        self.link.stranded[self] = None

    def rejoin(self, api_key: int, *, is_abandoned_lost: bool) -> bool:
        """Stop no longer at this key; return whether another key still strands the pipe."""
        self._stranded_keys -= {api_key}
        if self._stopped_at == api_key:
            if is_abandoned_lost and self._kept and isinstance(self._kept[-1], Ending):
                self._kept = deque([Ending.RESET])  # the sender has given up and sends it elsewhere
            self.release()
        return bool(self._stranded_keys)

    def forget_partial_copy(self) -> None:
        """Begin to collect anew: what passes from now on may not be collected."""
        self._collector.forget()

    def drop_kept(self) -> None:
        """Forget what is kept: the connection is reset."""
        self._kept.clear()
        self.link.stopped.pop(self, None)

    def release(self) -> None:
        """Let go what may go, in order."""
        if self.link.is_held or self._stopped_at in self.link.held_keys | self._stranded_keys:
            self.link.stopped[self] = None
            return
        kept, self._kept = self._kept, deque()
        while kept and not self._kept:
            self._forward(kept.popleft())
        self._kept.extend(kept)

    def arrived(self) -> None:
        """The receiver has taken the next of the chunks in flight."""
        self._in_flight.popleft()

    def has_arrivals(self) -> bool:
        """Whether bytes have arrived that the receiver has not taken yet."""
        return bool(self._in_flight) and self._in_flight[0] <= self._loop.now

    def next_arrival(self) -> float | None:
        """When the next bytes in flight arrive, in virtual seconds."""
        return self._in_flight[0] if self._in_flight else None

    def latest_arrival(self) -> float | None:
        """When the last of the bytes in flight arrive, in virtual seconds."""
        return self._in_flight[-1] if self._in_flight else None

    def _forward(self, item: Item) -> None:
        if isinstance(item, Ending):
            self.launch(item)
            return
        link = self.link
        passing, self._stopped_at = len(item), None
        if self._scanner is not None:
            keys = link.held_keys
            if self._stranded_keys:
                keys |= self._stranded_keys
            begins_request = bool(link.copies_after_s) and self._scanner.is_between_requests
            passing, self._stopped_at = self._scanner.scan(item, keys)
            if self._stopped_at in self._stranded_keys:
                link.armed_keys -= {self._stopped_at}
            if link.copies_after_s and self._copy is not None:
                self._copy_requests(item[:passing], begins_request=begins_request)
        if passing:
            link.forwarded_bytes += passing
            self.launch(item if passing == len(item) else item[:passing])
        if passing < len(item):
            self._store(item[passing:])

    def _copy_requests(self, data: bytes, *, begins_request: bool) -> None:
        assert self._copy is not None
        keys = self.link.copies_after_s
        for request in self._collector.collect(data, keys, begins_request=begins_request):
            self._copy(self.link, request)

    def _store(self, item: Item) -> None:
        link = self.link
        link.stopped[self] = None
        self._kept.append(item)
        if isinstance(item, Ending):
            return
        if link.is_held:
            link.held_bytes += len(item)
        if self._stopped_at is not None:
            key = self._stopped_at
            link.held_by_key[key] = link.held_by_key.get(key, 0) + len(item)

    def launch(self, item: Item) -> None:
        """Put it on its way past every rule."""
        loop = self._loop
        arrival = loop.now + self._draw_latency() + self.link.delay_s
        if arrival < self._last_arrival:
            arrival = self._last_arrival
        else:
            self._last_arrival = arrival
        receiver = self.receiver
        if not receiver.is_socket_closed:
            if not isinstance(item, Ending):
                self._in_flight.append(arrival)
            loop.call_at(arrival, receiver.receive, item, context=receiver.context)
        elif not isinstance(item, Ending):
            loop.call_at(arrival, receiver.bounce, context=Context())
