"""Markers of transactions: Kafka's bytes, written and read again, and bytes that are not markers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.reference.protocol.control_records import (
    ControlRecordType,
    EndTransactionMarker,
    control_type_of,
    end_transaction_batch,
    marker_of,
    read_marker,
)
from nemesis.reference.protocol.record_batch import CorruptRecordError, iter_batches, verify_crc
from nemesis.reference.protocol.records import emptied, read_records
from nemesis.workloads.kafka.record_batch import end_offset, read

COMMIT = EndTransactionMarker(ControlRecordType.COMMIT, 10)
KEYS = st.none() | st.binary(max_size=6)
VALUES = st.none() | st.binary(max_size=8)


@given(
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**15 - 1),
    st.sampled_from(ControlRecordType),
    st.integers(-1, 2**31 - 1),
    st.integers(0, 2**60),
)
def test_a_marker_is_read_as_written(
    producer_id: int,
    producer_epoch: int,
    control_type: ControlRecordType,
    coordinator_epoch: int,
    timestamp_ms: int,
) -> None:
    marker = EndTransactionMarker(control_type, coordinator_epoch)
    batch = end_transaction_batch(producer_id, producer_epoch, marker, timestamp_ms)
    (header,) = iter_batches(batch)
    verify_crc(batch, header)
    assert header.is_control
    assert header.is_transactional
    assert header[9:13] == (producer_id, producer_epoch, -1, 1)
    assert header.max_timestamp == timestamp_ms
    assert read_marker(batch, header) == marker
    assert [record.timestamp for record in read_records(batch, header)] == [timestamp_ms]


def test_a_marker_has_kafkas_bytes() -> None:
    """Those of MemoryRecords.withEndTransactionMarker of Kafka 3.9 for the same values."""
    fields = [
        ("base offset", "0000000000000000"),
        ("length", "00000042"),
        ("leader epoch", "ffffffff"),
        ("magic", "02"),
        ("CRC", "86eb44f1"),
        ("attributes", "0030"),
        ("last offset delta", "00000000"),
        ("times", "0000000000000005" * 2),
        ("producer id", "0000000000000007"),
        ("producer epoch", "0002"),
        ("base sequence", "ffffffff"),
        ("count", "00000001"),
        ("length, attributes, deltas", "20000000"),
        ("key", "0800000001"),
        ("value", "0c00000000000a"),
        ("headers", "00"),
    ]
    expected = "".join(value for _, value in fields)
    assert end_transaction_batch(7, 2, COMMIT, 5).hex() == expected


def test_clients_of_workloads_pass_over_a_marker() -> None:
    batch = end_transaction_batch(7, 2, COMMIT, 5)
    assert list(read(batch)) == []
    assert end_offset(batch) == 1


def test_a_cleaned_control_batch_has_no_marker() -> None:
    (header,) = iter_batches(end_transaction_batch(7, 2, COMMIT, 5))
    empty = emptied(header)
    (left,) = iter_batches(empty)
    assert left.is_control
    assert read_marker(empty, left) is None


@pytest.mark.parametrize("version", [0, 1])
def test_a_later_version_is_read_like_the_present_one(version: int) -> None:
    key, value = bytes([0, version, 0, 0]), bytes([0, version, 0, 0, 0, 3])
    assert marker_of(key, value + b"more") == (ControlRecordType.ABORT, 3)


def test_other_control_records_end_no_transaction() -> None:
    leader_change = b"\0\0\0\2"
    assert control_type_of(leader_change) is None
    with pytest.raises(CorruptRecordError, match="control record"):
        marker_of(leader_change, bytes(6))


@given(KEYS, VALUES)
def test_bytes_that_are_not_a_marker_are_refused(key: bytes | None, value: bytes | None) -> None:
    is_marker = (
        key is not None
        and len(key) >= 4
        and key[0] < 0x80
        and key[2:4] in (b"\0\0", b"\0\1")
        and value is not None
        and len(value) >= 6
        and value[0] < 0x80
    )
    if is_marker:
        assert marker_of(key, value).control_type == (key or b"")[3]
    else:
        with pytest.raises(CorruptRecordError, match="control record"):
            marker_of(key, value)
