"""Topics are deleted at every broker, then in ZooKeeper; what halts that, what resumes it, who finishes it."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from nemesis.reference.controller.controller_context import PartitionAndReplica, ReplicaState
from nemesis.reference.controller.controller_events import TopicDeletionStopReplicaResponseReceived
from nemesis.reference.model import EPOCH_DURING_DELETE, LEADER_DURING_DELETE, TopicPartition
from nemesis.reference.network.errors import NetworkError
from nemesis.reference.trace import Kind
from nemesis.reference.zk.zk_data import ReplicaAssignment, TopicAssignment
from tests.reference.controller.cluster import (
    TOPIC_ID,
    Node,
    create_topic,
    nodes,
    run,
    stopped,
    until,
)
from tests.reference.session_expiry import expire

TP = TopicPartition("t", 0)
OTHER_ID = UUID(int=8)


async def mark(node: Node, topic: str = "t") -> None:
    await node.zk_client.deletions.create_delete_topic_path(topic)


async def online(node: Node, topic: str = "t") -> None:
    """Wait until the controller has put the topic's replicas online."""
    context = node.controller.context
    await until(
        lambda: (
            bool(context.replicas_for_topic(topic))
            and context.are_all_replicas_in_state(topic, ReplicaState.ONLINE)
        )
    )


async def is_deleted(node: Node, topic: str = "t") -> bool:
    paths = (f"/brokers/topics/{topic}", f"/config/topics/{topic}", f"/admin/delete_topics/{topic}")
    stats = [await node.zookeeper.exists(path) for path in paths]
    return stats == [None, None, None]


async def deleted(node: Node, topic: str = "t") -> None:
    async with asyncio.timeout(15):
        while not await is_deleted(node, topic):
            await asyncio.sleep(0.005)


def states(request: Any) -> list[tuple[int, bool]]:
    """(leader epoch, whether to delete) of each partition of a StopReplica."""
    return [
        (state.leader_epoch, state.delete_partition)
        for topic in request.topic_states
        for state in topic.partition_states
    ]


def leaders(request: Any) -> list[int]:
    """Those that an UpdateMetadata names."""
    if type(request).__name__ != "UpdateMetadataRequest":
        return []
    return [state.leader for topic in request.topic_states for state in topic.partition_states]


def replica_transitions(node: Node) -> list[str]:
    return [
        f"{event['from_state']}->{event['to_state']}"
        for event in node.tracer.of(Kind.TRANSITION)
        if event.get("replica") == 2
    ]


def illegal(node: Node) -> list[dict[str, Any]]:
    return [event for event in node.tracer.of(Kind.TRANSITION) if "error" in event]


def test_a_marked_topic_is_deleted_at_the_brokers_then_in_zookeeper(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, _):
            await create_topic(first, "t", (1, 2), (2, 1))
            await online(first)
            await mark(first)
            await deleted(first)
            requests = [request for port, request in first.wire.sent if port == 9002]
            while leaders(requests[0]) != [LEADER_DURING_DELETE] * 2:
                del requests[0]
            assert [type(request).__name__ for request in requests] == [
                "UpdateMetadataRequest",
                "StopReplicaRequest",
                "StopReplicaRequest",
            ]
            gone = requests[0].topic_states
            assert [t.topic_id for t in gone] == [TOPIC_ID]
            assert states(requests[-2]) == [(EPOCH_DURING_DELETE, False)] * 2
            assert states(requests[-1]) == [(EPOCH_DURING_DELETE, True)] * 2
            assert replica_transitions(first)[-8:] == [
                *["Online->Offline"] * 2,
                *["Offline->DeletionStarted"] * 2,
                *["DeletionStarted->DeletionSuccessful"] * 2,
                *["DeletionSuccessful->NonExistent"] * 2,
            ]
            assert illegal(first) == []
            context = first.controller.context
            assert (context.assignments, context.leadership, context.all_topics) == ({}, {}, [])
            assert (context.partition_states, context.replica_states, context.topic_ids) == ({}, {}, {})  # fmt: skip
            assert (context.topics_to_be_deleted, context.topics_with_deletion_started) == ({}, {})

    run(test())


def test_the_name_comes_back_as_another_topic(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, _):
            for topic_id in (TOPIC_ID, OTHER_ID):
                again = TopicAssignment("t", topic_id, {0: ReplicaAssignment((2, 1))})
                await first.zk_client.topics.create_topic(again, {})
                await online(first)
                assert first.controller.context.topic_ids == {"t": topic_id}
                await mark(first)
                await deleted(first)
            assert [leader for _, leader, epoch, _ in first.elected("t", 0) if epoch == 0] == [2, 2]
            assert illegal(first) == []

    run(test())


def test_a_dead_broker_halts_the_deletion_until_it_is_back(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2, 3) as (first, second, _):
            await create_topic(first, "t", (1, 2, 3))
            await online(first)
            context = first.controller.context
            await second.stop()
            await until(lambda: 2 not in context.live_brokers)
            await mark(first)
            of_3 = PartitionAndReplica(TP, 3)
            await until(lambda: context.replica_state(of_3) is ReplicaState.DELETION_SUCCESSFUL)
            assert list(context.topics_ineligible_for_deletion) == ["t"]
            assert await first.zookeeper.exists("/brokers/topics/t") is not None
            second = await Node(zookeeper_address, 2).start()
            try:
                await deleted(first)
                assert (EPOCH_DURING_DELETE, True) in states(first.wire.to(2, "StopReplica")[-1])
                assert illegal(first) == []
            finally:
                await second.stop()

    run(test())


def test_a_broker_that_dies_while_it_deletes_halts_the_deletion(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2, 3) as (first, second, _):
            await create_topic(first, "t", (1, 2, 3))
            await online(first)
            context = first.controller.context
            of_2 = PartitionAndReplica(TP, 2)

            def unanswered(port: int, request: Any) -> Any:
                is_lost = port == 9002 and type(request).__name__ == "StopReplicaRequest"
                return NetworkError("lost", definite=False) if is_lost else None

            first.wire.answer = unanswered
            await mark(first)
            await until(lambda: context.replica_state(of_2) is ReplicaState.DELETION_STARTED)
            await second.stop()
            await until(lambda: "t" in context.topics_ineligible_for_deletion)
            first.wire.answer = lambda *_: None
            second = await Node(zookeeper_address, 2).start()
            try:
                await deleted(first)
                assert illegal(first) == []
            finally:
                await second.stop()

    run(test())


@pytest.mark.parametrize(
    ("error", "partition_error"),
    [
        (ErrorCode.none, ErrorCode.kafka_storage_error),
        (ErrorCode.unknown_server_error, ErrorCode.none),
    ],
)
def test_a_replica_that_cannot_be_deleted_halts_the_deletion(
    zookeeper_address: str, error: ErrorCode, partition_error: ErrorCode
) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            await create_topic(first, "t", (1, 2))
            await online(first)
            context = first.controller.context

            def refused(port: int, request: Any) -> Any:
                if port == 9002 and type(request).__name__ == "StopReplicaRequest":
                    return stopped(request, error, partition_error)
                return None

            first.wire.answer = refused
            await mark(first)
            await until(lambda: "t" in context.topics_ineligible_for_deletion)
            assert not await is_deleted(first)
            first.wire.answer = lambda *_: None
            await asyncio.to_thread(expire, zookeeper_address, second.zookeeper.session_id)
            await deleted(first)
            assert illegal(first) == []

    run(test())


def test_a_late_refusal_of_a_replica_that_was_reassigned_away_halts_nothing(
    zookeeper_address: str,
) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, _):
            await create_topic(first, "t", (1,))
            await online(first)
            context, of_1 = first.controller.context, PartitionAndReplica(TP, 1)

            def unanswered(port: int, request: Any) -> Any:
                is_lost = type(request).__name__ == "StopReplicaRequest"
                return NetworkError("lost", definite=False) if is_lost else None

            first.wire.answer = unanswered
            await mark(first)
            await until(lambda: context.replica_state(of_1) is ReplicaState.DELETION_STARTED)
            refused = TopicDeletionStopReplicaResponseReceived(
                context.epoch, context.live_broker_epochs[2], 2, {TP: ErrorCode.kafka_storage_error}
            )
            await first.controller.event_manager.put(refused).await_over()
            assert list(context.topics_ineligible_for_deletion) == []
            first.wire.answer = lambda *_: None
            await deleted(first)
            assert illegal(first) == []

    run(test())


def test_the_next_controller_finishes_the_deletion(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2, 3) as (first, second, third):
            await create_topic(first, "t", (2, 3), (3, 2))
            await create_topic(first, "u", (2, 3))
            await online(first)
            await online(first, "u")

            def unanswered(port: int, request: Any) -> Any:
                is_lost = type(request).__name__ == "StopReplicaRequest"
                return NetworkError("lost", definite=False) if is_lost else None

            first.wire.answer = unanswered
            await mark(first)
            started = first.controller.context.topics_with_deletion_started
            await until(lambda: "t" in started)
            await first.stop()
            await until(lambda: second.controller.is_active or third.controller.is_active)
            heir = second if second.controller.is_active else third
            await deleted(heir)
            assert await heir.zookeeper.exists("/brokers/topics/u/partitions/0/state") is not None
            assert illegal(heir) == []

    run(test())


def test_znodes_that_a_failover_left_are_removed(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1) as (first,):
            await create_topic(first, "t", (1,))
            await online(first)
            await first.stop()
            again = Node(zookeeper_address, 1)
            await again.zookeeper.start()
            # The topic's znode was deleted, then the controller died.
            for path in ("partitions/0/state", "partitions/0", "partitions", ""):
                await again.zookeeper.delete(f"/brokers/topics/t/{path}".rstrip("/"))
            await mark(again)
            await again.controller.startup()
            try:
                await deleted(again)
            finally:
                await again.stop()

    run(test())


def test_with_deletion_disabled_the_marks_are_removed(zookeeper_address: str) -> None:
    async def test() -> None:
        settings = {"delete.topic.enable": False}
        async with nodes(zookeeper_address, 1, 2, **settings) as (first, second):
            await create_topic(first, "t", (1, 2))
            await online(first)
            await mark(first)
            while await first.zookeeper.exists("/admin/delete_topics/t") is not None:
                await asyncio.sleep(0.005)
            assert await first.zookeeper.exists("/brokers/topics/t") is not None
            # So does a controller that finds one.
            await first.controller.shutdown()
            await mark(first)
            await first.zookeeper.close()
            await until(lambda: second.controller.is_active)
            while await second.zookeeper.exists("/admin/delete_topics/t") is not None:
                await asyncio.sleep(0.005)
            assert await second.zookeeper.exists("/brokers/topics/t") is not None

    run(test())


def test_a_topic_that_is_marked_before_its_creation_is_seen_is_deleted(
    zookeeper_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1) as (first,):
            deletions = first.zk_client.deletions
            look = deletions.get_topic_deletions
            looks = asyncio.Event()
            go_on = asyncio.Event()

            async def look_late() -> list[str]:
                looks.set()
                await go_on.wait()
                return await look()

            monkeypatch.setattr(deletions, "get_topic_deletions", look_late)
            await mark(first, "never-was")
            await looks.wait()
            await create_topic(first, "t", (1,))
            await mark(first)
            go_on.set()
            await deleted(first)
            assert await first.zookeeper.get_children("/admin/delete_topics") == []
            assert first.controller.is_active

    run(test())


def test_a_mark_with_something_below_it_is_removed_too(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1) as (first,):
            await create_topic(first, "t", (1,))
            await online(first)
            first.wire.answer = lambda *_: NetworkError("lost", definite=False)
            await mark(first)
            await first.zookeeper.create("/admin/delete_topics/t/x", b"")
            first.wire.answer = lambda *_: None
            await deleted(first)
            assert first.controller.context.epoch == 1

    run(test())


def test_a_mark_for_no_topic_is_removed(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1) as (first,):
            await mark(first, "never-was")
            while await first.zookeeper.get_children("/admin/delete_topics"):
                await asyncio.sleep(0.005)
            assert first.controller.is_active

    run(test())
