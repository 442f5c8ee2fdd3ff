"""Both APIs over the wire format, on a real controller: what is asked, what is refused, what is in progress."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from kio.schema.alter_partition_reassignments.v0 import request as alter
from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0 import request as listing

from nemesis.reference.model import TopicPartition
from nemesis.reference.protocol.codec import (
    SIZE_BYTES,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from nemesis.reference.protocol.schema import build, build_items, response_class
from nemesis.reference.protocol.versions import is_offered
from nemesis.reference.server.apis.reassignments import ReassignmentApis
from tests.reference.controller.cluster import Node, create_topic, nodes, run, until

A_SECOND = timedelta(seconds=1)


async def send(node: Node, request: Any) -> Any:
    """Ask the broker; requests and responses go through the codec."""
    apis = ReassignmentApis(node.controller)
    frame = encode_request(request, correlation_id=1, client_id="test")
    message = decode_request(frame[SIZE_BYTES:], is_offered=is_offered).message
    handle = {
        alter.AlterPartitionReassignmentsRequest: apis.handle_alter_partition_reassignments,
        listing.ListPartitionReassignmentsRequest: apis.handle_list_partition_reassignments,
    }[type(message)]
    response = encode_response(await handle(message), correlation_id=1)
    return decode_response(response[SIZE_BYTES:], response_class(type(request)))[1]


def altering(**topics: dict[int, tuple[int, ...] | None]) -> Any:
    schema = alter.AlterPartitionReassignmentsRequest
    items = [
        {
            "name": name,
            "partitions": build_items(
                alter.ReassignableTopic,
                "partitions",
                [{"partition_index": index, "replicas": t} for index, t in targets.items()],
            ),
        }
        for name, targets in topics.items()
    ]
    return build(schema, timeout=A_SECOND, topics=build_items(schema, "topics", items))


def list_of(topics: dict[str, tuple[int, ...]] | None) -> Any:
    schema = listing.ListPartitionReassignmentsRequest
    items = [{"name": n, "partition_indexes": indexes} for n, indexes in (topics or {}).items()]
    asked = None if topics is None else build_items(schema, "topics", items)
    return build(schema, timeout=A_SECOND, topics=asked)


def answers(response: Any) -> dict[tuple[str, int], ErrorCode]:
    return {
        (topic.name, partition.partition_index): partition.error_code
        for topic in response.responses
        for partition in topic.partitions
    }


def test_each_partition_has_its_own_answer(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2, 3) as (first, *_):
            await create_topic(first, "t", (1, 2), (2, 1), (1, 2))
            await until(lambda: len(first.controller.context.leadership) == 3)
            response = await send(
                first, altering(t={0: (1, 3), 1: (2, 2), 2: None, 7: (1, 2)}, absent={0: (1,)})
            )
            assert (response.error_code, response.error_message) == (ErrorCode.none, None)
            assert answers(response) == {
                ("t", 0): ErrorCode.none,
                ("t", 1): ErrorCode.invalid_replica_assignment,
                ("t", 2): ErrorCode.no_reassignment_in_progress,
                ("t", 7): ErrorCode.unknown_topic_or_partition,
                ("absent", 0): ErrorCode.unknown_topic_or_partition,
            }
            messages = {
                partition.partition_index: partition.error_message
                for topic in response.responses
                if topic.name == "t"
                for partition in topic.partitions
            }
            assert messages[0] is None
            assert "Duplicate replica ids" in messages[1]

    run(test())


def test_what_is_in_progress_is_listed(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2, 3) as (first, *_):
            await create_topic(first, "t", (1, 2), (2, 1))
            await until(lambda: len(first.controller.context.leadership) == 2)
            assert (await send(first, list_of(None))).topics == ()
            await send(first, altering(t={0: (1, 3)}))
            for request in (list_of(None), list_of({"t": (0, 1)})):
                (topic,) = (await send(first, request)).topics
                (partition,) = topic.partitions
                assert (topic.name, partition.partition_index) == ("t", 0)
                assert partition.replicas == (1, 3, 2)
                assert (partition.adding_replicas, partition.removing_replicas) == ((3,), (2,))
            assert (await send(first, list_of({"t": (1,), "absent": (0,)}))).topics == ()
            assert answers(await send(first, altering(t={0: None}))) == {("t", 0): ErrorCode.none}
            context = first.controller.context
            await until(lambda: context.assignment(TopicPartition("t", 0)).replicas == (1, 2))
            assert (await send(first, list_of(None))).topics == ()

    run(test())


def test_another_broker_says_that_it_is_not_the_controller(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (_, second):
            for request in (altering(t={0: (1, 2)}), list_of(None)):
                response = await send(second, request)
                assert response.error_code is ErrorCode.not_controller
                assert response.error_message

    run(test())
