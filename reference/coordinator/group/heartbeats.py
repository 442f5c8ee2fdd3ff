"""The sessions of members: each sign of life begins a new one, and a member whose session ends has failed.

A member whose JoinGroup or SyncGroup waits is alive, unless it is new: a client that has gone away while its first
JoinGroup waits must not hold up the group (KAFKA-5870).

Source: kafka.coordinator.group.GroupCoordinator (completeAndScheduleNextExpiration, onExpireHeartbeat) of Kafka 3.9.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from nemesis.reference.coordinator.group.delayed_heartbeat import DelayedHeartbeat, MemberKey
from nemesis.reference.coordinator.group.group_metadata import GroupMetadata
from nemesis.reference.coordinator.group.member_metadata import MemberMetadata
from nemesis.reference.coordinator.group.watching import watch
from nemesis.reference.delayed_operations import DelayedOperationPurgatory

_logger = logging.getLogger(__name__)

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000
"""How long a new member may wait in its first JoinGroup."""

OnMemberFailed = Callable[[GroupMetadata, MemberMetadata], None]
OnPendingMemberFailed = Callable[[GroupMetadata, str], None]


class Heartbeats:
    """``on_member_failed`` and ``on_pending_member_failed`` take the member out of its group."""

    def __init__(
        self,
        *,
        on_member_failed: OnMemberFailed,
        on_pending_member_failed: OnPendingMemberFailed,
    ) -> None:
        self._on_member_failed = on_member_failed
        self._on_pending_member_failed = on_pending_member_failed
        self.purgatory = DelayedOperationPurgatory[MemberKey]()

    def schedule_next(
        self, group: GroupMetadata, member: MemberMetadata, timeout_ms: int | None = None
    ) -> None:
        """Take a sign of life: the running session ends and the next one begins. None: the session time-out."""
        key = MemberKey(group.group_id, member.member_id)
        member.heartbeat_satisfied = True
        self.purgatory.check_and_complete(key)
        member.heartbeat_satisfied = False
        session_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
        self._watch(
            DelayedHeartbeat(group, member.member_id, is_pending=False), group, key, session_ms
        )

    def add_pending(self, group: GroupMetadata, member_id: str, timeout_ms: int) -> None:
        """Wait for a member to join with the id that it has been given."""
        delayed = DelayedHeartbeat(group, member_id, is_pending=True)
        self._watch(delayed, group, MemberKey(group.group_id, member_id), timeout_ms)

    def check(self, group: GroupMetadata, member_id: str) -> None:
        """End the session of a member that has left."""
        self.purgatory.check_and_complete(MemberKey(group.group_id, member_id))

    def _watch(
        self, delayed: DelayedHeartbeat, group: GroupMetadata, key: MemberKey, timeout_ms: int
    ) -> None:
        def end(has_failed: bool) -> None:
            if has_failed:
                self._expire(group, key.member_id)

        watch(self.purgatory, delayed, key, timeout_ms, end)

    def _expire(self, group: GroupMetadata, member_id: str) -> None:
        member = group.members.get(member_id)
        if member_id in group.pending_members:
            _logger.info("%s: pending member %s has not joined", group.group_id, member_id)
            self._on_pending_member_failed(group, member_id)
        elif member is not None and not member.has_satisfied_heartbeat:
            _logger.info("%s: member %s has failed", group.group_id, member_id)
            self._on_member_failed(group, member)
