"""All replicas of one broker, as the controller wants them.

The three control requests are checked here, in one place each: a controller epoch below one that was seen is a
deposed controller's (STALE_CONTROLLER_EPOCH), a broker epoch below our own was meant for an earlier life of
this broker (STALE_BROKER_EPOCH, KIP-380). They are applied without an await in between, hence atomically.

The manager consists of parts: the hosted partitions, their roles, their fetchers, their storage failures, and the
requests of clients and followers (appends, fetches, offset lookups, record deletions).

The controller epoch is held in memory only, as in Kafka: a restarted broker believes the first controller that
it hears.

Limits: no quotas of replication between brokers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kio.schema.errors import ErrorCode

from nemesis.reference.cluster.errors import ReplicaError
from nemesis.reference.cluster.local_replica import trace_log_loaded
from nemesis.reference.delayed_operations import DelayedOperationPurgatory
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.kafka_scheduler import KafkaScheduler
from nemesis.reference.log.errors import KafkaStorageError, LogError
from nemesis.reference.log.log_directory import can_be_future
from nemesis.reference.log.log_manager import LogManager
from nemesis.reference.model import (
    Broker,
    BrokerEndPoint,
    LeaderAndIsrPartitionState,
    StopReplicaPartitionState,
    TopicPartition,
    UpdateMetadataPartitionState,
)
from nemesis.reference.server.alter_partition_manager import AlterPartitionManager
from nemesis.reference.server.connection import ConnectionFactory, connection_factory
from nemesis.reference.server.control_traces import (
    trace_metadata,
    trace_roles_answered,
    trace_stops_answered,
)
from nemesis.reference.server.coordinator_roles import RoleListener
from nemesis.reference.server.hosted_partitions import HostedPartitions
from nemesis.reference.server.metadata_cache import MetadataCache
from nemesis.reference.server.offset_lookups import OffsetLookups
from nemesis.reference.server.record_appends import RecordAppends
from nemesis.reference.server.record_deletions import RecordDeletions
from nemesis.reference.server.record_fetches import RecordFetches
from nemesis.reference.server.replica_fetching import ReplicaFetching
from nemesis.reference.server.replica_roles import ReplicaRoles
from nemesis.reference.server.storage_failures import StorageFailures
from nemesis.reference.trace import Kind, Tracer

_logger = logging.getLogger(__name__)

_IDLE_THREADS_INTERVAL_S: Final = 10.0


class ReplicaManager:
    """Admits the controller's requests, and does the recurring work; starts and stops with the broker."""

    def __init__(
        self,
        config: KafkaConfig,
        *,
        tracer: Tracer,
        log_manager: LogManager,
        metadata_cache: MetadataCache,
        alter_partition_manager: AlterPartitionManager,
        scheduler: KafkaScheduler,
        broker_epoch: Callable[[], int],
        connect: ConnectionFactory | None = None,
        on_log_dir_failure: Callable[[], None] = lambda: None,
    ) -> None:
        """``broker_epoch`` returns this broker's own epoch, −1 before it is registered. Needs a running loop.

        ``on_log_dir_failure`` is called when one log directory has failed and others are left.
        """
        self._config = config
        self._tracer = tracer
        self._log_manager = log_manager
        self._metadata_cache = metadata_cache
        self._alter_partition_manager = alter_partition_manager
        self._scheduler = scheduler
        self._broker_epoch = broker_epoch
        self.controller_epoch = 0
        self.hosted = HostedPartitions(metadata_cache)
        self.fetching = ReplicaFetching(
            config,
            connect=connect or connection_factory(config),
            broker_epoch=broker_epoch,
            on_storage_error=self._handle_storage_error,
            on_future_log_error=self._handle_future_log_error,
        )
        self.storage_failures = StorageFailures(
            tracer=tracer,
            hosted=self.hosted,
            log_manager=log_manager,
            fetching=self.fetching,
            on_log_dir_failure=on_log_dir_failure,
        )
        self._roles = ReplicaRoles(
            config,
            tracer=tracer,
            log_manager=log_manager,
            metadata_cache=metadata_cache,
            alter_partition_manager=alter_partition_manager,
            broker_epoch=broker_epoch,
            hosted=self.hosted,
            fetching=self.fetching,
            on_storage_error=self.storage_failures.handle,
            on_progress=self.complete_delayed_operations,
        )
        self.appends = RecordAppends(
            partition_of=self.hosted.partition, on_storage_error=self.storage_failures.handle
        )
        self.fetches = RecordFetches(
            config,
            hosted=self.hosted,
            metadata_cache=metadata_cache,
            note_storage_error=self.storage_failures.note,
        )
        self.offsets = OffsetLookups(
            partition_of=self.hosted.partition, note_storage_error=self.storage_failures.note
        )
        self.record_deletions = RecordDeletions(
            partition_of=self.hosted.partition,
            is_alive=metadata_cache.has_alive_broker,
            on_storage_error=self.storage_failures.handle,
        )
        self._role_listeners: list[RoleListener] = []
        self.delayed_elections = DelayedOperationPurgatory[TopicPartition]()
        """ElectLeaders requests that wait for an UpdateMetadata."""

    def add_role_listener(self, listener: RoleListener) -> None:
        """Let it know of every change of roles from now on."""
        self._role_listeners.append(listener)
        self._roles.role_listeners.append(listener)
        self.storage_failures.role_listeners.append(listener)

    def _handle_storage_error(
        self, topic_partition: TopicPartition, error: KafkaStorageError
    ) -> None:
        self.storage_failures.handle(topic_partition, error)

    def _handle_future_log_error(
        self, topic_partition: TopicPartition, error: KafkaStorageError
    ) -> None:
        self.storage_failures.handle_future_log(topic_partition, error)

    async def startup(self) -> None:
        """Report the logs that are there, then start the recurring work."""
        for log in self._log_manager.all_logs().values():
            trace_log_loaded(self._tracer, log)
        self._alter_partition_manager.startup()
        self._scheduler.schedule(
            "isr-expiration",
            self.maybe_shrink_isr,
            period_s=self._config.replica_lag_time_max_ms / 2000,
        )
        self._scheduler.schedule(
            "highwatermark-checkpoint",
            self.checkpoint_high_watermarks,
            period_s=self._config.replica_high_watermark_checkpoint_interval_ms / 1000,
        )
        self._scheduler.schedule(
            "shutdown-idle-replica-alter-log-dirs-thread",
            self.fetching.log_dirs.shutdown_idle_fetcher_threads,
            period_s=_IDLE_THREADS_INTERVAL_S,
        )

    async def shutdown(self) -> None:
        """Stop fetching and the recurring work, then write the high watermarks for the next start."""
        await self.fetching.shutdown()
        await self._alter_partition_manager.shutdown()
        await self._scheduler.shutdown()
        self.checkpoint_high_watermarks()

    def complete_delayed_operations(self, topic_partition: TopicPartition) -> None:
        """Re-examine the requests that wait for the partition; called after each of its changes."""
        self.appends.purgatory.check_and_complete(topic_partition)
        self.fetches.purgatory.check_and_complete(topic_partition)
        self.record_deletions.purgatory.check_and_complete(topic_partition)

    def checkpoint_high_watermarks(self) -> None:
        """Write the high watermark of every log, hosted or not (KAFKA-1647)."""
        try:
            self._log_manager.checkpoint_high_watermarks()
        except KafkaStorageError as error:
            _logger.error("high watermarks are not checkpointed: %s", error)
            self.storage_failures.note(error)

    def maybe_shrink_isr(self) -> None:
        """Let every leader look for followers that lag."""
        for partition in list(self.hosted.partitions.values()):
            partition.maybe_shrink_isr()

    def is_stale_controller_epoch(self, controller_epoch: int) -> bool:
        """Whether a newer controller has been heard already."""
        return controller_epoch < self.controller_epoch

    def is_stale_broker_epoch(self, broker_epoch: int) -> bool:
        """Whether a request was meant for an earlier life. −1 is a sender that does not know; a greater one may be
        ahead of what we know of ourselves (KAFKA-9839)."""
        return 0 <= broker_epoch < self._broker_epoch()

    def alter_replica_log_dirs(
        self, targets: Mapping[TopicPartition, str]
    ) -> dict[TopicPartition, ErrorCode]:
        """Begin to move replicas to these log directories; returns the answer of each, long before it has moved.

        One that has no log here yet will have it there, and is answered REPLICA_NOT_AVAILABLE.
        """
        return {key: self._alter_replica_log_dir(key, path) for key, path in targets.items()}

    def _alter_replica_log_dir(self, topic_partition: TopicPartition, log_dir: str) -> ErrorCode:
        if not can_be_future(topic_partition):
            return ErrorCode.invalid_topic_exception
        try:
            self._log_manager.require_online(log_dir)
            if topic_partition in self.hosted.offline:
                return ErrorCode.kafka_storage_error
            self._log_manager.maybe_update_preferred_log_dir(topic_partition, log_dir)
            partition = self.hosted.partitions.get(topic_partition)
            if partition is None:
                return ErrorCode.replica_not_available
            if partition.maybe_create_future_replica(log_dir):
                self.fetching.log_dirs.add_fetcher(partition)
        except KafkaStorageError as error:
            _logger.warning("%s does not move to %s: %s", topic_partition, log_dir, error)
            self.storage_failures.note(error)
            return ErrorCode.kafka_storage_error
        except LogError as error:
            return error.error_code
        except ReplicaError as error:
            return error.code
        return ErrorCode.none

    def become_leader_or_follower(
        self,
        controller_id: int,
        controller_epoch: int,
        broker_epoch: int,
        states: Sequence[LeaderAndIsrPartitionState],
        live_leaders: Sequence[BrokerEndPoint],
    ) -> tuple[ErrorCode, dict[TopicPartition, ErrorCode]]:
        """Apply a LeaderAndIsrRequest; returns the error of all of it, and one per partition."""
        error = self._admit("LeaderAndIsr", controller_id, controller_epoch, broker_epoch)
        if error is not ErrorCode.none:
            return error, {}
        answers = self._roles.take_roles(states, live_leaders, broker_epoch=broker_epoch)
        trace_roles_answered(self._tracer, states, answers)
        return ErrorCode.none, answers

    def stop_replicas(
        self,
        controller_id: int,
        controller_epoch: int,
        broker_epoch: int,
        states: Sequence[StopReplicaPartitionState],
    ) -> tuple[ErrorCode, dict[TopicPartition, ErrorCode]]:
        """Apply a StopReplicaRequest; returns the error of all of it, and one per partition."""
        error = self._admit("StopReplica", controller_id, controller_epoch, broker_epoch)
        if error is not ErrorCode.none:
            return error, {}
        answers = self._roles.stop(states)
        trace_stops_answered(self._tracer, states, answers)
        return ErrorCode.none, answers

    def maybe_update_metadata_cache(
        self,
        controller_id: int,
        controller_epoch: int,
        broker_epoch: int,
        live_brokers: Sequence[Broker],
        partitions: Sequence[UpdateMetadataPartitionState],
    ) -> ErrorCode:
        """Apply an UpdateMetadataRequest to the cache."""
        error = self._admit("UpdateMetadata", controller_id, controller_epoch, broker_epoch)
        if error is ErrorCode.none:
            before = self._metadata_cache.snapshot
            deleted = self._metadata_cache.update(
                controller_id, controller_epoch, live_brokers, partitions
            )
            trace_metadata(
                self._tracer,
                (controller_id, controller_epoch),
                live_brokers,
                partitions,
                before,
                self._metadata_cache.snapshot.topics,
            )
            for listener in self._role_listeners if deleted else ():
                listener.on_partitions_deleted(deleted)
            for state in partitions:
                self.delayed_elections.check_and_complete(state.topic_partition)
        return error

    def _admit(
        self, api: str, controller_id: int, controller_epoch: int, broker_epoch: int
    ) -> ErrorCode:
        if self.is_stale_broker_epoch(broker_epoch):
            error = ErrorCode.stale_broker_epoch
        elif self.is_stale_controller_epoch(controller_epoch):
            error = ErrorCode.stale_controller_epoch
        else:
            error = ErrorCode.none
            self.controller_epoch = controller_epoch
        self._tracer.event(
            Kind.CONTROL_REQUEST_HANDLED,
            api=api,
            peer=controller_id,
            controller_epoch=controller_epoch,
            broker_epoch=broker_epoch,
            error=error.name.upper(),
        )
        return error
