"""Produce requests: when they are answered, and with what."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from nemesis.reference.model import (
    ProducePartitionResult,
    TopicPartition,
)
from nemesis.reference.trace import Kind
from tests.reference.cluster.hosting import TP, lisr
from tests.reference.log.batches import batch
from tests.reference.server.one_broker import Node, on_node, time


def test_acks_0_and_1_do_not_wait(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        node.lisr(lisr())
        for acks, offset in ((0, 0), (1, 1)):
            result = (await node.produce(batch(1), acks=acks))[TP]
            assert result == ProducePartitionResult(ErrorCode.none, offset, 0)
        (acknowledged,) = node.trace.of(Kind.PRODUCE_ACKNOWLEDGED)
        assert (acknowledged["acks"], acknowledged["offset"]) == (1, 1)
        assert time() == 0

    on_node(tmp_path, scenario)


def test_acks_all_waits_for_the_isr(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        node.lisr(lisr(isr=(1, 2)))
        pending = asyncio.ensure_future(node.produce(batch(2)))
        await asyncio.sleep(0.1)
        assert not pending.done()
        assert node.waiting == 1
        await node.fetch(2, replica_id=2, max_wait_ms=0)
        assert (await pending)[TP] == ProducePartitionResult(ErrorCode.none, 0, 0)
        kinds = node.trace.kinds()
        assert kinds.index(Kind.HIGH_WATERMARK) < kinds.index(Kind.PRODUCE_ACKNOWLEDGED)

    on_node(tmp_path, scenario)


def test_acks_all_gives_up_at_its_time_out(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        node.lisr(lisr(isr=(1, 2)))
        result = (await node.produce(batch(2), timeout_ms=700))[TP]
        assert result.error is ErrorCode.request_timed_out
        assert time() == pytest.approx(0.7)
        assert node.trace.of(Kind.PRODUCE_ACKNOWLEDGED) == []

    on_node(tmp_path, scenario)


def test_a_leader_that_follows_in_between_never_acknowledges(tmp_path: Path) -> None:
    """Its records may be truncated, and others committed at their offsets by the time it leads again."""

    async def scenario(node: Node) -> None:
        node.lisr(lisr(isr=(1, 2)))
        pending = asyncio.ensure_future(node.produce(batch(2)))
        await asyncio.sleep(0.1)
        node.lisr(lisr(leader=2, leader_epoch=1))
        node.lisr(lisr(leader=1, leader_epoch=2, isr=(1,)))
        assert (await pending)[TP].error is ErrorCode.not_leader_or_follower
        assert node.trace.of(Kind.PRODUCE_ACKNOWLEDGED) == []

    on_node(tmp_path, scenario)


def test_a_deleted_partition_releases_who_waits(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        node.lisr(lisr(isr=(1, 2)))
        pending = asyncio.ensure_future(node.produce(batch(2)))
        polling = asyncio.ensure_future(node.fetch(0))
        await asyncio.sleep(0.1)
        node.stop(-1, delete=True)
        assert (await pending)[TP].error is ErrorCode.not_leader_or_follower
        assert (await polling)[0].error is ErrorCode.not_leader_or_follower
        assert time() == pytest.approx(0.1)

    on_node(tmp_path, scenario)


def test_what_cannot_be_appended_is_refused_by_its_reason(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        good, bad = batch(1), bytearray(batch(1))
        assert (await node.produce(good))[TP].error is ErrorCode.not_leader_or_follower
        node.lisr(lisr(isr=(1,)))
        bad[-1] ^= 1
        assert (await node.produce(bytes(bad)))[TP].error is ErrorCode.corrupt_message
        assert (await node.produce(good, acks=2))[TP].error is ErrorCode.invalid_required_acks
        unknown = TopicPartition("u", 0)
        results = await node.produce(good, topic_partitions=(unknown, TP))
        assert results[unknown].error is ErrorCode.unknown_topic_or_partition
        assert results[TP] == ProducePartitionResult(ErrorCode.none, 0, 0)

    on_node(tmp_path, scenario)
