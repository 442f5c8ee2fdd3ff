"""Record batches: what is built is read back, and damage is noticed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.reference.protocol import compression as brokers
from nemesis.reference.protocol.record_batch import iter_batches
from nemesis.workloads.kafka.compression import CODECS, CodecName, compressed, decompressed
from nemesis.workloads.kafka.errors import BadRecordBatch
from nemesis.workloads.kafka.record_batch import NewRecord, Record, build, read

Records = list[tuple[bytes | None, bytes | None]]

_bytes = st.none() | st.binary(max_size=300)
_records = st.lists(st.tuples(_bytes, _bytes), min_size=1, max_size=20)


@given(_records, st.integers(0, 2**40))
def test_read_gives_back_what_build_was_given(records: Records, timestamp_ms: int) -> None:
    batch = build(records, timestamp_ms)
    assert list(read(batch)) == [Record(i, k, v) for i, (k, v) in enumerate(records)]


@given(_records, st.data())
def test_one_flipped_bit_after_the_crc_field_is_noticed(
    records: Records, data: st.DataObject
) -> None:
    batch = bytearray(build(records, 0))
    position = data.draw(st.integers(21, len(batch) - 1))
    batch[position] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(BadRecordBatch, match="CRC"):
        list(read(bytes(batch)))


@given(_records, st.data())
def test_a_batch_cut_off_at_the_end_is_left_out(records: Records, data: st.DataObject) -> None:
    batch = build(records, 0)
    cut = data.draw(st.integers(0, len(batch) - 1))
    assert list(read(batch + batch[:cut])) == list(read(batch))


def test_the_base_offset_that_the_broker_wrote_counts() -> None:
    batch = (41).to_bytes(8, "big") + build([(None, b"a"), (b"k", None)], 0)[8:]
    assert list(read(batch)) == [Record(41, None, b"a"), Record(42, b"k", None)]


def test_an_old_format_is_refused() -> None:
    batch = bytearray(build([(None, b"a")], 0))
    batch[16] = 1
    with pytest.raises(BadRecordBatch, match="magic 1"):
        list(read(bytes(batch)))


_headers = st.lists(st.tuples(st.text(max_size=20), _bytes), max_size=4).map(tuple)


@given(
    st.lists(st.builds(NewRecord, _bytes, _bytes, _headers), min_size=1, max_size=20),
    st.sampled_from(CODECS),
)
def test_every_codec_gives_back_keys_values_and_headers(
    records: list[NewRecord], codec: CodecName
) -> None:
    batch = build(records, 0, codec=codec)
    assert list(read(batch)) == [Record(offset, *record) for offset, record in enumerate(records)]
    (header,) = iter_batches(batch)
    assert header.attributes & 7 == CODECS.index(codec)


@given(st.binary(max_size=100_000), st.sampled_from(CODECS))
def test_clients_and_brokers_read_what_the_other_compresses(data: bytes, codec: CodecName) -> None:
    number = CODECS.index(codec)
    assert brokers.decompressed(number, compressed(data, codec)) == data
    assert decompressed(brokers.compressed(number, data), number) == data


@pytest.mark.parametrize("codec", CODECS[1:])
def test_records_that_a_codec_cannot_read_are_a_bad_batch(codec: CodecName) -> None:
    with pytest.raises(BadRecordBatch, match=f"{codec} cannot read it"):
        decompressed(
            b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x09torn",
            CODECS.index(codec),
        )


def test_a_codec_that_does_not_exist_is_a_bad_batch() -> None:
    with pytest.raises(BadRecordBatch, match="codec 5 does not exist"):
        decompressed(b"", 5)
