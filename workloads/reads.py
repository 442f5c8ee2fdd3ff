"""One read of a partition, as an operation of the history."""

from __future__ import annotations

from nemesis.history.recorder import Recorder
from nemesis.workloads.clients import Clients
from nemesis.workloads.kafka.client import KafkaClient, Polled
from nemesis.workloads.operations import OperationLog
from nemesis.workloads.partitions import TopicPartition, partition_columns
from nemesis.workloads.produce_consume_options import ProduceConsumeOptions
from nemesis.workloads.record_values import number_of

MAX_BYTES = 256 * 1024
"""The most bytes that one read returns."""


class Reads:
    """Reads for consumers and for final readers."""

    def __init__(
        self, options: ProduceConsumeOptions, *, clients: Clients, log: OperationLog
    ) -> None:
        self._options = options
        self._shape = options.record_shape
        self._clients = clients
        self._log = log

    async def poll(
        self,
        client: KafkaClient,
        recorder: Recorder,
        tp: TopicPartition,
        position: int,
        node: int | None = None,
    ) -> Polled | None:
        """Read once; return None after an error. ``node`` is the replica to read from, by default the leader."""
        polled: Polled | None = None
        columns = partition_columns(client, tp) | {"f": "poll", "offset": position}
        with self._log.operation(recorder, columns) as operation:
            polled = await client.poll(
                *tp,
                position,
                max_wait_ms=self._options.poll_max_wait_ms,
                max_bytes=MAX_BYTES,
                timeout_s=self._clients.timeout_s,
                node=node,
            )
            operation.ok(
                offsets=[record.offset for record in polled.records],
                values=[number_of(record, self._shape) for record in polled.records],
                high_watermark=polled.high_watermark,
                node=polled.node,
            )
        if operation.error == "OFFSET_OUT_OF_RANGE":
            polled = await self._go_to_start(client, recorder, tp, position)
        return polled

    async def _go_to_start(
        self, client: KafkaClient, recorder: Recorder, tp: TopicPartition, position: int
    ) -> Polled | None:
        """Ask where the log starts: the records may have been deleted. None if the log starts before the position."""
        start = -1
        columns = partition_columns(client, tp) | {"f": "log-start"}
        with self._log.operation(recorder, columns) as operation:
            start = await client.start_offset(*tp, timeout_s=self._clients.timeout_s)
            operation.ok(log_start_offset=start)
        return Polled([], -1, -1, start) if start > position else None
