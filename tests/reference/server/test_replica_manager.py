"""Control requests on a broker's replicas, and the requests that wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from reference.cluster.errors import ReplicaError
from reference.log.errors import KafkaStorageError
from reference.log.log import Log
from reference.model import (
    BrokerEndPoint,
    FetchIsolation,
    FetchParams,
    FetchPartitionRequest,
    FetchPartitionResult,
    ProducePartitionResult,
    StopReplicaPartitionState,
    TopicPartition,
    UpdateMetadataPartitionState,
)
from reference.server.alter_partition_manager import AlterPartitionManager
from reference.server.kafka_scheduler import KafkaScheduler
from reference.server.metadata_cache import MetadataCache
from reference.server.replica_manager import ReplicaManager
from reference.trace import Kind
from tests.reference.cluster.hosting import TOPIC_ID, TP, Trace, config, lisr, log_manager
from tests.reference.log.batches import batch
from tests.reference.virtual_time import run

BROKERS = [BrokerEndPoint(n, f"127.0.0.{n}", 9092) for n in (1, 2, 3)]
BROKER_EPOCH = 50


class SilentConnection:
    """A peer that never answers."""

    def __init__(self) -> None:
        self.requests: list[Any] = []

    async def send(self, host: str, port: int, request: Any, *, timeout_s: float) -> Any:
        self.requests.append(request)
        await asyncio.Event().wait()

    async def close(self) -> None:
        pass


class Node:
    """Broker 1, its peers silent; the test is the controller."""

    def __init__(self, directory: Path, **properties: Any) -> None:
        self.config = config(directory, **properties)
        self.trace = Trace()
        self.logs = log_manager(self.config)
        self.cache = MetadataCache(1)
        self.scheduler = KafkaScheduler()
        self.peers: list[SilentConnection] = []
        self.manager = ReplicaManager(
            self.config,
            tracer=self.trace,
            log_manager=self.logs,
            metadata_cache=self.cache,
            alter_partition_manager=AlterPartitionManager(
                self.config,
                metadata_cache=self.cache,
                broker_epoch=lambda: BROKER_EPOCH,
                connection=SilentConnection(),
            ),
            scheduler=self.scheduler,
            broker_epoch=lambda: BROKER_EPOCH,
            connect=self._connect,
        )

    def _connect(self, client_id: str) -> SilentConnection:
        assert client_id.startswith("broker-1-fetcher-")
        self.peers.append(SilentConnection())
        return self.peers[-1]

    def update_metadata(self, epoch: int = 1, broker_epoch: int = BROKER_EPOCH) -> ErrorCode:
        state = UpdateMetadataPartitionState(TP, TOPIC_ID, epoch, 1, 0, (1, 2, 3), 0, (1, 2, 3))
        return self.manager.maybe_update_metadata_cache(3, epoch, broker_epoch, BROKERS, [state])

    def lisr(
        self, *states: Any, epoch: int = 1, broker_epoch: int = BROKER_EPOCH
    ) -> tuple[ErrorCode, dict[TopicPartition, ErrorCode]]:
        return self.manager.become_leader_or_follower(3, epoch, broker_epoch, states, BROKERS)

    def stop(
        self, leader_epoch: int, *, delete: bool, epoch: int = 1
    ) -> tuple[ErrorCode, dict[TopicPartition, ErrorCode]]:
        state = StopReplicaPartitionState(TP, leader_epoch, delete)
        return self.manager.stop_replicas(3, epoch, BROKER_EPOCH, [state])

    def fetch(
        self,
        offset: int,
        *,
        replica_id: int = -1,
        epoch: int = -1,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
        topic_id: UUID = TOPIC_ID,
    ) -> Awaitable[list[FetchPartitionResult]]:
        isolation = FetchIsolation.LOG_END if replica_id >= 0 else FetchIsolation.HIGH_WATERMARK
        return self.manager.fetch(
            FetchParams(replica_id, max_wait_ms, min_bytes, 1 << 20, isolation),
            [FetchPartitionRequest(TP, topic_id, epoch, offset, -1, 0, 1 << 20)],
        )

    def produce(
        self, records: bytes, *, acks: int = -1, timeout_ms: int = 1000
    ) -> Awaitable[dict[TopicPartition, ProducePartitionResult]]:
        return self.manager.append_records(timeout_ms=timeout_ms, acks=acks, entries={TP: records})

    @property
    def waiting(self) -> int:
        return len(self.manager._delayed_produces) + len(self.manager._delayed_fetches)


def on_node(tmp_path: Path, scenario: Callable[[Node], Awaitable[None]], **properties: Any) -> None:
    """Run with a broker that knows its peers; afterwards nothing waits any more."""

    async def main() -> None:
        node = Node(tmp_path, **properties)
        await node.manager.startup()
        node.update_metadata()
        await scenario(node)
        await node.manager.shutdown()
        assert node.waiting == 0
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main())


def time() -> float:
    return asyncio.get_running_loop().time()


# Control requests


def test_requests_of_a_deposed_controller_are_refused(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        assert node.lisr(lisr(), epoch=5) == (ErrorCode.none, {TP: ErrorCode.none})
        stale = ErrorCode.stale_controller_epoch
        assert node.lisr(lisr(leader_epoch=1), epoch=4) == (stale, {})
        assert node.stop(-2, delete=True, epoch=4) == (stale, {})
        assert node.update_metadata(epoch=4) is stale
        assert node.manager.partition(TP).leader_epoch == 0
        handled = [
            (e["api"], e["controller_epoch"], e["error"])
            for e in node.trace.of(Kind.CONTROL_REQUEST_HANDLED)
        ]
        assert handled == [
            ("UpdateMetadata", 1, "NONE"),
            ("LeaderAndIsr", 5, "NONE"),
            ("LeaderAndIsr", 4, "STALE_CONTROLLER_EPOCH"),
            ("StopReplica", 4, "STALE_CONTROLLER_EPOCH"),
            ("UpdateMetadata", 4, "STALE_CONTROLLER_EPOCH"),
        ]

    on_node(tmp_path, scenario)


@pytest.mark.parametrize(
    ("broker_epoch", "error"),
    [
        (BROKER_EPOCH - 1, ErrorCode.stale_broker_epoch),
        (BROKER_EPOCH, ErrorCode.none),
        (BROKER_EPOCH + 1, ErrorCode.none),
        (-1, ErrorCode.none),
    ],
)
def test_requests_for_an_earlier_life_are_refused(
    tmp_path: Path, broker_epoch: int, error: ErrorCode
) -> None:
    async def scenario(node: Node) -> None:
        assert node.lisr(lisr(), broker_epoch=broker_epoch)[0] is error
        assert node.update_metadata(broker_epoch=broker_epoch) is error

    on_node(tmp_path, scenario)


def test_only_a_newer_leader_epoch_counts(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        assert node.lisr(lisr(leader=1, leader_epoch=3))[1] == {TP: ErrorCode.none}
        for old in (lisr(leader=2, leader_epoch=3), lisr(leader=2, leader_epoch=2)):
            assert node.lisr(old)[1] == {TP: ErrorCode.stale_controller_epoch}
        old_partition_epoch = lisr(leader=2, leader_epoch=4, partition_epoch=29)
        assert node.lisr(old_partition_epoch)[1] == {TP: ErrorCode.stale_controller_epoch}
        assert node.manager.partition(TP).is_leader

    on_node(tmp_path, scenario)


def test_without_a_live_leader_nothing_changes_but_the_log_exists(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        for leader in (-1, 9):
            assert node.lisr(lisr(leader=leader, leader_epoch=7))[1] == {TP: ErrorCode.none}
        assert node.manager.partition(TP).leader_epoch == -1
        assert node.logs.get_log(TP) is not None
        assert len(node.trace.of(Kind.LOG_LOADED)) == 1
        assert node.trace.of(Kind.BECOME_FOLLOWER) == []

    on_node(tmp_path, scenario)


def test_a_replica_of_somebody_else_or_of_another_topic_is_refused(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        assert node.lisr(lisr(leader=2, replicas=(2, 3)))[1] == {
            TP: ErrorCode.unknown_topic_or_partition
        }
        node.lisr(lisr())
        assert node.lisr(lisr(leader_epoch=1, topic_id=UUID(int=8)))[1] == {
            TP: ErrorCode.inconsistent_topic_id
        }

    on_node(tmp_path, scenario)


def test_a_log_of_a_deleted_topic_of_the_same_name_is_not_reused(tmp_path: Path) -> None:
    async def first(node: Node) -> None:
        node.lisr(lisr())

    async def second(node: Node) -> None:
        other = lisr(topic_id=UUID(int=8))
        assert node.lisr(other)[1] == {TP: ErrorCode.inconsistent_topic_id}
        with pytest.raises(ReplicaError):
            node.manager.partition(TP)

    on_node(tmp_path, first)
    on_node(tmp_path, second)


def test_a_follower_fetches_from_its_leader_and_moves_with_it(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        node.lisr(lisr(leader=2))
        await asyncio.sleep(0.01)
        node.lisr(lisr(leader=3, leader_epoch=1))
        await asyncio.sleep(0.01)
        node.lisr(lisr(leader=3, leader_epoch=2))
        await asyncio.sleep(0.01)
        assert [len(peer.requests) for peer in node.peers] == [1, 1]
        assert node.manager._fetchers.leader_of(TP) == 3
        node.lisr(lisr(leader=1, leader_epoch=3))
        assert node.manager._fetchers.leader_of(TP) is None

    on_node(tmp_path, scenario)


@pytest.mark.parametrize(
    ("leader_epoch", "error"),
    [
        (2, ErrorCode.fenced_leader_epoch),
        (3, ErrorCode.none),
        (-1, ErrorCode.none),
        (-2, ErrorCode.none),
    ],
)
def test_stop_replica_checks_the_leader_epoch(
    tmp_path: Path, leader_epoch: int, error: ErrorCode
) -> None:
    async def scenario(node: Node) -> None:
        node.lisr(lisr(leader=2, leader_epoch=3))
        assert node.stop(leader_epoch, delete=False)[1] == {TP: error}
        fetches_from = node.manager._fetchers.leader_of(TP)
        assert fetches_from == (2 if error is ErrorCode.fenced_leader_epoch else None)
        assert len(node.trace.of(Kind.REPLICA_STOPPED)) == (error is ErrorCode.none)

    on_node(tmp_path, scenario)


def test_a_deleted_replica_is_gone_and_may_come_back_as_a_new_topic(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        node.lisr(lisr(isr=(1,)))
        await node.produce(batch(3))
        assert node.stop(-2, delete=True)[1] == {TP: ErrorCode.none}
        assert node.logs.get_log(TP) is None
        assert node.trace.of(Kind.REPLICA_STOPPED)[0] == {
            "topic": "t",
            "topic_id": str(TOPIC_ID),
            "partition": 0,
            "detail": "delete",
        }
        assert node.stop(-2, delete=True)[1] == {TP: ErrorCode.none}
        assert node.lisr(lisr(topic_id=UUID(int=8)))[1] == {TP: ErrorCode.none}
        assert node.manager.partition(TP).leader_log.log_end_offset == 0

    on_node(tmp_path, scenario)


def test_a_log_that_fails_takes_its_replica_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise KafkaStorageError("the disk is gone")

    async def scenario(node: Node) -> None:
        node.lisr(lisr(isr=(1,)))
        monkeypatch.setattr(Log, "append_as_leader", fail)
        storage_error = ErrorCode.kafka_storage_error
        assert (await node.produce(batch(1)))[TP].error is storage_error
        assert (await node.fetch(0))[0].error is storage_error
        assert node.lisr(lisr(leader_epoch=1))[1] == {TP: storage_error}

    on_node(tmp_path, scenario)


def test_high_watermarks_survive_a_restart(tmp_path: Path) -> None:
    async def first(node: Node) -> None:
        node.lisr(lisr(isr=(1,)))
        await node.produce(batch(3))

    async def second(node: Node) -> None:
        (loaded,) = node.trace.of(Kind.LOG_LOADED)
        assert (loaded["log_end_offset"], loaded["high_watermark"]) == (3, 3)
        assert loaded["topic_id"] == str(TOPIC_ID)

    on_node(tmp_path, first)
    on_node(tmp_path, second)
    on_node(tmp_path, second)  # nobody hosted it in between (KAFKA-1647)


# Produces


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
        node.stop(-2, delete=True)
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
        results = await node.manager.append_records(
            timeout_ms=1, acks=-1, entries={unknown: good, TP: good}
        )
        assert results[unknown].error is ErrorCode.unknown_topic_or_partition
        assert results[TP] == ProducePartitionResult(ErrorCode.none, 0, 0)

    on_node(tmp_path, scenario)


# Fetches


def test_a_long_poll_ends_with_data_or_its_time(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        node.lisr(lisr(isr=(1,)))
        (empty,) = await node.fetch(0)
        assert (empty.error, empty.records) == (ErrorCode.none, b"")
        assert time() == pytest.approx(0.5)
        polling = asyncio.ensure_future(node.fetch(0))
        await asyncio.sleep(0.1)
        await node.produce(batch(2))
        (found,) = await polling
        assert time() == pytest.approx(0.6)
        assert (len(found.records), found.high_watermark) == (len(batch(2)), 2)

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
