"""Brokers that say that a log directory failed: whom the controller asks, and what becomes of their znodes."""

from __future__ import annotations

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.leader_and_isr.v7.response import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from kio.static.primitive import i32

from nemesis.reference.zk import zk_data
from tests.reference.controller.cluster import TOPIC_ID, Node, create_topic, nodes, run, until


async def events(node: Node) -> list[str]:
    return await node.zk_client.log_dir_events.get_all()


async def until_no_events(node: Node) -> None:
    async def gone() -> bool:
        return await events(node) == []

    while not await gone():
        await node.zookeeper.exists(zk_data.LOG_DIR_EVENTS)


def lost(partition: int) -> LeaderAndIsrResponse:
    error = LeaderAndIsrPartitionError(
        partition_index=i32(partition), error_code=ErrorCode.kafka_storage_error
    )
    topic = LeaderAndIsrTopicError(topic_id=TOPIC_ID, partition_errors=(error,))
    return LeaderAndIsrResponse(error_code=ErrorCode.none, topics=(topic,))


def test_the_broker_is_asked_and_what_it_has_lost_goes_offline(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2, 3) as (first, second, _):
            await create_topic(first, "t", (2, 3), (2, 3))
            await until(lambda: len(first.wire.to(2, "LeaderAndIsr")) == 1)
            first.wire.answer = lambda port, request: (
                lost(1)
                if port == 9002 and type(request).__name__ == "LeaderAndIsrRequest"
                else None
            )
            await second.zk_client.log_dir_events.propagate_log_dir_event(2)
            await until(lambda: len(first.elected("t", 1)) >= 2)
            kept, moved = [(await first.state("t", p)).leader_and_isr for p in range(2)]
            assert (kept.leader, kept.isr) == (2, (2, 3))
            assert (moved.leader, moved.isr) == (3, (3,))
            await until_no_events(first)

    run(test())


def test_what_cannot_be_read_is_logged_and_deleted(
    zookeeper_address: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            path = f"{zk_data.LOG_DIR_EVENTS}/log_dir_event_"
            await second.zookeeper.create(path, b"no JSON", sequential=True)
            await second.zookeeper.create(path, b'{"version":1,"event":1}', sequential=True)
            await until_no_events(second)
            assert first.controller.is_active

    run(test())
    assert "no JSON" in caplog.text
    assert "has broker None, not a number" in caplog.text


def test_a_new_controller_forgets_what_was_said_to_the_old_one(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            await first.controller.event_manager.close()  # It hears nothing any more.
            await second.zk_client.log_dir_events.propagate_log_dir_event(2)
            assert len(await events(second)) == 1
            await first.stop()
            await until(lambda: second.controller.is_active)
            await until_no_events(second)

    run(test())
