"""What each replica answers about its log once traffic has ended: start, high watermark, end.

It is recorded as ``replica-offsets`` events. The replicas are asked again until they agree: a follower hears of the
last high watermark, and of the start of the leader's log, with its next fetch. Replicas of a partition that do not
agree are asked until nothing has changed for longer than the configuration lets them take (``rest_bound_ms``), or until
the time has passed; the last answers are recorded as they are.

The brokers are asked past every link rule, in the order: ZooKeeper, all brokers at once, ZooKeeper. A partition whose
state in ZooKeeper changed meanwhile has not been asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

from nemesis.checkers.liveness.rest_bound import rest_bound_ms
from nemesis.faults.cluster_view import ClusterView, PartitionState
from nemesis.faults.direct_client import direct_client
from nemesis.history.events import NO_ERROR, Kind
from nemesis.history.recorder import Recorder
from nemesis.interfaces.runtime import Runtime
from nemesis.running.lateness import REPORT_INTERVAL_S
from nemesis.support.errors import HarnessError
from nemesis.support.node_names import id_of
from nemesis.workloads.kafka.replica_offsets import Answers, ReplicaOffsets, ask_replicas

REQUEST_TIMEOUT_S: Final = 2.0
POLL_INTERVAL_S: Final = 0.2
CHANGED: Final = "STATE_CHANGED"
"""The error of replicas whose partition had another state in ZooKeeper after they were asked."""
_CLIENT_ID: Final = "nemesis-offsets"

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class PartitionLook:
    """One look at a partition: its state in ZooKeeper, and what the brokers of its replicas answered."""

    state: PartitionState
    answers: Mapping[int, ReplicaOffsets | str]

    @property
    def basis(self) -> tuple[PartitionState, int, int] | None:
        """What followers have to agree with: state, start and end of the leader's log. None if it did not answer."""
        leader = self.answers.get(self.state.leader)
        if leader is None or isinstance(leader, str):
            return None
        return self.state, leader.log_start_offset, leader.log_end_offset

    @property
    def is_at_rest(self) -> bool:
        """Whether all members of the ISR answered that nothing is left to be replicated, or to be heard of."""
        members = [self.answers.get(broker) for broker in self.state.isr]
        leader = self.answers.get(self.state.leader)
        if leader is None or isinstance(leader, str):
            return False
        return all(
            isinstance(member, ReplicaOffsets)
            and member.log_end_offset == member.high_watermark == leader.log_end_offset
            and member.log_start_offset >= leader.log_start_offset
            for member in members
        )


Looks = dict[TopicPartition, PartitionLook]


class OffsetsAtRest:
    """Asks and records, once."""

    def __init__(
        self,
        runtime: Runtime,
        view: ClusterView,
        recorder: Recorder,
        *,
        settings: Mapping[str, int],
        rng: Random,
    ) -> None:
        """``settings``: the configured time-outs and intervals by name, in milliseconds."""
        self._runtime = runtime
        self._view = view
        self._recorder = recorder
        self._rng = rng
        self._patience_s = 2 * (rest_bound_ms(settings) or 0) / 1000 + REPORT_INTERVAL_S
        """Twice the bound: on a real machine the time beyond it is compared with the load."""
        self._since: dict[TopicPartition, float] = {}
        """When the basis of each partition was first answered as it is."""
        self._asked_at = 0.0
        """When the last look began."""

    async def record(self) -> None:
        """Ask until all replicas agree or have had their time; record what they answered last."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + 2 * self._patience_s
        try:
            looks = await self._look({})
            while not self._is_done(looks) and loop.time() < deadline:
                await asyncio.sleep(POLL_INTERVAL_S)
                looks = await self._look(looks)
        except HarnessError as error:
            self._recorder.record(Kind.REPLICA_OFFSETS, error=str(error))
            return
        self._record(looks)
        if not all(look.is_at_rest for look in looks.values()):
            # What the machine did up to now is reported afterwards; without the report nothing can be concluded.
            await asyncio.sleep(2 * REPORT_INTERVAL_S)

    def _is_done(self, looks: Looks) -> bool:
        return all(
            look.is_at_rest or self._unchanged_s(tp) >= self._patience_s
            for tp, look in looks.items()
        )

    def _unchanged_s(self, tp: TopicPartition) -> float:
        """For how long, in seconds, the basis of a partition is known to be the same."""
        return max(0.0, self._asked_at - self._since[tp])

    async def _look(self, before: Looks) -> Looks:
        loop = asyncio.get_running_loop()
        self._asked_at = loop.time()
        asked = (await self._view.snapshot()).partitions
        nodes = {id_of(node): node for node in self._runtime.cluster.brokers}
        answers = dict(
            zip(
                nodes,
                await asyncio.gather(*(self._ask(nodes[b], _epochs(asked, b)) for b in nodes)),
                strict=True,
            )
        )
        known = (await self._view.snapshot()).partitions
        looks: Looks = {}
        for tp, state in known.items():
            is_same = asked.get(tp) == state
            looks[tp] = PartitionLook(
                state,
                {
                    broker: answers[broker][tp] if is_same else CHANGED
                    for broker in state.replicas
                    if broker in nodes
                },
            )
            basis = looks[tp].basis
            if basis is None or tp not in before or before[tp].basis != basis:
                self._since[tp] = loop.time()
        return looks

    async def _ask(self, node: str, leader_epochs: dict[TopicPartition, int]) -> Answers:
        if not leader_epochs:
            return {}
        with direct_client(self._runtime.cluster, node, client_id=_CLIENT_ID, rng=self._rng) as (
            client,
            address,
        ):
            return await ask_replicas(client, address, leader_epochs, timeout_s=REQUEST_TIMEOUT_S)

    def _record(self, looks: Looks) -> None:
        for (topic, partition), look in sorted(looks.items()):
            state = look.state
            unchanged_ms = int(self._unchanged_s((topic, partition)) * 1000)
            for broker, answer in sorted(look.answers.items()):
                offsets = {} if isinstance(answer, str) else answer._asdict()
                self._recorder.record(
                    Kind.REPLICA_OFFSETS,
                    node=broker,
                    topic=topic,
                    partition=partition,
                    topic_id=None if state.topic_id is None else str(state.topic_id),
                    leader=state.leader,
                    leader_epoch=state.leader_epoch,
                    replicas=list(state.replicas),
                    isr=list(state.isr),
                    error=answer if isinstance(answer, str) else NO_ERROR,
                    duration_ms=unchanged_ms,
                    **offsets,
                )
        count = sum(len(look.answers) for look in looks.values())
        self._recorder.record(Kind.REPLICA_OFFSETS, error=NO_ERROR, count=count)


def _epochs(
    partitions: Mapping[TopicPartition, PartitionState], broker: int
) -> dict[TopicPartition, int]:
    """Return the leader epoch of each partition of which the broker has a replica."""
    return {tp: state.leader_epoch for tp, state in partitions.items() if broker in state.replicas}
