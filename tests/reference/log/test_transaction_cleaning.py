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
RETENTION_MS = 500
DAY_MS = 86_400_000


class Clock:
    """The time that the cleaner reads."""

    def __init__(self) -> None:
        self.now_ms = NOW_MS

    def __call__(self) -> int:
        return self.now_ms


def manager(disk: SimulatedDisk, clock: Clock | None = None) -> LogManager:
    properties = {
        "broker.id": 1,
        "listeners": "PLAINTEXT://127.0.0.1:9092",
        "zookeeper.connect": "127.0.0.1:2181",
        "log.dirs": ["data"],
        "log.segment.bytes": 300,
        "log.cleanup.policy": ["compact"],
        "log.cleaner.min.cleanable.ratio": 0,
        "log.cleaner.delete.retention.ms": RETENTION_MS,
        "transaction.partition.verification.enable": False,
    }
    config = KafkaConfig.from_properties(properties)
    logs = LogManager(config, disk, wall_clock=clock or Clock())
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

    def fill(self, key: str) -> None:
        """Begin new segments: what is before them may be cleaned."""
        for number in range(9):
            self.write(9, key, f"v{number}")
            self.end(9, COMMIT)


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
    assert entries_of(log) == entries, "a reader may have been given the record before"


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


def markers_of(log: Log, producer_id: int) -> list[int]:
    """Return the offsets of the producer's markers."""
    return [
        header.base_offset
        for segment in log.segments
        for header in iter_batches(segment.read(0, MANY, MANY, min_one_message=True))
        if header.is_control and header.producer_id == producer_id
    ]


@pytest.mark.parametrize("decision", [ABORT, COMMIT])
def test_a_marker_goes_after_its_records_and_its_delete_horizon(
    decision: ControlRecordType,
) -> None:
    clock = Clock()
    logs = manager(SimulatedDisk(), clock)
    log = log_of(logs)
    writer = Writer(log)
    writer.write(8, "k", "early")
    writer.end(8, decision)
    writer.write(8, "k", "late")
    writer.end(8, COMMIT)
    writer.write(9, "k", "last")
    writer.end(9, COMMIT)
    assert markers_of(log, 8) == [1, 3]
    aborted = [] if decision is COMMIT else [1]
    writer.fill("a")
    assert clean(logs) == 1, "this takes the record"
    assert 0 not in {record.offset for record in held(log)}
    assert [entry.last_offset for entry in entries_of(log)] == aborted
    clock.now_ms += RETENTION_MS
    writer.fill("b")
    assert clean(logs) == 1, "this sets the horizon"
    assert markers_of(log, 8) == [1, 3]
    assert entries_of(log) == []
    clock.now_ms += RETENTION_MS - 1
    writer.fill("c")
    assert clean(logs) == 1
    assert markers_of(log, 8) == [1, 3], "its horizon is not reached"
    clock.now_ms += 1
    writer.fill("d")
    assert clean(logs) == 1
    assert markers_of(log, 8) == [3], (
        "the other one ends the transaction of the producer's last batch"
    )


def test_the_marker_that_alone_tells_of_a_producer_stays() -> None:
    clock = Clock()
    logs = manager(SimulatedDisk(), clock)
    log = log_of(logs)
    writer = Writer(log)
    writer.end(8, ABORT)
    for key in "abcd":
        writer.fill(key)
        assert clean(logs) == 1
        clock.now_ms += RETENTION_MS
    assert markers_of(log, 8) == [0]


def test_no_snapshot_opens_a_transaction_of_which_the_marker_is_gone() -> None:
    """The index of aborted transactions is broken: the log is read again from a snapshot before it."""
    clock = Clock()
    disk = SimulatedDisk()
    logs = manager(disk, clock)
    log = log_of(logs)
    writer = Writer(log)
    writer.write(8, "k", "early")
    for number in range(9):
        writer.write(9, f"stays-{number}", "x")
        writer.end(9, COMMIT)
    writer.end(8, COMMIT)
    writer.write(10, "k", "late")
    writer.end(10, COMMIT)
    clock.now_ms += DAY_MS
    logs.remove_expired_producers()
    for key in "abcde":
        writer.fill(key)
        clean(logs)
        clock.now_ms += RETENTION_MS
    log.flush()
    logs.checkpoint_recovery_points()
    for segment in log.segments[1:]:
        disk.files.append(f"{log.directory}/{segment.base_offset:020}.txnindex", b"broken")
    assert markers_of(log, 8) == []
    logs = manager(disk, clock)
    log = log_of(logs)
    log.update_high_watermark(log.log_end_offset)
    producers = log.producer_state_manager.active_producers.values()
    assert not [producer for producer in producers if producer.has_open_transaction]
    assert log.last_stable_offset == log.log_end_offset


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(7, 9), st.integers(0, 4), st.sampled_from([None, ABORT, COMMIT])),
        min_size=8,
        max_size=40,
    ),
    st.lists(st.integers(0, 90), max_size=4),
)
def test_however_often_it_is_cleaned_the_same_is_committed(
    writes: list[tuple[int, int, ControlRecordType | None]], kills: list[int]
) -> None:
    """Markers go one after the other, the cleaner is killed, and no transaction is opened or decided again."""
    clock, disk = Clock(), MortalDisk()
    logs = manager(disk, clock)
    log = log_of(logs)
    writer = Writer(log)
    for number, (producer_id, key, decision) in enumerate(writes):
        writer.write(producer_id, f"k{key}", f"v{number}")
        if decision is not None:
            writer.end(producer_id, decision)
    for producer_id in (7, 8, 9):
        writer.end(producer_id, COMMIT)
    values = committed(log)
    for number in range(6):
        disk.incarnation = Mortal(kills[number]) if number < len(kills) else Mortal()
        try:
            clean(logs)
        except Killed:
            disk.incarnation = Mortal()
            logs = manager(disk, clock)
            log = log_of(logs)
            log.update_high_watermark(log.log_end_offset)
        disk.incarnation = Mortal()
        after = committed(log)
        last = {key: offset for offset, (key, _) in values.items()}
        assert after.items() <= values.items()
        assert {key: offset for offset, (key, _) in after.items()} == last
        assert log.last_stable_offset == log.log_end_offset
        clock.now_ms += RETENTION_MS
        writer = Writer(log)
        for _ in range(4):
            writer.write(20 + number, f"f{number}", "filler")
            writer.end(20 + number, ABORT if number % 2 else COMMIT)
        values = values | committed(log)
