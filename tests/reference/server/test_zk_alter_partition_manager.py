"""ISRs that leaders write themselves: one write at a time, and when the controller is told of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kio.schema.errors import ErrorCode

from nemesis.reference.cluster.partition_state import AlterPartitionItem
from nemesis.reference.kafka_scheduler import KafkaScheduler
from nemesis.reference.model import LeaderAndIsr, LeaderRecoveryState, TopicPartition
from nemesis.reference.server.zk_alter_partition_manager import ZkAlterPartitionManager
from nemesis.reference.zk.errors import OperationFailedError, SessionExpiredError
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient
from tests.reference.cluster.hosting import TOPIC_ID, config
from tests.reference.virtual_time import run

Written = tuple[TopicPartition, LeaderAndIsr, int]


@dataclass
class ZooKeeper:
    """Commits what is written, after ``latency_s``, unless the script says otherwise; remembers who was told when."""

    script: list[Callable[[LeaderAndIsr], LeaderAndIsr | None]] = field(default_factory=list)
    latency_s: float = 0.01
    written: list[Written] = field(default_factory=list)
    propagated: list[tuple[float, list[TopicPartition]]] = field(default_factory=list)
    is_session_lost: bool = False

    async def update_leader_and_isr(
        self, topic_partition: TopicPartition, wanted: LeaderAndIsr, controller_epoch: int
    ) -> LeaderAndIsr | None:
        self.written.append((topic_partition, wanted, controller_epoch))
        await asyncio.sleep(self.latency_s)
        return self.script.pop(0)(wanted) if self.script else wanted

    async def propagate_isr_changes(self, partitions: Iterable[TopicPartition]) -> None:
        changed = list(partitions)
        await asyncio.sleep(self.latency_s)
        if self.is_session_lost:
            raise SessionExpiredError("creating")
        self.propagated.append((asyncio.get_running_loop().time(), changed))


def item(partition: int = 0) -> AlterPartitionItem:
    return AlterPartitionItem(
        topic_partition=TopicPartition("t", partition),
        topic_id=TOPIC_ID,
        leader_epoch=4,
        new_isr=((1, 50), (2, 60)),
        leader_recovery_state=LeaderRecoveryState.RECOVERED,
        partition_epoch=7,
        controller_epoch=3,
    )


class Answers:
    """What became of the proposals."""

    def __init__(self) -> None:
        self.given: list[tuple[ErrorCode, LeaderAndIsr | None]] = []

    def __call__(self, error: ErrorCode, state: LeaderAndIsr | None) -> None:
        self.given.append((error, state))


def with_zookeeper(
    tmp_path: Path,
    zookeeper: ZooKeeper,
    scenario: Callable[[ZkAlterPartitionManager], Any],
) -> None:
    async def main() -> None:
        parts = SimpleNamespace(replication_utils=zookeeper, isr_change_notifications=zookeeper)
        scheduler = KafkaScheduler()
        manager = ZkAlterPartitionManager(
            config(tmp_path), zk_client=cast("KafkaZkClient", parts), scheduler=scheduler
        )
        manager.startup()
        await scenario(manager)
        await manager.shutdown()
        await scheduler.shutdown()

    run(main())


def test_a_proposal_is_written_as_the_leader_of_its_epoch(tmp_path: Path) -> None:
    zookeeper, answers = ZooKeeper(), Answers()

    async def scenario(manager: ZkAlterPartitionManager) -> None:
        assert manager.submit(item(), answers)
        await asyncio.sleep(1)

    with_zookeeper(tmp_path, zookeeper, scenario)
    state = LeaderAndIsr(leader=1, leader_epoch=4, isr=(1, 2), partition_epoch=7)
    assert zookeeper.written == [(TopicPartition("t", 0), state, 3)]
    assert answers.given == [(ErrorCode.none, state)]


def test_one_write_of_a_partition_at_a_time_and_its_callback_may_submit_the_next(
    tmp_path: Path,
) -> None:
    zookeeper, answers = ZooKeeper(), Answers()

    async def scenario(manager: ZkAlterPartitionManager) -> None:
        def propose_again(error: ErrorCode, state: LeaderAndIsr | None) -> None:
            answers(error, state)
            assert manager.submit(item(), answers)

        assert manager.submit(item(), propose_again)
        assert not manager.submit(item(), answers)
        assert manager.submit(item(1), answers)
        await asyncio.sleep(1)

    with_zookeeper(tmp_path, zookeeper, scenario)
    assert [error for error, _ in answers.given] == [ErrorCode.none] * 3
    assert [tp.partition for tp, _, _ in zookeeper.written] == [0, 1, 0]


def test_a_conflict_waits_for_the_controller_and_a_refusal_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_: LeaderAndIsr) -> LeaderAndIsr | None:
        raise OperationFailedError("not authorised", name="NOAUTH")

    zookeeper, answers = ZooKeeper([lambda _: None, refuse]), Answers()

    async def scenario(manager: ZkAlterPartitionManager) -> None:
        assert manager.submit(item(), answers)
        await asyncio.sleep(1)
        assert manager.submit(item(), answers)
        await asyncio.sleep(60)

    with_zookeeper(tmp_path, zookeeper, scenario)
    assert answers.given == [
        (ErrorCode.invalid_update_version, None),
        (ErrorCode.operation_not_attempted, None),
    ]
    assert "t-0 keeps its ISR: not authorised" in caplog.text
    assert zookeeper.propagated == [], "nothing has changed"


def test_the_controller_is_told_after_five_quiet_seconds_at_the_next_look(tmp_path: Path) -> None:
    zookeeper = ZooKeeper(latency_s=0.0)

    async def scenario(manager: ZkAlterPartitionManager) -> None:
        for partition in (1, 0, 1):
            manager.submit(item(partition), Answers())
            await asyncio.sleep(2)
        await asyncio.sleep(60)

    with_zookeeper(tmp_path, zookeeper, scenario)
    # The last change is of second 4; looks are at 2.5, 5, 7.5, 10.
    both = [TopicPartition("t", 1), TopicPartition("t", 0)]
    assert zookeeper.propagated == [(10.0, both)]


def test_changes_that_do_not_end_are_told_of_every_minute(tmp_path: Path) -> None:
    zookeeper = ZooKeeper(latency_s=0.0)

    async def scenario(manager: ZkAlterPartitionManager) -> None:
        for _ in range(132):
            manager.submit(item(), Answers())
            await asyncio.sleep(1)

    with_zookeeper(tmp_path, zookeeper, scenario)
    assert [time for time, _ in zookeeper.propagated] == [62.5, 125.0]


def test_what_could_not_be_told_is_told_at_the_next_look(tmp_path: Path) -> None:
    zookeeper = ZooKeeper(is_session_lost=True)

    async def scenario(manager: ZkAlterPartitionManager) -> None:
        manager.submit(item(0), Answers())
        await asyncio.sleep(11)
        zookeeper.is_session_lost = False
        manager.submit(item(1), Answers())
        await asyncio.sleep(60)

    with_zookeeper(tmp_path, zookeeper, scenario)
    [(_, partitions)] = zookeeper.propagated
    assert partitions == [TopicPartition("t", 0), TopicPartition("t", 1)]


def test_a_stop_leaves_what_is_under_way(tmp_path: Path) -> None:
    zookeeper, answers = ZooKeeper(latency_s=10.0), Answers()

    async def scenario(manager: ZkAlterPartitionManager) -> None:
        assert manager.submit(item(), answers)
        await asyncio.sleep(1)

    with_zookeeper(tmp_path, zookeeper, scenario)
    assert len(zookeeper.written) == 1
    assert answers.given == []
