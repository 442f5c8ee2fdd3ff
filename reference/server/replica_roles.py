"""What the controller makes of each replica of this broker: leader, follower, stopped, deleted.

A LeaderAndIsrRequest that was admitted is applied in three parts, as in Kafka: which partitions are refused, which are
to be led and which to be followed; then the leaders, with one wait for the disk for all of them; then the followers,
whose fetchers start. Each partition has an answer of its own: KAFKA_STORAGE_ERROR, UNKNOWN_TOPIC_ID,
INCONSISTENT_TOPIC_ID, STALE_CONTROLLER_EPOCH, UNKNOWN_TOPIC_OR_PARTITION (not a replica of it), or what its log says.

Source: kafka.server.ReplicaManager of Kafka 3.9 (becomeLeaderOrFollower, makeLeaders, makeFollowers, stopReplicas).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from uuid import UUID

from kio.schema.errors import ErrorCode

from nemesis.reference.cluster.partition import Partition
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.log.errors import KafkaStorageError, LogError
from nemesis.reference.log.log_manager import LogManager
from nemesis.reference.model import (
    EPOCH_DURING_DELETE,
    UNDEFINED_EPOCH,
    BrokerEndPoint,
    LeaderAndIsrPartitionState,
    StopReplicaPartitionState,
    TopicPartition,
)
from nemesis.reference.server.alter_partition_manager import AlterPartitionManager
from nemesis.reference.server.coordinator_roles import RoleListener
from nemesis.reference.server.hosted_partitions import HostedPartitions
from nemesis.reference.server.metadata_cache import MetadataCache
from nemesis.reference.server.partition_fetch_state import PartitionFetchState
from nemesis.reference.server.replica_fetching import OnStorageError, ReplicaFetching
from nemesis.reference.trace import Kind, Tracer

_logger = logging.getLogger(__name__)

_Answers = dict[TopicPartition, ErrorCode]
_CONSISTENT = (ErrorCode.none, ErrorCode.stale_controller_epoch)
"""Answers to a request that names the topic of which the replica is."""


class ReplicaRoles:
    """Gives the hosted partitions their roles, and starts and stops the fetchers of the followers."""

    def __init__(
        self,
        config: KafkaConfig,
        *,
        tracer: Tracer,
        log_manager: LogManager,
        metadata_cache: MetadataCache,
        alter_partition_manager: AlterPartitionManager,
        broker_epoch: Callable[[], int],
        hosted: HostedPartitions,
        fetching: ReplicaFetching,
        on_storage_error: OnStorageError,
        on_progress: Callable[[TopicPartition], None],
    ) -> None:
        """``on_progress`` is called after each change of a partition that a waiting request may observe."""
        self._config = config
        self._tracer = tracer
        self._metadata_cache = metadata_cache
        self._listener_name = config.listener_config.inter_broker_listener_name
        self._log_manager = log_manager
        self._alter_partition_manager = alter_partition_manager
        self._broker_epoch = broker_epoch
        self._hosted = hosted
        self._fetching = fetching
        self._on_storage_error = on_storage_error
        self._on_progress = on_progress
        self.role_listeners: list[RoleListener] = []
        """These learn of each change of roles, as its last step."""
        self._removed: dict[tuple[UUID, int], int] = {}
        """Topic id and partition of replicas that were taken away → the leader epoch in which they were."""
        self._named_in: dict[TopicPartition, int] = {}
        """The latest broker epoch in which a LeaderAndIsr named the served replica of the topic."""
        self._clock = asyncio.get_running_loop().time

    def take_roles(
        self,
        states: Sequence[LeaderAndIsrPartitionState],
        live_leaders: Sequence[BrokerEndPoint],
        *,
        broker_epoch: int,
    ) -> _Answers:
        """Lead and follow as the states say; returns the answer of each partition.

        ``broker_epoch`` is the registration of this broker to which the request was sent.
        """
        answers: _Answers = {}
        to_lead: dict[TopicPartition, LeaderAndIsrPartitionState] = {}
        to_follow: dict[TopicPartition, LeaderAndIsrPartitionState] = {}
        for state in states:
            self._give_way(state, broker_epoch)
            refusal = self._refusal(state)
            answers[state.topic_partition] = refusal or ErrorCode.none
            if refusal is None:
                is_led_here = state.leader_and_isr.leader == self._config.broker_id
                (to_lead if is_led_here else to_follow)[state.topic_partition] = state
        answers |= self._make_leaders(to_lead.values())
        answers |= self._make_followers(
            to_follow.values(), {leader.id: leader for leader in live_leaders}
        )
        for topic_partition, error in answers.items():
            if error in _CONSISTENT:
                named_in = self._named_in.get(topic_partition, broker_epoch)
                self._named_in[topic_partition] = max(broker_epoch, named_in)
        self._maybe_add_log_dir_fetchers(answers)
        self._fetching.shutdown_idle_threads()
        self._announce(to_lead, to_follow)
        return answers

    def _announce(
        self,
        to_lead: Mapping[TopicPartition, LeaderAndIsrPartitionState],
        to_follow: Mapping[TopicPartition, LeaderAndIsrPartitionState],
    ) -> None:
        """Let the listeners know which partitions have taken which role."""
        for listener in self.role_listeners:
            listener.on_leadership_change(self._in_role(to_lead), self._in_role(to_follow))

    def _in_role(
        self, states: Mapping[TopicPartition, LeaderAndIsrPartitionState]
    ) -> list[Partition]:
        """Return the partitions that are in the leader epoch of their state; the others have refused it."""
        hosted = self._hosted.partitions
        return [
            hosted[key]
            for key, state in states.items()
            if key in hosted and hosted[key].leader_epoch == state.leader_and_isr.leader_epoch
        ]

    def _maybe_add_log_dir_fetchers(self, answers: _Answers) -> None:
        """Go on with moves between log directories: those of an earlier life, and those that an epoch ended."""
        for topic_partition, error in answers.items():
            if error is ErrorCode.none:
                partition = self._hosted.partitions[topic_partition]
                if partition.resume_future_replica():
                    self._fetching.log_dirs.add_fetcher(partition)

    def _make_leaders(self, states: Iterable[LeaderAndIsrPartitionState]) -> _Answers:
        """What each would do alone, with one wait for the disk: a thousand are as fast as a few."""
        self._log_manager.assign_leader_epochs(
            {
                state.topic_partition: state.leader_and_isr.leader_epoch
                for state in states
                if state.topic_partition in self._hosted.partitions
            }
        )
        return {state.topic_partition: self._take(state, self._make_leader) for state in states}

    def _make_followers(
        self, states: Iterable[LeaderAndIsrPartitionState], leaders: dict[int, BrokerEndPoint]
    ) -> _Answers:
        def make_follower(partition: Partition, state: LeaderAndIsrPartitionState) -> None:
            self._make_follower(partition, state, leaders)

        return {state.topic_partition: self._take(state, make_follower) for state in states}

    def _take(
        self,
        state: LeaderAndIsrPartitionState,
        make: Callable[[Partition, LeaderAndIsrPartitionState], None],
    ) -> ErrorCode:
        topic_partition = state.topic_partition
        partition = self._hosted.partitions.get(topic_partition) or self._new_partition(
            topic_partition
        )
        try:
            make(partition, state)
        except KafkaStorageError as error:
            self._on_storage_error(topic_partition, error)
            return ErrorCode.kafka_storage_error
        except LogError as error:
            return error.error_code
        self._hosted.partitions[topic_partition] = partition
        return ErrorCode.none

    def _make_leader(self, partition: Partition, state: LeaderAndIsrPartitionState) -> None:
        self._fetching.leaders.remove_fetchers([state.topic_partition])
        partition.make_leader(state)

    def _make_follower(
        self,
        partition: Partition,
        state: LeaderAndIsrPartitionState,
        leaders: dict[int, BrokerEndPoint],
    ) -> None:
        topic_partition, leader_id = state.topic_partition, state.leader_and_isr.leader
        leader = self._live_leader(leader_id, leaders)
        if leader is None:
            # Nobody to follow: the epoch is not taken over, so that the LeaderAndIsr which names somebody is still
            # newer. The log must exist for its high watermark to be checkpointed (KAFKA-1647).
            _logger.warning("%s: leader %d is not alive", topic_partition, leader_id)
            partition.create_log(state.topic_id, is_new=state.is_new)
            return
        self._fetching.leaders.remove_fetchers([topic_partition])
        partition.make_follower(state)
        self._fetching.leaders.add_fetcher(
            leader,
            PartitionFetchState(partition, partition.topic_id, partition.leader_epoch),
        )

    def _live_leader(
        self, leader_id: int, live_leaders: Mapping[int, BrokerEndPoint]
    ) -> BrokerEndPoint | None:
        """Return where the leader is reached; None if it is not alive.

        The request that names the leader decides: a late UpdateMetadata may have brought back a former set of live
        brokers, which has no epoch.
        """
        alive = self._metadata_cache.alive_broker_node(leader_id, self._listener_name)
        return live_leaders.get(leader_id, alive)

    def stop(self, states: Sequence[StopReplicaPartitionState]) -> _Answers:
        """Stop, or stop and delete, as the states say; returns the answer of each partition."""
        answers = {state.topic_partition: self._stop(state) for state in states}
        self._fetching.shutdown_idle_threads()
        return answers

    def _give_way(self, state: LeaderAndIsrPartitionState, broker_epoch: int) -> None:
        """Delete the replica of an earlier topic of the name, of which this broker has none any more.

        A reassignment took the replica away while this broker was cut off; so no StopReplica comes. That the request is
        not a late one about an even earlier topic follows from one of two facts: the deletion of the served replica's
        topic was announced; or the request was sent to a later registration of this broker than all those that named
        that topic. Then its controller has read ZooKeeper since, and a deposed one was refused before.
        """
        topic_partition = state.topic_partition
        hosted = self._hosted.partitions.get(topic_partition)
        if hosted is None or not _is_inconsistent(hosted, state):
            return
        is_deleted = partial(self._metadata_cache.is_deleted, partition=topic_partition.partition)
        is_over = is_deleted(hosted.topic_id) or broker_epoch > self._named_in.get(
            topic_partition, broker_epoch
        )
        if is_over and not is_deleted(state.topic_id):
            self._fetching.stop(topic_partition)
            self._delete(topic_partition, hosted.topic_id)
            self._on_progress(topic_partition)
            self._announce_gone(topic_partition, None)

    def _refusal(self, state: LeaderAndIsrPartitionState) -> ErrorCode | None:
        topic_partition = state.topic_partition
        if topic_partition in self._hosted.offline:
            return ErrorCode.kafka_storage_error
        if self._metadata_cache.is_deleted(state.topic_id, topic_partition.partition):
            return ErrorCode.unknown_topic_id
        hosted = self._hosted.partitions.get(topic_partition)
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
            on_progress=self._on_progress,
        )

    def _stop(self, state: StopReplicaPartitionState) -> ErrorCode:
        topic_partition = state.topic_partition
        if topic_partition in self._hosted.offline:
            return ErrorCode.kafka_storage_error
        partition = self._hosted.partitions.get(topic_partition)
        log = self._log_manager.get_log(topic_partition)
        topic_id = None if log is None else log.topic_id
        if self._is_fenced(state, partition, topic_id):
            return ErrorCode.fenced_leader_epoch
        self._fetching.stop(topic_partition)
        if state.delete_partition:
            if not self._delete(topic_partition, topic_id):
                return ErrorCode.kafka_storage_error
            if topic_id is not None and state.leader_epoch >= 0:
                self._removed[topic_id, topic_partition.partition] = state.leader_epoch
            self._announce_gone(
                topic_partition, state.leader_epoch if state.leader_epoch >= 0 else None
            )
        else:
            self._trace_stopped(topic_partition, topic_id, "stop")
        self._on_progress(topic_partition)
        return ErrorCode.none

    def _announce_gone(self, topic_partition: TopicPartition, leader_epoch: int | None) -> None:
        for listener in self.role_listeners:
            listener.on_replica_gone(topic_partition, leader_epoch)

    def _delete(self, topic_partition: TopicPartition, topic_id: UUID | None) -> bool:
        """Delete a replica and its log; return whether the disk did it."""
        # A broker that is killed right after the deletion cannot record it any more.
        self._trace_stopped(topic_partition, topic_id, "deleting")
        partition = self._hosted.partitions.pop(topic_partition, None)
        if partition is not None:
            partition.delete()
        try:
            self._log_manager.delete_log(topic_partition)
        except KafkaStorageError as error:
            self._on_storage_error(topic_partition, error)
            return False
        self._trace_stopped(topic_partition, topic_id, "delete")
        return True

    def _trace_stopped(
        self, topic_partition: TopicPartition, topic_id: UUID | None, step: str
    ) -> None:
        self._tracer.event(
            Kind.REPLICA_STOPPED,
            topic=topic_partition.topic,
            topic_id=None if topic_id is None else str(topic_id),
            partition=topic_partition.partition,
            step=step,
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
    hosted_id, stated_id = partition.topic_id, state.topic_id
    return hosted_id is not None and stated_id is not None and hosted_id != stated_id


def _is_stale(partition: Partition, state: LeaderAndIsrPartitionState) -> bool:
    """An equal leader epoch is an old decision too: every new one raises it."""
    decided = state.leader_and_isr
    return (
        decided.leader_epoch <= partition.leader_epoch
        or decided.partition_epoch < partition.partition_epoch
    )
