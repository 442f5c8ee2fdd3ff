"""The records of the transaction log: read as they were written, and bytes as Kafka writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.reference.coordinator.transaction.transaction_metadata import Transition
from nemesis.reference.coordinator.transaction.transaction_records import (
    read_transaction_key,
    read_transaction_value,
    transaction_key,
    transaction_value,
)
from nemesis.reference.coordinator.transaction.transaction_states import TransactionState
from nemesis.reference.model import TopicPartition
from nemesis.reference.protocol.record_batch import CorruptRecordError
from tests.reference.coordinator.transaction_fields import fields

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20)
INT16 = st.integers(-(1 << 15), (1 << 15) - 1)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
TRANSITIONS = st.builds(
    Transition,
    INT64,
    st.just(-1),
    INT16,
    st.just(-1),
    INT32,
    st.sampled_from(TransactionState),
    st.frozensets(st.builds(TopicPartition, TEXT, st.integers(0, 9)), max_size=6),
    INT64,
    INT64,
)


@given(TEXT)
def test_keys_are_read_as_they_were_written(transactional_id: str) -> None:
    assert read_transaction_key(transaction_key(transactional_id)) == transactional_id


@given(TRANSITIONS)
def test_values_are_read_as_they_were_written(transition: Transition) -> None:
    is_empty = transition.state is TransactionState.EMPTY
    read = read_transaction_value("t", transaction_value(transition))
    assert fields(read) == (
        transition.producer_id,
        transition.producer_epoch,
        transition.timeout_ms,
        transition.state,
        frozenset() if is_empty else transition.partitions,
        transition.start_timestamp,
        transition.last_update_timestamp,
    )


@given(TRANSITIONS, st.data())
def test_a_value_that_is_cut_short_is_corrupt(transition: Transition, data: st.DataObject) -> None:
    value = transaction_value(transition)
    size = data.draw(st.integers(0, len(value) - 1))
    with pytest.raises(CorruptRecordError):
        read_transaction_value("t", value[:size])


START = b"\0\0" + (7).to_bytes(8) + b"\0\3" + (60_000).to_bytes(4)
TIMES = (9).to_bytes(8) + (8).to_bytes(8)


def test_what_kafka_writes() -> None:
    assert transaction_key("t") == b"\0\0\0\1t"
    keys = frozenset({TopicPartition("a", 2), TopicPartition("a", 0), TopicPartition("b", 1)})
    ongoing = Transition(7, 7, 3, 2, 60_000, TransactionState.ONGOING, keys, 8, 9)
    topics = b"\0\0\0\2\0\1a\0\0\0\2\0\0\0\0\0\0\0\2\0\1b\0\0\0\1\0\0\0\1"
    assert transaction_value(ongoing) == START + b"\1" + topics + TIMES
    empty = ongoing._replace(state=TransactionState.EMPTY, partitions=frozenset())
    assert transaction_value(empty) == START + b"\0\xff\xff\xff\xff" + TIMES
    complete = empty._replace(state=TransactionState.COMPLETE_COMMIT)
    assert transaction_value(complete) == START + b"\4\0\0\0\0" + TIMES


def test_the_compact_version_is_read() -> None:
    topics = b"\2" + b"\2a\2\0\0\0\5\0"
    read = read_transaction_value("t", b"\0\1" + START[2:] + b"\3" + topics + TIMES + b"\0")
    assert fields(read) == (
        7,
        3,
        60_000,
        TransactionState.PREPARE_ABORT,
        {TopicPartition("a", 5)},
        8,
        9,
    )


def test_what_is_not_known_is_left_out_or_corrupt() -> None:
    assert read_transaction_key(b"\0\1\0\1t") is None, "of a later version"
    for value in (b"\0\2" + bytes(40), START + b"\x08\xff\xff\xff\xff" + TIMES):
        with pytest.raises(CorruptRecordError):
            read_transaction_value("t", value)
