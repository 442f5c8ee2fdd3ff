"""A topic's znode is written: new partitions count, nothing else does, and what cannot be read stops nobody."""

from __future__ import annotations

import asyncio
import logging

import pytest

from nemesis.reference.controller.controller_context import ReplicaState
from nemesis.reference.model import TopicPartition
from nemesis.reference.network.errors import NetworkError
from nemesis.reference.zk import zk_data
from nemesis.reference.zk.zk_data import ReplicaAssignment, TopicAssignment
from tests.reference.controller.cluster import (
    NEW_TOPIC_ID,
    TOPIC_ID,
    Node,
    create_topic,
    nodes,
    run,
    until,
)


async def write(node: Node, *replicas: tuple[int, ...]) -> None:
    assignment = TopicAssignment(
        "t", TOPIC_ID, {p: ReplicaAssignment(r) for p, r in enumerate(replicas)}
    )
    await node.zookeeper.set_data("/brokers/topics/t", zk_data.encode_topic(assignment))


def online(node: Node) -> list[int]:
    """The partitions whose replicas are all online."""
    context = node.controller.context
    return [
        tp.partition
        for tp in context.partitions_for_topic("t")
        if all(
            context.replica_state(replica) is ReplicaState.ONLINE
            for replica in context.replicas_for_partitions([tp])
        )
    ]


def test_partitions_that_are_added_go_online(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, _):
            await create_topic(first, "t", (1, 2))
            await until(lambda: online(first) == [0])
            await write(first, (1, 2), (2, 1))
            await until(lambda: online(first) == [0, 1])
            assert first.elected("t", 1) == [("new", 2, 0, [2, 1])]
            assert len(first.elected("t", 0)) == 1
            await write(first, (1, 2), (2, 1), (1,))
            await until(lambda: online(first) == [0, 1, 2])

    run(test())


def test_the_next_controller_watches_the_topics_too(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            await create_topic(first, "t", (2, 1))
            await until(lambda: online(first) == [0])
            await first.stop()
            await until(lambda: second.controller.is_active)
            await until(lambda: second.controller.context.live_broker_ids == [2])
            await write(second, (2, 1), (2,))
            await until(lambda: 1 in online(second))

    run(test())


def test_another_assignment_of_a_known_partition_is_no_reassignment(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, _):
            await create_topic(first, "t", (1, 2))
            await until(lambda: online(first) == [0])
            await write(first, (2,), (2,))
            await until(lambda: online(first) == [0, 1])
            assert first.controller.context.assignment(TopicPartition("t", 0)).replicas == (1, 2)

    run(test())


def test_a_topic_without_an_id_is_given_one(zookeeper_address: str) -> None:
    """Also one that a new controller finds: with an id that nobody knows, its ISRs could not be changed."""

    async def test() -> None:
        old = b'{"version":1,"partitions":{"0":[2,1]}}'
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            await first.zookeeper.create("/brokers/topics/t", old)
            await until(lambda: online(first) == [0])
            topics = first.wire.to(2, "LeaderAndIsr")[-1].topic_states
            assert [topic.topic_id for topic in topics] == [NEW_TOPIC_ID]
            wanted = TopicAssignment("t", NEW_TOPIC_ID, {0: ReplicaAssignment((2, 1))})
            assert await first.zk_client.topics.get_replica_assignments(["t"]) == [wanted]
            await first.controller.shutdown()
            await second.zookeeper.set_data("/brokers/topics/t", old)
            await first.zookeeper.close()
            await until(lambda: second.controller.context.topic_names == {NEW_TOPIC_ID: "t"})
            assert await second.zk_client.topics.get_replica_assignments(["t"]) == [wanted]

    run(test())


def test_a_topic_that_loses_its_id_grows_and_gets_it_back(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, _):
            await create_topic(first, "t", (1, 2))
            await until(lambda: online(first) == [0])
            old = b'{"version":1,"partitions":{"0":[1,2],"1":[2,1]}}'
            await first.zookeeper.set_data("/brokers/topics/t", old)
            await until(lambda: online(first) == [0, 1])
            (written,) = await first.zk_client.topics.get_replica_assignments(["t"])
            assert (written.topic_id, list(written.partitions)) == (TOPIC_ID, [0, 1])

    run(test())


def test_a_topic_that_is_deleted_gets_no_partitions(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, _):
            await create_topic(first, "t", (1, 2))
            await until(lambda: online(first) == [0])
            first.wire.answer = lambda _port, request: (
                NetworkError("lost", definite=False)
                if type(request).__name__ == "StopReplicaRequest"
                else None
            )
            await first.zk_client.deletions.create_delete_topic_path("t")
            await until(lambda: "t" in first.controller.context.topics_with_deletion_started)
            await write(first, (1, 2), (2, 1))
            while len((await restored(first)).partitions) > 1:
                await asyncio.sleep(0.005)
            assert first.elected("t", 1) == []
            assert (await restored(first)).topic_id == TOPIC_ID

    async def restored(node: Node) -> TopicAssignment:
        (assignment,) = await node.zk_client.topics.get_replica_assignments(["t"])
        return assignment

    run(test())


@pytest.mark.parametrize("broken", [b"", b"no json", b"[]", b'{"partitions":{"0":"x"}}'])
def test_a_topic_that_cannot_be_read_is_ignored_until_it_can(
    zookeeper_address: str, broken: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, _):
            with caplog.at_level(logging.ERROR):
                await first.zookeeper.create("/brokers/topics/t", broken)
                await until(lambda: "topic t is ignored" in caplog.text)
            await create_topic(first, "u", (1, 2))
            await until(lambda: len(first.elected("u", 0)) == 1)
            await write(first, (1, 2))
            await until(lambda: online(first) == [0])
            assert first.controller.context.topic_ids["t"] == TOPIC_ID

    run(test())


def test_a_topic_whose_znodes_are_removed_is_forgotten(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, _):
            await create_topic(first, "t", (1, 2))
            await until(lambda: online(first) == [0])
            for path in ("/partitions/0/state", "/partitions/0", "/partitions", ""):
                await first.zookeeper.delete(f"/brokers/topics/t{path}")
            await until(lambda: first.controller.context.assignments == {})
            assert first.controller.context.leadership == {}
            assert first.controller.is_active

    run(test())
