"""At the end every replica is asked for the first records that are not older than some times of the run.

While clients write, only leaders are asked, about the last seconds. A log that was cut or rolled long ago shows at the
end whether its index by time still fits it. Followers answer ListOffsets by their own logs only to a debugging client
(replica id −2), so that is how they are asked. Each question is an operation, ``offset-by-time``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Final

from nemesis.workloads.base import WorkloadContext
from nemesis.workloads.clients import Clients
from nemesis.workloads.kafka import queries
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.errors import KafkaError
from nemesis.workloads.operations import Operation, OperationLog
from nemesis.workloads.partitions import TopicPartition, partition_columns

TIMES: Final = 8
"""Questions to each replica."""
_NOT_ANSWERED: Final = KafkaError("PARTITION_NOT_ANSWERED", definite=False)


class FinalQuestions:
    """Asks once clients have stopped. The times lie between ``begin`` and the questions."""

    def __init__(self, context: WorkloadContext, *, clients: Clients, log: OperationLog) -> None:
        self._context = context
        self._clients = clients
        self._log = log
        self._begun_ms = 0

    def begin(self) -> None:
        """Note the time at which clients begin to write."""
        self._begun_ms = self._now_ms()

    async def ask_all(self, partitions: list[TopicPartition], deadline: float) -> None:
        """Ask every replica that the metadata name, until the deadline; all brokers at the same time."""
        client = self._clients.client("final-times")
        await client.refresh_metadata()
        brokers = sorted(client.metadata.brokers)
        client.close()
        await asyncio.gather(*(self._ask(node, partitions, deadline) for node in brokers))

    async def _ask(self, node: int, partitions: list[TopicPartition], deadline: float) -> None:
        name, loop = f"final-times-{node}", asyncio.get_running_loop()
        client, rng = self._clients.client(name), self._clients.rng()
        try:
            await client.refresh_metadata()
            own = [tp for tp in partitions if node in _replicas(client, tp)]
            for _ in range(TIMES if own else 0):
                times = {tp: rng.randint(self._begun_ms, self._now_ms()) for tp in own}
                if loop.time() > deadline or not await self._ask_for(client, name, node, times):
                    return
        finally:
            client.close()

    async def _ask_for(
        self, client: KafkaClient, name: str, node: int, times: Mapping[TopicPartition, int]
    ) -> bool:
        """Ask about each partition, as a process of its own; return whether the broker answered."""
        with ExitStack() as stack:
            operations = {
                tp: stack.enter_context(
                    self._log.operation(
                        self._context.recorder(f"{name}.{index}"),
                        partition_columns(client, tp)
                        | {"f": "offset-by-time", "node": node, "wall_ms": wall_ms},
                    )
                )
                for index, (tp, wall_ms) in enumerate(times.items())
            }
            try:
                answers = await queries.offsets_at(
                    client, node, times, timeout_s=self._clients.timeout_s
                )
            except KafkaError as error:
                for operation in operations.values():
                    operation.failed(error)
                return False
            for tp, operation in operations.items():
                _complete(operation, answers.get(tp, _NOT_ANSWERED))
        return True

    def _now_ms(self) -> int:
        return self._context.epoch_ms + int(asyncio.get_running_loop().time() * 1000)


def _complete(operation: Operation, answer: int | KafkaError) -> None:
    if isinstance(answer, KafkaError):
        operation.failed(answer)
    else:
        operation.ok(offset=answer)


def _replicas(client: KafkaClient, tp: TopicPartition) -> tuple[int, ...]:
    topic = client.metadata.topics.get(tp[0])
    partition = None if topic is None else topic.partitions.get(tp[1])
    return () if partition is None else partition.replicas
