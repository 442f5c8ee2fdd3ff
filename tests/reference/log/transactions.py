"""Batches and markers of transactions for tests, and random histories of them."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st

from nemesis.reference.log.log import Log
from nemesis.reference.log.log_append_info import LogAppendInfo
from nemesis.reference.log.log_validator import AppendOrigin
from nemesis.reference.log.producer_state_entry import increment_sequence
from nemesis.reference.log.verification_state import VerificationGuard
from nemesis.reference.protocol.control_records import (
    ControlRecordType,
    EndTransactionMarker,
    end_transaction_batch,
)
from nemesis.reference.protocol.record_batch import TRANSACTIONAL_FLAG
from tests.reference.log.batches import NOW_MS, batch

ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT


def send(
    log: Log,
    sequence: int,
    *,
    producer_id: int = 7,
    epoch: int = 0,
    count: int = 1,
    is_transactional: bool = True,
    guard: VerificationGuard | None = None,
) -> LogAppendInfo:
    """Append a producer's batch, in a transaction unless stated otherwise."""
    data = batch(
        count,
        timestamp=NOW_MS,
        attributes=TRANSACTIONAL_FLAG if is_transactional else 0,
        producer=(producer_id, epoch, sequence),
    )
    return log.append_as_leader(data, 0, guard=guard)


def end(
    log: Log,
    control_type: ControlRecordType = COMMIT,
    *,
    producer_id: int = 7,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    timestamp_ms: int = NOW_MS,
) -> LogAppendInfo:
    """Append a marker as a broker does for a transaction coordinator."""
    marker = EndTransactionMarker(control_type, coordinator_epoch)
    data = end_transaction_batch(producer_id, epoch, marker, timestamp_ms)
    return log.append_as_leader(data, 0, AppendOrigin.COORDINATOR)


class Write(NamedTuple):
    """A step of a random history: a batch, or a marker if there is a decision."""

    producer_id: int
    records: int = 1
    decision: ControlRecordType | None = None
    raises_epoch: bool = False
    """Of a marker that a coordinator writes to fence the producer."""


DATA = st.builds(Write, st.integers(0, 3), st.integers(1, 3))
MARKERS = st.builds(
    Write, st.integers(0, 3), st.just(1), st.sampled_from(ControlRecordType), st.booleans()
)
WRITES = st.lists(st.one_of(DATA, DATA, MARKERS), max_size=40)


class Producers:
    """The epoch and the next sequence number of each producer of a history."""

    def __init__(self) -> None:
        self._positions: dict[int, tuple[int, int]] = {}

    @classmethod
    def of(cls, log: Log) -> Producers:
        """The producers that go on where a log ends."""
        producers = cls()
        for entry in log.producer_state_manager.active_producers.values():
            sequence = increment_sequence(entry.last_sequence, 1)
            producers._positions[entry.producer_id] = entry.producer_epoch, sequence
        return producers

    def write(self, log: Log, write: Write) -> LogAppendInfo:
        """Append the step as its producer, or the coordinator, does. Producer 0 writes outside of transactions."""
        producer_id = write.producer_id
        epoch, sequence = self._positions.get(producer_id, (0, 0))
        if write.decision is not None:
            if write.raises_epoch:
                epoch, sequence = epoch + 1, 0
            self._positions[producer_id] = epoch, sequence
            return end(log, write.decision, producer_id=producer_id, epoch=epoch)
        self._positions[producer_id] = epoch, sequence + write.records
        return send(
            log,
            sequence,
            producer_id=producer_id,
            epoch=epoch,
            count=write.records,
            is_transactional=producer_id > 0,
        )
