"""Links: directions of bytes between two nodes, and what was counted on them.

Nodes are named ``broker-N`` and ``zookeeper-N``; clients are ``client-N`` and own an address each, so that a link is
always (sender of bytes, receiver of bytes).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PRODUCE_API_KEY: Final = 0
FETCH_API_KEY: Final = 1
ADD_PARTITIONS_TO_TXN_API_KEY: Final = 24
END_TXN_API_KEY: Final = 26
WRITE_TXN_MARKERS_API_KEY: Final = 27
ALTER_PARTITION_API_KEY: Final = 56
BROKER_HEARTBEAT_API_KEY: Final = 63
CONTROL_API_KEYS: Final = (4, 5, 6)
"""Kafka's API keys of LeaderAndIsr, StopReplica and UpdateMetadata."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a node listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Link:
    """A direction of bytes. ``api_key`` narrows it to connections whose requests carry that Kafka API key."""

    source: str
    target: str
    api_key: int | None = None


@dataclass(frozen=True, slots=True)
class LinkCounters:
    """What a link has done since the start, counted at the proxy or the kernel."""

    forwarded_bytes: int
    held_bytes: int
    copies: int = 0
    """Requests of the link's API key that arrived once more (``StrayLinks.copy``)."""
