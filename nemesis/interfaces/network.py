"""The part ``network``: links between nodes are cut and restored, and probed.

What not every network can do is a smaller part: hold requests of one kind, copy or
strand them, delay, reset connections, limit bandwidth.
Each call sets the state of links and replaces what was set before; ``nemesis.faults.link_rules`` composes the rules of
several faults. All coroutines raise ``RuntimeFailure``.
"""

from __future__ import annotations

from typing import Protocol

from nemesis.interfaces.links import Link, LinkCounters
from nemesis.interfaces.unsupported import Unsupported


class Network(Protocol):
    """The links between the nodes of a cluster."""

    @property
    def requests(self) -> RequestLinks | Unsupported:
        """Holds requests of one kind while everything else between the same nodes passes."""

    @property
    def delays(self) -> Delays | Unsupported:
        """Slows links down."""

    @property
    def connections(self) -> Connections | Unsupported:
        """Resets connections."""

    @property
    def bandwidth(self) -> BandwidthLimits | Unsupported:
        """Limits how fast a node sends."""

    async def cut(self, links: frozenset[Link]) -> None:
        """Hold all bytes on these directions until ``restore``; connections stay open."""

    async def restore(self, links: frozenset[Link]) -> None:
        """Let the bytes flow again, the held ones first."""

    async def counters(self, links: frozenset[Link]) -> dict[Link, LinkCounters]:
        """Return what each link has forwarded and held since the start, in bytes."""

    async def probe(self, source: str, target: str, *, timeout_s: float) -> bool:
        """Return whether a request from source's address reaches target and its reply comes back in time."""


class RequestLinks(Protocol):
    """Holds requests of one kind: each link has an ``api_key``."""

    @property
    def strays(self) -> StrayLinks | Unsupported:
        """Takes single requests out of the order of their connections."""

    async def hold(self, links: frozenset[Link]) -> None:
        """Hold these requests until ``release``; connections stay open."""

    async def release(self, links: frozenset[Link]) -> None:
        """Let these requests pass again, the held ones first."""


class StrayLinks(Protocol):
    """Takes requests of one kind out of the order of their connections: each link has an ``api_key``."""

    async def copy(self, links: frozenset[Link], *, after_ms: int) -> None:
        """Let a copy of each request arrive ``after_ms`` milliseconds later, on a connection of its own; 0 ends it."""

    async def strand(self, links: frozenset[Link]) -> None:
        """Stop connections at their next such request: those that exist now, and later ones until one has stopped."""

    async def rejoin(self, links: frozenset[Link], *, is_abandoned_lost: bool) -> None:
        """Let the stopped connections go on; those that the sender has closed lose what was kept, if so wanted."""

    async def astray(self, links: frozenset[Link]) -> int:
        """Return how many connections are stranded, and copies under way."""


class Delays(Protocol):
    """Slows links down; nothing is lost, the order stays."""

    async def delay(self, links: frozenset[Link], *, delay_ms: int) -> None:
        """Let what is sent on these directions from now on take ``delay_ms`` milliseconds longer; 0 ends it."""


class Connections(Protocol):
    """The TCP connections between nodes."""

    async def ends(self, links: frozenset[Link]) -> int:
        """Return how many ends of connections exist between these nodes: what ``reset`` would meet."""

    async def reset(self, links: frozenset[Link]) -> int:
        """Reset the connections between these nodes; returns how many ends of them existed."""


class BandwidthLimits(Protocol):
    """How fast a node sends."""

    async def limit(self, node: str, *, rate_kbit_s: int) -> None:
        """Let at most ``rate_kbit_s`` kbit/s leave the node; 0 ends the limit."""

    async def measure(self, node: str, *, expected_kbit_s: int) -> int:
        """Send data and return how fast it leaves the node, in kbit/s; most exact near the expected rate."""
