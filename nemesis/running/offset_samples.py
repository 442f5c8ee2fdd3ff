"""What replicas answer about their logs during a run of brokers that write no traces, now and then.

A look has three steps: every leader is asked for its high watermark; ZooKeeper is read; the members of every ISR are
asked where their logs end. So a high watermark is older than the ISR, and the ISR is older than the ends. They are
recorded as ``replica-sample`` events. Brokers are asked past every link rule.

Requests name topics, not their ids. So an answer is recorded once ZooKeeper was read again, and has the same topic: one
that was deleted and created again meanwhile begins with the same leader epoch.

What is read from a ZooKeeper server may be old if the server lags behind its leader. So the read follows a write of
the same session, which a majority has to commit: it deletes a znode that does not exist. A KRaft cluster is not
sampled: the metadata that its brokers answer may be older than the high watermark that was asked for before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final, Protocol
from uuid import UUID

from nemesis.faults.direct_client import direct_client
from nemesis.faults.zookeeper_view import ZooKeeperView
from nemesis.history.events import Kind
from nemesis.history.recorder import Recorder
from nemesis.interfaces.runtime import Runtime
from nemesis.support.errors import HarnessError
from nemesis.support.node_names import id_of
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.errors import KafkaError
from nemesis.workloads.kafka.replica_offsets import high_watermarks, log_ends

INTERVAL_S: Final = 0.5
REQUEST_TIMEOUT_S: Final = 1.0
ABSENT: Final = "/nemesis-is-not-here"
"""No znode has this path."""
_CLIENT_ID: Final = "nemesis-samples"

TopicPartition = tuple[str, int]
Epochs = dict[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Leadership:
    """A partition with a leader, as ZooKeeper has it, and that leader's registration."""

    topic_id: UUID | None
    leader: int
    leader_epoch: int
    broker_epoch: int
    isr: tuple[int, ...] = field(compare=False)
    """It may change while one broker leads in one epoch."""


Leaderships = dict[TopicPartition, Leadership]


@dataclass(frozen=True, slots=True)
class Look:
    """What ZooKeeper had, and where the logs of the members ended afterwards, by broker."""

    leaderships: Leaderships = field(default_factory=dict)
    ends: tuple[tuple[int, TopicPartition, int], ...] = ()


class _Question(Protocol):
    """Asks a broker for an offset of each partition."""

    def __call__(
        self,
        client: KafkaClient,
        address: tuple[str, int],
        leader_epochs: Mapping[TopicPartition, int],
        *,
        timeout_s: float,
    ) -> Awaitable[dict[TopicPartition, int | str]]: ...


class OffsetSamples:
    """Asks and records, again and again."""

    def __init__(
        self, runtime: Runtime, view: ZooKeeperView, recorder: Recorder, *, rng: Random
    ) -> None:
        self._runtime = runtime
        self._view = view
        self._recorder = recorder
        self._rng = rng

    async def record(self) -> None:
        """Look at the replicas every ``INTERVAL_S`` until cancelled. Without ZooKeeper's answer a look is left out."""
        before = Look()
        while True:
            try:
                before = await self._look(before)
            except HarnessError:
                before = Look()
            await asyncio.sleep(INTERVAL_S)

    async def _look(self, before: Look) -> Look:
        """Look once, and record what was answered before ZooKeeper is read; return the rest."""
        marks = await self._ask(high_watermarks, before.leaderships, lambda leads: (leads.leader,))
        now = await self._leaderships()
        for node, tp, offset in before.ends:
            leads = before.leaderships[tp]
            if tp in now and now[tp].topic_id == leads.topic_id:
                self._record(node, tp, leads, log_end_offset=offset)
        for node, tp, offset in marks:
            if now.get(tp) == before.leaderships[tp]:
                self._record(node, tp, now[tp], high_watermark=offset)
        return Look(now, tuple(await self._ask(log_ends, now, lambda leads: leads.isr)))

    async def _leaderships(self) -> Leaderships:
        await self._view.zookeeper.delete(ABSENT)
        snapshot = await self._view.snapshot()
        return {
            tp: Leadership(
                topic_id=state.topic_id,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                broker_epoch=snapshot.brokers[state.leader].czxid,
                isr=tuple(member for member in state.isr if member in state.replicas),
            )
            for tp, state in snapshot.partitions.items()
            if state.leader in snapshot.brokers and not state.is_moving
        }

    async def _ask(
        self,
        question: _Question,
        leaderships: Leaderships,
        brokers_of: Callable[[Leadership], tuple[int, ...]],
    ) -> list[tuple[int, TopicPartition, int]]:
        """Ask all brokers at once; return broker, partition and offset of each answer that is not an error."""
        nodes = {id_of(node): node for node in self._runtime.cluster.brokers}
        epochs: dict[int, Epochs] = {}
        for tp, leads in leaderships.items():
            for broker in brokers_of(leads):
                if broker in nodes:
                    epochs.setdefault(broker, {})[tp] = leads.leader_epoch
        answers = await asyncio.gather(
            *(self._ask_broker(question, nodes[broker], epochs[broker]) for broker in epochs)
        )
        return [
            (broker, tp, offset)
            for broker, answer in zip(epochs, answers, strict=True)
            for tp, offset in sorted(answer.items())
            if isinstance(offset, int)
        ]

    async def _ask_broker(
        self, question: _Question, node: str, leader_epochs: Epochs
    ) -> dict[TopicPartition, int | str]:
        with direct_client(self._runtime.cluster, node, client_id=_CLIENT_ID, rng=self._rng) as (
            client,
            address,
        ):
            try:
                return await question(client, address, leader_epochs, timeout_s=REQUEST_TIMEOUT_S)
            except KafkaError:
                return {}

    def _record(self, node: int, tp: TopicPartition, leads: Leadership, **offset: int) -> None:
        topic, partition = tp
        self._recorder.record(
            Kind.REPLICA_SAMPLE,
            node=node,
            topic=topic,
            partition=partition,
            topic_id=None if leads.topic_id is None else str(leads.topic_id),
            leader=leads.leader,
            leader_epoch=leads.leader_epoch,
            broker_epoch=leads.broker_epoch,
            isr=list(leads.isr),
            **offset,
        )
