"""A member of a group: its protocols, its time-outs, and the requests of it that wait.

Source: kafka.coordinator.group.MemberMetadata of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from nemesis.reference.coordinator.group.group_results import (
    JoinCallback,
    MemberSummary,
    SyncCallback,
)

Protocols = tuple[tuple[str, bytes], ...]
"""Names and metadata, in the member's order of preference."""


@dataclass(slots=True, eq=False)
class MemberMetadata:
    """Changed in the course of time by the group only. Durations in ms."""

    member_id: str
    group_instance_id: str | None
    """Of a static member (KIP-345)."""
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    """Whether its first JoinGroup waits: it may fail while it does."""
    heartbeat_satisfied: bool = False
    """Whether a sign of life has come since the running session began."""
    awaiting_join: JoinCallback | None = None
    awaiting_sync: SyncCallback | None = None

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def is_awaiting_join(self) -> bool:
        return self.awaiting_join is not None

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Whether the member counts as alive; a member whose request waits does, unless it is new."""
        is_waiting = self.awaiting_join is not None or self.awaiting_sync is not None
        return self.heartbeat_satisfied or (is_waiting and not self.is_new)

    def metadata(self, protocol: str) -> bytes:
        """Return the metadata for one of its protocols; raises KeyError for another one."""
        return dict(self.protocols)[protocol]

    def vote(self, candidates: Collection[str]) -> str:
        """Return the protocol that it prefers among the candidates, one of which it supports."""
        return next(name for name, _ in self.protocols if name in candidates)

    def summary(self, protocol: str | None) -> MemberSummary:
        """Return what DescribeGroups reports; without a protocol neither metadata nor assignment."""
        return MemberSummary(
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            b"" if protocol is None else self.metadata(protocol),
            b"" if protocol is None else self.assignment,
        )


def protocol_names(protocols: Sequence[tuple[str, bytes]]) -> frozenset[str]:
    return frozenset(name for name, _ in protocols)
