"""The records of the offsets topic: keys and values as Kafka 3.9 writes them, and all versions that it reads.

A key or value begins with its version (int16). Strings have a length (int16), bytes and arrays have one of four bytes;
−1 is null. Version 4 of the values is compact: lengths are varints of one more, 0 is null, and tagged fields follow.

    key 0, 1    offset commit: group, topic, partition int32
    key 2       group metadata: group
    value of an offset commit, written in version 3, or in version 1 where it has an expire timestamp
                offset int64 | leader epoch int32 (3+) | metadata | commit timestamp int64 | expire timestamp int64 (1)
    value of a group's metadata, written in version 3
                protocol type | generation int32 | protocol? | leader? | current state timestamp int64 (2+)
                | members: member id | instance id? (3+) | client id | client host | rebalance time-out int32 (1+)
                  | session time-out int32 | subscription bytes | assignment bytes

Source: OffsetCommitKey, OffsetCommitValue, GroupMetadataKey, GroupMetadataValue (JSON schemas), and
kafka.coordinator.group.GroupMetadataManager of Kafka 3.9. kio has no classes for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct, error
from typing import Final, NamedTuple

from nemesis.reference.coordinator.group.group_offsets import OffsetAndMetadata
from nemesis.reference.coordinator.record_fields import RecordReader, string_field
from nemesis.reference.model import TopicPartition
from nemesis.reference.protocol.record_batch import CorruptRecordError

_OFFSET_KEY_VERSION: Final = 1
_GROUP_KEY_VERSION: Final = 2
_OFFSET_VALUE_VERSION: Final = 3
_EXPIRING_OFFSET_VALUE_VERSION: Final = 1
_GROUP_VALUE_VERSION: Final = 3
_FIRST_COMPACT_VERSION: Final = 4
_NO_TIMESTAMP: Final = -1
_NO_EPOCH: Final = -1

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_OFFSET_VALUE_START: Final = Struct(">hqih")
"""Version, offset, leader epoch and the length of the metadata, as of version 3."""


class OffsetKey(NamedTuple):
    """A record that holds the committed offset of a partition."""

    group_id: str
    topic_partition: TopicPartition


class GroupKey(NamedTuple):
    """A record that holds the members of a group."""

    group_id: str


@dataclass(frozen=True, slots=True)
class StoredMember:
    """A member as a record holds it; time-outs in ms."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """A group as a record holds it."""

    protocol_type: str
    generation_id: int
    protocol_name: str | None
    leader_id: str | None
    current_state_timestamp: int | None
    """In ms since 1970; None in records of Kafka before 2.1."""
    members: tuple[StoredMember, ...]


def offset_key(group_id: str, topic_partition: TopicPartition) -> bytes:
    return b"".join(
        (
            _INT16.pack(_OFFSET_KEY_VERSION),
            string_field(group_id),
            string_field(topic_partition.topic),
            _INT32.pack(topic_partition.partition),
        )
    )


def group_key(group_id: str) -> bytes:
    return _INT16.pack(_GROUP_KEY_VERSION) + string_field(group_id)


def read_key(key: bytes) -> OffsetKey | GroupKey | None:
    """Return what a record is about; None for a key of a version that Kafka 3.9 does not know either.

    Raises CorruptRecordError.
    """
    try:
        (version,) = _INT16.unpack_from(key)
        if not 0 <= version <= _GROUP_KEY_VERSION:
            return None
        group_id, position = _text(key, _INT16.size)
        if version == _GROUP_KEY_VERSION:
            return GroupKey(group_id)
        topic, position = _text(key, position)
        (partition,) = _INT32.unpack_from(key, position)
    except (error, UnicodeDecodeError) as failure:
        raise CorruptRecordError(f"a key of {len(key)} bytes: {failure}") from None
    return OffsetKey(group_id, TopicPartition(topic, partition))


def _text(data: bytes, position: int) -> tuple[str, int]:
    """Return a string that is not null, and where it ends. Raises struct.error or UnicodeDecodeError."""
    (length,) = _INT16.unpack_from(data, position)
    start = position + _INT16.size
    end = start + length
    if length < 0 or end > len(data):
        raise error(f"a string of {length} bytes")
    return data[start:end].decode(), end


def offset_value(offset: OffsetAndMetadata) -> bytes:
    if offset.expire_timestamp is not None:
        return b"".join(
            (
                _INT16.pack(_EXPIRING_OFFSET_VALUE_VERSION),
                _INT64.pack(offset.offset),
                string_field(offset.metadata),
                _INT64.pack(offset.commit_timestamp),
                _INT64.pack(offset.expire_timestamp),
            )
        )
    return b"".join(
        (
            _INT16.pack(_OFFSET_VALUE_VERSION),
            _INT64.pack(offset.offset),
            _INT32.pack(offset.leader_epoch),
            string_field(offset.metadata),
            _INT64.pack(offset.commit_timestamp),
        )
    )


def read_offset_value(value: bytes) -> OffsetAndMetadata:
    """Raises CorruptRecordError, also for a version that Kafka 3.9 does not know."""
    try:
        version, offset, leader_epoch, length = _OFFSET_VALUE_START.unpack_from(value)
        if version == _OFFSET_VALUE_VERSION and length >= 0:
            # The version that is written, without a call for each field: a loading reads a million of them.
            end = _OFFSET_VALUE_START.size + length
            (commit_timestamp,) = _INT64.unpack_from(value, end)
            metadata = value[_OFFSET_VALUE_START.size : end].decode()
            return OffsetAndMetadata(offset, leader_epoch, metadata, commit_timestamp)
    except (error, UnicodeDecodeError):
        pass  # below, the reader names the fault
    return _read_offset_value(value)


def _read_offset_value(value: bytes) -> OffsetAndMetadata:
    """Read a value of any version, field by field."""
    reader = RecordReader(value)
    version = reader.version(_FIRST_COMPACT_VERSION, _FIRST_COMPACT_VERSION)
    offset = reader.number(_INT64)
    leader_epoch = reader.number(_INT32) if version >= _OFFSET_VALUE_VERSION else _NO_EPOCH
    metadata = reader.text()
    commit_timestamp = reader.number(_INT64)
    expires = version == _EXPIRING_OFFSET_VALUE_VERSION
    expire_timestamp = reader.number(_INT64) if expires else _NO_TIMESTAMP
    return OffsetAndMetadata(
        offset, leader_epoch, metadata, commit_timestamp, _time_or_none(expire_timestamp)
    )


def group_value(group: StoredGroup) -> bytes:
    state_timestamp = group.current_state_timestamp
    return b"".join(
        (
            _INT16.pack(_GROUP_VALUE_VERSION),
            string_field(group.protocol_type),
            _INT32.pack(group.generation_id),
            string_field(group.protocol_name),
            string_field(group.leader_id),
            _INT64.pack(_NO_TIMESTAMP if state_timestamp is None else state_timestamp),
            _INT32.pack(len(group.members)),
            *map(_member, group.members),
        )
    )


def read_group_value(value: bytes) -> StoredGroup:
    """Raises CorruptRecordError, also for a version that Kafka 3.9 does not know."""
    reader = RecordReader(value)
    version = reader.version(_FIRST_COMPACT_VERSION, _FIRST_COMPACT_VERSION)
    protocol_type = reader.text()
    generation_id = reader.number(_INT32)
    protocol_name, leader_id = reader.nullable_text(), reader.nullable_text()
    state_timestamp = reader.number(_INT64) if version >= 2 else _NO_TIMESTAMP
    members = reader.array(lambda: _read_member(reader, version))
    return StoredGroup(
        protocol_type,
        generation_id,
        protocol_name,
        leader_id,
        _time_or_none(state_timestamp),
        members,
    )


def _member(member: StoredMember) -> bytes:
    return b"".join(
        (
            string_field(member.member_id),
            string_field(member.group_instance_id),
            string_field(member.client_id),
            string_field(member.client_host),
            _INT32.pack(member.rebalance_timeout_ms),
            _INT32.pack(member.session_timeout_ms),
            _bytes(member.subscription),
            _bytes(member.assignment),
        )
    )


def _read_member(reader: RecordReader, version: int) -> StoredMember:
    member_id = reader.text()
    instance_id = reader.nullable_text() if version >= _GROUP_VALUE_VERSION else None
    client_id, client_host = reader.text(), reader.text()
    rebalance_timeout_ms = reader.number(_INT32) if version >= 1 else None
    session_timeout_ms = reader.number(_INT32)
    subscription, assignment = reader.data(), reader.data()
    reader.skip_tags()
    return StoredMember(
        member_id,
        instance_id,
        client_id,
        client_host,
        session_timeout_ms if rebalance_timeout_ms is None else rebalance_timeout_ms,
        session_timeout_ms,
        subscription,
        assignment,
    )


def _time_or_none(timestamp: int) -> int | None:
    return None if timestamp == _NO_TIMESTAMP else timestamp


def _bytes(data: bytes) -> bytes:
    return _INT32.pack(len(data)) + data


def tombstones(
    group_id: str, partitions: Sequence[TopicPartition], *, with_group: bool
) -> list[tuple[bytes, bytes | None]]:
    """Return the records that delete committed offsets, and the group itself if ``with_group``."""
    records: list[tuple[bytes, bytes | None]] = [
        (offset_key(group_id, topic_partition), None) for topic_partition in partitions
    ]
    return [*records, (group_key(group_id), None)] if with_group else records
