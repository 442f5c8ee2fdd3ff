"""Checkpoints of a log directory, the mark of a clean stop, and what is verified without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.log.log import LogStartOffsetIncrementReason
from nemesis.reference.log.log_manager import LogManager
from nemesis.reference.model import TopicPartition
from nemesis.reference.ports import Job
from nemesis.reference.trace import Kind
from tests.reference.cluster.hosting import Trace, config
from tests.reference.log.batches import batch
from tests.reference.log.logs import read_all

TP, ID = TopicPartition("t", 0), UUID(int=7)
FIRST = len(batch(1))


class ReadCounter(RealDisk):
    """Counts what is read of the batches."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes_read = 0

    def read(self, path: str, offset: int, size: int) -> bytes:
        data = super().read(path, offset, size)
        self.bytes_read += len(data) if path.endswith(".log") else 0
        return data


class Later:
    """A scheduler that keeps what it is given."""

    def __init__(self) -> None:
        self.recurring: dict[str, tuple[Job, float]] = {}
        self.once: list[tuple[str, Job, float]] = []

    def schedule(self, name: str, job: Job, *, period_s: float) -> None:
        self.recurring[name] = (job, period_s)

    def schedule_once(self, name: str, job: Job, *, delay_s: float) -> None:
        self.once.append((name, job, delay_s))


def manager(tmp_path: Path, disk: RealDisk | None = None, **properties: Any) -> LogManager:
    logs = LogManager(config(tmp_path, **properties), disk or RealDisk())
    logs.load_logs()
    return logs


def test_after_a_clean_stop_nothing_is_verified(tmp_path: Path) -> None:
    first = manager(tmp_path)
    log = first.get_or_create_log(TP, ID, is_new=True)
    for _ in range(200):
        log.append_as_leader(batch(1, payload=b"x" * 1000), 1)
    first.close()
    mark = tmp_path / ".kafka_cleanshutdown"
    assert mark.read_text() == '{"version":0,"brokerEpoch":-1}'
    disk = ReadCounter()
    second = manager(tmp_path, disk)
    assert disk.bytes_read < 20_000
    assert not mark.exists()
    again = second.get_log(TP)
    assert again is not None
    assert (again.log_end_offset, again.recovery_point, again.latest_epoch) == (200, 200, 1)
    assert len(read_all(again)) == 200
    disk = ReadCounter()
    third = manager(tmp_path, disk)  # the second was killed
    assert disk.bytes_read > 200_000
    assert third.get_log(TP) is not None


def test_a_mark_beside_a_torn_log_hides_nothing(tmp_path: Path) -> None:
    first = manager(tmp_path)
    log = first.get_or_create_log(TP, ID, is_new=True)
    for _ in range(3):
        log.append_as_leader(batch(1), 1)
    first.close()
    file = tmp_path / "t-0" / f"{0:020d}.log"
    file.write_bytes(file.read_bytes()[:-5])
    again = manager(tmp_path).get_log(TP)
    assert again is not None
    assert read_all(again) == [(0, 0), (1, 1)]


def test_what_was_synced_is_not_verified_again(tmp_path: Path) -> None:
    first = manager(tmp_path, log_segment_bytes=20_000)
    log = first.get_or_create_log(TP, ID, is_new=True)
    for _ in range(200):
        log.append_as_leader(batch(1, payload=b"x" * 1000), 1)
    assert log.recovery_point > 150
    first.checkpoint_recovery_points()
    text = (tmp_path / "recovery-point-offset-checkpoint").read_text()
    assert text == f"0\n1\nt 0 {log.recovery_point}\n"
    disk = ReadCounter()
    second = manager(tmp_path, disk, log_segment_bytes=20_000)
    assert disk.bytes_read < 60_000
    again = second.get_log(TP)
    assert again is not None
    assert len(read_all(again)) == 200
    assert again.leader_epoch_cache.entries == ((1, 0),)


def test_a_truncation_takes_the_checkpointed_recovery_point_back(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    log = logs.get_or_create_log(TP, ID, is_new=True)
    for _ in range(5):
        log.append_as_leader(batch(1), 1)
    log.flush()
    logs.checkpoint_recovery_points()
    logs.truncate_to(log, 2)
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\nt 0 2\n"


def test_a_start_within_a_segment_survives(tmp_path: Path) -> None:
    first = manager(tmp_path)
    log = first.get_or_create_log(TP, ID, is_new=True)
    log.append_as_leader(batch(5), 1)
    log.update_high_watermark(5)
    log.maybe_increment_log_start_offset(3, LogStartOffsetIncrementReason.CLIENT_RECORD_DELETION)
    first.checkpoint_log_start_offsets()
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\nt 0 3\n"
    again = manager(tmp_path).get_log(TP)
    assert again is not None
    assert again.log_start_offset == 3


def test_a_topic_created_anew_inherits_no_offset(tmp_path: Path) -> None:
    first = manager(tmp_path)
    log = first.get_or_create_log(TP, ID, is_new=True)
    log.append_as_leader(batch(5), 1)
    log.update_high_watermark(5)
    log.maybe_increment_log_start_offset(3, LogStartOffsetIncrementReason.CLIENT_RECORD_DELETION)
    log.flush()
    first.checkpoint_recovery_points()
    first.checkpoint_log_start_offsets()
    first.delete_log(TP)
    for name in ("recovery-point", "log-start"):
        assert (tmp_path / f"{name}-offset-checkpoint").read_text() == "0\n0\n"


@pytest.mark.parametrize(
    "name", ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint"]
)
def test_a_malformed_checkpoint_that_only_saves_time_counts_as_empty(
    tmp_path: Path, name: str
) -> None:
    manager(tmp_path).get_or_create_log(TP, ID, is_new=True).append_as_leader(batch(2), 1)
    (tmp_path / name).write_text("0\n1\nt 0 x\n")
    again = manager(tmp_path).get_log(TP)
    assert again is not None
    assert (again.log_start_offset, again.log_end_offset) == (0, 2)


def test_a_deleted_log_is_renamed_at_once_and_removed_later(tmp_path: Path) -> None:
    logs, later = manager(tmp_path, log_segment_delete_delay_ms=5000), Later()
    logs.startup(later, lambda error: pytest.fail(str(error)))
    for _ in range(2):
        logs.get_or_create_log(TP, ID, is_new=True).append_as_leader(batch(1), 1)
        assert logs.delete_log(TP)
    doomed = sorted(path.name for path in tmp_path.glob("*-delete"))
    assert doomed == [f"t-0.{number:032x}-delete" for number in (1, 2)]
    assert not (tmp_path / "t-0").exists()
    for name, job, delay_s in later.once:
        assert (name, delay_s) == ("kafka-delete-logs", 5.0)
        job()
    assert not list(tmp_path.glob("*-delete"))


def test_the_recurring_work_has_kafkas_names(tmp_path: Path) -> None:
    wall_ms, trace, later = [1000], Trace(), Later()
    logs = LogManager(
        config(tmp_path, log_segment_bytes=FIRST, log_retention_ms=100, log_flush_interval_ms=50),
        RealDisk(),
        wall_clock=lambda: wall_ms[0],
        tracer=trace,
    )
    logs.load_logs()
    logs.startup(later, lambda error: pytest.fail(str(error)))
    periods = {name: period for name, (_, period) in later.recurring.items()}
    assert (
        periods.items()
        >= {
            "kafka-log-retention": 300.0,
            "kafka-log-flusher": (2**63 - 1) / 1000,
            "kafka-recovery-point-checkpoint": 60.0,
            "kafka-log-start-offset-checkpoint": 60.0,
        }.items()
    )
    log = logs.get_or_create_log(TP, ID, is_new=True)
    for timestamp in (900, 1000, 1200):
        log.append_as_leader(batch(1, timestamp=timestamp), 1)
    log.update_high_watermark(3)
    wall_ms[0] = 1049
    later.recurring["kafka-log-flusher"][0]()
    assert log.unflushed_messages == 1
    wall_ms[0] = 1050
    later.recurring["kafka-log-flusher"][0]()
    assert log.unflushed_messages == 0
    later.recurring["kafka-log-retention"][0]()
    assert log.log_start_offset == 1
    assert trace.of(Kind.LOG_START_OFFSET) == [
        {
            "topic": "t",
            "topic_id": str(ID),
            "partition": 0,
            "log_start_offset": 1,
            "log_end_offset": 3,
            "high_watermark": 3,
            "reason": "segment-deletion",
        }
    ]


def test_the_recurring_check_forgets_producers_that_are_silent(tmp_path: Path) -> None:
    wall_ms, later = [1000], Later()
    logs = LogManager(
        config(tmp_path, producer_id_expiration_ms=100), RealDisk(), wall_clock=lambda: wall_ms[0]
    )
    logs.load_logs()
    logs.startup(later, lambda error: pytest.fail(str(error)))
    check, period_s = later.recurring["PeriodicProducerExpirationCheck"]
    assert period_s == 600
    log = logs.get_or_create_log(TP, ID, is_new=True)
    log.append_as_leader(batch(1, timestamp=1000, producer=(7, 0, 0)), 1)
    wall_ms[0] = 1099
    check()
    assert set(log.producer_state_manager.active_producers) == {7}
    wall_ms[0] = 1100
    check()
    assert set(log.producer_state_manager.active_producers) == set()
