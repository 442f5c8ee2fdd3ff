"""The reference's logs on a disk that is killed, cut from power, filled and broken at random.

Laws, after whatever happened: every log opens; it holds a run of whole batches from offset 0 on, each as it was once
appended there; it reaches at least as far as what was synced and not truncated since; the epochs it knows are those
of its batches; the high watermark lies within it. After a kill it holds exactly what it held before.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.log.errors import KafkaStorageError
from nemesis.reference.log.log import Log
from nemesis.reference.log.log_config import LogConfig
from nemesis.reference.log.log_manager import LogManager
from nemesis.reference.model import TopicPartition
from nemesis.reference.protocol.record_batch import crc_matches, iter_batches
from nemesis.simulation.disk import SimulatedDisk
from tests.reference.log.batches import NOW_MS, PRODUCERS, assigned, batch

MANY = 2**31
PARTITIONS = [TopicPartition("t", 0), TopicPartition("t", 1)]

partitions = st.sampled_from(PARTITIONS)
produced = st.lists(
    st.builds(batch, count=st.integers(1, 4), payload=st.binary(max_size=60)),
    min_size=1,
    max_size=3,
).map(b"".join)


@dataclass
class Expected:
    """What is known of a log from outside."""

    topic_id: UUID
    batches: dict[int, bytes] = field(default_factory=dict)
    """What it holds, by base offset."""
    ever: dict[int, set[bytes]] = field(default_factory=dict)
    """What it may ever have held."""
    end: int = 0
    synced: int = 0
    """The offset up to which everything was synced, and not truncated since."""
    epoch: int = 0

    def try_append(self, data: bytes) -> None:
        """These batches may be there from now on, whether or not the append succeeds."""
        for base, whole in split(data).items():
            self.ever.setdefault(base, set()).add(whole)

    def append(self, data: bytes) -> None:
        self.learn(self.batches | split(data), last(data) + 1)

    def learn(self, batches: dict[int, bytes], end: int) -> None:
        self.batches, self.end = batches, end

    def truncate(self, end: int) -> None:
        self.batches = {base: data for base, data in self.batches.items() if base < end}
        self.end, self.synced = end, min(self.synced, end)


def split(data: bytes) -> dict[int, bytes]:
    """Batches by base offset."""
    return {
        header.base_offset: data[header.position : header.position + header.size_in_bytes]
        for header in iter_batches(data)
    }


def last(data: bytes) -> int:
    """The last offset of some batches."""
    return list(iter_batches(data))[-1].last_offset


def held(log: Log) -> dict[int, bytes]:
    """Read a log to its end; every batch is whole, has its CRC, and continues the one before."""
    collected: dict[int, bytes] = {}
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, MANY, MANY, min_one_message=True)
        assert data, f"nothing at {offset}, yet the log ends at {log.log_end_offset}"
        for header in iter_batches(data):
            assert header.base_offset == offset
            assert crc_matches(memoryview(data), header, header.position)
            offset = header.last_offset + 1
        collected |= split(data)
    assert offset == log.log_end_offset
    return collected


class LogsOnABadDisk(RuleBasedStateMachine):
    """A broker's logs through many lives."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = SimulatedDisk()
        self.expected: dict[TopicPartition, Expected] = {}
        self.next_id = 1

    @initialize(segment_bytes=st.integers(300, 900))
    def start(self, segment_bytes: int) -> None:
        self.config = KafkaConfig.from_properties(
            {
                "broker.id": 1,
                "listeners": "PLAINTEXT://127.0.0.1:9092",
                "zookeeper.connect": "127.0.0.1:2181",
                "log.dirs": ["data"],
                "log.segment.bytes": segment_bytes,
            }
        )
        self.open()

    def open(self) -> None:
        self.logs = LogManager(self.config, self.disk, wall_clock=lambda: NOW_MS)
        self.logs.load_logs()
        assert self.logs.live_log_dirs == ("data",)

    def both(self, partition: TopicPartition) -> tuple[Log, Expected]:
        """The log and what is known of it; created if there is none."""
        if partition not in self.expected:
            topic_id, self.next_id = UUID(int=self.next_id), self.next_id + 1
            self.logs.get_or_create_log(partition, topic_id, is_new=True)
            self.expected[partition] = Expected(topic_id)
        log = self.logs.get_log(partition)
        assert log is not None
        return log, self.expected[partition]

    @rule(partition=partitions, data=produced, raised_by=st.integers(0, 2))
    def append(self, partition: TopicPartition, data: bytes, raised_by: int) -> None:
        log, expected = self.both(partition)
        expected.epoch += raised_by
        as_led = assigned(data, expected.end, expected.epoch)
        expected.try_append(as_led)
        log.append_as_leader(data, expected.epoch)
        expected.append(as_led)

    @rule(partition=partitions, data=produced)
    def append_in_the_same_epoch(self, partition: TopicPartition, data: bytes) -> None:
        self.append(partition, data, 0)

    @rule(partition=partitions, back=st.integers(0, 30))
    def truncate(self, partition: TopicPartition, back: int) -> None:
        log, expected = self.both(partition)
        log.truncate_to(max(0, expected.end - back))
        expected.truncate(log.log_end_offset)

    @rule(partition=partitions)
    def flush(self, partition: TopicPartition) -> None:
        log, expected = self.both(partition)
        log.flush()
        expected.synced = expected.end

    @rule(partition=partitions, offset=st.integers(0, 60))
    def checkpoint(self, partition: TopicPartition, offset: int) -> None:
        self.both(partition)[0].update_high_watermark(offset)
        self.logs.checkpoint_high_watermarks()

    @rule(partition=partitions)
    def delete(self, partition: TopicPartition) -> None:
        if self.expected.pop(partition, None) is not None:
            assert self.logs.delete_log(partition)

    @rule(is_polite=st.booleans())
    def die(self, is_polite: bool) -> None:
        if is_polite:
            self.logs.close()
        self.open()

    @rule(seed=st.integers(0, 2**16))
    def lose_power(self, seed: int) -> None:
        self.disk.power_cut(Random(seed))
        self.open()
        for partition, expected in self.expected.items():
            log, result = self.reopened(partition)
            assert log.log_end_offset >= expected.synced
            synced = {b: d for b, d in expected.batches.items() if b < expected.synced}
            assert result.items() >= synced.items()
            expected.learn(result, log.log_end_offset)
            expected.synced = expected.end

    @rule(
        free_bytes=st.none() | st.integers(0, 400),
        partition=partitions,
        data=produced,
        raised_by=st.integers(0, 2),
    )
    def append_on_a_bad_disk(
        self, free_bytes: int | None, partition: TopicPartition, data: bytes, raised_by: int
    ) -> None:
        _, expected = self.both(partition)
        self.break_disk(free_bytes)
        with suppress(KafkaStorageError):
            self.append(partition, data, raised_by)
        self.disk.heal()
        self.open()
        log, result = self.reopened(partition)
        assert result.items() >= expected.batches.items()
        expected.learn(result, log.log_end_offset)

    @rule(free_bytes=st.none() | st.integers(0, 40), partition=partitions, back=st.integers(0, 30))
    def truncate_on_a_bad_disk(
        self, free_bytes: int | None, partition: TopicPartition, back: int
    ) -> None:
        _, expected = self.both(partition)
        before, target = expected.batches, max(0, expected.end - back)
        self.break_disk(free_bytes)
        with suppress(KafkaStorageError):
            self.truncate(partition, back)
        self.disk.heal()
        self.open()
        log, result = self.reopened(partition)
        assert result.items() <= before.items()
        assert result.items() >= {b: d for b, d in before.items() if last(d) < target}.items()
        expected.truncate(log.log_end_offset)

    @rule(partition=partitions, free_bytes=st.integers(0, 100), data=produced, more=produced)
    def go_on_when_there_is_room_again(
        self, partition: TopicPartition, free_bytes: int, data: bytes, more: bytes
    ) -> None:
        """The same log, without a restart: it is as it was before the append that failed."""
        self.both(partition)
        self.break_disk(free_bytes)
        with suppress(KafkaStorageError):
            self.append(partition, data, 0)
        self.disk.heal()
        self.append(partition, more, 0)

    def break_disk(self, free_bytes: int | None) -> None:
        """Let it fail; or let it be full but for so many bytes."""
        if free_bytes is None:
            self.disk.fail()
        else:
            self.disk.fill(free_bytes=free_bytes)

    def reopened(self, partition: TopicPartition) -> tuple[Log, dict[int, bytes]]:
        log = self.logs.get_log(partition)
        assert log is not None, f"{partition} had a topic id, which is synced"
        result = held(log)
        assert all(data in self.expected[partition].ever[base] for base, data in result.items())
        return log, result

    @invariant()
    def hold_what_is_expected(self) -> None:
        assert set(self.logs.all_logs()) == set(self.expected)
        for partition, expected in self.expected.items():
            log = self.logs.get_log(partition)
            assert log is not None
            assert log.topic_id == expected.topic_id
            assert log.log_end_offset == expected.end
            assert held(log) == expected.batches
            assert 0 <= log.high_watermark <= expected.end
            for base, data in expected.batches.items():
                (header,) = iter_batches(data)
                epoch = header.partition_leader_epoch
                assert log.leader_epoch_cache.epoch_for_offset(base) == epoch


LogsOnABadDisk.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
TestLogsOnABadDisk = LogsOnABadDisk.TestCase


class Killed(BaseException):
    """The machine stops here."""


class MortalDisk(SimulatedDisk):
    """Stops the machine before its n-th call that changes or syncs anything."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.calls = calls

    def _count(self) -> None:
        self.calls -= 1
        if self.calls < 0:
            raise Killed

    def append(self, path: str, data: bytes) -> None:
        self._count()
        super().append(path, data)

    def truncate(self, path: str, size: int) -> None:
        self._count()
        super().truncate(path, size)

    def fsync(self, path: str) -> None:
        self._count()
        super().fsync(path)

    def replace(self, path: str, data: bytes) -> None:
        self._count()
        super().replace(path, data)

    def remove(self, path: str) -> None:
        self._count()
        super().remove(path)


def scripted_incarnation(log: Log, expected: Expected) -> None:
    """Lead, append, sync, truncate across segments, again and again."""
    for term in range(4):
        log.maybe_assign_epoch_start_offset(2 * term, log.log_end_offset)
        for i in range(4):
            as_led = assigned(batch(2, payload=bytes(10 * term)), expected.end, 2 * term + i // 2)
            expected.try_append(as_led)
            log.append_as_follower(as_led)
            expected.append(as_led)
            if i == 1:
                log.flush()
                expected.synced = expected.end
        end = max(0, expected.end - 6)
        expected.truncate(end)
        log.truncate_to(end)


CALLS_IN_AN_INCARNATION = 123


@pytest.mark.parametrize("calls", range(CALLS_IN_AN_INCARNATION + 1))
def test_whenever_the_power_goes_a_log_opens_with_what_was_synced(calls: int) -> None:
    for seed in range(12):
        disk, expected = MortalDisk(calls), Expected(UUID(int=1))
        is_killed = False
        try:
            scripted_incarnation(open_log(disk), expected)
        except Killed:
            is_killed = True
        assert is_killed == (calls < CALLS_IN_AN_INCARNATION), "a call goes untested"
        disk.calls = MANY
        disk.power_cut(Random(seed))
        log = open_log(disk)
        result = held(log)
        assert all(data in expected.ever[base] for base, data in result.items())
        assert log.log_end_offset >= expected.synced
        epochs = [next(iter_batches(data)).partition_leader_epoch for data in result.values()]
        assert [log.leader_epoch_cache.epoch_for_offset(base) for base in result] == epochs
        assert epochs == sorted(epochs)


def open_log(disk: SimulatedDisk) -> Log:
    return Log(PARTITIONS[0], "t-0", disk=disk, config=LogConfig(segment_bytes=200), **PRODUCERS)
