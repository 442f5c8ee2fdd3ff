"""Which partition is fetched from which leader: one ``ReplicaFetcherThread`` per leader, started and ended as
needed.
"""

from __future__ import annotations

from collections.abc import Callable

from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.log.errors import KafkaStorageError
from nemesis.reference.model import BrokerEndPoint, TopicPartition
from nemesis.reference.server.abstract_fetcher_manager import AbstractFetcherManager
from nemesis.reference.server.connection import ConnectionFactory
from nemesis.reference.server.partition_fetch_state import PartitionFetchState
from nemesis.reference.server.replica_fetcher_thread import ReplicaFetcherThread


class ReplicaFetcherManager(AbstractFetcherManager[BrokerEndPoint, ReplicaFetcherThread]):
    """The fetchers of the partitions that this broker follows, by leader."""

    def __init__(
        self,
        config: KafkaConfig,
        *,
        connect: ConnectionFactory,
        broker_epoch: Callable[[], int],
        on_storage_error: Callable[[TopicPartition, KafkaStorageError], None],
    ) -> None:
        super().__init__()
        self._config = config
        self._connect = connect
        self._broker_epoch = broker_epoch
        self._on_storage_error = on_storage_error

    def add_fetcher(self, leader: BrokerEndPoint, state: PartitionFetchState) -> None:
        """Follow ``leader`` for one partition; a fetcher that it has elsewhere must have been removed."""

        def start() -> ReplicaFetcherThread:
            return ReplicaFetcherThread(
                self._config,
                leader,
                connection=self._connect(f"broker-{self._config.broker_id}-fetcher-{leader.id}"),
                broker_epoch=self._broker_epoch,
                on_storage_error=self._on_storage_error,
            )

        self._thread(leader, f"replica-fetcher-{leader.id}", start).add(state)
