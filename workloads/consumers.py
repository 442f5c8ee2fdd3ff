"""Consumers: each follows its share of the partitions from offset 0.

A fetch asks for one partition, or for several that one broker has. Each partition of a fetch is an operation of its
own. A process of a history does one thing at a time, so each of a consumer's partitions belongs to a process of its
own then: ``consumer-0``, ``consumer-0.1``, ``consumer-0.2`` and so on, in the order in which they are first read.
A consumer that is started again reads from the start, so it goes on with the next number.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random  # noqa: TID251 - the type only

from nemesis.history.recorder import Recorder
from nemesis.workloads.base import WorkloadContext
from nemesis.workloads.clients import Clients, find_leader
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.fetches import FetchSession, PartitionKey
from nemesis.workloads.operations import Avoid, Pace
from nemesis.workloads.partitions import KnownPartitions, TopicPartition
from nemesis.workloads.produce_consume_options import ProduceConsumeOptions
from nemesis.workloads.reads import Reading, Reads


@dataclass(slots=True)
class _Consumer:
    """One consumer process."""

    name: str
    client: KafkaClient
    rng: Random
    reads_from_any: bool
    """Whether it reads from followers, too."""
    is_committed: bool
    """Whether it reads committed records only."""
    positions: dict[PartitionKey, int] = field(default_factory=dict)
    """By topic id: a topic that was deleted and created again has a log of its own, to be read from its start."""
    recorders: dict[TopicPartition | None, Recorder] = field(default_factory=dict)
    """By partition; with the key None the only one, if a fetch asks for one partition."""
    sessions: dict[int, FetchSession] = field(default_factory=dict)
    """The fetch session with each broker."""

    def key(self, tp: TopicPartition) -> PartitionKey:
        return self.client.metadata.topics[tp[0]].topic_id, tp[1]

    def has_replica(self, node: int, tp: TopicPartition) -> bool:
        """Whether it reads the partition from this broker, as far as it knows."""
        metadata = self.client.metadata
        leader = metadata.leader(*tp)
        if leader is None or not self.reads_from_any:
            return leader == node
        return node in metadata.replicas(*tp)


class Consumers:
    """The consumer processes of a workload."""

    def __init__(
        self,
        context: WorkloadContext,
        options: ProduceConsumeOptions,
        *,
        clients: Clients,
        partitions: KnownPartitions,
        reads: Reads,
    ) -> None:
        self._context = context
        self._options = options
        self._clients = clients
        self._partitions = partitions
        self._reads = reads
        self._recorded: Counter[str] = Counter()
        """How many recorders each process has had, also before it was started again."""

    async def run(self, process: str, index: int) -> None:
        """Read until cancelled; ``index`` is the consumer's number."""
        options = self._options
        client, rng = self._clients.client(process), self._clients.rng()
        pace, avoid = Pace(options.poll_interval_ms, rng), Avoid(options.avoid_ms)
        reads_from_any = index >= options.consumers - options.follower_consumers
        consumer = _Consumer(
            process, client, rng, reads_from_any, is_committed=index < options.committed_consumers
        )
        turn = 0
        try:
            while True:
                await pace.wait()
                turn += 1
                known = self._partitions.known
                choices = avoid.not_avoided(known[index % len(known) :: options.consumers])
                if not choices:
                    continue
                first = turn % len(choices)
                tp = choices[first]
                if not self._context.permits(process, turn):
                    continue
                if client.metadata.leader(*tp) is None and not await find_leader(client, tp):
                    avoid.add(tp)
                    continue
                failed = await self._poll(consumer, [*choices[first:], *choices[:first]])
                for failed_tp in failed:
                    avoid.add(failed_tp)
                if failed:
                    await client.refresh_metadata()
        finally:
            client.close()

    async def _poll(
        self, consumer: _Consumer, choices: list[TopicPartition]
    ) -> list[TopicPartition]:
        """Read the first partition, and others that its broker has; return the partitions that failed."""
        metadata = consumer.client.metadata
        node = metadata.leader(*choices[0])
        if consumer.reads_from_any or node is None:
            node = consumer.rng.choice(metadata.replicas(*choices[0]))
        others = [tp for tp in choices[1:] if consumer.has_replica(node, tp)]
        tps = [choices[0], *others][: self._options.poll_partitions]
        polled = await self._reads.poll_partitions(
            consumer.client,
            {
                tp: Reading(
                    self._recorder(consumer, tp), consumer.positions.get(consumer.key(tp), 0)
                )
                for tp in tps
            },
            node=node,
            session=self._session(consumer, node),
        )
        for tp, outcome in polled.items():
            if outcome is not None:
                key = consumer.key(tp)
                position = consumer.positions.get(key, 0)
                consumer.positions[key] = outcome.position_after(position)
        return [tp for tp, outcome in polled.items() if outcome is None]

    def _session(self, consumer: _Consumer, node: int) -> FetchSession:
        is_kept = self._options.fetch_sessions
        session = FetchSession(is_kept=is_kept, is_committed=consumer.is_committed)
        return consumer.sessions.setdefault(node, session) if is_kept else session

    def _recorder(self, consumer: _Consumer, tp: TopicPartition) -> Recorder:
        """Return the recorder of the process to which this partition of a consumer belongs."""
        key = None if self._options.poll_partitions == 1 else tp
        if key not in consumer.recorders:
            number = self._recorded[consumer.name]
            self._recorded[consumer.name] += 1
            name = f"{consumer.name}.{number}" if number else consumer.name
            consumer.recorders[key] = self._context.recorder(name)
        return consumer.recorders[key]
