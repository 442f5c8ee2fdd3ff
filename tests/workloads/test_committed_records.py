"""Which records of a fetch are committed, when the transactions of several producers interleave."""

from __future__ import annotations

from struct import pack, pack_into

import pytest
from crc32c import crc32c

from nemesis.workloads.kafka.committed_records import committed
from nemesis.workloads.kafka.errors import BadRecordBatch
from nemesis.workloads.kafka.fetches import AbortedTransaction
from nemesis.workloads.kafka.record_batch import NO_PRODUCER, Producer, build

ABORT, COMMIT = 0, 1
A, B = 4000, 4001
_CRC, _ATTRIBUTES = 17, 21
_CONTROL = 0x20


def records(offset: int, producer_id: int, *values: bytes, is_transactional: bool = True) -> bytes:
    producer = Producer(producer_id, 0, 0) if producer_id >= 0 else NO_PRODUCER
    batch = build([(None, v) for v in values], 0, producer, is_transactional=is_transactional)
    return pack(">q", offset) + batch[8:]


def marker(offset: int, producer_id: int, kind: int) -> bytes:
    """A control batch, as a leader writes it."""
    batch = bytearray(
        build(
            [(pack(">hh", 0, kind), b"\0" * 6)],
            0,
            Producer(producer_id, 0, -1),
            is_transactional=True,
        )
    )
    batch[_ATTRIBUTES + 1] |= _CONTROL
    pack_into(">q", batch, 0, offset)
    pack_into(">I", batch, _CRC, crc32c(bytes(batch[_ATTRIBUTES:])))
    return bytes(batch)


def values(data: bytes, *aborted: AbortedTransaction) -> list[bytes | None]:
    return [record.value for record in committed(data, aborted)]


def test_the_records_of_an_aborted_transaction_are_left_out_up_to_its_marker() -> None:
    data = b"".join(
        (
            records(0, A, b"a1", b"a2"),
            records(2, B, b"b1"),
            marker(3, A, ABORT),
            records(4, A, b"a3"),
            marker(5, B, COMMIT),
            marker(6, A, COMMIT),
        )
    )
    assert values(data, AbortedTransaction(A, 0)) == [b"b1", b"a3"]
    assert values(data) == [b"a1", b"a2", b"b1", b"a3"]


def test_an_answer_may_begin_in_the_middle_of_a_transaction() -> None:
    data = records(7, A, b"a1") + marker(8, A, ABORT) + records(9, A, b"a2")
    assert values(data, AbortedTransaction(A, 3)) == [b"a2"]


def test_a_transaction_that_aborts_behind_the_committed_one_of_its_producer() -> None:
    data = records(0, A, b"a1") + marker(1, A, COMMIT) + records(2, A, b"a2") + marker(3, A, ABORT)
    assert values(data, AbortedTransaction(A, 2)) == [b"a1"]


def test_records_outside_of_transactions_are_committed() -> None:
    data = records(0, A, b"plain", is_transactional=False) + records(1, -1, b"no producer")
    assert values(data, AbortedTransaction(A, 0)) == [b"plain", b"no producer"]


def test_a_damaged_marker_is_refused() -> None:
    data = bytearray(marker(0, A, ABORT))
    data[-1] ^= 1
    with pytest.raises(BadRecordBatch):
        values(bytes(data))
