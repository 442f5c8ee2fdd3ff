"""Three brokers' replicas on one loop: real logs, fetchers and messages through the codec, a wire that can be held.

The controller is the test's: it elects by Kafka's offline rule, answers AlterPartition by its rules, and tells each
broker in order. A held link keeps what was sent and delivers it when it opens, even if the sender has given up.
Every leader's high watermark is checked against the logs as they really are, the moment it is traced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

from kio.schema.alter_partition.v3.response import (
    AlterPartitionResponse,
    PartitionData,
    TopicData,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId
from kio.static.primitive import i32, i32Timedelta

from nemesis.reference import model
from nemesis.reference.kafka_scheduler import KafkaScheduler
from nemesis.reference.model import (
    LeaderAndIsr,
    LeaderAndIsrPartitionState,
    ProducePartitionResult,
    UpdateMetadataPartitionState,
)
from nemesis.reference.network.errors import NetworkError, RequestTimedOutError
from nemesis.reference.protocol.codec import (
    SIZE_BYTES,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from nemesis.reference.protocol.record_batch import iter_batches
from nemesis.reference.protocol.schema import response_class
from nemesis.reference.server.alter_partition_manager import DefaultAlterPartitionManager
from nemesis.reference.server.apis.fetch import FetchApis
from nemesis.reference.server.fetch_manager import FetchManager
from nemesis.reference.server.metadata_cache import MetadataCache
from nemesis.reference.server.replica_manager import ReplicaManager
from nemesis.reference.trace import Kind
from tests.reference.cluster.hosting import TOPIC_ID, TP, config, log_manager
from tests.reference.server.answers import answered

CONTROLLER = 0
BROKERS = (1, 2, 3)
_PAYLOAD_START = 61


@dataclass(frozen=True)
class Acknowledged:
    leader_epoch: int
    payload: bytes


class Wire:
    """Messages between nodes; a link is a (sender, receiver) pair and carries requests and replies."""

    def __init__(self, rng: Random) -> None:
        self.held: set[tuple[int, int]] = set()
        self.handlers: dict[int, Callable[[bytes], Any]] = {}
        self._rng = rng
        self._deliveries: set[asyncio.Task[Any]] = set()

    async def cross(self, sender: int, receiver: int) -> None:
        await asyncio.sleep(self._rng.uniform(0.0001, 0.003))
        while (sender, receiver) in self.held:
            await asyncio.sleep(0.01)

    async def exchange(self, sender: int, receiver: int, frame: bytes) -> bytes:
        await self.cross(sender, receiver)
        handler = self.handlers.get(receiver)
        if handler is None:
            raise NetworkError(f"node {receiver} is down", definite=True)
        reply = await handler(frame)
        await self.cross(receiver, sender)
        return bytes(reply)

    def spawn(self, main: Any) -> asyncio.Task[Any]:
        task = asyncio.create_task(main)
        self._deliveries.add(task)
        task.add_done_callback(self._deliveries.discard)
        return task

    async def close(self) -> None:
        for task in self._deliveries:
            task.cancel()
        await asyncio.gather(*self._deliveries, return_exceptions=True)


class WireConnection:
    def __init__(self, wire: Wire, sender: int) -> None:
        self._wire = wire
        self._sender = sender

    async def send(self, host: str, port: int, request: Any, *, timeout_s: float) -> Any:
        frame = encode_request(request, correlation_id=1, client_id="test")
        delivery = self._wire.spawn(self._wire.exchange(self._sender, port, frame))
        done, _ = await asyncio.wait([delivery], timeout=timeout_s)
        if not done:
            raise RequestTimedOutError("no answer", definite=False)
        return decode_response(delivery.result()[SIZE_BYTES:], response_class(type(request)))[1]

    async def close(self) -> None:
        pass


class Broker:
    """One process life after another of one broker."""

    def __init__(self, cluster: Cluster, broker_id: int, directory: Path) -> None:
        self.cluster = cluster
        self.id = broker_id
        self.config = config(
            directory / f"broker-{broker_id}",
            broker_id,
            **cluster.properties,
            **{
                "replica.lag.time.max.ms": 1000,
                "replica.fetch.backoff.ms": 50,
                "replica.fetch.wait.max.ms": 200,
                "replica.socket.timeout.ms": 1000,
                "controller.socket.timeout.ms": 1000,
                "replica.high.watermark.checkpoint.interval.ms": 500,
            },
        )
        self.epoch = 0
        self.is_up = False

    def event(self, kind: Kind, /, **columns: Any) -> None:
        self.cluster.observe(self, kind, columns)

    async def start(self) -> None:
        self.epoch += 1
        epoch = self.epoch * 1000 + self.id
        self.logs = log_manager(self.config)
        self.cache = MetadataCache(self.id)
        self.scheduler = KafkaScheduler()
        self.replicas = ReplicaManager(
            self.config,
            tracer=self,
            log_manager=self.logs,
            metadata_cache=self.cache,
            alter_partition_manager=DefaultAlterPartitionManager(
                self.config,
                metadata_cache=self.cache,
                broker_epoch=lambda: epoch,
                connection=WireConnection(self.cluster.wire, self.id),
            ),
            scheduler=self.scheduler,
            broker_epoch=lambda: epoch,
            connect=lambda _: WireConnection(self.cluster.wire, self.id),
        )
        sessions = FetchManager(1000, rng=Random(epoch), topic_name=self.cache.topic_name)
        self.apis = FetchApis(self.replicas.fetches, self.cache, sessions)
        await self.replicas.startup()
        self.is_up = True
        self.cluster.wire.handlers[self.id] = self.handle

    async def kill(self) -> None:
        """End as by SIGKILL: what was appended stays, nothing is checkpointed on the way out."""
        self.is_up = False
        self.cluster.wire.handlers.pop(self.id, None)
        self.replicas.checkpoint_high_watermarks = lambda: None  # type: ignore[method-assign]
        await self.replicas.shutdown()

    @property
    def log_end_offset(self) -> int:
        log = self.logs.get_log(TP)
        return 0 if log is None else log.log_end_offset

    def content(self) -> bytes:
        """The whole log (it is one segment)."""
        log = self.logs.get_log(TP)
        assert log is not None
        return log.read(0, 1 << 30, log.log_end_offset, min_one_message=True)

    def payloads(self) -> dict[int, bytes]:
        """What is in the log, by base offset."""
        content = self.content()
        return {
            header.base_offset: content[
                header.position + _PAYLOAD_START : header.position + header.size_in_bytes
            ]
            for header in iter_batches(content)
        }

    async def handle(self, frame: bytes) -> bytes:
        request = decode_request(frame[SIZE_BYTES:], is_offered=lambda *_: True)
        replicas = self.replicas
        response = await answered(self.apis.handle_fetch(request.message))
        if self.replicas is not replicas or not self.is_up:
            raise NetworkError("died meanwhile", definite=False)
        return encode_response(response, correlation_id=request.correlation_id)


class Cluster:
    """Brokers, wire and the one partition's state in ZooKeeper."""

    def __init__(self, directory: Path, seed: int, **properties: Any) -> None:
        self.properties = properties
        self.rng = Random(seed)
        self.wire = Wire(self.rng)
        self.wire.handlers[CONTROLLER] = self._alter_partition
        self.brokers = {broker: Broker(self, broker, directory) for broker in BROKERS}
        self.registered: set[int] = set()
        self.state = LeaderAndIsr(1, 0, BROKERS)
        self.acknowledged: dict[int, Acknowledged] = {}
        """What an acks=all produce returned for, by base offset."""
        self.violations: list[str] = []
        self.events: list[tuple[int, Kind, dict[str, Any]]] = []
        self._updates: dict[int, asyncio.Queue[Callable[[Broker], None]]] = {}

    async def start(self) -> None:
        for broker in BROKERS:
            await self.brokers[broker].start()
            self.registered.add(broker)
            self._open_channel(broker)
        self.tell(*BROKERS)

    async def stop(self) -> None:
        for broker in self.brokers.values():
            if broker.is_up:
                await broker.kill()
        await self.wire.close()

    def observe(self, broker: Broker, kind: Kind, columns: dict[str, Any]) -> None:
        self.events.append((broker.id, kind, columns))
        if kind is Kind.HIGH_WATERMARK:
            for member in columns["maximal_isr"]:
                end = self.brokers[member].log_end_offset
                if end < columns["high_watermark"]:
                    self.violations.append(
                        f"high watermark {columns['high_watermark']} of broker {broker.id} in epoch "
                        f"{columns['leader_epoch']}, but broker {member} ends at {end}"
                    )
        if kind is Kind.BECOME_LEADER:
            end = columns["log_end_offset"]
            lost = [
                offset
                for offset, produced in self.acknowledged.items()
                if produced.leader_epoch < columns["leader_epoch"] and offset >= end
            ]
            if lost:
                self.violations.append(f"broker {broker.id} leads without {lost}")

    def _open_channel(self, broker: int) -> None:
        queue: asyncio.Queue[Callable[[Broker], None]] = asyncio.Queue()
        self._updates[broker] = queue
        self.wire.spawn(self._deliver(self.brokers[broker], queue))

    async def _deliver(self, broker: Broker, queue: asyncio.Queue[Any]) -> None:
        epoch = broker.epoch
        while self._updates.get(broker.id) is queue:
            tell = await queue.get()
            await self.wire.cross(CONTROLLER, broker.id)
            if broker.is_up and broker.epoch == epoch:
                tell(broker)

    def tell(self, *brokers: int) -> None:
        """UpdateMetadata to all, then LeaderAndIsr to these."""
        live = [model.Broker.at(n, f"node-{n}", n) for n in sorted(self.registered | {CONTROLLER})]
        state = self.state
        metadata = UpdateMetadataPartitionState(
            TP,
            TOPIC_ID,
            1,
            state.leader,
            state.leader_epoch,
            state.isr,
            state.partition_epoch,
            BROKERS,
        )
        decided = LeaderAndIsrPartitionState(TP, TOPIC_ID, 1, state, BROKERS)

        nodes = [node for endpoint in live if (node := endpoint.node("PLAINTEXT")) is not None]

        def update(broker: Broker) -> None:
            broker.replicas.maybe_update_metadata_cache(CONTROLLER, 1, -1, live, [metadata])

        def apply(broker: Broker) -> None:
            broker.replicas.become_leader_or_follower(CONTROLLER, 1, -1, [decided], nodes)

        for broker in sorted(self.registered):
            self._updates[broker].put_nowait(update)
            if broker in brokers:
                self._updates[broker].put_nowait(apply)

    def unregister(self, broker: int) -> None:
        """The broker's session ended: it leaves the ISR unless it is the last, and somebody else leads."""
        self.registered.discard(broker)
        self._updates.pop(broker, None)
        isr = tuple(member for member in self.state.isr if member != broker) or self.state.isr
        live = [member for member in isr if member in self.registered]
        if broker in self.state.isr:
            leader = self.state.leader if self.state.leader in live else next(iter(live), -1)
            self._write(leader, isr, raise_epoch=True)
        self.tell(*self.registered)

    def register(self, broker: int) -> None:
        """The broker is back: it is told what is, and leads if nobody could."""
        self.registered.add(broker)
        self._open_channel(broker)
        self.tell(broker)
        if self.state.leader not in self.registered and broker in self.state.isr:
            self._write(broker, self.state.isr, raise_epoch=True)
            self.tell(*self.registered)

    def elect(self, leader: int) -> None:
        """As a preferred-replica election does: another leader of the same ISR."""
        if leader in self.state.isr and leader in self.registered:
            self._write(leader, self.state.isr, raise_epoch=True)
            self.tell(*self.registered)

    def _write(self, leader: int, isr: tuple[int, ...], *, raise_epoch: bool) -> None:
        self.state = LeaderAndIsr(
            leader,
            self.state.leader_epoch + raise_epoch,
            isr,
            partition_epoch=self.state.partition_epoch + 1,
        )

    async def _alter_partition(self, frame: bytes) -> bytes:
        request = decode_request(frame[SIZE_BYTES:], is_offered=lambda *_: True)
        asked = request.message.topics[0].partitions[0]
        isr = tuple(member.broker_id for member in asked.new_isr_with_epochs)
        error = ErrorCode.none
        if asked.leader_epoch != self.state.leader_epoch:
            error = ErrorCode.fenced_leader_epoch
        elif set(isr) == set(self.state.isr):
            pass
        elif asked.partition_epoch != self.state.partition_epoch:
            error = ErrorCode.invalid_update_version
        elif any(not self._is_eligible(m) for m in asked.new_isr_with_epochs):
            error = ErrorCode.ineligible_replica
        else:
            self._write(self.state.leader, isr, raise_epoch=False)
            self.tell()
        answer = PartitionData(
            partition_index=i32(0),
            error_code=error,
            leader_id=BrokerId(self.state.leader),
            leader_epoch=i32(self.state.leader_epoch),
            isr=tuple(BrokerId(member) for member in self.state.isr),
            partition_epoch=i32(self.state.partition_epoch),
        )
        response = AlterPartitionResponse(
            throttle_time=i32Timedelta.parse(timedelta()),
            error_code=ErrorCode.none,
            topics=(TopicData(topic_id=TOPIC_ID, partitions=(answer,)),),
        )
        return encode_response(response, correlation_id=request.correlation_id)

    def _is_eligible(self, member: Any) -> bool:
        current = self.brokers[member.broker_id].epoch * 1000 + member.broker_id
        return member.broker_id in self.registered and member.broker_epoch in (-1, current)

    async def produce(self, broker: int, records: bytes, *, acks: int = -1) -> ErrorCode:
        """One produce to one broker; what it acknowledges is remembered."""
        node = self.brokers[broker]
        if not node.is_up:
            return ErrorCode.network_exception
        replicas = node.replicas
        result: ProducePartitionResult = await answered(
            replicas.appends.append_records(
                timeout_ms=800,
                acks=acks,
                entries={TP: records},
                respond=lambda results: results[TP],
            )
        )
        if result.error is ErrorCode.none and acks == -1 and node.replicas is replicas:
            self.acknowledged[result.base_offset] = Acknowledged(
                replicas.hosted.partition(TP).leader_epoch, records[_PAYLOAD_START:]
            )
        return result.error

    async def until(self, condition: Callable[[], bool], *, within_s: float = 30) -> None:
        deadline = asyncio.get_running_loop().time() + within_s
        while not condition():
            assert asyncio.get_running_loop().time() < deadline, f"not reached: {self.state}"
            await asyncio.sleep(0.05)

    def is_converged(self) -> bool:
        return (
            set(self.state.isr) == set(BROKERS)
            and len({broker.log_end_offset for broker in self.brokers.values()}) == 1
        )
