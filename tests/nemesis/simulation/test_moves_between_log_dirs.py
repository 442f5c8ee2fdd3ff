"""Moves between log directories that a kill or a power cut interrupts anywhere: nothing that was synced is lost."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from uuid import UUID

import pytest

from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.log.log import Log
from nemesis.reference.log.log_manager import LogManager
from nemesis.reference.model import TopicPartition
from nemesis.simulation.disk import SimulatedDisk
from tests.reference.log.batches import NOW_MS, batch
from tests.reference.log.logs import read_all
from tests.reference.log.mortal import Killed, Mortal, MortalDisk

TP, TOPIC_ID = TopicPartition("t", 0), UUID(int=7)
ONE, TWO = "/one", "/two"
RECORDS = [(0, 1), (2, 3), (4, 5), (6, 7)]
CHANGES_OF_A_MOVE = 40


def logs_on(disk: SimulatedDisk) -> LogManager:
    config = KafkaConfig.from_properties(
        {
            "broker.id": 1,
            "listeners": "PLAINTEXT://127.0.0.1:9092",
            "zookeeper.connect": "127.0.0.1:2181",
            "log.dirs": [ONE, TWO],
        }
    )
    logs = LogManager(config, disk, wall_clock=lambda: NOW_MS)
    logs.load_logs()
    return logs


def filled(disk: SimulatedDisk) -> LogManager:
    """One replica with synced records of two epochs, the second of which has a successor without records."""
    logs = logs_on(disk)
    log = logs.get_or_create_log(TP, TOPIC_ID, is_new=True)
    for epoch in (1, 1, 4, 4):
        log.append_as_leader(batch(2), epoch)
    log.update_high_watermark(8)
    log.flush()
    logs.checkpoint_high_watermarks()
    logs.checkpoint_recovery_points()
    return logs


def move(logs: LogManager) -> Log:
    current = logs.all_logs()[TP]
    future = logs.get_future_log(TP) or logs.create_future_log(TP, TWO)
    index = future.log_end_offset
    if index < current.log_end_offset:
        future.append_as_follower(
            current.read(index, 1 << 20, current.log_end_offset, min_one_message=True)
        )
    logs.complete_future_log(TP)
    return logs.replace_current_with_future_log(TP)


def interrupted(changes: int) -> MortalDisk:
    """Return the disk of a broker that was killed before that change of its move, if the move has so many."""
    disk = MortalDisk()
    logs = filled(disk)
    disk.incarnation = Mortal(changes)
    with suppress(Killed):
        move(logs)
    disk.incarnation = Mortal()
    return disk


def test_a_move_has_so_many_changes() -> None:
    disk = MortalDisk()
    logs = filled(disk)
    disk.incarnation = Mortal(1_000)
    move(logs)
    assert disk.incarnation.changes_left == 1_000 - CHANGES_OF_A_MOVE


@pytest.mark.parametrize("power_fails", [False, True])
@pytest.mark.parametrize("changes", range(CHANGES_OF_A_MOVE + 1))
def test_whoever_stops_within_a_move_has_all_records_and_can_go_on(
    changes: int, *, power_fails: bool
) -> None:
    for seed in range(5 if power_fails else 1):
        disk = interrupted(changes)
        if power_fails:
            disk.power_cut(Random(seed))
        logs = logs_on(disk)
        log = logs.get_log(TP)
        assert log is not None
        assert read_all(log) == RECORDS
        assert log.topic_id == TOPIC_ID
        assert log.high_watermark == 8
        assert log.leader_epoch_cache.entries == ((1, 0), (4, 4))
        if log.log_dir == ONE:
            log = move(logs)
        assert read_all(log) == RECORDS
        assert (log.directory, log.high_watermark) == (f"{TWO}/t-0", 8)
        assert logs.get_future_log(TP) is None
        names = [*disk.list(ONE), *disk.list(TWO)]
        assert [name for name in names if name.startswith("t-0")] == ["t-0"]
        again = logs_on(disk)
        assert again.all_logs().keys() == {TP}
        assert read_all(again.all_logs()[TP]) == RECORDS


def test_a_future_log_whose_replica_was_deleted_meanwhile_does_not_come_back() -> None:
    disk = SimulatedDisk()
    logs = filled(disk)
    logs.create_future_log(TP, TWO)
    disk.fail(below=TWO)
    logs.handle_log_dir_failure(TWO)
    logs.delete_log(TP)
    disk.heal()
    again = logs_on(disk)
    assert again.all_logs() == {}
    assert again.get_future_log(TP) is None
    assert [name for name in disk.list(TWO) if name.startswith("t-0")] == []


def test_while_the_current_log_is_offline_the_future_one_waits_for_it() -> None:
    """It may lag behind."""
    disk = SimulatedDisk()
    logs = filled(disk)
    logs.create_future_log(TP, TWO)
    disk.fail(below=ONE)
    alone = logs_on(disk)
    assert alone.live_log_dirs == (TWO,)
    assert alone.all_logs() == {}
    disk.heal()
    again = logs_on(disk)
    assert again.get_future_log(TP) is not None
    assert read_all(again.all_logs()[TP]) == RECORDS


def test_epochs_without_records_move_too() -> None:
    """KAFKA-7415: a follower could not learn where the epoch before ended."""
    logs = filled(SimulatedDisk())
    for epoch in (6, 7):
        logs.all_logs()[TP].maybe_assign_epoch_start_offset(epoch, 8)
    assert move(logs).leader_epoch_cache.entries == ((1, 0), (4, 4), (7, 8))
