"""CreateTopics as the handler answers it: a real controller on a real ZooKeeper, in every offered version."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from nemesis.reference.model import Broker
from nemesis.reference.protocol.codec import SIZE_BYTES, decode_response, encode_response
from nemesis.reference.protocol.schema import build, build_items
from nemesis.reference.protocol.versions import OFFERED, ApiKey
from nemesis.reference.server.apis.topics import TopicApis
from nemesis.reference.server.config_helper import ConfigHelper
from nemesis.reference.server.dynamic_broker_config import DynamicBrokerConfig
from nemesis.reference.server.metadata_cache import MetadataCache
from nemesis.reference.server.zk_admin_manager import ZkAdminManager
from tests.reference.controller.cluster import Node, config, nodes, run

OFFERED_VERSIONS = range(
    OFFERED[ApiKey.CREATE_TOPICS].lowest, OFFERED[ApiKey.CREATE_TOPICS].highest + 1
)


async def create(node: Node, broker_id: int, version: int) -> dict[str, ErrorCode]:
    """Ask a broker for t once and for u twice, without waiting for leaders; return the code of each topic."""
    cache = MetadataCache(broker_id)
    cache.update(1, 1, [Broker.at(b, "h", b) for b in (1, 2)], [])
    zk_admin = ZkAdminManager(
        config(broker_id),
        zk_client=node.zk_client,
        metadata_cache=cache,
        config_helper=ConfigHelper(DynamicBrokerConfig(config(broker_id))),
        rng=Random(1),
    )
    apis = TopicApis(node.controller, zk_admin, delete_topic_enable=True)
    schema = load_request_schema(ApiKey.CREATE_TOPICS, version)
    topics = [
        {
            "name": name,
            "num_partitions": 2,
            "replication_factor": 2,
            "assignments": (),
            "configs": (),
        }
        for name in ("t", "u", "u")
    ]
    request = build(
        schema,
        topics=build_items(schema, "topics", topics),
        timeout=timedelta(0),
        validate_only=False,
    )
    response = await apis.handle_create_topics(request)
    frame = encode_response(response, correlation_id=1)
    answer: Any = decode_response(frame[SIZE_BYTES:], type(response))[1]
    return {topic.name: topic.error_code for topic in answer.topics}


@pytest.mark.parametrize("version", OFFERED_VERSIONS)
def test_the_controller_writes_each_topic_that_is_named_once(
    zookeeper_address: str, version: int
) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, _):
            codes = await create(first, 1, version)

            # The time-out of 0 ends before the leaders are known.
            assert codes == {"t": ErrorCode.request_timed_out, "u": ErrorCode.invalid_request}
            assert await first.zookeeper.get_children("/brokers/topics") == ["t"]
            assert await first.zookeeper.exists("/config/topics/t") is not None

    run(test())


def test_a_broker_that_is_not_the_controller_refuses_and_writes_nothing(
    zookeeper_address: str,
) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            codes = await create(second, 2, OFFERED_VERSIONS[-1])

            assert set(codes.values()) == {ErrorCode.not_controller}
            assert await first.zookeeper.get_children("/brokers/topics") == []

    run(test())
