"""``/admin/reassign_partitions`` and the assignments in topic znodes, on a real ZooKeeper."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import pytest

from nemesis.reference.adapters.zookeeper import KazooZooKeeperClient
from nemesis.reference.model import TopicPartition
from nemesis.reference.trace import NullTracer
from nemesis.reference.zk import zk_data
from nemesis.reference.zk.errors import ControllerMovedError, NoNodeError, ZnodeFormatError
from nemesis.reference.zk.fenced_writes import ControllerFence
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient
from nemesis.reference.zk.zk_data import ReplicaAssignment, TopicAssignment
from tests.reference.controller.cluster import run

TP = TopicPartition("t", 0)
TARGETS = {TP: (2, 3), TopicPartition("u", 1): (1,)}


@asynccontextmanager
async def office(address: str) -> AsyncIterator[tuple[KafkaZkClient, ControllerFence]]:
    zookeeper = KazooZooKeeperClient(address, 10_000, None)
    zk_client = KafkaZkClient(zookeeper, tracer=NullTracer())
    await zookeeper.start()
    try:
        await zk_client.brokers.make_sure_persistent_paths_exist()
        won = await zk_client.election.register_controller_and_increment_controller_epoch(1, 0)
        topic = TopicAssignment(
            "t", UUID(int=1), {0: ReplicaAssignment((1, 2)), 1: ReplicaAssignment((2, 1))}
        )
        await zk_client.topics.create_topic(topic, {})
        yield zk_client, won.fence
    finally:
        await zookeeper.close()


def test_the_znode_is_as_kafkas_tools_write_it() -> None:
    data = zk_data.encode_partition_reassignment(TARGETS)
    assert json.loads(data) == {
        "version": 1,
        "partitions": [
            {"topic": "t", "partition": 0, "replicas": [2, 3]},
            {"topic": "u", "partition": 1, "replicas": [1]},
        ],
    }
    assert zk_data.decode_partition_reassignment(data) == TARGETS


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"partitions":[{"topic":"t"}]}', b'{"partitions":[7]}']
)
def test_anything_else_is_refused_with_the_path(data: bytes) -> None:
    with pytest.raises(ZnodeFormatError, match="/admin/reassign_partitions"):
        zk_data.decode_partition_reassignment(data)


def test_it_is_written_read_and_removed(zookeeper_address: str) -> None:
    async def test() -> None:
        async with office(zookeeper_address) as (zk_client, fence):
            znode = zk_client.reassignment
            assert await znode.get_partition_reassignment() is None
            await znode.delete_partition_reassignment(fence)
            for targets in (TARGETS, {TP: (3,)}):
                await znode.set_or_create_partition_reassignment(targets, fence)
                assert await znode.get_partition_reassignment() == targets
            await znode.delete_partition_reassignment(fence)
            assert await znode.get_partition_reassignment() is None

    run(test())


def test_one_that_cannot_be_read_asks_for_nothing(
    zookeeper_address: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with office(zookeeper_address) as (zk_client, _):
            await zk_client.session.create(zk_data.REASSIGN_PARTITIONS, b"what is this")
            assert await zk_client.reassignment.get_partition_reassignment() == {}

    run(test())
    assert "/admin/reassign_partitions does not hold JSON" in caplog.text


def test_a_deposed_controller_writes_nothing(zookeeper_address: str) -> None:
    async def test() -> None:
        async with office(zookeeper_address) as (zk_client, fence):
            deposed = ControllerFence(fence.controller_epoch, fence.zk_version + 1)
            for write in (
                zk_client.reassignment.set_or_create_partition_reassignment(TARGETS, deposed),
                zk_client.reassignment.delete_partition_reassignment(deposed),
                zk_client.topics.update_replica_assignment(TP, ReplicaAssignment((3,)), deposed),
            ):
                with pytest.raises(ControllerMovedError):
                    await write

    run(test())


def test_one_partitions_assignment_changes_and_the_others_stay(zookeeper_address: str) -> None:
    async def test() -> None:
        async with office(zookeeper_address) as (zk_client, fence):
            moving = ReplicaAssignment((2, 3, 1), adding_replicas=(3,), removing_replicas=(1,))
            await zk_client.topics.update_replica_assignment(TP, moving, fence)
            (topic,) = await zk_client.topics.get_replica_assignments(["t"])
            assert topic.topic_id == UUID(int=1)
            assert topic.partitions == {0: moving, 1: ReplicaAssignment((2, 1))}
            with pytest.raises(NoNodeError):
                await zk_client.topics.update_replica_assignment(
                    TopicPartition("gone", 0), moving, fence
                )

    run(test())


def test_partitions_that_are_added_meanwhile_are_kept(zookeeper_address: str) -> None:
    async def test() -> None:
        async with office(zookeeper_address) as (zk_client, fence):
            grown = TopicAssignment(
                "t", UUID(int=1), {number: ReplicaAssignment((1, 2)) for number in range(3)}
            )
            read = zk_client.session.get
            reads = 0

            async def read_then_grow(path: str) -> object:
                nonlocal reads
                reads += 1
                data = await read(path)
                if reads == 1:  # somebody writes between our reading and our writing
                    await zk_client.session.writes.set_data(path, zk_data.encode_topic(grown))
                return data

            zk_client.session.get = read_then_grow  # type: ignore[method-assign,assignment]
            await zk_client.topics.update_replica_assignment(TP, ReplicaAssignment((3,)), fence)
            assert reads == 2
            (topic,) = await zk_client.topics.get_replica_assignments(["t"])
            assert topic.partitions == {**grown.partitions, 0: ReplicaAssignment((3,))}

    run(test())


def test_a_topic_without_an_id_stays_without_one(zookeeper_address: str) -> None:
    async def test() -> None:
        async with office(zookeeper_address) as (zk_client, fence):
            old = b'{"version":1,"partitions":{"0":[1]}}'
            await zk_client.session.create(zk_data.topic_path("old"), old)
            topic_partition = TopicPartition("old", 0)
            await zk_client.topics.update_replica_assignment(
                topic_partition, ReplicaAssignment((2,)), fence
            )
            (topic,) = await zk_client.topics.get_replica_assignments(["old"])
            assert topic == TopicAssignment("old", None, {0: ReplicaAssignment((2,))})

    run(test())


def test_the_watch_is_set_whether_the_znode_exists_or_not(zookeeper_address: str) -> None:
    async def test() -> None:
        async with office(zookeeper_address) as (zk_client, fence):
            changed = asyncio.Event()
            zk_client.session.register_znode_change_handler(
                zk_data.REASSIGN_PARTITIONS, changed.set
            )
            assert await zk_client.reassignment.get_partition_reassignment() is None
            await zk_client.reassignment.set_or_create_partition_reassignment(TARGETS, fence)
            await asyncio.wait_for(changed.wait(), 10)

    run(test())
