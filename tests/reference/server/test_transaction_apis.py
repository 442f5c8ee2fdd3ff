"""WriteTxnMarkers and DescribeProducers: what the leaders of partitions answer a coordinator and an operator."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from nemesis.reference.log.log import Log
from nemesis.reference.protocol.codec import SIZE_BYTES, decode_response, encode_response
from nemesis.reference.protocol.control_records import ControlRecordType, read_marker
from nemesis.reference.protocol.record_batch import TRANSACTIONAL_FLAG, iter_batches
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.protocol.versions import OFFERED, ApiKey
from nemesis.reference.server.apis.transactions import REQUEST_TIMEOUT_MS, TransactionApis
from tests.reference.cluster.hosting import TP, lisr
from tests.reference.log.batches import NOW_MS, batch
from tests.reference.log.logs import MANY
from tests.reference.server.answers import answered
from tests.reference.server.one_broker import Node, on_node, time
from tests.reference.server.verification import append_verified

VERSIONS = range(
    OFFERED[ApiKey.WRITE_TXN_MARKERS].lowest, OFFERED[ApiKey.WRITE_TXN_MARKERS].highest + 1
)


class Marker(NamedTuple):
    """One of a request."""

    producer_id: int = 7
    producer_epoch: int = 0
    is_commit: bool = True
    coordinator_epoch: int = 3
    partitions: tuple[int, ...] = (0,)


class NoGroups:
    """The coordinator of a broker that has no offsets partition."""

    def on_transaction_completed(
        self, partition: int, producer_id: int, marker_offset: int, *, is_commit: bool
    ) -> None:
        raise AssertionError("no marker is about offsets")


def apis(node: Node) -> TransactionApis:
    node.update_metadata()
    return TransactionApis(node.manager.appends, node.manager.hosted, NoGroups(), lambda: NOW_MS)


def over_the_wire(response: Any) -> Any:
    frame = encode_response(response, correlation_id=1)
    return decode_response(frame[SIZE_BYTES:], type(response))[1]


async def write(node: Node, *markers: Marker, version: int = 1) -> dict[int, dict[int, ErrorCode]]:
    """The error of each partition of topic t, by producer id."""
    schema = load_request_schema(ApiKey.WRITE_TXN_MARKERS, version)
    marker_class = item_class(schema, "markers")
    items = [
        {
            "producer_id": marker.producer_id,
            "producer_epoch": marker.producer_epoch,
            "transaction_result": marker.is_commit,
            "coordinator_epoch": marker.coordinator_epoch,
            "topics": build_items(
                marker_class, "topics", [{"name": "t", "partition_indexes": marker.partitions}]
            ),
        }
        for marker in markers
    ]
    request = build(schema, markers=build_items(schema, "markers", items))
    answer = over_the_wire(await answered(apis(node).handle_write_txn_markers(request)))
    return {
        item.producer_id: {
            partition.partition_index: partition.error_code
            for topic in item.topics
            for partition in topic.partitions
        }
        for item in answer.markers
    }


async def describe(node: Node, *partitions: int) -> list[Any]:
    schema = load_request_schema(ApiKey.DESCRIBE_PRODUCERS, 0)
    topics = build_items(schema, "topics", [{"name": "t", "partition_indexes": partitions}])
    answer = over_the_wire(apis(node).handle_describe_producers(build(schema, topics=topics)))
    assert [topic.name for topic in answer.topics] == ["t"]
    return list(answer.topics[0].partitions)


def lead(node: Node, isr: tuple[int, ...] = (1,)) -> Log:
    node.lisr(lisr(isr=isr))
    return node.manager.hosted.partition(TP).leader_log


def send(node: Node, sequence: int, *, producer_id: int = 7, epoch: int = 0) -> None:
    records = batch(
        attributes=TRANSACTIONAL_FLAG, producer=(producer_id, epoch, sequence), timestamp=NOW_MS
    )
    append_verified(node.manager.hosted.partition(TP), records)


def markers_in(log: Log) -> list[tuple[int, int, ControlRecordType, int]]:
    """Producer id and epoch, decision, and coordinator epoch of each marker in the log."""
    data = log.read(0, MANY, MANY, min_one_message=True)
    written = []
    for header in iter_batches(data):
        if header.is_control:
            marker = read_marker(
                data[header.position : header.position + header.size_in_bytes], header
            )
            assert marker is not None
            written.append((header.producer_id, header.producer_epoch, *marker))
    return written


@pytest.mark.parametrize("version", VERSIONS)
def test_markers_are_written_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(node: Node) -> None:
        log = lead(node)
        send(node, 0)
        send(node, 0, producer_id=8)
        answer = await write(node, Marker(), Marker(8, is_commit=False), version=version)
        assert answer == {7: {0: ErrorCode.none}, 8: {0: ErrorCode.none}}
        commit, abort = ControlRecordType.COMMIT, ControlRecordType.ABORT
        assert markers_in(log) == [(7, 0, commit, 3), (8, 0, abort, 3)]
        assert log.last_stable_offset == 4
        assert [entry.producer_id for entry in log.collect_aborted_transactions(0, 4)] == [8]

    on_node(tmp_path, scenario)


def test_each_partition_has_its_own_error(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        log = lead(node)
        assert await write(node, Marker(partitions=(0, 4))) == {
            7: {0: ErrorCode.none, 4: ErrorCode.unknown_topic_or_partition}
        }
        node.lisr(lisr(leader=2, leader_epoch=2))
        assert await write(node, Marker()) == {7: {0: ErrorCode.not_leader_or_follower}}
        assert log.log_end_offset == 1

    on_node(tmp_path, scenario)


def test_older_coordinators_and_producer_epochs_are_refused(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        log = lead(node)
        send(node, 0, epoch=2)
        late = Marker(producer_epoch=1)
        assert await write(node, late) == {7: {0: ErrorCode.invalid_producer_epoch}}
        current = Marker(producer_epoch=2)
        assert await write(node, current) == {7: {0: ErrorCode.none}}
        deposed = Marker(producer_epoch=2, coordinator_epoch=2)
        assert await write(node, deposed) == {7: {0: ErrorCode.transaction_coordinator_fenced}}
        assert log.log_end_offset == 2

    on_node(tmp_path, scenario)


def test_a_marker_is_acknowledged_when_the_isr_has_it(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        lead(node, isr=(1, 2))
        pending = asyncio.ensure_future(write(node, Marker(), Marker(8)))
        await asyncio.sleep(0.1)
        assert not pending.done()
        await node.fetch(2, replica_id=2, max_wait_ms=0)
        assert await pending == {7: {0: ErrorCode.none}, 8: {0: ErrorCode.none}}

    on_node(tmp_path, scenario)


def test_a_marker_that_is_not_replicated_times_out(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        lead(node, isr=(1, 2))
        assert await write(node, Marker()) == {7: {0: ErrorCode.request_timed_out}}
        assert time() == pytest.approx(REQUEST_TIMEOUT_MS / 1000)

    on_node(tmp_path, scenario)


def test_a_marker_needs_enough_replicas(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        log = lead(node)
        assert await write(node, Marker()) == {7: {0: ErrorCode.not_enough_replicas}}
        assert log.log_end_offset == 0

    on_node(tmp_path, scenario, **{"min.insync.replicas": 2})


def test_producers_are_described(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        lead(node)
        send(node, 0, producer_id=8, epoch=1)
        send(node, 4)
        await write(node, Marker(8, producer_epoch=1))
        (partition,) = await describe(node, 0)
        assert (partition.partition_index, partition.error_code) == (0, ErrorCode.none)
        described = {
            state.producer_id: (
                state.producer_epoch,
                state.last_sequence,
                state.last_timestamp,
                state.coordinator_epoch,
                state.current_txn_start_offset,
            )
            for state in partition.active_producers
        }
        assert described == {8: (1, 0, NOW_MS, 3, -1), 7: (0, 4, NOW_MS, -1, 1)}

    on_node(tmp_path, scenario)


def test_only_leaders_describe_producers(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        lead(node)
        send(node, 0)
        node.lisr(lisr(leader=2, leader_epoch=2))
        foreign, unknown = await describe(node, 0, 4)
        assert foreign.error_code is ErrorCode.not_leader_or_follower
        assert unknown.error_code is ErrorCode.unknown_topic_or_partition
        assert (foreign.active_producers, unknown.active_producers) == ((), ())

    on_node(tmp_path, scenario)
