"""AllocateProducerIds as a broker reads the answer: a real controller on a real ZooKeeper."""

from __future__ import annotations

import json
from typing import Any

from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from nemesis.reference.protocol.codec import (
    SIZE_BYTES,
    decode_response,
    encode_response,
)
from nemesis.reference.protocol.schema import build
from nemesis.reference.protocol.versions import OFFERED, ApiKey
from nemesis.reference.server.apis.producer_id_blocks import ProducerIdBlockApis
from nemesis.reference.zk.producer_id_block import ProducerIdsBlock, encode_producer_id_block
from nemesis.reference.zk.zk_data import PRODUCER_ID_BLOCK
from tests.reference.controller.cluster import Node, nodes, run

VERSION = OFFERED[ApiKey.ALLOCATE_PRODUCER_IDS].highest


async def allocate(asked: Node, broker_id: int, broker_epoch: int) -> tuple[Any, int, int]:
    """Ask a broker for a block of a broker; return error, first id and length as they cross the wire."""
    schema = load_request_schema(ApiKey.ALLOCATE_PRODUCER_IDS, VERSION)
    request = build(schema, broker_id=broker_id, broker_epoch=broker_epoch)
    response = await ProducerIdBlockApis(asked.controller).handle_allocate_producer_ids(request)
    frame = encode_response(response, correlation_id=1)
    answer = decode_response(frame[SIZE_BYTES:], type(response))[1]
    return answer.error_code, answer.producer_id_start, answer.producer_id_len


async def stored(node: Node) -> tuple[int, str, str]:
    data, _ = await node.zookeeper.reads.get(PRODUCER_ID_BLOCK)
    block = json.loads(data)
    return block["broker"], block["block_start"], block["block_end"]


def test_each_broker_gets_the_next_block(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, _):
            epochs = first.controller.context.live_broker_epochs
            assert await allocate(first, 2, epochs[2]) == (ErrorCode.none, 0, 1000)
            assert await stored(first) == (2, "0", "999")
            assert await allocate(first, 1, epochs[1]) == (ErrorCode.none, 1000, 1000)
            assert await stored(first) == (1, "1000", "1999")

    run(test())


def test_blocks_of_the_controller_and_those_that_brokers_take_are_different(
    zookeeper_address: str,
) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1) as (node,):
            assert await node.zk_client.producer_ids.get_new_producer_id_block(1) == (1, 0, 999)
            epoch = node.controller.broker_epoch
            assert await allocate(node, 1, epoch) == (ErrorCode.none, 1000, 1000)
            assert await node.zk_client.producer_ids.get_new_producer_id_block(1) == (1, 2000, 2999)

    run(test())


def test_nothing_is_taken_for_a_broker_that_may_not_have_it(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            epoch = second.controller.broker_epoch
            assert await allocate(second, 2, epoch) == (ErrorCode.not_controller, 0, 0)
            assert await allocate(first, 9, epoch) == (ErrorCode.broker_id_not_registered, 0, 0)
            assert await allocate(first, 2, epoch - 1) == (ErrorCode.stale_broker_epoch, 0, 0)
            assert await allocate(first, 2, -1) == (ErrorCode.stale_broker_epoch, 0, 0)
            data, stat = await first.zookeeper.reads.get(PRODUCER_ID_BLOCK)
            assert (data, stat.version) == (b"", 0)

    run(test())


def test_what_the_znode_holds_does_not_end_the_office(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1) as (node,):
            epoch = node.controller.broker_epoch
            last = encode_producer_id_block(ProducerIdsBlock(1, 2**63 - 1000, 2**63 - 1))
            for data in (b"not a block", last):
                await node.zookeeper.writes.set_data(PRODUCER_ID_BLOCK, data, -1)
                refused = (ErrorCode.unknown_server_error, 0, 0)
                assert await allocate(node, 1, epoch) == refused
            await node.zookeeper.writes.delete(PRODUCER_ID_BLOCK)
            assert await allocate(node, 1, epoch) == (ErrorCode.unknown_server_error, 0, 0)
            assert node.controller.is_active

    run(test())


def test_a_session_that_ends_refuses_who_asked(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1) as (node,):
            epoch = node.controller.broker_epoch
            await node.zookeeper.close()
            assert (await allocate(node, 1, epoch))[0] is ErrorCode.not_controller

    run(test())
