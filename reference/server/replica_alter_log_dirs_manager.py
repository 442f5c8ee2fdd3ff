"""Which replicas move to which log directory: one ``ReplicaAlterLogDirsThread`` per directory that they move to.

All of them together copy no more than ``replica.alter.log.dirs.io.max.bytes.per.second``.

Source: kafka.server.ReplicaAlterLogDirsManager of Kafka 3.9, whose threads are as many as it is told and have no
directory of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from nemesis.reference.cluster.partition import Partition
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.log.errors import KafkaStorageError
from nemesis.reference.model import TopicPartition
from nemesis.reference.server.abstract_fetcher_manager import AbstractFetcherManager
from nemesis.reference.server.replica_alter_log_dirs_thread import ReplicaAlterLogDirsThread

_CHUNKS_A_SECOND: Final = 10
"""So finely what is copied is spread, where batches are smaller."""


class ReplicationQuota:
    """So many bytes per second, whoever copies them."""

    def __init__(self, bytes_per_second: int) -> None:
        self._bytes_per_second = bytes_per_second
        self._paid_until = 0.0

    def record(self, copied_bytes: int) -> float:
        """Take note of them; returns for how many seconds nothing more may be copied."""
        now = asyncio.get_running_loop().time()
        self._paid_until = max(self._paid_until, now) + copied_bytes / self._bytes_per_second
        return self._paid_until - now


class ReplicaAlterLogDirsManager(AbstractFetcherManager[str, ReplicaAlterLogDirsThread]):
    """The copiers of the replicas that move, by the directory that they move to."""

    def __init__(
        self,
        config: KafkaConfig,
        *,
        on_storage_error: Callable[[TopicPartition, KafkaStorageError], None],
    ) -> None:
        super().__init__()
        self._on_storage_error = on_storage_error
        bytes_per_second = config.replica_alter_log_dirs_io_max_bytes_per_second
        self._quota = ReplicationQuota(bytes_per_second)
        self._chunk_bytes = min(
            config.replica_fetch_max_bytes, bytes_per_second // _CHUNKS_A_SECOND
        )

    def add_fetcher(self, partition: Partition) -> None:
        """Copy the partition's log to its future log, beginning with the question where the two part."""
        future = partition.future_log
        if future is None:
            return
        self.remove_fetchers([partition.topic_partition])

        def start() -> ReplicaAlterLogDirsThread:
            return ReplicaAlterLogDirsThread(
                chunk_bytes=self._chunk_bytes,
                throttle=self._quota.record,
                on_storage_error=self._on_storage_error,
            )

        name = f"replica-alter-log-dirs-{future.log_dir}"
        self._thread(future.log_dir, name, start).add(partition)
