"""Fetch and ListOffsets by isolation level, on leaders and followers, in sessions and without."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from nemesis.reference.log.log import Log
from nemesis.reference.log.log_validator import AppendOrigin
from nemesis.reference.protocol.codec import SIZE_BYTES, decode_response, encode_response
from nemesis.reference.protocol.control_records import (
    ControlRecordType,
    EndTransactionMarker,
    end_transaction_batch,
)
from nemesis.reference.protocol.record_batch import TRANSACTIONAL_FLAG, iter_batches
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.protocol.versions import OFFERED, ApiKey
from nemesis.reference.server.apis.conversion import NO_THROTTLE
from nemesis.reference.server.apis.fetch import FetchApis
from nemesis.reference.server.apis.offsets import OffsetApis
from nemesis.reference.server.fetch_manager import FetchManager
from tests.reference.cluster.hosting import TOPIC_ID, TP, lisr
from tests.reference.log.batches import NOW_MS, batch
from tests.reference.log.transactions import ABORT, COMMIT
from tests.reference.server.answers import answered
from tests.reference.server.one_broker import Node, on_node
from tests.reference.server.verification import append_verified

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
FETCH_VERSIONS = range(OFFERED[ApiKey.FETCH].lowest, OFFERED[ApiKey.FETCH].highest + 1)


class Reader:
    """A consumer of t-0 with both kinds of requests."""

    def __init__(self, node: Node) -> None:
        node.update_metadata()
        sessions = FetchManager(10, rng=Random(1), topic_name=node.cache.topic_name)
        self._fetch = FetchApis(node.manager.fetches, node.cache, sessions)
        self._offsets = OffsetApis(node.manager.offsets)

    def fetch(
        self,
        offset: int = 0,
        *,
        isolation_level: int = READ_COMMITTED,
        version: int = 17,
        session: tuple[int, int] = (0, -1),
        replica_id: int = -1,
        max_wait_ms: int = 0,
        rack_id: str = "",
    ) -> Any:
        schema = load_request_schema(ApiKey.FETCH, version)
        topic_class = item_class(schema, "topics")
        partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 10_000}
        partitions = build_items(topic_class, "partitions", [partition])
        topic = {"topic": "t", "topic_id": TOPIC_ID, "partitions": partitions}
        request = build(
            schema,
            replica_id=replica_id,
            max_wait=NO_THROTTLE.resolution * 1000 * max_wait_ms,
            min_bytes=1,
            max_bytes=10_000,
            isolation_level=isolation_level,
            session_id=session[0],
            session_epoch=session[1],
            topics=build_items(schema, "topics", [topic]),
            forgotten_topics_data=(),
            rack_id=rack_id,
        )
        return answered(self._fetch.handle_fetch(request))

    async def read(self, offset: int = 0, **how: Any) -> Any:
        """The one partition of the answer, as its sender gets it."""
        return over_the_wire(await self.fetch(offset, **how)).responses[0].partitions[0]

    def list_offset(self, timestamp: int, isolation_level: int, *, replica_id: int = -1) -> int:
        schema = load_request_schema(ApiKey.LIST_OFFSETS, 9)
        partition = {"partition_index": 0, "timestamp": timestamp}
        partitions = build_items(item_class(schema, "topics"), "partitions", [partition])
        topics = build_items(schema, "topics", [{"name": "t", "partitions": partitions}])
        request = build(
            schema, replica_id=replica_id, isolation_level=isolation_level, topics=topics
        )
        answer = over_the_wire(self._offsets.handle_list_offsets(request))
        result = answer.topics[0].partitions[0]
        assert result.error_code is ErrorCode.none
        return int(result.offset)


def over_the_wire(response: Any) -> Any:
    frame = encode_response(response, correlation_id=1)
    return decode_response(frame[SIZE_BYTES:], type(response))[1]


def lead(node: Node, isr: tuple[int, ...] = (1,)) -> Log:
    node.lisr(lisr(isr=isr))
    return node.manager.hosted.partition(TP).leader_log


def data(producer_id: int, sequence: int, *, timestamp: int = NOW_MS) -> bytes:
    producer = (producer_id, 0, sequence)
    return batch(attributes=TRANSACTIONAL_FLAG, producer=producer, timestamp=timestamp)


def append(node: Node, records: bytes) -> None:
    append_verified(node.manager.hosted.partition(TP), records)


def end(node: Node, producer_id: int, decision: ControlRecordType) -> None:
    marker = end_transaction_batch(producer_id, 0, EndTransactionMarker(decision, 0), NOW_MS)
    node.manager.hosted.partition(TP).append_as_leader(marker, 1, AppendOrigin.COORDINATOR)


def filled(node: Node) -> None:
    """An aborted transaction at 0 and 2 with its marker at 3, a committed one at 1 and 4, an open one at 5."""
    append(node, data(7, 0))
    append(node, data(8, 0))
    append(node, data(7, 1))
    end(node, 7, ABORT)
    end(node, 8, COMMIT)
    append(node, data(9, 0))


def last_offset(records: bytes) -> int:
    return max(header.last_offset for header in iter_batches(records))


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_read_committed_ends_at_the_last_stable_offset(tmp_path: Path, version: int) -> None:
    async def scenario(node: Node) -> None:
        lead(node)
        reader = Reader(node)
        filled(node)
        result = await reader.read(version=version)
        assert last_offset(result.records) == 4
        assert (result.high_watermark, result.last_stable_offset) == (6, 5)
        aborted = [(item.producer_id, item.first_offset) for item in result.aborted_transactions]
        assert aborted == [(7, 0)]
        everything = await reader.read(version=version, isolation_level=READ_UNCOMMITTED)
        assert last_offset(everything.records) == 5
        assert everything.last_stable_offset == 5
        assert everything.aborted_transactions is None
        nothing = await reader.read(5, version=version)
        assert not nothing.records
        assert nothing.last_stable_offset == 5
        assert nothing.aborted_transactions == ()

    on_node(tmp_path, scenario)


def test_only_the_aborted_transactions_of_the_range_are_listed(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        lead(node)
        reader = Reader(node)
        filled(node)
        assert (await reader.read(4)).aborted_transactions == ()
        assert len((await reader.read(3)).aborted_transactions) == 1

    on_node(tmp_path, scenario)


def test_replicas_read_all(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        lead(node, isr=(1, 2))
        filled(node)
        (result,) = await node.fetch(0, replica_id=2, max_wait_ms=0)
        assert last_offset(result.records) == 5
        assert result.last_stable_offset == 0
        assert result.aborted_transactions is None

    on_node(tmp_path, scenario)


def test_a_fetch_waits_for_the_marker_and_its_replication(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        lead(node, isr=(1, 2))
        reader = Reader(node)
        append(node, data(7, 0))
        await node.fetch(1, replica_id=2, max_wait_ms=0)
        waiting = asyncio.ensure_future(reader.fetch(0, max_wait_ms=30_000))
        await asyncio.sleep(0.1)
        end(node, 7, COMMIT)
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await node.fetch(2, replica_id=2, max_wait_ms=0)
        result = (await waiting).responses[0].partitions[0]
        assert last_offset(result.records) == 1
        assert result.last_stable_offset == 2

    on_node(tmp_path, scenario)


def test_a_session_reports_the_end_of_a_transaction(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        lead(node)
        reader = Reader(node)
        append(node, data(7, 0))
        first = over_the_wire(await reader.fetch(session=(0, 0)))
        (partition,) = first.responses[0].partitions
        assert (partition.records, partition.last_stable_offset) == (b"", 0)
        unchanged = over_the_wire(await reader.fetch(session=(first.session_id, 1)))
        assert unchanged.responses == ()
        end(node, 7, ABORT)
        news = over_the_wire(await reader.fetch(session=(first.session_id, 2)))
        (partition,) = news.responses[0].partitions
        assert partition.last_stable_offset == 2
        assert [item.producer_id for item in partition.aborted_transactions] == [7]

    on_node(tmp_path, scenario)


def test_a_follower_serves_its_own_last_stable_offset(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        lead(node)
        reader = Reader(node)
        filled(node)
        node.lisr(lisr(leader=2, leader_epoch=2))
        result = await reader.read(rack_id="r")
        assert (last_offset(result.records), result.last_stable_offset) == (4, 5)
        partition = node.manager.hosted.partition(TP)
        marker = end_transaction_batch(9, 0, EndTransactionMarker(ABORT, 0), NOW_MS)
        assigned = (6).to_bytes(8, "big") + marker[8:]
        partition.append_as_follower(assigned, 7)
        result = await reader.read(5, rack_id="r")
        assert (last_offset(result.records), result.last_stable_offset) == (6, 7)
        aborted = [(item.producer_id, item.first_offset) for item in result.aborted_transactions]
        assert aborted == [(9, 5)]

    on_node(tmp_path, scenario)


def test_list_offsets_by_isolation_level(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        lead(node)
        reader = Reader(node)
        append(node, batch(timestamp=NOW_MS))
        append(node, data(9, 0, timestamp=NOW_MS + 5))
        latest = -1
        assert reader.list_offset(latest, READ_COMMITTED) == 1
        assert reader.list_offset(latest, READ_UNCOMMITTED) == 2
        assert reader.list_offset(latest, READ_COMMITTED, replica_id=-2) == 2
        assert reader.list_offset(NOW_MS + 1, READ_COMMITTED) == -1
        assert reader.list_offset(NOW_MS + 1, READ_UNCOMMITTED) == 1
        end(node, 9, COMMIT)
        assert reader.list_offset(latest, READ_COMMITTED) == 3
        assert reader.list_offset(NOW_MS + 1, READ_COMMITTED) == 1

    on_node(tmp_path, scenario)
