"""What waits in the purgatory for the members of a group: to join, and then to fetch their assignments.

Source: kafka.coordinator.group.DelayedJoin, InitialDelayedJoin and DelayedSync of Kafka 3.9.
"""

from __future__ import annotations

from typing import NamedTuple

from nemesis.reference.coordinator.group.group_metadata import GroupMetadata
from nemesis.reference.coordinator.group.group_states import GroupState


class GroupJoinKey(NamedTuple):
    """Watched by the rebalance of a group, until its members have joined."""

    group_id: str
    kind: str = "join"


class GroupSyncKey(NamedTuple):
    """Watched from there on, until each member has asked for its assignment."""

    group_id: str
    kind: str = "sync"


class DelayedJoin:
    """Complete when every member has joined, and no member that was given an id is still missing."""

    def __init__(self, group: GroupMetadata) -> None:
        self._group = group

    def try_complete(self, key: GroupJoinKey | GroupSyncKey) -> bool:
        del key
        return self._group.is_dead or self._group.has_all_members_joined

    def results(self) -> None:
        """Nothing: the group says what follows."""


class InitialDelayedJoin(DelayedJoin):
    """The first rebalance of an empty group: it ends with its time and not before, so that more members may come."""

    def try_complete(self, key: GroupJoinKey | GroupSyncKey) -> bool:
        del key
        return self._group.is_dead


class DelayedSync:
    """Complete when each member of the generation has asked for its assignment, or the generation has ended."""

    def __init__(self, group: GroupMetadata) -> None:
        self._group = group
        self._generation_id = group.generation_id

    @property
    def is_complete(self) -> bool:
        group = self._group
        has_ended = self._generation_id != group.generation_id or group.state not in (
            GroupState.COMPLETING_REBALANCE,
            GroupState.STABLE,
        )
        return has_ended or not group.pending_sync_members

    def try_complete(self, key: GroupJoinKey | GroupSyncKey) -> bool:
        del key
        return self.is_complete

    def results(self) -> tuple[str, ...]:
        """The members that have not asked in time."""
        return () if self.is_complete else tuple(self._group.pending_sync_members)
