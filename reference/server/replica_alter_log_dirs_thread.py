"""One task per log directory that replicas move to: copies their logs there, until the copies take over.

A future log follows the current one as a follower its leader: first it is cut where the two part, which epochs tell;
then batches are appended as they are. When it ends where the current log does, it takes its place in the same step,
so that nothing can be appended to the current log in between. When the current log is cut, so is the future one
(``LocalReplica.truncate_to``, for Kafka's markPartitionsForTruncation).

Source: kafka.server.ReplicaAlterLogDirsThread of Kafka 3.9 (KIP-113).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from nemesis.reference.cluster.errors import ReplicaError
from nemesis.reference.cluster.partition import Partition
from nemesis.reference.log.errors import KafkaStorageError, LogError, RecordError
from nemesis.reference.model import (
    UNDEFINED_EPOCH,
    UNDEFINED_OFFSET,
    EpochEndOffset,
    TopicPartition,
)
from nemesis.reference.server.offset_truncation import offset_truncation_state

_logger = logging.getLogger(__name__)


class ReplicaAlterLogDirsThread:
    """Copies for one partition after another; they come and go while it runs."""

    def __init__(
        self,
        *,
        chunk_bytes: int,
        throttle: Callable[[int], float],
        on_storage_error: Callable[[TopicPartition, KafkaStorageError], None],
    ) -> None:
        """``throttle`` is told how many bytes were copied and returns how many seconds to wait; ``on_storage_error`` of
        the partition that can no longer move."""
        self._chunk_bytes = chunk_bytes
        self._throttle = throttle
        self._on_storage_error = on_storage_error
        self._moving: dict[TopicPartition, Partition] = {}
        """The first is next."""
        self._truncating: set[TopicPartition] = set()
        """Those whose logs may part."""
        self._changed = asyncio.Event()

    @property
    def topic_partitions(self) -> frozenset[TopicPartition]:
        return frozenset(self._moving)

    def add(self, partition: Partition) -> None:
        """Copy the partition's log."""
        self._moving[partition.topic_partition] = partition
        self._truncating.add(partition.topic_partition)
        self._changed.set()

    def remove(self, topic_partition: TopicPartition) -> None:
        """Stop copying."""
        self._moving.pop(topic_partition, None)
        self._truncating.discard(topic_partition)

    async def run(self) -> None:
        """Copy until cancelled."""
        while True:
            self._changed.clear()
            if not self._moving:
                await self._changed.wait()
                continue
            topic_partition, partition = next(iter(self._moving.items()))
            self._moving[topic_partition] = self._moving.pop(topic_partition)
            await asyncio.sleep(self._throttle(self._move(partition)))

    def _move(self, partition: Partition) -> int:
        """One step; returns how many bytes were copied. A partition that cannot move is left as it is."""
        topic_partition = partition.topic_partition
        try:
            if topic_partition in self._truncating or partition.future_may_differ:
                if self._truncate(partition):
                    self._truncating.discard(topic_partition)
                    partition.future_may_differ = False
                return 0
            copied = partition.append_as_future_replica(self._chunk_bytes)
            if partition.maybe_replace_current_with_future_replica():
                self.remove(topic_partition)
        except KafkaStorageError as error:
            _logger.error("%s does not move: %s", topic_partition, error)
            self.remove(topic_partition)
            self._on_storage_error(topic_partition, error)
        except (LogError, RecordError, ReplicaError) as error:
            _logger.warning("%s does not move: %s", topic_partition, error)
            self.remove(topic_partition)
        except Exception:
            # A bug of ours: the other partitions must not suffer from it.
            _logger.exception("%s does not move", topic_partition)
            self.remove(topic_partition)
        else:
            return copied
        return 0

    def _truncate(self, partition: Partition) -> bool:
        """Cut the future log where its latest epoch ends in the current one; returns whether the logs agree now."""
        log, future = partition.log, partition.future_log
        if log is None or future is None:
            return True
        if future.latest_epoch is None:
            partition.truncate_future_replica(future.high_watermark)
            return True
        current_end = log.end_offset_for_epoch(future.latest_epoch)
        end = EpochEndOffset(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        if current_end is not None:
            end = EpochEndOffset(current_end.leader_epoch, current_end.offset)
        truncation = offset_truncation_state(future, end)
        partition.truncate_future_replica(truncation.offset)
        return truncation.truncation_completed
