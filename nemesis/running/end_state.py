"""What is there once a run is over: in ZooKeeper, in each broker's metadata, on each broker's disks.

It is recorded as ``end-state`` events, for the properties that compare it with what clients asked for. Logs that are
being deleted get time to go: the look is taken when no broker keeps a log of which it is no replica, or when the time
for convergence is over. What then remains is for the checkers to judge.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from nemesis.faults.cluster_view import ClusterSnapshot, ClusterView
from nemesis.history.events import NO_ERROR, Kind
from nemesis.history.recorder import Recorder
from nemesis.interfaces.runtime import Runtime
from nemesis.support.errors import HarnessError
from nemesis.support.node_names import id_of
from nemesis.workloads.kafka.admin import KafkaAdmin
from nemesis.workloads.kafka.cluster_metadata import ClusterMetadata
from nemesis.workloads.kafka.errors import KafkaError

METADATA_TIMEOUT_S = 1.0
LOG_DIRS_TIMEOUT_S = 2.0
POLL_INTERVAL_S = 0.4
CLIENT_ID = "nemesis-end-state"

TopicPartition = tuple[str, int]
Logs = list[TopicPartition] | str
"""The partitions of which a broker keeps a log, or why it did not say."""


class BrokerViews:
    """Asks single brokers, past every link rule."""

    def __init__(self, runtime: Runtime, rng: Random) -> None:
        self._runtime = runtime
        self._rng = rng

    async def metadata(self, node: str) -> ClusterMetadata | None:
        """What the broker knows of the cluster; None when it does not answer."""
        client = self._client(node)
        try:
            answered = await client.refresh_metadata(timeout_s=METADATA_TIMEOUT_S)
        finally:
            client.close()
        return client.metadata if answered else None

    async def logs(self, node: str) -> Logs:
        """What the broker keeps on its disks."""
        client = self._client(node)
        try:
            address = self._runtime.cluster.direct_address(node)
            return await client.log_dirs((address.host, address.port), timeout_s=LOG_DIRS_TIMEOUT_S)
        except KafkaError as error:
            return error.name
        finally:
            client.close()

    def _client(self, node: str) -> KafkaAdmin:
        address = self._runtime.cluster.direct_address(node)
        return KafkaAdmin(
            [(address.host, address.port)],
            client_id=CLIENT_ID,
            source_host=self._runtime.cluster.direct_source(node),
            rng=Random(self._rng.getrandbits(64)),
            codec=self._runtime.cluster.codec,
        )


@dataclass(frozen=True, slots=True)
class EndStateView:
    """One look at everything, by broker id."""

    snapshot: ClusterSnapshot
    metadata: dict[int, ClusterMetadata | None]
    logs: dict[int, Logs]

    @property
    def is_tidy(self) -> bool:
        """Whether every broker says that it keeps logs of its own replicas only."""
        partitions = self.snapshot.partitions
        return all(
            not isinstance(logs, str)
            and all(tp in partitions and broker in partitions[tp].replicas for tp in logs)
            for broker, logs in self.logs.items()
        )


class EndState:
    """Looks and records, once."""

    def __init__(
        self, runtime: Runtime, view: ClusterView, recorder: Recorder, brokers: BrokerViews
    ) -> None:
        self._runtime = runtime
        self._view = view
        self._recorder = recorder
        self._brokers = brokers

    async def record(self, deadline: float) -> None:
        """Look until all is tidy or the loop's time is beyond the deadline; record what was seen last."""
        loop = asyncio.get_running_loop()
        try:
            view = await self._look()
            while not view.is_tidy and loop.time() < deadline:
                await asyncio.sleep(POLL_INTERVAL_S)
                view = await self._look()
        except HarnessError as error:
            self._tell("zookeeper", None, str(error))
            return
        self._tell("zookeeper", None, _states(view.snapshot))
        for broker, metadata in view.metadata.items():
            self._tell("metadata", broker, "NO_ANSWER" if metadata is None else _known(metadata))
        for broker, logs in view.logs.items():
            self._tell("logs", broker, logs if isinstance(logs, str) else _partitions(logs))

    async def _look(self) -> EndStateView:
        nodes = self._runtime.cluster.brokers
        ids = [id_of(node) for node in nodes]
        snapshot = await self._view.snapshot()
        metadata = await asyncio.gather(*(self._brokers.metadata(node) for node in nodes))
        logs = await asyncio.gather(*(self._brokers.logs(node) for node in nodes))
        return EndStateView(
            snapshot, dict(zip(ids, metadata, strict=True)), dict(zip(ids, logs, strict=True))
        )

    def _tell(self, source: str, node: int | None, rows: str | list[dict[str, Any]]) -> None:
        """``rows``: the columns of each partition, or why there are none."""
        about: dict[str, Any] = {"source": source, "node": node}
        if isinstance(rows, str):
            self._recorder.record(Kind.END_STATE, **about, error=rows)
            return
        for columns in rows:
            self._recorder.record(Kind.END_STATE, **about, **columns)
        self._recorder.record(Kind.END_STATE, **about, error=NO_ERROR, count=len(rows))


def _states(snapshot: ClusterSnapshot) -> list[dict[str, Any]]:
    """Those without a leader yet are there, too."""
    rows = [
        {
            "topic": topic,
            "partition": partition,
            "topic_id": None if state.topic_id is None else str(state.topic_id),
            "leader": state.leader,
            "replicas": list(state.replicas),
            "isr": list(state.isr),
        }
        for (topic, partition), state in sorted(snapshot.partitions.items())
    ]
    return rows + _partitions(snapshot.unassigned)


def _known(metadata: ClusterMetadata) -> list[dict[str, Any]]:
    return [
        {
            "topic": topic,
            "partition": partition,
            "topic_id": str(topic_metadata.topic_id),
            "leader": state.leader,
            "replicas": list(state.replicas),
            "isr": list(state.isr),
        }
        for topic, topic_metadata in sorted(metadata.topics.items())
        for partition, state in sorted(topic_metadata.partitions.items())
    ]


def _partitions(partitions: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    return [{"topic": topic, "partition": partition} for topic, partition in partitions]
