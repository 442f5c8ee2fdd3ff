"""Compaction of a log with transactions: aborted records go and supersede nothing, wherever the cleaner is killed."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.log.log import Log
from nemesis.reference.log.log_manager import LogManager
from nemesis.reference.log.log_validator import AppendOrigin
from nemesis.reference.model import AbortedTransaction, TopicPartition
from nemesis.reference.protocol.control_records import (
    ControlRecordType,
    EndTransactionMarker,
    end_transaction_batch,
)
from nemesis.reference.protocol.record_batch import TRANSACTIONAL_FLAG, iter_batches
from nemesis.reference.protocol.records import new_batch
from nemesis.simulation.disk import SimulatedDisk
from tests.reference.log.logs import MANY
from tests.reference.log.mortal import Killed, Mortal, MortalDisk
from tests.reference.log.stored_records import held
from tests.reference.log.transactions import ABORT, COMMIT

TP = TopicPartition("t", 0)
NOW_MS = 1_000_000


def manager(disk: SimulatedDisk) -> LogManager:
    properties = {
        "broker.id": 1,
        "listeners": "PLAINTEXT://127.0.0.1:9092",
        "zookeeper.connect": "127.0.0.1:2181",
        "log.dirs": ["data"],
        "log.segment.bytes": 300,
        "log.cleanup.policy": ["compact"],
        "log.cleaner.min.cleanable.ratio": 0,
        "transaction.partition.verification.enable": False,
    }
    logs = LogManager(KafkaConfig.from_properties(properties), disk, wall_clock=lambda: NOW_MS)
    logs.load_logs()
    return logs


def log_of(logs: LogManager) -> Log:
    return logs.get_or_create_log(TP, UUID(int=7), is_new=True)


class Writer:
    """Of one log: transactional producers with their sequence numbers."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._sequences: dict[int, int] = {}

    def write(self, producer_id: int, key: str, value: str) -> None:
        sequence = self._sequences.get(producer_id, 0)
        self._sequences[producer_id] = sequence + 1
        records = new_batch(
            [(key.encode(), value.encode())],
            NOW_MS,
            attributes=TRANSACTIONAL_FLAG,
            producer=(producer_id, 0, sequence),
        )
        self._log.append_as_leader(records, 0)
        self._log.update_high_watermark(self._log.log_end_offset)

    def end(self, producer_id: int, control_type: ControlRecordType) -> None:
        marker = EndTransactionMarker(control_type, 0)
        records = end_transaction_batch(producer_id, 0, marker, NOW_MS)
        self._log.append_as_leader(records, 0, AppendOrigin.COORDINATOR)
        self._log.update_high_watermark(self._log.log_end_offset)


def clean(logs: LogManager) -> int:
    async def clean_all() -> int:
        rounds = 0
        while await logs.cleaner.clean_filthiest_log():
            rounds += 1
        return rounds

    return asyncio.run(clean_all())


def committed(log: Log) -> dict[int, tuple[bytes | None, bytes | None]]:
    """Key and value by offset of what a consumer with ``read_committed`` reads, by the index of the log alone."""
    records = {}
    end = log.last_stable_offset
    aborted = log.collect_aborted_transactions(log.log_start_offset, end)
    producers = {
        header.base_offset: header.producer_id
        for segment in log.segments
        for header in iter_batches(segment.read(0, MANY, MANY, min_one_message=True))
        if not header.is_control
    }
    for record in held(log):
        producer_id = producers.get(record.offset)
        is_aborted = any(
            entry.producer_id == producer_id
            and entry.first_offset <= record.offset <= entry.last_offset
            for entry in aborted
        )
        if producer_id is not None and record.offset < end and not is_aborted:
            records[record.offset] = (record.key, record.value)
    return records


def entries_of(log: Log) -> list[AbortedTransaction]:
    return [entry for segment in log.segments for entry in segment.transactions.entries]


def test_an_aborted_record_supersedes_no_committed_one() -> None:
    logs = manager(SimulatedDisk())
    log = log_of(logs)
    writer = Writer(log)
    writer.write(7, "k", "committed")
    writer.end(7, COMMIT)
    writer.write(8, "k", "aborted")
    writer.end(8, ABORT)
    for number in range(9):
        writer.write(9, f"other-{number}", "x")
        writer.end(9, COMMIT)
    entries = entries_of(log)
    assert clean(logs) == 1
    assert committed(log)[0] == (b"k", b"committed")
    assert b"aborted" not in [record.value for record in held(log)]
    assert entries_of(log) == entries


def test_nothing_from_an_open_transaction_on_is_cleaned() -> None:
    logs = manager(SimulatedDisk())
    log = log_of(logs)
    writer = Writer(log)
    writer.write(7, "k", "open")
    for number in range(9):
        writer.write(9, "k", f"v{number}")
        writer.end(9, COMMIT)
    before = held(log)
    assert clean(logs) == 0
    writer.end(7, ABORT)
    assert held(log)[: len(before)] == before
    assert clean(logs) == 1


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 60), st.integers(0, 8))
def test_whenever_the_cleaner_is_killed_the_same_is_committed(steps: int, open_from: int) -> None:
    """No aborted record gets visible, and of each key the last committed record stays."""
    disk = MortalDisk()
    logs = manager(disk)
    log = log_of(logs)
    writer = Writer(log)
    for number in range(12):
        producer_id = 7 + number % 3
        writer.write(producer_id, f"k{number % 4}", f"v{number}")
        if number >= open_from or number % 2:
            writer.end(producer_id, ABORT if number % 3 == 0 else COMMIT)
    for producer_id in (7, 8, 9):
        writer.end(producer_id, COMMIT)
    before = committed(log)
    last = {key: offset for offset, (key, _) in before.items()}
    disk.incarnation = Mortal(steps)
    try:
        clean(logs)
    except Killed:
        disk.incarnation = Mortal()
        logs = manager(disk)
        log = log_of(logs)
        log.update_high_watermark(log.log_end_offset)
    disk.incarnation = Mortal()
    for _ in range(2):
        after = committed(log)
        assert after.items() <= before.items()
        assert {key: offset for offset, (key, _) in after.items()} == last
        clean(logs)


@pytest.mark.parametrize("decision", [ABORT, COMMIT])
def test_a_cleaned_log_is_recovered_with_its_transactions(decision: ControlRecordType) -> None:
    disk = SimulatedDisk()
    logs = manager(disk)
    writer = Writer(log_of(logs))
    for number in range(9):
        writer.write(9, f"k{number % 2}", f"v{number}")
        writer.end(9, decision)
    assert clean(logs) == 1
    before = committed(log_of(logs))
    logs = manager(disk)
    log = log_of(logs)
    log.update_high_watermark(log.log_end_offset)
    assert committed(log) == before
    assert not log.producer_state_manager.active_producers[9].has_open_transaction
