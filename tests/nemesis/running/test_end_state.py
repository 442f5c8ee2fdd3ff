"""What is recorded of the end of a run, and that what is still going gets time to go."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast
from uuid import UUID

from nemesis.faults.cluster_view import ClusterSnapshot, PartitionState
from nemesis.faults.zookeeper_view import topic_id_of
from nemesis.history.recorder import Recorder
from nemesis.running.end_state import EndState, Logs
from nemesis.workloads.kafka.cluster_metadata import (
    ClusterMetadata,
    PartitionMetadata,
    TopicMetadata,
)

ID = UUID(int=7)
TP = ("orders", 0)
STATE = PartitionState(1, 3, isr=(1,), replicas=(1, 2), topic_id=ID)
KNOWN = ClusterMetadata(
    topics={"orders": TopicMetadata(ID, {0: PartitionMetadata(1, 3, replicas=(1, 2), isr=(1,))})}
)


class TwoBrokers:
    """A runtime of which only the names of the brokers are used."""

    brokers = ("broker-1", "broker-2")

    @property
    def cluster(self) -> TwoBrokers:
        return self


class View:
    async def snapshot(self) -> ClusterSnapshot:
        return ClusterSnapshot(partitions={TP: STATE}, unassigned=(("orders", 1),))


class Brokers:
    """Broker 2 keeps what it is told to keep, one answer after the other, the last for good."""

    def __init__(self, *logs: Logs) -> None:
        self._logs = list(logs)
        self.asked = 0

    async def metadata(self, node: str) -> ClusterMetadata | None:
        return KNOWN if node == "broker-1" else None

    async def logs(self, node: str) -> Logs:
        if node == "broker-1":
            return [TP]
        self.asked += 1
        return self._logs[min(self.asked, len(self._logs)) - 1]


def recorded(brokers: Brokers, *, within_s: float = 60.0) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    recorder = Recorder(
        lambda line: lines.append(json.loads(line)), process="harness", clock=lambda: 0
    )

    async def look() -> None:
        end = EndState(
            cast("Any", TwoBrokers()), cast("Any", View()), recorder, cast("Any", brokers)
        )
        await end.record(asyncio.get_running_loop().time() + within_s)

    asyncio.run(look())
    return lines


def told(lines: list[dict[str, Any]], label: str, node: int | None = None) -> list[dict[str, Any]]:
    left_out = {"time", "process", "kind", "seq", "source", "node"}
    return [
        {name: value for name, value in line.items() if name not in left_out}
        for line in lines
        if (line["source"], line.get("node")) == (label, node)
    ]


def test_what_everybody_told() -> None:
    lines = recorded(Brokers([TP]))
    state = {"topic": "orders", "partition": 0, "topic_id": str(ID), "leader": 1}
    partition = state | {"replicas": [1, 2], "isr": [1]}
    assert told(lines, "zookeeper") == [
        partition,
        {"topic": "orders", "partition": 1},
        {"error": "NONE", "count": 2},
    ]
    assert told(lines, "metadata", 1) == [partition, {"error": "NONE", "count": 1}]
    assert told(lines, "metadata", 2) == [{"error": "NO_ANSWER"}]
    log = [{"topic": "orders", "partition": 0}, {"error": "NONE", "count": 1}]
    assert told(lines, "logs", 1) == told(lines, "logs", 2) == log


def test_logs_that_are_being_deleted_get_time_to_go(monkeypatch: Any) -> None:
    monkeypatch.setattr("nemesis.running.end_state.POLL_INTERVAL_S", 0.0)
    brokers = Brokers([TP, ("gone", 0)], "KAFKA_STORAGE_ERROR", [])
    assert told(recorded(brokers), "logs", 2) == [{"error": "NONE", "count": 0}]
    assert brokers.asked == 3


def test_what_does_not_go_in_time_is_recorded() -> None:
    stays = Brokers([("gone", 0)])
    assert told(recorded(stays, within_s=0.0), "logs", 2) == [
        {"topic": "gone", "partition": 0},
        {"error": "NONE", "count": 1},
    ]
    silent = Brokers("CLIENT_TIMED_OUT")
    assert told(recorded(silent, within_s=0.0), "logs", 2) == [{"error": "CLIENT_TIMED_OUT"}]


def test_a_topic_id_as_the_znode_has_it() -> None:
    assert topic_id_of({"topic_id": "AAAAAAAAAAAAAAAAAAAABw"}) == ID
    assert topic_id_of({}) is None
    assert topic_id_of({"topic_id": "short"}) is None
