"""The states of partitions, and the elections that bring them online.

    NonExistent → New → Online ⇄ Offline → NonExistent

Only the way to Online touches ZooKeeper: a New partition gets its first state, any other an election by compare-and-set
on the state as we know it; where that is not what ZooKeeper has, it is read and tried again. A partition for which no
replica is eligible stays as it is.
Source: kafka.controller.ZkPartitionStateMachine.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from nemesis.reference.controller import election
from nemesis.reference.controller.controller_broker_request_batch import (
    ControllerBrokerRequestBatch,
)
from nemesis.reference.controller.controller_context import ControllerContext, PartitionState
from nemesis.reference.controller.election import ElectionResult
from nemesis.reference.controller.errors import StateChangeError
from nemesis.reference.controller.leader_elections import (
    LeaderElections,
    PartitionLeaderElectionStrategy,
)
from nemesis.reference.controller.state_transitions import StateTransitions
from nemesis.reference.controller.trace_columns import committed_state, identity
from nemesis.reference.model import LeaderAndIsr, TopicPartition
from nemesis.reference.trace import Kind, Tracer
from nemesis.reference.zk.errors import BadVersionError, NodeExistsError, ZooKeeperError
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient
from nemesis.reference.zk.partition_states import CommittedState, StateResult
from nemesis.reference.zk.zk_data import LeaderIsrAndControllerEpoch

_logger = logging.getLogger(__name__)

VALID_PREVIOUS_STATES = MappingProxyType(
    {
        PartitionState.NON_EXISTENT: frozenset({PartitionState.OFFLINE}),
        PartitionState.NEW: frozenset({PartitionState.NON_EXISTENT}),
        PartitionState.ONLINE: frozenset(
            {PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE}
        ),
        PartitionState.OFFLINE: frozenset(
            {PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE}
        ),
    }
)

Outcome = LeaderIsrAndControllerEpoch | Exception
"""What came of bringing a partition online."""


class PartitionStateMachine:
    def __init__(
        self,
        context: ControllerContext,
        *,
        zk_client: KafkaZkClient,
        request_batch: ControllerBrokerRequestBatch,
        tracer: Tracer,
        unclean_leader_election_enable: Callable[[], bool],
        is_leader_recovery_supported: bool,
    ) -> None:
        self._context = context
        self._zk_client = zk_client
        self._request_batch = request_batch
        self._tracer = tracer
        self._transitions = StateTransitions[TopicPartition, PartitionState](
            context=context,
            tracer=tracer,
            valid_previous_states=VALID_PREVIOUS_STATES,
            state_of=context.partition_state,
            put_state=context.put_partition_state,
            columns=partial(identity, context),
        )
        self._elections = LeaderElections(
            context,
            zk_client=zk_client,
            unclean_leader_election_enable=unclean_leader_election_enable,
            is_leader_recovery_supported=is_leader_recovery_supported,
        )

    async def startup(self) -> None:
        """Give every partition its state from what ZooKeeper said, then elect where nobody leads."""
        for topic_partition in self._context.assignments:
            if topic_partition not in self._context.leadership:
                state = PartitionState.NEW
            elif self._context.has_online_leader(topic_partition):
                state = PartitionState.ONLINE
            else:
                state = PartitionState.OFFLINE
            self._context.put_partition_state(topic_partition, state)
        await self.trigger_online_partition_state_change()

    async def trigger_online_partition_state_change(self, topic: str | None = None) -> None:
        """Try to bring every New and Offline partition (of a topic) online, except where the topic is being deleted."""
        context = self._context
        waiting = [
            tp
            for tp in context.partitions_in_states((PartitionState.NEW, PartitionState.OFFLINE))
            if topic in (None, tp.topic) and not context.is_topic_being_deleted(tp.topic)
        ]
        await self.handle_state_changes(waiting, PartitionState.ONLINE)

    async def handle_state_changes(
        self,
        partitions: Iterable[TopicPartition],
        target: PartitionState,
        strategy: PartitionLeaderElectionStrategy = PartitionLeaderElectionStrategy.OFFLINE,
    ) -> dict[TopicPartition, Outcome]:
        """Change the states and tell the brokers; returns what came of those that were to go online.

        ``strategy`` elects for those that have a state already. A partition that may not change, or whose election
        finds nobody, has a ``StateChangeError`` as its outcome.
        Raises ``ControllerMovedError`` and ``SessionExpiredError``: then nothing more is told to anybody.
        """
        self._request_batch.new_batch()
        legal: list[TopicPartition] = []
        outcomes: dict[TopicPartition, Outcome] = {}
        for topic_partition in partitions:
            if self._transitions.is_legal(topic_partition, target):
                legal.append(topic_partition)
            else:
                outcomes[topic_partition] = StateChangeError(f"it may not go {target.value} now")
        if target is PartitionState.ONLINE:
            outcomes |= await self._bring_online(legal, strategy)
        else:
            for topic_partition in legal:
                self._transitions.change(topic_partition, target)
        fence = self._context.fence
        if fence is not None:
            self._request_batch.send_requests_to_brokers(fence.controller_epoch)
        return outcomes

    async def _bring_online(
        self, partitions: Sequence[TopicPartition], strategy: PartitionLeaderElectionStrategy
    ) -> dict[TopicPartition, Outcome]:
        context = self._context
        new = [tp for tp in partitions if context.partition_state(tp) is PartitionState.NEW]
        known = [tp for tp in partitions if context.partition_state(tp) is not PartitionState.NEW]
        outcomes: dict[TopicPartition, Outcome] = {}
        if new:
            outcomes |= await self._initialize_leader_and_isr(new, strategy)
        if known:
            outcomes |= await self._elect_leaders(known, strategy)
        for topic_partition, outcome in outcomes.items():
            if isinstance(outcome, Exception):
                _logger.error("%s does not go online: %s", topic_partition, outcome)
            else:
                self._transitions.change(topic_partition, PartitionState.ONLINE)
        return outcomes

    async def _initialize_leader_and_isr(
        self, partitions: Sequence[TopicPartition], strategy: PartitionLeaderElectionStrategy
    ) -> dict[TopicPartition, Outcome]:
        """Write the first state of New partitions. One that has a state already is elected for instead."""
        outcomes: dict[TopicPartition, Outcome] = {}
        initial: dict[TopicPartition, LeaderAndIsr] = {}
        for topic_partition in partitions:
            state = election.initial_leader_and_isr(
                self._context.assignment(topic_partition).replicas,
                lambda replica, tp=topic_partition: self._context.is_replica_online(replica, tp),  # type: ignore[misc]
            )
            if state is None:
                outcomes[topic_partition] = StateChangeError("no replica is alive")
            else:
                initial[topic_partition] = state
        results = await self._zk_client.states.create_topic_partition_states(
            initial, self._context.required_fence()
        )
        for topic_partition, result in results.items():
            if isinstance(result, CommittedState):
                isr = result.state.leader_and_isr.isr
                self._take_over(topic_partition, result, "new", isr, is_new=True)
                outcomes[topic_partition] = result.state
            else:
                outcomes[topic_partition] = result
        existing = [tp for tp, result in results.items() if isinstance(result, NodeExistsError)]
        return outcomes | await self._elect_leaders(existing, strategy)

    async def _elect_leaders(
        self, partitions: Sequence[TopicPartition], strategy: PartitionLeaderElectionStrategy
    ) -> dict[TopicPartition, Outcome]:
        # What we know is nearly always what is there, and the compare-and-set tells where it is not. But that nobody
        # can lead, only what is read may decide.
        known = await self._try_to_elect_leaders(partitions, self._context.leadership, strategy)
        outcomes: dict[TopicPartition, Outcome] = {
            tp: state for tp, state in known.items() if not isinstance(state, Exception)
        }
        remaining = [tp for tp in partitions if tp not in outcomes]
        while remaining:
            states = await self._zk_client.states.get_topic_partition_states(remaining)
            outcomes |= await self._try_to_elect_leaders(remaining, states, strategy)
            remaining = [tp for tp in remaining if tp not in outcomes]
        return outcomes

    async def _try_to_elect_leaders(
        self,
        partitions: Sequence[TopicPartition],
        states: Mapping[TopicPartition, LeaderIsrAndControllerEpoch],
        strategy: PartitionLeaderElectionStrategy,
    ) -> dict[TopicPartition, Outcome]:
        """One round; what met a conflict is missing from the result."""
        fence = self._context.required_fence()
        outcomes: dict[TopicPartition, Outcome] = {}
        current: dict[TopicPartition, LeaderAndIsr] = {}
        for topic_partition in partitions:
            state = states.get(topic_partition)
            if state is None:
                outcomes[topic_partition] = StateChangeError("it has no state in ZooKeeper")
            elif state.controller_epoch > fence.controller_epoch:
                outcomes[topic_partition] = StateChangeError(
                    f"controller epoch {state.controller_epoch} wrote its state already"
                )
            else:
                current[topic_partition] = state.leader_and_isr
        elected = await self._elections.elect(current, strategy)
        updates: dict[TopicPartition, LeaderAndIsr] = {}
        for topic_partition, result in elected.items():
            if result.leader_and_isr is None:
                outcomes[topic_partition] = StateChangeError(
                    f"the election ({strategy.value}) found nobody eligible, the ISR is "
                    f"{list(current[topic_partition].isr)}"
                )
            else:
                updates[topic_partition] = result.leader_and_isr
        results = await self._zk_client.states.update_leader_and_isr(updates, fence)
        outcomes |= self._settle(results, elected, strategy)
        return outcomes

    def _settle(
        self,
        results: dict[TopicPartition, StateResult],
        elected: dict[TopicPartition, ElectionResult],
        strategy: PartitionLeaderElectionStrategy,
    ) -> dict[TopicPartition, Outcome]:
        outcomes: dict[TopicPartition, Outcome] = {}
        for topic_partition, result in results.items():
            if isinstance(result, CommittedState):
                how = "unclean" if elected[topic_partition].unclean else strategy.value
                recipients = elected[topic_partition].recipients
                self._take_over(topic_partition, result, how, recipients, is_new=False)
                outcomes[topic_partition] = result.state
            elif isinstance(result, BadVersionError):
                _logger.info("%s was changed meanwhile; electing again", topic_partition)
            else:
                assert isinstance(result, ZooKeeperError)
                outcomes[topic_partition] = result
        return outcomes

    def _take_over(
        self,
        topic_partition: TopicPartition,
        committed: CommittedState,
        how: str,
        recipients: Iterable[int],
        *,
        is_new: bool,
    ) -> None:
        """A state is in ZooKeeper: trace it, know it, and prepare to tell the replicas."""
        context = self._context
        assignment = context.assignment(topic_partition)
        self._tracer.event(
            Kind.LEADER_ELECTED,
            **committed_state(context, topic_partition, committed),
            strategy=how,
        )
        context.leadership[topic_partition] = committed.state
        self._request_batch.add_leader_and_isr_request_for_brokers(
            recipients, topic_partition, committed.state, assignment, is_new=is_new
        )
