"""What faults ask of the controller, as an administrator does.

Each request is an operation of the history (``nemesis.history.events``), so that checkers which work out what must
be true after the requests of administrators (``nemesis.checkers.reassignment``) know of it. Requests go out from the
first client's address: a partition that cuts it off is in the way of administrators, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from random import Random
from typing import Any

from nemesis.history.recorder import Recorder
from nemesis.interfaces.cluster import Cluster, bootstrap
from nemesis.workloads.kafka.admin import KafkaAdmin
from nemesis.workloads.kafka.errors import KafkaError
from nemesis.workloads.operations import Operation, OperationLog

NAME = "administrator"
"""Of the process in the history."""
REQUEST_TIMEOUT_S = 2.0
NOT_SHOWN = "NOT_SHOWN"
"""The error of a move that was requested through a znode, and that the cluster does not show."""

TopicPartition = tuple[str, int]
Replicas = tuple[int, ...]


class Administrator:
    """Asks on behalf of all faults of a run; their operations are numbered together."""

    def __init__(self, cluster: Cluster, recorder: Recorder | None = None) -> None:
        """Without a ``recorder`` nobody is told of the requests."""
        self._cluster = cluster
        self._recorder = recorder or Recorder(lambda _: None, process=NAME, clock=lambda: 0)
        self._log = OperationLog()

    async def reassign(
        self, wanted: Mapping[TopicPartition, Replicas], rng: Random, *, deadline: float
    ) -> None:
        """Ask once for each partition's replicas, for none after the deadline, a loop time.

        Whether that was heard is to be seen in ZooKeeper.
        """
        client, loop = self._client(rng), asyncio.get_running_loop()
        try:
            if not await client.refresh_metadata(timeout_s=REQUEST_TIMEOUT_S):
                return
            for (topic, partition), replicas in sorted(wanted.items()):
                if loop.time() > deadline:
                    return
                columns = _columns((topic, partition), replicas)
                with self._log.operation(self._recorder, columns) as operation:
                    await client.reassign(topic, partition, replicas, timeout_s=REQUEST_TIMEOUT_S)
                    operation.ok()
        finally:
            client.close()

    def open_moves(self, wanted: Mapping[TopicPartition, Replicas], path: str) -> OpenMoves:
        """Record that each partition's replicas are about to be requested through the znode ``path``."""
        return OpenMoves(
            {
                tp: self._log.operation(self._recorder, _columns(tp, replicas) | {"path": path})
                for tp, replicas in wanted.items()
            }
        )

    def _client(self, rng: Random) -> KafkaAdmin:
        cluster = self._cluster
        return KafkaAdmin(
            [(address.host, address.port) for address in bootstrap(cluster)],
            client_id="nemesis-administrator",
            source_host=cluster.client_host(cluster.clients[0]),
            rng=Random(rng.getrandbits(64)),
            codec=cluster.codec,
        )


class OpenMoves:
    """Moves that are requested through a znode: the operations are open until a look at the cluster."""

    def __init__(self, operations: Mapping[TopicPartition, Operation]) -> None:
        self._stack = ExitStack()
        self._operations = {
            tp: self._stack.enter_context(operation) for tp, operation in operations.items()
        }

    def end(self, made: Collection[TopicPartition]) -> None:
        """Complete all operations, once: ``ok`` for the moves that were made, ``info`` for the others."""
        for tp, operation in self._operations.items():
            if tp in made:
                operation.ok()
            else:
                operation.failed(KafkaError(NOT_SHOWN, definite=False))
        self._stack.close()


def _columns(tp: TopicPartition, replicas: Replicas) -> dict[str, Any]:
    topic, partition = tp
    return {
        "f": "reassign",
        "topic": topic,
        "partition": partition,
        "replicas": list(replicas),
    }
