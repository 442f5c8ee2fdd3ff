"""The groups and offsets that one offsets partition holds: the last record of each key counts.

Offsets of a transaction count from its commit marker on, unless a later commit has come in between; those of a
transaction that has not ended are pending, by the id of its producer.

Source: kafka.coordinator.group.GroupMetadataManager.doLoadGroupsAndOffsets of Kafka 3.9.
"""

from __future__ import annotations

from nemesis.reference.coordinator.group.group_metadata import GroupMetadata
from nemesis.reference.coordinator.group.group_offsets import (
    CommittedOffset,
    GroupOffsets,
    TransactionalOffsets,
)
from nemesis.reference.coordinator.group.group_records import (
    OffsetKey,
    StoredGroup,
    StoredMember,
    read_group_value,
    read_key,
    read_offset_value,
)
from nemesis.reference.coordinator.group.group_states import GroupState
from nemesis.reference.coordinator.group.member_metadata import MemberMetadata
from nemesis.reference.model import TopicPartition
from nemesis.reference.ports import WallClock
from nemesis.reference.protocol.control_records import ControlRecordType, control_type_of
from nemesis.reference.protocol.record_batch import CorruptRecordError, iter_batches
from nemesis.reference.protocol.records import read_keys_and_values

_Offsets = dict[TopicPartition, CommittedOffset]


class LoadedRecords:
    """What has been read of a log so far."""

    def __init__(self) -> None:
        self._groups: dict[str, StoredGroup] = {}
        self._offsets: dict[str, _Offsets] = {}
        """By group id; a group without offsets may be left."""
        self._uncommitted: dict[int, dict[OffsetKey, CommittedOffset]] = {}
        """Offsets by the producer id of their transaction."""
        self._partitions: dict[TopicPartition, TopicPartition] = {}
        """Each partition once: the groups that consume it share its name."""

    def take_in(self, records: bytes) -> None:
        """Take in whole batches, in the sequence of the log. Raises CorruptRecordError."""
        for header in iter_batches(records):
            batch = records[header.position : header.position + header.size_in_bytes]
            pairs = read_keys_and_values(batch, header)
            if header.is_control:
                is_commit = bool(pairs) and control_type_of(pairs[0][0]) is ControlRecordType.COMMIT
                self._end_transaction(header.producer_id, is_commit=is_commit)
            elif header.is_transactional:
                uncommitted = self._uncommitted.setdefault(header.producer_id, {})
                self._take_in(pairs, header.base_offset, uncommitted)
            else:
                self._take_in(pairs, header.base_offset, None)

    def groups(self, wall_clock: WallClock) -> dict[str, GroupMetadata]:
        """Return the groups by id, with their offsets, also pending ones. One that has offsets only is empty."""
        groups = {
            group_id: _restored(group_id, stored, wall_clock)
            for group_id, stored in self._groups.items()
        }
        pending = self._pending_offsets()
        for group_id in [*self._offsets, *(key for key in pending if key not in self._offsets)]:
            offsets = self._offsets.get(group_id)
            transactional = pending.get(group_id)
            if offsets or transactional:
                group = groups.setdefault(group_id, GroupMetadata(group_id, wall_clock=wall_clock))
                group.offsets = GroupOffsets(offsets, transactional)
        return groups

    def _pending_offsets(self) -> dict[str, TransactionalOffsets]:
        """The offsets of open transactions, by group id."""
        pending: dict[str, TransactionalOffsets] = {}
        for producer_id, uncommitted in self._uncommitted.items():
            for (group_id, topic_partition), commit in uncommitted.items():
                offsets = pending.setdefault(group_id, {}).setdefault(producer_id, {})
                offsets[topic_partition] = commit
        return pending

    def _take_in(
        self,
        pairs: list[tuple[bytes | None, bytes | None]],
        batch_offset: int,
        uncommitted: dict[OffsetKey, CommittedOffset] | None,
    ) -> None:
        """Take in the records of one batch, offsets of a transaction into ``uncommitted``."""
        for raw_key, value in pairs:
            if raw_key is None:
                raise CorruptRecordError(f"a record at offset {batch_offset} or above has no key")
            key = read_key(raw_key)
            if isinstance(key, OffsetKey):
                committed = (
                    None
                    if value is None
                    else CommittedOffset(batch_offset, read_offset_value(value))
                )
                if uncommitted is None:
                    self._take_in_offset(key, committed)
                elif committed is None:
                    uncommitted.pop(key, None)
                else:
                    uncommitted[key] = committed
            elif key is not None and value is None:
                self._groups.pop(key.group_id, None)
            elif key is not None:
                self._groups[key.group_id] = read_group_value(value or b"")

    def _take_in_offset(self, key: OffsetKey, committed: CommittedOffset | None) -> None:
        group_id, topic_partition = key
        offsets = self._offsets.get(group_id)
        if offsets is None:
            offsets = self._offsets[group_id] = {}
        if committed is None:
            offsets.pop(topic_partition, None)
        else:
            offsets[self._partitions.setdefault(topic_partition, topic_partition)] = committed

    def _end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        uncommitted = self._uncommitted.pop(producer_id, {})
        if not is_commit:
            return
        for key, committed in uncommitted.items():
            present = self._offsets.get(key.group_id, {}).get(key.topic_partition)
            if present is None or present.batch_offset < committed.batch_offset:
                self._take_in_offset(key, committed)


def _restored(group_id: str, stored: StoredGroup, wall_clock: WallClock) -> GroupMetadata:
    """A group with members was stable when it was written, one without was empty."""
    state = GroupState.STABLE if stored.members else GroupState.EMPTY
    group = GroupMetadata(group_id, state, wall_clock=wall_clock)
    group.generation_id = stored.generation_id
    group.protocol_name = stored.protocol_name
    group.leader_id = stored.leader_id
    for member in stored.members:
        group.add(_restored_member(member, stored))
    group.protocol_type = stored.protocol_type or None
    group.current_state_timestamp = stored.current_state_timestamp
    group.restore_subscribed_topics()
    return group


def _restored_member(member: StoredMember, group: StoredGroup) -> MemberMetadata:
    return MemberMetadata(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.session_timeout_ms,
        group.protocol_type,
        ((group.protocol_name or "", member.subscription),),
        member.assignment,
    )
