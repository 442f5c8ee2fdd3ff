"""Compaction: what goes and what stays, wherever it is interrupted; what followers and recovery make of the gaps."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemesis.history.stored_logs import read_logs
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.log.errors import (
    CorruptRecordError,
    InvalidRecordError,
    OffsetsOutOfOrderError,
)
from nemesis.reference.log.log import Log
from nemesis.reference.log.log_manager import LogManager
from nemesis.reference.model import TopicPartition
from nemesis.reference.protocol.record_batch import iter_batches
from nemesis.reference.trace import Kind
from nemesis.simulation.disk import SimulatedDisk
from nemesis.workloads.kafka.record_batch import NO_PRODUCER, Producer, build
from tests.reference.log.batches import with_codec
from tests.reference.log.mortal import Killed, Mortal, MortalDisk
from tests.reference.log.stored_records import Held, held

TP = TopicPartition("t", 0)
ID = UUID(int=7)
MANY = 2**31
DAY_MS = 86_400_000


class Events:
    """A tracer that remembers."""

    def __init__(self) -> None:
        self.recorded: list[tuple[Kind, dict[str, Any]]] = []

    def event(self, kind: Kind, /, **columns: Any) -> None:
        self.recorded.append((kind, columns))


class Logs:
    """One log of a broker, whose process may end at any time."""

    def __init__(
        self,
        properties: Mapping[str, Any] = MappingProxyType({}),
        disk: SimulatedDisk | None = None,
    ) -> None:
        self.disk = disk or SimulatedDisk()
        self.now_ms = 1_000_000
        self.properties: dict[str, Any] = {
            "broker.id": 1,
            "listeners": "PLAINTEXT://127.0.0.1:9092",
            "zookeeper.connect": "127.0.0.1:2181",
            "log.dirs": ["data"],
            "log.segment.bytes": 300,
            "log.cleanup.policy": ["compact"],
            "log.cleaner.min.cleanable.ratio": 0,
        } | dict(properties)
        self.open()

    def open(self) -> None:
        self.events = Events()
        self.manager = LogManager(
            KafkaConfig.from_properties(self.properties),
            self.disk,
            wall_clock=lambda: self.now_ms,
            tracer=self.events,
        )
        self.manager.load_logs()
        assert self.manager.live_log_dirs == ("data",)
        self.log: Log = self.manager.get_or_create_log(TP, ID, is_new=True)

    def write(
        self,
        *records: tuple[str, str | None],
        codec: int = 0,
        producer: Producer = NO_PRODUCER,
        epoch: int = 0,
    ) -> None:
        """Append a batch; all is committed."""
        pairs = [
            (key.encode(), None if value is None else value.encode()) for key, value in records
        ]
        batch = build(list(pairs), self.now_ms, producer)
        self.log.append_as_leader(with_codec(batch, codec), epoch)
        self.log.update_high_watermark(self.log.log_end_offset)

    def clean(self) -> int:
        """Clean as long as there is anything to clean; return how often."""

        async def clean_all() -> int:
            rounds = 0
            while await self.manager.cleaner.clean_filthiest_log():
                rounds += 1
                assert rounds < 50, "the cleaner does not come to an end"
            return rounds

        return asyncio.run(clean_all())

    def held(self) -> list[Held]:
        return held(self.log)


def filled(logs: Logs, keys: int = 3, count: int = 30, **how: Any) -> list[Held]:
    for number in range(count):
        logs.write((f"k{number % keys}", f"v{number}"), **how)
    return logs.held()


def last_of_each_key(records: list[Held]) -> set[Held]:
    return set({record.key: record for record in records}.values())


@pytest.mark.parametrize("codec", range(5))
def test_of_each_key_the_last_record_stays_where_it_was(codec: int) -> None:
    logs = Logs()
    before = filled(logs, codec=codec)
    active = logs.log.segments[-1].base_offset
    assert len(logs.log.segments) > 5
    size = logs.log.size_in_bytes
    assert logs.clean() == 1
    after = logs.held()
    below = [record for record in before if record.offset < active]
    assert {r for r in after if r.offset < active} == last_of_each_key(below)
    assert [r for r in after if r.offset >= active] == [r for r in before if r.offset >= active]
    assert len(below) > 3
    assert logs.log.size_in_bytes < size / 2
    assert logs.log.log_end_offset == 30


def test_nothing_is_cleaned_twice_or_without_need() -> None:
    logs = Logs({"log.cleaner.min.cleanable.ratio": 0.5})
    filled(logs)
    assert logs.clean() == 1
    assert logs.clean() == 0
    logs.write(("k0", "new"))
    assert logs.clean() == 0
    filled(logs)
    assert logs.clean() == 1


def test_what_is_not_committed_supersedes_nothing() -> None:
    logs = Logs()
    filled(logs, count=12)
    committed = logs.log.log_end_offset
    for number in range(12, 30):
        batch = build([(f"k{number % 3}".encode(), b"v")], logs.now_ms)
        logs.log.append_as_leader(batch, 0)
    assert logs.log.high_watermark == committed
    before = [record for record in logs.held() if record.offset < committed]
    logs.clean()
    after = {record for record in logs.held() if record.offset < committed}
    assert last_of_each_key(before) <= after


def test_the_age_of_records_counts() -> None:
    logs = Logs({"log.cleaner.min.compaction.lag.ms": 5_000})
    before = filled(logs)
    assert logs.clean() == 0
    logs.now_ms += 5_001
    assert logs.clean() == 1
    assert len(logs.held()) < len(before)
    logs = Logs({"log.cleaner.min.cleanable.ratio": 1, "log.cleaner.max.compaction.lag.ms": 5_000})
    filled(logs)
    assert logs.clean() == 0
    logs.now_ms += 5_001
    assert logs.clean() == 1


def test_a_segment_ends_in_time_for_the_largest_lag() -> None:
    logs = Logs(
        {"log.segment.bytes": 100_000, "log.cleaner.max.compaction.lag.ms": 5_000}
        | {"log.cleaner.min.cleanable.ratio": 1}
    )
    filled(logs)
    logs.now_ms += 5_001
    assert logs.clean() == 0
    logs.write(("other", "v"))
    assert logs.clean() == 1
    assert [record.offset for record in logs.held()] == [27, 28, 29, 30]


def test_a_tombstone_stays_as_long_as_it_has_to() -> None:
    logs = Logs()
    logs.write(("gone", "old"), ("kept", "value"))
    logs.write(("gone", None))
    filled(logs, count=12)
    logs.clean()
    assert (b"gone", None) in {record[1:] for record in logs.held()}
    assert (b"gone", b"old") not in {record[1:] for record in logs.held()}
    logs.now_ms += DAY_MS - 1
    filled(logs, count=12)
    logs.clean()
    assert (b"gone", None) in {record[1:] for record in logs.held()}
    logs.now_ms += 1
    filled(logs, count=12)
    logs.clean()
    assert b"gone" not in {record.key for record in logs.held()}
    assert b"kept" in {record.key for record in logs.held()}


def test_files_hold_the_delete_horizon_that_follows_from_the_trace() -> None:
    """By a reader of its own: ``history`` decodes files apart from the reference."""
    logs = Logs({"log.cleaner.delete.retention.ms": 50})
    logs.write(("gone", None))
    filled(logs, count=12)
    logs.now_ms += 7
    logs.clean()
    begun = {
        columns["wall_ms"] for kind, columns in logs.events.recorded if kind is Kind.LOG_CLEANED
    }
    [log] = read_logs(logs.disk, ["data"])
    horizons = {batch.base_offset: batch.delete_horizon_ms for batch in log.batches}
    assert begun == {logs.now_ms}
    assert horizons.pop(0) == logs.now_ms + 50
    assert set(horizons.values()) == {None}


def test_the_last_batch_of_a_producer_is_remembered() -> None:
    logs = Logs()
    logs.write(("k0", "a"), producer=Producer(9, 0, 0))
    logs.write(("k0", "b"), producer=Producer(9, 0, 1))
    filled(logs)
    logs.clean()
    logs.open()
    assert all(record.key != b"k0" or record.offset > 1 for record in logs.held())
    again = build([(b"k0", b"b")], logs.now_ms, Producer(9, 0, 1))
    assert logs.log.append_as_leader(again, 0)[:3] == (1, 1, ())


def test_a_small_offset_map_takes_several_rounds() -> None:
    logs = Logs()
    before = filled(logs, keys=10, count=60)
    logs.manager.cleaner._cleaner._offset_map_capacity = 4
    assert logs.clean() > 2
    assert last_of_each_key(before) <= set(logs.held())
    assert len(logs.held()) < len(before)


def test_a_record_without_a_key_is_refused() -> None:
    logs = Logs()
    for codec in range(5):
        batch = with_codec(build([(b"k", b"v"), (None, b"v")], logs.now_ms), codec)
        with pytest.raises(InvalidRecordError, match="without a key"):
            logs.log.append_as_leader(batch, 0)
    with pytest.raises(CorruptRecordError):
        logs.log.append_as_leader(with_codec(build([(b"k", b"v")], 0), 0)[:61], 0)
    assert logs.log.log_end_offset == 0


def test_a_follower_takes_the_gaps_over_and_keeps_them() -> None:
    leader, follower = Logs(), Logs({"log.cleanup.policy": ["delete"]})
    for epoch in range(3):
        filled(leader, count=10, epoch=epoch)
    leader.clean()
    offset = 0
    while data := leader.log.read(offset, 400, MANY, min_one_message=True):
        follower.log.append_as_follower(data)
        offset = follower.log.log_end_offset
    assert follower.held() == leader.held()
    follower.open()
    assert follower.held() == leader.held()
    assert follower.log.log_end_offset == leader.log.log_end_offset
    with pytest.raises(OffsetsOutOfOrderError):
        follower.log.append_as_follower(data or leader.log.read(0, 1, MANY, min_one_message=True))


def test_a_log_that_nobody_compacted_ends_at_a_gap() -> None:
    logs = Logs({"log.cleanup.policy": ["delete"], "log.segment.bytes": 100_000})
    filled(logs, count=5)
    path = "data/t-0/00000000000000000000.log"
    whole = logs.disk.read(path, 0, logs.disk.size(path))
    third = list(iter_batches(whole))[2]
    logs.disk.truncate(path, 0)
    logs.disk.append(path, whole[: third.position] + whole[third.position + third.size_in_bytes :])
    logs.open()
    assert logs.log.log_end_offset == 2


def test_the_epochs_of_what_is_gone_are_known_after_a_crash() -> None:
    logs = Logs()
    for epoch in range(4):
        filled(logs, keys=1, count=6, epoch=epoch)
    epochs = logs.log.leader_epoch_cache.entries
    assert len(epochs) == 4
    logs.clean()
    logs.open()
    assert logs.log.leader_epoch_cache.entries == epochs


def test_a_cleaning_is_given_up_when_the_log_is_truncated() -> None:
    logs = Logs()
    filled(logs)

    async def truncated_meanwhile() -> None:
        cleaning = asyncio.get_running_loop().create_task(
            logs.manager.cleaner.clean_filthiest_log()
        )
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        logs.log.update_high_watermark(10)
        logs.manager.truncate_to(logs.log, 10)
        assert await cleaning

    asyncio.run(truncated_meanwhile())
    assert [record.offset for record in logs.held()] == list(range(10))
    assert Kind.LOG_CLEANED not in {kind for kind, _ in logs.events.recorded}
    filled(logs)
    assert logs.clean() == 1


@given(st.integers(0, 40), st.integers(0, 40))
def test_a_log_that_is_cut_in_a_gap_ends_there(first: int, second: int) -> None:
    """Were its end behind that, its leader would have it cut there again, and again."""
    logs = Logs()
    for epoch in range(4):
        filled(logs, count=10, epoch=epoch)
    logs.clean()
    for offset in (first, second):
        before = logs.held()
        end = min(logs.log.log_end_offset, offset)
        logs.manager.truncate_to(logs.log, offset)
        assert logs.log.log_end_offset == end
        assert logs.held() == [record for record in before if record.offset < end]
        assert all(entry.start_offset < end for entry in logs.log.leader_epoch_cache.entries)
    filled(logs, count=1, epoch=9)
    assert logs.held()[-1].offset == end


def test_a_damaged_batch_is_left_for_somebody_to_see() -> None:
    logs = Logs()
    filled(logs)
    path = "data/t-0/00000000000000000000.log"
    damaged = bytearray(logs.disk.read(path, 0, logs.disk.size(path)))
    damaged[70] ^= 1
    logs.disk.truncate(path, 0)
    logs.disk.append(path, bytes(damaged))
    assert logs.clean() == 1
    assert logs.clean() == 0
    assert logs.disk.read(path, 0, logs.disk.size(path)) == damaged


def test_a_bug_costs_one_log_its_cleaning_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = Logs()
    filled(logs)
    other = logs.manager.get_or_create_log(TopicPartition("other", 0), ID, is_new=True)
    logs.log = other
    records = filled(logs)
    allow_gaps = Log.allow_gaps

    def buggy(log: Log) -> None:
        if log is not other:
            raise ZeroDivisionError
        allow_gaps(log)

    monkeypatch.setattr(Log, "allow_gaps", buggy)
    assert logs.clean() == 2
    assert set(logs.held()) < set(records)


def test_what_is_rewritten_is_traced_before() -> None:
    logs = Logs({"log.segment.bytes": 500})
    for number in range(10):
        logs.write((f"once-{number}", "v"), ("again", f"v{number}"))
    logs.clean()
    kinds = [
        kind for kind, _ in logs.events.recorded if kind in (Kind.LOG_CLEANED, Kind.BATCH_CLEANED)
    ]
    assert kinds.count(Kind.BATCH_CLEANED) > 3
    assert kinds[-1] is Kind.LOG_CLEANED
    crcs = {
        columns["offset"]: columns["crc"]
        for kind, columns in logs.events.recorded
        if kind is Kind.BATCH_CLEANED
    }
    segment = logs.log.segments[0]
    assert {h.base_offset: h.crc for h in segment.batches_from(0)}.items() >= {
        base: crc for base, crc in crcs.items() if base < segment.next_offset
    }.items()


writes = st.lists(
    st.tuples(
        st.lists(st.integers(0, 3), min_size=1, max_size=3), st.integers(0, 4), st.integers(0, 1)
    ),
    min_size=10,
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(writes, st.integers(0, 60), st.booleans(), st.randoms(use_true_random=False))
def test_no_last_value_is_lost_wherever_a_cleaning_ends(
    produced: list[tuple[list[int], int, int]], steps: int, loses_power: bool, rng: Any
) -> None:
    """Law: whatever is gone is superseded by a record of the same key, in the same log, and nothing new is there."""
    disk = MortalDisk()
    logs = Logs(disk=disk)
    epoch, number = 0, 0
    for keys, codec, raised_by in produced:
        epoch += raised_by
        logs.write(
            *((f"k{key}", f"v{(number := number + 1)}") for key in keys), codec=codec, epoch=epoch
        )
    before = logs.held()
    logs.log.flush()
    disk.incarnation = Mortal(steps)
    with suppress(Killed):
        logs.clean()
    disk.incarnation = Mortal()
    if loses_power:
        disk.power_cut(rng)
    for _ in range(2):
        logs.open()
        logs.log.update_high_watermark(logs.log.log_end_offset)
        after = logs.held()
        assert set(after) <= set(before)
        assert last_of_each_key(before) <= set(after)
        assert [record.offset for record in after] == sorted({record.offset for record in after})
        assert logs.log.log_end_offset == before[-1].offset + 1
        assert not [n for n in disk.list("data/t-0") if n.endswith((".swap", ".cleaned"))]
        logs.clean()


def test_a_swap_behind_an_unfinished_file_is_undone() -> None:
    logs = Logs()
    before = filled(logs)
    second = logs.log.segments[1].base_offset
    for base, suffix in ((0, ".cleaned"), (second, ".swap")):
        logs.disk.append(f"data/t-0/{base:020d}.log{suffix}", b"")
    logs.open()
    assert logs.held() == before
