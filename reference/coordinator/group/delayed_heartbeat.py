"""A session that runs until the next sign of life of a member.

Source: kafka.coordinator.group.DelayedHeartbeat of Kafka 3.9.
"""

from __future__ import annotations

from typing import NamedTuple

from nemesis.reference.coordinator.group.group_metadata import GroupMetadata


class MemberKey(NamedTuple):
    """Watched by the session of a member."""

    group_id: str
    member_id: str


class DelayedHeartbeat:
    """Complete when the member lives, has left, or its group is dead; ``results`` says whether it has failed.

    A pending member lives once it has joined.
    """

    def __init__(self, group: GroupMetadata, member_id: str, *, is_pending: bool) -> None:
        self._group = group
        self._member_id = member_id
        self._is_pending = is_pending
        self._is_complete = False

    def try_complete(self, key: MemberKey) -> bool:
        del key
        self._is_complete = self._is_alive()
        return self._is_complete

    def results(self) -> bool:
        """Whether the session has ended without a sign of life."""
        return not self._is_complete and not self._group.is_dead

    def _is_alive(self) -> bool:
        group = self._group
        if group.is_dead:
            return True
        member = group.members.get(self._member_id)
        if self._is_pending:
            return member is not None or self._member_id not in group.pending_members
        return member is None or member.has_satisfied_heartbeat
