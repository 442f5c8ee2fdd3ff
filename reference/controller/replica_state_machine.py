"""The states of replicas, and their removal from the ISR when they go offline.

    NonExistent → New → Online ⇄ Offline → DeletionStarted → DeletionSuccessful → NonExistent
                                    ⇅             ↓
                              DeletionIneligible ←┘

Going offline stops the replica and takes it out of the ISR in ZooKeeper: the leader becomes −1 if it was the leader,
the last member of an ISR stays, and nothing is written when the ISR does not hold it. The controller tells the other
replicas, except those of a topic that is being deleted.
Source: kafka.controller.ZkReplicaStateMachine.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any

from nemesis.reference.controller import election
from nemesis.reference.controller.controller_broker_request_batch import (
    ControllerBrokerRequestBatch,
)
from nemesis.reference.controller.controller_context import (
    ControllerContext,
    PartitionAndReplica,
    ReplicaState,
)
from nemesis.reference.controller.state_transitions import StateTransitions
from nemesis.reference.controller.trace_columns import committed_state, identity
from nemesis.reference.model import TopicPartition
from nemesis.reference.trace import Kind, Tracer
from nemesis.reference.zk.errors import BadVersionError
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient
from nemesis.reference.zk.partition_states import CommittedState
from nemesis.reference.zk.zk_data import LeaderIsrAndControllerEpoch

_logger = logging.getLogger(__name__)

_S = ReplicaState
VALID_PREVIOUS_STATES = MappingProxyType(
    {
        _S.NEW: frozenset({_S.NON_EXISTENT}),
        _S.ONLINE: frozenset({_S.NEW, _S.ONLINE, _S.OFFLINE, _S.DELETION_INELIGIBLE}),
        _S.OFFLINE: frozenset({_S.NEW, _S.ONLINE, _S.OFFLINE, _S.DELETION_INELIGIBLE}),
        _S.DELETION_STARTED: frozenset({_S.OFFLINE}),
        _S.DELETION_SUCCESSFUL: frozenset({_S.DELETION_STARTED}),
        _S.DELETION_INELIGIBLE: frozenset({_S.OFFLINE, _S.DELETION_STARTED}),
        _S.NON_EXISTENT: frozenset({_S.DELETION_SUCCESSFUL}),
    }
)


class ReplicaStateMachine:
    def __init__(
        self,
        context: ControllerContext,
        *,
        zk_client: KafkaZkClient,
        request_batch: ControllerBrokerRequestBatch,
        tracer: Tracer,
    ) -> None:
        self._context = context
        self._zk_client = zk_client
        self._request_batch = request_batch
        self._tracer = tracer
        self._transitions = StateTransitions[PartitionAndReplica, ReplicaState](
            context=context,
            tracer=tracer,
            valid_previous_states=VALID_PREVIOUS_STATES,
            state_of=context.replica_state,
            put_state=context.put_replica_state,
            columns=self._columns,
        )

    async def startup(self) -> None:
        """Bring the replicas of live brokers online and those of dead ones offline (KAFKA-3143)."""
        context = self._context
        online, offline = [], []
        for replica in context.replicas_for_partitions(context.assignments):
            if context.is_replica_online(replica.replica, replica.topic_partition):
                context.put_replica_state(replica, ReplicaState.ONLINE)
                online.append(replica)
            else:
                # A topic cannot be deleted while one of its replicas is on a dead broker.
                context.put_replica_state(replica, ReplicaState.DELETION_INELIGIBLE)
                offline.append(replica)
        await self.handle_state_changes(online, ReplicaState.ONLINE)
        await self.handle_state_changes(offline, ReplicaState.OFFLINE)

    async def handle_state_changes(
        self, replicas: Iterable[PartitionAndReplica], target: ReplicaState
    ) -> None:
        """Change the states and tell the brokers.

        Raises ``ControllerMovedError`` and ``SessionExpiredError``: then nothing more is told to anybody.
        """
        self._request_batch.new_batch()
        ordered = sorted(replicas, key=lambda replica: replica.replica)
        for replica_id, group in groupby(ordered, key=lambda replica: replica.replica):
            legal = [replica for replica in group if self._is_legal(replica, target)]
            if target is ReplicaState.OFFLINE:
                await self._take_offline(replica_id, legal)
            else:
                for replica in legal:
                    self._change(replica, target)
        fence = self._context.fence
        if fence is not None:
            self._request_batch.send_requests_to_brokers(fence.controller_epoch)

    def _change(self, replica: PartitionAndReplica, target: ReplicaState) -> None:
        """Every transition but the one to Offline: memory, and a request to the replica where it needs one."""
        match target:
            case ReplicaState.NEW | ReplicaState.ONLINE:
                if not self._tell_state(replica, is_new=target is ReplicaState.NEW):
                    return
            case ReplicaState.DELETION_STARTED:
                self._stop(replica, delete_partition=True)
            case ReplicaState.NON_EXISTENT:
                self._forget(replica)
        self._transitions.change(replica, target)

    def _tell_state(self, replica: PartitionAndReplica, *, is_new: bool) -> bool:
        """Tell the replica the partition's state if there is one; False when it must not become that."""
        topic_partition = replica.topic_partition
        state = self._context.leadership.get(topic_partition)
        if is_new and state is not None and state.leader_and_isr.leader == replica.replica:
            _logger.error("%s cannot become new: it is the leader", replica)
            return False
        # A new replica of a partition that just went online has been told with the election.
        if state is None or self._context.replica_state(replica) is ReplicaState.NEW:
            return True
        self._request_batch.add_leader_and_isr_request_for_brokers(
            [replica.replica],
            topic_partition,
            state,
            self._context.assignment(topic_partition),
            is_new=is_new,
        )
        return True

    def _forget(self, replica: PartitionAndReplica) -> None:
        """The replica is no longer one of its partition's."""
        topic_partition, assignments = replica.topic_partition, self._context.assignments
        if topic_partition in assignments:
            assignments[topic_partition] = assignments[topic_partition].remove_replica(
                replica.replica
            )

    async def _take_offline(self, replica_id: int, replicas: Sequence[PartitionAndReplica]) -> None:
        context = self._context
        for replica in replicas:
            self._stop(replica, delete_partition=False)
        led = [r.topic_partition for r in replicas if r.topic_partition in context.leadership]
        removed = await self._remove_replica_from_isr(replica_id, led)
        for topic_partition, state in removed.items():
            if context.is_topic_being_deleted(topic_partition.topic):
                continue
            assignment = context.assignment(topic_partition)
            others = [member for member in assignment.replicas if member != replica_id]
            self._request_batch.add_leader_and_isr_request_for_brokers(
                others, topic_partition, state, assignment, is_new=False
            )
        for replica in replicas:
            if replica.topic_partition not in context.leadership:
                self._request_batch.add_update_metadata_request_for_brokers(
                    context.live_or_shutting_down_broker_ids, [replica.topic_partition]
                )
            self._transitions.change(replica, ReplicaState.OFFLINE)

    async def _remove_replica_from_isr(
        self, replica_id: int, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, LeaderIsrAndControllerEpoch]:
        """Return the states without the replica, written where it was a member; conflicts are tried again."""
        done: dict[TopicPartition, LeaderIsrAndControllerEpoch] = {}
        # Whom we know as a member is one, or the compare-and-set fails; of the others we have to read.
        known = {
            tp: state
            for tp in partitions
            if replica_id in (state := self._context.leadership[tp]).leader_and_isr.isr
        }
        remaining = list(partitions)
        while remaining:
            fence = self._context.required_fence()
            unknown = [tp for tp in remaining if tp not in known]
            states = known | {
                tp: state
                for tp, state in (
                    await self._zk_client.states.get_topic_partition_states(unknown)
                ).items()
                if state.controller_epoch <= fence.controller_epoch
            }
            known = {}
            members = {
                tp: state for tp, state in states.items() if replica_id in state.leader_and_isr.isr
            }
            for topic_partition, state in states.items():
                if topic_partition not in members:
                    self._context.leadership[topic_partition] = state
                    done[topic_partition] = state
            updates = {
                tp: election.remove_from_isr(state.leader_and_isr, replica_id)
                for tp, state in members.items()
            }
            results = await self._zk_client.states.update_leader_and_isr(updates, fence)
            remaining = []
            for topic_partition, result in results.items():
                if isinstance(result, CommittedState):
                    self._take_over(topic_partition, result)
                    done[topic_partition] = result.state
                elif isinstance(result, BadVersionError):
                    remaining.append(topic_partition)
                else:
                    _logger.error("%s keeps replica %d: %s", topic_partition, replica_id, result)
        return done

    def _take_over(self, topic_partition: TopicPartition, committed: CommittedState) -> None:
        context = self._context
        self._tracer.event(
            Kind.LEADER_ELECTED,
            **committed_state(context, topic_partition, committed),
            strategy="remove-from-isr",
        )
        context.leadership[topic_partition] = committed.state

    def _stop(self, replica: PartitionAndReplica, *, delete_partition: bool) -> None:
        self._request_batch.add_stop_replica_request_for_brokers(
            [replica.replica], replica.topic_partition, delete_partition=delete_partition
        )

    def _is_legal(self, replica: PartitionAndReplica, target: ReplicaState) -> bool:
        return self._transitions.is_legal(replica, target)

    def _columns(self, replica: PartitionAndReplica) -> dict[str, Any]:
        return {**identity(self._context, replica.topic_partition), "replica": replica.replica}
