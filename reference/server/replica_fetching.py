"""The threads that copy records into this broker's logs: from leaders, and from one log directory to another."""

from __future__ import annotations

from collections.abc import Callable

from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.log.errors import KafkaStorageError
from nemesis.reference.model import TopicPartition
from nemesis.reference.server.connection import ConnectionFactory
from nemesis.reference.server.replica_alter_log_dirs_manager import ReplicaAlterLogDirsManager
from nemesis.reference.server.replica_fetcher_manager import ReplicaFetcherManager

OnStorageError = Callable[[TopicPartition, KafkaStorageError], None]


class ReplicaFetching:
    """Both managers of fetcher threads of one broker."""

    def __init__(
        self,
        config: KafkaConfig,
        *,
        connect: ConnectionFactory,
        broker_epoch: Callable[[], int],
        on_storage_error: OnStorageError,
        on_future_log_error: OnStorageError,
    ) -> None:
        self.leaders = ReplicaFetcherManager(
            config, connect=connect, broker_epoch=broker_epoch, on_storage_error=on_storage_error
        )
        """Fetches from leaders, for the followers of this broker."""
        self.log_dirs = ReplicaAlterLogDirsManager(config, on_storage_error=on_future_log_error)
        """Copies replicas that move between log directories."""

    def stop(self, topic_partition: TopicPartition) -> None:
        """Copy nothing more into the logs of this replica."""
        self.leaders.remove_fetchers([topic_partition])
        self.log_dirs.remove_fetchers([topic_partition])

    def shutdown_idle_threads(self) -> None:
        """End the threads that have no partition left."""
        self.leaders.shutdown_idle_fetcher_threads()
        self.log_dirs.shutdown_idle_fetcher_threads()

    async def shutdown(self) -> None:
        """End all threads."""
        await self.leaders.shutdown()
        await self.log_dirs.shutdown()
