"""Consumers: each follows its share of the partitions from offset 0."""

from __future__ import annotations

from uuid import UUID

from nemesis.workloads.base import WorkloadContext
from nemesis.workloads.clients import Clients, find_leader
from nemesis.workloads.operations import Avoid, Pace
from nemesis.workloads.partitions import KnownPartitions
from nemesis.workloads.produce_consume_options import ProduceConsumeOptions
from nemesis.workloads.reads import Reads


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

    async def run(self, process: str, index: int) -> None:
        """Read until cancelled; ``index`` is the consumer's number."""
        client, recorder = self._clients.client(process), self._context.recorder(process)
        rng = self._clients.rng()
        pace, avoid = Pace(self._options.poll_interval_ms, rng), Avoid(self._options.avoid_ms)
        positions: dict[tuple[UUID, int], int] = {}
        reads_from_any = index >= self._options.consumers - self._options.follower_consumers
        turn = 0
        try:
            while True:
                await pace.wait()
                turn += 1
                known = self._partitions.known
                choices = avoid.not_avoided(known[index % len(known) :: self._options.consumers])
                if not choices:
                    continue
                tp = choices[turn % len(choices)]
                if not self._context.permits(process, turn):
                    continue
                if client.metadata.leader(*tp) is None and not await find_leader(client, tp):
                    avoid.add(tp)
                    continue
                # A topic that was deleted and created again has a log of its own, to be read from its start.
                log = client.metadata.topics[tp[0]].topic_id, tp[1]
                node = rng.choice(client.metadata.replicas(*tp)) if reads_from_any else None
                polled = await self._reads.poll(client, recorder, tp, positions.get(log, 0), node)
                if polled is None:
                    avoid.add(tp)
                    await client.refresh_metadata()
                else:
                    positions[log] = polled.position_after(positions.get(log, 0))
        finally:
            client.close()
