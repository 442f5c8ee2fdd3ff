"""AlterPartition as the handler answers it: a real controller on a real ZooKeeper, in every offered version."""

from __future__ import annotations

from typing import Any

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from nemesis.reference.protocol.codec import SIZE_BYTES, decode_response, encode_response
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.protocol.versions import OFFERED, ApiKey
from nemesis.reference.server.apis.alter_partitions import AlterPartitionApis
from tests.reference.controller.cluster import TOPIC_ID, Node, create_topic, nodes, run, until

OFFERED_VERSIONS = range(
    OFFERED[ApiKey.ALTER_PARTITION].lowest, OFFERED[ApiKey.ALTER_PARTITION].highest + 1
)


async def shrink(asked: Node, leader: Node, version: int, *isr: int) -> Any:
    """Ask a broker, as the leader of t-0, for this ISR; return the answer as the leader would read it."""
    state = await leader.state("t", 0)
    schema = load_request_schema(ApiKey.ALTER_PARTITION, version)
    topic_class = item_class(schema, "topics")
    partition_class = item_class(topic_class, "partitions")
    partition: dict[str, Any] = {
        "partition_index": 0,
        "leader_epoch": state.leader_and_isr.leader_epoch,
        "partition_epoch": state.leader_and_isr.partition_epoch,
        "leader_recovery_state": 0,
        "new_isr": isr,
    }
    if "new_isr_with_epochs" in partition_class.__dataclass_fields__:
        epochs = asked.controller.context.live_broker_epochs
        members = [{"broker_id": b, "broker_epoch": epochs.get(b, -1)} for b in isr]
        partition["new_isr_with_epochs"] = build_items(
            partition_class, "new_isr_with_epochs", members
        )
    topic = {
        "topic_name": "t",
        "topic_id": TOPIC_ID,
        "partitions": build_items(topic_class, "partitions", [partition]),
    }
    request = build(
        schema,
        broker_id=1,
        broker_epoch=leader.controller.context.live_broker_epochs.get(1, -1),
        topics=build_items(schema, "topics", [topic]),
    )
    response = await AlterPartitionApis(asked.controller).handle_alter_partition(request)
    frame = encode_response(response, correlation_id=1)
    return decode_response(frame[SIZE_BYTES:], type(response))[1]


@pytest.mark.parametrize("version", OFFERED_VERSIONS)
def test_the_controller_writes_the_isr_and_answers_with_it(
    zookeeper_address: str, version: int
) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2, 3) as (first, _, _):
            await create_topic(first, "t", (1, 2, 3))
            await until(lambda: len(first.elected("t", 0)) > 0)

            answer = await shrink(first, first, version, 1, 3)

            (partition,) = answer.topics[0].partitions
            assert (answer.error_code, partition.error_code) == (ErrorCode.none, ErrorCode.none)
            assert tuple(partition.isr) == (1, 3)
            written = (await first.state("t", 0)).leader_and_isr
            assert written.isr == (1, 3)
            assert written.partition_epoch == partition.partition_epoch

    run(test())


@pytest.mark.parametrize("version", OFFERED_VERSIONS)
def test_a_broker_that_is_not_the_controller_refuses_and_writes_nothing(
    zookeeper_address: str, version: int
) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            await create_topic(first, "t", (1, 2))
            await until(lambda: len(first.elected("t", 0)) > 0)

            answer = await shrink(second, first, version, 1)

            assert (answer.error_code, answer.topics) == (ErrorCode.not_controller, ())
            assert (await first.state("t", 0)).leader_and_isr.isr == (1, 2)

    run(test())
