"""What a follower asks of its leader: records, and where epochs end. It knows the requests, and nothing of logs' fate.

Under ``inter.broker.protocol.version`` 2.6 a fetch does not say which epoch the follower's last record has.

Source: kafka.server.RemoteLeaderEndPoint of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v15.request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from kio.schema.fetch.v15.response import FetchResponse, PartitionData
from kio.schema.list_offsets.v7.request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kio.schema.offset_for_leader_epoch.v3.request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.log.log import Log
from nemesis.reference.model import UNDEFINED_EPOCH, BrokerEndPoint, EpochEndOffset, TopicPartition
from nemesis.reference.protocol.schema import maker
from nemesis.reference.server.connection import Connection
from nemesis.reference.server.fetch_session_handler import (
    FetchKey,
    FetchRequestData,
    FetchSessionHandler,
)
from nemesis.reference.server.partition_fetch_state import PartitionFetchState, topic_number

# Plain numbers: kio's own check of each would take longer than all the rest, and writing checks them too.
_FETCH_PARTITION = maker(FetchPartition)
_FETCH_TOPIC = maker(FetchTopic)
_FORGOTTEN_TOPIC = maker(ForgottenTopic)
_FETCH_REQUEST = maker(FetchRequest)
_REPLICA_STATE = maker(ReplicaState)
_EPOCH_REQUEST = maker(OffsetForLeaderEpochRequest)
_EPOCH_TOPIC = maker(OffsetForLeaderTopic)
_OFFSETS_REQUEST = maker(ListOffsetsRequest)
_OFFSETS_TOPIC = maker(ListOffsetsTopic)
_OFFSETS_PARTITION = maker(ListOffsetsPartition)
_EPOCH_PARTITION = maker(OffsetForLeaderPartition)


class Fetched(NamedTuple):
    """An answer to a fetch."""

    partitions: dict[FetchKey, PartitionData]
    is_full: bool
    """Whether it should tell of every partition."""


class RemoteLeaderEndPoint:
    """One leader, one connection, one fetch session at a time. Every failure of ``fetch`` ends the session."""

    def __init__(
        self,
        config: KafkaConfig,
        leader: BrokerEndPoint,
        *,
        connection: Connection,
        broker_epoch: Callable[[], int],
    ) -> None:
        self.leader = leader
        self._config = config
        self._connection = connection
        self._broker_epoch = broker_epoch
        self._tells_epochs = config.is_truncation_on_fetch_supported
        self._session = FetchSessionHandler()
        self._max_wait = timedelta(milliseconds=config.replica_fetch_wait_max_ms)
        self._timeout_s = config.replica_socket_timeout_ms / 1000
        self._replica_state: ReplicaState = _REPLICA_STATE(
            replica_id=config.broker_id, replica_epoch=-1
        )

    async def fetch(self, states: Iterable[PartitionFetchState]) -> Fetched | None:
        """Ask for what follows each of the logs; None if the session was refused: the next fetch begins another one.

        Raises NetworkError, and what an answer that makes no sense raises.
        """
        asked = {
            state.key: self._partition(state, state.partition.log)
            for state in states
            if state.partition.log is not None
        }
        data = self._session.build(asked)
        try:
            response = await self._send(self._fetch_request(data))
            partitions = _by_key(response)
        except BaseException:
            self._session.handle_error()
            raise
        if not self._session.handle_response(response):
            return None
        return Fetched(partitions, data.is_full)

    async def fetch_epoch_end_offsets(
        self, states: Iterable[PartitionFetchState]
    ) -> dict[TopicPartition, tuple[ErrorCode, EpochEndOffset]]:
        """Ask where the latest epoch of each log ends. Raises NetworkError."""
        by_topic: dict[str, list[OffsetForLeaderPartition]] = {}
        for state in states:
            log = state.partition.log
            if log is not None:
                by_topic.setdefault(state.topic_partition.topic, []).append(
                    _EPOCH_PARTITION(
                        partition=state.topic_partition.partition,
                        current_leader_epoch=state.leader_epoch,
                        leader_epoch=log.epoch_at_end,
                    )
                )
        response = await self._send(
            _EPOCH_REQUEST(
                replica_id=self._config.broker_id,
                topics=tuple(
                    _EPOCH_TOPIC(topic=name, partitions=tuple(partitions))
                    for name, partitions in by_topic.items()
                ),
            )
        )
        return {
            TopicPartition(topic.topic, end.partition): (
                end.error_code,
                EpochEndOffset(int(end.leader_epoch), int(end.end_offset)),
            )
            for topic in response.topics
            for end in topic.partitions
        }

    async def fetch_offsets(
        self, states: Iterable[PartitionFetchState], timestamp: int
    ) -> dict[TopicPartition, tuple[ErrorCode, int]]:
        """Ask where the leader's logs start (timestamp −2) or end (−1). Raises NetworkError."""
        by_topic: dict[str, list[ListOffsetsPartition]] = {}
        for state in states:
            by_topic.setdefault(state.topic_partition.topic, []).append(
                _OFFSETS_PARTITION(
                    partition_index=state.topic_partition.partition,
                    current_leader_epoch=state.leader_epoch,
                    timestamp=timestamp,
                )
            )
        response = await self._send(
            _OFFSETS_REQUEST(
                replica_id=self._config.broker_id,
                isolation_level=0,
                topics=tuple(
                    _OFFSETS_TOPIC(name=name, partitions=tuple(partitions))
                    for name, partitions in by_topic.items()
                ),
            )
        )
        return {
            TopicPartition(topic.name, partition.partition_index): (
                partition.error_code,
                int(partition.offset),
            )
            for topic in response.topics
            for partition in topic.partitions
        }

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def _send(self, request: Any) -> Any:
        return await self._connection.send(
            self.leader.host, self.leader.port, request, timeout_s=self._timeout_s
        )

    def _fetch_request(self, data: FetchRequestData) -> FetchRequest:
        broker_epoch = self._broker_epoch()
        if self._replica_state.replica_epoch != broker_epoch:
            self._replica_state = _REPLICA_STATE(
                replica_id=self._config.broker_id, replica_epoch=broker_epoch
            )
        by_topic: dict[int, list[FetchPartition]] = {}
        for (topic, _), partition in data.to_send.items():
            by_topic.setdefault(topic, []).append(partition)
        forgotten: dict[int, list[int]] = {}
        for topic, number in data.to_forget:
            forgotten.setdefault(topic, []).append(number)
        request: FetchRequest = _FETCH_REQUEST(
            replica_state=self._replica_state,
            max_wait=self._max_wait,
            min_bytes=1,
            max_bytes=self._config.replica_fetch_response_max_bytes,
            session_id=data.session_id,
            session_epoch=data.epoch,
            topics=tuple(
                _FETCH_TOPIC(topic_id=_topic_id(topic), partitions=tuple(partitions))
                for topic, partitions in by_topic.items()
            ),
            forgotten_topics_data=tuple(
                _FORGOTTEN_TOPIC(topic_id=_topic_id(topic), partitions=tuple(numbers))
                for topic, numbers in forgotten.items()
            ),
        )
        return request

    def _partition(self, state: PartitionFetchState, log: Log) -> FetchPartition:
        """What to ask for a partition. Most logs are as they were at the last fetch; then it is the same object."""
        last = state.asked
        last_fetched_epoch = log.epoch_at_end if self._tells_epochs else UNDEFINED_EPOCH
        if (
            last is not None
            and last.fetch_offset == log.log_end_offset
            and last.log_start_offset == log.log_start_offset
            and last.last_fetched_epoch == last_fetched_epoch
        ):
            return last
        made: FetchPartition = _FETCH_PARTITION(
            partition=state.topic_partition.partition,
            current_leader_epoch=state.leader_epoch,
            fetch_offset=log.log_end_offset,
            last_fetched_epoch=last_fetched_epoch,
            log_start_offset=log.log_start_offset,
            partition_max_bytes=self._config.replica_fetch_max_bytes,
        )
        state.asked = made
        return made


def _by_key(response: FetchResponse) -> dict[FetchKey, PartitionData]:
    return {
        (topic_number(topic.topic_id), data.partition_index): data
        for topic in response.responses
        for data in topic.partitions
    }


def _topic_id(number: int) -> UUID | None:
    return UUID(int=number) if number else None
