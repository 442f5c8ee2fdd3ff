"""One task per leader: fetches from it for every partition that this broker follows there.

Each fetch starts at the log's end and names the epoch of the last record, so that a leader whose log parted
from ours says where. Then the log is cut back before anything else of the answer counts, and if this leader's
epoch is unknown here the question is asked again from the new end (KIP-279). Under
``inter.broker.protocol.version`` 2.6 a fetch names no epoch: whoever becomes a follower first asks its leader where
its latest epoch ends, cuts, and asks again until the logs agree; only then it fetches. Either way a log of which no
epoch is known is cut to the high watermark. The answer to a request is dropped
for a partition that was given a new fetch state meanwhile, whatever it says: that is what makes a late
FENCED_LEADER_EPOCH harmless (KAFKA-7786).

A log that ends before the leader's begins (OFFSET_OUT_OF_RANGE: the leader has deleted what would follow) is given up
and begins anew where the leader's does; one that ends behind the leader's is cut there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v15.response import PartitionData

from nemesis.reference.cluster.errors import ReplicaError
from nemesis.reference.cluster.partition_reads import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.log.errors import KafkaStorageError, LogError, RecordError
from nemesis.reference.log.log import Log
from nemesis.reference.model import BrokerEndPoint, EpochEndOffset, TopicPartition
from nemesis.reference.network.errors import NetworkError
from nemesis.reference.server.connection import Connection
from nemesis.reference.server.fetch_session_handler import FetchKey
from nemesis.reference.server.offset_truncation import offset_truncation_state
from nemesis.reference.server.partition_fetch_state import PartitionFetchState
from nemesis.reference.server.remote_leader_end_point import RemoteLeaderEndPoint
from nemesis.reference.trace import Kind

_logger = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")


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
        self._leader_end_point = RemoteLeaderEndPoint(
            config, leader, connection=connection, broker_epoch=broker_epoch
        )
        self._on_storage_error = on_storage_error
        self._states: dict[TopicPartition, PartitionFetchState] = {}
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
        state.is_truncating = (
            not self._config.is_truncation_on_fetch_supported and log.latest_epoch is not None
        )
        self._states[state.topic_partition] = state
        self._changed.set()

    def remove(self, topic_partition: TopicPartition) -> None:
        """Stop following; an answer under way is dropped."""
        self._states.pop(topic_partition, None)

    async def run(self) -> None:
        """Truncate and fetch until cancelled."""
        try:
            while True:
                self._changed.clear()
                due = self._due()
                truncating = [state for state in due.values() if state.is_truncating]
                outside = [state for state in due.values() if state.is_out_of_range]
                if outside:
                    await self._ask(due, self._fetch_bounds(outside))
                elif truncating:
                    await self._ask(due, self._truncate(truncating))
                elif due:
                    await self._ask(due, self._fetch(due))
                else:
                    await self._until_due()
        finally:
            await self._leader_end_point.close()

    def initial_truncation_offset(self, log: Log) -> int:
        """Where a log is cut when it begins to follow: nowhere if epochs tell where it parts from the leader's."""
        return log.high_watermark if log.latest_epoch is None else log.log_end_offset

    async def _until_due(self) -> None:
        now = asyncio.get_running_loop().time()
        due = min((state.delayed_until for state in self._states.values()), default=None)
        try:
            async with asyncio.timeout(None if due is None else max(due - now, 0)):
                await self._changed.wait()
        except TimeoutError:
            pass

    def _due(self) -> dict[FetchKey, PartitionFetchState]:
        now = asyncio.get_running_loop().time()
        return {state.key: state for state in self._states.values() if state.delayed_until <= now}

    async def _ask(
        self, due: dict[FetchKey, PartitionFetchState], conversation: Awaitable[None]
    ) -> None:
        """One request to the leader; after trouble all of the partitions wait."""
        try:
            await conversation
        except NetworkError as error:
            _logger.info("fetching from broker %d: %s", self.leader.id, error)
            for state in due.values():
                if self._states.get(state.topic_partition) is state:
                    self._note(state, ErrorCode.network_exception)
            self._delay(due.values())
        except Exception:
            # A bug of ours; without this task the broker would look alive and follow nobody.
            _logger.exception("fetching from broker %d failed", self.leader.id)
            self._delay(due.values())

    async def _truncate(self, states: list[PartitionFetchState]) -> None:
        ends = await self._leader_end_point.fetch_epoch_end_offsets(states)
        for state in states:
            if state.topic_partition in ends:
                error, end = ends[state.topic_partition]
                self._handle(state, error, self._cut, end)
            else:
                self._delay([state])

    async def _fetch_bounds(self, states: list[PartitionFetchState]) -> None:
        ends = await self._leader_end_point.fetch_offsets(states, LATEST_TIMESTAMP)
        starts = await self._leader_end_point.fetch_offsets(states, EARLIEST_TIMESTAMP)
        for state in states:
            key = state.topic_partition
            if key in ends and key in starts:
                error = ends[key][0] if ends[key][0] is not ErrorCode.none else starts[key][0]
                self._handle(state, error, self._enter, (starts[key][1], ends[key][1]))
            else:
                self._delay([state])

    async def _fetch(self, sent: dict[FetchKey, PartitionFetchState]) -> None:
        fetched = await self._leader_end_point.fetch(sent.values())
        if fetched is None:
            return
        for key, data in fetched.partitions.items():
            state = sent.get(key)
            if state is not None:
                self._handle(state, data.error_code, self._take_in, data)
        if fetched.is_full:
            self._delay(state for key, state in sent.items() if key not in fetched.partitions)

    def _handle(
        self,
        state: PartitionFetchState,
        error: ErrorCode,
        apply: Callable[[PartitionFetchState, _Answer], None],
        answer: _Answer,
    ) -> None:
        """Apply what the leader says of one partition, if it is not an error, and still is about this state."""
        topic_partition = state.topic_partition
        if self._states.get(topic_partition) is not state:
            return
        self._note(state, error)
        if error is ErrorCode.fenced_leader_epoch:
            # Only a LeaderAndIsr with the newer epoch can help; it brings a new state.
            _logger.info("%s: epoch %d is fenced", topic_partition, state.leader_epoch)
            self.remove(topic_partition)
            return
        if error is ErrorCode.offset_out_of_range:
            state.is_out_of_range = True
            return
        if error is not ErrorCode.none:
            _logger.info("%s: refused by its leader: %s", topic_partition, error.name)
            self._delay([state])
            return
        try:
            apply(state, answer)
        except KafkaStorageError as failure:
            self.remove(topic_partition)
            self._on_storage_error(topic_partition, failure)
        except (LogError, RecordError, ReplicaError) as failure:
            _logger.warning("%s: %s", topic_partition, failure)
            self._delay([state])
        except Exception:
            # A bug of ours: the other partitions of the answer must not suffer from it.
            _logger.exception("%s: applying the leader's answer failed", topic_partition)
            self._delay([state])

    def _note(self, state: PartitionFetchState, error: ErrorCode) -> None:
        """Record what the leader answers for a partition, if it is another error than before."""
        if error is not state.last_error:
            state.last_error = error
            state.partition.trace(
                Kind.FETCH_ANSWERED,
                peer=self.leader.id,
                leader_epoch=state.leader_epoch,
                error=error.name.upper(),
            )

    def _take_in(self, state: PartitionFetchState, data: PartitionData) -> None:
        diverging = data.diverging_epoch
        if diverging.end_offset >= 0 and diverging.epoch >= 0:
            self._cut(state, EpochEndOffset(int(diverging.epoch), int(diverging.end_offset)))
            return
        records: Any = data.records
        state.partition.append_as_follower(
            bytes(records) if records else b"", data.high_watermark, data.log_start_offset
        )
        if records:
            # To the end of the line: an answer may be full before its last partitions.
            self._states[state.topic_partition] = self._states.pop(state.topic_partition)

    def _enter(self, state: PartitionFetchState, bounds: tuple[int, int]) -> None:
        """Let the log end where the leader has something to follow it with: it ended outside the leader's."""
        start, end = bounds
        log = state.partition.log
        if log is not None and end < log.log_end_offset:
            state.partition.truncate_to(end)
        elif log is not None and log.log_end_offset < start:
            state.partition.truncate_fully_and_start_at(start)
        else:
            # The leader could not tell where an epoch ends, perhaps it can later.
            self._delay([state])
        state.is_out_of_range = False

    def _cut(self, state: PartitionFetchState, end: EpochEndOffset) -> None:
        log = state.partition.log
        if log is None:
            return
        truncation = offset_truncation_state(log, end)
        state.partition.truncate_to(truncation.offset)
        if state.is_truncating and not truncation.truncation_completed:
            if log.latest_epoch is not None:
                return  # asks again
            state.partition.truncate_to(log.high_watermark)
        state.is_truncating = False

    def _delay(self, states: Iterable[PartitionFetchState]) -> None:
        until = asyncio.get_running_loop().time() + self._config.replica_fetch_backoff_ms / 1000
        for state in states:
            state.delayed_until = until
