from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.records.readers import read_batch
from kio.records.schema import NewRecordBatch, Record
from kio.records.writers import write_batch
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

from nemesis.reference.protocol.record_batch import (
    HEADER_SIZE,
    CorruptRecordError,
    UnsupportedForMessageFormatError,
    assign,
    complete_size,
    iter_batches,
    verify_crc,
)
from tests.reference.log.batches import assigned, batch


def written_by_kio(*values: bytes, offset: int, epoch: int) -> bytes:
    when = TZAwareMicros.parse(datetime(2024, 5, 1, tzinfo=UTC))
    records = tuple(
        Record(
            attributes=i8(0),
            timestamp=when,
            offset=i64(offset + i),
            key=b"k",
            value=value,
            headers=(),
        )
        for i, value in enumerate(values)
    )
    buffer = io.BytesIO()
    write_batch(
        buffer,
        NewRecordBatch(
            producer_id=i64(7),
            producer_epoch=i16(3),
            partition_leader_epoch=i32(epoch),
            base_sequence=i32(11),
            records=records,
            attributes=i16(0),
        ),
    )
    return buffer.getvalue()


def verify_all(data: bytes) -> None:
    for header in iter_batches(data):
        verify_crc(data, header)


def test_reads_the_header_that_another_implementation_wrote() -> None:
    data = written_by_kio(b"a", b"b", b"c", offset=40, epoch=5)
    (header,) = iter_batches(data)
    verify_crc(data, header)
    foreign = read_batch(data, 0)[0]
    assert header.base_offset == foreign.base_offset == 40
    assert header.size_in_bytes == len(data)
    assert header.batch_length == foreign.batch_length
    assert header.partition_leader_epoch == 5
    assert header.crc == foreign.crc
    assert (header.last_offset, header.record_count) == (42, 3)
    assert header.base_timestamp == foreign.base_timestamp
    assert header.max_timestamp == foreign.max_timestamp
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, 11)
    assert not header.is_control


def test_assign_gives_consecutive_offsets_and_keeps_every_crc_right() -> None:
    data = batch(3, payload=b"one") + batch(1, payload=b"two") + batch(5, payload=b"three")
    led, headers = assign(data, iter_batches(data), 100, 8)
    assert headers == list(iter_batches(led))
    assert [(h.base_offset, h.last_offset) for h in headers] == [(100, 102), (103, 103), (104, 108)]
    assert [h.partition_leader_epoch for h in headers] == [8, 8, 8]
    assert [h.crc for h in headers] == [h.crc for h in iter_batches(data)]
    for header in headers:
        verify_crc(led, header)


def test_assigned_records_are_read_by_another_implementation() -> None:
    data = written_by_kio(b"a", b"b", offset=0, epoch=0)
    foreign = read_batch(assigned(data, 9, 4), 0)[0]
    assert (foreign.base_offset, foreign.partition_leader_epoch) == (9, 4)
    assert [record.value for record in foreign.records] == [b"a", b"b"]


@given(position=st.integers(17, 99), bit=st.integers(0, 7))
def test_one_flipped_bit_behind_the_magic_is_found(position: int, bit: int) -> None:
    data = bytearray(batch(payload=b"x" * (100 - HEADER_SIZE)))
    data[position] ^= 1 << bit
    with pytest.raises(CorruptRecordError):
        verify_all(bytes(data))


@given(st.integers(1, 99))
def test_a_batch_cut_at_any_byte_is_corrupt(cut: int) -> None:
    whole = batch(payload=b"x" * (100 - HEADER_SIZE))
    with pytest.raises(CorruptRecordError):
        list(iter_batches(whole + whole[:cut]))
    assert complete_size(whole + whole[:cut]) == len(whole)


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_are_refused_by_name(magic: int) -> None:
    data = bytearray(batch())
    data[16] = magic
    with pytest.raises(UnsupportedForMessageFormatError):
        list(iter_batches(bytes(data)))


@given(st.binary(max_size=200))
def test_arbitrary_bytes_never_raise_anything_else(data: bytes) -> None:
    try:
        headers = list(iter_batches(data))
    except (CorruptRecordError, UnsupportedForMessageFormatError):
        return
    assert sum(header.size_in_bytes for header in headers) == len(data)


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 48, 2**31 - 1])
def test_impossible_lengths_end_at_once(length: int) -> None:
    data = bytearray(batch())
    data[8:12] = length.to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptRecordError):
        list(iter_batches(bytes(data)))
    assert complete_size(bytes(data)) == 0
