"""produce-consume: producers of unique values, consumers that follow, topics created while faults strike.

* Every record's value is a number that no other record of the run has, so that one read tells which send it came from.
  With ``keys``, its key is one of so many, and topics are created with ``cleanup.policy=compact``.
* A producer sends one record at a time with ``acks=all``, idempotence off, one attempt; it goes around the
  partitions and leaves one alone for a moment after a failure there. So many as ``idempotent_producers`` says send
  idempotently instead, and again and again until ``delivery_timeout_ms`` is over: one operation, several attempts.
* A consumer follows its share of the partitions from offset 0, one fetch at a time, ``auto.offset.reset=none``.
  Some of them read from any replica, whose high watermark may lag behind the leader's.
* An administrator creates further topics during the run; producers and consumers take them up.
* At the end the final readers read every partition from its start until they reach the leader's high watermark.

Kafka's protocol settings are stated in ``nemesis.workloads.kafka.client``; the history's vocabulary in
``nemesis.history.events``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from random import Random  # noqa: TID251 - the type; every instance is seeded from the run's
from typing import Any, ClassVar, Final, TypeVar
from uuid import UUID

import msgspec

from nemesis.history.events import IDEMPOTENT, Kind
from nemesis.history.recorder import Recorder
from nemesis.workloads.base import WorkloadContext, WorkloadError
from nemesis.workloads.kafka.admin import KafkaAdmin
from nemesis.workloads.kafka.client import KafkaClient, Polled
from nemesis.workloads.kafka.errors import KafkaError
from nemesis.workloads.kafka.idempotent_producer import IdempotentProducer, Records
from nemesis.workloads.log_dir_moves import move_between_log_dirs_again_and_again
from nemesis.workloads.operations import Avoid, OperationLog, Pace
from nemesis.workloads.produce_consume_options import ProduceConsumeOptions
from nemesis.workloads.record_deletion import delete_records_again_and_again
from nemesis.workloads.subjects import TopicPartition, payload_of, subject, value_of

COMPACTED: Final = {"cleanup.policy": "compact"}
LAST_EPOCH: Final = 1
"""Then an idempotent producer asks for a new producer id, as Kafka's does after 32,767: ids are wanted amid faults."""
FINAL_PAUSE_S: Final = 0.1
"""How much later a final reader that gets no further looks again; at once, it would ask as fast as brokers answer."""
_Client = TypeVar("_Client", bound=KafkaClient)


class ProduceConsume:
    """The workload ``produce-consume``, and the load of others; see the module."""

    name: ClassVar = "produce-consume"
    options_type: ClassVar[type[ProduceConsumeOptions]] = ProduceConsumeOptions

    def __init__(self, context: WorkloadContext, options: Mapping[str, Any]) -> None:
        try:
            self._options = msgspec.convert(dict(options), self.options_type, strict=True)
        except msgspec.ValidationError as error:
            raise WorkloadError(f"options of workload {self.name}: {error}") from None
        self._context = context
        self._tasks: list[asyncio.Task[None]] = []
        self._partitions: list[TopicPartition] = []
        self._next_value = 0
        self._log = OperationLog()
        self._clients = 0

    @property
    def replication_factor(self) -> int:
        return self._options.replication_factor

    @property
    def operations(self) -> int:
        return self._log.completed

    def topic_partitions(self) -> list[TopicPartition]:
        return list(self._partitions)

    async def setup(self, timeout_s: float = 20.0) -> None:
        """Create the initial topics and wait for their leaders; raises ``WorkloadError`` after ``timeout_s``."""
        client = self._admin("admin-setup")
        recorder = self._context.recorder("admin-setup")
        wanted = [f"orders-{index}" for index in range(self._options.topics)]
        try:
            async with asyncio.timeout(timeout_s):
                for topic in wanted:
                    await self._create_until_seen(client, recorder, topic)
        except TimeoutError:
            raise WorkloadError(
                f"the topics {', '.join(wanted)} did not all get leaders within {timeout_s:g} s"
            ) from None
        finally:
            client.close()

    def start(self) -> None:
        options = self._options
        for index in range(options.producers):
            self._spawn(f"producer-{index}", self._produce(f"producer-{index}", index))
        for index in range(options.consumers):
            self._spawn(f"consumer-{index}", self._consume(f"consumer-{index}", index))
        if options.delete_records_interval_ms:
            self._spawn("admin-1", self._delete_records("admin-1"))
        if options.move_log_dirs_interval_ms:
            self._spawn("admin-2", self._move_log_dirs("admin-2"))
        if options.later_topics:
            self._spawn("admin-0", self._administer("admin-0"))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        for result in results:
            if isinstance(result, Exception):
                raise WorkloadError(f"a client process failed: {result!r}") from result

    async def final_reads(self, timeout_s: float) -> None:
        """Read all partitions, a few at a time; one that cannot be read to its end is recorded with the error."""
        client = self._client("final-metadata")
        deadline = asyncio.get_running_loop().time() + timeout_s
        while not await client.refresh_metadata():
            if asyncio.get_running_loop().time() > deadline:
                break
            await asyncio.sleep(0.1)
        client.close()
        self._adopt_existing(client)
        readers = min(4, len(self._partitions)) or 1
        shares = [self._partitions[index::readers] for index in range(readers)]
        async with asyncio.TaskGroup() as group:
            for index, share in enumerate(shares):
                group.create_task(self._read_to_end(f"final-{index}", share, deadline))

    # -- processes ----------------------------------------------------------------------------------

    async def _produce(self, process: str, index: int) -> None:
        client, recorder = self._client(process), self._context.recorder(process)
        rng = self._rng()
        pace, avoid = Pace(self._options.send_interval_ms, rng), Avoid(self._options.avoid_ms)
        idempotent = (
            self._idempotent(client) if index < self._options.idempotent_producers else None
        )
        turn = index
        try:
            while True:
                await pace.wait()
                turn += 1
                choices = avoid.others(self._partitions)
                if not choices:
                    continue
                tp = choices[turn % len(choices)]
                if not self._context.permits(process, turn - index):
                    continue
                if client.metadata.leader(*tp) is None and not await self._find_leader(client, tp):
                    avoid.add(tp)
                    continue
                if idempotent is not None and not idempotent.is_ready:
                    await self._init_producer_id(idempotent, recorder)
                elif not await self._send(client, recorder, process, tp, idempotent, rng):
                    avoid.add(tp)
                    await client.refresh_metadata()
        finally:
            client.close()

    async def _send(
        self,
        client: KafkaClient,
        recorder: Recorder,
        process: str,
        tp: TopicPartition,
        idempotent: IdempotentProducer | None,
        rng: Random,
    ) -> bool:
        value, self._next_value = self._next_value, self._next_value + 1
        payload = payload_of(value, self._options.record_bytes)
        columns = subject(client, tp) | {"f": "send", "value": value, "acks": -1}
        key = process
        if self._options.keys:
            columns["key"] = number = rng.randrange(self._options.keys)
            key = f"key-{number}"
        records: Records = [(key.encode(), payload)]
        if idempotent is not None:
            columns |= {"role": IDEMPOTENT, "detail": str(idempotent.next_batch(*tp))}
        with self._log.operation(recorder, columns) as operation:
            if idempotent is None:
                sent = await client.send(*tp, records, acks=-1, timeout_s=self._timeout_s)
            else:
                sent = await idempotent.send(*tp, records)
            operation.ok(offset=sent.offset, node=sent.node)
        return operation.succeeded

    async def _init_producer_id(self, idempotent: IdempotentProducer, recorder: Recorder) -> None:
        with self._log.operation(recorder, {"f": "init-producer-id"}) as operation:
            operation.ok(value=await idempotent.init_producer_id())

    async def _consume(self, process: str, index: int) -> None:
        client, recorder = self._client(process), self._context.recorder(process)
        rng = self._rng()
        pace, avoid = Pace(self._options.poll_interval_ms, rng), Avoid(self._options.avoid_ms)
        positions: dict[tuple[UUID, int], int] = {}
        reads_from_any = index >= self._options.consumers - self._options.follower_consumers
        turn = 0
        try:
            while True:
                await pace.wait()
                turn += 1
                mine = self._partitions[index % len(self._partitions) :: self._options.consumers]
                choices = avoid.others(mine)
                if not choices:
                    continue
                tp = choices[turn % len(choices)]
                if not self._context.permits(process, turn):
                    continue
                if client.metadata.leader(*tp) is None and not await self._find_leader(client, tp):
                    avoid.add(tp)
                    continue
                # A topic that was deleted and created again has a log of its own, to be read from its start.
                log = client.metadata.topics[tp[0]].topic_id, tp[1]
                node = rng.choice(client.metadata.replicas(*tp)) if reads_from_any else None
                polled = await self._poll(client, recorder, tp, positions.get(log, 0), node)
                if polled is None:
                    avoid.add(tp)
                    await client.refresh_metadata()
                else:
                    positions[log] = polled.position_after(positions.get(log, 0))
        finally:
            client.close()

    async def _poll(
        self,
        client: KafkaClient,
        recorder: Recorder,
        tp: TopicPartition,
        position: int,
        node: int | None = None,
    ) -> Polled | None:
        polled: Polled | None = None
        columns = subject(client, tp) | {"f": "poll", "offset": position}
        with self._log.operation(recorder, columns) as operation:
            polled = await client.poll(
                *tp,
                position,
                max_wait_ms=self._options.poll_max_wait_ms,
                max_bytes=256 * 1024,
                timeout_s=self._timeout_s,
                node=node,
            )
            operation.ok(
                offsets=[record.offset for record in polled.records],
                values=[value_of(record.value) for record in polled.records],
                high_watermark=polled.high_watermark,
                node=polled.node,
            )
        if operation.error == "OFFSET_OUT_OF_RANGE":
            polled = await self._go_to_start(client, recorder, tp, position)
        return polled

    async def _go_to_start(
        self, client: KafkaClient, recorder: Recorder, tp: TopicPartition, position: int
    ) -> Polled | None:
        """Ask where the log starts: what was wanted may have been deleted. None if that is not the reason."""
        start = -1
        columns = subject(client, tp) | {"f": "log-start"}
        with self._log.operation(recorder, columns) as operation:
            start = await client.start_offset(*tp, timeout_s=self._timeout_s)
            operation.ok(offset=start)
        return Polled([], -1, -1, start) if start > position else None

    async def _delete_records(self, process: str) -> None:
        await delete_records_again_and_again(
            self._admin(process),
            self._context.recorder(process),
            self._log,
            self._partitions,
            interval_ms=self._options.delete_records_interval_ms,
            timeout_s=self._timeout_s,
            rng=self._rng(),
        )

    async def _move_log_dirs(self, process: str) -> None:
        await move_between_log_dirs_again_and_again(
            self._admin(process),
            self._context.recorder(process),
            self._log,
            interval_ms=self._options.move_log_dirs_interval_ms,
            timeout_s=self._timeout_s,
            rng=self._rng(),
        )

    async def _administer(self, process: str) -> None:
        client, recorder = self._admin(process), self._context.recorder(process)
        try:
            for index in range(self._options.later_topics):
                await asyncio.sleep(self._options.later_topic_interval_ms / 1000)
                if not self._context.permits(process, index):
                    continue
                await self._create_until_seen(client, recorder, f"later-{index}", partitions=1)
        finally:
            client.close()

    async def _create_until_seen(
        self, client: KafkaAdmin, recorder: Recorder, topic: str, *, partitions: int | None = None
    ) -> None:
        """Try until the metadata shows the topic with all its leaders; each try is an operation of its own."""
        count = partitions or self._options.partitions
        while True:
            await client.refresh_metadata()
            metadata = client.metadata
            if topic not in metadata.topics and metadata.controller_id in metadata.brokers:
                await self._create(client, recorder, topic, count)
            elif all(metadata.leader(topic, p) is not None for p in range(count)):
                self._adopt([(topic, partition) for partition in range(count)])
                return
            await asyncio.sleep(0.1)

    async def _create(
        self, client: KafkaAdmin, recorder: Recorder, topic: str, partitions: int
    ) -> bool:
        """One attempt to create a topic; returns whether it was created for certain."""
        columns = {"f": "create-topic", "topic": topic, "value": partitions}
        with self._log.operation(recorder, columns) as operation:
            await client.create_topic(
                topic,
                partitions=partitions,
                replication_factor=self._options.replication_factor,
                configs=COMPACTED if self._options.keys else {},
                timeout_s=self._timeout_s,
            )
            operation.ok()
        return operation.succeeded

    async def _read_to_end(
        self, process: str, share: list[TopicPartition], deadline: float
    ) -> None:
        client, recorder = self._client(process), self._context.recorder(process)
        try:
            for tp in share:
                await self._read_partition(client, recorder, tp, deadline)
        finally:
            client.close()

    async def _read_partition(
        self, client: KafkaClient, recorder: Recorder, tp: TopicPartition, deadline: float
    ) -> None:
        position, start, end, error = 0, 0, -1, "CLIENT_TIMED_OUT"
        loop = asyncio.get_running_loop()
        while loop.time() < deadline:
            if client.metadata.leader(*tp) is None and not await self._find_leader(client, tp):
                error = "LEADER_UNKNOWN"
                await asyncio.sleep(FINAL_PAUSE_S)
                continue
            polled = await self._poll(client, recorder, tp, position)
            if polled is not None and polled.position_after(position) > position:
                position, start = polled.position_after(position), max(start, polled.log_start)
                continue
            end = await self._end_offset(client, tp)
            if polled is not None and 0 <= end <= position:
                error = "NONE"
                break
            await asyncio.sleep(FINAL_PAUSE_S)
            await client.refresh_metadata()
        recorder.record(
            Kind.FINAL_READ,
            offset=position,
            high_watermark=end,
            log_start_offset=start,
            error=error,
            **subject(client, tp),
        )

    async def _end_offset(self, client: KafkaClient, tp: TopicPartition) -> int:
        """Where a final read must get to; −1 while the leader cannot say."""
        try:
            return await client.end_offset(*tp, timeout_s=self._timeout_s)
        except KafkaError:
            return -1

    # -- small parts ------------------------------------------------------------------------------------

    @property
    def _timeout_s(self) -> float:
        return self._options.operation_timeout_ms / 1000

    def _spawn(self, name: str, process: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(process, name=name))

    def _client(self, process: str) -> KafkaClient:
        return self._connected(KafkaClient, process)

    def _idempotent(self, client: KafkaClient) -> IdempotentProducer:
        return IdempotentProducer(
            client,
            request_timeout_s=self._timeout_s,
            delivery_timeout_s=self._options.delivery_timeout_ms / 1000,
            max_epoch=LAST_EPOCH,
        )

    def _admin(self, process: str) -> KafkaAdmin:
        return self._connected(KafkaAdmin, process)

    def _connected(self, kind: type[_Client], process: str) -> _Client:
        hosts = self._context.client_hosts
        host = hosts[self._clients % len(hosts)]
        self._clients += 1
        return kind(
            self._context.bootstrap,
            client_id=process,
            source_host=host,
            rng=self._rng(),
            codec=self._context.codec,
            epoch_ms=self._context.epoch_ms,
        )

    def _rng(self) -> Random:
        return Random(self._context.rng.getrandbits(64))

    async def _find_leader(self, client: KafkaClient, tp: TopicPartition) -> bool:
        if not await client.refresh_metadata():
            await asyncio.sleep(0.05)
        return client.metadata.leader(*tp) is not None

    def _adopt(self, partitions: list[TopicPartition]) -> None:
        self._partitions.extend(tp for tp in partitions if tp not in self._partitions)

    def _adopt_existing(self, client: KafkaClient) -> None:
        for topic, metadata in sorted(client.metadata.topics.items()):
            self._adopt([(topic, partition) for partition in sorted(metadata.partitions)])
