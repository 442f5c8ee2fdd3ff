"""The records of the offsets topic: read as they were written, and bytes that Kafka has written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.reference.coordinator.group.group_offsets import OffsetAndMetadata
from nemesis.reference.coordinator.group.group_records import (
    GroupKey,
    OffsetKey,
    StoredGroup,
    StoredMember,
    group_key,
    group_value,
    offset_key,
    offset_value,
    read_group_value,
    read_key,
    read_offset_value,
)
from nemesis.reference.coordinator.key_partitions import partition_for, string_hash_code
from nemesis.reference.model import TopicPartition
from nemesis.reference.protocol.record_batch import CorruptRecordError, iter_batches, verify_crc
from nemesis.reference.protocol.records import (
    new_batch,
    read_keys_and_values,
    read_records,
)

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
TIME = st.integers(0, (1 << 63) - 1)
DATA = st.binary(max_size=30)
OFFSETS = st.builds(OffsetAndMetadata, st.integers(0, 1 << 62), INT32, TEXT, TIME, st.none())
EXPIRING = st.builds(OffsetAndMetadata, st.integers(0, 1 << 62), st.just(-1), TEXT, TIME, TIME)
MEMBERS = st.builds(StoredMember, TEXT, st.none() | TEXT, TEXT, TEXT, INT32, INT32, DATA, DATA)
GROUPS = st.builds(
    StoredGroup,
    TEXT,
    INT32,
    st.none() | TEXT,
    st.none() | TEXT,
    st.none() | TIME,
    st.lists(MEMBERS, max_size=4).map(tuple),
)


@given(TEXT, TEXT, st.integers(0, 1 << 30))
def test_keys_are_read_as_they_were_written(group: str, topic: str, partition: int) -> None:
    topic_partition = TopicPartition(topic, partition)
    assert read_key(offset_key(group, topic_partition)) == OffsetKey(group, topic_partition)
    assert read_key(group_key(group)) == GroupKey(group)


@given(OFFSETS | EXPIRING)
def test_offsets_are_read_as_they_were_written(offset: OffsetAndMetadata) -> None:
    assert read_offset_value(offset_value(offset)) == offset


@given(GROUPS)
def test_groups_are_read_as_they_were_written(group: StoredGroup) -> None:
    assert read_group_value(group_value(group)) == group


@given(GROUPS, st.data())
def test_a_value_that_is_cut_short_is_corrupt(group: StoredGroup, data: st.DataObject) -> None:
    value = group_value(group)
    size = data.draw(st.integers(0, len(value) - 1))
    with pytest.raises(CorruptRecordError):
        read_group_value(value[:size])


def test_what_kafka_writes_in_its_versions() -> None:
    assert offset_key("g", TopicPartition("t", 3)) == b"\0\1\0\1g\0\1t\0\0\0\3"
    assert group_key("g") == b"\0\2\0\1g"
    commit = OffsetAndMetadata(5, 2, "m", 9)
    assert offset_value(commit) == (
        b"\0\3" + (5).to_bytes(8) + (2).to_bytes(4) + b"\0\1m" + (9).to_bytes(8)
    )
    expiring = OffsetAndMetadata(5, -1, "m", 9, 11)
    assert offset_value(expiring) == (
        b"\0\1" + (5).to_bytes(8) + b"\0\1m" + (9).to_bytes(8) + (11).to_bytes(8)
    )
    assert read_key(b"\0\3\0\1g") is None, "of a later version"


def test_older_versions_of_values_are_read() -> None:
    assert read_offset_value(b"\0\2" + (5).to_bytes(8) + b"\0\0" + (9).to_bytes(8)) == (
        OffsetAndMetadata(5, -1, "", 9)
    )
    member = b"\0\1m\0\1c\0\1h" + (7).to_bytes(4) + b"\0\0\0\1s\0\0\0\1a"
    oldest = b"\0\0\0\1p\0\0\0\2\xff\xff\xff\xff\0\0\0\1" + member
    assert read_group_value(oldest) == StoredGroup(
        "p", 2, None, None, None, (StoredMember("m", None, "c", "h", 7, 7, b"s", b"a"),)
    )


def test_the_compact_version_of_values_is_read() -> None:
    offset = b"\0\4" + (5).to_bytes(8) + (2).to_bytes(4) + b"\2m" + (9).to_bytes(8) + b"\0"
    assert read_offset_value(offset) == OffsetAndMetadata(5, 2, "m", 9)
    member = b"\2m\0\2c\2h" + (8).to_bytes(4) + (7).to_bytes(4) + b"\2s\2a" + b"\1\5\1x"
    value = b"\0\4\2p" + (2).to_bytes(4) + b"\0\2m" + (9).to_bytes(8) + b"\2" + member + b"\0"
    assert read_group_value(value) == StoredGroup(
        "p", 2, None, "m", 9, (StoredMember("m", None, "c", "h", 8, 7, b"s", b"a"),)
    )


@pytest.mark.parametrize("version", [5, -1])
def test_a_value_of_an_unknown_version_is_corrupt(version: int) -> None:
    with pytest.raises(CorruptRecordError):
        read_offset_value(version.to_bytes(2, signed=True) + bytes(30))


@given(st.lists(st.tuples(DATA, st.none() | DATA), min_size=1, max_size=5), st.integers(0, 1 << 40))
def test_a_batch_of_our_own_has_the_records(
    records: list[tuple[bytes, bytes | None]], timestamp: int
) -> None:
    batch = new_batch(records, timestamp)
    (header,) = iter_batches(batch)
    verify_crc(batch, header)
    assert read_keys_and_values(batch, header) == records
    assert {record.timestamp for record in read_records(batch, header)} == {timestamp}
    assert header.last_offset_delta == len(records) - 1


@pytest.mark.parametrize(
    ("text", "code"),
    [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", -(1 << 31))],
)
def test_the_hash_code_is_that_of_java(text: str, code: int) -> None:
    assert string_hash_code(text) == code


def test_characters_beyond_the_basic_plane_count_as_two() -> None:
    assert string_hash_code("😀") == 0xD83D * 31 + 0xDE00


@given(TEXT, TEXT)
def test_the_hash_code_is_a_polynomial(head: str, tail: str) -> None:
    units = len(tail.encode("utf-16-be")) // 2
    joined = string_hash_code(head) * 31**units + string_hash_code(tail)
    assert (string_hash_code(head + tail) - joined) % (1 << 32) == 0


@given(TEXT, st.integers(1, 100))
def test_a_group_has_one_of_the_partitions(group: str, count: int) -> None:
    assert 0 <= partition_for(group, count) < count


def test_the_smallest_hash_code_is_partition_zero() -> None:
    assert partition_for("polygenelubricants", 50) == 0
