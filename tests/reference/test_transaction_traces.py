"""What brokers trace of transactions: in their logs, and as coordinators."""

from __future__ import annotations

from pathlib import Path

from kio.schema.errors import ErrorCode

from nemesis.reference.log.log_validator import AppendOrigin
from nemesis.reference.protocol.control_records import (
    ControlRecordType,
    EndTransactionMarker,
    end_transaction_batch,
)
from nemesis.reference.protocol.record_batch import TRANSACTIONAL_FLAG
from nemesis.reference.trace import Kind
from tests.reference.cluster.hosting import Host, Trace, lisr
from tests.reference.coordinator.transaction_node import (
    TIMEOUT_MS,
    A,
    B,
    TransactionNode,
    on_transaction_node,
)
from tests.reference.log.batches import NOW_MS, batch
from tests.reference.server.verification import append_verified

PRODUCER = {"producer_id": 7, "producer_epoch": 3}


def data(sequence: int) -> bytes:
    return batch(attributes=TRANSACTIONAL_FLAG, producer=(7, 3, sequence), timestamp=NOW_MS)


def marker(decision: ControlRecordType, coordinator_epoch: int) -> bytes:
    return end_transaction_batch(7, 3, EndTransactionMarker(decision, coordinator_epoch), NOW_MS)


def of(trace: Trace, kind: Kind) -> list[dict[str, object]]:
    """The events without the columns of each partition's events."""
    return [
        {
            name: value
            for name, value in event.items()
            if name not in {"topic", "topic_id", "partition"}
        }
        for event in trace.of(kind)
    ]


def test_a_leader_traces_where_transactions_begin_and_end(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.partition.make_leader(lisr(isr=(1,)))
    host.partition.append_as_leader(batch(2), acks=-1)
    append_verified(host.partition, data(0))
    host.partition.append_as_leader(data(1), acks=-1)
    for decision, epoch in ((ControlRecordType.ABORT, 4), (ControlRecordType.COMMIT, 5)):
        records = marker(decision, epoch)
        host.partition.append_as_leader(records, -1, AppendOrigin.COORDINATOR)
    assert of(host.trace, Kind.TRANSACTION_OPENED) == [{**PRODUCER, "role": "leader", "offset": 2}]
    appended = {**PRODUCER, "role": "leader", "leader_epoch": 0}
    assert of(host.trace, Kind.MARKER_APPENDED) == [
        {**appended, "offset": 4, "coordinator_epoch": 4, "outcome": "abort", "first_offset": 2},
        {**appended, "offset": 5, "coordinator_epoch": 5, "outcome": "commit", "first_offset": -1},
    ]


def test_a_follower_traces_the_markers_of_its_leader(tmp_path: Path) -> None:
    leader = Host(tmp_path / "leader")
    leader.partition.make_leader(lisr(isr=(1,)))
    append_verified(leader.partition, data(0))
    leader.partition.append_as_leader(
        marker(ControlRecordType.COMMIT, 1), -1, AppendOrigin.COORDINATOR
    )
    records = leader.partition.leader_log.read(0, 1 << 20, 2, min_one_message=True)
    host = Host(tmp_path / "follower")
    host.partition.make_follower(lisr(leader=2))
    host.partition.append_as_follower(records, 0)
    assert [event["role"] for event in host.trace.of(Kind.TRANSACTION_OPENED)] == ["follower"]
    [event] = host.trace.of(Kind.MARKER_APPENDED)
    assert (event["role"], event["offset"], event["first_offset"]) == ("follower", 1, 0)


def test_a_coordinator_traces_the_partitions_of_transactions(tmp_path: Path) -> None:
    async def scenario(node: TransactionNode) -> None:
        await node.lead(4)
        producer = await node.begun()
        await node.add(producer, A)
        await node.add(producer, A, B)
        await node.end(producer, is_commit=False)
        trace = node.node.trace
        added = trace.of(Kind.TRANSACTION_PARTITION_ADDED)
        assert [(event["topic"], event["timeout_ms"]) for event in added] == [
            ("a", TIMEOUT_MS),
            ("b", TIMEOUT_MS),
        ]
        assert not trace.of(Kind.TRANSACTION_COMPLETED)
        node.leaders.answer(b=ErrorCode.not_leader_or_follower)
        assert not trace.of(Kind.TRANSACTION_COMPLETED)

    on_transaction_node(tmp_path, scenario)


def test_a_coordinator_traces_the_end_of_a_transaction(tmp_path: Path) -> None:
    async def scenario(node: TransactionNode) -> None:
        await node.lead(4)
        producer = await node.begun()
        await node.add(producer)
        await node.end(producer)
        node.leaders.answer()
        completed = node.node.trace.of(Kind.TRANSACTION_COMPLETED)
        assert completed == [
            {
                "topic": topic_partition.topic,
                "partition": topic_partition.partition,
                "producer_id": 100,
                "producer_epoch": 0,
                "coordinator_epoch": 4,
                "outcome": "commit",
            }
            for topic_partition in (A, B)
        ]

    on_transaction_node(tmp_path, scenario)
