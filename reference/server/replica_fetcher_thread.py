"""One task per leader: fetches from it for every partition that this broker follows there.

Each fetch starts at the log's end and names the epoch of the last record, so that a leader whose log parted
from ours says where. Then the log is cut back before anything else of the answer counts, and if this leader's
epoch is unknown here the question is asked again from the new end (KIP-279). The answer to a fetch is dropped
for a partition that was given a new fetch state meanwhile, whatever it says: that is what makes a late
FENCED_LEADER_EPOCH harmless (KAFKA-7786).

Limits: full fetches, no sessions; a follower whose log lies outside the leader's (OFFSET_OUT_OF_RANGE) keeps
asking, which cannot happen while logs have no retention.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v15.request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kio.schema.fetch.v15.response import FetchResponse, PartitionData

from reference.cluster.errors import ReplicaError
from reference.cluster.partition import Partition
from reference.kafka_config import KafkaConfig
from reference.log.errors import KafkaStorageError, LogError, RecordError
from reference.log.log import Log
from reference.model import BrokerEndPoint, EpochEndOffset, TopicPartition
from reference.network.errors import NetworkError
from reference.protocol.schema import maker
from reference.server.connection import Connection

_logger = logging.getLogger(__name__)

# Plain numbers: kio's own check of each would take longer than all the rest, and writing checks them too.
_FETCH_PARTITION = maker(FetchPartition)
_FETCH_TOPIC = maker(FetchTopic)
_FETCH_REQUEST = maker(FetchRequest)
_REPLICA_STATE = maker(ReplicaState)

_FetchKey = tuple[int, int]
"""Topic id and partition. The id as a number, because UUIDs are hashed and compared in Python."""


@dataclass(slots=True, eq=False)
class PartitionFetchState:
    """Following one partition in one leader epoch; replaced, never reused, by the next LeaderAndIsr."""

    partition: Partition
    topic_id: UUID | None
    leader_epoch: int
    delayed_until: float = 0.0
    asked: FetchPartition | None = None
    """What was asked last; asked again for as long as the log stays as it is."""
    key: _FetchKey = field(init=False)

    def __post_init__(self) -> None:
        self.key = (_number(self.topic_id), self.partition.topic_partition.partition)


class ReplicaFetcherThread:
    """Fetches from one leader; partitions come and go while it runs."""

    def __init__(
        self,
        config: KafkaConfig,
        leader: BrokerEndPoint,
        *,
        connection: Connection,
        broker_epoch: Callable[[], int],
        on_storage_error: Callable[[TopicPartition, KafkaStorageError], None],
    ) -> None:
        """``on_storage_error`` is told the partition whose log can no longer be written."""
        self.leader = leader
        self._config = config
        self._connection = connection
        self._broker_epoch = broker_epoch
        self._on_storage_error = on_storage_error
        self._max_wait = timedelta(milliseconds=config.replica_fetch_wait_max_ms)
        self._states: dict[TopicPartition, PartitionFetchState] = {}
        self._topics: dict[int, FetchTopic] = {}
        """Those of the last request."""
        self._replica_state: ReplicaState = _REPLICA_STATE(
            replica_id=config.broker_id, replica_epoch=-1
        )
        self._changed = asyncio.Event()

    @property
    def topic_partitions(self) -> frozenset[TopicPartition]:
        return frozenset(self._states)

    def add(self, state: PartitionFetchState) -> None:
        """Start to follow; what the log holds without a known epoch is cut back to the high watermark first."""
        log = state.partition.log
        if log is None:
            return
        offset = self.initial_truncation_offset(log)
        if offset < log.log_end_offset:
            state.partition.truncate_to(offset)
        self._states[state.partition.topic_partition] = state
        self._changed.set()

    def remove(self, topic_partition: TopicPartition) -> None:
        """Stop following; an answer under way is dropped."""
        self._states.pop(topic_partition, None)

    async def run(self) -> None:
        """Fetch until cancelled."""
        try:
            while True:
                self._changed.clear()
                sent = self._due()
                if sent:
                    await self._fetch(sent)
                else:
                    await self._until_due()
        finally:
            await self._connection.close()

    def initial_truncation_offset(self, log: Log) -> int:
        """Where a log is cut when it begins to follow: nowhere if epochs tell where it parts from the leader's."""
        return log.high_watermark if log.latest_epoch is None else log.log_end_offset

    def truncation_offset(self, log: Log, diverging: EpochEndOffset) -> int:
        """Where to cut a log of which the leader says that it differs after ``diverging`` (KIP-101, KIP-279).

        The largest epoch that both may share is the leader's answer or the next smaller one that we know.
        """
        ours = log.end_offset_for_epoch(diverging.leader_epoch)
        if ours is None:
            return min(diverging.end_offset, log.log_end_offset)
        if ours.leader_epoch != diverging.leader_epoch:
            return min(ours.offset, log.log_end_offset)
        return min(ours.offset, diverging.end_offset, log.log_end_offset)

    async def _until_due(self) -> None:
        now = asyncio.get_running_loop().time()
        due = min((state.delayed_until for state in self._states.values()), default=None)
        try:
            async with asyncio.timeout(None if due is None else max(due - now, 0)):
                await self._changed.wait()
        except TimeoutError:
            pass

    def _due(self) -> dict[_FetchKey, PartitionFetchState]:
        now = asyncio.get_running_loop().time()
        return {state.key: state for state in self._states.values() if state.delayed_until <= now}

    async def _fetch(self, sent: dict[_FetchKey, PartitionFetchState]) -> None:
        try:
            response = await self._connection.send(
                self.leader.host,
                self.leader.port,
                self.build_fetch(sent),
                timeout_s=self._config.replica_socket_timeout_ms / 1000,
            )
            self.handle_response(sent, response)
        except NetworkError as error:
            _logger.info("fetching from broker %d: %s", self.leader.id, error)
            self._delay(sent.values())
        except Exception:
            # A bug of ours; without this task the broker would look alive and follow nobody.
            _logger.exception("fetching from broker %d failed", self.leader.id)
            self._delay(sent.values())

    def build_fetch(self, sent: dict[_FetchKey, PartitionFetchState]) -> FetchRequest:
        """The request for these partitions as their logs are now.

        Most logs are as they were at the last fetch. What is the same then is not made anew.
        """
        by_topic: dict[int, list[PartitionFetchState]] = {}
        for (topic, _), state in sent.items():
            by_topic.setdefault(topic, []).append(state)
        self._topics = {topic: self._topic(topic, states) for topic, states in by_topic.items()}
        broker_epoch = self._broker_epoch()
        if self._replica_state.replica_epoch != broker_epoch:
            self._replica_state = _REPLICA_STATE(
                replica_id=self._config.broker_id, replica_epoch=broker_epoch
            )
        request: FetchRequest = _FETCH_REQUEST(
            replica_state=self._replica_state,
            max_wait=self._max_wait,
            min_bytes=1,
            max_bytes=self._config.replica_fetch_response_max_bytes,
            topics=tuple(self._topics.values()),
            forgotten_topics_data=(),
        )
        return request

    def _topic(self, topic: int, states: list[PartitionFetchState]) -> FetchTopic:
        partitions = tuple(
            self._partition(state, state.partition.log)
            for state in states
            if state.partition.log is not None
        )
        last = self._topics.get(topic)
        if last is not None and last.partitions == partitions:
            return last
        made: FetchTopic = _FETCH_TOPIC(topic_id=states[0].topic_id, partitions=partitions)
        return made

    def _partition(self, state: PartitionFetchState, log: Log) -> FetchPartition:
        last = state.asked
        if (
            last is not None
            and last.fetch_offset == log.log_end_offset
            and last.last_fetched_epoch == log.epoch_at_end
            and last.log_start_offset == log.log_start_offset
        ):
            return last
        made: FetchPartition = _FETCH_PARTITION(
            partition=state.partition.topic_partition.partition,
            current_leader_epoch=state.leader_epoch,
            fetch_offset=log.log_end_offset,
            last_fetched_epoch=log.epoch_at_end,
            log_start_offset=log.log_start_offset,
            partition_max_bytes=self._config.replica_fetch_max_bytes,
        )
        state.asked = made
        return made

    def handle_response(
        self, sent: dict[_FetchKey, PartitionFetchState], response: FetchResponse
    ) -> None:
        """Apply an answer to those partitions whose state is still the one that was sent."""
        unanswered = dict(sent)
        for topic in response.responses:
            number = _number(topic.topic_id)
            for data in topic.partitions:
                state = unanswered.pop((number, data.partition_index), None)
                if state is not None and self._is_current(state):
                    self._handle_partition(state, data)
        if unanswered:
            self._delay(unanswered.values())

    def _handle_partition(self, state: PartitionFetchState, data: PartitionData) -> None:
        topic_partition = state.partition.topic_partition
        if data.error_code is ErrorCode.fenced_leader_epoch:
            # Only a LeaderAndIsr with the newer epoch can help; it brings a new state.
            _logger.info("%s: epoch %d is fenced", topic_partition, state.leader_epoch)
            self.remove(topic_partition)
            return
        if data.error_code is not ErrorCode.none:
            _logger.info("%s: fetch refused: %s", topic_partition, data.error_code.name)
            self._delay([state])
            return
        try:
            self._apply(state, data)
        except KafkaStorageError as error:
            self.remove(topic_partition)
            self._on_storage_error(topic_partition, error)
        except (LogError, RecordError, ReplicaError) as error:
            _logger.warning("%s: %s", topic_partition, error)
            self._delay([state])
        except Exception:
            # A bug of ours: the other partitions of the answer must not suffer from it.
            _logger.exception("%s: applying a fetched answer failed", topic_partition)
            self._delay([state])

    def _apply(self, state: PartitionFetchState, data: PartitionData) -> None:
        partition = state.partition
        diverging = data.diverging_epoch
        if partition.log is not None and diverging.end_offset >= 0 and diverging.epoch >= 0:
            end = EpochEndOffset(int(diverging.epoch), int(diverging.end_offset))
            partition.truncate_to(self.truncation_offset(partition.log, end))
            return
        records: Any = data.records
        partition.append_as_follower(bytes(records) if records else b"", data.high_watermark)
        if records:
            # To the end of the line: an answer may be full before its last partitions.
            self._states[partition.topic_partition] = self._states.pop(partition.topic_partition)

    def _is_current(self, state: PartitionFetchState) -> bool:
        return self._states.get(state.partition.topic_partition) is state

    def _delay(self, states: Iterable[PartitionFetchState]) -> None:
        until = asyncio.get_running_loop().time() + self._config.replica_fetch_backoff_ms / 1000
        for state in states:
            state.delayed_until = until


def _number(topic_id: UUID | None) -> int:
    return 0 if topic_id is None else topic_id.int
