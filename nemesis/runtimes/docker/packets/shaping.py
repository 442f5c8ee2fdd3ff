"""When a queued packet goes on, and whether twice: the decisions of the packet handler. Pure; standard library only.

* A *delay* is the same for all packets of a queue, *jitter* moves it by up to so much either way; the order stays, as
  on a road where nobody overtakes.
* *Reordering* is a fault of its own: a packet that is chosen waits ``hold_ms`` longer, and others overtake it.
* *Duplication*: a packet that is chosen arrives a second time, right after the first.
* *Dropping by API key* looks for packets that begin with a Kafka request of that key, for kernels that cannot.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from nemesis.runtimes.docker.packets.netlink import WHOLE_PACKET

NS_PER_MS = 1_000_000
IP_HEADER_BYTES = 20
HEADER_BYTES = 256
"""More than the headers of IP, TCP and Kafka together."""
MAX_API_VERSION = 32
MAX_FRAME_BYTES = 2**24


@dataclass(frozen=True, slots=True)
class Shape:
    """What happens to the packets of one queue. Ratios are parts of 1."""

    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0
    hold_ms: float = 0.0
    keys: tuple[int, ...] = ()
    """API keys whose requests are counted, for kernels that cannot tell them apart."""
    dropped_keys: tuple[int, ...] = ()
    is_resent: bool = False
    """Whether a packet is taken away and sent anew when it is due, instead of being kept in the kernel."""

    @property
    def is_segmented(self) -> bool:
        """Whether packets must be as on the wire: those that are sent by the handler."""
        return self.is_resent or self.duplication > 0

    @property
    def copied_bytes(self) -> int:
        """How much of each packet must be seen: all of one that is sent again, the headers to find an API key."""
        if self.is_segmented:
            return WHOLE_PACKET
        return HEADER_BYTES if self.keys else 0


@dataclass(slots=True)
class Tally:
    """What happened to the packets of one queue so far."""

    packets: int = 0
    delayed: int = 0
    duplicated: int = 0
    reordered: int = 0
    passed_bytes: dict[int, int] = field(default_factory=dict)
    """By API key, for those that are counted."""
    dropped_bytes: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of one packet."""

    due_ns: int
    is_dropped: bool = False
    is_resent: bool = False
    is_duplicated: bool = False


class Lane:
    """One queue: its shape, its tally, and when its last packet is due."""

    def __init__(self, rng: Random, tally: Tally) -> None:
        self.shape = Shape()
        self.tally = tally
        self._rng = rng
        self._last_due_ns = 0

    def decide(self, payload: bytes, now_ns: int) -> Decision:
        """Return what becomes of a packet that has come now; ``payload`` is as much of it as the shape wants."""
        shape, tally, rng = self.shape, self.tally, self._rng
        tally.packets += 1
        if shape.keys and (key := api_key(payload)) in shape.keys:
            is_dropped = key in shape.dropped_keys
            counter = tally.dropped_bytes if is_dropped else tally.passed_bytes
            counter[key] = counter.get(key, 0) + int.from_bytes(payload[2:4])
            if is_dropped:
                return Decision(now_ns, is_dropped=True)
        wait_ms = shape.delay_ms
        if shape.jitter_ms:
            wait_ms = max(0.0, wait_ms + rng.uniform(-shape.jitter_ms, shape.jitter_ms))
        due_ns = max(now_ns + round(wait_ms * NS_PER_MS), self._last_due_ns)
        if shape.reordering and rng.random() < shape.reordering:
            tally.reordered += 1
            due_ns += round(shape.hold_ms * NS_PER_MS)
        else:
            self._last_due_ns = due_ns
        # Some came before the kernel was asked for their content: those can only be kept.
        can_be_sent = len(payload) >= IP_HEADER_BYTES
        is_chosen = bool(shape.duplication) and rng.random() < shape.duplication
        is_duplicated = can_be_sent and is_chosen
        tally.duplicated += is_duplicated
        tally.delayed += due_ns > now_ns
        return Decision(
            due_ns, is_resent=can_be_sent and shape.is_resent, is_duplicated=is_duplicated
        )


def api_key(packet: bytes) -> int | None:
    """Return the API key when a Kafka request begins at the start of this TCP segment, else None."""
    if len(packet) < IP_HEADER_BYTES or packet[0] >> 4 != 4:
        return None
    tcp = (packet[0] & 0xF) * 4
    if len(packet) < tcp + 20:
        return None
    frame = tcp + (packet[tcp + 12] >> 4) * 4
    if len(packet) < frame + 8 or int.from_bytes(packet[frame : frame + 4]) >= MAX_FRAME_BYTES:
        return None
    version = int.from_bytes(packet[frame + 6 : frame + 8])
    return int.from_bytes(packet[frame + 4 : frame + 6]) if version <= MAX_API_VERSION else None
