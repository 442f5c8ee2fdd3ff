"""Fetch requests: when they are answered, and with what."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from tests.reference.cluster.hosting import lisr
from tests.reference.log.batches import batch
from tests.reference.server.one_broker import Node, on_node, time


def test_a_long_poll_ends_with_data_or_its_time(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        node.lisr(lisr(isr=(1,)))
        (empty,) = await node.fetch(0)
        assert (empty.error, empty.records) == (ErrorCode.none, b"")
        assert time() == pytest.approx(0.5)
        polling = asyncio.ensure_future(node.fetch(0))
        await asyncio.sleep(0.1)
        await node.produce(batch(2))
        (result,) = await polling
        assert time() == pytest.approx(0.6)
        assert (len(result.records), result.high_watermark) == (len(batch(2)), 2)

    on_node(tmp_path, scenario)


def test_a_consumer_waits_for_the_high_watermark_a_follower_does_not(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        node.lisr(lisr(isr=(1, 2)))
        consumer = asyncio.ensure_future(node.fetch(0, max_wait_ms=5000))
        follower = asyncio.ensure_future(node.fetch(0, replica_id=2, epoch=0, max_wait_ms=5000))
        await asyncio.sleep(0.1)
        await node.produce(batch(1), acks=1)
        assert (await follower)[0].records
        assert not consumer.done()
        await node.fetch(1, replica_id=2, epoch=0, max_wait_ms=0)
        assert (await consumer)[0].records
        assert time() == pytest.approx(0.1)

    on_node(tmp_path, scenario)


def test_a_long_poll_waits_for_min_bytes(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        node.lisr(lisr(isr=(1,)))
        size = len(batch(1))
        polling = asyncio.ensure_future(node.fetch(0, min_bytes=size + 1))
        await asyncio.sleep(0.1)
        await node.produce(batch(1))
        await asyncio.sleep(0.1)
        assert not polling.done()
        await node.produce(batch(1))
        assert len((await polling)[0].records) == 2 * size

    on_node(tmp_path, scenario)


def test_a_long_poll_hears_of_a_new_leader_at_once(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        node.lisr(lisr())
        polling = asyncio.ensure_future(node.fetch(0, replica_id=2, epoch=0))
        await asyncio.sleep(0.1)
        node.lisr(lisr(leader=3, leader_epoch=1))
        (result,) = await polling
        assert result.error is ErrorCode.fenced_leader_epoch
        assert (result.current_leader_id, result.current_leader_epoch) == (3, 1)
        assert time() == pytest.approx(0.1)

    on_node(tmp_path, scenario)


def test_fetch_errors_name_the_reason(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        node.lisr(lisr(isr=(1,)))
        assert (await node.fetch(1))[0].error is ErrorCode.offset_out_of_range
        (other_topic,) = await node.fetch(0, topic_id=UUID(int=8))
        assert other_topic.error is ErrorCode.inconsistent_topic_id
        assert (await node.fetch(0, epoch=1))[0].error is ErrorCode.unknown_leader_epoch
        assert time() == 0

    on_node(tmp_path, scenario)


def test_a_cancelled_request_leaves_nothing_behind(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        node.lisr(lisr())
        requests = [
            asyncio.ensure_future(node.fetch(0)),
            asyncio.ensure_future(node.produce(batch(1))),
        ]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for request in requests:
            request.cancel()
        await asyncio.gather(*requests, return_exceptions=True)
        assert node.waiting == 0

    on_node(tmp_path, scenario)
