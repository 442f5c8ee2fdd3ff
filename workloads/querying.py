"""A client that asks every broker about every partition: offsets by kind and by time, metadata, ends of leader epochs.

Each answer is an operation of the history, so that properties can compare what clients see on leaders, followers and
brokers that were cut off. A query changes nothing.
"""

from __future__ import annotations

from itertools import cycle
from random import Random  # noqa: TID251 - the type only
from typing import Any, Final

from nemesis.workloads.base import WorkloadContext
from nemesis.workloads.clients import Clients
from nemesis.workloads.kafka import queries
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.offset_requests import EARLIEST, LATEST, NO_EPOCH
from nemesis.workloads.operations import OperationLog, Pace
from nemesis.workloads.partitions import KnownPartitions, TopicPartition, partition_columns

OF_OFFSETS: Final = ("earliest-offset", "latest-offset", "offset-by-time")
FUNCTIONS: Final = (*OF_OFFSETS, "metadata", "epoch-end")
LONGEST_AGO_MS: Final = 10_000
STATED: Final = (None, 0, -1, None, 1, 0)
"""The leader epochs that queries of offsets state in turn, beside the one that the client knows; None: none at all."""


class Querying:
    """The query process of a workload."""

    def __init__(
        self,
        context: WorkloadContext,
        *,
        clients: Clients,
        partitions: KnownPartitions,
        log: OperationLog,
    ) -> None:
        self._context = context
        self._clients = clients
        self._partitions = partitions
        self._log = log
        self._stated = cycle(STATED)

    async def run(self, process: str, interval_ms: int) -> None:
        """Ask until cancelled; ``interval_ms`` is the least time from one query to its next."""
        client, rng = self._clients.client(process), self._clients.rng()
        pace, turn = Pace(interval_ms, rng), 0
        try:
            while True:
                await pace.wait()
                turn += 1
                if not self._partitions.known or not self._context.permits(process, turn):
                    continue
                tp = rng.choice(self._partitions.known)
                if tp[0] not in client.metadata.topics or turn % len(FUNCTIONS) == 0:
                    await client.refresh_metadata()
                if brokers := sorted(client.metadata.brokers):
                    function = FUNCTIONS[turn % len(FUNCTIONS)]
                    await self._ask(client, process, function, tp, rng.choice(brokers), rng)
        finally:
            client.close()

    async def _ask(
        self,
        client: KafkaClient,
        process: str,
        function: str,
        tp: TopicPartition,
        node: int,
        rng: Random,
    ) -> None:
        columns = partition_columns(client, tp) | {"f": function, "node": node}
        match function:
            case "offset-by-time":
                columns["wall_ms"] = client.timestamp_ms() - rng.randrange(LONGEST_AGO_MS)
            case "epoch-end":
                columns["leader_epoch"] = rng.randint(0, _newest_epoch(client, tp))
        if function in OF_OFFSETS and (stated := self._stated_epoch(client, tp)) is not None:
            columns["leader_epoch"] = stated
        asked = dict(columns)
        with self._log.operation(self._context.recorder(process), columns) as operation:
            operation.ok(**await self._answer(client, tp, asked))

    async def _answer(
        self, client: KafkaClient, tp: TopicPartition, asked: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the columns of the answer; raises ``KafkaError``."""
        node, timeout_s = asked["node"], self._clients.timeout_s
        match asked["f"]:
            case "metadata":
                known = await queries.partition_metadata(client, node, tp, timeout_s=timeout_s)
                return {
                    "leader": known.leader,
                    "leader_epoch": known.leader_epoch,
                    "replicas": list(known.replicas),
                    "isr": list(known.isr),
                }
            case "epoch-end":
                epoch = asked["leader_epoch"]
                end = await queries.epoch_end(client, node, tp, epoch, timeout_s=timeout_s)
                return {"leader_epoch": end.leader_epoch, "offset": end.offset}
            case function:
                fixed = {"earliest-offset": EARLIEST, "latest-offset": LATEST}
                timestamp = fixed.get(function, asked.get("wall_ms", 0))
                offset = await queries.offset_at(
                    *(client, node, tp, timestamp),
                    leader_epoch=asked.get("leader_epoch", NO_EPOCH),
                    timeout_s=timeout_s,
                )
                return {"offset": offset}

    def _stated_epoch(self, client: KafkaClient, tp: TopicPartition) -> int | None:
        """Return the leader epoch that the next query of an offset states; None: none."""
        beside = next(self._stated)
        return None if beside is None else max(0, _newest_epoch(client, tp) + beside)


def _newest_epoch(client: KafkaClient, tp: TopicPartition) -> int:
    """Return the leader epoch of the partition as the client knows it; 0 if it knows none."""
    topic = client.metadata.topics.get(tp[0])
    partition = None if topic is None else topic.partitions.get(tp[1])
    return 0 if partition is None else max(0, partition.leader_epoch)
