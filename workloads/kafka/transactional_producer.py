"""TransactionalProducer: one transaction at a time, each request sent again until it is answered (KIP-98, KIP-360).

A producer begins with ``initialize``: the coordinator of its transactional id gives it an epoch, and has aborted what
an earlier producer of this id left open. Partitions and offsets are added to a transaction before anything is written
to them. ``end`` commits or aborts.

What is retried, as by Kafka's producer: requests without an answer, CONCURRENT_TRANSACTIONS,
COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, and what a leader that moves answers. A
producer whose epoch is refused is fenced: another one has its transactional id, and it has to end.

A request that was given up, or sent again, may still arrive. With ``transaction.version`` 0 a late EndTxn ends the
next transaction of its epoch (KAFKA-17754), and a late batch opens a transaction without an end (KAFKA-14402).
``is_in_doubt`` says that something may arrive late; a new epoch refuses it.

With ``transaction.version`` 2 each end answers the next epoch, and nothing is added before it is written to
(``implicit_transactions``).

Source: TransactionManager and Sender of Kafka 3.9's clients.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kio.schema.errors import ErrorCode
from kio.schema.produce.v9.request import ProduceRequest

from nemesis.workloads.kafka import group_requests
from nemesis.workloads.kafka import transaction_requests as requests
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.compression import CodecName
from nemesis.workloads.kafka.errors import BrokerError, KafkaError
from nemesis.workloads.kafka.group_offset_requests import (
    Committed,
)
from nemesis.workloads.kafka.group_requests import Membership
from nemesis.workloads.kafka.idempotent_producer import SEQUENCES, Records
from nemesis.workloads.kafka.implicit_transactions import IMPLICIT, ImplicitProduceRequest
from nemesis.workloads.kafka.produces import Sent
from nemesis.workloads.kafka.record_batch import Producer, build
from nemesis.workloads.kafka.transaction_requests import (
    NO_PRODUCER,
    ProducerIdentity,
    TopicPartition,
)

RETRY_BACKOFF_S: Final = 0.1
_FATAL: Final = frozenset(
    {
        ErrorCode.producer_fenced,
        ErrorCode.invalid_producer_epoch,
        ErrorCode.invalid_producer_id_mapping,
        ErrorCode.invalid_txn_state,
        ErrorCode.transactional_id_authorization_failed,
    }
)
"""The producer has to end."""
_REFUSED: Final = _FATAL | {
    ErrorCode.transaction_abortable,
    ErrorCode.invalid_request,
    ErrorCode.invalid_transaction_timeout,
    ErrorCode.out_of_order_sequence_number,
    ErrorCode.unknown_producer_id,
    ErrorCode.message_too_large,
    ErrorCode.record_list_too_large,
    ErrorCode.invalid_record,
    ErrorCode.offset_metadata_too_large,
    ErrorCode.illegal_generation,
    ErrorCode.unknown_member_id,
    ErrorCode.fenced_instance_id,
}
"""Sending it again does not help."""
_NOT_DONE: Final = _REFUSED | {
    ErrorCode.concurrent_transactions,
    ErrorCode.unknown_topic_or_partition,
    ErrorCode.operation_not_attempted,
    ErrorCode.unstable_offset_commit,
}
"""Answered before anything was written.

NOT_COORDINATOR and COORDINATOR_LOAD_IN_PROGRESS may follow an append: a coordinator that is elected again while it
waits for followers answers so, although its log has the request.
"""
_MOVED: Final = frozenset({ErrorCode.not_coordinator, ErrorCode.coordinator_not_available})


class _Coordinator:
    """The broker that coordinates a transactional id or a group, as far as the producer knows."""

    def __init__(self, client: KafkaClient, find_request: Any) -> None:
        self.node: int | None = None
        self._client = client
        self._find_request = find_request

    async def request(self, request: Any, timeout_s: float) -> Any:
        """Send one request to the coordinator, which is found before if it is not known. Raises ``KafkaError``."""
        if self.node is None:
            await self._find(timeout_s)
        try:
            return await self._client.request_coordinator(
                -1 if self.node is None else self.node, request, timeout_s
            )
        except KafkaError:
            self.node = None
            raise

    async def _find(self, timeout_s: float) -> None:
        try:
            response = await self._client.ask_any(self._find_request, timeout_s)
        except KafkaError as error:
            error.definite = True  # the request itself was not sent
            raise
        answer = response.coordinators[0]
        if answer.error_code is not ErrorCode.none:
            raise BrokerError(answer.error_code, definite=True)
        if int(answer.node_id) not in self._client.metadata.brokers:
            await self._client.refresh_metadata()
        self.node = int(answer.node_id)


class TransactionalProducer:
    """Sends through a client. Not for concurrent use."""

    def __init__(
        self,
        client: KafkaClient,
        transactional_id: str,
        *,
        request_timeout_s: float,
        delivery_timeout_s: float,
        transaction_timeout_ms: int,
        transaction_version: int = 0,
    ) -> None:
        """``transaction_version`` is that of the cluster."""
        self.is_implicit = transaction_version >= IMPLICIT
        """Whether brokers add partitions and groups to a transaction without a request."""
        self.is_fenced = False
        """Whether another producer has the transactional id, or the coordinator has refused this one for good."""
        self.is_in_doubt = False
        """Whether a request of this epoch may arrive late."""
        self.is_open = False
        """Whether a transaction may have begun that has not ended, as far as the producer knows."""
        self.needs_epoch = False
        """Whether a batch was given up: the next one needs another epoch, with new sequence numbers."""
        self.unanswered = 0
        """How many requests of the last operation may still arrive."""
        self._client = client
        self._transactional_id = transactional_id
        self._request_timeout_s = request_timeout_s
        self._delivery_timeout_s = delivery_timeout_s
        self.transaction_timeout_ms = transaction_timeout_ms
        self._coordinator = _Coordinator(client, requests.find_request(transactional_id))
        self._group_coordinators: dict[str, _Coordinator] = {}
        self._producer_id = self._epoch = NO_PRODUCER
        self._sequences: dict[TopicPartition, int] = {}
        self._added: set[TopicPartition] = set()

    @property
    def identity(self) -> ProducerIdentity:
        """Whom requests name; −1 for id and epoch before ``initialize``."""
        return ProducerIdentity(self._transactional_id, self._producer_id, self._epoch)

    @property
    def is_ready(self) -> bool:
        """Whether the producer has an id and is not fenced."""
        return self._producer_id != NO_PRODUCER and not self.is_fenced

    @property
    def node(self) -> int | None:
        """The coordinator, as far as the producer knows."""
        return self._coordinator.node

    async def initialize(self) -> None:
        """Begin as a new producer of the transactional id: it gets a new epoch, and the former one is fenced.

        Raises the last ``KafkaError`` when it is refused or the time has ended.
        """
        await self._initialize(ProducerIdentity(self._transactional_id, NO_PRODUCER, NO_PRODUCER))

    async def raise_epoch(self) -> None:
        """Go on in the next epoch, outside of a transaction (KIP-360). Raises as ``initialize`` does."""
        await self._initialize(self.identity)

    async def _initialize(self, producer: ProducerIdentity) -> None:
        request = requests.init_request(producer, self.transaction_timeout_ms)
        response = await self._answered(self._coordinator, request, requests.own_error)
        self._become(response)
        self._added.clear()
        self.is_open = False

    def _become(self, response: Any) -> None:
        """Take the id and the epoch of an answer; what the producer sent in its former epoch is refused now."""
        self._producer_id, self._epoch = int(response.producer_id), int(response.producer_epoch)
        self._sequences.clear()
        self.is_in_doubt = self.needs_epoch = False

    async def add_partitions(self, tps: Iterable[TopicPartition]) -> None:
        """Add partitions to the transaction. Raises ``KafkaError``; its ``definite`` says that none is added."""
        missing = [tp for tp in tps if tp not in self._added]
        if missing and not self.is_implicit:
            self.is_open = True
            request = requests.add_partitions_request(self.identity, missing)
            await self._answered(self._coordinator, request, requests.added_error)
        self._added.update(missing)

    def next_batch(self, topic: str, partition: int) -> Producer:
        """What the next batch to the partition says of its producer."""
        sequence = self._sequences.get((topic, partition), 0)
        return Producer(self._producer_id, self._epoch, sequence)

    async def send(
        self, topic: str, partition: int, records: Records, codec: CodecName = "none"
    ) -> Sent:
        """Send one batch to an added partition, again and again, until it is acknowledged.

        Raises the last ``KafkaError`` when it is refused for good or the time has ended; its ``definite`` says that no
        attempt had any effect.
        """
        assert (topic, partition) in self._added
        self.is_open = True
        kind = ImplicitProduceRequest if self.is_implicit else ProduceRequest
        producer = self.next_batch(topic, partition)
        batch = build(records, self._client.timestamp_ms(), producer, codec, is_transactional=True)

        async def attempt(timeout_s: float) -> Sent:
            try:
                return await self._client.send_batch(
                    topic,
                    partition,
                    batch,
                    acks=-1,
                    timeout_s=timeout_s,
                    transactional_id=self._transactional_id,
                    kind=kind,
                )
            except BrokerError as error:
                error.definite |= error.code in _REFUSED
                raise

        try:
            sent: Sent = await self._retried(attempt, self._client.refresh_metadata)
        except KafkaError:
            self.needs_epoch = True
            raise
        self._sequences[topic, partition] = (producer.base_sequence + len(records)) % SEQUENCES
        return sent

    async def commit_offsets(
        self, member: Membership, commits: Mapping[TopicPartition, Committed]
    ) -> None:
        """Add the member's group to the transaction and commit offsets in it. Raises ``KafkaError``."""
        self.is_open = True
        if not self.is_implicit:
            request = requests.add_offsets_request(self.identity, member.group)
            await self._answered(self._coordinator, request, requests.own_error)
        await self._answered(
            self._group_coordinator(member.group),
            requests.commit_offsets_request(
                self.identity, member, commits, is_implicit=self.is_implicit
            ),
            requests.committed_error,
        )

    def _group_coordinator(self, group: str) -> _Coordinator:
        if group not in self._group_coordinators:
            find_request = group_requests.find_request(group)
            self._group_coordinators[group] = _Coordinator(self._client, find_request)
        return self._group_coordinators[group]

    async def end(self, *, is_commit: bool) -> None:
        """Commit or abort the transaction. Raises ``KafkaError``; its ``definite`` says that this was not decided."""
        request = requests.end_request(
            self.identity, is_commit=is_commit, is_implicit=self.is_implicit
        )
        response = await self._answered(self._coordinator, request, requests.own_error)
        if self.is_implicit:
            self._become(response)
        self._added.clear()
        self.is_open = False

    async def _answered(
        self, coordinator: _Coordinator, request: Any, error_of: Callable[[Any], ErrorCode]
    ) -> Any:
        """Send a request to a coordinator until it is answered without an error that a retry may end."""

        async def attempt(timeout_s: float) -> Any:
            response = await coordinator.request(request, timeout_s)
            error = error_of(response)
            if error in _MOVED:
                coordinator.node = None
            if error is not ErrorCode.none:
                raise BrokerError(error, definite=error in _NOT_DONE)
            return response

        return await self._retried(attempt, None)

    async def _retried(
        self, attempt: Callable[[float], Any], before_retry: Callable[[], Any] | None
    ) -> Any:
        """Return what the first attempt that succeeds returns.

        An error that is raised is definite if no attempt had any effect, or can have one yet.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._delivery_timeout_s
        is_definite = True
        self.unanswered = 0
        while True:
            try:
                return await attempt(min(self._request_timeout_s, deadline - loop.time()))
            except KafkaError as error:
                is_definite = is_definite and error.definite
                failure = error
            except asyncio.CancelledError:
                self.is_in_doubt = True
                raise
            self.is_in_doubt |= not failure.definite
            self.unanswered += not failure.definite
            if _is_fatal(failure):
                self.is_fenced = True
            if not _is_refused(failure):
                await asyncio.sleep(RETRY_BACKOFF_S)
                if before_retry is not None:
                    await before_retry()
                if loop.time() < deadline:
                    continue
            failure.definite = is_definite
            raise failure


def _is_fatal(error: KafkaError) -> bool:
    return isinstance(error, BrokerError) and error.code in _FATAL


def _is_refused(error: KafkaError) -> bool:
    return isinstance(error, BrokerError) and error.code in _REFUSED
