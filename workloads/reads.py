"""Reads of partitions, each an operation of the history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import NamedTuple

from nemesis.history.events import NO_ERROR, READ_COMMITTED, Kind
from nemesis.history.recorder import Recorder
from nemesis.workloads.clients import Clients
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.errors import KafkaError
from nemesis.workloads.kafka.fetches import SESSION_ERRORS, FetchSession, PartitionKey
from nemesis.workloads.kafka.poll_answers import Polled
from nemesis.workloads.operations import Operation, OperationLog
from nemesis.workloads.partitions import TopicPartition, partition_columns, topic_id_text
from nemesis.workloads.produce_consume_options import ProduceConsumeOptions
from nemesis.workloads.record_values import number_of

MAX_BYTES = 256 * 1024
"""The most bytes that one read returns of all its partitions, unless the first batch is larger (KIP-74)."""


class Reading(NamedTuple):
    """From where a partition is to be read, and which process reads it."""

    recorder: Recorder
    position: int


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
        node: int,
        *,
        is_committed: bool = False,
    ) -> Polled | None:
        """Read one partition once from the broker ``node``; return None after an error."""
        reading = {tp: Reading(recorder, position)}
        session = FetchSession(is_kept=False, is_committed=is_committed)
        outcomes = await self.poll_partitions(client, reading, node=node, session=session)
        return outcomes.get(
            tp
        )  # a wrong broker may answer a fetch without a session with an error of sessions

    async def poll_partitions(
        self,
        client: KafkaClient,
        readings: Mapping[TopicPartition, Reading],
        *,
        node: int,
        session: FetchSession,
    ) -> dict[TopicPartition, Polled | None]:
        """Read all partitions once, in one request to the broker ``node``; each is an operation of its own.

        Returns what was read, and None for a partition that failed. After an error of the fetch session, which says
        nothing about any partition, nothing is returned.
        """
        outcomes: dict[TopicPartition, Polled | None] = {}
        operations: dict[TopicPartition, Operation] = {}
        with ExitStack() as stack:
            for tp, reading in readings.items():
                columns = partition_columns(client, tp) | {"f": "poll", "offset": reading.position}
                if session.is_committed:
                    columns["isolation"] = READ_COMMITTED
                operation = self._log.operation(reading.recorder, columns)
                operations[tp] = stack.enter_context(operation)
            fetched = await self._fetch(client, readings, node, session)
            for tp, operation in operations.items():
                outcomes[tp] = self._complete(
                    operation, fetched[tp], is_committed=session.is_committed
                )
        for tp, operation in operations.items():
            if operation.error in SESSION_ERRORS:
                del outcomes[tp]
            elif operation.error == "OFFSET_OUT_OF_RANGE":
                reading = readings[tp]
                outcomes[tp] = await self._go_to_start(
                    client, reading.recorder, tp, reading.position
                )
        return outcomes

    async def _fetch(
        self,
        client: KafkaClient,
        readings: Mapping[TopicPartition, Reading],
        node: int,
        session: FetchSession,
    ) -> Mapping[TopicPartition, Polled | KafkaError]:
        """Return the outcome of each partition, also when the whole request failed."""
        try:
            return await client.poll_partitions(
                {tp: reading.position for tp, reading in readings.items()},
                node=node,
                session=session,
                max_wait_ms=self._options.poll_max_wait_ms,
                max_bytes=MAX_BYTES,
                timeout_s=self._clients.timeout_s,
            )
        except KafkaError as error:
            return dict.fromkeys(readings, error)
        finally:
            recorder = next(iter(readings.values())).recorder
            _record_exchange(recorder, session, node)

    def _complete(
        self, operation: Operation, outcome: Polled | KafkaError, *, is_committed: bool
    ) -> Polled | None:
        """Complete an operation with the outcome of its partition; return what was read, None after an error."""
        try:
            if isinstance(outcome, KafkaError):
                raise outcome
            values = [number_of(record, self._shape) for record in outcome.records]
        except KafkaError as error:
            operation.failed(error)
            return None
        if is_committed:
            operation.add(
                last_stable_offset=outcome.last_stable_offset,
                aborted=[number for transaction in outcome.aborted for number in transaction],
            )
        operation.ok(
            offsets=[record.offset for record in outcome.records],
            values=values,
            high_watermark=outcome.high_watermark,
            log_start_offset=outcome.log_start_offset,
            last_offset=outcome.end - 1 if outcome.end else None,
            node=outcome.node,
        )
        return outcome

    async def end_offset(
        self, client: KafkaClient, recorder: Recorder, tp: TopicPartition, node: int
    ) -> int:
        """Ask the leader ``node`` where the partition ends for consumers; −1 after an error."""
        end = -1
        columns = partition_columns(client, tp) | {"f": "latest-offset", "node": node}
        with self._log.operation(recorder, columns) as operation:
            end = await client.end_offset(*tp, timeout_s=self._clients.timeout_s)
            operation.ok(offset=end)
        return end

    async def _go_to_start(
        self, client: KafkaClient, recorder: Recorder, tp: TopicPartition, position: int
    ) -> Polled | None:
        """Ask where the log starts: the records may have been deleted. None if the log starts before the position."""
        start = -1
        columns = partition_columns(client, tp) | {"f": "log-start"}
        with self._log.operation(recorder, columns) as operation:
            start = await client.start_offset(*tp, timeout_s=self._clients.timeout_s)
            operation.ok(log_start_offset=start)
        return Polled([], -1, -1, first_offset=start) if start > position else None


def _record_exchange(recorder: Recorder, session: FetchSession, node: int) -> None:
    """Record the answer to the last fetch, if there is one; without a session only if it names other partitions."""
    exchange = session.take_exchange()
    if exchange is None:
        return
    is_as_asked = exchange.error != NO_ERROR or exchange.is_as_asked
    if not session.is_kept and is_as_asked:
        return
    recorder.record(
        Kind.FETCH_RECEIVED,
        node=node,
        fetch_session=exchange.session_id,
        fetch_epoch=exchange.epoch,
        asked=_texts(exchange.asked),
        forgotten=_texts(exchange.forgotten),
        answered=_texts(exchange.answered),
        failed=_texts(exchange.failed),
        error=exchange.error,
        duration_ms=exchange.throttle_ms,
    )


def _texts(keys: Iterable[PartitionKey]) -> list[str]:
    return [f"{topic_id_text(topic_id)}-{partition}" for topic_id, partition in keys]
