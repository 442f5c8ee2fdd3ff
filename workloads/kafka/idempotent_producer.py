"""IdempotentProducer: one batch at a time, sent again until its fate is known, and in the log once (KIP-98).

A producer has an id, an epoch and a sequence number for each partition. What gets no good answer is sent again as it
was, byte by byte, until ``delivery_timeout_s`` is over: a broker that has it already says where. What is given up
while it may still arrive leaves its sequence number in doubt: the producer then raises its epoch, and all its sequence
numbers begin anew (KIP-360).

It is Kafka's producer with ``enable.idempotence=true`` and ``max.in.flight.requests.per.connection=1``. Where it
differs: what is to be sent to a topic that was deleted, or deleted and created again, is given up at once, so that no
value gets into two topics.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, cast

from kio.schema.errors import ErrorCode
from kio.schema.init_producer_id.v4 import request as init_producer_id
from kio.schema.types import ProducerId
from kio.static.primitive import i16

from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.compression import CodecName
from nemesis.workloads.kafka.errors import BrokerError, KafkaError
from nemesis.workloads.kafka.produces import Sent
from nemesis.workloads.kafka.record_batch import NewRecord, Producer, build
from nemesis.workloads.kafka.timeouts import milliseconds

Records = Sequence[NewRecord | tuple[bytes | None, bytes | None]]

_NONE: Final = -1
SEQUENCES: Final = 2**31
"""After the largest sequence number comes 0."""
MAX_EPOCH: Final = 2**15 - 1
"""Kafka's."""

FENCED: Final = frozenset(
    {
        ErrorCode.out_of_order_sequence_number,
        ErrorCode.invalid_producer_epoch,
        ErrorCode.unknown_producer_id,
    }
)
"""The broker remembers something else of this producer: only a new epoch helps."""
_REFUSED: Final = FENCED | {
    ErrorCode.message_too_large,
    ErrorCode.record_list_too_large,
    ErrorCode.invalid_record,
    ErrorCode.invalid_required_acks,
    ErrorCode.invalid_timestamp,
    ErrorCode.invalid_topic_exception,
    ErrorCode.unsupported_for_message_format,
}
"""Sending it again does not help."""


class IdempotentProducer:
    """Sends through a client. Not for concurrent use."""

    def __init__(
        self,
        client: KafkaClient,
        *,
        request_timeout_s: float,
        delivery_timeout_s: float,
        retry_backoff_s: float = 0.1,
        max_epoch: int = MAX_EPOCH,
    ) -> None:
        """After ``max_epoch`` comes a new producer id."""
        self._client = client
        self._request_timeout_s = request_timeout_s
        self._delivery_timeout_s = delivery_timeout_s
        self._retry_backoff_s = retry_backoff_s
        self._max_epoch = max_epoch
        self._producer_id = _NONE
        self._epoch = _NONE
        self._sequences: dict[tuple[str, int], int] = {}

    @property
    def is_ready(self) -> bool:
        """Whether it has a producer id."""
        return self._producer_id != _NONE

    async def init_producer_id(self) -> int:
        """Get a new producer id from any broker, in one attempt. Raises ``KafkaError``."""
        request = init_producer_id.InitProducerIdRequest(
            transactional_id=None,
            transaction_timeout=milliseconds(0),
            producer_id=ProducerId(_NONE),
            producer_epoch=cast("i16", _NONE),
        )
        response = await self._client.ask_any(request, self._request_timeout_s)
        if response.error_code is not ErrorCode.none:
            raise BrokerError(response.error_code)
        self._producer_id = int(response.producer_id)
        self._epoch = int(response.producer_epoch)
        self._sequences.clear()
        return self._producer_id

    def next_batch(self, topic: str, partition: int) -> Producer:
        """What the next batch to the partition says of its producer."""
        sequence = self._sequences.get((topic, partition), 0)
        return Producer(self._producer_id, self._epoch, sequence)

    async def send(
        self, topic: str, partition: int, records: Records, codec: CodecName = "none"
    ) -> Sent:
        """Send one batch with ``acks=all``, again and again, until it is acknowledged.

        Raises the last ``KafkaError`` when it is refused for good or the time is over; its ``definite`` says that no
        attempt had any effect.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._delivery_timeout_s
        producer = self.next_batch(topic, partition)
        batch = build(records, self._client.timestamp_ms(), producer, codec)
        topic_id = self._topic_id(topic)
        is_definite = True
        while True:
            timeout_s = min(self._request_timeout_s, deadline - loop.time())
            try:
                sent = await self._client.send_batch(
                    topic, partition, batch, acks=-1, timeout_s=timeout_s
                )
            except KafkaError as error:
                is_definite = is_definite and error.definite
                failure = error
            else:
                self._sequences[topic, partition] = (
                    producer.base_sequence + len(records)
                ) % SEQUENCES
                return sent
            if not _is_refused(failure):
                await asyncio.sleep(self._retry_backoff_s)
                await self._client.refresh_metadata()
                if self._topic_id(topic) == topic_id and loop.time() < deadline:
                    continue
            if not is_definite or _is_fenced(failure):
                self._bump_epoch()
            failure.definite = is_definite
            raise failure

    def _bump_epoch(self) -> None:
        self._sequences.clear()
        self._epoch += 1
        if self._epoch > self._max_epoch:
            self._producer_id = _NONE

    def _topic_id(self, topic: str) -> object:
        metadata = self._client.metadata.topics.get(topic)
        return None if metadata is None else metadata.topic_id


def _is_refused(error: KafkaError) -> bool:
    return isinstance(error, BrokerError) and error.code in _REFUSED


def _is_fenced(error: KafkaError) -> bool:
    return isinstance(error, BrokerError) and error.code in FENCED
