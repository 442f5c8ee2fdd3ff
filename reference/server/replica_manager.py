"""All replicas of one broker, as the controller wants them.

The three control requests are checked here, in one place each: a controller epoch below one that was seen is a
deposed controller's (STALE_CONTROLLER_EPOCH), a broker epoch below our own was meant for an earlier life of
this broker (STALE_BROKER_EPOCH, KIP-380). They are applied without an await in between, hence atomically. What
clients and followers ask of the replicas is in ``ReplicaData``, which this class extends.

The controller epoch is held in memory only, as in Kafka: a restarted broker believes the first controller that
it hears.

A log whose medium fails goes offline at once, and everything else in its log directory as soon as the request that met
the failure is done, as with Kafka's LogDirFailureHandler (KIP-112).

Limits: no future replicas, no quotas.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from uuid import UUID

from kio.schema.errors import ErrorCode

from reference.cluster.local_replica import trace_log_loaded
from reference.cluster.partition import Partition
from reference.kafka_config import KafkaConfig
from reference.log.errors import KafkaStorageError, LogError
from reference.log.log_manager import LogManager
from reference.model import (
    EPOCH_DURING_DELETE,
    UNDEFINED_EPOCH,
    Broker,
    BrokerEndPoint,
    LeaderAndIsrPartitionState,
    StopReplicaPartitionState,
    TopicPartition,
    UpdateMetadataPartitionState,
)
from reference.server.alter_partition_manager import AlterPartitionManager
from reference.server.connection import ConnectionFactory, connection_factory
from reference.server.delayed_operations import DelayedOperationPurgatory
from reference.server.kafka_scheduler import KafkaScheduler
from reference.server.metadata_cache import MetadataCache
from reference.server.partition_fetch_state import PartitionFetchState
from reference.server.replica_data import ReplicaData
from reference.server.replica_fetcher_manager import ReplicaFetcherManager
from reference.trace import Kind, Tracer

_logger = logging.getLogger(__name__)


class ReplicaManager(ReplicaData):
    """Owns the hosted partitions and the fetchers; starts and stops with the broker."""

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
        super().__init__(config, tracer=tracer, metadata_cache=metadata_cache)
        self.controller_epoch = 0
        self._log_manager = log_manager
        self._alter_partition_manager = alter_partition_manager
        self._scheduler = scheduler
        self._broker_epoch = broker_epoch
        self._on_log_dir_failure = on_log_dir_failure
        self._removed: dict[tuple[UUID, int], int] = {}
        """Topic id and partition of replicas that were taken away → the leader epoch in which they were."""
        self.delayed_elections = DelayedOperationPurgatory()
        """ElectLeaders requests that wait for an UpdateMetadata."""
        self._clock = asyncio.get_running_loop().time
        self._fetchers = ReplicaFetcherManager(
            config,
            connect=connect or connection_factory(config),
            broker_epoch=broker_epoch,
            on_storage_error=self.handle_storage_error,
        )
        self.all_log_dirs_failed = asyncio.Event()
        """Set when no log directory is left: the broker has to halt."""

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

    async def shutdown(self) -> None:
        """Stop fetching and the recurring work, then write the high watermarks for the next start."""
        await self._fetchers.shutdown()
        await self._alter_partition_manager.shutdown()
        await self._scheduler.shutdown()
        self.checkpoint_high_watermarks()

    def checkpoint_high_watermarks(self) -> None:
        """Write the high watermark of every log, hosted or not (KAFKA-1647)."""
        try:
            self._log_manager.checkpoint_high_watermarks()
        except KafkaStorageError as error:
            _logger.error("high watermarks are not checkpointed: %s", error)
            self.note_storage_error(error)

    def maybe_shrink_isr(self) -> None:
        """Let every leader look for followers that lag."""
        for partition in list(self._partitions.values()):
            partition.maybe_shrink_isr()

    def is_stale_controller_epoch(self, controller_epoch: int) -> bool:
        """Whether a newer controller has been heard already."""
        return controller_epoch < self.controller_epoch

    def is_stale_broker_epoch(self, broker_epoch: int) -> bool:
        """Whether a request was meant for an earlier life. −1 is a sender that does not know; a greater one may be
        ahead of what we know of ourselves (KAFKA-9839)."""
        return 0 <= broker_epoch < self._broker_epoch()

    def mark_offline(self, topic_partition: TopicPartition) -> None:
        """Stop serving a replica whose log failed, until the broker restarts."""
        self._offline.add(topic_partition)
        self._fetchers.remove_fetchers([topic_partition])
        partition = self._partitions.pop(topic_partition, None)
        if partition is not None:
            partition.delete()

    def note_storage_error(self, error: KafkaStorageError) -> None:
        """Take the failed log directory offline, if one has failed, when nobody is in the middle of something."""
        if error.failed_log_dir is not None:
            asyncio.get_running_loop().call_soon(self._handle_log_dir_failure, error.failed_log_dir)

    def _handle_log_dir_failure(self, log_dir: str) -> None:
        for topic_partition in self._log_manager.handle_log_dir_failure(log_dir):
            self.mark_offline(topic_partition)
        if not self._log_manager.live_log_dirs:
            self.all_log_dirs_failed.set()
        else:
            self._on_log_dir_failure()

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
        leaders = {leader.id: leader for leader in live_leaders}
        self._assign_epochs_to_lead(states)
        results = {state.topic_partition: self._apply(state, leaders) for state in states}
        self._fetchers.shutdown_idle_fetchers()
        return ErrorCode.none, results

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
        results = {state.topic_partition: self._stop(state) for state in states}
        self._fetchers.shutdown_idle_fetchers()
        return ErrorCode.none, results

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
            self._metadata_cache.update(controller_id, controller_epoch, live_brokers, partitions)
            self._tracer.event(
                Kind.METADATA_UPDATED,
                controller_epoch=controller_epoch,
                peer=controller_id,
                detail=str(len(partitions)),
            )
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

    def _assign_epochs_to_lead(self, states: Sequence[LeaderAndIsrPartitionState]) -> None:
        """What each new leader would do alone, with one wait for the disk: a thousand are as fast as a few."""
        self._log_manager.assign_leader_epochs(
            {
                state.topic_partition: state.leader_and_isr.leader_epoch
                for state in states
                if state.leader_and_isr.leader == self._config.broker_id
                and state.topic_partition in self._partitions
                and self._refusal(state) is None
            }
        )

    def _refusal(self, state: LeaderAndIsrPartitionState) -> ErrorCode | None:
        topic_partition = state.topic_partition
        if topic_partition in self._offline:
            return ErrorCode.kafka_storage_error
        if self._metadata_cache.is_deleted(state.topic_id, topic_partition.partition):
            return ErrorCode.unknown_topic_id
        hosted = self._partitions.get(topic_partition)
        if hosted is not None and _is_inconsistent(hosted, state):
            return ErrorCode.inconsistent_topic_id
        if hosted is not None and _is_stale(hosted, state):
            return ErrorCode.stale_controller_epoch
        if self._is_of_a_removed_replica(state):
            return ErrorCode.stale_controller_epoch
        if self._config.broker_id not in state.replicas:
            return ErrorCode.unknown_topic_or_partition
        return None

    def _is_of_a_removed_replica(self, state: LeaderAndIsrPartitionState) -> bool:
        """Whether this is a late copy of what was said before the replica was taken away: it may make it lead again,
        with nothing, and an ISR of its own. A replica that is added again is told of a newer leader epoch."""
        if state.topic_id is None:
            return False
        removed_in = self._removed.get((state.topic_id, state.topic_partition.partition))
        return removed_in is not None and state.leader_and_isr.leader_epoch <= removed_in

    def _apply(
        self, state: LeaderAndIsrPartitionState, leaders: dict[int, BrokerEndPoint]
    ) -> ErrorCode:
        refusal = self._refusal(state)
        if refusal is not None:
            return refusal
        topic_partition = state.topic_partition
        partition = self._partitions.get(topic_partition) or self._new_partition(topic_partition)
        try:
            self._change_role(partition, state, leaders)
        except KafkaStorageError as error:
            self.handle_storage_error(topic_partition, error)
            return ErrorCode.kafka_storage_error
        except LogError as error:
            return error.error_code
        self._partitions[topic_partition] = partition
        return ErrorCode.none

    def _change_role(
        self,
        partition: Partition,
        state: LeaderAndIsrPartitionState,
        leaders: dict[int, BrokerEndPoint],
    ) -> None:
        topic_partition, leader_id = state.topic_partition, state.leader_and_isr.leader
        if leader_id == self._config.broker_id:
            self._fetchers.remove_fetchers([topic_partition])
            partition.make_leader(state)
            return
        alive = self._metadata_cache.alive_broker_node(leader_id, self._listener_name)
        if alive is None:
            # Nobody to follow: the epoch is not taken over, so that the LeaderAndIsr which names somebody is still
            # newer. The log must exist for its high watermark to be checkpointed (KAFKA-1647).
            _logger.warning("%s: leader %d is not alive", topic_partition, leader_id)
            partition.create_log(state.topic_id, is_new=state.is_new)
            return
        self._fetchers.remove_fetchers([topic_partition])
        partition.make_follower(state)
        self._fetchers.add_fetcher(
            leaders.get(leader_id, alive),
            PartitionFetchState(partition, partition.topic_id, partition.leader_epoch),
        )

    def _new_partition(self, topic_partition: TopicPartition) -> Partition:
        return Partition(
            topic_partition,
            config=self._config,
            tracer=self._tracer,
            log_manager=self._log_manager,
            alter_partition=self._alter_partition_manager,
            is_alive=self._metadata_cache.has_alive_broker,
            broker_epoch=self._broker_epoch,
            clock=self._clock,
            on_progress=self.complete_delayed_operations,
        )

    def _stop(self, state: StopReplicaPartitionState) -> ErrorCode:
        topic_partition = state.topic_partition
        if topic_partition in self._offline:
            return ErrorCode.kafka_storage_error
        partition = self._partitions.get(topic_partition)
        log = self._log_manager.get_log(topic_partition)
        topic_id = None if log is None else log.topic_id
        if self._is_fenced(state, partition, topic_id):
            return ErrorCode.fenced_leader_epoch
        self._fetchers.remove_fetchers([topic_partition])
        if state.delete_partition:
            # Whoever is killed right after the deletion cannot tell of it any more.
            self._trace_stopped(topic_partition, topic_id, "deleting")
            self._partitions.pop(topic_partition, None)
            if partition is not None:
                partition.delete()
            try:
                self._log_manager.delete_log(topic_partition)
            except KafkaStorageError as error:
                self.handle_storage_error(topic_partition, error)
                return ErrorCode.kafka_storage_error
            if topic_id is not None and state.leader_epoch >= 0:
                self._removed[topic_id, topic_partition.partition] = state.leader_epoch
        self.complete_delayed_operations(topic_partition)
        self._trace_stopped(
            topic_partition, topic_id, "delete" if state.delete_partition else "stop"
        )
        return ErrorCode.none

    def _trace_stopped(
        self, topic_partition: TopicPartition, topic_id: UUID | None, how: str
    ) -> None:
        self._tracer.event(
            Kind.REPLICA_STOPPED,
            topic=topic_partition.topic,
            topic_id=None if topic_id is None else str(topic_id),
            partition=topic_partition.partition,
            detail=how,
        )

    def _is_fenced(
        self,
        state: StopReplicaPartitionState,
        partition: Partition | None,
        topic_id: UUID | None,
    ) -> bool:
        """Whether a StopReplica was meant for an earlier state.

        One for a deleted topic names neither an epoch nor a topic id; but before it comes the UpdateMetadata that
        announces the deletion, with the id. Without that the name has come back as another topic meanwhile.
        """
        if state.leader_epoch == EPOCH_DURING_DELETE:
            number = state.topic_partition.partition
            return topic_id is not None and not self._metadata_cache.is_deleted(topic_id, number)
        return (
            partition is not None
            and state.leader_epoch != UNDEFINED_EPOCH
            and state.leader_epoch < partition.leader_epoch
        )


def _is_inconsistent(partition: Partition, state: LeaderAndIsrPartitionState) -> bool:
    ours, theirs = partition.topic_id, state.topic_id
    return ours is not None and theirs is not None and ours != theirs


def _is_stale(partition: Partition, state: LeaderAndIsrPartitionState) -> bool:
    """An equal leader epoch is an old decision too: every new one raises it."""
    decided = state.leader_and_isr
    return (
        decided.leader_epoch <= partition.leader_epoch
        or decided.partition_epoch < partition.partition_epoch
    )
