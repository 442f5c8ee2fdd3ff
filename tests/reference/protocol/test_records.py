"""Records inside a batch: read, and written again; each codec, and bytes that are none."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.reference.protocol.compression import CompressionType, compressed, decompressed
from nemesis.reference.protocol.record_batch import CorruptRecordError, crc_matches, iter_batches
from nemesis.reference.protocol.records import (
    delete_horizon_ms,
    emptied,
    read_keys_and_values,
    read_records,
    rebuilt,
)
from nemesis.workloads.kafka.record_batch import Producer, Record, build, read
from tests.reference.log.batches import assigned, with_codec

CODECS = list(CompressionType)
PRODUCER = Producer(7, 2, 40)
pairs = st.lists(
    st.tuples(st.none() | st.binary(max_size=300), st.none() | st.binary(max_size=300)),
    min_size=1,
    max_size=8,
)


@given(st.sampled_from(CODECS), st.binary(max_size=100_000))
def test_what_is_compressed_comes_back(codec: CompressionType, data: bytes) -> None:
    assert decompressed(codec, compressed(codec, data)) == data
    assert compressed(codec, data) == compressed(codec, data)


@pytest.mark.parametrize("codec", CODECS[1:])
def test_other_bytes_are_told_from_compressed_ones(codec: CompressionType) -> None:
    with pytest.raises(CorruptRecordError, match=codec.name.lower()):
        decompressed(codec, b"\x00\x01\x02\x03 no such thing")
    with pytest.raises(CorruptRecordError, match="codec 7"):
        decompressed(7, b"")


def test_a_snappy_block_that_is_cut_short_is_told() -> None:
    whole = compressed(CompressionType.SNAPPY, b"x" * 100_000)
    for size in (20, 30, len(whole) - 1):
        with pytest.raises(CorruptRecordError):
            decompressed(CompressionType.SNAPPY, whole[:size])


@given(pairs, st.sampled_from(CODECS), st.data())
def test_a_batch_keeps_what_it_is_without_some_records(
    records: list[tuple[bytes | None, bytes | None]], codec: CompressionType, data: st.DataObject
) -> None:
    batch = assigned(with_codec(build(records, 5_000, PRODUCER), codec), 100, 3)
    header = next(iter_batches(batch))
    records_left = read_records(batch, header)
    assert [(r.offset, r.key, r.has_value) for r in records_left] == [
        (100 + index, key, value is not None) for index, (key, value) in enumerate(records)
    ]
    assert read_keys_and_values(batch, header) == records
    kept = data.draw(
        st.lists(st.sampled_from(records_left), min_size=1, unique=True).map(sorted), label="kept"
    )
    horizon_ms = data.draw(st.none() | st.integers(0, 10**13), label="horizon")
    again = rebuilt(header, kept, horizon_ms=horizon_ms)
    left = next(iter_batches(again))
    assert crc_matches(memoryview(again), left, 0)
    assert (left.base_offset, left.last_offset) == (100, 99 + len(records))
    assert (left.partition_leader_epoch, left.attributes & 7) == (3, codec)
    assert (left.producer_id, left.producer_epoch, left.base_sequence) == PRODUCER
    assert (left.record_count, left.max_timestamp) == (len(kept), 5_000)
    assert delete_horizon_ms(left) == horizon_ms
    assert [r[:4] for r in read_records(again, left)] == [r[:4] for r in kept]


def test_the_workloads_reader_reads_what_is_written_again() -> None:
    batch = assigned(build([(b"a", b"1"), (b"b", b"2"), (b"a", b"3")], 5_000), 10, 0)
    header = next(iter_batches(batch))
    again = rebuilt(header, read_records(batch, header)[1:], horizon_ms=9_999)
    assert list(read(again)) == [Record(11, b"b", b"2"), Record(12, b"a", b"3")]


def test_an_emptied_batch_tells_of_its_producer() -> None:
    batch = assigned(with_codec(build([(b"a", b"1")] * 3, 5_000, PRODUCER), 4), 10, 1)
    empty = emptied(next(iter_batches(batch)))
    left = next(iter_batches(empty))
    assert crc_matches(memoryview(empty), left, 0)
    assert (left.base_offset, left.last_offset, left.record_count) == (10, 12, 0)
    assert (left.producer_id, left.producer_epoch, left.base_sequence) == PRODUCER
    assert (left.max_timestamp, left.attributes) == (5_000, 0)
    assert read_records(empty, left) == []


@given(st.data())
def test_damaged_records_are_told(data: st.DataObject) -> None:
    """Whatever is changed: records come out, or one kind of error."""
    batch = bytearray(build([(b"key", b"value" * 9), (None, None), (b"", b"")], 5_000))
    position = data.draw(st.integers(61, len(batch) - 1))
    batch[position] = data.draw(st.integers(0, 255))
    header = next(iter_batches(bytes(batch)))
    with suppress(CorruptRecordError):
        assert len(read_records(bytes(batch), header)) == 3
    with suppress(CorruptRecordError):
        assert len(read_keys_and_values(bytes(batch), header)) == 3
    for reader in (read_records, read_keys_and_values):
        with pytest.raises(CorruptRecordError):
            reader(bytes(batch[:-1]), header)
