"""The groups and offsets that one offsets partition holds: the last record of each key counts.

Offsets of a transaction (which only a Kafka broker of the same cluster can have written) count from its commit marker
on, unless a later commit has come in between; those of a transaction that has not ended are left out.

Source: kafka.coordinator.group.GroupMetadataManager.doLoadGroupsAndOffsets of Kafka 3.9.
"""

from __future__ import annotations

from typing import Final

from nemesis.reference.coordinator.group.group_metadata import GroupMetadata
from nemesis.reference.coordinator.group.group_offsets import CommittedOffset, GroupOffsets
from nemesis.reference.coordinator.group.group_records import (
    GroupKey,
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
from nemesis.reference.protocol.record_batch import (
    CorruptRecordError,
    RecordBatchHeader,
    iter_batches,
)
from nemesis.reference.protocol.records import Record, read_records, record_value

_TRANSACTIONAL_FLAG: Final = 0x10
_COMMIT_MARKER: Final = b"\x00\x00\x00\x01"
"""The key of a control record: version 0, type COMMIT."""

_Offsets = dict[OffsetKey, CommittedOffset]


class LoadedRecords:
    """What has been read of a log so far."""

    def __init__(self) -> None:
        self._groups: dict[str, StoredGroup] = {}
        self._offsets: _Offsets = {}
        self._uncommitted: dict[int, dict[OffsetKey, CommittedOffset | None]] = {}
        """Offsets by the producer id of their transaction; None deletes."""

    def take_in(self, records: bytes) -> None:
        """Take in whole batches, in the sequence of the log. Raises CorruptRecordError."""
        for header in iter_batches(records):
            batch = records[header.position : header.position + header.size_in_bytes]
            if header.is_control:
                self._end_transaction(read_records(batch, header), header)
            else:
                for record in read_records(batch, header):
                    self._take_in(record, header)

    def groups(self, wall_clock: WallClock) -> dict[str, GroupMetadata]:
        """Return the groups by id, with their offsets. One that has offsets only is empty."""
        offsets: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        for (group_id, topic_partition), committed in self._offsets.items():
            offsets.setdefault(group_id, {})[topic_partition] = committed
        groups = {
            group_id: _restored(group_id, stored, wall_clock)
            for group_id, stored in self._groups.items()
        }
        for group_id, committed_offsets in offsets.items():
            group = groups.setdefault(group_id, GroupMetadata(group_id, wall_clock=wall_clock))
            group.offsets = GroupOffsets(committed_offsets)
        return groups

    def _take_in(self, record: Record, header: RecordBatchHeader) -> None:
        if record.key is None:
            raise CorruptRecordError(f"the record at offset {record.offset} has no key")
        key, value = read_key(record.key), record_value(record)
        if isinstance(key, GroupKey):
            if value is None:
                self._groups.pop(key.group_id, None)
            else:
                self._groups[key.group_id] = read_group_value(value)
        elif isinstance(key, OffsetKey):
            committed = (
                None
                if value is None
                else CommittedOffset(header.base_offset, read_offset_value(value))
            )
            if header.attributes & _TRANSACTIONAL_FLAG:
                self._uncommitted.setdefault(header.producer_id, {})[key] = committed
            elif committed is None:
                self._offsets.pop(key, None)
            else:
                self._offsets[key] = committed

    def _end_transaction(self, markers: list[Record], header: RecordBatchHeader) -> None:
        uncommitted = self._uncommitted.pop(header.producer_id, {})
        if markers and markers[0].key == _COMMIT_MARKER:
            for key, committed in uncommitted.items():
                present = self._offsets.get(key)
                if committed is not None and (
                    present is None or present.batch_offset < committed.batch_offset
                ):
                    self._offsets[key] = committed


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
