"""Producers: each sends one record at a time, and goes around the partitions."""

from __future__ import annotations

from random import Random  # noqa: TID251 - the type only

from nemesis.history.events import IDEMPOTENT
from nemesis.history.recorder import Recorder
from nemesis.workloads.base import WorkloadContext
from nemesis.workloads.clients import Clients, find_leader
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.idempotent_producer import IdempotentProducer, Records
from nemesis.workloads.operations import Avoid, OperationLog, Pace
from nemesis.workloads.partitions import KnownPartitions, TopicPartition, partition_columns
from nemesis.workloads.produce_consume_options import ProduceConsumeOptions
from nemesis.workloads.record_values import payload_of


class Producers:
    """The producer processes of a workload, which share one sequence of values."""

    def __init__(
        self,
        context: WorkloadContext,
        options: ProduceConsumeOptions,
        *,
        clients: Clients,
        partitions: KnownPartitions,
        log: OperationLog,
    ) -> None:
        self._context = context
        self._options = options
        self._clients = clients
        self._partitions = partitions
        self._log = log
        self._next_value = 0

    async def run(self, process: str, index: int) -> None:
        """Send until cancelled; ``index`` is the producer's number."""
        client, recorder = self._clients.client(process), self._context.recorder(process)
        rng = self._clients.rng()
        pace, avoid = Pace(self._options.send_interval_ms, rng), Avoid(self._options.avoid_ms)
        idempotent = (
            self._clients.idempotent(client) if index < self._options.idempotent_producers else None
        )
        turn = index
        try:
            while True:
                await pace.wait()
                turn += 1
                choices = avoid.not_avoided(self._partitions.known)
                if not choices:
                    continue
                tp = choices[turn % len(choices)]
                if not self._context.permits(process, turn - index):
                    continue
                if client.metadata.leader(*tp) is None and not await find_leader(client, tp):
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
        columns = partition_columns(client, tp) | {"f": "send", "value": value, "acks": -1}
        key = process
        if self._options.keys:
            columns["key"] = number = rng.randrange(self._options.keys)
            key = f"key-{number}"
        records: Records = [(key.encode(), payload)]
        if idempotent is not None:
            batch = idempotent.next_batch(*tp)
            columns |= {
                "delivery": IDEMPOTENT,
                "producer_id": batch.producer_id,
                "producer_epoch": batch.producer_epoch,
                "sequence": batch.base_sequence,
            }
        with self._log.operation(recorder, columns) as operation:
            if idempotent is None:
                sent = await client.send(*tp, records, acks=-1, timeout_s=self._clients.timeout_s)
            else:
                sent = await idempotent.send(*tp, records)
            operation.ok(offset=sent.offset, node=sent.node)
        return operation.succeeded

    async def _init_producer_id(self, idempotent: IdempotentProducer, recorder: Recorder) -> None:
        with self._log.operation(recorder, {"f": "init-producer-id"}) as operation:
            operation.ok(producer_id=await idempotent.init_producer_id())
